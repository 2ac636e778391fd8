#include "harness/project/archive/bundle.h"

#include "harness/project/archive/archive.h"
#include "tests/project/reply/scratch_project.h"

namespace capstone {
namespace {

class BundleTest : public ScratchProject {
 protected:
  std::vector<std::string> unpacked_files(const BundleRequest& request) {
    auto receipt = pack_bundle(project, request, base / "b.tar");
    EXPECT_TRUE(receipt) << (receipt ? "" : render(receipt.error()));
    auto unpacked = unpack_archive(base / "b.tar", base / "plain");
    EXPECT_TRUE(unpacked) << (unpacked ? "" : render(unpacked.error()));
    return unpacked.value_or(Unpacked{}).files;
  }
};

TEST_F(BundleTest, HoldsWhatJudgingNeedsAndNoMore) {
  EXPECT_EQ(unpacked_files({}),
            (std::vector<std::string>{".capstone/bundle.json", ".capstone/ledger.jsonl", "capstone.yaml",
                                      "human/kernel.cu", "human/tile.cuh", "llm/attempt-1/kernel.cu",
                                      "llm/attempt-1/meta.json", "llm/attempt-2/kernel.cu",
                                      "problem/launch.h", "problem/problem.yaml"}));
}

TEST_F(BundleTest, OneAttemptAlone) {
  EXPECT_EQ(
      unpacked_files({{"attempt-2"}, {}, ""}),
      (std::vector<std::string>{".capstone/bundle.json", ".capstone/ledger.jsonl", "capstone.yaml",
                                "llm/attempt-2/kernel.cu", "problem/launch.h", "problem/problem.yaml"}));
}

TEST_F(BundleTest, WhateverAKernelIncludesComesAlongAndWhatDoesNotIsNamed) {
  for (const char* path : {"human/add.inl", "human/table.inc", "human/steps/one", "human/old/kernel.cu",
                           "llm/attempt-2/part.def"})
    put(path, "int x;\n");
  put("human/weights.bin", std::string("a\0b", 3));
  put("human/huge.inc", std::string((16u << 20) + 1, ' '));
  put("human/.hidden.h", "int y;\n");
  put("human/table.out", "1, 2\n");
  auto receipt = pack_bundle(project, {{"human", "attempt-2"}, {}, ""}, base / "b.tar");
  ASSERT_TRUE(receipt) << render(receipt.error());
  EXPECT_EQ(
      unpacked_files({{"human", "attempt-2"}, {}, ""}),
      (std::vector<std::string>{".capstone/bundle.json", ".capstone/ledger.jsonl", "capstone.yaml",
                                "human/add.inl", "human/kernel.cu", "human/old/kernel.cu", "human/steps/one",
                                "human/table.inc", "human/tile.cuh", "llm/attempt-2/kernel.cu",
                                "llm/attempt-2/part.def", "problem/launch.h", "problem/problem.yaml"}));
  std::vector<std::string> left_out;
  for (const SkippedFile& file : receipt->left_out) left_out.push_back(file.path + ": " + file.reason);
  EXPECT_EQ(left_out, (std::vector<std::string>{
                          "human/.hidden.h: a hidden file", "human/table.out: a build product",
                          "human/huge.inc: larger than 16 MiB", "human/weights.bin: not a text file"}));
}

TEST_F(BundleTest, AKernelInAFolderBelowIsNotTheCandidates) {
  fs::remove(project.root / "human/kernel.cu");
  put("human/old/kernel.cu", "int x;\n");
  EXPECT_FALSE(pack_bundle(project, {{"human"}, {}, ""}, base / "b.tar"));
}

TEST_F(BundleTest, RoundTrip) {
  BundleRequest request{{"human"}, Json{{"min_samples", 50}, {"reason", "on the cluster"}}, "0.1.0"};
  ASSERT_TRUE(pack_bundle(project, request, base / "b.tar"));
  auto bundle = unpack_bundle(base / "b.tar", base / "there");
  ASSERT_TRUE(bundle) << render(bundle.error());
  EXPECT_EQ(bundle->root, base / "there");
  EXPECT_EQ(bundle->candidates, request.candidates);
  EXPECT_EQ(bundle->options, request.options);
  EXPECT_EQ(bundle->problem_id, "scale_rows");
  EXPECT_EQ(bundle->problem_digest, project.config.problem_digest);
  EXPECT_EQ(bundle->tool, "0.1.0");
  EXPECT_EQ(fs::file_size(bundle->root / ".capstone/ledger.jsonl"), 0u);
  EXPECT_EQ(read_file(bundle->root / "human/kernel.cu").value(), kFiles.at("human/kernel.cu"));
  EXPECT_FALSE(fs::exists(base / "there.bundle"));
}

TEST_F(BundleTest, IsTheSameBytesASecondTime) {
  ASSERT_TRUE(pack_bundle(project, {}, base / "a.tar"));
  ASSERT_TRUE(pack_bundle(project, {}, base / "b.tar"));
  EXPECT_EQ(read_file(base / "a.tar").value(), read_file(base / "b.tar").value());
}

TEST_F(BundleTest, CandidatesMustExist) {
  for (const char* name : {"attempt-3", "attempt-", "robot", "attempt-2x"}) {
    auto packed = pack_bundle(project, {{name}, {}, ""}, base / "b.tar");
    ASSERT_FALSE(packed) << name;
    EXPECT_NE(packed.error().what.find(name), std::string::npos);
  }
  EXPECT_FALSE(pack_bundle(project, {{}, {}, ""}, base / "b.tar"));
}

TEST_F(BundleTest, AnExistingFolderIsNotTouched) {
  ASSERT_TRUE(pack_bundle(project, {}, base / "b.tar"));
  EXPECT_FALSE(unpack_bundle(base / "b.tar", project.root));
  EXPECT_EQ(read_file(project.root / "worklog.md").value(), kFiles.at("worklog.md"));
}

TEST_F(BundleTest, AnEmptyFolderIsFilled) {
  ASSERT_TRUE(pack_bundle(project, {}, base / "b.tar"));
  fs::create_directory(base / "there");
  EXPECT_TRUE(unpack_bundle(base / "b.tar", base / "there"));
}

TEST_F(BundleTest, AnotherArchiveOrAFilledLedgerIsRefusedAndLeavesNothing) {
  auto tar = pack_archive({{"a.txt", "a"}}, Packing::kTar, 0).value();
  ASSERT_TRUE(write_file_atomic(base / "x.tar", tar));
  auto bundle = unpack_bundle(base / "x.tar", base / "there");
  ASSERT_FALSE(bundle);
  EXPECT_NE(bundle.error().what.find("not a bundle"), std::string::npos);
  tar = pack_archive({{"capstone.yaml", "a"},
                      {"problem/problem.yaml", "a"},
                      {".capstone/bundle.json", "{}"},
                      {".capstone/ledger.jsonl", "{\"seq\":0}\n"}},
                     Packing::kTar, 0)
            .value();
  ASSERT_TRUE(write_file_atomic(base / "x.tar", tar));
  EXPECT_EQ(unpack_bundle(base / "x.tar", base / "there").error().what,
            "not a bundle: its ledger is not empty");
  EXPECT_FALSE(fs::exists(base / "there"));
  EXPECT_FALSE(fs::exists(base / "there.bundle"));
}

TEST_F(BundleTest, ANewerFormatSaysUpdate) {
  auto tar = pack_archive({{"capstone.yaml", "a"},
                           {"problem/problem.yaml", "a"},
                           {".capstone/bundle.json", "{\"schema\": 2}"},
                           {".capstone/ledger.jsonl", ""}},
                          Packing::kTar, 0)
                 .value();
  ASSERT_TRUE(write_file_atomic(base / "x.tar", tar));
  EXPECT_EQ(unpack_bundle(base / "x.tar", base / "there").error().code, ExitCode::kEnvironment);
}

}  // namespace
}  // namespace capstone
