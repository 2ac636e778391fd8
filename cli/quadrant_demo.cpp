#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "cli/machine_demos.h"
#include "cli/workshop_demos.h"
#include "harness/base/text.h"
#include "harness/course/gradebook/quadrant.h"
#include "harness/machine/history.h"
#include "harness/workflows/cohort.h"

namespace capstone::cli {
namespace {

constexpr std::size_t kField = 33;  // [cells] of a field's width: two and the row's name fit in 80
// Lines of names that a group has, so that all fit on a projector: searches are more groups than classes.
constexpr std::size_t kNamesOfSearch = 1, kNamesOfClass = 3;
constexpr std::size_t kRowName = 8;

using Dots = std::vector<const GateDot*>;

std::string padded(std::string text, std::size_t cells) {
  const std::size_t width = display_width(text);
  return text.append(width < cells ? cells - width : 0, ' ');
}

std::string cut_name(std::string name, std::size_t cells) {
  if (display_width(name) <= cells) return name;
  while (display_width(name) >= cells) {
    while ((static_cast<unsigned char>(name.back()) & 0xC0) == 0x80) name.pop_back();
    name.pop_back();
  }
  return name + "…";
}

// Names between commas in a few lines, and how many have no room.
std::vector<std::string> name_lines(const Dots& dots, std::size_t cells, std::size_t most) {
  std::vector<std::string> lines{""};
  for (std::size_t i = 0; i < dots.size(); ++i) {
    const std::string rest = i + 1 < dots.size() ? fmt::format(", +{}", dots.size() - i - 1) : "";
    const std::string name = cut_name(one_line(to_utf8(dots[i]->name)), cells - rest.size());
    const std::string more = (lines.back().empty() ? "" : ", ") + name;
    if (display_width(lines.back() + more + rest) <= cells) {
      lines.back() += more;
    } else if (lines.size() < most) {
      lines.back() += ",";
      lines.push_back(name);
    } else {
      lines.back() += fmt::format(", +{}", dots.size() - i);
      break;
    }
  }
  return lines;
}

std::size_t kernels_a_dot(std::size_t kernels, std::size_t cells) { return (kernels + cells - 1) / cells; }

std::string dot_row(std::size_t kernels, std::size_t cells) {
  std::string row;
  for (std::size_t i = 0; i < kernels; i += kernels_a_dot(kernels, cells)) row += "●";
  return row;
}

// A group's name and number, a dot for each kernel, and their names.
std::vector<std::string> field_lines(const Dots& dots, std::size_t cells, std::size_t names) {
  std::vector<std::string> order;
  std::map<std::string, Dots> groups;
  for (const GateDot* dot : dots) {
    if (groups[dot->group].empty()) order.push_back(dot->group);
    groups[dot->group].push_back(dot);
  }
  std::vector<std::string> lines;
  for (const std::string& name : order) {
    const Dots& group = groups[name];
    const std::size_t each = kernels_a_dot(group.size(), cells);
    lines.push_back(fmt::format("{}: {}{}", name, group.size(),
                                each > 1 ? fmt::format(", a dot is {}", each) : std::string()));
    lines.push_back(dot_row(group.size(), cells));
    for (std::string& line : name_lines(group, cells, names)) lines.push_back(std::move(line));
  }
  return lines;
}

Dots in_field(const std::vector<GateDot>& dots, GateField field) {
  Dots found;
  for (const GateDot& dot : dots)
    if (field_of(dot) == field) found.push_back(&dot);
  return found;
}

// "WRONG 3, TIME-OUT 1"
std::string labels_text(const Dots& dots) {
  std::map<std::string, int> counts;
  for (const GateDot* dot : dots) ++counts[dot->gate_one];
  std::vector<std::string> parts;
  for (const auto& [label, count] : counts) parts.push_back(fmt::format("{} {}", label, count));
  return join(parts, ", ");
}

std::string rule(const char* cross) {
  std::string text;
  for (std::size_t i = 0; i < kRowName; ++i) text += "─";
  for (int field = 0; field < 2; ++field) {
    text += field == 0 ? "┼" : cross;
    for (std::size_t i = 0; i < kField + 2; ++i) text += "─";
  }
  return text;
}

void draw_fields(const Context& context, const std::vector<GateDot>& dots, std::size_t names) {
  const Dots slow = in_field(dots, GateField::kNotFaster), fast = in_field(dots, GateField::kFaster);
  const Dots wrong = in_field(dots, GateField::kWrong), open = in_field(dots, GateField::kUndecided);
  const Terminal& t = context.terminal;
  t.out(fmt::format("{:<{}}│ {} │ {}", "", kRowName,
                    padded(fmt::format("not faster: {}", slow.size()), kField),
                    t.paint(Tone::kGood, fmt::format("faster: {}", fast.size()))));
  t.out(rule("┼"));
  const auto left = field_lines(slow, kField, names), right = field_lines(fast, kField, names);
  for (std::size_t i = 0; i < std::max({left.size(), right.size(), std::size_t{1}}); ++i)
    t.out(fmt::format("{:<{}}│ {} │ {}", i == 0 ? "correct" : "", kRowName,
                      padded(i < left.size() ? left[i] : "", kField), i < right.size() ? right[i] : ""));
  t.out(rule("┴"));
  t.out(fmt::format("{:<{}}│ {}", "wrong", kRowName,
                    wrong.empty() ? std::string("none") : fmt::format("{}: not timed", wrong.size())));
  if (!wrong.empty()) {
    t.out(fmt::format("{:<{}}│ {}", "", kRowName, labels_text(wrong)));
    const std::string row = dot_row(wrong.size(), kField);
    t.out(fmt::format("{:<{}}│ {}  {}", "", kRowName, row,
                      name_lines(wrong, 2 * kField + 1 - display_width(row), 1).front()));
  }
  if (!open.empty())
    tell(context, fmt::format("in no field: {} correct, but gate two has not decided (no GPU, or noise): {}",
                              open.size(), name_lines(open, kField, 1).front()));
}

Result<std::vector<GateDot>> dots_of_class(const Context& context, const DemoInputs& inputs) {
  CAPSTONE_TRY(workflows::OpenCohort cohort, workflows::open_cohort(context, inputs.from));
  CAPSTONE_TRY(auto rows, cohort.book.rows(cohort.rubric));
  CAPSTONE_TRY(const auto summaries, cohort.book.summaries());
  if (!inputs.problem.empty())
    std::erase_if(rows, [&](const GradebookRow& row) { return row.problem != inputs.problem; });
  return dots_of_cohort(rows, summaries, inputs.names);
}

Result<std::vector<GateDot>> dots_of_searches(const Context& context, const DemoInputs& inputs) {
  CAPSTONE_TRY(const auto runs, searches_to_play(context, inputs, ""));
  std::vector<GateDot> dots;
  for (const workflows::RecordedRun& run : runs)
    for (const machine::Node* node : machine::judged_tries(run.tree))
      // What a person has to look at first is in no field yet.
      dots.push_back({run.info.problem + " " + run.info.kind, node->name, node->verdict,
                      node->doubtful() ? std::string() : node->gate_two});
  return dots;
}

// The room's own times, by hand.
Result<void> what_times_earn(const Context& context, const DemoInputs& inputs) {
  if (!inputs.from.empty() || !inputs.problem.empty() || inputs.names || inputs.times.size() < 2)
    return fail("--times takes a baseline and at least one candidate, and no other option", {},
                "--times 4.0,1.6,5.0: milliseconds, the baseline's first", ExitCode::kUsage);
  const double baseline = inputs.times.front();
  Table table({"candidate", "speedup", "if it is correct"});
  for (auto time = inputs.times.begin() + 1; time != inputs.times.end(); ++time) {
    const double speedup = baseline / *time;
    table.row({fmt::format("{:g} ms", *time),
               fmt::format("{:g} / {:g} = {}", baseline, *time, format_speedup(speedup)),
               speedup > 1 ? fmt::format("faster: counts in fast_p for every p below {:.3g}", speedup)
                           : std::string("not faster: counts 0 in fast_1")});
  }
  tell(context,
       table.text(context.terminal) +
           "\na wrong one counts 0, however fast. A judgement also needs the intervals of both times: "
           "where they do not part, it is no win.\nIn the marks of a capstone, speed alone counts "
           "nothing in each of these fields: the worklog is graded.");
  return {};
}

}  // namespace

Result<void> quadrant_demo(const Context& context, const DemoInputs& inputs) {
  if (!inputs.times.empty()) return what_times_earn(context, inputs);
  std::error_code ignored;
  const bool cohort =
      !inputs.from.empty() && fs::exists(context.cwd / inputs.from / "gradebook.sqlite", ignored);
  if (inputs.names && !cohort)
    return fail("--names is for a class", {}, "--from GRADED: the folder that `capstone grade` made",
                ExitCode::kUsage);
  auto dots = cohort ? dots_of_class(context, inputs) : dots_of_searches(context, inputs);
  if (!dots) return tl::unexpected(dots.error());
  tell(context, cohort ? "gate one: correct? gate two: faster than the baseline? As the class was judged:\n"
                       : "gate one: correct? gate two: faster than the baseline? Recorded searches of a "
                         "language model, as they were judged:\n");
  draw_fields(context, *dots, cohort ? kNamesOfClass : kNamesOfSearch);
  if (dots->empty()) tell(context, "no kernel was judged");
  return {};
}

}  // namespace capstone::cli
