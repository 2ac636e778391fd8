#pragma once
// A case that a user describes: `--size rows=7,cols=33 --input x=one-hot`.
#include <string>
#include <vector>

#include "harness/correctness/cases.h"

namespace capstone {

/// @param inputs  "zeros", "ones", "one-hot", "iota" or a .npy file, for every input; "NAME=…" for one
/// tensor,
///                parameters included. One-hot: row r of the last axis is 1 at column r modulo its length.
///                Iota: 0, 1, 2 … in memory order. What no entry names is drawn as usual.
/// @error an unknown tensor or way to fill it; a file that cannot be read, has another number of elements, or
///        holds a type that is not known.
Result<CasePlan> chosen_case(const Problem& problem, const Sizes& sizes,
                             const std::vector<std::string>& inputs);

/// The numbers of a .npy file (float16, float32, float64, int32, int64, uint8; C order), and its shape.
struct NpyArray {
  std::vector<std::int64_t> shape;
  std::vector<double> values;
};
/// @error not a .npy file, cut off, in Fortran order, or of another type.
Result<NpyArray> read_npy(const std::filesystem::path& file);

}  // namespace capstone
