#include "hooks/traffic.h"

#include <algorithm>
#include <array>

namespace capstone_emu::hooks {
namespace {

/// Distinct values of the first `count` elements; sorts them.
unsigned distinct(std::uint64_t* values, unsigned count) {
  std::sort(values, values + count);
  return static_cast<unsigned>(std::unique(values, values + count) - values);
}

/// Bytes covered by the accesses, overlaps counted once. Sorts the addresses.
unsigned covered_bytes(std::uint64_t* address, unsigned count, unsigned size) {
  std::sort(address, address + count);
  std::uint64_t end = 0, bytes = 0;
  for (unsigned i = 0; i < count; ++i) {
    const std::uint64_t begin = std::max(address[i], end);
    end = std::max(end, address[i] + size);
    bytes += end - std::min(begin, end);
  }
  return static_cast<unsigned>(bytes);
}

unsigned sectors_for(unsigned bytes) { return (bytes + kSectorBytes - 1) / kSectorBytes; }

/// Lanes in ascending, non-overlapping order: the usual case, in one pass. False when they are not.
bool cost_of_ascending(const Request& request, GlobalCost& cost) {
  std::uint64_t last_sector = ~std::uint64_t{0}, end = 0, previous = ~std::uint64_t{0};
  unsigned sectors = 0, bytes = 0;
  for (std::uint32_t rest = request.lanes; rest; rest &= rest - 1) {
    const std::uint64_t address = request.address[__builtin_ctz(rest)];
    if (address == previous) continue;
    if (address < end) return false;
    previous = address;
    end = address + request.size;
    bytes += request.size;
    const std::uint64_t sector = address / kSectorBytes;
    if (sector != last_sector) ++sectors;
    last_sector = sector;
  }
  cost = {sectors, sectors_for(bytes)};
  return true;
}

/// Wavefronts for the lanes of one part.
unsigned part_wavefronts(const Request& request, std::uint32_t lanes) {
  const unsigned words_each = request.size <= kBankBytes ? 1 : request.size / kBankBytes;
  std::array<std::uint32_t, kBanks> first;
  std::uint32_t seen = 0;
  bool conflict = false;
  for (std::uint32_t rest = lanes; rest && !conflict; rest &= rest - 1) {
    const auto word = static_cast<std::uint32_t>(request.address[__builtin_ctz(rest)] / kBankBytes);
    for (unsigned w = 0; w < words_each; ++w) {
      const unsigned bank = (word + w) % kBanks;
      if (!(seen >> bank & 1u)) {
        seen |= 1u << bank;
        first[bank] = word + w;
      } else if (first[bank] != word + w) {
        conflict = true;
      }
    }
  }
  if (!conflict) return 1;
  std::uint64_t words[128];
  unsigned count = 0;
  for (std::uint32_t rest = lanes; rest; rest &= rest - 1)
    for (unsigned w = 0; w < words_each; ++w)
      words[count++] = request.address[__builtin_ctz(rest)] / kBankBytes + w;
  count = distinct(words, count);
  std::array<unsigned, kBanks> in_bank{};
  for (unsigned i = 0; i < count; ++i) ++in_bank[words[i] % kBanks];
  return *std::max_element(in_bank.begin(), in_bank.end());
}

/// Whether each active lane wants what its neighbour wants, as far as that one is active.
bool in_pairs(const Request& request, unsigned distance) {
  for (std::uint32_t rest = request.lanes; rest; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(__builtin_ctz(rest)), other = lane ^ distance;
    if ((request.lanes >> other & 1u) && request.address[lane] != request.address[other]) return false;
  }
  return true;
}

}  // namespace

GlobalCost global_cost(const Request& request) {
  GlobalCost cost{};
  if (cost_of_ascending(request, cost)) return cost;
  std::uint64_t addresses[32], sectors[32];
  unsigned count = 0;
  for (std::uint32_t rest = request.lanes; rest; rest &= rest - 1, ++count) {
    addresses[count] = request.address[__builtin_ctz(rest)];
    sectors[count] = addresses[count] / kSectorBytes;  // natural alignment: an access lies in one sector
  }
  return {distinct(sectors, count), sectors_for(covered_bytes(addresses, count, request.size))};
}

SharedCost shared_cost(const Request& request) {
  unsigned parts = request.size <= 4 ? 1 : request.size / 4;
  if (parts > 1 && !request.write && (in_pairs(request, 1) || in_pairs(request, 2))) parts /= 2;
  const unsigned width = 32 / parts;
  const std::uint32_t part_mask = width == 32 ? ~0u : (1u << width) - 1;
  SharedCost cost{0, 0};
  for (unsigned p = 0; p < parts; ++p) {
    const std::uint32_t lanes = request.lanes & part_mask << (p * width);
    if (!lanes) continue;
    cost.wavefronts += part_wavefronts(request, lanes);
    ++cost.ideal;
  }
  return cost;
}

}  // namespace capstone_emu::hooks
