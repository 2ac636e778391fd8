#include "harness/model/expression.h"

#include <fmt/format.h>
#include <muParser.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "harness/base/spelling.h"
#include "harness/base/text.h"

namespace capstone {
namespace {

// Far more than any cost formula needs. Limits the time that a hostile definition can take.
constexpr std::size_t kMaxLength = 512;
constexpr int kMaxParentheses = 32;
constexpr double kLargestWhole = 9007199254740992.0;  // 2^53: larger doubles skip integers

bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_name_part(char c) { return is_name_start(c) || is_digit(c); }

tl::unexpected<ExpressionFault> fault(std::string what, std::size_t position, std::string hint = {}) {
  return tl::unexpected<ExpressionFault>({std::move(what), std::move(hint), position});
}

/// One past the last character of the number that starts at `at`: digits, a point, an exponent.
std::size_t end_of_number(const std::string& text, std::size_t at) {
  while (at < text.size() && (is_digit(text[at]) || text[at] == '.')) ++at;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    std::size_t digits = at + 1;
    if (digits < text.size() && (text[digits] == '+' || text[digits] == '-')) ++digits;
    if (digits < text.size() && is_digit(text[digits])) {
      at = digits;
      while (at < text.size() && is_digit(text[at])) ++at;
    }
  }
  return at;
}

struct Name {
  std::string text;
  std::size_t position;
  bool is_call;
};

std::vector<Name> names_in(const std::string& text) {
  std::vector<Name> names;
  for (std::size_t i = 0; i < text.size();) {
    if (is_digit(text[i]) || text[i] == '.') {
      i = end_of_number(text, i);
    } else if (is_name_start(text[i])) {
      std::size_t begin = i;
      while (i < text.size() && is_name_part(text[i])) ++i;
      std::size_t next = text.find_first_not_of(' ', i);
      bool call = next != std::string::npos && text[next] == '(';
      names.push_back({text.substr(begin, i - begin), begin, call});
    } else {
      ++i;
    }
  }
  return names;
}

/// Refuses syntax that definitions do not have although the library would accept it (assignment, strings,
/// lists of values, `?:`), so that the library only ever gets plain arithmetic.
std::optional<ExpressionFault> check_characters(const std::string& text) {
  if (text.size() > kMaxLength)
    return ExpressionFault{
        fmt::format("expression is longer than {} characters", kMaxLength), {}, kMaxLength};
  static const std::string allowed = "+-*/%^()<>=!&|,. ";
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const char before = i > 0 ? text[i - 1] : ' ', after = i + 1 < text.size() ? text[i + 1] : ' ';
    if (!is_name_part(c) && allowed.find(c) == std::string::npos)
      return ExpressionFault{fmt::format("character {} is not allowed in an expression",
                                         std::isprint(static_cast<unsigned char>(c))
                                             ? fmt::format("`{}`", c)
                                             : fmt::format("0x{:02x}", static_cast<unsigned char>(c))),
                             "use numbers, size symbols, + - * / % ^, comparisons, && and ||", i};
    if (c == '(' && ++depth > kMaxParentheses)
      return ExpressionFault{fmt::format("more than {} open parentheses", kMaxParentheses), {}, i};
    if (c == ')') --depth;
    if (c == ',' && depth <= 0) return ExpressionFault{"a comma outside of a function call", {}, i};
    if (c == '=' && after != '=' && before != '=' && before != '<' && before != '>' && before != '!')
      return ExpressionFault{"`=` is not a comparison", "write `==`", i};
    if ((c == '&' || c == '|') && after != c && before != c)
      return ExpressionFault{fmt::format("`{}` is not an operator", c), fmt::format("write `{}{}`", c, c), i};
  }
  return std::nullopt;
}

double modulo(double a, double b) { return std::fmod(a, b); }
double ceil_div(double a, double b) { return std::ceil(a / b); }
double round_up(double a, double b) { return std::ceil(a / b) * b; }
double floor_of(double a) { return std::floor(a); }
double ceil_of(double a) { return std::ceil(a); }
double absolute(double a) { return std::fabs(a); }
double square_root(double a) { return std::sqrt(a); }
double log_two(double a) { return std::log2(a); }
double least(const double* v, int n) { return *std::min_element(v, v + n); }
double greatest(const double* v, int n) { return *std::max_element(v, v + n); }

std::unique_ptr<mu::Parser> make_parser() {
  auto parser = std::make_unique<mu::Parser>();
  parser->ClearConst();  // `_pi` and `_e` would hide a mistyped symbol
  parser->ClearFun();    // the library's own set has random numbers and rounding by locale
  parser->DefineOprt("%", modulo, mu::prMUL_DIV, mu::oaLEFT, true);
  parser->DefineFun("min", least);
  parser->DefineFun("max", greatest);
  parser->DefineFun("abs", absolute);
  parser->DefineFun("sqrt", square_root);
  parser->DefineFun("log2", log_two);
  parser->DefineFun("floor", floor_of);
  parser->DefineFun("ceil", ceil_of);
  parser->DefineFun("ceil_div", ceil_div);
  parser->DefineFun("round_up", round_up);
  return parser;
}

std::vector<std::string> known_names(const Sizes& sizes) {
  std::vector<std::string> names;
  for (const auto& [name, value] : sizes) names.push_back(name);
  return names;
}

/// The expressions of one set of symbols, read once: a catalogue asks for each of them at dozens of sizes,
/// and reading one takes longer than evaluating it. One for each thread.
class ThreadParser {
 public:
  /// Must be called before the others. @throws mu::Parser::exception_type
  void bind(const Sizes& sizes) {
    if (!blank_) {
      static std::mutex making;  // the library sets up shared locale state in the constructor
      std::lock_guard lock(making);
      blank_ = make_parser();
    }
    if (auto names = known_names(sizes); names != names_ || read_.size() >= kMost) {
      names_.clear(), read_.clear();  // if the library refuses one of them
      blank_->ClearVar();
      values_.assign(names.size(), 0);  // the parsers keep pointers into it
      for (std::size_t i = 0; i < names.size(); ++i) blank_->DefineVar(names[i], &values_[i]);
      names_ = std::move(names);
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) values_[i] = static_cast<double>(sizes[i].second);
  }
  /// Whether evaluate() was asked with these symbols.
  bool knows(const std::string& text) const { return read_.count(text) > 0; }
  /// @throws mu::Parser::exception_type
  double evaluate(const std::string& text) {
    const auto [at, fresh] = read_.try_emplace(text, *blank_);
    if (fresh) {
      // A copy has it on. It turns (h - 2) / 11 into 1/11 · h - 2/11: at h = 24 that is less than 2, and
      // floor() gives 1.
      at->second.EnableOptimizer(false);
      at->second.SetExpr(text);
    }
    return at->second.Eval();
  }

 private:
  static constexpr std::size_t kMost = 64;
  std::unique_ptr<mu::Parser> blank_;
  std::vector<std::string> names_;
  std::vector<double> values_;
  std::unordered_map<std::string, mu::Parser> read_;
};

std::optional<ExpressionFault> check_names(const std::string& text, const Sizes& sizes) {
  const auto known = known_names(sizes);
  const auto& functions = expression_functions();
  for (const Name& name : names_in(text)) {
    if (name.is_call) {
      if (std::find(functions.begin(), functions.end(), name.text) == functions.end())
        return ExpressionFault{fmt::format("no function `{}`", name.text), did_you_mean(name.text, functions),
                               name.position};
      continue;
    }
    if (std::find(known.begin(), known.end(), name.text) == known.end())
      return ExpressionFault{fmt::format("undefined symbol `{}`", name.text), did_you_mean(name.text, known),
                             name.position};
  }
  return std::nullopt;
}

/// The library's message in our form: no trailing period, no position (the error shows it).
std::string tidy(std::string message) {
  if (auto at = message.find(" found at position"); at != std::string::npos) message.erase(at);
  if (auto at = message.find(" at position"); at != std::string::npos) message.erase(at);
  while (!message.empty() && (message.back() == '.' || message.back() == ' ')) message.pop_back();
  if (!message.empty()) message[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(message[0])));
  return message;
}

/// A dimension is nearly always a single symbol or a whole number, which needs no parser. This halves the
/// time to load a catalogue.
std::optional<double> lone_symbol_or_number(const std::string& text, const Sizes& sizes) {
  constexpr std::size_t kExactDigits = 15;  // all such numbers are below kLargestWhole
  if (!text.empty() && text.size() <= kExactDigits && std::all_of(text.begin(), text.end(), is_digit))
    return static_cast<double>(std::stoll(text));
  for (const auto& [name, value] : sizes)
    if (name == text) return static_cast<double>(value);
  return std::nullopt;
}

Error as_error(const ExpressionFault& f, const std::string& text) {
  return Error{f.what, fmt::format("expression `{}`, character {}", text, f.position + 1), f.hint,
               ExitCode::kUsage};
}

}  // namespace

const std::vector<std::string>& expression_functions() {
  static const std::vector<std::string> names = {"min",   "max",  "abs",      "sqrt",    "log2",
                                                 "floor", "ceil", "ceil_div", "round_up"};
  return names;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates) {
  if (auto near = nearest(word, candidates)) return fmt::format("did you mean `{}`?", *near);
  if (candidates.empty()) return "none is defined";
  return "known: " + join(candidates, ", ");
}

std::vector<SymbolUse> symbols_in(const std::string& text) {
  std::vector<SymbolUse> uses;
  for (Name& name : names_in(text))
    if (!name.is_call) uses.push_back({std::move(name.text), name.position});
  return uses;
}

Evaluated<double> evaluate_expression(const std::string& text, const Sizes& sizes) {
  if (auto value = lone_symbol_or_number(text, sizes)) return *value;
  if (trim(text).empty()) return fault("empty expression", 0);
  try {
    thread_local ThreadParser parser;
    parser.bind(sizes);
    if (!parser.knows(text)) {
      if (auto bad = check_characters(text)) return tl::unexpected(*bad);
      if (auto bad = check_names(text, sizes)) return tl::unexpected(*bad);
    }
    const double value = parser.evaluate(text);
    if (!std::isfinite(value))
      return fault(fmt::format("`{}` has no finite value", text), 0, "check for a division by zero");
    return value;
  } catch (const mu::Parser::exception_type& e) {
    const auto position =
        std::min(static_cast<std::size_t>(std::max(0, static_cast<int>(e.GetPos()))), text.size());
    return fault(fmt::format("cannot read expression `{}`: {}", text, tidy(e.GetMsg())), position);
  }
}

Evaluated<std::int64_t> evaluate_whole(const std::string& text, const Sizes& sizes) {
  auto value = evaluate_expression(text, sizes);
  if (!value) return tl::unexpected(value.error());
  const double whole = std::round(*value);
  if (whole < 0) return fault(fmt::format("`{}` is negative ({})", text, *value), 0);
  if (whole > kLargestWhole) return fault(fmt::format("`{}` is too large ({})", text, *value), 0);
  if (std::fabs(*value - whole) > 1e-9 * std::max(1.0, whole))
    return fault(fmt::format("`{}` is not a whole number ({})", text, *value), 0,
                 "use ceil_div(a, b) or floor(…)");
  return static_cast<std::int64_t>(whole);
}

Result<double> Expression::evaluate(const Sizes& sizes) const {
  auto value = evaluate_expression(text, sizes);
  if (!value) return fail(as_error(value.error(), text));
  return *value;
}

Result<std::int64_t> Expression::evaluate_integer(const Sizes& sizes) const {
  auto value = evaluate_whole(text, sizes);
  if (!value) return fail(as_error(value.error(), text));
  return *value;
}

}  // namespace capstone
