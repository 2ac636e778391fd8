// tcgen05.mma, tcgen05.cp, tcgen05.shift: descriptors, and what the engine computes. PTX ISA 9.0, 9.7.16.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "include/capstone_emulator/narrow.h"
#include "include/capstone_emulator/shared_matrix.h"
#include "include/capstone_emulator/tensor_memory.h"
#include "runtime/shadow.h"
#include "runtime/tensor_memory.h"

namespace capstone_emu {
namespace {

/// Of a matrix along K, for each of the kinds; a sparse A's B has twice that.
constexpr unsigned kRowBytes = 32;

[[noreturn]] void reject(const TensorSite& site, const std::string& message, const std::string& hint) {
  BlockRunner::current()->fail(FailureKind::kUndefinedBehaviour, site.file, site.line,
                               std::string(site.what) + ": " + message, hint);
}

// ---- elements ---------------------------------------------------------------------------------------------

enum class Narrow : unsigned char { kF16, kBf16, kTf32, kE4m3, kE5m2, kE2m3, kE3m2, kE2m1, kU8, kS8 };

unsigned bits_of(Narrow type) {
  switch (type) {
    case Narrow::kF16:
    case Narrow::kBf16:
      return 16;
    case Narrow::kTf32:
      return 32;
    case Narrow::kE2m3:
    case Narrow::kE3m2:
      return 6;
    case Narrow::kE2m1:
      return 4;
    default:
      return 8;
  }
}

/// A float of a few bits that is always finite.
float small_float(unsigned bits, unsigned exponent_bits, unsigned mantissa_bits) {
  const unsigned exponent = bits >> mantissa_bits & ((1u << exponent_bits) - 1),
                 mantissa = bits & ((1u << mantissa_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1, width = static_cast<int>(mantissa_bits);
  const float magnitude = exponent ? std::ldexp(static_cast<float>((1u << mantissa_bits) + mantissa),
                                                static_cast<int>(exponent) - bias - width)
                                   : std::ldexp(static_cast<float>(mantissa), 1 - bias - width);
  return bits >> (exponent_bits + mantissa_bits) & 1 ? -magnitude : magnitude;
}

float value_of(std::uint32_t bits, Narrow type) {
  switch (type) {
    case Narrow::kF16:
      return half_to_float(static_cast<std::uint16_t>(bits));
    case Narrow::kBf16:
      return bfloat_to_float(static_cast<std::uint16_t>(bits));
    case Narrow::kTf32:
      return reinterpret_bits<float>(bits & 0xffffe000u);
    case Narrow::kE4m3:
      return e4m3_to_float(static_cast<std::uint8_t>(bits));
    case Narrow::kE5m2:
      return half_to_float(static_cast<std::uint16_t>((bits & 0xff) << 8));
    case Narrow::kE2m3:
      return small_float(bits, 2, 3);
    case Narrow::kE3m2:
      return small_float(bits, 3, 2);
    case Narrow::kE2m1:
      return small_float(bits, 2, 1);
    case Narrow::kU8:
      return static_cast<std::uint8_t>(bits);
    case Narrow::kS8:
      return static_cast<std::int8_t>(bits);
  }
  return 0;
}

/// UE8M0: a power of two; UE4M3: e4m3 without a sign.
float scale_of(std::uint8_t bits, bool powers) {
  if (!powers) return e4m3_to_float(bits & 0x7f);
  return bits == 0xff ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.f, bits - 127);
}

// ---- descriptors ------------------------------------------------------------------------------------------

/// The instruction descriptor (9.7.16.4.2, tables 42 to 44), checked against table 39.
struct Shape {
  unsigned m, n, k;
  Narrow a, b;
  bool wide;  ///< D is f32 or s32, not f16
  bool integer, saturates, negate_a, negate_b, transpose_a, transpose_b;
  bool scale_powers;          ///< UE8M0
  unsigned scale_a, scale_b;  ///< scale factor IDs: first byte in the word
  bool packed_four;           ///< two elements in a byte
  unsigned selector;          ///< of the sparsity metadata's columns
};

class InstructionReader {
 public:
  InstructionReader(const TensorMultiply& operands, const TensorSite& site) : in_(operands), site_(site) {}

  Shape read() const {
    Shape shape{};
    const TensorKind kind = in_.kind;
    const bool four = kind == TensorKind::kMxf4 || kind == TensorKind::kMxf4nvf4;
    const bool scaled = four || kind == TensorKind::kMxf8f6f4;
    if (field(2, 1) != (in_.sparse ? 1u : 0u))
      bad(in_.sparse ? "bit 2 (sparse) is 0, and the instruction has .sp"
                     : "bit 2 (sparse) is 1, and the instruction has no .sp");
    if (in_.sparse && !scaled)
      shape.selector = field(0, 2);
    else
      require_zero(0, 2);
    require_zero(6, 1);
    shape.packed_four = four;
    shape.a = element(field(7, 3), "A, bits 7 to 9");
    shape.b = element(four ? field(10, 2) : field(10, 3), "B, bits 10 to 12");
    shape.negate_a = field(13, 1);
    shape.negate_b = field(14, 1);
    shape.transpose_a = field(15, 1);
    shape.transpose_b = field(16, 1);
    shape.n = field(17, 6) * 8;
    shape.k = four ? 64 : kind == TensorKind::kF16 ? 16 : kind == TensorKind::kTf32 ? 8 : 32;
    if (in_.sparse) shape.k *= 2;
    if (scaled) {
      require_zero(3, 1);
      require_zero(24, 3);
      shape.m = field(27, 2) * 128;
      shape.wide = true;
      shape.scale_b = field(4, 2);
      shape.scale_a = field(29, 2);
      shape.scale_powers = field(23, 1);
      if (four) require_zero(12, 1);
      if (four && field(31, 1))
        not_judgeable(site_.file, site_.line,
                      "tcgen05.mma with K = 96 (bit 31 of the instruction descriptor, sm_103a)");
      if (!four) require_zero(31, 1);
      check_scales(shape);
    } else {
      require_zero(23, 1);
      require_zero(29, 1);
      if (!in_.stationary) require_zero(30, 2);  // how far .ws may shift B where it uses it again
      shape.m = field(24, 5) * 16;
      shape.integer = kind == TensorKind::kI8;
      shape.saturates = field(3, 1);
      if (!shape.integer && shape.saturates) bad("bit 3 (saturate) is for .kind::i8");
      const unsigned d = field(4, 2);
      shape.wide = shape.integer || d == 1;
      const bool narrow_possible =
          kind == TensorKind::kF8f6f4 ||
          (kind == TensorKind::kF16 && shape.a == Narrow::kF16 && shape.b == Narrow::kF16);
      if (shape.integer ? d != 2 : d != 1 && (d != 0 || !narrow_possible))
        bad("type " + std::to_string(d) +
            " of D (bits 4 and 5) does not go with the kind and the types of A and B");
    }
    check_sizes(shape, scaled);
    if (in_.sparse) check_metadata(shape);
    if ((shape.negate_a || shape.negate_b) && shape.integer)
      bad("negation (bits 13 and 14) is not for .kind::i8");
    if ((shape.transpose_a || shape.transpose_b) && four)
      bad("transposition (bits 15 and 16) is not for 4-bit kinds");
    for (const auto& [transposed, type] :
         {std::pair{shape.transpose_a, shape.a}, std::pair{shape.transpose_b, shape.b}})
      if (transposed && bits_of(type) < 8)
        bad("4-bit and 6-bit types cannot be transposed (PTX ISA 9.0, table 52)");
    return shape;
  }

 private:
  unsigned field(unsigned first, unsigned bits) const {
    return in_.instruction >> first & ((1u << bits) - 1);
  }
  [[noreturn]] void bad(const std::string& message) const {
    char number[16];
    std::snprintf(number, sizeof number, "0x%08x", in_.instruction);
    reject(site_, "instruction descriptor " + std::string(number) + ": " + message,
           "PTX ISA 9.0, 9.7.16.4.2 and table 39");
  }
  void require_zero(unsigned first, unsigned bits) const {
    if (field(first, bits)) bad("bits from " + std::to_string(first) + " on are reserved and not 0");
  }
  Narrow element(unsigned code, const char* matrix) const {
    switch (in_.kind) {
      case TensorKind::kF16:
        if (code == 0) return Narrow::kF16;
        if (code == 1) return Narrow::kBf16;
        break;
      case TensorKind::kTf32:
        if (code == 2) return Narrow::kTf32;
        break;
      case TensorKind::kI8:
        if (code <= 1) return code ? Narrow::kS8 : Narrow::kU8;
        break;
      case TensorKind::kF8f6f4:
      case TensorKind::kMxf8f6f4:
        if (code == 0) return Narrow::kE4m3;
        if (code == 1) return Narrow::kE5m2;
        if (code == 3) return Narrow::kE2m3;
        if (code == 4) return Narrow::kE3m2;
        if (code == 5) return Narrow::kE2m1;
        break;
      case TensorKind::kMxf4:
      case TensorKind::kMxf4nvf4:
        if (code == 1) return Narrow::kE2m1;
        break;
    }
    bad("type " + std::to_string(code) + " of matrix " + matrix + " does not exist for the kind");
  }
  void check_scales(const Shape& shape) const {
    const bool sixteen = in_.scales == 4;
    if (!shape.scale_powers && !(in_.kind == TensorKind::kMxf4nvf4 && sixteen))
      bad("scale type UE4M3 (bit 23 = 0) needs .kind::mxf4nvf4 with .scale_vec::4X (table 55)");
    for (const unsigned id : {shape.scale_a, shape.scale_b})
      if ((in_.scales == 2 && id % 2) || (sixteen && id))
        bad("scale factor ID " + std::to_string(id) +
            ": 0 or 2 with .scale_vec::2X, 0 with ::4X (9.7.16.10.7.2)");
  }
  void check_sizes(const Shape& shape, bool scaled) const {
    if (in_.stationary) {
      const bool possible = (shape.m == 32 || shape.m == 64 || shape.m == 128) &&
                            (shape.n == 64 || shape.n == 128 || (shape.n == 256 && !in_.sparse));
      if (!possible)
        bad(std::to_string(shape.m) + " x " + std::to_string(shape.n) + " (M x N) does not exist for .ws");
      return;
    }
    const bool pair = in_.group == 2;
    const bool m = pair ? shape.m == 128 || shape.m == 256 : shape.m == 128 || (shape.m == 64 && !scaled);
    unsigned step = pair ? 16 : 8;
    if (shape.integer) step = pair ? 32 : shape.n > 32 ? 16 : 8;
    if (shape.transpose_b && bits_of(shape.b) == 8) step = std::max(step, pair ? 32u : 16u);  // table 50
    if (!m || shape.n == 0 || shape.n > 256 || shape.n % step)
      bad(std::to_string(shape.m) + " x " + std::to_string(shape.n) +
          " (M x N) does not exist for the kind with .cta_group::" + std::to_string(in_.group));
    if (scaled && pair && shape.m == 128)
      not_judgeable(site_.file, site_.line, "tcgen05.mma with block scaling, .cta_group::2 and M = 128");
  }
  /// Figures 262 to 267 are pictures. Two of them are known from public kernels that run on hardware.
  void check_metadata(const Shape& shape) const {
    if (shape.m / in_.group != 128)
      not_judgeable(site_.file, site_.line,
                    "tcgen05.mma.sp with M = %u and .cta_group::%u: where its metadata lies is a question to "
                    "hardware (docs/design/blackwell_questions.md, 26)",
                    shape.m, in_.group);
    if (in_.kind == TensorKind::kTf32)
      not_judgeable(site_.file, site_.line,
                    "tcgen05.mma.sp with .kind::tf32: where its metadata lies is a question to hardware "
                    "(docs/design/blackwell_questions.md, 26)");
    if (in_.kind == TensorKind::kF16) {
      if (shape.selector > 1 || (in_.metadata & 1))
        not_judgeable(
            site_.file, site_.line,
            "tcgen05.mma.sp with sparsity selector %u and metadata from column %u on: only selectors 0 "
            "and 1 from an even column on are known (docs/design/blackwell_questions.md, 26)",
            shape.selector, in_.metadata & 0xffff);
    } else if (shape.selector) {
      bad("the sparsity selector (bits 0 and 1) must be 0 for the kind (9.7.16.10.8.4.6)");
    }
    if (in_.metadata >> 16)
      reject(site_, "the metadata begins at lane " + std::to_string(in_.metadata >> 16),
             "lane 0, as D (PTX ISA 9.0, 9.7.16.10.8.5)");
  }

  const TensorMultiply& in_;
  const TensorSite& site_;
};

/// A matrix in the shared memory of a block: the shared memory descriptor (9.7.16.4.1, table 40).
/// @param arena  where the block's shared memory begins
SharedMatrix read_matrix_descriptor(std::uint64_t descriptor, bool transposed, unsigned element_bytes,
                                    const char* arena, const char* name, const TensorSite& site) {
  auto bad = [&](const std::string& message) {
    char number[24];
    std::snprintf(number, sizeof number, "0x%016llx", static_cast<unsigned long long>(descriptor));
    reject(site, "descriptor " + std::string(number) + " of matrix " + name + ": " + message,
           "PTX ISA 9.0, 9.7.16.4.1, table 40");
  };
  const unsigned mode = static_cast<unsigned>(descriptor >> 61);
  if ((descriptor >> 46 & 7) != 1) bad("bits 46 to 48 must be 0b001");
  if (descriptor >> 53 & 0xff) bad("bits 53 to 60 must be 0");
  if (descriptor >> 52 & 1)
    not_judgeable(site.file, site.line, "tcgen05: an absolute leading dimension (bit 52, sm_103a)");
  if (descriptor >> 49 & 7)
    not_judgeable(site.file, site.line, "tcgen05: a matrix base offset (bits 49 to 51) that is not 0");
  if (mode == 3 || mode == 5 || mode == 7)
    bad("swizzling mode " + std::to_string(mode) + " (bits 61 to 63) does not exist");
  const bool coarse = mode == 1;
  if (transposed && (element_bytes == 4) != coarse)
    bad(element_bytes == 4
            ? "32-bit elements that are not K-major need 128-byte swizzling in pieces of 32 bytes (table 52)"
            : "128-byte swizzling in pieces of 32 bytes is for transposed 32-bit elements (table 52)");
  if (!transposed && coarse)
    not_judgeable(site.file, site.line,
                  "tcgen05: a K-major matrix in 128-byte swizzling with pieces of 32 bytes");
  static constexpr unsigned kSpans[] = {0, 128, 128, 0, 64, 0, 32, 0};
  return {arena + matrix_offset((descriptor & 0x3fff) << 4),
          (descriptor >> 16 & 0x3fff) << 4,
          (descriptor >> 32 & 0x3fff) << 4,
          kSpans[mode],
          transposed,
          element_bytes,
          coarse};
}

std::string swizzling_of(unsigned span) {
  return span ? std::to_string(span) + "-byte swizzling" : "no swizzling";
}

/// A tile that a tensor copy brought lies as its tensor map says: the descriptor must say the same.
void require_layout_of_copy(const SharedMatrix& matrix, const char* name, const TensorSite& site) {
  const TensorBox* box = box_around(matrix.begin());
  if (!box || (box->map.swizzle == matrix.span() && !matrix.coarse()) || !still_holds(*box)) return;
  reject(site,
         "matrix " + std::string(name) + " is read with " + swizzling_of(matrix.span()) +
             (matrix.coarse() ? " in pieces of 32 bytes" : "") + ", and the tensor copy in " +
             std::string(box->file ? box->file : "?") + ":" + std::to_string(box->line) + " wrote it with " +
             swizzling_of(box->map.swizzle),
         "the descriptor's bits 61 to 63 and the tensor map's CU_TENSOR_MAP_SWIZZLE_… must name one layout "
         "(PTX ISA 9.0, 9.7.16.4.1, table 40)");
}

/// The blocks whose tensor memory and shared memory an instruction uses: one, or both of a pair.
struct Blocks {
  unsigned count;
  TensorMemory* memory[2];
  const char* arena[2];

  static Blocks of(unsigned group, const TensorSite& site) {
    TensorMemory& own = tensor_memory();
    require_group(own, group, site);
    if (group == 1) return {1, {&own, nullptr}, {thread_state.shared_base, nullptr}};
    TensorMemory& peer = peer_tensor_memory(site);
    if (peer.ended)
      reject(site, "the other block of the pair has left the kernel",
             "with .cta_group::2 both blocks must stay until the work is done (PTX ISA 9.0, table 46)");
    const unsigned odd = thread_state.cluster_rank % 2;
    Blocks both{2, {}, {}};
    both.memory[odd] = &own;
    both.memory[1 - odd] = &peer;
    for (unsigned i : {0u, 1u})
      both.arena[i] = thread_state.cluster_arenas[(thread_state.cluster_rank & ~1u) + i];
    return both;
  }
};

/// Tells of the engine's reads of a matrix in shared memory, 16 bytes at a time. They lie within it.
void note_matrix(const SharedMatrix& matrix, unsigned rows, unsigned row_bytes, const char* arena,
                 const char* name, const TensorSite& site, const void* pc) {
  const unsigned bytes = matrix.element_bytes(), side = 16 / bytes;
  const unsigned depth = row_bytes / bytes, along = ((matrix.transposed() ? rows : depth) + side - 1) / side;
  const std::size_t size = BlockRunner::current()->shared_bytes();
  for (unsigned i = 0; i < along * (matrix.transposed() ? depth : rows); ++i) {
    const unsigned near = i % along * side, far = i / along;
    const char* piece = matrix.transposed() ? matrix.at(near, far) : matrix.at(far, near);
    if (piece < arena || piece + 16 > arena + size)
      reject(site, "matrix " + std::string(name) + " reaches beyond the block's shared memory",
             "check the start address and the two offsets of its descriptor");
    check_access(piece, 16, false);
    observe::engine_touches(piece, 16, true, false, pc);
  }
}

// ---- matrices as numbers ----------------------------------------------------------------------------------

/// The bits of element `i` of sixteen that lie side by side in 16 bytes (9.7.16.10.4.4).
std::uint32_t element_of_sixteen(const char* piece, unsigned i, unsigned bits) {
  if (bits == 8) return static_cast<std::uint8_t>(piece[i]);
  std::uint32_t word = 0;
  for (unsigned b = 0; b < bits; ++b) {
    const unsigned at = i * bits + b;
    word |= static_cast<std::uint32_t>(piece[at / 8] >> (at % 8) & 1) << b;
  }
  return word;
}

using Numbers = std::vector<float>;  // row by row, K numbers each

/// @param depth  elements of a row that are stored: K, or K / 2 of a sparse A
Numbers numbers_in_shared(const SharedMatrix& matrix, unsigned rows, unsigned depth, const Shape& shape,
                          Narrow type) {
  Numbers numbers(std::size_t{rows} * depth);
  const unsigned bits = bits_of(type);
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned k = 0; k < depth; ++k) {
      std::uint32_t word = 0;
      if (shape.packed_four)
        word = static_cast<std::uint8_t>(*matrix.at(row, k / 2)) >> (k % 2 * 4) & 0xfu;
      else if (bits >= 16)
        std::memcpy(&word, matrix.at(row, k), bits / 8);
      else if (matrix.transposed())
        word = static_cast<std::uint8_t>(*matrix.at(row, k));
      else
        word = element_of_sixteen(matrix.at(row, k / 16 * 16), k % 16, bits);
      numbers[std::size_t{row} * depth + k] = value_of(word, type);
    }
  return numbers;
}

/// Lane of row `row` of `rows` in one block (9.7.16.10.5). Layout F scatters 64 rows.
unsigned lane_of(unsigned row, unsigned rows, const TensorMultiply& in) {
  const unsigned first = in.d >> 16;
  return rows == 64 && in.group == 1 && !in.stationary ? row / 16 * 32 + row % 16 + first : row + first;
}

/// `depth` numbers of A side by side in eight columns; narrow ones in bytes as 9.7.16.10.4.3 and .5 say.
Numbers numbers_in_tensor_memory(TensorMemory& memory, const TensorMultiply& in, unsigned rows,
                                 unsigned depth, const Shape& shape) {
  Numbers numbers(std::size_t{rows} * depth);
  const unsigned bits = bits_of(shape.a);
  const unsigned stored = shape.packed_four ? 4 : bits < 8 ? 8 : bits, per_word = 32 / stored;
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned k = 0; k < depth; ++k) {
      std::uint32_t word =
          *memory.cell(lane_of(row, rows, in), static_cast<unsigned>(in.a & 0xffff) + k / per_word);
      word = word >> (k % per_word * stored);
      if (stored < 32) word &= (1u << stored) - 1;
      if (bits == 4 && !shape.packed_four) word >>= 2;  // 00SEEM00
      numbers[std::size_t{row} * depth + k] = value_of(word, shape.a);
    }
  return numbers;
}

/// Columns of tensor memory that hold the indices of a sparse A: 4 bits for 4 elements of a row; of the 4-bit
/// kinds, for 8 (9.7.16.10.8).
unsigned metadata_columns(TensorKind kind) { return kind == TensorKind::kF16 ? 1 : 2; }

/// The 4 bits for group `group` of a row of 128 rows (figures 263 and 267).
unsigned indices_of(TensorMemory& memory, const TensorMultiply& in, unsigned selector, unsigned row,
                    unsigned group) {
  const unsigned column = in.metadata & 0xffff;
  if (in.kind == TensorKind::kF16) {
    // Rows r and r + 8 share a word; the upper 16 elements lie 8 lanes below.
    const unsigned lane = row / 16 * 16 + group / 4 * 8 + row % 8;
    return *memory.cell(lane, column + selector) >> (row / 8 % 2 * 16 + group % 4 * 4) & 15;
  }
  return *memory.cell(row, column + group / 8) >> group % 8 * 4 & 15;
}

/// A with its zeros: the two halves of each group go where the indices say (9.7.16.10.8.2 and .3).
Numbers expanded(const Numbers& stored, TensorMemory& memory, const TensorMultiply& in, const Shape& shape,
                 unsigned rows, const TensorSite& site) {
  Numbers numbers(std::size_t{rows} * shape.k, 0.f);
  const unsigned unit = shape.packed_four ? 2 : 1;  // elements that move together
  const unsigned size = 4 * unit;                   // elements of a group
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned group = 0; group < shape.k / size; ++group) {
      const unsigned code = indices_of(memory, in, shape.selector, row, group);
      constexpr unsigned kMeaningful = 1u << 0b0100 | 1u << 0b1000 | 1u << 0b1100 | 1u << 0b1001 |
                                       1u << 0b1101 | 1u << 0b0110 | 1u << 0b1110;
      if (!(kMeaningful >> code & 1))
        reject(site,
               "the metadata of row " + std::to_string(row) + ", elements " + std::to_string(group * size) +
                   " to " + std::to_string((group + 1) * size - 1) + " of A is " + std::to_string(code),
               "4, 6, 8, 9, 12, 13 or 14: two different places of four (PTX ISA 9.0, 9.7.16.10.8)");
      for (unsigned i = 0; i < 2 * unit; ++i)
        numbers[std::size_t{row} * shape.k + group * size + (code >> i / unit * 2 & 3) * unit + i % unit] =
            stored[std::size_t{row} * (shape.k / 2) + group * 2 * unit + i];
    }
  return numbers;
}

/// Which columns of B count as zeros, and from which column on B is used: the zero-column mask descriptor
/// (9.7.16.4.3, table 45). The text of "Skip Span" and "Use Span" and the examples below it contradict
/// each other. The examples agree among themselves: a use span of 3 means four columns of B, then come zeros.
struct ColumnMask {
  std::vector<bool> zero;
  unsigned shift = 0;

  static ColumnMask read(std::uint64_t descriptor, const Shape& shape, unsigned most_shift,
                         const TensorSite& site) {
    auto field = [&](unsigned first, unsigned bits) {
      return static_cast<unsigned>(descriptor >> first & ((1u << bits) - 1));
    };
    auto bad = [&](const std::string& message) {
      char number[24];
      std::snprintf(number, sizeof number, "0x%016llx", static_cast<unsigned long long>(descriptor));
      reject(site, "zero-column mask descriptor " + std::string(number) + ": " + message,
             "PTX ISA 9.0, 9.7.16.4.3, table 45");
    };
    ColumnMask mask{std::vector<bool>(shape.n, false), field(56, 6)};
    if (field(36, 3) || field(62, 2)) bad("bits 36 to 38, 62 and 63 must be 0");
    const unsigned most = shape.m == 32 ? 16 : 32;
    if (mask.shift > most)
      bad("column shift " + std::to_string(mask.shift) + "; with M = " + std::to_string(shape.m) +
          " at most " + std::to_string(most));
    if (mask.shift > most_shift)
      bad("column shift " + std::to_string(mask.shift) +
          ", and bits 30 and 31 of the instruction descriptor " + "allow " + std::to_string(most_shift) +
          " (table 42)");
    if (!field(39, 1)) return mask;
    const unsigned zeros = field(40, 8) + 1, used = field(48, 8) + 1, parts = TensorMemory::kLanes / shape.m;
    for (unsigned part = 0; part < parts; ++part) {
      const bool first = field(32 + part, 1);
      const unsigned start = field(8 * part, 8);
      if (start >= (first ? zeros : used))
        not_judgeable(
            site.file, site.line,
            "tcgen05.mma.ws: start count %u of the zero-column mask skips all of the first span of %u "
            "columns (docs/design/blackwell_questions.md, 25)",
            start, first ? zeros : used);
      for (unsigned i = 0; i < shape.n / parts; ++i) {
        const unsigned at = (i + start) % (zeros + used);
        mask.zero[part * (shape.n / parts) + i] = first ? at < zeros : at >= used;
      }
    }
    return mask;
  }
};

/// Scale factors of `count` rows: row r lies in lane r % 32, column r / 32, the same in all four quarters
/// (9.7.16.10.7).
Numbers scales_of(TensorMemory& memory, std::uint32_t address, unsigned count, unsigned scales, unsigned id,
                  bool powers, const char* name, const TensorSite& site) {
  Numbers numbers(std::size_t{count} * scales);
  for (unsigned row = 0; row < count; ++row) {
    const unsigned column = (address & 0xffff) + row / 32;
    const std::uint32_t word = *memory.cell(row % 32, column);
    const std::uint32_t used = (scales == 4 ? ~0u : (1u << (8 * scales)) - 1) << (8 * id);
    for (unsigned quarter = 1; quarter < TensorMemory::kQuarters; ++quarter)
      if ((*memory.cell(quarter * 32 + row % 32, column) ^ word) & used)
        reject(site,
               "the scale factors of " + std::string(name) + " differ between the four groups of 32 lanes",
               "copy them with tcgen05.cp.….32x128b.warpx4 (PTX ISA 9.0, 9.7.16.10.7)");
    for (unsigned s = 0; s < scales; ++s)
      numbers[std::size_t{row} * scales + s] =
          scale_of(static_cast<std::uint8_t>(word >> (8 * (id + s))), powers);
  }
  return numbers;
}

/// One block's part of D. Whole numbers are exact in `Sum` = int64.
template <class Sum>
void accumulate(const Numbers& a, unsigned row, const Numbers& b, unsigned columns, const Shape& shape,
                const float* scale_a, const Numbers& scale_b, unsigned scales, std::vector<Sum>& sums) {
  sums.assign(columns, Sum(0));
  const unsigned blocks = scales ? scales : 1, depth = shape.k / blocks;
  for (unsigned block = 0; block < blocks; ++block)
    for (unsigned column = 0; column < columns; ++column) {
      const float *left = &a[std::size_t{row} * shape.k + block * depth],
                  *right = &b[std::size_t{column} * shape.k + block * depth];
      Sum sum = 0;
      for (unsigned k = 0; k < depth; ++k) sum += static_cast<Sum>(left[k]) * static_cast<Sum>(right[k]);
      if constexpr (std::is_same_v<Sum, float>)
        if (scales) sum *= scale_a[block] * scale_b[std::size_t{column} * scales + block];
      sums[column] += sum;
    }
}

struct Product {
  TensorMultiply in;
  Shape shape;
  Blocks blocks;
  ColumnMask mask;
  std::vector<SharedMatrix> a, b;  // by block
  TensorSite site;

  Numbers numbers_of_a(unsigned block, unsigned rows) const {
    TensorMemory& memory = *blocks.memory[block];
    const unsigned depth = in.sparse ? shape.k / 2 : shape.k;
    const Numbers stored = in.a_in_shared ? numbers_in_shared(a[block], rows, depth, shape, shape.a)
                                          : numbers_in_tensor_memory(memory, in, rows, depth, shape);
    return in.sparse ? expanded(stored, memory, in, shape, rows, site) : stored;
  }
  void perform() const {
    const unsigned count = blocks.count, rows = shape.m / count;
    Numbers columns_of_b;
    for (unsigned i = 0; i < count; ++i) {
      const unsigned columns = shape.n / count;
      const Numbers part = numbers_in_shared(b[i], mask.shift + columns, shape.k, shape, shape.b);
      columns_of_b.insert(columns_of_b.end(), part.begin() + mask.shift * shape.k, part.end());
    }
    for (unsigned column = 0; column < shape.n; ++column)
      if (mask.zero[column]) std::fill_n(columns_of_b.begin() + column * shape.k, shape.k, 0.f);
    if (shape.negate_a != shape.negate_b)
      for (float& number : columns_of_b) number = -number;
    for (unsigned i = 0; i < count; ++i) {
      const Numbers left = numbers_of_a(i, rows);
      Numbers scale_a, scale_b;
      if (in.scales) {
        scale_a = scales_of(*blocks.memory[i], in.scale_a, rows, in.scales, shape.scale_a, shape.scale_powers,
                            "A", site);
        scale_b = scales_of(*blocks.memory[i], in.scale_b, shape.n, in.scales, shape.scale_b,
                            shape.scale_powers, "B", site);
      }
      std::vector<float> sums;
      std::vector<std::int64_t> whole;
      for (unsigned row = 0; row < rows; ++row) {
        const float* scale = in.scales ? &scale_a[std::size_t{row} * in.scales] : nullptr;
        if (shape.integer)
          accumulate(left, row, columns_of_b, shape.n, shape, scale, scale_b, 0, whole);
        else
          accumulate(left, row, columns_of_b, shape.n, shape, scale, scale_b, in.scales, sums);
        for (unsigned column = 0; column < shape.n; ++column) {
          std::uint32_t* cell = place(i, rows, row, column);
          if (!cell) continue;
          *cell = shape.integer ? sum_of(*cell, whole[column]) : sum_of(*cell, sums[column]);
        }
      }
    }
  }

  /// D's columns in a block come in so many parts, one beneath the other: layouts B and E have two, of 64
  /// lanes, layout G four, of 32.
  unsigned parts() const {
    if (in.stationary) return TensorMemory::kLanes / shape.m;
    return in.group == 2 && shape.m == 128 ? 2 : 1;
  }
  /// Where an element of D lies; null where disable-output-lane is set.
  std::uint32_t* place(unsigned block, unsigned rows, unsigned row, unsigned column) const {
    const unsigned each = shape.n / parts(), at = column % each,
                   lane = lane_of(row, rows, in) + column / each * (TensorMemory::kLanes / parts());
    if (in.disabled[block * 4 + lane / 32] >> (lane % 32) & 1) return nullptr;
    return blocks.memory[block]->cell(lane, (in.d & 0xffff) + at);
  }
  std::uint32_t sum_of(std::uint32_t old, float sum) const {
    if (in.accumulate) {
      const float before =
          shape.wide ? reinterpret_bits<float>(old) : half_to_float(static_cast<std::uint16_t>(old));
      sum += std::ldexp(before, -static_cast<int>(in.shift));
    }
    return shape.wide ? reinterpret_bits<std::uint32_t>(sum) : float_to_half(sum);
  }
  std::uint32_t sum_of(std::uint32_t old, std::int64_t sum) const {
    if (in.accumulate) sum += static_cast<std::int32_t>(old);
    if (shape.saturates) sum = std::clamp<std::int64_t>(sum, -0x7fffffffll - 1, 0x7fffffffll);
    return static_cast<std::uint32_t>(sum);
  }
};

/// The columns are usable in all blocks; the engine will touch `bytes_of_lane` from there on in `lanes`
/// lanes.
void use_columns(const Blocks& blocks, std::uint32_t address, unsigned columns, bool reads, bool writes,
                 const std::vector<unsigned>& lanes, TensorWork& work, const void* pc) {
  const unsigned column = address & 0xffff;
  for (unsigned i = 0; i < blocks.count; ++i) {
    TensorMemory& memory = *blocks.memory[i];
    require_usable(memory, 0xf, column, columns, writes, TensorUse::kEngine, work.site);
    work.ranges.push_back({&memory, column, columns, writes, reads});
    for (const unsigned lane : lanes)
      observe::engine_touches(memory.cell(lane, column), columns * 4, reads, writes, pc);
  }
}

std::vector<unsigned> all_lanes() {
  std::vector<unsigned> lanes(TensorMemory::kLanes);
  for (unsigned i = 0; i < lanes.size(); ++i) lanes[i] = i;
  return lanes;
}

}  // namespace

void tensor_multiply(const TensorMultiply& operands, const char* file, int line) {
  const TensorSite site{"tcgen05.mma", file, line};
  const void* pc = __builtin_return_address(0);
  const Blocks blocks = Blocks::of(operands.group, site);
  const Shape shape = InstructionReader(operands, site).read();
  if (operands.shift > 15 ||
      (operands.shift && operands.kind != TensorKind::kF16 && operands.kind != TensorKind::kTf32))
    reject(site, "scale-input-d = " + std::to_string(operands.shift),
           "0 to 15, with .kind::f16 and .kind::tf32 only");
  if (operands.masks && operands.masks != 4 * operands.group)
    reject(site, "disable-output-lane has " + std::to_string(operands.masks) + " words",
           "4 words with .cta_group::1, 8 with ::2");
  const unsigned rows = shape.m / blocks.count, first_lane = operands.d >> 16;
  const bool half_used = shape.m == 64 && !operands.stationary;  // layout F: half of the lanes
  if (first_lane != 0 && !(half_used && first_lane == 16))
    reject(site, "D begins at lane " + std::to_string(first_lane),
           "lane 0, or 16 where M is 64 (PTX ISA 9.0, 9.7.16.10.5)");
  if (!operands.a_in_shared && (operands.a >> 16) != first_lane)
    reject(site, "A and D begin at different lanes", "the same lane for both (PTX ISA 9.0, 9.7.16.10.5)");

  if (operands.a_shift) {
    if (operands.a_in_shared || shape.m < 128)
      reject(site, ".ashift with " + std::string(operands.a_in_shared ? "A in shared memory" : "M = 64"),
             "A in tensor memory, M = 128 or 256 (PTX ISA 9.0, 9.7.16.10.9.1)");
    not_judgeable(file, line,
                  "tcgen05.mma.ashift: which way it moves the rows of A is a question to hardware "
                  "(docs/design/blackwell_questions.md, 24)");
  }
  if (operands.stationary && !operands.a_in_shared && shape.m != 128)
    not_judgeable(file, line, "tcgen05.mma.ws with A in tensor memory and M below 128");

  const unsigned shifts[] = {0, 8, 16, 32};
  Product product{
      operands, shape,
      blocks,   ColumnMask::read(operands.zero_columns, shape, shifts[operands.instruction >> 30], site),
      {},       {},
      site};
  auto matrix = [&](std::uint64_t descriptor, Narrow type, bool transposed, unsigned i, unsigned count,
                    unsigned row_bytes, const char* name) {
    const unsigned bytes = std::max(1u, bits_of(type) / 8);
    const SharedMatrix found =
        read_matrix_descriptor(descriptor, transposed, bytes, blocks.arena[i], name, site);
    if (!transposed && found.span() && found.span() < row_bytes)
      not_judgeable(file, line, "tcgen05.mma.sp with %u bytes of a row of %s in %u-byte swizzling", row_bytes,
                    name, found.span());
    require_layout_of_copy(found, name, site);
    note_matrix(found, count, row_bytes, blocks.arena[i], name, site, pc);
    return found;
  };
  for (unsigned i = 0; i < blocks.count; ++i) {
    if (operands.a_in_shared)
      product.a.push_back(matrix(operands.a, shape.a, shape.transpose_a, i, rows, kRowBytes, "A"));
    product.b.push_back(matrix(operands.b, shape.b, shape.transpose_b, i,
                               product.mask.shift + shape.n / blocks.count,
                               operands.sparse ? 2 * kRowBytes : kRowBytes, "B"));
  }
  if (!operands.a_in_shared && shape.transpose_a)
    reject(site, "A lies in tensor memory and is to be transposed",
           "bit 15 of the instruction descriptor is 0 there");

  TensorWork work{nullptr, 0, site, {}, {}, {}};
  std::vector<unsigned> lanes;
  const unsigned parts = product.parts();
  for (unsigned part = 0; part < parts; ++part)
    for (unsigned row = 0; row < rows; ++row)
      lanes.push_back(lane_of(row, rows, operands) + part * (TensorMemory::kLanes / parts));
  use_columns(blocks, operands.d, shape.n / parts, operands.accumulate, true, lanes, work, pc);
  if (!operands.a_in_shared)
    use_columns(blocks, static_cast<std::uint32_t>(operands.a), kRowBytes / 4, true, false,
                std::vector<unsigned>(lanes.begin(), lanes.begin() + rows), work, pc);
  if (operands.scales) {
    use_columns(blocks, operands.scale_a, (rows + 31) / 32, true, false, all_lanes(), work, pc);
    use_columns(blocks, operands.scale_b, (shape.n + 31) / 32, true, false, all_lanes(), work, pc);
  }
  if (operands.sparse)
    use_columns(blocks, operands.metadata + shape.selector, metadata_columns(operands.kind), true, false,
                all_lanes(), work, pc);
  // Of a sparse A, the zeros are no work.
  observe::flops((operands.sparse ? 1ull : 2ull) * shape.m * shape.n * shape.k, pc,
                 static_cast<int>(operands.kind));
  work.perform = [product] { product.perform(); };
  issue_tensor_work(std::move(work));
}

void tensor_copy(TensorCopy shape, unsigned packed_bits, unsigned group, std::uint32_t address,
                 std::uint64_t descriptor, const char* file, int line) {
  const TensorSite site{"tcgen05.cp", file, line};
  const void* pc = __builtin_return_address(0);
  const Blocks blocks = Blocks::of(group, site);
  const bool wide = shape == TensorCopy::k128x256b || shape == TensorCopy::k4x256b;
  const unsigned bytes = wide ? 32 : 16, columns = bytes / 4;
  const unsigned rows = shape == TensorCopy::k4x256b                                               ? 4
                        : shape == TensorCopy::k128x256b || shape == TensorCopy::k128x128b         ? 128
                        : shape == TensorCopy::k64x128b02_13 || shape == TensorCopy::k64x128b01_23 ? 64
                                                                                                   : 32;
  const unsigned first_lane = address >> 16;
  if (shape == TensorCopy::k4x256b ? first_lane >= 32 : first_lane != 0)
    reject(site, "the address begins at lane " + std::to_string(first_lane),
           "lane 0; .4x256b: a lane below 32");
  // Lanes that receive a row.
  auto receivers = [=](unsigned row) -> std::vector<unsigned> {
    switch (shape) {
      case TensorCopy::k4x256b:
        return {first_lane + 32 * row};
      case TensorCopy::k64x128b02_13:
        return {row, row + 64};
      case TensorCopy::k64x128b01_23:
        return {row / 32 * 64 + row % 32, row / 32 * 64 + row % 32 + 32};
      case TensorCopy::k32x128b:
        return {row, row + 32, row + 64, row + 96};
      default:
        return {row};
    }
  };
  TensorWork work{nullptr, 0, site, {}, {}, {}};
  std::vector<SharedMatrix> sources;
  for (unsigned i = 0; i < blocks.count; ++i) {
    sources.push_back(read_matrix_descriptor(descriptor, false, 1, blocks.arena[i], "s-desc", site));
    require_layout_of_copy(sources[i], "s-desc", site);
    note_matrix(sources[i], rows, bytes, blocks.arena[i], "s-desc", site, pc);
  }
  std::vector<unsigned> lanes;
  for (unsigned row = 0; row < rows; ++row)
    for (const unsigned lane : receivers(row)) lanes.push_back(lane);
  use_columns(blocks, address, columns, false, true, lanes, work, pc);
  work.perform = [=] {
    for (unsigned i = 0; i < blocks.count; ++i)
      for (unsigned row = 0; row < rows; ++row)
        for (unsigned piece = 0; piece < bytes; piece += 16) {
          char words[16];
          const char* from = sources[i].at(row, piece);
          // 9.7.16.9.1: 4 bits become 00SEEM00, 6 bits 00xxxxxx.
          for (unsigned k = 0; k < 16; ++k)
            words[k] = packed_bits == 0 ? from[k]
                                        : static_cast<char>(element_of_sixteen(from, k, packed_bits)
                                                            << (packed_bits == 4 ? 2 : 0));
          for (const unsigned lane : receivers(row))
            std::memcpy(blocks.memory[i]->cell(lane, (address & 0xffff) + piece / 4), words, 16);
        }
  };
  issue_tensor_work(std::move(work));
}

void tensor_shift(unsigned group, std::uint32_t address, const char* file, int line) {
  const TensorSite site{"tcgen05.shift", file, line};
  const void* pc = __builtin_return_address(0);
  const Blocks blocks = Blocks::of(group, site);
  constexpr unsigned kWords = 8;  // 32 bytes of a row
  const unsigned first = address >> 16;
  if (first % 32 || first >= TensorMemory::kLanes)
    reject(site, "the address begins at lane " + std::to_string(first), "a multiple of 32");
  std::vector<unsigned> lanes(32);
  for (unsigned i = 0; i < 32; ++i) lanes[i] = first + i;
  TensorWork work{nullptr, 0, site, {}, {}, {}};
  use_columns(blocks, address, kWords, true, true, lanes, work, pc);
  work.perform = [=] {  // row i takes what row i + 1 holds; the last row stays
    for (unsigned i = 0; i < blocks.count; ++i)
      for (unsigned lane = first; lane < first + 31; ++lane)
        std::memcpy(blocks.memory[i]->cell(lane, address & 0xffff),
                    blocks.memory[i]->cell(lane + 1, address & 0xffff), kWords * 4);
  };
  issue_tensor_work(std::move(work));
}

}  // namespace capstone_emu
