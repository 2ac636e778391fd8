// `capstone hint`: the hints of a project's problem.
#include "harness/workflows/hint.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <memory>

#include "cli/context.h"
#include "harness/base/text.h"

namespace capstone::cli {
namespace {

struct HintArguments {
  std::string number;
  bool list = false, shown = false;
};

Result<int> number_of(const std::string& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || (error == std::errc() && end == text.data() + text.size() && number > 0)) return number;
  return fail(
      fmt::format("`{}` is not the number of a hint", text), {},
      "hints belong to a project: run `capstone hint` in its folder (`capstone init PROBLEM` makes one), "
      "or `capstone hint 1` for a hint that you took before");
}

// "taken after v1 (2026-03-01 12:00 UTC)", "next" or "open".
std::string state_of(const workflows::ProjectHints& hints, int level) {
  if (const TakenHint* taken = hints.find(level)) {
    const std::string told = taken->told();
    return "taken" + told.substr(told.find(',') + 1);
  }
  return level == hints.highest() + 1 ? "next" : "open";
}

// Items of a list hang.
std::string folded(const std::string& text, const Terminal& t) {
  std::vector<std::string> lines = split(text, '\n');
  for (std::string& line : lines) {
    const std::size_t mark = line.find(' ');
    const bool item =
        mark != line.npos && line.find_first_not_of("0123456789") == mark - 1 && line[mark - 1] == '.';
    line = t.fold(line, item || line.starts_with("- ") ? mark + 1 : 0);
  }
  return join(lines, "\n");
}

Result<ExitCode> list(const Context& context, bool with_text) {
  CAPSTONE_TRY(const auto hints, workflows::hints_here(context));
  const Terminal& t = context.terminal;
  const int last = static_cast<int>(hints.texts.size());
  Json all = Json::array();
  for (int level = 1; level <= last; ++level) {
    const TakenHint* taken = hints.find(level);
    const bool readable = with_text && taken;
    const std::string& text = hints.texts[static_cast<std::size_t>(level - 1)];
    if (context.json) {
      Json one{{"level", level}, {"taken", taken ? Json(taken->time) : Json()}};
      if (taken) one["after"] = taken->after, one["before"] = taken->before;
      if (readable) one["text"] = text;
      all.push_back(std::move(one));
      continue;
    }
    t.out(t.paint(readable ? Tone::kBold : Tone::kPlain,
                  fmt::format("hint {}  {}", level, state_of(hints, level))));
    if (readable) t.out(folded(text, t) + "\n");
  }
  if (context.json) {
    t.out(Json{{"problem", hints.problem}, {"of", last}, {"hints", all}}.dump(2));
    return ExitCode::kDone;
  }
  const int left = last - hints.highest();
  t.out(left ? fmt::format("{} of {} left; the next one: capstone hint", left, last)
             : "all hints were taken; read them again: capstone hint --shown");
  return ExitCode::kDone;
}

Result<ExitCode> take(const Context& context, const std::string& text) {
  CAPSTONE_TRY(const int asked, number_of(text));
  CAPSTONE_TRY(const auto shown, workflows::take_hint(asked, context));
  const Terminal& t = context.terminal;
  if (context.json) {
    t.out(Json{
        {"level", shown.number}, {"of", kHintLevels}, {"first_time", shown.first_time}, {"text", shown.text}}
              .dump(2));
    return ExitCode::kDone;
  }
  t.out(t.paint(Tone::kBold, fmt::format("hint {} of {}", shown.number, kHintLevels)));
  t.out(folded(shown.text, t));
  t.out();
  if (shown.first_time)
    t.out(t.fold("recorded: the report says when you took it. It costs no marks: the worklog is graded."));
  t.out(t.fold(
      shown.last
          ? "that was the last hint. next: capstone try; still stuck: capstone checkin --stuck \"where\""
          : fmt::format("next: capstone try; if you are still stuck: capstone hint {}", shown.number + 1)));
  return ExitCode::kDone;
}

}  // namespace

void add_hint(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand(
      "hint", "show the next of three hints for your project's problem; the ledger records that you took it");
  auto a = std::make_shared<HintArguments>();
  auto* number = command->add_option("number", a->number, "1 to 3 (default: the next one)")->type_name("INT");
  auto* listing =
      command->add_flag("--list", a->list, "list the hints and when you took them, without texts");
  listing->excludes(number);
  command->add_flag("--shown", a->shown, "show again what you took; records nothing")
      ->excludes(number)
      ->excludes(listing);
  add_format(*command, context);
  command->callback([&context, &action, a] {
    action = [&context, a] {
      return a->list || a->shown ? list(context, a->shown) : take(context, a->number);
    };
  });
}

}  // namespace capstone::cli
