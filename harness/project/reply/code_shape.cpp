#include "harness/project/reply/code_shape.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <optional>
#include <tuple>

#include "harness/base/ascii.h"
#include "harness/base/text.h"

namespace capstone {
namespace {

enum class Kind { kWord, kPunctuation, kDirective, kStringC };
struct Token {
  Kind kind;
  std::string_view text;
};

bool word_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Whether a comment stands for code that the model did not write.
bool stands_for_code(std::string_view comment) {
  std::string_view body = trim(comment);
  while (!body.empty() && (body.front() == '/' || body.front() == '*')) body.remove_prefix(1);
  while (!body.empty() && (body.back() == '/' || body.back() == '*')) body.remove_suffix(1);
  body = trim(body);
  if (body == "..." || body == "…") return true;
  if (body.size() > 120) return false;
  std::string words = ascii_lower(body);
  auto says = [&](std::string_view part) { return words.find(part) != std::string::npos; };
  if (says("your code here") || says("implementation goes here")) return true;
  bool dots = says("...") || says("…");
  return dots && (says("rest") || says("same as") || says("as before") || says("unchanged") || says("omitted") ||
                  says("remaining") || says("existing") || says("previous"));
}

// Comments and literals are passed over; what is left comes as words, punctuation and whole directives.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}
  bool unterminated = false;
  bool leaves_out = false;

  std::vector<Token> run() {
    std::vector<Token> tokens;
    bool line_start = true;
    while (at_ < text_.size()) {
      char c = text_[at_];
      if (c == '\n') {
        line_start = true;
        ++at_;
      } else if (std::isspace(static_cast<unsigned char>(c))) {
        ++at_;
      } else if (c == '/' && peek(1) == '/') {
        line_comment();
      } else if (c == '/' && peek(1) == '*') {
        block_comment();
      } else if (c == '#' && line_start) {
        tokens.push_back({Kind::kDirective, directive()});
      } else {
        line_start = false;
        if (auto token = plain(c)) tokens.push_back(*token);
      }
    }
    return tokens;
  }

 private:
  char peek(std::size_t ahead) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void line_comment() {
    std::size_t end = std::min(text_.find('\n', at_), text_.size());
    leaves_out |= stands_for_code(text_.substr(at_, end - at_));
    at_ = end;
  }

  void block_comment() {
    std::size_t end = text_.find("*/", at_ + 2);
    if (end == std::string_view::npos) {
      unterminated = true;
      at_ = text_.size();
      return;
    }
    leaves_out |= stands_for_code(text_.substr(at_, end + 2 - at_));
    at_ = end + 2;
  }

  // A directive with its continued lines; a comment that begins in it is left to the main loop.
  std::string_view directive() {
    std::size_t start = at_;
    while (at_ < text_.size() && text_[at_] != '\n') {
      if (text_[at_] == '\\' && peek(1) == '\n') ++at_;
      else if (text_[at_] == '/' && (peek(1) == '*' || peek(1) == '/')) break;
      ++at_;
    }
    return text_.substr(start, std::min(at_, text_.size()) - start);
  }

  std::optional<Token> plain(char c) {
    if (word_start(c)) return word();
    if (c == '"') return quoted('"');
    if (c == '\'') return quoted('\'');
    if (std::isdigit(static_cast<unsigned char>(c))) {
      number();
      return std::nullopt;
    }
    return Token{Kind::kPunctuation, text_.substr(at_++, 1)};
  }

  void number() {  // 0x1p-3f, 1'000'000
    while (at_ < text_.size() && (name_char(text_[at_]) || text_[at_] == '.' ||
                                  (text_[at_] == '\'' && name_char(peek(1)))))
      ++at_;
  }

  std::optional<Token> word() {
    std::size_t start = at_;
    while (at_ < text_.size() && name_char(text_[at_])) ++at_;
    std::string_view found = text_.substr(start, at_ - start);
    if (at_ < text_.size() && text_[at_] == '"' && found.size() <= 3 && found.back() == 'R') {
      raw_string();
      return std::nullopt;
    }
    return Token{Kind::kWord, found};
  }

  void raw_string() {
    std::size_t open = text_.find('(', at_);
    if (open == std::string_view::npos || open - at_ > 17) {
      ++at_;
      return;
    }
    std::string close = ")" + std::string(text_.substr(at_ + 1, open - at_ - 1)) + "\"";
    std::size_t end = text_.find(close, open);
    unterminated |= end == std::string_view::npos;
    at_ = end == std::string_view::npos ? text_.size() : end + close.size();
  }

  // A literal ends at its quote or, broken, at the end of its line.
  std::optional<Token> quoted(char quote) {
    std::size_t start = at_++;
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n') at_ += text_[at_] == '\\' ? 2 : 1;
    at_ = std::min(at_, text_.size());
    if (at_ < text_.size() && text_[at_] == quote) ++at_;
    if (text_.substr(start, at_ - start) == "\"C\"") return Token{Kind::kStringC, text_.substr(start, 3)};
    return std::nullopt;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

constexpr std::array<std::string_view, 10> kNotNames = {"__launch_bounds__", "__attribute__", "__align__", "alignas",
                                                       "decltype", "noexcept", "requires", "static_assert", "sizeof",
                                                       "__cluster_dims__"};
bool may_name(std::string_view word) {
  return std::find(kNotNames.begin(), kNotNames.end(), word) == kNotNames.end();
}

// One declaration at file scope, as far as it has been read.
struct Declaration {
  std::string_view last_word, called, type, variable;
  bool extern_c = false, is_namespace = false, is_type = false, assigned = false, is_alias = false;
  bool after_extern = false, after_type = false, empty = true;
  int angle = 0;  // template brackets open
};

// Reads tokens as declarations at file scope, and everything inside braces as uses.
class Outliner {
 public:
  explicit Outliner(CodeShape& shape) : shape_(shape) {}

  void read(const Token& token) {
    switch (token.kind) {
      case Kind::kDirective: return directive(token.text);
      case Kind::kStringC:
        if (now_.after_extern) now_.extern_c = true;
        return;
      case Kind::kWord: return word(token.text);
      case Kind::kPunctuation: return punctuation(token.text.front());
    }
  }

  void finish() {
    shape_.depth = depth_;
    shape_.launch_is_extern_c = launch_extern_c_;
    shape_.only_directives = !saw_code_ && now_.empty && (shape_.has_include || !shape_.defines.empty());
  }

 private:
  bool file_scope() const { return body_ == 0 && parens_ == 0; }

  void word(std::string_view text) {
    shape_.uses.insert(text);
    if (text == "__global__") shape_.has_kernel = true;
    if (!file_scope()) return;
    now_.empty = false;
    if (now_.after_type && text != "class" && may_name(text)) {
      now_.type = text;
      now_.after_type = false;
    }
    now_.after_extern = text == "extern";
    if (text == "namespace") now_.is_namespace = true;
    if (text == "using" || text == "typedef") now_.is_alias = true;
    if ((text == "struct" || text == "class" || text == "union" || text == "enum") && now_.angle == 0)
      now_.is_type = now_.after_type = true;
    if (!now_.assigned) now_.last_word = text;
  }

  void punctuation(char c) {
    switch (c) {
      case '(': return open_paren();
      case ')': parens_ = std::max(0, parens_ - 1); return;
      case '{': return open_brace();
      case '}': return close_brace();
      case ';': if (file_scope()) end_declaration(); return;
      default: break;
    }
    if (!file_scope()) return;
    if (c == '<') ++now_.angle;
    if (c == '>') now_.angle = std::max(0, now_.angle - 1);
    if ((c == '=' || c == '[') && now_.angle == 0 && !now_.assigned) {
      now_.variable = now_.last_word;
      now_.assigned = true;
    }
  }

  void open_paren() {
    if (file_scope() && !now_.assigned && !now_.last_word.empty() && may_name(now_.last_word))
      now_.called = now_.last_word;
    ++parens_;
  }

  void open_brace() {
    ++depth_;
    bool transparent = file_scope() && now_.called.empty() && !now_.assigned && !now_.is_type &&
                       (now_.is_namespace || now_.extern_c);
    if (transparent) {
      scopes_.push_back(now_.extern_c ? 'c' : 'n');
      now_ = {};
      return;
    }
    if (file_scope() && !now_.called.empty() && !now_.assigned) define_function();
    ++body_;
    if (body_ == 1) parens_before_body_ = parens_;
    parens_ = 0;
  }

  void define_function() {
    saw_code_ = true;
    now_.is_type = false;  // `struct Pair make() {` defines make
    shape_.defines.insert(now_.called);
    if (now_.called != "launch") return;
    shape_.defines_launch = true;
    launch_extern_c_ |= in_extern_c();
    now_.assigned = true;  // what follows the body, if anything, is no second name
  }

  bool in_extern_c() const {
    return now_.extern_c || std::find(scopes_.begin(), scopes_.end(), 'c') != scopes_.end();
  }

  void close_brace() {
    --depth_;
    if (depth_ < 0) shape_.inside_out = true;
    if (body_ > 0) {
      --body_;
      parens_ = 0;
      if (body_ == 0) {
        parens_ = parens_before_body_;
        if (parens_ == 0 && !now_.called.empty() && !now_.is_type) now_ = {};  // a function's end needs no semicolon
      }
      return;
    }
    if (!scopes_.empty()) scopes_.pop_back();
    now_ = {};
  }

  void end_declaration() {
    if (!now_.empty && !now_.is_alias) saw_code_ = true;
    if (now_.is_alias && !now_.last_word.empty()) shape_.defines.insert(now_.assigned ? now_.variable : now_.last_word);
    if (now_.is_type && !now_.type.empty()) shape_.defines.insert(now_.type);
    if (!now_.called.empty() && now_.called == "launch" && in_extern_c()) launch_extern_c_ = true;
    bool variable = !now_.is_type && !now_.is_alias && now_.called.empty();
    if (variable && now_.assigned) shape_.defines.insert(now_.variable);
    if (variable && !now_.assigned && !now_.last_word.empty()) shape_.defines.insert(now_.last_word);
    now_ = {};
  }

  // #else takes the depth back to that of its #if: both branches may open the same brace.
  void directive(std::string_view text) {
    std::string_view body = trim(text.substr(1));
    std::size_t end = 0;
    while (end < body.size() && name_char(body[end])) ++end;
    std::string_view name = body.substr(0, end);
    std::string_view rest = trim(body.substr(end));
    if (name == "include") shape_.has_include = true;
    if (name == "if" || name == "ifdef" || name == "ifndef") conditions_.push_back({depth_, body_});
    if ((name == "else" || name == "elif") && !conditions_.empty())
      std::tie(depth_, body_) = std::tie(conditions_.back().first, conditions_.back().second);
    if (name == "endif" && !conditions_.empty()) conditions_.pop_back();
    if (name == "define") define_macro(rest);
  }

  void define_macro(std::string_view rest) {
    bool first = true;
    for (std::size_t at = 0; at < rest.size();) {
      if (!word_start(rest[at])) {
        ++at;
        continue;
      }
      std::size_t end = at;
      while (end < rest.size() && name_char(rest[end])) ++end;
      (first ? shape_.defines : shape_.uses).insert(rest.substr(at, end - at));
      first = false;
      at = end;
    }
  }

  CodeShape& shape_;
  Declaration now_;
  std::vector<char> scopes_;                        // transparent braces: 'c' extern "C", 'n' namespace
  std::vector<std::pair<int, int>> conditions_;
  int depth_ = 0, body_ = 0, parens_ = 0, parens_before_body_ = 0;
  bool launch_extern_c_ = false, saw_code_ = false;
};

struct Library {
  std::string_view name;
  std::array<std::string_view, 3> includes;   // after #include < or "
  std::array<std::string_view, 3> prefixes;   // of an identifier
  std::string_view scope;                     // as in scope::
};
constexpr std::array<Library, 11> kLibraries = {{
    {"cublas", {"cublas", "cublasLt", ""}, {"cublasCreate", "cublasS", "cublasLt"}, ""},
    {"cudnn", {"cudnn", "", ""}, {"cudnnCreate", "cudnnConvolution", "cudnnSet"}, ""},
    {"cufft", {"cufft", "", ""}, {"cufftExec", "cufftPlan", ""}, ""},
    {"curand", {"curand", "", ""}, {"curandCreate", "curandGenerate", "curand_init"}, ""},
    {"cusolver", {"cusolver", "", ""}, {"cusolverDn", "cusolverSp", ""}, ""},
    {"cusparse", {"cusparse", "", ""}, {"cusparseCreate", "cusparseSp", ""}, ""},
    {"nccl", {"nccl", "", ""}, {"ncclAll", "ncclComm", ""}, ""},
    {"thrust", {"thrust/", "", ""}, {"", "", ""}, "thrust"},
    {"cub", {"cub/", "", ""}, {"", "", ""}, "cub"},
    {"cutlass", {"cutlass/", "cute/", ""}, {"", "", ""}, "cutlass"},
    {"torch", {"torch/", "ATen/", "c10/"}, {"TORCH_", "PYBIND11_", "AT_DISPATCH"}, "torch"},
}};

bool included(std::string_view directive, const Library& library) {
  std::string_view body = trim(directive.substr(1));
  if (!body.starts_with("include")) return false;
  body = trim(body.substr(7));
  if (body.empty()) return false;
  body.remove_prefix(1);
  return std::any_of(library.includes.begin(), library.includes.end(),
                     [&](std::string_view prefix) { return !prefix.empty() && body.starts_with(prefix); });
}

bool called(const std::vector<Token>& tokens, std::size_t i, const Library& library) {
  std::string_view word = tokens[i].text;
  if (!library.scope.empty() && word == library.scope && i + 2 < tokens.size() && tokens[i + 1].text == ":" &&
      tokens[i + 2].text == ":")
    return true;
  return std::any_of(library.prefixes.begin(), library.prefixes.end(),
                     [&](std::string_view prefix) { return !prefix.empty() && word.starts_with(prefix); });
}

}  // namespace

CodeShape shape_of(std::string_view code) {
  CodeShape shape;
  Lexer lexer(code);
  std::vector<Token> tokens = lexer.run();
  Outliner outliner(shape);
  for (const Token& token : tokens) outliner.read(token);
  outliner.finish();
  shape.unfinished = lexer.unterminated || shape.depth > 0;
  shape.leaves_out = lexer.leaves_out;
  return shape;
}

std::vector<std::string> libraries_in(std::string_view code) {
  std::vector<Token> tokens = Lexer(code).run();
  std::array<bool, kLibraries.size()> seen{};
  for (std::size_t i = 0; i < tokens.size(); ++i)
    for (std::size_t k = 0; k < kLibraries.size(); ++k) {
      if (seen[k]) continue;
      if (tokens[i].kind == Kind::kDirective) seen[k] = included(tokens[i].text, kLibraries[k]);
      if (tokens[i].kind == Kind::kWord) seen[k] = called(tokens, i, kLibraries[k]);
    }
  std::vector<std::string> names;
  for (std::size_t k = 0; k < kLibraries.size(); ++k)
    if (seen[k]) names.emplace_back(kLibraries[k].name);
  return names;
}

}  // namespace capstone
