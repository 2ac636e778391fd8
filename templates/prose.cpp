#include "templates/prose.h"

#include <cmark-gfm.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "harness/base/digest.h"
#include "harness/base/text.h"
#include "rubric/markdown.h"
#include "templates/blocks.h"
#include "templates/page.h"

namespace capstone {

namespace {

using Figures = std::map<std::string, std::string>;
struct FreeNode {
  void operator()(cmark_node* node) const { cmark_node_free(node); }
};
using Node = std::unique_ptr<cmark_node, FreeNode>;

constexpr int kSubHeading = 3;  // <h1> and <h2> are reserved for the page's title and sections

// A node with trusted HTML, which cmark writes unchanged.
cmark_node* raw_node(cmark_node_type type, const std::string& html) {
  cmark_node* node = cmark_node_new(type);
  cmark_node_set_on_enter(node, html.c_str());
  return node;
}

cmark_node* text_node(std::string_view text) {
  cmark_node* node = cmark_node_new(CMARK_NODE_TEXT);
  cmark_node_set_literal(node, std::string(text).c_str());
  return node;
}

std::string quotation_html(const Quotation& q) {
  if (q.kind == Quotation::Kind::kPlaceholder)
    return fmt::format("<span class=\"ledger\">{}</span>", escape_html(q.text));
  return fmt::format("<mark title=\"{0}\">{1}</mark><span class=\"why\"> ({0})</span>", escape_html(q.note),
                     escape_html(q.text));
}

// HTML inside prose passes through cmark as a token, because some nodes (table cells) cannot have custom
// children. A token contains the digest of the whole worklog, so that the worklog itself cannot contain a
// valid token.
class Snippets {
 public:
  explicit Snippets(std::string_view text) : open_("\xEE\x80\x80" + sha256_hex(text) + ":") {}

  std::string token(std::string html) {
    html_.push_back(std::move(html));
    return fmt::format("{}{};", open_, html_.size() - 1);
  }
  std::string resolve(std::string_view page) const {
    std::string out;
    for (std::size_t at = 0;;) {
      std::size_t open = page.find(open_, at),
                  close = open == std::string_view::npos ? open : page.find(';', open);
      if (close == std::string_view::npos) return out.append(page.substr(at));
      std::size_t number = open + open_.size();
      out += page.substr(at, open - at);
      out += html_.at(std::stoul(std::string(page.substr(number, close - number))));
      at = close + 1;
    }
  }

 private:
  std::string open_;
  std::vector<std::string> html_;
};

// Replaces each quotation in a text node by a token.
void weave(cmark_node* node, std::size_t origin, const std::vector<const Quotation*>& quotations,
           Snippets& snippets) {
  std::string literal = cmark_node_get_literal(node), woven;
  std::size_t done = 0;
  for (const Quotation* q : quotations) {
    std::size_t from = q->begin - origin, to = q->end - origin;
    woven += literal.substr(done, from - done) + snippets.token(quotation_html(*q));
    done = to;
  }
  cmark_node_set_literal(node, (woven + literal.substr(done)).c_str());
}

void fill_in(cmark_node* block, int section, const LedgerNumbers& numbers, Snippets& snippets) {
  for (const FlatText& flat : flat_blocks(block)) {
    std::vector<Quotation> found = numbers.find(flat.text, {section, flat.column});
    std::size_t next = 0;
    for (const TextPiece& piece : flat.pieces) {
      std::vector<const Quotation*> inside;
      while (next < found.size() && found[next].begin < piece.begin) ++next;
      for (; next < found.size() && found[next].end <= piece.end; ++next) {
        // A number inside a block quote is not the student's claim. Placeholders are filled in everywhere.
        bool claim = found[next].kind == Quotation::Kind::kNotInLedger ||
                     found[next].kind == Quotation::Kind::kEmulated;
        if (!(claim && flat.in_quote)) inside.push_back(&found[next]);
      }
      if (!inside.empty()) weave(piece.node, piece.begin, inside, snippets);
    }
  }
}

bool is_live_link(std::string_view url) {
  std::string lower(url.substr(0, 8));
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower.starts_with("http://") || lower.starts_with("https://") || lower.starts_with("mailto:") ||
         lower.starts_with("#");
}

// Replaces a link by its text.
void unwrap(cmark_node* node) {
  while (cmark_node* child = cmark_node_first_child(node)) cmark_node_insert_before(node, child);
  Node discarded(node);
  cmark_node_unlink(node);
}

void replace_by_text(cmark_node* node, const std::string& text) {
  cmark_node_insert_before(node, text_node(text));
  Node discarded(node);
  cmark_node_unlink(node);
}

// Whether emphasis is a product: the stars of 16384*4096*4.
bool is_product(cmark_node* emphasis) {
  const auto literal_of = [](cmark_node* node) -> std::string_view {
    return node && cmark_node_get_type(node) == CMARK_NODE_TEXT ? cmark_node_get_literal(node) : "";
  };
  const std::string_view before = literal_of(cmark_node_previous(emphasis)),
                         inside = literal_of(cmark_node_first_child(emphasis));
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  return !before.empty() && !inside.empty() && digit(before.back()) && digit(inside.front());
}

bool is_comment(std::string_view html) {
  html = trim(html);
  return html.starts_with("<!--") && html.find("-->") == html.size() - 3;
}

// Neutralizes everything that a browser could execute or fetch. Collects the nodes first, because changes to
// the tree invalidate the iterator.
void disarm(cmark_node* block) {
  std::vector<cmark_node*> active;
  {
    std::unique_ptr<cmark_iter, decltype(&cmark_iter_free)> iter(cmark_iter_new(block), cmark_iter_free);
    for (cmark_event_type event; (event = cmark_iter_next(iter.get())) != CMARK_EVENT_DONE;) {
      cmark_node* node = cmark_iter_get_node(iter.get());
      cmark_node_type type = cmark_node_get_type(node);
      bool leaf = type == CMARK_NODE_HTML_INLINE || type == CMARK_NODE_HTML_BLOCK;
      bool closing = (type == CMARK_NODE_LINK || type == CMARK_NODE_IMAGE || type == CMARK_NODE_HEADING ||
                      type == CMARK_NODE_EMPH) &&
                     event == CMARK_EVENT_EXIT;
      if ((leaf && event == CMARK_EVENT_ENTER) || closing) active.push_back(node);
    }
  }
  for (cmark_node* node : active) {  // children before parents
    cmark_node_type type = cmark_node_get_type(node);
    if (type == CMARK_NODE_HEADING)
      cmark_node_set_heading_level(node, std::clamp(cmark_node_get_heading_level(node) + 1, kSubHeading, 6));
    else if (type == CMARK_NODE_LINK) {
      if (!is_live_link(cmark_node_get_url(node))) unwrap(node);
    } else if (type == CMARK_NODE_EMPH) {
      if (!is_product(node)) continue;
      cmark_node_insert_before(node, text_node("*"));
      cmark_node_insert_after(node, text_node("*"));
      unwrap(node);
    } else if (type == CMARK_NODE_IMAGE) {
      replace_by_text(node, fmt::format("[image: {} ({})]", plain_text(node),
                                        std::string(cmark_node_get_url(node)).substr(0, 120)));
    } else if (type == CMARK_NODE_HTML_INLINE) {
      std::string html = cmark_node_get_literal(node);
      replace_by_text(node, is_comment(html) ? "" : html);
    } else {
      std::string html = cmark_node_get_literal(node);
      if (node == block) continue;  // the caller replaces top-level blocks
      cmark_node_insert_before(node,
                               raw_node(CMARK_NODE_CUSTOM_BLOCK,
                                        is_comment(html) ? "" : "<p>" + escape_html(trim(html)) + "</p>"));
      Node discarded(node);
      cmark_node_unlink(node);
    }
  }
}

class HtmlWriter {
 public:
  HtmlWriter(const LedgerNumbers& numbers, const Figures& figures) : numbers_(numbers), figures_(figures) {
    for (Node& page : pages_) page.reset(cmark_node_new(CMARK_NODE_DOCUMENT));
  }

  ProseHtml write(const Worklog& worklog) {
    snippets_ = Snippets(worklog.text);
    MarkdownDocument document(worklog.text);
    for (cmark_node* block : document.blocks()) take(block);
    for (const SectionSpec& spec : worklog_sections())
      for (std::string_view name : spec.figures) put_figure(spec.number, std::string(name));
    ProseHtml html;
    html.preamble = rendered(0);
    for (int i = 1; i <= kWorklogSections; ++i) html.sections[static_cast<std::size_t>(i - 1)] = rendered(i);
    return html;
  }

 private:
  cmark_node* page(int section) { return pages_[static_cast<std::size_t>(section)].get(); }

  void take(cmark_node* block) {
    cmark_node_type type = cmark_node_get_type(block);
    if (type == CMARK_NODE_HEADING) {
      int number = cmark_node_get_heading_level(block) <= 3 ? section_of_heading(plain_text(block)) : 0;
      if (number != 0) {
        section_ = number;
        return;
      }
      // The page already has a title.
      if (section_ == 0 && cmark_node_get_heading_level(block) == 1) return;
    }
    if (type == CMARK_NODE_HTML_BLOCK) {
      take_html(cmark_node_get_literal(block));
      return;
    }
    if (type == CMARK_NODE_BLOCK_QUOTE && put_question(block)) return;
    fill_in(block, section_, numbers_, snippets_);
    disarm(block);
    cmark_node_unlink(block);
    cmark_node_append_child(page(section_), block);
  }

  void take_html(std::string_view html) {
    std::string name = marker_name(html);
    if (!name.empty() && figures_.contains(name))
      put_figure(section_, name);
    else if (!is_comment(html))
      put(section_, "<p>" + escape_html(trim(html)) + "</p>\n");
  }

  bool put_question(cmark_node* block) {
    std::string text(trim(plain_text(block)));
    if (!text.starts_with("Q:") && !text.starts_with("Q.")) return false;
    put(section_, "<p class=\"question\">" + escape_html(trim(std::string_view(text).substr(2))) + "</p>\n");
    return true;
  }

  void put_figure(int section, const std::string& name) {
    auto found = figures_.find(name);
    if (found != figures_.end() && shown_.insert(name).second) put(section, found->second);
  }

  void put(int section, const std::string& html) {
    cmark_node_append_child(page(section), raw_node(CMARK_NODE_CUSTOM_BLOCK, html));
  }

  std::string rendered(int section) {
    std::unique_ptr<char, decltype(&free)> html(cmark_render_html(page(section), CMARK_OPT_DEFAULT, nullptr),
                                                free);
    return snippets_.resolve(html.get());
  }

  const LedgerNumbers& numbers_;
  const Figures& figures_;
  Snippets snippets_{""};
  std::array<Node, kWorklogSections + 1> pages_;
  std::set<std::string> shown_;
  int section_ = 0;
};

// ---- Markdown
// --------------------------------------------------------------------------------------------------

// The lines that are code or raw HTML. They are copied unchanged, except for markers.
std::vector<bool> verbatim_lines(cmark_node* root, std::size_t lines) {
  std::vector<bool> verbatim(lines + 2, false);
  std::unique_ptr<cmark_iter, decltype(&cmark_iter_free)> iter(cmark_iter_new(root), cmark_iter_free);
  for (cmark_event_type event; (event = cmark_iter_next(iter.get())) != CMARK_EVENT_DONE;) {
    cmark_node* node = cmark_iter_get_node(iter.get());
    cmark_node_type type = cmark_node_get_type(node);
    if (event != CMARK_EVENT_ENTER || (type != CMARK_NODE_CODE_BLOCK && type != CMARK_NODE_HTML_BLOCK))
      continue;
    int last = std::max(cmark_node_get_end_line(node), cmark_node_get_start_line(node));
    for (int line = cmark_node_get_start_line(node); line <= last && line <= static_cast<int>(lines); ++line)
      verbatim[static_cast<std::size_t>(line)] = true;
  }
  return verbatim;
}

// Replaces code spans in a line by spaces, so that placeholders inside them are not filled in.
std::string without_code_spans(std::string line) {
  for (std::size_t open = 0; (open = line.find('`', open)) != std::string::npos;) {
    std::size_t run = line.find_first_not_of('`', open);
    if (run == std::string::npos) break;
    std::string fence = line.substr(open, run - open);
    std::size_t close = line.find(fence, run);
    if (close == std::string::npos) {
      open = run;
      continue;
    }
    std::fill(line.begin() + static_cast<std::ptrdiff_t>(run),
              line.begin() + static_cast<std::ptrdiff_t>(close), ' ');
    open = close + fence.size();
  }
  return line;
}

std::string filled_line(const std::string& line, const LedgerNumbers& numbers) {
  if (line.find("{{") == std::string::npos) return line;
  std::string out;
  std::size_t done = 0;
  for (const Quotation& q : numbers.find(without_code_spans(line), {})) {
    if (q.kind == Quotation::Kind::kNotInLedger || q.kind == Quotation::Kind::kEmulated) continue;
    out += line.substr(done, q.begin - done);
    out += q.kind == Quotation::Kind::kPlaceholder
               ? escape_markdown(q.text)
               : fmt::format("**{}** ({})", escape_markdown(q.text), escape_markdown(q.note));
    done = q.end;
  }
  return out + line.substr(done);
}

class MarkdownFiller {
 public:
  MarkdownFiller(const LedgerNumbers& numbers, const Figures& figures)
      : numbers_(numbers), figures_(figures) {}

  std::string write(const Worklog& worklog) {
    MarkdownDocument document(worklog.text);
    std::vector<std::string> lines = split(worklog.text, '\n');
    if (!lines.empty() && lines.back().empty()) lines.pop_back();
    std::vector<bool> verbatim = verbatim_lines(document.root(), lines.size());
    for (const std::string& name : worklog.markers) marked_.insert(name);
    std::map<int, int> section_starts = heading_lines(document);
    int section = 0;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (auto start = section_starts.find(static_cast<int>(i) + 1); start != section_starts.end()) {
        close(section);
        section = start->second;
        seen_.insert(section);
      }
      take_line(lines[i], verbatim[i + 1]);
    }
    close(section);
    for (const SectionSpec& spec : worklog_sections())
      if (!seen_.contains(spec.number)) {
        out_ += fmt::format(
            "\n## {}. {}\n\n*This section is not in the student's worklog. The following comes from the "
            "ledger.*\n",
            spec.number, spec.title);
        close(spec.number);
      }
    return std::move(out_);
  }

 private:
  static std::map<int, int> heading_lines(const MarkdownDocument& document) {
    std::map<int, int> lines;
    for (cmark_node* block : document.blocks())
      if (cmark_node_get_type(block) == CMARK_NODE_HEADING && cmark_node_get_heading_level(block) <= 3)
        if (int number = section_of_heading(plain_text(block)); number != 0)
          lines[cmark_node_get_start_line(block)] = number;
    return lines;
  }

  void take_line(const std::string& line, bool verbatim) {
    std::string name = verbatim ? marker_name(line) : "";
    if (!name.empty() && figures_.contains(name))
      put(name);
    else
      out_ += (verbatim ? line : filled_line(line, numbers_)) + "\n";
  }

  // Appends the figures whose markers are missing to the end of their section.
  void close(int section) {
    if (section == 0) return;
    for (std::string_view figure : worklog_sections()[static_cast<std::size_t>(section - 1)].figures)
      if (std::string name(figure); !marked_.contains(name)) put(name);
  }

  void put(const std::string& name) {
    auto found = figures_.find(name);
    if (found != figures_.end() && shown_.insert(name).second) out_ += "\n" + found->second + "\n";
  }

  const LedgerNumbers& numbers_;
  const Figures& figures_;
  std::set<std::string> marked_, shown_;
  std::set<int> seen_;
  std::string out_;
};

}  // namespace

ProseHtml prose_to_html(const Worklog& worklog, const LedgerNumbers& numbers, const Figures& figures) {
  return HtmlWriter(numbers, figures).write(worklog);
}

std::string prose_to_markdown(const Worklog& worklog, const LedgerNumbers& numbers, const Figures& figures) {
  if (is_hostile_markdown(worklog.text)) {
    Figure dump{"worklog", "The unchanged worklog", {ListingBlock{"worklog.md", worklog.text, "", false}}};
    Worklog empty;
    return to_markdown(dump) + MarkdownFiller(numbers, figures).write(empty);
  }
  return MarkdownFiller(numbers, figures).write(worklog);
}

}  // namespace capstone
