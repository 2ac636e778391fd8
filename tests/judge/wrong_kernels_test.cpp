// How often the judge names the cause of a wrong kernel, and how often it names a false one:
// tests/wrong_kernels holds kernels as students write them, each with one mistake. A part of them is judged;
// with CAPSTONE_ALL_WRONG_KERNELS in the environment, all are, and a table is printed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <future>
#include <map>
#include <regex>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/judge/judge.h"
#include "tests/resources.h"

namespace capstone {
namespace {

/// What names a mistake of each kind. Some mistakes show as another one: a wrong stride leaves its tensor.
const std::map<std::string, std::string> kNames = {
    {"race", "race on|differs from run to run"},
    {"out_of_bounds", "out of bounds|outside the tensors|illegal memory access"},
    {"uninitialised", "uninitialised|uninitialized|never set"},
    {"misaligned", "misaligned"},
    {"unwritten", "not written|nothing written"},
    {"stride", "as if a row of|at the row's index|out of bounds|race on"},
    {"transposed", "transposed|stored by columns|axes of|a copy of"},
    {"swapped", "swapped|in place of|other sign|out of bounds"},
    {"missing_term", "as if|negative where 0|division by zero|1/sqrt"},
    {"missing_maximum", "arises here"},
    {"nan", "arises here"},
    {"partial_reduction", "left out|took part|divided by|stood alone|as if only|times the right"},
    {"stale_tile", "stale tile|for all of that axis|a copy of|uninitialised"},
    {"off_by_one", "off by one|left out|out of bounds|not written"},
    {"launch", "invalid configuration|not written|did not ask for|dynamic shared memory"},
    {"precision", "precision"},
    {"constant", "as if|times the right|scaled by a constant|1/sqrt|negative where 0"},
    {"deadlock", "deadlock|did not end|race on"},
    {"logic", "(?!)"},
};

/// First lines that say where or how much, and claim no cause.
const std::regex kNoCause(
    "no pattern found|errors everywhere|single element|^wrong result: only |each (row|column) is |of \\d+ "
    "elements: "
    "|offset by a constant|scaled by a constant|one constant|negative where 0");

struct Verdict {
  std::string file, kind, said;
  bool failed = false, named = false, is_false = false;
};

Verdict judged(const fs::path& file) {
  const std::string source = read_file(file).value_or("");
  static const std::regex kind_line("// cause: (\\w+)");
  std::smatch kind;
  Verdict verdict;
  verdict.file = file.parent_path().filename().string() + "/" + file.stem().string();
  if (!std::regex_search(source, kind, kind_line) || !kNames.contains(kind[1])) {
    ADD_FAILURE() << file << " names no kind of mistake";
    return verdict;
  }
  verdict.kind = kind[1];
  const Problem problem =
      load_problem(fs::path(CAPSTONE_SOURCES) / "problems" / file.parent_path().filename()).value();
  JudgeRequest request;
  request.problem = &problem;
  request.candidates = {{"human", file}};
  request.options.backend = Backend::kEmulated;
  request.timing = false;
  request.nvcc = false;
  for (const bool quick : {true, false}) {  // some mistakes show only in the instrumented builds
    request.options.quick = quick;
    const auto measurements = judge(request, test::suite_resources(), [](const std::string&) {});
    if (!measurements) {
      ADD_FAILURE() << verdict.file << ": " << render(measurements.error());
      return verdict;
    }
    const Measurement& m = measurements->front();
    if (m.gate_one == GateOne::kPassed) continue;
    verdict.failed = true;
    const CaseResult* bad = m.first_failure();
    verdict.said = bad ? bad->problem : m.build.first_error ? m.build.first_error->text : "";
    break;
  }
  verdict.named = std::regex_search(verdict.said, std::regex(kNames.at(verdict.kind)));
  verdict.is_false = verdict.failed && !verdict.named && !std::regex_search(verdict.said, kNoCause);
  return verdict;
}

TEST(WrongKernels, TheCauseIsNamedAndNoFalseOne) {
  const bool all = std::getenv("CAPSTONE_ALL_WRONG_KERNELS") != nullptr;
  std::vector<fs::path> files;
  for (const auto& entry :
       fs::recursive_directory_iterator(fs::path(CAPSTONE_SOURCES) / "tests/wrong_kernels"))
    if (entry.path().extension() == ".cu") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  ASSERT_GE(files.size(), 80u);
  if (!all) {
    constexpr std::size_t kEvery = 7;
    std::vector<fs::path> some;
    for (std::size_t i = 0; i < files.size(); i += kEvery) some.push_back(files[i]);
    files = std::move(some);
  }
  std::vector<std::future<Verdict>> running;
  std::vector<Verdict> verdicts;
  for (std::size_t i = 0; i < files.size() || !running.empty();) {
    if (i < files.size() && running.size() < 2) {
      running.push_back(std::async(std::launch::async, judged, files[i++]));
      continue;
    }
    verdicts.push_back(running.front().get());
    running.erase(running.begin());
  }
  std::size_t nameable = 0, named = 0, is_false = 0;
  for (const Verdict& v : verdicts) {
    EXPECT_TRUE(v.failed) << v.file << " passes";
    nameable += v.kind != "logic";
    named += v.named;
    is_false += v.is_false;
    if (all || v.is_false)
      printf("%-9s %-18s %-50s %s\n",
             v.is_false ? "FALSE"
             : v.named  ? "named"
                        : "-",
             v.kind.c_str(), v.file.c_str(), v.said.c_str());
  }
  printf("named: %zu of %zu; false: %zu of %zu\n", named, nameable, is_false, verdicts.size());
  EXPECT_GE(named * 10, nameable * (all ? 9 : 8));
  EXPECT_LE(is_false * 50, verdicts.size() + (all ? 0 : 49)) << "2 %, or one of a part";
}

}  // namespace
}  // namespace capstone
