#pragma once
// Arithmetic over size symbols, with errors that know their character position. The public interface is
// Expression in problem.h; the loader uses these functions to point into problem.yaml.
#include <cstddef>
#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "harness/model/problem.h"

namespace capstone {

/// Why an expression cannot be evaluated.
struct ExpressionFault {
  std::string what;          ///< one line, no trailing period
  std::string hint;          ///< may be empty
  std::size_t position = 0;  ///< character in the text, from 0
};

template <class T>
using Evaluated = tl::expected<T, ExpressionFault>;

/// A name inside an expression, and its position.
struct SymbolUse {
  std::string name;
  std::size_t position = 0;
};

/// Functions that an expression may call: min, max, abs, sqrt, log2, floor, ceil, ceil_div, round_up.
const std::vector<std::string>& expression_functions();

/// Names in `text` that are not function calls, in order, repeats included. Never fails.
std::vector<SymbolUse> symbols_in(const std::string& text);

/// Evaluates `text`. Operators: + - * / % ^ ( ) comparisons && ||; true is 1, false is 0.
/// @error syntax, undefined symbol or function, a result that is not finite.
Evaluated<double> evaluate_expression(const std::string& text, const Sizes& sizes);

/// The same for counts. @error not whole, negative, or more than 2^53.
Evaluated<std::int64_t> evaluate_whole(const std::string& text, const Sizes& sizes);

/// "did you mean `cols`?" if a candidate is similar, else "known: a, b, c".
std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace capstone
