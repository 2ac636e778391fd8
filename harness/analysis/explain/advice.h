#pragma once
// Interprets the counts of a source line and suggests a remedy.
#include <functional>

#include "harness/model/explanation.h"

namespace capstone {

/// The number of clocks that one SM of a current GPU needs at least for the work of a line. Lines are
/// compared by it. A wavefront of shared memory takes one clock, two sectors of global memory one, 256 FLOPs
/// one (NVIDIA H100 whitepaper: 64 B per clock from L2 to an SM, 32 banks of 4 B, 128 FMA lanes).
double modelled_clocks(const LineCounts& counts);

/// The clocks in which the L1 cache, which shares its path with shared memory, serves a line: one for a
/// wavefront, one for a request to global memory and each further four of its sectors (128 B).
double l1_passes(const LineCounts& counts);

/// The most important advice on a line. `needed` says what compulsory_bytes are.
/// @param compulsory_bytes  what the problem has to move at these sizes [B]
/// @param moved_bytes       what all lines move together [B]
Advice advice_on(const LineCounts& counts, const KernelCounts& kernel, double compulsory_bytes,
                 double moved_bytes, std::string_view needed = "the problem has to move");

/// Gives each line its share of all lines' clocks, and `e` the advice on the dearest ones.
void rank_lines(Explanation& e,
                const std::function<double(const KernelCounts&, const LineCounts&)>& clocks_of);

}  // namespace capstone
