#include "harness/judge/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "harness/base/ascii.h"
#include "harness/base/spelling.h"
#include "harness/base/text.h"
#include "harness/model/library_arm.h"
#include "harness/runtime/python/arms.h"

namespace capstone {
namespace {

using Kind = JudgeOption::Kind;

template <class Value>
JudgeOption option(std::string_view key, Kind kind, std::string help, Value JudgeOptions::*member) {
  JudgeOption row;
  row.key = key;
  row.kind = kind;
  row.help = std::move(help);
  row.get = [member](const JudgeOptions& options) { return Json(options.*member); };
  row.put = [member](JudgeOptions& options, const Json& value) { options.*member = value.get<Value>(); };
  return row;
}

JudgeOption flag(std::string_view key, std::string help, bool JudgeOptions::*member,
                 std::string_view excludes = {}) {
  JudgeOption row = option(key, Kind::kFlag, std::move(help), member);
  row.excludes = excludes;
  return row;
}

template <class Number>
JudgeOption number(std::string_view key, std::string help, Number JudgeOptions::*member, Number low,
                   Number high) {
  JudgeOption row =
      option(key, std::is_integral_v<Number> ? Kind::kInteger : Kind::kNumber, std::move(help), member);
  row.low = static_cast<double>(low);
  row.high = static_cast<double>(high);
  return row;
}

JudgeOption backend_option() {
  JudgeOption row{"backend",
                  Kind::kChoice,
                  "auto (default): a GPU where there is one, else emulated on the CPU",
                  {},
                  nullptr,
                  0,
                  0,
                  {},
                  {},
                  {},
                  {}};
  for (const auto& [value, word] : kBackendWords) row.choices.emplace_back(word);
  row.get = [](const JudgeOptions& options) { return Json(name_of(options.backend)); };
  row.put = [](JudgeOptions& options, const Json& value) {
    options.backend = *backend_named(value.get_ref<const std::string&>());
  };
  return row;
}

JudgeOption execution_option() {
  JudgeOption row{"execution",
                  Kind::kChoice,
                  "on a GPU: auto (default): replayed where the launch can be captured, else in-process",
                  {},
                  nullptr,
                  0,
                  0,
                  {},
                  {},
                  {},
                  {}};
  for (const auto& [value, word] : kExecutionWords)
    if (value != Execution::kEmulated) row.choices.emplace_back(word);
  row.get = [](const JudgeOptions& options) { return Json(name_of(options.execution)); };
  row.put = [](JudgeOptions& options, const Json& value) {
    options.execution = *execution_named(value.get_ref<const std::string&>());
  };
  return row;
}

JudgeOption python_option() {
  JudgeOption row = option("python", Kind::kText,
                           "the python3 whose PyTorch runs candidates in Python and, on a GPU, the "
                           "reference: auto (default: the first "
                           "on PATH that has it), a program, or none (the native baseline is the reference)",
                           &JudgeOptions::python);
  row.value_name = "PATH";
  return row;
}

JudgeOption python_path_option() {
  JudgeOption row =
      option("python_path", Kind::kText,
             "folders with further packages for Python, separated by colons: where the wheels of "
             "TileLang or CuTe-DSL were unpacked",
             &JudgeOptions::python_path);
  row.value_name = "DIR";
  return row;
}

JudgeOption baselines_option() {
  JudgeOption row = option(
      "baselines", Kind::kChoices,
      fmt::format("on a GPU: arms of PyTorch to be timed against; the first is gate two's: {}, or lib:NAME, "
                  "a library of the problem's reference.py",
                  join(python_arms(), ",")),
      &JudgeOptions::baselines);
  row.choices = python_arms();
  row.other_choice = is_library_arm;
  row.others = "lib:NAME; the native baseline always runs";
  return row;
}

std::vector<JudgeOption> make_table() {
  const JudgeOptions standard;
  return {
      backend_option(),
      execution_option(),
      number("budget",
             fmt::format("seconds of GPU timing a candidate (default {:g})", standard.budget_seconds),
             &JudgeOptions::budget_seconds, 1.0, 3600.0),
      number("timeout", fmt::format("seconds that one run may take (default {:g})", standard.timeout_seconds),
             &JudgeOptions::timeout_seconds, 0.1, 3600.0),
      number("hidden", fmt::format("hidden sizes drawn for gate one (default {})", standard.hidden_cases),
             &JudgeOptions::hidden_cases, 0, 100),
      python_option(),
      python_path_option(),
      baselines_option(),
      flag("quick",
           "a first look: on the CPU outputs alone, without nvcc and without the builds that look for bad "
           "accesses and races; on a GPU fewer cases and samples, never a verdict",
           &JudgeOptions::quick),
      flag("sustained", "on a GPU: also time launches back to back on a warm chip (shown, never graded)",
           &JudgeOptions::sustained, "quick"),
      flag("check_races",
           "on a GPU: also run the instrumented builds on the CPU, which find bad accesses and races",
           &JudgeOptions::check_races, "quick"),
  };
}

Result<void> misfit(const JudgeOption& option, const std::string& what, std::string hint = {}) {
  return fail(fmt::format("{}: {}", option.flag(), what), {}, std::move(hint));
}

Result<void> check_choice(const JudgeOption& option, const std::string& word) {
  if (std::find(option.choices.begin(), option.choices.end(), word) != option.choices.end()) return {};
  if (option.other_choice && option.other_choice(word)) return {};
  const auto meant = nearest(word, option.choices);
  return misfit(option, fmt::format("{} is none of {}{}{}", word, join(option.choices, ", "),
                                    option.others.empty() ? "" : " or " + option.others,
                                    meant ? "; did you mean " + *meant + "?" : ""));
}

Result<void> check_range(const JudgeOption& option, double value) {
  if (value >= option.low && value <= option.high) return {};
  return misfit(option,
                fmt::format("{:g} is not in the range from {:g} to {:g}", value, option.low, option.high));
}

Result<void> check(const JudgeOption& option, const Json& value) {
  const auto wrong = [&](std::string_view wanted) {
    return misfit(option, fmt::format("takes {}, not {}", wanted, value.dump()));
  };
  switch (option.kind) {
    case Kind::kFlag:
      return value.is_boolean() ? Result<void>() : wrong("true or false");
    case Kind::kInteger:
      return value.is_number_integer() ? check_range(option, value.get<double>()) : wrong("a whole number");
    case Kind::kNumber:
      return value.is_number() ? check_range(option, value.get<double>()) : wrong("a number");
    case Kind::kText:
      return value.is_string() ? Result<void>() : wrong("a text");
    case Kind::kChoice:
      return value.is_string() ? check_choice(option, value.get<std::string>()) : wrong("a word");
    case Kind::kChoices:
      break;
  }
  if (!value.is_array()) return wrong("a list");
  for (const Json& each : value) {
    if (!each.is_string()) return wrong("a list of words");
    CAPSTONE_CHECK(check_choice(option, each.get<std::string>()));
  }
  return {};
}

// The word of a command line as JSON; a text where it cannot be read as what the option takes: check() then
// says so.
Json value_of(const JudgeOption& option, std::string_view word) {
  const char* end = word.data() + word.size();
  switch (option.kind) {
    case Kind::kFlag:
      if (word == "true" || word == "false") return word == "true";
      break;
    case Kind::kInteger: {
      std::int64_t number = 0;
      if (auto [stop, code] = std::from_chars(word.data(), end, number); code == std::errc() && stop == end)
        return number;
      break;
    }
    case Kind::kNumber: {
      double number = 0;
      if (auto [stop, code] = std::from_chars(word.data(), end, number); code == std::errc() && stop == end)
        return number;
      break;
    }
    case Kind::kChoice:
      return ascii_lower(word);
    case Kind::kChoices:
      return split(word, ',');
    case Kind::kText:
      break;
  }
  return std::string(word);
}

}  // namespace

std::string JudgeOption::flag() const { return "--" + replace_all(std::string(key), "_", "-"); }

Result<void> JudgeOption::set_json(JudgeOptions& options, const Json& value) const {
  CAPSTONE_CHECK(check(*this, value));
  put(options, value);
  return {};
}

Result<void> JudgeOption::set(JudgeOptions& options, std::string_view word) const {
  return set_json(options, value_of(*this, word));
}

std::vector<std::string> JudgeOption::words(const JudgeOptions& options) const {
  const Json value = get(options);
  switch (kind) {
    case Kind::kFlag:
      return value.get<bool>() ? std::vector<std::string>{flag()} : std::vector<std::string>{};
    case Kind::kChoices:
      if (value.empty()) return {};
      return {flag(), join(value.get<std::vector<std::string>>(), ",")};
    case Kind::kNumber:
      return {flag(), fmt::format("{}", value.get<double>())};
    case Kind::kInteger:
      return {flag(), std::to_string(value.get<std::int64_t>())};
    case Kind::kChoice:
    case Kind::kText:
      break;
  }
  if (value.get_ref<const std::string&>().empty()) return {};
  return {flag(), value.get<std::string>()};
}

std::span<const JudgeOption> judge_options() {
  static const std::vector<JudgeOption> table = make_table();
  return table;
}

Result<void> validate(const JudgeOptions& options) {
  const Json values = json_of(options);
  for (const JudgeOption& option : judge_options()) {
    const Json& value = values.at(std::string(option.key));
    CAPSTONE_CHECK(check(option, value));
    if (option.excludes.empty() || !value.get<bool>() || !values.at(std::string(option.excludes)).get<bool>())
      continue;
    const auto table = judge_options();
    const auto other = std::find_if(table.begin(), table.end(),
                                    [&](const JudgeOption& each) { return each.key == option.excludes; });
    return fail(fmt::format("{} excludes {}", option.flag(), other->flag()));
  }
  return {};
}

std::vector<std::string> words_of(const JudgeOptions& options) {
  std::vector<std::string> all;
  for (const JudgeOption& option : judge_options())
    for (std::string& word : option.words(options)) all.push_back(std::move(word));
  return all;
}

Json json_of(const JudgeOptions& options) {
  Json object = Json::object();
  for (const JudgeOption& option : judge_options()) object[std::string(option.key)] = option.get(options);
  return object;
}

Result<JudgeOptions> judge_options_from(const Json& object) {
  if (!object.is_object()) return fail("the judge's options are not an object");
  JudgeOptions options;
  for (const JudgeOption& option : judge_options())
    if (auto value = object.find(std::string(option.key)); value != object.end())
      CAPSTONE_CHECK(option.set_json(options, *value));
  CAPSTONE_CHECK(validate(options));
  return options;
}

}  // namespace capstone
