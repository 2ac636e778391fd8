// `export`: published marks for a learning platform; a Triton kernel as CUDA.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <set>

#include "cli/context.h"
#include "cli/judge_flags.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/course/gradebook/exports.h"
#include "harness/workflows/cohort.h"
#include "harness/workflows/export_kernel.h"

namespace capstone::cli {
namespace {

struct ExportArguments {
  std::string file, cohort = "graded", column, out;
  bool drafts = false;
};

struct Marks {
  workflows::OpenCohort cohort;
  std::vector<GradebookRow> rows;
};

Result<Marks> open_marks(const Context& context, const ExportArguments& arguments) {
  CAPSTONE_TRY(workflows::OpenCohort cohort, workflows::open_cohort(context, arguments.cohort));
  std::vector<GradebookRow> rows;
  if (arguments.drafts) {
    CAPSTONE_TRY(rows, cohort.book.rows(cohort.rubric));
  } else {
    CAPSTONE_TRY(rows, cohort.book.published_rows(cohort.rubric));
  }
  const bool any =
      std::any_of(rows.begin(), rows.end(), [](const GradebookRow& row) { return row.total().has_value(); });
  if (!any)
    return fail("no marks to export", cohort.folder.string(),
                arguments.drafts ? "capstone mark --next"
                                 : "capstone gradebook publish; or --drafts for what is not published yet");
  return Marks{std::move(cohort), std::move(rows)};
}

using Filler = Result<FilledTable> (*)(const std::string& text, const std::string& file,
                                       const ExportArguments& arguments,
                                       const std::vector<OutgoingMark>& marks);

Result<ExitCode> fill(const Context& context, const ExportArguments& arguments, Filler filler) {
  CAPSTONE_TRY(Marks marks, open_marks(context, arguments));
  CAPSTONE_TRY(auto summaries, marks.cohort.book.summaries());
  std::vector<std::string> left_out;
  const auto outgoing = outgoing_marks(marks.rows, marks.cohort.rubric, summaries, left_out);
  const fs::path file = context.cwd / arguments.file;
  CAPSTONE_TRY(std::string text, read_file(file, 64u << 20));
  CAPSTONE_TRY(FilledTable filled, filler(text, arguments.file, arguments, outgoing));
  const fs::path out = context.cwd / arguments.out;
  CAPSTONE_CHECK(write_file_atomic(out, filled.text));
  for (const std::string& note : filled.notes) context.terminal.out(to_utf8(note));
  for (const std::string& note : left_out) context.terminal.out(to_utf8(note));
  context.terminal.out(
      fmt::format("{}: {} of {} marks filled in", out.string(), filled.filled, outgoing.size()));
  return ExitCode::kDone;
}

Result<ExitCode> to_gradescope(const Context& context, const ExportArguments& arguments) {
  CAPSTONE_TRY(Marks marks, open_marks(context, arguments));
  const fs::path out = context.cwd / arguments.out;
  std::map<std::string, std::string> written;  // submission → results, to see whether a member's differ
  int files = 0;
  for (const GradebookRow& row : marks.rows) {
    if (!row.total()) {
      context.terminal.out(fmt::format("{}, {}: not fully marked", row.submission, row.person.name));
      continue;
    }
    const std::string json =
        gradescope_results(row, marks.cohort.rubric).dump(2, ' ', false, Json::error_handler_t::replace) +
        "\n";
    auto [first, fresh] = written.try_emplace(row.submission, json);
    if (!fresh && first->second == json) continue;
    // Gradescope has one result for a group; a member with other marks gets them by hand.
    const fs::path place = fresh ? out / row.submission : out / fmt::format("{}~{}", row.submission, ++files);
    CAPSTONE_CHECK(make_folders(place));
    CAPSTONE_CHECK(write_file_atomic(place / "results.json", json));
    if (!fresh)
      context.terminal.out(fmt::format("{} has other marks than the group: {}", row.person.name,
                                       (place / "results.json").string()));
  }
  context.terminal.out(fmt::format("{}: {} results.json", out.string(), written.size()));
  return ExitCode::kDone;
}

Result<ExitCode> to_csv(const Context& context, const ExportArguments& arguments) {
  CAPSTONE_TRY(Marks marks, open_marks(context, arguments));
  std::string text = marks_csv(marks.rows, marks.cohort.rubric);
  if (arguments.out.empty()) {
    context.terminal.out(text.substr(0, text.size() - 1));  // out() ends the last line itself
    return ExitCode::kDone;
  }
  CAPSTONE_CHECK(write_file_atomic(context.cwd / arguments.out, text));
  context.terminal.out((context.cwd / arguments.out).string());
  return ExitCode::kDone;
}

Result<ExitCode> to_cuda(const Context& context, const workflows::ExportKernelRequest& request) {
  CAPSTONE_TRY(const auto done, workflows::export_kernel(request, context, context.progress()));
  const ExportedKernel& kernel = done.kernel;
  context.terminal.out(fmt::format("{}: {} kernel{} of Triton {} for {}", done.file.string(), kernel.kernels,
                                   kernel.kernels == 1 ? "" : "s", kernel.triton, done.arch));
  context.terminal.out(
      kernel.covered == done.sets
          ? fmt::format("launch() has a version for each of {} sets of sizes", done.sets)
          : fmt::format("launch() has a version for {} of {} sets of sizes, and throws at the "
                        "others: a constant of the kernel follows a size",
                        kernel.covered, done.sets));
  return ExitCode::kDone;
}

void add_kernel(CLI::App& command, Context& context, Action& action) {
  auto* sub = command.add_subcommand(
      "kernel", "a Triton kernel as a .cu: its compiled code, and a launch() that does what forward() did");
  auto r = std::make_shared<workflows::ExportKernelRequest>();
  sub->add_option("file", r->file, "a .py with class ModelNew")->required();
  sub->add_option("--problem", r->problem, "the problem that it solves (default: the project's)");
  sub->add_option("--out", r->out, "the .cu file (default launch.cu)");
  sub->add_option("--arch", r->arch,
                  "what to compile for: sm_90a (default: this machine's GPU, else sm_90a)");
  sub->add_option("--python", r->python, "the python3 with PyTorch and Triton (default: the first on PATH)")
      ->type_name("PATH");
  sub->add_option("--python-path", r->python_path,
                  "folders with further packages for it, separated by colons: unpacked wheels")
      ->type_name("DIR");
  sub->callback([&context, &action, r] { action = [&context, r] { return to_cuda(context, *r); }; });
}

}  // namespace

void add_export(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand("export",
                                     "a Triton kernel as CUDA; for mentors: published marks for Canvas, "
                                     "Moodle, Gradescope or a spreadsheet");
  auto a = std::make_shared<ExportArguments>();
  command->require_subcommand(1);
  add_kernel(*command, context, action);
  auto add = [&](const char* name, const char* about) {
    auto* sub = command->add_subcommand(name, about);
    add_cohort_option(*sub, a->cohort);
    sub->add_flag("--drafts", a->drafts, "include unpublished marks");
    return sub;
  };
  auto* canvas = add("canvas", "fill in a gradebook exported from Canvas; nothing else in it changes");
  canvas->add_option("file", a->file, "Canvas: Grades > Export > Export Entire Gradebook")->required();
  canvas->add_option("--column", a->column, "the heading of the assignment's column")->required();
  canvas->add_option("--out", a->out, "the filled file, to be imported")->required();
  auto* moodle =
      add("moodle", "fill in a grading worksheet exported from Moodle; nothing else in it changes");
  moodle->add_option("file", a->file, "Moodle: Submissions > Download grading worksheet")->required();
  moodle->add_option("--out", a->out, "the filled file, to be uploaded")->required();
  auto* gradescope = add("gradescope", "a results.json for each submission");
  gradescope->add_option("--out", a->out, "a folder")->required();
  auto* csv = add("csv", "name, id, e-mail, each criterion, total, comment");
  csv->add_option("--out", a->out, "a file (default: standard output)");
  canvas->callback([&context, &action, a] {
    action = [&context, a] {
      return fill(context, *a,
                  [](const auto& text, const auto& file, const auto& arguments, const auto& marks) {
                    return fill_canvas(text, file, arguments.column, marks);
                  });
    };
  });
  moodle->callback([&context, &action, a] {
    action = [&context, a] {
      return fill(context, *a, [](const auto& text, const auto& file, const auto&, const auto& marks) {
        return fill_moodle(text, file, marks);
      });
    };
  });
  gradescope->callback(
      [&context, &action, a] { action = [&context, a] { return to_gradescope(context, *a); }; });
  csv->callback([&context, &action, a] { action = [&context, a] { return to_csv(context, *a); }; });
}

}  // namespace capstone::cli
