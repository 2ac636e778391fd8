# How targets of this project are compiled.

# Warnings for every target; errors where CAPSTONE_WERROR is ON.
function(capstone_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>  # GCC 12 warns of std::string itself (GCC bug 105329)
    # A unity build makes GCC take a source for a header.
    $<$<AND:$<BOOL:${CMAKE_UNITY_BUILD}>,$<CXX_COMPILER_ID:GNU>>:-Wno-subobject-linkage>
    $<$<BOOL:${CAPSTONE_WERROR}>:-Werror> ${ARGN})
endfunction()

# capstone_precompiled(<target> [<header> …]): sources of the target begin with harness/base/precompiled.h,
# compiled once. Libraries share one; a target with headers of its own besides, and a program (-fPIE instead
# of -fPIC), has its own.
function(capstone_precompiled target)
  if(NOT CAPSTONE_PRECOMPILED_HEADERS)
    return()
  endif()
  get_target_property(type ${target} TYPE)
  if(target STREQUAL capstone_base OR ARGN OR type STREQUAL EXECUTABLE)
    target_precompile_headers(${target} PRIVATE <harness/base/precompiled.h> ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM capstone_base)
  endif()
endfunction()

# Where CMAKE_UNITY_BUILD is ON (preset release): up to eight sources of one folder are compiled as one. Names
# in anonymous namespaces are therefore unique within a folder.
function(capstone_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    get_filename_component(folder "${source}" DIRECTORY)
    string(MAKE_C_IDENTIFIER "in_${folder}" group)
    math(EXPR count_${group} "${count_${group}} + 1")
    math(EXPR batch "(${count_${group}} - 1) / 8")
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${group}_${batch}")
  endforeach()
endfunction()

# capstone_own_options(OPTIONS <options> SOURCES …): these sources are compiled one by one, with these options
# besides.
function(capstone_own_options options)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "${options}"
    SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# capstone_library(<folder name> SOURCES … DEPS …): one static library a folder, alias capstone::<name>.
function(capstone_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(capstone_${name} STATIC ${ARG_SOURCES})
  add_library(capstone::${name} ALIAS capstone_${name})
  target_include_directories(capstone_${name} PUBLIC "$<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>"
    "$<INSTALL_INTERFACE:include/capstone>")
  set_property(GLOBAL APPEND PROPERTY CAPSTONE_LIBRARIES capstone_${name})
  capstone_warnings(capstone_${name} -Wshadow -Wconversion -Wno-sign-conversion)
  target_link_libraries(capstone_${name} PUBLIC ${ARG_DEPS})
  capstone_unity(capstone_${name})
  if("capstone::base" IN_LIST ARG_DEPS OR name STREQUAL base)
    capstone_precompiled(capstone_${name})
  endif()
endfunction()

# An empty program that owns the precompiled header of all tests.
function(capstone_test_headers)
  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/test_headers.cpp" CONTENT "int main() { return 0; }\n")
  add_executable(capstone_test_headers "${CMAKE_BINARY_DIR}/test_headers.cpp")
  target_include_directories(capstone_test_headers PRIVATE "${CMAKE_SOURCE_DIR}")
  target_compile_options(capstone_test_headers PRIVATE $<$<CONFIG:Release>:-O0>)
  target_link_libraries(capstone_test_headers PRIVATE capstone::base GTest::gtest)
  target_precompile_headers(capstone_test_headers PRIVATE <harness/base/precompiled.h> <gtest/gtest.h>)
endfunction()

# capstone_test(<name> SOURCES … DEPS … [LABELS …] [TIMEOUT …] [OPTIMIZED]): one GoogleTest program, its
# cases found at test time. Each case has the name of its folder below tests/ (its room) as a label, and "fast"
# where the program is in CAPSTONE_FAST_TESTS. OPTIMIZED where the test's own sources compute much.
function(capstone_test name)
  cmake_parse_arguments(ARG "OPTIMIZED" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  capstone_warnings(${name})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gtest GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  capstone_unity(${name})
  if(NOT ARG_OPTIMIZED)
    # Most of a test is compiled once and run once: optimizing it takes longer than it saves.
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O0>)
    if(CAPSTONE_PRECOMPILED_HEADERS AND "${ARG_DEPS}" MATCHES "capstone::")  # then it links capstone::base
      if(NOT TARGET capstone_test_headers)
        capstone_test_headers()
      endif()
      target_precompile_headers(${name} REUSE_FROM capstone_test_headers)
    endif()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  file(RELATIVE_PATH room "${CMAKE_SOURCE_DIR}/tests" "${CMAKE_CURRENT_SOURCE_DIR}")
  string(REGEX REPLACE "/.*" "" room "${room}")
  list(APPEND ARG_LABELS ${room})
  if(name IN_LIST CAPSTONE_FAST_TESTS)
    list(APPEND ARG_LABELS fast)
  endif()
  list(REMOVE_DUPLICATES ARG_LABELS)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT ${ARG_TIMEOUT})
  # Properties above cannot hold a list; this file is read after the tests were found.
  file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/${name}_labels.cmake"
    "if(${name}_TESTS)\n  set_tests_properties(\${${name}_TESTS} PROPERTIES LABELS \"${ARG_LABELS}\")\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY
    TEST_INCLUDE_FILES "${CMAKE_CURRENT_BINARY_DIR}/${name}_labels.cmake")
endfunction()
