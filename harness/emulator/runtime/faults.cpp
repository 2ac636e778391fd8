// Signals inside a kernel become failures that name kernel, launch, block and thread; elsewhere they keep their meaning.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "harness/emulator/runtime/scheduler.h"

namespace capstone_emu {
namespace {

constexpr std::size_t kSignalStack = 128 * 1024;

const void* program_counter(const ucontext_t& context) {
#if defined(__x86_64__)
  return reinterpret_cast<const void*>(context.uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return reinterpret_cast<const void*>(context.uc_mcontext.pc);
#else
  return nullptr;
#endif
}

struct Verdict {
  FailureKind kind;
  std::string message, hint;
};

Verdict explain(int signal, const siginfo_t& info, const BlockRunner& runner) {
  char address[64];
  std::snprintf(address, sizeof address, "%p", info.si_addr);
  switch (signal) {
    case SIGFPE:
      return {FailureKind::kCrash, "integer division by zero (or the least integer divided by -1)",
              "a GPU returns an unspecified value here; check the divisor"};
    case SIGILL:
      return {FailureKind::kCrash, "illegal instruction: the program ran into code that must not be reached",
              "a function without a return statement ends like this"};
    case SIGABRT:
      return {FailureKind::kUndefinedBehaviour, "the kernel called abort()", {}};
    default: break;
  }
  if (runner.inside_stack_guard(info.si_addr))
    return {FailureKind::kCrash, "stack overflow: the thread's local arrays or its recursion need more than 256 KiB",
            "keep large arrays in shared or global memory"};
  // x86 reports unaligned vector accesses and non-canonical addresses without an address.
  if (signal == SIGBUS || (signal == SIGSEGV && info.si_code > 0 && info.si_addr == nullptr && info.si_code != SEGV_MAPERR))
    return {FailureKind::kUndefinedBehaviour,
            "misaligned access: a vector load or store (float4, int4 …) at an address that is not a multiple of its size",
            "rows need not be 16-byte aligned: use vector accesses only where the row length allows it"};
  if (reinterpret_cast<std::uintptr_t>(info.si_addr) < 65536)
    return {FailureKind::kCrash, std::string("access through a null pointer (address ") + (info.si_addr ? address : "0") + ")", {}};
  return {FailureKind::kCrash, std::string("illegal memory access at ") + address,
          "an index is outside of its array, or a pointer is not a device pointer"};
}

void on_fault(int signal, siginfo_t* info, void* raw_context) {
  BlockRunner* runner = BlockRunner::current();
  if (!runner) {  // host code: die of the signal, as without us
    ::signal(signal, SIG_DFL);
    ::raise(signal);
    return;
  }
  std::string file;
  int line = 0;
  locate_code(program_counter(*static_cast<ucontext_t*>(raw_context)), file, line);
  Verdict verdict = explain(signal, *info, *runner);
  runner->fail(verdict.kind, file.c_str(), line, std::move(verdict.message), std::move(verdict.hint));
}

}  // namespace

void install_fault_handlers() {
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  // The handler does not return: it leaves for another stack, so the signal must not stay blocked.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  ::sigemptyset(&action.sa_mask);
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::sigaction(signal, &action, nullptr);
}

void prepare_thread_for_faults() {
  static thread_local bool prepared = false;
  if (prepared) return;
  prepared = true;
  stack_t alternate{};
  alternate.ss_sp = std::malloc(kSignalStack);
  alternate.ss_size = kSignalStack;
  if (alternate.ss_sp) ::sigaltstack(&alternate, nullptr);
}

// The program carries line tables (-g1) and is linked at a fixed address; binutils, which the compiler needs anyway,
// read them.
bool locate_code(const void* address, std::string& file, int& line) {
  int pipe_ends[2];
  if (!address || ::pipe(pipe_ends) != 0) return false;
  char program[4096], where[32];
  const ssize_t length = ::readlink("/proc/self/exe", program, sizeof program - 1);
  if (length <= 0) return false;
  program[length] = 0;
  std::snprintf(where, sizeof where, "%p", address);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(pipe_ends[1], 1);
    const int null = ::open("/dev/null", O_WRONLY);
    if (null >= 0) ::dup2(null, 2);
    for (const char* tool : {"/usr/bin/addr2line", "/usr/local/bin/addr2line"})
      ::execl(tool, "addr2line", "-e", program, where, static_cast<char*>(nullptr));
    ::_exit(127);
  }
  ::close(pipe_ends[1]);
  char text[4096];
  std::size_t used = 0;
  for (ssize_t n; used < sizeof text - 1 && (n = ::read(pipe_ends[0], text + used, sizeof text - 1 - used)) > 0;)
    used += static_cast<std::size_t>(n);
  ::close(pipe_ends[0]);
  if (child > 0) ::waitpid(child, nullptr, 0);
  text[used] = 0;
  std::string answer(text);
  answer = answer.substr(0, answer.find_first_of("\n ("));
  const std::size_t colon = answer.rfind(':');
  if (colon == std::string::npos || answer.starts_with("??")) return false;
  line = std::atoi(answer.c_str() + colon + 1);
  if (line <= 0) return false;
  const std::size_t slash = answer.rfind('/', colon);
  file = answer.substr(slash == std::string::npos ? 0 : slash + 1, colon - (slash == std::string::npos ? 0 : slash + 1));
  return true;
}

}  // namespace capstone_emu
