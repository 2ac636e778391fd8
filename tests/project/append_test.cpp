#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <set>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "tests/project/samples.h"

namespace capstone {
namespace {

using namespace test;

std::vector<std::string> lines_in(const fs::path& path) {
  auto lines = split(slurp(path), '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

std::vector<fs::path> quarantined(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().filename().string().find(".torn-") != std::string::npos) found.push_back(entry.path());
  return found;
}

TEST(Append, FillsInTheRecordAndLinksTheChain) {
  Scratch scratch;
  const fs::path ledger = scratch / ".capstone/ledger.jsonl";
  auto first = append_record(ledger, "init", {{"a", 1}}, kLaptop);
  auto second = append_record(ledger, "checkin", {{"b", 2}}, kLaptop);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->seq, 1);
  EXPECT_EQ(first->previous, "");
  EXPECT_EQ(second->seq, 2);
  const auto lines = lines_in(ledger);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(second->previous, sha256_hex(lines[0]));
  EXPECT_EQ(second->machine, kLaptop);
  EXPECT_EQ(second->time.size(), 20u);
  EXPECT_FALSE(second->tool.empty());
  const Json written = Json::parse(lines[1]);
  EXPECT_EQ(written["schema_version"], kLedgerSchema);
  EXPECT_EQ(written["kind"], "checkin");
  EXPECT_EQ(written["body"]["b"], 2);
}

TEST(Append, EachMachineHasItsOwnChain) {
  Scratch scratch;
  const fs::path ledger = scratch / "ledger.jsonl";
  ASSERT_TRUE(append_record(ledger, "init", {}, kLaptop));
  ASSERT_TRUE(append_record(ledger, "checkin", {}, kCluster));
  ASSERT_TRUE(append_record(ledger, "checkin", {}, kCluster));
  auto back = append_record(ledger, "checkin", {}, kLaptop);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->seq, 2);
  EXPECT_EQ(back->previous, sha256_hex(lines_in(ledger)[0]));
  EXPECT_TRUE(read_ledger(ledger)->damage.empty());
}

TEST(Append, ATornLineIsMovedAsideAndTheChainGoesOn) {
  Scratch scratch;
  const fs::path ledger = scratch / "ledger.jsonl";
  ASSERT_TRUE(append_record(ledger, "init", {}, kLaptop));
  const std::string torn = R"({"schema_version":1,"seq":2,"time":"20)";
  std::ofstream(ledger, std::ios::app) << torn;
  auto next = append_record(ledger, "checkin", {}, kLaptop);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->seq, 2);
  auto view = read_ledger(ledger);
  EXPECT_TRUE(view->damage.empty()) << view->damage.front();
  EXPECT_EQ(view->records.size(), 2u);
  ASSERT_EQ(quarantined(scratch.path()).size(), 1u);
  EXPECT_EQ(slurp(quarantined(scratch.path())[0]), torn) << "nothing is lost";
}

TEST(Append, ALastLineOfRubbishIsTornEvenWithANewline) {
  Scratch scratch;
  const fs::path ledger = scratch / "ledger.jsonl";
  ASSERT_TRUE(append_record(ledger, "init", {}, kLaptop));
  const std::string zeros(100, '\0');  // some file systems leave zeros after a power failure
  std::ofstream(ledger, std::ios::app) << zeros << "\n";
  ASSERT_TRUE(append_record(ledger, "checkin", {}, kLaptop));
  EXPECT_TRUE(read_ledger(ledger)->damage.empty());
  ASSERT_EQ(quarantined(scratch.path()).size(), 1u);
  EXPECT_EQ(slurp(quarantined(scratch.path())[0]), zeros + "\n");
}

TEST(Append, TwoTornLinesWithinASecondGetTwoFiles) {
  Scratch scratch;
  const fs::path ledger = scratch / "ledger.jsonl";
  for (const char* torn : {"{\"first", "{\"second"}) {
    std::ofstream(ledger, std::ios::app) << torn;
    ASSERT_TRUE(append_record(ledger, "checkin", {}, kLaptop));
  }
  EXPECT_EQ(quarantined(scratch.path()).size(), 2u);
}

TEST(Append, AWholeRecordWithoutItsNewlineIsKept) {
  Scratch scratch;
  const fs::path ledger = scratch / "ledger.jsonl";
  ASSERT_TRUE(append_record(ledger, "init", {}, kLaptop));
  fs::resize_file(ledger, fs::file_size(ledger) - 1);
  EXPECT_TRUE(read_ledger(ledger)->damage.empty());
  auto next = append_record(ledger, "checkin", {}, kLaptop);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->seq, 2);
  EXPECT_EQ(lines_in(ledger).size(), 2u);
  EXPECT_TRUE(quarantined(scratch.path()).empty());
}

TEST(Append, AFullDiskLeavesTheLedgerAsItWas) {
  Scratch scratch;
  const fs::path ledger = scratch / "ledger.jsonl";
  ASSERT_TRUE(append_record(ledger, "init", {}, kLaptop));
  const std::string before = slurp(ledger);
  pid_t child = in_other_process([&] {
    limit_file_size(before.size() + 1000);  // the first part of the line still fits
    auto result = append_record(ledger, "checkin", {{"text", std::string(50000, 'x')}}, kLaptop);
    if (result) return 1;
    if (result.error().where != ledger.string()) return 2;
    return result.error().hint.find("was not changed") == std::string::npos ? 3 : 0;
  });
  EXPECT_EQ(exit_code_of(child), 0);
  EXPECT_EQ(slurp(ledger), before);
  ASSERT_TRUE(append_record(ledger, "checkin", {}, kLaptop)) << "and goes on once there is room";
  EXPECT_TRUE(read_ledger(ledger)->damage.empty());
}

TEST(Append, ManyProcessesAtOnceLoseNothing) {
  Scratch scratch;
  const fs::path ledger = scratch / "ledger.jsonl";
  constexpr int kProcesses = 4, kEach = 25;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p)
    children.push_back(in_other_process([&, p] {
      for (int i = 0; i < kEach; ++i)
        if (!append_record(ledger, "checkin", {{"p", p}, {"i", i}}, p % 2 ? kLaptop : kCluster)) return 1;
      return 0;
    }));
  for (pid_t child : children) EXPECT_EQ(exit_code_of(child), 0);
  auto view = read_ledger(ledger);
  ASSERT_TRUE(view);
  EXPECT_TRUE(view->damage.empty()) << view->damage.front();
  std::set<std::pair<int, int>> seen;
  for (const Record& record : view->records) seen.emplace(record.body["p"], record.body["i"]);
  EXPECT_EQ(seen.size(), std::size_t{kProcesses * kEach});
}

TEST(Append, BytesThatAreNotUtf8AreReplacedAndNotRefused) {
  Scratch scratch;
  const fs::path ledger = scratch / "ledger.jsonl";
  ASSERT_TRUE(append_record(ledger, "checkin", {{"log", "caf\xE9"}}, kLaptop));
  EXPECT_EQ(read_ledger(ledger)->records.at(0).body["log"], "caf\xEF\xBF\xBD");
}

TEST(Append, APlaceThatCannotBeWrittenIsAnError) {
  Scratch scratch;
  put(scratch / "file", "");
  auto result = append_record(scratch / "file/ledger.jsonl", "init", {}, kLaptop);
  ASSERT_FALSE(result);
  EXPECT_FALSE(result.error().where.empty());
}

TEST(Append, ALongLedgerIsAppendedToAndRead) {
  Scratch scratch;
  const fs::path ledger = scratch / "ledger.jsonl";
  Measurement m = measurement("v1");
  auto& samples = m.measured->arms[0].samples_ms;
  samples.assign(5, std::vector<double>(500));
  for (auto& restart : samples)
    for (std::size_t i = 0; i < restart.size(); ++i) restart[i] = 1 + std::sin(static_cast<double>(i)) * 1e-3;
  ASSERT_TRUE(append_record(ledger, "measurement", m, kLaptop));
  const std::string line = lines_in(ledger)[0];
  ASSERT_GT(line.size(), 40000u);
  {
    std::ofstream file(ledger, std::ios::app);
    Json record = Json::parse(line);
    std::string previous = sha256_hex(line);
    for (int seq = 2; seq <= 1000; ++seq) {
      record["seq"] = seq;
      record["previous"] = previous;
      const std::string text = record.dump();
      previous = sha256_hex(text);
      file << text << "\n";
    }
  }
  for (int i = 0; i < 10; ++i) {
    auto appended = append_record(ledger, "checkin", {}, kLaptop);
    ASSERT_TRUE(appended);
    EXPECT_EQ(appended->seq, 1001 + i);
  }
  auto view = read_ledger(ledger);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->human.size(), 1000u);
  EXPECT_TRUE(view->damage.empty());
}

TEST(KeepSource, IsNamedByItsContentAndWrittenOnce) {
  Scratch scratch;
  auto digest = keep_source(scratch / "sources", "__global__ void k() {}\n");
  ASSERT_TRUE(digest);
  const fs::path kept = scratch / "sources" / (*digest + ".cu");
  EXPECT_EQ(sha256_file(kept).value(), *digest);
  const auto written = fs::last_write_time(kept) - std::chrono::hours(1);
  fs::last_write_time(kept, written);
  EXPECT_EQ(keep_source(scratch / "sources", "__global__ void k() {}\n").value(), *digest);
  EXPECT_EQ(fs::last_write_time(kept), written) << "not written again";
  EXPECT_NE(keep_source(scratch / "sources", "other").value(), *digest);
}

}  // namespace
}  // namespace capstone
