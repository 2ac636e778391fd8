#include "harness/course/recompute.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/instant.h"
#include "harness/base/text.h"
#include "harness/base/version.h"
#include "harness/model/labels.h"
#include "harness/project/included.h"
#include "harness/project/stub.h"
#include "harness/timing/roofline.h"
#include "harness/timing/statistics.h"
#include "rubric/numbers.h"

namespace capstone {
namespace {

constexpr int kResamples = 10000, kBlocksOfOldRecords = 4;
constexpr std::uint64_t kSeed = 1;       // the same findings every time
constexpr double kExact = 1e-6;          // relative; what is computed from the same numbers in the same way
constexpr double kWithoutBlocks = 0.05;  // relative; a ratio of medians against one of blocks
constexpr double kLeastSlack = 1e-4;     // of an interval's bounds, relative to its point
constexpr Instant kClocksApart = 600;    // [s] between two machines
constexpr std::size_t kMaxFile = 64u << 20;
constexpr std::string_view kTensorLabel = "needs an explanation: tensor-core";

bool same(double recorded, double computed, double tolerance = kExact) {
  return std::abs(recorded - computed) <= tolerance * std::abs(computed);
}

bool same(const Interval& a, const Interval& b) {
  return same(a.point, b.point) && same(a.low, b.low) && same(a.high, b.high);
}

// Bounds within what two bootstraps of the same samples differ by.
bool near(const Interval& recorded, const Interval& computed) {
  const double slack = kIntervalTolerance * (computed.high - computed.low) / 2 + kLeastSlack * computed.point;
  return std::abs(recorded.low - computed.low) <= slack && std::abs(recorded.high - computed.high) <= slack;
}

std::string text_or_none(const std::optional<Interval>& s) { return s ? text_of(*s) : "no speedup"; }

// [restart][sample] with a clean cache, or with a dirty one.
using Samples = std::vector<std::vector<double>>;

std::vector<double> all_of(const Samples& samples) {
  std::vector<double> all;
  for (const auto& restart : samples) all.insert(all.end(), restart.begin(), restart.end());
  return all;
}
std::vector<double> all_samples(const Arm& arm) { return all_of(arm.samples_ms); }

std::vector<double> block_medians(const std::vector<double>& restart, std::size_t blocks) {
  std::vector<double> medians;
  const std::size_t each = restart.size() / blocks;
  for (std::size_t b = 0; b < blocks && each > 0; ++b)
    medians.push_back(median(std::span(restart).subspan(b * each, each)));
  return medians;
}

// [restart][block] log(baseline / arm); empty if the samples do not have this structure.
std::vector<std::vector<double>> log_ratios(const Samples& baseline, const Samples& arm, std::size_t blocks) {
  std::vector<std::vector<double>> logs;
  if (baseline.size() != arm.size()) return {};
  for (std::size_t r = 0; r < arm.size(); ++r) {
    const auto &over = baseline[r], &under = arm[r];
    if (over.size() % blocks || under.size() % blocks) return {};
    const auto a = block_medians(over, blocks), b = block_medians(under, blocks);
    logs.emplace_back();
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
      logs.back().push_back(std::log(a[i] / b[i]));
  }
  return logs;
}

struct Ratio {
  Interval value;
  bool exact = true;  ///< false: the block structure is not known, and the bounds are the point
};

Ratio ratio_of(const Samples& baseline, const Samples& arm, int blocks) {
  const auto logs =
      log_ratios(baseline, arm, static_cast<std::size_t>(blocks > 0 ? blocks : kBlocksOfOldRecords));
  const Interval value = bootstrap_ratio(logs, kResamples, kSeed);
  if (std::isfinite(value.point)) return {value, true};
  const double point = median(all_of(baseline)) / median(all_of(arm));
  return {{point, point, point}, false};
}

Ratio ratio_of(const Arm& baseline, const Arm& arm, int blocks) {
  return ratio_of(baseline.samples_ms, arm.samples_ms, blocks);
}

bool follows(const Interval& recorded, const Ratio& computed) {
  if (!computed.exact)
    return same(recorded.point, computed.value.point, kWithoutBlocks) && recorded.low <= recorded.point &&
           recorded.point <= recorded.high;
  return same(recorded.point, computed.value.point) && near(recorded, computed.value);
}

std::optional<Sizes> sizes_of(const Json& recorded, const Sizes& symbols) {
  Sizes sizes;
  for (const auto& [symbol, value] : symbols) {
    auto found = recorded.is_object() ? recorded.find(symbol) : recorded.end();
    if (!recorded.is_object() || found == recorded.end() || !found->is_number_integer()) return std::nullopt;
    sizes.emplace_back(symbol, found->get<std::int64_t>());
  }
  return sizes;
}

// The peaks of the record's device, by the data sheet alone.
std::optional<DevicePeaks> peaks_of_record(const Json& environment) {
  auto text = environment.is_object() ? environment.find("device") : environment.end();
  if (!environment.is_object() || text == environment.end() || !text->is_string()) return std::nullopt;
  DeviceAttributes device;
  device.name = text->get<std::string>();
  if (auto count = environment.find("sm_count"); count != environment.end() && count->is_number_integer())
    device.sm_count = count->get<int>();
  if (!find_device(device.name, device.sm_count)) return std::nullopt;
  return peaks_of(device);
}

bool says_too_fast(const Measurement& m) {
  return std::any_of(m.labels.begin(), m.labels.end(), [](const std::string& label) {
    return label.starts_with(kNeedsExplanation) && !label.starts_with(kTensorLabel);
  });
}

// Everything about one record of times.
class TimesCheck {
 public:
  TimesCheck(Measurement& m, const Project& project, const Problem& problem, std::string name,
             std::vector<std::string>& findings)
      : m_(m),
        measured_(*m.measured),
        project_(project),
        problem_(problem),
        name_(std::move(name)),
        findings_(findings) {}

  /// The device, if no data sheet of it is known here.
  const std::string& unknown_device() const { return unknown_device_; }

  void run() {
    if (!samples_are_times()) return withdraw("holds a time that is not a positive number");
    medians();
    if (is_emulated(m_)) {
      if (measured_.speedup) withdraw("claims a speedup of emulated times");
      return;
    }
    if (!find_arms()) {
      if (measured_.speedup || m_.gate_two != GateTwo::kNotJudged)
        withdraw("claims a speedup without samples that give it");
      return;
    }
    speedups();
    verdict();
    cost();
    peak();
  }

 private:
  template <class... Words>
  void tell(fmt::format_string<Words...> text, Words&&... words) {
    findings_.push_back(name_ + " " + fmt::format(text, std::forward<Words>(words)...));
  }

  void withdraw(const char* because) {
    tell("{}", because);
    m_.measured.reset();
    m_.gate_two = GateTwo::kNotJudged;
  }

  bool samples_are_times() const {
    for (const Arm& arm : measured_.arms)
      for (const Samples* samples : {&arm.samples_ms, &arm.dirty_samples_ms})
        for (double ms : all_of(*samples))
          if (!(std::isfinite(ms) && ms > 0)) return false;
    return true;
  }

  void medians() {
    for (Arm& arm : measured_.arms) {
      const std::vector<double> all = all_samples(arm);
      if (all.empty()) continue;
      const Interval computed = median_interval(all);
      if (same(arm.median_ms, computed)) continue;
      tell("records a median of {} for {}; its samples give {}", format_time_ms(arm.median_ms.point),
           arm.name, format_time_ms(computed.point));
      arm.median_ms = computed;
    }
    for (Arm& arm : measured_.arms) {
      const std::vector<double> dirty = all_of(arm.dirty_samples_ms);
      if (dirty.empty()) continue;
      const Interval computed = median_interval(dirty);
      if (arm.dirty_ms && same(*arm.dirty_ms, computed)) continue;
      tell("records another median of {} with a dirty cache than its samples give, {}", arm.name,
           format_time_ms(computed.point));
      arm.dirty_ms = computed;
    }
  }

  // The baseline, the same once more, and the candidate.
  bool find_arms() {
    own_ = const_cast<Arm*>(candidate_arm(m_));
    baseline_ = const_cast<Arm*>(baseline_arm(m_));
    for (Arm& arm : measured_.arms)
      if (arm.name == "A/A") again_ = &arm;
    return own_ && baseline_ && !all_samples(*own_).empty() && !all_samples(*baseline_).empty();
  }

  void speedups() {
    for (Arm& arm : measured_.arms) {
      if (&arm == own_ || &arm == again_) continue;
      std::optional<Interval>& recorded = &arm == baseline_ ? measured_.speedup : arm.speedup;
      if (all_samples(arm).empty()) {
        if (recorded) tell("claims {} over {} without samples of it", text_of(*recorded), arm.name);
        recorded.reset();
        continue;
      }
      const Ratio computed = ratio_of(arm, *own_, measured_.blocks);
      if (recorded && follows(*recorded, computed)) continue;
      if (recorded || &arm == baseline_)
        tell("records {} over {}; its samples give {}", text_or_none(recorded), arm.name,
             text_of(computed.value));
      recorded = computed.value;
    }
  }

  void verdict() {
    check_floor(*measured_.speedup, &Arm::samples_ms, measured_.floor);
    GateTwo computed = verdict_of(*measured_.speedup, measured_.floor);
    if (!all_of(own_->dirty_samples_ms).empty() && !all_of(baseline_->dirty_samples_ms).empty())
      computed = of_both_states(computed, dirty_verdict());
    // A tie with a reason was decided by more than these samples.
    if (m_.gate_two == computed || m_.gate_two == GateTwo::kUnresolved ||
        (m_.gate_two == GateTwo::kTie && !m_.gate_two_reason.empty()))
      return;
    tell("says {}; its samples give {} ({})", label_of(m_.gate_two), label_of(computed),
         text_of(*measured_.speedup));
    m_.gate_two = computed;
  }

  static GateTwo verdict_of(const Interval& speedup, double floor) {
    return decide(speedup, {1, 1 - floor, 1 + floor}, true).verdict;
  }

  // The same with a dirty cache. Older records have no such samples.
  GateTwo dirty_verdict() {
    const Ratio computed = ratio_of(baseline_->dirty_samples_ms, own_->dirty_samples_ms, measured_.blocks);
    if (!measured_.dirty_speedup || !follows(*measured_.dirty_speedup, computed)) {
      tell("records {} with a dirty cache; its samples give {}", text_or_none(measured_.dirty_speedup),
           text_of(computed.value));
      measured_.dirty_speedup = computed.value;
    }
    check_floor(*measured_.dirty_speedup, &Arm::dirty_samples_ms, measured_.dirty_floor);
    return verdict_of(*measured_.dirty_speedup, measured_.dirty_floor);
  }

  void check_floor(const Interval& speedup, Samples Arm::*samples, double& recorded) {
    if (!again_ || all_of(again_->*samples).empty()) return;
    const Ratio again = ratio_of(baseline_->*samples, again_->*samples, measured_.blocks);
    const double floor = decide(speedup, again.value, true).floor,
                 slack = kIntervalTolerance * (again.value.high - again.value.low) / 2 + kLeastSlack;
    if (!again.exact || std::abs(recorded - floor) <= slack) return;
    tell("records a floor of {:.2f} %; its samples give {:.2f} %", 100 * recorded, 100 * floor);
    recorded = floor;
  }

  // The mentor's definition counts. A record may follow from the pinned one instead, if that is its own: a
  // course corrects a formula now and then.
  void cost() {
    std::optional<Cost> counts;
    std::string at;
    bool follow = false;
    for (const Problem* problem : {&problem_, &project_.problem}) {
      const auto sizes = sizes_of(measured_.sizes, problem->measure);
      if (!sizes) continue;
      const bool its_own = m_.problem_digest == problem->digest;
      if (its_own && *sizes != problem->measure)
        tell("was timed at {}; the problem is timed at {}", to_string(*sizes), to_string(problem->measure));
      const auto cost = cost_at(*problem, *sizes);
      if (!cost) continue;
      follow |= (its_own || problem == &problem_) && same(measured_.flops, cost->flops) &&
                same(measured_.bytes, cost->bytes);
      if (!counts) counts = *cost, at = to_string(*sizes);
    }
    if (!counts) return tell("does not give the sizes at which it was timed");
    if (!follow)
      tell("records {:.4g} operations and {:.4g} bytes; at {} they are {:.4g} and {:.4g}", measured_.flops,
           measured_.bytes, at, counts->flops, counts->bytes);
    measured_.flops = counts->flops, measured_.bytes = counts->bytes;
  }

  void peak() {
    const double ms = own_->median_ms.point;
    const auto peaks = peaks_of_record(m_.environment);
    if (!peaks) {
      unknown_device_ = environment_text(m_.environment, {"device"});
      if (measured_.percent_of_peak > 100 && !says_too_fast(m_))
        label(fmt::format("{:.0f} % of the peak of its precision class", measured_.percent_of_peak));
      return;
    }
    const Roofline roof = roofline({measured_.flops, measured_.bytes}, ms, *peaks, problem_.precision);
    // A data sheet may be corrected from one release to the next.
    const bool same_sheet = measured_.peak == roof.peak || text_at(m_.environment, "tool") == kToolVersion;
    if (same_sheet && !same(measured_.percent_of_peak, roof.percent))
      tell("records {:.1f} % of the peak; its time gives {:.1f} % of {}", measured_.percent_of_peak,
           roof.percent, roof.peak);
    measured_.percent_of_peak = roof.percent;
    measured_.peak = roof.peak;
    measured_.bound_by = roof.bound_by;
    if (ms < roof.floor_ms && m_.gate_two == GateTwo::kFaster && own_->dirty_ms) {
      tell("says FASTER for a time below the data sheet's");
      m_.gate_two = GateTwo::kUnresolved;
    }
    if (ms < roof.floor_ms && !says_too_fast(m_))
      label(fmt::format("{} is less than the {} that the data sheet allows for this work", format_time_ms(ms),
                        format_time_ms(roof.floor_ms)));
  }

  void label(const std::string& what) {
    tell("lacks the label \"{}{}\"", kNeedsExplanation, what);
    m_.labels.push_back(std::string(kNeedsExplanation) + what);
  }

  Measurement& m_;
  Measured& measured_;
  const Project& project_;
  const Problem& problem_;
  std::string name_;
  std::vector<std::string>& findings_;
  std::string unknown_device_;
  Arm *own_ = nullptr, *baseline_ = nullptr, *again_ = nullptr;
};

class Recomputation {
 public:
  Recomputation(const Project& project, const Problem& problem, LedgerView ledger,
                const std::vector<Measurement>& judged)
      : project_(project), problem_(problem), judged_(judged) {
    out_.ledger = std::move(ledger);
  }

  Recomputed run() {
    records();
    prediction();
    human();
    attempts();
    judged_again();
    return std::move(out_);
  }

 private:
  template <class... Words>
  void contradicted(fmt::format_string<Words...> text, Words&&... words) {
    out_.contradicted.push_back(fmt::format(text, std::forward<Words>(words)...));
  }

  void records() {
    // The lists hold the readable measurements, in the order of the records.
    std::map<std::string_view, std::size_t> next;  // of each candidate's list
    LedgerView& ledger = out_.ledger;
    for (const Record& record : ledger.records) {
      if (record.kind != "measurement" || !record.body.is_object()) continue;
      const std::string candidate = text_at(record.body, "candidate");
      const auto known = std::find(kCandidates.begin(), kCandidates.end(), candidate);
      auto& list = ledger.of(candidate);
      std::size_t& at = next[known == kCandidates.end() ? kCandidates.front() : *known];
      if (at >= list.size() || list[at].source_sha256 != text_at(record.body, "source_sha256")) continue;
      one_record(list[at++], record);
    }
  }

  void one_record(Measurement& m, const Record& record) {
    const std::string name = fmt::format("{} (record {})", m.version, record.seq);
    if (const CaseResult* failed = m.first_failure(); failed && m.gate_one == GateOne::kPassed) {
      contradicted("{} says PASS; its case {} failed: {}", name, failed->id, failed->problem);
      m.gate_one = GateOne::kWrong;
    }
    if (m.measured) {
      TimesCheck check(m, project_, problem_, name, out_.contradicted);
      check.run();
      if (!check.unknown_device().empty())
        out_.notes.push_back(
            fmt::format("{} was timed on {}: no data sheet of it is known here, so its "
                        "percentage of the peak is the record's own",
                        name, check.unknown_device()));
    } else if (m.gate_two != GateTwo::kNotJudged) {
      contradicted("{} says {} without any samples", name, label_of(m.gate_two));
      m.gate_two = GateTwo::kNotJudged;
    }
  }

  // By the order of the records within one chain, and by their times between machines.
  void prediction() {
    LedgerView& ledger = out_.ledger;
    if (ledger.predictions.empty() || !ledger.predictions.front().before_first_measurement) return;
    const auto is = [](const char* kind) { return [kind](const Record& r) { return r.kind == kind; }; };
    const auto predicted = std::find_if(ledger.records.begin(), ledger.records.end(), is("prediction"));
    if (predicted == ledger.records.end()) return;
    for (auto r = ledger.records.begin(); r != ledger.records.end(); ++r) {
      if (r->kind != "measurement") continue;
      if (!ledger.stub_sha256.empty() && text_at(r->body, "source_sha256") == ledger.stub_sha256) continue;
      const auto then = parse_instant(r->time), when = parse_instant(predicted->time);
      const Instant slack = r->machine == predicted->machine ? 0 : kClocksApart;
      if (r > predicted && !(then && when && *then + slack < *when)) continue;
      contradicted(
          "the prediction of {} says that it was made before the first measurement; record {} ({}) "
          "was made on {}",
          predicted->time, r->seq, text_at(r->body, "version"), r->time);
      ledger.predictions.front().before_first_measurement = false;
      return;
    }
  }

  std::string digest_of(const fs::path& file) const {
    auto text = read_file(file, kMaxFile);
    return text ? sha256_hex(*text) : std::string();
  }
  std::string shown(const fs::path& file) const { return file.lexically_relative(project_.root).string(); }

  // The measurement of what is handed in; null where the source or what it includes is another one.
  const Measurement* measured_as_handed_in(const std::vector<Measurement>& list, const fs::path& kernel,
                                           std::string& difference) const {
    const std::string digest = digest_of(kernel);
    const auto files = included_files(project_.root, kernel);
    const Measurement* last = nullptr;
    for (const Measurement& m : list) {
      if (m.source_sha256 != digest) continue;
      if (!m.included || (files && *m.included == *files)) return &m;
      last = &m;
    }
    if (!last) return nullptr;
    difference = "a file that it includes";
    for (const IncludedFile& file : *last->included)
      if (digest_of(project_.root / file.path) != file.sha256) difference = file.path;
    return nullptr;
  }

  void human() {
    std::error_code code;
    LedgerView& ledger = out_.ledger;
    const fs::path kernel = project_.human_kernel();
    const auto text = read_file(kernel, kMaxFile);
    const auto is_stub = [&](const Problem& problem) { return trim(*text) == trim(stub_kernel(problem)); };
    if (!text || is_stub(project_.problem) || is_stub(problem_)) {
      out_.missing.push_back(text ? "human/kernel.cu is the stub that `init` writes: there is no human kernel"
                                  : "there is no human kernel");
      ledger.human.clear();  // measurements of what is not there earn nothing
      return;
    }
    const auto passed = [](const Measurement& m) { return m.gate_one == GateOne::kPassed; };
    const auto human_passed = [&](const Measurement& m) { return m.candidate == "human" && passed(m); };
    if (std::none_of(ledger.human.begin(), ledger.human.end(), passed) &&
        std::none_of(judged_.begin(), judged_.end(), human_passed))
      out_.missing.push_back("no human kernel has passed gate one, neither in the ledger nor now");
    std::string difference;
    if (ledger.human.empty() || measured_as_handed_in(ledger.human, kernel, difference)) return;
    if (difference.empty())
      out_.missing.push_back(shown(kernel) + " differs from every measured version");
    else
      contradicted("{} was changed after {} was measured with it", difference, shown(kernel));
  }

  void attempts() {
    LedgerView& ledger = out_.ledger;
    for (Attempt& attempt : ledger.attempts) {
      const fs::path folder = project_.attempt(attempt.number),
                     kernel = project_.attempt_kernel(attempt.number);
      const std::string version = fmt::format("attempt-{}", attempt.number);
      const auto changed = [&](const fs::path& file, std::string& recorded) {
        const std::string digest = recorded.empty() ? recorded : digest_of(file);
        if (digest == recorded) return;
        contradicted("{} {}", shown(file),
                     digest.empty() ? "is recorded and is not there" : "was changed after it was recorded");
        recorded.clear();
      };
      changed(folder / "prompt.md", attempt.prompt_sha256);
      changed(folder / "reply.md", attempt.reply_sha256);
      std::vector<Measurement> of_it;
      for (const Measurement& m : ledger.llm)
        if (m.version == version) of_it.push_back(m);
      if (of_it.empty()) {
        changed(kernel, attempt.kernel_sha256);
        continue;
      }
      std::string difference;
      if (measured_as_handed_in(of_it, kernel, difference)) continue;
      contradicted("{} {} after it was measured as {}", difference.empty() ? shown(kernel) : difference,
                   digest_of(kernel).empty() ? "was removed" : "was changed", version);
      std::erase_if(ledger.llm, [&](const Measurement& m) { return m.version == version; });
    }
  }

  // What the same version of the judge says about the same source.
  void judged_again() {
    for (const Measurement& fresh : judged_)
      for (Measurement& m : out_.ledger.of(fresh.candidate)) {
        if (m.source_sha256 != fresh.source_sha256) continue;
        const bool verdict =
            fresh.gate_one != GateOne::kNotJudgeable && fresh.gate_one != GateOne::kMachineFault;
        if (verdict && fresh.candidate != "human" && m.gate_one == GateOne::kPassed)
          m.gate_one = fresh.gate_one;
        const auto tool = [](const Measurement& of) { return environment_text(of.environment, {"tool"}); };
        if (is_emulated(m) || tool(m) != tool(fresh)) continue;
        for (const std::string& label : fresh.labels) {
          if (!label.starts_with(kTensorLabel) ||
              std::find(m.labels.begin(), m.labels.end(), label) != m.labels.end())
            continue;
          contradicted("{} lacks the label \"{}\"", m.version, label);
          m.labels.push_back(label);
        }
      }
  }

  const Project& project_;
  const Problem& problem_;
  const std::vector<Measurement>& judged_;
  Recomputed out_;
};

bool same_person(const Person& a, const Person& b) {
  if (!a.id.empty() && !b.id.empty()) return a.id == b.id;
  return !a.name.empty() && a.name == b.name;
}

bool share_a_member(const std::vector<Person>& a, const std::vector<Person>& b) {
  return std::any_of(a.begin(), a.end(), [&](const Person& one) {
    return std::any_of(b.begin(), b.end(), [&](const Person& other) { return same_person(one, other); });
  });
}

}  // namespace

Recomputed recompute(const Project& project, const Problem& problem, LedgerView ledger,
                     const std::vector<Measurement>& judged) {
  return Recomputation(project, problem, std::move(ledger), judged).run();
}

std::map<std::string, std::vector<std::string>> compare_cohort(
    const std::vector<const SubmissionResult*>& results, const std::vector<CheckIn>& checkins) {
  std::map<std::string, std::vector<std::string>> findings;
  std::map<std::string, std::vector<const SubmissionResult*>> holders;  // by the digest of a measurement
  for (const SubmissionResult* result : results)
    for (const std::string& digest : std::set(result->measurements.begin(), result->measurements.end()))
      holders[digest].push_back(result);
  std::map<std::pair<std::string, std::string>, int> shared;  // submission, another person's
  for (const auto& [digest, who] : holders)
    for (const SubmissionResult* a : who)
      for (const SubmissionResult* b : who)
        if (a != b && !share_a_member(a->members, b->members)) ++shared[{a->name, b->name}];
  for (const auto& [pair, count] : shared)
    findings[pair.first].push_back(
        fmt::format("its ledger holds {} that {} holds, too, sample for sample",
                    count == 1 ? "a measurement" : fmt::format("{} measurements", count), pair.second));
  for (const CheckIn& checkin : checkins)
    for (const SubmissionResult* result : results) {
      if (result->lines.empty() || checkin.problem != result->problem ||
          !share_a_member(checkin.members, result->members) ||
          std::find(result->lines.begin(), result->lines.end(), checkin.head) != result->lines.end())
        continue;
      findings[result->name].push_back(fmt::format(
          "its ledger lacks the record that was its last one of {} at the check-in of {}: records "
          "were dropped or written again",
          checkin.records, checkin.time));
    }
  return findings;
}

}  // namespace capstone
