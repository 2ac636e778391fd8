#pragma once
// How a kernel ends when it cannot continue.
#include <array>
#include <optional>
#include <string>

namespace capstone_emu {

/// The kinds of harness/runtime/worker/protocol.md.
enum class FailureKind { kLaunchError, kUndefinedBehaviour, kNotJudgeable, kCrash, kTimedOut, kException };
const char* name_of(FailureKind kind);

struct Failure {
  FailureKind kind;
  std::string message;
  std::string kernel, launched_at;  ///< empty when no kernel ran
  std::optional<std::array<unsigned, 3>> block, thread;
  std::string file;  ///< where in the source, when known
  int line = 0;
  std::string hint;
};

/// Keeps the first failure since the last take_failure(); later ones are consequences.
void record_failure(Failure failure);
std::optional<Failure> take_failure();
bool has_failure();
/// A kernel failed since the last take_failure(): no other may start, as after a fault on a GPU.
bool kernels_are_over();

/// The candidate's host code cannot continue (a signal, an endless loop): passes the failure to the function
/// set here, which answers the judge and ends the process. Without one it returns.
void report_host_failure(const Failure& failure);
void set_host_failure_handler(void (*handler)(const Failure&));

/// Installs the handlers that turn SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT inside a kernel into a
/// Failure.
void install_fault_handlers();
/// Gives the calling OS thread the alternate stack that the handlers need.
void prepare_thread_for_faults();

}  // namespace capstone_emu
