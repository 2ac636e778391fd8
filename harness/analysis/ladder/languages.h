#pragma once
// Ladders of languages: one problem, solved in several languages and judged in one run. Such a ladder is a
// folder of a session with a `ladder.yaml`; its rungs are .py files with ModelNew and .cu files.
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/resources.h"

namespace capstone {

struct LadderDefinition {
  std::string problem;  ///< what the rungs solve
  std::string library;  ///< the arm of PyTorch that percentages refer to; empty: the native baseline
  std::vector<std::string> also;  ///< rungs of the problem's own ladder that run along
};

/// Whether a rung is a Python file with ModelNew.
bool is_python_rung(const std::filesystem::path& file);
/// Whether a folder holds a ladder of languages.
bool is_language_ladder(const std::filesystem::path& folder);
/// What a ladder's id stands for: for "gemm_languages" its ladder.yaml; for any other the problem of that
/// name.
/// @error ladder.yaml has a mistake
Result<LadderDefinition> ladder_definition(const Resources& resources, const std::string& ladder);
/// The ladders of languages in a session ("W3"), or in any (""), by name.
std::vector<std::string> language_ladders(const Resources& resources, const std::string& session);

/// What the author of a rung wrote.
struct Written {
  std::string language;  ///< "Triton", "TileLang", "CuTe-DSL", "CUTLASS", "CUDA C++", "Python"
  int lines = 0;         ///< without empty lines and comments
  int tokens = 0;        ///< without comments; a string is one token
};
/// The lines of a source without empty ones and those that hold only a comment.
std::vector<std::string> code_lines(const std::filesystem::path& file, std::string_view source);
Written written(const std::filesystem::path& file, std::string_view source);

/// A source without its comments: what follows a `#` outside of strings. Lines stay.
std::string without_python_comments(std::string_view source);

}  // namespace capstone
