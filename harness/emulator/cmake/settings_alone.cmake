# Options and dependencies of a build of the emulator alone.
option(CAPSTONE_EMULATOR_INSTRUMENTED
  "Build the library of instrumented programs (capstone-emulate --check races)" ON)
option(CAPSTONE_EMULATOR_TESTS "Add the tests of the emulator, where the sources have them" ON)
option(CAPSTONE_EMULATOR_UCONTEXT
  "Switch threads through ucontext, as other processors than x86-64 and aarch64 do" OFF)
set(CAPSTONE_EMULATOR_REWRITER "" CACHE FILEPATH
    "A capstone-rewrite that runs on this machine, for cross builds; empty: build one")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
if(CMAKE_CROSSCOMPILING AND NOT CAPSTONE_EMULATOR_REWRITER)
  message(FATAL_ERROR
    "A cross build needs a rewriter that runs on this machine: set CAPSTONE_EMULATOR_REWRITER.")
endif()
if(NOT CAPSTONE_EMULATOR_REWRITER OR CAPSTONE_EMULATOR_INSTRUMENTED)
  find_package(nlohmann_json REQUIRED)
endif()

# The folders of the build tree have the layout of an installed tree. The folder with the headers must be
# called emulator/include: that is how the runtime tells its own headers from the user's.
include(GNUInstallDirs)
set(CAPSTONE_LIBEXEC_DIR "${CMAKE_BINARY_DIR}/libexec/capstone")
file(MAKE_DIRECTORY "${CAPSTONE_LIBEXEC_DIR}" "${CMAKE_BINARY_DIR}/share/capstone")
file(CREATE_LINK "${CMAKE_CURRENT_SOURCE_DIR}" "${CMAKE_BINARY_DIR}/share/capstone/emulator" SYMBOLIC)

# CUDA's headers: those of a Toolkit, else those that capstone's scripts/fetch_cuda_headers.sh downloads.
find_program(CAPSTONE_EMULATOR_NVCC nvcc)
mark_as_advanced(CAPSTONE_EMULATOR_NVCC)
set(hints "")
if(CAPSTONE_EMULATOR_NVCC)
  file(REAL_PATH "${CAPSTONE_EMULATOR_NVCC}" nvcc)
  cmake_path(GET nvcc PARENT_PATH bin)
  list(APPEND hints "${bin}/../include")
endif()
list(APPEND hints /usr/local/cuda/include)
foreach(cache "$ENV{CAPSTONE_CACHE}" "$ENV{XDG_CACHE_HOME}/capstone" "$ENV{HOME}/.cache/capstone")
  list(APPEND hints "${cache}/cuda-headers/13.0")
endforeach()
find_path(CAPSTONE_EMULATOR_CUDA_HEADERS cuda_runtime.h HINTS ${hints} NO_CMAKE_FIND_ROOT_PATH
          DOC "Folder of CUDA's headers")
if(NOT CAPSTONE_EMULATOR_CUDA_HEADERS)
  message(FATAL_ERROR
    "CUDA's headers were not found. Install the CUDA Toolkit, or download its headers with capstone's "
    "scripts/fetch_cuda_headers.sh, or set CAPSTONE_EMULATOR_CUDA_HEADERS to their folder.")
endif()
