#pragma once
#pragma GCC system_header
// Built-in variables and launches, in CUDA's own types. They are variables and not macros, because
// programs write `dim3 blockDim(16, 16);` in host code.
#include "core.h"

namespace capstone_emu {
/// Constants where hooks observe, so that reading them is no access. In a row of threads they change.
template <class T>
using BuiltIn = std::conditional_t<observed_by_hooks, const T, T>;
}  // namespace capstone_emu
extern thread_local __constinit capstone_emu::BuiltIn<uint3> threadIdx
    __asm__("capstone_emu_thread_index") CAPSTONE_TLS;
extern thread_local __constinit capstone_emu::BuiltIn<uint3> blockIdx
    __asm__("capstone_emu_block_index") CAPSTONE_TLS;
extern thread_local __constinit capstone_emu::BuiltIn<dim3> blockDim
    __asm__("capstone_emu_block_dim") CAPSTONE_TLS;
extern thread_local __constinit capstone_emu::BuiltIn<dim3> gridDim
    __asm__("capstone_emu_grid_dim") CAPSTONE_TLS;
inline constexpr int warpSize = 32;

namespace capstone_emu {

inline __attribute__((always_inline)) Index3 Row::running_index() { return {threadIdx.x, threadIdx.y, threadIdx.z}; }
/// @param current  threadIdx
template <class Index>
inline __attribute__((always_inline)) bool Row::next(Index& current) {
  if (++linear >= thread_state.row_end) return false;
  if (__builtin_expect(++index.x == blockDim.x, 0)) {
    index.x = 0;
    if (++index.y == blockDim.y) {
      index.y = 0;
      ++index.z;
    }
    current.y = index.y;
    current.z = index.z;
  }
  current.x = index.x;
  thread_state.linear = linear;
  thread_state.lane = linear % static_cast<unsigned>(warpSize);
  thread_state.spin = 0;
  return true;
}

template <class Body>
CAPSTONE_UNOBSERVED inline __attribute__((always_inline)) void run_row(const Body& body) {
  if constexpr (observed_by_hooks) {
    body();
  } else {
    Row row;
    do body();
    while (row.next(threadIdx));
  }
}

inline Index3 index_of(dim3 d) { return {d.x, d.y, d.z}; }

/// What stands between `<<<` and `>>>`. Streams do not matter: every launch is complete when it returns.
inline LaunchConfig config(const char* kernel, const char* file, int line, dim3 grid, dim3 block,
                           std::size_t dynamic_shared = 0, cudaStream_t stream = nullptr) {
  return {kernel, file, line, index_of(grid), index_of(block), dynamic_shared, false, stream};
}

template <class... Parameters, std::size_t... I>
inline cudaError_t launch_pointer(const LaunchConfig& where, void (*kernel)(Parameters...), void** arguments,
                                  std::index_sequence<I...>) {
  launch(
      where, [kernel](auto&... values) CAPSTONE_UNOBSERVED { kernel(values...); },
      *static_cast<std::remove_const_t<std::remove_reference_t<Parameters>>*>(arguments[I])...);
  return static_cast<cudaError_t>(last_error());
}

template <class... Parameters, std::size_t... I>
inline KeptLaunch keep_arguments(const LaunchConfig& where, void (*kernel)(Parameters...), void** arguments,
                                 std::index_sequence<I...>) {
  struct Frame {
    void (*kernel)(Parameters...);
    std::tuple<std::decay_t<Parameters>...> values;
  };
  unsigned number = 0;
  if (!(... && accepts(where, ++number, *static_cast<std::decay_t<Parameters>*>(arguments[I])))) return {};
  return {[](void* raw) CAPSTONE_UNOBSERVED {
            auto& [kernel, values] = *static_cast<Frame*>(raw);
            run_row([&]() CAPSTONE_UNOBSERVED { std::apply(kernel, values); });
          },
          new Frame{kernel, {*static_cast<std::decay_t<Parameters>*>(arguments[I])...}},
          [](void* raw) { delete static_cast<Frame*>(raw); }, sizeof(Frame)};
}
/// What the rewriter makes of `(void*)kernel`.
template <class... Parameters>
inline void* kernel_address(const char* name, void (*kernel)(Parameters...)) {
  void* const address = reinterpret_cast<void*>(kernel);
  know_kernel(address, name, [](const LaunchConfig& where, void* given, void** arguments) {
    return keep_arguments(where, reinterpret_cast<void (*)(Parameters...)>(given), arguments,
                          std::index_sequence_for<Parameters...>{});
  });
  return address;
}

}  // namespace capstone_emu

template <class... Parameters>
inline cudaError_t cudaLaunchKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, void** arguments,
                                    std::size_t dynamic_shared = 0, cudaStream_t stream = nullptr, CAPSTONE_SITE) {
  return capstone_emu::launch_pointer(
      {"kernel given to cudaLaunchKernel", file, line, capstone_emu::index_of(grid), capstone_emu::index_of(block),
       dynamic_shared, false, stream},
      kernel, arguments, std::index_sequence_for<Parameters...>{});
}

template <class... Parameters>
inline cudaError_t cudaLaunchCooperativeKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, void** arguments,
                                               std::size_t dynamic_shared = 0, cudaStream_t stream = nullptr,
                                               CAPSTONE_SITE) {
  return capstone_emu::launch_pointer(
      {"kernel given to cudaLaunchCooperativeKernel", file, line, capstone_emu::index_of(grid),
       capstone_emu::index_of(block), dynamic_shared, true, stream},
      kernel, arguments, std::index_sequence_for<Parameters...>{});
}

// ---- clusters ---------------------------------------------------------------------------------------------
namespace capstone_emu {
inline dim3 dim_of(const Index3& i) { return dim3(i.x, i.y, i.z); }
}  // namespace capstone_emu
static inline dim3 __clusterDim() { return capstone_emu::dim_of(capstone_emu::cluster_view().dim); }
static inline dim3 __clusterIdx() { return capstone_emu::dim_of(capstone_emu::cluster_view().index); }
static inline dim3 __clusterRelativeBlockIdx() { return capstone_emu::dim_of(capstone_emu::cluster_view().block); }
static inline dim3 __clusterGridDimInClusters() { return capstone_emu::dim_of(capstone_emu::cluster_view().grid); }
static inline unsigned __clusterRelativeBlockRank() { return capstone_emu::thread_state.cluster_rank; }
static inline unsigned __clusterSizeInBlocks() { return capstone_emu::cluster_size(); }
static inline void __cluster_barrier_arrive() { capstone_emu::cluster_arrive(); }
static inline void __cluster_barrier_arrive_relaxed() { capstone_emu::cluster_arrive(); }
static inline void __cluster_barrier_wait() { capstone_emu::cluster_wait(); }
static inline void* __cluster_map_shared_rank(const void* address, unsigned rank) {
  return capstone_emu::remote_shared_memory(rank, capstone_emu::shared_address(address));
}
static inline unsigned __cluster_query_shared_rank(const void* address) { return capstone_emu::rank_of_shared_memory(address); }

// Programmatic dependent launch: a kernel starts when those before it have ended.
static inline void cudaGridDependencySynchronize() {}
static inline void cudaTriggerProgrammaticLaunchCompletion() {}

#if CUDART_VERSION >= 11080
namespace capstone_emu {
inline LaunchConfig extended_config(const char* kernel, const char* file, int line, const cudaLaunchConfig_t* config) {
  LaunchConfig extended{kernel, file, line, index_of(config->gridDim), index_of(config->blockDim), config->dynamicSmemBytes, false, config->stream};
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttribute& attribute = config->attrs[i];
    if (attribute.id == cudaLaunchAttributeCooperative) extended.cooperative = attribute.val.cooperative != 0;
    if (attribute.id == cudaLaunchAttributeClusterDimension)
      extended.cluster = {attribute.val.clusterDim.x, attribute.val.clusterDim.y, attribute.val.clusterDim.z};
  }
  return extended;
}
template <class... Parameters, class... Arguments>
inline cudaError_t launch_extended(const char* file, int line, const cudaLaunchConfig_t* config,
                                   void (*kernel)(Parameters...), Arguments&&... arguments) {
  launch(extended_config("kernel given to cudaLaunchKernelEx", file, line, config),
         [kernel](auto&... values) CAPSTONE_UNOBSERVED { kernel(values...); },
         static_cast<std::remove_cv_t<std::remove_reference_t<Parameters>>>(std::forward<Arguments>(arguments))...);
  return static_cast<cudaError_t>(last_error());
}
struct ExtendedLaunch {
  const cudaLaunchConfig_t* config;
};
}  // namespace capstone_emu
template <class... Parameters>
inline cudaError_t cudaLaunchKernel(void (*kernel)(Parameters...), void** arguments, capstone_emu::ExtendedLaunch how, CAPSTONE_SITE) {
  return capstone_emu::launch_pointer(capstone_emu::extended_config("kernel given to cudaLaunchKernelExC", file, line, how.config),
                                      kernel, arguments, std::index_sequence_for<Parameters...>{});
}
/// A bare address, whose parameters are unknown. There is no such function to link with.
inline cudaError_t cudaLaunchKernel(const void* kernel, void** arguments, capstone_emu::ExtendedLaunch how) {
  return ::cudaLaunchKernelExC(how.config, kernel, arguments);
}
// CUDA's own template hands the runtime a bare address, from which the parameters' types cannot be told.
#define cudaLaunchKernelEx(...) capstone_emu::launch_extended(__FILE__, __LINE__, __VA_ARGS__)
// As cudaLaunchKernel, without the kernel's cast to void*, which the rewriter removes.
#define cudaLaunchKernelExC(config, ...) cudaLaunchKernel(__VA_ARGS__, capstone_emu::ExtendedLaunch{config})
#endif
