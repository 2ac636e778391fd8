// Pages for the class: leaderboards, slides, certificates, the handout.
#include <ctemplate/template_dictionary.h>
#include <fmt/format.h>

#include <algorithm>

#include "harness/base/text.h"
#include "rubric/worklog.h"
#include "templates/cohort_pages.h"
#include "templates/page.h"

namespace capstone {
namespace {

using Dictionary = ctemplate::TemplateDictionary;

std::string interval_text(const Interval& i) {
  return fmt::format("{} to {}", format_speedup(i.low), format_speedup(i.high));
}

std::string problem_text(const std::string& id) { return replace_all(id, "_", " "); }

void fill_side(Dictionary& slide, const char* kind, const char* label, const Outcome* o) {
  auto* side = slide.AddSectionDictionary("SIDE");
  side->SetValue("KIND", kind);
  side->SetValue("LABEL", label);
  if (!o) {
    side->SetValue("BIG", "none");
    side->SetValue("SMALL", "no kernel was judged");
    return;
  }
  const bool timed = o->correct && o->speedup;
  side->SetValue("BIG", timed ? format_speedup(o->speedup->point) : o->gate_one);
  const std::string of_peak =
      timed && o->percent_of_peak > 0 ? fmt::format(", {:.0f} % of the peak", o->percent_of_peak) : "";
  side->SetValue("SMALL", timed ? fmt::format("{}, {}{}", o->gate_two, interval_text(*o->speedup), of_peak)
                          : o->correct ? "correct; not timed here"
                                       : "did not pass gate one");
}

std::string ask(const ResultSummary& s) {
  const Outcome *human = s.of("human"), *model = s.of("llm");
  if (human && !human->correct) return "How does the failing case differ from the others?";
  if (model && !model->correct)
    return "What did the model get wrong, and would you have noticed it by reading the code?";
  const bool both = human && model && human->speedup && model->speedup;
  if (both && human->speedup->high < model->speedup->low)
    return "The model's kernel is faster. By which mechanism?";
  if (both && model->speedup->high < human->speedup->low)
    return "The human kernel is faster. By which mechanism?";
  return "What percentage of the hardware's peak is this, and why not more?";
}

// The largest font size at which a name fits on its line. East Asian characters are about twice as wide as
// Latin ones.
int name_size(const std::string& name) {
  double width = 0;
  for (std::size_t i = 0; i < name.size();) {
    const auto byte = static_cast<unsigned char>(name[i]);
    const std::size_t length = byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
    width += length >= 3 ? 1.05 : 0.58;
    i += length;
  }
  return std::clamp(static_cast<int>(880 / std::max(1.0, width)), 12, 64);
}

// Hebrew, Arabic and related scripts are written from right to left.
const char* direction_of(const std::string& name) {
  for (std::size_t i = 0; i + 1 < name.size(); ++i) {
    const auto a = static_cast<unsigned char>(name[i]), b = static_cast<unsigned char>(name[i + 1]);
    const unsigned code = a >= 0xC0 && a < 0xE0 ? (a & 31u) << 6 | (b & 63u) : 0;
    if (code >= 0x590 && code <= 0x7FF) return "rtl";
  }
  return "ltr";
}

}  // namespace

Result<std::string> leaderboard_page(const std::vector<Board>& boards, const std::string& title,
                                     const std::filesystem::path& templates) {
  PageTemplates pages(templates / "html");
  Dictionary dict("leaderboard");
  CAPSTONE_TRY(std::string css, pages.style());
  dict.SetValue("CSS", css);
  dict.SetValue("TITLE", to_utf8(title));
  dict.SetValue("RULE", kNotTheGrade);
  if (boards.empty()) dict.ShowSection("EMPTY");
  for (const Board& board : boards) {
    auto* b = dict.AddSectionDictionary("BOARD");
    b->SetValue("PROBLEM", to_utf8(problem_text(board.problem)));
    b->SetValue("DEVICE", to_utf8(board.device));
    for (const BoardEntry& entry : board.entries) {
      auto* row = b->AddSectionDictionary("ENTRY");
      row->SetIntValue("RANK", entry.rank);
      row->SetValue("WHO", to_utf8(entry.shown));
      row->SetValue("POINT", format_speedup(entry.human.point));
      row->SetValue("INTERVAL", interval_text(entry.human));
      row->SetValue("MODEL", entry.model ? format_speedup(entry.model->point) : entry.model_verdict);
    }
    for (const auto& [what, why] : {std::pair{"Closest prediction.", &board.closest_prediction},
                                    std::pair{"Best-explained loss.", &board.best_explained_loss}}) {
      if (!*why) continue;
      auto* award = b->AddSectionDictionary("AWARD");
      award->SetValue("WHAT", what);
      award->SetValue("WHY", to_utf8(**why));
    }
  }
  return pages.expand("leaderboard.tpl", dict);
}

Result<std::string> present_page(const std::vector<GradebookRow>& rows,
                                 const std::map<std::string, ResultSummary>& summaries,
                                 const std::vector<std::string>& running_order, const std::string& title,
                                 const std::filesystem::path& templates) {
  PageTemplates pages(templates / "html");
  Dictionary dict("present");
  CAPSTONE_TRY(std::string css, pages.style());
  dict.SetValue("CSS", css);
  dict.SetValue("TITLE", to_utf8(title));
  static const ResultSummary kNothing;
  struct Team {
    std::vector<std::string> people;
    std::string problem;
  };
  std::map<std::string, Team> teams;
  for (const GradebookRow& row : rows) {
    teams[row.submission].people.push_back(row.person.name);
    teams[row.submission].problem = row.problem;
  }
  int number = 0;
  for (const std::string& submission : running_order) {
    const Team& team = teams[submission];
    auto found = summaries.find(submission);
    const ResultSummary& summary = found == summaries.end() ? kNothing : found->second;
    auto* slide = dict.AddSectionDictionary("SLIDE");
    slide->SetFormattedValue("ANCHOR", "s%d", ++number);
    slide->SetIntValue("NUMBER", number);
    slide->SetIntValue("ALL", static_cast<long>(running_order.size()));
    slide->SetValue("WHO", to_utf8(join(team.people, ", ")));
    slide->SetValue("PROBLEM", to_utf8(problem_text(team.problem)));
    if (const Outcome* human = summary.of("human"); human && !human->device.empty())
      slide->AddSectionDictionary("DEVICE")->SetValue("NAME", human->device);
    fill_side(*slide, "human", "By hand", summary.of("human"));
    fill_side(*slide, "llm", "The model", summary.of("llm"));
    if (const Outcome* both = summary.of("together")) fill_side(*slide, "together", "Together", both);
    slide->SetValue("ASK", ask(summary));
  }
  return pages.expand("present.tpl", dict);
}

Result<std::string> certificate_svg(const Certificate& certificate, const CertificateText& text,
                                    const std::filesystem::path& templates) {
  PageTemplates pages(templates / "html");
  Dictionary dict("certificate");
  const std::string name = to_utf8(certificate.name);
  dict.SetValue("NAME", name);
  dict.SetIntValue("NAME_SIZE", name_size(name));
  dict.SetValue("DIRECTION", direction_of(name));
  dict.SetValue("PROBLEM", to_utf8(certificate.problem));
  dict.SetValue("COURSE", to_utf8(text.course));
  dict.SetValue("DATE", to_utf8(text.date));
  dict.SetValue("SIGNATORY", to_utf8(text.signatory));
  if (!text.logo.empty()) dict.AddSectionDictionary("LOGO")->SetValue("DATA", text.logo);
  CAPSTONE_TRY(std::string svg, pages.expand("certificate.tpl", dict));
  return std::string(trim(svg)) + "\n";
}

Result<std::string> certificates_page(const std::vector<Certificate>& certificates,
                                      const CertificateText& text, const std::filesystem::path& templates) {
  PageTemplates pages(templates / "html");
  Dictionary dict("certificates");
  dict.SetValue("TITLE", to_utf8("Certificates: " + text.course));
  for (const Certificate& certificate : certificates) {
    CAPSTONE_TRY(std::string svg, certificate_svg(certificate, text, templates));
    dict.AddSectionDictionary("CERTIFICATE")->SetValue("SVG", svg);
  }
  return pages.expand("certificates.tpl", dict);
}

Result<std::string> handout_page(const Rubric& rubric, const std::filesystem::path& templates) {
  PageTemplates pages(templates / "html");
  Dictionary dict("handout");
  CAPSTONE_TRY(std::string css, pages.style());
  dict.SetValue("CSS", css);
  dict.SetValue("TITLE", "You vs the machine");
  dict.SetValue("RULE",
                "Speed alone earns no marks. A race that is lost and reported honestly can still earn 100.");
  dict.SetValue("RUBRIC", rubric.digest.substr(0, 12));
  for (const SectionSpec& section : worklog_sections()) {
    auto* s = dict.AddSectionDictionary("SECTION");
    s->SetValue("TITLE", std::string(section.title));
    s->SetValue("PURPOSE", std::string(section.purpose));
  }
  if (!rubric.criteria.empty())
    for (const Level& level : rubric.criteria.front().levels)
      dict.AddSectionDictionary("LEVEL")->SetValue("NAME", level.name);
  for (const Criterion& criterion : rubric.criteria) {
    auto* c = dict.AddSectionDictionary("CRITERION");
    c->SetValue("TITLE", criterion.title);
    c->SetIntValue("WEIGHT", criterion.weight);
    for (const Level& level : criterion.levels) {
      auto* cell = c->AddSectionDictionary("CELL");
      cell->SetValue("RANGE", fmt::format("{:g}–{:g}", level.from, level.to));
      cell->SetValue("TEXT", level.text);
    }
    for (const std::string& question : criterion.questions)
      dict.AddSectionDictionary("QUESTION")->SetValue("TEXT", question);
  }
  return pages.expand("handout.tpl", dict);
}

}  // namespace capstone
