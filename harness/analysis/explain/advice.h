#pragma once
// What a line's counts mean, in words with the remedy.
#include "harness/model/explanation.h"

namespace capstone {

/// Clocks that one SM of today needs at least for what the line did: the measure by which lines are compared. A wavefront
/// of shared memory takes one, two sectors of global memory one, 256 FLOPs one (NVIDIA H100 whitepaper: 64 B a clock from L2
/// to an SM, 32 banks of 4 B, 128 FMA lanes).
double modelled_clocks(const LineCounts& counts);

/// The strongest thing to say about a line. @param compulsory_bytes  of the problem at these sizes
Advice advice_on(const LineCounts& counts, const KernelCounts& kernel, double compulsory_bytes);

}  // namespace capstone
