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

/// Landlock: nothing but `paths`; no TCP, no signals and no abstract sockets beyond this process's own kind, as far as the
/// kernel knows these. Needs no_new_privs.
/// @return what failed; empty when done.
std::string restrict_files(const Paths& paths);

/// seccomp: no sockets to anywhere, no looking into other processes nor scheduling them, nothing that outlives the process (System V's
/// and POSIX's queues and segments), no way out of the process group, nothing that asks the kernel for more rights. Refused calls fail with EPERM. Needs no_new_privs.
/// @return what failed; empty when done.
std::string restrict_system_calls();

/// The part of restrict_system_calls() that keeps memory where it is counted: no System V IPC, no POSIX queues. For bubblewrap, whose
/// namespaces do the rest.
std::string restrict_ipc();

}  // namespace capstone::confine
