#include "templates/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/model/sizes_text.h"
#include "harness/project/reply/difference.h"
#include "harness/project/reply/prompt.h"
#include "harness/project/together.h"
#include "harness/project/version_source.h"
#include "rubric/numbers.h"
#include "templates/counts.h"
#include "templates/wrong_map.h"

namespace capstone {

std::vector<LedgerEntry> ledger_entries(const LedgerView& ledger) {
  std::vector<LedgerEntry> entries;
  std::map<const std::vector<Measurement>*, std::size_t> next;
  for (const Record& r : ledger.records) {
    if (r.kind != "measurement") continue;
    const auto candidate = r.body.find("candidate");
    const bool named = candidate != r.body.end() && candidate->is_string();
    const std::vector<Measurement>& list = ledger.of(named ? candidate->get<std::string>() : std::string());
    std::size_t& at = next[&list];
    if (at < list.size()) entries.push_back({&list[at++], r.seq, r.time});
  }
  // A view without records (made by tests or tools) still shows all measurements.
  for (const char* candidate : kCandidates) {
    const std::vector<Measurement>& list = ledger.of(candidate);
    for (std::size_t at = next[&list]; at < list.size(); ++at) entries.push_back({&list[at], 0, {}});
  }
  return entries;
}

namespace {

constexpr std::size_t kShownText = std::size_t{256} << 10;  // [B] shown of a prompt, a reply or a log

Cell cell(std::string text, Tone tone = Tone::kPlain, bool strong = false) {
  return {std::move(text), tone, strong};
}
Cell muted(std::string text) { return cell(std::move(text), Tone::kMuted); }

// A fact about a first try: "yes", "no" or "not judged here".
Cell fact_cell(std::string_view text) {
  if (text != "yes" && text != "no") return muted(std::string(text));
  return cell(std::string(text), text == "yes" ? Tone::kGood : Tone::kBad, true);
}

Cell gate_one_cell(const Measurement& m) {
  if (!m.judged()) return muted(std::string(label_of(m.gate_one)));
  return cell(std::string(label_of(m.gate_one)), m.gate_one == GateOne::kPassed ? Tone::kGood : Tone::kBad,
              true);
}

// SLOWER is not shown as bad: a lost race is a valid result.
Cell gate_two_cell(const Measurement& m) {
  std::string label(label_of(m.gate_two));
  if (m.gate_one != GateOne::kPassed) return muted("–");
  if (m.gate_two == GateTwo::kNotJudged) return muted("not judged");
  return cell(label, m.gate_two == GateTwo::kFaster ? Tone::kGood : Tone::kPlain, true);
}

// "355 µs [352, 358]": the unit appears once, unless a bound has a different unit.
std::string time_with_interval(const Interval& t) {
  std::string point = format_time_ms(t.point), low = format_time_ms(t.low), high = format_time_ms(t.high);
  std::size_t unit = point.find(' ');
  if (unit == std::string::npos || !low.ends_with(point.substr(unit)) || !high.ends_with(point.substr(unit)))
    return fmt::format("{} [{}, {}]", point, low, high);
  return fmt::format("{} [{}, {}]", point, low.substr(0, low.find(' ')), high.substr(0, high.find(' ')));
}

// Emulated times say nothing about speed, so no table shows them.
Cell median_cell(const Measurement& m) {
  const Arm* arm = candidate_arm(m);
  return arm == nullptr || is_emulated(m) ? muted("–") : cell(time_with_interval(arm->median_ms));
}

Cell dirty_cell(const Measurement& m) {
  const Arm* arm = candidate_arm(m);
  if (arm == nullptr || !arm->dirty_ms) return muted("–");
  const std::string time = format_time_ms(arm->dirty_ms->point);
  return cell(m.measured->dirty_speedup
                  ? fmt::format("{}, {}", time, format_speedup(m.measured->dirty_speedup->point))
                  : time);
}

Cell speedup_cell(const Measurement& m) {
  std::string text = speedup_text(m);
  return text == "not judged" ? muted("–") : cell(text);
}

Cell percent_cell(const Measurement& m) {
  std::string text = percent_text(m);
  if (!text.ends_with('%')) return muted("–");
  return cell(text);
}

// Says which peak the percentages refer to. One line per table, unless the versions were compared with
// different peaks.
std::string peaks_text(const std::vector<const Measurement*>& list) {
  std::vector<std::string> peaks, parts;
  for (const Measurement* m : list) {
    if (!m->measured || is_emulated(*m) || m->measured->peak.empty() || m->measured->percent_of_peak <= 0)
      continue;
    if (std::find(peaks.begin(), peaks.end(), m->measured->peak) == peaks.end())
      peaks.push_back(m->measured->peak);
    parts.push_back(fmt::format("{}: {}", m->version, m->measured->peak));
  }
  if (peaks.empty()) return {};
  return "Percent of " + (peaks.size() == 1 ? peaks.front() : "peak: " + join(parts, "; "));
}

Cell bound_cell(const Measurement& m) {
  if (!m.measured || m.measured->bound_by.empty() || is_emulated(m)) return muted("–");
  return cell(m.measured->bound_by);
}

Cell text_or_dash(const std::string& text) { return trim(text).empty() ? muted("–") : cell(text); }

std::string when(const LedgerEntry& entry) { return entry.time.empty() ? "" : entry.time.substr(0, 16); }

std::string cut(std::string text) {
  if (text.size() <= kShownText) return to_utf8(text);
  text.resize(kShownText);
  return to_utf8(text) + "\n… (shortened; the project has the complete text)";
}

std::string indices(const std::vector<std::int64_t>& index) {
  return fmt::format("[{}]", fmt::join(index, ", "));
}

// One line that says what went wrong.
std::string failure_line(const Measurement& m) {
  if (m.gate_one == GateOne::kBuildFailed) {
    if (!m.build.first_error) return "the compiler printed no error message";
    return fmt::format("{}:{}: {}", m.build.first_error->file, m.build.first_error->line,
                       m.build.first_error->text);
  }
  const CaseResult* bad = nullptr;
  for (const CaseResult& c : m.cases)
    if (!c.passed) {
      bad = &c;
      break;
    }
  if (bad == nullptr) return m.gate_two_reason.empty() ? "no case was run" : m.gate_two_reason;
  std::string line = bad->problem.empty() ? "wrong result" : bad->problem;
  const std::string pattern = bad->diagnosis ? bad->diagnosis->pattern : std::string();
  if (line.find(pattern) == std::string::npos) line += "; in the outputs: " + pattern;
  return line;
}

// "v1 to v11, v13, attempt-2": three neighbours and more are a run.
std::string runs_text(const std::vector<std::string>& versions) {
  const auto split_number = [](const std::string& version) {
    const std::size_t digits = version.find_last_not_of("0123456789") + 1;
    const bool numbered = digits < version.size() && version.size() - digits < 10;
    return std::pair{version.substr(0, digits), numbered ? std::stol(version.substr(digits)) : -1};
  };
  std::vector<std::string> parts;
  for (std::size_t first = 0, next; first < versions.size(); first = next) {
    const auto [prefix, number] = split_number(versions[first]);
    for (next = first + 1; next < versions.size() && number >= 0; ++next)
      if (split_number(versions[next]) != std::pair{prefix, number + static_cast<long>(next - first)}) break;
    if (next - first >= 3)
      parts.push_back(versions[first] + " to " + versions[next - 1]);
    else
      parts.insert(parts.end(), versions.begin() + static_cast<std::ptrdiff_t>(first),
                   versions.begin() + static_cast<std::ptrdiff_t>(next));
  }
  return join(parts, ", ");
}

constexpr const char* kNoCounts =
    "No version has counts. `capstone measure` without --quick records them, and so does `capstone explain`.";

std::string flops_text(std::uint64_t flops) {
  const double n = static_cast<double>(flops);
  return flops < 10000 ? fmt::format("{}", flops)
         : n < 1e6     ? fmt::format("{:.3g} k", n / 1e3)
         : n < 1e9     ? fmt::format("{:.3g} M", n / 1e6)
                       : fmt::format("{:.3g} G", n / 1e9);
}

class Maker {
 public:
  Maker(const ReportInput& input, const std::vector<Plot>& plots)
      : input_(input),
        project_(*input.project),
        ledger_(*input.ledger),
        plots_(plots),
        entries_(ledger_entries(ledger_)),
        counts_(ledger_),
        emulated_(only_emulated(ledger_)) {}

  std::map<std::string, Figure> make() {
    put("problem", "The problem", problem());
    put("prediction", "The prediction", prediction());
    put("reference", "The reference", reference());
    put("versions", "Every version", versions());
    put("climb", "From version to version",
        emulated_ ? figure("counts", kNoCounts) : figure("climb", "There is no version to plot yet."));
    put("failures", "Failures of the human kernel", failures());
    put("explained-human", "Explained by counts", explained("human"));
    put("explained-llm", "Explained by counts", explained("llm"));
    put("attempts", "The prompts and the model's replies", attempts());
    put("head-to-head", "Head to head", head_to_head());
    put("roofline", "The roofline",
        figure("roofline",
               "No version was timed on a GPU, so no version has a place below the roofline. The "
               "modelled bound of each version stands with its counts."));
    put("samples", "The samples", figure("samples", "Nothing was timed on a GPU."));
    put("predicted", "Predicted and measured", predicted());
    put("stuck", "Every failure, in order", stuck());
    put("environment", "How this was judged", environment());
    return std::move(figures_);
  }

 private:
  void put(const char* name, const char* title, std::vector<Block> blocks) {
    figures_[name] = {name, title, std::move(blocks)};
  }

  std::vector<Block> figure(const std::string& name, const char* otherwise) const {
    for (const Plot& p : plots_)
      if (p.name == name) return {FigureBlock{p}};
    return {NoteBlock{otherwise, Tone::kMuted}};
  }

  std::vector<Block> problem() const {
    const Problem& p = project_.problem;
    FactsBlock facts;
    facts.facts = {
        {"Problem", cell(p.title.empty() ? p.id : fmt::format("{} ({})", p.title, p.id), Tone::kPlain, true)},
        {"Tier", cell(fmt::format("{} of 3", p.tier))},
        {"Precision", cell(std::string(name_of(p.precision)))},
        {"Tolerance",
         cell(fmt::format("|x − ref| ≤ {:g}·scale + {:g}·|ref|", p.tolerance.atol, p.tolerance.rtol))}};
    if (!p.measure.empty()) facts.facts.emplace_back("Measured at", cell(to_string(p.measure)));
    if (Result<Cost> cost = cost_at(p, p.measure); cost && cost->bytes > 0)
      facts.facts.emplace_back("The best algorithm",
                               cell(fmt::format("{:.3g} GFLOP and {:.3g} GB: {:.3g} FLOP/B",
                                                cost->flops / 1e9, cost->bytes / 1e9, cost->intensity())));
    std::vector<std::string> names;
    for (const Baseline& b : p.baselines) names.push_back(b.name);
    if (!names.empty())
      facts.facts.emplace_back("Baselines", cell(join(names, ", ") + " (gate two compares with the first)"));
    if (!project_.config.started_from.empty())
      facts.facts.emplace_back("Started from", cell(project_.config.started_from));
    return {facts};
  }

  std::vector<Block> prediction() const {
    if (ledger_.predictions.empty()) return {NoteBlock{"No prediction was recorded.", Tone::kBad}};
    std::vector<std::string> times;
    for (const Record& r : ledger_.records)
      if (r.kind == "prediction") times.push_back(r.time);
    std::vector<Block> blocks;
    for (std::size_t i = 0; i < ledger_.predictions.size(); ++i) {
      const Prediction& p = ledger_.predictions[i];
      FactsBlock facts;
      facts.facts.emplace_back("Bottleneck", cell(p.bottleneck, Tone::kPlain, true));
      if (p.speedup) facts.facts.emplace_back("Predicted speedup", cell(format_speedup(*p.speedup)));
      if (!p.because.empty()) facts.facts.emplace_back("Because", cell(p.because));
      std::string time = i < times.size() ? times[i] + ", " : "";
      facts.facts.emplace_back("Recorded", p.before_first_measurement
                                               ? cell(time + "before the first measurement", Tone::kGood)
                                               : cell(time + "after the first measurement", Tone::kBad));
      blocks.emplace_back(facts);
    }
    return blocks;
  }

  std::vector<Block> reference() const {
    Result<std::string> text = read_file(project_.root / "problem" / "reference.py", std::size_t{1} << 20);
    if (!text) text = read_file(project_.problem.folder / "reference.py", std::size_t{1} << 20);
    if (!text) return {NoteBlock{"The project has no problem/reference.py.", Tone::kBad}};
    return {ListingBlock{"problem/reference.py", cut(*text), "python", true}};
  }

  std::vector<Block> versions() const {
    std::vector<const Measurement*> list = ledger_.versions("human");
    if (list.empty()) {
      std::vector<Block> blocks{NoteBlock{"The human kernel was never judged.", Tone::kBad}};
      add_hints(blocks);
      return blocks;
    }
    TableBlock table;
    table.columns = {{"Version"}, {"Reason for the change", false, true}, {"Expected", true}};
    add_columns(table, emulated_ ? kCountColumns : kTimeColumns);
    table.columns.push_back({"Gate one", false, true});
    if (!emulated_) table.columns.push_back({"Gate two"});
    for (const Measurement* m : list) {
      table.rows.push_back({cell(m->version, Tone::kPlain, true),
                            text_or_dash(ledger_.reason("human", m->version)), expected_of(*m)});
      add_cells(table.rows.back(), emulated_ ? count_cells(*m) : time_cells(*m));
      table.rows.back().push_back(gate_one_cell(*m));
      if (!emulated_) table.rows.back().push_back(gate_two_cell(*m));
    }
    if (emulated_) {
      table.caption = counts_caption();
      drop_empty_column(table, "Expected");
      drop_empty_counts(table);
    }
    if (!emulated_) table.caption = peaks_text(list);
    std::vector<Block> blocks{table};
    add_hints(blocks);
    add_labels(blocks, list);
    if (emulated_) add_not_counted(blocks, list);
    add_not_judged(blocks);
    add_changes(blocks, list);
    return blocks;
  }

  static inline const std::vector<TableBlock::Column> kTimeColumns{
      {"Median [95 %]", true}, {"Speedup [95 %]", true}, {"Of peak", true}, {"Bound by"}};
  static std::vector<Cell> time_cells(const Measurement& m) {
    return {median_cell(m), speedup_cell(m), percent_cell(m), bound_cell(m)};
  }

  // What stands for times without a GPU.
  static inline const std::vector<TableBlock::Column> kCountColumns{
      {"Traffic", true},   {"Of the minimum", true}, {"Sectors", true},
      {"Conflicts", true}, {"FLOP", true},           {"Bound", true}};
  std::vector<Cell> count_cells(const Measurement& m) const {
    const Explanation* e = counts_.of(m.candidate, m.version);
    if (e == nullptr) return std::vector<Cell>(kCountColumns.size(), muted("–"));
    const ModelledFloor* floor = counts_.floor(m.candidate, m.version);
    return {cell(format_bytes(e->moved_bytes())),
            e->compulsory_bytes > 0 ? cell(fmt::format("{:.2f}x", e->moved_bytes() / e->compulsory_bytes))
                                    : muted("–"),
            cell(fmt::format("{:.1f} / {:.1f}", e->total.global.units_per_request(),
                             e->total.global.ideal_per_request())),
            cell(fmt::format("{}", bank_conflicts(*e))),
            cell(flops_text(e->total.flops)),
            floor ? cell(format_time_ms(floor->ms())) : muted("–")};
  }
  std::string counts_caption() const {
    if (counts_.empty()) return {};
    return fmt::format(
        "Counted on the CPU at {}. Traffic: of global memory, and as a multiple of what the problem needs. "
        "Sectors: per request of a warp, and the ideal. Conflicts: wavefronts of shared memory above the "
        "ideal.{}",
        counts_.sizes(),
        counts_.device().empty() ? ""
                                 : fmt::format(" Bound: no kernel with these counts can be faster on {} "
                                               "(modelled, not measured).",
                                               counts_.device()));
  }
  void add_not_counted(std::vector<Block>& blocks, const std::vector<const Measurement*>& list) const {
    std::vector<std::string> without;
    for (const Measurement* m : list)
      if (m->gate_one == GateOne::kPassed && !counts_.of(m->candidate, m->version))
        without.push_back(m->version);
    if (!without.empty() && !counts_.empty())
      blocks.emplace_back(
          NoteBlock{fmt::format("No counts at these sizes: {}. `capstone explain` counts the current kernel.",
                                join(without, ", ")),
                    Tone::kMuted});
    else if (!without.empty())
      blocks.emplace_back(NoteBlock{kNoCounts, Tone::kMuted});
  }

  // Which version came about with whose help.
  void add_hints(std::vector<Block>& blocks) const {
    for (const TakenHint& hint : ledger_.hints)
      blocks.emplace_back(NoteBlock{"The author took " + hint.told(), Tone::kMuted});
  }

  static void add_columns(TableBlock& table, const std::vector<TableBlock::Column>& columns) {
    table.columns.insert(table.columns.end(), columns.begin(), columns.end());
  }
  static void add_cells(std::vector<Cell>& row, std::vector<Cell> cells) {
    row.insert(row.end(), std::make_move_iterator(cells.begin()), std::make_move_iterator(cells.end()));
  }

  // What each version changed, folded, and the kernel as it was handed in.
  void add_changes(std::vector<Block>& blocks, const std::vector<const Measurement*>& list) const {
    std::vector<std::string> without;
    std::string why;
    for (std::size_t i = 1; i < list.size(); ++i) {
      const auto difference = diff_of(project_, ledger_, *list[i - 1], *list[i]);
      const std::string summary = fmt::format("From {} to {}: {}", list[i - 1]->version, list[i]->version,
                                              expectation_and_result(ledger_, *list[i]));
      if (!difference) {
        without.push_back(list[i]->version);
        if (why.empty()) why = difference.error().what;
      } else if (!difference->empty())
        blocks.emplace_back(ListingBlock{summary, cut(*difference), "diff", false, false});
    }
    if (!without.empty())
      blocks.emplace_back(NoteBlock{
          fmt::format("What changed in {} cannot be shown: {}", runs_text(without), why), Tone::kBad});
    const auto kernel = read_file(project_.human_kernel(), std::size_t{4} << 20);
    if (!kernel) return;
    const bool python = project_.human_kernel().extension() == ".py";
    blocks.emplace_back(ListingBlock{
        fmt::format("The kernel as it is now: human/{}", project_.human_kernel().filename().string()),
        cut(*kernel), python ? "python" : "cpp", false, false});
  }

  Cell expected_of(const Measurement& m) const {
    const auto expected = ledger_.expected_speedup(m.candidate, m.version);
    return expected ? cell(format_speedup(*expected)) : muted("–");
  }

  static void add_labels(std::vector<Block>& blocks, const std::vector<const Measurement*>& list) {
    std::vector<std::pair<std::string, std::vector<std::string>>> versions_by_label;  // as they first come up
    for (const Measurement* m : list)
      for (const std::string& label : m->labels) {
        auto known = std::find_if(versions_by_label.begin(), versions_by_label.end(),
                                  [&](const auto& each) { return each.first == label; });
        if (known == versions_by_label.end()) known = versions_by_label.insert(known, {label, {}});
        known->second.push_back(m->version);
      }
    for (const auto& [label, versions] : versions_by_label)
      blocks.emplace_back(NoteBlock{runs_text(versions) + ": " + label, Tone::kBad});
  }

  std::vector<Block> failures() const {
    TableBlock table;
    table.columns = {{"Record"}, {"Version"}, {"Time (UTC)"}, {"Verdict"}, {"What went wrong", false, true}};
    for (const LedgerEntry& e : entries_) {
      const Measurement& m = *e.measurement;
      if (m.candidate == "llm" || m.candidate == "together" || m.gate_one == GateOne::kPassed) continue;
      table.rows.push_back({muted(e.seq > 0 ? fmt::format("#{}", e.seq) : "–"), cell(m.version),
                            muted(when(e)), gate_one_cell(m), cell(failure_line(m))});
    }
    if (table.rows.empty())
      return {NoteBlock{"No judgement of the human kernel failed gate one.", Tone::kMuted}};
    return {table};
  }

  // Explanations of one candidate, line by line: of its best version and of those explained last. Only the
  // last explanation of each version counts.
  std::vector<Block> explained(const char* candidate) const {
    constexpr std::size_t kLast = 2;
    std::vector<const Explanation*> all, shown;
    for (const Explanation& e : ledger_.explanations)
      if (e.candidate == candidate && ledger_.explanation(e.candidate, e.version) == &e) all.push_back(&e);
    const Measurement* best = ledger_.best(candidate);
    for (std::size_t i = 0; i < all.size(); ++i)
      if (i + kLast >= all.size() || (best && all[i]->version == best->version)) shown.push_back(all[i]);
    std::vector<Block> blocks;
    if (!emulated_ && std::string_view(candidate) == "human")
      for (const Plot& p : plots_)
        if (p.name == "counts") blocks.emplace_back(FigureBlock{p});
    if (shown.size() < all.size())
      blocks.emplace_back(NoteBlock{fmt::format("Line by line: the best version and the last {} that were "
                                                "counted. The ledger has {} more.",
                                                kLast, all.size() - shown.size()),
                                    Tone::kMuted});
    for (const Explanation* each : shown) {
      const Explanation& e = *each;
      blocks.emplace_back(HeadingBlock{
          fmt::format("{} at {}", e.version.empty() ? "A source that was not measured" : e.version,
                      sizes_text(e.sizes))});
      FactsBlock facts;
      facts.facts.emplace_back("Global memory traffic", cell(fmt::format("{} (the problem needs at least {})",
                                                                         format_bytes(e.moved_bytes()),
                                                                         format_bytes(e.compulsory_bytes))));
      facts.facts.emplace_back("Sectors per request",
                               cell(fmt::format("{:.1f} (ideal {:.1f})", e.total.global.units_per_request(),
                                                e.total.global.ideal_per_request())));
      if (e.total.shared.requests)
        facts.facts.emplace_back("Wavefronts per request",
                                 cell(fmt::format("{:.1f} (ideal {:.1f})", e.total.shared.units_per_request(),
                                                  e.total.shared.ideal_per_request())));
      facts.facts.emplace_back("FLOP per requested byte", cell(fmt::format("{:.3g}", e.intensity())));
      if (!e.shares_at.empty())
        facts.facts.emplace_back("Costs of lines are those of", cell(e.place_of_shares()));
      if (e.floor)
        facts.facts.emplace_back(
            "Modelled, not measured",
            cell(fmt::format("at least {} on {}, bound by {}", format_time_ms(e.floor->ms()),
                             e.floor->place(), e.floor->bound_by)));
      blocks.emplace_back(facts);
      TableBlock table;
      table.columns = {{"Line"}, {"Cost", true}, {"Pattern"}, {"What", false, true}, {"Remedy", false, true}};
      for (const Advice& r : e.advice)
        table.rows.push_back({cell(fmt::format("{}:{}", r.file, r.line)),
                              cell(fmt::format("{:.0f} %", r.share * 100)),
                              cell(r.pattern, Tone::kPlain, true), cell(r.what), muted(r.remedy)});
      if (!table.rows.empty()) blocks.emplace_back(table);
    }
    if (blocks.empty())
      blocks.emplace_back(NoteBlock{"Nothing was explained by counts (capstone explain).", Tone::kMuted});
    return blocks;
  }

  // Adds a stored text, with a note if the file changed after it was recorded.
  void add_file(std::vector<Block>& blocks, const fs::path& path, const std::string& digest,
                const std::string& summary, const char* language) const {
    Result<std::string> bytes = read_file(path, std::size_t{4} << 20);
    if (!bytes) {
      blocks.emplace_back(
          NoteBlock{fmt::format("{}: the project does not have this file.", summary), Tone::kBad});
      return;
    }
    if (!digest.empty() && sha256_hex(*bytes) != digest)
      blocks.emplace_back(
          NoteBlock{fmt::format("{}: the file was changed after it was recorded.", summary), Tone::kBad});
    blocks.emplace_back(ListingBlock{summary, cut(*bytes), language, false});
  }

  // Which template the prompt was made from. Older records do not say; their prompt does.
  std::string name_of_prompt(const Attempt& a) const {
    const std::string standard = "the standard prompt";
    if (a.feedback_on)
      return a.feedback_on->empty() ? standard : standard + " with feedback on " + *a.feedback_on;
    const auto text = read_file(project_.attempt(a.number) / "prompt.md", std::size_t{4} << 20);
    return text && has_feedback(*text) ? standard + " with feedback on an earlier attempt" : standard;
  }

  const Measurement* first_of(const std::string& version) const {
    for (const Measurement& m : ledger_.llm)
      if (m.version == version) return &m;
    return nullptr;
  }

  std::vector<Block> attempts() const {
    std::vector<Block> blocks;
    for (const Withdrawal& w : ledger_.withdrawals)
      blocks.emplace_back(
          NoteBlock{fmt::format("Attempt {} was withdrawn before anything was judged from it: {}", w.attempt,
                                w.because),
                    Tone::kMuted});
    if (ledger_.attempts.empty() && ledger_.llm.empty())
      blocks.emplace_back(NoteBlock{"No attempt of a language model was recorded.", Tone::kBad});
    for (const Attempt& a : ledger_.attempts) attempt(blocks, a);
    if (ledger_.llm.size() > 1) {
      TableBlock table;
      table.caption = "Every judgement of the model's code";
      table.columns = {{"Record"},   {"Attempt"},  {"Median [95 %]", true},         {"Speedup [95 %]", true},
                       {"Gate one"}, {"Gate two"}, {"What went wrong", false, true}};
      for (const LedgerEntry& e : entries_) {
        const Measurement& m = *e.measurement;
        if (m.candidate != "llm") continue;
        table.rows.push_back({muted(e.seq > 0 ? fmt::format("#{}", e.seq) : "–"), cell(m.version),
                              median_cell(m), speedup_cell(m), gate_one_cell(m), gate_two_cell(m),
                              m.gate_one == GateOne::kPassed ? muted("–") : cell(failure_line(m))});
      }
      drop_empty_column(table, "Median [95 %]");
      drop_empty_column(table, "Speedup [95 %]");
      blocks.emplace_back(table);
    }
    add_labels(blocks, ledger_.versions("llm"));
    searches(blocks);
    return blocks;
  }

  // What `machine` came to: the last record of each run. They are no attempts, and no first tries.
  void searches(std::vector<Block>& blocks) const {
    std::map<std::string, const Json*> last;
    for (const Record& record : ledger_.records)
      if (record.kind == "search") last[record.body.value("run", std::string())] = &record.body;
    if (last.empty()) return;
    TableBlock table;
    table.caption = "Searches with a model: every kernel was judged";
    table.columns = {{"Run"},           {"Model", false, true}, {"Kernels", true},
                     {"Correct", true}, {"Faster", true},       {"Ended", false, true}};
    for (const auto& [run, body] : last) {
      const auto count = [body = body](const char* key) {
        const auto value = body->find(key);
        return value == body->end() || !value->is_number_integer() ? std::string("–") : value->dump();
      };
      const std::string prompt = body->value("with_statement", false) ? ", with the problem's statement" : "";
      table.rows.push_back({cell(run), cell(body->value("provider", std::string()) + prompt),
                            cell(count("kernels")), cell(count("correct")), cell(count("faster")),
                            cell(body->value("ended", std::string()))});
    }
    blocks.emplace_back(table);
  }

  void attempt(std::vector<Block>& blocks, const Attempt& a) const {
    std::string name = fmt::format("attempt-{}", a.number);
    blocks.emplace_back(
        HeadingBlock{fmt::format("Attempt {}: {}", a.number, a.model.empty() ? "model not named" : a.model)});
    FactsBlock facts;
    facts.facts.emplace_back("Settings", text_or_dash(a.settings));
    const std::string sent = name_of_prompt(a);
    facts.facts.emplace_back("Prompt", a.prompt_difference.empty()
                                           ? cell(sent + ", unchanged")
                                           : cell(fmt::format("{}, changed: {}; see the difference below",
                                                              sent, extent_of(a.prompt_difference)),
                                                  Tone::kPlain, true));
    if (!a.extracted.empty()) facts.facts.emplace_back("Code extracted as", cell(a.extracted));
    if (!a.no_code_because.empty()) facts.facts.emplace_back("No code", cell(a.no_code_because, Tone::kBad));
    const Measurement* first = first_of(name);
    if (first == nullptr) {
      facts.facts.emplace_back("Judged", muted("no"));
    } else {
      facts.facts.emplace_back("Compiled on the first try", fact_cell(compiled_text(*first)));
      const bool verdict = first->gate_one != GateOne::kPassed && first->judged();
      facts.facts.emplace_back("Correct on the first try",
                               verdict ? gate_one_cell(*first) : fact_cell(correct_text(*first)));
      facts.facts.emplace_back(
          "Faster on the first try",
          first->gate_two == GateTwo::kNotJudged
              ? (first->judged() ? gate_two_cell(*first) : muted("not judged here"))
              : cell(fmt::format("{}, {}", label_of(first->gate_two), speedup_text(*first)),
                     first->gate_two == GateTwo::kFaster ? Tone::kGood : Tone::kPlain));
      if (first->gate_one != GateOne::kPassed)
        facts.facts.emplace_back(first->judged() ? "What went wrong" : "Why not", cell(failure_line(*first)));
    }
    blocks.emplace_back(facts);
    fs::path folder = project_.attempt(a.number);
    add_file(blocks, folder / "prompt.md", a.prompt_sha256,
             fmt::format("The exact prompt of attempt {}", a.number), "markdown");
    if (!a.prompt_difference.empty())
      blocks.emplace_back(ListingBlock{"Difference from " + sent, cut(a.prompt_difference), "diff", false});
    add_file(blocks, folder / "reply.md", a.reply_sha256,
             fmt::format("The exact reply of attempt {}", a.number), "markdown");
  }

  std::vector<Block> head_to_head() const {
    const Measurement* human = ledger_.best("human");
    TableBlock table;
    table.columns = {{"Candidate"}, {"What it is", false, true}};
    if (emulated_) {
      add_columns(table, kCountColumns);
      table.columns.push_back({"Gate one"});
    } else {
      add_columns(table, {{"Median [95 %]", true},
                          {"Speedup [95 %]", true},
                          {"With a dirty cache", true},
                          {"Of peak", true},
                          {"Bound by"},
                          {"Gate one"},
                          {"Gate two"}});
      const Measurement* stage = human != nullptr ? human : ledger_.best("llm");
      if (stage != nullptr && stage->measured && !is_emulated(*stage))
        for (const Arm& arm : stage->measured->arms) baseline_row(table, *stage, arm);
    }
    if (human != nullptr) candidate_row(table, *human, "by hand");
    for (const Measurement* m : ledger_.versions("llm")) candidate_row(table, *m, model_of(m->version));
    const Measurement* both = ledger_.best("together");
    if (both != nullptr) candidate_row(table, *both, "student, model and profiler together");
    if (table.rows.empty()) return {NoteBlock{"Neither candidate has a correct kernel yet.", Tone::kMuted}};
    drop_empty_column(table, "With a dirty cache");
    drop_empty_counts(table);
    std::vector<const Measurement*> shown = ledger_.versions("llm");
    if (human != nullptr) shown.insert(shown.begin(), human);
    if (both != nullptr) shown.push_back(both);
    table.caption = emulated_ ? counts_caption() : peaks_text(shown);
    std::vector<Block> blocks{table};
    for (const Block& b : figure("head-to-head", emulated_ ? kNoCounts
                                                           : "Gate two was judged for neither candidate, so "
                                                             "there is nothing to plot."))
      blocks.push_back(b);
    add_not_judged(blocks);
    together(blocks);
    return blocks;
  }

  // Who changed what in the kernel that student, model and profiler made with each other.
  void together(std::vector<Block>& blocks) const {
    if (ledger_.together.empty()) return;
    blocks.emplace_back(HeadingBlock{"Together: who changed what"});
    TableBlock table;
    table.columns = {{"Version"},
                     {"Reason for the change", false, true},
                     {"Gate one"},
                     {"Lines", true},
                     {"By hand", true},
                     {"The model's", true},
                     {"In both", true},
                     {"New here", true},
                     {"Profiler before it", false, true}};
    for (const TogetherStep& step : together_history(project_, ledger_)) {
      const WhoseLines& l = step.lines;
      const auto both = [](int all, int added) { return cell(fmt::format("{} (+{})", all, added)); };
      table.rows.push_back(
          {cell(step.version, Tone::kPlain, true), text_or_dash(ledger_.reason("together", step.version)),
           gate_one_cell(*step.judged),
           step.source_there ? cell(fmt::format("{} (−{})", l.all(), step.removed)) : muted("–"),
           both(l.human, step.added.human), both(l.model, step.added.model), both(l.both, step.added.both),
           both(l.fresh, step.added.fresh), text_or_dash(step.profiled)});
    }
    const std::string from = together_begun_from(ledger_);
    table.caption = std::string(
                        "Lines that say something, of the whole kernel, and in brackets those added (or "
                        "removed) since the version before. By hand: also in an earlier version of the "
                        "human kernel; the model's: also in an earlier reply.") +
                    (from.empty() ? "" : " It began as " + from + ".");
    blocks.emplace_back(std::move(table));
    add_labels(blocks, ledger_.versions("together"));
  }

  static void drop_empty_counts(TableBlock& table) {
    for (const TableBlock::Column& column : kCountColumns) drop_empty_column(table, column.title);
  }
  // Old records know nothing of the cache's states, and without a GPU nothing is timed.
  static void drop_empty_column(TableBlock& table, std::string_view name) {
    const auto column = std::find_if(table.columns.begin(), table.columns.end(),
                                     [&](const auto& each) { return each.title == name; });
    if (column == table.columns.end()) return;
    const auto at = column - table.columns.begin();
    if (std::any_of(table.rows.begin(), table.rows.end(), [&](const auto& row) {
          return row[static_cast<std::size_t>(at)].text != muted("–").text;
        }))
      return;
    table.columns.erase(column);
    for (auto& row : table.rows) row.erase(row.begin() + at);
  }

  static void baseline_row(TableBlock& table, const Measurement& stage, const Arm& arm) {
    if (&arm == candidate_arm(stage)) return;
    table.rows.push_back({cell(arm.name), text_or_dash(arm.label), cell(time_with_interval(arm.median_ms)),
                          &arm == baseline_arm(stage) ? cell("1.00x") : muted("–"),
                          arm.dirty_ms ? cell(format_time_ms(arm.dirty_ms->point)) : muted("–"), muted("–"),
                          muted("–"), muted("–"), muted("–")});
  }

  void candidate_row(TableBlock& table, const Measurement& m, const std::string& what) const {
    table.rows.push_back({cell(m.version, Tone::kPlain, true), text_or_dash(what)});
    std::vector<Cell>& row = table.rows.back();
    if (emulated_) {
      add_cells(row, count_cells(m));
      row.push_back(gate_one_cell(m));
    } else {
      add_cells(row, {median_cell(m), speedup_cell(m), dirty_cell(m), percent_cell(m), bound_cell(m),
                      gate_one_cell(m), gate_two_cell(m)});
    }
  }

  std::string model_of(const std::string& version) const {
    for (const Attempt& a : ledger_.attempts)
      if (fmt::format("attempt-{}", a.number) == version) return a.model;
    return {};
  }

  // The reasons why gate two has no verdict, one line for each reason.
  void add_not_judged(std::vector<Block>& blocks) const {
    std::map<std::string, std::vector<std::string>> reasons;
    for (const char* candidate : kCandidates)
      for (const Measurement* m : ledger_.versions(candidate))
        if (m->gate_one == GateOne::kPassed && m->gate_two == GateTwo::kNotJudged)
          reasons[m->gate_two_reason.empty() ? (is_emulated(*m) ? "not judged here (no GPU)" : "not judged")
                                             : m->gate_two_reason]
              .push_back(m->version);
    for (const auto& [reason, versions] : reasons)
      blocks.emplace_back(
          NoteBlock{fmt::format("Gate two, {}: {}", runs_text(versions), reason), Tone::kMuted});
  }

  std::vector<Block> predicted() const {
    TableBlock table;
    table.columns = {{"What"}, {"Predicted", true}, {"Measured", true}};
    const Measurement* best = ledger_.best("human");
    if (!ledger_.predictions.empty()) {
      const Prediction& p = ledger_.predictions.front();
      table.rows.push_back(
          {cell("bottleneck"), cell(p.bottleneck), best != nullptr ? bound_cell(*best) : muted("–")});
      if (p.speedup)
        table.rows.push_back({cell("speedup of the best version"), cell(format_speedup(*p.speedup)),
                              best != nullptr ? speedup_cell(*best) : muted("–")});
    }
    for (const Measurement* m : ledger_.versions("human")) {
      Cell expected = expected_of(*m);
      if (expected.text != "–")
        table.rows.push_back({cell("speedup of " + m->version), expected,
                              m->gate_one == GateOne::kPassed ? speedup_cell(*m) : gate_one_cell(*m)});
    }
    if (table.rows.empty()) return {NoteBlock{"Nothing was predicted.", Tone::kMuted}};
    return {table};
  }

  std::vector<Block> stuck() const {
    std::vector<Block> blocks;
    for (const LedgerEntry& e : entries_)
      if (e.measurement->gate_one != GateOne::kPassed) failure(blocks, e);
    for (const Attempt& a : ledger_.attempts)
      if (!a.no_code_because.empty())
        blocks.emplace_back(NoteBlock{
            fmt::format("Attempt {}: the reply has no usable code: {}", a.number, a.no_code_because),
            Tone::kBad});
    if (blocks.empty()) return {NoteBlock{"The ledger has no failures.", Tone::kMuted}};
    return blocks;
  }

  static void failure(std::vector<Block>& blocks, const LedgerEntry& e) {
    const Measurement& m = *e.measurement;
    std::string title = m.version + ": " + std::string(label_of(m.gate_one));
    if (e.seq > 0) title += fmt::format(" (record #{}, {})", e.seq, when(e));
    blocks.emplace_back(HeadingBlock{title});
    if (m.gate_one == GateOne::kBuildFailed) {
      blocks.emplace_back(NoteBlock{failure_line(m), Tone::kBad});
      if (!m.build.log.empty())
        blocks.emplace_back(ListingBlock{"The compiler's output", cut(m.build.log), "", false});
      return;
    }
    auto bad = std::find_if(m.cases.begin(), m.cases.end(), [](const CaseResult& c) { return !c.passed; });
    if (bad == m.cases.end())
      blocks.emplace_back(NoteBlock{failure_line(m), Tone::kBad});
    else {
      blocks.emplace_back(case_facts(*bad));
      if (bad->diagnosis && !bad->diagnosis->map.empty()) blocks.emplace_back(map_of(*bad->diagnosis));
    }
  }

  static std::string element_text(const Diagnosis& d, const std::vector<std::int64_t>& at, double expected,
                                  double got, bool unwritten) {
    return fmt::format("{}{}: expected {}, {}", d.output, indices(at), number_text(expected, 6),
                       got_text(got, unwritten, 6));
  }

  static FactsBlock case_facts(const CaseResult& c) {
    FactsBlock facts;
    std::string sizes = sizes_text(c.sizes);
    facts.facts.emplace_back("Case", cell(sizes.empty() ? c.id : c.id + " (" + sizes + ")"));
    facts.facts.emplace_back("Result",
                             cell(c.problem.empty() ? "wrong result" : c.problem, Tone::kBad, true));
    if (!c.where.empty()) facts.facts.emplace_back("Where", cell(c.where));
    if (!c.schedule.empty()) facts.facts.emplace_back("Schedule", cell(c.schedule));
    if (c.diagnosis) {
      const Diagnosis& d = *c.diagnosis;
      facts.facts.emplace_back("Wrong",
                               cell(fmt::format("{} of {} elements of {}", d.wrong, d.total, d.output)));
      if (!d.pattern.empty()) facts.facts.emplace_back("Pattern", cell(d.pattern));
      if (!d.first.empty())
        facts.facts.emplace_back(
            "First", cell(element_text(d, d.first, d.first_expected, d.first_got, d.first_unwritten)));
      if (!d.worst.empty())
        facts.facts.emplace_back(
            "Worst", cell(element_text(d, d.worst, d.worst_expected, d.worst_got, d.worst_unwritten)));
    }
    const std::string& hint = c.hint.empty() && c.diagnosis ? c.diagnosis->hint : c.hint;
    if (!hint.empty()) facts.facts.emplace_back("Hint", cell(hint));
    return facts;
  }

  std::vector<Block> environment() const {
    TableBlock table;
    table.columns = {{"Versions", false, true},
                     {"Device", false, true},
                     {"Driver"},
                     {"Compiler"},
                     {"Backend"},
                     {"Execution"},
                     {"Isolation", false, true},
                     {"Tool"}};
    std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>>
        rows;  // environment → versions
    for (const LedgerEntry& e : entries_) {
      const Measurement& m = *e.measurement;
      std::vector<std::string> key{environment_text(m.environment, {"device", "gpu", "cpu"}),
                                   environment_text(m.environment, {"driver"}),
                                   environment_text(m.environment, {"nvcc", "compiler", "cxx"}),
                                   std::string(recorded_name(m.backend)),
                                   std::string(recorded_name(m.execution)),
                                   m.isolation,
                                   environment_text(m.environment, {"tool", "tool_version", "capstone"})};
      auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.first == key; });
      if (row == rows.end()) row = rows.insert(rows.end(), {key, {}});
      if (std::find(row->second.begin(), row->second.end(), m.version) == row->second.end())
        row->second.push_back(m.version);
    }
    for (const auto& [key, versions] : rows) {
      std::vector<Cell> cells{cell(runs_text(versions))};
      for (const std::string& text : key) cells.push_back(text_or_dash(text));
      table.rows.push_back(std::move(cells));
    }
    std::vector<Block> blocks;
    if (!table.rows.empty()) blocks.emplace_back(table);
    FactsBlock facts;
    facts.facts.emplace_back("Problem digest",
                             cell(project_.config.problem_digest.empty() ? project_.problem.digest
                                                                         : project_.config.problem_digest));
    facts.facts.emplace_back("Ledger", ledger_.damage.empty()
                                           ? cell(fmt::format("{} records, each linked to the previous one",
                                                              ledger_.records.size()))
                                           : cell("damaged: " + join(ledger_.damage, "; "), Tone::kBad));
    if (!input_.generated.empty()) facts.facts.emplace_back("Page generated", cell(input_.generated));
    blocks.emplace_back(facts);
    add_not_judged(blocks);
    bool emulated = std::any_of(entries_.begin(), entries_.end(),
                                [](const LedgerEntry& e) { return is_emulated(*e.measurement); });
    if (emulated)
      blocks.emplace_back(
          NoteBlock{"Emulated runs judge gate one, never gate two. Their times are shown as emulated and "
                    "say nothing about speed.",
                    Tone::kMuted});
    blocks.emplace_back(
        NoteBlock{"The ledger's chain of digests reveals accidental changes. To verify the results, judge "
                  "the kernels again.",
                  Tone::kMuted});
    return blocks;
  }

  const ReportInput& input_;
  const Project& project_;
  const LedgerView& ledger_;
  const std::vector<Plot>& plots_;
  std::vector<LedgerEntry> entries_;
  VersionCounts counts_;
  bool emulated_;  // nothing ran on a GPU: counts take the place of times
  std::map<std::string, Figure> figures_;
};

}  // namespace

std::map<std::string, Figure> make_figures(const ReportInput& input, const std::vector<Plot>& plots) {
  return Maker(input, plots).make();
}

}  // namespace capstone
