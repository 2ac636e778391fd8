// Streams, events, host callbacks, and the capture of streams into graphs (cuda_graphs.cpp). See cuda_api.cpp
// for how this is compiled.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "include/capstone_emulator/core.h"
#include "runtime/stream_order.h"
#include "runtime/streams.h"

namespace {

using capstone_emu::Graph;
using capstone_emu::Work;

// Of streams, on today's GPUs: a smaller number is more urgent.
constexpr int kLeastPriority = 0, kGreatestPriority = -5;

/// A stream of the candidate's. Its kernels wait here until something is ordered behind them: where nothing
/// is, they run after everything else, as they may on a GPU.
struct LateStream {
  std::deque<std::pair<std::string, Work>> waiting;  // with the place of the launch
  std::uint64_t run = 0;                             // so far
  unsigned flags = cudaStreamDefault;
  int priority = kLeastPriority;
  std::uint64_t issued() const { return run + waiting.size(); }
};
struct Event {
  std::chrono::steady_clock::time_point time;
  bool recorded = false;
  cudaStream_t stream = nullptr;
  std::uint64_t position = 0;      // in a late stream: what was issued before it
  std::shared_ptr<Graph> capture;  // set when the recording was captured
};

std::mutex g_mutex;
std::atomic<int> g_captures{0};
std::map<cudaStream_t, std::shared_ptr<Graph>>& captures() {
  static auto* all = new std::map<cudaStream_t, std::shared_ptr<Graph>>;
  return *all;
}
std::shared_ptr<Graph> capture_of(cudaStream_t stream) {
  if (g_captures == 0) return nullptr;
  std::lock_guard lock(g_mutex);
  auto it = captures().find(stream);
  return it == captures().end() ? nullptr : it->second;
}

std::map<cudaStream_t, LateStream>& late_streams() {
  static auto* all = new std::map<cudaStream_t, LateStream>;
  return *all;
}
/// The first `count` kernels of the stream.
void run_late(cudaStream_t stream, std::uint64_t count) {
  const auto found = late_streams().find(stream);
  if (found == late_streams().end()) return;
  LateStream& late = found->second;  // stays where it is while others are added
  while (late.run < count && !late.waiting.empty()) {
    const Work work = std::move(late.waiting.front().second);
    late.waiting.pop_front();
    ++late.run;
    work();
  }
}
void run_late(cudaStream_t stream) { run_late(stream, ~std::uint64_t{0}); }

std::map<std::pair<cudaStream_t, cudaLaunchAttributeID>, cudaLaunchAttributeValue>& attributes() {
  static auto* all = new std::map<std::pair<cudaStream_t, cudaLaunchAttributeID>, cudaLaunchAttributeValue>;
  return *all;
}

Event* event_of(cudaEvent_t handle) { return reinterpret_cast<Event*>(handle); }

/// The handle only has to be distinct. A priority is a hint; one out of range becomes the nearest.
cudaError_t make_stream(cudaStream_t* stream, unsigned flags = cudaStreamDefault,
                        int priority = kLeastPriority) {
  if (!stream) return capstone_emu::remember(cudaErrorInvalidValue);
  *stream = reinterpret_cast<cudaStream_t>(new char);
  LateStream& made = late_streams()[*stream];
  made.flags = flags;
  capstone_emu::stream_made(*stream, !(flags & cudaStreamNonBlocking));
  made.priority = std::clamp(priority, kGreatestPriority, kLeastPriority);
  return cudaSuccess;
}

}  // namespace

namespace capstone_emu {

cudaError_t enqueue(cudaStream_t stream, Work work) {
  if (auto graph = capture_of(stream)) {
    graph->add_captured(std::move(work));
    return cudaSuccess;
  }
  run_late(stream);
  return work();
}

bool keeps_launches(void* stream) {
  if (in_kernel()) return pointers_are_checked();
  auto* const handle = static_cast<cudaStream_t>(stream);
  return (g_captures != 0 && capture_of(handle)) || (streams_are_late() && late_streams().count(handle));
}

const char* finish_streams() {
  static std::string first;
  first.clear();
  host_waits_for_streams();
  for (auto& [stream, late] : late_streams()) {
    if (first.empty() && !late.waiting.empty()) first = late.waiting.front().first;
    run_late(stream);
  }
  return first.c_str();
}

void keep_launch(const LaunchConfig& config, void (*body)(void*), void* arguments, void (*destroy)(void*)) {
  if (in_kernel()) return launch_after_this_grid(config, body, arguments, destroy);
  const std::shared_ptr<void> frame(arguments, destroy);
  const LaunchConfig kept = config;
  auto* const stream = static_cast<cudaStream_t>(config.stream);
  Work work = [kept, body, frame] {
    run_grid(kept, body, frame.get());
    return static_cast<cudaError_t>(last_error());
  };
  if (capture_of(stream)) {
    enqueue(stream, std::move(work));
    return;
  }
  const std::string place = config.file + (":" + std::to_string(config.line));
  late_streams()[stream].waiting.emplace_back(place, std::move(work));
}

}  // namespace capstone_emu

using capstone_emu::enqueue;
using capstone_emu::remember;

extern "C" {

// ---- streams ----------------------------------------------------------------------------------------------
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return make_stream(stream); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return make_stream(stream, flags);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return make_stream(stream, flags, priority);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  run_late(stream);
  late_streams().erase(stream);
  delete reinterpret_cast<char*>(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (capture_of(stream)) return remember(cudaErrorStreamCaptureUnsupported);
  run_late(stream);
  capstone_emu::host_waits_for_stream(stream);
  capstone_emu::host_goes_on();
  return cudaPeekAtLastError();
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  run_late(stream);
  capstone_emu::host_waits_for_stream(stream);
  capstone_emu::look_at_sources();
  return cudaSuccess;
}
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  const auto found = late_streams().find(stream);
  *flags = found == late_streams().end() ? cudaStreamDefault : found->second.flags;
  return cudaSuccess;
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  const auto found = late_streams().find(stream);
  *priority = found == late_streams().end() ? kLeastPriority : found->second.priority;
  return cudaSuccess;
}
// Attributes are hints (caching, priority): kept, so that they can be read back.
cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaLaunchAttributeID attribute,
                                   const cudaLaunchAttributeValue* value) {
  if (!value) return remember(cudaErrorInvalidValue);
  std::lock_guard lock(g_mutex);
  attributes()[{stream, attribute}] = *value;
  return cudaSuccess;
}
cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaLaunchAttributeID attribute,
                                   cudaLaunchAttributeValue* value) {
  if (!value) return remember(cudaErrorInvalidValue);
  std::lock_guard lock(g_mutex);
  const auto found = attributes().find({stream, attribute});
  *value = found == attributes().end() ? cudaLaunchAttributeValue{} : found->second;
  return cudaSuccess;
}
cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from) {
  std::lock_guard lock(g_mutex);
  const auto before = attributes();
  for (const auto& [key, value] : before)
    if (key.first == from) attributes()[{to, key.second}] = value;
  return cudaSuccess;
}
cudaError_t cudaStreamAttachMemAsync(cudaStream_t, void*, size_t, unsigned) { return cudaSuccess; }
/// A stream that waits for a captured event joins its capture.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  Event* e = event_of(event);
  if (!e) return cudaSuccess;
  if (!e->capture || g_captures == 0) {
    capstone_emu::stream_waits_for_event(stream, event);
    if (!capstone_emu::keeps_launches(stream)) {
      run_late(e->stream, e->position);
      return cudaSuccess;
    }
    late_streams()[stream].waiting.emplace_back("", [from = e->stream, position = e->position] {
      run_late(from, position);
      return cudaSuccess;
    });
    return cudaSuccess;
  }
  std::lock_guard lock(g_mutex);
  if (captures().emplace(stream, e->capture).second) ++g_captures;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least) *least = kLeastPriority;
  if (greatest) *greatest = kGreatestPriority;
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return enqueue(stream, [function, data] {
    capstone_emu::look_at_sources();  // the function runs behind the copies, and may change what they read
    function(data);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned) {
  return enqueue(stream, [stream, callback, data] {
    capstone_emu::look_at_sources();
    callback(stream, cudaPeekAtLastError(), data);
    return cudaSuccess;
  });
}

// ---- events -----------------------------------------------------------------------------------------------
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = reinterpret_cast<cudaEvent_t>(new Event);
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event_of(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  Event* e = event_of(event);
  if (!e) return remember(cudaErrorInvalidResourceHandle);
  e->capture = capture_of(stream);
  e->recorded = true;
  if (!e->capture) capstone_emu::event_recorded(event, stream);
  const auto late = late_streams().find(stream);
  e->stream = late == late_streams().end() ? nullptr : stream;
  e->position = late == late_streams().end() ? 0 : late->second.issued();
  e->time = std::chrono::steady_clock::now();
  return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const Event* e = event_of(event)) run_late(e->stream, e->position);
  capstone_emu::host_waits_for_event(event);
  capstone_emu::host_goes_on();
  return cudaPeekAtLastError();
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (const Event* e = event_of(event)) run_late(e->stream, e->position);
  capstone_emu::host_waits_for_event(event);
  capstone_emu::look_at_sources();
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  if (!begin || !end || !event_of(begin)->recorded || !event_of(end)->recorded)
    return remember(cudaErrorInvalidResourceHandle);
  *milliseconds =
      std::chrono::duration<float, std::milli>(event_of(end)->time - event_of(begin)->time).count();
  return cudaSuccess;
}

// ---- capture ----------------------------------------------------------------------------------------------
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  std::lock_guard lock(g_mutex);
  if (!stream || !captures().emplace(stream, std::make_shared<Graph>()).second)
    return remember(cudaErrorIllegalState);
  ++g_captures;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  std::lock_guard lock(g_mutex);
  auto it = captures().find(stream);
  if (it == captures().end()) return remember(cudaErrorIllegalState);
  const std::shared_ptr<Graph> captured = it->second;
  for (it = captures().begin(); it != captures().end();) {  // streams that joined end with it
    if (it->second != captured) {
      ++it;
      continue;
    }
    it = captures().erase(it);
    --g_captures;
  }
  *graph = reinterpret_cast<cudaGraph_t>(capstone_emu::copy_of(*captured).release());
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = capture_of(stream) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

}  // extern "C"
