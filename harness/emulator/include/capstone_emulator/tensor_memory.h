#pragma once
#pragma GCC system_header
// tcgen05: the tensor memory of sm_100a and the instructions around it. PTX ISA 9.0, 9.7.16.
#include "core.h"

namespace capstone_emu {

/// What tcgen05.ld and .st move for one warp (9.7.16.2.3).
enum class TensorShape : unsigned char { k32x32b, k16x64b, k16x128b, k16x256b, k16x32bx2 };
struct TensorMove {
  TensorShape shape;
  unsigned repeat;  ///< `.num`
  bool halves;      ///< `.pack::16b`, `.unpack::16b`: a register is the low halves of two columns
  std::uint32_t address;
  unsigned split;   ///< columns between the two accesses of .16x32bx2
};
void tensor_load(const TensorMove& move, std::uint32_t* registers, const char* file, int line);
void tensor_store(const TensorMove& move, const std::uint32_t* registers, const char* file, int line);
void tensor_wait(bool loads, const char* file, int line);
/// The registers of a load may not be used before tensor_wait().
void tensor_loads_into(const void* const* registers, unsigned count);

/// @return the address, in the lane that has to store it; else ~0
std::uint32_t tensor_allocate(std::uint32_t to, unsigned columns, unsigned group, const char* file, int line);
void tensor_release(std::uint32_t address, unsigned columns, unsigned group, const char* file, int line);
void tensor_relinquish(unsigned group, const char* file, int line);

enum class TensorKind : unsigned char { kF16, kTf32, kF8f6f4, kI8, kMxf8f6f4, kMxf4, kMxf4nvf4 };
/// Operands of tcgen05.mma (9.7.16.10.9.1).
struct TensorMultiply {
  TensorKind kind;
  unsigned group;
  std::uint32_t d;
  bool a_in_shared;
  std::uint64_t a, b;  ///< descriptors; `a` an address of tensor memory unless it is in shared memory
  std::uint32_t instruction;
  bool accumulate;
  unsigned shift;                ///< scale-input-d
  unsigned scales;               ///< scale factors for a row along K; 0: none
  std::uint32_t scale_a, scale_b;
  unsigned masks;                ///< words of disable-output-lane that were given
  std::uint32_t disabled[8];
  bool stationary = false;       ///< .ws (9.7.16.10.9.3)
  std::uint64_t zero_columns = 0;  ///< its zero-column-mask-desc
  bool sparse = false;             ///< .sp (9.7.16.10.9.2): A holds K / 2 elements of each row
  std::uint32_t metadata = 0;      ///< where its indices lie in tensor memory
  bool a_shift = false;            ///< .ashift
};
void tensor_multiply(const TensorMultiply& operands, const char* file, int line);

/// tcgen05.cp (9.7.16.9.2): which lanes receive the rows.
enum class TensorCopy : unsigned char { k128x256b, k128x128b, k4x256b, k64x128b02_13, k64x128b01_23, k32x128b };
/// @param packed_bits  of an element in shared memory that becomes 8 bits wide: 4 or 6; 0: none does
void tensor_copy(TensorCopy shape, unsigned packed_bits, unsigned group, std::uint32_t address, std::uint64_t descriptor,
                 const char* file, int line);
void tensor_shift(unsigned group, std::uint32_t address, const char* file, int line);
/// @param mask  blocks of the cluster whose barriers are told, at the same place; 0: the one at `barrier`
void tensor_commit(std::uint64_t* barrier, unsigned mask, unsigned group, const char* file, int line);
void tensor_fence(bool before);
/// Does what is committed to the barrier, because a thread waits for it.
void finish_tensor_work(const std::uint64_t* barrier);

}  // namespace capstone_emu
