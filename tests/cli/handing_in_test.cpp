// What leaves the project: submissions, bundles for another machine, and a mentor's folder of both.
#include <algorithm>
#include <map>

#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

using Submit = CliTest;
class Bundle : public CliTest {
 protected:
  // `bundle` with one of its files changed.
  void tamper(const fs::path& bundle, const std::string& file, const std::string& from,
              const std::string& to) const {
    const fs::path inside = home_ / "inside";
    fs::create_directories(inside);
    ASSERT_EQ(program({"tar", "-xf", bundle.string(), "-C", inside.string()}).code, 0);
    std::string text = slurp(inside / file);
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << text;
    spit(inside / file, text.replace(at, from.size(), to));
    ASSERT_EQ(program({"tar", "-cf", bundle.string(), "-C", inside.string(), "capstone.yaml", "problem",
                       "human", ".capstone"})
                  .code,
              0);
    fs::remove_all(inside);
  }
  Outcome judge_here(const fs::path& bundle, std::vector<std::string> more = {}) const {
    std::vector<std::string> words{
        "measure", "--from-bundle", bundle.string(), "--backend", "emulated", "--hidden", "0", "--quick"};
    words.insert(words.end(), more.begin(), more.end());
    return capstone(words);
  }
};
using Grade = CliTest;

std::string wrong_kernel() {
  return kernel(
      "__global__ void one(float* y, int64_t n) { int64_t i = blockIdx.x * 256LL + threadIdx.x; if (i < n) "
      "y[i] = 1; }",
      "  one<<<static_cast<unsigned>((rows * cols + 255) / 256), 256, 0, stream>>>(y, rows * cols);");
}

TEST_F(Submit, TwiceGivesTheSameBytes) {
  fs::path root = project();
  ASSERT_EQ(capstone({"submit", "--anyway", "--out", "../first.tar.gz"}, {.cwd = root}).code, 0);
  ASSERT_EQ(capstone({"submit", "--anyway", "--out", "../second.tar.gz"}, {.cwd = root}).code, 0);
  std::string first = slurp(home_ / "first.tar.gz");
  EXPECT_GT(first.size(), 1000u);
  EXPECT_TRUE(first == slurp(home_ / "second.tar.gz"));
  // With the default name the archive lies in the project: the next one must not pack it.
  ASSERT_EQ(capstone({"submit", "--anyway"}, {.cwd = root}).code, 0);
  Outcome again = capstone({"submit", "--anyway"}, {.cwd = root});
  ASSERT_EQ(again.code, 0) << again;
  int archives = 0;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (!entry.path().string().ends_with(".tar.gz")) continue;
    ++archives;
    EXPECT_TRUE(slurp(entry.path()) == first) << entry.path();
  }
  EXPECT_EQ(archives, 1);
  expect_ledger_intact(root);
}

TEST_F(Submit, SaysWhatIsMissingAndNeedsAnyway) {
  const fs::path root = project_with(wrong_kernel());
  EXPECT_EQ(measure(root, {"--quick"}).code, 1);
  ASSERT_EQ(capstone({"report"}, {.cwd = root}).code, 0);
  spit(root / "worklog.md", slurp(root / "worklog.md") + "\nOne more thought.\n");
  Outcome stopped = capstone({"submit"}, {.cwd = root});
  EXPECT_EQ(stopped.code, 1) << stopped;
  EXPECT_TRUE(says(stopped.err, "human/kernel.cu is v1, which did not pass gate one: WRONG"));
  EXPECT_TRUE(says(stopped.err, "the report shows an older worklog or ledger"));
  EXPECT_TRUE(says(stopped.err, "questions of the worklog are not answered"));
  EXPECT_TRUE(says(stopped.err, "no prediction was recorded"));
  EXPECT_TRUE(says(stopped.err, "capstone submit --anyway"));
  for (const auto& entry : fs::directory_iterator(root))
    EXPECT_FALSE(entry.path().string().ends_with(".tar.gz")) << entry.path();
  ASSERT_EQ(capstone({"report"}, {.cwd = root}).code, 0);
  Outcome current = capstone({"submit", "--dry-run"}, {.cwd = root});
  EXPECT_EQ(current.err.find("the report"), std::string::npos) << current;
  spit(root / "human" / "kernel.cu", wrong_kernel() + "// a change\n");
  EXPECT_TRUE(says(capstone({"submit"}, {.cwd = root}).err, "differs from every measured version"));
  EXPECT_EQ(capstone({"submit", "--anyway"}, {.cwd = root}).code, 0);
}

TEST_F(Submit, DryRunListsEverythingAndWritesNothing) {
  fs::path root = project();
  Outcome listed = capstone({"submit", "--dry-run"}, {.cwd = root});
  EXPECT_EQ(listed.code, 0) << listed;
  for (const char* file : {"worklog.md", "human/kernel.cu", "capstone.yaml", ".capstone/ledger.jsonl"})
    EXPECT_TRUE(says(listed.out, file));
  EXPECT_TRUE(says(listed.out, "nothing was written"));
  for (const auto& entry : fs::directory_iterator(root))
    EXPECT_FALSE(entry.path().string().ends_with(".tar.gz")) << entry.path();
}

TEST_F(Submit, StopsOnSomethingThatLooksLikeAKey) {
  fs::path root = project();
  // Put together here, so that no scanner takes this file for a leak.
  std::string key = std::string("sk-") + "ant-api03-" + "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEfGh";
  spit(root / "worklog.md", slurp(root / "worklog.md") + "\nexport API_KEY=" + key + "\n");
  Outcome stopped = capstone({"submit"}, {.cwd = root});
  EXPECT_EQ(stopped.code, 2) << stopped;
  EXPECT_TRUE(says(stopped.err, "error: something in the project looks like a key"));
  EXPECT_TRUE(says(stopped.err, "--> worklog.md:"));
  EXPECT_TRUE(says(stopped.err, "hint: remove it (and revoke it)"));
  EXPECT_EQ(stopped.both().find(key), std::string::npos) << "the key itself is not printed";
  for (const auto& entry : fs::directory_iterator(root))
    EXPECT_FALSE(entry.path().string().ends_with(".tar.gz")) << entry.path();
  EXPECT_EQ(capstone({"submit", "--anyway", "--allow-secrets"}, {.cwd = root}).code, 0);
  expect_ledger_intact(root);
}

using Output = CliTest;

TEST_F(Output, NeverReplacesWhatAStudentWrote) {
  const fs::path root = project();
  fs::create_directories(root / "llm" / "attempt-1");
  spit(root / "llm" / "attempt-1" / "reply.md", "the reply\n");
  spit(root / "notes.md", "# mine\n");
  spit(home_ / "worklog.html", "not a page\n");
  fs::create_symlink(root / "worklog.md", home_ / "link.tar.gz");
  const std::vector<std::vector<std::string>> writers = {
      {"submit", "--out"},           {"checkin", "--stuck", "here", "--out"},
      {"llm", "prompt", "--out"},    {"measure", "--bundle"},
      {"explain", "--html"},         {"profile", "--csv"},
      {"handout", "--out"},          {"bench", "--filter", "sgemm/02", "--out"},
      {"ladder", "sgemm", "--html"}, {"ladder", "sgemm", "--record"},
      {"fast-p", ".", "--svg"},      {"calibrate", "--out"},
      {"selftest", "--record"}};
  const std::vector<std::string> files = {
      "worklog.md",           "capstone.yaml",          "human/kernel.cu", ".capstone/ledger.jsonl",
      "problem/problem.yaml", "llm/attempt-1/reply.md", "notes.md"};
  std::map<std::string, std::string> before;
  for (const std::string& file : files) before[file] = slurp(root / file);
  for (std::vector<std::string> words : writers) {
    words.emplace_back();
    for (const std::string& file : files) {
      words.back() = file;
      const Outcome refused = capstone(words, {.cwd = root});
      EXPECT_EQ(refused.code, 2) << words.front() << " " << file << refused;
      EXPECT_TRUE(says(refused.err, "choose another name")) << words.front();
      ASSERT_TRUE(slurp(root / file) == before[file]) << words.front() << " wrote over " << file;
    }
    words.back() = "human/kernel.py";  // would be the candidate
    EXPECT_EQ(capstone(words, {.cwd = root}).code, 2) << words.front();
    EXPECT_FALSE(fs::exists(root / "human" / "kernel.py")) << words.front();
  }
  EXPECT_EQ(capstone({"submit", "--out", (home_ / "link.tar.gz").string()}, {.cwd = root}).code, 2)
      << "a link to the worklog";
  EXPECT_EQ(capstone({"handout", "--out", (home_ / "worklog.html").string()}, {.cwd = root}).code, 2);
  expect_ledger_intact(root);
}

TEST_F(Output, OfTheSameKindIsReplaced) {
  const fs::path root = project();
  spit(root / "human" / "kernel.cu", slurp(root / "human" / "kernel.cu") + "// no stub\n");
  for (int i = 0; i < 2; ++i) {
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {"submit", "--anyway", "--out", "mine.tar.gz"},
             {"checkin", "--out", "in.json"},
             {"llm", "prompt", "--out", "llm/other.md"},
             {"llm", "prompt"},
             {"measure", "--bundle", "away.bundle"},
             {"handout", "--out", "handout.html"},
             {"report"},
             {"report", "--out", "elsewhere"},
             {"ladder", "sgemm", "--recorded", "h200", "--html", "stairs.html"}}) {
      const Outcome written = capstone(words, {.cwd = root});
      EXPECT_EQ(written.code, 0) << words.front() << written;
    }
  }
}

TEST_F(Output, AReportNeverReplacesTheWorklogItIsMadeOf) {
  const fs::path root = project();
  const std::string worklog = slurp(root / "worklog.md");
  for (const char* folder : {".", "human/..", "problem", ".capstone"}) {
    const Outcome refused = capstone({"report", "--out", folder}, {.cwd = root});
    EXPECT_EQ(refused.code, 2) << folder << refused;
  }
  EXPECT_TRUE(slurp(root / "worklog.md") == worklog);
  fs::create_directories(home_ / "mine");
  spit(home_ / "mine" / "worklog.md", "# my copy\n");
  const Outcome refused = capstone({"report", "--out", (home_ / "mine").string()}, {.cwd = root});
  EXPECT_EQ(refused.code, 2) << refused;
  EXPECT_TRUE(says(refused.err, "a worklog.md exists there already"));
  EXPECT_EQ(slurp(home_ / "mine" / "worklog.md"), "# my copy\n");
}

TEST_F(Bundle, ComesHomeFromAnotherMachine) {
  fs::path root = project("project", "02");
  Outcome packed =
      capstone({"measure", "-m", "by bundle", "--expect", "2x", "--bundle", "away.bundle"}, {.cwd = root});
  ASSERT_EQ(packed.code, 0) << packed;
  EXPECT_TRUE(records(root, "measurement").empty()) << "packing judges nothing";
  fs::create_directories(home_ / "cluster");
  fs::copy(root / "away.bundle", home_ / "cluster" / "away.bundle");
  How there{.cwd = home_ / "cluster", .env = {{"XDG_STATE_HOME", (home_ / "cluster" / "state").string()}}};
  Outcome judged =
      capstone({"measure", "--from-bundle", "away.bundle", "--backend", "emulated", "--hidden", "0"}, there);
  ASSERT_EQ(judged.code, 0) << judged;
  EXPECT_TRUE(says(judged.out, "PASS"));
  fs::path result = home_ / "cluster" / "away.bundle.result.jsonl";
  ASSERT_TRUE(fs::exists(result)) << judged;

  // A record of our own in between: the two chains must lie side by side.
  ASSERT_EQ(capstone({"predict", "memory"}, {.cwd = root}).code, 0);
  Outcome imported = capstone({"ledger", "import", result.string()}, {.cwd = root});
  EXPECT_EQ(imported.code, 0) << imported;
  EXPECT_TRUE(says(imported.out, "2 records added")) << "the measurement and its counts";
  auto measured = records(root, "measurement");
  ASSERT_EQ(measured.size(), 1u);
  EXPECT_EQ(measured.front()["body"]["reason"], "by bundle");
  EXPECT_EQ(measured.front()["body"]["version"], "v1");
  EXPECT_EQ(measured.front()["body"]["expected_speedup"], 2.0);
  EXPECT_NE(measured.front()["machine"], records(root, "init").front()["machine"]);
  expect_ledger_intact(root);
  std::string ledger = slurp(root / ".capstone" / "ledger.jsonl");
  EXPECT_TRUE(says(capstone({"ledger", "import", result.string()}, {.cwd = root}).out, "nothing new"));
  EXPECT_EQ(slurp(root / ".capstone" / "ledger.jsonl"), ledger);
}

TEST_F(Bundle, AKernelInSeveralFilesBuildsElsewhere) {
  const fs::path root = project("project", "01", "vector_add");
  fs::rename(root / "human" / "kernel.cu", root / "human" / "add.inl");
  spit(root / "human" / "kernel.cu", "#include \"add.inl\"\n");
  spit(root / "human" / "picture.png", std::string("\x89PNG\0", 5));
  Outcome packed = capstone({"measure", "--bundle", "own.bundle"}, {.cwd = root});
  ASSERT_EQ(packed.code, 0) << packed;
  EXPECT_TRUE(
      says(packed.err,
           "note: human/picture.png is not packed: not a text file; a kernel that includes it will not "
           "build elsewhere"));
  Outcome judged = judge_here(root / "own.bundle");
  EXPECT_EQ(judged.code, 0) << judged;
}

TEST_F(Bundle, DamagedBundleOrResultIsRefused) {
  fs::path root = project();
  spit(root / "bad.bundle", "not an archive");
  Outcome judged = capstone({"measure", "--from-bundle", "bad.bundle"}, {.cwd = root});
  EXPECT_EQ(judged.code, 2) << judged;
  EXPECT_TRUE(says(judged.err, "bad.bundle"));
  spit(root / "bad.result.jsonl", "{\"seq\": nonsense\n");
  Outcome imported = capstone({"ledger", "import", "bad.result.jsonl"}, {.cwd = root});
  EXPECT_EQ(imported.code, 2) << imported;
  EXPECT_TRUE(says(imported.err, "bad.result.jsonl"));
  expect_ledger_intact(root);
}

TEST_F(Bundle, AProblemThatIsNotTheCataloguesNeedsTrustAndItsOracleStaysInTheSandbox) {
  const fs::path ran = home_ / "the_oracle_ran";
  const std::string oracle =
      "\n#include <cstdio>\nstatic const bool kRan = [] { std::FILE* f = std::fopen(\"" + ran.string() +
      "\", \"w\"); return f && std::fclose(f) == 0; }();\n";
  for (const auto& [id, why] : {std::pair<std::string, std::string>{
                                    "vector_add", "differs from the one of that name in the catalogue here"},
                                {"mine", "is not in the catalogue here"}}) {
    const fs::path root = project_of_own_problem(id, "project_" + id, oracle);
    ASSERT_EQ(capstone({"measure", "--bundle", "own.bundle"}, {.cwd = root}).code, 0);
    Outcome refused = judge_here(root / "own.bundle");
    EXPECT_EQ(refused.code, 2) << refused;
    EXPECT_TRUE(says(refused.err, "error: the bundle's problem, " + id + ", " + why +
                                      ", and a GPU here would run its baseline outside the sandbox"));
    EXPECT_TRUE(says(refused.err, "--trust-problem"));
    EXPECT_FALSE(fs::exists(ran));
    EXPECT_FALSE(fs::exists(root / "own.bundle.result.jsonl"));

    Outcome trusted = judge_here(root / "own.bundle", {"--trust-problem"});
    EXPECT_EQ(trusted.code, 0) << trusted;
    EXPECT_FALSE(fs::exists(ran)) << "the oracle reaches nothing where it runs";
    ASSERT_EQ(capstone({"ledger", "import", "own.bundle.result.jsonl"}, {.cwd = root}).code, 0);
    EXPECT_TRUE(says(records(root, "measurement")[0]["body"]["labels"].dump(),
                     "not the catalogue's definition: " + id + " " + why));
  }
}

TEST_F(Bundle, TheCataloguesProblemNeedsNoTrustAndHasNoLabel) {
  const fs::path root = project("project", "01", "vector_add");
  ASSERT_EQ(capstone({"measure", "--bundle", "own.bundle"}, {.cwd = root}).code, 0);
  EXPECT_EQ(judge_here(root / "own.bundle").code, 0);
  ASSERT_EQ(capstone({"ledger", "import", "own.bundle.result.jsonl"}, {.cwd = root}).code, 0);
  EXPECT_EQ(records(root, "measurement")[0]["body"]["labels"].dump().find("catalogue"), std::string::npos);
}

TEST_F(Bundle, AKernelOutsideTheBundleIsRefusedAndNotShown) {
  const fs::path root = project("project", "01", "vector_add");
  spit(home_ / "secret" / "human" / "kernel.cu", "the_secret_words = 1\n");
  for (const std::string& source :
       {(home_ / "secret" / "human" / "kernel.cu").string(),
        std::string("human/../../../../../../../../../../etc/passwd"),
        std::string("human/../../secret/human/kernel.cu"), std::string("problem/oracle.cpp"),
        std::string("llm/attempt-9/kernel.cu"), std::string()}) {
    ASSERT_EQ(capstone({"measure", "--bundle", "bad.bundle"}, {.cwd = root}).code, 0);
    tamper(root / "bad.bundle", ".capstone/bundle.json", "human/kernel.cu", source);
    Outcome refused = judge_here(root / "bad.bundle", {"--trust-problem"});
    EXPECT_EQ(refused.code, 2) << source << refused;
    EXPECT_EQ(refused.both().find("the_secret_words"), std::string::npos) << refused;
    EXPECT_TRUE(says(refused.err, source.starts_with("/") || source.find("..") != std::string::npos
                                      ? "bundle refused: it names a kernel outside itself: " + source
                                  : source.starts_with("llm")
                                      ? "the bundle lacks llm/attempt-9/kernel.cu"
                                      : "bundle refused: not the name of a candidate's kernel: " + source));
    EXPECT_FALSE(fs::exists(root / "bad.bundle.result.jsonl"));
  }
}

TEST_F(Bundle, AProblemChangedSinceItWasPinnedIsRefused) {
  const fs::path root = project("project", "01", "vector_add");
  ASSERT_EQ(capstone({"measure", "--bundle", "bad.bundle"}, {.cwd = root}).code, 0);
  tamper(root / "bad.bundle", "problem/problem.yaml", "schema: 1", "schema: 1 # changed");
  Outcome refused = judge_here(root / "bad.bundle", {"--trust-problem"});
  EXPECT_EQ(refused.code, 2) << refused;
  EXPECT_TRUE(says(refused.err, "the project's pinned copy of the problem was changed"));
  EXPECT_TRUE(says(refused.err, "bad.bundle: problem"));
}

TEST_F(Bundle, AManifestOfOtherShapesIsRefused) {
  const fs::path root = project("project", "01", "vector_add");
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{"\"candidates\": [\n      {", "\"candidates\": [7,{"},
        {"\"candidate\": \"human\"", "\"candidate\": \"../x\""},
        {"\"options\": {", "\"options\": 7, \"other\": {"}}) {
    ASSERT_EQ(capstone({"measure", "--bundle", "bad.bundle"}, {.cwd = root}).code, 0);
    tamper(root / "bad.bundle", ".capstone/bundle.json", from, to);
    Outcome refused = judge_here(root / "bad.bundle");
    EXPECT_EQ(refused.code, 2) << refused;
    EXPECT_TRUE(says(refused.err, from.starts_with("\"options")
                                      ? "\"options\" is not an object"
                                      : "bundle refused: a candidate is neither human nor llm"));
  }
}

std::vector<std::string> rows_of(const std::string& csv) {
  std::vector<std::string> rows;
  std::string row;
  for (std::size_t i = 0; i < csv.size(); ++i) {
    if (csv.compare(i, 2, "\r\n") == 0) {
      rows.push_back(row);
      row.clear();
      ++i;
    } else {
      row += csv[i];
    }
  }
  if (!row.empty()) rows.push_back(row + " (the last line does not end)");
  return rows;
}

TEST_F(Grade, FolderWithEveryKindOfSubmission) {
  fs::path cohort = home_ / "cohort";
  fs::create_directories(cohort / "stranger");
  spit(cohort / "stranger" / "holiday.txt", "no project");
  spit(cohort / "broken.tar.gz", std::string("\x1f\x8b\x08\x00 cut off", 12));
  Outcome made = capstone({"init", "bias_gelu_layernorm", "cohort/good", "--from", "02", "--member",
                           "=SUM(A1:A9) <eve@example.org>"});
  ASSERT_EQ(made.code, 0) << made;
  fs::path wrong = project("wrong");
  spit(wrong / "human" / "kernel.cu", wrong_kernel());
  ASSERT_EQ(capstone({"submit", "--anyway", "--out", "../cohort/wrong.tar.gz"}, {.cwd = wrong}).code, 0);

  Outcome graded = capstone({"grade", "cohort", "--out", "graded", "--backend", "emulated", "--hidden", "0"});
  EXPECT_EQ(graded.code, 4) << graded;
  auto rows = rows_of(slurp(home_ / "graded" / "grades.csv"));
  ASSERT_EQ(rows.size(), 5u) << "a heading, and a row for each of the four";
  EXPECT_TRUE(rows[0].starts_with("name,people,problem,state,fault,late,human_gate_one"));
  EXPECT_TRUE(rows[1].starts_with("broken,,,failed,damaged,"));
  EXPECT_TRUE(says(rows[1], "cannot read as a tar"));
  EXPECT_TRUE(rows[2].starts_with("good,'=SUM"))
      << "a spreadsheet must not take a name for a formula: " << rows[2];
  EXPECT_TRUE(says(rows[2], ",graded,,,PASS,NOT JUDGED,"));
  EXPECT_TRUE(rows[3].starts_with("stranger,,,failed,not_a_project,"));
  EXPECT_TRUE(says(rows[3], "this is not a capstone project"));
  EXPECT_TRUE(rows[4].starts_with(
      "wrong,Ada Lovelace,bias_gelu_layernorm,needs_mentor,unsupported,,WRONG,NOT JUDGED,"))
      << rows[4];
  EXPECT_TRUE(says(rows[4], "no human kernel has passed gate one, neither in the ledger nor now"));
  for (const char* name : {"good", "wrong"})
    for (const char* file : {"score_sheet.html", "score_sheet.md", "result.json"})
      EXPECT_TRUE(fs::exists(home_ / "graded" / "submissions" / name / file)) << name << file;
  expect_ledger_intact(cohort / "good");
}

TEST_F(Grade, ALinkThatLeadsOutOfASubmissionIsNotFollowed) {
  ASSERT_EQ(capstone({"init", "bias_gelu_layernorm", "cohort/curious", "--from", "02"}).code, 0);
  spit(home_ / "mentor.cu", "// the mentor's own words\n");
  fs::remove(home_ / "cohort" / "curious" / "human" / "kernel.cu");
  fs::create_symlink(home_ / "mentor.cu", home_ / "cohort" / "curious" / "human" / "kernel.cu");
  Outcome graded = capstone({"grade", "cohort", "--out", "graded", "--backend", "emulated", "--hidden", "0"});
  EXPECT_EQ(graded.code, 4) << graded;
  EXPECT_TRUE(says(graded.err, "curious: failed (refused): ")) << graded;
  EXPECT_TRUE(says(graded.err, "a link to a place outside of the submission"));
  EXPECT_FALSE(fs::exists(home_ / "graded" / "submissions" / "curious" / "score_sheet.md"));
  EXPECT_EQ(slurp(home_ / "graded" / "submissions" / "curious" / "result.json").find("own words"),
            std::string::npos);
}

TEST_F(Grade, NothingToGradeIsAUsageError) {
  fs::create_directories(home_ / "empty");
  Outcome graded = capstone({"grade", "empty"});
  EXPECT_EQ(graded.code, 2) << graded;
  EXPECT_TRUE(says(graded.err, "error: nothing to grade"));
  graded = capstone({"grade", "nowhere"});
  EXPECT_EQ(graded.code, 2) << graded;
  EXPECT_TRUE(says(graded.err, "--> " + (home_ / "nowhere").string()));
}

}  // namespace
}  // namespace capstone::cli_test
