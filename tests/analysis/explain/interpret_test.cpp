// From a report to an explanation, without running anything.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/analysis/explain/fixture.h"

namespace capstone::test {
namespace {
namespace fs = std::filesystem;

class Interpret : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("capstone-interpret-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    std::ofstream(folder_ / "kernel.cu")
        << "// one\n  float a = x[i * 32];  // <strided>\n  s[i] = a;\n  y[i] = s[j];\n";
    request_ = {&problem_, folder_ / "kernel.cu", problem_.emulate, std::nullopt};
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Line 2 strided, line 3 a clean store to shared memory, line 4 a column read of it and a coalesced store.
  Json sample() const {
    return report({line(2, global(32, 1024, 128, 4096, 1024), shared(0, 0, 0, 0, 0)),
                   line(3, global(0, 0, 0, 0, 0), shared(32, 32, 32, 4096, 1024), 0, 32),
                   line(4, global(32, 128, 128, 4096, 1024), shared(32, 1024, 32, 4096, 1024), 2048)});
  }

  Problem problem_ = stream_problem();
  fs::path folder_;
  ExplainRequest request_;
};

TEST_F(Interpret, SumsLinesAndReadsTheirText) {
  const auto e = interpret(sample(), request_);
  ASSERT_TRUE(e) << render(e.error());
  ASSERT_EQ(e->kernels.size(), 1u);
  ASSERT_EQ(e->kernels[0].lines.size(), 3u);
  EXPECT_EQ(e->kernels[0].lines[0].text, "float a = x[i * 32];  // <strided>");
  EXPECT_EQ(e->total.global.units, 1152u);
  EXPECT_EQ(e->total.shared.units, 1056u);
  EXPECT_EQ(e->total.flops, 2048u);
  EXPECT_EQ(e->total.barriers, 32u);
  EXPECT_DOUBLE_EQ(e->moved_bytes(), 1152 * 32);
  EXPECT_DOUBLE_EQ(e->compulsory_bytes, 8192);
  EXPECT_DOUBLE_EQ(e->intensity(), 2048.0 / 8192);
}

TEST_F(Interpret, RanksTheDearestLinesAndSharesAddUp) {
  const auto e = interpret(sample(), request_);
  ASSERT_TRUE(e);
  ASSERT_EQ(e->advice.size(), 2u) << "line 3 costs next to nothing";
  EXPECT_EQ(e->advice[0].line, 4);
  EXPECT_EQ(e->advice[0].pattern, "bank conflict");
  EXPECT_EQ(e->advice[1].line, 2);
  EXPECT_EQ(e->advice[1].pattern, "uncoalesced");
  double all = 0;
  for (const LineCounts& c : e->kernels[0].lines) all += c.share;
  EXPECT_NEAR(all, 1, 1e-12);
}

TEST_F(Interpret, TheSameReportGivesTheSameBytes) {
  EXPECT_EQ(Json(*interpret(sample(), request_)).dump(), Json(*interpret(sample(), request_)).dump());
}

TEST_F(Interpret, RecordsSurviveTheLedger) {
  request_.device = *find_device_like("h100");
  auto e = interpret(sample(), request_);
  ASSERT_TRUE(e);
  e->candidate = "human";
  e->version = "v2";
  e->source = "human/kernel.cu";
  e->source_sha256 = "abc";
  const std::string once = Json(*e).dump();
  EXPECT_EQ(Json(Json::parse(once).get<Explanation>()).dump(), once);
}

TEST_F(Interpret, AModelledFloorIsTheLargestOfThreeAndNeverCalledMeasured) {
  request_.device = *find_device_like("h100");
  const auto e = interpret(sample(), request_);
  ASSERT_TRUE(e && e->floor);
  const ModelledFloor& f = *e->floor;
  EXPECT_EQ(f.device, "NVIDIA H100 80GB HBM3");
  EXPECT_NEAR(f.memory_ms, 8192 / 3.35e12 * 1e3, 1e-12);
  EXPECT_NEAR(f.compute_ms, 2048 / 66.9e12 * 1e3, 1e-12);
  EXPECT_NEAR(f.wavefront_ms, (1056 + 1152 / 4) / (66.9e12 / 256) * 1e3, 1e-12);
  EXPECT_EQ(f.bound_by, "shared memory and L1");
  EXPECT_DOUBLE_EQ(f.ms(), f.wavefront_ms);
  EXPECT_EQ(Json(*e)["floor"]["modelled_not_measured"], true);
}

TEST_F(Interpret, ThePredictedTimeIsThatOfTheMeasuredSize) {
  request_.device = *find_device_like("h100");
  const auto small = interpret(sample(), request_);
  for (auto& [symbol, value] : problem_.measure) value *= 64;
  const auto e = interpret(sample(), request_);
  ASSERT_TRUE(e && e->floor && small && small->floor);
  EXPECT_DOUBLE_EQ(small->floor->scale, 1);
  EXPECT_GT(e->floor->scale, 1);
  EXPECT_NEAR(e->floor->wavefront_ms / small->floor->wavefront_ms, e->floor->scale, 1e-9);
  EXPECT_NEAR(e->floor->compute_ms / small->floor->compute_ms, e->floor->scale, 1e-9);
  EXPECT_GT(e->floor->memory_ms, small->floor->memory_ms);
  EXPECT_NE(e->floor->place().find(" at "), std::string::npos);
}

TEST_F(Interpret, ShortRowsComeWithACaution) {
  Problem conv = load_problem(fs::path(CAPSTONE_SOURCES) / "problems" / "conv_bias_scale_relu").value();
  request_.problem = &conv;
  request_.sizes = conv.emulate;
  const auto here = interpret(sample(), request_);
  ASSERT_TRUE(here) << render(here.error());
  EXPECT_NE(here->caution.find("16 elements here and 128 at the measured size"), std::string::npos)
      << here->caution;
  request_.sizes = conv.measure;
  EXPECT_EQ(interpret(sample(), request_)->caution, "");
}

TEST_F(Interpret, AKernelThatAVariableNamesIsCalledByItsFunction) {
  Json report = sample();
  report["kernels"][0]["function"] = "_Z5sgemmILi16EEvPKfPf";
  for (const auto& [launched, shown] : std::vector<std::pair<std::string, std::string>>{
           {"kernel", "sgemm<16>"}, {"sgemm<kTile>", "sgemm<kTile>"}}) {
    report["kernels"][0]["kernel"] = launched;
    const auto e = interpret(report, request_);
    ASSERT_TRUE(e);
    EXPECT_EQ(e->kernels[0].kernel, shown);
    EXPECT_EQ(e->kernels[0].function, "sgemm<16>");
    ASSERT_FALSE(e->advice.empty());
    EXPECT_EQ(e->advice[0].kernel, shown);
  }
}

TEST_F(Interpret, AReportThatIsNoneIsAnError) {
  EXPECT_FALSE(interpret(Json{{"kernels", {{{"kernel", "k"}}}}}, request_));
  EXPECT_FALSE(interpret(Json::object(), request_));
  EXPECT_FALSE(interpret(Json(nullptr), request_));
}

TEST_F(Interpret, AReportCannotHaveAFileOutsideTheFolderRead) {
  for (const char* outside : {"/etc/hostname", "../secret.cu", "sub/../../secret.cu"}) {
    Json report = sample();
    std::ofstream(folder_.parent_path() / "secret.cu") << "secret\nsecret\nsecret\nsecret\n";
    report["kernels"][0]["lines"][0]["file"] = outside;
    report["kernels"][0]["lines"][0]["line"] = 1;
    const auto e = interpret(report, request_);
    fs::remove(folder_.parent_path() / "secret.cu");
    ASSERT_TRUE(e);
    EXPECT_EQ(e->kernels[0].lines[0].text, "") << outside;
  }
}

TEST(Devices, AreFoundAsPeopleNameThem) {
  EXPECT_EQ(find_device_like("H100")->name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(find_device_like("h100 pcie")->name, "NVIDIA H100 PCIe");
  EXPECT_EQ(find_device_like("4090")->name, "NVIDIA GeForce RTX 4090");
  EXPECT_EQ(find_device_like("NVIDIA H200")->name, "NVIDIA H200");
  EXPECT_EQ(find_device_like("v100")->name, "Tesla V100-SXM2-16GB");
  const auto unknown = find_device_like("h1000");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().hint.find("h100"), std::string::npos);
  EXPECT_FALSE(find_device_like(""));
}

}  // namespace
}  // namespace capstone::test
