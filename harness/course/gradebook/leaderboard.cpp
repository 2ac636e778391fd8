#include "harness/course/gradebook/leaderboard.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "harness/base/digest.h"
#include "harness/base/text.h"
#include "harness/course/gradebook/shown_names.h"

namespace capstone {
namespace {

constexpr std::array kFirst{"Quiet",  "Bold",   "Patient", "Swift", "Careful", "Bright", "Steady", "Curious",
                            "Clever", "Honest", "Gentle",  "Keen",  "Calm",    "Brave",  "Merry",  "Wise"};
constexpr std::array kSecond{"Warp",   "Tile", "Barrier", "Register", "Stream", "Block", "Cache",   "Kernel",
                             "Sector", "Lane", "Bank",    "Pipe",     "Fence",  "Grid",  "Shuffle", "Pixel"};

std::string pseudonym(const std::string& digest, std::set<std::string>& taken) {
  const std::string hash = sha256_hex("pseudonym " + digest);
  const auto first = std::stoul(hash.substr(0, 4), nullptr, 16) % kFirst.size(),
             second = std::stoul(hash.substr(4, 4), nullptr, 16) % kSecond.size();
  const std::string base = fmt::format("{} {}", kFirst[first], kSecond[second]);
  std::string name = base;
  for (int n = 2; !taken.insert(name).second; ++n) name = fmt::format("{} {}", base, n);
  return name;
}

// The mark for the head-to-head criterion, if the rubric has one and it is marked.
std::optional<double> head_to_head_mark(const GradebookRow& row, const Rubric& rubric) {
  for (std::size_t i = 0; i < rubric.criteria.size(); ++i)
    if (rubric.criteria[i].id == "head_to_head" && row.marks[i]) return row.marks[i]->points;
  return std::nullopt;
}

void rank(std::vector<BoardEntry>& entries) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const BoardEntry& a, const BoardEntry& b) { return a.human.point > b.human.point; });
  for (BoardEntry& entry : entries)
    entry.rank =
        1 + static_cast<int>(std::count_if(entries.begin(), entries.end(), [&](const BoardEntry& other) {
          return other.human.low > entry.human.high;
        }));
}

}  // namespace

std::map<std::string, std::string> shown_names(const std::vector<GradebookRow>& rows,
                                               const std::map<std::string, ResultSummary>& summaries,
                                               bool names) {
  std::map<std::string, std::string> people, digests;
  for (const GradebookRow& row : rows) {
    if (!summaries.contains(row.submission)) continue;
    digests.try_emplace(row.submission, row.digest);
    auto [at, fresh] = people.try_emplace(row.submission, row.person.name);
    if (!fresh) at->second += ", " + row.person.name;
  }
  if (names) return people;
  std::set<std::string> taken;
  for (auto& [submission, shown] : people) shown = pseudonym(digests.at(submission), taken);
  return people;
}

std::vector<Board> leaderboards(const std::vector<GradebookRow>& rows, const Rubric& rubric,
                                const std::map<std::string, ResultSummary>& summaries, bool names) {
  std::map<std::string, const GradebookRow*> found;  // by submission, so that a team appears once
  for (const GradebookRow& row : rows)
    if (summaries.contains(row.submission)) found.try_emplace(row.submission, &row);
  const auto names_shown = shown_names(rows, summaries, names);
  std::map<std::pair<std::string, std::string>, Board> boards;
  struct Best {
    double value;
    std::string text;
  };
  std::map<const Board*, Best> closest, explained;
  for (const auto& [name, row] : found) {
    const std::string& shown = names_shown.at(name);
    const ResultSummary& summary = summaries.at(name);
    const Outcome* human = summary.of("human");
    if (!human || !human->correct || !human->speedup || human->speedup->point <= 0) continue;
    Board& board = boards[{row->problem, human->device}];
    board.problem = row->problem;
    board.device = human->device;
    BoardEntry entry{name, shown, 0, *human->speedup, {}, {}};
    if (const Outcome* model = summary.of("llm")) {
      entry.model_verdict = model->correct ? model->gate_two : model->gate_one;
      if (model->correct && model->device == human->device) entry.model = model->speedup;
    }
    if (summary.prediction && summary.prediction->speedup && *summary.prediction->speedup > 0) {
      const double off = std::abs(std::log(*summary.prediction->speedup / human->speedup->point));
      if (auto at = closest.find(&board); at == closest.end() || off < at->second.value)
        closest[&board] = {off, fmt::format("{}: {} predicted, {} measured", shown,
                                            format_speedup(*summary.prediction->speedup),
                                            format_speedup(human->speedup->point))};
    }
    const bool lost = human->speedup->high < 1 || (entry.model && entry.model->low > human->speedup->high);
    if (auto mark = head_to_head_mark(*row, rubric); lost && mark)
      if (auto at = explained.find(&board); at == explained.end() || *mark > at->second.value)
        explained[&board] = {
            *mark,
            fmt::format("{}: {} against {}, and the worklog explains why", shown,
                        format_speedup(human->speedup->point),
                        entry.model ? "the model's " + format_speedup(entry.model->point) : "the baseline")};
    board.entries.push_back(std::move(entry));
  }
  std::vector<Board> all;
  for (auto& [key, board] : boards) {
    rank(board.entries);
    if (auto at = closest.find(&board); at != closest.end()) board.closest_prediction = at->second.text;
    if (auto at = explained.find(&board); at != explained.end()) board.best_explained_loss = at->second.text;
    all.push_back(board);
  }
  return all;
}

}  // namespace capstone
