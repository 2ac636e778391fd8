// Judging on a GPU. The GPU host owns the tensors; a candidate is replayed (captured once, then launched by a
// trusted process) where that is possible, else it runs in a worker of its own.
#include <chrono>

#include "harness/judge/race.h"

namespace capstone {
namespace {

class CudaBackend : public JudgeBackend {
 public:
  CudaBackend(const JudgeContext& context, OracleInWaiting oracle)
      : session_(context), oracle_(std::move(oracle)) {}

  Result<std::vector<Built>> build() override {
    fs::path gpu_host_program;
    CAPSTONE_TRY(auto artifacts, build_all(session_, gpu_host_program));
    CAPSTONE_TRY(const Oracle* oracle, oracle_.get());
    CAPSTONE_CHECK(open_device(session_, gpu_host_program, *oracle));
    CAPSTONE_TRY(const Json environment, describe(session_));
    std::vector<Built> all;
    const auto& candidates = session_.request().candidates;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      CAPSTONE_TRY(Built built,
                   load_candidate(session_, candidates[i], std::move(artifacts[i]), environment));
      all.push_back(std::move(built));
    }
    return all;
  }

  DrawLimits draw_limits() const override { return kDrawLimitsOnGpu; }

  Result<std::vector<Checked>> check(std::vector<Built> built, const Bound& bound) override {
    const auto begun = std::chrono::steady_clock::now();
    CAPSTONE_TRY(const Oracle* oracle, oracle_.get());
    std::vector<Checked> all;
    for (Built& each : built) {
      Checked checked{std::move(each.record), std::move(each.program), {}};
      const bool can_run = checked.program != nullptr;
      if (can_run) CAPSTONE_CHECK(check_candidate(session_, *oracle, bound, checked));
      for (int arm = 1; can_run && arm < session_.request().arms; ++arm)
        all.push_back({checked.record, std::make_shared<CudaProgram>(cuda_program(checked)), checked.wants});
      all.push_back(std::move(checked));
    }
    checking_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    return all;
  }

  Result<Timed> time(std::vector<Checked> checked, const Bound& bound) override {
    CAPSTONE_TRY(const Oracle* oracle, oracle_.get());
    return race(session_, *oracle, bound, std::move(checked), checking_);
  }

 private:
  CudaSession session_;
  OracleInWaiting oracle_;
  double checking_ = 0;  ///< [s]
};

}  // namespace

std::unique_ptr<JudgeBackend> make_cuda_backend(const JudgeContext& context, OracleInWaiting oracle) {
  return std::make_unique<CudaBackend>(context, std::move(oracle));
}

}  // namespace capstone
