#include "harness/project/reply/prompt_template.h"

#include <ctemplate/template.h>

#include "harness/base/files.h"
#include "harness/base/text.h"

namespace capstone {
namespace {

constexpr std::size_t kMaxPromptText = std::size_t{1} << 20;  // [B] of a template, a statement or a reference

// The values of a name, or the elements of a section, as seen from inside of nested sections.
using Scope = std::vector<const PromptValues*>;

bool has_value(const Scope& scope, const std::string& name) {
  for (const PromptValues* values : scope)
    if (values->values.count(name)) return true;
  return false;
}

// ctemplate replaces an unknown name by nothing. Walks the template as ctemplate will, and finds the first
// one.
std::string missing_name(const std::string& text, std::size_t begin, std::size_t end, const Scope& scope) {
  for (std::size_t at = text.find("{{", begin); at < end; at = text.find("{{", at)) {
    const std::size_t close = text.find("}}", at);
    if (close >= end) return "{{ without a matching }}";
    const std::string name = text.substr(at + 2, close - at - 2);
    at = close + 2;
    if (name.starts_with("!")) continue;
    if (!name.starts_with("#")) {
      if (!has_value(scope, name)) return "no value for {{" + name + "}}";
      continue;
    }
    const std::string section = name.substr(1);
    const std::size_t last = text.find("{{/" + section + "}}", at);
    if (last >= end) return "{{#" + section + "}} is never closed";
    const auto shown = scope.back()->sections.find(section);
    if (shown != scope.back()->sections.end())
      for (const PromptValues& element : shown->second) {
        Scope inner = scope;
        inner.push_back(&element);
        if (std::string missing = missing_name(text, at, last, inner); !missing.empty()) return missing;
      }
    at = last + section.size() + 5;
  }
  return {};
}

void fill(const PromptValues& values, ctemplate::TemplateDictionary& dictionary) {
  for (const auto& [name, value] : values.values) dictionary.SetValue(name, value);
  for (const auto& [name, elements] : values.sections)
    for (const PromptValues& element : elements) fill(element, *dictionary.AddSectionDictionary(name));
}

}  // namespace

Result<std::string> expand_prompt(const Resources& resources, const std::string& name,
                                  const PromptValues& values) {
  const std::filesystem::path path = resources.templates() / "prompts" / name;
  CAPSTONE_TRY(const auto source, read_file(path, kMaxPromptText));
  if (std::string missing = missing_name(source, 0, source.size(), {&values}); !missing.empty())
    return fail(std::move(missing), path.string());
  ctemplate::TemplateCache cache;
  if (!cache.StringToTemplateCache(name, source, ctemplate::DO_NOT_STRIP))
    return fail("the prompt's template cannot be parsed", path.string(), "install capstone again",
                ExitCode::kEnvironment);
  ctemplate::TemplateDictionary dictionary("prompt");
  fill(values, dictionary);
  std::string prompt;
  if (!cache.ExpandWithData(name, ctemplate::DO_NOT_STRIP, &dictionary, nullptr, &prompt))
    return fail("the prompt's template cannot be expanded", path.string(), "install capstone again",
                ExitCode::kEnvironment);
  return prompt;
}

Result<std::string> prompt_text_of(const std::filesystem::path& path) {
  CAPSTONE_TRY(auto bytes, read_file(path, kMaxPromptText));
  std::string text = replace_all(to_utf8(bytes), "\r\n", "\n");
  return std::string(trim(text));
}

}  // namespace capstone
