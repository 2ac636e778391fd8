#pragma once
// One wrong output, and whether a mistake explains it. The families of mistakes are in the other files here.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/correctness/cases.h"
#include "harness/correctness/oracle.h"

namespace capstone::trials {

using Values = std::vector<double>;
/// Tensors that a trial changes, by their place in the layout.
using Changes = std::map<std::size_t, Values>;
/// Elements of the output that a mistake says nothing about, by flat index; none: it speaks of all.
using Aside = std::function<bool(std::int64_t)>;

/// Lengths of tiles, warps and blocks that kernels use.
inline constexpr std::int64_t kTiles[] = {2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};

/// A float tensor that the kernel reads.
struct Operand {
  std::size_t slot;  ///< its place in the layout
  std::string name;
  DType type;
  std::vector<std::int64_t> shape;
  Values values;

  std::int64_t total() const { return static_cast<std::int64_t>(values.size()); }
  std::int64_t columns() const { return shape.back(); }
  std::int64_t rows() const { return shape.size() < 2 ? 1 : shape[shape.size() - 2]; }
  /// Elements from one index of an axis to the next.
  std::int64_t step(std::size_t axis) const;
  /// The tensor as `source` reads it: element i holds what lies at source(i); outside of the tensor, nothing.
  std::optional<Values> read(const std::function<std::int64_t(std::int64_t)>& source) const;
  Values each(const std::function<double(double)>& change) const;
  /// Columns for which `skipped` holds have a value that adds nothing.
  Values without(const std::function<bool(std::int64_t)>& skipped, double neutral) const;
};

/// The problem at other sizes, with tensors to match.
struct Resized {
  Sizes sizes;
  std::vector<std::vector<std::byte>> tensors;  ///< in the layout's order; outputs empty
  std::vector<std::int64_t> shape;              ///< of the output
};

/// What is known of one wrong output. Once a mistake is named, further trials do nothing.
class Trial {
 public:
  /// @param image  the arena that the run began with
  /// @param got    the output's bytes
  Trial(const Problem& problem, const PreparedCase& prepared, const PreparedCase::Output& output,
        std::span<const std::byte> image, std::span<const std::byte> got, const Oracle& oracle);

  const Problem& problem() const { return problem_; }
  const PreparedCase& prepared() const { return prepared_; }
  const std::vector<Operand>& operands() const { return operands_; }
  const std::vector<std::int64_t>& shape() const { return slot_.shape; }  ///< of the output
  std::int64_t total() const { return static_cast<std::int64_t>(output_.expected.size()); }
  double expected(std::int64_t i) const { return output_.expected[static_cast<std::size_t>(i)]; }
  double got(std::int64_t i) const;
  /// Flat indices of wrong elements, evenly spaced. Few of them, where the oracle has much to compute.
  const std::vector<std::int64_t>& wrong() const { return wrong_; }

  bool done() const { return found_ || error_; }
  /// `pattern`: in the words of a diagnosis, "as if bias were 0".
  void name(const std::string& pattern, const std::string& hint) { found_ = {pattern, hint}; }

  /// Whether the oracle gives the kernel's outputs for the changed inputs.
  /// @param least  elements of the sample that must be left; 0: half of it
  bool explains(const Changes& changes, const Aside& aside = {}, std::size_t least = 0);
  /// Whether the oracle gives them with another value of a scalar.
  bool explains_scalar(std::size_t parameter, double value);
  /// The tensors with another extent of a size: index j along its axes holds what lay at source(j), and 0
  /// where that is negative. None where no input has an axis of that size.
  std::optional<Resized> resized(const std::string& symbol, std::int64_t extent,
                                 const std::function<std::int64_t(std::int64_t)>& source) const;
  /// Whether the oracle gives the kernel's outputs there, for the elements that both outputs have.
  bool explains(const Resized& resized);
  /// Names the mistake if these values of the operand explain the outputs. No values: no trial.
  void attempt(const Operand& operand, const std::optional<Values>& values, const std::string& pattern,
               const std::string& hint, const Aside& aside = {}, std::size_t least = 0);
  /// Whether the kernel's outputs are what `other` makes of the right ones, where it says something.
  bool are(const std::function<std::optional<double>(std::int64_t)>& other) const;

  struct Mistake {
    std::string pattern, hint;
  };
  /// @error the oracle's
  Result<std::optional<Mistake>> result() const;

 private:
  bool right_at(std::int64_t i, double expected, double scale, double slack = 1) const;
  void choose_sample();
  /// The sample's elements, where `place` says which one of the oracle's they are.
  bool agree(const Problem& problem, const Sizes& sizes,
             const std::vector<std::span<const std::byte>>& tensors,
             const std::function<std::optional<std::int64_t>(std::int64_t)>& place, std::size_t least);

  const Problem& problem_;
  const PreparedCase& prepared_;
  const PreparedCase::Output& output_;
  const TensorSlot& slot_;
  DType type_;
  std::span<const std::byte> got_;
  const Oracle& oracle_;
  std::vector<std::span<const std::byte>> tensors_;  ///< for the oracle
  std::vector<Operand> operands_;
  std::vector<std::int64_t> wrong_, right_;  ///< the sample
  std::optional<Mistake> found_;
  std::optional<Error> error_;
};

/// A family tries mistakes of one kind.
using Family = void (*)(Trial&);

// outputs.cpp: the right values, in other places or sums
void try_factors(Trial& trial);
void try_tiles_of_output(Trial& trial);
void try_running_sums(Trial& trial);

// operands.cpp: an operand that is left out, counts differently, or is another one
void try_values(Trial& trial);
void try_scalars(Trial& trial);
void try_rounding(Trial& trial);
void try_pairs(Trial& trial);
void try_order(Trial& trial);

// indices.cpp: an operand that is read at other indices
void try_strides(Trial& trial);
void try_shifts(Trial& trial);
void try_shifts_along_two_axes(Trial& trial);
void try_missing_indices(Trial& trial);
void try_rows_as_indices(Trial& trial);

// parts.cpp: loops that see a part of their elements, or a part twice
void try_parts(Trial& trial);
void try_parts_alone(Trial& trial);
void try_stale_tiles(Trial& trial);
void try_extents(Trial& trial);

}  // namespace capstone::trials
