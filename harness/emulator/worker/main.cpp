// The program of one candidate on the emulated backend. It speaks harness/runtime/worker/protocol.md on
// descriptor 3.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/base/packet.h"
#include "runtime/habits.h"
#include "runtime/scheduler.h"
#include "runtime/time_limit.h"
#include "worker/extents.h"
#include "worker/observation.h"

// From the generated adapter.
extern "C" void capstone_call(const void* const* slots, void* workspace, void* prepared, void* stream);
extern "C" std::size_t capstone_workspace_bytes(const void* const* slots);
// Weak: the adapter has them only where the problem has `prepare`.
extern "C" std::size_t capstone_prepared_bytes(const void* const* slots) __attribute__((weak));
extern "C" void capstone_prepare(const void* const* slots, void* prepared, void* stream)
    __attribute__((weak));
// From runtime/cuda_api.cpp.
extern "C" const char* capstone_emu_error_text(int error);

namespace capstone_emu {
namespace {

using capstone::Descriptor;
using capstone::Packet;
using capstone::WorkerChannel;
char g_given_stream = 0;          // its address is the stream that launch() gets: not the default stream
const char* g_running = nullptr;  // the candidate's function that runs on behalf of the judge

/// A packet for the judge.
struct Answer {
  Answer(Json message, int descriptor = -1) : message(std::move(message)), fd(descriptor) {}
  Json message;
  Descriptor fd;  ///< goes along unless it is empty
};

bool send(const Answer& answer) { return WorkerChannel().send(answer.message, answer.fd.get()); }

/// The block of memory that holds the tensors; owned by the judge.
class Arena {
 public:
  ~Arena() { release(); }
  void map(int descriptor, std::size_t bytes) {
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED)
      throw std::runtime_error(std::string("cannot map the arena: ") + std::strerror(errno));
    release();
    base_ = static_cast<char*>(memory);
    bytes_ = bytes;
  }
  bool mapped() const { return base_ != nullptr; }
  char* begin() const { return base_; }
  std::size_t bytes() const { return bytes_; }
  void* at(std::uint64_t offset) const {
    if (!base_) return nullptr;  // for workspace_bytes, which only reads sizes
    if (offset > bytes_) throw std::runtime_error("an offset lies outside of the arena");
    return base_ + offset;
  }

 private:
  void release() {
    if (base_) ::munmap(base_, bytes_);
    base_ = nullptr;
  }
  char* base_ = nullptr;
  std::size_t bytes_ = 0;
};

/// launch()'s arguments as the adapter wants them: 8 bytes each, and pointers to these.
class Slots {
 public:
  Slots(const Json& arguments, const Arena& arena) : values_(arguments.size()), pointers_(arguments.size()) {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      values_[i] = value_of(arguments[i], arena);
      pointers_[i] = &values_[i];
    }
  }
  const void* const* data() const { return pointers_.data(); }

 private:
  template <class T>
  static std::uint64_t bits(T value) {
    std::uint64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    return word;
  }
  static std::uint64_t value_of(const Json& argument, const Arena& arena) {
    if (argument.contains("at")) return bits(arena.at(argument["at"].get<std::uint64_t>()));
    if (argument.contains("f32")) return bits(argument["f32"].get<float>());
    if (argument.contains("f64")) return bits(argument["f64"].get<double>());
    if (argument.contains("i32")) return bits(argument["i32"].get<std::int32_t>());
    if (argument.contains("i64")) return bits(argument["i64"].get<std::int64_t>());
    if (argument.contains("u8")) return bits(argument["u8"].get<std::uint8_t>());
    throw std::runtime_error("an argument of unknown type");
  }
  std::vector<std::uint64_t> values_;
  std::vector<const void*> pointers_;
};

Schedule schedule_from(const std::string& name) {
  if (name == "forward") return Schedule::kForward;
  if (name == "reverse") return Schedule::kReverse;
  if (name == "random") return Schedule::kRandom;
  if (name == "warp") return Schedule::kWarp;
  throw std::runtime_error("unknown schedule '" + name + "'");
}

/// Runs `body`, which enters the candidate's code, and answers with its wall time or with the failure that
/// the runtime recorded.
template <class Body>
Json run_guarded(const Json& request, const Arena& arena, const char* function, Body&& body) {
  settings().schedule = schedule_from(request.value("schedule", std::string("forward")));
  settings().seed = request.value("seed", std::uint64_t{0});
  settings().trap = request.value("trap", false);
  last_error() = 0;
  take_failure();
  const Extents extents(request.value("extents", Json::array()), arena.begin(), arena.bytes());
  const TimeLimit limit(std::chrono::milliseconds(request.value("limit_ms", 0)));
  const auto begin = std::chrono::steady_clock::now();
  const std::uint64_t launches = launches_so_far();
  if (std::string_view(function) == "launch()") watch_habits();
  g_running = function;
  streams_are_late() = !settings().copies_early();
  body();
  const std::string behind = finish_streams();  // nothing makes the given stream wait for that
  streams_are_late() = false;
  const std::vector<std::string> habits = habits_seen();
  g_running = nullptr;
  const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - begin;
  // Kernels are complete when their launch returns, so this is where a device synchronisation would report.
  if (auto failure = take_failure(); failure && (failure->kind != FailureKind::kLaunchError || last_error()))
    return answer_of(*failure);
  if (last_error())
    return answer_of({FailureKind::kLaunchError,
                      std::string(function) + " left a CUDA error: " + capstone_emu_error_text(last_error()),
                      {},
                      {},
                      std::nullopt,
                      std::nullopt,
                      {},
                      0,
                      "check the return value of every CUDA call"});
  Json answer{{"ok", true}, {"ms", wall.count()}, {"kernels", launches_so_far() - launches}};
  if (!behind.empty()) answer["left_behind"] = behind;
  if (!habits.empty()) answer["notes"] = habits;
  return answer;
}

/// As run_guarded, observed by the hooks.
template <class Body>
Answer run_observed(const Json& request, const Arena& arena, const char* function, Body&& body) {
  begin_observation(request, arena.begin(), arena.bytes());
  Json answer = run_guarded(request, arena, function, std::forward<Body>(body));
  const int report = finish_observation(request, answer);
  return {std::move(answer), report};
}

Answer run_candidate(const Json& request, const Arena& arena) {
  if (!arena.mapped()) throw std::runtime_error("no arena was given");
  const Slots slots(request.at("args"), arena);
  auto optional_address = [&](const char* key) -> void* {
    return request.contains(key) && request[key].is_number() ? arena.at(request[key].get<std::uint64_t>())
                                                             : nullptr;
  };
  void* const workspace = optional_address("workspace");
  void* const prepared = optional_address("prepared");
  return run_observed(request, arena, "launch()",
                      [&] { capstone_call(slots.data(), workspace, prepared, &g_given_stream); });
}

Answer prepare_candidate(const Json& request, const Arena& arena) {
  if (!capstone_prepare) throw std::runtime_error("this candidate has no prepare()");
  if (!arena.mapped()) throw std::runtime_error("no arena was given");
  const Slots slots(request.at("args"), arena);
  void* const prepared = arena.at(request.at("prepared").get<std::uint64_t>());
  return run_observed(request, arena, "prepare()",
                      [&] { capstone_prepare(slots.data(), prepared, &g_given_stream); });
}

Answer respond(const Json& request, const Descriptor& descriptor, Arena& arena) {
  const std::string op = request.value("op", std::string());
  if (op == "hello") return Json{{"ok", true}, {"protocol", 1}, {"backend", "emulated"}};
  if (op == "arena") {
    if (!descriptor) throw std::runtime_error("the arena came without its descriptor");
    arena.map(descriptor.get(), request.at("bytes").get<std::size_t>());
    return Json{{"ok", true}};
  }
  if (op == "workspace") {
    const Slots slots(request.at("args"), arena);
    return Json{{"ok", true}, {"bytes", capstone_workspace_bytes(slots.data())}};
  }
  if (op == "prepared") {
    if (!capstone_prepared_bytes) throw std::runtime_error("this candidate has no prepared_bytes()");
    const Slots slots(request.at("args"), arena);
    return Json{{"ok", true}, {"bytes", capstone_prepared_bytes(slots.data())}};
  }
  if (op == "prepare") return prepare_candidate(request, arena);
  if (op == "run") return run_candidate(request, arena);
  throw std::runtime_error("unknown request '" + op + "'");
}

Answer guarded_response(const Packet& packet, Arena& arena) {
  Failure failure{FailureKind::kException, {}, {}, {}, std::nullopt, std::nullopt, {}, 0, {}};
  try {
    return respond(packet.message, packet.fd, arena);
  } catch (const Failure& thrown) {  // a device function that was called from host code
    failure = thrown;
  } catch (const std::exception& error) {
    failure.message =
        g_running ? std::string(g_running) + " threw an exception: " + error.what() : error.what();
  } catch (...) {
    failure.message =
        std::string(g_running ? g_running : "the candidate") + " threw something that is no std::exception";
  }
  g_running = nullptr;
  take_failure();
  return answer_of(failure);
}

/// Host code such as a CHECK macro may call exit(): the judge still gets the reason.
void answer_at_exit() {
  if (!g_running) return;
  const std::string function = std::exchange(g_running, nullptr);
  if (auto failure = take_failure()) {
    send(answer_of(*failure));
  } else {
    Failure leaving{FailureKind::kException,
                    function + " ended the process with exit()",
                    {},
                    {},
                    std::nullopt,
                    std::nullopt,
                    {},
                    0,
                    "return from " + function + " instead; the judge reads CUDA errors itself"};
    if (last_error())
      leaving.message += std::string(" after the CUDA error: ") + capstone_emu_error_text(last_error());
    send(answer_of(leaving));
  }
}

/// The candidate's host code crashed or does not return. Nothing of this process can be trusted any more.
void answer_for_host_code(const Failure& failure) {
  if (!g_running) return;
  send(answer_of(failure));
  ::_exit(0);
}

}  // namespace
}  // namespace capstone_emu

int main() {
  using namespace capstone_emu;
  install_fault_handlers();
  set_host_failure_handler(answer_for_host_code);
  std::atexit(answer_at_exit);
  Arena arena;
  while (auto packet = WorkerChannel().receive()) {
    if (packet->message.value("op", Json()) == "quit") break;
    const Answer answer = guarded_response(*packet, arena);
    std::fflush(nullptr);
    if (!send(answer)) break;
  }
  std::fflush(nullptr);
  ::_exit(0);
}
