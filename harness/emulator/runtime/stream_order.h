#pragma once
// Which launches of a whole program a GPU may run at the same time: streams, events and waits of the host as
// vector clocks. The instrumented build asks; work itself runs in the order in which it is issued.
#include <cstdint>
#include <map>

namespace capstone_emu {

/// Of each stream, how many pieces of its work are known to be done.
using StreamClock = std::map<const void*, std::uint64_t>;

/// A piece of work: the `number`th of its stream, and what is done before it begins.
struct StreamWork {
  const void* stream = nullptr;
  std::uint64_t number = 0;
  StreamClock before{};
};

/// A stream exists. `blocking`: it waits for the default stream, and the default stream for it.
void stream_made(const void* stream, bool blocking);
void event_recorded(const void* event, const void* stream);
void stream_waits_for_event(const void* stream, const void* event);
void host_waits_for_stream(const void* stream);
void host_waits_for_event(const void* event);
void host_waits_for_streams();

StreamWork work_begins(const void* stream);
bool done_before(const StreamWork& earlier, const StreamWork& later);
bool host_knows_done(const StreamWork& work);

/// While it lives, the calling thread's work is of this stream, whatever a launch says: nodes of a graph, and
/// kernels that a kernel launched.
class WorkOfStream {
 public:
  explicit WorkOfStream(const void* stream);
  ~WorkOfStream();
  WorkOfStream(const WorkOfStream&) = delete;
  WorkOfStream& operator=(const WorkOfStream&) = delete;

 private:
  bool had_;
  const void* outer_;
};

/// The source of an asynchronous copy that a GPU may still be reading: memory that is pinned or managed. When
/// the host next waits, a source that has changed is reported at the line of the copy.
void source_is_read(const void* begin, std::size_t bytes);
/// The host waits: looks at all sources, and forgets them.
void look_at_sources();
/// A kernel or a copy, which are ordered behind the first copy, may write there.
void sources_may_change(const void* begin, std::size_t bytes);
class KernelMayChangeSources {
 public:
  KernelMayChangeSources();
  ~KernelMayChangeSources();
  KernelMayChangeSources(const KernelMayChangeSources&) = delete;
  KernelMayChangeSources& operator=(const KernelMayChangeSources&) = delete;
};

}  // namespace capstone_emu
