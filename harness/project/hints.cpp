#include "harness/project/hints.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "harness/base/files.h"
#include "harness/base/text.h"

namespace capstone {
namespace {

constexpr std::size_t kMaxFile = std::size_t{64} << 10;  // [B]

enum class Open { kNothing, kParagraph, kItem };  // what the next line may continue

// As in Markdown: a line of a paragraph may begin with "64. ", only a list's first item ends the paragraph.
bool starts_item(std::string_view line, Open open) {
  const std::size_t digits = std::min(line.find_first_not_of("0123456789"), line.size());
  const bool numbered = digits > 0 && line.substr(digits).starts_with(". ");
  return line.starts_with("- ") || (numbered && (open != Open::kParagraph || line.starts_with("1. ")));
}

// One line for each paragraph and item: a terminal breaks them at its own width.
std::string unwrapped(const std::vector<std::string_view>& lines) {
  std::string text;
  bool fenced = false;
  Open open = Open::kNothing;
  for (const std::string_view raw : lines) {
    const std::string_view line = trim(raw);
    const bool fence = line.starts_with("```"), item = starts_item(raw, open);
    if (fenced || fence || line.empty() || item || open == Open::kNothing) {
      text += text.empty() ? "" : "\n";
      text += fenced && !fence ? raw : line;
      open = item ? Open::kItem : Open::kParagraph;
    } else {
      text.append(" ").append(line);
    }
    fenced ^= fence;
    if (fenced || fence || line.empty()) open = Open::kNothing;
  }
  return std::string(trim(text));
}

}  // namespace

Result<std::vector<std::string>> parse_hints(std::string_view markdown, const std::string& file) {
  std::vector<std::vector<std::string_view>> parts;
  const auto refuse = [&](std::size_t line, std::string what) {
    return fail(
        std::move(what), fmt::format("{}:{}", file, line),
        fmt::format("write `## Hint 1` to `## Hint {}`, in this order, with a text below each", kHintLevels));
  };
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < markdown.size();) {
    const std::size_t end = std::min(markdown.find('\n', begin), markdown.size());
    const std::string_view line = markdown.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (!line.starts_with("## ")) {
      if (!parts.empty()) parts.back().push_back(line);
      continue;
    }
    const std::string wanted = fmt::format("## Hint {}", parts.size() + 1);
    if (trim(line) != wanted || parts.size() == kHintLevels)
      return refuse(number, fmt::format("`{}` is not the heading of the next hint", trim(line)));
    parts.emplace_back();
  }
  if (parts.size() != kHintLevels)
    return refuse(std::max<std::size_t>(number, 1),
                  fmt::format("{} hints, not {}", parts.size(), kHintLevels));
  std::vector<std::string> hints;
  for (const auto& part : parts) {
    hints.push_back(to_utf8(unwrapped(part)));
    if (hints.back().empty()) return refuse(number, fmt::format("hint {} is empty", hints.size()));
  }
  return hints;
}

Result<std::vector<std::string>> hints_of(const Problem& problem, const Resources& resources) {
  std::error_code code;
  for (const fs::path& file :
       {problem.folder / "hints.md", resources.problems() / "hints" / (problem.id + ".md")}) {
    if (!fs::exists(file, code)) continue;
    CAPSTONE_TRY(const std::string text, read_file(file, kMaxFile));
    return parse_hints(text, file.string());
  }
  return fail(fmt::format("the problem {} has no hints", problem.id), problem.folder.string(),
              "what helps without them: `capstone explain` (what each line costs), and `capstone checkin "
              "--stuck \"…\"` for your mentor");
}

Result<int> hint_to_show(int asked, int taken, int last) {
  if (asked < 0 || asked > last)
    return fail(fmt::format("there is no hint {}", asked), {},
                fmt::format("hints are numbered from 1 to {}", last));
  if (asked > taken + 1)
    return fail(fmt::format("hint {} comes after hint {}, which was not taken yet", asked, asked - 1), {},
                fmt::format("take hint {} first: it may be enough", taken + 1));
  return asked ? asked : std::min(taken + 1, last);
}

}  // namespace capstone
