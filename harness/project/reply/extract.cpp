#include "harness/project/reply/extract.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>

#include "harness/base/ascii.h"
#include "harness/base/text.h"
#include "harness/project/reply/api_reply.h"
#include "harness/project/reply/code_shape.h"
#include "harness/project/reply/difference.h"
#include "harness/project/reply/markdown.h"

namespace capstone {
namespace {

constexpr std::string_view kCutOff = "the reply ends inside a code block: probably cut off";
constexpr std::string_view kAskAgain =
    "ask for one complete .cu file that defines launch() as problem/launch.h declares it";

// ---- Cleaning
// -------------------------------------------------------------------------------------------------

std::string with_plain_line_ends(std::string_view text, Extraction& out) {
  std::string plain;
  plain.reserve(text.size());
  int changed = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      plain += text[i];
      continue;
    }
    plain += '\n';
    if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
    ++changed;
  }
  if (changed > 0)
    out.notes.push_back(fmt::format("{} Windows or old Mac line ends were turned into \\n", changed));
  return plain;
}

// Drops control characters: sources do not need them, and the Markdown parser uses them as placeholders.
std::string without_controls(const std::string& text, Extraction& out) {
  std::string plain;
  plain.reserve(text.size());
  std::size_t nul = 0, other = 0;
  for (char c : text) {
    bool control = (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7f;
    if (!control)
      plain += c;
    else if (c == '\0')
      ++nul;
    else if (c == '\f' || c == '\v')
      plain += ' ';
    else
      ++other;
  }
  if (nul > 0) out.notes.push_back(fmt::format("{} NUL bytes were left out", nul));
  if (other > 0) out.notes.push_back(fmt::format("{} control characters were left out", other));
  return plain;
}

std::string cleaned(std::string_view reply, Extraction& out) {
  if (reply.starts_with("\xEF\xBB\xBF")) {
    reply.remove_prefix(3);
    out.notes.push_back("a byte order mark was left out");
  }
  std::string text = without_controls(with_plain_line_ends(reply, out), out);
  if (is_utf8(text)) return text;
  out.notes.push_back("bytes that are not UTF-8 were replaced by U+FFFD");
  return to_utf8(text);
}

// Reasoning models may write their thoughts first; code drafts in that part are not the answer.
std::string without_thinking(const std::string& text, Extraction& out) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kTags = {
      {{"<think>", "</think>"}, {"<thinking>", "</thinking>"}}};
  std::string_view start = trim(text);
  for (auto [open, close] : kTags) {
    if (!start.starts_with(open)) continue;
    std::size_t end = text.find(close);
    if (end == std::string::npos) {
      out.notes.push_back("the reply ends inside its thinking part: probably cut off");
      return text;
    }
    out.notes.push_back("the thinking part of the reply was left out");
    return text.substr(end + close.size());
  }
  return text;
}

// ---- Blocks
// ---------------------------------------------------------------------------------------------------

struct Piece {
  CodeBlock block;
  CodeShape shape;
  int number = 0;  // among all blocks, from 1
  bool is_python = false, is_patch = false, is_cuda = false;
};

bool any_line_starts(std::string_view text, std::initializer_list<std::string_view> starts) {
  for (std::size_t at = 0; at < text.size();) {
    std::string_view line = text.substr(at, std::min(text.find('\n', at), text.size()) - at);
    for (std::string_view start : starts)
      if (line.starts_with(start)) return true;
    at += line.size() + 1;
  }
  return false;
}

bool reads_as_python(std::string_view text) {
  return any_line_starts(text, {"import torch", "from torch", "import numpy", "import triton", "import os",
                                "import math", "class Model", "@triton", "def "});
}

bool is_cpp_tag(const std::string& tag) {
  constexpr std::array<std::string_view, 11> kTags = {"cuda", "cu",  "cpp", "c++", "c",       "cc",
                                                      "cxx",  "cuh", "h",   "hpp", "cuda-cpp"};
  return std::find(kTags.begin(), kTags.end(), tag) != kTags.end();
}

bool reads_as_cuda(const Piece& piece) {
  if (piece.is_python || piece.is_patch) return false;
  if (piece.shape.has_kernel || piece.shape.defines_launch || is_cpp_tag(piece.block.language)) return true;
  if (!piece.block.language.empty()) return false;
  std::string_view text = piece.block.text;
  return piece.shape.has_include || (text.find('{') != text.npos && text.find(';') != text.npos);
}

// "cuda", "no language", "tagged python"; empty for blocks that cannot have a tag.
std::string tag_of(const CodeBlock& block) {
  if (block.kind != CodeBlock::Kind::kFenced) return "";
  if (block.language.empty()) return "no language";
  return is_cpp_tag(block.language) ? block.language : "tagged " + block.language;
}

std::string unescaped(std::string text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kEntities = {{{"&lt;", "<"},
                                                                                       {"&gt;", ">"},
                                                                                       {"&quot;", "\""},
                                                                                       {"&#39;", "'"},
                                                                                       {"&#x27;", "'"},
                                                                                       {"&nbsp;", " "},
                                                                                       {"&amp;", "&"}}};
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    auto found = std::find_if(kEntities.begin(), kEntities.end(), [&](const auto& entity) {
      return text[i] == '&' && std::string_view(text).substr(i).starts_with(entity.first);
    });
    out += found == kEntities.end() ? std::string_view(text).substr(i, 1) : found->second;
    i += found == kEntities.end() ? 1 : found->first.size();
  }
  return out;
}

// Escaped as a whole: it has entities and not a single bare '<', which every CUDA file contains.
bool is_escaped(std::string_view text) {
  return text.find('<') == text.npos && text.find("&lt;") != text.npos;
}

void unescape_block(std::string& text, Extraction& out) {
  if (!is_escaped(text)) return;
  text = unescaped(std::move(text));
  const std::string note = "HTML entities (&lt; and the like) were turned back into characters";
  if (std::find(out.notes.begin(), out.notes.end(), note) == out.notes.end()) out.notes.push_back(note);
}

Piece make_piece(CodeBlock block, int number) {
  Piece piece;
  piece.block = std::move(block);
  piece.number = number;
  return piece;
}

// The views in `shape` point into the block's text, so this is called when the piece has its final place.
void judge_piece(Piece& piece) {
  piece.is_patch =
      piece.block.language == "diff" || piece.block.language == "patch" || looks_like_patch(piece.block.text);
  piece.is_python = !piece.is_patch && reads_as_python(piece.block.text);
  piece.shape = shape_of(piece.block.text);
  piece.is_cuda = reads_as_cuda(piece);
}

// A "part 2" may cut a function in two: blocks whose braces balance only together are joined into one.
std::vector<Piece> with_continuations(std::vector<Piece> pieces, Extraction& out) {
  std::vector<Piece> merged;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    merged.push_back(std::move(pieces[i]));
    Piece& head = merged.back();
    bool open = head.is_cuda && head.shape.depth > 0 && !head.block.cut_off;
    if (!open || i + 1 >= pieces.size()) continue;
    Piece& next = pieces[i + 1];
    if (!next.is_cuda || !next.shape.inside_out || head.shape.depth + next.shape.depth != 0) continue;
    out.notes.push_back(
        fmt::format("block {} ends inside a function and block {} continues it", head.number, next.number));
    head.block.text += next.block.text;
    head.block.cut_off = next.block.cut_off;
    ++i;
    judge_piece(head);
  }
  for (Piece& piece : merged) piece.shape = shape_of(piece.block.text);  // the strings have moved
  return merged;
}

// ---- Choosing
// -------------------------------------------------------------------------------------------------

using Indices = std::vector<std::size_t>;

class Chooser {
 public:
  Chooser(const std::vector<Piece>& pieces, Extraction& out) : pieces_(pieces), out_(out) {
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      if (!pieces_[i].is_cuda) continue;
      cuda_.push_back(i);
      if (pieces_[i].shape.defines_launch) launchers_.push_back(i);
      for (std::string_view name : pieces_[i].shape.defines) definers_[name].push_back(i);
    }
  }

  bool any() const { return !cuda_.empty(); }

  void choose() {
    if (launchers_.empty()) return take(without_repeats(cuda_), "");
    std::size_t main = main_block();
    Indices parts = helpers_of(main);
    parts.push_back(main);
    take(parts, why(main));
  }

 private:
  bool is_launcher(std::size_t i) const { return pieces_[i].shape.defines_launch; }

  // The last complete alternative: finished, nothing left out, and it needs nothing that only another
  // alternative has.
  std::size_t main_block() {
    if (launchers_.size() == 1) return launchers_.front();
    for (auto it = launchers_.rbegin(); it != launchers_.rend(); ++it) {
      const Piece& piece = pieces_[*it];
      if (!piece.block.cut_off && !piece.shape.unfinished && !piece.shape.leaves_out && !needs_rival(*it)) {
        note_passed_over(it);
        complete_ = true;
        return *it;
      }
    }
    out_.notes.push_back("none of the blocks that define launch() is complete; the last one was taken");
    return launchers_.back();
  }

  void note_passed_over(Indices::reverse_iterator chosen) {
    for (auto it = launchers_.rbegin(); it != chosen; ++it)
      out_.notes.push_back(
          fmt::format("block {} also defines launch(), but is not complete by itself", pieces_[*it].number));
  }

  bool needs_rival(std::size_t main) const {
    const CodeShape& shape = pieces_[main].shape;
    return std::any_of(shape.uses.begin(), shape.uses.end(), [&](std::string_view name) {
      if (shape.defines.count(name)) return false;
      auto found = definers_.find(name);
      return found != definers_.end() &&
             std::all_of(found->second.begin(), found->second.end(),
                         [&](std::size_t i) { return i != main && is_launcher(i); });
    });
  }

  // Blocks that define what is used but not defined yet, transitively. Of several, the last one before
  // launch()'s.
  Indices helpers_of(std::size_t main) const {
    std::set<std::size_t> chosen;
    std::set<std::string_view> defined = pieces_[main].shape.defines;
    std::vector<std::size_t> open = {main};
    while (!open.empty()) {
      const CodeShape& shape = pieces_[open.back()].shape;
      open.pop_back();
      for (std::string_view name : shape.uses) {
        if (defined.count(name)) continue;
        std::optional<std::size_t> helper = definer(name, main);
        if (!helper || !chosen.insert(*helper).second) continue;
        const auto& more = pieces_[*helper].shape.defines;
        defined.insert(more.begin(), more.end());
        open.push_back(*helper);
      }
    }
    add_header_parts(main, chosen);
    return {chosen.begin(), chosen.end()};
  }

  std::optional<std::size_t> definer(std::string_view name, std::size_t main) const {
    auto found = definers_.find(name);
    if (found == definers_.end()) return std::nullopt;
    std::optional<std::size_t> best;
    for (std::size_t i : found->second)
      if (!is_launcher(i) && (i < main || !best)) best = i;
    return best;
  }

  // Blocks of #include lines define no names, so they are always taken.
  void add_header_parts(std::size_t main, std::set<std::size_t>& chosen) const {
    bool has_include = pieces_[main].shape.has_include;
    for (std::size_t i : chosen) has_include |= pieces_[i].shape.has_include;
    for (std::size_t i : cuda_)
      if (i < main && !has_include && pieces_[i].shape.only_directives) chosen.insert(i);
  }

  // If no block defines launch(), all code is taken, but a later definition of a name replaces an earlier
  // block.
  Indices without_repeats(const Indices& all) const {
    std::set<std::string_view> defined;
    Indices kept;
    for (auto it = all.rbegin(); it != all.rend(); ++it) {
      const auto& names = pieces_[*it].shape.defines;
      bool repeats =
          std::any_of(names.begin(), names.end(), [&](std::string_view n) { return defined.count(n) > 0; });
      if (repeats) continue;
      defined.insert(names.begin(), names.end());
      kept.push_back(*it);
    }
    return {kept.rbegin(), kept.rend()};
  }

  std::string why(std::size_t main) const {
    if (launchers_.size() == 1) return "the one that defines launch() " + label(main);
    return fmt::format("{} define launch(): the last {} {}", launchers_.size(),
                       complete_ ? "complete one" : "one", label(main));
  }

  std::string label(std::size_t i) const {
    std::string tag = tag_of(pieces_[i].block);
    return fmt::format("(block {}{}{})", pieces_[i].number, tag.empty() ? "" : ", ", tag);
  }

  void take(const Indices& parts, const std::string& reason) {
    for (std::size_t i : parts) {
      if (!out_.code.empty() && !out_.code.ends_with("\n\n")) out_.code += '\n';
      out_.code += pieces_[i].block.text;
      if (pieces_[i].block.cut_off) out_.notes.push_back(std::string(kCutOff));
    }
    out_.how = pieces_.size() == 1 ? only_block(pieces_.front().block)
                                   : fmt::format("{} code blocks, {}", pieces_.size(), choice(parts, reason));
  }

  static std::string only_block(const CodeBlock& block) {
    std::string tag = tag_of(block);
    switch (block.kind) {
      case CodeBlock::Kind::kFenced:
        return "one fenced block (" + tag + ")";
      case CodeBlock::Kind::kIndented:
        return "one indented block";
      case CodeBlock::Kind::kPre:
        return "one HTML <pre> block";
    }
    return {};
  }

  std::string choice(const Indices& parts, const std::string& reason) const {
    if (parts.size() > 1) return "joined: " + numbers(parts) + (launchers_.empty() ? "" : ", launch() last");
    return reason.empty() ? "the one with CUDA code " + label(parts.back()) : reason;
  }

  std::string numbers(const Indices& parts) const {
    std::string text;
    for (std::size_t i = 0; i < parts.size(); ++i)
      text += (i == 0                  ? ""
               : i + 1 == parts.size() ? " and "
                                       : ", ") +
              std::to_string(pieces_[parts[i]].number);
    return text;
  }

  const std::vector<Piece>& pieces_;
  Extraction& out_;
  Indices cuda_, launchers_;
  bool complete_ = false;  // whether one of several that define launch() is complete
  std::map<std::string_view, Indices> definers_;
};

// ---- Python and patches
// ---------------------------------------------------------------------------------------

struct PythonString {
  std::string name, text;
  bool raw = false;
};

// The triple-quoted strings of a Python file, each with the variable that it is assigned to.
std::vector<PythonString> triple_strings(std::string_view text) {
  std::vector<PythonString> strings;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t a = text.find("\"\"\"", at), b = text.find("'''", at);
    std::size_t open = std::min(a, b);
    if (open == std::string_view::npos) break;
    std::size_t close = text.find(text.substr(open, 3), open + 3);
    if (close == std::string_view::npos) break;
    std::size_t line = text.rfind('\n', open);
    std::string_view before =
        trim(text.substr(line == text.npos ? 0 : line + 1, open - (line == text.npos ? 0 : line + 1)));
    PythonString found;
    if (!before.empty() && (before.back() == 'r' || before.back() == 'R')) {
      found.raw = true;
      before.remove_suffix(1);
    }
    std::size_t equals = before.find('=');
    if (equals != std::string_view::npos) found.name = trim(before.substr(0, equals));
    found.text = std::string(text.substr(open + 3, close - open - 3));
    strings.push_back(std::move(found));
    at = close + 3;
  }
  return strings;
}

std::size_t line_count(std::string_view text) {
  std::string_view body = trim(text);
  return body.empty() ? 0 : static_cast<std::size_t>(std::count(body.begin(), body.end(), '\n')) + 1;
}

bool defines_model(std::string_view python) {
  return any_line_starts(python, {"class ModelNew(", "class ModelNew:"});
}

// A kernel inside a Python string counts if it keeps the contract; else the whole file if it defines
// ModelNew; else the message says what was found.
void take_python(std::string_view python, Extraction& out) {
  std::string seen;
  for (const PythonString& string : triple_strings(python)) {
    CodeShape shape = shape_of(string.text);
    std::string name = string.name.empty() ? "a string" : fmt::format("the string \"{}\"", string.name);
    if (shape.defines_launch) {
      out.code = std::string(trim(string.text)) + "\n";
      out.how = name + " in a Python file";
      if (!string.raw && string.text.find('\\') != std::string::npos)
        out.notes.push_back("the Python string is not raw: its backslashes were taken as written");
      return;
    }
    if (shape.has_kernel)
      seen =
          fmt::format("{} holds {} lines of CUDA that do not define launch()", name, line_count(string.text));
  }
  if (defines_model(python)) {
    out.code = std::string(trim(python)) + "\n";
    out.python = true;
    out.how = "a Python block with ModelNew";
    return;
  }
  bool inline_load = python.find("load_inline") != std::string_view::npos;
  bool triton = python.find("@triton") != std::string_view::npos;
  out.why_not = "the reply is a Python file";
  if (inline_load) out.why_not += " that builds its kernel with torch.utils.cpp_extension.load_inline";
  if (triton) out.why_not += " with a Triton kernel";
  if (!seen.empty()) out.why_not += ": " + seen;
  out.why_not += fmt::format("; {}", kAskAgain);
}

void take_patch(std::string_view patch, const std::optional<std::string>& base, Extraction& out) {
  if (!base) {
    out.why_not =
        "the reply is a patch (unified diff) and there is no earlier code to apply it to; ask for the "
        "complete file";
    return;
  }
  Result<Patched> patched = apply_patch(*base, patch);
  if (!patched) {
    out.why_not = "the reply is a patch that does not fit the earlier code: " + patched.error().what +
                  (patched.error().where.empty() ? "" : " (" + patched.error().where + ")") +
                  "; ask for the complete file";
    return;
  }
  out.code = std::move(patched->text);
  out.how = fmt::format("a patch of {} hunk{} applied to the earlier code", patched->hunks,
                        patched->hunks == 1 ? "" : "s");
  out.notes.insert(out.notes.end(), patched->notes.begin(), patched->notes.end());
}

// ---- Code without a fence
// -------------------------------------------------------------------------------------

bool starts_code(std::string_view line) {
  line = trim(line);
  if (line.starts_with("#")) {
    std::string_view name = trim(line.substr(1));
    return name.starts_with("include") || name.starts_with("define ") || name.starts_with("pragma ") ||
           name.starts_with("if");
  }
  constexpr std::array<std::string_view, 10> kStarts = {
      "__global__", "__device__", "extern \"C\"", "template <",      "template<",
      "static ",    "constexpr ", "namespace ",   "using namespace", "global void"};
  return std::any_of(kStarts.begin(), kStarts.end(), [&](std::string_view s) { return line.starts_with(s); });
}

bool ends_code(std::string_view line) {
  line = trim(line);
  return line.ends_with("}") || line.ends_with(";") || line.ends_with("*/") || line.starts_with("//") ||
         line.starts_with("#endif") || line.find("} //") != line.npos;
}

bool is_comment(std::string_view line) {
  line = trim(line);
  return line.starts_with("//") || line.starts_with("/*") || line.starts_with("*") || line.ends_with("*/");
}

struct Span {
  std::size_t first = 0, end = 0;  // lines
};

// From the first line that looks like code, with the comment above it, to the last one.
Span code_lines(const std::vector<std::string>& lines) {
  Span span{0, lines.size()};
  while (span.first < lines.size() && !starts_code(lines[span.first])) ++span.first;
  while (span.first > 0 && span.first < lines.size() && is_comment(lines[span.first - 1])) --span.first;
  while (span.end > span.first && !ends_code(lines[span.end - 1])) --span.end;
  return span;
}

void take_bare_code(const std::string& text, Extraction& out) {
  std::vector<std::string> lines = split(text, '\n');
  Span span = code_lines(lines);
  std::string code;
  for (std::size_t i = span.first; i < span.end; ++i)
    if (!trim(lines[i]).starts_with("```")) code += lines[i] + '\n';
  unescape_block(code, out);
  CodeShape shape = shape_of(code);
  bool lost_underscores = any_line_starts(code, {"global void"});
  if (!shape.has_kernel && !shape.defines_launch && !lost_underscores) return;
  bool whole = span.first == 0 && span.end + 1 >= lines.size();
  out.code = std::move(code);
  out.how = whole
                ? "the whole reply, which is code without a fence"
                : fmt::format("code without a fence, lines {} to {} of the reply", span.first + 1, span.end);
  if (lost_underscores)
    out.notes.push_back(
        "`global void` should read `__global__ void`: the underscores are lost when a rendered page is "
        "copied; use the page's own copy button");
}

void take_bare_reply(const std::string& text, const std::optional<std::string>& base, Extraction& out) {
  if (looks_like_patch(text)) return take_patch(text, base, out);
  if (reads_as_python(text)) return take_python(text, out);
  take_bare_code(text, out);
}

// ---- Nothing found
// --------------------------------------------------------------------------------------------

bool reads_as_refusal(std::string_view text) {
  std::string start = replace_all(ascii_lower(text.substr(0, 600)), "’", "'");
  constexpr std::array<std::string_view, 9> kWords = {"i can't",    "i cannot",         "i'm sorry",
                                                      "i am sorry", "i'm unable",       "i am unable",
                                                      "i won't",    "not able to help", "as an ai"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view w) { return start.find(w) != std::string::npos; });
}

// The first sentence, short enough to quote.
std::string opening(std::string_view text) {
  std::string_view body = trim(text);
  body = body.substr(0, body.find('\n'));
  if (std::size_t stop = body.find(". "); stop != body.npos) body = body.substr(0, stop + 1);
  if (body.size() <= 120) return std::string(body);
  std::size_t cut = 117;
  while (cut > 0 && (static_cast<unsigned char>(body[cut]) & 0xC0u) == 0x80u) --cut;
  return std::string(body.substr(0, cut)) + "…";
}

std::size_t word_count(std::string_view text) {
  std::size_t words = 0;
  bool inside = false;
  for (char c : text) {
    bool space = std::isspace(static_cast<unsigned char>(c)) != 0;
    words += !space && !inside;
    inside = !space;
  }
  return words;
}

std::string languages_of(const std::vector<Piece>& pieces) {
  std::set<std::string> kinds;
  for (const Piece& piece : pieces)
    kinds.insert(piece.block.language.empty() ? "no language" : piece.block.language);
  return join({kinds.begin(), kinds.end()}, ", ");
}

void explain_nothing(const std::string& text, std::size_t blocks, const std::string& languages,
                     Extraction& out) {
  if (!out.why_not.empty()) return;
  if (trim(text).empty()) {
    out.why_not = "the reply is empty";
  } else if (reads_as_refusal(trim(text)) && blocks == 0) {
    out.why_not = fmt::format("no code; the reply reads as a refusal: \"{}\"", opening(text));
  } else if (blocks == 0) {
    out.why_not =
        fmt::format("no code: {} words of prose and no code block; {}", word_count(text), kAskAgain);
  } else {
    out.why_not = fmt::format("no CUDA code: {} code block{} ({}); {}", blocks, blocks == 1 ? "" : "s",
                              languages, kAskAgain);
  }
}

// ---- Main -------------------------------------------------------------------------------------------------

std::vector<Piece> pieces_of(std::vector<CodeBlock> blocks, bool indented, Extraction& out) {
  std::erase_if(blocks,
                [&](const CodeBlock& b) { return (b.kind == CodeBlock::Kind::kIndented) != indented; });
  std::vector<Piece> pieces;
  for (CodeBlock& block : blocks) {
    unescape_block(block.text, out);
    pieces.push_back(make_piece(std::move(block), static_cast<int>(pieces.size()) + 1));
  }
  for (Piece& piece : pieces) judge_piece(piece);
  return pieces;
}

void take_blocks(std::vector<Piece> pieces, const std::optional<std::string>& base, Extraction& out) {
  std::vector<Piece> merged = with_continuations(std::move(pieces), out);
  Chooser chooser(merged, out);
  auto patch = std::find_if(merged.begin(), merged.end(), [](const Piece& p) { return p.is_patch; });
  auto python = std::find_if(merged.rbegin(), merged.rend(),
                             [](const Piece& p) { return p.is_python && defines_model(p.block.text); });
  if (python == merged.rend())
    python = std::find_if(merged.rbegin(), merged.rend(), [](const Piece& p) { return p.is_python; });
  bool launch = std::any_of(merged.begin(), merged.end(),
                            [](const Piece& p) { return p.is_cuda && p.shape.defines_launch; });
  if (patch != merged.end() && !launch) {
    if (patch->block.cut_off) out.notes.push_back(std::string(kCutOff));
    return take_patch(patch->block.text, base, out);
  }
  if (python != merged.rend() && !launch) return take_python(python->block.text, out);
  if (chooser.any()) chooser.choose();
}

// Indented code is common inside prose and inside code without a fence, so only a block with launch() counts.
void take_indented(const std::vector<CodeBlock>& blocks, const std::optional<std::string>& base,
                   Extraction& out) {
  std::vector<Piece> pieces = pieces_of(blocks, true, out);
  std::erase_if(pieces,
                [](const Piece& p) { return !p.is_cuda || !p.shape.defines_launch || p.shape.inside_out; });
  for (Piece& piece : pieces) judge_piece(piece);
  if (!pieces.empty()) take_blocks(std::move(pieces), base, out);
}

// Notes about the code that was taken.
void remark(Extraction& out) {
  out.libraries = libraries_in(out.code);
  if (out.python) return;
  CodeShape shape = shape_of(out.code);
  if (!shape.defines_launch)
    out.notes.push_back("the code does not define launch(): it cannot be judged as it is");
  else if (!shape.launch_is_extern_c)
    out.notes.push_back("launch() is not declared extern \"C\": the judge will not find it under its C name");
  if (shape.leaves_out) out.notes.push_back("a comment stands for code that the model left out");
  bool told = std::find(out.notes.begin(), out.notes.end(), kCutOff) != out.notes.end();
  if (shape.unfinished && !told)
    out.notes.push_back("a brace or a comment is never closed: probably cut off");
}

Extraction refused(std::string why) {
  Extraction out;
  out.why_not = std::move(why);
  return out;
}

}  // namespace

Extraction extract_code(std::string_view reply, const std::optional<std::string>& base) {
  if (reply.size() > kMaxReplyBytes)
    return refused(fmt::format("the reply has {}, more than the {} that are read",
                               format_bytes(static_cast<double>(reply.size())),
                               format_bytes(static_cast<double>(kMaxReplyBytes))));
  if (reply.starts_with("\xFF\xFE") || reply.starts_with("\xFE\xFF"))
    return refused("the reply is a UTF-16 file; save it as UTF-8");
  Extraction out;
  std::string text = cleaned(reply, out);
  std::string form;
  if (auto api = read_api_reply(text)) {
    if (!api->error.empty()) return refused("the provider answered with an error: " + printable(api->error));
    out.notes = std::move(api->notes);
    form = fmt::format("in an {}: ", api->form);
    text = std::move(api->text);
  }
  text = without_thinking(text, out);
  std::vector<CodeBlock> blocks = code_blocks(text);
  if (blocks.size() > kMaxCodeBlocks)
    return refused(fmt::format("the reply has {} code blocks, more than the {} that are read", blocks.size(),
                               kMaxCodeBlocks));

  std::vector<Piece> pieces = pieces_of(blocks, false, out);
  std::size_t count = pieces.size();
  std::string languages = languages_of(pieces);
  if (!pieces.empty()) take_blocks(std::move(pieces), base, out);
  auto open = [&] { return out.code.empty() && out.why_not.empty(); };
  if (open()) take_indented(blocks, base, out);
  if (open()) take_bare_reply(text, base, out);
  if (out.code.empty())
    explain_nothing(text, count, languages, out);
  else
    remark(out);
  if (!out.how.empty()) out.how = form + out.how;
  return out;
}

}  // namespace capstone
