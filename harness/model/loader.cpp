// problem.yaml → Problem. Every value is checked where it is written, so that a mistake is reported with its
// line and column instead of making the judge crash an hour later.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/model/expression.h"
#include "harness/model/library_arm.h"
#include "harness/model/problem.h"
#include "harness/model/yaml.h"

namespace capstone {
namespace {

constexpr std::size_t kMostParameters = 1024;  // deep networks have hundreds of tensors
constexpr std::int64_t kLargestSize = std::int64_t{1} << 40;

struct Key {
  std::string name;
  bool required = true;
};

/// The typed view of a YAML tree: every error names the file, the position and the expected kind of value.
class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)) {}

  tl::unexpected<Error> error(const YamlNode& at, std::string what, std::string hint = {},
                              std::size_t offset = 0) const {
    // An offset points into the text. It is a column only if the text is written plainly on one line.
    const bool one_line = at.is_scalar() && at.text.find('\n') == std::string::npos;
    const int shift = one_line && offset > 0 ? static_cast<int>(offset) + (at.quoted ? 1 : 0) : 0;
    return fail(std::move(what), fmt::format("{}:{}:{}", file_, at.line, at.column + shift), std::move(hint));
  }

  /// Checks a mapping's keys: no unknown key, no missing key.
  Result<void> keys(const YamlNode& map, const std::string& what, const std::vector<Key>& allowed) const {
    if (!map.is_map()) return error(map, fmt::format("{} must be a mapping, not {}", what, describe(map)));
    std::vector<std::string> names;
    for (const Key& key : allowed) names.push_back(key.name);
    for (const auto& [key, value] : map.entries)
      if (std::find(names.begin(), names.end(), key.text) == names.end())
        return error(key, fmt::format("unknown key {} in {}", describe(key), what),
                     did_you_mean(key.text, names));
    for (const Key& key : allowed)
      if (key.required && map.find(key.name) == nullptr)
        return error(map, fmt::format("{} has no `{}`", what, key.name), fmt::format("add `{}:`", key.name));
    return {};
  }

  Result<void> list(const YamlNode& node, const std::string& what) const {
    if (!node.is_list())
      return error(node, fmt::format("{} must be a list, not {}", what, describe(node)), "write [a, b]");
    return {};
  }

  Result<std::string> text(const YamlNode& node, const std::string& what, std::size_t limit = 2000) const {
    if (!node.is_scalar() || trim(node.text).empty())
      return error(node, fmt::format("{} must be text, not {}", what, describe(node)));
    if (node.text.size() > limit)
      return error(node, fmt::format("{} is longer than {} characters", what, limit));
    for (unsigned char c : node.text)
      if ((c < 0x20 && c != '\n') || c == 0x7f)
        return error(node, fmt::format("{} holds a control character", what));
    return node.text;
  }

  Result<std::int64_t> integer(const YamlNode& node, const std::string& what, std::int64_t low,
                               std::int64_t high) const {
    std::int64_t value = 0;
    const char* end = node.text.data() + node.text.size();
    const bool read = node.is_scalar() && !node.quoted && !node.text.empty();
    const auto [stop, code] = std::from_chars(node.text.data(), end, value);
    if (!read || code != std::errc() || stop != end || value < low || value > high)
      return error(node, fmt::format("{} must be a whole number from {} to {}, not {}", what, low, high,
                                     describe(node)));
    return value;
  }

  Result<double> number(const YamlNode& node, const std::string& what) const {
    double value = 0;
    const char* end = node.text.data() + node.text.size();
    const bool read = node.is_scalar() && !node.quoted && !node.text.empty();
    const auto [stop, code] = std::from_chars(node.text.data(), end, value);
    if (!read || code != std::errc() || stop != end || !std::isfinite(value))
      return error(node, fmt::format("{} must be a number, not {}", what, describe(node)));
    return value;
  }

  Result<bool> boolean(const YamlNode& node, const std::string& what) const {
    if (node.is_scalar() && !node.quoted && node.text == "true") return true;
    if (node.is_scalar() && !node.quoted && node.text == "false") return false;
    return error(node, fmt::format("{} must be true or false, not {}", what, describe(node)));
  }

  /// One word of a fixed set.
  Result<std::size_t> choice(const YamlNode& node, const std::string& what,
                             const std::vector<std::string>& words) const {
    if (node.is_scalar())
      for (std::size_t i = 0; i < words.size(); ++i)
        if (words[i] == node.text) return i;
    return error(node, fmt::format("{} cannot be {}", what, describe(node)),
                 did_you_mean(node.is_scalar() ? node.text : "", words));
  }

  /// A list of words of a fixed set, without repetitions.
  /// @param other  other words that may stand in it
  Result<std::vector<std::string>> choices(const YamlNode& node, const std::string& what,
                                           const std::vector<std::string>& words,
                                           bool (*other)(std::string_view) = nullptr) const {
    CAPSTONE_CHECK(list(node, what));
    std::vector<std::string> chosen;
    for (const YamlNode& item : node.items) {
      if (!other || !item.is_scalar() || !other(item.text)) CAPSTONE_CHECK(choice(item, what, words));
      if (std::find(chosen.begin(), chosen.end(), item.text) != chosen.end())
        return error(item, fmt::format("{} names {} twice", what, describe(item)));
      chosen.push_back(item.text);
    }
    return chosen;
  }

 private:
  std::string file_;
};

constexpr const char* kScaleInit =
    "e8m0 holds powers of two: for example `init: {choice: [0.5, 1, 2]}`, or `uniform` above 0";

const std::vector<std::string>& roles() {
  static const std::vector<std::string> names = {"input", "parameter", "inout", "output", "scalar"};
  return names;
}
const std::vector<std::string>& dtypes() {
  static const std::vector<std::string> names(std::begin(kDTypeNames), std::end(kDTypeNames));
  return names;
}
const std::vector<std::string>& precisions() {
  static const std::vector<std::string> names = {"fp32", "tf32", "f16", "bf16", "fp8", "fp4"};
  return names;
}
const std::vector<std::string>& session_names() {
  static const std::vector<std::string> names = {"L1", "L2", "L3", "L4", "L5", "L6", "L7",
                                                 "L8", "W1", "W2", "W3", "W4", "W5", "W6"};
  return names;
}
/// The tricks of the triviality audit; `because` may excuse a problem from one of them.
const std::vector<std::string>& tricks() {
  static const std::vector<std::string> names = {"zeros",           "copy",     "mean", "constant",
                                                 "lower_precision", "most_rows"};
  return names;
}

/// Variations of the inputs; `outside_domain` may exempt a problem from one of them.
const std::vector<std::string>& variations() {
  static const std::vector<std::string> names = {"x10",         "offset",    "far_negative",
                                                 "heavy_tails", "sign_flip", "hot_element"};
  return names;
}

bool is_identifier(const std::string& text) {
  if (text.empty() || text.size() > 40) return false;
  if (!std::isalpha(static_cast<unsigned char>(text[0])) && text[0] != '_') return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; });
}

bool is_id(const std::string& text) {
  return is_identifier(text) && std::islower(static_cast<unsigned char>(text[0])) &&
         std::none_of(text.begin(), text.end(),
                      [](char c) { return std::isupper(static_cast<unsigned char>(c)); });
}

/// Names that a parameter cannot have, because they are taken in the generated C++ functions.
bool is_reserved(const std::string& name) {
  static const std::set<std::string> reserved = {
      "alignas",   "alignof",         "and",      "asm",       "auto",     "bool",           "break",
      "case",      "catch",           "char",     "class",     "const",    "constexpr",      "continue",
      "default",   "delete",          "do",       "double",    "else",     "enum",           "explicit",
      "export",    "extern",          "false",    "float",     "for",      "friend",         "goto",
      "if",        "inline",          "int",      "long",      "mutable",  "namespace",      "new",
      "not",       "nullptr",         "operator", "or",        "private",  "protected",      "public",
      "register",  "requires",        "return",   "short",     "signed",   "sizeof",         "static",
      "struct",    "switch",          "template", "this",      "throw",    "true",           "try",
      "typedef",   "typeid",          "typename", "union",     "unsigned", "using",          "virtual",
      "void",      "volatile",        "wchar_t",  "while",     "xor",      "size_t",         "int32_t",
      "int64_t",   "uint8_t",         "launch",   "prepare",   "prepared", "prepared_bytes", "stream",
      "workspace", "workspace_bytes", "slots",    "threadIdx", "blockIdx", "blockDim",       "gridDim",
      "warpSize",  "cudaStream_t",    "main"};
  const auto& functions = expression_functions();
  return reserved.count(name) > 0 || std::find(functions.begin(), functions.end(), name) != functions.end();
}

/// An expression of the signature and its position in the file.
struct Located {
  const YamlNode* node;
  Expression expression;
  bool is_count;  ///< a dimension or another count: whole and positive; a scalar's value may be any number
};

/// A list of sizes as written: symbol → value, each with its position.
struct SizeList {
  const YamlNode* node;
  std::string name;  ///< "`measure`", "`check` entry 2"
};

class Loader {
 public:
  explicit Loader(std::string file) : reader_(std::move(file)) {}

  Result<Problem> load(const YamlNode& root) {
    CAPSTONE_CHECK(check_root(root));
    CAPSTONE_CHECK(read_head(root));
    CAPSTONE_CHECK(read_oracle(root));
    CAPSTONE_CHECK(read_signature(*root.find("signature")));
    CAPSTONE_CHECK(read_sizes(*root.find("sizes")));
    CAPSTONE_CHECK(read_relations(root));
    CAPSTONE_CHECK(read_tolerance(*root.find("tolerance")));
    CAPSTONE_CHECK(read_cost(*root.find("cost")));
    CAPSTONE_CHECK(read_judging(root));
    CAPSTONE_CHECK(check_everywhere());
    return std::move(problem_);
  }

 private:
  Result<void> check_root(const YamlNode& root) const {
    return reader_.keys(root, "a problem", {{"schema"},         {"id"},
                                            {"title"},          {"tier"},
                                            {"sessions"},       {"expect"},
                                            {"signature"},      {"sizes"},
                                            {"tolerance"},      {"cost"},
                                            {"precision"},      {"baselines"},
                                            {"edge", false},    {"bottleneck", false},
                                            {"where", false},   {"arch", false},
                                            {"prepare", false}, {"fast_math", false},
                                            {"graded", false},  {"link", false},
                                            {"because", false}, {"outside_domain", false},
                                            {"oracle", false}});
  }

  Result<void> read_head(const YamlNode& root) {
    CAPSTONE_TRY(const std::int64_t schema, reader_.integer(*root.find("schema"), "schema", 1, 1));
    problem_.schema = static_cast<int>(schema);
    const YamlNode& id = *root.find("id");
    CAPSTONE_TRY(problem_.id, reader_.text(id, "id", 40));
    if (!is_id(problem_.id))
      return reader_.error(id, fmt::format("id {} is not a valid name", describe(id)),
                           "use lower-case letters, digits and _; begin with a letter");
    CAPSTONE_TRY(problem_.title, reader_.text(*root.find("title"), "title", 120));
    CAPSTONE_TRY(const std::int64_t tier, reader_.integer(*root.find("tier"), "tier", 1, 3));
    problem_.tier = static_cast<int>(tier);
    CAPSTONE_TRY(problem_.sessions, reader_.choices(*root.find("sessions"), "sessions", session_names()));
    CAPSTONE_TRY(problem_.expect, reader_.text(*root.find("expect"), "expect"));
    if (const YamlNode* edge = root.find("edge")) {
      CAPSTONE_TRY(problem_.edge, reader_.text(*edge, "edge"));
    }
    if (const YamlNode* bottleneck = root.find("bottleneck")) {
      static const std::vector<std::string> kinds = {"memory", "compute", "latency"};
      CAPSTONE_TRY(const std::size_t which, reader_.choice(*bottleneck, "bottleneck", kinds));
      problem_.bottleneck = kinds[which];
    }
    return {};
  }

  Result<void> read_oracle(const YamlNode& root) {
    const YamlNode* node = root.find("oracle");
    if (node == nullptr) return {};
    CAPSTONE_TRY(const std::size_t which, reader_.choice(*node, "oracle", {"oracle.cpp", "reference.py"}));
    problem_.oracle_is_reference = which == 1;
    return {};
  }

  // --- signature -------------------------------------------------------------------------------------------

  Result<void> read_signature(const YamlNode& node) {
    CAPSTONE_CHECK(reader_.list(node, "signature"));
    if (node.items.size() > kMostParameters)
      return reader_.error(node, fmt::format("signature has more than {} parameters", kMostParameters));
    for (const YamlNode& item : node.items) {
      CAPSTONE_CHECK(read_parameter(item));
    }
    const bool writes = std::any_of(problem_.signature.begin(), problem_.signature.end(),
                                    [](const Parameter& p) { return p.is_written(); });
    if (!writes)
      return reader_.error(node, "signature has no output", "give one parameter `role: output` (or inout)");
    return check_pages();
  }

  /// A paged cache names two tensors of whole numbers, before or after it.
  Result<void> check_pages() const {
    for (const YamlNode* node : paged_)
      for (const auto& [key, dimensions] : {std::pair{"table", 2u}, std::pair{"lengths", 1u}}) {
        const YamlNode& name = *node->find(key);
        const Parameter* named = problem_.find(name.text);
        if (!named || named->role != Role::kInput ||
            (named->dtype != DType::kI32 && named->dtype != DType::kI64) || named->shape.size() != dimensions)
          return reader_.error(name,
                               fmt::format("{} is not an input of whole numbers with {}", describe(name),
                                           dimensions == 2 ? "two dimensions" : "one dimension"),
                               "pages needs `table`, [sequences, pages of each], and `lengths`, [sequences]");
      }
    return {};
  }

  Result<void> read_parameter(const YamlNode& node) {
    CAPSTONE_CHECK(reader_.keys(node, "a parameter",
                                {{"name"},
                                 {"role"},
                                 {"dtype"},
                                 {"shape", false},
                                 {"init", false},
                                 {"value", false},
                                 {"python", false}}));
    Parameter parameter;
    const YamlNode& name = *node.find("name");
    CAPSTONE_TRY(parameter.name, reader_.text(name, "name", 40));
    if (!is_identifier(parameter.name) || is_reserved(parameter.name))
      return reader_.error(name, fmt::format("{} cannot name a parameter", describe(name)),
                           "it becomes a parameter of launch(): use a C++ identifier that is not taken");
    if (problem_.find(parameter.name) != nullptr)
      return reader_.error(name, fmt::format("parameter {} appears twice", describe(name)));
    CAPSTONE_TRY(const std::size_t role, reader_.choice(*node.find("role"), "role", roles()));
    parameter.role = static_cast<Role>(role);
    CAPSTONE_TRY(const std::size_t dtype, reader_.choice(*node.find("dtype"), "dtype", dtypes()));
    parameter.dtype = static_cast<DType>(dtype);
    CAPSTONE_CHECK(parameter.is_scalar() ? read_scalar(node, parameter) : read_tensor(node, parameter));
    CAPSTONE_CHECK(read_python(node, parameter));
    problem_.signature.push_back(std::move(parameter));
    return {};
  }

  Result<void> forbid(const YamlNode& node, const char* key, const std::string& why) const {
    for (const auto& [name, value] : node.entries)
      if (name.text == key) return reader_.error(name, why);
    return {};
  }

  Result<void> read_scalar(const YamlNode& node, Parameter& parameter) {
    CAPSTONE_CHECK(forbid(node, "shape", "a scalar has no `shape`"));
    CAPSTONE_CHECK(forbid(node, "init", "a scalar has a `value`, not an `init`"));
    const bool carried = parameter.dtype == DType::kF32 || parameter.dtype == DType::kI32 ||
                         parameter.dtype == DType::kI64 || parameter.dtype == DType::kU8;
    if (!carried)
      return reader_.error(*node.find("dtype"),
                           fmt::format("a scalar cannot be {}", name_of(parameter.dtype)),
                           "use f32, i32, i64 or u8");
    const YamlNode* value = node.find("value");
    if (value == nullptr)
      return reader_.error(node, "a scalar needs a `value`", "for example `value: 1.0e-5`");
    CAPSTONE_TRY(parameter.value, signature_expression(*value, "value", false));
    return {};
  }

  Result<void> read_tensor(const YamlNode& node, Parameter& parameter) {
    CAPSTONE_CHECK(forbid(node, "value", "a tensor has an `init`, not a `value`"));
    const YamlNode* shape = node.find("shape");
    if (shape == nullptr)
      return reader_.error(node, "a tensor needs a `shape`", "for example `shape: [rows, cols]`");
    CAPSTONE_CHECK(reader_.list(*shape, "shape"));
    if (shape->items.size() > 8) return reader_.error(*shape, "shape must have at most 8 dimensions");
    for (const YamlNode& dimension : shape->items) {
      CAPSTONE_TRY(Expression extent, signature_expression(dimension, "shape", true));
      parameter.shape.push_back(std::move(extent));
    }
    if (is_packed(parameter.dtype)) {
      if (parameter.shape.empty())
        return reader_.error(*shape, fmt::format("an {} tensor needs a dimension", name_of(parameter.dtype)),
                             "two elements are in a byte");
      if (problem_.oracle_is_reference)
        return reader_.error(*node.find("dtype"),
                             fmt::format("{} needs an oracle.cpp", name_of(parameter.dtype)),
                             "reference.py has bytes where two elements are packed, not their values");
    }
    if (parameter.role == Role::kOutput)
      return forbid(node, "init", "an output has no `init`: it is poisoned");
    if (const YamlNode* init = node.find("init")) return read_init(*init, parameter);
    if (!is_float(parameter.dtype))
      return reader_.error(node, fmt::format("an {} tensor needs an `init`", name_of(parameter.dtype)),
                           "for example `init: {integer: {min: 0, max: 7}}`");
    if (parameter.dtype == DType::kE8M0)
      return reader_.error(node, "an e8m0 tensor needs an `init`", kScaleInit);
    return {};
  }

  Result<void> read_python(const YamlNode& node, Parameter& parameter) const {
    const YamlNode* python = node.find("python");
    if (python == nullptr) return {};
    CAPSTONE_TRY(parameter.python, reader_.text(*python, "python", 120));
    const bool truth =
        parameter.role == Role::kInput && parameter.dtype == DType::kU8 && parameter.python == "bool";
    const bool argument = parameter.is_scalar() && parameter.python == "forward";
    if (truth || argument) return {};
    if (parameter.role != Role::kParameter)
      return reader_.error(*python, "only a parameter with `role: parameter` belongs to the nn.Module",
                           "an input of type u8 may be `python: bool`, a scalar `python: forward`");
    const auto parts = split(parameter.python, '.');
    auto is_number = [](const std::string& part) {  // an index in a Sequential or a ModuleList
      return !part.empty() &&
             std::all_of(part.begin(), part.end(), [](unsigned char c) { return std::isdigit(c); });
    };
    if (!std::all_of(parts.begin(), parts.end(),
                     [&](const std::string& part) { return is_identifier(part) || is_number(part); }))
      return reader_.error(*python, fmt::format("{} is not an attribute of a module", describe(*python)),
                           "for example `weight`, `norm.weight` or `layers.0.weight`");
    return {};
  }

  // --- init ------------------------------------------------------------------------------------------------

  Result<void> read_init(const YamlNode& node, Parameter& parameter) {
    enum Kind {
      kNormal,
      kUniform,
      kInteger,
      kPermutation,
      kOffsets,
      kLengths,
      kCounts,
      kTopK,
      kPages,
      kChoice
    };
    static const std::vector<std::string> kinds = {"normal",  "uniform", "integer",  "permutation",
                                                   "offsets", "lengths", "counts",   "top_k",
                                                   "pages",   "choice",  "generator"};
    if (!node.is_map() || node.entries.size() != 1)
      return reader_.error(node, fmt::format("init must name one way to draw values, not {}", describe(node)),
                           "for example `init: {normal: {mean: 0, std: 1}}`");
    const auto& [key, value] = node.entries.front();
    CAPSTONE_TRY(const std::size_t kind, reader_.choice(key, "init", kinds));
    const bool integral = !is_float(parameter.dtype);
    const bool for_floats = kind == kNormal || kind == kUniform || kind == kPages;
    const bool for_indices = kind >= kPermutation && kind <= kTopK;
    if (parameter.dtype == DType::kE8M0 && kind != kUniform && kind != kChoice)
      return reader_.error(
          key, fmt::format("{} values cannot be drawn as `{}`", name_of(parameter.dtype), kinds[kind]),
          kScaleInit);
    if ((integral && for_floats) || (!integral && for_indices) ||
        ((parameter.dtype == DType::kU8 || parameter.dtype == DType::kInt4x2) && for_indices) ||
        (parameter.dtype == DType::kE2M1x2 && kind == kPages))
      return reader_.error(
          key, fmt::format("{} values cannot be drawn as `{}`", name_of(parameter.dtype), kinds[kind]));
    switch (kind) {
      case kNormal:
        return read_normal(value, parameter);
      case kUniform:
        return read_uniform(value, parameter);
      case kInteger:
        return read_integer(value, parameter);
      case kPermutation:
        return read_permutation(value, parameter);
      case kOffsets:
        return read_offsets(value, parameter);
      case kLengths:
        return read_lengths(value, parameter);
      case kCounts:
        return read_counts(value, parameter);
      case kTopK:
        return read_top_k(value, parameter);
      case kPages:
        return read_pages(value, parameter);
      case kChoice:
        return read_choice(value, parameter);
      default:
        return read_generator(value, parameter);
    }
  }

  Result<void> read_normal(const YamlNode& node, Parameter& parameter) {
    CAPSTONE_CHECK(reader_.keys(node, "normal", {{"mean"}, {"std"}}));
    InitNormal init;
    CAPSTONE_TRY(init.mean, reader_.number(*node.find("mean"), "mean"));
    CAPSTONE_TRY(init.std, reader_.number(*node.find("std"), "std"));
    if (init.std < 0) return reader_.error(*node.find("std"), "std must not be negative");
    parameter.init = init;
    return {};
  }

  Result<void> read_uniform(const YamlNode& node, Parameter& parameter) {
    CAPSTONE_CHECK(reader_.keys(node, "uniform", {{"low"}, {"high"}}));
    InitUniform init;
    CAPSTONE_TRY(init.low, reader_.number(*node.find("low"), "low"));
    CAPSTONE_TRY(init.high, reader_.number(*node.find("high"), "high"));
    if (init.low >= init.high) return reader_.error(*node.find("high"), "uniform needs low < high");
    if (parameter.dtype == DType::kE8M0 && init.low <= 0)
      return reader_.error(*node.find("low"), "e8m0 holds powers of two: low must be above 0");
    parameter.init = init;
    return {};
  }

  Result<void> read_integer(const YamlNode& node, Parameter& parameter) {
    CAPSTONE_CHECK(reader_.keys(node, "integer", {{"min"}, {"max"}}));
    InitInteger init;
    auto [low, high] = whole_numbers(parameter.dtype);
    low = std::max(low, -kLargestSize), high = std::min(high, kLargestSize);
    CAPSTONE_TRY(init.min, reader_.integer(*node.find("min"), "min", low, high));
    CAPSTONE_TRY(init.max, reader_.integer(*node.find("max"), "max", low, high));
    if (init.min > init.max) return reader_.error(*node.find("max"), "integer needs min <= max");
    parameter.init = init;
    return {};
  }

  Result<void> read_permutation(const YamlNode& node, Parameter& parameter) {
    CAPSTONE_CHECK(reader_.keys(node, "permutation", {{"of"}}));
    InitPermutation init;
    CAPSTONE_TRY(init.of, signature_expression(*node.find("of"), "of", true));
    parameter.init = init;
    return {};
  }

  Result<void> read_offsets(const YamlNode& node, Parameter& parameter) {
    CAPSTONE_CHECK(reader_.keys(node, "offsets", {{"total"}, {"segments"}, {"lengths", false}}));
    InitOffsets init;
    CAPSTONE_TRY(init.total, signature_expression(*node.find("total"), "total", true));
    CAPSTONE_TRY(init.segments, signature_expression(*node.find("segments"), "segments", true));
    if (const YamlNode* lengths = node.find("lengths")) {
      CAPSTONE_TRY(const std::size_t kind, reader_.choice(*lengths, "lengths", {"any", "ramp"}));
      init.ramp = kind == 1;
    }
    parameter.init = init;
    return {};
  }

  Result<void> read_lengths(const YamlNode& node, Parameter& parameter) {
    CAPSTONE_CHECK(reader_.keys(node, "lengths", {{"low"}, {"high"}}));
    InitLengths init;
    CAPSTONE_TRY(init.low, signature_expression(*node.find("low"), "low", false));
    CAPSTONE_TRY(init.high, signature_expression(*node.find("high"), "high", true));
    parameter.init = init;
    return {};
  }

  Result<void> read_counts(const YamlNode& node, Parameter& parameter) {
    CAPSTONE_CHECK(reader_.keys(node, "counts", {{"total"}}));
    InitCounts init;
    CAPSTONE_TRY(init.total, signature_expression(*node.find("total"), "total", true));
    parameter.init = init;
    return {};
  }

  Result<void> read_top_k(const YamlNode& node, Parameter& parameter) {
    CAPSTONE_CHECK(reader_.keys(node, "top_k", {{"of"}, {"least"}}));
    InitTopK init;
    CAPSTONE_TRY(init.of, signature_expression(*node.find("of"), "of", true));
    CAPSTONE_TRY(init.least, signature_expression(*node.find("least"), "least", false));
    parameter.init = init;
    return {};
  }

  Result<void> read_pages(const YamlNode& node, Parameter& parameter) {
    CAPSTONE_CHECK(reader_.keys(node, "pages", {{"table"}, {"lengths"}}));
    if (parameter.role == Role::kParameter)
      return reader_.error(node, "a parameter cannot be drawn as `pages`",
                           "a cache is an `input` or `inout`: its pages are others in every run");
    InitPages init;
    CAPSTONE_TRY(init.table, reader_.text(*node.find("table"), "table", 40));
    CAPSTONE_TRY(init.lengths, reader_.text(*node.find("lengths"), "lengths", 40));
    parameter.init = init;
    paged_.push_back(&node);
    return {};
  }

  Result<void> read_choice(const YamlNode& node, Parameter& parameter) {
    CAPSTONE_CHECK(reader_.list(node, "choice"));
    if (node.items.empty() || node.items.size() > 256)
      return reader_.error(node, "choice needs 1 to 256 values");
    InitChoice init;
    for (const YamlNode& item : node.items) {
      CAPSTONE_TRY(const double value, reader_.number(item, "a choice value"));
      if (parameter.dtype == DType::kE8M0 && value <= 0)
        return reader_.error(item, "e8m0 holds powers of two: a choice value must be above 0");
      init.values.push_back(value);
    }
    parameter.init = init;
    return {};
  }

  Result<void> read_generator(const YamlNode& node, Parameter& parameter) {
    CAPSTONE_TRY(const std::string name, reader_.text(node, "generator", 40));
    if (!is_identifier(name))
      return reader_.error(node, fmt::format("{} is not the name of a generator", describe(node)));
    parameter.init = InitGenerator{name};
    return {};
  }

  // --- expressions -----------------------------------------------------------------------------------------

  /// For the signature: a name used here declares a size, so the expression is evaluated later, when the
  /// sizes are known.
  Result<Expression> signature_expression(const YamlNode& node, const std::string& what, bool is_count) {
    CAPSTONE_TRY(std::string text, reader_.text(node, what));
    Expression expression{std::move(text)};
    in_signature_.push_back({&node, expression, is_count});
    return expression;
  }

  /// For the parts after the sizes: every symbol must be one of them.
  Result<Expression> size_expression(const YamlNode& node, const std::string& what) const {
    CAPSTONE_TRY(std::string text, reader_.text(node, what));
    Expression expression{std::move(text)};
    CAPSTONE_CHECK(try_expression(node, expression, problem_.measure));
    return expression;
  }

  /// Evaluates once, so that syntax errors and undefined symbols are reported at their column.
  Result<double> try_expression(const YamlNode& node, const Expression& expression,
                                const Sizes& sizes) const {
    auto value = evaluate_expression(expression.text, sizes);
    if (!value) return reader_.error(node, value.error().what, value.error().hint, value.error().position);
    return *value;
  }

  // --- sizes -----------------------------------------------------------------------------------------------

  Result<void> read_sizes(const YamlNode& node) {
    CAPSTONE_CHECK(
        reader_.keys(node, "sizes", {{"check"}, {"vary"}, {"measure"}, {"emulate"}, {"published", false}}));
    const YamlNode& check = *node.find("check");
    CAPSTONE_CHECK(reader_.list(check, "check"));
    if (check.items.empty()) return reader_.error(check, "check needs at least one list of sizes");
    std::vector<SizeList> lists;
    for (std::size_t i = 0; i < check.items.size(); ++i)
      lists.push_back({&check.items[i], fmt::format("`check` entry {}", i + 1)});
    lists.push_back({node.find("measure"), "`measure`"});
    lists.push_back({node.find("emulate"), "`emulate`"});
    lists.push_back({node.find("vary"), "`vary`"});
    for (const SizeList& list : lists)
      if (!list.node->is_map())
        return reader_.error(
            *list.node,
            fmt::format("{} must map every size symbol to a value, not {}", list.name, describe(*list.node)),
            "for example {rows: 64, cols: 512}");
    CAPSTONE_CHECK(collect_symbols(lists, node));
    for (const SizeList& list : lists) {
      CAPSTONE_CHECK(check_symbols(list));
    }
    for (const YamlNode& item : check.items) {
      CAPSTONE_TRY(Sizes sizes, read_size_list(item));
      problem_.check.push_back(std::move(sizes));
    }
    CAPSTONE_TRY(problem_.measure, read_size_list(*node.find("measure")));
    CAPSTONE_TRY(problem_.emulate, read_size_list(*node.find("emulate")));
    CAPSTONE_CHECK(read_vary(*node.find("vary")));
    if (const YamlNode* published = node.find("published")) {
      CAPSTONE_CHECK(read_published(*published));
    }
    remember_size_lists(node);
    return {};
  }

  /// Symbols are the names in the signature, in order. A symbol that no list of sizes has is a typing mistake
  /// in the signature. A symbol that only some lists lack is a mistake in those lists, which check_symbols()
  /// reports.
  Result<void> collect_symbols(const std::vector<SizeList>& lists, const YamlNode& sizes) {
    std::vector<std::string> given;
    for (const SizeList& list : lists)
      for (const auto& [key, value] : list.node->entries)
        if (std::find(given.begin(), given.end(), key.text) == given.end()) given.push_back(key.text);
    for (const Located& located : in_signature_)
      for (const SymbolUse& use : symbols_in(located.expression.text)) {
        if (std::find(given.begin(), given.end(), use.name) == given.end())
          return reader_.error(*located.node, fmt::format("undefined symbol `{}`", use.name),
                               did_you_mean(use.name, given), use.position);
        CAPSTONE_CHECK(add_symbol(use, located));
      }
    if (problem_.symbols.empty() && !problem_.oracle_is_reference)
      return reader_.error(in_signature_.empty() ? sizes : *in_signature_.front().node,
                           "the signature has no size symbol",
                           "at least one dimension must vary: hidden sizes are drawn from `vary`");
    return {};
  }

  Result<void> add_symbol(const SymbolUse& use, const Located& located) {
    auto& symbols = problem_.symbols;
    if (std::find(symbols.begin(), symbols.end(), use.name) != symbols.end()) return {};
    if (!is_identifier(use.name) || is_reserved(use.name) || problem_.find(use.name) != nullptr)
      return reader_.error(*located.node, fmt::format("`{}` cannot name a size", use.name),
                           "it becomes a parameter of launch(): choose a name that is not taken",
                           use.position);
    if (symbols.size() >= 32) return reader_.error(*located.node, "more than 32 size symbols");
    symbols.push_back(use.name);
    return {};
  }

  Result<void> check_symbols(const SizeList& list) const {
    const auto& symbols = problem_.symbols;
    if (problem_.oracle_is_reference && list.name == "`vary`" && list.node->entries.empty()) return {};
    for (const auto& [key, value] : list.node->entries)
      if (std::find(symbols.begin(), symbols.end(), key.text) == symbols.end())
        return reader_.error(
            key, fmt::format("{} has {}, which is not a size in the signature", list.name, describe(key)),
            did_you_mean(key.text, symbols));
    for (const std::string& symbol : symbols)
      if (list.node->find(symbol) == nullptr)
        return reader_.error(*list.node, fmt::format("{} lacks size `{}`", list.name, symbol),
                             fmt::format("add `{}: …`; the sizes are {}", symbol, join(symbols, ", ")));
    return {};
  }

  Result<Sizes> read_size_list(const YamlNode& map) const {
    Sizes sizes;
    for (const std::string& symbol : problem_.symbols) {
      CAPSTONE_TRY(const std::int64_t value,
                   reader_.integer(*map.find(symbol), fmt::format("size `{}`", symbol), 1, kLargestSize));
      sizes.emplace_back(symbol, value);
    }
    return sizes;
  }

  Result<void> read_vary(const YamlNode& node) {
    for (const auto& [key, value] : node.entries) {
      CAPSTONE_TRY(Vary vary, read_one_vary(value, key.text));
      problem_.vary.emplace(key.text, std::move(vary));
    }
    return {};
  }

  Result<Vary> read_one_vary(const YamlNode& node, const std::string& symbol) const {
    CAPSTONE_CHECK(reader_.keys(node, fmt::format("vary of `{}`", symbol),
                                {{"range", false}, {"multiple_of", false}, {"one_of", false}}));
    const YamlNode* range = node.find("range");
    const YamlNode* one_of = node.find("one_of");
    const YamlNode* multiple = node.find("multiple_of");
    if ((range == nullptr) == (one_of == nullptr))
      return reader_.error(node, fmt::format("vary of `{}` needs either `range` or `one_of`", symbol),
                           "for example {range: [1, 300]}");
    if (one_of != nullptr && multiple != nullptr)
      return reader_.error(*multiple, "`multiple_of` goes with `range`, not with `one_of`");
    return one_of != nullptr ? read_one_of(*one_of) : read_range(*range, multiple);
  }

  Result<Vary> read_one_of(const YamlNode& node) const {
    CAPSTONE_CHECK(reader_.list(node, "one_of"));
    if (node.items.empty() || node.items.size() > 256)
      return reader_.error(node, "one_of needs 1 to 256 values");
    Vary vary;
    for (const YamlNode& item : node.items) {
      CAPSTONE_TRY(const std::int64_t value, reader_.integer(item, "one_of", 1, kLargestSize));
      vary.one_of.push_back(value);
    }
    return vary;
  }

  Result<Vary> read_range(const YamlNode& node, const YamlNode* multiple) const {
    CAPSTONE_CHECK(reader_.list(node, "range"));
    if (node.items.size() != 2)
      return reader_.error(node, "range needs a lowest and a highest value", "write [1, 300]");
    Vary vary;
    CAPSTONE_TRY(vary.low, reader_.integer(node.items[0], "range", 1, kLargestSize));
    CAPSTONE_TRY(vary.high, reader_.integer(node.items[1], "range", 1, kLargestSize));
    if (vary.low > vary.high)
      return reader_.error(node, fmt::format("range is inverted: {} > {}", vary.low, vary.high),
                           fmt::format("write [{}, {}]", vary.high, vary.low));
    if (multiple != nullptr) {
      CAPSTONE_TRY(vary.multiple_of, reader_.integer(*multiple, "multiple_of", 1, kLargestSize));
    }
    if (vary.high / vary.multiple_of * vary.multiple_of < vary.low)
      return reader_.error(node, fmt::format("range holds no multiple of {}", vary.multiple_of));
    return vary;
  }

  Result<void> read_published(const YamlNode& node) {
    if (!node.is_map())
      return reader_.error(node, fmt::format("published must map a source to sizes, not {}", describe(node)),
                           "for example {paper: {rows: 4096, cols: 65536}}");
    for (const auto& [key, value] : node.entries) {
      const std::string name = fmt::format("published {}", describe(key));
      if (!value.is_map())
        return reader_.error(
            value, fmt::format("{} must map every size symbol to a value, not {}", name, describe(value)));
      CAPSTONE_CHECK(check_symbols({&value, name}));
      CAPSTONE_TRY(Sizes sizes, read_size_list(value));
      problem_.published.emplace_back(key.text, std::move(sizes));
    }
    return {};
  }

  /// Every concrete set of sizes with its position, for the checks that need the whole definition.
  void remember_size_lists(const YamlNode& node) {
    const auto& check = node.find("check")->items;
    for (std::size_t i = 0; i < check.size(); ++i) size_lists_.emplace_back(&check[i], problem_.check[i]);
    size_lists_.emplace_back(node.find("measure"), problem_.measure);
    size_lists_.emplace_back(node.find("emulate"), problem_.emulate);
    for (const auto& [name, sizes] : problem_.published)
      size_lists_.emplace_back(node.find("published")->find(name), sizes);
  }

  // --- the rest --------------------------------------------------------------------------------------------

  Result<void> read_relations(const YamlNode& root) {
    const YamlNode* node = root.find("where");
    if (node == nullptr) return {};
    CAPSTONE_CHECK(reader_.list(*node, "where"));
    if (node->items.size() > 32) return reader_.error(*node, "where has more than 32 relations");
    for (const YamlNode& item : node->items) {
      CAPSTONE_TRY(Expression relation, size_expression(item, "where"));
      problem_.where.push_back(std::move(relation));
    }
    return {};
  }

  Result<void> read_tolerance(const YamlNode& node) {
    CAPSTONE_CHECK(reader_.keys(node, "tolerance", {{"rtol"}, {"atol"}}));
    CAPSTONE_TRY(problem_.tolerance.rtol, read_bound(*node.find("rtol"), "rtol"));
    CAPSTONE_TRY(problem_.tolerance.atol, read_bound(*node.find("atol"), "atol"));
    return {};
  }

  Result<double> read_bound(const YamlNode& node, const std::string& what) const {
    CAPSTONE_TRY(const double value, reader_.number(node, what));
    if (value < 0 || value > 1) return reader_.error(node, fmt::format("{} must lie between 0 and 1", what));
    return value;
  }

  Result<void> read_cost(const YamlNode& node) {
    CAPSTONE_CHECK(reader_.keys(node, "cost", {{"flops"}, {"bytes"}}));
    CAPSTONE_TRY(problem_.flops, size_expression(*node.find("flops"), "flops"));
    CAPSTONE_TRY(problem_.bytes, size_expression(*node.find("bytes"), "bytes"));
    cost_ = &node;
    return {};
  }

  Result<void> read_judging(const YamlNode& root) {
    CAPSTONE_TRY(const std::size_t precision,
                 reader_.choice(*root.find("precision"), "precision", precisions()));
    problem_.precision = static_cast<Precision>(precision);
    const YamlNode& baselines = *root.find("baselines");
    CAPSTONE_TRY(const auto names,
                 reader_.choices(baselines, "baselines",
                                 {"native", "eager", "compile", "compile-max", "sdpa-flash", "sdpa-cudnn"},
                                 is_library_arm));
    if (names.empty())
      return reader_.error(baselines, "baselines is empty", "gate two needs a baseline: [native]");
    for (const std::string& name : names) problem_.baselines.push_back({name});
    if (const YamlNode* link = root.find("link")) {
      CAPSTONE_TRY(problem_.link, reader_.choices(*link, "link", {"cublas", "cublasLt", "cudnn"}));
    }
    CAPSTONE_CHECK(read_arch(root));
    CAPSTONE_CHECK(read_switch(root, "prepare", problem_.prepare));
    CAPSTONE_CHECK(read_switch(root, "fast_math", problem_.fast_math));
    CAPSTONE_CHECK(read_switch(root, "graded", problem_.graded));
    CAPSTONE_TRY(problem_.because, read_reasons(root, "because", tricks()));
    CAPSTONE_TRY(problem_.outside_domain, read_reasons(root, "outside_domain", variations()));
    return {};
  }

  Result<void> read_arch(const YamlNode& root) {
    const YamlNode* node = root.find("arch");
    if (node == nullptr) return {};
    static const std::vector<std::string> known = {"sm_75",  "sm_80",  "sm_86",   "sm_87",  "sm_89",  "sm_90",
                                                   "sm_90a", "sm_100", "sm_100a", "sm_120", "sm_120a"};
    CAPSTONE_TRY(const std::size_t which, reader_.choice(*node, "arch", known));
    problem_.arch = known[which];
    return {};
  }

  Result<void> read_switch(const YamlNode& root, const std::string& key, bool& target) const {
    const YamlNode* node = root.find(key);
    if (node == nullptr) return {};
    CAPSTONE_TRY(target, reader_.boolean(*node, key));
    return {};
  }

  /// A mapping from some of `words` to reasons.
  Result<std::map<std::string, std::string>> read_reasons(const YamlNode& root, const std::string& name,
                                                          const std::vector<std::string>& words) const {
    std::map<std::string, std::string> reasons;
    const YamlNode* node = root.find(name);
    if (node == nullptr) return reasons;
    std::vector<Key> allowed;
    for (const std::string& word : words) allowed.push_back({word, false});
    CAPSTONE_CHECK(reader_.keys(*node, name, allowed));
    for (const auto& [key, value] : node->entries) {
      CAPSTONE_TRY(reasons[key.text], reader_.text(value, "a reason"));
    }
    return reasons;
  }

  /// Checks that need the whole definition: every listed size gives whole, positive shapes and a positive
  /// cost, and satisfies `where`.
  Result<void> check_everywhere() const {
    for (const auto& [node, sizes] : size_lists_) {
      CAPSTONE_CHECK(check_signature_at(*node, sizes));
      CAPSTONE_CHECK(check_relations_at(*node, sizes));
      CAPSTONE_CHECK(check_cost_at(sizes));
    }
    return {};
  }

  Result<void> check_signature_at(const YamlNode& node, const Sizes& sizes) const {
    for (const Located& located : in_signature_) {
      CAPSTONE_TRY(const double value, try_expression(*located.node, located.expression, sizes));
      if (!located.is_count) continue;
      auto extent = evaluate_whole(located.expression.text, sizes);
      if (!extent || *extent < 1)
        return reader_.error(*located.node,
                             fmt::format("`{}` is {} at {}; it must be a positive whole number",
                                         located.expression.text, value, to_string(sizes)));
    }
    for (const Parameter& parameter : problem_.signature)
      if (auto elements = elements_at(parameter, sizes); !elements)
        return reader_.error(node, elements.error().what, "make these sizes smaller");
    for (const Parameter& parameter : problem_.signature)
      if (auto whole = has_whole_rows(parameter, sizes); whole && !*whole)
        return reader_.error(node,
                             fmt::format("the rows of `{}` end within a byte at {}: {} packs two elements",
                                         parameter.name, to_string(sizes), name_of(parameter.dtype)),
                             "the last dimension counts elements and must be even");
    return {};
  }

  Result<void> check_relations_at(const YamlNode& node, const Sizes& sizes) const {
    for (const Expression& relation : problem_.where) {
      const auto holds = relation.evaluate(sizes);
      if (!holds)
        return reader_.error(node, fmt::format("{} at {}", holds.error().what, to_string(sizes)),
                             "correct the sizes, or the relation under `where`");
      if (*holds == 0)
        return reader_.error(
            node, fmt::format("sizes {} violate the relation `{}`", to_string(sizes), relation.text),
            "correct the sizes, or the relation under `where`");
    }
    return {};
  }

  Result<void> check_cost_at(const Sizes& sizes) const {
    for (const char* key : {"flops", "bytes"}) {
      const YamlNode& node = *cost_->find(key);
      CAPSTONE_TRY(const double value, try_expression(node, Expression{node.text}, sizes));
      const bool moves_bytes = std::string_view(key) == "bytes";
      if (value < 0 || (moves_bytes && value == 0))
        return reader_.error(node, fmt::format("{} is {} at {}", key, value, to_string(sizes)),
                             "count the work of the best possible algorithm");
    }
    return {};
  }

  Reader reader_;
  Problem problem_;
  std::vector<Located> in_signature_;
  std::vector<const YamlNode*> paged_;  // inits of paged caches
  std::vector<std::pair<const YamlNode*, Sizes>> size_lists_;
  const YamlNode* cost_ = nullptr;
};

}  // namespace

Result<Problem> load_problem(const fs::path& folder) {
  const fs::path file = folder / "problem.yaml";
  CAPSTONE_TRY(const std::string bytes, read_file(file, YamlLimits{}.bytes));
  CAPSTONE_TRY(const YamlNode root, parse_yaml(bytes, file.string()));
  CAPSTONE_TRY(Problem problem, Loader(file.string()).load(root));
  problem.folder = folder;
  CAPSTONE_TRY(problem.digest, digest_of_definition(folder));
  return problem;
}

}  // namespace capstone
