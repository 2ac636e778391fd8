#include <ctemplate/template_dictionary.h>
#include <fmt/format.h>

#include <algorithm>

#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/course/explained.h"
#include "templates/page.h"
#include "templates/report.h"

namespace capstone {

namespace {

std::string records_text(const std::vector<std::int64_t>& records) {
  if (records.empty()) return {};
  std::vector<std::string> names;
  for (std::int64_t seq : records) {
    names.push_back(fmt::format("#{}", seq));
    if (names.size() == 8 && records.size() > 8) {
      names.push_back(fmt::format("and {} more", records.size() - 8));
      break;
    }
  }
  return "record " + join(names, ", ");
}

std::string marks(double value) { return fmt::format("{:g}", value); }

std::string range_text(const Level& level) {
  return level.from == level.to ? marks(level.from) : marks(level.from) + "–" + marks(level.to);
}

std::string person_text(const Person& p) {
  std::vector<std::string> parts;
  for (const std::string* part : {&p.name, &p.id, &p.email})
    if (!part->empty()) parts.push_back(*part);
  return join(parts, ", ");
}

std::string who(const Project& project) {
  std::vector<std::string> people;
  for (const Person& p : project.config.members) people.push_back(person_text(p));
  return people.empty() ? "author not named" : join(people, "; ");
}

const char* standing_class(Standing standing) {
  switch (standing) {
    case Standing::kMet:
      return "good";
    case Standing::kPartly:
      return "plain";
    case Standing::kNotMet:
      return "bad";
    case Standing::kNotApplicable:
      return "muted";
  }
  return "plain";
}

Json evidence_json(const Evidence& e, Audience audience) {
  Json json{{"check", e.check},
            {"looks_for", e.says},
            {"found", to_utf8(e.fact)},
            {"standing", name_of(e.standing)},
            {"records", e.records}};
  if (!e.ask.empty()) json["ask"] = to_utf8(e.ask);
  if (audience == Audience::kMentor) {
    json["share"] = e.share;
    json["met"] = e.met;
  }
  return json;
}

std::string sheet_json(const ReportInput& input, const ScoreSheet& sheet, Audience audience) {
  Json json{{"schema_version", 1},
            {"audience", audience == Audience::kMentor ? "mentor" : "student"},
            {"problem", input.project->config.problem_id},
            {"rubric_digest", sheet.rubric_digest}};
  json["members"] = Json::array();
  for (const Person& p : input.project->config.members)
    json["members"].push_back(
        {{"name", to_utf8(p.name)}, {"id", to_utf8(p.id)}, {"email", to_utf8(p.email)}});
  if (!sheet.facts.empty()) {
    json["facts"] = Json::array();
    for (const std::string& fact : sheet.facts) json["facts"].push_back(to_utf8(fact));
  }
  json["judged"] = Json::array();
  for (const JudgedKernel& kernel : sheet.judged) {
    Json entry{{"candidate", kernel.candidate}, {"verdict", kernel.verdict}, {"lines", Json::array()}};
    for (const std::string& line : kernel.lines) entry["lines"].push_back(to_utf8(line));
    json["judged"].push_back(std::move(entry));
  }
  json["criteria"] = Json::array();
  for (const CriterionScore& c : sheet.criteria) {
    Json entry{{"id", c.criterion->id}, {"title", c.criterion->title}, {"weight", c.criterion->weight}};
    entry["evidence"] = Json::array();
    for (const Evidence& e : c.evidence) entry["evidence"].push_back(evidence_json(e, audience));
    entry["questions"] = questions_of(c);
    if (audience == Audience::kMentor) {
      entry["suggested"] = c.suggested;
      entry["because"] = to_utf8(c.because);
    }
    json["criteria"].push_back(std::move(entry));
  }
  if (audience == Audience::kMentor) {
    json["suggested"] = sheet.suggested;
    json["findings"] = Json::array();
    for (const std::string& finding : sheet.findings) json["findings"].push_back(to_utf8(finding));
  }
  return json.dump(2) + "\n";
}

constexpr const char* kNoSpeed =
    "Speed alone earns no marks. A race that is lost and reported honestly can still earn 100.";

constexpr const char* kJudged = "What was judged";

bool any_failed(const ScoreSheet& sheet) {
  return std::any_of(sheet.judged.begin(), sheet.judged.end(),
                     [](const JudgedKernel& kernel) { return !kernel.lines.empty(); });
}

constexpr const char* kLookFirst = "Look at this before you mark";

std::string sheet_markdown(const ReportInput& input, const ScoreSheet& sheet, Audience audience) {
  std::string out =
      fmt::format("# Score sheet: {}\n\n{}\n\n{}\n", escape_markdown(input.project->problem.title),
                  escape_markdown(who(*input.project)), kNoSpeed);
  for (const std::string& fact : sheet.facts) out += fmt::format("\n{}\n", escape_markdown(fact));
  if (audience == Audience::kMentor && !sheet.findings.empty()) {
    out += fmt::format("\n## {}\n\n", kLookFirst);
    for (const std::string& finding : sheet.findings) out += fmt::format("- {}\n", escape_markdown(finding));
  }
  if (!sheet.judged.empty()) {
    out += fmt::format("\n## {}\n", kJudged);
    for (const JudgedKernel& kernel : sheet.judged) {
      out += fmt::format("\n**{}: {}**\n", kernel.candidate, kernel.verdict);
      for (const std::string& line : kernel.lines) out += fmt::format("\n- {}", escape_markdown(line));
      if (!kernel.lines.empty()) out += "\n";
    }
    if (any_failed(sheet)) out += fmt::format("\n{}\n", kReplayHint);
  }
  for (const CriterionScore& c : sheet.criteria) {
    out += fmt::format("\n## {} ({} marks)\n\n{}\n\n", escape_markdown(c.criterion->title),
                       c.criterion->weight, escape_markdown(c.criterion->looks_for));
    out += "| Looked for | Found | Evidence | |\n|:--|:--|:--|:--|\n";
    for (const Evidence& e : c.evidence)
      out += fmt::format("| {} | {} | {} | {} |\n", escape_markdown(e.says), escape_markdown(e.fact),
                         escape_markdown(records_text(e.records)), name_of(e.standing));
    if (audience == Audience::kMentor)
      out += fmt::format("\n**Suggested: {} of {}** ({}). You decide the mark: ____\n", marks(c.suggested),
                         c.criterion->weight, escape_markdown(c.because));
    out += audience == Audience::kMentor ? "\nAsk yourself:\n\n" : "\nThe mentor will ask:\n\n";
    for (const std::string& q : questions_of(c)) out += fmt::format("- {}\n", escape_markdown(q));
    out += "\n| Marks | Level | What it looks like |\n|:--|:--|:--|\n";
    for (const Level& level : c.criterion->levels)
      out += fmt::format("| {} | {} | {} |\n", range_text(level), escape_markdown(level.name),
                         escape_markdown(level.text));
  }
  if (audience == Audience::kMentor)
    out += fmt::format("\n**Suggested total: {} of 100.** Your total: ____\n", marks(sheet.suggested));
  return out;
}

Result<std::string> sheet_html(const ReportInput& input, const ScoreSheet& sheet, Audience audience) {
  PageTemplates templates(input.resources->templates() / "html");
  CAPSTONE_TRY(std::string style, templates.style());
  bool mentor = audience == Audience::kMentor;
  ctemplate::TemplateDictionary dict("sheet");
  dict.SetValue("CSS", style);
  dict.SetValue("TITLE", to_utf8(input.project->problem.title));
  dict.SetValue("WHO", to_utf8(who(*input.project)));
  dict.SetValue("RULE", kNoSpeed);
  dict.SetValue("RUBRIC", sheet.rubric_digest.substr(0, 12));
  if (mentor) dict.AddSectionDictionary("TOTAL")->SetValue("MARKS", marks(sheet.suggested));
  for (const std::string& fact : sheet.facts)
    dict.AddSectionDictionary("FACT")->SetValue("TEXT", to_utf8(fact));
  if (mentor && !sheet.findings.empty()) {
    auto* findings = dict.AddSectionDictionary("FINDINGS");
    findings->SetValue("TITLE", kLookFirst);
    for (const std::string& finding : sheet.findings)
      findings->AddSectionDictionary("FINDING")->SetValue("TEXT", to_utf8(finding));
  }
  if (!sheet.judged.empty()) {
    auto* judged = dict.AddSectionDictionary("JUDGED");
    judged->SetValue("TITLE", kJudged);
    for (const JudgedKernel& kernel : sheet.judged) {
      auto* entry = judged->AddSectionDictionary("KERNEL");
      entry->SetValue("WHO", kernel.candidate);
      entry->SetValue("VERDICT", kernel.verdict);
      for (const std::string& line : kernel.lines)
        entry->AddSectionDictionary("LINE")->SetValue("TEXT", to_utf8(line));
    }
    if (any_failed(sheet)) judged->AddSectionDictionary("REPLAY")->SetValue("TEXT", kReplayHint);
    if (mentor) judged->ShowSection("WORKLOG");
  }
  for (const CriterionScore& c : sheet.criteria) {
    auto* criterion = dict.AddSectionDictionary("CRITERION");
    criterion->SetValue("TITLE", c.criterion->title);
    criterion->SetIntValue("WEIGHT", c.criterion->weight);
    criterion->SetValue("LOOKS_FOR", c.criterion->looks_for);
    criterion->SetValue("ASK", mentor ? "Ask yourself" : "The mentor will ask");
    for (const Evidence& e : c.evidence) {
      auto* row = criterion->AddSectionDictionary("EVIDENCE");
      row->SetValue("SAYS", e.says);
      row->SetValue("FACT", to_utf8(e.fact));
      row->SetValue("RECORDS", records_text(e.records));
      row->SetValue("TONE", standing_class(e.standing));
      row->SetValue("STANDING", std::string(name_of(e.standing)));
    }
    if (mentor) {
      auto* suggestion = criterion->AddSectionDictionary("SUGGESTION");
      suggestion->SetValue("MARKS", marks(c.suggested));
      suggestion->SetValue("BECAUSE", to_utf8(c.because));
    }
    for (const std::string& q : questions_of(c))
      criterion->AddSectionDictionary("QUESTION")->SetValue("TEXT", q);
    for (const Level& level : c.criterion->levels) {
      auto* row = criterion->AddSectionDictionary("LEVEL");
      row->SetValue("RANGE", range_text(level));
      row->SetValue("NAME", level.name);
      row->SetValue("TEXT", level.text);
    }
  }
  return templates.expand("sheet.tpl", dict);
}

}  // namespace

Result<std::vector<ReportFile>> render_score_sheet(const ReportInput& input, const ScoreSheet& sheet,
                                                   Audience audience) {
  CAPSTONE_TRY(std::string html, sheet_html(input, sheet, audience));
  return std::vector<ReportFile>{{"score_sheet.md", sheet_markdown(input, sheet, audience)},
                                 {"score_sheet.html", std::move(html)},
                                 {"score_sheet.json", sheet_json(input, sheet, audience)}};
}

}  // namespace capstone
