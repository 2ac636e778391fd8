#pragma once
// Plots as inline SVG, drawn by gnuplot.
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
  std::string name;         ///< "climb", "roofline", "samples", "head-to-head"
  std::string title;        ///< one line
  std::string description;  ///< the content of the plot in words, for readers who cannot see it
  std::string svg;          ///< an <svg> element for a page; empty when the plot was not drawn
  std::string note;         ///< why the plot was not drawn
};

/// Draws every plot that the ledger has data for, in one gnuplot process. Never fails: a plot that cannot be
/// drawn has a note instead. A student's text never becomes a gnuplot command: labels are passed in data
/// files and reduced to letters, digits and a few other characters.
std::vector<Plot> draw_plots(const LedgerView& ledger, const std::optional<Roof>& roof,
                             const Resources& resources);

}  // namespace capstone
