#pragma once
// The two halves of capstone-confine. Both act on this process and all that it starts, for good.
#include <string>
#include <vector>

namespace capstone::confine {

/// What may be reached in the file system; what does not exist is left out.
struct Paths {
  std::vector<const char*> read;    ///< files and folders: read, execute
  std::vector<const char*> write;   ///< folders: everything that is done with files
  std::vector<const char*> device;  ///< device nodes and folders of them: read, write, ioctl
};

/// Landlock: nothing but `paths`; no TCP, no signals and no abstract sockets beyond this process's own kind,
/// as far as the kernel knows these. Needs no_new_privs.
/// @return what failed; empty when done.
std::string restrict_files(const Paths& paths);

/// seccomp: refuses, with EPERM, sockets other than Unix streams and all connections; access to other
/// processes and their schedules; IPC that outlives the process; larger socket buffers; leaving the process
/// group; namespaces, keyrings, and calls that need more rights. Needs no_new_privs.
/// @return what failed; empty when done.
std::string restrict_system_calls();

}  // namespace capstone::confine
