#include "hooks/findings.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "hooks/sites.h"

namespace capstone_emu::hooks {
namespace {

constexpr std::size_t kMaxFindings = 100;
constexpr const char* kSplitHint =
    "every thread of a block must reach the same __syncthreads(): move it out of the branch or loop that "
    "only "
    "some of them take";
// Never destroyed, because a program reports after its statics are destroyed.
std::vector<Finding>& g_findings = *new std::vector<Finding>;
auto& g_known = *new std::set<std::tuple<FindingKind, std::uint32_t, std::uint32_t>>;

std::string text_of(const Index3& i) {
  return "(" + std::to_string(i.x) + "," + std::to_string(i.y) + "," + std::to_string(i.z) + ")";
}

Index3 index_in(std::uint64_t linear, const Index3& dim) {
  return {static_cast<unsigned>(linear % dim.x), static_cast<unsigned>(linear / dim.x % dim.y),
          static_cast<unsigned>(linear / (static_cast<std::uint64_t>(dim.x) * dim.y))};
}

std::string who(const Finding& f, const Party& p) {
  const std::string thread = "thread " + text_of(thread_of(f, p));
  return f.now.block == f.before.block || !f.before.pc ? thread
                                                       : thread + " of block " + text_of(block_of(f, p));
}

}  // namespace

const char* name_of(FindingKind kind) {
  switch (kind) {
    case FindingKind::kRace:
      return "race";
    case FindingKind::kSameValue:
      return "same_value_write";
    case FindingKind::kUninitialised:
      return "uninitialised_read";
    case FindingKind::kOutOfBounds:
      return "out_of_bounds";
    case FindingKind::kMisaligned:
      return "misaligned";
    case FindingKind::kHostAccess:
      return "host_access";
    case FindingKind::kEarlyRead:
      return "early_read";
    case FindingKind::kSplitBarrier:
      return "split_barrier";
    case FindingKind::kUnfinishedResult:
      return "race";
  }
  return "race";
}

bool is_known(FindingKind kind, std::uint32_t pc, std::uint32_t other_pc) {
  return g_findings.size() >= kMaxFindings || g_known.contains({kind, pc, other_pc});
}

void keep_finding(Finding finding) {
  if (is_known(finding.kind, finding.now.pc, finding.before.pc)) return;
  g_known.insert({finding.kind, finding.now.pc, finding.before.pc});
  const auto same_cause = [&](const Finding& f) { return f.lock_step && f.kernel == finding.kernel; };
  if (finding.lock_step && std::any_of(g_findings.begin(), g_findings.end(), same_cause)) return;
  g_findings.push_back(std::move(finding));
}

void explain_races(const std::string& kernel, std::uint64_t block, const std::string& split) {
  for (Finding& f : g_findings)
    if (f.kind == FindingKind::kRace && f.split.empty() && f.kernel == kernel && f.now.block == block)
      f.split = split;
}

std::vector<Finding> take_findings() {
  g_known.clear();
  std::vector<Finding> found = std::exchange(g_findings, {});
  // The plain read at the head of `do … while (atomicCAS(…))` races with the others' swaps and does no harm:
  // a stale value makes the swap fail.
  const auto begins_swap = [](const Party& p) {
    return !p.write && !p.atomic && sites[spotters[p.pc].site].begins_swap;
  };
  std::erase_if(found, [&](const Finding& f) {
    return f.kind == FindingKind::kRace &&
           ((f.before.atomic && begins_swap(f.now)) || (f.now.atomic && begins_swap(f.before)));
  });
  // What a race reads too early is no second finding.
  std::set<std::uint32_t> racing;
  for (const Finding& f : found)
    if (f.kind == FindingKind::kRace) racing.insert({f.now.pc, f.before.pc});
  std::set<std::pair<std::string, std::string>> told;  // kernel, split: one cause, one finding
  for (const Finding& f : found)
    if (f.kind == FindingKind::kSplitBarrier) told.insert({f.kernel, f.split});
  std::erase_if(found, [&](const Finding& f) {
    return f.kind == FindingKind::kRace && told.contains({f.kernel, f.split});
  });
  std::erase_if(found, [&](const Finding& f) {
    return f.kind == FindingKind::kUninitialised && racing.contains(f.now.pc);
  });
  return found;
}

Index3 thread_of(const Finding& f, const Party& p) { return index_in(p.thread, f.block_dim); }
Index3 block_of(const Finding& f, const Party& p) { return index_in(p.block, f.grid); }

std::string message_of(const Finding& f, const std::string& where, const std::string& other) {
  const std::string at = where.empty() ? "" : " at " + where, other_at = other.empty() ? "" : " at " + other;
  switch (f.kind) {
    case FindingKind::kRace:
      if (f.before.asynchronous)
        return "race on " + f.object + ": " + who(f, f.now) + (f.now.write ? " overwrites" : " reads") + at +
               (f.before.write ? " what the asynchronous copy of " + who(f, f.before) + other_at +
                                     " may not have written yet"
                               : " what an asynchronous operation of " + who(f, f.before) + other_at +
                                     " may not have read yet");
      if (!f.other_launch.empty())
        return "race on " + f.object + ": " + who(f, f.now) + (f.now.write ? " writes" : " reads") + at +
               " what " + f.other_launch + (f.before.write ? ", wrote" : ", read") + other_at +
               ", and nothing orders the two streams";
      return "race on " + f.object + ": " + who(f, f.now) + (f.now.write ? " writes" : " reads") + at +
             " what " + who(f, f.before) + (f.before.write ? " wrote" : " read") + other_at +
             ", and nothing orders the two" + (f.split.empty() ? "" : ": " + f.split);
    case FindingKind::kSameValue:
      return who(f, f.now) + " writes the same value to " + f.object + at + " as " + who(f, f.before) +
             other_at + ", unordered: harmless as long as the values agree";
    case FindingKind::kUninitialised:
      return "read of uninitialised memory: " + f.object + " is read" + at +
             " before anything was written there";
    case FindingKind::kOutOfBounds:
      return std::string("out of bounds: a ") + (f.now.write ? "store" : "load") + " of " +
             std::to_string(f.bytes) + " bytes" + at + " touches " + f.object;
    case FindingKind::kMisaligned:
      return std::string("misaligned access: a ") + (f.now.write ? "store" : "load") + " of " +
             std::to_string(f.bytes) + " bytes" + at + " at an address that is no multiple of " +
             std::to_string(f.bytes);
    case FindingKind::kHostAccess:
      return std::string("device memory on the host: code of launch() ") +
             (f.now.write ? "writes" : "reads") + " " + f.object + at + ", and that is no kernel";
    case FindingKind::kEarlyRead:
      return who(f, f.now) + " read" + at + " the value from before " + who(f, f.before) + " wrote it" +
             other_at + ", as a GPU may: nothing orders the two";
    case FindingKind::kSplitBarrier:
      return f.split;
    case FindingKind::kUnfinishedResult:
      return "race on " + f.object + ": " + who(f, f.now) + (f.now.write ? " writes" : " reads") + at +
             " what the instruction" + other_at + " may not have written yet";
  }
  return {};
}

std::string hint_of(const Finding& f) {
  switch (f.kind) {
    case FindingKind::kRace:
      if (f.before.asynchronous)
        return "wait for it (__pipeline_wait_prior, cp.async.wait_group, wait() on its barrier, "
               "cp.async.bulk.wait_group, "
               "wgmma.wait_group, tcgen05.wait, tcgen05.commit), then synchronise with the threads that "
               "continue";
      if (!f.other_launch.empty())
        return "launches of two streams may run at the same time: cudaEventRecord behind the first and "
               "cudaStreamWaitEvent before the second, or one stream for both";
      if (!f.split.empty()) return kSplitHint;
      if (f.now.block != f.before.block)
        return "blocks run in any order: give each block its own elements, use atomics, or split the work "
               "into two kernels; "
               "a flag between blocks needs __threadfence() before it is set by an atomic";
      if (f.now.atomic != f.before.atomic)
        return "all threads must use an atomic here, or a barrier must stand between";
      if (f.lock_step)
        return "lanes of a warp do not run in lock-step, and volatile does not make them: __syncwarp() "
               "between "
               "the load and the store, and between the steps";
      if (f.same_warp)
        return "lanes of a warp do not run in lock-step: __syncthreads() between the two, or __syncwarp() "
               "where no other warp touches this memory";
      if (f.before.write && f.now.write)
        return "two threads must not write one element: check the index, or use an atomic";
      return f.before.write
                 ? "__syncthreads() between the write and the read"
                 : "__syncthreads() between the read and the next write, so that no thread overwrites what "
                   "another still reads";
    case FindingKind::kSameValue:
      return "let one thread write";
    case FindingKind::kUninitialised:
      return f.shared ? "write the element first, by every thread that should; check the bounds of the loop "
                        "that fills it"
                      : "outputs, workspace and cudaMalloc'd memory hold no values: write before reading";
    case FindingKind::kOutOfBounds:
      return f.object.find("no allocation") != std::string::npos
                 ? "kernels can touch device memory only: cudaMalloc and cudaMemcpy, or pass by value"
                 : "check the index against the array's size";
    case FindingKind::kMisaligned:
      return "rows need not be aligned: use vector accesses only where the row length and the offset allow "
             "it";
    case FindingKind::kHostAccess:
      return "a GPU's memory can be touched by kernels only: put the loop into a __global__ function and "
             "launch that, or copy with cudaMemcpyAsync";
    case FindingKind::kEarlyRead:
      return "a load and a store are no atomic update: use atomicAdd or another atomic function; a result "
             "needs "
             "__threadfence() before the flag or the ticket that announces it";
    case FindingKind::kSplitBarrier:
      return kSplitHint;
    case FindingKind::kUnfinishedResult:
      return f.object.ends_with("tcgen05.ld")
                 ? "tcgen05.wait::ld before the registers are used"
                 : "wgmma.commit_group, then wgmma.wait_group 0, before the accumulators are touched";
  }
  return {};
}

}  // namespace capstone_emu::hooks
