# capstone_library(<folder name> SOURCES … DEPS …): one static library a folder, alias capstone::<name>.
function(capstone_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(capstone_${name} STATIC ${ARG_SOURCES})
  add_library(capstone::${name} ALIAS capstone_${name})
  target_include_directories(capstone_${name} PUBLIC "${CMAKE_SOURCE_DIR}")
  target_compile_options(capstone_${name} PRIVATE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
    -Wno-restrict)  # GCC 12 warns of std::string itself (GCC bug 105329)
  target_link_libraries(capstone_${name} PUBLIC ${ARG_DEPS})
endfunction()

# capstone_test(<name> SOURCES … DEPS … [LABELS …]): one GoogleTest program, its cases found at test time.
function(capstone_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_compile_options(${name} PRIVATE -Wall -Wextra)
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gtest GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST
    PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}")
endfunction()
