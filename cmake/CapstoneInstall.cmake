# What `cmake --install` puts where, and what CPack makes of it.
#   component tool     bin/capstone, libexec/capstone, share/capstone: the command line and what it reads
#   component bundled  lib/capstone: libraries for which the distribution has no archive
#   component bwrap    libexec/capstone/bwrap: bubblewrap and its libraries, for systems without one
#   component library  static libraries, headers and the CMake package: find_package(capstone)
option(CAPSTONE_STUDENT "Leave out of the installed data what would solve a graded problem" OFF)

# capstone::capstone: all libraries at once.
get_property(libraries GLOBAL PROPERTY CAPSTONE_LIBRARIES)
add_library(capstone_all INTERFACE)
add_library(capstone::capstone ALIAS capstone_all)
set_target_properties(capstone_all PROPERTIES EXPORT_NAME capstone)
foreach(library ${libraries})
  string(REGEX REPLACE "^capstone_" "" name ${library})
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${name})
  target_link_libraries(capstone_all INTERFACE ${library})
endforeach()

install(TARGETS capstone RUNTIME DESTINATION bin COMPONENT tool)
install(TARGETS capstone-rewrite capstone-confine capstone-oracle RUNTIME DESTINATION libexec/capstone COMPONENT tool)
install(TARGETS capstone_emulator capstone_emulator_hooks ARCHIVE DESTINATION libexec/capstone COMPONENT tool)
get_property(oracles GLOBAL PROPERTY CAPSTONE_ORACLES)
install(TARGETS ${oracles} LIBRARY DESTINATION libexec/capstone/oracles COMPONENT tool)
install(PROGRAMS scripts/fetch_cuda_headers.sh DESTINATION share/capstone/scripts COMPONENT tool)
# Programs that capstone builds with nvcc on first use include it.
find_path(CAPSTONE_JSON_INCLUDE nlohmann/json.hpp REQUIRED)
install(DIRECTORY ${CAPSTONE_JSON_INCLUDE}/nlohmann DESTINATION share/capstone/include COMPONENT tool)
# The repository's files that a package carries.
install(CODE "
  execute_process(COMMAND \"${CMAKE_SOURCE_DIR}/scripts/package_files.sh\" $<$<BOOL:${CAPSTONE_STUDENT}>:--student>
    OUTPUT_VARIABLE files OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE \"\\n\" \";\" files \"\${files}\")
  foreach(file \${files})
    string(REGEX REPLACE \"^tests/\" \"\" target \"\${file}\")
    get_filename_component(folder \"\${target}\" DIRECTORY)
    file(INSTALL \"${CMAKE_SOURCE_DIR}/\${file}\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/share/capstone/\${folder}\"
      USE_SOURCE_PERMISSIONS MESSAGE_NEVER)
  endforeach()
" COMPONENT tool)

# The libraries that the program links and that are no part of a minimal system. cpp-httplib has no archive, and
# needs libstdc++.
install(CODE "
  file(GET_RUNTIME_DEPENDENCIES EXECUTABLES \"$<TARGET_FILE:capstone>\" \"$<TARGET_FILE:capstone-confine>\"
    RESOLVED_DEPENDENCIES_VAR found
    PRE_EXCLUDE_REGEXES \"^(linux-vdso|ld-linux|lib(c|m|dl|pthread|rt)\\\\.so)\")
  foreach(library \${found})
    file(INSTALL \"\${library}\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/lib/capstone\" FOLLOW_SYMLINK_CHAIN MESSAGE_NEVER)
  endforeach()
" COMPONENT bundled)
install(CODE "
  find_program(bwrap bwrap)
  if(bwrap)
    set(folder \"\${CMAKE_INSTALL_PREFIX}/libexec/capstone/bwrap\")
    file(INSTALL \"\${bwrap}\" DESTINATION \"\${folder}\" USE_SOURCE_PERMISSIONS MESSAGE_NEVER)
    file(GET_RUNTIME_DEPENDENCIES EXECUTABLES \"\${bwrap}\" RESOLVED_DEPENDENCIES_VAR found
      PRE_EXCLUDE_REGEXES \"^(linux-vdso|ld-linux|lib(c|m|dl|pthread|rt|gcc_s|stdc\\\\+\\\\+)\\\\.so)\")
    file(INSTALL \${found} DESTINATION \"\${folder}\" FOLLOW_SYMLINK_CHAIN MESSAGE_NEVER)
  endif()
" COMPONENT bwrap)

# find_package(capstone), from an installed tree and from this build tree.
include(CMakePackageConfigHelpers)
set(package lib/cmake/capstone)
install(TARGETS ${libraries} capstone_all EXPORT capstoneTargets ARCHIVE DESTINATION lib COMPONENT library)
install(EXPORT capstoneTargets NAMESPACE capstone:: DESTINATION ${package} COMPONENT library)
install(DIRECTORY harness rubric templates problems DESTINATION include/capstone COMPONENT library FILES_MATCHING
  PATTERN "*.h" PATTERN "*.inc")
configure_package_config_file(cmake/capstoneConfig.cmake.in "${CMAKE_BINARY_DIR}/install/capstoneConfig.cmake"
  INSTALL_DESTINATION ${package})
write_basic_package_version_file("${CMAKE_BINARY_DIR}/capstoneConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/install/capstoneConfig.cmake"
  "${CMAKE_BINARY_DIR}/capstoneConfigVersion.cmake"
  cmake/CapstoneDependencies.cmake DESTINATION ${package} COMPONENT library)
export(EXPORT capstoneTargets NAMESPACE capstone:: FILE "${CMAKE_BINARY_DIR}/capstoneTargets.cmake")
configure_file(cmake/CapstoneDependencies.cmake "${CMAKE_BINARY_DIR}/CapstoneDependencies.cmake" COPYONLY)
configure_package_config_file(cmake/capstoneConfig.cmake.in "${CMAKE_BINARY_DIR}/capstoneConfig.cmake"
  INSTALL_DESTINATION "${CMAKE_BINARY_DIR}" INSTALL_PREFIX "${CMAKE_BINARY_DIR}")

# scripts/package.sh makes both packages. All that has no archive is bundled, so that one .deb serves Debian
# 12 and Ubuntu 24.04.
set(CPACK_PACKAGE_NAME capstone)
set(CPACK_PACKAGE_VENDOR "The capstone authors")
set(CPACK_PACKAGE_CONTACT "The capstone authors <capstone@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Judges CUDA kernels: correctness first, then speed")
set(CPACK_PACKAGE_DESCRIPTION
  "capstone judges a hand-written CUDA kernel against the kernel that a language model wrote for the same problem, and keeps a worklog.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL tool bundled)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
execute_process(COMMAND dpkg --print-architecture OUTPUT_VARIABLE architecture
  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE "${architecture}")
set(student_suffix "")
if(CAPSTONE_STUDENT)
  set(student_suffix "-student")
endif()
set(CPACK_DEBIAN_FILE_NAME "capstone${student_suffix}_${PROJECT_VERSION}_${architecture}.deb")
set(CPACK_PACKAGE_FILE_NAME "capstone_${PROJECT_VERSION}_${architecture}")
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
# The C library of the machine where the package is made is the oldest that it runs with. g++ compiles
# emulated kernels; pip fetches CUDA's headers where there is no Toolkit.
execute_process(COMMAND ldd --version OUTPUT_VARIABLE glibc ERROR_QUIET)
string(REGEX MATCH "[0-9]+\\.[0-9]+" glibc "${glibc}")
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= ${glibc}), g++, bubblewrap, python3-pip, ca-certificates")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "gnuplot-nox")
set(CPACK_STRIP_FILES OFF)  # the emulator's archives carry the line tables of its own functions
set(CPACK_GENERATOR DEB)
include(CPack)
