# How targets of this project are compiled.

# Warnings for every target; errors where CAPSTONE_WERROR is ON.
function(capstone_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra
    -Wno-restrict  # GCC 12 warns of std::string itself (GCC bug 105329)
    $<$<BOOL:${CAPSTONE_WERROR}>:-Werror> ${ARGN})
endfunction()

# The precompiled header of capstone_base, which links what the header includes. Sources that are compiled with other options than
# the rest of their target cannot use it: see capstone_own_options().
function(capstone_precompiled target)
  if(NOT CAPSTONE_PRECOMPILED_HEADERS)
    return()
  elseif(target STREQUAL capstone_base)
    target_precompile_headers(capstone_base PRIVATE <harness/base/precompiled.h>)
    return()
  endif()
  target_precompile_headers(${target} REUSE_FROM capstone_base)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL EXECUTABLE)  # -fPIE would not go with the header that was precompiled for libraries
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
    target_link_options(${target} PRIVATE -pie)
  endif()
endfunction()

# capstone_own_options(OPTIONS <options> SOURCES …): these sources are compiled one by one, with these options besides.
function(capstone_own_options options)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "${options}"
    SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# capstone_library(<folder name> SOURCES … DEPS …): one static library a folder, alias capstone::<name>.
function(capstone_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(capstone_${name} STATIC ${ARG_SOURCES})
  add_library(capstone::${name} ALIAS capstone_${name})
  target_include_directories(capstone_${name} PUBLIC "${CMAKE_SOURCE_DIR}")
  capstone_warnings(capstone_${name} -Wshadow -Wconversion -Wno-sign-conversion)
  target_link_libraries(capstone_${name} PUBLIC ${ARG_DEPS})
  if("capstone::base" IN_LIST ARG_DEPS OR name STREQUAL base)
    capstone_precompiled(capstone_${name})
  endif()
endfunction()

# capstone_test(<name> SOURCES … DEPS … [LABELS …]): one GoogleTest program, its cases found at test time.
function(capstone_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  capstone_warnings(${name})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gtest GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests" UNITY_BUILD OFF)
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST
    PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}")
endfunction()
