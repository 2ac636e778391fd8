#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/context.h"
#include "harness/base/text.h"

namespace capstone::cli {
namespace {

struct Node {
  std::string path;                ///< "llm add"; empty at the top
  std::vector<std::string> words;  ///< subcommands and long options
};

// Taken from the parser, so completions always match the commands.
void collect(const CLI::App& app, const std::string& path, std::vector<Node>& nodes) {
  Node node{path, {}};
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App* s) { return !s->get_name().empty(); }))
    node.words.push_back(sub->get_name());
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) node.words.push_back("--" + name);
  nodes.push_back(node);
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App* s) { return !s->get_name().empty(); }))
    collect(*sub, path.empty() ? sub->get_name() : path + " " + sub->get_name(), nodes);
}

std::string bash(const std::vector<Node>& nodes) {
  std::string text =
      "# capstone completion for bash: eval \"$(capstone completion bash)\"\n_capstone() {\n  local "
      "path=\"\" word\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n    case \"$path $word\" in\n";
  for (const Node& node : nodes)
    if (!node.path.empty()) {
      std::size_t cut = node.path.rfind(' ');
      std::string parent = cut == std::string::npos ? "" : node.path.substr(0, cut),
                  leaf = cut == std::string::npos ? node.path : node.path.substr(cut + 1);
      text += fmt::format("      \"{} {}\") path=\"{}\" ;;\n", parent, leaf, node.path);
    }
  text += "    esac\n  done\n  local words=\"\"\n  case \"$path\" in\n";
  for (const Node& node : nodes)
    text += fmt::format("    \"{}\") words=\"{}\" ;;\n", node.path, join(node.words, " "));
  text +=
      "  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n}\ncomplete -o "
      "default -F _capstone capstone";
  return text;
}

std::string fish(const std::vector<Node>& nodes) {
  std::string text = "# capstone completion for fish: capstone completion fish | source";
  for (const Node& node : nodes)
    for (const std::string& word : node.words) {
      std::string condition =
          node.path.empty() ? "__fish_use_subcommand" : "__fish_seen_subcommand_from " + node.path;
      text += word.starts_with("--")
                  ? fmt::format("\ncomplete -c capstone -n '{}' -l {}", condition, word.substr(2))
                  : fmt::format("\ncomplete -c capstone -f -n '{}' -a {}", condition, word);
    }
  return text;
}

}  // namespace

void add_completion(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand("completion", "print a completion script for a shell");
  auto shell = std::make_shared<std::string>("bash");
  command->add_option("shell", *shell, "bash, zsh or fish")->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([&app, &context, &action, shell] {
    action = [&app, &context, shell]() -> Result<ExitCode> {
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
