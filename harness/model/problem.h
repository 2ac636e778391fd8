#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "harness/base/error.h"
#include "harness/model/dtype.h"

namespace capstone {

/// Size symbols and their values, in the problem's order (the order of launch()'s parameters).
using Sizes = std::vector<std::pair<std::string, std::int64_t>>;

/// The value of one symbol; throws std::out_of_range if the problem has no such symbol.
std::int64_t size_of(const Sizes& sizes, const std::string& symbol);
/// "rows=64, cols=512"
std::string to_string(const Sizes& sizes);

enum class Role { kInput, kParameter, kInout, kOutput, kScalar };
std::string_view name_of(Role role);

/// An arithmetic expression over size symbols, stored as written. Evaluated by a library (muparser).
struct Expression {
  std::string text;
  /// @error names the undefined symbol, or the syntax error. `extra` adds symbols (scalars).
  Result<double> evaluate(const Sizes& sizes) const;
  /// The same, rounded. @error not a whole number, or negative.
  Result<std::int64_t> evaluate_integer(const Sizes& sizes) const;
};

/// How a tensor's values are drawn.
struct InitNormal {
  double mean = 0, std = 1;
};
struct InitUniform {
  double low = 0, high = 1;
};  ///< [low, high)
struct InitInteger {
  std::int64_t min = 0, max = 0;
};  ///< both ends included
/// of 0 … n-1, drawn once over the whole tensor
struct InitPermutation {
  Expression of;
};
/// non-decreasing, starts at 0, ends at total; segments may be empty
struct InitOffsets {
  Expression total, segments;
  /// The lengths are always the same and rise by equal steps; their order is drawn. Without it the cuts fall
  /// anywhere.
  bool ramp = false;
};
/// from `low` to `high` at equal distances, in random order; together floor(count (low + high) / 2)
struct InitLengths {
  Expression low, high;
};
/// from 0 on, together `total`; some may be 0
struct InitCounts {
  Expression total;
};
/// in each row of the last dimension different indices in [0, of), then -1; how many there are in a row: as
/// InitLengths, from `least` to the length of a row, or to `of` if that is less
struct InitTopK {
  Expression of, least;
};
/// a cache in pages, [pages, slots, …]: standard normal where a sequence has a token, NaN everywhere else
struct InitPages {
  std::string table, lengths;  ///< parameters: the pages of each sequence, and how many tokens it has
};
struct InitChoice {
  std::vector<double> values;
};
struct InitGenerator {
  std::string name;
};  ///< one of capstone's C++ generators, by name
using Init = std::variant<InitNormal, InitUniform, InitInteger, InitPermutation, InitOffsets, InitLengths,
                          InitCounts, InitTopK, InitPages, InitChoice, InitGenerator>;

/// One parameter of launch(): a tensor or a scalar.
struct Parameter {
  std::string name;
  Role role = Role::kInput;
  DType dtype = DType::kF32;
  std::vector<Expression> shape;    ///< empty for scalars
  Init init = InitNormal{};         ///< inputs, parameters, inouts
  std::optional<Expression> value;  ///< scalars
  /// For a parameter: the nn.Module attribute that it becomes. For an input: "bool" if forward() gets
  /// Booleans. For a scalar: "forward" if it is an argument of forward(). Empty: none of these.
  std::string python;
  bool is_scalar() const { return role == Role::kScalar; }
  bool is_written() const { return role == Role::kOutput || role == Role::kInout; }
};

/// The values that the judge may draw for one size symbol.
struct Vary {
  std::int64_t low = 1, high = 1;  ///< range, both ends included
  std::int64_t multiple_of = 1;
  std::vector<std::int64_t> one_of;  ///< if not empty, range is not used
};

struct Tolerance {
  double rtol = 0, atol = 0;
};

/// Precision classes, from strict to loose.
enum class Precision { kFp32, kTf32, kFp16, kBf16, kFp8, kFp4 };
std::string_view name_of(Precision precision);

/// A timed baseline. `native` is the problem's own baseline.cu; the others come from PyTorch.
struct Baseline {
  std::string name;  ///< "native", "eager", "compile", …
};

/// One problem definition: problem.yaml, read strictly.
struct Problem {
  int schema = 1;
  std::string id, title;
  int tier = 1;                       ///< KernelBench level 1, 2 or 3
  std::vector<std::string> sessions;  ///< "L3", "W4"
  std::string expect;                 ///< the expected outcome of human against model; shown to students
                                      ///< after they predict
  std::string edge;                   ///< where a human can do better
  std::string bottleneck;             ///< "memory", "compute" or "latency"
  std::vector<Parameter> signature;
  std::vector<std::string> symbols;  ///< size symbols in order of first appearance in the signature;
                                     ///< empty: all shapes are fixed
  std::vector<Sizes> check;
  std::map<std::string, Vary> vary;  ///< empty: hidden sizes are not drawn (only if the oracle is
                                     ///< reference.py)
  Sizes measure, emulate;
  std::vector<std::pair<std::string, Sizes>> published;
  std::vector<Expression> where;
  Tolerance tolerance;
  Expression flops, bytes;  ///< cost of the best possible algorithm at given sizes
  Precision precision = Precision::kFp32;
  std::vector<Baseline> baselines;   ///< gate two uses the first one
  std::string arch = "sm_75";        ///< minimum architecture
  bool oracle_is_reference = false;  ///< the ground truth is reference.py in float64; there is no
                                     ///< oracle.cpp and no baseline.cu
  bool prepare = false;
  bool fast_math = false;
  bool graded = false;
  std::vector<std::string> link;  ///< toolkit libraries that the native baseline may use: cublas,
                                  ///< cudnn
  std::map<std::string, std::string> because;  ///< triviality-audit exceptions: trick → reason
  /// Variations of the inputs that are not judged: name → reason
  std::map<std::string, std::string> outside_domain;

  std::filesystem::path folder;  ///< of the definition
  std::string digest;            ///< SHA-256 over every file of the folder, names included

  const Parameter* find(const std::string& name) const;
};

/// Reads and checks `folder`/problem.yaml. Strict.
/// @error unknown or repeated key, bad type, undefined symbol, a list of sizes that lacks a symbol: at
///   file:line:column, with the most similar valid name as a hint.
Result<Problem> load_problem(const std::filesystem::path& folder);

/// Every problem below `root`, sorted by id. @error a broken definition; the error names its file.
Result<std::vector<Problem>> load_catalogue(const std::filesystem::path& root);

/// By id from the catalogue, or by path if `name` has a slash or is a folder with a problem.yaml.
/// @error unknown id: the hint gives the most similar one.
Result<Problem> find_problem(const std::filesystem::path& catalogue_root, const std::string& name);

/// The text of problem/launch.h: the declaration of launch() (and workspace_bytes, prepare …) with shapes in
/// comments.
std::string launch_header(const Problem& problem);

/// The C++ source of the adapter that every build links with a candidate: it unpacks an array of argument
/// slots and calls launch() with its real types. See harness/runtime/worker/protocol.md.
std::string adapter_source(const Problem& problem);

/// A readable summary of the definition: the signature, sizes, tolerance and cost. Used in prompts.
std::string describe_contract(const Problem& problem);

/// Floating-point operations and compulsory bytes at these sizes.
struct Cost {
  double flops = 0, bytes = 0;
  double intensity() const { return bytes > 0 ? flops / bytes : 0; }
};
Result<Cost> cost_at(const Problem& problem, const Sizes& sizes);

/// The shape of a tensor at these sizes.
Result<std::vector<std::int64_t>> shape_at(const Parameter& parameter, const Sizes& sizes);

/// Number of elements of a tensor at these sizes. @error a dimension that is not whole, too many elements.
Result<std::int64_t> elements_at(const Parameter& parameter, const Sizes& sizes);

/// Whether the rows of a tensor fill whole bytes: those of a packed type have an even length.
Result<bool> has_whole_rows(const Parameter& parameter, const Sizes& sizes);

/// [B] of all tensors of the signature, each counted once, at these sizes.
Result<std::int64_t> tensor_bytes_at(const Problem& problem, const Sizes& sizes);

/// Whether `sizes` satisfies every relation under `where`, and rows of packed tensors fill whole bytes.
Result<bool> admissible(const Problem& problem, const Sizes& sizes);

/// Draws hidden sizes from `vary`, half of the values small, until they satisfy `where` and cost at most
/// `cap`.
///
/// @param random  uniform over all 64-bit values; the judge's generator
/// @error (almost) no sizes satisfy `vary` and `where` under the cap
Result<Sizes> draw_sizes(const Problem& problem, const std::function<std::uint64_t()>& random,
                         const Cost& cap);

/// SHA-256 over every file below `folder`, names and bytes. Not included, because they are not part of a
/// definition: hidden files, editor backups, __pycache__, and launch.h (generated from problem.yaml).
/// @error unreadable, too many files, or more than 16 MiB
Result<std::string> digest_of_definition(const std::filesystem::path& folder);

}  // namespace capstone
