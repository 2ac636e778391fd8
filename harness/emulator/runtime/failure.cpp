#include "runtime/failure.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <mutex>

#include "runtime/scheduler.h"

namespace capstone_emu {
namespace {

std::mutex g_failure_mutex;
/// Lives as long as the process: what happens at its end is reported, too.
std::optional<Failure>& first_failure() {
  static auto* first = new std::optional<Failure>;
  return *first;
}
std::atomic<bool> g_kernels_over{false};
void (*g_host_handler)(const Failure&) = nullptr;
void (*g_refusal_handler)(const Failure&) = nullptr;

std::string formatted(const char* format, va_list arguments) {
  char text[2048];
  std::vsnprintf(text, sizeof text, format, arguments);
  return text;
}

[[noreturn]] void fail_here(FailureKind kind, const char* file, int line, std::string message,
                            std::string hint, int cuda_error = kErrorLaunchFailure) {
  if (BlockRunner* runner = BlockRunner::current())
    runner->fail(kind, file, line, std::move(message), std::move(hint), cuda_error);
  throw Failure{kind, std::move(message), {}, {}, std::nullopt, std::nullopt, file ? file : "",
                line, std::move(hint)};
}

}  // namespace

const char* name_of(FailureKind kind) {
  switch (kind) {
    case FailureKind::kLaunchError:
      return "launch_error";
    case FailureKind::kUndefinedBehaviour:
      return "undefined_behaviour";
    case FailureKind::kNotJudgeable:
      return "not_judgeable";
    case FailureKind::kCrash:
      return "crash";
    case FailureKind::kTimedOut:
      return "timed_out";
    case FailureKind::kException:
      return "exception";
  }
  return "exception";
}

void set_refusal_handler(void (*handler)(const Failure&)) { g_refusal_handler = handler; }
void record_failure(Failure failure) {
  if (failure.kind == FailureKind::kLaunchError && g_refusal_handler) return g_refusal_handler(failure);
  std::lock_guard lock(g_failure_mutex);
  if (failure.kind != FailureKind::kLaunchError) g_kernels_over = true;
  if (!first_failure()) first_failure() = std::move(failure);
}
std::optional<Failure> take_failure() {
  std::lock_guard lock(g_failure_mutex);
  std::optional<Failure> taken = std::move(first_failure());
  first_failure().reset();
  g_kernels_over = false;
  return taken;
}
bool has_failure() {
  std::lock_guard lock(g_failure_mutex);
  return first_failure().has_value();
}
int kernel_error() {
  if (!g_kernels_over) return 0;
  std::lock_guard lock(g_failure_mutex);
  return first_failure() ? first_failure()->cuda_error : 0;
}
bool kernels_are_over() { return g_kernels_over; }

void report_host_failure(const Failure& failure) {
  if (g_host_handler) g_host_handler(failure);
}
void set_host_failure_handler(void (*handler)(const Failure&)) { g_host_handler = handler; }

void undefined_behaviour(const char* file, int line, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::string text = formatted(format, arguments);
  va_end(arguments);
  fail_here(FailureKind::kUndefinedBehaviour, file, line, std::move(text), {});
}

void not_judgeable(const char* file, int line, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::string text = formatted(format, arguments);
  va_end(arguments);
  fail_here(FailureKind::kNotJudgeable, file, line, std::move(text), "judge it on a GPU");
}

namespace {
constexpr const char* kStopped = "the kernel stopped itself: ";
}  // namespace
void trap(const char* file, int line, const char* what) {
  fail_here(FailureKind::kUndefinedBehaviour, file, line, std::string(kStopped) + what, {});
}

void assertion_failed(const char* file, int line, const char* condition) {
  const std::string what = std::string("assertion failed: ") + condition;
  if (in_kernel()) fail_here(FailureKind::kUndefinedBehaviour, file, line, kStopped + what, {}, kErrorAssert);
  fail_here(FailureKind::kException, file, line, "the host program stopped itself: " + what,
            "it checks results on the host; look at what the kernel wrote, and at what was copied back");
}

}  // namespace capstone_emu
