# What only a build of the emulator alone has: the driver capstone-emulate, the example, tests and an
# installation.

# The part of the runtime that needs CUDA's headers. (capstone compiles it beside each kernel instead.)
add_library(capstone_emulator_cuda STATIC
  runtime/cuda_api.cpp runtime/cuda_driver.cpp runtime/cuda_graphs.cpp runtime/cuda_streams.cpp
  runtime/cuda_textures.cpp runtime/cuda_virtual_memory.cpp)
target_include_directories(capstone_emulator_cuda PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
target_compile_options(capstone_emulator_cuda PRIVATE -O1 -w -fno-pie -fno-pic)
set_target_properties(capstone_emulator_cuda PROPERTIES CXX_STANDARD 17 CXX_EXTENSIONS ON
  UNITY_BUILD OFF ARCHIVE_OUTPUT_DIRECTORY "${CAPSTONE_LIBEXEC_DIR}")
# "/usr/include" would change the order of the compiler's own folders.
if(NOT CAPSTONE_EMULATOR_CUDA_HEADERS STREQUAL "/usr/include")
  target_include_directories(capstone_emulator_cuda SYSTEM PRIVATE "${CAPSTONE_EMULATOR_CUDA_HEADERS}")
endif()

# The driver knows the compiler, the headers and the options of its build.
set(CAPSTONE_EMULATOR_FLAGS "${CMAKE_CXX_FLAGS}")
if(NOT CMAKE_CROSSCOMPILING)
  string(APPEND CAPSTONE_EMULATOR_FLAGS " -march=native")
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64|AMD64")
  string(APPEND CAPSTONE_EMULATOR_FLAGS " -fcf-protection=none")
endif()
if(CAPSTONE_EMULATOR_UCONTEXT)
  string(APPEND CAPSTONE_EMULATOR_FLAGS " -DCAPSTONE_EMULATOR_UCONTEXT=1")
endif()
list(JOIN CMAKE_CROSSCOMPILING_EMULATOR " " CAPSTONE_EMULATOR_RUN)
configure_file(capstone-emulate.in "${CMAKE_BINARY_DIR}/bin/capstone-emulate" @ONLY USE_SOURCE_PERMISSIONS)

install(PROGRAMS "${CMAKE_BINARY_DIR}/bin/capstone-emulate" DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include DESTINATION share/capstone/emulator)
install(TARGETS capstone_emulator capstone_emulator_cuda ARCHIVE DESTINATION libexec/capstone)
if(TARGET capstone_emulator_hooks)
  install(TARGETS capstone_emulator_hooks ARCHIVE DESTINATION libexec/capstone)
endif()
if(TARGET capstone-rewrite)
  install(TARGETS capstone-rewrite RUNTIME DESTINATION libexec/capstone)
endif()

enable_testing()
add_subdirectory(example)
set(tests "${CMAKE_CURRENT_SOURCE_DIR}/../../tests/emulator")
if(CAPSTONE_EMULATOR_TESTS AND EXISTS "${tests}/alone.cmake")
  include("${tests}/alone.cmake")
endif()
