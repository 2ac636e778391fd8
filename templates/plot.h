#pragma once
// The plots of a report, from the ledger.
#include <optional>
#include <string>
#include <vector>

#include "harness/base/resources.h"
#include "harness/base/units.h"
#include "harness/project/ledger/ledger.h"

namespace capstone {

/// The roofs of a device, if the caller knows them. Otherwise they are derived from the ledger where
/// possible.
struct Roof {
  double bytes_per_second = 0;  ///< peak memory bandwidth [B/s]; 0: unknown
  double flops_per_second = 0;  ///< peak throughput [FLOP/s]; 0: unknown
  std::string label;            ///< "H100 SXM, FP32"
};

/// One finished plot.
struct Plot {
  std::string name;                       ///< "climb", "counts", "roofline", "samples", "head-to-head"
  std::string title;                      ///< one line
  std::string description;                ///< the content of the plot in words, for readers who cannot see it
  std::vector<std::string> columns = {};  ///< of the data that it shows
  std::vector<std::vector<std::string>> rows = {};  ///< a text for each column
  std::string svg = {};   ///< <svg> elements for a page, wide and narrow; empty when the plot was not drawn
  std::string note = {};  ///< why the plot was not drawn
};

/// Whether nothing in the ledger ran on a GPU. Then its times say nothing, and counts show progress.
bool only_emulated(const LedgerView& ledger);

/// Draws every plot that the ledger has data for, in one gnuplot process. Times and speedups are only plotted
/// if they come from a GPU. Never fails: a plot that cannot be drawn has a note instead.
std::vector<Plot> draw_plots(const LedgerView& ledger, const std::optional<Roof>& roof,
                             const Resources& resources);

}  // namespace capstone
