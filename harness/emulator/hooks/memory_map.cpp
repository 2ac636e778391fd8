#include "hooks/memory_map.h"

#include <map>
#include <memory>

#include "hooks/reserve.h"

namespace capstone_emu::hooks {

bool host_is_watched = false;

namespace {

std::map<std::uintptr_t, std::unique_ptr<Allocation>>& table() {
  static auto* instance = new std::map<std::uintptr_t, std::unique_ptr<Allocation>>;
  return *instance;
}

std::uintptr_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

std::string described(const Allocation& a) {
  return "`" + a.name + "` (" + std::to_string(a.bytes) + " bytes)";
}

}  // namespace

Shadow::Shadow(std::size_t bytes)
    : size_((bytes + 19) / 4), words_(reserve<Cell>(size_)), bytes_(reserve<Cell>(4 * size_)) {}
Shadow::~Shadow() {
  unreserve(words_, size_);
  unreserve(bytes_, 4 * size_);
}

void add_allocation(const void* begin, std::size_t bytes, std::string name, bool written, bool counted) {
  table()[address_of(begin)] =
      std::make_unique<Allocation>(address_of(begin), bytes, std::move(name), written, counted);
}

void remove_allocation(const void* begin) {
  auto it = table().find(address_of(begin));
  if (it == table().end()) return;
  for (SiteId id = 1; id <= site_count(); ++id)
    if (hint_of(sites[id]) == it->second.get()) spotters[sites[id].pc].look_at(nullptr);
  table().erase(it);
}

void mark_written(const void* begin, std::size_t bytes) {
  Allocation* a = find_allocation(address_of(begin));
  if (!a || a->written) return;
  const std::size_t from = address_of(begin) - a->begin, to = from + std::min(bytes, a->bytes - from);
  if (from == 0 && to == a->bytes) {
    a->written = true;
    return;
  }
  for (std::size_t i = from; i < to;) {
    Cell& word = a->shadow.word(i);
    if (i % 4 == 0 && i + 4 <= to && word.ready != kSplit) {
      word.ready = 1;
      i += 4;
      continue;
    }
    if (word.ready != kSplit) {
      for (std::size_t b = i & ~std::size_t{3}, k = 0; k < 4; ++k) a->shadow.byte(b + k).ready = word.ready;
      word.ready = kSplit;
    }
    a->shadow.byte(i).ready = 1;
    ++i;
  }
}

void Spotter::look_at(Allocation* allocation) {
  hint = allocation;
  begin = first = cells = byte_cells = 0;
  const unsigned size = std::max<unsigned>(sites[site].size, 1);
  if (!allocation || allocation->begin % 4 != 0 || allocation->bytes < size) return;
  written = allocation->written;
  counted = allocation->counted;
  begin = allocation->begin;
  first = allocation->bytes - size + 1;
  cells = allocation->shadow.words_from(begin);
  byte_cells = allocation->shadow.bytes_from(begin);
}

Allocation* find_allocation(std::uintptr_t address) {
  auto it = table().upper_bound(address);
  if (it == table().begin()) return nullptr;
  Allocation* a = std::prev(it)->second.get();
  return a->contains(address, 1) ? a : nullptr;
}

std::string nearest_allocation(std::uintptr_t address) {
  constexpr std::uintptr_t kNear = 1 << 20;  // [B]
  auto after = table().upper_bound(address);
  const Allocation *below = after == table().begin() ? nullptr : std::prev(after)->second.get(),
                   *above = after == table().end() ? nullptr : after->second.get();
  const std::uintptr_t past = below ? address - (below->begin + below->bytes) : kNear;
  const std::uintptr_t before = above ? above->begin - address : kNear;
  if (past >= kNear && before >= kNear) return {};
  if (past <= before) return std::to_string(past) + " bytes past the end of " + described(*below);
  return std::to_string(before) + " bytes before the start of " + described(*above);
}

}  // namespace capstone_emu::hooks
