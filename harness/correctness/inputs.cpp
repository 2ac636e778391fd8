#include "harness/correctness/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "harness/base/parallel.h"
#include "harness/base/spelling.h"
#include "harness/base/text.h"
#include "harness/correctness/bulk.h"
#include "harness/correctness/dtype_convert.h"

namespace capstone {
namespace {

constexpr std::size_t kChunk = 4096;  // elements per step: words and floats of a step stay in the L1 cache

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

random::Twist twist_of(Battery battery) {
  switch (battery) {
    case Battery::kPlain:
      return random::Twist::kNone;
    case Battery::kTimesTen:
      return random::Twist::kTimesTen;
    case Battery::kOffset:
      return random::Twist::kOffset;
    case Battery::kFarNegative:
      return random::Twist::kFarNegative;
    case Battery::kHeavyTails:
      return random::Twist::kHeavyTails;
    case Battery::kSignFlip:
      return random::Twist::kSignFlip;
    case Battery::kHotElement:
      return random::Twist::kHotElement;
  }
  return random::Twist::kNone;
}

/// One tensor to be filled, with the data that error messages need.
struct Target {
  const Problem& problem;
  const Parameter& parameter;
  std::uint32_t stream;
  std::uint64_t seed;
  std::int64_t elements;

  std::string where() const { return fmt::format("{}: {}", problem.id, parameter.name); }
};

Result<Target> target_of(const Problem& problem, int index, const Sizes& sizes, std::uint64_t seed) {
  if (index < 0 || index >= static_cast<int>(problem.signature.size()))
    return fail(fmt::format("parameter {} does not exist", index), problem.id, {}, ExitCode::kInternal);
  const Parameter& parameter = problem.signature[static_cast<std::size_t>(index)];
  if (parameter.role == Role::kScalar || parameter.role == Role::kOutput)
    return fail(fmt::format("{} has no values to draw: it is {}", parameter.name, name_of(parameter.role)),
                problem.id, {}, ExitCode::kInternal);
  CAPSTONE_TRY(const auto shape, shape_at(parameter, sizes));
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape) elements *= extent;
  return Target{problem, parameter, static_cast<std::uint32_t>(index), seed, elements};
}

Result<void> require_real(const Target& target, std::string_view init) {
  if (is_float(target.parameter.dtype)) return {};
  return fail(fmt::format("init '{}' needs a floating type, {} is {}", init, target.parameter.name,
                          name_of(target.parameter.dtype)),
              target.where(), "use init: {integer: {min: …, max: …}}");
}

Result<void> require_whole(const Target& target, std::int64_t min, std::int64_t max) {
  const auto [low, high] = whole_numbers(target.parameter.dtype);
  if (min <= max && min >= low && max <= high) return {};
  return fail(
      fmt::format("{} … {} does not fit {}, which is {}", min, max, target.parameter.name,
                  name_of(target.parameter.dtype)),
      target.where(),
      fmt::format("{} holds whole numbers from {} to {}", name_of(target.parameter.dtype), low, high));
}

Result<random::Draw> draw_of(const InitNormal& init, const Target& target, Battery battery) {
  CAPSTONE_CHECK(require_real(target, "normal"));
  random::Draw draw;
  draw.kind = random::Kind::kNormal;
  draw.a = static_cast<float>(init.mean);
  draw.b = static_cast<float>(init.std);
  if (!battery_applies(target.parameter, battery)) return draw;
  draw.twist = twist_of(battery);
  if (battery == Battery::kHotElement && target.elements > 0) {
    const std::uint64_t bits = random::wide_at(target.seed, target.stream, random::kHot, 0);
    draw.hot =
        static_cast<std::int64_t>(random::scaled_to(bits, static_cast<std::uint64_t>(target.elements)));
    draw.hot_value = static_cast<float>(init.mean + 1000.0 * init.std);
  }
  return draw;
}

Result<random::Draw> draw_of(const InitUniform& init, const Target& target, Battery) {
  CAPSTONE_CHECK(require_real(target, "uniform"));
  random::Draw draw;
  draw.kind = random::Kind::kUniform;
  draw.a = static_cast<float>(init.low);
  draw.b = static_cast<float>(init.high);
  if (!(draw.a < draw.b))
    return fail(fmt::format("uniform range [{}, {}) is empty", init.low, init.high), target.where(),
                "low must be below high");
  return draw;
}

Result<random::Draw> draw_of(const InitInteger& init, const Target& target, Battery) {
  CAPSTONE_CHECK(require_whole(target, init.min, init.max));
  random::Draw draw;
  draw.kind = random::Kind::kInteger;
  draw.min = init.min;
  draw.max = init.max;
  return draw;
}

Result<random::Draw> draw_of(const InitPages&, const Target& target, Battery battery) {
  return draw_of(InitNormal{}, target, battery);
}

Result<random::Draw> draw_of(const InitChoice& init, const Target& target, Battery) {
  if (init.values.empty() || init.values.size() > random::Draw::kMaxChoices)
    return fail(fmt::format("choice of {} values", init.values.size()), target.where(),
                fmt::format("give 1 to {} values", random::Draw::kMaxChoices));
  random::Draw draw;
  draw.kind = random::Kind::kChoice;
  for (const double value : init.values)
    draw.choice[draw.choices++] = rounded_to(target.parameter.dtype, value);
  return draw;
}

/// Structures that a computation relies on, drawn element by element.
constexpr std::pair<const char*, random::Kind> kStructures[] = {
    {"upper_triangular", random::Kind::kUpperTriangular},
    {"lower_triangular", random::Kind::kLowerTriangular},
    {"symmetric", random::Kind::kSymmetric},
    {"rows_sum_to_one", random::Kind::kRowsSumToOne},
    {"zipf_rows", random::Kind::kZipfRows},
    {"mixed_magnitudes", random::Kind::kMixedMagnitudes},
    {"latent_tokens", random::Kind::kLatentTokens}};

Result<void> require_latent_tokens(const Target& target, const std::vector<std::int64_t>& shape) {
  if (target.parameter.dtype == DType::kU8 && !shape.empty() && shape.back() == random::kLatentTokenBytes)
    return {};
  return fail(fmt::format("latent_tokens makes rows of {} bytes", random::kLatentTokenBytes), target.where(),
              fmt::format("the tensor is u8 and its last extent {}", random::kLatentTokenBytes));
}

/// Empty for generators of whole numbers, which run only on the host, and for unknown names.
Result<std::optional<random::Draw>> draw_of(const InitGenerator& init, const Target& target,
                                            const Sizes& sizes) {
  for (const auto& [name, kind] : kStructures) {
    if (init.name != name) continue;
    CAPSTONE_TRY(const auto shape, shape_at(target.parameter, sizes));
    CAPSTONE_CHECK(kind == random::Kind::kLatentTokens ? require_latent_tokens(target, shape)
                                                       : require_real(target, init.name));
    random::Draw draw;
    draw.kind = kind;
    if (!shape.empty()) draw.columns = std::max<std::int64_t>(1, shape.back());
    if (shape.size() > 1) draw.rows = std::max<std::int64_t>(1, shape[shape.size() - 2]);
    if (kind == random::Kind::kSymmetric && draw.rows != draw.columns)
      return fail(fmt::format("{} is {} x {}, which cannot be symmetric", target.parameter.name, draw.rows,
                              draw.columns),
                  target.where(), "its last two dimensions must be equal");
    return draw;
  }
  return std::nullopt;
}

/// Words for elements at … at + count of the stream; `at` is a multiple of 4.
void words_at(const random::Draw& draw, random::Domain domain, std::size_t at, std::size_t count,
              std::uint32_t* words) {
  bulk::random_words(draw.seed, draw.stream, domain, at / 4, std::span(words, (count + 3) / 4 * 4));
}

void apply_twist(const random::Draw& draw, std::size_t at, std::span<float> values) {
  if (draw.twist == random::Twist::kNone) return;
  std::uint32_t tails[kChunk] = {};
  if (draw.twist == random::Twist::kHeavyTails) words_at(draw, random::kTails, at, values.size(), tails);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = random::twisted(draw, static_cast<std::int64_t>(at + i), values[i], tails[i]);
}

// The fill functions below write elements begin … end of a tensor; `begin` is a multiple of kChunk.
void fill_real(const random::Draw& draw, DType type, std::span<std::byte> out, std::size_t begin,
               std::size_t end) {
  std::uint32_t words[kChunk];
  float values[kChunk];
  for (std::size_t at = begin; at < end; at += kChunk) {
    const std::size_t count = std::min(kChunk, end - at);
    words_at(draw, random::kValues, at, count, words);
    if (draw.kind == random::Kind::kUniform) {
      bulk::uniforms(std::span(words, count), draw.a, draw.b, values);
    } else {
      bulk::normals(std::span(words, count), draw.a, draw.b, values);
      apply_twist(draw, at, std::span(values, count));
    }
    store_all(type, std::span<const float>(values, count),
              out.subspan(bytes_of(type, at), bytes_of(type, count)));
  }
}

void fill_integers(const random::Draw& draw, DType type, std::span<std::byte> out, std::size_t begin,
                   std::size_t end) {
  std::uint32_t words[2 * kChunk];  // 64 bits per element
  const std::uint64_t span = static_cast<std::uint64_t>(draw.max) - static_cast<std::uint64_t>(draw.min) + 1;
  for (std::size_t at = begin; at < end; at += kChunk) {
    const std::size_t count = std::min(kChunk, end - at);
    bulk::random_words(draw.seed, draw.stream, random::kValues, at / 2,
                       std::span(words, (count + 1) / 2 * 4));
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t bits = words[2 * i] | static_cast<std::uint64_t>(words[2 * i + 1]) << 32;
      random::store_whole(
          type, out.data(), static_cast<std::int64_t>(at + i),
          static_cast<std::int64_t>(static_cast<std::uint64_t>(draw.min) + random::scaled_to(bits, span)));
    }
  }
}

/// Tokens begin … end of a cache of latent tokens. Numbers come from bulk(), scales one by one.
void fill_latent_tokens(const random::Draw& draw, std::span<std::byte> out, std::int64_t begin,
                        std::int64_t end) {
  constexpr std::size_t kToken = random::kLatentTokenBytes, kCodes = 512, kPosition = 528;
  std::uint32_t words[kToken];
  float values[kCodes];
  for (std::int64_t token = begin; token < end; ++token) {
    const auto first = static_cast<std::size_t>(token) * kToken;
    words_at(draw, random::kValues, first, kToken, words);
    bulk::normals(std::span(words, kCodes), 0, 96, values);
    store_all(DType::kE4M3, std::span<const float>(values, kCodes), out.subspan(first, kCodes));
    for (std::size_t at = kCodes; at < kPosition; ++at)
      random::store_drawn(draw, DType::kU8, out.data(), static_cast<std::int64_t>(first + at));
    constexpr std::size_t kNumbers = (kToken - kPosition) / 2;  // each made by the word of its first byte
    for (std::size_t i = 0; i < kNumbers; ++i) words[i] = words[kPosition + 2 * i];
    bulk::normals(std::span(words, kNumbers), 0, 1, values);
    store_all(DType::kBF16, std::span<const float>(values, kNumbers),
              out.subspan(first + kPosition, kToken - kPosition));
  }
}

void fill_draw(const random::Draw& draw, DType type, std::span<std::byte> out, int threads) {
  const std::size_t elements =
      out.size() / unit_bytes(type) * static_cast<std::size_t>(elements_per_unit(type));
  constexpr std::int64_t kShare = std::int64_t{1} << 20;  // elements; a multiple of kChunk
  if (draw.kind == random::Kind::kLatentTokens)
    return parallel_for(
        static_cast<std::int64_t>(elements) / random::kLatentTokenBytes, kShare / random::kLatentTokenBytes,
        threads, [&](std::int64_t begin, std::int64_t end) { fill_latent_tokens(draw, out, begin, end); });
  parallel_for(static_cast<std::int64_t>(elements), kShare, threads,
               [&](std::int64_t first, std::int64_t last) {
                 const auto begin = static_cast<std::size_t>(first), end = static_cast<std::size_t>(last);
                 if (draw.kind == random::Kind::kNormal || draw.kind == random::Kind::kUniform)
                   return fill_real(draw, type, out, begin, end);
                 if (draw.kind == random::Kind::kInteger) return fill_integers(draw, type, out, begin, end);
                 for (std::int64_t i = first; i < last; ++i) random::store_drawn(draw, type, out.data(), i);
               });
}

/// Stores whole numbers made on the host in the tensor's type.
Result<void> store_numbers(const Target& target, const std::vector<std::int64_t>& numbers,
                           std::span<std::byte> out) {
  if (static_cast<std::int64_t>(numbers.size()) != target.elements)
    return fail(fmt::format("{} has {} elements, but its init makes {}", target.parameter.name,
                            target.elements, numbers.size()),
                target.where(), "shape and init must agree");
  if (numbers.empty()) return {};
  const auto [low, high] = std::minmax_element(numbers.begin(), numbers.end());
  CAPSTONE_CHECK(require_whole(target, *low, *high));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    random::store_whole(target.parameter.dtype, out.data(), static_cast<std::int64_t>(i), numbers[i]);
  return {};
}

/// Draw number `i` in [0, span) of the host-only inits.
std::uint64_t order_draw(const Target& target, std::uint64_t i, std::uint64_t span) {
  return random::scaled_to(random::wide_at(target.seed, target.stream, random::kOrder, i), span);
}

std::vector<std::int64_t> permutation(const Target& target, std::int64_t n) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[order_draw(target, i, i)]);  // Fisher-Yates
  return order;
}

/// segments + 1 non-decreasing numbers from 0 to total; cuts fall anywhere, so segments may be empty.
std::vector<std::int64_t> offsets(const Target& target, std::int64_t total, std::int64_t segments) {
  std::vector<std::int64_t> cuts{0};
  for (std::int64_t i = 1; i < segments; ++i)
    cuts.push_back(static_cast<std::int64_t>(
        order_draw(target, static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(total) + 1)));
  cuts.push_back(total);
  std::sort(cuts.begin(), cuts.end());
  return cuts;
}

/// segments + 1 offsets whose segments have always the same lengths, in any order. In rising order the cuts
/// are total * i^2 / segments^2, rounded down: lengths in the ratio 1 : 3 : 5 ... Where rows are few, some
/// are 0.
std::vector<std::int64_t> ramp_offsets(const Target& target, std::int64_t total, std::int64_t segments) {
  const auto cut = [&](std::int64_t i) {
    const auto product = static_cast<unsigned __int128>(total) * static_cast<unsigned __int128>(i) *
                         static_cast<unsigned __int128>(i);
    return static_cast<std::int64_t>(
        product / (static_cast<unsigned __int128>(segments) * static_cast<unsigned __int128>(segments)));
  };
  std::vector<std::int64_t> cuts{0};
  for (const std::int64_t i : permutation(target, segments))
    cuts.push_back(cuts.back() + cut(i + 1) - cut(i));
  return cuts;
}

Result<void> fill(const InitPermutation& init, const Target& target, const Sizes& sizes,
                  std::span<std::byte> out) {
  CAPSTONE_TRY(const auto n, init.of.evaluate_integer(sizes));
  return store_numbers(target, permutation(target, n), out);
}

Result<void> fill(const InitOffsets& init, const Target& target, const Sizes& sizes,
                  std::span<std::byte> out) {
  CAPSTONE_TRY(const auto total, init.total.evaluate_integer(sizes));
  CAPSTONE_TRY(const auto segments, init.segments.evaluate_integer(sizes));
  if (segments < 1)
    return fail(fmt::format("offsets of {} segments", segments), target.where(),
                "segments must be at least 1");
  return store_numbers(
      target, init.ramp ? ramp_offsets(target, total, segments) : offsets(target, total, segments), out);
}

/// Pairs of lengths, one from either end, have the sum low + high: so the sum of all is known.
Result<std::vector<std::int64_t>> lengths(const Target& target, std::int64_t count, std::int64_t low,
                                          std::int64_t high) {
  if (low < 0 || low > high)
    return fail(fmt::format("lengths from {} to {}", low, high), target.where(), "0 <= low <= high");
  std::vector<std::int64_t> ladder(static_cast<std::size_t>(count), (low + high) / 2);
  for (std::int64_t i = 0; i < count / 2; ++i) {
    const std::int64_t step = i * (high - low) / (count - 1);
    ladder[static_cast<std::size_t>(i)] = high - step;
    ladder[static_cast<std::size_t>(count - 1 - i)] = low + step;
  }
  std::vector<std::int64_t> numbers;
  for (const std::int64_t at : permutation(target, count))
    numbers.push_back(ladder[static_cast<std::size_t>(at)]);
  return numbers;
}

Result<void> fill(const InitLengths& init, const Target& target, const Sizes& sizes,
                  std::span<std::byte> out) {
  CAPSTONE_TRY(const auto low, init.low.evaluate_integer(sizes));
  CAPSTONE_TRY(const auto high, init.high.evaluate_integer(sizes));
  CAPSTONE_TRY(const auto numbers, lengths(target, target.elements, low, high));
  return store_numbers(target, numbers, out);
}

Result<void> fill(const InitCounts& init, const Target& target, const Sizes& sizes,
                  std::span<std::byte> out) {
  CAPSTONE_TRY(const auto total, init.total.evaluate_integer(sizes));
  if (target.elements < 1)
    return fail(fmt::format("{} counts for {} in all", target.elements, total), target.where());
  std::vector<std::int64_t> numbers = offsets(target, total, target.elements);
  std::adjacent_difference(numbers.begin(), numbers.end(), numbers.begin());
  numbers.erase(numbers.begin());  // the 0 in front of the first
  return store_numbers(target, numbers, out);
}

Result<void> fill(const InitTopK& init, const Target& target, const Sizes& sizes, std::span<std::byte> out) {
  CAPSTONE_TRY(const auto of, init.of.evaluate_integer(sizes));
  CAPSTONE_TRY(const auto least, init.least.evaluate_integer(sizes));
  CAPSTONE_TRY(const auto shape, shape_at(target.parameter, sizes));
  const std::int64_t k = shape.empty() ? 1 : shape.back(), rows = k > 0 ? target.elements / k : 0;
  CAPSTONE_TRY(const auto valid, lengths(target, rows, least, std::min(k, of)));
  std::vector<std::int64_t> numbers, order(static_cast<std::size_t>(of));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::int64_t row = 0; row < rows; ++row) {
    Target own = target;  // a stream of draws for each row
    own.seed += 0x9E3779B97F4A7C15u * static_cast<std::uint64_t>(row + 1);
    const auto count = static_cast<std::size_t>(valid[static_cast<std::size_t>(row)]);
    for (std::size_t i = 0; i < count; ++i) {  // the first steps of Fisher-Yates
      std::swap(order[i], order[i + order_draw(own, i, order.size() - i)]);
      numbers.push_back(order[i]);
    }
    numbers.resize(static_cast<std::size_t>((row + 1) * k), -1);
  }
  return store_numbers(target, numbers, out);
}

/// Structured inputs by name. Each returns the tensor's numbers in row-major order.
struct Generator {
  const char* name;
  std::vector<std::int64_t> (*make)(const Target&, const std::vector<std::int64_t>& shape);
};

std::int64_t product_of(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

/// 0, 1, 2 …: positions, identity gather tables.
std::vector<std::int64_t> make_iota(const Target&, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(product_of(shape)));
  std::iota(numbers.begin(), numbers.end(), std::int64_t{0});
  return numbers;
}

/// Page tables [sequences, pages]: every physical page is used in exactly one place, in random order, as
/// after many allocations and frees.
std::vector<std::int64_t> make_page_table(const Target& target, const std::vector<std::int64_t>& shape) {
  return permutation(target, product_of(shape));
}

/// Each row of the last dimension in a different random order: expert rankings, gather orders within a row.
std::vector<std::int64_t> make_row_permutations(const Target& target,
                                                const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> numbers;
  const std::int64_t n = shape.empty() ? 1 : shape.back(), rows = n > 0 ? product_of(shape) / n : 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    Target own = target;
    own.seed += 0x9E3779B97F4A7C15u * static_cast<std::uint64_t>(row + 1);
    const auto order = permutation(own, n);
    numbers.insert(numbers.end(), order.begin(), order.end());
  }
  return numbers;
}

constexpr Generator kGenerators[] = {
    {"iota", make_iota}, {"page_table", make_page_table}, {"row_permutations", make_row_permutations}};

Result<void> fill(const InitGenerator& init, const Target& target, const Sizes& sizes,
                  std::span<std::byte> out) {
  std::vector<std::string> names;
  for (const Generator& generator : kGenerators) {
    if (init.name == generator.name) {
      CAPSTONE_TRY(const auto shape, shape_at(target.parameter, sizes));
      return store_numbers(target, generator.make(target, shape), out);
    }
    names.emplace_back(generator.name);
  }
  for (const auto& [name, kind] : kStructures) names.emplace_back(name);
  const auto near = nearest(init.name, names);
  return fail(fmt::format("no generator '{}'", init.name), target.where(),
              near ? fmt::format("did you mean '{}'?", *near)
                   : fmt::format("the generators are: {}", join(names, ", ")));
}

}  // namespace

std::string_view name_of(Battery battery) {
  switch (battery) {
    case Battery::kPlain:
      return "plain";
    case Battery::kTimesTen:
      return "x10";
    case Battery::kOffset:
      return "offset";
    case Battery::kFarNegative:
      return "far_negative";
    case Battery::kHeavyTails:
      return "heavy_tails";
    case Battery::kSignFlip:
      return "sign_flip";
    case Battery::kHotElement:
      return "hot_element";
  }
  return "?";
}

std::string_view description_of(Battery battery) {
  switch (battery) {
    case Battery::kPlain:
      return "as the problem draws them";
    case Battery::kTimesTen:
      return "times ten";
    case Battery::kOffset:
      return "plus five";
    case Battery::kFarNegative:
      return "with the first below -128";
    case Battery::kHeavyTails:
      return "with heavy tails";
    case Battery::kSignFlip:
      return "with the other sign";
    case Battery::kHotElement:
      return "with one very large element";
  }
  return "?";
}

std::optional<Battery> battery_named(std::string_view name) {
  for (const Battery battery : kBatteries)
    if (name_of(battery) == name) return battery;
  return std::nullopt;
}

bool battery_applies(const Parameter& parameter, Battery battery) {
  const bool input = parameter.role == Role::kInput || parameter.role == Role::kInout;
  return battery != Battery::kPlain && input && is_float(parameter.dtype) &&
         (std::holds_alternative<InitNormal>(parameter.init) ||
          std::holds_alternative<InitPages>(parameter.init));
}

bool battery_applies(const Problem& problem, Battery battery) {
  if (problem.outside_domain.contains(std::string(name_of(battery)))) return false;
  return std::any_of(problem.signature.begin(), problem.signature.end(),
                     [&](const Parameter& parameter) { return battery_applies(parameter, battery); });
}

namespace {

// The first input that a battery changes, or none (-1).
int first_varied(const Problem& problem, Battery battery) {
  for (std::size_t i = 0; i < problem.signature.size(); ++i)
    if (battery_applies(problem.signature[i], battery)) return static_cast<int>(i);
  return -1;
}

}  // namespace

Result<std::optional<random::Draw>> draw_of(const Problem& problem, int parameter, const Sizes& sizes,
                                            std::uint64_t seed, Battery battery) {
  CAPSTONE_TRY(const Target target, target_of(problem, parameter, sizes, seed));
  if (battery == Battery::kFarNegative && parameter != first_varied(problem, battery))
    battery = Battery::kPlain;
  using Answer = Result<std::optional<random::Draw>>;
  return std::visit(Overloaded{
                        [](const InitPermutation&) -> Answer { return std::nullopt; },
                        [](const InitOffsets&) -> Answer { return std::nullopt; },
                        [](const InitLengths&) -> Answer { return std::nullopt; },
                        [](const InitCounts&) -> Answer { return std::nullopt; },
                        [](const InitTopK&) -> Answer { return std::nullopt; },
                        [&](const InitGenerator& init) -> Answer {
                          CAPSTONE_TRY(auto draw, draw_of(init, target, sizes));
                          if (draw) draw->seed = seed, draw->stream = target.stream;
                          return draw;
                        },
                        [&](const auto& init) -> Answer {
                          CAPSTONE_TRY(random::Draw draw, draw_of(init, target, battery));
                          draw.seed = seed;
                          draw.stream = target.stream;
                          return draw;
                        },
                    },
                    target.parameter.init);
}

Result<std::optional<PagedCache>> paged_cache_of(const Problem& problem, int parameter, const Sizes& sizes,
                                                 std::uint64_t seed) {
  CAPSTONE_TRY(const Target target, target_of(problem, parameter, sizes, seed));
  const auto* pages = std::get_if<InitPages>(&target.parameter.init);
  if (!pages) return std::nullopt;
  const auto index_of = [&](const std::string& name) {
    const auto at = std::find_if(problem.signature.begin(), problem.signature.end(),
                                 [&](const Parameter& other) { return other.name == name; });
    return static_cast<int>(at - problem.signature.begin());
  };
  PagedCache cache;
  cache.table = index_of(pages->table);
  cache.lengths = index_of(pages->lengths);
  CAPSTONE_TRY(const Target table, target_of(problem, cache.table, sizes, seed));
  CAPSTONE_TRY(const Target lengths, target_of(problem, cache.lengths, sizes, seed));
  CAPSTONE_TRY(const auto shape, shape_at(target.parameter, sizes));
  cache.sequences = lengths.elements;
  if (shape.size() < 2 || cache.sequences < 1 || table.elements % cache.sequences != 0 ||
      table.elements != shape[0])
    return fail(
        fmt::format("{} has {} pages, {} names {} for {} sequences", target.parameter.name,
                    shape.empty() ? 0 : shape[0], table.parameter.name, table.elements, cache.sequences),
        target.where(), "a cache is [pages, slots of a page, …], and every page is in the table");
  const std::int64_t slots = shape[1];
  cache.unused = {table.elements / cache.sequences, slots, target.elements / (shape[0] * slots), seed};
  return cache;
}

namespace {

/// The whole numbers of a tensor.
Result<std::vector<std::int64_t>> numbers_of(const Problem& problem, int parameter, const Sizes& sizes,
                                             std::uint64_t seed) {
  CAPSTONE_TRY(const Target target, target_of(problem, parameter, sizes, seed));
  const bool wide = target.parameter.dtype == DType::kI64;
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(target.elements));
  std::vector<std::int32_t> narrow(wide ? 0 : numbers.size());
  CAPSTONE_CHECK(fill_tensor(
      problem, parameter, sizes, seed, Battery::kPlain,
      wide ? std::as_writable_bytes(std::span(numbers)) : std::as_writable_bytes(std::span(narrow))));
  std::copy(narrow.begin(), narrow.end(), numbers.begin());
  return numbers;
}

Result<void> poison_unused(const Problem& problem, const PagedCache& cache, const Sizes& sizes,
                           std::uint64_t seed, DType type, std::span<std::byte> out) {
  CAPSTONE_TRY(const auto table, numbers_of(problem, cache.table, sizes, seed));
  CAPSTONE_TRY(const auto lengths, numbers_of(problem, cache.lengths, sizes, seed));
  const random::UnusedSlots& unused = cache.unused;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(table.size()); ++i) {
    const std::int64_t page = table[static_cast<std::size_t>(i)], which = i % unused.pages_each;
    if (page < 0 || page >= static_cast<std::int64_t>(table.size())) continue;
    const auto length = lengths[static_cast<std::size_t>(i / unused.pages_each)];
    for (std::int64_t s = unused.used(which, length); s < unused.slots; ++s) {
      const std::int64_t slot = page * unused.slots + s;
      const std::uint32_t word = unused.word(slot);
      for (std::int64_t e = slot * unused.row; e < (slot + 1) * unused.row; ++e)
        random::store_nan(type, word, out.data(), e);
    }
  }
  return {};
}

}  // namespace

Result<void> fill_tensor(const Problem& problem, int parameter, const Sizes& sizes, std::uint64_t seed,
                         Battery battery, std::span<std::byte> out, int threads) {
  CAPSTONE_TRY(const Target target, target_of(problem, parameter, sizes, seed));
  const DType type = target.parameter.dtype;
  if (out.size() != bytes_of(type, static_cast<std::size_t>(target.elements)))
    return fail(fmt::format("{} has {} elements of {}, but {} bytes were given", target.parameter.name,
                            target.elements, name_of(type), out.size()),
                target.where(), {}, ExitCode::kInternal);
  CAPSTONE_TRY(const auto draw, draw_of(problem, parameter, sizes, seed, battery));
  if (draw) {
    fill_draw(*draw, type, out, threads_or_all(threads));
    CAPSTONE_TRY(const auto cache, paged_cache_of(problem, parameter, sizes, seed));
    return cache ? poison_unused(problem, *cache, sizes, seed, type, out) : Result<void>{};
  }
  return std::visit(Overloaded{
                        [&](const InitPermutation& init) { return fill(init, target, sizes, out); },
                        [&](const InitOffsets& init) { return fill(init, target, sizes, out); },
                        [&](const InitLengths& init) { return fill(init, target, sizes, out); },
                        [&](const InitCounts& init) { return fill(init, target, sizes, out); },
                        [&](const InitTopK& init) { return fill(init, target, sizes, out); },
                        [&](const InitGenerator& init) { return fill(init, target, sizes, out); },
                        [](const auto&) -> Result<void> { return {}; },  // drawn above
                    },
                    target.parameter.init);
}

void poison_bytes(std::span<std::byte> out, std::uint64_t seed) {
  std::uint32_t words[kChunk];
  for (std::size_t at = 0; at < out.size(); at += sizeof words) {
    const std::size_t count = std::min(sizeof words, out.size() - at);
    bulk::random_words(seed, 0, random::kBytes, at / 16, std::span(words, (count + 15) / 16 * 4));
    std::memcpy(out.data() + at, words, count);
  }
}

void poison(std::span<std::byte> out, DType type, std::uint64_t seed) {
  if (!random::has_nan(type)) return poison_bytes(out, seed);
  const std::size_t width = unit_bytes(type), elements = out.size() / width;
  std::uint32_t words[kChunk];
  for (std::size_t at = 0; at < elements; at += kChunk) {
    const std::size_t count = std::min(kChunk, elements - at);
    bulk::random_words(seed, 0, random::kPoison, at / 4, std::span(words, (count + 3) / 4 * 4));
    std::byte* to = out.data() + at * width;
    const std::span<const std::uint32_t> drawn(words, count);
    if (width == 4) bulk::poison32(type, drawn, reinterpret_cast<std::uint32_t*>(to));
    if (width == 2) bulk::poison16(type, drawn, reinterpret_cast<std::uint16_t*>(to));
    if (width == 1) bulk::poison8(type, drawn, reinterpret_cast<std::uint8_t*>(to));
  }
}

bool is_poison(std::span<const std::byte> tensor, DType type, std::uint64_t seed, std::int64_t element) {
  const std::size_t width = unit_bytes(type);
  alignas(8) std::byte expected[8];
  // Half a byte is random bits by chance too often: an element of a packed type is judged by its whole byte.
  const auto i = static_cast<std::uint64_t>(element / elements_per_unit(type));
  if (type == DType::kU8 || is_packed(type)) {
    expected[0] = std::byte{random::poison_byte_at(seed, i)};
  } else if (type == DType::kI64) {
    const std::uint64_t word = random::wide_at(seed, 0, random::kBytes, i);
    std::memcpy(expected, &word, sizeof word);
  } else {
    const auto domain = random::has_nan(type) ? random::kPoison : random::kBytes;
    const std::uint32_t word = random::poison_of(type, random::word_at(seed, 0, domain, i));
    std::memcpy(expected, &word, sizeof word);  // little endian: the low bytes come first
  }
  return std::memcmp(tensor.data() + i * width, expected, width) == 0;
}

std::optional<std::size_t> first_overwritten(std::span<const std::byte> band, std::uint64_t seed) {
  std::uint32_t words[kChunk];
  for (std::size_t at = 0; at < band.size(); at += sizeof words) {
    const std::size_t count = std::min(sizeof words, band.size() - at);
    bulk::random_words(seed, 0, random::kBytes, at / 16, std::span(words, (count + 15) / 16 * 4));
    const auto* expected = reinterpret_cast<const std::byte*>(words);
    if (std::memcmp(band.data() + at, expected, count) == 0) continue;
    const auto differs =
        std::mismatch(expected, expected + count, band.begin() + static_cast<std::ptrdiff_t>(at));
    return at + static_cast<std::size_t>(differs.first - expected);
  }
  return std::nullopt;
}

std::uint64_t fingerprint(std::span<const std::byte> bytes, std::uint64_t seed) {
  const std::size_t words = bytes.size() / 8;
  std::uint64_t total = bulk::fingerprint_words(bytes.data(), words, 0, seed);
  std::uint64_t tail =
      0;  // the last, partial word, padded with zeros; the length distinguishes it from real zeros
  if (bytes.size() % 8) std::memcpy(&tail, bytes.data() + 8 * words, bytes.size() % 8);
  total += random::fingerprint_of(tail, words, seed);
  return random::fingerprint_of(total, bytes.size(), seed);
}

}  // namespace capstone
