#include <gtest/gtest.h>

#include "harness/base/text.h"
#include "harness/project/project.h"
#include "tests/project/samples.h"

namespace capstone {
namespace {

using namespace test;

const std::string kDigest(64, 'd');

std::string good() {
  return "schema: 1\n"
         "problem:\n"
         "  id: softmax\n"
         "  digest: " +
         kDigest +
         "\n"
         "members:\n"
         "  - name: Ada\n"
         "    id: 007\n";
}

class Config : public ::testing::Test {
 protected:
  Scratch scratch;
  const std::filesystem::path file = scratch / "capstone.yaml";

  Result<ProjectConfig> read(const std::string& text) {
    put(file, text);
    return read_config(file);
  }
  // Expects an error at line:column; returns it.
  Error error_at(const std::string& text, const std::string& position) {
    auto config = read(text);
    EXPECT_FALSE(config) << text;
    if (config) return {};
    EXPECT_EQ(config.error().where, file.string() + ":" + position) << config.error().what;
    return config.error();
  }
};

TEST_F(Config, SurvivesTextAndBackWhateverTheNames) {
  ProjectConfig config;
  config.problem_id = "softmax";
  config.problem_digest = kDigest;
  config.started_from = "L3_memory/softmax/2_online.cu";
  config.created = "2026-03-01T09:30:00Z";
  config.members = {{"Ada \"the first\" Lovelace", "0012", "ada@example.org"},
                    {"- x: # null", "", ""},
                    {"José\nÑandú 日本 \\", "~", "'"}};
  auto back = read(config_text(config));
  ASSERT_TRUE(back) << render(back.error());
  EXPECT_EQ(config_text(*back), config_text(config));
  ASSERT_EQ(back->members.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(back->members[i].name, config.members[i].name);
    EXPECT_EQ(back->members[i].id, config.members[i].id);
    EXPECT_EQ(back->members[i].email, config.members[i].email);
  }
  EXPECT_EQ(back->started_from, config.started_from);
  EXPECT_EQ(back->created, config.created);
}

TEST_F(Config, AHandWrittenOneIsRead) {
  auto config = read(good());
  ASSERT_TRUE(config) << render(config.error());
  EXPECT_EQ(config->members.at(0).id, "007") << "text, not a number";
  EXPECT_TRUE(
      read(replace_all(good(), "members:\n  - name: Ada\n    id: 007\n", "members: []\n"))->members.empty());
}

TEST_F(Config, AMistypedKeyIsAnsweredWithTheNearest) {
  EXPECT_EQ(error_at(replace_all(good(), "members:", "memebers:"), "5:1").hint, "did you mean `members`?");
  EXPECT_EQ(error_at(replace_all(good(), "name:", "nmae:"), "6:5").hint, "did you mean `name`?");
  EXPECT_EQ(error_at(replace_all(good(), "  digest:", "  digst:"), "4:3").hint, "did you mean `digest`?");
  EXPECT_EQ(error_at(good() + "colour: red\n", "8:1").hint,
            "known here: schema, problem, members, started_from, created");
}

TEST_F(Config, ARepeatedKeyIsAnError) { error_at(good() + "schema: 1\n", "8:1"); }

TEST_F(Config, WhatIsMissingIsNamed) {
  EXPECT_EQ(error_at(replace_all(good(), "schema: 1\n", ""), "1:1").what, "`schema` is missing");
  EXPECT_EQ(error_at(replace_all(good(), "  id: softmax\n", ""), "3:3").what, "`id` is missing");
  EXPECT_EQ(error_at("schema: 1\nmembers: []\n", "1:1").what, "`problem` is missing");
  EXPECT_EQ(error_at(replace_all(good(), "name: Ada", "name: \"\""), "6:11").what, "`name` is empty");
  EXPECT_EQ(error_at(replace_all(good(), "- name: Ada\n    id", "- id"), "6:5").what, "`name` is missing");
}

TEST_F(Config, AWrongTypeIsAnError) {
  error_at(replace_all(good(), "name: Ada", "name: [Ada]"), "6:11");
  error_at("schema: 1\nproblem: softmax\nmembers: []\n", "2:10");
  error_at(replace_all(good(), "members:\n  - name: Ada\n    id: 007\n", "members: Ada\n"), "5:10");
  error_at("- a\n- b\n", "1:1");
}

TEST_F(Config, ADigestMustBeOne) {
  EXPECT_NE(error_at(replace_all(good(), kDigest, "abc"), "4:11").hint, "");
  error_at(replace_all(good(), kDigest, std::string(64, 'g')), "4:11");
}

TEST_F(Config, ANewerSchemaSaysSo) {
  EXPECT_NE(error_at(replace_all(good(), "schema: 1", "schema: 2"), "1:9").hint.find("newer"),
            std::string::npos);
  EXPECT_EQ(error_at(replace_all(good(), "schema: 1", "schema: one"), "1:9").hint, "");
}

TEST_F(Config, BadYamlEmptyAndHugeFilesAreErrors) {
  EXPECT_FALSE(read("schema: [1\n"));
  EXPECT_FALSE(read(""));
  EXPECT_FALSE(read(good() + "# " + std::string(100000, 'x') + "\n"));
  EXPECT_FALSE(read("a: &a [*a]\n"));
  EXPECT_FALSE(read_config(scratch / "none.yaml"));
}

class Open : public ::testing::Test {
 protected:
  Scratch scratch;
  const std::filesystem::path root = std::filesystem::canonical(scratch.path()) / "project";

  void SetUp() override {
    put_problem(root / "problem");
    ProjectConfig config;
    config.problem_id = "twice";
    config.problem_digest = digest_of_definition(root / "problem").value();
    config.members = {{"Ada", "", ""}};
    put(root / "capstone.yaml", config_text(config));
  }
};

TEST_F(Open, FindsTheProjectFromItsFolderFromBelowAndFromAFile) {
  put(root / "human/deep/kernel.cu", "");
  for (const auto& start : {root, root / "human/deep", root / "human/deep/kernel.cu"}) {
    auto project = open_project(start);
    ASSERT_TRUE(project) << render(project.error());
    EXPECT_EQ(project->root, root);
    EXPECT_EQ(project->problem.id, "twice");
    EXPECT_FALSE(project->problem_changed);
    EXPECT_TRUE(require_pinned_problem(*project));
  }
}

TEST_F(Open, OutsideOfAProjectTheErrorNamesTheStartAndInit) {
  auto project = open_project(scratch.path());
  ASSERT_FALSE(project);
  EXPECT_EQ(project.error().where, root.parent_path().string());
  EXPECT_NE(project.error().hint.find("capstone init"), std::string::npos);
  EXPECT_NE(project.error().hint.find(root.parent_path().string() + ", "), std::string::npos)
      << "every path tried";
  EXPECT_NE(project.error().hint.find(", /)"), std::string::npos) << "up to the root";
  EXPECT_FALSE(open_project(scratch / "no/such/folder"));
}

TEST_F(Open, AChangedProblemIsFlaggedReadableAndRefusedForVerdicts) {
  put(root / "problem/reference.py", "import torch  # a kinder reference\n");
  auto project = open_project(root);
  ASSERT_TRUE(project) << render(project.error());
  EXPECT_TRUE(project->problem_changed);
  auto judged = require_pinned_problem(*project);
  ASSERT_FALSE(judged);
  EXPECT_EQ(judged.error().where, (root / "problem").string());
  EXPECT_NE(judged.error().hint.find("git checkout"), std::string::npos);
}

TEST_F(Open, AFileThatIsNoPartOfTheDefinitionIsNoChange) {
  put(root / "problem/launch.h", "// generated");
  put(root / "problem/.swp", "x");
  EXPECT_FALSE(open_project(root)->problem_changed);
}

TEST_F(Open, ABrokenProblemIsAnErrorThatSaysHowToRestoreIt) {
  put(root / "problem/problem.yaml", "schema: 1\n");
  auto project = open_project(root);
  ASSERT_FALSE(project);
  EXPECT_NE(project.error().what.find("pinned problem"), std::string::npos);
  EXPECT_NE(project.error().hint.find("a new project for twice"), std::string::npos);
}

}  // namespace
}  // namespace capstone
