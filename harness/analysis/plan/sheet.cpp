#include "harness/analysis/plan/sheet.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/files.h"
#include "harness/base/spelling.h"
#include "harness/base/text.h"
#include "harness/model/sizes_text.h"

namespace capstone {
namespace {

bool measured(const LadderStep& step) { return step.timed() && step.gate_one == "PASS"; }

const LadderStep* step_of(const Ladder& ladder, const std::string& rung) {
  for (const LadderStep& step : ladder.steps)
    if (step.rung.name == rung && measured(step)) return &step;
  return nullptr;
}

std::string date_of(const Ladder& ladder) { return ladder.time.substr(0, 10); }

std::string shares(const LadderStep& step) {
  std::string text;
  if (step.percent_of_peak >= 0.05)  // a launch alone moves nothing
    text = fmt::format("{:.1f} % of {}", step.percent_of_peak, step.peak);
  if (step.of_library.point > 0)
    text += fmt::format("{}{:.1f} % of the library", text.empty() ? "" : "; ", 100 * step.of_library.point);
  return text;
}

// At the larger size the launch and the caches weigh less; of recordings at one size the newest counts.
bool tells_more(const Ladder& a, const Ladder& b) {
  return a.bytes != b.bytes ? a.bytes > b.bytes : a.time > b.time;
}

// Of the ladders that have all of these rungs.
const Ladder* with_rungs(const std::vector<Ladder>& recorded, const PlanNumber& number) {
  const Ladder* best = nullptr;
  for (const Ladder& ladder : recorded) {
    if (ladder.problem != number.ladder) continue;
    const bool all = std::all_of(number.rungs.begin(), number.rungs.end(),
                                 [&](const std::string& rung) { return step_of(ladder, rung); });
    if (all && (!best || tells_more(ladder, *best))) best = &ladder;
  }
  return best;
}

NumberInWords in_words(const PlanNumber& number, const std::vector<Ladder>& recorded) {
  NumberInWords words{number.ladder, {}, {}, number.means};
  const Ladder* ladder = with_rungs(recorded, number);
  if (!ladder) {
    words.says = join(number.rungs, " → ") + ": not measured";
    words.facts.push_back(
        fmt::format("to record it on a GPU: capstone ladder {} --record FILE", number.ladder));
    return words;
  }
  const LadderStep* first = step_of(*ladder, number.rungs.front());
  const LadderStep* last = step_of(*ladder, number.rungs.back());
  for (const std::string& rung : number.rungs)
    words.says += fmt::format("{}{} {}", rung == number.rungs.front() ? "" : " → ", rung,
                              format_time_ms(step_of(*ladder, rung)->ms.point));
  if (first != last)
    words.says += fmt::format(", {} faster", format_speedup(first->ms.point / last->ms.point));
  if (const std::string text = shares(*last); !text.empty())
    words.facts.push_back(first == last ? text : "the last: " + text);
  words.facts.push_back(
      fmt::format("{}, {}, {}", ladder->device, sizes_text(ladder->sizes), date_of(*ladder)));
  return words;
}

Result<NumberInWords> in_words(const PlanNumber& number, const std::vector<CourseNumber>& quoted,
                               const fs::path& plan) {
  std::vector<std::string> names;
  for (const CourseNumber& one : quoted) {
    if (one.name == number.course)
      return NumberInWords{one.name,
                           one.said,
                           {"source: " + one.source, "measured here: " + one.measured, "say: " + one.say},
                           number.means};
    names.push_back(one.name);
  }
  const auto meant = nearest(number.course, names);
  return fail(fmt::format("the course quotes no number `{}`", number.course), plan.string(),
              meant ? fmt::format("did you mean `{}`?", *meant)
                    : "its numbers are the headings of docs/reference/handbook_numbers.md");
}

int steps_in(const Ladder& ladder, const std::string& session) {
  return static_cast<int>(
      std::count_if(ladder.steps.begin(), ladder.steps.end(),
                    [&](const LadderStep& step) { return step.rung.session == session && measured(step); }));
}

// Of all recordings one that has most of the session's rungs.
void add_best(LadderInSession& row, const std::string& session, const std::vector<Ladder>& recorded) {
  const Ladder* from = nullptr;
  for (const Ladder& ladder : recorded) {
    const int steps = ladder.problem == row.problem ? steps_in(ladder, session) : 0;
    if (steps == 0) continue;
    const int most = from ? steps_in(*from, session) : 0;
    if (steps > most || (steps == most && tells_more(ladder, *from))) from = &ladder;
  }
  if (!from) return;
  row.device = from->device, row.sizes = sizes_text(from->sizes), row.date = date_of(*from);
  for (const LadderStep& step : from->steps)
    if (step.rung.session == session && measured(step) && (!row.best || step.ms.point < row.best->ms.point))
      row.best = step;
}

}  // namespace

Result<std::vector<CourseNumber>> course_numbers(const fs::path& share) {
  const fs::path file = share / "docs" / "reference" / "handbook_numbers.md";
  CAPSTONE_TRY(const std::string page, read_file(file, std::size_t{1} << 20));
  std::vector<CourseNumber> numbers;
  std::string* open = nullptr;  // the text that a further line continues
  for (const std::string& line : split(page, '\n')) {
    if (line.starts_with("## ")) {
      numbers.push_back({line.substr(3), {}, {}, {}, {}});
      open = nullptr;
    } else if (open && line.starts_with("  ")) {
      *open += " " + std::string(trim(line));
    } else {
      open = nullptr;
      if (numbers.empty()) continue;
      CourseNumber& now = numbers.back();
      const std::pair<std::string_view, std::string*> fields[] = {{"- **Said**: ", &now.said},
                                                                  {"- **Source**: ", &now.source},
                                                                  {"- **Measured here**: ", &now.measured},
                                                                  {"- **Say**: ", &now.say}};
      for (const auto& [head, text] : fields)
        if (line.starts_with(head)) *(open = text) = line.substr(head.size());
    }
  }
  for (CourseNumber& one : numbers)
    for (std::string* text : {&one.said, &one.source, &one.measured, &one.say}) {
      if (text->empty())
        return fail(fmt::format("`{}` needs Said, Source, Measured here and Say", one.name), file.string());
      *text = replace_all(replace_all(*text, "`", ""), "*", "");  // Markdown's marks
    }
  return numbers;
}

Result<SheetSources> sheet_sources(const Resources& resources) {
  SheetSources sources;
  CAPSTONE_TRY(sources.recorded, recorded_everywhere(resources));
  CAPSTONE_TRY(sources.quoted, course_numbers(resources.share));
  return sources;
}

Result<SessionSheet> session_sheet(const CourseSession& session, const SheetSources& sources,
                                   const Resources& resources) {
  SessionSheet sheet;
  sheet.session = session;
  CAPSTONE_TRY(sheet.plan, plan_of(session, resources.reference_kernels()));
  for (const std::string& problem : ladders_of(resources, session.id)) {
    LadderInSession row{problem, count_rungs(resources, session.id, problem), {}, {}, {}, std::nullopt};
    add_best(row, session.id, sources.recorded);
    sheet.ladders.push_back(std::move(row));
  }
  CAPSTONE_TRY(sheet.labs, labs_of(resources.reference_kernels(), session.id + "-"));
  for (const PlanNumber& number : sheet.plan.numbers) {
    if (number.course.empty()) {
      sheet.numbers.push_back(in_words(number, sources.recorded));
      continue;
    }
    CAPSTONE_TRY(
        NumberInWords words,
        in_words(number, sources.quoted, resources.reference_kernels() / "plans" / (session.id + ".yaml")));
    sheet.numbers.push_back(std::move(words));
  }
  return sheet;
}

}  // namespace capstone
