#pragma once
// Units as types, so that a millisecond is never added to a gigabyte. They hold plain doubles.
#include <compare>

namespace capstone {

struct Milliseconds {
  double value = 0;
  auto operator<=>(const Milliseconds&) const = default;
};
struct BytesPerSecond {
  double value = 0;
  auto operator<=>(const BytesPerSecond&) const = default;
};
struct FlopsPerSecond {
  double value = 0;
  auto operator<=>(const FlopsPerSecond&) const = default;
};

/// A point estimate with its 95 % interval; all three in the same unit.
struct Interval {
  double point = 0;
  double low = 0;
  double high = 0;
};

}  // namespace capstone
