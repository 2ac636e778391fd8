// What a mentor shows to a class: `leaderboard`, `present`, `certificate`, `handout`.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <set>

#include "cli/context.h"
#include "cli/judge_flags.h"
#include "harness/base/files.h"
#include "harness/base/spelling.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"
#include "harness/course/gradebook/eligibility.h"
#include "harness/course/gradebook/leaderboard.h"
#include "harness/workflows/cohort.h"
#include "harness/workflows/output_path.h"
#include "templates/cohort_pages.h"
#include "templates/encode.h"

namespace capstone::cli {
namespace {

struct ViewArguments {
  std::string cohort = "graded", out, title, order, rubric;
  bool names = false;
};

Result<ExitCode> written(const Context& context, const std::string& name, const std::string& text) {
  CAPSTONE_TRY(const fs::path file, workflows::output_path(context, name, workflows::Output::kPage));
  CAPSTONE_CHECK(make_folders(file.parent_path()));
  CAPSTONE_CHECK(write_file_atomic(file, text));
  context.terminal.out(file.string());
  return ExitCode::kDone;
}

Result<ExitCode> leaderboard(const Context& context, const ViewArguments& arguments) {
  CAPSTONE_TRY(workflows::OpenCohort cohort, workflows::open_cohort(context, arguments.cohort));
  CAPSTONE_TRY(auto rows, cohort.book.rows(cohort.rubric));
  CAPSTONE_TRY(auto summaries, cohort.book.summaries());
  const auto boards = leaderboards(rows, cohort.rubric, summaries, arguments.names);
  if (!arguments.out.empty()) {
    CAPSTONE_TRY(std::string page, leaderboard_page(boards, arguments.title, context.resources.templates()));
    return written(context, arguments.out, page);
  }
  const Terminal& t = context.terminal;
  for (const Board& board : boards) {
    t.out(t.paint(Tone::kBold, to_utf8(fmt::format("{} on {}", board.problem, board.device))));
    Table table({"rank", "who", "by hand", "95 % interval", "their model"}, {true, false, true, false, true});
    for (const BoardEntry& e : board.entries)
      table.row({std::to_string(e.rank), to_utf8(e.shown), format_speedup(e.human.point),
                 fmt::format("{} to {}", format_speedup(e.human.low), format_speedup(e.human.high)),
                 e.model ? format_speedup(e.model->point) : e.model_verdict});
    t.out(table.text(t));
    if (board.closest_prediction) t.out("closest prediction: " + to_utf8(*board.closest_prediction));
    if (board.best_explained_loss) t.out("best-explained loss: " + to_utf8(*board.best_explained_loss));
  }
  if (boards.empty()) t.out("no kernel of this cohort was timed on a GPU: there is nothing to rank");
  t.out(kNotTheGrade);
  return ExitCode::kDone;
}

// The order of the file, one submission a line; without a file by name.
Result<std::vector<std::string>> running_order(const Context& context, const std::string& file,
                                               const std::vector<std::string>& names) {
  if (file.empty()) return names;
  CAPSTONE_TRY(std::string text, read_file(context.cwd / file, 1u << 20));
  std::vector<std::string> order;
  int line = 0;
  for (const std::string& raw : split(text, '\n')) {
    ++line;
    const std::string name(trim(raw));
    if (name.empty() || name.starts_with("#")) continue;
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      auto near = nearest(name, names);
      return fail("no submission is called '" + to_utf8(name) + "'", fmt::format("{}:{}", file, line),
                  near ? "did you mean '" + *near + "'?" : "`capstone gradebook` lists them");
    }
    order.push_back(name);
  }
  return order;
}

Result<ExitCode> present(const Context& context, const ViewArguments& arguments) {
  CAPSTONE_TRY(workflows::OpenCohort cohort, workflows::open_cohort(context, arguments.cohort));
  CAPSTONE_TRY(auto rows, cohort.book.rows(cohort.rubric));
  CAPSTONE_TRY(auto summaries, cohort.book.summaries());
  std::vector<std::string> names;
  for (const GradebookRow& row : rows)
    if (row.state != "missing" && (names.empty() || names.back() != row.submission))
      names.push_back(row.submission);
  CAPSTONE_TRY(auto order, running_order(context, arguments.order, names));
  CAPSTONE_TRY(std::string page,
               present_page(rows, summaries, order, arguments.title, context.resources.templates()));
  return written(context, arguments.out, page);
}

Result<ExitCode> handout(const Context& context, const ViewArguments& arguments) {
  CAPSTONE_TRY(Rubric rubric,
               load_rubric(arguments.rubric.empty() ? context.resources.share / "rubric" / "rubric.yaml"
                                                    : context.cwd / arguments.rubric));
  CAPSTONE_TRY(std::string page, handout_page(rubric, context.resources.templates()));
  return written(context, arguments.out, page);
}

struct CertificateArguments {
  std::vector<std::string> names;
  std::string cohort = "graded", course, date, signatory, logo, out = "certificates";
  double at_least = 0;
  bool all = false, anyway = false;
};

Result<std::string> logo_uri(const fs::path& file) {
  if (file.empty()) return std::string();
  const std::string ending = file.extension().string();
  const char* type = ending == ".png"                        ? "png"
                     : ending == ".jpg" || ending == ".jpeg" ? "jpeg"
                     : ending == ".svg"                      ? "svg+xml"
                                                             : nullptr;
  if (!type) return fail("unknown image format of the logo", file.string(), "a .png, .jpg or .svg");
  CAPSTONE_TRY(std::string bytes, read_file(file, 4u << 20));
  return fmt::format("data:image/{};base64,{}", type, base64(bytes));
}

std::string file_uri(const fs::path& file) {
  std::string uri = "file://";
  for (const fs::path& part : file.relative_path()) uri += "/" + percent_encoded(part.string());
  return uri;
}

// The letters of a name that no installed font has: a browser prints boxes for them. Asks fontconfig; without
// it nothing is known, and nothing is missing.
std::string without_font(const std::string& name, const std::string& path_variable) {
  std::string missing;
  for (std::size_t at = 0; at < name.size();) {
    std::size_t end = at + 1;
    while (end < name.size() && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) ++end;
    const std::string letter = name.substr(at, end - at);
    at = end;
    if (letter.size() == 1 || missing.find(letter) != std::string::npos) continue;
    unsigned code = static_cast<unsigned char>(letter[0]) & (0xFFu >> (letter.size() + 1));
    for (std::size_t i = 1; i < letter.size(); ++i)
      code = code << 6 | (static_cast<unsigned char>(letter[i]) & 0x3Fu);
    ProcessSpec spec;
    spec.argv = {"fc-list", fmt::format(":charset={:x}", code), "family"};
    if (!find_program("fc-list", path_variable)) return {};
    const auto fonts = run_process(spec);
    if (fonts && fonts->ok() && trim(fonts->out).empty()) missing += letter;
  }
  return missing;
}

// All pages in one PDF, printed by an installed browser.
Result<void> print_pdf(const Context& context, const fs::path& page, const fs::path& pdf) {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
    auto browser = find_program(name, context.resources.path_variable);
    if (!browser) continue;
    ProcessSpec spec;
    const fs::path profile = temporary_beside(page);
    spec.argv = {browser->string(),
                 "--headless",
                 "--no-sandbox",
                 "--disable-gpu",
                 "--no-pdf-header-footer",
                 "--disable-extensions",
                 "--disable-background-networking",
                 "--user-data-dir=" + profile.string(),
                 "--print-to-pdf=" + pdf.string(),
                 file_uri(fs::absolute(page))};
    spec.timeout = std::chrono::seconds(120);
    auto run = run_process(spec);
    std::error_code code;
    fs::remove_all(profile, code);
    if (run && run->ok() && fs::exists(pdf, code)) return {};
    return fail("the browser did not print the certificates", browser->string(),
                "open " + page.string() + " and print it", ExitCode::kEnvironment);
  }
  return fail("no Chromium to make the PDF", pdf.string(),
              "apt-get install chromium; or open " + page.string() + " in any browser and print it",
              ExitCode::kEnvironment);
}

// The certificates of the chosen submissions whose members may have one.
Result<std::vector<Certificate>> eligible(const Context& context, workflows::OpenCohort& cohort,
                                          const CertificateArguments& arguments,
                                          std::vector<std::string>& files) {
  CAPSTONE_TRY(auto names, cohort.book.submissions());
  for (const std::string& wanted : arguments.names)
    if (std::find(names.begin(), names.end(), wanted) == names.end()) {
      auto near = nearest(wanted, names);
      return fail("no submission is called '" + wanted + "'", {},
                  near ? "did you mean '" + *near + "'?" : "`capstone gradebook` lists them");
    }
  CAPSTONE_TRY(auto rows, cohort.book.published_rows(cohort.rubric));
  CAPSTONE_TRY(const auto summaries, cohort.book.summaries());
  std::vector<Certificate> certificates;
  std::map<std::string, int> members;
  std::map<std::string, std::string> titles;  // id → the mentor's title of it
  for (const GradebookRow& row : rows) {
    if (!arguments.all &&
        std::find(arguments.names.begin(), arguments.names.end(), row.submission) == arguments.names.end())
      continue;
    const int member = ++members[row.submission];
    if (const std::string why = why_not_eligible(row, rows, cohort.rubric, summaries, arguments.at_least);
        !why.empty()) {
      context.terminal.out(one_line(fmt::format("{} for {} ({}): {}",
                                                arguments.anyway ? "a certificate anyway" : "no certificate",
                                                row.person.name, row.submission, why)));
      if (!arguments.anyway) continue;
    }
    auto [title, fresh] = titles.try_emplace(row.problem, replace_all(row.problem, "_", " "));
    if (auto problem =
            fresh ? find_problem(context.resources.problems(), row.problem) : Result<Problem>(fail("known")))
      title->second = problem->title;
    certificates.push_back({row.person.name, title->second});
    files.push_back(row.submission + (member > 1 ? "~" + std::to_string(member) : "") + ".svg");
  }
  return certificates;
}

Result<ExitCode> certificate(const Context& context, const CertificateArguments& arguments) {
  if (arguments.all == !arguments.names.empty())
    return fail("no submission chosen", {}, "name submissions, or --all");
  CAPSTONE_TRY(workflows::OpenCohort cohort, workflows::open_cohort(context, arguments.cohort));
  std::vector<std::string> files;
  CAPSTONE_TRY(auto certificates, eligible(context, cohort, arguments, files));
  if (certificates.empty())
    return fail("no eligible student", cohort.folder.string(),
                "marks count once they are published: capstone gradebook publish; --anyway certifies the "
                "submissions that you name all the same");
  CertificateText text{arguments.course,
                       arguments.date.empty() ? utc_now().substr(0, 10) : arguments.date,
                       arguments.signatory,
                       {}};
  CAPSTONE_TRY(text.logo, logo_uri(arguments.logo.empty() ? fs::path() : context.cwd / arguments.logo));
  const fs::path out = (context.cwd / arguments.out).lexically_normal();
  CAPSTONE_CHECK(make_folders(out));
  for (std::size_t i = 0; i < certificates.size(); ++i) {
    CAPSTONE_TRY(std::string svg, certificate_svg(certificates[i], text, context.resources.templates()));
    CAPSTONE_CHECK(write_file_atomic(out / files[i], svg));
  }
  for (const Certificate& one : certificates)
    if (std::string letters = without_font(to_utf8(one.name), context.resources.path_variable);
        !letters.empty())
      context.terminal.out(one_line(fmt::format(
          "warning: {}: no installed font has {}, so it is printed as a box; apt-get install fonts-noto-cjk "
          "fonts-noto-color-emoji fonts-noto-core",
          one.name, letters)));
  CAPSTONE_TRY(std::string page, certificates_page(certificates, text, context.resources.templates()));
  CAPSTONE_CHECK(write_file_atomic(out / "certificates.html", page));
  context.terminal.out(fmt::format("{} certificate{}: {}", certificates.size(),
                                   certificates.size() == 1 ? "" : "s", out.string()));
  CAPSTONE_CHECK(print_pdf(context, out / "certificates.html", out / "certificates.pdf"));
  context.terminal.out((out / "certificates.pdf").string());
  return ExitCode::kDone;
}

}  // namespace

void add_class_views(CLI::App& app, Context& context, Action& action) {
  auto a = std::make_shared<ViewArguments>();
  auto* board = app.add_subcommand(
      "leaderboard",
      "for mentors: one leaderboard for each problem and device, with pseudonyms; not the grade");
  add_cohort_option(*board, a->cohort);
  board->add_flag("--names", a->names, "people instead of pseudonyms");
  board->add_option("--present", a->out, "write a page for the wall")->type_name("FILE.html");
  board->add_option("--title", a->title, "of the page");
  board->callback([&context, &action, a] {
    if (a->title.empty()) a->title = "You vs the machine";
    action = [&context, a] { return leaderboard(context, *a); };
  });

  auto* slides =
      app.add_subcommand("present", "for mentors: a projector page with one screen for each submission");
  add_cohort_option(*slides, a->cohort);
  slides->add_option("--order", a->order,
                     "a file with one submission a line: the running order (default: by name)");
  slides->add_option("--out", a->out, "the page")->required()->type_name("FILE.html");
  slides->add_option("--title", a->title, "of the page");
  slides->callback([&context, &action, a] {
    if (a->title.empty()) a->title = "You vs the machine";
    action = [&context, a] { return present(context, *a); };
  });

  auto* sheet = app.add_subcommand("handout", "the five sections and the rubric on one page to print");
  sheet->add_option("--rubric", a->rubric, "another rubric (default: the course's)");
  sheet->add_option("--out", a->out, "the page")->required()->type_name("FILE.html");
  sheet->callback([&context, &action, a] { action = [&context, a] { return handout(context, *a); }; });

  auto c = std::make_shared<CertificateArguments>();
  auto* paper = app.add_subcommand("certificate", "for mentors: certificates as SVG, one HTML and one PDF");
  paper->add_option("names", c->names,
                    "submissions, as `gradebook` lists them; a team has one for each member");
  auto* all =
      paper->add_flag("--all", c->all,
                      "for every eligible student: graded, no duplicate, everything published for this "
                      "version, a human kernel that passes, honesty above its lowest level");
  paper->add_flag("--anyway", c->anyway, "also where the named submissions are not eligible")->excludes(all);
  add_cohort_option(*paper, c->cohort);
  paper->add_option("--course", c->course, "its name")->required();
  paper->add_option("--signatory", c->signatory, "who signs")->required();
  paper->add_option("--date", c->date, "the printed date (default: today)");
  paper->add_option("--logo", c->logo, "a .png, .jpg or .svg");
  paper->add_option("--at-least", c->at_least, "required published points (default: any published marks)")
      ->check(CLI::Range(0.0, 100.0));
  paper->add_option("--out", c->out, "a folder (default certificates/)");
  paper->callback([&context, &action, c] { action = [&context, c] { return certificate(context, *c); }; });
}

}  // namespace capstone::cli
