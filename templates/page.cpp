#include "templates/page.h"

#include <ctemplate/template.h>
#include <ctemplate/template_cache.h>
#include <ctemplate/template_dictionary.h>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "templates/wrong_map.h"

namespace capstone {

namespace {

const char* tone_class(Tone tone) {
  switch (tone) {
    case Tone::kPlain:
      return "plain";
    case Tone::kGood:
      return "good";
    case Tone::kBad:
      return "bad";
    case Tone::kMuted:
      return "muted";
  }
  return "plain";
}

// Fills the dictionary of one block. The kind of the block selects the section of figure.tpl.
struct BlockFiller {
  ctemplate::TemplateDictionary& block;

  void operator()(const TableBlock& table) const {
    auto* dict = block.AddSectionDictionary("TABLE");
    dict->SetValueAndShowSection("TEXT", to_utf8(table.caption), "CAPTION");
    for (const TableBlock::Column& column : table.columns) {
      auto* head = dict->AddSectionDictionary("COLUMN");
      head->SetValue("TITLE", to_utf8(column.title));
      head->SetValue("KIND", kind(column));
    }
    for (const std::vector<Cell>& row : table.rows) {
      auto* line = dict->AddSectionDictionary("ROW");
      for (std::size_t i = 0; i < row.size(); ++i) {
        auto* cell = line->AddSectionDictionary("CELL");
        cell->SetValue("KIND", i < table.columns.size() ? kind(table.columns[i]) : "text");
        fill(*cell, row[i]);
      }
    }
  }
  void operator()(const NoteBlock& note) const {
    auto* dict = block.AddSectionDictionary("NOTE");
    dict->SetValue("TONE", tone_class(note.tone));
    dict->SetValue("TEXT", to_utf8(note.text));
  }
  void operator()(const FactsBlock& facts) const {
    auto* dict = block.AddSectionDictionary("FACTS");
    for (const auto& [label, cell] : facts.facts) {
      auto* fact = dict->AddSectionDictionary("FACT");
      fact->SetValue("LABEL", to_utf8(label));
      fill(*fact, cell);
    }
  }
  void operator()(const ListingBlock& code) const {
    auto* dict = block.AddSectionDictionary(code.open ? "OPEN_CODE" : "CODE");
    dict->SetValue("KIND", code.on_paper ? "listing" : "listing screen");
    dict->SetValue("SUMMARY", to_utf8(code.summary));
    dict->SetValue("TEXT", to_utf8(code.text));
  }
  void operator()(const HeadingBlock& heading) const {
    block.AddSectionDictionary("HEADING")->SetValue("TEXT", to_utf8(heading.text));
  }
  void operator()(const FigureBlock& figure) const {
    if (figure.plot.svg.empty()) {
      (*this)(NoteBlock{figure.plot.note, Tone::kMuted});
      return;
    }
    auto* dict = block.AddSectionDictionary("FIGURE");
    dict->SetValue("SVG", figure.plot.svg);
    dict->SetValue("TEXT", to_utf8(figure.plot.title));
    for (const std::string& column : figure.plot.columns)
      dict->AddSectionDictionary("COLUMN")->SetValue("TITLE", to_utf8(column));
    for (const std::vector<std::string>& row : figure.plot.rows) {
      auto* line = dict->AddSectionDictionary("ROW");
      for (const std::string& text : row) line->AddSectionDictionary("CELL")->SetValue("TEXT", to_utf8(text));
    }
  }
  void operator()(const MapBlock& map) const {
    auto* dict = block.AddSectionDictionary("MAP");
    dict->SetValue("SVG", svg_of(map));
    dict->SetValue("TEXT", to_utf8(map.of));
  }

 private:
  static const char* kind(const TableBlock::Column& column) {
    return column.number ? "number" : column.wide ? "wide" : "text";
  }
  static void fill(ctemplate::TemplateDictionary& dict, const Cell& cell) {
    dict.SetValue("TONE", tone_class(cell.tone));
    dict.SetValue("WEIGHT", cell.strong ? "strong" : "normal");
    dict.SetValue("TEXT", to_utf8(cell.text));
  }
};

}  // namespace

PageTemplates::PageTemplates(std::filesystem::path folder)
    : folder_(std::move(folder)), cache_(std::make_unique<ctemplate::TemplateCache>()) {}
PageTemplates::~PageTemplates() = default;
PageTemplates::PageTemplates(PageTemplates&&) noexcept = default;

Result<std::string> PageTemplates::expand(const std::string& name,
                                          const ctemplate::TemplateDictionary& values) const {
  std::string path = (folder_ / name).string(), out;
  if (!cache_->LoadTemplate(path, ctemplate::DO_NOT_STRIP))
    return fail("the page template is missing or broken", path,
                "reinstall capstone, or check its templates folder", ExitCode::kEnvironment);
  if (!cache_->ExpandWithData(path, ctemplate::DO_NOT_STRIP, &values, nullptr, &out))
    return fail("the page template cannot be filled in", path, "", ExitCode::kInternal);
  return out;
}

Result<std::string> PageTemplates::expand(const Figure& figure) const {
  ctemplate::TemplateDictionary dict("figure");
  dict.SetValue("NAME", figure.name);
  dict.SetValue("TITLE", to_utf8(figure.title));
  for (const Block& block : figure.blocks)
    std::visit(BlockFiller{*dict.AddSectionDictionary("BLOCK")}, block);
  return expand("figure.tpl", dict);
}

Result<std::string> PageTemplates::style() const {
  return read_file(folder_ / "page.css", std::size_t{1} << 20);
}

std::string escape_html(std::string_view text) {
  std::string out;
  for (char c : to_utf8(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string html_with_code(std::string_view text) {
  std::string html;
  for (;;) {
    const std::size_t open = text.find('`'), close = text.find('`', open == text.npos ? open : open + 1);
    if (close == text.npos) return html + escape_html(text);
    html += escape_html(text.substr(0, open)) + "<code>" +
            escape_html(text.substr(open + 1, close - open - 1)) + "</code>";
    text.remove_prefix(close + 1);
  }
}

}  // namespace capstone
