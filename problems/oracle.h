#pragma once
// The interface between the judge and a problem's oracle.cpp. An oracle is a shared object of capstone, or of
// the author of a user's problem; it never comes from a submission. No other header of capstone is needed.
#include <cstdint>

extern "C" {

/// One parameter of launch(), in signature order. Values of every dtype are given as stored bytes.
struct CapstoneTensor {
  const char* name;
  const char* dtype;  ///< "f32", "bf16", … ; scalars: the dtype of `scalar`
  const void* data;   ///< null for outputs and scalars; inout: the value before the launch
  const std::int64_t* shape;
  int dimensions;  ///< 0 for scalars
  double scalar;   ///< scalars only, after rounding to its dtype
};

/// A case: parameters in signature order, size symbols in the problem's order.
struct CapstoneCase {
  const CapstoneTensor* parameters;
  int parameter_count;
  const std::int64_t* sizes;
  int size_count;
};

/// Computes elements of one output in float64.
///
/// @param output   index of the output in the signature
/// @param indices  [count] flat, row-major element numbers
/// @param value    [count] the exact value, unrounded
/// @param scale    [count] the condition of each element: for sums of products the root of the sum of their
/// squares
///                 (what independent input roundings add up to) or the sum of |a||b|, |value| where the
///                 rounding of the result itself is all that matters; tolerance is atol*scale + rtol*|value|
/// Deterministic, re-entrant: called from several threads for different index ranges.
void capstone_oracle(const CapstoneCase* c, int output, const std::int64_t* indices, std::int64_t count,
                     double* value, double* scale);
}
