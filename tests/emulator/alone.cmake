# The tests of the emulator when it is built alone. They need CTest; the rewriter's also need GoogleTest.
if(TARGET capstone_rewriter)
  find_package(GTest)
  if(GTest_FOUND)
    include(GoogleTest)
    add_executable(test_rewriter
      "${CMAKE_CURRENT_LIST_DIR}/cxx_tokens_test.cpp" "${CMAKE_CURRENT_LIST_DIR}/rewriter_test.cpp")
    target_link_libraries(test_rewriter PRIVATE capstone_rewriter GTest::gtest GTest::gtest_main)
    gtest_discover_tests(test_rewriter DISCOVERY_MODE PRE_TEST)
  else()
    message(STATUS "GoogleTest was not found: the tests of the rewriter are left out")
  endif()
endif()

# Whole programs that check themselves and print PASS, under every schedule.
file(GLOB programs CONFIGURE_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/programs/*.cu")
foreach(source ${programs})
  cmake_path(GET source STEM name)
  # A Toolkit has these headers; what scripts/fetch_cuda_headers.sh fetches does not.
  if(name STREQUAL library_calls AND NOT EXISTS "${CAPSTONE_EMULATOR_CUDA_HEADERS}/cublas_v2.h")
    continue()
  endif()
  if(name STREQUAL thrust_and_cub AND NOT EXISTS "${CAPSTONE_EMULATOR_CUDA_HEADERS}/cccl/thrust" AND
     NOT EXISTS "${CAPSTONE_EMULATOR_CUDA_HEADERS}/thrust")
    continue()
  endif()
  add_test(NAME Programs.${name}
    COMMAND bash "${CMAKE_CURRENT_LIST_DIR}/check_program.sh" "${CMAKE_BINARY_DIR}/bin/capstone-emulate"
            "${source}"
            ${CMAKE_CROSSCOMPILING_EMULATOR})
  set_tests_properties(Programs.${name} PROPERTIES LABELS programs TIMEOUT 1200)
endforeach()

# What the CPU cannot run is refused with the place in the source, and with an exit code of its own.
add_test(NAME Driver.RefusesWhatTheCpuCannotRun
  COMMAND bash "${CMAKE_CURRENT_LIST_DIR}/check_refusal.sh" "${CMAKE_BINARY_DIR}/bin/capstone-emulate")
