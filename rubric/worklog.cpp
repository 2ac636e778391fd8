#include "rubric/worklog.h"

#include <cmark-gfm.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/base/ascii.h"
#include "harness/base/spelling.h"
#include "harness/base/text.h"
#include "rubric/markdown.h"

namespace capstone {

std::string_view name_of(Severity severity) {
  switch (severity) {
    case Severity::kMissing:
      return "missing";
    case Severity::kContradiction:
      return "contradiction";
    case Severity::kAdvice:
      return "advice";
  }
  return "?";
}

int WorklogSection::unanswered() const {
  return static_cast<int>(
      std::count_if(questions.begin(), questions.end(), [](const Question& q) { return !q.answered; }));
}

bool explains_late_prediction(const Worklog& worklog) {
  const auto says = [](const std::string& text, std::initializer_list<std::string_view> words) {
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view word) { return text.find(word) != std::string::npos; });
  };
  return std::any_of(worklog.paragraphs.begin(), worklog.paragraphs.end(), [&](const Paragraph& p) {
    const std::string text = ascii_lower(p.text);
    return p.section == 1 && says(text, {"predict", "guess"}) &&
           says(text, {"after", "late", "already measured", "measured first", "before i "});
  });
}

int Worklog::words() const {
  int sum = 0;
  for (const WorklogSection& s : sections) sum += s.words;
  return sum;
}

namespace {

// Makes titles comparable: "2. The By-Hand Attempt" and "the by‑hand attempt:" are the same title.
std::string normalised(std::string_view heading) {
  std::string text = replace_all(replace_all(std::string(heading), "’", "'"), "‑", "-");
  std::string out;
  for (char c : text) {
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (letter)
      out += static_cast<char>(c | 0x20);
    else if (c == '-' || c == ' ') {
      if (!out.empty() && out.back() != ' ') out += ' ';
    }
  }
  return std::string(trim(out));
}

std::vector<std::string> normalised_titles() {
  std::vector<std::string> titles;
  for (const SectionSpec& spec : worklog_sections()) titles.push_back(normalised(spec.title));
  return titles;
}

std::string at_line(int line) { return fmt::format("worklog.md:{}", line); }

// The prose without `{{placeholders}}`: the ledger writes those numbers, so they do not count as the
// student's words.
std::string without_placeholders(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t open = text.find("{{", at);
    std::size_t close = open == std::string_view::npos ? open : text.find("}}", open);
    out += text.substr(at, close == std::string_view::npos ? text.size() - at : open - at);
    if (close == std::string_view::npos) break;
    at = close + 2;
  }
  return out;
}

class Reader {
 public:
  Worklog read(std::string_view bytes) {
    take_text(bytes);
    MarkdownDocument document(log_.text);
    for (cmark_node* block : document.blocks()) take_block(block);
    close_question();
    judge_repetition();
    judge_structure();
    return std::move(log_);
  }

 private:
  void add(int section, Severity severity, std::string what, std::string where, std::string hint) {
    log_.findings.push_back({section, severity, std::move(what), std::move(where), std::move(hint)});
  }

  void take_text(std::string_view bytes) {
    if (bytes.size() > kMarkdownLimit) {
      add(0, Severity::kContradiction,
          fmt::format("the worklog is {} long; only the first 2 MiB are read",
                      format_bytes(static_cast<double>(bytes.size()))),
          "worklog.md", "keep logs and profiles in separate files");
      bytes = bytes.substr(0, kMarkdownLimit);
      // Do not cut in the middle of a UTF-8 sequence.
      while (!bytes.empty() && (static_cast<unsigned char>(bytes.back()) & 0xC0u) == 0x80u)
        bytes.remove_suffix(1);
      if (!bytes.empty() && static_cast<unsigned char>(bytes.back()) >= 0xC0u) bytes.remove_suffix(1);
    }
    if (bytes.starts_with("\xEF\xBB\xBF")) bytes.remove_prefix(3);
    if (!is_utf8(bytes))
      add(0, Severity::kAdvice, "the worklog is not UTF-8; invalid bytes are shown as \xEF\xBF\xBD",
          "worklog.md", "save the file as UTF-8");
    log_.text = detach_answers(replace_all(to_utf8(bytes), std::string_view("\0", 1), "\xEF\xBF\xBD"));
    if (is_hostile_markdown(log_.text))
      add(0, Severity::kContradiction, "the worklog nests too many brackets or quotes to be read as Markdown",
          "worklog.md", "put raw dumps into a fenced code block, with an empty line every few hundred lines");
  }

  // Markdown would make an answer typed directly below `> Q: …` a part of the quotation (lazy continuation).
  // An empty line separates the two.
  std::string detach_answers(const std::string& text) {
    std::string out;
    bool after_question = false;
    int written = 0;
    for (const std::string& line : split(text, '\n')) {
      bool quoted = line.starts_with(">");
      if (after_question && !quoted && !trim(line).empty()) {
        out += '\n';
        inserted_.push_back(++written);
      }
      after_question = quoted && (after_question || trim(std::string_view(line).substr(1)).starts_with("Q:"));
      out += line;
      out += '\n';
      ++written;
    }
    if (!out.empty()) out.pop_back();
    return out;
  }

  // The line in the file of a line in the parsed text, which has extra empty lines.
  int in_file(int line) const {
    return line -
           static_cast<int>(std::lower_bound(inserted_.begin(), inserted_.end(), line) - inserted_.begin());
  }

  WorklogSection* current() {
    return section_ == 0 ? nullptr : &log_.sections[static_cast<std::size_t>(section_ - 1)];
  }

  void take_block(cmark_node* block) {
    switch (cmark_node_get_type(block)) {
      case CMARK_NODE_HEADING:
        if (take_heading(block)) return;
        break;
      case CMARK_NODE_BLOCK_QUOTE:
        if (take_question(block)) return;
        break;
      case CMARK_NODE_HTML_BLOCK:
        if (std::string name = marker_name(cmark_node_get_literal(block)); !name.empty())
          log_.markers.push_back(name);
        return;
      case CMARK_NODE_CODE_BLOCK:
        answered_ = true;
        return;
      default:
        break;
    }
    take_prose(block);
  }

  bool take_heading(cmark_node* block) {
    std::string heading = plain_text(block);
    int line = in_file(cmark_node_get_start_line(block));
    int level = cmark_node_get_heading_level(block);
    int number = level <= 3 ? section_of_heading(heading) : 0;
    if (number == 0) {
      if (level <= 2) other_headings_.emplace_back(heading, line);
      return false;
    }
    close_question();
    section_ = number;
    order_.push_back(number);
    WorklogSection& section = *current();
    if (section.present) {
      add(number, Severity::kContradiction, fmt::format("section \"{}\" appears twice", heading),
          at_line(line), "merge the two: the page shows each section once");
    } else {
      section.present = true;
      section.heading = heading;
      section.line = line;
    }
    return true;
  }

  bool take_question(cmark_node* block) {
    std::string text(trim(plain_text(block)));
    if (!text.starts_with("Q:") && !text.starts_with("Q.")) return false;
    close_question();
    if (current() == nullptr) return true;
    current()->questions.push_back({std::string(trim(std::string_view(text).substr(2))),
                                    in_file(cmark_node_get_start_line(block)), 0, false});
    open_ = section_;
    return true;
  }

  void take_prose(cmark_node* block) {
    for (const FlatText& flat : flat_blocks(block)) {
      if (flat.in_quote) continue;
      log_.paragraphs.push_back(
          {section_, in_file(flat.line), flat.text, flat.column, flat.row, flat.with_code});
      if (flat.in_table) {
        answered_ = true;
        continue;
      }
      if (flat.is_heading) continue;
      int words = count_words(without_placeholders(flat.text));
      if (current() != nullptr) current()->words += words;
      words_since_ += words;
      answer_ += " " + flat.text;
      if (words > 0 || flat.text.find("{{") != std::string::npos) answered_ = true;
    }
  }

  void close_question() {
    if (open_ != 0) {
      Question& question = log_.sections[static_cast<std::size_t>(open_ - 1)].questions.back();
      question.words = words_since_;
      question.answered = answered_;
      constexpr int kFewWords = 4;
      question.content = answered_ && (words_since_ == 0 || words_since_ >= kFewWords ||
                                       answer_.find_first_of("{0123456789") != std::string::npos);
      if (words_since_ > 0)
        said_[ascii_lower(trim(answer_))].push_back(
            {open_, log_.sections[static_cast<std::size_t>(open_ - 1)].questions.size() - 1});
    }
    answer_.clear();
    open_ = 0;
    words_since_ = 0;
    answered_ = false;
  }

  // One text that answers three questions answers none of them.
  void judge_repetition() {
    for (const auto& [text, places] : said_)
      for (const auto& [section, question] : places)
        if (places.size() > 2)
          log_.sections[static_cast<std::size_t>(section - 1)].questions[question].content = false;
  }

  void judge_structure() {
    for (const SectionSpec& spec : worklog_sections())
      if (!log_.section(spec.number).present) missing(spec);
    std::vector<int> sorted = order_;
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    for (std::size_t i = 1; i < sorted.size(); ++i)
      if (sorted[i] < sorted[i - 1]) {
        const WorklogSection& section = log_.section(sorted[i]);
        add(sorted[i], Severity::kContradiction,
            fmt::format("section \"{}\" is out of order", section.heading), at_line(section.line),
            fmt::format("move it before \"{}\": the order is plan, by hand, model, head-to-head, stuck",
                        worklog_sections()[static_cast<std::size_t>(sorted[i - 1] - 1)].title));
      }
  }

  void missing(const SectionSpec& spec) {
    std::string wanted = normalised(spec.title);
    for (const auto& [heading, line] : other_headings_) {
      std::string have = normalised(heading);
      bool near = edit_distance(have, wanted) <= static_cast<int>(wanted.size()) / 3 ||
                  (have.size() >= 5 &&
                   (wanted.find(have) != std::string::npos || have.find(wanted) != std::string::npos));
      if (!near) continue;
      add(spec.number, Severity::kMissing,
          fmt::format("section \"{}\" was renamed to \"{}\"", spec.title, heading), at_line(line),
          fmt::format("restore the heading \"## {}\"", spec.title));
      return;
    }
    add(spec.number, Severity::kMissing, fmt::format("section \"{}\" is not in the worklog", spec.title),
        "worklog.md",
        fmt::format("add the heading \"## {}. {}\" and write under it", spec.number, spec.title));
  }

  Worklog log_;
  int section_ = 0;
  int open_ = 0;  // section of the current question; 0: none
  int words_since_ = 0;
  bool answered_ = false;
  std::string answer_;                                                    // to the current question
  std::map<std::string, std::vector<std::pair<int, std::size_t>>> said_;  // answer → sections and questions
  std::vector<int> order_;
  std::vector<int> inserted_;  // numbers of the empty lines in the parsed text that the file does not have
  std::vector<std::pair<std::string, int>> other_headings_;
};

}  // namespace

int section_of_heading(std::string_view heading) {
  static const std::vector<std::string> titles = normalised_titles();
  auto found = std::find(titles.begin(), titles.end(), normalised(heading));
  return found == titles.end() ? 0 : static_cast<int>(found - titles.begin()) + 1;
}

std::string marker_name(std::string_view html) {
  html = trim(html);
  constexpr std::string_view kOpen = "<!-- capstone:", kClose = "-->";
  if (!html.starts_with(kOpen) || !html.ends_with(kClose) || html.size() < kOpen.size() + kClose.size())
    return {};
  std::string name(trim(html.substr(kOpen.size(), html.size() - kOpen.size() - kClose.size())));
  bool plain =
      std::all_of(name.begin(), name.end(), [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; });
  return plain ? name : std::string{};
}

Worklog parse_worklog(std::string_view bytes) { return Reader().read(bytes); }

}  // namespace capstone
