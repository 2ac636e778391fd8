#pragma once
// Draws plots with gnuplot, each as two inline SVG elements: one for wide pages and paper, one for phones.
#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/base/resources.h"
#include "templates/plot.h"

namespace capstone {

/// What a plot is drawn on. The page shows the one that fits its width, so that text keeps its size.
struct Canvas {
  const char* name;
  int width, font;  ///< [px]
  bool narrow;
};
inline constexpr std::array<Canvas, 2> kCanvases{{{"wide", 960, 14, false}, {"narrow", 380, 12, true}}};

/// One plot on one canvas: gnuplot's commands, and the data files that they name. A student's text may only
/// stand in the data, reduced by plain_text().
struct Drawing {
  int height = 360;  ///< [px]
  std::string commands;
  std::vector<std::pair<std::string, std::string>> files;

  /// Adds a data file of tab-separated rows. @return its name, in quotes
  std::string data(const Canvas& canvas, const std::string& name, const std::string& rows);
};

struct Draft {
  Plot plot;
  std::array<Drawing, kCanvases.size()> drawings;
};

/// A plot that `draw` draws on each canvas.
Draft drafted(Plot plot, const std::function<void(const Canvas&, Drawing&)>& draw);

/// The colour of a name ("ink", "grid", "human", "llm", "together", "base", "bad"), as a clause of a plot
/// command.
std::string ink(std::string_view name);
/// The same for text.
std::string text_ink(std::string_view name);

/// Reduces a text to characters that gnuplot, SVG and a shell take as they are.
std::string plain_text(std::string_view text, std::size_t limit);

/// A clause that shows the text in the third column of a data file when the pointer is over its point.
std::string hover(const std::string& file);

/// Draws all drafts in one gnuplot process. Never fails: a plot that cannot be drawn has a note instead.
std::vector<Plot> render_plots(std::vector<Draft> drafts, const Resources& resources);

}  // namespace capstone
