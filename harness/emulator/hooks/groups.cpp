// Happens-before at barriers of groups other than a warp or a block: some threads of a block, a cluster, the
// grid. Also the uses of mbarrier objects.
#include "hooks/access.h"
#include "runtime/observe.h"

namespace capstone_emu::hooks {

std::vector<Block*>& live_blocks() {
  static auto* all = new std::vector<Block*>;
  return *all;
}

namespace {

/// Threads of a cluster that arrived at its barrier, and what all threads of the last arrival knew.
struct ClusterOrder {
  Knowledge arriving, met;
};
std::map<const void*, ClusterOrder>& clusters() {
  static auto* all = new std::map<const void*, ClusterOrder>;
  return *all;
}

/// When each mbarrier was initialised last, or invalidated.
std::map<const void*, Stamp>& beginnings() {
  static auto* all = new std::map<const void*, Stamp>;
  return *all;
}

/// What the running thread did until now, and what it has learnt.
void add_running_thread(Knowledge& knowledge) {
  Block& block = *this_block;
  Lane& lane = *this_lane;
  if (lane.learnt) join(knowledge, *lane.learnt);
  BlockKnowledge& own = knowledge[block.index];
  own.all = std::max(own.all, block.barrier);
  lane.time = ++now;  // what follows is not covered
  own.add(lane.linear, now);
}

}  // namespace

void forget_clusters() {
  clusters().clear();
  beginnings().clear();
}

}  // namespace capstone_emu::hooks

namespace capstone_emu::observe {

using namespace hooks;

void grid_meets() {
  running_launch.begin = ++now;
  if (running_launch.concurrent.empty()) running_launch.floor = now;
}

void arrives_at(unsigned named_barrier, bool waits) {
  if (!this_lane) return;
  this_lane->time = ++now;
  this_block->arrivals[named_barrier].push_back({this_lane->linear, now, waits});
}

void threads_meet(unsigned named_barrier) {
  Block& block = *this_block;
  std::vector<Arrival> arrivals = std::exchange(block.arrivals[named_barrier], {});
  Knowledge met;
  for (const Arrival& a : arrivals)
    if (const Lane& lane = block.lanes[a.thread]; lane.learnt) join(met, *lane.learnt);
  std::sort(arrivals.begin(), arrivals.end(),
            [](const Arrival& a, const Arrival& b) { return a.thread < b.thread; });
  BlockKnowledge& own = met[block.index];
  for (const Arrival& a : arrivals) own.add(a.thread, a.time);
  for (const Arrival& a : arrivals)
    if (a.waits) learn(block.lanes[a.thread], met);
}

void arrives_at_cluster(const void* cluster) {
  if (this_lane) add_running_thread(clusters()[cluster].arriving);
}
void cluster_meets(const void* cluster) {
  ClusterOrder& order = clusters()[cluster];
  order.met = std::exchange(order.arriving, {});
}
void leaves_cluster_barrier(const void* cluster) {
  if (this_lane) learn(*this_lane, clusters()[cluster].met);
}

void barrier_begins(const void* barrier, const void* pc) {
  if (this_lane) beginnings()[barrier] = stamp_of(*this_lane, site_at(number(pc), 8, true, false), false);
}
void barrier_used(const void* barrier, const void* pc) {
  if (!this_lane) return;
  auto it = beginnings().find(barrier);
  if (it != beginnings().end()) require_order(*this_block, *this_lane, barrier, it->second, number(pc));
}

}  // namespace capstone_emu::observe
