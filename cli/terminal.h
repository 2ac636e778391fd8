#pragma once
// stdout for results, stderr for narration; colour and the moving progress line only on a terminal. Every
// text is made printable here: names, labels and messages come from students, and a
// terminal obeys control characters. Only the colours of paint() pass.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace capstone::cli {

enum class Tone { kPlain, kGood, kBad, kWarn, kDim, kBold };

class Terminal {
 public:
  /// @param no_color  NO_COLOR is set and not empty
  static Terminal detect(bool no_color);

  /// Results: one line on stdout.
  void out(std::string_view line = {}) const;
  /// Narration: one line on stderr; a progress line is removed first.
  void say(std::string_view line) const;
  /// What is being done now. On a terminal it overwrites itself; elsewhere each new text is a line of its
  /// own.
  void progress(std::string_view text) const;
  void end_progress() const;
  /// Results are from now on added to this text, too, without colours, folded. It outlives the terminal.
  void keep_in(std::string& text) { kept_ = &text, colour_out_ = false; }
  /// Empties the screen, if this is one.
  void clear() const;

  /// The text in a colour, where stdout (or stderr) is a terminal that shows it.
  std::string paint(Tone tone, std::string_view text) const {
    return colour_out_ ? dress(tone, text) : std::string(text);
  }
  std::string paint_err(Tone tone, std::string_view text) const {
    return colour_err_ ? dress(tone, text) : std::string(text);
  }
  int width() const { return width_; }
  /// Lines that are too long for the terminal broken between words, what follows indented like the line
  /// itself, or by `hang` columns. A file or a pipe gets them whole, a kept text does not.
  std::string fold(std::string_view text, std::size_t hang = 0) const;
  /// Whether a text's widest line has room on the terminal; a file or a pipe has room for all.
  bool fits(std::string_view text) const;
  bool interactive() const { return colour_err_ || tty_err_; }

 private:
  static std::string dress(Tone tone, std::string_view text);
  static std::string shown(std::string_view text, bool colours);
  bool colour_out_ = false, colour_err_ = false, tty_err_ = false, tty_out_ = false;
  int width_ = 100;
  std::string* kept_ = nullptr;
  mutable bool standing_ = false;
  mutable std::string last_;
};

/// A table with aligned columns. Cells may hold colour codes and UTF-8; widths count what is seen. A cell is
/// one line: a newline in a name cannot make another row.
class Table {
 public:
  explicit Table(std::vector<std::string> header, std::vector<bool> right_aligned = {})
      : header_(std::move(header)), right_(std::move(right_aligned)) {}
  void row(std::vector<std::string> cells);
  /// A line below the last row, as wide as it is.
  void line(std::string text);
  std::string text(const Terminal& terminal) const;

 private:
  std::vector<std::string> header_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;  ///< one cell that is not aligned: a line
};

/// The text for one line: a line end becomes a space.
std::string one_line(std::string_view text);

/// The number of character cells that a terminal needs for a text; escape sequences count nothing.
std::size_t display_width(std::string_view text);

}  // namespace capstone::cli
