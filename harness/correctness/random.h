#pragma once
// The values of every tensor, as a pure function of (seed, stream, element). Host and device compute the same
// bits, in any order, on any number of threads. For host and nvcc device code; C++17; no libm. Floating point
// is used only in explicit fused multiply-adds and exact operations, so that no compiler can contract it
// differently.
//
// Generator: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
//
// Normals: inverse CDF by cubic segments whose width halves towards the tail (Lee, Luk, Villasenor, Cheung,
// "A hardware Gaussian noise generator using hierarchical segmentation", 2003); up to 6.3 sigma.
#include <cstdint>

#include "harness/correctness/narrow.h"
#include "harness/model/dtype.h"

namespace capstone::random {

/// The purpose of a draw: separate domains never share random words.
enum Domain : std::uint32_t { kValues = 0, kTails = 1, kPoison = 2, kBytes = 3, kOrder = 4, kHot = 5 };

/// Four random words.
struct Words {
  std::uint32_t w[4];
};

CAPSTONE_HD std::uint32_t high_product(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(a) * b) >> 32);
}

/// Philox4x32-10 of a 128-bit counter under a 64-bit key.
CAPSTONE_HD Words philox(std::uint32_t c0, std::uint32_t c1, std::uint32_t c2, std::uint32_t c3,
                         std::uint32_t k0, std::uint32_t k1) {
  constexpr std::uint32_t kM0 = 0xD2511F53u, kM1 = 0xCD9E8D57u;
#if defined(__CUDACC__)
#pragma unroll
#else
#pragma GCC unroll 10
#endif
  for (int round = 0; round < 10; ++round) {
    const std::uint32_t low0 = kM0 * c0, high0 = high_product(kM0, c0);
    const std::uint32_t low1 = kM1 * c2, high1 = high_product(kM1, c2);
    c0 = high1 ^ c1 ^ k0;
    c1 = low1;
    c2 = high0 ^ c3 ^ k1;
    c3 = low0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return Words{{c0, c1, c2, c3}};
}

/// Block `index` of four words of a stream.
CAPSTONE_HD Words block_at(std::uint64_t seed, std::uint32_t stream, Domain domain, std::uint64_t index) {
  return philox(static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), stream, domain,
                static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
}

/// Word i of a stream.
CAPSTONE_HD std::uint32_t word_at(std::uint64_t seed, std::uint32_t stream, Domain domain, std::uint64_t i) {
  const Words words = block_at(seed, stream, domain, i >> 2);
  switch (i & 3) {  // no indexed array: it would be in local memory on the device
    case 0:
      return words.w[0];
    case 1:
      return words.w[1];
    case 2:
      return words.w[2];
    default:
      return words.w[3];
  }
}

/// 64 bits for element i.
CAPSTONE_HD std::uint64_t wide_at(std::uint64_t seed, std::uint32_t stream, Domain domain, std::uint64_t i) {
  const Words words = block_at(seed, stream, domain, i >> 1);
  return (i & 1) ? words.w[2] | static_cast<std::uint64_t>(words.w[3]) << 32
                 : words.w[0] | static_cast<std::uint64_t>(words.w[1]) << 32;
}

CAPSTONE_HD float fused(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return __fmaf_rn(a, b, c);
#else
  return __builtin_fmaf(a, b, c);
#endif
}

CAPSTONE_HD float product(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}

CAPSTONE_HD float sum(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fadd_rn(a, b);
#else
  return a + b;
#endif
}

/// Cubic coefficients, lowest power first, of each segment of the upper half of the inverse normal CDF.
struct alignas(16) Cubic {
  float c[4];
};
inline constexpr int kSegments = 257;  ///< 32 octaves of 8 segments, and the median
#if defined(__CUDACC__)
static __device__ const Cubic kDeviceNormal[kSegments] = {
#include "harness/correctness/normal_table.inc"
};
#endif
static constexpr Cubic kHostNormal[kSegments] = {
#include "harness/correctness/normal_table.inc"
};

/// The standard normal deviate from one random word. The low bit is the sign; the others are the tail
/// probability p = (word/2 + 1/2) / 2^32, whose exponent and first three mantissa bits select the segment.
CAPSTONE_HD float normal_of(std::uint32_t word) {
  const float tail = sum(static_cast<float>(static_cast<std::int32_t>(word >> 1)), 0.5f);
  const std::uint32_t bits = narrow::bits_of(tail);
  const std::uint32_t segment = (bits - (126u << 23)) >> 20;
  const float t = sum(narrow::float_of(0x3f800000u | ((bits & 0xfffffu) << 3)), -1.0f);
#if defined(__CUDA_ARCH__)
  const Cubic& cubic = kDeviceNormal[segment];
#else
  const Cubic& cubic = kHostNormal[segment];
#endif
  const float z = fused(fused(fused(cubic.c[3], t, cubic.c[2]), t, cubic.c[1]), t, cubic.c[0]);
  return narrow::float_of(narrow::bits_of(z) ^ (word << 31));
}

/// Uniform in [low, high) from one random word (24 bits of it).
CAPSTONE_HD float uniform_of(std::uint32_t word, float low, float high) {
  const float unit = product(static_cast<float>(static_cast<std::int32_t>(word >> 8)), 0x1p-24f);
  const float value = fused(unit, sum(high, -low), low);
  return value < high ? value : low;  // rounding can reach `high`, but the interval is half-open
}

/// Element i of a normal tensor.
CAPSTONE_HD float normal_at(std::uint64_t seed, std::uint32_t stream, std::uint64_t i, float mean,
                            float std) {
  return fused(std, normal_of(word_at(seed, stream, kValues, i)), mean);
}

/// Element i of a uniform tensor, in [low, high).
CAPSTONE_HD float uniform_at(std::uint64_t seed, std::uint32_t stream, std::uint64_t i, float low,
                             float high) {
  return uniform_of(word_at(seed, stream, kValues, i), low, high);
}

/// A number in [0, span) from 64 random bits; span 0 means 2^64. Bias below span / 2^64.
CAPSTONE_HD std::uint64_t scaled_to(std::uint64_t bits, std::uint64_t span) {
  if (span == 0) return bits;
#if defined(__CUDA_ARCH__)
  return __umul64hi(bits, span);
#else
  __extension__ using Product = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Product>(bits) * span) >> 64);
#endif
}

/// Element i of an integer tensor, min … max, both included.
CAPSTONE_HD std::int64_t integer_at(std::uint64_t seed, std::uint32_t stream, std::uint64_t i,
                                    std::int64_t min, std::int64_t max) {
  const std::uint64_t span = static_cast<std::uint64_t>(max) - static_cast<std::uint64_t>(min) + 1;
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(min) +
                                   scaled_to(wide_at(seed, stream, kValues, i), span));
}

enum class Kind : int {
  kNormal,
  kUniform,
  kInteger,
  kChoice,
  kUpperTriangular,
  kLowerTriangular,
  kSymmetric,
  kRowsSumToOne,
  kZipfRows,
  kMixedMagnitudes,
  kLatentTokens  ///< bytes; the others are real numbers or whole ones
};
/// The effect of an input battery on a normal tensor.
enum class Twist : int { kNone, kTimesTen, kOffset, kFarNegative, kHeavyTails, kSignFlip, kHotElement };

/// All that a kernel needs to make a tensor: plain data, passed by value to the device. Created by draw_of().
struct Draw {
  static constexpr int kMaxChoices = 32;
  Kind kind = Kind::kNormal;
  Twist twist = Twist::kNone;
  std::uint32_t stream = 0;
  std::uint64_t seed = 0;
  float a = 0, b = 1;             ///< mean, std or low, high
  std::int64_t min = 0, max = 0;  ///< integers, both ends included
  int choices = 0;
  double choice[kMaxChoices] = {};  ///< already rounded to the tensor's type
  std::int64_t hot = -1;            ///< the hot element
  float hot_value = 0;
  std::int64_t rows = 1, columns = 1;  ///< of the matrices in a structured tensor: the last two dimensions
};

/// Applies a twist to a normal value; `tail` is the element's word from the domain kTails.
CAPSTONE_HD float twisted(const Draw& draw, std::int64_t i, float value, std::uint32_t tail) {
  switch (draw.twist) {
    case Twist::kNone:
      return value;
    case Twist::kTimesTen:
      return product(value, 10.0f);
    case Twist::kOffset:
      return sum(value, 5.0f);
    case Twist::kFarNegative:  // below -104 the exponential of a float is 0; the spread stays an eighth of
                               // the mean, so that a variance in one pass is still accurate
      return fused(narrow::float_of(narrow::bits_of(value) | 0x80000000u), 32.0f, -128.0f);
    case Twist::kSignFlip:
      return narrow::float_of(narrow::bits_of(value) ^ 0x80000000u);
    case Twist::kHeavyTails:  // one in 64 is multiplied by 2 … 64: an exact power of two
      return (tail & 63u) ? value : product(value, narrow::float_of((128u + (tail >> 6) % 6u) << 23));
    case Twist::kHotElement:
      return i == draw.hot ? draw.hot_value : value;
  }
  return value;
}

CAPSTONE_HD float quotient(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fdiv_rn(a, b);
#else
  return a / b;
#endif
}

/// An element of a row with few large numbers and a long tail, like the probabilities of a language model:
/// the element of rank r = 0, 1, … is c/(r + c) - c/(r + c + 1), so that a row of n sums to 1 - c/(n + c).
/// Each row draws c = 1, 2, … 64 and its own order. In a quarter of the rows ranks come in groups of four
/// equal numbers, their mean.
CAPSTONE_HD float zipf_at(const Draw& draw, std::int64_t row, std::int64_t column) {
  const std::uint64_t word = wide_at(draw.seed, draw.stream, kOrder, static_cast<std::uint64_t>(row));
  const auto columns = static_cast<std::uint64_t>(draw.columns);
  // A prime above every number of columns makes a permutation.
  const std::uint64_t rank =
      (static_cast<std::uint64_t>(column) + scaled_to(word, columns)) * 2654435761u % columns;
  const std::uint64_t group = (word & 0x300u) == 0 ? 4 : 1, c = std::uint64_t{1} << (word & 0xffu) % 7;
  const std::uint64_t low = rank - rank % group + c;
  return quotient(static_cast<float>(c), product(static_cast<float>(low), static_cast<float>(low + group)));
}

/// An element of a tensor whose parts differ in magnitude, as blocks of a network's numbers do: a standard
/// normal number times a power of two from 2^-9 to 2^12, one for 16 neighbours.
CAPSTONE_HD float mixed_magnitude_at(const Draw& draw, std::int64_t i) {
  const std::uint32_t word = word_at(draw.seed, draw.stream, kOrder, static_cast<std::uint64_t>(i / 16));
  const float power = narrow::float_of((127u - 9u + high_product(word, 22)) << 23);
  return product(normal_at(draw.seed, draw.stream, static_cast<std::uint64_t>(i), 0, 1), power);
}

inline constexpr std::int64_t kLatentTokenBytes = 656;

/// Byte i of a cache of latent tokens as DeepSeek-V3.2 stores them, little-endian: 512 numbers in e4m3, a
/// scale in fp32 for each 128 of them, then 64 numbers in bf16. Scales are 2^-8, 2^-7 or 2^-6, so the numbers
/// have a standard deviation of 0.375, 0.75 or 1.5; those in bf16 are standard normal.
CAPSTONE_HD std::uint8_t latent_byte_at(const Draw& draw, std::int64_t i) {
  constexpr std::int64_t kCodes = 512, kScales = 4;
  const std::int64_t token = i / kLatentTokenBytes, at = i % kLatentTokenBytes;
  const auto normal = [&draw](std::int64_t which, float std) {
    return normal_at(draw.seed, draw.stream, static_cast<std::uint64_t>(which), 0, std);
  };
  if (at < kCodes) return narrow::to_e4m3(normal(i, 96.0f));
  if (at < kCodes + 4 * kScales) {
    const auto scale = static_cast<std::uint64_t>(token * kScales + (at - kCodes) / 4);
    const std::uint32_t exponent = 119u + high_product(word_at(draw.seed, draw.stream, kOrder, scale), 3);
    return static_cast<std::uint8_t>((exponent << 23) >> (8 * (at % 4)));
  }
  return static_cast<std::uint8_t>(narrow::to_bf16(normal(i - at % 2, 1.0f)) >> (8 * (at % 2)));
}

/// Element i of a structured tensor: numbers whose position in their matrix matters, most of them in [0, 1).
CAPSTONE_HD float structured_at(const Draw& draw, std::int64_t i) {
  const std::int64_t column = i % draw.columns, row = i / draw.columns % draw.rows,
                     first = i - row * draw.columns - column;
  const auto unit = [&draw](std::int64_t at) {
    return uniform_at(draw.seed, draw.stream, static_cast<std::uint64_t>(at), 0, 1);
  };
  switch (draw.kind) {
    case Kind::kUpperTriangular:
      return column < row ? 0.0f : unit(i);
    case Kind::kLowerTriangular:
      return column > row ? 0.0f : unit(i);
    case Kind::kSymmetric:
      return row < column ? unit(first + column * draw.columns + row) : unit(i);
    case Kind::kZipfRows:
      return zipf_at(draw, i / draw.columns, column);
    case Kind::kMixedMagnitudes:
      return mixed_magnitude_at(draw, i);
    default:
      break;
  }
  // Positive, and the sum of a row is one. Every element has a partner: what one has above the mean, the
  // other has below. So no sum is needed to make one element. The pairs depend on the seed and differ from
  // row to row.
  const auto turn = static_cast<std::int64_t>(
      scaled_to(wide_at(draw.seed, draw.stream, kOrder, static_cast<std::uint64_t>(i / draw.columns)),
                static_cast<std::uint64_t>(draw.columns)));
  const std::int64_t partner = (turn + draw.columns - column) % draw.columns;
  const float mean = quotient(1.0f, static_cast<float>(draw.columns));
  if (partner == column) return mean;
  const float more = product(0.99f, unit(i - column + (column < partner ? column : partner)));
  return fused(mean, column < partner ? more : -more, mean);
}

/// Element i of a normal, uniform or structured tensor, before rounding to its type.
CAPSTONE_HD float real_at(const Draw& draw, std::int64_t i) {
  if (draw.kind >= Kind::kUpperTriangular) return structured_at(draw, i);
  if (draw.kind == Kind::kUniform)
    return uniform_at(draw.seed, draw.stream, static_cast<std::uint64_t>(i), draw.a, draw.b);
  const float plain = normal_at(draw.seed, draw.stream, static_cast<std::uint64_t>(i), draw.a, draw.b);
  const std::uint32_t tail = draw.twist == Twist::kHeavyTails
                                 ? word_at(draw.seed, draw.stream, kTails, static_cast<std::uint64_t>(i))
                                 : 0;
  return twisted(draw, i, plain, tail);
}

/// Element i of a choice tensor.
CAPSTONE_HD double choice_at(const Draw& draw, std::int64_t i) {
  const std::uint32_t word = word_at(draw.seed, draw.stream, kValues, static_cast<std::uint64_t>(i));
  return draw.choice[high_product(word, static_cast<std::uint32_t>(draw.choices))];
}

// For device code, which cannot call the constexpr functions of dtype.h.
CAPSTONE_HD bool holds_pairs(DType type) { return type == DType::kInt4x2 || type == DType::kE2M1x2; }
CAPSTONE_HD bool holds_whole_numbers(DType type) {
  return type == DType::kI32 || type == DType::kI64 || type == DType::kU8 || type == DType::kInt4x2;
}

/// Rounds to a floating type and stores it as element i.
CAPSTONE_HD void store_real(DType type, void* tensor, std::int64_t i, float value) {
  switch (type) {
    case DType::kF32:
      static_cast<float*>(tensor)[i] = value;
      break;
    case DType::kF16:
      static_cast<std::uint16_t*>(tensor)[i] = narrow::to_f16(value);
      break;
    case DType::kBF16:
      static_cast<std::uint16_t*>(tensor)[i] = narrow::to_bf16(value);
      break;
    case DType::kE4M3:
      static_cast<std::uint8_t*>(tensor)[i] = narrow::to_e4m3(value);
      break;
    case DType::kE5M2:
      static_cast<std::uint8_t*>(tensor)[i] = narrow::to_e5m2(value);
      break;
    case DType::kE2M1x2:
      narrow::store_nibble(tensor, i, narrow::to_e2m1(value));
      break;
    case DType::kE8M0:
      static_cast<std::uint8_t*>(tensor)[i] = narrow::to_e8m0(value);
      break;
    default:
      break;
  }
}

/// Stores a whole number as element i; floating types round it to nearest.
CAPSTONE_HD void store_whole(DType type, void* tensor, std::int64_t i, std::int64_t value) {
  switch (type) {
    case DType::kI32:
      static_cast<std::int32_t*>(tensor)[i] = static_cast<std::int32_t>(value);
      break;
    case DType::kI64:
      static_cast<std::int64_t*>(tensor)[i] = value;
      break;
    case DType::kU8:
      static_cast<std::uint8_t*>(tensor)[i] = static_cast<std::uint8_t>(value);
      break;
    case DType::kInt4x2:
      narrow::store_nibble(tensor, i, static_cast<std::uint8_t>(value & 15));
      break;
    default:
      store_real(type, tensor, i, static_cast<float>(value));
      break;
  }
}

/// Makes element i of a tensor and stores it. Two elements of one byte may not be stored at the same time.
CAPSTONE_HD void store_drawn(const Draw& draw, DType type, void* tensor, std::int64_t i) {
  switch (draw.kind) {
    case Kind::kNormal:
    case Kind::kUniform:
    case Kind::kUpperTriangular:
    case Kind::kLowerTriangular:
    case Kind::kSymmetric:
    case Kind::kRowsSumToOne:
    case Kind::kZipfRows:
    case Kind::kMixedMagnitudes:
      store_real(type, tensor, i, real_at(draw, i));
      break;
    case Kind::kLatentTokens:
      store_whole(type, tensor, i, latent_byte_at(draw, i));
      break;
    case Kind::kInteger:
      store_whole(type, tensor, i,
                  integer_at(draw.seed, draw.stream, static_cast<std::uint64_t>(i), draw.min, draw.max));
      break;
    case Kind::kChoice: {
      const double value = choice_at(draw, i);
      if (holds_whole_numbers(type))
        store_whole(type, tensor, i, static_cast<std::int64_t>(value));
      else
        store_real(type, tensor, i, static_cast<float>(value));
      break;
    }
  }
}

/// Makes all elements of one unit of memory and stores them. This is the whole body of a device's fill
/// kernel.
CAPSTONE_HD void store_drawn_unit(const Draw& draw, DType type, void* tensor, std::int64_t unit) {
  if (!holds_pairs(type)) return store_drawn(draw, type, tensor, unit);
  store_drawn(draw, type, tensor, 2 * unit);
  store_drawn(draw, type, tensor, 2 * unit + 1);
}

/// Whether a type's poison is a NaN; the other types are poisoned with random bytes.
CAPSTONE_HD bool has_nan(DType type) { return !holds_whole_numbers(type) && type != DType::kE2M1x2; }

/// A quiet NaN of either sign from one random word, in the low bits; e4m3 has only one payload, e8m0 only one
/// NaN.
CAPSTONE_HD std::uint32_t poison_of(DType type, std::uint32_t word) {
  switch (type) {
    case DType::kF32:
      return (word & 0x803fffffu) | 0x7fc00000u;
    case DType::kF16:
      return ((word & 0x81ffu) | 0x7e00u);
    case DType::kBF16:
      return ((word & 0x803fu) | 0x7fc0u);
    case DType::kE4M3:
      return ((word & 0x80u) | 0x7fu);
    case DType::kE5M2:
      return ((word & 0x81u) | 0x7eu);
    case DType::kE8M0:
      return 0xffu;
    default:
      return word;
  }
}

/// Byte i of a poisoned run of bytes.
CAPSTONE_HD std::uint8_t poison_byte_at(std::uint64_t seed, std::uint64_t i) {
  return static_cast<std::uint8_t>(word_at(seed, 0, kBytes, i >> 2) >> (8 * (i & 3)));
}

/// Poisons element i of a tensor of a floating type, with the NaN of one random word.
CAPSTONE_HD void store_nan(DType type, std::uint32_t word, void* tensor, std::int64_t i) {
  const std::uint32_t bits = poison_of(type, word);
  switch (type) {
    case DType::kF32:
      static_cast<std::uint32_t*>(tensor)[i] = bits;
      break;
    case DType::kF16:
    case DType::kBF16:
      static_cast<std::uint16_t*>(tensor)[i] = static_cast<std::uint16_t>(bits);
      break;
    default:
      static_cast<std::uint8_t*>(tensor)[i] = static_cast<std::uint8_t>(bits);
      break;
  }
}

/// Where the slots of a cache lie that no sequence uses: pages of `slots` rows of `row` elements.
struct UnusedSlots {
  std::int64_t pages_each = 0, slots = 0,
               row = 0;  ///< pages of a sequence; rows of a page; elements of a row
  std::uint64_t seed = 0;

  /// How many of the first slots of a sequence's page `which` hold a token.
  CAPSTONE_HD std::int64_t used(std::int64_t which, std::int64_t length) const {
    const std::int64_t left = length - which * slots;
    return left < 0 ? 0 : left < slots ? left : slots;
  }
  /// The word whose NaN fills a row: one for the whole row, so that a host is done soon.
  CAPSTONE_HD std::uint32_t word(std::int64_t slot) const {
    return word_at(seed, 0, kPoison, static_cast<std::uint64_t>(slot));
  }
  /// Poisons element i of a cache, counted in the order of the page table, if its slot is not used. This is
  /// the whole body of a device's kernel. `page` is entry i / (slots * row) of the table.
  CAPSTONE_HD void poison(DType type, void* cache, std::int64_t i, std::int64_t page,
                          std::int64_t length) const {
    const std::int64_t within = i % (slots * row), place = page * slots + within / row;
    if (within / row < used(i / (slots * row) % pages_each, length)) return;
    store_nan(type, word(place), cache, place * row + within % row);
  }
};

/// Poisons unit i of a tensor. This is the whole body of a device's poison kernel.
CAPSTONE_HD void store_poison(DType type, std::uint64_t seed, void* tensor, std::int64_t i) {
  const std::uint64_t n = static_cast<std::uint64_t>(i);
  switch (type) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kE4M3:
    case DType::kE5M2:
    case DType::kE8M0:
      store_nan(type, word_at(seed, 0, kPoison, n), tensor, i);
      break;
    case DType::kU8:
    case DType::kInt4x2:
    case DType::kE2M1x2:
      static_cast<std::uint8_t*>(tensor)[i] = poison_byte_at(seed, n);
      break;
    case DType::kI32:
      static_cast<std::uint32_t*>(tensor)[i] = word_at(seed, 0, kBytes, n);
      break;
    case DType::kI64:
      static_cast<std::uint64_t*>(tensor)[i] = wide_at(seed, 0, kBytes, n);
      break;
  }
}

/// The contribution of the 64-bit word at `position` to a fingerprint. The sum does not depend on the order,
/// so a device can add words in any order. The position is mixed in, so that swapped words differ.
CAPSTONE_HD std::uint64_t fingerprint_of(std::uint64_t word, std::uint64_t position, std::uint64_t seed) {
  std::uint64_t x = word ^ (seed + (position + 1) * 0x9E3779B97F4A7C15u);
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93u;
  x ^= x >> 29;
  return x * 0xA0761D6478BD642Fu;
}

}  // namespace capstone::random
