#pragma once
// Work of engines that reports to an mbarrier.
#include "hooks/access.h"

namespace capstone_emu::hooks {

/// Where a pointer of the runtime's leads.
Spot spot_at(Block& block, const void* pointer);
/// What the engine does there for the running thread is over when a phase of the barrier is.
void report_to(const void* barrier, const void* begin, unsigned bytes, bool writes);
/// All that the thread's engine did up to its commit of this number is over with the next phase of the
/// barrier.
void report_commit_to(const void* barrier, unsigned commit);

}  // namespace capstone_emu::hooks
