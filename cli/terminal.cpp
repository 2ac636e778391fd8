#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "harness/base/text.h"

namespace capstone::cli {

namespace {

constexpr int kProjector = 80;  // columns

}  // namespace

Terminal Terminal::detect(bool no_color) {
  Terminal terminal;
  terminal.tty_err_ = ::isatty(STDERR_FILENO);
  terminal.tty_out_ = ::isatty(STDOUT_FILENO);
  terminal.colour_out_ = terminal.tty_out_ && !no_color;
  terminal.colour_err_ = terminal.tty_err_ && !no_color;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) terminal.width_ = size.ws_col;
  return terminal;
}

void Terminal::out(std::string_view line) const {
  end_progress();
  const std::string text = shown(std::string(line) + '\n', colour_out_);
  if (kept_) *kept_ += text;
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void Terminal::say(std::string_view line) const {
  end_progress();
  const std::string text = shown(std::string(line) + '\n', colour_err_);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void Terminal::clear() const {
  if (interactive()) std::fputs("\x1b[2J\x1b[H", stdout);
}

void Terminal::progress(std::string_view said) const {
  const std::string text = shown(said, false);
  if (!tty_err_) {
    if (last_ == text) return;
    last_ = text;
    std::fprintf(stderr, "%s\n", text.c_str());
    return;
  }
  std::string line = one_line(text);
  std::size_t room = static_cast<std::size_t>(std::max(20, width_ - 2));
  while (display_width(line) > room) line.pop_back();
  std::fprintf(stderr, "\r\x1b[2K%s", line.c_str());
  std::fflush(stderr);
  standing_ = true;
}

void Terminal::end_progress() const {
  if (!standing_) return;
  std::fputs("\r\x1b[2K", stderr);
  standing_ = false;
}

std::string Terminal::fold(std::string_view text, std::size_t hang) const {
  std::vector<std::string> folded;
  for (std::string line : split(text, '\n')) {
    const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
    const std::string indent(std::max(hang, begin), ' ');
    for (std::size_t first = begin; !fits(line); first = indent.size()) {
      std::size_t cut = line.npos;  // the last space that has room before it
      for (std::size_t at = line.find(' ', first);
           at != line.npos && fits(std::string_view(line).substr(0, at)); at = line.find(' ', at + 1))
        cut = at;
      if (cut == line.npos) break;  // one long word
      folded.push_back(line.substr(0, cut));
      line = indent + std::string(trim(std::string_view(line).substr(cut)));
    }
    folded.push_back(std::move(line));
  }
  return join(folded, "\n");
}

bool Terminal::fits(std::string_view text) const {
  if (!tty_out_ && !kept_) return true;
  const int room = kept_ ? kProjector : width_;
  const std::vector<std::string> lines = split(text, '\n');
  return std::all_of(lines.begin(), lines.end(), [&](const std::string& line) {
    return display_width(line) <= static_cast<std::size_t>(room);
  });
}

namespace {

constexpr std::pair<Tone, std::string_view> kColours[] = {{Tone::kGood, "\x1b[32m"},
                                                          {Tone::kBad, "\x1b[31m"},
                                                          {Tone::kWarn, "\x1b[33m"},
                                                          {Tone::kDim, "\x1b[2m"},
                                                          {Tone::kBold, "\x1b[1m"}};
constexpr std::string_view kPlain = "\x1b[0m";

// The colour of paint() that the text begins with; empty: none.
std::string_view colour_at(std::string_view text) {
  if (text.starts_with(kPlain)) return kPlain;
  for (const auto& [tone, code] : kColours)
    if (text.starts_with(code)) return code;
  return {};
}

}  // namespace

std::string Terminal::dress(Tone tone, std::string_view text) {
  for (const auto& [each, code] : kColours)
    if (each == tone) return std::string(code) + std::string(text) + std::string(kPlain);
  return std::string(text);
}

std::string Terminal::shown(std::string_view text, bool colours) {
  std::string all;
  std::size_t done = 0;
  for (std::size_t at = text.find('\x1b'); at != text.npos && colours; at = text.find('\x1b', at + 1)) {
    const std::string_view colour = colour_at(text.substr(at));
    if (colour.empty()) continue;
    all += printable(text.substr(done, at - done));
    all += colour;
    done = at + colour.size();
  }
  return all + printable(text.substr(done));
}

std::string one_line(std::string_view text) {
  return replace_all(replace_all(std::string(text), "\r\n", " "), "\n", " ");
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned char c = static_cast<unsigned char>(text[i]);
    if (c == 0x1b) {
      while (i < text.size() && text[i] != 'm') ++i;
      continue;
    }
    if ((c & 0xC0u) != 0x80u) ++width;  // continuation bytes take no cell of their own
  }
  return width;
}

namespace {

constexpr std::size_t kNarrowest = 10;  // of a column that is folded

// Makes the widest left-aligned columns narrower until a line has room on the terminal. None becomes narrower
// than its longest word.
void shrink(std::vector<std::size_t>& widths, const std::vector<std::size_t>& words,
            const std::vector<bool>& right, const Terminal& terminal) {
  for (;;) {
    std::size_t total = 2 * (widths.size() - std::min<std::size_t>(widths.size(), 1)), widest = widths.size();
    for (std::size_t i = 0; i < widths.size(); ++i) {
      total += widths[i];
      const bool folds = (i >= right.size() || !right[i]) && widths[i] > std::max(kNarrowest, words[i]);
      if (folds && (widest == widths.size() || widths[i] > widths[widest])) widest = i;
    }
    if (widest == widths.size() || terminal.fits(std::string(total, ' '))) return;
    --widths[widest];
  }
}

// A cell in lines of that width, broken between words. Its colour goes with every line.
std::vector<std::string> fold_cell(const std::string& cell, std::size_t width) {
  if (display_width(cell) <= width) return {cell};
  const std::string_view colour = colour_at(cell);
  const bool painted = !colour.empty() && cell.ends_with(kPlain);
  std::string text = cell;
  if (painted) text = cell.substr(colour.size(), cell.size() - colour.size() - kPlain.size());
  std::vector<std::string> lines;
  for (const std::string& word : split(text, ' ')) {
    if (!lines.empty() && display_width(lines.back()) + 1 + display_width(word) <= width)
      lines.back() += " " + word;
    else
      lines.push_back(word);
  }
  if (painted)
    for (std::string& line : lines) line = std::string(colour) + line + std::string(kPlain);
  return lines;
}

}  // namespace

void Table::row(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = one_line(cell);
  rows_.push_back(std::move(cells));
}

void Table::line(std::string text) { rows_.push_back({one_line(text)}); }

std::string Table::text(const Terminal& terminal) const {
  std::vector<std::size_t> widths(header_.size()), words(header_.size());
  const auto make_room = [&](std::size_t i, const std::string& cell) {
    widths[i] = std::max(widths[i], display_width(cell));
    for (const std::string& word : split(cell, ' ')) words[i] = std::max(words[i], display_width(word));
  };
  for (std::size_t i = 0; i < header_.size(); ++i) make_room(i, header_[i]);
  const auto is_line = [&](const std::vector<std::string>& cells) {
    return cells.size() == 1 && widths.size() > 1;
  };
  for (const auto& cells : rows_)
    for (std::size_t i = 0; i < cells.size() && i < widths.size() && !is_line(cells); ++i)
      make_room(i, cells[i]);
  shrink(widths, words, right_, terminal);
  auto line = [&](const std::vector<std::string>& cells) {
    std::vector<std::vector<std::string>> parts;  // of each cell, one a line
    std::size_t height = 1;
    for (std::size_t i = 0; i < cells.size() && i < widths.size(); ++i) {
      parts.push_back(fold_cell(cells[i], widths[i]));
      height = std::max(height, parts.back().size());
    }
    std::string text;
    for (std::size_t row = 0; row < height; ++row) {
      std::string one;
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::string part = row < parts[i].size() ? parts[i][row] : std::string();
        const std::string gap(widths[i] - std::min(widths[i], display_width(part)), ' ');
        const bool right = i < right_.size() && right_[i];
        if (i) one += "  ";
        one += right ? gap + part : part + (i + 1 < parts.size() ? gap : std::string());
      }
      text += one + '\n';
    }
    return text;
  };
  std::vector<std::string> titles;
  for (const std::string& title : header_) titles.push_back(terminal.paint(Tone::kDim, title));
  std::string all = line(titles);
  for (const auto& cells : rows_) all += is_line(cells) ? cells[0] + '\n' : line(cells);
  if (!all.empty()) all.pop_back();
  return all;
}

}  // namespace capstone::cli
