#include "harness/course/result.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "harness/base/files.h"
#include "harness/base/text.h"

namespace capstone {
namespace {

SubmissionResult example() {
  SubmissionResult r;
  r.name = "ada";
  r.path = "ada.tar.gz";
  r.origin = {"Canvas", "lovelaceada", "1815", "", "", true};
  r.state = GradingState::kNeedsMentor;
  r.fault = GradingFault::kContradicted;
  r.why = "human: 2.20x claimed";
  r.members = {{"Ada", "1815", "ada@example.org"}};
  r.problem = "softmax";
  r.inputs = {std::string(64, 'a'),
              std::string(64, 'b'),
              std::string(64, 'c'),
              "0.2.0",
              "NVIDIA H200",
              "580",
              "quick"};
  r.judged.resize(1);
  r.judged[0].candidate = "human";
  r.claims = {{"human", Agreement::kContradicts, "2.20x claimed"}};
  r.left_out = {"v2: WRONG"};
  r.vouchers = {{std::string(64, 'd'), 3}, {"", 1}};
  r.suggested = {{"honesty", 10, 0, "all or nothing"}, {"depth", 30, 12.5, "5 of 12"}};
  r.started = r.finished = "2026-03-01T09:30:00Z";
  return r;
}

TEST(ResultFile, ComesBackAsItWasWritten) {
  fs::path file = fs::temp_directory_path() / ("result-" + std::to_string(::getpid())) / "result.json";
  ASSERT_TRUE(write_result(example(), file));
  auto back = read_result(file);
  ASSERT_TRUE(back) << back.error().what;
  EXPECT_EQ(Json(*back), Json(example()));
  EXPECT_EQ(back->inputs, example().inputs);
  EXPECT_EQ(back->suggested_total(), 12.5);
  EXPECT_NE(back->of("human"), nullptr);
  EXPECT_EQ(back->of("llm"), nullptr);
  fs::remove_all(file.parent_path());
}

TEST(ResultFile, NamesThatAreNotUtf8DoNotStopIt) {
  SubmissionResult r = example();
  r.path = r.members[0].name = r.why = "caf\xE9";
  r.notes = {"\xFF"};
  EXPECT_TRUE(is_utf8(Json(r).dump()));
}

TEST(ResultFile, DamagedOrNewerIsRefused) {
  fs::path file = fs::temp_directory_path() / ("result-" + std::to_string(::getpid()) + ".json");
  for (const char* text :
       {"", "{}", "[]", "{\"schema_version\": 99}", "{\"schema_version\": 1, \"name\": 3}"}) {
    ASSERT_TRUE(write_file_atomic(file, text));
    auto result = read_result(file);
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().where, file.string());
  }
  fs::remove(file);
}

TEST(ResultFile, AFaultOfTheMachineLeavesItUngradedAndADoubtLeavesItToThePerson) {
  EXPECT_EQ(state_of(GradingFault::kNone), GradingState::kGraded);
  for (GradingFault f : {GradingFault::kMachine, GradingFault::kRefused, GradingFault::kNotAProject})
    EXPECT_EQ(state_of(f), GradingState::kFailed);
  for (GradingFault f : {GradingFault::kLedger, GradingFault::kContradicted, GradingFault::kNotJudgeable,
                         GradingFault::kUnsupported})
    EXPECT_EQ(state_of(f), GradingState::kNeedsMentor);
}

}  // namespace
}  // namespace capstone
