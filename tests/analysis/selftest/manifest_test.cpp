// Manifests are read strictly, and the corpus is complete: every row of the judge's table has a case.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "harness/analysis/selftest/corpus.h"
#include "harness/base/files.h"
#include "harness/base/text.h"

namespace capstone {
namespace {

Resources resources() {
  Resources all;
  all.share = CAPSTONE_SHARE;
  return all;
}

constexpr const char* kGood = R"(schema: 1
row: 3
what: it caches
fools: whoever repeats pointers
problem: softmax
emulated: {caught: [WRONG, CRASH]}
cuda-in-process: {not_fooled: true}
cuda-replayed: {falls_back: in-process, because: "it reads back"}
)";

// The manifest above with one part replaced.
Result<std::vector<CorpusCase>> loaded(const std::string& part = {}, const std::string& replacement = {}) {
  const fs::path folder =
      fs::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
  fs::remove_all(folder);
  fs::create_directories(folder);
  std::string text = kGood;
  if (!part.empty()) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
    text = replace_all(text, part, replacement);
  }
  EXPECT_TRUE(write_file_atomic(folder / "manifest.yaml", text));
  EXPECT_TRUE(write_file_atomic(folder / "kernel.cu", "// nothing\n"));
  return load_manifest(folder, resources());
}

// "LINE:COLUMN what" of the error.
std::string complaint(const std::string& part, const std::string& replacement) {
  auto result = loaded(part, replacement);
  if (result) return "no complaint";
  const std::string& where = result.error().where;
  const std::size_t file = where.find("manifest.yaml:");
  return (file == std::string::npos ? where : where.substr(file + 14)) + " " + result.error().what;
}

TEST(Manifest, IsReadWhole) {
  auto result = loaded();
  ASSERT_TRUE(result) << render(result.error());
  const CorpusCase& one = result->front();
  EXPECT_EQ(one.row, 3);
  EXPECT_EQ(one.emulated.kind, Expectation::Kind::kCaught);
  EXPECT_EQ(one.emulated.verdicts, (std::vector<GateOne>{GateOne::kWrong, GateOne::kCrashed}));
  EXPECT_EQ(to_string(one.emulated), "WRONG or CRASH");
  EXPECT_EQ(one.cuda_in_process.kind, Expectation::Kind::kNotFooled);
  EXPECT_EQ(one.cuda_replayed.kind, Expectation::Kind::kFallsBack);
  EXPECT_EQ(one.cuda_replayed.because, "it reads back");
}

TEST(Manifest, EveryMistakeHasItsPlace) {
  EXPECT_EQ(complaint("fools:", "foolz:"), "4:1 unknown key `foolz`");
  EXPECT_EQ(complaint("row: 3", "row: 29"), "2:6 `row` must be a number from 1 to 28, not `29`");
  EXPECT_EQ(complaint("[WRONG, CRASH]", "[BAD]"), "6:21 `BAD` is not a verdict that catches a trick");
  EXPECT_EQ(complaint("[WRONG, CRASH]", "[PASS]"), "6:21 `PASS` is not a verdict that catches a trick");
  EXPECT_EQ(complaint("{not_fooled: true}", "{passes: true}"), "7:18 a trick must not simply pass");
  EXPECT_EQ(complaint("{not_fooled: true}", "{not_fooled: maybe}"), "7:31 `not_fooled` can only be true");
  EXPECT_EQ(complaint("{not_fooled: true}", "{falls_back: in-process}"),
            "7:18 only `cuda-replayed` can fall back");
  EXPECT_EQ(complaint("{not_fooled: true}", "{}"), "7:18 exactly one outcome must be promised");
  EXPECT_EQ(complaint("{not_fooled: true}", "{not_fooled: true, label: x}"),
            "7:18 exactly one outcome must be promised");
  EXPECT_EQ(complaint("problem: softmax", "problem: softmaxx"), "5:10 there is no problem `softmaxx`");
  EXPECT_EQ(complaint("row: 3", "row: honest"), "1:1 an honest kernel has no `fools`");
  EXPECT_EQ(complaint("fools: whoever repeats pointers\n", ""),
            "1:1 `fools` is missing: say which judge the trick deceives");
  EXPECT_EQ(complaint("schema: 1", "schema: 2"), "1:9 this capstone reads schema 1");
}

TEST(Manifest, CaseWithoutKernelIsNamed) {
  const fs::path folder = fs::path(testing::TempDir()) / "empty_case";
  fs::create_directories(folder);
  ASSERT_TRUE(write_file_atomic(folder / "manifest.yaml", kGood));
  auto result = load_manifest(folder, resources());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().what, "the case has no kernel.cu and no kernel.py");
}

TEST(Corpus, HasEveryRowAndItsFolderNamesSayWhich) {
  auto corpus = load_corpus(resources());
  ASSERT_TRUE(corpus) << render(corpus.error());
  std::set<int> rows;
  for (const CorpusCase& corpus_case : *corpus) {
    rows.insert(corpus_case.row);
    const std::string prefix = corpus_case.honest() ? "honest_"
                                                    : std::string(corpus_case.row < 10 ? "0" : "") +
                                                          std::to_string(corpus_case.row) + "_";
    EXPECT_TRUE(corpus_case.name.starts_with(prefix)) << corpus_case.name;
  }
  for (int row = 0; row <= 28; ++row) EXPECT_EQ(rows.count(row), 1u) << "row " << row << " has no case";
}

TEST(Corpus, HasEveryHonestKindAndAllReferenceKernels) {
  auto corpus = load_corpus(resources());
  ASSERT_TRUE(corpus) << render(corpus.error());
  std::set<std::string> names;
  for (const CorpusCase& corpus_case : *corpus) names.insert(corpus_case.name);
  for (const char* kind :
       {"other_summation_order", "benign_atomics", "malloc_async", "static_scratch", "grid_stride",
        "large_shared_memory", "joined_streams", "graph_per_call", "warp_specialised", "prepare"})
    EXPECT_EQ(names.count(std::string("honest_") + kind), 1u) << kind;
  EXPECT_EQ(names.count("honest_reference_kernels/softmax/01_three_pass"), 1u);
  EXPECT_EQ(names.count("honest_reference_kernels/sgemm/09_warp_tile"), 1u);
}

}  // namespace
}  // namespace capstone
