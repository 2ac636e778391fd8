#pragma once
// CUDA C++ → C++ that g++ understands and the emulator's runtime executes.
#include <functional>
#include <string>
#include <vector>

namespace capstone::rewriter {

/// Something in the source that stops the build.
struct Finding {
  enum class Kind {
    kError,         ///< no compiler would accept it
    kNotJudgeable,  ///< fine on a GPU, but the CPU cannot run it
  } kind;
  std::string file;  ///< as the preprocessor named it
  int line = 0;
  std::string message;
  std::string hint;
};
/// "error" or "not_judgeable"
const char* name_of(Finding::Kind kind);

/// Begins the compiler's error where the rewritten text calls what only a GPU can run. The rest is the
/// message. Those who run the compiler look for it.
inline constexpr const char* kUnsupported = "not judgeable: ";

struct Rewritten {
  std::string text;               ///< preprocessed C++; line markers lead to the user's lines
  std::vector<Finding> findings;  ///< in source order; if there is one, do not compile `text`
};

struct RewriteOptions {
  bool keep_main = false;  ///< the source is a whole program: its main() keeps its name
  /// A kernel whose whole body an architecture guard removes stops the build; else only its launch is
  /// refused.
  bool refuse_emptied_kernels = false;
  bool observed = false;  ///< for the instrumented build
  int arch = 900;         ///< __CUDA_ARCH__: which instructions there are
  /// Do the lines first … last of a file hold a preprocessor condition? Unset: never.
  std::function<bool(const std::string& file, int first, int last)> guarded = {};
  /// The first line of a file of the user's that pretends to be another file, such as a system header, whose
  /// text would be left alone; 0: there is none. Unset: not looked for.
  std::function<int(const std::string& file)> disguised = {};
};

/// Rewrites the output of `g++ -E` over a source that begins with capstone_emulator.h:
/// __shared__ declarations, launches, inline PTX; everything else passes through.
Rewritten rewrite(std::string preprocessed, const RewriteOptions& options = {});

}  // namespace capstone::rewriter
