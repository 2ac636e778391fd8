#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "cli/machine_demos.h"
#include "cli/show_machine.h"
#include "harness/base/text.h"
#include "harness/machine/history.h"
#include "harness/machine/summary.h"

namespace capstone::cli {
namespace {

using machine::Alike;
using machine::Coverage;
using machine::CoveragePoint;
using machine::Node;
using workflows::RecordedRun;

std::string rounded_percent(double share) { return fmt::format("{:.0f} %", share * 100); }

std::vector<bool> hits_of(const std::vector<const Node*>& tries, bool both_gates) {
  std::vector<bool> hits;
  for (const Node* node : tries) hits.push_back(both_gates ? machine::wins(*node) : node->correct());
  return hits;
}

std::string names_of(const std::vector<const Node*>& tries) {
  constexpr std::size_t kMost = 8;
  std::vector<std::string> names;
  for (const Node* node : tries) names.push_back(node->name);
  if (names.size() > kMost) {
    names.resize(kMost);
    names.emplace_back("…");
  }
  return join(names, " ");
}

// One line a try: the counters climb, next to the formula as soon as it is fitted.
void climb(const Context& context, const std::vector<const Node*>& tries, const Coverage& coverage) {
  const Terminal& t = context.terminal;
  tell(context, " tries  correct  formula  measured");
  int correct = 0;
  for (std::size_t i = 0; i < tries.size(); ++i) {
    correct += tries[i]->correct();
    std::string line = fmt::format("{:>6}  {:>7}", i + 1, correct);
    if (i < coverage.points.size()) {
      const CoveragePoint& point = coverage.points[i];
      const bool fitted = point.k >= coverage.fitted;
      line += fmt::format("  {:>7}  {:>8}", fitted ? rounded_percent(point.formula.point) : "-",
                          fitted ? rounded_percent(point.measured) : "-");
    }
    const Node& node = *tries[i];
    const Tone tone = !node.correct() ? Tone::kBad : node.faster() ? Tone::kGood : Tone::kPlain;
    line += fmt::format(
        "   {}  {}", node.name,
        t.paint(tone, node.gate_two.empty() ? node.verdict : node.verdict + ", " + node.gate_two));
    tell(context, node.fitness ? line + "  " + short_score(node) : line);
    beat(context, tries.size());
  }
}

// One column for each k; a column at the bottom is none.
void draw(const Context& context, const Coverage& coverage, const std::string& gates) {
  constexpr std::array<const char*, 9> kHeights{"▁", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::size_t kWidest = 60;
  const std::size_t n = coverage.points.size(), columns = std::min(n, kWidest);
  std::string formula, measured;
  for (std::size_t i = 0; i < columns; ++i) {
    const CoveragePoint& point = coverage.points[columns > 1 ? i * (n - 1) / (columns - 1) : 0];
    formula += kHeights[static_cast<std::size_t>(std::lround(point.formula.point * 8))];
    measured += kHeights[static_cast<std::size_t>(std::lround(point.measured * 8))];
  }
  tell(context,
       fmt::format("\n  formula   {}\n  measured  {}   k = 1 … {}, {}", formula, measured, n, gates));
}

void table_of_k(const Context& context, const std::vector<const Node*>& tries, const Coverage& first,
                const Coverage* both) {
  std::vector<std::string> titles{"k", "formula", "correct"};
  if (both) titles.insert(titles.end(), {"formula", "correct and faster"});
  const bool measured = machine::is_measured(tries);
  const bool scored = machine::fittest(tries, measured) != nullptr;
  if (scored) titles.emplace_back("best of k");
  Table table(titles, std::vector<bool>(titles.size(), true));
  const auto add = [&](std::size_t k) {
    std::vector<std::string> cells{std::to_string(k)};
    for (const Coverage* c : {&first, both})
      if (c) {
        cells.push_back(rounded_percent(c->points[k - 1].formula.point));
        cells.push_back(rounded_percent(c->points[k - 1].measured));
      }
    const double best = machine::expected_best(tries, measured, static_cast<int>(k)).value_or(0);
    if (scored) cells.push_back(measured ? format_speedup(best) : rounded_percent(best));
    table.row(std::move(cells));
  };
  for (std::size_t k = 1; k < tries.size(); k *= 2) add(k);
  add(tries.size());
  tell(context, "\nat least one of k tries, by the formula and by pass@k; best of k: the mean:\n" +
                    table.text(context.terminal));
  if (scored)
    tell(context, measured
                      ? "best: the speedup over the baseline, the lower end of its interval; a wrong try "
                        "counts 0"
                      : "best: modelled from counts on a CPU, the share of the problem's lower bound; a "
                        "wrong try counts 0");
}

void tell_the_parting(const Context& context, const Coverage& c, const std::string& gates) {
  const std::string fitted =
      fmt::format("{}: p = {} from the first {} tries.", gates, rounded_percent(c.p.point), c.fitted);
  if (c.parts_at == 0)
    return tell(context, fmt::format("{} The curves stay together until k = {}, half of the tries.", fitted,
                                     machine::widest_k(c.points.size())));
  const CoveragePoint& at = c.points[static_cast<std::size_t>(c.parts_at) - 1];
  tell(context,
       fmt::format("{} {} at k = {}: the formula says {}, all {} tries say {}.", fitted,
                   context.terminal.paint(Tone::kWarn, "The curves part"), at.k,
                   rounded_percent(at.formula.point), c.points.size(), rounded_percent(at.measured)));
  tell(context,
       fmt::format("  {} of the first {} tries (95 % interval of p: {} to {}), {} of the other {} ({} to "
                   "{}): {}",
                   c.hits, c.fitted, rounded_percent(c.p.low), rounded_percent(c.p.high), c.rest_hits, c.rest,
                   rounded_percent(c.rest_p.low), rounded_percent(c.rest_p.high),
                   c.beyond_chance ? "that is more than chance" : "so few tries leave that much open"));
}

void list_alike(const Context& context, const Alike& group, const std::string& what) {
  tell(context,
       fmt::format("  {:>3} x  {}   ({})", group.tries.size(), one_line(what), names_of(group.tries)));
}

// What the tries have in common. The formula needs draws that know nothing of one another.
void why_they_part(const Context& context, const std::vector<const Node*>& tries) {
  const std::vector<Alike> mistakes = machine::alike_failures(tries), designs = machine::alike_designs(tries);
  std::size_t wrong = 0, with_code = 0;
  for (const Alike& group : mistakes) wrong += group.tries.size();
  for (const Alike& group : designs) with_code += group.tries.size();
  tell(context, "\nthe formula takes every try for a new draw with the same p. Are they?");
  if (!designs.empty()) {
    tell(context, fmt::format("{} kernels, {} way{} to move data and to multiply:", with_code, designs.size(),
                              designs.size() == 1 ? "" : "s"));
    for (const Alike& group : designs) list_alike(context, group, group.what);
  }
  if (const int repeated = machine::repeated_sources(tries))
    tell(context, fmt::format("sources that repeat an earlier one, token for token: {}", repeated));
  if (wrong == 0)
    return tell(context,
                "no try is wrong: there is no mistake to repeat, and more tries can bring speed alone");
  if (wrong == mistakes.size())
    return tell(context, fmt::format("{} wrong, and the judge gives no diagnosis twice: nothing here speaks "
                                     "against independent tries",
                                     wrong));
  tell(context, fmt::format("{} wrong, {} of them with a diagnosis that an earlier one had:", wrong,
                            wrong - mistakes.size()));
  for (const Alike& group : mistakes) {
    const Node& first = *group.tries.front();
    if (group.tries.size() > 1)
      list_alike(context, group,
                 first.failure.empty()
                     ? first.verdict
                     : first.verdict + ": " + first.failure.substr(0, first.failure.find('\n')));
  }
  tell(context,
       "a try that repeats an idea or a mistake adds to k, and little to what was tried: the formula "
       "does not see that");
}

void play_sample(const Context& context, const RecordedRun& run, const std::vector<const Node*>& tries) {
  tell(context, heading(context, run, fmt::format(": {} tries of one prompt", tries.size())));
  const bool timed =
      std::any_of(tries.begin(), tries.end(), [](const Node* n) { return !n->gate_two.empty(); });
  const Coverage correct = machine::coverage_of(hits_of(tries, false)),
                 faster = machine::coverage_of(hits_of(tries, true));
  climb(context, tries, correct);
  if (correct.points.empty()) return tell(context, "one try draws no curve");
  tell(context, fmt::format("formula: 1-(1-p)^k with the p of the first {} tries; measured: pass@k, the "
                            "unbiased estimate from all {}",
                            correct.fitted, tries.size()));
  draw(context, timed ? faster : correct, timed ? "correct and faster" : "correct");
  table_of_k(context, tries, correct, timed ? &faster : nullptr);
  tell(context, "");
  tell_the_parting(context, correct, "correct");
  if (timed)
    tell_the_parting(context, faster, "correct and faster");
  else
    tell(context, "gate two did not judge here: how many are faster is not measured");
  tell_failures(context, run, tries);
  if (const auto doubtful = std::count_if(tries.begin(), tries.end(),
                                          [](const Node* n) { return n->correct() && n->doubtful(); }))
    tell(context, fmt::format("not counted as faster: {} that a person has to look at first", doubtful));
  why_they_part(context, tries);
}

// The gap that no number of tries closes: problems differ, and one p for all of them hides those with p = 0.
void pool(const Context& context, const std::map<std::string, std::vector<bool>>& problems) {
  std::vector<std::vector<bool>> all;
  std::vector<std::string> shares;
  int never = 0;
  for (const auto& [problem, hits] : problems) {
    const auto count = std::count(hits.begin(), hits.end(), true);
    all.push_back(hits);
    shares.push_back(fmt::format("{} {} of {}", problem, count, hits.size()));
    never += count == 0;
  }
  const auto points = machine::pooled_coverage(all);
  if (points.empty()) return;
  Table table({"k", "formula", "measured"}, {true, true, true});
  for (const auto& point : points)
    table.row({std::to_string(point.k), rounded_percent(point.formula), rounded_percent(point.measured)});
  tell(context, fmt::format("\n{} problems that k tries solve (gate one):\n{}",
                            context.terminal.paint(Tone::kBold, fmt::format("share of the {}", all.size())),
                            table.text(context.terminal)));
  std::string text = fmt::format("formula: one p for all, the mean of {}.", join(shares, ", "));
  if (points.back().measured < points.back().formula)
    text += " The problems differ in p, so the measured curve stays below.";
  if (never)
    text += fmt::format(" {} of them {} not solved once: if p is 0 there, no k helps.", never,
                        never == 1 ? "was" : "were");
  tell(context, text);
}

// By hand: the formula, and what it hides when the same p is a mean over problems that differ.
Result<void> by_hand(const Context& context, const DemoInputs& inputs) {
  if (!inputs.from.empty() || !inputs.problem.empty())
    return fail("-p takes no recorded search", {}, "leave out --from and --problem", ExitCode::kUsage);
  const double p = inputs.chance;
  const int most = inputs.tries > 0 ? inputs.tries : 100;
  const auto solved = [](double chance, int k) { return 1 - std::pow(1 - chance, k); };
  const bool half = p <= 0.5;
  std::vector<std::string> titles{"k", "one p for all", "none in half, 2p in half", "p of them always"};
  if (!half) titles.erase(titles.begin() + 2);
  Table table(titles, std::vector<bool>(titles.size(), true));
  const auto add = [&](int k) {
    std::vector<std::string> cells{std::to_string(k), rounded_percent(solved(p, k))};
    if (half) cells.push_back(rounded_percent(solved(2 * p, k) / 2));
    cells.push_back(rounded_percent(p));
    table.row(std::move(cells));
  };
  constexpr std::array<int, 3> kSteps{1, 2, 5};
  for (int tens = 1; tens < most; tens *= 10)
    for (const int step : kSteps)
      if (step * tens < most) add(step * tens);
  add(most);
  tell(context,
       fmt::format(
           "1 - (1 - {:g})^{} = {:.3f}, if every problem has this p. Three classes of problems with the "
           "same mean p, and the share that k tries solve:\n{}",
           p, most, solved(p, most), table.text(context.terminal)));
  tell(context,
       "the measured share is below the first column, because problems differ: no number of tries "
       "solves one whose p is 0.\n\nask the room: which column is this class's set of problems?");
  return {};
}

}  // namespace

Result<void> monkeys_demo(const Context& context, const DemoInputs& inputs) {
  if (inputs.chance > 0) return by_hand(context, inputs);
  CAPSTONE_TRY(const std::vector<RecordedRun> runs, searches_to_play(context, inputs, "sample"));
  tell(context, "the same prompt again and again: how many tries until one is right?");
  std::map<std::string, std::vector<bool>> problems;  // the longest run of each
  for (const RecordedRun& run : runs) {
    if (run.info.kind != "sample") continue;
    const std::vector<const Node*> tries = machine::judged_tries(run.tree, inputs.tries);
    play_sample(context, run, tries);
    std::vector<bool>& longest = problems[run.info.problem];
    if (tries.size() > longest.size()) longest = hits_of(tries, false);
  }
  pool(context, problems);
  tell(context, "\nask the room: what would the next ten tries have to do differently?");
  return {};
}

}  // namespace capstone::cli
