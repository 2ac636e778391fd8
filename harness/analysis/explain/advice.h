#pragma once
// Interprets the counts of a source line and suggests a remedy.
#include "harness/model/explanation.h"

namespace capstone {

/// The number of clocks that one SM of a current GPU needs at least for the work of a line. Lines are
/// compared by it. A wavefront of shared memory takes one clock, two sectors of global memory one, 256 FLOPs
/// one (NVIDIA H100 whitepaper: 64 B per clock from L2 to an SM, 32 banks of 4 B, 128 FMA lanes).
double modelled_clocks(const LineCounts& counts);

/// The most important advice on a line.
/// @param compulsory_bytes  what the problem has to move at these sizes [B]
Advice advice_on(const LineCounts& counts, const KernelCounts& kernel, double compulsory_bytes);

}  // namespace capstone
