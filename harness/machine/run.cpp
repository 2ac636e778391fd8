#include "harness/machine/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <stop_token>
#include <thread>

#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"
#include "harness/project/reply/extract.h"

namespace capstone::machine {
namespace {

using Clock = std::chrono::steady_clock;

// What a thread has found out; the run's own thread writes it into the archive.
using Finding = std::function<Result<void>()>;

class Run {
 public:
  Run(const RunInfo& info, const RunParts& parts) : info_(info), parts_(parts) {}

  Result<std::string> go() {
    Result<std::string> ended = loop();
    stop_.request_stop();
    threads_.clear();  // joins
    CAPSTONE_CHECK(count_minutes());
    CAPSTONE_CHECK(parts_.archive->set_ended(info_, ended ? *ended : ended.error().what));
    return ended;
  }

 private:
  Result<std::string> loop() {
    CAPSTONE_TRY(tree_, parts_.archive->tree(info_));
    for (;;) {
      CAPSTONE_CHECK(extend());
      CAPSTONE_CHECK(begin_work());
      if (asking_.empty() && judging_.empty())
        return spent_.empty() ? "the search is complete" : spent_ + " are spent";
      CAPSTONE_CHECK(take_findings());
      CAPSTONE_CHECK(count_minutes());
    }
  }

  Result<void> extend() {
    if (failed_) return {};
    const std::vector<Node> planned = parts_.search->next(tree_);
    if (planned.empty()) return {};
    CAPSTONE_CHECK(parts_.archive->plan(info_, planned));
    tree_.insert(tree_.end(), planned.begin(), planned.end());
    return {};
  }

  // Begins as much as may run at a time. After a failure nothing more is asked, and what was answered is
  // judged, unless it is the judge that fails.
  Result<void> begin_work() {
    if (interrupted()) return fail("interrupted", {}, "the same command goes on", ExitCode::kInterrupted);
    bool open = false;
    for (const Node& node : tree_) {
      open = open || node.state != NodeState::kDone;
      if (node.state == NodeState::kAnswered && !judge_fails_ && may_judge(node.name)) judge(node, false);
      if (node.state == NodeState::kPlanned && !failed_ && may_ask(node.name)) CAPSTONE_CHECK(ask(node));
    }
    if (!open && !failed_ && judging_.empty())
      for (const std::string& name : parts_.search->to_confirm(tree_))
        if (may_judge(name)) judge(*find_node(tree_, name), true);
    if (failed_ && asking_.empty() && judging_.empty()) return fail(*failed_);
    return {};
  }

  bool may_judge(const std::string& name) const {
    return judging_.size() < static_cast<std::size_t>(parts_.judges) && !judging_.count(name);
  }

  bool may_ask(const std::string& name) {
    if (asking_.size() >= static_cast<std::size_t>(parts_.askers) || asking_.count(name)) return false;
    Spent spent = spent_by(tree_, info_);
    spent.tries += static_cast<int>(asking_.size());
    spent_ = exhausted(parts_.budget, spent);
    if (parts_.budget.minutes > 0 && spent.minutes >= parts_.budget.minutes) stop_.request_stop();
    return spent_.empty();
  }

  // Runs `work` in a thread of its own; what it returns is done by this one.
  void start(std::function<Finding()> work) {
    threads_.emplace_back([this, work = std::move(work)] {
      Finding finding = work();
      const std::lock_guard lock(mutex_);
      findings_.push_back(std::move(finding));
      ready_.notify_one();
    });
  }

  Result<void> take_findings() {
    constexpr auto kPause = std::chrono::milliseconds(100);
    std::deque<Finding> found;
    {
      std::unique_lock lock(mutex_);
      ready_.wait_for(lock, kPause, [this] { return !findings_.empty(); });
      found.swap(findings_);
    }
    for (const Finding& finding : found) CAPSTONE_CHECK(finding());
    return {};
  }

  Result<void> count_minutes() {
    const double minutes = std::chrono::duration<double, std::ratio<60>>(Clock::now() - counted_).count();
    constexpr double kStep = 1.0 / 60;  // [min] a killed run forgets less than this
    if (minutes < kStep && !stop_.stop_requested()) return {};
    counted_ = Clock::now();
    info_.minutes += minutes;
    return parts_.archive->add_minutes(info_, minutes);
  }

  Result<void> keep(const Node& node) {
    CAPSTONE_CHECK(parts_.archive->save(info_, node));
    auto at = std::find_if(tree_.begin(), tree_.end(), [&](const Node& n) { return n.name == node.name; });
    *at = node;
    if (parts_.changed) parts_.changed(tree_, *at);
    return {};
  }

  // The first failure ends the run, once everything under way has ended. What ends because of it is no news.
  Result<void> give_up(Error error) {
    if (!failed_) failed_ = std::move(error);
    stop_.request_stop();
    return {};
  }

  Result<void> ask(const Node& planned) {
    CAPSTONE_TRY(const std::vector<Message> conversation, parts_.prompts->conversation(tree_, planned));
    Node node = planned;
    CAPSTONE_TRY(node.prompt_sha256, parts_.archive->keep(flat_text(conversation)));
    CAPSTONE_CHECK(parts_.archive->save(info_, node));
    asking_.insert(node.name);
    start([this, node, question = Question{node.name, conversation}] {
      Result<Answer> answer = parts_.provider->ask(question, stop_.get_token());
      return Finding([this, node, answer] { return take_answer(node, answer); });
    });
    return {};
  }

  Result<void> take_answer(Node node, const Result<Answer>& answer) {
    asking_.erase(node.name);
    if (!answer) {
      if (answer.error().code == ExitCode::kInterrupted && stop_.stop_requested() && !interrupted())
        return {};
      return give_up(answer.error());
    }
    CAPSTONE_TRY(node.reply_sha256, parts_.archive->keep(answer->text));
    node.state = NodeState::kAnswered;
    node.model = answer->model;
    node.tokens_in = answer->tokens_in;
    node.tokens_out = answer->tokens_out;
    node.cost = answer->cost;
    node.seconds = answer->seconds;
    node.requests = answer->requests;
    node.notes = answer->notes;
    if (node.kind == NodeKind::kIdeas) {
      node.ideas = ideas_in(to_utf8(answer->text), parts_.ideas);
      node.state = NodeState::kDone;
      if (node.ideas.empty()) node.failure = "the reply has no numbered ideas";
      return keep(node);
    }
    CAPSTONE_CHECK(take_code(node, answer->text));
    return keep(node);
  }

  Result<void> take_code(Node& node, const std::string& reply) {
    std::optional<std::string> base;  // a reply may be a diff against its parent
    if (const Node* parent = find_node(tree_, node.parent); parent && !parent->source_sha256.empty()) {
      CAPSTONE_TRY(base, parts_.archive->text(parent->source_sha256));
    }
    const Extraction extraction = extract_code(reply, base);
    if (!extraction.why_not.empty()) {
      node.verdict = kNoCode;
      node.failure = extraction.why_not;
      node.state = NodeState::kDone;
      return {};
    }
    node.python = extraction.python;
    node.tokens_sha256 = token_digest(extraction.code);
    CAPSTONE_TRY(node.source_sha256, parts_.archive->keep(extraction.code));
    if (const Node* other = judged_with_same_code(node)) take_over(node, *other);
    return {};
  }

  const Node* judged_with_same_code(const Node& node) const {
    for (const Node& other : tree_)
      if (other.state == NodeState::kDone && other.tokens_sha256 == node.tokens_sha256 &&
          !other.verdict.empty())
        return &other;
    return nullptr;
  }

  static void take_over(Node& node, const Node& other) {
    node.state = NodeState::kDone;
    node.labels = other.labels;
    node.verdict = other.verdict;
    node.gate_two = other.gate_two;
    node.failure = other.failure;
    node.fitness = other.fitness;
    node.behaviour = other.behaviour;
    node.measurement_sha256 = other.measurement_sha256;
    node.explanation_sha256 = other.explanation_sha256;
    node.profile_sha256 = other.profile_sha256;
  }

  void judge(const Node& node, bool again) {
    judging_.insert(node.name);
    start([this, node, again] {
      Result<fs::path> source = parts_.archive->kernel_file(node.source_sha256, node.python);
      const Clock::time_point begun = Clock::now();
      Result<Judged> judged =
          source ? parts_.judge(node, *source, again) : Result<Judged>(fail(source.error()));
      Node timed = node;
      timed.judge_seconds += std::chrono::duration<double>(Clock::now() - begun).count();
      return Finding([this, timed, again, judged] { return take_verdict(timed, again, judged); });
    });
  }

  Result<void> take_verdict(Node node, bool again, const Result<Judged>& judged) {
    judging_.erase(node.name);
    if (!judged) {
      judge_fails_ = true;
      return give_up(judged.error());
    }
    const Measurement& m = judged->measurement;
    if (m.gate_one == GateOne::kMachineFault) {
      judge_fails_ = true;
      return give_up({"the machine failed while it judged " + node.name + ": " + failure_line(m),
                      {},
                      "nothing was recorded for it; the same command goes on",
                      ExitCode::kEnvironment});
    }
    for (const std::string& label : m.labels)
      if (std::find(node.labels.begin(), node.labels.end(), label) == node.labels.end())
        node.labels.push_back(label);
    if (again) {
      // The worse of the two judgements counts.
      const std::optional<Fitness> fitness = fitness_of(*judged);
      node.confirmed = m.gate_one == GateOne::kPassed && fitness.has_value() == node.fitness.has_value();
      if (!judged->profile.is_null()) {
        CAPSTONE_TRY(node.profile_sha256, parts_.archive->keep(judged->profile.dump()));
      }
      if (*node.confirmed && fitness && fitness->low() < node.fitness->low()) node.fitness = fitness;
      if (!*node.confirmed) node.failure = "not confirmed: " + failure_line(m);
      return keep(node);
    }
    node.state = NodeState::kDone;
    node.verdict = label_of(m.gate_one);
    if (m.gate_two != GateTwo::kNotJudged) node.gate_two = label_of(m.gate_two);
    node.failure = m.gate_one == GateOne::kPassed ? "" : failure_line(m);
    node.fitness = fitness_of(*judged);
    CAPSTONE_TRY(const std::string code, parts_.archive->text(node.source_sha256));
    node.behaviour = behaviour_of(code, judged->counts ? &*judged->counts : nullptr);
    CAPSTONE_TRY(node.measurement_sha256, parts_.archive->keep(Json(m).dump()));
    if (judged->counts) {
      CAPSTONE_TRY(node.explanation_sha256, parts_.archive->keep(Json(*judged->counts).dump()));
    }
    if (!judged->profile.is_null()) {
      CAPSTONE_TRY(node.profile_sha256, parts_.archive->keep(judged->profile.dump()));
    }
    return keep(node);
  }

  RunInfo info_;
  const RunParts& parts_;
  Tree tree_;
  std::string spent_;  ///< the budget that is exhausted; empty: none
  std::set<std::string> asking_, judging_;
  std::optional<Error> failed_;
  bool judge_fails_ = false;
  Clock::time_point counted_ = Clock::now();
  std::stop_source stop_;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Finding> findings_;
  std::vector<std::jthread> threads_;
};

}  // namespace

std::optional<Fitness> fitness_of(const Judged& judged) {
  const Measurement& m = judged.measurement;
  if (m.gate_one != GateOne::kPassed) return std::nullopt;
  if (m.measured && m.measured->speedup && m.gate_two != GateTwo::kNotJudged)
    return Fitness{*m.measured->speedup, true};
  const std::optional<double> share = judged.counts ? modelled_share(*judged.counts) : std::nullopt;
  if (!share) return std::nullopt;
  return Fitness{{*share, *share, *share}, false};
}

std::string failure_line(const Measurement& m) {
  if (m.gate_one == GateOne::kBuildFailed)
    return m.build.first_error
               ? fmt::format("line {}: {}", m.build.first_error->line, m.build.first_error->text)
               : "it does not compile";
  for (const CaseResult& c : m.cases) {
    if (c.passed) continue;
    std::string text = c.problem;
    if (c.diagnosis && text.find(c.diagnosis->pattern) == std::string::npos)
      text += "; " + c.diagnosis->pattern;
    return c.where.empty() ? text : text + ", at " + c.where;
  }
  return m.gate_two_reason;
}

Result<std::string> run(const RunInfo& info, const RunParts& parts) { return Run(info, parts).go(); }

}  // namespace capstone::machine
