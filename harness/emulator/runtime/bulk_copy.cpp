// Bulk copies and tensor copies (TMA). As with cp.async, a schedule performs each at once or as late as the
// program allows: a load when a thread waits on its mbarrier, a store when its group is waited for or its
// thread ends.
#include "include/capstone_emulator/narrow.h"
#include "runtime/scheduler.h"
#include "runtime/shadow.h"
#include "runtime/tensor_memory.h"

namespace capstone_emu {
namespace {

constexpr unsigned kBulkAlignment = 16, kTensorAlignment = 128;  // [B]

// ---- when -------------------------------------------------------------------------------------------------

template <class Perform>
void load(const void* to, const std::uint64_t* barrier, Perform perform) {
  BlockRunner& runner = *BlockRunner::current();
  // Another block of the cluster cannot know of copies that wait here.
  const bool here = runner.owns(to) && runner.owns(barrier);
  if (runner.grid().settings.copies_early() || !here) return perform();
  runner.bulk_loads().push_back({barrier, perform});
}

template <class Perform>
void store(Perform perform) {
  BlockRunner& runner = *BlockRunner::current();
  runner.note_copies();
  if (runner.grid().settings.copies_early()) return perform();
  runner.copies().open_stores.push_back(perform);
}

// ---- arithmetic -------------------------------------------------------------------------------------------

template <class T, class Word>
void combine_words(char* to, const char* from, std::size_t bytes, Reduction reduction, T (*widen)(Word),
                   Word (*narrow)(T)) {
  for (std::size_t i = 0; i < bytes; i += sizeof(Word)) {
    Word a, b;
    std::memcpy(&b, from + i, sizeof b);
    Word* place = reinterpret_cast<Word*>(to + i);
    a = __atomic_load_n(place, __ATOMIC_RELAXED);
    Word result;
    do {
      const T x = widen(a), y = widen(b);
      T sum = x;
      switch (reduction) {
        case Reduction::kMin:
          sum = y < x ? y : x;
          break;
        case Reduction::kMax:
          sum = x < y ? y : x;
          break;
        case Reduction::kInc:
          sum = x >= y ? T(0) : static_cast<T>(x + T(1));
          break;
        case Reduction::kDec:
          sum = x == T(0) || x > y ? y : static_cast<T>(x - T(1));
          break;
        case Reduction::kAdd:
          sum = static_cast<T>(x + y);
          break;
        default:
          break;
      }
      result = narrow(sum);
      if (reduction == Reduction::kAnd) result = a & b;
      if (reduction == Reduction::kOr) result = a | b;
      if (reduction == Reduction::kXor) result = a ^ b;
    } while (!__atomic_compare_exchange_n(place, &a, result, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  }
}

template <class T, class Word>
void combine_as(char* to, const char* from, std::size_t bytes, Reduction reduction) {
  static_assert(sizeof(T) == sizeof(Word));
  combine_words<T, Word>(
      to, from, bytes, reduction, [](Word w) { return __builtin_bit_cast(T, w); },
      [](T v) { return __builtin_bit_cast(Word, v); });
}

void combine(char* to, const char* from, std::size_t bytes, Reduction reduction, Element element) {
  switch (element) {
    case Element::kU32:
      return combine_as<std::uint32_t, std::uint32_t>(to, from, bytes, reduction);
    case Element::kS32:
      return combine_as<std::int32_t, std::uint32_t>(to, from, bytes, reduction);
    case Element::kU64:
      return combine_as<std::uint64_t, std::uint64_t>(to, from, bytes, reduction);
    case Element::kS64:
      return combine_as<std::int64_t, std::uint64_t>(to, from, bytes, reduction);
    case Element::kF32:
      return combine_as<float, std::uint32_t>(to, from, bytes, reduction);
    case Element::kF64:
      return combine_as<double, std::uint64_t>(to, from, bytes, reduction);
    case Element::kF16:
      return combine_words<float, std::uint16_t>(to, from, bytes, reduction, half_to_float, float_to_half);
    case Element::kBf16:
      return combine_words<float, std::uint16_t>(to, from, bytes, reduction, bfloat_to_float,
                                                 float_to_bfloat);
    case Element::kU8:
    case Element::kU16:
      break;
  }
}

void put(char* to, const char* from, std::size_t bytes, Reduction reduction, Element element) {
  if (reduction == Reduction::kNone)
    std::memcpy(to, from, bytes);
  else
    combine(to, from, bytes, reduction, element);
}

// ---- tensors ----------------------------------------------------------------------------------------------

const TensorMap& checked_map(const void* raw, int rank, const char* file, int line) {
  const auto& map = *static_cast<const TensorMap*>(raw);
  if (map.magic != TensorMap::kMagic)
    undefined_behaviour(file, line, "the tensor map was not made by cuTensorMapEncodeTiled");
  if (map.rank != rank)
    undefined_behaviour(file, line, "a %d-dimensional tensor copy with a tensor map of %d dimensions", rank,
                        map.rank);
  return map;
}

void require_multiple(const void* pointer, unsigned alignment, const char* what, const char* file, int line) {
  if (reinterpret_cast<std::uintptr_t>(pointer) % alignment)
    undefined_behaviour(file, line, "%s: the address %p is not a multiple of %u", what, pointer, alignment);
}

/// A box may begin at any row, but only at every 16th byte of it. What an H100 does otherwise is an illegal
/// instruction.
void require_aligned_start(const TensorMap& map, std::int32_t innermost, const char* file, int line) {
  const std::int64_t bytes = std::int64_t{innermost} * bytes_of(map.element);
  if (bytes % kBulkAlignment)
    undefined_behaviour(
        file, line, "tensor copy: the innermost coordinate %d is byte %lld of a row, not a multiple of %u",
        innermost, static_cast<long long>(bytes), kBulkAlignment);
}

/// Calls visit(place in shared memory, place in the tensor or null, bytes) for pieces that neither swizzling
/// nor the tensor's edge cuts.
template <class Visit>
void for_each_piece(const TensorMap& map, char* shared, const std::int32_t* coordinates, Visit visit) {
  const unsigned size = bytes_of(map.element);
  unsigned count[5] = {1, 1, 1, 1, 1};
  std::size_t rows = 1;
  for (unsigned d = 0; d < map.rank; ++d) count[d] = (map.box[d] + map.step[d] - 1u) / map.step[d];
  for (unsigned d = 1; d < map.rank; ++d) rows *= count[d];
  char* const base = reinterpret_cast<char*>(map.address);
  for (std::size_t row = 0; row < rows; ++row) {
    std::size_t rest = row;
    std::int64_t offset = 0;
    bool inside = true;
    for (unsigned d = 1; d < map.rank; ++d) {
      const std::int64_t at = coordinates[d] + static_cast<std::int64_t>(rest % count[d]) * map.step[d];
      rest /= count[d];
      inside = inside && at >= 0 && at < map.extent[d];
      offset += at * static_cast<std::int64_t>(map.stride[d]);
    }
    const unsigned per_piece = map.step[0] == 1 ? 16 / size : 1;
    for (unsigned i = 0; i < count[0]; i += per_piece) {
      char* place = shared + (row * count[0] + i) * size;
      place = reinterpret_cast<char*>(swizzled(reinterpret_cast<std::uintptr_t>(place), map.swizzle));
      for (unsigned k = 0; k < per_piece && i + k < count[0]; ++k) {
        const std::int64_t x = coordinates[0] + static_cast<std::int64_t>(i + k) * map.step[0];
        const bool whole =
            k == 0 && inside && x >= 0 && x + per_piece <= map.extent[0] && i + per_piece <= count[0];
        if (whole) {
          visit(place, base + offset + x * size, per_piece * size);
          break;
        }
        visit(place + k * size, inside && x >= 0 && x < map.extent[0] ? base + offset + x * size : nullptr,
              size);
      }
    }
  }
}

std::size_t box_bytes(const TensorMap& map) {
  std::size_t bytes = bytes_of(map.element);
  for (unsigned d = 0; d < map.rank; ++d) bytes *= (map.box[d] + map.step[d] - 1u) / map.step[d];
  return bytes;
}

void read_box(const TensorMap& map, char* to, const std::int32_t* coordinates) {
  for_each_piece(map, to, coordinates, [&](char* shared, const char* global, std::size_t bytes) {
    if (global)
      std::memcpy(shared, global, bytes);
    else
      std::memset(shared, map.nan_fill ? kPoison : 0, bytes);
  });
}

struct Coordinates {
  std::int32_t at[5] = {};
  Coordinates(int rank, const std::int32_t* from) { std::copy(from, from + rank, at); }
};

/// For tcgen05, whose descriptors must agree with the map.
void remember_box(const TensorMap& map, const char* to, const Coordinates& at, const char* file, int line) {
  if (emulated_arch() < 1000) return;
  auto& boxes = BlockRunner::current()->tensor_queue().boxes;
  TensorBox box{to, map, {}, box_bytes(map), file, line};
  std::copy(at.at, at.at + 5, box.at);
  auto old = boxes.upper_bound(to);
  if (old != boxes.begin() && to < std::prev(old)->first + std::prev(old)->second.bytes) --old;
  while (old != boxes.end() && old->first < to + box.bytes) old = boxes.erase(old);
  boxes.emplace(to, box);
}

/// For an access that is made only when a thread waits: the bounds are checked now, and the hooks must know
/// of it.
void note_load(const void* to, const void* from, std::size_t bytes, const std::uint64_t* barrier,
               const void* pc) {
  if (from) check_access(from, bytes, false);
  check_access(to, bytes, true);
  observe::bulk_load(to, from, static_cast<unsigned>(bytes), barrier, pc);
}
void note_store(const void* to, const void* from, std::size_t bytes, Reduction reduction, const void* pc) {
  check_access(from, bytes, false);
  check_access(to, bytes, true);
  observe::bulk_store(to, from, static_cast<unsigned>(bytes), reduction != Reduction::kNone, pc);
}

/// Calls visit(destination, barrier) for the block itself, or for each block of the cluster that the mask
/// names.
template <class Visit>
void for_each_receiver(char* to, std::uint64_t* barrier, unsigned multicast, Visit visit) {
  if (!multicast) return visit(to, barrier);
  const bool pairs = multicast & kTellsPairs;
  const unsigned odd = pairs ? rank_of_shared_memory(barrier) & 1 : 0;
  for (unsigned rank = 0; rank < 16; ++rank)
    if (multicast >> rank & 1)
      visit(remote_shared_memory(rank, shared_address(to)),
            reinterpret_cast<std::uint64_t*>(
                remote_shared_memory(pairs ? (rank & ~1u) | odd : rank, shared_address(barrier))));
}

}  // namespace

void bulk_copy_to_shared(char* to, const char* from, unsigned bytes, std::uint64_t* barrier,
                         unsigned multicast, const char* file, int line) {
  require_multiple(to, kBulkAlignment, "cp.async.bulk", file, line);
  require_multiple(from, kBulkAlignment, "cp.async.bulk", file, line);
  if (bytes % kBulkAlignment)
    undefined_behaviour(file, line, "cp.async.bulk: %u bytes are not a multiple of 16", bytes);
  const void* pc = __builtin_return_address(0);
  for_each_receiver(to, barrier, multicast, [=](char* place, std::uint64_t* told) {
    note_load(place, from, bytes, told, pc);
    load(place, told, [=] {
      std::memcpy(place, from, bytes);
      complete_bytes(told, bytes);
    });
  });
}

void bulk_copy_to_global(char* to, const char* from, unsigned bytes, Reduction reduction, Element element,
                         const char* file, int line) {
  require_multiple(to, kBulkAlignment, "cp.async.bulk", file, line);
  require_multiple(from, kBulkAlignment, "cp.async.bulk", file, line);
  if (bytes % kBulkAlignment)
    undefined_behaviour(file, line, "cp.async.bulk: %u bytes are not a multiple of 16", bytes);
  note_store(to, from, bytes, reduction, __builtin_return_address(0));
  store([=] { put(to, from, bytes, reduction, element); });
}

void tensor_copy_to_shared(char* to, const void* raw, std::uint64_t* barrier, int rank,
                           const std::int32_t* coordinates, unsigned multicast, const char* file, int line) {
  const TensorMap map = checked_map(raw, rank, file, line);
  require_multiple(to, kTensorAlignment, "tensor copy", file, line);
  require_aligned_start(map, coordinates[0], file, line);
  const Coordinates at(rank, coordinates);
  const void* pc = __builtin_return_address(0);
  for_each_receiver(to, barrier, multicast, [=](char* place, std::uint64_t* told) {
    for_each_piece(map, place, at.at, [&](const char* shared, const char* global, std::size_t bytes) {
      note_load(shared, global, bytes, told, pc);
    });
    load(place, told, [=] {
      read_box(map, place, at.at);
      remember_box(map, place, at, file, line);
      complete_bytes(told, box_bytes(map));
    });
  });
}

const TensorBox* box_around(const char* address) {
  const auto& boxes = BlockRunner::current()->tensor_queue().boxes;
  const auto behind = boxes.upper_bound(address);
  if (behind == boxes.begin()) return nullptr;
  const TensorBox& box = std::prev(behind)->second;
  return address < box.begin + box.bytes ? &box : nullptr;
}

bool still_holds(const TensorBox& box) {
  bool equal = true;
  for_each_piece(box.map, const_cast<char*>(box.begin), box.at,
                 [&](const char* shared, const char* global, std::size_t bytes) {
                   if (global) equal = equal && std::memcmp(shared, global, bytes) == 0;
                 });
  return equal;
}

void tensor_copy_to_global(const void* raw, const char* from, int rank, const std::int32_t* coordinates,
                           Reduction reduction, const char* file, int line) {
  const TensorMap map = checked_map(raw, rank, file, line);
  require_multiple(from, kTensorAlignment, "tensor copy", file, line);
  require_aligned_start(map, coordinates[0], file, line);
  const Coordinates at(rank, coordinates);
  const void* pc = __builtin_return_address(0);
  for_each_piece(map, const_cast<char*>(from), at.at,
                 [&](const char* shared, char* global, std::size_t bytes) {
                   if (global) note_store(global, shared, bytes, reduction, pc);
                 });
  store([=] {
    for_each_piece(map, const_cast<char*>(from), at.at,
                   [&](const char* shared, char* global, std::size_t bytes) {
                     if (global) put(global, shared, bytes, reduction, map.element);
                   });
  });
}

// ---- clusterlaunchcontrol ---------------------------------------------------------------------------------

namespace {
// The answer is opaque (PTX ISA 9.0, 9.7.13.17). Here: x, y, z of the first block, and a mark.
constexpr std::uint32_t kCanceled = 0x6c1ca4ce, kNotCanceled = 0x6c1cfa11;
struct AnswerWords {
  Index3 block;
  std::uint32_t mark;
};
AnswerWords words_of(const LaunchAnswer& answer, const char* file, int line) {
  const auto words = __builtin_bit_cast(AnswerWords, answer);
  if (words.mark != kCanceled && words.mark != kNotCanceled)
    undefined_behaviour(file, line,
                        "clusterlaunchcontrol.query_cancel: this is no answer of try_cancel; wait for its "
                        "mbarrier before it is read");
  return words;
}
}  // namespace

void cancel_cluster(char* to, std::uint64_t* barrier, bool multicast, const char* file, int line) {
  BlockRunner::current()->cancel_cluster(to, barrier, multicast, file, line, __builtin_return_address(0));
}

/// A schedule may have started every cluster: then no request succeeds.
void BlockRunner::cancel_cluster(char* to, std::uint64_t* barrier, bool multicast, const char* file, int line,
                                 const void* pc) {
  constexpr const char* kName = "clusterlaunchcontrol.try_cancel";
  require_multiple(to, sizeof(LaunchAnswer), kName, file, line);
  if (!owns(to) || !owns(barrier))
    undefined_behaviour(file, line,
                        "%s: the answer and the mbarrier must lie in the block's own shared memory", kName);
  if (cancel_failed_)
    undefined_behaviour(file, line, "%s: the block has seen a request fail, and makes another one", kName);
  const unsigned all = cluster_ && multicast ? (1u << grid_->cluster_blocks) - 1 : 0;
  if (all && cluster_->ended_mask)
    undefined_behaviour(file, line, "%s with .multicast: a block of the cluster has left the kernel", kName);
  const bool none_left =
      schedule_ == Schedule::kReverse || (schedule_ == Schedule::kRandom && random() % 4 == 0);
  const std::optional<Index3> block = none_left ? std::nullopt : grid_->cancel_next();
  const AnswerWords answer{block.value_or(Index3{~0u, ~0u, ~0u}), block ? kCanceled : kNotCanceled};
  for_each_receiver(to, barrier, all, [&](char* place, std::uint64_t* told) {
    note_load(place, nullptr, sizeof answer, told, pc);
    std::memset(place, kPoison, sizeof answer);  // it may be written at any time from now on
    load(place, told, [=] {
      std::memcpy(place, &answer, sizeof answer);
      complete_bytes(told, sizeof answer);
    });
  });
}

bool is_canceled(const LaunchAnswer& answer, const char* file, int line) {
  const bool canceled = words_of(answer, file, line).mark == kCanceled;
  if (!canceled) BlockRunner::current()->note_failed_cancel();
  return canceled;
}

Index3 first_canceled_block(const LaunchAnswer& answer, const char* file, int line) {
  const AnswerWords words = words_of(answer, file, line);
  if (words.mark != kCanceled)
    undefined_behaviour(file, line,
                        "clusterlaunchcontrol.query_cancel.get_first_ctaid: the request failed; ask "
                        ".is_canceled first");
  return words.block;
}

void finish_bulk_loads(const std::uint64_t* barrier) {
  BlockRunner* runner = BlockRunner::current();
  if (!runner) return;
  std::vector<BulkLoad> due;
  std::vector<BulkLoad>& pending = runner->bulk_loads();
  for (std::size_t i = 0; i < pending.size();) {
    if (pending[i].barrier != barrier) {
      ++i;
      continue;
    }
    due.push_back(std::move(pending[i]));
    pending.erase(pending.begin() + static_cast<std::ptrdiff_t>(i));
  }
  for (const BulkLoad& copy : due) copy.perform();
}

void bulk_commit() {
  observe::bulk_committed();
  CopyQueue& queue = BlockRunner::current()->copies();
  queue.committed_stores.push_back(std::move(queue.open_stores));
  queue.open_stores.clear();
}

void bulk_wait(unsigned still_pending) {
  observe::bulk_awaited(still_pending);
  CopyQueue& queue = BlockRunner::current()->copies();
  if (queue.committed_stores.size() <= still_pending) return;
  const std::size_t finished = queue.committed_stores.size() - still_pending;
  for (std::size_t i = 0; i < finished; ++i)
    for (const auto& perform : queue.committed_stores[i]) perform();
  queue.committed_stores.erase(queue.committed_stores.begin(),
                               queue.committed_stores.begin() + static_cast<std::ptrdiff_t>(finished));
}

}  // namespace capstone_emu
