// For a whole program that keeps its own main(): sets the schedule before main() and reports a failed kernel
// after it. Linked in when the build names capstone_emu_program.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "runtime/scheduler.h"
#include "runtime/time_limit.h"
#if CAPSTONE_EMULATOR_HOOKS
#include "hooks/report.h"
#include "hooks/sites.h"
#endif

extern "C" {
int capstone_emu_program = 0;
}

namespace capstone_emu {
namespace {

// Exit codes of a program whose kernels failed although the program itself did not notice.
constexpr int kFailed = 1, kNotJudgeable = 3;

void print(const Failure& failure) {
  auto at = [](const std::array<unsigned, 3>& i) {
    return "(" + std::to_string(i[0]) + "," + std::to_string(i[1]) + "," + std::to_string(i[2]) + ")";
  };
  std::string text = "capstone: ";
  if (!failure.file.empty())
    text += failure.file + ":" + std::to_string(failure.line) + ": ";
  else if (!failure.launched_at.empty())
    text += failure.launched_at + ": ";
  switch (failure.kind) {
    case FailureKind::kUndefinedBehaviour:
      text += "undefined behaviour: ";
      break;
    case FailureKind::kNotJudgeable:
      text += "not judgeable on the CPU: ";
      break;
    default:
      break;
  }
  text += failure.message + "\n";
  if (!failure.kernel.empty()) text += "  kernel " + failure.kernel;
  if (!failure.launched_at.empty()) text += " launched at " + failure.launched_at;
  if (failure.block) text += ", block " + at(*failure.block);
  if (failure.thread) text += ", thread " + at(*failure.thread);
  if (!failure.kernel.empty()) text += "\n";
  if (!failure.hint.empty()) text += "  hint: " + failure.hint + "\n";
  std::fflush(stdout);
  std::fputs(text.c_str(), stderr);
}

/// What the API refused is left to the program, to which the call has returned the error.
void print_refusal(const Failure& failure) {
  constexpr int kMost = 10;
  static std::atomic<int> printed;
  if (printed++ < kMost) print(failure);
}

bool report(int& status) {
  host_goes_on();
  const std::optional<Failure> failure = take_failure();
  if (!failure) return false;
  print(*failure);
  if (failure->kind == FailureKind::kNotJudgeable)
    status = kNotJudgeable;
  else if (status == 0)
    status = kFailed;
  return true;
}

#if CAPSTONE_EMULATOR_HOOKS
/// CAPSTONE_REPORT=3 — the descriptor that takes the counts of all kernels.
int report_descriptor() {
  const char* wanted = std::getenv("CAPSTONE_REPORT");
  return wanted ? std::atoi(wanted) : -1;
}

/// Findings of the hooks at which no kernel stopped.
bool report_findings(int& status) {
  const int descriptor = report_descriptor();
  const hooks::Report observed = hooks::make_report();
  if (descriptor >= 0) {
    const std::string text = observed.json.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (::write(descriptor, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
      std::perror("capstone: the counts could not be written");
  }
  for (const Failure& error : observed.errors) print(error);
  if (status == 0 && !observed.errors.empty()) status = kFailed;
  return !observed.errors.empty();
}
#else
bool report_findings(int&) { return false; }
#endif

void at_exit(int status, void*) {
  if (!report(status) && !report_findings(status)) return;
  std::fflush(nullptr);
  ::_exit(status);
}

[[noreturn]] void on_terminate() {
  try {
    if (std::current_exception()) std::rethrow_exception(std::current_exception());
  } catch (const Failure& failure) {  // a device function that host code called
    print(failure);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "capstone: the program ended with an exception: %s\n", error.what());
  } catch (...) {
    std::fputs("capstone: the program ended with an exception\n", stderr);
  }
  int status = kFailed;
  if (!report(status)) report_findings(status);
  std::fflush(nullptr);
  ::_exit(status);
}

/// Host code crashed or does not return.
[[noreturn]] void end_with(const Failure& failure) {
  print(failure);
  int status = kFailed;
  if (!report(status)) report_findings(status);
  std::fflush(nullptr);
  ::_exit(kFailed);
}

/// CAPSTONE_TIME_LIMIT=2500 — in milliseconds.
void limit_time() {
  const char* wanted = std::getenv("CAPSTONE_TIME_LIMIT");
  if (wanted) new TimeLimit(std::chrono::milliseconds(std::atol(wanted)));  // as long as the process lives
}

/// CAPSTONE_SCHEDULE=random:7 — a schedule's name and, after the colon, its seed.
void take_settings() {
  const char* wanted = std::getenv("CAPSTONE_SCHEDULE");
  if (!wanted) return;
  const std::string text = wanted, name = text.substr(0, text.find(':'));
  if (name == "reverse") settings().schedule = Schedule::kReverse;
  if (name == "random") settings().schedule = Schedule::kRandom;
  if (name == "warp") settings().schedule = Schedule::kWarp;
  if (const std::size_t colon = text.find(':'); colon != std::string::npos)
    settings().seed = std::strtoull(text.c_str() + colon + 1, nullptr, 10);
}

__attribute__((constructor)) void start() {
  take_settings();
  install_fault_handlers();
  set_host_failure_handler([](const Failure& failure) { end_with(failure); });
  set_refusal_handler(print_refusal);
  pointers_are_checked() = true;
#if CAPSTONE_EMULATOR_HOOKS
  hooks::count_accesses(report_descriptor() >= 0);
#endif
  limit_time();
  std::set_terminate(on_terminate);
  ::on_exit(at_exit, nullptr);
}

}  // namespace
}  // namespace capstone_emu
