#include "cli/parse_errors.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <regex>

#include "harness/base/spelling.h"
#include "harness/base/text.h"

namespace capstone::cli {
namespace {

// The names that are known at this point of the command line.
std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App* s) { return !s->get_name().empty(); }))
    names.push_back(sub->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

// The subcommand that the words chose, as deep as they go.
const CLI::App* chosen(const CLI::App* app, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    const CLI::App* next = nullptr;
    for (const CLI::App* sub : app->get_subcommands([](const CLI::App*) { return true; }))
      if (sub->check_name(word)) next = sub;
    if (next) app = next;
  }
  return app;
}

// CLI11's message about a value, rewritten: it prints limits with all their digits. Version 2.2 and before
// say "1 to 3", later ones "[1 - 3]".
std::string plain(const std::string& what) {
  std::smatch m;
  static const std::regex range(R"(^(\S+): Value (.*) not in range \[?(\S+) (?:to|-) ([^\s\]]+)\]?$)"),
      conversion(R"(^Could not convert: (\S+) = (.*)$)");
  if (std::regex_match(what, m, conversion))
    return fmt::format("{} takes a number, not \"{}\"", m[1].str(), m[2].str());
  if (!std::regex_match(what, m, range)) return what;
  char* end = nullptr;
  const std::string value = m[2];
  const double low = std::strtod(m[3].str().c_str(), nullptr),
               high = std::strtod(m[4].str().c_str(), nullptr);
  const double number = std::strtod(value.c_str(), &end);
  if (value.empty() || *end) return fmt::format("{} takes a number, not \"{}\"", m[1].str(), value);
  if (high > 1e18 && number <= 0)
    return fmt::format("{} must {}, not {}", m[1].str(), number < 0 ? "not be negative" : "be greater than 0",
                       value);
  if (high > 1e18) return fmt::format("{}: {} cannot be used", m[1].str(), value);
  return fmt::format("{}: {} is not in range {:.12g} to {:.12g}", m[1].str(), value, low, high);
}

// "capstone llm add"
std::string command_name(const CLI::App* at) {
  if (!at->get_parent()) return "capstone";
  const CLI::App* group = at->get_parent();
  return "capstone " + (group->get_parent() ? group->get_name() + " " : "") + at->get_name();
}

bool is_chosen(const CLI::App* at, const std::string& name) {
  for (; at; at = at->get_parent())
    if (at->get_name() == name) return true;
  return false;
}

bool is_option_of_parent(const CLI::App* at, const std::string& option) {
  for (const CLI::App* a = at->get_parent(); a; a = a->get_parent()) {
    const auto names = option_names(*a);
    if (std::find(names.begin(), names.end(), option) != names.end()) return true;
  }
  return false;
}

// If the word is not known here, says so in `error`, with the nearest name.
bool explain_unknown(const CLI::App* at, const std::string& word, Error& error) {
  const bool flag = word.starts_with("--");
  const std::string bare = flag ? word.substr(0, word.find('=')) : word;
  const auto names = flag ? option_names(*at) : subcommand_names(*at);
  if (names.empty() || std::find(names.begin(), names.end(), bare) != names.end()) return false;
  if (is_chosen(at, bare) || (flag && is_option_of_parent(at, bare)) || (!flag && word.starts_with("-")))
    return false;
  const std::string command = command_name(at);
  error.what = flag ? "unknown option " + bare + " for `" + command + "`" : "unknown command " + bare;
  const bool has_show = !flag && std::find(names.begin(), names.end(), "show") != names.end();
  if (auto meant = nearest(bare, names))
    error.hint = "did you mean `" + *meant + "`?  (" + error.hint + ")";
  else if (has_show)
    error.hint = "did you mean `" + command + " show " + bare + "`?  (" + error.hint + ")";
  return true;
}

}  // namespace

Error explain_parse_error(const CLI::App& app, const CLI::ParseError& problem,
                          const std::vector<std::string>& words) {
  const CLI::App* at = chosen(&app, words);
  Error error{problem.what(), {}, {}, ExitCode::kUsage};
  error.what = plain(replace_all(error.what, "\n", " "));
  error.hint = "run: " + command_name(at) + " --help";
  for (const std::string& word : app.remaining(true)) {
    if (explain_unknown(at, word, error)) break;
    if (word.size() > 2 && word[0] == '-' && word[1] != '-')
      error.hint += fmt::format("; a file or folder of that name is written ./{}", word);
  }
  return error;
}

std::optional<Error> unknown_command(const CLI::App& app, const std::vector<std::string>& words) {
  const std::vector<std::string> unread = app.remaining(true);
  if (unread.empty() || unread.front().starts_with("-")) return std::nullopt;
  const CLI::App* at = chosen(&app, words);
  Error error{{}, {}, "run: " + command_name(at) + " --help", ExitCode::kUsage};
  if (!explain_unknown(at, unread.front(), error)) return std::nullopt;
  return error;
}

}  // namespace capstone::cli
