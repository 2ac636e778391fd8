#include <gtest/gtest.h>

#include <fstream>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "tests/project/samples.h"

namespace capstone {
namespace {

using namespace test;

std::vector<std::string> names(const std::vector<const Measurement*>& versions) {
  std::vector<std::string> names;
  for (const Measurement* each : versions) names.push_back(each->version);
  return names;
}

TEST(View, SortsRecordsByWhatTheyAre) {
  Scratch scratch;
  const fs::path ledger = scratch / "ledger.jsonl";
  ASSERT_TRUE(append_record(ledger, "init", {}, kLaptop));
  ASSERT_TRUE(append_record(ledger, "prediction", Prediction{"memory", 1.2, "two trips", true}, kLaptop));
  ASSERT_TRUE(append_record(ledger, "measurement", measurement("v1"), kLaptop));
  ASSERT_TRUE(append_record(ledger, "attempt", Attempt{1, "m", "", "", "", "", "", ""}, kLaptop));
  ASSERT_TRUE(append_record(ledger, "measurement", measurement("attempt-1"), kLaptop));
  ASSERT_TRUE(append_record(ledger, "something-new", {{"x", 1}}, kLaptop));
  auto view = read_ledger(ledger);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->records.size(), 6u);
  EXPECT_EQ(view->predictions.at(0).because, "two trips");
  EXPECT_EQ(view->human.at(0).version, "v1");
  EXPECT_EQ(view->llm.at(0).version, "attempt-1");
  EXPECT_EQ(view->attempts.at(0).model, "m");
  EXPECT_TRUE(view->damage.empty());
}

TakenHint hint(int level) { return {level, 3, "f"}; }

TEST(View, AHintStandsBetweenTheVersionsThatWereMeasuredBeforeAndAfterIt) {
  Scratch scratch;
  const fs::path ledger = scratch / "ledger.jsonl";
  Measurement stub = measurement("v0");
  stub.source_sha256 = "stub";
  ASSERT_TRUE(append_record(ledger, "init", {{"kernel_sha256", "stub"}}, kLaptop));
  ASSERT_TRUE(append_record(ledger, "measurement", stub, kLaptop));
  ASSERT_TRUE(append_record(ledger, "hint", hint(1), kLaptop));
  ASSERT_TRUE(append_record(ledger, "measurement", measurement("v1"), kLaptop));
  ASSERT_TRUE(append_record(ledger, "measurement", measurement("attempt-1"), kLaptop));
  ASSERT_TRUE(append_record(ledger, "hint", hint(2), kLaptop));
  ASSERT_TRUE(append_record(ledger, "measurement", measurement("v1"), kLaptop));
  ASSERT_TRUE(append_record(ledger, "measurement", measurement("v2"), kLaptop));
  ASSERT_TRUE(append_record(ledger, "hint", hint(3), kLaptop));
  ASSERT_TRUE(append_record(ledger, "hint", hint(1), kLaptop));
  const LedgerView view = read_ledger(ledger).value();
  EXPECT_TRUE(view.damage.empty()) << view.damage.front();
  ASSERT_EQ(view.hints.size(), 3u) << "only the first use of each";
  const auto place = [&](std::size_t i) {
    EXPECT_EQ(view.hints[i].time.size(), std::string("2026-03-01T12:00:00Z").size());
    return view.hints[i].told().substr(0, view.hints[i].told().find(" ("));
  };
  EXPECT_EQ(place(0), "hint 1 of 3, before v1") << "the stub is no version";
  EXPECT_EQ(place(1), "hint 2 of 3, after v1 and before v2") << "the model's are none of the student's";
  EXPECT_EQ(place(2), "hint 3 of 3, after v2");
  EXPECT_TRUE(verify_ledger(ledger, scratch / "sources")->size()) << "the samples have no stored sources";
}

TEST(View, BetweenTwoMachinesTimeTellsWhichVersionAHintCameBefore) {
  Scratch scratch;
  const fs::path ledger = scratch / "ledger.jsonl";
  // Measured on the cluster at noon and appended here after the hint of one o'clock.
  const auto line = [](const char* kind, const char* time, const char* machine, const Json& body) {
    return Json{{"schema_version", 2}, {"seq", 1},           {"time", time},   {"kind", kind},
                {"tool", "0"},         {"machine", machine}, {"previous", ""}, {"body", body}}
               .dump() +
           "\n";
  };
  put(ledger, line("hint", "2026-03-01T13:00:00Z", kLaptop, hint(1)) +
                  line("measurement", "2026-03-01T12:00:00Z", kCluster, measurement("v1")));
  EXPECT_EQ(read_ledger(ledger)->hints.at(0).told(), "hint 1 of 3, after v1 (2026-03-01 13:00 UTC)");
}

TEST(View, ALedgerWithoutHintsHasNoneAndAHintWithoutALevelDoesNotCount) {
  Scratch scratch;
  const fs::path ledger = scratch / "ledger.jsonl";
  ASSERT_TRUE(append_record(ledger, "measurement", measurement("v1"), kLaptop));
  EXPECT_TRUE(read_ledger(ledger)->hints.empty());
  ASSERT_TRUE(append_record(ledger, "hint", hint(4), kLaptop));
  const LedgerView view = read_ledger(ledger).value();
  EXPECT_TRUE(view.hints.empty());
  ASSERT_EQ(view.damage.size(), 1u);
  EXPECT_EQ(view.damage[0], "line 2: its hint cannot be read: level must be 1 to 3, not 4");
}

// One version is counted again at another size, for example to see the advice there: comparisons with other
// versions keep the sizes that all of them have.
TEST(View, CountsAtOtherSizesDoNotReplaceThoseThatCanBeCompared) {
  LedgerView view;
  const auto counted = [&](const char* version, int cols) {
    Explanation e;
    e.candidate = "human";
    e.version = version;
    e.sizes = {{"rows", 64}, {"cols", cols}};
    view.explanations.push_back(e);
  };
  EXPECT_TRUE(view.counted_sizes().is_null());
  EXPECT_EQ(view.explanation("human", "v1"), nullptr);
  counted("v1", 512);
  counted("v2", 512);
  counted("v2", 4096);
  counted("v3", 4096);
  counted("v1", 512);
  EXPECT_EQ(view.counted_sizes()["cols"], 512) << "v1 and v2; v2 and v3 come later";
  EXPECT_EQ(view.explanation("human", "v2")->sizes["cols"], 512);
  EXPECT_EQ(view.explanation("human", "v1"), &view.explanations.back()) << "the last one";
  EXPECT_EQ(view.explanation("human", "v3")->sizes["cols"], 4096) << "there is no other";
  EXPECT_EQ(view.explanation("llm", "v1"), nullptr);
}

TEST(View, AMissingLedgerIsAnErrorAndAnEmptyOneIsNot) {
  Scratch scratch;
  auto missing = read_ledger(scratch / "ledger.jsonl");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().hint.find("capstone init"), std::string::npos);
  put(scratch / "ledger.jsonl", "");
  EXPECT_TRUE(read_ledger(scratch / "ledger.jsonl")->records.empty());
}

TEST(View, ADamagedLineInTheMiddleIsListedAndTheRestIsRead) {
  Scratch scratch;
  const fs::path ledger = scratch / "ledger.jsonl";
  for (const char* version : {"v1", "v2", "v3"})
    ASSERT_TRUE(append_record(ledger, "measurement", measurement(version), kLaptop));
  auto lines = split(slurp(ledger), '\n');
  lines[1] = "{ this is not JSON";
  put(ledger, join(lines, "\n"));
  auto view = read_ledger(ledger);
  ASSERT_TRUE(view);
  EXPECT_EQ(names(view->versions("human")), (std::vector<std::string>{"v1", "v3"}));
  ASSERT_EQ(view->damage.size(), 2u);
  EXPECT_TRUE(view->damage[0].starts_with("line 2: not a record")) << view->damage[0];
  EXPECT_TRUE(view->damage[1].starts_with("line 3: broken chain")) << view->damage[1];
  auto next = append_record(ledger, "checkin", {}, kLaptop);
  ASSERT_TRUE(next) << "damage in the middle does not stop the project";
  EXPECT_EQ(next->seq, 4);
}

TEST(View, ABodyThatCannotBeReadIsDamageAndItsRecordDoesNotCount) {
  Scratch scratch;
  const fs::path ledger = scratch / "ledger.jsonl";
  ASSERT_TRUE(append_record(ledger, "measurement", {{"version", 7}}, kLaptop));
  auto view = read_ledger(ledger);
  EXPECT_TRUE(view->records.empty());
  EXPECT_TRUE(view->human.empty());
  ASSERT_EQ(view->damage.size(), 1u);
  EXPECT_TRUE(view->damage[0].starts_with("line 1: its measurement cannot be read")) << view->damage[0];
}

TEST(View, ANewerSchemaIsNotGuessedAt) {
  Scratch scratch;
  const fs::path ledger = scratch / "ledger.jsonl";
  ASSERT_TRUE(append_record(ledger, "measurement", measurement("v1"), kLaptop));
  put(ledger, replace_all(slurp(ledger), "\"schema_version\":2", "\"schema_version\":3"));
  ASSERT_TRUE(append_record(ledger, "checkin", {}, kLaptop));
  auto view = read_ledger(ledger);
  EXPECT_TRUE(view->human.empty());
  ASSERT_EQ(view->damage.size(), 1u) << "the chain itself is whole";
  EXPECT_NE(view->damage[0].find("update capstone"), std::string::npos) << view->damage[0];
}

TEST(View, ConvertedLineEndsAreNoDamage) {
  Scratch scratch;
  const fs::path ledger = scratch / "ledger.jsonl";
  ASSERT_TRUE(append_record(ledger, "init", {}, kLaptop));
  ASSERT_TRUE(append_record(ledger, "checkin", {}, kLaptop));
  put(ledger, replace_all(slurp(ledger), "\n", "\r\n") + "\r\n");
  ASSERT_TRUE(append_record(ledger, "checkin", {}, kLaptop));
  auto view = read_ledger(ledger);
  EXPECT_TRUE(view->damage.empty()) << view->damage.front();
  EXPECT_EQ(view->records.size(), 3u);
}

TEST(Versions, AreInTheOrderOfTheirNumbersWithTheLastMeasurementOfEach) {
  LedgerView view;
  for (const char* version : {"v10", "v2", "v1", "v2"}) view.human.push_back(measurement(version));
  view.human.back().reason = "again";
  EXPECT_EQ(names(view.versions("human")), (std::vector<std::string>{"v1", "v2", "v10"}));
  EXPECT_EQ(view.find("v2")->reason, "again");
  EXPECT_TRUE(view.versions("llm").empty());
}

TEST(Versions, AGpuMeasurementWinsOverALaterEmulatedOne) {
  LedgerView view;
  view.human = {measurement("v1", 1.5, "cuda"), measurement("v1", 0, "emulated")};
  EXPECT_EQ(view.find("v1")->backend, Backend::kCuda);
  view.human.push_back(measurement("v1", 1.7, "cuda"));
  EXPECT_EQ(view.find("v1")->measured->speedup->point, 1.7);
}

TEST(Versions, AMachinesFaultSaysNothingAboutAKernel) {
  LedgerView view;
  view.human = {measurement("v1", 0, "emulated"), measurement("v1", 0, "cuda", GateOne::kMachineFault)};
  EXPECT_EQ(view.find("v1")->backend, Backend::kEmulated);
  view.human = {measurement("v1", 0, "cuda", GateOne::kMachineFault)};
  EXPECT_EQ(view.find("v1")->gate_one, GateOne::kMachineFault) << "better than nothing";
}

TEST(Best, IsTheFastestCorrectOneOnAGpu) {
  LedgerView view;
  view.human = {measurement("v1", 1.2), measurement("v2", 2.0),
                measurement("v3", 9.0, "cuda", GateOne::kWrong), measurement("v4", 1.5),
                measurement("v5", 0, "emulated")};
  EXPECT_EQ(view.best("human")->version, "v2");
}

TEST(Best, ALuckyRunThatWasMeasuredAgainDoesNotCount) {
  LedgerView view;
  view.human = {measurement("v1", 3.0), measurement("v2", 1.5), measurement("v1", 1.1)};
  EXPECT_EQ(view.best("human")->version, "v2");
}

TEST(Best, WithoutAGpuItIsTheLastCorrectOneAndNullWhenNonePassed) {
  LedgerView view;
  EXPECT_EQ(view.best("human"), nullptr);
  view.human = {measurement("v1", 0, "emulated"), measurement("v2", 0, "emulated"),
                measurement("v3", 0, "emulated", GateOne::kCrashed)};
  EXPECT_EQ(view.best("human")->version, "v2");
  view.human = {measurement("v3", 0, "emulated", GateOne::kCrashed)};
  EXPECT_EQ(view.best("human"), nullptr);
}

// "measure all" repeats the last version together with the model's kernel, for a separate reason.
TEST(Reason, AndExpectationAreThoseOfTheFirstMeasurement) {
  LedgerView view;
  Measurement again = measurement("v1");
  again.reason = "both together";
  view.human = {measurement("v1"), again};
  view.human[0].reason = "  ";
  view.human.insert(view.human.begin() + 1, measurement("v1"));
  view.human[1].expected_speedup = 1.2;
  EXPECT_EQ(view.reason("human", "v1"), "why v1");
  EXPECT_EQ(view.expected_speedup("human", "v1"), 1.2);
  EXPECT_EQ(view.reason("human", "v2"), "");
  EXPECT_FALSE(view.expected_speedup("llm", "v1"));
}

TEST(Find, LooksAtBothCandidates) {
  LedgerView view;
  view.human = {measurement("v1")};
  view.llm = {measurement("attempt-1")};
  EXPECT_EQ(view.find("attempt-1"), &view.llm[0]);
  EXPECT_EQ(view.find("v1"), &view.human[0]);
  EXPECT_EQ(view.find("v2"), nullptr);
}

}  // namespace
}  // namespace capstone
