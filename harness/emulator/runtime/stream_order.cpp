#include "runtime/stream_order.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "include/capstone_emulator/core.h"
#include "runtime/failure.h"
#include "runtime/where.h"

namespace capstone_emu {
namespace {

constexpr std::size_t kMostSources = std::size_t{64} << 20;  // [B] of all sources together

void join(StreamClock& into, const StreamClock& from) {
  for (const auto& [stream, number] : from) into[stream] = std::max(into[stream], number);
}

bool reaches(const StreamClock& clock, const StreamWork& work) {
  const auto known = clock.find(work.stream);
  return known != clock.end() && work.number <= known->second;
}

/// All of this is used while static storage of the program is initialised and destroyed.
struct Order {
  std::mutex mutex;
  StreamClock host, issued;                      // what the host knows to be done; all that there is
  std::map<const void*, StreamClock> streams{};  // done when the last work of the stream is
  std::map<const void*, StreamClock> events{};
  std::set<const void*> not_blocking{};

  /// Done when all work is that the stream has now. The default stream waits for all that block.
  StreamClock end_of(const void* stream) {
    StreamClock end = streams[stream];
    if (stream) {
      if (!not_blocking.count(stream)) join(end, streams[nullptr]);
      return end;
    }
    for (const auto& [other, clock] : streams)
      if (!not_blocking.count(other)) join(end, clock);
    return end;
  }
};
Order& order() {
  static auto* instance = new Order;
  return *instance;
}

thread_local bool g_has_stream = false;
thread_local const void* g_stream = nullptr;

/// cudaStreamLegacy and cudaStreamPerThread are small numbers. A stream for each thread would be less
/// ordered; one default stream makes no false finding.
const void* stream_of(const void* handle) {
  constexpr std::uintptr_t kLargestNumber = 2;
  return reinterpret_cast<std::uintptr_t>(handle) <= kLargestNumber ? nullptr : handle;
}

struct Source {
  const char* begin;
  std::vector<char> bytes;
  std::vector<const void*> issued_at;
  bool changed() const { return std::memcmp(begin, bytes.data(), bytes.size()) != 0; }
};
struct Sources {
  std::mutex mutex;
  std::vector<Source> all{};
  std::size_t bytes = 0;
  template <class Condition>
  void forget(Condition condition) {
    std::erase_if(all, condition);
    bytes = 0;
    for (const Source& source : all) bytes += source.bytes.size();
  }
  void report(const Source& source) {
    std::string file;
    int line = 0;
    locate_in_source(source.issued_at, file, line);
    record_failure(
        {FailureKind::kLaunchError,
         "the host changed the source of this asynchronous copy before it waited for the stream: "
         "the copy may take the new values",
         {},
         {},
         std::nullopt,
         std::nullopt,
         file,
         line,
         "wait for the stream, or for an event behind the copy, before the buffer is used again; or "
         "take another buffer"});
  }
  /// Changes that the host has made since the last look.
  void look() {
    forget([this](const Source& source) {
      if (!source.changed()) return false;
      report(source);
      return true;
    });
  }
};
Sources& sources() {
  static auto* instance = new Sources;
  return *instance;
}

}  // namespace

void stream_made(const void* stream, bool blocking) {
  std::lock_guard lock(order().mutex);
  order().not_blocking.erase(stream);
  if (!blocking) order().not_blocking.insert(stream);
}
void event_recorded(const void* event, const void* stream) {
  std::lock_guard lock(order().mutex);
  order().events[event] = order().end_of(stream_of(stream));
}
void stream_waits_for_event(const void* stream, const void* event) {
  std::lock_guard lock(order().mutex);
  join(order().streams[stream_of(stream)], order().events[event]);
}
void host_waits_for_stream(const void* stream) {
  std::lock_guard lock(order().mutex);
  join(order().host, order().end_of(stream_of(stream)));
}
void host_waits_for_event(const void* event) {
  std::lock_guard lock(order().mutex);
  join(order().host, order().events[event]);
}
void host_waits_for_streams() {
  std::lock_guard lock(order().mutex);
  order().host = order().issued;
}

StreamWork work_begins(const void* stream) {
  stream = stream_of(g_has_stream ? g_stream : stream);
  Order& all = order();
  std::lock_guard lock(all.mutex);
  StreamWork work{stream, ++all.issued[stream], all.end_of(stream)};
  join(work.before, all.host);
  StreamClock& after = all.streams[stream];
  after = work.before;
  after[stream] = work.number;
  return work;
}
bool done_before(const StreamWork& earlier, const StreamWork& later) {
  return reaches(later.before, earlier);
}
bool host_knows_done(const StreamWork& work) {
  std::lock_guard lock(order().mutex);
  return reaches(order().host, work);
}

WorkOfStream::WorkOfStream(const void* stream)
    : had_(std::exchange(g_has_stream, true)), outer_(std::exchange(g_stream, stream)) {
  if (had_) g_stream = outer_;
}
WorkOfStream::~WorkOfStream() {
  g_has_stream = had_;
  g_stream = outer_;
}

void source_is_read(const void* begin, std::size_t bytes) {
  if (!pointers_are_checked() || !bytes || !is_pinned(begin)) return;
  std::lock_guard lock(sources().mutex);
  if (bytes > kMostSources - sources().bytes) return;
  const char* const from = static_cast<const char*>(begin);
  sources().all.push_back({from, {from, from + bytes}, call_chain()});
  sources().bytes += bytes;
}
void look_at_sources() {
  std::lock_guard lock(sources().mutex);
  if (sources().all.empty()) return;
  sources().look();
  sources().forget([](const Source&) { return true; });
}
void sources_may_change(const void* begin, std::size_t bytes) {
  std::lock_guard lock(sources().mutex);
  if (sources().all.empty()) return;
  const char* const from = static_cast<const char*>(begin);
  sources().forget([&](const Source& source) {
    return source.begin < from + bytes && from < source.begin + source.bytes.size();
  });
}
KernelMayChangeSources::KernelMayChangeSources() {
  std::lock_guard lock(sources().mutex);
  if (!sources().all.empty()) sources().look();
}
KernelMayChangeSources::~KernelMayChangeSources() {
  std::lock_guard lock(sources().mutex);
  if (!sources().all.empty()) sources().forget([](const Source& source) { return source.changed(); });
}

}  // namespace capstone_emu
