#include "cli/course.h"

#include <fmt/format.h>

#include "harness/base/text.h"

namespace capstone::cli {
namespace {

constexpr const char* kHere = "   ◀── we are HERE";

// A heading and its lines, folded, two columns in.
class Paragraphs {
 public:
  explicit Paragraphs(const Terminal& terminal) : terminal_(terminal) {}

  void heading(const std::string& text) { text_ += "\n" + terminal_.paint(Tone::kBold, text) + "\n"; }
  void line(const std::string& text, std::size_t hang = 4) {
    text_ += terminal_.fold("  " + text, hang) + "\n";
  }
  void command(const PlanCommand& command) {
    line("$ " + command.run);
    line(terminal_.paint(Tone::kDim, fmt::format("  point at: {}", command.shows)));
  }
  void block(const std::string& text) {
    for (const std::string& one : split(text, '\n')) text_ += one + "\n";
  }
  std::string text() && {
    if (!text_.empty()) text_.pop_back();
    return std::move(text_);
  }

 private:
  const Terminal& terminal_;
  std::string text_;
};

void add_minutes(Paragraphs& out, const SessionPlan& plan) {
  using Kind = PlanStep::Kind;
  const int breaks = plan.minutes_of(Kind::kBreak);
  out.heading(fmt::format("{} minutes: {} teach, {} build{}", plan.minutes(), plan.minutes_of(Kind::kTeach),
                          plan.minutes_of(Kind::kBuild), breaks ? fmt::format(", {} break", breaks) : ""));
  int from = 0;
  for (const PlanStep& step : plan.steps) {
    out.line(fmt::format("{:>3}–{:<3}  {:<5}  {}", from, from + step.minutes, name_of(step.kind), step.what),
             18);
    from += step.minutes;
  }
}

void add_numbers(Paragraphs& out, const std::vector<NumberInWords>& numbers, const Terminal& terminal) {
  out.heading("the numbers");
  for (const NumberInWords& number : numbers) {
    out.line(number.name + ": " + number.says);
    if (!number.means.empty()) out.line("  " + number.means);
    for (const std::string& fact : number.facts)
      for (const std::string& line : split(terminal.fold("    " + fact, 6), '\n'))
        out.block(terminal.paint(Tone::kDim, line));
  }
}

// "H100" for "NVIDIA H100 80GB HBM3": the first word with a digit.
std::string model_of(const std::string& device) {
  for (const std::string& word : split(device, ' '))
    if (word.find_first_of("0123456789") != std::string::npos) return word;
  return device;
}

// As narrow as a projector: the longest names leave no room for the devices' whole names.
void add_ladders(Paragraphs& out, const std::vector<LadderInSession>& ladders, const Terminal& terminal) {
  if (ladders.empty()) return;
  out.heading("the ladders");
  Table table({"ladder", "fastest", "time", "of peak", "library", "GPU"},
              {false, false, true, true, true, false});
  const auto percent = [](double value) { return value >= 0.05 ? fmt::format("{:.1f} %", value) : "n/a"; };
  for (const LadderInSession& ladder : ladders) {
    if (const auto& best = ladder.best)
      table.row({ladder.problem, best->rung.name, format_time_ms(best->ms.point),
                 percent(best->percent_of_peak), percent(100 * best->of_library.point),
                 model_of(ladder.device)});
    else
      table.row({ladder.problem, "not measured", "", "", "", ""});
  }
  out.block(table.text(terminal));
}

}  // namespace

std::string road_text(const Course& course, const std::string& here, const Terminal& terminal) {
  std::string text, half;
  for (const CourseSession& session : course.sessions) {
    if (half != session.half) {
      half = session.half;
      text += fmt::format("{}\n  {}\n\n", text.empty() ? "" : "\n", terminal.paint(Tone::kBold, half));
    }
    const bool now = here == session.id;
    const std::string line = fmt::format("  {} {}  {}", now ? "──▶" : " │ ", session.id, session.title);
    text += (now ? terminal.paint(Tone::kGood, line + kHere) : line) + "\n";
  }
  return text + "\n      capstone: you against the machine; the worklog is graded, not the speed";
}

std::string syllabus_text(const Course& course, const std::string& here, const Terminal& terminal) {
  return fmt::format("{}\n\n  {}\n  {}", road_text(course, here, terminal), course.question, course.loop);
}

std::string weeks_text(const Course& course, const std::string& here, const Terminal& terminal) {
  std::string text, half;
  int week = 0;
  bool passed = !here.empty();  // until the session is met
  for (const CourseSession& session : course.sessions) {
    if (half != session.half) {
      half = session.half;
      text += fmt::format("{}  {}\n", text.empty() ? "" : "\n", terminal.paint(Tone::kBold, half));
    }
    if (session.week != week) text += fmt::format("\n  week {}\n", week = session.week);
    const bool now = here == session.id;
    if (now) passed = false;
    const std::string line = fmt::format("  {} {}  {:<26}",
                                         now      ? "──▶"
                                         : passed ? " ✓ "
                                                  : " │ ",
                                         session.id, session.title);
    if (now)
      text +=
          terminal.paint(Tone::kGood, std::string(line.substr(0, line.find_last_not_of(' ') + 1)) + kHere);
    else if (here.empty())
      text += line.substr(0, line.find_last_not_of(' ') + 1);
    else
      text += terminal.paint(Tone::kDim, line + (passed ? "behind us" : "ahead"));
    text += "\n";
  }
  return text + fmt::format("\n  {}\n  {}", course.question, course.loop);
}

std::string syllabus_line(const Course& course, const std::string& here, const Terminal& terminal) {
  std::string text, title;
  for (const CourseSession& session : course.sessions) {
    const bool now = here == session.id;
    if (now) title = session.title;
    text += (text.empty() ? "" : " ") +
            (now ? terminal.paint(Tone::kGood, fmt::format("[{}]", session.id)) : session.id);
  }
  return fmt::format("{} we are HERE: {}", text, title);
}

std::string sheet_text(const Course& course, const SessionSheet& sheet, const Terminal& terminal) {
  const SessionPlan& plan = sheet.plan;
  Paragraphs out(terminal);
  out.block(terminal.fold(syllabus_line(course, sheet.session.id, terminal)));
  out.block(terminal.fold(
      fmt::format("week {} of {}: {}", sheet.session.week, course.weeks(), sheet.session.half)));
  add_minutes(out, plan);
  out.heading("the line");
  out.line(fmt::format("“{}”", plan.line), 2);
  out.heading("what they leave with");
  out.line(plan.artifact, 2);
  out.line("$ " + plan.begin);
  out.heading(fmt::format("the demo, within {} s", plan.demo_seconds));
  out.command(plan.demo);
  if (!sheet.more_demos.empty()) out.line("more demos: " + join(sheet.more_demos, ", "));
  out.heading("the pitfall");
  out.line("they think: " + plan.thinks);
  out.line("instead:    " + plan.instead);
  out.command(plan.proof);
  add_numbers(out, sheet.numbers, terminal);
  add_ladders(out, sheet.ladders, terminal);
  if (!sheet.labs.empty()) out.heading("the labs");
  for (const Lab& lab : sheet.labs) out.line(fmt::format("{}  {}", lab.id, lab.title));
  return std::move(out).text();
}

}  // namespace capstone::cli
