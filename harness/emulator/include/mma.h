#pragma once
#pragma GCC system_header
// nvcuda::wmma. CUDA leaves open which lane holds which element; here element i of lane l is number l * n + i
// in row-major order, n elements a lane.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "capstone_emulator/narrow.h"
#include "capstone_emulator/synchronisation.h"

namespace nvcuda::wmma {

struct row_major;
struct col_major;
struct matrix_a;
struct matrix_b;
struct accumulator;
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32 {};
}  // namespace precision

namespace detail {
template <class T>
struct Storage {
  using Type = T;
};
template <>
struct Storage<precision::tf32> {
  using Type = float;
};
template <class T>
inline float widen(T value) { return static_cast<float>(value); }
inline float widen(__half value) {
  return capstone_emu::half_to_float(capstone_emu::reinterpret_bits<std::uint16_t>(value));
}
inline float widen(__nv_bfloat16 value) {
  return capstone_emu::reinterpret_bits<float>(
      static_cast<std::uint32_t>(capstone_emu::reinterpret_bits<std::uint16_t>(value)) << 16);
}
}  // namespace detail

template <class Use, int M, int N, int K, class T, class Layout = void>
struct fragment {
  static constexpr int kRows = std::is_same_v<Use, matrix_b> ? K : M;
  static constexpr int kColumns = std::is_same_v<Use, matrix_a> ? K : N;
  static constexpr int num_elements = kRows * kColumns / 32;
  static constexpr int num_storage_elements = num_elements;
  using element_type = T;
  using storage_element_type = typename detail::Storage<T>::Type;
  storage_element_type x[num_elements];
};

static inline float __float_to_tf32(float value) {
  const std::uint32_t bits = capstone_emu::reinterpret_bits<std::uint32_t>(value);
  return value - value == 0 ? capstone_emu::reinterpret_bits<float>((bits + 0x1000u) & ~0x1fffu) : value;
}

template <class Use, int M, int N, int K, class T, class Layout>
inline void fill_fragment(fragment<Use, M, N, K, T, Layout>& f,
                          const capstone_emu::Same<typename detail::Storage<T>::Type>& value) {
  for (auto& element : f.x) element = value;
}

namespace detail {
template <class Fragment>
struct Position {  // of this lane's i-th element
  int row, column;
  explicit Position(int i) {
    const int e = static_cast<int>(capstone_emu::thread_state.lane) * Fragment::num_elements + i;
    row = e / Fragment::kColumns;
    column = e % Fragment::kColumns;
  }
  std::size_t offset(unsigned ld, bool row_major) const {
    return row_major ? static_cast<std::size_t>(row) * ld + column : static_cast<std::size_t>(column) * ld + row;
  }
};
template <class Fragment, class P>
inline void load(Fragment& f, const P* from, unsigned ld, bool row_major) {
  for (int i = 0; i < Fragment::num_elements; ++i) f.x[i] = from[Position<Fragment>(i).offset(ld, row_major)];
}
inline void check_pointer(const void* pointer, const char* what, const char* file, int line) {
  // The guide asks for 32 bytes; GPUs need 16.
  if (reinterpret_cast<std::uintptr_t>(pointer) % 16)
    capstone_emu::undefined_behaviour(file, line, "%s: the pointer must be a multiple of 16 bytes, better 32, not %p",
                                      what, pointer);
}
}  // namespace detail

template <class Use, int M, int N, int K, class T, class Layout, class P>
inline void load_matrix_sync(fragment<Use, M, N, K, T, Layout>& f, const P* from, unsigned ld, CAPSTONE_SITE) {
  detail::check_pointer(from, "load_matrix_sync", file, line);
  __syncwarp(~0u, file, line);
  detail::load(f, from, ld, std::is_same_v<Layout, row_major>);
}
template <class Use, int M, int N, int K, class T, class P>
inline void load_matrix_sync(fragment<Use, M, N, K, T>& f, const P* from, unsigned ld, layout_t layout, CAPSTONE_SITE) {
  detail::check_pointer(from, "load_matrix_sync", file, line);
  __syncwarp(~0u, file, line);
  detail::load(f, from, ld, layout == mem_row_major);
}
template <class Use, int M, int N, int K, class T, class P>
inline void store_matrix_sync(P* to, const fragment<Use, M, N, K, T>& f, unsigned ld, layout_t layout, CAPSTONE_SITE) {
  using Fragment = fragment<Use, M, N, K, T>;
  detail::check_pointer(to, "store_matrix_sync", file, line);
  for (int i = 0; i < Fragment::num_elements; ++i)
    to[detail::Position<Fragment>(i).offset(ld, layout == mem_row_major)] = f.x[i];
  __syncwarp(~0u, file, line);
}

namespace detail {
template <class D, class A, class B, class C, int M, int N, int K>
struct Multiply {
  D* d;
  const A* a;
  const B* b;
  const C* c;

  static void compute(capstone_emu::WarpOp* const* lanes, unsigned) {
    using Sum = typename C::storage_element_type;
    using Number = std::conditional_t<std::is_integral_v<Sum>, int, std::conditional_t<std::is_same_v<Sum, double>, double, float>>;
    alignas(64) Number left[M * K], right[K * N], sum[M * N];
    auto at = [&](int lane) -> const Multiply& { return *static_cast<const Multiply*>(lanes[lane]->in); };
    auto number = [](auto element) -> Number {
      if constexpr (std::is_integral_v<Number> || std::is_same_v<Number, double>)
        return static_cast<Number>(element);
      else
        return widen(element);
    };
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < A::num_elements; ++i) left[lane * A::num_elements + i] = number(at(lane).a->x[i]);
      for (int i = 0; i < B::num_elements; ++i) right[lane * B::num_elements + i] = number(at(lane).b->x[i]);
      for (int i = 0; i < C::num_elements; ++i) sum[lane * C::num_elements + i] = number(at(lane).c->x[i]);
    }
    for (int i = 0; i < M; ++i)
      for (int k = 0; k < K; ++k)
        for (int j = 0; j < N; ++j) sum[i * N + j] += left[i * K + k] * right[k * N + j];
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < D::num_elements; ++i)
        at(lane).d->x[i] = static_cast<typename D::storage_element_type>(sum[lane * D::num_elements + i]);
  }
};
}  // namespace detail

template <int M, int N, int K, class TA, class LA, class TB, class LB, class TC, class TD>
inline void mma_sync(fragment<accumulator, M, N, K, TD>& d, const fragment<matrix_a, M, N, K, TA, LA>& a,
                     const fragment<matrix_b, M, N, K, TB, LB>& b, const fragment<accumulator, M, N, K, TC>& c,
                     CAPSTONE_SITE) {
  using Op = detail::Multiply<fragment<accumulator, M, N, K, TD>, fragment<matrix_a, M, N, K, TA, LA>,
                              fragment<matrix_b, M, N, K, TB, LB>, fragment<accumulator, M, N, K, TC>, M, N, K>;
  Op operands{&d, &a, &b, &c};
  capstone_emu::WarpOp op{capstone_emu::WarpKind::kMatrix, ~0u, file, line};
  op.in = &operands;
  op.compute = Op::compute;
  capstone_emu::note_flops(2 * M * N * K / 32);
  capstone_emu::warp_collective(op);
}

}  // namespace nvcuda::wmma
