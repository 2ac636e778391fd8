#include "harness/desk/views.h"

#include <ctemplate/template_dictionary.h>
#include <fmt/format.h>

#include <algorithm>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/course/result.h"
#include "harness/model/sizes_text.h"
#include "harness/project/ledger/ledger.h"
#include "harness/project/version_source.h"
#include "harness/workflows/report.h"
#include "templates/highlight.h"

namespace capstone::desk {
namespace {

using Dictionary = ctemplate::TemplateDictionary;

constexpr std::size_t kMaxShown = 1u << 20;  // [B] of a file that is shown line by line
constexpr std::size_t kMaxLines = 20'000;

// Names in the text of a page, not in its tags and styles.
std::string masked_html(const std::string& html, const NameMask& mask) {
  std::string out;
  for (std::size_t at = 0; at < html.size();) {
    const bool style = html.compare(at, 6, "<style") == 0;
    std::size_t end = html[at] != '<' ? html.find('<', at) : html.find(style ? "</style>" : ">", at);
    if (end == std::string::npos) end = html.size();
    if (html[at] == '<' && !style && end < html.size()) ++end;
    if (style) end = std::min(html.size(), end + 8);
    const std::string_view part(html.data() + at, end - at);
    out += html[at] == '<' ? std::string(part) : mask.apply(part);
    at = end;
  }
  return out;
}

ListingBlock listing(const Looked& looked, const std::string& title, const Result<std::string>& text) {
  return {title, text ? to_utf8(looked.shown(*text)) : text.error().what, "", false, true};
}

Result<std::string> no_project(const PageTemplates& templates) {
  return templates.expand(Figure{
      "none", "", {NoteBlock{"There is no project: what was handed in could not be read.", Tone::kBad}}});
}

// The machine's own words hold no name; the place may be in a file that the student named.
void add_failure(std::vector<Block>& blocks, const Looked& looked, const CaseResult& bad,
                 const std::string& candidate) {
  FactsBlock facts;
  auto fact = [&](const char* label, const std::string& text) {
    if (!text.empty()) facts.facts.emplace_back(label, Cell{text});
  };
  fact("First failure", bad.problem);
  fact("Where", looked.shown(bad.where));
  fact("Case", fmt::format("{} ({}){}{}", bad.id, sizes_text(bad.sizes),
                           bad.schedule.empty() ? "" : ", schedule ", bad.schedule));
  if (bad.diagnosis) {
    const Diagnosis& d = *bad.diagnosis;
    fact("First mismatch",
         fmt::format("{}[{}]: expected {:.9g}, got {:.9g}; {} of {} elements are wrong", d.output,
                     fmt::join(d.first, ", "), d.first_expected, d.first_got, d.wrong, d.total));
    fact("Pattern", d.pattern);
  }
  fact("Hint", bad.hint);
  fact("Seed", bad.seed);
  fact("Run it again", "capstone replay verdict.json --who " + candidate);
  blocks.push_back(facts);
}

void add_findings(std::vector<Block>& blocks, const Looked& looked, const SubmissionResult& result) {
  if (const auto findings = result.all_findings(); !findings.empty()) {
    blocks.push_back(HeadingBlock{"Look at this before you mark"});
    for (const std::string& finding : findings)
      blocks.push_back(NoteBlock{looked.shown(finding), Tone::kBad});
  }
  for (const std::string& note : result.notes) blocks.push_back(NoteBlock{looked.shown(note)});
  for (const std::string& version : result.left_out)
    blocks.push_back(NoteBlock{"The worklog does not name " + version});
}

// Names of others are no more shown than the author's.
void add_similar(std::vector<Block>& blocks, const Looked& looked, const fs::path& cohort) {
  auto text = read_file(cohort / "similarity.json", 256u << 20);
  const Json json = text ? parse_json(*text) : Json();
  if (!json.is_object()) return;
  TableBlock table{
      "Kernels that share code with this one", {{"Other", false, false}, {"Share", true, false}}, {}};
  for (const Json& pair : json.value("pairs", Json::array())) {
    const std::string first = pair.value("first", ""), second = pair.value("second", "");
    if (first != looked.name && second != looked.name) continue;
    const std::string other = first == looked.name ? second : first;
    table.rows.push_back({Cell{looked.mask ? "another submission" : other},
                          Cell{fmt::format("{:.0f} %", 100 * pair.value("share", 0.0))}});
  }
  if (!table.rows.empty()) blocks.push_back(table);
}

void add_line(Dictionary& lines, const std::vector<Highlight>& parts, std::size_t number,
              const Looked& looked, std::size_t file) {
  auto* line = lines.AddSectionDictionary("LINE");
  line->SetIntValue("NUMBER", static_cast<long>(number));
  if (looked.second) {
    line->ShowSection("PLAIN");
  } else {
    auto* comment = line->AddSectionDictionary("ADD_COMMENT");
    comment->SetValue("BASE", looked.base);
    comment->SetIntValue("FILE", static_cast<long>(file));
  }
  for (const Highlight& part : parts) {
    auto* span = line->AddSectionDictionary("PART");
    span->SetValue("KIND", part.kind);
    span->SetValue("TEXT", std::string(part.text));
  }
}

}  // namespace

void add_judged(std::vector<Block>& blocks, const Looked& looked, const SubmissionResult& result) {
  for (const Measurement& m : result.judged) {
    blocks.push_back(HeadingBlock{
        fmt::format("{} {}: {}{}",
                    m.candidate == "human" ? "By hand"
                    : m.candidate == "llm" ? "The model"
                                           : "Together",
                    m.version, label_of(m.gate_one),
                    m.gate_two == GateTwo::kNotJudged ? "" : fmt::format(", {}", label_of(m.gate_two)))});
    for (const std::string& label : m.labels) blocks.push_back(NoteBlock{looked.shown(label)});
    if (!m.build.ok && !m.build.log.empty())
      blocks.push_back(ListingBlock{"The compiler's output", looked.shown(m.build.log), "", true, true});
    if (const CaseResult* bad = m.first_failure()) {
      add_failure(blocks, looked, *bad, m.candidate);
      if (bad->diagnosis && !bad->diagnosis->map.empty())
        blocks.push_back(
            ListingBlock{bad->diagnosis->map_of, join(bad->diagnosis->map, "\n"), "", true, true});
    }
  }
}

Result<std::string> worklog_html(const Looked& looked) {
  if (looked.project.empty()) return fail("there is no project", looked.code, "see what the machine found");
  const fs::path kept = looked.folder / "desk" /
                        fmt::format("{}{}.html", looked.digest.substr(0, 16), looked.mask ? "-masked" : "");
  if (auto page = read_file(kept, 256u << 20)) return page;
  CAPSTONE_TRY(Project project, open_project(looked.project));
  if (looked.mask) project.config.members.clear();
  CAPSTONE_TRY(std::string html, workflows::worklog_page(project, *looked.workspace));
  if (looked.mask) html = masked_html(html, *looked.mask);
  CAPSTONE_CHECK(make_folders(kept.parent_path()));
  CAPSTONE_CHECK(write_file_atomic(kept, html, 0600));
  return html;
}

std::vector<std::string> files_of(const Looked& looked) {
  std::vector<std::string> files{"worklog.md"};
  std::error_code code;
  if (looked.project.empty()) return {};
  for (const char* part : kCandidates)
    for (fs::recursive_directory_iterator walk(looked.project / part, code), end; !code && walk != end;
         walk.increment(code))
      if (walk->is_regular_file(code) && !walk->is_symlink(code) && walk->file_size(code) <= kMaxShown)
        files.push_back(walk->path().lexically_relative(looked.project).generic_string());
  std::sort(files.begin() + 1, files.end());
  return files;
}

Result<std::string> source_body(const PageTemplates& templates, const Looked& looked, std::size_t file,
                                int open, const std::vector<LineComment>& comments, const std::string& grader,
                                const std::string& form_token) {
  const auto files = files_of(looked);
  if (files.empty()) return no_project(templates);
  if (file >= files.size()) return fail("there is no such file", looked.code, "choose one of the list");
  CAPSTONE_TRY(const std::string bytes, read_file(looked.project / files[file], 64u << 20));
  const std::string text = to_utf8(looked.shown(bytes.substr(0, kMaxShown)));
  Dictionary dict("source");
  dict.SetIntValue("FILE", static_cast<long>(file));
  dict.SetValue("TOKEN", form_token);
  for (std::size_t i = 0; i < files.size(); ++i) {
    auto* link = dict.AddSectionDictionary("LINK");
    link->SetValue("BASE", looked.base);
    link->SetIntValue("FILE", static_cast<long>(i));
    link->SetValue("NAME", to_utf8(looked.shown(files[i])));
    if (i == file) link->ShowSection("HERE");
  }
  // Highlighting is of C++; prose stays as it is.
  std::vector<std::vector<Highlight>> lines;
  if (files[file].ends_with(".md") || files[file].ends_with(".py"))
    for (std::size_t at = 0; at < text.size() && lines.size() < kMaxLines;) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      lines.push_back({Highlight{std::string_view(text).substr(at, end - at), ""}});
      at = end + 1;
    }
  else
    lines = highlighted_lines(text);
  if (lines.size() > kMaxLines) lines.resize(kMaxLines);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    auto* row = dict.AddSectionDictionary("ROW");
    add_line(*row, lines[i], i + 1, looked, file);
    std::string own;
    for (const LineComment& comment : comments) {
      if (comment.file != files[file] || comment.line != static_cast<int>(i + 1)) continue;
      auto* said = row->AddSectionDictionary("COMMENT");
      said->SetValue("GRADER", to_utf8(comment.grader));
      said->SetValue("TEXT", to_utf8(comment.text));
      if (comment.grader == grader) own = comment.text;
    }
    if (looked.second || open != static_cast<int>(i + 1)) continue;
    auto* form = row->AddSectionDictionary("FORM");
    form->SetValue("BASE", looked.base);
    form->SetIntValue("FILE", static_cast<long>(file));
    form->SetIntValue("NUMBER", open);
    form->SetValue("TOKEN", form_token);
    form->SetValue("TEXT", to_utf8(own));
  }
  return templates.expand("desk_source.tpl", dict);
}

Result<std::string> versions_body(const PageTemplates& templates, const Looked& looked) {
  if (looked.project.empty()) return no_project(templates);
  CAPSTONE_TRY(const Project project, open_project(looked.project));
  CAPSTONE_TRY(const LedgerView ledger, read_ledger(project.ledger()));
  Figure figure{"versions", "", {}};
  const Measurement* before = nullptr;
  for (const Measurement* version : ledger.versions("human")) {
    figure.blocks.push_back(
        HeadingBlock{fmt::format("{}: {}", version->version, expectation_and_result(ledger, *version))});
    if (const std::string why = ledger.reason("human", version->version); !why.empty())
      figure.blocks.push_back(NoteBlock{looked.shown(why)});
    if (before)
      figure.blocks.push_back(listing(looked, fmt::format("{} to {}", before->version, version->version),
                                      diff_of(project, ledger, *before, *version)));
    else
      figure.blocks.push_back(listing(looked, "Source of " + version->version, source_of(project, *version)));
    before = version;
  }
  if (!before) figure.blocks.push_back(NoteBlock{"No version was measured.", Tone::kMuted});
  return templates.expand(figure);
}

Result<std::string> model_body(const PageTemplates& templates, const Looked& looked) {
  if (looked.project.empty()) return no_project(templates);
  CAPSTONE_TRY(const Project project, open_project(looked.project));
  CAPSTONE_TRY(const LedgerView ledger, read_ledger(project.ledger()));
  Figure figure{"model", "", {}};
  for (const Attempt& attempt : ledger.attempts) {
    figure.blocks.push_back(HeadingBlock{
        fmt::format("Attempt {}: {} {}", attempt.number, looked.shown(attempt.model), attempt.settings)});
    const std::string name = fmt::format("attempt-{}", attempt.number);
    if (const Measurement* m = ledger.find(name))
      figure.blocks.push_back(NoteBlock{std::string(label_of(m->gate_one))});
    const fs::path folder = project.attempt(attempt.number);
    for (const auto& [title, file] :
         {std::pair{"Prompt", folder / "prompt.md"}, std::pair{"Reply", folder / "reply.md"},
          std::pair{"Code", project.attempt_kernel(attempt.number)}})
      figure.blocks.push_back(listing(looked, title, read_file(file, std::size_t{4} << 20)));
  }
  if (ledger.attempts.empty()) figure.blocks.push_back(NoteBlock{"No attempt of a model.", Tone::kMuted});
  return templates.expand(figure);
}

Result<std::string> machine_body(const PageTemplates& templates, const Looked& looked,
                                 const fs::path& cohort) {
  CAPSTONE_TRY(const SubmissionResult result, read_result(looked.folder / "result.json"));
  Figure figure{"machine", "", {}};
  const auto findings = result.all_findings();
  if (!result.why.empty() && std::find(findings.begin(), findings.end(), result.why) == findings.end())
    figure.blocks.push_back(NoteBlock{looked.shown(result.why), Tone::kBad});
  add_findings(figure.blocks, looked, result);
  add_judged(figure.blocks, looked, result);
  add_similar(figure.blocks, looked, cohort);
  return templates.expand(figure);
}

}  // namespace capstone::desk
