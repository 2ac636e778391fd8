// The student's way from init to submit, as one would type it.
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <regex>

#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

using WholeLoop = CliTest;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
    ++found;
  return found;
}

// What a browser would fetch or run. The names of XML namespaces are no addresses.
void expect_self_contained(const std::string& html) {
  std::string text = std::regex_replace(html, std::regex("xmlns(:[a-z]+)?=[\"'][^\"']*[\"']"), "");
  EXPECT_EQ(count(text, "<script"), 0u);
  EXPECT_EQ(count(text, "http://"), 0u);
  EXPECT_EQ(count(text, "https://"), 0u);
  EXPECT_EQ(count(text, "@import"), 0u);
}

void walk(const fs::path& root, const std::vector<std::vector<std::string>>& commands, const How& how,
          const std::function<Outcome(std::vector<std::string>, How)>& run) {
  for (const auto& command : commands) {
    How here = how;
    here.cwd = root;
    Outcome outcome = run(command, here);
    ASSERT_EQ(outcome.code, 0) << command.front() << ": " << outcome;
  }
}

TEST_F(WholeLoop, BiasGeluLayernormFromInitToSubmit) {
  fs::path root = project("project", "02");
  // Bytes that no earlier run has built: nothing comes from the cache.
  std::string mine = slurp(root / "human" / "kernel.cu") + "// " + std::to_string(::getpid()) + "\n";
  spit(root / "human" / "kernel.cu", mine);
  auto run = [this](std::vector<std::string> arguments, How how) {
    return capstone(std::move(arguments), how);
  };
  walk(root, {{"predict", "memory", "--speedup", "2.5", "--because", "1.7 FLOP per byte"}}, {}, run);
  Outcome measured = capstone({"measure", "-m", "one block a row", "--backend", "emulated"}, {.cwd = root});
  ASSERT_EQ(measured.code, 0) << measured;
  EXPECT_TRUE(says(measured.out, "human v1"));
  EXPECT_TRUE(says(measured.out, "PASS (20/20 cases)"));
  EXPECT_TRUE(says(measured.out, "NOT JUDGED"));
  EXPECT_TRUE(says(measured.out, "next: ask the machine: capstone llm prompt"));
  EXPECT_EQ(measured.both().find('\x1b'), std::string::npos) << "colour without a terminal";
  walk(root, {{"llm", "prompt"}}, {}, run);
  EXPECT_TRUE(says(slurp(root / "llm" / "prompt.md"), "launch("));
  fs::path rung = fs::path(CAPSTONE_SOURCE_DIR) /
                  "reference_kernels/W4_serving/bias_gelu_layernorm/01_unfused_two_kernels.cu";
  std::string reply = "Sure! Two kernels are enough here:\n\n```cuda\n" + slurp(rung) +
                      "```\n\nIt should be about 2x faster.\n";
  spit(home_ / "reply.md", reply);
  Outcome added = capstone(
      {"llm", "add", (home_ / "reply.md").string(), "--model", "some-model 1", "--backend", "emulated"},
      {.cwd = root});
  ASSERT_EQ(added.code, 0) << added;
  EXPECT_TRUE(says(added.out, "llm attempt-1"));
  EXPECT_TRUE(says(added.out, "first-try facts of attempt 1: compiled: yes · correct: yes"));
  EXPECT_EQ(slurp(root / "llm" / "attempt-1" / "reply.md"), reply) << "a reply is filed byte for byte";
  EXPECT_EQ(slurp(root / "llm" / "attempt-1" / "kernel.cu"), slurp(rung));
  walk(root, {{"report"}, {"submit", "--anyway"}}, {}, run);
  EXPECT_EQ(run({"check"}, {.cwd = root}).code, 1) << "no question of the worklog is answered yet";
  expect_ledger_intact(root);

  std::string html = slurp(root / "report" / "worklog.html");
  for (int section = 1; section <= 5; ++section)
    EXPECT_TRUE(says(html, "id=\"section-" + std::to_string(section) + "\""));
  const char* path = std::getenv("PATH");
  if (path && find_program("gnuplot", path)) {
    EXPECT_GE(count(html, "<svg"), 1u) << "plots are inline";
  }
  expect_self_contained(html);
  EXPECT_TRUE(says(html, "one block a row")) << "the reason of a version is in the worklog";
  EXPECT_EQ(records(root, "measurement").size(), 2u);
  EXPECT_TRUE(records(root, "prediction").front()["body"]["before_first_measurement"].get<bool>());
}

class FirstRung : public CliTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(FirstRung, PassesGateOneOnTheEmulatedBackend) {
  fs::path root = project("project", "01", GetParam());
  Outcome measured = capstone({"measure", "--backend", "emulated"}, {.cwd = root});
  EXPECT_EQ(measured.code, 0) << measured;
  EXPECT_TRUE(says(measured.out, "PASS"));
  EXPECT_TRUE(says(measured.out, "NOT JUDGED"));
  expect_ledger_intact(root);
}

INSTANTIATE_TEST_SUITE_P(Problem, FirstRung, ::testing::Values("sgemm", "softmax", "conv_bias_scale_relu"),
                         [](const auto& one) { return std::string(one.param); });

TEST_F(WholeLoop, RunsWithoutACudaToolkit) {
  fs::path cache = fs::path(CAPSTONE_TEST_CACHE) / "no_toolkit";
  fs::create_directories(cache);
  std::string script = std::string(CAPSTONE_SOURCE_DIR) + "/scripts/fetch_cuda_headers.sh";
  Outcome fetched = program({"bash", script, cache.string()}, {.patience = std::chrono::seconds(60)});
  if (fetched.code != 0)
    GTEST_SKIP() << "CUDA's headers are not in the cache and cannot be fetched: " << fetched.err;
  How bare{.env = {{"CAPSTONE_IGNORE_TOOLKIT", "1"}, {"CAPSTONE_CACHE", cache.string()}}};
  fs::path root = project("project", "02");
  auto run = [this](std::vector<std::string> arguments, How how) {
    return capstone(std::move(arguments), how);
  };
  spit(home_ / "reply.md", "```cuda\n" + slurp(root / "human" / "kernel.cu") + "```\n");
  walk(root,
       {{"doctor"},
        {"predict", "memory"},
        {"measure", "-m", "first"},
        {"llm", "prompt"},
        {"llm", "add", (home_ / "reply.md").string(), "--model", "m"},
        {"report"},
        {"submit", "--anyway"},
        {"ledger", "--verify"}},
       bare, run);
  for (const Json& record : records(root, "measurement")) EXPECT_EQ(record["body"]["backend"], "emulated");
}

TEST_F(WholeLoop, WithoutToolkitAndHeadersTheHintNamesTheScript) {
  fs::path root = project("project", "02");
  Outcome measured =
      capstone({"measure", "--backend", "emulated"},
               {.cwd = root,
                .env = {{"CAPSTONE_IGNORE_TOOLKIT", "1"}, {"CAPSTONE_CACHE", (home_ / "cache").string()}}});
  EXPECT_EQ(measured.code, 3) << measured;
  EXPECT_TRUE(says(measured.err, "error: "));
  EXPECT_TRUE(says(measured.err, "fetch_cuda_headers.sh"));
  expect_ledger_intact(root);
}

}  // namespace
}  // namespace capstone::cli_test
