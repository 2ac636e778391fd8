// Signals become failures: inside a kernel with kernel, launch, block and thread, in the candidate's host
// code with the line.
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "runtime/fiber.h"
#include "runtime/scheduler.h"
#include "runtime/time_limit.h"
#include "runtime/where.h"

// From the linker: where the program begins, and where its code ends.
extern "C" const char __executable_start, etext;
/// Linked after the candidate's code and before the emulator's.
extern "C" void capstone_emu_end_of_candidate() __attribute__((weak));

namespace capstone_emu {
namespace {

constexpr std::size_t kSignalStack = 128 * 1024;

struct Registers {
  const void *program_counter, *stack_pointer;
};
Registers registers_of(const void* raw_context) {
  const auto& machine = static_cast<const ucontext_t*>(raw_context)->uc_mcontext;
#if defined(__x86_64__)
  return {reinterpret_cast<const void*>(machine.gregs[REG_RIP]),
          reinterpret_cast<const void*>(machine.gregs[REG_RSP])};
#elif defined(__aarch64__)
  return {reinterpret_cast<const void*>(machine.pc), reinterpret_cast<const void*>(machine.sp)};
#else
  (void)machine;
  return {};
#endif
}

/// Where a fault during unwinding goes on; null outside of it.
thread_local sigjmp_buf* unwinding = nullptr;

/// call_chain(). Unwinding a stack that was overwritten, or beyond the first frame of a kernel's thread, may
/// fault, too. The result is then the interrupted instruction alone.
std::vector<const void*> calls_as_far_as_they_go(const void* program_counter) {
  sigjmp_buf again;
  std::vector<const void*> chain{program_counter};
  if (sigsetjmp(again, 0) == 0) {
    unwinding = &again;
    chain = call_chain(program_counter);
  }
  unwinding = nullptr;
  return chain;
}

/// file:line of the interrupted code.
void locate(const Registers& registers, std::string& file, int& line) {
  locate_in_source(calls_as_far_as_they_go(registers.program_counter), file, line);
}

struct Verdict {
  FailureKind kind;
  std::string message, hint;
  int cuda_error = kErrorLaunchFailure;
};

/// `runner`: null in host code.
Verdict explain(int signal, const siginfo_t& info, const BlockRunner* runner) {
  char address[64];
  std::snprintf(address, sizeof address, "%p", info.si_addr);
  switch (signal) {
    case SIGFPE:
      if (info.si_code == FPE_FLTINV)
        return {
            FailureKind::kCrash,
            "the first NaN arises here: 0/0, inf - inf, 0 * inf, or the root of a negative number",
            "guard the divisor, and clamp a variance at 0; start a maximum at -INFINITY, not at 0, and leave "
            "out what is -INFINITY itself: -INFINITY - -INFINITY is NaN"};
      if (info.si_code == FPE_FLTOVF)
        return {
            FailureKind::kCrash, "the first infinite value arises here: the result is too large for its type",
            "in a softmax, subtract the row's maximum before exp(); elsewhere, write it so that exp() gets "
            "no large argument, as in z / (1 + exp(-z)); accumulate half types in float"};
      if (info.si_code == FPE_FLTDIV)
        return {FailureKind::kCrash, "the first infinite value arises here: a division by zero",
                "check what the divisor is when a row is empty, masked or constant"};
      return {FailureKind::kCrash, "integer division by zero (or the least integer divided by -1)",
              "a GPU returns an unspecified value here; check the divisor"};
    case SIGILL:
      return {FailureKind::kCrash, "illegal instruction: the program ran into code that must not be reached",
              "a function without a return statement ends like this"};
    case SIGABRT:
      return {FailureKind::kUndefinedBehaviour,
              std::string(runner ? "the kernel" : "it") + " called abort()",
              {}};
    default:
      break;
  }
  if (runner && runner->inside_stack_guard(info.si_addr))
    return {FailureKind::kCrash,
            "stack overflow: the thread's local arrays or its recursion need more than " +
                std::to_string(stack_size() / 1024) + " KiB",
            "end the recursion, and keep large arrays in shared or global memory", kErrorIllegalAddress};
  // x86 reports unaligned vector accesses and non-canonical addresses without an address.
  if (signal == SIGBUS ||
      (signal == SIGSEGV && info.si_code > 0 && info.si_addr == nullptr && info.si_code != SEGV_MAPERR))
    return {FailureKind::kUndefinedBehaviour,
            "misaligned access: a vector load or store (float4, int4 …) at an address that is not a multiple "
            "of its size",
            "rows need not be 16-byte aligned: use vector accesses only where the row length allows it",
            kErrorMisalignedAddress};
  if (!runner && is_device_only(info.si_addr))
    return {FailureKind::kCrash, std::string("the host accesses memory of cudaMalloc, at ") + address,
            "only kernels can: copy it with cudaMemcpy, or allocate it with cudaMallocManaged"};
  if (reinterpret_cast<std::uintptr_t>(info.si_addr) < 65536)
    return {FailureKind::kCrash,
            std::string("access through a null pointer (address ") + (info.si_addr ? address : "0") + ")",
            "check what the pointer is made from: a null argument, or an address that was computed from one",
            kErrorIllegalAddress};
  return {FailureKind::kCrash, std::string("illegal memory access at ") + address,
          runner ? "an index is outside of its array, or a pointer is not a device pointer"
                 : "an index is outside of its array, or the memory was freed",
          kErrorIllegalAddress};
}

constexpr const char* kHost = "in host code: ";
constexpr const char* kTooLong =
    "an endless loop, a wait for a value that never comes, or far too much work: try the smallest check size "
    "first";

/// Finding the place of a fault takes memory. A fault inside of malloc() leaves its lock taken, and then
/// waits for it for ever: this ends it, with calls that need no memory.
constexpr unsigned kSecondsToReport = 10;
void give_up_on_report(int) {
  static constexpr char kText[] =
      "capstone: in host code: it crashed inside of malloc() or free(), or of a function that calls them\n"
      "  hint: memory was written out of bounds, after free(), or freed twice; valgrind or the host "
      "compiler's "
      "-fsanitize=address shows where\n";
  if (::write(2, kText, sizeof kText - 1) < 0) ::_exit(127);
  ::_exit(1);  // as a program whose failure was reported
}

void on_fault(int signal, siginfo_t* info, void* raw_context) {
  if (unwinding) ::siglongjmp(*unwinding, 1);
  BlockRunner* runner = BlockRunner::current();
  static std::atomic<bool> host_failed;  // a second fault of the host is one of what follows here
  if (!runner && host_failed.exchange(true)) ::_exit(128 + signal);
  if (!runner) {
    ::signal(SIGALRM, give_up_on_report);
    ::alarm(kSecondsToReport);
  }
  std::string file;
  int line = 0;
  locate(registers_of(raw_context), file, line);
  Verdict verdict = explain(signal, *info, runner);
  if (runner)
    runner->fail(verdict.kind, file.c_str(), line, std::move(verdict.message), std::move(verdict.hint),
                 verdict.cuda_error);
  report_host_failure(
      {verdict.kind, kHost + verdict.message, {}, {}, std::nullopt, std::nullopt, file, line, verdict.hint});
  ::alarm(0);
  ::signal(signal, SIG_DFL);  // not the candidate's code: die of the signal, as without this handler
  ::raise(signal);
}

bool belongs_to_candidate(const void* code) {
  const char* const end =
      capstone_emu_end_of_candidate ? reinterpret_cast<const char*>(capstone_emu_end_of_candidate) : &etext;
  return code >= &__executable_start && code < end;
}

/// Host code that does not return, or a kernel that could not be left because it was never in the candidate's
/// code.
Failure timed_out_on_the_host(const Registers& registers) {
  if (auto first = take_failure()) return *first;
  const std::string message = "did not end within " + time_limit_text();
  if (const LaunchConfig* launch = launch_in_progress())
    return {FailureKind::kTimedOut,
            "the kernel " + message,
            launch->kernel,
            std::string(launch->file) + ":" + std::to_string(launch->line),
            std::nullopt,
            std::nullopt,
            {},
            0,
            kTooLong};
  Failure failure{FailureKind::kTimedOut,
                  kHost + message + "; it was here",
                  {},
                  {},
                  std::nullopt,
                  std::nullopt,
                  {},
                  0,
                  kTooLong};
  locate(registers, failure.file, failure.line);
  return failure;
}

void on_time_out(int, siginfo_t*, void* raw_context) {
  const TimeOutPhase phase = time_out_phase();
  if (phase == TimeOutPhase::kNone) return;
  const Registers registers = registers_of(raw_context);
  BlockRunner* const runner = g_runner;  // which may be in the middle of what current() would change
  if (runner && runner->on_fiber(registers.stack_pointer) && belongs_to_candidate(registers.program_counter))
    runner->leave_at_time_limit(registers.program_counter);
  if (phase == TimeOutPhase::kHost) report_host_failure(timed_out_on_the_host(registers));
}

}  // namespace

void BlockRunner::leave_at_time_limit(const void* interrupted) {
  static std::atomic<bool> told;  // the place of one thread of the kernel is enough; finding it takes time
  if (has_failure() || told.exchange(true)) leave_kernel();
  std::string file;
  int line = 0;
  locate({interrupted, nullptr}, file, line);
  told = false;
  fail(FailureKind::kTimedOut, file.c_str(), line,
       "the kernel did not end within " + time_limit_text() + "; it was here", kTooLong, kErrorLaunchTimeout);
}

void install_fault_handlers() {
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  // The handler may not return but leave for another stack, so the signal must not stay blocked.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  ::sigemptyset(&action.sa_mask);
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::sigaction(signal, &action, nullptr);
  static_assert(kTimeOutSignal == SIGVTALRM);
  action.sa_sigaction = on_time_out;
  action.sa_flags |= SA_RESTART;
  ::sigaction(kTimeOutSignal, &action, nullptr);
  prepare_thread_for_faults();
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

}  // namespace capstone_emu
