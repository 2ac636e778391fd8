#include "harness/course/problem_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/base/ascii.h"
#include "harness/base/spelling.h"
#include "harness/base/text.h"

namespace capstone {
namespace {

Result<const StudentLevel*> level_of(const std::string& name) {
  std::vector<std::string> names;
  for (const StudentLevel& level : student_levels()) {
    if (ascii_lower(name) == level.name) return &level;
    names.emplace_back(level.name);
  }
  const auto meant = nearest(name, names);
  return fail("no level is called " + name, {},
              (meant ? "did you mean " + *meant + "?  " : "") + "levels: " + join(names, ", "));
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : ascii_lower(text)) {
    if (c != ' ' && c != ',' && c != ';')
      words.back() += c;
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// Where a word is found in a problem: "title", "sessions" …; empty: nowhere. Parts of words count, so that
// "norm" finds a layernorm.
std::string place_of(const std::string& word, const Problem& problem) {
  const std::pair<const char*, std::string> places[] = {
      {"id", problem.id},
      {"title", problem.title},
      {"sessions", join(problem.sessions, " ")},
      {"bottleneck", problem.bottleneck},
      {"precision", std::string(name_of(problem.precision))},
      {"the human's edge", problem.edge},
      {"what to expect", problem.expect}};
  for (const auto& [place, text] : places)
    if (ascii_lower(text).find(word) != std::string::npos) return place;
  return {};
}

}  // namespace

const std::vector<StudentLevel>& student_levels() {
  static const std::vector<StudentLevel> all{
      {"new", 2, "a chain of operators, first those that are bound by memory and run on any GPU"},
      {"usual", 2, "a chain of operators, where fusion gives a human a real chance"},
      {"strong", 1, "a single operator against a tuned library"},
      {"team", 3, "a whole block"}};
  return all;
}

Result<std::vector<Recommendation>> recommend(const std::vector<Problem>& catalogue, const Wish& wish) {
  CAPSTONE_TRY(const StudentLevel* const level, level_of(wish.level.empty() ? "usual" : wish.level));
  const std::vector<std::string> words = words_of(wish.interest);
  std::vector<Recommendation> all;
  for (const Problem& problem : catalogue) {
    if (!problem.graded || problem.tier != level->tier) continue;
    Recommendation one{&problem, fmt::format("tier {}: {}", level->tier, level->text)};
    for (const std::string& word : words)
      if (const std::string place = place_of(word, problem); !place.empty()) {
        ++one.matches;
        one.because += fmt::format("; {}: in {}", word, place);
      }
    if (words.empty() || one.matches > 0) all.push_back(std::move(one));
  }
  if (all.empty())
    return fail(fmt::format("no graded problem of tier {} is about {}", level->tier, join(words, " or ")), {},
                "see `capstone problems`, or leave the interest out");
  const bool easy_first = std::string_view(level->name) == "new";
  const auto hard = [&](const Recommendation& one) {
    return easy_first && (one.problem->bottleneck != "memory" || one.problem->arch != "sm_75");
  };
  std::stable_sort(all.begin(), all.end(), [&](const Recommendation& a, const Recommendation& b) {
    if (a.matches != b.matches) return a.matches > b.matches;
    if (hard(a) != hard(b)) return hard(b);
    return a.problem->id < b.problem->id;
  });
  return all;
}

Result<std::vector<Assigned>> assign_problems(const std::vector<Problem>& catalogue,
                                              const std::vector<RosterRow>& roster, const Wish& otherwise) {
  std::map<std::string, int> taken;
  std::vector<Assigned> all;
  for (const RosterRow& row : roster) {
    auto fitting = recommend(catalogue, {row.level.empty() ? otherwise.level : row.level,
                                         row.interest.empty() ? otherwise.interest : row.interest});
    if (!fitting)
      return fail(fitting.error().what, fmt::format("line {} of the roster: {}", row.line, row.name),
                  fitting.error().hint);
    const auto best = std::min_element(
        fitting->begin(), fitting->end(), [&](const Recommendation& a, const Recommendation& b) {
          return a.matches != b.matches ? a.matches > b.matches : taken[a.problem->id] < taken[b.problem->id];
        });
    ++taken[best->problem->id];
    all.push_back({row, *best});
  }
  return all;
}

}  // namespace capstone
