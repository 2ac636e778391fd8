#pragma once
// How a kernel ends when it cannot go on.
#include <array>
#include <optional>
#include <string>

namespace capstone_emu {

/// The kinds of harness/worker/protocol.md.
enum class FailureKind { kLaunchError, kUndefinedBehaviour, kNotJudgeable, kCrash, kException };
const char* name_of(FailureKind kind);

struct Failure {
  FailureKind kind;
  std::string message;
  std::string kernel, launched_at;                     ///< empty when no kernel ran
  std::optional<std::array<unsigned, 3>> block, thread;
  std::string file;                                    ///< where in the source, when known
  int line = 0;
  std::string hint;
};

/// Keeps the first failure since the last take_failure(); later ones are consequences.
void record_failure(Failure failure);
std::optional<Failure> take_failure();
bool has_failure();

/// Installs the handlers that turn SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT inside a kernel into a Failure.
void install_fault_handlers();
/// Gives the calling OS thread the alternate stack that the handlers need.
void prepare_thread_for_faults();

/// file:line of a code address of this program, from its debug information.
bool locate_code(const void* address, std::string& file, int& line);

}  // namespace capstone_emu
