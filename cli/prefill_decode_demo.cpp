#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "cli/workshop_demos.h"
#include "examples/demos/serving/lengths.h"
#include "harness/base/text.h"
#include "harness/timing/roofline.h"

namespace capstone::cli {
namespace {

// ---- under the roof ---------------------------------------------------------------------------------------

struct Product {
  const char* phase;
  const char* problem;
};
constexpr Product kProducts[] = {
    {"prefill", "gemm_bf16"}, {"decode", "gemv"}, {"prefill", "layer_prefill"}, {"decode", "layer_decode"}};

// Of the last device, by name, that has a time.
const Ladder* recorded_product(const std::vector<Ladder>& recorded, const Problem& problem) {
  const Ladder* found = nullptr;
  for (const Ladder& ladder : recorded)
    if (ladder.problem == problem.id && ladder.sizes == sizes_json(problem.measure) && ladder.fastest())
      found = &ladder;
  return found;
}

std::string share_text(double percent) {
  return percent < 1 ? fmt::format("{:.1f} %", percent) : fmt::format("{:.0f} %", percent);
}

Result<void> show_products(const Context& context) {
  Table table({"phase", "problem", "FLOP/B", "bound by", "floor", "time", "FLOP/s", "B/s", "GPU"},
              {false, false, true, false, true, true, true, true});
  CAPSTONE_TRY(const auto recorded, recorded_everywhere(context.resources));
  std::map<std::string, double> ridges;  // [FLOP/B] by GPU
  for (const Product& product : kProducts) {
    CAPSTONE_TRY(const Problem problem, find_problem(context.resources.problems(), product.problem));
    const Ladder* ladder = recorded_product(recorded, problem);
    const auto peaks = ladder ? find_device(ladder->device) : std::nullopt;
    if (!peaks) {
      table.row({product.phase, product.problem, "no recorded time"});
      continue;
    }
    const LadderStep& best = *ladder->fastest();
    const Roofline roof = roofline({ladder->flops, ladder->bytes}, best.ms.point, *peaks, problem.precision);
    const double peak = peak_of(*peaks, problem.precision).flops;
    const std::string gpu = split(replace_all(peaks->name, "NVIDIA ", ""), ' ').front();
    ridges[gpu] = peak / peaks->bandwidth;
    table.row({product.phase, product.problem, fmt::format("{:.0f}", ladder->flops / ladder->bytes),
               roof.bound_by, format_time_ms(roof.floor_ms), format_time_ms(best.ms.point),
               share_text(100 * ladder->throughput(best) / peak),
               share_text(100 * ladder->bandwidth(best) / peaks->bandwidth), gpu});
  }
  tell(context, table.text(context.terminal));
  std::vector<std::string> parts;
  for (const auto& [gpu, ridge] : ridges) parts.push_back(fmt::format("{:.0f} ({})", ridge, gpu));
  if (!parts.empty())
    tell(context, "the ridge, in FLOP/B: " + join(parts, ", ") + "; floor: the roofline's time");
  return {};
}

// ---- requests in places -----------------------------------------------------------------------------------

constexpr std::size_t kPlaces = 4, kFewPlaces = 2;  // few: where there are not two requests for each
constexpr std::size_t kDrawnColumns = 64;
constexpr std::size_t kRecordedRequests = 12, kMostRequests = 26;  // a letter each
constexpr int kLongest = 100000;

struct Batched {
  std::vector<std::string> places;  ///< a letter or '.' a step
  std::int64_t steps = 0, tokens = 0;
  double idle_percent() const { return 100 - 100 * double(tokens) / (double(steps) * double(places.size())); }
  double tokens_a_step() const { return double(tokens) / double(steps); }
};

// A step makes one token in every place that has a request. The next request enters a place that is free; in
// a static batch, only when all are.
Batched serve(const std::vector<int>& lengths, bool continuous) {
  const std::size_t places = lengths.size() < 2 * kPlaces ? kFewPlaces : kPlaces;
  Batched out{std::vector<std::string>(places), 0, 0};
  std::vector<int> left(places, 0);
  std::vector<char> letter(places, '.');
  std::size_t next = 0;
  const auto busy = [&] { return std::any_of(left.begin(), left.end(), [](int n) { return n > 0; }); };
  for (;;) {
    if (continuous || !busy())
      for (std::size_t p = 0; p < left.size() && next < lengths.size(); ++p)
        if (left[p] == 0) letter[p] = char('A' + next), left[p] = lengths[next++];
    if (!busy()) return out;
    ++out.steps;
    for (std::size_t p = 0; p < left.size(); ++p) {
      out.places[p] += left[p] > 0 ? letter[p] : '.';
      if (left[p] > 0) --left[p], ++out.tokens;
    }
  }
}

void draw_places(const Context& context, const char* name, const Batched& batched,
                 std::size_t steps_a_column) {
  tell(context, fmt::format("{:<11} {} steps, {:.2f} tokens a step, {:.0f} % of the places idle",
                            context.terminal.paint(Tone::kBold, name), batched.steps, batched.tokens_a_step(),
                            batched.idle_percent()));
  for (std::size_t p = 0; p < batched.places.size(); ++p) {
    std::string line;
    for (std::size_t at = 0; at < batched.places[p].size(); at += steps_a_column)
      line += batched.places[p][at];
    tell(context, fmt::format("  place {} {}", p + 1, line));
  }
}

Error no_lengths(const std::string& why) {
  return {"--lengths: " + why, {}, "--lengths 12,3,30,7: the tokens of each answer", ExitCode::kUsage};
}

Result<std::vector<int>> lengths_of(const std::string& text) {
  std::vector<int> lengths;
  for (const std::string& part : split(text, ',')) {
    const std::string_view number = trim(part);
    int value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error != std::errc() || end != number.data() + number.size() || value < 1 || value > kLongest)
      return fail(
          no_lengths(fmt::format("'{}' is not a number of tokens from 1 to {}", to_utf8(number), kLongest)));
    lengths.push_back(value);
  }
  if (lengths.size() > kMostRequests)
    return fail(no_lengths(fmt::format("{} requests, at most {}", lengths.size(), kMostRequests)));
  return lengths;
}

std::vector<int> recorded_lengths() {
  std::vector<int> lengths;
  for (const Lengths& request : kLengths)
    if (lengths.size() < kRecordedRequests) lengths.push_back(request.answer);
  return lengths;
}

}  // namespace

Result<void> prefill_decode_demo(const Context& context, const DemoInputs& inputs) {
  std::vector<int> lengths = recorded_lengths();
  if (!inputs.lengths.empty()) {
    CAPSTONE_TRY(lengths, lengths_of(inputs.lengths));
  }
  tell(context, "the fastest recorded rung of each, in percent of the data sheet's FLOP/s and B/s:");
  CAPSTONE_CHECK(show_products(context));
  const Batched fixed = serve(lengths, false), flowing = serve(lengths, true);
  const auto longest = static_cast<std::size_t>(std::max(fixed.steps, flowing.steps));
  const std::size_t steps_a_column = (longest + kDrawnColumns - 1) / kDrawnColumns;
  tell(
      context,
      fmt::format("modelled: {} requests {}; a place makes a token a step, prompts take no time; a column is "
                  "{} step{}",
                  lengths.size(),
                  inputs.lengths.empty() ? "as long as the first answers of a real chat service"
                                         : "as long as you say",
                  steps_a_column, steps_a_column == 1 ? "" : "s"));
  draw_places(context, "static", fixed, steps_a_column);
  draw_places(context, "continuous", flowing, steps_a_column);
  return {};
}

}  // namespace capstone::cli
