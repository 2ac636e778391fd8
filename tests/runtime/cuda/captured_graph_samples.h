#pragma once
// A launch captured graph with every field that the format has.
#include "harness/runtime/cuda/captured_graph.h"

namespace capstone::testing {

/// [B] of the arena, the scratch memory and the host data that sample_graph() needs.
inline constexpr std::size_t kArena = 4096, kScratch = 1024, kData = 64;

inline Json sample_kernel() {
  return {{"kind", "kernel"},
          {"function", "_Z4rowsPKfPfi"},
          {"grid", {128, 2, 1}},
          {"block", {32, 8, 1}},
          {"shared", 65536},
          {"max_shared", 98304},
          {"params", "000010000071000000000000000000000010000000000000"},
          {"sizes", {{0, 8}, {8, 8}, {16, 4}}},
          {"relocations", Json::array({{{"at", 8}, {"global", "table"}, {"offset", 16}}})},
          {"cluster", {2, 1, 1}},
          {"cluster_policy", 1},
          {"portable", false},
          {"cooperative", true},
          {"carveout", 50},
          {"window", {{"base", {{"arena", 0}}}, {"bytes", 4096}, {"ratio", 0.5}, {"hit", 2}, {"miss", 1}}},
          {"after", {0, 1}}};
}
inline Json sample_memset() {
  return {{"kind", "memset"}, {"dst", {{"scratch", 0}}},
          {"value", 0xff},    {"element", 4},
          {"width", 8},       {"height", 4},
          {"pitch", 256},     {"after", Json::array()}};
}
inline Json sample_copy() {
  return {{"kind", "copy"},       {"dst", {{"global", "table"}, {"offset", 0}}},
          {"src", {{"data", 0}}}, {"width", 64},
          {"height", 1},          {"dst_pitch", 0},
          {"src_pitch", 0},       {"after", Json::array()}};
}
inline Json sample_graph() {
  Json copy = sample_copy(), last = sample_kernel();
  copy["dst"] = {{"arena", 256}};
  copy["src"] = {{"scratch", 512}};
  copy["after"] = {2};
  last["after"] = Json::array();
  last["early"] = {3};
  const Json steady = Json::array({sample_memset(), sample_copy(), sample_kernel(), copy, last});
  return {{"plan", 1},
          {"scratch", kScratch},
          {"notes", {"launch() waits for the GPU; the plan has no host that could wait"}},
          {"first", steady},
          {"steady", steady}};
}
inline GraphLimits sample_limits() {
  GraphLimits limits;
  limits.arena_bytes = kArena;
  return limits;
}
inline std::vector<std::byte> sample_data() { return std::vector<std::byte>(kData, std::byte{7}); }

}  // namespace capstone::testing
