#include "harness/workflows/book.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "harness/analysis/explain/explain.h"
#include "harness/analysis/ladder/ladder.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/model/problem.h"
#include "templates/book_page.h"
#include "templates/explanation_page.h"
#include "templates/ladder_page.h"

namespace capstone::workflows {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndex = "index.html";
constexpr const char* kHeading = "<h1>The ladder book</h1>";

Result<fs::path> book_folder(const Workspace& workspace, const std::string& name) {
  const fs::path folder = workspace.cwd / name;
  std::error_code code;
  if (!fs::exists(folder, code)) return folder;
  if (!fs::is_directory(folder, code)) return fail("not a folder", folder.string(), "name a new folder");
  if (fs::is_empty(folder, code)) return folder;
  const auto index = read_file(folder / kIndex);
  if (!index || index->find(kHeading) == std::string::npos)
    return fail("the folder holds other files, and no ladder book", folder.string(), "name a new folder");
  return folder;
}

Result<BookLadder> book_ladder(const std::string& id, const Problem& problem,
                               const std::vector<Ladder>& recorded, const Workspace& workspace) {
  CAPSTONE_TRY(const auto rungs, rungs_of(workspace.resources, id));
  const bool of_languages = id != problem.id;
  BookLadder ladder;
  ladder.problem = id;
  ladder.title = problem.title + (of_languages ? ", in several languages" : "");
  ladder.sessions = join(problem.sessions, " ");
  ladder.precision = problem.precision;
  std::string below;
  for (const Rung& rung : rungs) {
    CAPSTONE_TRY(std::string text, read_file(rung.source));
    BookRung one{rung, text, below, {}, {}};
    const std::string digest = code_digest(text, is_python_rung(rung.source));
    for (const Ladder& there : recorded) {
      if (there.problem != id) continue;
      ladder.recorded = true;
      for (std::size_t i = 0; i < there.steps.size(); ++i)
        if (there.steps[i].rung.name == rung.name)
          one.times.push_back({&there, i, there.steps[i].code_sha256 != digest});
    }
    if (!of_languages) below = std::move(text);  // another language's lines are all new
    ladder.rungs.push_back(std::move(one));
  }
  return ladder;
}

void count(BookLadder& ladder, const Problem& problem, Book& book, const Workspace& workspace,
           const ProgressSink& progress) {
  for (BookRung& rung : ladder.rungs) {
    const std::string name = ladder.problem + "/" + rung.rung.name;
    report_step(progress, "counting " + name);
    auto counts = explain({&problem, rung.rung.source, problem.emulate, {}, true}, workspace.resources,
                          [](const std::string&) {});
    if (counts)
      rung.counts = std::move(*counts);
    else
      book.notes.push_back(name + ": not counted: " + counts.error().what);
  }
}

}  // namespace

Result<Book> write_book(const BookRequest& request, const Workspace& workspace,
                        const ProgressSink& progress) {
  CAPSTONE_TRY(const fs::path folder, book_folder(workspace, request.folder));
  CAPSTONE_TRY(std::vector<Ladder> recorded, recorded_everywhere(workspace.resources));
  CAPSTONE_TRY(std::vector<Ladder> of_languages, recorded_everywhere(workspace.resources, "languages"));
  std::move(of_languages.begin(), of_languages.end(), std::back_inserter(recorded));
  const fs::path templates = workspace.resources.templates();
  Book book;
  std::vector<BookLadder> ladders;
  std::vector<std::string> ids = request.problems;
  if (ids.empty()) {
    ids = ladders_of(workspace.resources, "");
    for (std::string& id : language_ladders(workspace.resources, "")) ids.push_back(std::move(id));
  }
  for (const std::string& id : ids) {
    CAPSTONE_TRY(const LadderDefinition definition, ladder_definition(workspace.resources, id));
    CAPSTONE_TRY(const Problem problem, find_problem(workspace.resources.problems(), definition.problem));
    CAPSTONE_TRY(BookLadder ladder, book_ladder(id, problem, recorded, workspace));
    if (request.counts && id == problem.id) count(ladder, problem, book, workspace, progress);
    ladders.push_back(std::move(ladder));
  }
  std::error_code code;
  fs::create_directories(folder, code);
  if (code) return fail("cannot make the folder: " + code.message(), folder.string());
  for (const BookLadder& ladder : ladders) {
    report_step(progress, "writing " + ladder.problem);
    if (ladder.recorded) {
      std::vector<Ladder> own;
      for (const Ladder& there : recorded)
        if (there.problem == ladder.problem) own.push_back(there);
      CAPSTONE_TRY(const std::string page, ladder_page(own, true, templates));
      CAPSTONE_CHECK(write_file_atomic(folder / book_file(ladder), page));
    }
    for (std::size_t i = 0; i < ladder.rungs.size(); ++i) {
      const BookRung& rung = ladder.rungs[i];
      CAPSTONE_TRY(const std::string page, book_rung_page(ladder, i, templates));
      CAPSTONE_CHECK(write_file_atomic(folder / book_file(ladder, rung.rung), page));
      if (rung.counts) {
        CAPSTONE_TRY(const std::string counted, explanation_page(*rung.counts, rung.rung.source, templates));
        CAPSTONE_CHECK(write_file_atomic(folder / book_counts_file(ladder, rung.rung), counted));
      }
      ++book.rungs;
    }
  }
  book.ladders = ladders.size();
  book.index = folder / kIndex;
  CAPSTONE_TRY(const std::string index, book_index(ladders, workspace.resources.version, templates));
  CAPSTONE_CHECK(write_file_atomic(book.index, index));
  return book;
}

}  // namespace capstone::workflows
