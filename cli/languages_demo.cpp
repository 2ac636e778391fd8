// `capstone demo languages`: one kernel in two languages, side by side, and what each costs and gives.
#include <fmt/format.h>

#include <algorithm>

#include "cli/ladder_view.h"
#include "cli/workshop_demos.h"
#include "harness/base/files.h"
#include "harness/base/text.h"

namespace capstone::cli {
namespace {

constexpr const char* kLadder = "gemm_languages";
constexpr const char* kShort = "01_triton";

Result<std::vector<std::string>> code_of(const Rung& rung) {
  CAPSTONE_TRY(const std::string text, read_file(rung.source));
  return code_lines(rung.source, text);
}

// Cut and padded to a column of ASCII code.
std::string in_column(const std::string& line, std::size_t width) {
  return fmt::format("{:<{}}", line.size() > width ? line.substr(0, width - 1) + ">" : line, width);
}

void side_by_side(const Context& context, const std::vector<std::string>& left,
                  const std::vector<std::string>& right) {
  constexpr std::size_t kColumn = 38;  // two of them and a rule fit on a projector, and on the page
  for (std::size_t i = 0; i < left.size(); ++i)
    context.terminal.out(in_column(left[i], kColumn) + " | " +
                         (i < right.size() ? in_column(right[i], kColumn) : std::string()));
  if (right.size() > left.size())
    context.terminal.out(std::string(kColumn, ' ') +
                         fmt::format(" | … and {} more lines", right.size() - left.size()));
}

// What was recorded of this ladder on the first device, and that device's name; empty: nothing.
Result<std::optional<std::pair<Ladder, std::string>>> recorded_languages(const Context& context) {
  constexpr const char* kKind = "languages";
  for (const std::string& device : recorded_devices(context.resources, kKind)) {
    CAPSTONE_TRY(const LadderResults results, read_results(context.resources.reference_kernels() / "results" /
                                                           kKind / (device + ".json")));
    for (const Ladder& ladder : results.ladders)
      if (ladder.problem == kLadder) return std::pair{ladder, device};
  }
  return std::nullopt;
}

}  // namespace

Result<void> languages_demo(const Context& context, const DemoInputs&) {
  CAPSTONE_TRY(const auto rungs, rungs_of(context.resources, kLadder));
  const auto shortest =
      std::find_if(rungs.begin(), rungs.end(), [](const Rung& rung) { return rung.name == kShort; });
  if (shortest == rungs.end()) return fail(fmt::format("no rung {} of {}", kShort, kLadder));
  const Rung& longest = rungs.back();  // the problem's own, in CUDA
  CAPSTONE_TRY(const auto left, code_of(*shortest));
  CAPSTONE_TRY(const auto right, code_of(longest));
  tell(context, fmt::format("{} in Triton, {} lines, and {} in CUDA, {} lines:\n", shortest->name,
                            left.size(), longest.name, right.size()));
  side_by_side(context, left, right);
  CAPSTONE_TRY(const auto recorded, recorded_languages(context));
  context.terminal.out();
  if (recorded) {
    Ladder bare = recorded->first;  // a projector has no room for the notes on each run
    for (LadderStep& step : bare.steps) step.labels.clear();
    context.terminal.out(ladder_text(bare, context.terminal, true));
    tell(context,
         fmt::format("notes on each run: capstone ladder {} --recorded {}", kLadder, recorded->second));
  } else {
    tell(context,
         fmt::format("no times are recorded for it: on a machine with a GPU, capstone ladder {}", kLadder));
  }
  return {};
}

}  // namespace capstone::cli
