#include <gtest/gtest.h>

#include "tests/project/samples.h"

namespace capstone {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// Every field of every structure has a value other than its default, so that a forgotten one shows.
Measurement full() {
  Measurement m;
  m.candidate = "llm";
  m.version = "attempt-3";
  m.reason = "said \"faster\"\nµ";
  m.expected_speedup = 0.1;  // not exactly representable in binary
  m.source = "llm/attempt-3/kernel.cu";
  m.source_sha256 = std::string(64, 'a');
  m.problem_id = "softmax";
  m.problem_digest = std::string(64, 'b');
  m.backend = Backend::kCuda;
  m.execution = Execution::kReplayed;
  m.execution_reason = "launch() waits for the GPU";
  m.isolation = "bubblewrap";
  m.environment = {{"device", "a GPU"}, {"clocks", {{"sm", 1980}}}, {"free", nullptr}};
  m.build = {true, 1.25, "nvcc -O3", "warning: x", CompilerMessage{"kernel.cu", 7, 3, "unused"}, {}, true};
  m.gate_one = GateOne::kWrong;
  CaseResult c;
  c.id = "hidden-1";
  c.sizes = {{"rows", 64}, {"cols", 9007199254740993}};
  c.seed = "ffffffffffffffff";
  c.build = "hooks";
  c.battery = "x10";
  c.schedule = "reverse";
  c.max_abs = kInf;
  c.max_rel = 1.0 / 3;
  c.rms = 5e-324;
  c.problem = "wrong result";
  c.where = "kernel.cu:12";
  c.hint = "look at the last block";
  c.printed = "thread 0\nµ";
  c.diagnosis = Diagnosis{"y",
                          5,
                          10,
                          {0, 64},
                          {3, 7},
                          0.5,
                          kNaN,
                          -kInf,
                          -0.0,
                          false,
                          true,
                          {{{0, 64}, kNaN, 0.5, 1e-5, true}},
                          "only rows >= 64 are wrong",
                          "round up",
                          {"··█", "███"},
                          "y, 1 x 4 elements a cell"};
  m.cases = {c, CaseResult{}};
  m.cases[1].passed = true;
  m.gate_two = GateTwo::kUnresolved;
  m.gate_two_reason = "the intervals overlap";
  Measured t;
  t.clock = "GPU-cold events";
  t.arms.push_back({"native", "cuBLAS", {1.5, 1.4, 1.6}, 1.1, 1.7, {{1.5, 1.4999999999999998}, {}, {kNaN}}});
  t.arms[0].speedup = {1.1, 1.05, 1.15};
  t.arms[0].dirty_ms = {1.6, 1.5, 1.7};
  t.arms[0].dirty_speedup = {1.2, 1.1, 1.3};
  t.arms[0].dirty_samples_ms = {{1.6, kNaN}, {}};
  t.arms[0].sustained_ms = {1.9, 1.8, 2.0};
  t.arms[0].sustained_watts = 690.5;
  t.arms[0].sustained_sm_mhz = 1500;
  t.dirty_speedup = {1.2, 1.1, 1.3};
  t.dirty_floor = 0.011;
  t.blocks = 4;
  t.speedup = Interval{1.02, 0.98, 1.06};
  t.floor = 0.01;
  t.flops = 2e12;
  t.bytes = 1.5e9;
  t.percent_of_peak = 73.5;
  t.peak = "3.35 TB/s HBM3 (data sheet)";
  t.bound_by = "memory";
  m.labels = {"needs an explanation: above the roofline"};
  t.sizes = {{"rows", 16384}};
  m.measured = t;
  m.seconds = 3.5;
  return m;
}

TEST(Record, IncludedFilesAreRecordedAlsoWhenThereAreNone) {
  Measurement m = full();
  EXPECT_FALSE(Json(m).contains("included")) << "an older record says nothing about them";
  m.included.emplace();
  EXPECT_TRUE(Json(m).get<Measurement>().included->empty());
  m.included->push_back({"human/rows.cuh", "aa"});
  EXPECT_EQ(*Json(m).get<Measurement>().included, *m.included);
  EXPECT_EQ(Json(m).get<Measurement>().measured->blocks, 4);
}

TEST(Record, ValuesReadAsAPersonWouldSayThem) {
  EXPECT_EQ(number_text(-kNaN), "NaN");
  EXPECT_EQ(number_text(-kInf), "-infinity");
  EXPECT_EQ(number_text(1.0 / 3, 3), "0.333");
  EXPECT_EQ(got_text(kNaN, false), "got NaN");
  EXPECT_EQ(got_text(kNaN, true), "never written");
}

TEST(Record, AFullMeasurementSurvivesTextAndBackBitForBit) {
  const Json once = full();
  const std::string text = once.dump();
  const auto back = Json::parse(text).get<Measurement>();
  EXPECT_EQ(Json(back).dump(), text);

  const Diagnosis& d = back.cases.at(0).diagnosis.value();
  EXPECT_TRUE(std::isnan(d.first_got));
  EXPECT_EQ(d.worst_expected, -kInf);
  EXPECT_TRUE(std::signbit(d.worst_got));
  EXPECT_TRUE(d.worst_unwritten);
  ASSERT_EQ(d.mismatches.size(), 1u);
  EXPECT_EQ(d.mismatches[0].index, (std::vector<std::int64_t>{0, 64}));
  EXPECT_EQ(d.mismatches[0].allowed, 1e-5);
  EXPECT_TRUE(d.mismatches[0].unwritten);
  EXPECT_EQ(back.cases[0].max_rel, 1.0 / 3);
  EXPECT_EQ(back.cases[0].rms, 5e-324);
  EXPECT_EQ(back.cases[0].sizes["cols"], 9007199254740993);
  EXPECT_EQ(back.measured->arms.at(0).samples_ms.at(0).at(1), 1.4999999999999998);
  EXPECT_TRUE(std::isnan(back.measured->arms[0].samples_ms.at(2).at(0)));
  EXPECT_EQ(back.build.first_error->column, 3);
  EXPECT_EQ(back.gate_one, GateOne::kWrong);
  EXPECT_EQ(back.gate_two, GateTwo::kUnresolved);
  EXPECT_EQ(back.expected_speedup, 0.1);
  EXPECT_EQ(back.reason, "said \"faster\"\nµ");
}

TEST(Record, NoFieldOfAFullMeasurementIsForgotten) {
  // If a field were not written (or not read), it would come back as its default and the second text would
  // differ. Fields missing in both directions show as fewer keys than the structure has.
  const Json json = full();
  EXPECT_EQ(json.size(), 21u);
  EXPECT_EQ(json["measured"].size(), 13u);
  EXPECT_EQ(json["measured"]["arms"][0].size(), 13u);
  EXPECT_EQ(json["cases"][0].size(), 15u);
  EXPECT_EQ(json["cases"][0]["diagnosis"].size(), 16u);
  EXPECT_EQ(json["build"].size(), 6u);
}

TEST(Record, LabelsOfTheFirstVersionsLedgersAreStillRead) {
  Json old = full();
  old["measured"]["labels"] = old["labels"];
  old.erase("labels");
  EXPECT_EQ(old.get<Measurement>().labels, full().labels);
}

TEST(Record, PredictionAndAttemptSurvive) {
  Prediction p{"latency", 2.5, "one block only", false};
  auto prediction = Json::parse(Json(p).dump()).get<Prediction>();
  EXPECT_EQ(prediction.bottleneck, "latency");
  EXPECT_EQ(prediction.speedup, 2.5);
  EXPECT_EQ(prediction.because, "one block only");
  EXPECT_FALSE(prediction.before_first_measurement);

  Attempt a{4, "model-1", "temperature 0", "p", "r", "-old\n+new\n", "one fenced block", "a refusal"};
  auto attempt = Json::parse(Json(a).dump()).get<Attempt>();
  EXPECT_EQ(Json(attempt).dump(), Json(a).dump());
  EXPECT_EQ(attempt.number, 4);
  EXPECT_EQ(attempt.no_code_because, "a refusal");
  EXPECT_EQ(Json(a).size(), 8u);
}

TEST(Record, UnknownFieldsAreToleratedAndMissingOnesDefaulted) {
  auto m = Json::parse(R"({"candidate":"human","version":"v1","colour":"red","cases":[{"id":"c","mood":1}]})")
               .get<Measurement>();
  EXPECT_EQ(m.version, "v1");
  EXPECT_EQ(m.gate_one, GateOne::kMachineFault);
  EXPECT_EQ(m.gate_two, GateTwo::kNotJudged);
  EXPECT_FALSE(m.measured);
  EXPECT_FALSE(m.expected_speedup);
  EXPECT_EQ(m.cases.at(0).id, "c");
  EXPECT_FALSE(m.cases[0].passed);
  EXPECT_TRUE(Json::parse("{}").get<Prediction>().before_first_measurement);
  EXPECT_EQ(Json::parse(R"({"reason":null,"expected_speedup":null})").get<Measurement>().reason, "");
}

TEST(Record, AWrongTypeOrAnUnknownVerdictIsRefused) {
  EXPECT_THROW(Json::parse(R"({"version":7})").get<Measurement>(), std::exception);
  EXPECT_THROW(Json::parse(R"({"gate_one":"excellent"})").get<Measurement>(), std::exception);
  EXPECT_THROW(Json::parse(R"({"seconds":"fast"})").get<Measurement>(), std::exception);
  EXPECT_THROW(Json::parse(R"({"kind":"init","machine":"m"})").get<Record>(), std::exception) << "no seq";
}

TEST(Record, LabelsAreThoseOfTheContract) {
  EXPECT_EQ(label_of(GateOne::kPassed), "PASS");
  EXPECT_EQ(label_of(GateOne::kUndefined), "UNDEFINED BEHAVIOUR");
  EXPECT_EQ(label_of(GateOne::kBuildFailed), "DOES NOT BUILD");
  EXPECT_EQ(label_of(GateOne::kTimedOut), "TIME-OUT");
  EXPECT_EQ(label_of(GateOne::kMachineFault), "MACHINE FAULT");
  EXPECT_EQ(label_of(GateTwo::kUnresolved), "UNRESOLVED");
  EXPECT_EQ(label_of(GateTwo::kNotJudged), "NOT JUDGED");
}

TEST(Record, FirstFailureIsTheFirstCaseThatDidNotPass) {
  Measurement m;
  EXPECT_EQ(m.first_failure(), nullptr);
  m.cases.resize(3);
  m.cases[0].passed = true;
  EXPECT_EQ(m.first_failure(), &m.cases[1]);
  m.cases[1].passed = m.cases[2].passed = true;
  EXPECT_EQ(m.first_failure(), nullptr);
}

}  // namespace
}  // namespace capstone
