// A ledger is a student's file. Whatever type a value of it has, reading, verifying, scoring and rendering
// neither crash nor hang, and the other records count.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "fixture.h"
#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/course/claims.h"
#include "rubric/anomalies.h"
#include "rubric/rubric.h"
#include "templates/report.h"
#include "tests/project/mutations.h"

namespace capstone {
namespace {

// A record of every kind, with every field that a record of that kind can have.
std::vector<Json> records_of(const testing::Capstone& c) {
  std::vector<Json> records;
  for (const Record& record : c.ledger.records) {
    const auto same = [&](const Json& other) { return other["kind"] == Json(record.kind); };
    if (std::none_of(records.begin(), records.end(), same)) records.push_back(record);
  }
  Json& measured = *std::find_if(records.begin(), records.end(),
                                 [](const Json& r) { return r["kind"] == Json("measurement"); });
  Measurement full = c.ledger.human.back();
  full.expected_speedup = 1.5;
  full.build.first_error = CompilerMessage{"kernel.cu", 7, 3, "unused"};
  for (Arm& arm : full.measured->arms) arm.samples_ms.resize(1), arm.samples_ms[0].resize(2);
  full.measured->arms.at(0).speedup = Interval{1, 0.9, 1.1};
  CaseResult failed;
  failed.id = "check-0", failed.sizes = {{"rows", 64}}, failed.traceback = "Traceback",
  failed.problem = "wrong";
  failed.diagnosis = Diagnosis{};
  failed.diagnosis->first = failed.diagnosis->worst = {1, 2};
  failed.diagnosis->mismatches.push_back({{0, 64}, 1, 0.5, 1e-5, true});
  full.cases.insert(full.cases.begin(), failed);
  full.labels = {"needs an explanation: faster than the data sheet"};
  full.environment["sm_count"] = 132;
  full.environment["copy_bytes_per_second"] = 1e12;
  full.environment["telemetry"] = {{"before", {{"sm_mhz", 1980}}}};
  measured["body"] = full;
  measured["signature"] = {{"key", std::string(64, 'a')}, {"value", std::string(128, 'b')}};
  for (const auto& [kind, body] : std::vector<std::pair<std::string, Json>>{
           {"profile", {{"candidate", "human"}, {"version", "v1"}, {"source_sha256", "f"}}},
           {"checkin", {{"stuck", "the tail"}}},
           {"hint", {{"level", 1}, {"of", 3}, {"text_sha256", "f"}}},
           {"import", {{"from", "elsewhere"}}}}) {
    Record record = c.ledger.records.front();
    record.kind = kind, record.body = body;
    records.push_back(record);
  }
  return records;
}

struct LedgerTypes : ::testing::Test {
  testing::Scratch scratch;
  const testing::Capstone capstone = testing::make_capstone(scratch.path() / "project");
  const Rubric rubric = load_rubric(fs::path(CAPSTONE_SOURCE_DIR) / "rubric" / "rubric.yaml").value();
  const Resources resources = testing::test_resources();
  const fs::path file = scratch.path() / "ledger.jsonl";

  LedgerView read(const std::string& text) {
    std::ofstream(file, std::ios::binary) << text;
    auto view = read_ledger(file);
    EXPECT_TRUE(view);
    EXPECT_TRUE(verify_ledger(file, scratch.path() / "sources"));
    return view.value_or(LedgerView{});
  }
  void use(const LedgerView& view) {
    const Worklog worklog = parse_worklog(testing::fixture_worklog(testing::Where::kGpu));
    score(rubric, capstone.project, view, worklog);
    for (const Measurement& m : view.human) compare_claim(view, m);
    ReportInput input;
    input.project = &capstone.project;
    input.ledger = &view;
    input.resources = &resources;
    input.generated = "2026-03-01T12:00:00Z";
    EXPECT_TRUE(render_report(input));
  }
};

TEST_F(LedgerTypes, EveryKeyAsEveryTypeIsReadOrNamedAndTheOtherRecordsCount) {
  const std::vector<Json> records = records_of(capstone);
  ASSERT_GE(records.size(), 8u);
  std::size_t tried = 0, refused = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    std::string others, everything;
    for (std::size_t k = 0; k < records.size(); ++k)
      if (k != i) others += records[k].dump() + "\n";
    for (const test::Mutation& mutation : test::mutations_of(records[i])) {
      SCOPED_TRACE(records[i]["kind"].get<std::string>() + " " + mutation.what);
      const LedgerView view = read(mutation.document.dump() + "\n" + others);
      ++tried;
      const bool kept = view.records.size() == records.size();
      EXPECT_TRUE(kept || view.records.size() + 1 == records.size()) << view.records.size();
      refused += !kept;
      const bool named = std::any_of(view.damage.begin(), view.damage.end(), [](const std::string& d) {
        return d.starts_with("line 1: its ") || d.starts_with("line 1: written by");
      });
      EXPECT_TRUE(kept || named) << join(view.damage, " / ");
      for (const std::string& damage : view.damage) EXPECT_EQ(damage, printable(damage));
      if (kept) everything += mutation.document.dump() + "\n";
      if (HasFailure()) return;
    }
    use(read(everything + others));  // all that can be read, at once: rendering is slow
  }
  EXPECT_GT(tried, 1500u);
  EXPECT_GT(refused, tried / 2);
}

TEST_F(LedgerTypes, WhatIsWrongIsSaidWithLineKeyAndExpectedType) {
  Json record = *std::find_if(capstone.ledger.records.begin(), capstone.ledger.records.end(),
                              [](const Record& r) { return r.kind == "measurement"; });
  const auto damage = [&](const char* place, const Json& value) {
    Json changed = record;
    changed[Json::json_pointer(place)] = value;
    return join(read(changed.dump() + "\n").damage, " / ");
  };
  EXPECT_NE(damage("/body/version", 7)
                .find("line 1: its measurement cannot be read: version must be text, not the number 7"),
            std::string::npos)
      << damage("/body/version", 7);
  EXPECT_NE(
      damage("/body/build/seconds", "soon").find("build.seconds must be a number, not the text \"soon\""),
      std::string::npos);
  EXPECT_NE(damage("/body/gate_one", "won").find("gate_one must be one of passed, wrong, "),
            std::string::npos);
  EXPECT_NE(
      damage("/body/cases", Json::parse("[{}, 3]")).find("cases[1] must be an object, not the number 3"),
      std::string::npos);
  EXPECT_NE(damage("/body/version", "").find("version must be v1, v2 …, attempt-1 … or t1 …, not empty"),
            std::string::npos);
  EXPECT_NE(damage("/body", 3).find("body must be an object, not the number 3"), std::string::npos);
  EXPECT_NE(damage("/seq", "one").find("its header cannot be read: seq must be a whole number"),
            std::string::npos)
      << damage("/seq", "one");
}

// Two readers may take different ones of two values with one name: a source was checked for one kind and the
// record counted as another.
TEST_F(LedgerTypes, AKeyThatIsThereTwiceIsNoRecord) {
  const Json record = *std::find_if(capstone.ledger.records.begin(), capstone.ledger.records.end(),
                                    [](const Record& r) { return r.kind == "measurement"; });
  for (const char* added : {R"("kind":"checkin",)", R"("body":{"source_sha256":"ffff"},)"}) {
    std::string line = record.dump();
    line.insert(1, added);
    const LedgerView view = read(line + "\n");
    EXPECT_TRUE(view.records.empty());
    ASSERT_EQ(view.damage.size(), 1u);
    EXPECT_TRUE(view.damage[0].starts_with("line 1: not a record: the key \"")) << view.damage[0];
    EXPECT_TRUE(view.damage[0].ends_with("is there twice")) << view.damage[0];
    EXPECT_EQ(verify_ledger(file, scratch.path() / "sources")->size(), 1u);
  }
}

TEST_F(LedgerTypes, AVersionWithoutANameIsNamedByNoText) {
  EXPECT_FALSE(names("v1 was faster than v2", ""));
  LedgerView view = capstone.ledger;
  for (Measurement& m : view.human) m.version.clear();
  use(view);
}

TEST_F(LedgerTypes, JsonNestedTooDeepIsNamed) {
  const int kDeep = 200'000;
  const LedgerView view = read(R"({"seq":1,"kind":"init","machine":"m","body":)" + std::string(kDeep, '[') +
                               std::string(kDeep, ']') + "}\n");
  ASSERT_EQ(view.damage.size(), 1u);
  EXPECT_NE(view.damage[0].find("nested deeper"), std::string::npos) << view.damage[0];
}

}  // namespace
}  // namespace capstone
