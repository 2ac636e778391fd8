// Thread block clusters: blocks that run at the same time, in turns on one OS thread.
#include "runtime/scheduler.h"

namespace capstone_emu {

void require_cluster(unsigned x, unsigned y, unsigned z) {
  BlockRunner& runner = *BlockRunner::current();
  Grid& grid = runner.grid();
  const Index3& given = grid.config.cluster;
  if (given.x == x && given.y == y && given.z == z) return;
  if (given.x)
    runner.fail(FailureKind::kLaunchError, nullptr, 0,
                "the launch's cluster dimensions differ from the kernel's __cluster_dims__",
                "give them in one place only");
  // Nothing has run yet: every thread comes here first.
  grid.wanted_cluster = x | static_cast<std::uint64_t>(y) << 16 | static_cast<std::uint64_t>(z) << 32;
  runner.leave_kernel();
}

void require_threads(unsigned most) {
  BlockRunner& runner = *BlockRunner::current();
  if (runner.count() <= most) return;
  runner.fail(FailureKind::kLaunchError, nullptr, 0,
              "invalid configuration: a block of " + std::to_string(runner.count()) +
                  " threads, but the kernel's __launch_bounds__ allow " + std::to_string(most),
              "nvcc gives each thread as many registers as that number of threads leaves; launch no more");
}

void BlockRunner::join_cluster(std::uint64_t k) {
  cluster_ = nullptr;
  cluster_rank_ = 0;
  bulk_loads_.clear();
  cancel_failed_ = false;
  if (grid_->clusters) {
    cluster_ = &grid_->clusters[k / grid_->cluster_blocks];
    cluster_rank_ = static_cast<unsigned>(k % grid_->cluster_blocks);
  }
  thread_state.cluster_rank = cluster_rank_;
  thread_state.cluster_arenas = cluster_ ? cluster_->arenas : nullptr;
}

/// The block's shared memory is ready to be written by others.
void BlockRunner::publish_arena() {
  if (cluster_) cluster_->arenas[cluster_rank_] = arena_;
}

/// The block has ended. Its shared memory is not used again before this says that the whole cluster has
/// ended.
bool BlockRunner::ends_cluster() {
  cluster_->ended_mask |= 1u << cluster_rank_;
  return ++cluster_->ended == grid_->cluster_blocks;
}

Cluster& BlockRunner::cluster(const char* what) {
  if (!cluster_)
    fail(FailureKind::kUndefinedBehaviour, nullptr, 0,
         std::string(what) + " in a kernel that was launched without a cluster",
         "give the kernel __cluster_dims__, or launch it with cudaLaunchKernelEx and "
         "cudaLaunchAttributeClusterDimension");
  return *cluster_;
}

ClusterView BlockRunner::cluster_view() const {
  const Index3 &g = grid_->config.grid, c = cluster_ ? grid_->config.cluster : Index3{1, 1, 1};
  return {c,
          {block_.x % c.x, block_.y % c.y, block_.z % c.z},
          {block_.x / c.x, block_.y / c.y, block_.z / c.z},
          {g.x / c.x, g.y / c.y, g.z / c.z}};
}
ClusterView cluster_view() { return BlockRunner::current()->cluster_view(); }

char* remote_shared_memory(unsigned rank, std::uint32_t address) {
  BlockRunner& runner = *BlockRunner::current();
  Cluster& cluster = runner.cluster("an address in another block's shared memory");
  char* base = rank < runner.grid().cluster_blocks ? cluster.arenas[rank] : nullptr;
  if (!base)
    runner.fail(FailureKind::kUndefinedBehaviour, nullptr, 0,
                "shared memory of block " + std::to_string(rank) +
                    " of the cluster, which has not begun or does not exist",
                "call cluster.sync() before reaching into another block");
  if (cluster.ended_mask >> rank & 1)
    runner.fail(
        FailureKind::kUndefinedBehaviour, nullptr, 0,
        "shared memory of block " + std::to_string(rank) +
            " of the cluster, which has left the kernel: on a GPU another block may have it by now",
        "call cluster.sync() at the end of the kernel, so that no block leaves while others reach into it");
  return base + (address & kSharedOffsetMask);
}

unsigned rank_of_shared_memory(const void* address) {
  BlockRunner& runner = *BlockRunner::current();
  Cluster& cluster = runner.cluster("asking for the owner of shared memory");
  const char* p = static_cast<const char*>(address);
  unsigned owner = thread_state.cluster_rank;
  std::ptrdiff_t nearest = -1;  // arenas have one size: the owner's begins closest below the address
  for (unsigned rank = 0; rank < runner.grid().cluster_blocks; ++rank) {
    const char* base = cluster.arenas[rank];
    if (!base || p < base || (nearest >= 0 && p - base > nearest)) continue;
    nearest = p - base;
    owner = rank;
  }
  return owner;
}

// ---- the cluster's barrier --------------------------------------------------------------------------------

namespace {
void complete_if_all_are_here(Cluster& cluster, unsigned threads) {
  if (cluster.arrived == 0 || cluster.arrived + cluster.left < threads) return;
  observe::cluster_meets(&cluster);
  cluster.arrived = 0;
  ++cluster.phase;
}
}  // namespace

void BlockRunner::cluster_arrive() {
  Cluster& c = cluster("the barrier of a cluster");
  cluster_phases_[thread_->linear] = c.phase;
  observe::arrives_at_cluster(&c);
  ++c.arrived;
  complete_if_all_are_here(c, count_ * grid_->cluster_blocks);
}
void cluster_arrive() { BlockRunner::current()->cluster_arrive(); }

void BlockRunner::leave_cluster() {
  ++cluster_->left;
  complete_if_all_are_here(*cluster_, count_ * grid_->cluster_blocks);
}

void cluster_wait() {
  BlockRunner& runner = *BlockRunner::current();
  Cluster& c = runner.cluster("the barrier of a cluster");
  while (c.phase == runner.cluster_phase()) runner.yield();
  observe::leaves_cluster_barrier(&c);
}

}  // namespace capstone_emu
