#include "harness/project/reply/code_shape.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <tuple>

#include "harness/base/ascii.h"
#include "harness/base/text.h"
#include "harness/emulator/rewriter/cxx_tokens.h"

namespace capstone {
namespace {

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
  return dots && (says("rest") || says("same as") || says("as before") || says("unchanged") ||
                  says("omitted") || says("remaining") || says("existing") || says("previous"));
}

constexpr std::array<std::string_view, 10> kNotNames = {
    "__launch_bounds__", "__attribute__", "__align__",     "alignas", "decltype",
    "noexcept",          "requires",      "static_assert", "sizeof",  "__cluster_dims__"};
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

  void read(const CxxToken& token) {
    using Kind = CxxTokenKind;
    if (token.kind == Kind::kDirective)
      directive(token.text);
    else if (token.kind == Kind::kIdentifier)
      words(token.text);
    else if (token.kind == Kind::kString && token.text == "\"C\"" && now_.after_extern)
      now_.extern_c = true;
    else if (token.kind == Kind::kComment)
      shape_.leaves_out |= stands_for_code(token.text);
    else if (token.kind == Kind::kPunctuator)
      for (const char c : token.text) punctuation(c);
    shape_.unfinished |= !token.closed;
  }

  void finish() {
    shape_.depth = depth_;
    shape_.unfinished |= depth_ > 0;
    shape_.launch_is_extern_c = launch_extern_c_;
    shape_.only_directives = !saw_code_ && now_.empty && (shape_.has_include || !shape_.defines.empty());
  }

 private:
  bool file_scope() const { return body_ == 0 && parens_ == 0; }

  // A reply's prose is read, too: an arrow or an ellipsis next to a word does not belong to it.
  void words(std::string_view text) {
    for (std::size_t at = 0, end; at < text.size(); at = end + (end == at)) {
      for (end = at; end < text.size() && name_char(text[end]);) ++end;
      if (end > at && word_start(text[at])) word(text.substr(at, end - at));
    }
  }

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
      case '(':
        return open_paren();
      case ')':
        parens_ = std::max(0, parens_ - 1);
        return;
      case '{':
        return open_brace();
      case '}':
        return close_brace();
      case ';':
        if (file_scope()) end_declaration();
        return;
      default:
        break;
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
        if (parens_ == 0 && !now_.called.empty() && !now_.is_type)
          now_ = {};  // a function's end needs no semicolon
      }
      return;
    }
    if (!scopes_.empty()) scopes_.pop_back();
    now_ = {};
  }

  void end_declaration() {
    if (!now_.empty && !now_.is_alias) saw_code_ = true;
    if (now_.is_alias && !now_.last_word.empty())
      shape_.defines.insert(now_.assigned ? now_.variable : now_.last_word);
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
  std::vector<char> scopes_;  // transparent braces: 'c' extern "C", 'n' namespace
  std::vector<std::pair<int, int>> conditions_;
  int depth_ = 0, body_ = 0, parens_ = 0, parens_before_body_ = 0;
  bool launch_extern_c_ = false, saw_code_ = false;
};

struct Library {
  std::string_view name;
  std::array<std::string_view, 3> includes;  // after #include < or "
  std::array<std::string_view, 3> prefixes;  // of an identifier
  std::string_view scope;                    // as in scope::
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

bool called(const std::vector<CxxToken>& tokens, std::size_t i, const Library& library) {
  std::string_view word = tokens[i].text;
  if (!library.scope.empty() && word == library.scope && i + 1 < tokens.size() && tokens[i + 1].text == "::")
    return true;
  return std::any_of(library.prefixes.begin(), library.prefixes.end(),
                     [&](std::string_view prefix) { return !prefix.empty() && word.starts_with(prefix); });
}

}  // namespace

CodeShape shape_of(std::string_view code) {
  CodeShape shape;
  Outliner outliner(shape);
  for (const CxxToken& token : cxx_tokens(code)) outliner.read(token);
  outliner.finish();
  return shape;
}

std::vector<std::string> libraries_in(std::string_view code) {
  const std::vector<CxxToken> tokens = cxx_tokens(code);
  std::array<bool, kLibraries.size()> seen{};
  for (std::size_t i = 0; i < tokens.size(); ++i)
    for (std::size_t k = 0; k < kLibraries.size(); ++k) {
      if (seen[k]) continue;
      if (tokens[i].kind == CxxTokenKind::kDirective) seen[k] = included(tokens[i].text, kLibraries[k]);
      if (tokens[i].kind == CxxTokenKind::kIdentifier) seen[k] = called(tokens, i, kLibraries[k]);
    }
  std::vector<std::string> names;
  for (std::size_t k = 0; k < kLibraries.size(); ++k)
    if (seen[k]) names.emplace_back(kLibraries[k].name);
  return names;
}

}  // namespace capstone
