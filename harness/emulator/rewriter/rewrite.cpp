#include "rewriter/rewrite.h"

#include <algorithm>
#include <map>
#include <set>

#include "rewriter/emitter.h"
#include "rewriter/inline_asm.h"
#include "rewriter/token.h"

namespace capstone::rewriter {
namespace {

// On the lambda around a launch: it reads the arguments from the host's stack, which kernels must not touch.
const std::string kUnobserved = "__attribute__((no_sanitize(\"thread\"), no_sanitize_coverage))";
constexpr std::string_view kShared = "capstone_emu_shared", kGlobal = "capstone_emu_global",
                           kDevice = "capstone_emu_device", kClusterDims = "capstone_emu_cluster_dims",
                           kLaunchBounds = "capstone_emu_launch_bounds", kObserved = "observed_by_hooks";

/// `kernel<T><<<config>>>(arguments)`; token indices.
struct Launch {
  std::size_t callee_begin, callee_end;  // [begin, end)
  std::size_t config_begin, config_end;
  std::vector<std::pair<std::size_t, std::size_t>> arguments;
  std::size_t end;  // one past the ')'
};
/// A declaration with __shared__; `end` is one past the ';'.
struct SharedDeclaration {
  std::size_t begin, end;
  bool is_extern, in_function;
  std::string tag{};  // of the structure that stands for it
};
struct InlineAsm {
  std::size_t begin, open, close;  // asm … ( … )
};

std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + "\"";
}

/// Resolves the escapes of a string literal; raw strings come as they are.
std::string literal_value(std::string_view token) {
  if (const std::size_t raw = token.find("R\""); raw != std::string_view::npos && raw < token.find('"')) {
    const std::size_t open = token.find('('), close = token.rfind(')');
    return std::string(token.substr(open + 1, close - open - 1));
  }
  std::string out;
  const std::size_t begin = token.find('"') + 1;
  for (std::size_t i = begin; i + 1 < token.size(); ++i) {
    if (token[i] != '\\') {
      out += token[i];
      continue;
    }
    const char next = token[++i];
    out += next == 'n' ? '\n' : next == 't' || next == 'r' ? ' ' : next;
  }
  return out;
}

class Rewriter {
 public:
  Rewriter(std::string preprocessed, const RewriteOptions& options)
      : source_(tokenize(std::move(preprocessed))), emitter_(source_), options_(options) {}

  Rewritten run() {
    check_inclusions();
    check_disguises();
    find_scopes();
    for (std::size_t i = 0; i < count(); ++i)
      spins_ |= is(i, "volatile") && !(i > 0 && (is(i - 1, "asm") || is(i - 1, "__asm__")));
    for (std::size_t i = 0; i < count(); ++i) inspect(i);
    kernels_ = declared_kernels();
    refuse_calls_of_kernels();
    refuse_launches_of_functions();
    refuse_reference_parameters();
    if (options_.keep_main) keep_kernel_addresses();
    if (options_.keep_main && !options_.observed) keep_lanes_in_step();
    find_hidden_names();
    // The first line names the program's source in its debug information.
    if (source_.files.size() > 1) emitter_.raw("# 0 " + quoted(source_.files[1]) + "\n");
    emitter_.raw("namespace capstone_emu { inline constexpr bool " + std::string(kObserved) + " = " +
                 (options_.observed ? "true" : "false") + "; }\n");
    emit(0, count());
    std::stable_sort(findings_.begin(), findings_.end(),
                     [](const Finding& a, const Finding& b) { return a.file == b.file && a.line < b.line; });
    return {emitter_.take(), std::move(findings_)};
  }

 private:
  // --- tokens ---
  std::size_t count() const { return source_.tokens.size() - 1; }  // without kEnd
  const Token& token(std::size_t i) const { return source_.at(i); }
  std::string_view text(std::size_t i) const { return source_.spelling(i); }
  bool is(std::size_t i, std::string_view what) const { return source_.is(i, what); }
  bool is_identifier(std::size_t i) const { return token(i).kind == TokenKind::kIdentifier; }
  bool opens(std::size_t i) const { return is(i, "(") || is(i, "[") || is(i, "{"); }
  bool closes(std::size_t i) const { return is(i, ")") || is(i, "]") || is(i, "}"); }
  const std::string& file_of(std::size_t i) const {
    return source_.files[static_cast<std::size_t>(token(i).file)];
  }
  std::string place(std::size_t i) const { return quoted(file_of(i)) + ", " + std::to_string(token(i).line); }

  std::string joined(std::size_t begin, std::size_t end) const {
    std::string out;
    for (std::size_t i = begin; i < end; ++i) {
      if (i > begin && token(i).begin != token(i - 1).end) out += ' ';
      out += text(i);
    }
    return out;
  }

  void report(Finding::Kind kind, std::size_t at, std::string message, std::string hint) {
    findings_.push_back({kind, file_of(at), token(at).line, std::move(message), std::move(hint)});
  }
  void not_judgeable(std::size_t at, std::string message, std::string hint = "run it on a GPU") {
    report(Finding::Kind::kNotJudgeable, at, std::move(message), std::move(hint));
  }

  /// The token that closes the bracket at i, or the end.
  std::size_t match_forward(std::size_t i) const {
    int depth = 0;
    for (; i < count(); ++i) {
      if (opens(i)) ++depth;
      if (closes(i) && --depth == 0) return i;
    }
    return count();
  }
  /// The token that opens the bracket closed at i; 0 when there is none.
  std::size_t match_backward(std::size_t i) const {
    int depth = 0;
    for (;; --i) {
      if (closes(i)) ++depth;
      if (opens(i) && --depth == 0) return i;
      if (i == 0) return 0;
    }
  }
  std::size_t match_angle_backward(std::size_t i) const {
    int depth = 0;
    for (;; --i) {
      if (is(i, ">"))
        ++depth;
      else if (is(i, "<") && --depth == 0)
        return i;
      else if (is(i, ")") || is(i, "]"))
        i = match_backward(i);
      else if (is(i, ";") || is(i, "{") || is(i, "}"))
        return 0;
      if (i == 0) return 0;
    }
  }

  // --- scopes: is a token inside a function body, and is that function a kernel? ---
  enum class Scope { kNamespace, kClass, kFunction };

  Scope classify(std::size_t statement, std::size_t brace, Scope outer) const {
    bool parenthesis = false, is_namespace = false, is_class = false;
    for (std::size_t i = statement; i < brace; ++i) {
      parenthesis |= is(i, "(");
      is_namespace |= is(i, "namespace") ||
                      (is(i, "extern") && i + 2 == brace && token(i + 1).kind == TokenKind::kString);
      is_class |= is(i, "struct") || is(i, "class") || is(i, "union") || is(i, "enum");
    }
    if (is_class && !parenthesis) return Scope::kClass;
    if (outer == Scope::kFunction) return Scope::kFunction;
    return is_namespace ? Scope::kNamespace : Scope::kFunction;
  }

  void find_scopes() {
    struct Open {
      Scope scope;
      bool kernel, device;
    };
    std::vector<Open> stack;
    in_function_.resize(count() + 1);
    in_kernel_.resize(count() + 1);
    in_device_.resize(count() + 1);
    std::size_t statement = 0;
    for (std::size_t i = 0; i < count(); ++i) {
      in_function_[i] = !stack.empty() && stack.back().scope == Scope::kFunction;
      in_kernel_[i] = !stack.empty() && stack.back().kernel;
      in_device_[i] = !stack.empty() && stack.back().device;
      at_file_scope_.push_back(stack.empty());
      at_namespace_.push_back(stack.empty() || stack.back().scope == Scope::kNamespace);
      if (is(i, "{")) {
        const Scope scope = classify(statement, i, stack.empty() ? Scope::kNamespace : stack.back().scope);
        bool kernel = !stack.empty() && stack.back().kernel, device = !stack.empty() && stack.back().device;
        for (std::size_t k = statement; k < i; ++k) kernel |= is(k, kGlobal), device |= is(k, kDevice);
        stack.push_back({scope, kernel, device || kernel});
      } else if (is(i, "}") && !stack.empty()) {
        stack.pop_back();
      }
      if (is(i, "{") || is(i, "}") || is(i, ";") || token(i).kind == TokenKind::kOpaque) statement = i + 1;
    }
  }

  // --- finding the constructs ---
  // A judged kernel does its own work. A program may use what the emulator has: its linker refuses the rest.
  void check_inclusions() {
    if (options_.keep_main) return;
    static constexpr std::string_view kLibraries[] = {"cublas",   "cudnn",    "cufft", "curand",
                                                      "cusparse", "cusolver", "nccl",  "cub/",
                                                      "thrust/",  "cutlass/", "cute/", "nvrtc"};
    for (const Inclusion& inclusion : source_.inclusions) {
      const std::size_t slash = inclusion.path.rfind('/');
      const std::string name = inclusion.path.substr(slash == std::string::npos ? 0 : slash + 1);
      for (std::string_view library : kLibraries) {
        const bool folder = library.ends_with('/');
        if (folder ? inclusion.path.find("/" + std::string(library)) == std::string::npos
                   : !name.starts_with(library))
          continue;
        findings_.push_back({Finding::Kind::kNotJudgeable,
                             source_.files[static_cast<std::size_t>(inclusion.file)], inclusion.line,
                             "library header '" + name + "' cannot be used on the CPU backend",
                             "run it on a GPU, or remove the include if nothing of it is used"});
      }
    }
  }

  // Text of system headers is left alone; a file of the user's must not pass for one.
  void check_disguises() {
    for (std::size_t i = 0; i < source_.files.size() && options_.disguised; ++i) {
      const std::string& file = source_.files[i];
      if (i < 4 && file.ends_with("/capstone_emulator.h")) continue;  // comes before any line of the user's
      const int line = options_.disguised(file);
      if (line)
        findings_.push_back(
            {Finding::Kind::kError, file, line,
             "a line marker, or a pragma, declares this text to be a system header or another file",
             "remove it: the checks must see all of your code"});
    }
  }

  /// What only instrumented builds have, and only they may name.
  static bool is_reserved(std::string_view name) {
    for (const std::string_view prefix : {"__tsan_", "__asan_", "__ubsan_", "__sanitizer_"})
      if (name.starts_with(prefix)) return true;
    return name == kObserved;
  }
  void inspect_reserved(std::size_t i) {
    report(Finding::Kind::kError, i,
           "the name '" + std::string(text(i)) + "' is reserved for the judge's instrumented builds",
           "choose another name");
  }

  // static const float x = 1; in a class: g++ wants constexpr there.
  void inspect_static_constant(std::size_t i) {
    if (in_function_[i] || at_namespace_[i] || !is(i + 1, "const")) return;
    if ((is(i + 2, "float") || is(i + 2, "double")) && is_identifier(i + 3) && is(i + 4, "="))
      after_[i] += " constexpr";
  }

  // constexpr int warpSize = 32; hides CUDA's own.
  void inspect_warp_size(std::size_t i) {
    if (!at_file_scope_[i] || !is(i + 1, "=") || !is(i + 2, "32") || !is(i + 3, ";")) return;
    for (std::size_t k = declaration_begin(i); k <= i + 3; ++k) dropped_.insert(k);
  }

  // A<T>::f<1>(x), where A<T> depends on a parameter of the template: g++ wants A<T>::template f<1>(x).
  void inspect_member_template(std::size_t i) {
    if (!in_function_[i] || !is(i + 1, "::") || !is_identifier(i + 2) || !is(i + 3, "<")) return;
    const std::size_t open = match_angle_backward(i);
    if (open == 0 || !is_identifier(open - 1)) return;
    int depth = 0;
    for (std::size_t k = i + 3; k + 1 < count(); ++k) {
      if (is(k, ";") || is(k, "{") || is(k, "}") || is(k, ")") || is(k, "&&") || is(k, "||")) return;
      if (is(k, "<")) ++depth;
      if (is(k, ">") && --depth == 0) {
        if (is(k + 1, "(")) after_[i + 1] += " template ";
        return;
      }
      if (opens(k)) k = match_forward(k);
    }
  }

  void inspect(std::size_t i) {
    if (is(i, ">")) return inspect_member_template(i);
    if (is(i, "<<<") || (is(i, "<<") && is(i + 1, "<"))) return inspect_launch(i);
    if (!is_identifier(i)) return;
    if (is(i, kShared)) return inspect_shared(i);
    if (is(i, kGlobal)) return inspect_kernel(i);
    if (is(i, kClusterDims)) return inspect_cluster(i);
    if (is(i, kLaunchBounds)) return inspect_launch_bounds(i);
    if (is_reserved(text(i))) return inspect_reserved(i);
    if (is(i, "static")) return inspect_static_constant(i);
    if (is(i, "warpSize")) return inspect_warp_size(i);
    if (spins_ && in_function_[i] && (is(i, "while") || is(i, "for"))) return inspect_loop(i);
    if (is(i, "cudaLaunchKernel") || is(i, "cudaLaunchCooperativeKernel")) return inspect_launch_call(i);
    if ((is(i, "asm") || is(i, "__asm__") || is(i, "__asm")) && in_function_[i]) return inspect_asm(i);
    // A texture object of launch() would not outlive the process that captures its kernels (harness/runtime).
    if (!options_.keep_main && (text(i).starts_with("tex") || text(i).starts_with("surf")))
      inspect_texture(i);
  }

  void inspect_texture(std::size_t i) {
    static const std::set<std::string_view> kFunctions = {
        "tex1D",      "tex2D",      "tex3D",      "tex1Dfetch",   "tex2Dgather",  "tex1DLod",
        "tex2DLod",   "tex3DLod",   "tex2DGrad",  "tex1DLayered", "tex2DLayered", "texCubemap",
        "surf1Dread", "surf2Dread", "surf3Dread", "surf1Dwrite",  "surf2Dwrite",  "surf3Dwrite"};
    if (kFunctions.contains(text(i)) && (is(i + 1, "(") || is(i + 1, "<")))
      not_judgeable(i, "texture and surface function '" + std::string(text(i)) + "' cannot be judged");
  }

  /// The '{' of the definition that begins at i, or the end when it is a declaration only.
  std::size_t body_of(std::size_t i) const {
    for (; i < count(); ++i) {
      if (is(i, "{")) return i;
      if (is(i, ";")) break;
      if (opens(i)) i = match_forward(i);
    }
    return count();
  }

  // An architecture guard (`#if __CUDA_ARCH__ >= …`) may remove the whole body of a kernel. To run that would
  // look like a kernel that forgets its output.
  void inspect_kernel(std::size_t i) {
    const std::size_t body = body_of(i);
    if (body + 1 >= count() || !is(body + 1, "}") || token(body + 1).line <= token(body).line + 1 ||
        !options_.guarded)
      return;
    if (!options_.guarded(file_of(body), token(body).line, token(body + 1).line)) return;
    const std::string reason = "an architecture guard (#if __CUDA_ARCH__ ...) leaves nothing of this kernel";
    if (options_.refuse_emptied_kernels) return not_judgeable(body, reason, "");
    after_[body] += "capstone_emu::not_judgeable(" + place(body) + ", \"" + reason + "\");";
  }

  // __cluster_dims__(2, 1, 1): the kernel requests its cluster before it does anything else.
  void inspect_cluster(std::size_t i) {
    if (!is(i + 1, "(")) return;
    const std::size_t close = match_forward(i + 1), body = body_of(close + 1);
    if (close >= count()) return;
    for (std::size_t k = i; k <= close; ++k) dropped_.insert(k);
    if (body < count()) after_[body] += "capstone_emu::require_cluster(" + joined(i + 2, close) + ");";
  }

  // __launch_bounds__(256, 2): the kernel refuses larger blocks before it does anything else.
  void inspect_launch_bounds(std::size_t i) {
    if (!is(i + 1, "(")) return;
    const std::size_t close = match_forward(i + 1), body = body_of(close + 1);
    if (close >= count()) return;
    std::size_t end = i + 2;
    for (; end < close && !is(end, ","); ++end)
      if (opens(end)) end = match_forward(end);
    for (std::size_t k = i; k <= close; ++k) dropped_.insert(k);
    if (body < count() && end > i + 2)
      after_[body] += "capstone_emu::require_threads(" + joined(i + 2, end) + ");";
  }

  // A loop may wait for another thread by reading volatile memory: `while (*flag == 0);`. Its condition lets
  // others run.
  void inspect_loop(std::size_t i) {
    if (!is(i + 1, "(")) return;
    const std::size_t close = match_forward(i + 1);
    if (close >= count()) return;
    if (is(i, "for")) return inspect_for(i, close);
    int depth = 0;
    for (std::size_t k = i + 2; k < close; ++k) {
      if (opens(k)) ++depth;
      if (closes(k)) --depth;
      if (depth == 0 && is(k, "=")) return;  // while (T x = …)
    }
    after_[i + 1] += "capstone_emu::loop_hint(), (";
    after_[close - 1] += ")";
  }

  /// for (;;), and for (…; condition; …) that does nothing else.
  void inspect_for(std::size_t i, std::size_t close) {
    std::vector<std::size_t> ends;
    for (std::size_t k = i + 2; k < close; ++k) {
      if (opens(k))
        k = match_forward(k);
      else if (is(k, ";"))
        ends.push_back(k);
    }
    if (ends.size() != 2) return;
    const std::size_t first = ends[0], second = ends[1];
    if (second == first + 1) {
      after_[first] += "capstone_emu::loop_hint(), true";
      return;
    }
    if (!is(close + 1, ";") && !(is(close + 1, "{") && is(close + 2, "}"))) return;
    for (std::size_t k = first + 1; k < second; ++k) {
      if (opens(k))
        k = match_forward(k);
      else if (is(k, "="))
        return;  // for (…; T x = …; …)
    }
    after_[first] += "capstone_emu::loop_hint(), (";
    after_[second - 1] += ")";
  }

  // --- volatile accesses in functions that do not call __syncwarp() ---

  /// Names that declarations with `volatile` declare, and where they do.
  std::set<std::string> volatile_names(std::set<std::size_t>& declarations) const {
    std::set<std::string> names;
    for (std::size_t i = 0; i < count(); ++i) {
      if (!is(i, "volatile") || (i > 0 && (is(i - 1, "asm") || is(i - 1, "__asm__")))) continue;
      std::size_t last = 0;
      for (std::size_t k = i + 1; k < count(); ++k) {
        if (is(k, "[") || is(k, ",") || is(k, ")") || is(k, "=") || is(k, ";")) break;
        if (is(k, "(") || is(k, "{") || is(k, "}")) {
          last = 0;
          break;
        }
        if (is_identifier(k)) last = k;
      }
      if (last == 0) continue;
      names.emplace(text(last));
      declarations.insert(last);
    }
    return names;
  }

  static bool is_assignment(std::string_view op) {
    static const std::set<std::string_view> kOperators = {
        "=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<="};
    return kOperators.contains(op);
  }

  /// `name[…]…` at i: lanes meet before it is read, and around its assignment.
  void keep_in_step(std::size_t i) {
    std::size_t last = i;
    while (is(last + 1, "[")) last = match_forward(last + 1);
    if (last + 1 >= count() || is(last + 1, ".") || is(last + 1, "->")) return;
    const bool write = is_assignment(text(last + 1));
    std::size_t place = i;
    for (; write && place < count() && !is(place, ";"); ++place)
      if (opens(place)) place = match_forward(place);
    after_[i - 1] += write ? "capstone_emu::step_write(" : "capstone_emu::step_read(";
    after_[last] += ", " + std::to_string(2 * place) + ")";
  }

  /// A warp's lanes may count on lock step where they exchange volatile shared memory without __syncwarp().
  void keep_lanes_in_step() {
    std::set<std::size_t> declarations;
    const std::set<std::string> names = volatile_names(declarations);
    if (names.empty()) return;
    for (std::size_t i = 0; i < count(); ++i) {
      if (!is(i, "{") || in_function_[i] || !in_function_[i + 1]) continue;
      const std::size_t end = match_forward(i);
      bool synchronises = false;
      for (std::size_t k = i; k < end; ++k) synchronises |= is(k, "__syncwarp");
      for (std::size_t k = i; k < end && !synchronises; ++k)
        if (is_identifier(k) && is(k + 1, "[") && names.contains(std::string(text(k))) &&
            !declarations.contains(k) && !is(k - 1, ".") && !is(k - 1, "->") && !is(k - 1, "&"))
          keep_in_step(k);
      i = end;
    }
  }

  // cudaLaunchKernel((void*)kernel, …): the types of the parameters would be lost with the cast.
  void inspect_launch_call(std::size_t i) {
    if (!is(i + 1, "(")) return;
    std::size_t at = i + 2;
    auto drop = [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = begin; k < end; ++k) dropped_.insert(k);
    };
    if (is(at, "(")) {
      const std::size_t close = match_forward(at);
      const bool constant = is(at + 1, "const");
      const std::size_t type = at + 1 + (constant ? 1 : 0);
      if (is(type, "void") && is(type + 1, "*") && type + 2 == close) drop(at, close + 1);
    } else if ((is(at, "reinterpret_cast") || is(at, "static_cast")) && is(at + 1, "<")) {
      const std::size_t type = at + 2 + (is(at + 2, "const") ? 1 : 0);
      if (is(type, "void") && is(type + 1, "*") && is(type + 2, ">")) drop(at, type + 3);
    }
  }

  /// `(void*)`, `(const void*)` or a cast with a keyword at i: where its operand begins; else 0.
  std::size_t behind_void_cast(std::size_t i) const {
    const bool keyword = is(i, "reinterpret_cast") && is(i + 1, "<");
    if (!keyword && !is(i, "(")) return 0;
    std::size_t at = i + (keyword ? 2 : 1);
    if (is(at, "const")) ++at;
    if (!is(at, "void") || !is(at + 1, "*")) return 0;
    if (keyword) return is(at + 2, ">") && is(at + 3, "(") ? at + 4 : 0;
    return is(at + 2, ")") ? at + 3 : 0;
  }

  /// The token of the name that each `__global__` declares.
  std::vector<std::size_t> declared_kernels() const {
    std::vector<std::size_t> kernels;
    for (std::size_t i = 0; i < count(); ++i) {
      if (!is(i, kGlobal)) continue;
      std::size_t open = i + 1;  // of the parameters; attributes come before the name
      while (open < count() && !is(open, ";") && !is(open, "{") &&
             !(is(open, "(") && is_identifier(open - 1) && !is(open - 1, kLaunchBounds) &&
               !is(open - 1, "__attribute__") && !is(open - 1, kClusterDims)))
        open = is(open, "(") ? match_forward(open) + 1 : open + 1;
      if (is(open, "(")) kernels.push_back(open - 1);  // else a specialisation
    }
    return kernels;
  }

  /// The first token behind the template arguments that begin at i; i where there are none.
  std::size_t behind_template_arguments(std::size_t i) const {
    std::size_t end = i;
    for (int depth = is(end, "<") ? 1 : 0; depth > 0 && end + 1 < count();) {
      ++end;
      if (is(end, "<")) ++depth;
      if (is(end, ">") && --depth == 0) ++end;
    }
    return end;
  }

  // kernel(x): without <<<>>> it would run on the host, once. A name that is also declared as something else
  // is left to overload resolution.
  void refuse_calls_of_kernels() {
    std::set<std::string_view> kernels;
    std::set<std::size_t> declarations;
    for (const std::size_t name : kernels_) {
      kernels.insert(text(name));
      declarations.insert(name);
    }
    std::vector<std::size_t> calls;
    std::set<std::string_view> others;
    for (std::size_t i = 1; i < count() && !kernels.empty(); ++i) {
      if (!is_identifier(i) || !kernels.contains(text(i)) || declarations.contains(i)) continue;
      const bool typed = is_identifier(i - 1) && !is_keyword_before_callee(text(i - 1));
      const bool pointer = (is(i - 1, "*") || is(i - 1, "&") || is(i - 1, ">")) && !in_function_[i];
      const bool call = is(behind_template_arguments(i + 1), "(");
      if (typed || pointer || (in_function_[i] && declares(i)))
        others.insert(text(i));
      else if (call && in_function_[i] && !is(i - 1, ".") && !is(i - 1, "->") && !is(i - 1, "::"))
        calls.push_back(i);
    }
    for (const std::size_t i : calls)
      if (!others.contains(text(i)))
        report(Finding::Kind::kError, i, "kernel '" + std::string(text(i)) + "' is called without <<<>>>",
               "launch it: " + std::string(text(i)) + "<<<blocks, threads>>>(…)");
  }

  // f<<<1, 1>>>(x), where f has no __global__: nvcc refuses it, and here it would run. A name that is also
  // declared as something else, such as a pointer to a kernel, is left alone.
  void refuse_launches_of_functions() {
    std::set<std::string_view> functions, others;
    for (const std::size_t name : kernels_) others.insert(text(name));
    for (std::size_t i = 1; i < count() && !launches_.empty(); ++i) {
      if (!is_identifier(i)) continue;
      const bool typed = is_identifier(i - 1) || is(i - 1, "*") || is(i - 1, "&") || is(i - 1, ">");
      if (typed && !in_function_[i] && is(i + 1, "("))
        functions.insert(text(i));
      else if (declares(i) || (is(i - 1, "*") && is(i + 1, ")")))  // also void (*f)(int*)
        others.insert(text(i));
    }
    for (const auto& [begin, launch] : launches_) {
      std::size_t name = is(begin, "::") ? begin + 1 : begin;
      while (is(name + 1, "::")) name += 2;
      if (behind_template_arguments(name + 1) != launch.callee_end || others.contains(text(name)) ||
          !functions.contains(text(name)))
        continue;
      const std::string callee(text(name));
      report(Finding::Kind::kError, name,
             "'" + callee + "' is launched, but it is no kernel: its declaration lacks __global__",
             "declare it __global__ void " + callee + "(…), or call it without <<<>>>");
    }
  }

  // nvcc passes the address of what a reference means, and the kernel changes the original, if a GPU can
  // reach it. Arguments are copied here, so the change would be lost.
  void refuse_reference_parameters() {
    for (const std::size_t name : kernels_) {
      const std::size_t close = match_forward(name + 1), body = body_of(close + 1);
      if (body >= count()) continue;
      for (std::size_t i = name + 2; i < close; ++i) {
        if (is(i, "<")) i = behind_template_arguments(i);
        if (is(i, "&") || is(i, "&&")) {
          after_[body] += "capstone_emu::not_judgeable(" + place(name) +
                          ", \"a parameter of a kernel is a reference: on a GPU it works for managed memory "
                          "alone; pass a pointer\");";
          break;
        }
        if (opens(i) && !is(i + 1, "&")) i = match_forward(i);  // (&array)[4] is a reference, too
      }
    }
  }

  // (void*)kernel: the address is all that cudaKernelNodeParams keeps, so the types of the parameters are
  // noted.
  void keep_kernel_addresses() {
    std::set<std::string_view> kernels;
    for (const std::size_t name : kernels_) kernels.insert(text(name));
    for (std::size_t i = 0; i < count() && !kernels.empty(); ++i) {
      std::size_t name = behind_void_cast(i);
      if (name == 0 || dropped_.contains(i) || !in_function_[i]) continue;
      const std::size_t operand = name;
      if (is(name, "&")) ++name;
      while (is(name + 1, "::") && is_identifier(name + 2)) name += 2;
      if (!is_identifier(name) || !kernels.contains(text(name))) continue;
      const std::size_t end = behind_template_arguments(name + 1);
      const bool keyword = is(i, "reinterpret_cast");
      if (keyword && !is(end, ")")) continue;
      for (std::size_t k = i; k < operand; ++k) dropped_.insert(k);
      after_[operand - 1] += "capstone_emu::kernel_address(" + quoted(joined(name, end)) + ", ";
      if (!keyword) after_[end - 1] += ")";
    }
  }

  static bool is_keyword_before_callee(std::string_view word) {
    return word == "return" || word == "else" || word == "do" || word == "co_return";
  }

  /// Walks back from the token before `<<<` over `a::b<…>`, `x.y`, `p->y`, `(f)`, `f(…)`.
  std::size_t callee_begin(std::size_t last) const {
    std::size_t at = last;
    for (;;) {
      if (is(at, ">")) {
        at = match_angle_backward(at);
        if (at == 0) return last;
        --at;
      } else if (is(at, ")") || is(at, "]")) {
        at = match_backward(at);
        if (at > 0 && is_identifier(at - 1) && !is_keyword_before_callee(text(at - 1))) --at;
      }
      if (at == 0) return at;
      if (is(at - 1, "template") && at > 1) --at;
      if (is(at - 1, "::")) {
        --at;
        if (at == 0) return at;
        const bool qualified =
            is(at - 1, ">") || (is_identifier(at - 1) && !is_keyword_before_callee(text(at - 1)));
        if (!qualified) return at;
        --at;
        continue;
      }
      if ((is(at - 1, ".") || is(at - 1, "->")) && at > 1) {
        at -= 2;
        continue;
      }
      return at;
    }
  }

  void inspect_launch(std::size_t i) {
    if (i == 0) return;
    if (in_kernel_[i] && !options_.keep_main)
      return report(Finding::Kind::kError, i, "a kernel launches a kernel: that needs nvcc -rdc=true",
                    "the judge compiles one file without it; launch the second kernel from launch()");
    // Formatters that do not know CUDA write `k << <1, 2 >> > (x)`, which nvcc takes.
    const bool spaced = is(i, "<<");
    const std::size_t config = i + (spaced ? 2 : 1);
    int depth = 0;
    std::size_t close = config;
    for (; close + 2 < count(); ++close) {
      if (opens(close)) ++depth;
      if (closes(close)) --depth;
      const bool triple =
          is(close, ">") && is(close + 1, ">") && is(close + 2, ">") &&
          (token(close + 2).begin == token(close).begin + 2 || (spaced && is(close + 3, "(")));
      if (depth == 0 && (triple || is(close, ";"))) break;
    }
    if (close + 3 >= count() || !is(close, ">"))
      return report(Finding::Kind::kError, i, "kernel launch: '<<<' without '>>>'", {});
    const std::size_t open = close + 3;
    if (!is(open, "("))
      return report(Finding::Kind::kError, i, "kernel launch: expected '(' after '>>>'", {});
    Launch launch{callee_begin(i - 1), i, config, close, {}, match_forward(open) + 1};
    for (std::size_t at = open + 1, begin = at, nested = 0; at < launch.end; ++at) {
      const bool last = at + 1 == launch.end;
      if (last || (nested == 0 && is(at, ","))) {
        if (at > begin) launch.arguments.emplace_back(begin, at);
        begin = at + 1;
      } else if (opens(at)) {
        ++nested;
      } else if (closes(at)) {
        --nested;
      }
    }
    launches_[launch.callee_begin] = launch;
  }

  std::size_t declaration_begin(std::size_t i) const {
    for (; i > 0; --i) {
      const std::size_t before = i - 1;
      if (is(before, ")")) {  // __attribute__((…)), alignas(…), decltype(…) belong to it; `if (…)` does not
        const std::size_t open = match_backward(before);
        if (open > 0 &&
            (is(open - 1, "__attribute__") || is(open - 1, "alignas") || is(open - 1, "decltype"))) {
          i = open;
          continue;
        }
        return i;
      }
      if (is(before, ";") || is(before, "{") || is(before, "}") || is(before, ":") || is(before, "(") ||
          is(before, ",") || token(before).kind == TokenKind::kOpaque ||
          token(before).kind == TokenKind::kPragma)
        return i;
    }
    return i;
  }

  void inspect_shared(std::size_t i) {
    SharedDeclaration declaration{declaration_begin(i), i, false, in_function_[i] != 0};
    if (shared_.contains(declaration.begin)) return;
    for (int depth = 0; declaration.end < count(); ++declaration.end) {
      if (opens(declaration.end)) ++depth;
      if (closes(declaration.end)) --depth;
      if (depth == 0 && is(declaration.end, ";")) break;
    }
    if (declaration.end == count())
      return report(Finding::Kind::kError, i, "__shared__ declaration without ';'", {});
    for (std::size_t k = declaration.begin; k < declaration.end; ++k)
      declaration.is_extern |= is(k, "extern");
    ++declaration.end;
    if (!declaration.is_extern) declaration.tag = "capstone_emu_shared_" + std::to_string(next_tag_++);
    shared_[declaration.begin] = declaration;
    if (declaration.in_function) return;
    if (declaration.is_extern) {
      const Dynamic dynamic = parse_dynamic(declaration);
      global_shared_[dynamic.name] = dynamic.cast();
      return;
    }
    std::vector<std::string> names;
    if (!declared_names(declaration, names)) return;
    for (const std::string& name : names)
      global_shared_[name] = "(capstone_emu::shared<" + declaration.tag + ">()." + name + ")";
  }

  // --- variables and parameters that hide a shared variable of namespace scope ---

  /// Does the identifier at i declare something? Neither a product nor a conjunction ends with an array, so
  /// `T * name` is a declaration.
  bool declares(std::size_t i) const {
    static const std::set<std::string_view> kBeforeExpressions = {
        "return", "else", "do", "case", "throw", "sizeof", "new", "delete", "and", "or", "not", "goto"};
    if (i < 2) return false;
    const bool ends = is(i + 1, ";") || is(i + 1, ",") || is(i + 1, ")") || is(i + 1, "=");
    auto names_type = [&](std::size_t k) {
      return is_identifier(k) && !kBeforeExpressions.contains(text(k));
    };
    if (names_type(i - 1)) return ends || is(i + 1, "[") || is(i + 1, "{");
    if (!ends || !(is(i - 1, "*") || is(i - 1, "&"))) return false;
    return names_type(i - 2) || is(i - 2, "*") || is(i - 2, ">");
  }

  void hide(const std::string& name, std::size_t declared_at) {
    std::size_t begin = declared_at;
    if (!in_function_[declared_at]) {  // a parameter: up to the end of the body, where there is one
      while (begin < count() && !is(begin, "{") && !is(begin, ";")) ++begin;
      if (!is(begin, "{")) return;
    }
    const bool body = is(begin, "{");
    int depth = 0;
    for (std::size_t i = begin; i < count(); ++i) {
      if (is(i, "{")) ++depth;
      if (is(i, "}") && --depth == (body ? 0 : -1)) return;
      if (text(i) == name) hidden_.insert(i);
    }
  }

  void find_hidden_names() {
    for (const auto& [name, expression] : global_shared_)
      for (std::size_t i = 0; i < count(); ++i)
        if (is_identifier(i) && text(i) == name && !declares_shared_globally(i) && declares(i)) hide(name, i);
  }
  /// Is the token part of a declaration with __shared__ at namespace scope?
  bool declares_shared_globally(std::size_t i) const {
    const auto after = shared_.upper_bound(i);
    return after != shared_.begin() && i < std::prev(after)->second.end &&
           !std::prev(after)->second.in_function;
  }

  void inspect_asm(std::size_t i) {
    std::size_t open = i + 1;
    while (open < count() && (is(open, "volatile") || is(open, "__volatile__") || is(open, "__volatile")))
      ++open;
    if (open < count() && is(open, "(")) asms_[i] = {i, open, match_forward(open)};
  }

  // --- writing ---
  void emit(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end;) {
      if (auto it = launches_.find(i); it != launches_.end() && it->second.end <= end) {
        const Launch launch = it->second;
        launches_.erase(it);  // its callee is emitted again below
        emit_launch(launch);
        i = launch.end;
      } else if (auto declaration = shared_.find(i); declaration != shared_.end()) {
        emit_shared(declaration->second);
        i = declaration->second.end;
      } else if (auto assembly = asms_.find(i); assembly != asms_.end()) {
        emit_asm(assembly->second);
        i = assembly->second.close + 1;
      } else {
        emit_token(i++);
      }
      if (auto text = after_.find(i - 1); text != after_.end()) emitter_.raw(text->second);
    }
  }

  /// Attributes that keep functions from being instrumented.
  static bool is_exemption(std::string_view name) {
    if (name.starts_with("__") && name.ends_with("__") && name.size() > 4)
      name = name.substr(2, name.size() - 4);
    for (const std::string_view one :
         {"no_sanitize", "no_sanitize_thread", "no_sanitize_address", "no_sanitize_undefined",
          "no_sanitize_coverage", "no_address_safety_analysis"})
      if (name == one) return true;
    return false;
  }

  void emit_token(std::size_t i) {
    const Token& t = token(i);
    if (dropped_.contains(i)) return;
    if (t.kind == TokenKind::kIdentifier) {
      if (is(i, kDevice)) return;
      if (is_exemption(text(i))) {  // every function is instrumented
        for (std::size_t k = i + 1; is(i + 1, "(") && k <= match_forward(i + 1); ++k) dropped_.insert(k);
        return emitter_.raw("unused");
      }
      if (is(i, kGlobal)) return emitter_.raw("__attribute__((noipa))");
      const bool qualified = i > 0 && (is(i - 1, ".") || is(i - 1, "->") || is(i - 1, "::"));
      if (is(i, "printf") && is(i + 1, "(") && in_device_[i] && !qualified)
        return emitter_.raw("capstone_emu::device_printf");
      // A test driver in the kernel's file must not become the worker's main().
      if (!options_.keep_main && is(i, "main") && at_namespace_[i] && is(i + 1, "("))
        return emitter_.raw("capstone_candidate_main");
      if (auto dynamic = global_shared_.find(std::string(text(i)));
          dynamic != global_shared_.end() && in_function_[i] && !hidden_.contains(i) && !qualified)
        return emitter_.raw(dynamic->second);
    }
    emitter_.token(t);
  }

  bool needs_literal(const std::pair<std::size_t, std::size_t>& argument) const {
    return (argument.second - argument.first == 1 &&
            (is(argument.first, "0") || is(argument.first, "__null"))) ||
           is_braced(argument);
  }
  /// k<<<…>>>({x, n}): the kernel's parameter gives it a type.
  bool is_braced(const std::pair<std::size_t, std::size_t>& argument) const {
    return is(argument.first, "{");
  }
  /// Lambdas may not stand in an unevaluated operand before C++20.
  bool may_repeat_arguments(const Launch& launch) const {
    for (auto [begin, end] : launch.arguments)
      for (std::size_t i = begin; i < end; ++i)
        if ((is(i, "[") && (i == begin || is(i - 1, "(") || is(i - 1, ","))) || is(i, "{")) return false;
    return true;
  }

  /// "d_x,,n": those of launch(); what is no plain name is left empty.
  std::string argument_names(const Launch& launch) const {
    std::string names;
    for (const auto& argument : launch.arguments) {
      if (needs_literal(argument)) continue;
      bool plain = true;
      for (std::size_t i = argument.first; i < argument.second; ++i)
        plain &= is_identifier(i) || is(i, ".") || is(i, "->") || is(i, "::") || is(i, "[") || is(i, "]") ||
                 token(i).kind == TokenKind::kNumber;
      names += (plain ? joined(argument.first, argument.second) : std::string()) + ",";
    }
    return names;
  }

  // (sizeof((k(a), 0)), launch(config(…), [=](auto&... v) { k(v...); }, a)): the sizeof makes a one-line
  // error of wrong arguments. A graph, or a late stream, runs the lambda when its variables are gone. A
  // literal 0 or NULL must stay literal: it may have to become a pointer.
  void emit_launch(const Launch& launch) {
    const std::string callee = joined(launch.callee_begin, launch.callee_end);
    emitter_.raw("(");
    if (may_repeat_arguments(launch)) {
      emitter_.raw("sizeof((");
      emit(launch.callee_begin, launch.callee_end);
      emitter_.raw("(");
      emit_arguments(launch, [](std::size_t) { return true; });
      emitter_.raw("), 0)),");
    }
    emitter_.raw("capstone_emu::launch(capstone_emu::naming(" + quoted(argument_names(launch)) +
                 ", capstone_emu::config(" + quoted(callee) + ", " + place(launch.callee_begin) + ",");
    emit(launch.config_begin, launch.config_end);
    emitter_.raw(")),");
    const bool literal = std::any_of(launch.arguments.begin(), launch.arguments.end(),
                                     [&](const auto& argument) { return needs_literal(argument); });
    if (literal) {
      std::string parameters, values;
      for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
        const bool keep = needs_literal(launch.arguments[i]);
        const std::string name = "capstone_v" + std::to_string(i);
        if (!keep) parameters += (parameters.empty() ? "auto& " : ", auto& ") + name;
        values +=
            (i ? ", " : "") + (keep ? joined(launch.arguments[i].first, launch.arguments[i].second) : name);
      }
      emitter_.raw("[=](" + parameters + ") " + kUnobserved + " {");
      emit(launch.callee_begin, launch.callee_end);
      emitter_.raw("(" + values + "); }");
    } else {
      emitter_.raw("[=](auto&... capstone_v) " + kUnobserved + " {");
      emit(launch.callee_begin, launch.callee_end);
      emitter_.raw("(capstone_v...); }");
    }
    bool any = false;
    for (const auto& argument : launch.arguments) any |= !needs_literal(argument);
    if (any) emitter_.raw(",");
    emit_arguments(launch, [&](std::size_t i) { return !needs_literal(launch.arguments[i]); });
    emitter_.raw("))");
  }
  template <class Wanted>
  void emit_arguments(const Launch& launch, Wanted wanted) {
    bool first = true;
    for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
      if (!wanted(i)) continue;
      if (!first) emitter_.raw(",");
      first = false;
      emit(launch.arguments[i].first, launch.arguments[i].second);
    }
  }

  /// `extern __shared__ T name[][N]`
  struct Dynamic {
    std::string type, name, inner;  // inner: "[N]", empty for one dimension
    bool is_array = false;          // extern __shared__ T name; is legal, too
    std::string pointer() const { return inner.empty() ? type + "*" : type + " (*)" + inner; }
    std::string cast() const {
      return std::string(is_array ? "(" : "(*") + "reinterpret_cast<" + pointer() +
             ">(capstone_emu::dynamic_shared()))";
    }
    std::string declaration() const {
      const std::string declared = !is_array       ? type + "& " + name
                                   : inner.empty() ? type + "* " + name
                                                   : type + " (*" + name + ")" + inner;
      return declared + " = " + cast() + ";";
    }
  };
  Dynamic parse_dynamic(const SharedDeclaration& declaration) const {
    Dynamic result;
    std::vector<std::string> words;
    int dimensions = 0;
    for (std::size_t i = declaration.begin; i + 1 < declaration.end; ++i) {
      if (is(i, "extern") || is(i, kShared) || is(i, "static")) continue;
      if (is(i, "__attribute__") || is(i, "alignas")) {
        i = match_forward(i + 1);
      } else if (is(i, "[")) {
        const std::size_t close = match_forward(i);
        if (dimensions++) result.inner += joined(i, close + 1);
        result.is_array = true;
        i = close;
      } else {
        words.emplace_back(text(i));
      }
    }
    if (words.empty()) return result;
    result.name = words.back();
    words.pop_back();
    for (const std::string& word : words) result.type += (result.type.empty() ? "" : " ") + word;
    return result;
  }

  void emit_shared(const SharedDeclaration& declaration) {
    if (declaration.is_extern) {
      const Dynamic dynamic = parse_dynamic(declaration);
      if (!declaration.in_function) return;  // its uses are replaced
      return emitter_.raw(dynamic.declaration());
    }
    std::vector<std::string> names;
    if (!declared_names(declaration, names)) return;
    const std::string& tag = declaration.tag;
    const bool local = declaration.in_function;  // else another source may have a structure of that name
    emitter_.raw((local ? "struct " : "namespace { struct ") + tag + " {");
    for (std::size_t i = declaration.begin; i < declaration.end; ++i)
      if (!is(i, kShared) && !is(i, "static")) emit_token(i);
    std::string list, references;
    for (const std::string& name : names) {
      list += (list.empty() ? "" : ", ") + name;
      references += " auto& " + name + " = capstone_emu::shared<" + tag + ">()." + name + ";";
    }
    const std::string label =
        list + " in " + file_of(declaration.begin) + ":" + std::to_string(token(declaration.begin).line);
    emitter_.raw("static const char* capstone_name() { return " + quoted(label) + "; } };" +
                 (local ? references : " }"));
  }

  /// The declared identifiers: the last one before '[', ',' or the end, outside of template argument lists.
  bool declared_names(const SharedDeclaration& declaration, std::vector<std::string>& names) {
    std::string last;
    bool named = false;
    int angle = 0;
    for (std::size_t i = declaration.begin; i + 1 < declaration.end; ++i) {
      if (is(i, "(")) {
        const std::size_t close = match_forward(i);
        if (is(i + 1, "*") || is(i + 1, "&"))  // (*rows)[8]
          for (std::size_t k = i + 1; k < close; ++k)
            if (is_identifier(k)) last = text(k);
        i = close;
      } else if (is(i, "{") && (is_class_body(declaration.begin, i))) {
        i = match_forward(i);
      } else if (is(i, "=") || is(i, "{")) {
        report(Finding::Kind::kError, i, "a __shared__ variable cannot have an initialiser",
               "assign it in the kernel, then call __syncthreads()");
        return false;
      } else if (is(i, "<")) {
        ++angle;
      } else if (is(i, ">")) {
        --angle;
      } else if (angle == 0 && is(i, "[")) {
        if (!named) names.push_back(last);
        named = true;
        i = match_forward(i);
      } else if (angle == 0 && is(i, ",")) {
        if (!named) names.push_back(last);
        named = false;
      } else if (angle == 0 && is_identifier(i)) {
        last = text(i);
      }
    }
    if (!named) names.push_back(last);
    return true;
  }
  bool is_class_body(std::size_t begin, std::size_t brace) const {
    for (std::size_t i = begin; i < brace; ++i)
      if (is(i, "struct") || is(i, "union") || is(i, "class")) return true;
    return false;
  }

  // The compiler refuses the call if it is left when templates that nobody instantiates and inline functions
  // that nobody calls are gone.
  void emit_unsupported(const InlineAsm& assembly, const std::string& instruction) {
    const std::string name = "capstone_emu_unsupported_" + std::to_string(next_tag_++);
    emitter_.raw("do {");
    emit_token(assembly.begin);  // its place becomes the error's
    emitter_.raw("(\"\"); __attribute__((noreturn, error(" +
                 quoted(std::string(kUnsupported) + family_of(instruction) + " instruction '" + instruction +
                        "' has no CPU implementation") +
                 "))) void " + name + "(); " + name + "(); } while (0)");
  }

  // asm("…" : outputs : inputs : clobbers) → do { Output p0(…); Input p1(…); … } while (0)
  void emit_asm(const InlineAsm& assembly) {
    std::string ptx;
    std::size_t i = assembly.open + 1;
    for (; i < assembly.close && token(i).kind == TokenKind::kString; ++i) ptx += literal_value(text(i));
    struct AsmOperand {
      bool output;
      std::size_t begin, end;
      std::string name;
    };
    std::vector<AsmOperand> operands;
    int part = 0;
    std::string symbolic;
    for (; i < assembly.close; ++i) {
      if (is(i, ":"))
        ++part;
      else if (is(i, "::"))
        part += 2;
      else if (is(i, "[") && part > 0 && part < 3) {
        symbolic = text(i + 1);
        i = match_forward(i);
      } else if (part > 0 && part < 3 && token(i).kind == TokenKind::kString && is(i + 1, "(")) {
        const std::size_t close = match_forward(i + 1);
        operands.push_back({part == 1, i + 2, close, symbolic});
        symbolic.clear();
        i = close;
      }
    }
    std::vector<std::string> names;
    for (const AsmOperand& operand : operands) names.push_back(operand.name);
    const Translation translation = translate_ptx(ptx, names, options_.arch);
    if (!translation.unsupported.empty() && !in_device_[assembly.begin]) {  // of the host's processor
      for (std::size_t k = assembly.begin; k <= assembly.close; ++k) emit_token(k);
      return;
    }
    if (!translation.unsupported.empty()) return emit_unsupported(assembly, translation.unsupported);
    emitter_.raw("do {");
    if (!translation.labels.empty()) emitter_.raw("__label__ " + join(translation.labels) + ";");
    for (std::size_t k = 0; k < operands.size(); ++k) {
      emitter_.raw(
          std::string(operands[k].output ? "capstone_emu::ptx::Output" : "capstone_emu::ptx::Input") +
          " capstone_p" + std::to_string(k) + "((");  // `Input p(int(x));` would declare a function
      emit(operands[k].begin, operands[k].end);
      emitter_.raw("));");
    }
    emitter_.raw("__asm__ volatile(\"\" ::: \"memory\"); " + translation.code + "} while (0)");
  }

  SourceText source_;
  Emitter emitter_;
  const RewriteOptions& options_;
  std::vector<Finding> findings_;
  std::vector<char> in_function_, in_kernel_, in_device_, at_namespace_, at_file_scope_;
  std::map<std::size_t, Launch> launches_;
  std::map<std::size_t, SharedDeclaration> shared_;
  std::map<std::size_t, InlineAsm> asms_;
  std::map<std::size_t, std::string> after_;          // text to write after a token
  std::set<std::size_t> dropped_;                     // tokens that are left out
  std::vector<std::size_t> kernels_;                  // see declared_kernels()
  bool spins_ = false;                                // the source reads volatile memory
  std::map<std::string, std::string> global_shared_;  // __shared__ at namespace scope: name → expression
  std::set<std::size_t> hidden_;                      // tokens with such a name that mean something else
  int next_tag_ = 0;
};

}  // namespace

const char* name_of(Finding::Kind kind) { return kind == Finding::Kind::kError ? "error" : "not_judgeable"; }

Rewritten rewrite(std::string preprocessed, const RewriteOptions& options) {
  return Rewriter(std::move(preprocessed), options).run();
}

}  // namespace capstone::rewriter
