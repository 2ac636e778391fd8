#pragma once
// A workbench for tests: builds a .cu text for the CPU and runs it through the worker protocol.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "harness/base/json.h"
#include "harness/base/subprocess.h"
#include "harness/runtime/build/build.h"
#include "harness/runtime/worker/channel.h"

namespace capstone::test {

/// y = f(x): x f32 [n], y f32 [n], n. The problem of every test here.
Problem vector_problem();

const Resources& test_resources();

/// Writes `source` to a new file and builds it. A second call with the same source returns the same artifact.
EmulatedArtifact build(const std::string& source, int cuda_arch = 900,
                       BuildVariant variant = BuildVariant::kFast);
/// @param place  a folder's name: the file lies there instead
EmulatedArtifact build_afresh(const std::string& source, int cuda_arch = 900,
                              BuildVariant variant = BuildVariant::kFast, const std::string& place = "");

/// A running worker with an arena that holds x and y.
class Workbench {
 public:
  Workbench(const std::filesystem::path& program, std::vector<float> x, std::size_t outputs);
  ~Workbench();
  Json ask(const Json& request, int descriptor = -1);
  /// @param more  more members of the request
  Json run(const std::string& schedule = "forward", std::uint64_t seed = 1,
           const Json& more = Json::object());
  /// With the instrumented build: the answer, and under "report" what was observed. x holds values, y does
  /// not.
  Json observe(const std::string& schedule = "forward", std::uint64_t seed = 1);
  void set_x(std::size_t index, float value);
  std::vector<float> y() const;
  std::string errors() const { return child_->err_so_far(); }

 private:
  Json request(const std::string& schedule, std::uint64_t seed) const;
  // At least 256 bytes lie between the tensors and around them.
  std::size_t at_x() const { return 256; }
  std::size_t at_y() const { return at_x() + (inputs_ * 4 + 255) / 256 * 256 + 256; }
  std::size_t inputs_, outputs_, bytes_;
  char* arena_ = nullptr;
  int memory_ = -1;
  std::unique_ptr<Child> child_;
  std::unique_ptr<Channel> channel_;
};

inline const std::vector<std::string> kSchedules = {"forward", "reverse", "random", "warp"};

/// Builds, runs under one schedule and returns y; a failure fails the test and returns nothing.
std::vector<float> evaluate(const std::string& source, const std::vector<float>& x, std::size_t outputs,
                            const std::string& schedule = "forward");

/// Builds and runs a source that must fail; returns the worker's answer.
Json failure_of(const std::string& source, std::size_t n = 64, const std::string& schedule = "forward",
                BuildVariant variant = BuildVariant::kFast);

/// 1-based line of the first occurrence of `marker`.
int line_of(const std::string& source, const std::string& marker);

}  // namespace capstone::test
