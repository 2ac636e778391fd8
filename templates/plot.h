#pragma once
// Plots as inline SVG, drawn by gnuplot.
#include <optional>
#include <string>
#include <vector>

#include "harness/base/resources.h"
#include "harness/base/units.h"
#include "harness/project/ledger/ledger.h"

namespace capstone {

/// The roofs of a device, when the caller knows them; else they are derived from the ledger where that is possible.
struct Roof {
  double bytes_per_second = 0;   ///< 0: unknown
  double flops_per_second = 0;   ///< 0: unknown
  std::string label;             ///< "H100 SXM, FP32"
};

/// One finished plot.
struct Plot {
  std::string name;              ///< "climb", "roofline", "samples", "head-to-head"
  std::string title;             ///< one line
  std::string description;       ///< what a reader who cannot see it needs to know
  std::string svg;               ///< an <svg> element to put into a page; empty: not drawn
  std::string note;              ///< why not drawn
};

/// Draws every plot that the ledger has data for, with one gnuplot process. Never fails: a plot that cannot be drawn
/// carries a note instead. No text of a student's reaches gnuplot's command language: labels travel in data files, reduced to
/// letters, digits and a few signs.
std::vector<Plot> draw_plots(const LedgerView& ledger, const std::optional<Roof>& roof, const Resources& resources);

}  // namespace capstone
