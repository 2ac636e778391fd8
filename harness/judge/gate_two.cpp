#include "harness/judge/gate_two.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <set>

#include "harness/base/text.h"
#include "harness/check/compare.h"
#include "harness/measure/statistics.h"

namespace capstone {
namespace {

constexpr int kMinRestarts = 5, kMaxRestarts = 12;
constexpr int kBlocks = 4;            // per restart
constexpr int kDropped = 2;           // samples after a switch of arms
constexpr int kProbes = 2048;         // elements that the oracle computes at the measured size
constexpr int kWarmUpMost = 30;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begun) { return std::chrono::duration<double>(Clock::now() - begun).count(); }

// The measured case on the GPU: one set of tensors, and beside it room for what the reference makes of the same inputs.
class Stage {
 public:
  Stage(const GateTwoSetup& setup) : setup_(setup), problem_(*setup.problem) {}

  Result<void> lay_out(std::size_t workspace_bytes) {
    CAPSTONE_TRY(layout_, make_layout(problem_, problem_.measure, workspace_bytes));
    total_ = layout_.bytes;
    for (const TensorSlot& slot : layout_.tensors) {
      expected_at_.push_back(0);
      if (!parameter(slot).is_written()) continue;
      expected_at_.back() = total_;
      total_ += (slot.bytes + Layout::kGuard + 255) / 256 * 256;
    }
    // The same calls every time: made once.
    CAPSTONE_TRY(args_, call_arguments(problem_, layout_, problem_.measure));
    expected_args_ = args_;
    for (std::size_t i = 0; i < layout_.tensors.size(); ++i)
      if (expected_at_[i]) expected_args_[argument_of(i)]["at"] = expected_at_[i];
    return {};
  }

  Result<int> map() { return setup_.player->resize(total_); }
  std::size_t bytes() const { return total_; }

  // Fresh inputs, poisoned outputs, workspace and guard bands, cold caches.
  Result<void> prepare(std::uint64_t seed) {
    seed_ = seed;
    Json steps = Json::array();
    for (std::size_t i = 0; i < layout_.tensors.size(); ++i) {
      const TensorSlot& slot = layout_.tensors[i];
      const Parameter& p = parameter(slot);
      std::vector<std::size_t> places{slot.offset};
      if (expected_at_[i]) places.push_back(expected_at_[i]);
      for (std::size_t place : places) {
        Json step{{"at", place}, {"elements", slot.elements}, {"dtype", name_of(p.dtype)}};
        if (p.role == Role::kOutput) {
          step["do"] = "poison";
          step["seed"] = seed;
        } else {
          CAPSTONE_TRY(auto draw, draw_of(problem_, slot.parameter, problem_.measure, seed, Battery::kPlain));
          if (!draw) {  // permutations and offsets are made on the host
            std::vector<std::byte> bytes(slot.bytes);
            CAPSTONE_CHECK(fill_tensor(problem_, slot.parameter, problem_.measure, seed, Battery::kPlain, bytes));
            CAPSTONE_CHECK(setup_.player->upload(place, bytes));
            continue;
          }
          step["do"] = "fill";
          step["draw"] = draw_json(*draw);
        }
        steps.push_back(std::move(step));
      }
    }
    for (auto [offset, size] : layout_.guards())
      steps.push_back({{"do", "poison_bytes"}, {"at", offset}, {"bytes", size}, {"seed", seed ^ offset}});
    if (layout_.workspace_bytes)
      steps.push_back({{"do", "poison_bytes"}, {"at", layout_.workspace_offset}, {"bytes", layout_.workspace_bytes},
                       {"seed", seed + 1}});
    steps.push_back({{"do", "flush"}});
    CAPSTONE_TRY(auto done, setup_.player->batch(std::move(steps)));
    (void)done;
    return {};
  }

  Json run_request(bool into_expected, int repeat, bool hide) const {
    Json request{{"op", "run"}, {"args", into_expected ? expected_args_ : args_}, {"repeat", repeat}, {"hide_launch", hide}};
    request["workspace"] = layout_.workspace_bytes ? Json(layout_.workspace_offset) : Json(nullptr);
    return request;
  }

  // After the contestant's run and the reference's: guard bands, inputs, outputs. Empty text: all well.
  Result<std::string> verify() {
    Json steps = Json::array();
    for (auto [offset, size] : layout_.guards())
      steps.push_back({{"do", "check_bytes"}, {"at", offset}, {"bytes", size}, {"seed", seed_ ^ offset}});
    std::vector<std::pair<std::size_t, std::string>> meaning;
    for (std::size_t i = 0; i < layout_.tensors.size(); ++i) {
      const TensorSlot& slot = layout_.tensors[i];
      const Parameter& p = parameter(slot);
      if (p.is_written()) {
        meaning.emplace_back(steps.size(), "output " + p.name);
        double scale = i < scale_.size() ? scale_[i] : 0;
        steps.push_back({{"do", "compare"}, {"got", slot.offset}, {"expected", expected_at_[i]},
                         {"elements", slot.elements}, {"dtype", name_of(p.dtype)}, {"rtol", 2 * problem_.tolerance.rtol},
                         {"atol", 2 * problem_.tolerance.atol * scale}});
      } else {
        CAPSTONE_TRY(auto draw, draw_of(problem_, slot.parameter, problem_.measure, seed_, Battery::kPlain));
        if (!draw) continue;
        meaning.emplace_back(steps.size(), "input " + p.name);
        steps.push_back({{"do", "check_drawn"}, {"at", slot.offset}, {"elements", slot.elements},
                         {"dtype", name_of(p.dtype)}, {"draw", draw_json(*draw)}});
      }
    }
    const std::size_t guards = layout_.guards().size();
    CAPSTONE_TRY(Json results, setup_.player->batch(std::move(steps)));
    for (std::size_t i = 0; i < guards; ++i)
      if (results[i].at("wrong").get<std::int64_t>()) return std::string("memory outside the tensors was written in a timed run");
    for (auto& [at, name] : meaning) {
      std::int64_t wrong = results[at].at("wrong").get<std::int64_t>();
      if (!wrong) continue;
      if (name.starts_with("input")) return fmt::format("the {} was changed in a timed run", name);
      return fmt::format("wrong result in a timed run: {} elements of the {} differ from the reference's", wrong, name);
    }
    return std::string();
  }

  // The oracle's word on `probes` random elements of every output: of the reference's copy (which also fixes the scale
  // for the comparisons on the device) or of the contestant's.
  Result<std::string> probe(bool expected_copy) {
    std::vector<std::vector<std::byte>> storage(layout_.tensors.size());
    std::vector<std::span<const std::byte>> tensors;
    for (std::size_t i = 0; i < layout_.tensors.size(); ++i) {
      const TensorSlot& slot = layout_.tensors[i];
      if (parameter(slot).role != Role::kOutput) {
        if (host_seed_ != seed_ || host_inputs_.size() != layout_.tensors.size()) {
          storage[i].resize(slot.bytes);
          CAPSTONE_CHECK(fill_tensor(problem_, slot.parameter, problem_.measure, seed_, Battery::kPlain, storage[i]));
        }
      }
    }
    if (host_seed_ != seed_ || host_inputs_.empty()) {
      host_inputs_ = std::move(storage);
      host_seed_ = seed_;
    }
    for (std::size_t i = 0; i < layout_.tensors.size(); ++i) tensors.emplace_back(host_inputs_[i]);
    std::mt19937_64 random(fresh_seed());
    scale_.resize(layout_.tensors.size());
    for (std::size_t i = 0; i < layout_.tensors.size(); ++i) {
      const TensorSlot& slot = layout_.tensors[i];
      const Parameter& p = parameter(slot);
      if (!p.is_written()) continue;
      std::vector<std::int64_t> indices(kProbes);
      for (auto& index : indices) index = std::uniform_int_distribution<std::int64_t>(0, slot.elements - 1)(random);
      std::sort(indices.begin(), indices.end());
      std::vector<double> value(kProbes), scale(kProbes);
      CAPSTONE_CHECK(setup_.oracle->evaluate(problem_, problem_.measure, tensors, slot.parameter, indices, value, scale));
      CAPSTONE_TRY(Json results, setup_.player->batch(Json::array({{{"do", "gather"}, {"at", expected_copy ? expected_at_[i] : slot.offset},
                                                                    {"dtype", name_of(p.dtype)}, {"indices", indices}}})));
      const Json& got = results[0].at("values");
      int wrong = 0;
      double worst = 0;
      for (int k = 0; k < kProbes; ++k) {
        double g = got[k].is_number() ? got[k].get<double>() : std::nan("");
        if (!is_right(p.dtype, g, value[k], scale[k], problem_.tolerance)) ++wrong;
        worst = std::max(worst, std::fabs(g - value[k]));
      }
      if (expected_copy) scale_[i] = *std::max_element(scale.begin(), scale.end());
      if (wrong)
        return fmt::format("wrong result at the measured size: {} of {} probed elements of {} are outside the tolerance "
                           "(largest error {:.3g})", wrong, kProbes, p.name, worst);
    }
    return std::string();
  }

 private:
  const Parameter& parameter(const TensorSlot& slot) const {
    return problem_.signature[static_cast<std::size_t>(slot.parameter)];
  }
  std::size_t argument_of(std::size_t tensor) const { return static_cast<std::size_t>(layout_.tensors[tensor].parameter); }

  const GateTwoSetup& setup_;
  const Problem& problem_;
  Layout layout_;
  std::size_t total_ = 0;
  std::vector<std::size_t> expected_at_;
  Json args_, expected_args_;
  std::uint64_t seed_ = 0, host_seed_ = 0;
  std::vector<std::vector<std::byte>> host_inputs_;
  std::vector<double> scale_;
};

CaseResult failed(const Problem& problem, std::string what, std::string where, std::string hint) {
  CaseResult result;
  result.id = "measure";
  result.sizes = sizes_json(problem.measure);
  result.problem = std::move(what);
  result.where = std::move(where);
  result.hint = std::move(hint);
  return result;
}

class Session {
 public:
  Session(const GateTwoSetup& setup, std::vector<TimedArm>& arms) : setup_(setup), arms_(arms), stage_(setup) {}

  Result<GateTwoOutcome> run() {
    GateTwoOutcome outcome;
    auto begun = Clock::now();
    std::size_t workspace = 0;
    for (const TimedArm& arm : arms_) workspace = std::max(workspace, arm.workspace_bytes);
    CAPSTONE_CHECK(stage_.lay_out(workspace));
    CAPSTONE_TRY(Json before, setup_.player->telemetry());
    outcome.telemetry["before"] = before;
    const std::size_t contestants = arms_.size() - 2;
    const double budget = setup_.budget_seconds * static_cast<double>(std::max<std::size_t>(1, contestants));
    for (int restart = 0; restart < kMaxRestarts; ++restart) {
      setup_.say(fmt::format("gate two: restart {} of at least {}, {:.0f} s of about {:.0f} s", restart + 1, kMinRestarts,
                             seconds_since(begun), budget));
      CAPSTONE_CHECK(one_restart(restart, budget));
      if (restart + 1 < kMinRestarts) continue;
      if (all_narrow()) break;
      if (seconds_since(begun) > budget) {
        outcome.budget_spent = true;
        break;
      }
    }
    if (!all_narrow()) outcome.budget_spent = true;
    CAPSTONE_TRY(Json after, setup_.player->telemetry());
    outcome.telemetry["after"] = after;
    outcome.void_because = lonely_difference();
    outcome.seconds = seconds_since(begun);
    return outcome;
  }

 private:
  bool alive(std::size_t arm) const { return !arms_[arm].failure; }

  Result<void> one_restart(int restart, double budget) {
    workers_.clear();
    workers_.resize(arms_.size());
    CAPSTONE_TRY(int memory, stage_.map());
    CAPSTONE_CHECK(start(0, memory));
    if (restart == 0) {
      CAPSTONE_CHECK(warm_up(0));
      // What the reference takes while no contestant is alive: nobody can have slowed it down.
      for (int i = 0; i < 9; ++i) {
        CAPSTONE_TRY(double ms, sample(0));
        lonely_.push_back(ms);
      }
    }
    for (std::size_t a = 1; a < arms_.size(); ++a)
      if (alive(a)) CAPSTONE_CHECK(start(a, memory));
    double slowest = 0;
    for (std::size_t a = 0; a < arms_.size(); ++a)
      if (alive(a)) {
        auto t = Clock::now();
        CAPSTONE_TRY(int samples, warm_up(a));
        slowest = std::max(slowest, seconds_since(t) / std::max(1, samples));
      }
    // As many samples a block as the budget of one restart allows, 3 to 12.
    double runs = budget / kMinRestarts * 0.8 / std::max(1e-4, slowest * double(arms_.size()) * kBlocks);
    int count = std::clamp(static_cast<int>(runs) - kDropped, 3, 12);
    for (TimedArm& arm : arms_) {
      arm.samples.emplace_back();
      arm.block_medians.emplace_back();
    }
    std::vector<std::size_t> order(arms_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (int block = 0; block < kBlocks; ++block) {
      std::shuffle(order.begin(), order.end(), random_);
      for (std::size_t a : order) {
        if (!alive(a)) continue;
        std::vector<double> kept;
        for (int i = 0; i < count + kDropped && alive(a); ++i) {
          CAPSTONE_TRY(double ms, sample(a));
          if (i >= kDropped && alive(a)) kept.push_back(ms);
        }
        if (!alive(a)) continue;
        arms_[a].block_medians.back().push_back(median(kept));
        auto& all = arms_[a].samples.back();
        all.insert(all.end(), kept.begin(), kept.end());
      }
    }
    for (std::size_t a = 0; a < arms_.size(); ++a)
      if (alive(a)) CAPSTONE_CHECK(hot(a));
    return {};
  }

  Result<void> start(std::size_t a, int memory) {
    auto worker = arms_[a].start_worker();
    if (!worker) return take_failure(a, worker.error());
    if (auto label = (*worker)->hello().find("label"); arms_[a].trusted && label != (*worker)->hello().end() && label->is_string())
      arms_[a].label = label->get<std::string>();
    auto mapped = (*worker)->ask({{"op", "arena"}, {"bytes", stage_.bytes()}}, std::chrono::seconds(60), memory);
    if (!mapped) return take_failure(a, mapped.error());
    workers_[a] = std::move(*worker);
    return {};
  }

  // A contestant's failure ends its race; the reference's is the machine's.
  Result<void> take_failure(std::size_t a, const WorkerFailure& failure) {
    if (failure.kind == WorkerFailure::Kind::kInterrupted) return fail("interrupted", {}, {}, ExitCode::kInterrupted);
    if (arms_[a].trusted)
      return fail("the baseline failed: " + failure.what, failure.where,
                  failure.hint.empty() ? "run `capstone doctor`" : failure.hint, ExitCode::kEnvironment);
    arms_[a].failure = this->failed_at_measure(failure.what, failure.where, failure.hint);
    workers_[a].reset();
    return {};
  }

  CaseResult failed_at_measure(std::string what, std::string where, std::string hint) const {
    return failed(*setup_.problem, std::move(what), std::move(where), std::move(hint));
  }

  // One sample; NaN (and a recorded failure) when the contestant broke.
  Result<double> sample(std::size_t a) {
    CAPSTONE_CHECK(stage_.prepare(fresh_seed()));
    auto answer = workers_[a]->ask(stage_.run_request(false, 1, true), setup_.run_timeout);
    if (!answer) {
      CAPSTONE_CHECK(take_failure(a, answer.error()));
      return std::nan("");
    }
    auto ms = answer->message.find("ms");
    if (ms == answer->message.end() || !ms->is_number() || !(ms->get<double>() > 0)) {
      CAPSTONE_CHECK(take_failure(a, {WorkerFailure::Kind::kMalformed, "the worker reported no time", {}, {}, {}}));
      return std::nan("");
    }
    // What this sample should have given: the reference computes it now, untimed.
    auto reference = workers_[0]->ask(stage_.run_request(true, 1, false), setup_.run_timeout);
    if (!reference) {
      CAPSTONE_CHECK(take_failure(0, reference.error()));
      return std::nan("");
    }
    if (!probed_) {
      CAPSTONE_TRY(std::string wrong, stage_.probe(true));
      if (!wrong.empty())
        return fail("the native baseline disagrees with the oracle: " + wrong, setup_.problem->id,
                    "this is a defect of the problem or of this GPU's setup, not of any submission", ExitCode::kEnvironment);
      probed_ = true;
    }
    CAPSTONE_TRY(std::string wrong, stage_.verify());
    if (wrong.empty() && !arms_[a].trusted && !strictly_checked_.contains(a)) {
      CAPSTONE_TRY(wrong, stage_.probe(false));
      strictly_checked_.insert(a);
    }
    if (!wrong.empty()) {
      if (arms_[a].trusted)
        return fail("a timed run of the baseline went wrong: " + wrong, setup_.problem->id, "run `capstone doctor`", ExitCode::kEnvironment);
      arms_[a].failure = failed_at_measure(wrong, {}, "right at the small sizes and wrong at the measured one: look for 32-bit "
                                           "index overflow, a grid that is too small, or results kept between calls");
      workers_[a].reset();
    }
    return ms->get<double>();
  }

  Result<int> warm_up(std::size_t a) {
    std::vector<double> times;
    while (static_cast<int>(times.size()) < kWarmUpMost && alive(a)) {
      CAPSTONE_TRY(double ms, sample(a));
      times.push_back(ms);
      if (times.size() >= 10 && stable(times)) break;
      double spent = 0;
      for (double t : times) spent += t;
      if (times.size() >= 3 && spent > 1500) break;  // slow kernels need no thirty runs to be warm
    }
    return static_cast<int>(times.size());
  }

  // Back-to-back launches without a flush, and the host's view of them. Shown, never graded.
  Result<void> hot(std::size_t a) {
    CAPSTONE_CHECK(stage_.prepare(fresh_seed()));
    double ms = arms_[a].samples.back().empty() ? 1 : median(arms_[a].samples.back());
    int repeat = std::clamp(static_cast<int>(100 / std::max(ms, 0.01)), 3, 50);
    auto answer = workers_[a]->ask(stage_.run_request(false, repeat, false), setup_.run_timeout);
    if (!answer) return take_failure(a, answer.error());
    arms_[a].hot.push_back(answer->number("ms").value_or(0));
    arms_[a].host.push_back(answer->number("host_ms").value_or(0));
    return {};
  }

  bool all_narrow() const {
    for (std::size_t a = 1; a < arms_.size(); ++a)
      if (alive(a) && !narrow_enough(ratio(a))) return false;
    return true;
  }
  Interval ratio(std::size_t a) const { return bootstrap_ratio(log_ratios(arms_[0], arms_[a]), 1000, 1); }

 public:
  static std::vector<std::vector<double>> log_ratios(const TimedArm& reference, const TimedArm& arm) {
    std::vector<std::vector<double>> logs;
    for (std::size_t r = 0; r < arm.block_medians.size(); ++r) {
      logs.emplace_back();
      for (std::size_t b = 0; b < arm.block_medians[r].size() && b < reference.block_medians[r].size(); ++b)
        logs.back().push_back(std::log(reference.block_medians[r][b] / arm.block_medians[r][b]));
    }
    return logs;
  }

 private:
  // The reference alone against the reference in company.
  std::string lonely_difference() const {
    std::vector<double> company;
    for (const auto& restart : arms_[0].samples) company.insert(company.end(), restart.begin(), restart.end());
    if (lonely_.empty() || company.empty()) return {};
    Interval alone = median_interval(lonely_), together = median_interval(company);
    double slack = 0.03 * together.point;
    if (together.low - slack <= alone.high && alone.low <= together.high + slack) return {};
    return fmt::format("the reference took {} alone and {} beside the contestants: something ran in the background",
                       format_time_ms(alone.point), format_time_ms(together.point));
  }

  const GateTwoSetup& setup_;
  std::vector<TimedArm>& arms_;
  Stage stage_;
  std::vector<std::unique_ptr<Runner>> workers_;
  std::vector<double> lonely_;
  std::set<std::size_t> strictly_checked_;
  bool probed_ = false;
  std::mt19937_64 random_{fresh_seed()};
};

}  // namespace

Result<GateTwoOutcome> gate_two(const GateTwoSetup& setup, std::vector<TimedArm>& arms) {
  return Session(setup, arms).run();
}

std::vector<std::vector<double>> log_ratios(const TimedArm& reference, const TimedArm& arm) {
  return Session::log_ratios(reference, arm);
}

}  // namespace capstone
