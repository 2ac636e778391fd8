#include <ctemplate/template_dictionary.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "harness/analysis/fast_p.h"
#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/course/gradebook/lateness.h"
#include "harness/course/gradebook/leaderboard.h"
#include "harness/timing/statistics.h"
#include "templates/cohort_pages.h"
#include "templates/encode.h"
#include "templates/page.h"

namespace capstone {
namespace {

using Dictionary = ctemplate::TemplateDictionary;

std::string number(double value) { return fmt::format("{:g}", std::round(value * 100) / 100); }

std::string verdict(const Outcome* o) {
  return !o ? "" : o->correct && o->gate_two != "NOT JUDGED" ? o->gate_two : o->gate_one;
}

// Turns an id such as "head_to_head" into a heading ("Head to head").
std::string heading_of(const std::string& id) {
  std::string text = replace_all(id, "_", " ");
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

void fill_table(Dictionary& dict, const GradebookPage& page) {
  auto column = [&](const std::string& name, bool is_number) {
    auto* head = dict.AddSectionDictionary("COLUMN");
    head->SetValue("NAME", name);
    head->SetValue("KIND", is_number ? "number" : "text");
  };
  for (const char* name : {"Submission", "Person", "Id", "Problem", "State", "Late", "Human"})
    column(name, false);
  column("Speedup", true);
  column("Model", false);
  column("Speedup", true);
  for (const Criterion& c : page.rubric.criteria) column(heading_of(c.id), true);
  column("Total", true);
  column("Published", false);
  static const ResultSummary kNothing;
  for (const GradebookRow& row : page.rows) {
    auto found = page.summaries.find(row.submission);
    const ResultSummary& summary = found == page.summaries.end() ? kNothing : found->second;
    auto* r = dict.AddSectionDictionary("ROW");
    // A submission that could not be judged has a reason instead of a score sheet.
    auto* name = r->AddSectionDictionary(summary.outcomes.empty() ? "NO_SHEET" : "SHEET");
    name->SetValue("PLACE", percent_encoded(row.submission));
    name->SetValue("NAME", row.submission);
    if (!row.why.empty()) r->AddSectionDictionary("WHY")->SetValue("TEXT", row.why);
    r->SetValue("PERSON", row.person.name);
    r->SetValue("ID", row.person.id);
    r->SetValue("PROBLEM", row.problem);
    r->SetValue("TONE", row.state == "failed" ? "bad" : row.state == "graded" ? "plain" : "strong");
    r->SetValue("STATE", row.fault.empty() ? row.state : row.state + " (" + row.fault + ")");
    r->SetValue("LATE", lateness_text(row));
    for (const auto& [candidate, key] : {std::pair{"human", "HUMAN"}, std::pair{"llm", "MODEL"}}) {
      const Outcome* o = summary.of(candidate);
      r->SetValue(key, verdict(o));
      r->SetValue(std::string(key) + "_SPEEDUP",
                  o && o->speedup ? fmt::format("{:.3g}", o->speedup->point) : "");
    }
    for (std::size_t i = 0; i < row.marks.size(); ++i) {
      const auto& mark = row.marks[i];
      auto* cell = r->AddSectionDictionary("MARK");
      cell->SetValue("CRITERION", page.rubric.criteria[i].title);
      cell->SetValue("POINTS", mark ? number(mark->points) : "");
      cell->SetValue("MARK_TONE", mark && mark->earlier_version ? "muted" : "plain");
    }
    r->SetValue("TOTAL", row.total() ? number(*row.total()) : "");
    r->SetValue("PUBLISHED", row.published ? "yes" : "no");
  }
}

constexpr double kMostP = 4, kLeft = 40, kRight = 420, kTop = 12, kBottom = 218;
constexpr int kCurvePoints = 200;
double x_of(double p) { return kLeft + (kRight - kLeft) * p / kMostP; }
double y_of(double share) { return kBottom - (kBottom - kTop) * share; }

// One solution per submission: a class works on few problems, so fast_p counts submissions instead of
// problems.
std::vector<Solution> solutions_of(const GradebookPage& page, const char* candidate) {
  std::vector<Solution> all;
  for (const auto& [name, summary] : page.summaries) {
    if (summary.outcomes.empty()) continue;
    const Outcome* o = summary.of(candidate);
    all.push_back({name, o && o->correct, o ? o->speedup : std::nullopt});
  }
  return all;
}

// The curve of fast_p over p as an SVG path: for each p, the share of submissions with a speedup above p.
std::string path_of(const std::vector<Solution>& solutions) {
  std::vector<double> speedups;
  for (const Solution& s : solutions)
    if (s.correct && s.speedup) speedups.push_back(s.speedup->point);
  std::sort(speedups.begin(), speedups.end());
  const auto right =
      std::count_if(solutions.begin(), solutions.end(), [](const Solution& s) { return s.correct; });
  std::string path;
  double last = -1;
  for (int i = 0; i <= kCurvePoints; ++i) {
    const double p = kMostP * i / kCurvePoints;
    const auto above =
        i == 0 ? right : speedups.end() - std::upper_bound(speedups.begin(), speedups.end(), p);
    const double share = static_cast<double>(above) / static_cast<double>(solutions.size());
    if (share == last && i < kCurvePoints) continue;
    if (last >= 0) path += fmt::format(" L{:.1f} {:.1f}", x_of(p), y_of(last));
    path += fmt::format("{}{:.1f} {:.1f}", last < 0 ? "M" : " L", x_of(p), y_of(share));
    last = share;
  }
  return path;
}

void fill_curves(Dictionary& dict, const GradebookPage& page) {
  const auto humans = solutions_of(page, "human"), models = solutions_of(page, "llm");
  if (humans.empty()) return;
  auto* curves = dict.AddSectionDictionary("CURVES");
  curves->SetValue("LABEL", fmt::format("fast_p of {} submissions, human and model", humans.size()));
  for (int share : {0, 25, 50, 75, 100}) {
    auto* grid = curves->AddSectionDictionary("GRID");
    grid->SetValue("Y", fmt::format("{:.1f}", y_of(share / 100.0)));
    grid->SetIntValue("SHARE", share);
  }
  for (int p = 0; p <= 4; ++p) {
    auto* tick = curves->AddSectionDictionary("TICK");
    tick->SetValue("X", fmt::format("{:.1f}", x_of(p)));
    tick->SetIntValue("P", p);
  }
  for (const auto& [who, solutions] : {std::pair{"human", &humans}, std::pair{"llm", &models}}) {
    auto* curve = curves->AddSectionDictionary("CURVE");
    curve->SetValue("WHO", who);
    curve->SetValue("PATH", path_of(*solutions));
  }
  for (double p : {0.0, 0.5, 0.8, 1.0, 1.5, 2.0}) {
    auto* point = curves->AddSectionDictionary("POINT");
    point->SetValue("P", p == 0 ? "correct" : fmt::format("> {:g}", p));
    for (const auto& [key, solutions] : {std::pair{"HUMAN", &humans}, std::pair{"MODEL", &models}}) {
      const FastPoint f = fast_p(*solutions, p);
      point->SetValue(key, p == 0 ? fmt::format("{} of {}", f.hits, f.problems)
                                  : fmt::format("{} of {} [{}]", f.hits, f.problems, f.resolved));
    }
  }
}

void fill_matrix(Dictionary& dict, const GradebookPage& page) {
  const std::vector<std::string> kinds{"FASTER", "TIE", "SLOWER", "UNRESOLVED", "correct, not timed",
                                       "failed", "none"};
  auto kind = [](const Outcome* o) -> std::string {
    return !o                            ? "none"
           : !o->correct                 ? "failed"
           : o->gate_two == "NOT JUDGED" ? "correct, not timed"
                                         : o->gate_two;
  };
  std::map<std::pair<std::string, std::string>, int> counts;
  std::set<std::string> down, across;
  for (const auto& [name, summary] : page.summaries) {
    if (summary.outcomes.empty()) continue;
    const std::string human = kind(summary.of("human")), model = kind(summary.of("llm"));
    ++counts[{human, model}];
    down.insert(human);
    across.insert(model);
  }
  for (const std::string& model : kinds)
    if (across.contains(model)) dict.AddSectionDictionary("ACROSS")->SetValue("WHAT", model);
  for (const std::string& human : kinds) {
    if (!down.contains(human)) continue;
    auto* row = dict.AddSectionDictionary("DOWN");
    row->SetValue("WHAT", human);
    for (const std::string& model : kinds) {
      if (!across.contains(model)) continue;
      auto* cell = row->AddSectionDictionary("CELL");
      const int n = counts[{human, model}];
      cell->SetIntValue("N", n);
      cell->SetValue("TONE", n ? "strong" : "muted");
    }
  }
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

void fill_whose(Dictionary& dict, const char* name, const std::vector<const Outcome*>& outcomes) {
  std::vector<double> speedups;
  int correct = 0, faster = 0;
  for (const Outcome* o : outcomes) {
    correct += o->correct;
    faster += o->correct && o->gate_two == "FASTER";
    if (o->correct && o->speedup) speedups.push_back(o->speedup->point);
  }
  auto* row = dict.AddSectionDictionary("WHOSE");
  row->SetValue("NAME", name);
  row->SetIntValue("JUDGED", static_cast<long>(outcomes.size()));
  row->SetIntValue("CORRECT", correct);
  row->SetIntValue("TIMED", static_cast<long>(speedups.size()));
  row->SetIntValue("FASTER", faster);
  row->SetValue("MEDIAN", speedups.empty() ? "–" : format_speedup(median_of(speedups)));
}

// Whether all of one interval lies above all of the other.
bool is_above(const Interval& a, const Interval& b) { return a.low > b.high; }

// Whether the kernel made together beats the better one of the two alone, in each submission that has one.
struct Thesis {
  int all = 0, wins = 0, losses = 0, open = 0, untimed = 0;
  std::vector<double> ratios;  ///< of together to the better one alone, where both were timed

  void add(const ResultSummary& s) {
    const Outcome* both = s.of("together");
    const Outcome* alone = nullptr;
    ++all;
    for (const char* candidate : {"human", "llm"})
      if (const Outcome* o = s.of(candidate); o && o->correct)
        if (!alone || (o->speedup && (!alone->speedup || o->speedup->point > alone->speedup->point)))
          alone = o;
    if (!both->correct || !alone) {
      if (both->correct) ++wins;
      if (alone) ++losses;
      return;
    }
    if (!both->speedup || !alone->speedup || both->device != alone->device || alone->speedup->point <= 0) {
      ++untimed;
      return;
    }
    ratios.push_back(both->speedup->point / alone->speedup->point);
    (is_above(*both->speedup, *alone->speedup)   ? wins
     : is_above(*alone->speedup, *both->speedup) ? losses
                                                 : open)++;
  }

  // Ties say nothing for either side. With few decided cases the interval of their share is wide.
  std::string verdict() const {
    constexpr int kFew = 6;  // even 5 of 5 would happen by chance in 6 of 100 classes
    const int decided = wins + losses;
    if (decided < kFew) return "That is too few to say whether the thesis held here.";
    const Interval share = binomial_interval(wins, decided);
    return share.low > 0.5    ? "The thesis held in this class."
           : share.high < 0.5 ? "The thesis did not hold in this class: alone was better."
                              : "That does not decide whether the thesis held here.";
  }

  std::string says(int submissions) const {
    std::string text = fmt::format(
        "{} of {} submissions {} a kernel that was made together. It beats the better one of the two alone "
        "in {}, "
        "loses to it in {}",
        all, submissions, all == 1 ? "has" : "have", wins, losses);
    if (open) text += fmt::format(", and {} {} not decided by the intervals", open, open == 1 ? "is" : "are");
    if (untimed) text += fmt::format("; in {} there are no times of both on one GPU", untimed);
    text += ".";
    if (!ratios.empty()) text += fmt::format(" Median of the ratio: {}.", format_speedup(median_of(ratios)));
    return text + " " + verdict();
  }
};

void fill_thesis(Dictionary& dict, const GradebookPage& page) {
  std::map<std::string, std::vector<const Outcome*>> outcomes;
  Thesis thesis;
  int judged = 0;
  for (const auto& [name, summary] : page.summaries) {
    if (summary.outcomes.empty()) continue;
    ++judged;
    for (const Outcome& o : summary.outcomes) outcomes[o.candidate].push_back(&o);
    if (summary.of("together")) thesis.add(summary);
  }
  if (outcomes["together"].empty()) return;
  auto* section = dict.AddSectionDictionary("THESIS");
  section->SetValue("SAYS", thesis.says(judged));
  section->SetValue(
      "HOW",
      "A case counts where the intervals of the two speedups do not touch, or where only one of the "
      "two is correct. The thesis held, or did not, where the 95 % interval of the share of wins "
      "excludes one half. The kernel made together earns no marks.");
  fill_whose(*section, "Human", outcomes["human"]);
  fill_whose(*section, "Model", outcomes["llm"]);
  fill_whose(*section, "Together", outcomes["together"]);
}

// The entries of the leaderboards that have a model's kernel, too.
void fill_duels(Dictionary& dict, const GradebookPage& page) {
  struct Duel {
    std::string problem;
    BoardEntry entry;
  };
  std::vector<Duel> duels;
  for (const Board& board : leaderboards(page.rows, page.rubric, page.summaries, /*names=*/true))
    for (const BoardEntry& entry : board.entries)
      if (entry.model && entry.model->point > 0) duels.push_back({board.problem, entry});
  if (duels.empty()) return;
  double least = 1, most = 1;  // the baseline itself is at 1
  for (const Duel& duel : duels)
    for (const Interval& each : {duel.entry.human, *duel.entry.model})
      least = std::min(least, each.point), most = std::max(most, each.point);
  const double span = std::max(std::log(most / least), 1e-9);
  const auto x = [&](double speedup) {
    return fmt::format("{:.1f}", 8 + 184 * std::log(speedup / least) / span);
  };
  auto* section = dict.AddSectionDictionary("DUELS");
  int ahead = 0, behind = 0;
  for (const auto& [problem, entry] : duels) {
    const bool wins = is_above(entry.human, *entry.model), loses = is_above(*entry.model, entry.human);
    ahead += wins, behind += loses;
    auto* row = section->AddSectionDictionary("DUEL");
    row->SetValue("PROBLEM", problem);
    row->SetValue("WHO", to_utf8(entry.shown));
    row->SetValue("SUBMISSION", to_utf8(entry.submission));
    row->SetValue("HUMAN_X", x(entry.human.point));
    row->SetValue("MODEL_X", x(entry.model->point));
    row->SetValue("ONE_X", x(1));
    row->SetValue("HUMAN", format_speedup(entry.human.point));
    row->SetValue("MODEL", format_speedup(entry.model->point));
    row->SetValue("RATIO", format_speedup(entry.human.point / entry.model->point));
    row->SetValue("AHEAD", wins ? "human" : loses ? "model" : "not decided");
  }
  section->SetValue("SAYS",
                    fmt::format("{} of {} submissions have both kernels correct and timed on one GPU. "
                                "The human is ahead in {}, the model in {}; {} not decided.",
                                duels.size(), page.summaries.size(), ahead, behind,
                                static_cast<int>(duels.size()) - ahead - behind));
}

void fill_spread_row(Dictionary& dict, const std::string& name, std::vector<double> values) {
  auto* row = dict.AddSectionDictionary("SPREAD");
  row->SetValue("NAME", name);
  row->SetIntValue("N", static_cast<long>(values.size()));
  std::sort(values.begin(), values.end());
  auto at = [&](double share) {
    if (values.empty()) return std::string();
    const double place = share * static_cast<double>(values.size() - 1);
    const auto low = static_cast<std::size_t>(place);
    const double high = values[std::min(low + 1, values.size() - 1)];
    return number(values[low] + (place - static_cast<double>(low)) * (high - values[low]));
  };
  row->SetValue("LEAST", at(0));
  row->SetValue("Q1", at(0.25));
  row->SetValue("MEDIAN", at(0.5));
  row->SetValue("Q3", at(0.75));
  row->SetValue("MOST", at(1));
}

void fill_histogram(Dictionary& dict, const std::vector<double>& totals) {
  if (totals.empty()) return;
  std::array<int, 10> bins{};
  for (double total : totals) ++bins[static_cast<std::size_t>(std::clamp(total / 10, 0.0, 9.0))];
  const int most = *std::max_element(bins.begin(), bins.end());
  auto* histogram = dict.AddSectionDictionary("HISTOGRAM");
  for (std::size_t i = 0; i < bins.size(); ++i) {
    auto* bar = histogram->AddSectionDictionary("BAR");
    const double height = 90.0 * bins[i] / most, x = 20 + 41.0 * static_cast<double>(i);
    bar->SetValue("X", fmt::format("{:.1f}", x));
    bar->SetValue("Y", fmt::format("{:.1f}", 112 - height));
    bar->SetValue("H", fmt::format("{:.1f}", height));
    bar->SetValue("MIDDLE", fmt::format("{:.1f}", x + 16));
    bar->SetValue("ABOVE", fmt::format("{:.1f}", 108 - height));
    bar->SetValue("FROM", i == 9 ? "90-100" : fmt::format("{}-", 10 * i));
    bar->SetValue("N", bins[i] ? std::to_string(bins[i]) : "");
  }
}

void fill_spread(Dictionary& dict, const GradebookPage& page) {
  for (std::size_t i = 0; i < page.rubric.criteria.size(); ++i) {
    std::vector<double> values;
    for (const GradebookRow& row : page.rows)
      if (row.marks[i]) values.push_back(row.marks[i]->points);
    fill_spread_row(dict, page.rubric.criteria[i].title, values);
  }
  std::vector<double> totals;
  for (const GradebookRow& row : page.rows)
    if (row.total()) totals.push_back(*row.total());
  fill_spread_row(dict, "Total", totals);
  fill_histogram(dict, totals);
}

void fill_similar(Dictionary& dict, const GradebookPage& page) {
  if (page.similar.empty()) return;
  auto* similar = dict.AddSectionDictionary("SIMILAR");
  for (const SimilarPair& pair : page.similar) {
    auto* row = similar->AddSectionDictionary("PAIR");
    row->SetValue("FIRST", to_utf8(pair.first));
    row->SetValue("SECOND", to_utf8(pair.second));
    row->SetValue("SHARE", fmt::format("{:.0f} %", 100 * pair.share));
  }
}

}  // namespace

Result<std::string> gradebook_page(const GradebookPage& page, const std::filesystem::path& templates) {
  PageTemplates pages(templates / "html");
  Dictionary dict("gradebook");
  CAPSTONE_TRY(std::string css, pages.style());
  CAPSTONE_TRY(std::string script, read_file(templates / "html" / "gradebook.js", std::size_t{1} << 20));
  dict.SetValue("CSS", css);
  dict.SetValue("SCRIPT", script);
  dict.SetValue("SCRIPT_HASH", base64(sha256(script)));
  dict.SetValue("TITLE", to_utf8(page.title));
  dict.SetValue("GENERATED", page.generated);
  dict.SetIntValue("PEOPLE", static_cast<long>(page.rows.size()));
  const auto published = std::count_if(page.rows.begin(), page.rows.end(),
                                       [](const GradebookRow& row) { return row.published; });
  const auto marked = std::count_if(page.rows.begin(), page.rows.end(),
                                    [](const GradebookRow& row) { return row.total().has_value(); });
  dict.SetValue("SUMMARY", fmt::format("{} submissions by {} people, {} completely marked, {} published",
                                       page.summaries.size(), page.rows.size(), marked, published));
  fill_table(dict, page);
  fill_curves(dict, page);
  fill_matrix(dict, page);
  fill_spread(dict, page);
  fill_duels(dict, page);
  fill_thesis(dict, page);
  fill_similar(dict, page);
  return pages.expand("gradebook.tpl", dict);
}

}  // namespace capstone
