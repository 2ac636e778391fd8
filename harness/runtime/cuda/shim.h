#pragma once
// The CUDA runtime as a submission sees it inside the capture worker. The submission is built with
// --default-stream per-thread and -cudart shared, so its calls have the _ptsz and _ptds names and resolve to
// this program first, because it exports them. Calls that must be captured exactly use memory at fixed
// addresses or are changed into a form that can be captured. Calls that a captured graph cannot hold are
// refused, with the reason.
#include <map>
#include <set>

#include "harness/runtime/cuda/captures.h"
#include "harness/runtime/cuda/cuda_common.h"

namespace capstone::gpu {

/// Private memory of the submission: blocks in the scratch range, first fit. Memory that a call frees is
/// reused only after the call, because a captured graph has no order except its edges.
class Allocator {
 public:
  void* take(std::size_t bytes) {
    bytes = (std::max<std::size_t>(bytes, 1) + 511) / 512 * 512;
    std::size_t at = 0;
    for (auto [begin, size] : taken_) {
      if (begin - at >= bytes) break;
      at = begin + size;
    }
    scratch_.grow(at + bytes);
    taken_[at] = bytes;
    high_ = std::max(high_, at + bytes);
    return scratch_.base() + at;
  }
  bool give(void* pointer) {
    std::size_t at = static_cast<char*>(pointer) - scratch_.base();
    if (!taken_.count(at) || freed_.count(at)) return false;
    freed_.insert(at);
    return true;
  }
  void end_of_call() {
    for (std::size_t at : freed_) taken_.erase(at);
    freed_.clear();
  }
  /// Bytes from the start that were ever used.
  std::size_t high() const { return high_; }
  bool holds(const void* pointer) const {
    auto address = reinterpret_cast<CUdeviceptr>(pointer);
    return address >= Scratch::kAddress && address < Scratch::kAddress + high_;
  }

 private:
  Scratch scratch_;
  std::map<std::size_t, std::size_t> taken_;  // offset → bytes
  std::set<std::size_t> freed_;
  std::size_t high_ = 0;
};

struct Shim {
  static Shim& get() {
    static Shim* shim = new Shim;  // never destroyed: static destructors of the submission may still call it
    return *shim;
  }

  Allocator memory;
  bool recording = false;
  std::string refused;  ///< the first operation that no captured graph can hold
  std::set<std::string> notes;
  bool waited = false;  ///< a host-side wait was skipped
  struct Variable {
    const void* host;
    std::string name;
    std::size_t bytes;
  };
  std::vector<Variable> variables;                ///< __device__ and __constant__ variables of the submission
  std::map<cudaGraphExec_t, cudaGraph_t> graphs;  ///< each instantiated graph, as it was at that time
  std::map<const void*, std::vector<char>> kept;  ///< host data that captured copies read

  void refuse(const char* why) {
    if (recording && refused.empty()) refused = why;
  }
  /// Whether work on this stream belongs to the captured graph.
  bool joined(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing(stream, &status) == cudaSuccess && status == cudaStreamCaptureStatusActive)
      return true;
    refuse("it puts work on a stream that is not joined to `stream`");
    return !recording;
  }
  bool on_device(const void* pointer) const {
    cudaPointerAttributes attributes{};
    auto address = reinterpret_cast<CUdeviceptr>(pointer);
    if (address >= Arena::kAddress && address < Scratch::kAddress + Scratch::kReach) return true;
    bool device = cudaPointerGetAttributes(&attributes, pointer) == cudaSuccess &&
                  attributes.type == cudaMemoryTypeDevice;
    cudaGetLastError();
    return device;
  }
  const void* keep(const void* data, std::size_t bytes) {
    std::vector<char> copy(static_cast<const char*>(data), static_cast<const char*>(data) + bytes);
    const void* at = copy.data();
    kept.emplace(at, std::move(copy));
    return at;
  }
  cudaError_t copy(void* dst, const void* src, std::size_t bytes, cudaStream_t stream) {
    if (!joined(stream)) return cudaSuccess;
    if (bytes == 0) return cudaSuccess;
    if (!on_device(dst)) {
      refuse("it copies results to the host inside launch()");
      return cudaErrorStreamCaptureUnsupported;
    }
    const bool from_device = on_device(src);
    return cudaMemcpyAsync(dst, from_device ? src : keep(src, bytes), bytes,
                           from_device ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice, stream);
  }
  cudaError_t wait() {
    waited = true;
    return cudaSuccess;
  }
  cudaError_t not_supported(const char* why) {
    refuse(why);
    return recording ? cudaErrorStreamCaptureUnsupported : cudaErrorNotSupported;
  }
};

template <class Function>
Function next_definition(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}
inline cudaStream_t per_thread(cudaStream_t stream) { return stream ? stream : cudaStreamPerThread; }

}  // namespace capstone::gpu

extern "C" {
using capstone::gpu::next_definition;
using capstone::gpu::per_thread;
using capstone::gpu::Shim;

// ---- memory
cudaError_t cudaMalloc(void** pointer, size_t bytes) try {
  *pointer = Shim::get().memory.take(bytes);
  return cudaSuccess;
} catch (const std::exception&) {
  return cudaErrorMemoryAllocation;
}
cudaError_t cudaFree(void* pointer) {
  if (pointer && !Shim::get().memory.give(pointer)) return cudaErrorInvalidValue;
  return cudaSuccess;
}
cudaError_t cudaMallocAsync_ptsz(void** pointer, size_t bytes, cudaStream_t) {
  return cudaMalloc(pointer, bytes);
}
cudaError_t cudaMallocFromPoolAsync_ptsz(void** pointer, size_t bytes, cudaMemPool_t, cudaStream_t) {
  return cudaMalloc(pointer, bytes);
}
cudaError_t cudaFreeAsync_ptsz(void* pointer, cudaStream_t) { return cudaFree(pointer); }
cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  *pitch = (width + 511) / 512 * 512;
  return cudaMalloc(pointer, *pitch * height);
}
cudaError_t cudaMallocManaged(void**, size_t, unsigned) {
  return Shim::get().not_supported("it uses managed memory, which the host can read");
}
cudaError_t cudaMallocHost(void**, size_t) { return Shim::get().not_supported("it uses pinned host memory"); }
cudaError_t cudaHostAlloc(void**, size_t, unsigned) {
  return Shim::get().not_supported("it uses pinned host memory");
}
cudaError_t cudaHostRegister(void*, size_t, unsigned) {
  return Shim::get().not_supported("it uses pinned host memory");
}
cudaError_t cudaCreateTextureObject(cudaTextureObject_t*, const cudaResourceDesc*, const cudaTextureDesc*,
                                    const cudaResourceViewDesc*) {
  return Shim::get().not_supported("it uses textures");
}
cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t*, const cudaResourceDesc*) {
  return Shim::get().not_supported("it uses surfaces");
}
cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) {
  return Shim::get().not_supported("it changes a limit of the device");
}

// ---- copies: host data is read at the call, as the runtime does with pageable memory
// -----------------------
cudaError_t cudaMemcpy_ptds(void* dst, const void* src, size_t bytes, cudaMemcpyKind) {
  return Shim::get().copy(dst, src, bytes, cudaStreamPerThread);
}
cudaError_t cudaMemcpyAsync_ptsz(void* dst, const void* src, size_t bytes, cudaMemcpyKind,
                                 cudaStream_t stream) {
  return Shim::get().copy(dst, src, bytes, per_thread(stream));
}
cudaError_t cudaMemcpy2D_ptds(void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width,
                              size_t height, cudaMemcpyKind) {
  if (!Shim::get().on_device(src) || !Shim::get().on_device(dst))
    return Shim::get().not_supported("it copies pitched memory of the host");
  return cudaMemcpy2DAsync(dst, dst_pitch, src, src_pitch, width, height, cudaMemcpyDeviceToDevice,
                           cudaStreamPerThread);
}
cudaError_t cudaMemcpy2DAsync_ptsz(void* dst, size_t dst_pitch, const void* src, size_t src_pitch,
                                   size_t width, size_t height, cudaMemcpyKind, cudaStream_t stream) {
  if (!Shim::get().joined(per_thread(stream))) return cudaSuccess;
  if (!Shim::get().on_device(src) || !Shim::get().on_device(dst))
    return Shim::get().not_supported("it copies pitched memory of the host");
  return cudaMemcpy2DAsync(dst, dst_pitch, src, src_pitch, width, height, cudaMemcpyDeviceToDevice,
                           per_thread(stream));
}
cudaError_t cudaMemcpyToSymbolAsync_ptsz(const void* symbol, const void* src, size_t bytes, size_t offset,
                                         cudaMemcpyKind, cudaStream_t stream) {
  void* address = nullptr;
  if (cudaError_t code = cudaGetSymbolAddress(&address, symbol); code != cudaSuccess) return code;
  return Shim::get().copy(static_cast<char*>(address) + offset, src, bytes, per_thread(stream));
}
cudaError_t cudaMemcpyToSymbol_ptds(const void* symbol, const void* src, size_t bytes, size_t offset,
                                    cudaMemcpyKind kind) {
  return cudaMemcpyToSymbolAsync_ptsz(symbol, src, bytes, offset, kind, cudaStreamPerThread);
}
cudaError_t cudaMemcpyFromSymbolAsync_ptsz(void* dst, const void* symbol, size_t bytes, size_t offset,
                                           cudaMemcpyKind, cudaStream_t stream) {
  void* address = nullptr;
  if (cudaError_t code = cudaGetSymbolAddress(&address, symbol); code != cudaSuccess) return code;
  return Shim::get().copy(dst, static_cast<char*>(address) + offset, bytes, per_thread(stream));
}
cudaError_t cudaMemcpyFromSymbol_ptds(void* dst, const void* symbol, size_t bytes, size_t offset,
                                      cudaMemcpyKind kind) {
  return cudaMemcpyFromSymbolAsync_ptsz(dst, symbol, bytes, offset, kind, cudaStreamPerThread);
}
cudaError_t cudaMemset_ptds(void* dst, int value, size_t bytes) {
  return Shim::get().joined(cudaStreamPerThread) ? cudaMemsetAsync(dst, value, bytes, cudaStreamPerThread)
                                                 : cudaSuccess;
}
cudaError_t cudaMemsetAsync_ptsz(void* dst, int value, size_t bytes, cudaStream_t stream) {
  return Shim::get().joined(per_thread(stream)) ? cudaMemsetAsync(dst, value, bytes, per_thread(stream))
                                                : cudaSuccess;
}

// ---- waits: no host code runs during a replay, so waits are skipped ---------------------------------------
cudaError_t cudaDeviceSynchronize() { return Shim::get().wait(); }
cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t) { return Shim::get().wait(); }
cudaError_t cudaStreamQuery_ptsz(cudaStream_t) { return Shim::get().wait(); }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return Shim::get().wait(); }
cudaError_t cudaEventQuery(cudaEvent_t) { return Shim::get().wait(); }
cudaError_t cudaEventElapsedTime(float*, cudaEvent_t, cudaEvent_t) {
  return Shim::get().not_supported("it looks at the time inside launch()");
}
cudaError_t cudaEventElapsedTime_v2(float*, cudaEvent_t, cudaEvent_t) {
  return Shim::get().not_supported("it looks at the time inside launch()");
}
cudaError_t cudaLaunchHostFunc_ptsz(cudaStream_t, cudaHostFn_t, void*) {
  return Shim::get().not_supported("it calls the host from a stream");
}
cudaError_t cudaStreamAddCallback_ptsz(cudaStream_t, cudaStreamCallback_t, void*, unsigned) {
  return Shim::get().not_supported("it calls the host from a stream");
}

// ---- launches: the runtime captures them; only those that would escape are handled here ------------------
#define CAPSTONE_KERNEL_LAUNCH(name)                                                                    \
  cudaError_t name(const void* kernel, dim3 grid, dim3 block, void** args, size_t shared,               \
                   cudaStream_t stream) {                                                               \
    if (!Shim::get().joined(per_thread(stream))) return cudaSuccess;                                    \
    static const auto real =                                                                            \
        next_definition<cudaError_t (*)(const void*, dim3, dim3, void**, size_t, cudaStream_t)>(#name); \
    return real(kernel, grid, block, args, shared, stream);                                             \
  }
CAPSTONE_KERNEL_LAUNCH(cudaLaunchKernel_ptsz)
CAPSTONE_KERNEL_LAUNCH(cudaLaunchCooperativeKernel_ptsz)
#if CUDART_VERSION < 13000
CAPSTONE_KERNEL_LAUNCH(__cudaLaunchKernel_ptsz)
#else
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** args, size_t shared,
                                    cudaStream_t stream) {
  if (!Shim::get().joined(per_thread(stream))) return cudaSuccess;
  static const auto real = next_definition<decltype(&__cudaLaunchKernel_ptsz)>("__cudaLaunchKernel_ptsz");
  return real(kernel, grid, block, args, shared, stream);
}
#endif
cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t* config, const void* kernel, void** args) {
  if (!Shim::get().joined(per_thread(config->stream))) return cudaSuccess;
  static const auto real = next_definition<cudaError_t (*)(const cudaLaunchConfig_t*, const void*, void**)>(
      "cudaLaunchKernelExC_ptsz");
  return real(config, kernel, args);
}

// ---- padding: arguments of `kernel<<<…>>>(…)` are built after the first of these calls, those of
// cudaLaunchKernelEx often after the second. A struct's padding holds old stack contents; without clearing,
// these are addresses that change from call to call.
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
  static const auto real =
      next_definition<unsigned (*)(dim3, dim3, size_t, cudaStream_t)>("__cudaPushCallConfiguration");
  const unsigned code = real(grid, block, shared, stream);
  capstone::wipe_stack();
  return code;
}
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  static const auto real =
      next_definition<cudaError_t (*)(const void*, cudaFuncAttribute, int)>("cudaFuncSetAttribute");
  const cudaError_t code = real(kernel, attribute, value);
  capstone::wipe_stack();
  return code;
}

// ---- graphs: a capture does not accept an instantiated graph, so its nodes are added instead --------------
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* ready, cudaGraph_t graph, unsigned long long flags) {
  static const auto real =
      next_definition<cudaError_t (*)(cudaGraphExec_t*, cudaGraph_t, unsigned long long)>(
          "cudaGraphInstantiate");
  cudaError_t code = real(ready, graph, flags);
  cudaGraph_t copy{};
  if (code == cudaSuccess && cudaGraphClone(&copy, graph) == cudaSuccess) Shim::get().graphs[*ready] = copy;
  return code;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* ready, cudaGraph_t graph,
                                          unsigned long long flags) {
  return cudaGraphInstantiate(ready, graph, flags);
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t, cudaGraph_t, cudaGraphExecUpdateResultInfo*) {
  return Shim::get().not_supported("it changes an instantiated graph");
}
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t, cudaGraphNode_t, const cudaKernelNodeParams*) {
  return Shim::get().not_supported("it changes an instantiated graph");
}
// nvcc uses this name for every default stream: the headers have a second cudaGraphLaunch_ptsz for device
// code.
cudaError_t cudaGraphLaunch(cudaGraphExec_t ready, cudaStream_t where) try {
  using namespace capstone::gpu;
  Shim& shim = Shim::get();
  if (!shim.joined(where)) return cudaSuccess;
  auto known = shim.graphs.find(ready);
  if (known == shim.graphs.end()) return shim.not_supported("it launches a graph whose making was not seen");
  using Info = CUresult (*)(CUstream, CUstreamCaptureStatus*, cuuint64_t*, CUgraph*, const CUgraphNode**,
                            const CUgraphEdgeData**, std::size_t*);
  using Update = CUresult (*)(CUstream, CUgraphNode*, const CUgraphEdgeData*, std::size_t, unsigned);
  static const auto info = reinterpret_cast<Info>(driver_symbol("cuStreamGetCaptureInfo_v3"));
  static const auto update = reinterpret_cast<Update>(driver_symbol("cuStreamUpdateCaptureDependencies_v2"));
  CUstreamCaptureStatus status{};
  CUgraph graph{};
  const CUgraphNode* before = nullptr;
  const CUgraphEdgeData* edges = nullptr;
  std::size_t count = 0;
  check(info(where, &status, nullptr, &graph, &before, &edges, &count), "cuStreamGetCaptureInfo");
  CUgraphNode node{};
  CAPSTONE_CU(cuGraphAddChildGraphNode, &node, graph, before, count,
              reinterpret_cast<CUgraph>(known->second));
  check(update(where, &node, nullptr, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES),
        "cuStreamUpdateCaptureDependencies");
  return cudaSuccess;
} catch (const std::exception&) {
  return Shim::get().not_supported("it launches a graph that a captured graph cannot hold");
}
cudaError_t cudaGraphLaunch_ptsz(cudaGraphExec_t ready, cudaStream_t stream) {
  return cudaGraphLaunch(ready, per_thread(stream));
}

// ---- variables of the submission: their addresses differ from process to process --------------------------
void __cudaRegisterVar(void** module, char* host, char* address, const char* name, int external, size_t bytes,
                       int constant, int global) {
  Shim::get().variables.push_back({host, name, bytes});
  static const auto real =
      next_definition<void (*)(void**, char*, char*, const char*, int, size_t, int, int)>(
          "__cudaRegisterVar");
  real(module, host, address, name, external, bytes, constant, global);
}
}  // extern "C"
