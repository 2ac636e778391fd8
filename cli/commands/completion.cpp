#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/context.h"
#include "cli/help.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/project/ledger/ledger.h"

namespace capstone::cli {
namespace {

// Names that a shell asks for while the user types; capstone prints them, see print_values().
constexpr const char *kProblems = "problems", *kVersions = "versions";

struct Values {
  std::vector<std::string> words;  ///< known now
  std::string kind;                ///< kProblems or kVersions; empty: neither
  bool empty() const { return words.empty() && kind.empty(); }
};

struct Node {
  std::string path;                                     ///< "llm add"; empty at the top
  std::vector<std::string> words;                       ///< subcommands and long options
  std::vector<std::pair<std::string, Values>> options;  ///< "--backend" and its values
  std::vector<Values> arguments;
};

// The choices of an option, from its type name: "cuda|emulated" or "TEXT:{human,llm}".
Values values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name(), name = option.get_single_name();
  if (name == "problem") return {{}, kProblems};
  if (type.starts_with("VERSION")) return {{}, kVersions};
  const std::size_t open = type.find('{'), close = type.find('}');
  if (open != std::string::npos && close != std::string::npos) {
    Values values{split(type.substr(open + 1, close - open - 1), ','), {}};
    for (std::string& word : values.words) word = word.substr(0, word.find("->"));  // "races->1": an enum's
    return values;
  }
  if (type.find('|') != std::string::npos) return {split(type, '|'), {}};
  return {};
}

// Its name, and what else a user may type for it.
std::vector<std::string> names_of(const CLI::App& command) {
  std::vector<std::string> names{command.get_name()};
  names.insert(names.end(), command.get_aliases().begin(), command.get_aliases().end());
  return names;
}

// Taken from the parser, so completions always match the commands.
void collect(const CLI::App& app, const std::string& path, std::vector<Node>& nodes) {
  Node node{path, {}, {}, {}};
  for (const CLI::App* sub : visible_commands(app))
    for (const std::string& name : names_of(*sub)) node.words.push_back(name);
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    const Values values = option->get_expected_max() == 0 ? Values() : values_of(*option);
    for (const std::string& name : option->get_lnames()) {
      node.words.push_back("--" + name);
      if (!values.empty()) node.options.emplace_back("--" + name, values);
    }
    if (option->get_positional() && !values.empty()) node.arguments.push_back(values);
  }
  nodes.push_back(node);
  for (const CLI::App* sub : visible_commands(app))
    for (const std::string& name : names_of(*sub))
      collect(*sub, path.empty() ? name : path + " " + name, nodes);
}

// The values as words of a bash string in double quotes.
std::string in_bash(const Values& values) {
  if (values.kind.empty()) return join(values.words, " ");
  return fmt::format("$(capstone completion --values {} 2>/dev/null)", values.kind);
}

// zsh reads this, too, where `path` is the PATH.
std::string bash(const std::vector<Node>& nodes) {
  std::string text =
      "# capstone completion for bash: eval \"$(capstone completion bash)\"\n_capstone() {\n  local "
      "where=\"\" word prev=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
      "  for word in \"${COMP_WORDS[@]:1:$((COMP_CWORD-1))}\"; do\n    case \"$where $word\" in\n";
  for (const Node& node : nodes)
    if (!node.path.empty()) {
      std::size_t cut = node.path.rfind(' ');
      std::string parent = cut == std::string::npos ? "" : node.path.substr(0, cut),
                  leaf = cut == std::string::npos ? node.path : node.path.substr(cut + 1);
      text += fmt::format("      \"{} {}\") where=\"{}\" ;;\n", parent, leaf, node.path);
    }
  text += "    esac\n  done\n  local words=\"\"\n  case \"$where $prev\" in\n";
  for (const Node& node : nodes)
    for (const auto& [option, values] : node.options)
      text += fmt::format("    \"{} {}\") words=\"{}\" ;;\n", node.path, option, in_bash(values));
  text += "    *) case \"$where\" in\n";
  for (const Node& node : nodes) {
    std::string words = join(node.words, " ");
    for (const Values& values : node.arguments) words += " " + in_bash(values);
    text += fmt::format("      \"{}\") words=\"{}\" ;;\n", node.path, words);
  }
  text +=
      "    esac ;;\n  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n}\n"
      "complete -o default -F _capstone capstone";
  return text;
}

std::string in_fish(const Values& values) {
  if (values.kind.empty()) return join(values.words, " ");
  return fmt::format("(capstone completion --values {} 2>/dev/null)", values.kind);
}

std::string fish(const std::vector<Node>& nodes) {
  std::string text = "# capstone completion for fish: capstone completion fish | source";
  for (const Node& node : nodes) {
    std::string condition = "__fish_use_subcommand";
    if (!node.path.empty())
      condition =
          "__fish_seen_subcommand_from " + replace_all(node.path, " ", "; and __fish_seen_subcommand_from ");
    for (const std::string& word : node.words) {
      std::string values;
      for (const auto& [option, its] : node.options)
        if (option == word) values = fmt::format(" -x -a '{}'", in_fish(its));
      text += word.starts_with("--")
                  ? fmt::format("\ncomplete -c capstone -n '{}' -l {}{}", condition, word.substr(2), values)
                  : fmt::format("\ncomplete -c capstone -f -n '{}' -a {}", condition, word);
    }
    for (const Values& values : node.arguments)
      text += fmt::format("\ncomplete -c capstone -n '{}' -a '{}'", condition, in_fish(values));
  }
  return text;
}

// One name a line. Outside a project there are no versions, and that is no error for a shell.
Result<ExitCode> print_values(const Context& context, const std::string& kind) {
  if (kind == kProblems) {
    std::error_code code;
    for (const auto& entry : fs::directory_iterator(context.resources.problems(), code))
      if (fs::exists(entry.path() / "problem.yaml", code))
        context.terminal.out(entry.path().filename().string());
    return ExitCode::kDone;
  }
  const auto project = workflows::project_here(context);
  if (!project) return ExitCode::kDone;
  CAPSTONE_TRY(const LedgerView ledger, read_ledger(project->ledger()));
  for (const char* candidate : {"human", "together"})
    for (const Measurement* m : ledger.versions(candidate)) context.terminal.out(m->version);
  return ExitCode::kDone;
}

}  // namespace

void add_completion(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand("completion", "print a completion script for a shell");
  auto shell = std::make_shared<std::string>("bash");
  command->add_option("shell", *shell, "bash, zsh or fish")->check(CLI::IsMember({"bash", "zsh", "fish"}));
  auto values = std::make_shared<std::string>();
  command->add_option("--values", *values)->check(CLI::IsMember({kProblems, kVersions}))->group("");
  command->callback([&app, &context, &action, shell, values] {
    action = [&app, &context, shell, values]() -> Result<ExitCode> {
      if (!values->empty()) return print_values(context, *values);
      std::vector<Node> nodes;
      collect(app, "", nodes);
      if (*shell == "fish")
        context.terminal.out(fish(nodes));
      else
        context.terminal.out((*shell == "zsh" ? "autoload -U +X bashcompinit && bashcompinit\n" : "") +
                             bash(nodes));
      return ExitCode::kDone;
    };
  });
}

}  // namespace capstone::cli
