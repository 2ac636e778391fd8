#pragma once
#pragma GCC system_header
// What rewritten CUDA code and the runtime library share. Knows nothing of CUDA's own headers.
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "context_switch.h"

/// The caller's place in the source as two default arguments.
#define CAPSTONE_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()
#define CAPSTONE_TLS __attribute__((tls_model("initial-exec")))

namespace capstone_emu {

struct Index3 {
  unsigned x, y, z;
};

/// State of the running CUDA thread that user code reads without a call.
struct ThreadState {
  unsigned lane;                  ///< 0 … 31
  unsigned linear;                ///< index in the block
  char* shared_base;              ///< shared memory of this block: where its window of addresses begins
  char* static_shared;            ///< its __shared__ variables
  char* dynamic_shared;           ///< dynamic shared memory of this block
  const std::uint32_t* slot_epoch;  ///< per shared slot: the block it was last initialised for
  std::uint32_t epoch;            ///< number of the running block
  unsigned spin;                  ///< atomics and fences so far: every so often one lets others run
  unsigned row_end;               ///< next_of_row() may go on below this thread of the block; 0: not at all
  unsigned cluster_rank;          ///< of this block in its cluster
  char* const* cluster_arenas;    ///< shared_base of each block of the cluster; null without one
};
extern thread_local __constinit ThreadState thread_state CAPSTONE_TLS;

// ---- failures: they end the kernel, not the process -------------------------------------------------------
[[noreturn]] void undefined_behaviour(const char* file, int line, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
[[noreturn]] void not_judgeable(const char* file, int line, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
/// printf of device code.
int device_printf(const char* format, ...) __attribute__((format(printf, 1, 2)));
[[noreturn]] void trap(const char* file, int line, const char* what);
[[noreturn]] void assertion_failed(const char* file, int line, const char* condition);

// ---- what headers tell the hooks; nothing in other build variants -----------------------------------------
// The preprocessed text is the same for all variants, so that no macro tells the candidate which one it is in. What
// differs is decided by a constant that the rewriter puts before the text.
#if CAPSTONE_EMULATOR_HOOKS
inline constexpr bool observed_by_hooks = true;
#elif !CAPSTONE_EMULATED
inline constexpr bool observed_by_hooks = false;
#endif
#define CAPSTONE_UNOBSERVED __attribute__((no_sanitize("thread"), no_sanitize_coverage))
/// Synchronisation through an object in memory: what threads did before they released happened before an
/// acquire returns.
void release_through(const void* object);
void acquire_through(const void* object);
/// Operations of the calling lane inside a warp-wide instruction.
void report_flops(std::uint64_t count);
inline __attribute__((always_inline)) void note_flops(std::uint64_t count) {
  if constexpr (observed_by_hooks) report_flops(count);
}
/// From the issue of a wgmma until a wait for its group, its results may not be read and its matrices in
/// shared memory may not be overwritten.
void report_wgmma();
inline __attribute__((always_inline)) void wgmma_begins() {
  if constexpr (observed_by_hooks) report_wgmma();
}
void wgmma_issued(const void* const* results, unsigned count);
/// It reads 16 bytes of a matrix in shared memory.
void wgmma_reads(const void* address, bool counted);
/// Accesses of 16 bytes that a collective makes for the calling lane.
extern "C" void __tsan_read16(void* address);
extern "C" void __tsan_write16(void* address);
inline __attribute__((always_inline)) void note_read16(const void* address) {
  if constexpr (observed_by_hooks) __tsan_read16(const_cast<void*>(address));
}
inline __attribute__((always_inline)) void note_write16(void* address) {
  if constexpr (observed_by_hooks) __tsan_write16(address);
}

// ---- shared memory ----------------------------------------------------------------------------------------
struct SharedSlot {
  std::uint32_t id, offset, size;
  const char* name;
};
SharedSlot register_shared_slot(std::size_t size, std::size_t alignment, const char* name);
/// Fills the slot with NaN bytes and draws its red zones: the first touch in each block.
void begin_shared_slot(const SharedSlot& slot);
/// Where a matrix begins, in bytes from the start of the block's shared memory. @param address  18 bits, as the
/// descriptors of matrices hold it
std::size_t matrix_offset(std::uint32_t address);

template <class Tag>
struct SharedSlotOf {
  static SharedSlot slot;
};
template <class Tag>
SharedSlot SharedSlotOf<Tag>::slot = register_shared_slot(sizeof(Tag), alignof(Tag), Tag::capstone_name());

/// The running block's instance of one `__shared__` declaration.
template <class Tag>
CAPSTONE_UNOBSERVED inline Tag& shared() {
  const SharedSlot& slot = SharedSlotOf<Tag>::slot;
  if (__builtin_expect(thread_state.slot_epoch[slot.id] != thread_state.epoch, 0)) begin_shared_slot(slot);
  return *reinterpret_cast<Tag*>(thread_state.static_shared + slot.offset);
}
/// Does the pointer lie in this block's shared memory?
bool is_shared(const void* pointer);
/// In the stack of a CUDA thread?
bool is_local(const void* pointer);
std::size_t dynamic_shared_size();
inline void* dynamic_shared() { return thread_state.dynamic_shared; }

/// A pointer's 32-bit address in the shared window, and back. The upper byte is the rank of its block in the
/// cluster, as the machine code of sm_90 puts it there (S2UR of SR_CgaCtaId, then ULEA by 24): so a shared::cta
/// address is a shared::cluster address, too, and who builds a descriptor of an address has to mask it.
inline constexpr unsigned kClusterRankShift = 24;
inline constexpr std::uint32_t kSharedOffsetMask = (1u << kClusterRankShift) - 1;
inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(static_cast<const char*>(pointer) - thread_state.shared_base) |
         thread_state.cluster_rank << kClusterRankShift;
}
/// What corresponds to shared address `address` in block `rank` of the cluster.
char* remote_shared_memory(unsigned rank, std::uint32_t address);
inline char* from_cluster_address(std::uint64_t address) {
  const std::uint32_t offset = static_cast<std::uint32_t>(address) & kSharedOffsetMask;
  const unsigned owner = static_cast<std::uint32_t>(address) >> kClusterRankShift;
  return __builtin_expect(owner != thread_state.cluster_rank, 0) ? remote_shared_memory(owner, offset)
                                                                 : thread_state.shared_base + offset;
}
/// For instructions on shared::cta: a masked address is one of the own block.
inline char* from_shared_address(std::uint64_t address) {
  return __builtin_expect(address > kSharedOffsetMask, 0) ? from_cluster_address(address)
                                                          : thread_state.shared_base + address;
}

// ---- barriers ---------------------------------------------------------------------------------------------
enum class BarrierKind : int { kSync, kCount, kAnd, kOr, kGrid };
/// Arrives at the block's barrier. Returns the stack to continue on, or null when this thread continues at
/// once.
void* arrive_at_barrier(BarrierKind kind, int predicate, const char* file, int line, void*** save);
int barrier_result(BarrierKind kind);

static inline __attribute__((always_inline)) void block_barrier(const char* file, int line) {
  void** save __attribute__((uninitialized));
  if (void* to = arrive_at_barrier(BarrierKind::kSync, 0, file, line, &save)) switch_stack(save, to);
}
static inline __attribute__((always_inline)) int block_barrier(BarrierKind kind, int predicate, const char* file,
                                                               int line) {
  void** save __attribute__((uninitialized));
  if (void* to = arrive_at_barrier(kind, predicate, file, line, &save)) switch_stack(save, to);
  return barrier_result(kind);
}
/// Barrier `id` (0 … 15) of the block, which `threads` threads complete; 0: all of the block. Arriving does
/// not wait.
void named_barrier(unsigned id, unsigned threads, const char* file, int line);
void named_barrier_arrive(unsigned id, unsigned threads, const char* file, int line);
/// Numbers from here on serve the tiles of cooperative groups that are larger than a warp.
inline constexpr unsigned kTileBarriers = 16;
/// Memory of the block for exchanging values: kScratchPerThread bytes for each thread.
inline constexpr unsigned kScratchPerThread = 64;
char* block_scratch();
bool launched_cooperatively();
/// All threads of the grid, of a cooperative launch only.
static inline __attribute__((always_inline)) void grid_barrier(const char* file, int line) {
  block_barrier(BarrierKind::kGrid, 0, file, line);
}

// ---- clusters: blocks that run together and reach each other's shared memory ------------------------------
/// The first statement of a kernel with __cluster_dims__: a launch without cluster dimensions starts again
/// with these.
void require_cluster(unsigned x, unsigned y = 1, unsigned z = 1);
/// The first statement of a kernel with __launch_bounds__: a launch with more threads a block fails.
void require_threads(unsigned most);
struct ClusterView {
  /// blocks in a cluster; this block in it; this cluster in the grid; clusters in all
  Index3 dim, block, index, grid;
};
ClusterView cluster_view();
inline unsigned cluster_size() {
  const Index3 dim = cluster_view().dim;
  return dim.x * dim.y * dim.z;
}
unsigned rank_of_shared_memory(const void* address);
void cluster_arrive();
void cluster_wait();

// ---- warp collectives: lanes post their operands, the last one computes for all ---------------------------
enum class WarpKind : int { kSync, kShuffle, kBallot, kAny, kAll, kMatch, kCollective, kMatrix };
struct WarpOp {
  WarpKind kind;
  unsigned mask;               ///< lanes that take part
  const char* file;
  int line;
  const void* in = nullptr;    ///< shuffle, match, collective, matrix
  void* out = nullptr;         ///< shuffle
  unsigned size = 0;           ///< [B] of in and out
  int source = 0;              ///< shuffle: lane to read from
  int predicate = 0;           ///< votes
  unsigned result = 0;         ///< votes, match
  void (*compute)(WarpOp* const* lanes, unsigned mask) = nullptr;  ///< collective, matrix (which all 32 lanes run)
};
void* arrive_at_collective(WarpOp& op, void*** save);
static inline __attribute__((always_inline)) void warp_collective(WarpOp& op) {
  void** save __attribute__((uninitialized));
  if (void* to = arrive_at_collective(op, &save)) switch_stack(save, to);
}
/// The lanes that are converged here: waits until no other lane can join.
unsigned active_mask(const char* file, int line);

/// Lanes of a warp that count on lock step wait for each other before a load, before a store and behind it. Does
/// nothing where `object` is not in the block's shared memory. @param place  in the source
enum class Step : int { kRead, kWrite, kWritten };
void lock_step(const volatile void* object, unsigned place, Step step, const char* file, int line);

// ---- letting others run -----------------------------------------------------------------------------------
void yield_to_others();

// ---- wgmma: four warps multiply together, each its 16 rows when it issues (warp_group.cpp) ----------------
/// The running warp has done one; told once a warp.
void wgmma_done();
void wgmma_committed();
/// Returns when all four warps have done what is in all groups but the last `still_pending`.
void wgmma_awaited(unsigned still_pending);
/// Called by every atomic and fence, so that spin locks end.
inline void spin_hint() {
  if (__builtin_expect((++thread_state.spin & 63u) == 0, 0)) yield_to_others();
}
/// Called by loops that may wait for others; a constant expression may hold one of those, too.
constexpr void loop_hint() {
  if (!__builtin_is_constant_evaluated())
    if (__builtin_expect((++thread_state.spin & 255u) == 0, 0)) yield_to_others();
}
bool in_kernel();

/// Threads that run one after another in one loop, as far as none of them waits. The runtime learns which of them
/// have ended when one calls it (BlockRunner::settle). The members keep in registers what each thread sets.
struct Row {
  unsigned linear = thread_state.linear;
  Index3 index = running_index();
  static Index3 running_index();
  /// The running thread has ended. @return true if the one behind it runs now
  template <class Index>
  bool next(Index& current);
};
template <class Body>
void run_row(const Body& body);

// ---- asynchronous copies: done at issue or as late as legal, as the schedule says -------------------------
void async_copy(void* to, const void* from, unsigned bytes, unsigned zero_filled);
void async_commit();
void async_wait(unsigned still_pending);
/// The thread's copies so far complete with the barrier's phase: done here, in which the caller arrives next.
void async_report_to(const std::uint64_t* barrier);

// ---- bulk copies (TMA) ------------------------------------------------------------------------------------
enum class Reduction : int { kNone, kAdd, kMin, kMax, kInc, kDec, kAnd, kOr, kXor };
/// Element types of a reduction and of a tensor map.
enum class Element : unsigned char { kU8, kU16, kU32, kS32, kU64, kS64, kF16, kF32, kF64, kBf16 };
/// Into shared memory; `barrier` is told of the bytes when they are there. Sizes and addresses: multiples of
/// 16 bytes.
void bulk_copy_to_shared(char* to, const char* from, unsigned bytes, std::uint64_t* barrier, unsigned multicast,
                         const char* file, int line);
/// From shared to global memory, in the thread's bulk group.
void bulk_copy_to_global(char* to, const char* from, unsigned bytes, Reduction reduction, Element element,
                         const char* file, int line);
/// In a mask of `multicast` (.cta_group::2): a receiver's bytes are told to the block of its pair whose rank is as
/// even or odd as that of `barrier`'s block. @source PTX ISA 9.0, cp.async.bulk.tensor: .multicast::cluster
inline constexpr unsigned kTellsPairs = 1u << 16;
/// A box of the tensor that `map` describes, its innermost coordinate first. @param multicast  blocks of the
/// cluster that receive it at the same place; 0: the one that `to` lies in.
void tensor_copy_to_shared(char* to, const void* map, std::uint64_t* barrier, int rank, const std::int32_t* coordinates,
                           unsigned multicast, const char* file, int line);
void tensor_copy_to_global(const void* map, const char* from, int rank, const std::int32_t* coordinates,
                           Reduction reduction, const char* file, int line);
/// clusterlaunchcontrol (PTX ISA 9.0, 9.7.13.17): asks for a cluster that has not started, and writes the answer
/// to `to`, 16 bytes, or there in all blocks of the cluster.
void cancel_cluster(char* to, std::uint64_t* barrier, bool multicast, const char* file, int line);
/// The answer in a register of 128 bits (9.7.13.18).
struct LaunchAnswer {
  std::uint64_t low, high;
};
bool is_canceled(const LaunchAnswer& answer, const char* file, int line);
Index3 first_canceled_block(const LaunchAnswer& answer, const char* file, int line);
/// Closes the thread's open bulk group; waits until at most that many groups are unfinished.
void bulk_commit();
void bulk_wait(unsigned still_pending);
/// Performs the copies that report to `barrier`, because a thread waits for them.
void finish_bulk_loads(const std::uint64_t* barrier);

// ---- mbarrier: 64 bits in shared memory -------------------------------------------------------------------
void mbarrier_init(std::uint64_t* barrier, unsigned count, const char* file, int line);
void mbarrier_invalidate(std::uint64_t* barrier);
/// `count` arrivals, after `expected_bytes` more were announced. @param drop  they leave the later phases,
/// too.
/// @return the state before, with whose phase a thread can wait.
std::uint64_t mbarrier_arrive(std::uint64_t* barrier, unsigned count, unsigned expected_bytes, bool drop, const char* file,
                              int line);
void mbarrier_expect_bytes(std::uint64_t* barrier, unsigned bytes, const char* file, int line);
void mbarrier_complete_bytes(std::uint64_t* barrier, std::size_t bytes);
/// Has the phase of this parity completed? If not, others run before the answer.
bool mbarrier_completed(std::uint64_t* barrier, bool phase, const char* file, int line);
bool mbarrier_phase(std::uint64_t state);
unsigned mbarrier_pending(std::uint64_t state);

// ---- launches ---------------------------------------------------------------------------------------------
struct LaunchConfig {
  const char* kernel;
  const char* file;
  int line;
  Index3 grid, block;
  std::size_t dynamic_shared;
  bool cooperative;
  void* stream = nullptr;
  Index3 cluster = {0, 0, 0};  ///< blocks of a cluster; 0: no cluster was requested
  std::size_t argument_bytes = 0;  ///< of run_grid's arguments, from which kernels copy their parameters
  const char* arguments = nullptr;  ///< as the source writes those of launch(): "d_x,d_y,n"; null: unknown
};
inline LaunchConfig naming(const char* arguments, LaunchConfig config) {
  config.arguments = arguments;
  return config;
}
/// Runs the whole grid before it returns; failures are left in the runtime's error state.
void run_grid(const LaunchConfig& config, void (*body)(void*), void* arguments);

/// Is a launch on the stream kept instead of run? While the stream is captured into a graph; and where the candidate made
/// the stream and the schedule lets kernels run as late as their order allows.
bool keeps_launches(void* stream);
void keep_launch(const LaunchConfig& config, void (*body)(void*), void* arguments, void (*destroy)(void*));
/// A kernel of a whole program launches a kernel: it runs when the grid has ended.
void launch_after_this_grid(const LaunchConfig& config, void (*body)(void*), void* arguments, void (*destroy)(void*));

/// Refuses the launch when a pointer cannot be used by a kernel.
bool accepts_argument(const LaunchConfig& config, unsigned number, std::uintptr_t pointer);
template <class T>
inline bool accepts(const LaunchConfig& config, unsigned number, const T& argument) {
  using Value = std::decay_t<T>;
  if constexpr (std::is_pointer_v<Value>) {
    if constexpr (!std::is_function_v<std::remove_pointer_t<Value>>)
      return accepts_argument(config, number, reinterpret_cast<std::uintptr_t>(argument));
  }
  return true;
}

template <class Body, class... Arguments>
void launch(const LaunchConfig& config, Body body, Arguments&&... arguments) {
  unsigned number = 0;
  if (!(... && accepts(config, ++number, arguments))) return;
  struct Frame {
    Body body;
    std::tuple<std::decay_t<Arguments>...> values;
  };
  auto call = [](void* raw) CAPSTONE_UNOBSERVED {
    Frame& frame = *static_cast<Frame*>(raw);
    run_row([&frame]() CAPSTONE_UNOBSERVED { std::apply(frame.body, frame.values); });
  };
  LaunchConfig sized = config;
  sized.argument_bytes = sizeof(Frame);
  if (keeps_launches(config.stream))
    return keep_launch(sized, call, new Frame{body, {std::forward<Arguments>(arguments)...}},
                       [](void* raw) { delete static_cast<Frame*>(raw); });
  Frame frame{body, {std::forward<Arguments>(arguments)...}};
  run_grid(sized, call, &frame);
}

/// A launch whose arguments are kept, so that it can run later and more than once.
struct KeptLaunch {
  void (*body)(void*);
  void* arguments;  ///< null: an argument was refused
  void (*destroy)(void*);
  std::size_t bytes;
};
/// A kernel that is given by its bare address (cudaKernelNodeParams, cudaLaunchKernel): how its arguments are kept.
void know_kernel(void* kernel, const char* name, KeptLaunch (*keep)(const LaunchConfig&, void* kernel, void** arguments));

// ---- what the host does with device memory, for the hooks -------------------------------------------------
/// `written`: it holds values.
void memory_allocated(const void* begin, std::size_t bytes, bool written);
void memory_freed(const void* begin);
void memory_written(const void* begin, std::size_t bytes);
// ---- device memory ----------------------------------------------------------------------------------------
/// Memory as a GPU hands it out: aligned to 256 bytes, and not zero: NaN bytes make a forgotten
/// initialisation visible. Null when there is none left.
void* allocate_device_memory(std::size_t bytes, bool for_host_too = false);
/// @return false when it was not given out by allocate_device_memory(), or was released before.
bool release_device_memory(void* pointer);

/// While it lives, the calling thread may use memory of cudaMalloc, which may be closed to host code.
void use_device_memory();
void leave_device_memory();
struct DeviceMemoryUse {
  DeviceMemoryUse() { use_device_memory(); }
  ~DeviceMemoryUse() { leave_device_memory(); }
  DeviceMemoryUse(const DeviceMemoryUse&) = delete;
  DeviceMemoryUse& operator=(const DeviceMemoryUse&) = delete;
};
/// Host code has waited for kernels: tells what they wrote out of bounds, and closes device memory.
void host_goes_on();
/// Host code may use memory of cudaMalloc from now on: some of it stands for kernels.
void keep_device_memory_open();
/// For whole programs; judged kernels get memory of other kinds.
bool& pointers_are_checked();
/// Otherwise says why not. @param kind  a cudaMemcpyKind
bool may_copy(const void* to, const void* from, std::size_t bytes, int kind);
bool may_set(const void* to, std::size_t bytes);
/// cudaHostRegister; 0 bytes: not any more.
void register_host_memory(const void* begin, std::size_t bytes);
/// Of the heap or of a stack of the host: no kernel can use it.
bool is_host_memory(const void* address);
bool is_device_only(const void* address);
/// Memory of the host that a GPU reads without the host: of cudaMallocHost, cudaMallocManaged,
/// cudaHostRegister.
bool is_pinned(const void* address);
/// cudaError_t of the kernel that failed, which every later call returns; 0: none did.
int kernel_error();

/// Runs what late streams still hold. Returns where the first such kernel was launched; empty: there was none.
const char* finish_streams();
/// May kernels of a stream that the candidate made wait until something is ordered behind them?
bool& streams_are_late();

// ---- state behind the runtime API (see runtime/cuda_api.cpp) ----------------------------------------------
/// The last error, as a cudaError_t.
int& last_error();
/// Most dynamic shared memory that a launch may request, in bytes; cudaFuncSetAttribute raises it.
std::size_t& dynamic_shared_limit();
/// Shared memory a block of this architecture can have at all, in bytes.
std::size_t shared_memory_capacity();
/// __CUDA_ARCH__ that the candidate was built for, for example 900.
int emulated_arch();
/// The emulated device. It is small, so that grids sized by it stay small: each block of a cooperative launch
/// needs an OS thread, and an untrusted process may have 256 of them.
inline constexpr int kMultiprocessors = 8, kThreadsPerMultiprocessor = 2048, kBlocksPerMultiprocessor = 16;
/// Blocks that one multiprocessor holds at a time.
int resident_blocks(unsigned threads, std::size_t dynamic_shared);

}  // namespace capstone_emu
