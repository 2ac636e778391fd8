#pragma once
// How a kernel ends when it cannot continue.
#include <array>
#include <optional>
#include <string>

namespace capstone_emu {

/// The kinds of harness/runtime/worker/protocol.md.
enum class FailureKind { kLaunchError, kUndefinedBehaviour, kNotJudgeable, kCrash, kTimedOut, kException };
const char* name_of(FailureKind kind);

// Values of cudaError_t, which CUDA never changes.
inline constexpr int kErrorIllegalAddress = 700, kErrorLaunchTimeout = 702, kErrorAssert = 710,
                     kErrorMisalignedAddress = 716, kErrorLaunchFailure = 719;

struct Failure {
  FailureKind kind;
  std::string message;
  std::string kernel, launched_at;  ///< empty when no kernel ran
  std::optional<std::array<unsigned, 3>> block, thread;
  std::string file;  ///< where in the source, when known
  int line = 0;
  std::string hint;
  int cuda_error = kErrorLaunchFailure;  ///< what the CUDA API returns from now on
};

/// Keeps the first failure since the last take_failure(); later ones are consequences. What the API refuses
/// (kLaunchError) goes to the function set here instead, if one is.
void record_failure(Failure failure);
void set_refusal_handler(void (*handler)(const Failure&));
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
