#pragma once
#pragma GCC system_header
// Where the elements of a matrix in shared memory lie that a matrix descriptor of wgmma or tcgen05 describes.
#include <cstddef>
#include <cstdint>

namespace capstone_emu {

/// The canonical layouts of PTX ISA 9.0, 9.7.15.5.1.2 (wgmma) and 9.7.16.3.3 (tcgen05), which agree.
class SharedMatrix {
 public:
  /// @param leading, stride  the descriptor's two offsets, in bytes
  /// @param span             bytes that a swizzle mixes: 128, 64, 32; 0: no swizzle
  /// @param transposed       neighbours along M or N are adjacent, not those along K
  /// @param coarse           128 bytes are mixed in pieces of 32 instead of 16
  SharedMatrix(const char* start, std::size_t leading, std::size_t stride, unsigned span, bool transposed,
               unsigned element_bytes, bool coarse = false)
      : start_(start), leading_(leading), stride_(stride), bytes_(element_bytes), span_(span), transposed_(transposed),
        coarse_(coarse) {}
  /// The element `row` along M or N, `k` along K.
  const char* at(unsigned row, unsigned k) const {
    std::size_t offset;
    if (!transposed_) {
      const unsigned byte = k * bytes_;
      offset = span_ ? row / 8 * stride_ + row % 8 * span_ + byte
                     : row / 8 * stride_ + byte / 16 * leading_ + row % 8 * 16 + byte % 16;
    } else {
      const unsigned width = (span_ ? span_ : 16) / bytes_;  // elements side by side
      const unsigned depth = coarse_ ? 4 : 8;                // along K, until the pattern repeats
      offset = row % width * bytes_ + k % depth * (span_ ? span_ : 16) +
               (span_ ? row / width * leading_ + k / depth * stride_ : row / width * stride_ + k / depth * leading_);
    }
    const auto address = reinterpret_cast<std::uintptr_t>(start_) + offset;
    if (coarse_) return reinterpret_cast<const char*>(address ^ (address >> 7 & 3) << 5);
    const std::uintptr_t mask = span_ == 128 ? 7 : span_ == 64 ? 3 : span_ == 32 ? 1 : 0;
    return reinterpret_cast<const char*>(address ^ (address >> 7 & mask) << 4);
  }
  const char* begin() const { return start_; }
  unsigned element_bytes() const { return bytes_; }
  unsigned span() const { return span_; }
  bool coarse() const { return coarse_; }
  bool transposed() const { return transposed_; }

 private:
  const char* start_;
  std::size_t leading_, stride_;
  unsigned bytes_, span_;
  bool transposed_, coarse_;
};

}  // namespace capstone_emu
