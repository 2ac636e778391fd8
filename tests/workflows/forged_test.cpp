// Submissions whose ledgers were forged and chained again: --verify finds nothing, grading does.
#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "harness/base/digest.h"
#include "harness/base/text.h"
#include "harness/base/version.h"
#include "harness/course/recompute.h"
#include "harness/judge/decide.h"
#include "harness/project/ledger/ledger.h"
#include "harness/project/ledger/stored.h"
#include "harness/project/stub.h"
#include "harness/timing/statistics.h"
#include "harness/workflows/grade_submission.h"
#include "tests/workflows/fixture.h"

namespace capstone::workflows::test {
namespace {

// A copy of a finished example whose records can be changed.
class Forged {
 public:
  Forged(const std::string& example, const fs::path& root) : root_(root) {
    fs::copy(fs::path(CAPSTONE_SOURCES) / "examples" / example, root, fs::copy_options::recursive);
    for (const std::string& line : split(read_ledger_text(ledger()).value(), '\n'))
      if (!line.empty()) records.push_back(Json::parse(line));
    fs::remove(root / ".capstone" / "ledger.jsonl.gz");
    chain();
  }

  fs::path ledger() const { return root_ / ".capstone" / "ledger.jsonl"; }
  const fs::path& root() const { return root_; }

  /// Writes the ledger with new numbers and links.
  void chain() {
    std::map<std::string, std::string> last;  // machine → digest
    std::map<std::string, int> seq;
    std::string text;
    for (Json& record : records) {
      const std::string machine = record["machine"];
      record["previous"] = last[machine];
      record["seq"] = ++seq[machine];
      const std::string line = record.dump();
      last[machine] = sha256_hex(line);
      text += line + "\n";
    }
    ASSERT_TRUE(write_file_atomic(ledger(), text));
  }

  /// Every measurement of a version.
  std::vector<Json*> of(const std::string& version) {
    std::vector<Json*> bodies;
    for (Json& record : records)
      if (record["kind"] == "measurement" && record["body"]["version"] == version)
        bodies.push_back(&record["body"]);
    EXPECT_FALSE(bodies.empty()) << version;
    return bodies;
  }

  void write(const std::string& path, const std::string& text) const {
    ASSERT_TRUE(write_file_atomic(root_ / path, text));
  }
  std::string read(const std::string& path) const { return read_file(root_ / path).value(); }

  std::vector<Json> records;

 private:
  fs::path root_;
};

void scale(Json& interval, double factor) {
  for (const char* key : {"point", "low", "high"}) interval[key] = interval[key].get<double>() * factor;
}

Json& own_arm(Json& body) { return body["measured"]["arms"].back(); }

struct Forgery {
  const char* name;
  const char* example;
  std::function<void(Forged&)> forge;
  const char* reason;  ///< part of the finding
};

const std::vector<Forgery>& forgeries() {
  static const std::vector<Forgery> all{
      {"SpeedupOutOfTheAir", "fusion_wins",
       [](Forged& f) {
         for (Json* m : f.of("v4")) scale((*m)["measured"]["speedup"], 3.4);
       },
       "[9.79, 9.82] over native; its samples give 2.89x"},
      {"IntervalMadeNarrow", "fusion_wins",
       [](Forged& f) {
         for (Json* m : f.of("v2")) {
           Json& s = (*m)["measured"]["speedup"];
           s["low"] = s["point"], s["high"] = s["point"];
         }
       },
       "records 2.15x [2.15, 2.15] over native; its samples give 2.15x [2.13, 2.16]"},
      {"SpeedupThatIsNoNumber", "fusion_wins",
       [](Forged& f) {
         for (Json* m : f.of("v4")) (*m)["measured"]["speedup"]["point"] = "NaN";
       },
       "its samples give 2.89x"},
      {"VerdictTurnedAround", "library_wins",
       [](Forged& f) {
         for (Json* m : f.of("v6")) (*m)["gate_two"] = "faster";
       },
       "says FASTER; its samples give SLOWER"},
      {"LossCalledATie", "library_wins",
       [](Forged& f) {
         for (Json* m : f.of("v6")) (*m)["gate_two"] = "tie";
       },
       "says TIE; its samples give SLOWER"},
      {"MedianInvented", "fusion_wins",
       [](Forged& f) {
         for (Json* m : f.of("v4")) scale(own_arm(*m)["median_ms"], 0.5);
       },
       "records a median of 100 µs for human; its samples give 200 µs"},
      {"SpeedupOverAnotherBaseline", "library_wins",
       [](Forged& f) {
         for (Json* m : f.of("v6"))
           for (Json& arm : (*m)["measured"]["arms"])
             if (arm["name"] == "native") scale(arm["speedup"], 2);
       },
       "over native; its samples give"},
      {"SamplesRemoved", "fusion_wins",
       [](Forged& f) {
         for (Json* m : f.of("v4"))
           for (Json& arm : (*m)["measured"]["arms"]) arm["samples_ms"] = Json::array();
       },
       "claims a speedup without samples that give it"},
      {"SamplesThatAreNoTimes", "fusion_wins",
       [](Forged& f) {
         for (Json* m : f.of("v4")) own_arm(*m)["samples_ms"][0][0] = -1.0;
       },
       "holds a time that is not a positive number"},
      {"TooFastWithoutItsLabel", "unexplained_win",
       [](Forged& f) {
         for (Json* m : f.of("v4")) (*m)["labels"] = Json::array();
       },
       "lacks the label \"needs an explanation: 1.59 ms is less than the 2.05 ms that the data sheet allows"},
      {"WorkMadeSmaller", "unexplained_win",
       [](Forged& f) {
         for (Json* m : f.of("v4")) {
           (*m)["labels"] = Json::array();
           Json& measured = (*m)["measured"];
           measured["flops"] = measured["flops"].get<double>() / 2;
           measured["percent_of_peak"] = measured["percent_of_peak"].get<double>() / 2;
         }
       },
       "records 6.872e+10 operations and 2.013e+08 bytes; at m=4096, k=4096, n=4096 they are 1.374e+11"},
      {"SizesOfAnotherRace", "unexplained_win",
       [](Forged& f) {
         for (Json* m : f.of("v4")) (*m)["measured"]["sizes"]["m"] = 2048;
       },
       "at m=2048, k=4096, n=4096 they are 6.872e+10"},
      {"PercentOfPeakPolished", "fusion_wins",
       [](Forged& f) {
         for (Json* m : f.of("v2")) (*m)["measured"]["percent_of_peak"] = 97.0;
       },
       "records 97.0 % of the peak; its time gives 62.5 % of 4.80 TB/s"},
      {"NotJudgedButPrinted", "fusion_wins",
       [](Forged& f) {
         for (Json* m : f.of("v4")) {
           (*m)["gate_two"] = "not_judged";
           scale((*m)["measured"]["speedup"], 3.4);
         }
       },
       "says NOT JUDGED; its samples give FASTER"},
      {"PassWithAFailedCase", "library_wins",
       [](Forged& f) {
         for (Json* m : f.of("v4")) (*m)["gate_one"] = "passed";
       },
       "says PASS; its case"},
      {"LatePredictionCalledEarly", "fusion_wins",
       [](Forged& f) {
         for (std::size_t i = 0; i < f.records.size(); ++i) {
           if (f.records[i]["kind"] != "prediction") continue;
           Json late = f.records[i];
           f.records.erase(f.records.begin() + static_cast<std::ptrdiff_t>(i));
           late["time"] = f.records.back()["time"];
           f.records.push_back(late);
           break;
         }
       },
       "says that it was made before the first measurement; record 2 (v1)"},
      {"EarlyInTheFileLateByTheClock", "fusion_wins",
       [](Forged& f) {
         for (Json& record : f.records)
           if (record["kind"] == "prediction") record["time"] = f.records.back()["time"];
       },
       "says that it was made before the first measurement; record 3 (v1)"},
      {"PromptReplaced", "fusion_wins",
       [](Forged& f) { f.write("llm/attempt-1/prompt.md", "Write a slow kernel.\n"); },
       "llm/attempt-1/prompt.md was changed after it was recorded"},
      {"ReplyReplaced", "fusion_wins",
       [](Forged& f) { f.write("llm/attempt-1/reply.md", "I cannot do that.\n"); },
       "llm/attempt-1/reply.md was changed after it was recorded"},
      {"ReplyRemoved", "fusion_wins", [](Forged& f) { fs::remove(f.root() / "llm/attempt-1/reply.md"); },
       "llm/attempt-1/reply.md is recorded and is not there"},
      {"ModelsKernelMadeWrong", "fusion_wins",
       [](Forged& f) {
         f.write("llm/attempt-1/kernel.cu", stub_kernel(load_problem(f.root() / "problem").value()));
       },
       "llm/attempt-1/kernel.cu was changed after it was measured as attempt-1"},
      {"HumanKernelNeverMeasured", "fusion_wins",
       [](Forged& f) { f.write("human/kernel.cu", f.read("human/kernel.cu") + "// better\n"); },
       "human/kernel.cu differs from every measured version"},
      {"IncludedFileChanged", "fusion_wins",
       [](Forged& f) {
         const std::string source = "#include \"rows.cuh\"\n" + f.read("human/kernel.cu");
         f.write("human/kernel.cu", source);
         f.write("human/rows.cuh", "#define ROWS 2\n");
         f.write(".capstone/sources/" + sha256_hex(source) + ".cu", source);
         for (Json* m : f.of("v4")) {
           (*m)["source_sha256"] = sha256_hex(source);
           (*m)["included"] = {{{"path", "human/rows.cuh"}, {"sha256", sha256_hex("#define ROWS 1\n")}}};
         }
       },
       "human/rows.cuh was changed after human/kernel.cu was measured with it"},
      {"NoHumanKernelAtAll", "fusion_wins", [](Forged& f) { fs::remove(f.root() / "human/kernel.cu"); },
       "there is no human kernel"},
      {"TheStubAsHumanKernel", "fusion_wins",
       [](Forged& f) { f.write("human/kernel.cu", stub_kernel(load_problem(f.root() / "problem").value())); },
       "is the stub that `init` writes"},
  };
  return all;
}

using GradeHonest = ProjectTest;

class ForgedProject : public ProjectTest {
 protected:
  SubmissionResult grade(const fs::path& submission, std::vector<std::string> cohort_findings = {}) {
    GradingTask task;
    task.submission.name = submission.filename().string();
    task.submission.path = submission;
    task.submission.shown = task.submission.name;
    task.folder = folder_of(submission);
    task.rubric = fs::path(CAPSTONE_SOURCES) / "rubric" / "rubric.yaml";
    task.judge = quick();
    task.judge.hidden_cases = 0;
    task.cohort_findings = std::move(cohort_findings);
    auto result = grade_submission(task, workspace_, {});
    EXPECT_TRUE(result) << render(result.error());
    return result.value_or(SubmissionResult{});
  }
  // The example as it is, graded once.
  SubmissionResult honest(const std::string& example) {
    static std::map<std::string, SubmissionResult> graded;
    if (!graded.contains(example)) graded[example] = grade(Forged(example, place_.path() / example).root());
    return graded[example];
  }
  fs::path folder_of(const fs::path& submission) const {
    return place_.path() / "graded" / "submissions" / submission.filename();
  }
};

// Several forgeries a test, because each test grades the honest example, too.
constexpr std::size_t kGroups = 4;
class GradeForged : public ForgedProject, public testing::WithParamInterface<std::size_t> {
 protected:
  void expect_found(const Forgery& forgery);
};

TEST_P(GradeForged, NeedsAMentorAndEarnsNothingByIt) {
  const std::vector<Forgery> all = forgeries();
  for (std::size_t i = GetParam(); i < all.size(); i += kGroups) {
    SCOPED_TRACE(all[i].name);
    expect_found(all[i]);
  }
}

void GradeForged::expect_found(const Forgery& forgery) {
  Forged forged(forgery.example, place_.path() / forgery.name);
  forgery.forge(forged);
  forged.chain();
  EXPECT_TRUE(verify_ledger(forged.ledger(), forged.root() / ".capstone" / "sources")->empty())
      << "the forgery is chained again";

  const SubmissionResult before = honest(forgery.example), after = grade(forged.root());
  EXPECT_EQ(before.state, GradingState::kGraded) << before.why;
  EXPECT_EQ(join(before.findings, "; "), "");
  EXPECT_EQ(after.state, GradingState::kNeedsMentor);
  const std::string found = join(after.findings, "\n");
  EXPECT_NE(found.find(forgery.reason), std::string::npos) << found;
  EXPECT_LE(after.suggested_total(), before.suggested_total());
  for (const char* sheet : {"score_sheet.md", "score_sheet.html", "score_sheet.json"}) {
    const std::string text = read_file(folder_of(forged.root()) / sheet).value();
    EXPECT_NE(text.find(std::string(sheet).ends_with("json") ? "\"findings\": [" : "Look at this before"),
              std::string::npos)
        << sheet;
  }
  EXPECT_EQ(read_result(folder_of(forged.root()) / "result.json")->findings, after.findings);
}

// All four, by themselves: nothing is found, and marks are those of the recorded values.
TEST_F(GradeHonest, ExamplesAreGradedAsTheyWere) {
  for (const char* example : {"fusion_wins", "library_wins", "machine_wins", "unexplained_win"}) {
    const fs::path root = fs::path(CAPSTONE_SOURCES) / "examples" / example;
    const Project project = open_project(root).value();
    const Problem problem = find_problem(workspace_.resources.problems(), project.problem.id).value();
    const LedgerView ledger = read_ledger(project.ledger()).value();
    const Recomputed recomputed = recompute(project, problem, ledger, {});
    EXPECT_EQ(join(recomputed.contradicted, "; ") + join(recomputed.missing, "; "), "") << example;
    EXPECT_EQ(Json(recomputed.ledger.human), Json(ledger.human)) << example;
    EXPECT_EQ(Json(recomputed.ledger.llm), Json(ledger.llm)) << example;
    EXPECT_EQ(Json(recomputed.ledger.attempts), Json(ledger.attempts)) << example;
    EXPECT_EQ(Json(recomputed.ledger.predictions), Json(ledger.predictions)) << example;
  }
}

// One arm of a race as gate two leaves it: restarts and blocks differ a little, samples a little more.
TimedArm raced_arm(const std::string& name, double ms, double noise, int restarts, int in_block,
                   std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  TimedArm arm;
  arm.name = name;
  arm.trusted_clock = true;
  for (CacheState state : kCacheStates)
    for (int r = 0; r < restarts; ++r) {
      const double restart = ms * std::exp(0.3 * noise * normal(random));
      std::vector<double> samples, medians;
      for (int b = 0; b < 4; ++b) {
        const double block = restart * std::exp(0.3 * noise * normal(random));
        std::vector<double> kept;
        for (int i = 0; i < in_block; ++i) kept.push_back(block * std::exp(noise * normal(random)));
        medians.push_back(median(kept));
        samples.insert(samples.end(), kept.begin(), kept.end());
      }
      arm.series(state).samples.push_back(samples);
      arm.series(state).block_medians.push_back(medians);
    }
  return arm;
}

// What the judge records is never accused, whatever the seeds of its bootstraps: quiet and noisy races, ties,
// wins, losses, and times below the data sheet's.
TEST_F(GradeHonest, RecordsOfTheJudgeFollowFromTheirSamples) {
  std::mt19937_64 random(20261123);
  const Problem problem = find_problem(workspace_.resources.problems(), "softmax").value();
  const Project project = open_project(workspace_.cwd).value();
  DeviceAttributes device;
  device.name = "NVIDIA H200";
  device.sm_count = 132;
  std::map<GateTwo, int> seen;
  for (int trial = 0; trial < 150; ++trial) {
    const auto uniform = [&](double low, double high) {
      return std::uniform_real_distribution<double>(low, high)(random);
    };
    const double noise = std::exp(uniform(std::log(2e-4), std::log(0.1))),
                 ratio = trial % 3 ? std::exp(uniform(-1, 3)) : 1;
    const int restarts = 5 + trial % 4, in_block = 3 + trial % 10;
    Timed timed;
    for (const auto& [name, ms] : {std::pair("native", 0.3), {"A/A", 0.3}, {"human", 0.3 / ratio}})
      timed.race.arms.push_back(raced_arm(name, ms, noise, restarts, in_block, random));
    timed.race.first_candidate = 2;
    timed.race.peaks = peaks_of(device);
    TimedCandidate candidate;
    candidate.record.candidate = "human";
    candidate.record.version = "v1";
    candidate.record.source_sha256 = "aa";
    candidate.record.backend = Backend::kCuda;
    candidate.record.gate_one = GateOne::kPassed;
    candidate.record.problem_digest = problem.digest;
    candidate.record.environment = {{"device", device.name}, {"sm_count", 132}, {"tool", kToolVersion}};
    candidate.arm = 2;
    timed.candidates.push_back(std::move(candidate));
    const Measurement m = decide(std::move(timed), problem).value().front();
    ++seen[m.gate_two];
    LedgerView ledger;
    ledger.human = {m};
    ledger.records.emplace_back();
    ledger.records.back().kind = "measurement";
    ledger.records.back().body = Json(m);
    const Recomputed recomputed = recompute(project, problem, ledger, {});
    EXPECT_EQ(join(recomputed.contradicted, "; "), "") << "noise " << noise << ", ratio " << ratio;
    EXPECT_EQ(Json(recomputed.ledger.human.front()), Json(m));
  }
  for (GateTwo verdict : {GateTwo::kFaster, GateTwo::kSlower, GateTwo::kTie, GateTwo::kUnresolved})
    EXPECT_GE(seen[verdict], 3) << label_of(verdict);
}

// The ledger, digests and all, says that a wrong kernel of the model passed.
class GradeWrongModel : public ForgedProject {};
TEST_F(GradeWrongModel, IsNotGradedAsIfItWereRight) {
  Forged forged("fusion_wins", place_.path() / "forged");
  const std::string wrong = stub_kernel(load_problem(forged.root() / "problem").value());
  forged.write("llm/attempt-1/kernel.cu", wrong);
  forged.write(".capstone/sources/" + sha256_hex(wrong) + ".cu", wrong);
  for (Json* m : forged.of("attempt-1")) (*m)["source_sha256"] = sha256_hex(wrong);
  forged.chain();
  const SubmissionResult result = grade(forged.root());
  EXPECT_EQ(result.fault, GradingFault::kContradicted);
  EXPECT_EQ(result.why, "llm: the ledger says PASS; judged again: WRONG");
  const std::string sheet = read_file(folder_of(forged.root()) / "score_sheet.md").value();
  EXPECT_NE(sheet.find("attempt-1: WRONG"), std::string::npos) << "the evidence is the mentor's verdict";
  EXPECT_NE(sheet.find("- llm: the ledger says PASS"), std::string::npos);
}

// A GPU that the table of data sheets does not have accuses its owner of nothing.
TEST_F(GradeWrongModel, AnUnknownGpuIsANote) {
  Forged other("fusion_wins", place_.path() / "other");
  for (const char* version : {"v1", "v2", "v3", "v4", "attempt-1"})
    for (Json* m : other.of(version)) (*m)["environment"]["device"] = "NVIDIA Unheard 9000";
  other.chain();
  const SubmissionResult result = grade(other.root());
  EXPECT_EQ(result.state, GradingState::kGraded) << result.why;
  EXPECT_NE(join(result.notes, "\n").find("v4 (record 9) was timed on NVIDIA Unheard 9000: no data sheet"),
            std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(All, GradeForged, testing::Range(std::size_t{0}, kGroups));

}  // namespace
}  // namespace capstone::workflows::test
