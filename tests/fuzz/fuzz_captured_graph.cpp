// read_plan(): whatever a capture worker sends, the answer is a captured graph whose every field was checked,
// or a reason.
#include <cstring>

#include "tests/fuzz/driver.h"
#include "tests/runtime/cuda/captured_graph_samples.h"

namespace {

using namespace capstone;

// The length in front is kept true for most inputs: else few would get further than the header.
std::vector<std::byte> packet_of(const std::string& text) {
  const bool raw = !text.empty() && text[0] == '!';
  const std::size_t end = text.find('\0');
  const std::uint64_t length = end == std::string::npos ? text.size() : end;
  std::vector<std::byte> packet((raw ? 0 : sizeof length) + text.size());
  if (!raw) std::memcpy(packet.data(), &length, sizeof length);
  std::memcpy(packet.data() + (raw ? 0 : sizeof length), text.data(), text.size());
  return packet;
}

}  // namespace

capstone::fuzz::Target capstone::fuzz::make_target() {
  const GraphLimits limits = capstone::testing::sample_limits();
  const std::string whole = capstone::testing::sample_graph().dump(), data(capstone::testing::kData, '\0');
  const Json kernel_alone{{"plan", 1},
                          {"scratch", 0},
                          {"notes", Json::array()},
                          {"first", Json::array()},
                          {"steady", Json::array({capstone::testing::sample_memset()})}};
  capstone::fuzz::Target target;
  target.name = "captured_graph";
  target.corpus = {whole + data, kernel_alone.dump(), whole, "!" + whole};
  target.tokens = {"{",
                   "}",
                   "[",
                   "]",
                   ",",
                   ":",
                   "\"",
                   "null",
                   "true",
                   "-1",
                   "1e999",
                   "18446744073709551615",
                   "4294967296",
                   "\\u0000",
                   "\"arena\":",
                   "\"scratch\":",
                   "\"global\":",
                   "\"data\":",
                   "\"after\":",
                   "\"early\":",
                   "\"offset\":",
                   "\"window\":",
                   "\"kind\":\"copy\",",
                   "\"kind\":\"memset\",",
                   "\"height\":4294967296,",
                   "[[[[[[[[",
                   std::string(1, '\0')};
  target.run = [=](const std::string& text) {
    auto graph = read_graph(packet_of(text), limits);
    if (!graph) return capstone::fuzz::expect(!graph.error().empty(), "a reason");
    capstone::fuzz::expect(graph->scratch_bytes <= limits.scratch_bytes, "scratch within its limit");
    for (const std::string& name : graph->kernels)
      capstone::fuzz::expect(!name.empty(), "kernels have names");
    auto again = read_graph(graph_packet(graph->document, graph->data), limits);
    capstone::fuzz::expect(again && again->document == graph->document && again->data == graph->data,
                           "the same plan after a round trip");
  };
  return target;
}
