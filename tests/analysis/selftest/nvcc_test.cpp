// Cases that only a GPU can show are at least compiled by nvcc; the others are built and run on the emulated
// backend.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "harness/analysis/selftest/corpus.h"
#include "harness/base/files.h"
#include "harness/base/subprocess.h"

namespace capstone {
namespace {

std::vector<CorpusCase> for_a_gpu_alone() {
  Resources resources;
  resources.share = CAPSTONE_SHARE;
  auto corpus = load_corpus(resources);
  std::vector<CorpusCase> chosen;
  if (corpus)
    for (const CorpusCase& corpus_case : *corpus)
      if (corpus_case.source.extension() == ".cu" &&
          corpus_case.emulated.kind == Expectation::Kind::kCannotShow)
        chosen.push_back(corpus_case);
  return chosen;
}

class GpuCorpusCase : public testing::TestWithParam<CorpusCase> {};

[[maybe_unused]] void PrintTo(const CorpusCase& corpus_case, std::ostream* out) { *out << corpus_case.name; }

TEST_P(GpuCorpusCase, CompilesForAGpu) {
  const char* path = std::getenv("PATH");
  const auto nvcc = find_program("nvcc", std::string(path ? path : "") + ":/usr/local/cuda/bin");
  if (!nvcc) GTEST_SKIP() << "no nvcc here";
  auto problem = load_problem(GetParam().problem);
  ASSERT_TRUE(problem) << render(problem.error());
  const fs::path folder = fs::path(testing::TempDir()) / ("nvcc_" + GetParam().name);
  fs::create_directories(folder);
  ASSERT_TRUE(write_file_atomic(folder / "launch.h", launch_header(*problem)));
  ProcessSpec spec;
  // Only up to PTX: the front end also reads host code, and a machine without a GPU needs no more.
  spec.argv = {nvcc->string(),
               "-std=c++17",
               "-arch=sm_90",
               "-ptx",
               "-include",
               (folder / "launch.h").string(),
               GetParam().source.string(),
               "-o",
               (folder / "kernel.ptx").string()};
  spec.timeout = std::chrono::seconds(100);
  auto result = run_process(spec);
  ASSERT_TRUE(result) << render(result.error());
  EXPECT_TRUE(result->ok()) << result->err;
}

INSTANTIATE_TEST_SUITE_P(Corpus, GpuCorpusCase, testing::ValuesIn(for_a_gpu_alone()), [](const auto& info) {
  std::string name = info.param.name;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
});

}  // namespace
}  // namespace capstone
