// mbarrier objects: 64 bits in shared memory, which all blocks of a cluster reach, in turns on one OS thread.
//   bit 63 phase · bits 42-61 expected arrivals · bits 22-41 pending arrivals · bits 0-21 bytes still to
//   come, signed
#include "include/capstone_emulator/tensor_memory.h"
#include "runtime/scheduler.h"

namespace capstone_emu {
namespace {

constexpr std::uint64_t kCount = (1u << 20) - 1, kBytes = (1u << 22) - 1;

struct Fields {
  bool phase;
  std::int64_t expected, pending, bytes;

  static Fields of(std::uint64_t word) {
    std::int64_t bytes = static_cast<std::int64_t>(word & kBytes);
    if (bytes >> 21) bytes -= std::int64_t{1} << 22;
    return {(word >> 63) != 0, static_cast<std::int64_t>(word >> 42 & kCount),
            static_cast<std::int64_t>(word >> 22 & kCount), bytes};
  }
  std::uint64_t word() const {
    return static_cast<std::uint64_t>(phase) << 63 | static_cast<std::uint64_t>(expected) << 42 |
           static_cast<std::uint64_t>(pending) << 22 | (static_cast<std::uint64_t>(bytes) & kBytes);
  }
};

void require_initialised(std::uint64_t word, const char* file, int line) {
  if (word == 0 || word == ~std::uint64_t{0})
    undefined_behaviour(file, line, "an mbarrier is used before its initialisation%s",
                        word ? "" : ", or after its invalidation");
}

/// @return the word before.
template <class Change>
std::uint64_t update(std::uint64_t* barrier, const char* file, int line, Change change) {
  const std::uint64_t before = *barrier;
  require_initialised(before, file, line);
  Fields fields = Fields::of(before);
  change(fields);
  if (fields.pending < 0)
    undefined_behaviour(file, line, "more arrivals on an mbarrier than the %lld that it expects in a phase",
                        static_cast<long long>(fields.expected));
  if (fields.pending == 0 && fields.bytes == 0) {
    fields.phase = !fields.phase;
    fields.pending = fields.expected;
  }
  *barrier = fields.word();
  if (Fields::of(before).phase != fields.phase) observe::copies_complete_on(barrier);
  return before;
}

}  // namespace

void mbarrier_init(std::uint64_t* barrier, unsigned count, const char* file, int line) {
  if (count == 0 || count > kCount)
    undefined_behaviour(file, line, "an mbarrier expects 1 to 1048575 arrivals, not %u", count);
  observe::barrier_begins(barrier, __builtin_return_address(0));
  *barrier = Fields{false, count, count, 0}.word();
}
void mbarrier_invalidate(std::uint64_t* barrier) {
  observe::barrier_begins(barrier, __builtin_return_address(0));
  *barrier = 0;
}

std::uint64_t mbarrier_arrive(std::uint64_t* barrier, unsigned count, unsigned expected_bytes, bool drop,
                              const char* file, int line) {
  observe::barrier_used(barrier, __builtin_return_address(0));
  observe::releases(barrier);
  return update(barrier, file, line, [&](Fields& f) {
    f.bytes += expected_bytes;
    f.pending -= count;
    if (drop) f.expected -= count;
  });
}
void mbarrier_expect_bytes(std::uint64_t* barrier, unsigned bytes, const char* file, int line) {
  observe::barrier_used(barrier, __builtin_return_address(0));
  // Expecting comes before an arrival of the same phase, so it cannot complete one.
  update(barrier, file, line, [&](Fields& f) { f.bytes += bytes; });
}
void complete_bytes(std::uint64_t* barrier, std::size_t bytes) {
  update(barrier, nullptr, 0, [&](Fields& f) { f.bytes -= static_cast<std::int64_t>(bytes); });
}
void mbarrier_signal(std::uint64_t* barrier, const char* file, int line) {
  update(barrier, file, line, [](Fields& f) { --f.pending; });
}
void mbarrier_complete_bytes(std::uint64_t* barrier, std::size_t bytes) {
  observe::barrier_used(barrier, __builtin_return_address(0));
  observe::releases(barrier);
  complete_bytes(barrier, bytes);
}

bool mbarrier_completed(std::uint64_t* barrier, bool phase, const char* file, int line) {
  auto complete = [&] {
    const std::uint64_t word = *barrier;
    require_initialised(word, file, line);
    if (Fields::of(word).phase == phase) return false;
    observe::acquires(barrier);
    return true;
  };
  observe::barrier_used(barrier, __builtin_return_address(0));
  if (complete()) return true;
  finish_bulk_loads(barrier);
  finish_tensor_work(barrier);
  if (complete()) return true;
  yield_to_others();
  return complete();
}

bool mbarrier_phase(std::uint64_t state) { return Fields::of(state).phase; }
unsigned mbarrier_pending(std::uint64_t state) { return static_cast<unsigned>(Fields::of(state).pending); }

}  // namespace capstone_emu
