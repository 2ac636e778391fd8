// read_plan(): the capture worker that writes captured graphs holds the submission, so every field of a
// captured graph may be a lie.
#include "harness/runtime/cuda/captured_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "tests/runtime/cuda/captured_graph_samples.h"

namespace capstone {
namespace {

using testing::sample_data;
using testing::sample_graph;
using testing::sample_limits;

constexpr int kMemset = 0, kCopyIn = 1, kKernel = 2, kCopy = 3, kLast = 4;  // nodes of sample_graph()

std::string refusal_of(const Json& document, GraphLimits limits = sample_limits()) {
  auto graph = read_graph(graph_packet(document, sample_data()), limits);
  return graph ? "accepted" : graph.error();
}
std::string refusal_of(int node, const std::function<void(Json&)>& change) {
  Json document = sample_graph();
  change(document["steady"][static_cast<std::size_t>(node)]);
  return refusal_of(document);
}
std::string refusal_of_setting(int node, const char* key, const Json& value) {
  return refusal_of(node, [&](Json& n) { n[key] = value; });
}

std::vector<std::byte> with_header(std::uint64_t length, std::string_view text) {
  std::vector<std::byte> packet(sizeof length + text.size());
  std::memcpy(packet.data(), &length, sizeof length);
  std::memcpy(packet.data() + sizeof length, text.data(), text.size());
  return packet;
}
std::string refusal_of_packet(const std::vector<std::byte>& packet) {
  auto graph = read_graph(packet, sample_limits());
  return graph ? "accepted" : graph.error();
}

TEST(ReadPlan, AValidPlanSurvivesTheRoundTrip) {
  auto graph = read_graph(graph_packet(sample_graph(), sample_data()), sample_limits());
  ASSERT_TRUE(graph) << graph.error();
  EXPECT_EQ(graph->document, sample_graph());
  EXPECT_EQ(graph->data, sample_data());
  EXPECT_EQ(graph->scratch_bytes, testing::kScratch);
  EXPECT_THAT(graph->kernels,
              ::testing::ElementsAre("_Z4rowsPKfPfi"));  // twice in the captured graph, once here
  EXPECT_THAT(graph->notes, ::testing::ElementsAre(::testing::HasSubstr("waits for the GPU")));
  auto again = read_graph(graph_packet(graph->document, graph->data), sample_limits());
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(again->document, graph->document);
}

TEST(ReadPlan, ALaunchThatDoesNothingIsAPlan) {
  const Json document{{"plan", 1},
                      {"scratch", 0},
                      {"notes", Json::array()},
                      {"first", Json::array()},
                      {"steady", Json::array()}};
  auto graph = read_graph(graph_packet(document, {}), GraphLimits{});
  ASSERT_TRUE(graph) << graph.error();
  EXPECT_TRUE(graph->kernels.empty());
}

TEST(ReadPlan, RefusesPacketsThatAreNotWhole) {
  EXPECT_EQ(refusal_of_packet({}), "shorter than its own header");
  EXPECT_EQ(refusal_of_packet(std::vector<std::byte>(7)), "shorter than its own header");
  EXPECT_EQ(refusal_of_packet(with_header(3, "{}")), "its document is too long");
  EXPECT_EQ(refusal_of_packet(with_header(~0ull, "{}")), "its document is too long");
  EXPECT_EQ(refusal_of_packet(with_header(1, "{}")), "its document is not JSON");
  EXPECT_EQ(refusal_of_packet(with_header(0, "")), "its document is not JSON");
  EXPECT_EQ(refusal_of_packet(with_header(2, "[]")), "plan: not an object");
  const std::string deep(1 << 20, '[');
  EXPECT_EQ(refusal_of_packet(with_header(deep.size(), deep)), "its document is not JSON");
}

TEST(ReadPlan, RefusesMoreThanTheLimitsAllow) {
  GraphLimits small = sample_limits();
  small.document_bytes = 100;
  EXPECT_EQ(refusal_of(sample_graph(), small), "its document is too long");
  small = sample_limits();
  small.data_bytes = testing::kData - 1;
  EXPECT_EQ(refusal_of(sample_graph(), small), "it carries too much data");
  small = sample_limits();
  small.nodes = 4;
  EXPECT_THAT(refusal_of(sample_graph(), small), ::testing::StartsWith("first: not a list of at most"));
  small = sample_limits();
  small.scratch_bytes = testing::kScratch - 1;
  EXPECT_EQ(refusal_of(sample_graph(), small), "plan.scratch: out of range");
}

TEST(ReadPlan, RefusesUnknownFieldsEverywhere) {
  Json document = sample_graph();
  document["then"] = 1;
  EXPECT_EQ(refusal_of(document), "plan: has an unknown field");
  for (int node : {kMemset, kCopyIn, kKernel})
    EXPECT_THAT(refusal_of_setting(node, "host", "f"), ::testing::EndsWith(": has an unknown field")) << node;
  EXPECT_EQ(refusal_of(kKernel, [](Json& n) { n["window"]["x"] = 1; }),
            "steady[2].window: has an unknown field");
  EXPECT_EQ(refusal_of(kKernel, [](Json& n) { n["relocations"][0]["x"] = 1; }),
            "steady[2].relocations: has an unknown field");
  EXPECT_EQ(refusal_of(kMemset, [](Json& n) { n["dst"]["arena"] = 0; }),
            "steady[0].dst: has an unknown field");
  EXPECT_EQ(refusal_of(kCopyIn, [](Json& n) { n["src"]["arena"] = 0; }),
            "steady[1].src: has an unknown field");
}

TEST(ReadPlan, RefusesEachMissingField) {
  for (int node : {kMemset, kCopy, kKernel}) {
    const Json whole = sample_graph()["steady"][static_cast<std::size_t>(node)];
    for (const auto& field : whole.items()) {
      const std::string& key = field.key();
      const bool may_lack = key == "relocations" || key.starts_with("cluster") || key == "portable" ||
                            key == "cooperative" || key == "carveout" || key == "window";
      EXPECT_EQ(refusal_of(node, [&](Json& n) { n.erase(key); }) == "accepted", may_lack)
          << node << " " << key;
    }
  }
  for (const char* key : {"plan", "scratch", "notes", "first", "steady"}) {
    Json document = sample_graph();
    document.erase(key);
    EXPECT_EQ(refusal_of(document), std::string("plan: lacks ") + key);
  }
}

TEST(ReadPlan, RefusesAFieldOfAnotherType) {
  for (int node : {kMemset, kCopy, kKernel, kLast}) {
    const Json whole = sample_graph()["steady"][static_cast<std::size_t>(node)];
    for (const auto& field : whole.items())
      for (const Json& other : {Json(nullptr), Json("two words"), Json(-1), Json(1e300),
                                Json(Json::array({Json::array()})), Json{{"a", 1}}})
        EXPECT_NE(refusal_of_setting(node, field.key().c_str(), other), "accepted")
            << node << " " << field.key() << " " << other;
  }
  EXPECT_EQ(refusal_of_setting(kMemset, "kind", "host"), "steady[0]: unknown kind");
  EXPECT_EQ(refusal_of_setting(kMemset, "kind", 1), "steady[0]: no kind");
}

TEST(ReadPlan, RefusesAnotherVersionOfTheFormat) {
  Json document = sample_graph();
  document["plan"] = 2;
  EXPECT_EQ(refusal_of(document), "plan.plan: out of range");
}

TEST(ReadPlan, RefusesNotesThatAreLongOrMany) {
  Json document = sample_graph();
  document["notes"] = {std::string(501, 'x')};
  EXPECT_EQ(refusal_of(document), "plan.notes: not a short text");
  document["notes"] = std::vector<std::string>(17, "x");
  EXPECT_EQ(refusal_of(document), "plan.notes: not a short list");
}

TEST(ReadPlan, RefusesNamesThatAreNoSymbols) {
  for (const char* name : {"", "a b", "a;b", "../x", "a\nb", "k\xc3\xa4rnel", "a\"b"})
    EXPECT_EQ(refusal_of_setting(kKernel, "function", name), "steady[2].function: not a symbol") << name;
  EXPECT_EQ(refusal_of_setting(kKernel, "function", std::string(4097, 'a')),
            "steady[2].function: not a symbol");
  EXPECT_EQ(refusal_of_setting(kKernel, "function", "_ZN3foo$bar.part_1E"), "accepted");
  EXPECT_EQ(refusal_of(kCopyIn, [](Json& n) { n["dst"]["global"] = "a b"; }),
            "steady[1].dst.global: not a symbol");
}

TEST(ReadPlan, RefusesLaunchShapesThatNoGpuTakes) {
  using Shape = std::vector<std::uint64_t>;
  for (const Shape& grid : {Shape{0, 1, 1}, Shape{1, 0, 1}, Shape{0x80000000u, 1, 1}, Shape{1, 65536, 1},
                            Shape{1, 1, 65536}, Shape{1, ~0ull, 1}})
    EXPECT_EQ(refusal_of_setting(kKernel, "grid", grid), "steady[2].grid: out of range");
  EXPECT_EQ(refusal_of_setting(kKernel, "grid", Shape{0x7fffffff, 65535, 65535}), "accepted");
  EXPECT_EQ(refusal_of_setting(kKernel, "grid", Shape{1, 1}), "steady[2].grid: not three numbers");
  EXPECT_EQ(refusal_of_setting(kKernel, "block", Shape{1025, 1, 1}), "steady[2].block: out of range");
  EXPECT_EQ(refusal_of_setting(kKernel, "block", Shape{0, 1, 1}), "steady[2].block: out of range");
  EXPECT_EQ(refusal_of_setting(kKernel, "block", Shape{1, 1, 65}), "steady[2].block: out of range");
  EXPECT_EQ(refusal_of_setting(kKernel, "block", Shape{32, 33, 1}), "steady[2].block: too large in all");
  EXPECT_EQ(refusal_of_setting(kKernel, "cluster", Shape{4, 5, 1}), "steady[2].cluster: too large in all");
  EXPECT_EQ(refusal_of_setting(kKernel, "shared", (1u << 20) + 1), "steady[2].shared: out of range");
  EXPECT_EQ(refusal_of_setting(kKernel, "max_shared", (1u << 20) + 1), "steady[2].max_shared: out of range");
  EXPECT_EQ(refusal_of_setting(kKernel, "carveout", 101), "steady[2].carveout: out of range");
  EXPECT_EQ(refusal_of_setting(kKernel, "cluster_policy", 3), "steady[2].cluster_policy: out of range");
}

TEST(ReadPlan, RefusesParametersThatAreNotBytes) {
  for (const char* params : {"0", "0g", "0A", "  ", "0x"})
    EXPECT_EQ(refusal_of_setting(kKernel, "params", params), "steady[2].params: not hexadecimal bytes")
        << params;
  EXPECT_EQ(refusal_of_setting(kKernel, "params", std::string(2 * 32764 + 2, '0')),
            "steady[2].params: not hexadecimal bytes");
  EXPECT_EQ(refusal_of_setting(kKernel, "sizes", {{0, 25}}), "steady[2].sizes: outside the parameters");
  EXPECT_EQ(refusal_of_setting(kKernel, "sizes", {{25, 0}}), "steady[2].sizes: outside the parameters");
  EXPECT_EQ(refusal_of_setting(kKernel, "sizes", {{8, ~0ull}}), "steady[2].sizes: outside the parameters");
  EXPECT_EQ(refusal_of_setting(kKernel, "sizes", {{0, 8, 1}}), "steady[2].sizes: not pairs of numbers");
}

TEST(ReadPlan, RefusesARelocationOutsideTheParameters) {
  EXPECT_EQ(refusal_of(kKernel, [](Json& n) { n["relocations"][0]["at"] = 17; }),
            "steady[2].at: out of range");
  EXPECT_EQ(refusal_of(kKernel, [](Json& n) { n["relocations"][0]["at"] = ~0ull; }),
            "steady[2].at: out of range");
  EXPECT_EQ(refusal_of(kKernel, [](Json& n) { n["relocations"][0]["offset"] = ~0ull; }),
            "steady[2].offset: out of range");
  EXPECT_EQ(refusal_of(kKernel, [](Json& n) { n["params"] = "00", n["sizes"] = Json::array(); }),
            "steady[2].relocations: outside the parameters");
}

TEST(ReadPlan, RefusesAWindowThatIsNotOnTheTensors) {
  EXPECT_EQ(refusal_of(kKernel, [](Json& n) { n["window"]["bytes"] = testing::kArena + 1; }),
            "steady[2].window: leaves the tensors");
  EXPECT_EQ(refusal_of(kKernel, [](Json& n) { n["window"]["base"]["arena"] = 1; }),
            "steady[2].window: leaves the tensors");
  EXPECT_EQ(refusal_of(kKernel, [](Json& n) { n["window"]["ratio"] = 1.5; }),
            "steady[2].window: ratio out of range");
  EXPECT_EQ(refusal_of(kKernel, [](Json& n) { n["window"]["ratio"] = -0.5; }),
            "steady[2].window: ratio out of range");
  EXPECT_EQ(refusal_of(kKernel, [](Json& n) { n["window"]["hit"] = 3; }), "steady[2].hit: out of range");
}

TEST(ReadPlan, RefusesACopyThatLeavesWhereItMayGo) {
  auto copy = [](const char* key, const Json& address, std::uint64_t width = 64) {
    return refusal_of(kCopy, [&](Json& n) { n[key] = address, n["width"] = width; });
  };
  EXPECT_EQ(copy("dst", {{"arena", testing::kArena - 64}}), "accepted");
  EXPECT_EQ(copy("dst", {{"arena", testing::kArena - 63}}), "steady[3].dst: leaves the tensors");
  EXPECT_EQ(copy("dst", {{"arena", ~0ull}}), "steady[3].dst.arena: out of range");
  EXPECT_EQ(copy("src", {{"scratch", testing::kScratch - 63}}), "steady[3].src: leaves the scratch memory");
  EXPECT_EQ(copy("src", {{"data", 0}}), "accepted");
  EXPECT_EQ(copy("src", {{"data", 1}}), "steady[3].src: outside the data");
  EXPECT_EQ(copy("src", {{"data", testing::kData + 1}}), "steady[3].data: out of range");
  EXPECT_EQ(copy("dst", {{"data", 0}}), "steady[3].dst: lacks scratch");  // host data is only ever read
  EXPECT_EQ(copy("dst", {{"address", 4096}}), "steady[3].dst: lacks scratch");
  EXPECT_EQ(copy("dst", 4096), "steady[3].dst: not an address");
  EXPECT_EQ(copy("dst", {{"global", "table"}, {"offset", 1ull << 41}}), "steady[3].dst.offset: out of range");
}

TEST(ReadPlan, RefusesRowsThatOverflowOrOverlap) {
  auto rows = [](std::uint64_t width, std::uint64_t height, std::uint64_t pitch) {
    return refusal_of(kCopy, [&](Json& n) {
      n["width"] = width, n["height"] = height, n["dst_pitch"] = n["src_pitch"] = pitch;
    });
  };
  EXPECT_EQ(rows(64, 4, 128), "accepted");
  EXPECT_EQ(rows(64, 4, 63), "steady[3]: rows overlap");
  EXPECT_EQ(rows(64, 1ull << 32, 1ull << 32), "steady[3]: too large");  // pitch × height is 2^64
  EXPECT_EQ(rows(64, 1ull << 32, 1ull << 40), "steady[3]: too large");
  EXPECT_EQ(rows(64, (1ull << 32) + 1, 64), "steady[3].height: out of range");
  EXPECT_EQ(rows(0, 1, 0), "steady[3].width: out of range");
  EXPECT_EQ(rows(64, 0, 64), "steady[3].height: out of range");
  EXPECT_EQ(rows(64, 100, 64), "steady[3].dst: leaves the tensors");
}

TEST(ReadPlan, RefusesAMemsetBeyondItsMemory) {
  auto memset = [](const Json& dst, std::uint64_t width) {
    return refusal_of(kMemset, [&](Json& n) { n["dst"] = dst, n["width"] = width, n["height"] = 1; });
  };
  EXPECT_EQ(memset({{"scratch", 0}}, testing::kScratch / 4), "accepted");  // elements of four bytes
  EXPECT_EQ(memset({{"scratch", 0}}, testing::kScratch / 4 + 1), "steady[0].dst: leaves the scratch memory");
  EXPECT_EQ(memset({{"arena", 8}}, testing::kArena / 4 - 1), "steady[0].dst: leaves the tensors");
  EXPECT_EQ(memset({{"arena", 0}}, 1ull << 39), "steady[0]: too large");
  EXPECT_EQ(refusal_of_setting(kMemset, "element", 3), "steady[0].element: not 1, 2 or 4");
  EXPECT_EQ(refusal_of_setting(kMemset, "element", 8), "steady[0].element: out of range");
  EXPECT_EQ(refusal_of_setting(kMemset, "value", 1ull << 32), "steady[0].value: out of range");
}

TEST(ReadPlan, RefusesEdgesThatNameALaterNode) {
  for (const char* key : {"after", "early"}) {
    EXPECT_EQ(refusal_of_setting(kLast, key, {4}), std::string("steady[4].") + key + ": names a later node")
        << "itself";
    EXPECT_EQ(refusal_of_setting(kLast, key, {5}), std::string("steady[4].") + key + ": names a later node");
    EXPECT_EQ(refusal_of_setting(kLast, key, {-1}), std::string("steady[4].") + key + ": names a later node");
    EXPECT_EQ(refusal_of_setting(kLast, key, {0, 0, 0, 0, 0}),
              std::string("steady[4].") + key + ": not a list of earlier nodes");
  }
}

TEST(ReadPlan, ChecksTheFirstCallLikeTheSteadyOnes) {
  Json document = sample_graph();
  document["first"][2]["grid"] = {0, 1, 1};
  EXPECT_EQ(refusal_of(document), "first[2].grid: out of range");
}

}  // namespace
}  // namespace capstone
