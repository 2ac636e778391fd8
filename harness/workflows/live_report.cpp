#include "harness/workflows/live_report.h"

#include <chrono>
#include <map>
#include <tuple>

#include "harness/base/digest.h"
#include "harness/base/file_watch.h"
#include "harness/base/subprocess.h"
#include "harness/workflows/page_server.h"
#include "harness/workflows/report.h"
#include "templates/live_page.h"

namespace capstone::workflows {
namespace {

using std::chrono::milliseconds;

// How often the files are looked at though no event came: network file systems send none.
constexpr milliseconds kLookAgain{2000};

// What the report is made of: the time and the size of each file. Events say only when to look: an editor
// also touches backups, and a log in the project's folder must not render the report for ever.
using Sources = std::map<fs::path, std::tuple<fs::file_time_type, std::uintmax_t>>;

void note(Sources& sources, const fs::path& file) {
  std::error_code code;
  const auto time = fs::last_write_time(file, code);
  if (code) return;
  const auto size = fs::file_size(file, code);
  if (!code) sources[file] = {time, size};
}

std::vector<fs::path> code_folders(const fs::path& root) {
  std::vector<fs::path> folders{root / "human", root / "llm", root / "together"};
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(root / "llm", code))
    if (entry.is_directory(code)) folders.push_back(entry.path());
  return folders;
}

Sources sources_of(const fs::path& root) {
  Sources sources;
  for (const char* file :
       {"worklog.md", "capstone.yaml", ".capstone/ledger.jsonl", ".capstone/ledger.jsonl.gz"})
    note(sources, root / file);
  std::error_code code;
  for (const fs::path& folder : code_folders(root))
    for (const auto& entry : fs::directory_iterator(folder, code)) note(sources, entry.path());
  return sources;
}

Sources without_worklog(Sources sources) {
  std::erase_if(sources, [](const auto& source) { return source.first.filename() == "worklog.md"; });
  return sources;
}

// A folder may be missing for a moment; kLookAgain tries again.
void watch_folders(FileWatch& watch, const fs::path& root) {
  for (const fs::path& folder : {root, root / ".capstone"}) (void)watch.add(folder);
  for (const fs::path& folder : code_folders(root)) (void)watch.add(folder);
}

// The newest report that could be rendered, and why a newer one could not.
class Live {
 public:
  explicit Live(const Workspace& workspace) : workspace_(workspace) {}

  // Only the worklog may have changed since the last rendering, unless `anew`.
  LiveRendering render(bool anew) {
    const auto began = std::chrono::steady_clock::now();
    LiveRendering rendering;
    if (anew) plots_.clear();
    auto report = render_report_here(workspace_, plots_);
    if (report) {
      last_ = std::move(*report);
      rendering.findings = last_.findings;
    } else {
      rendering.problem = report.error();
    }
    problem_ = rendering.problem;
    rendering.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return rendering;
  }

  Result<ServedPages> pages() const {
    std::string all = problem_ ? capstone::render(*problem_) : "";
    for (const ReportFile& file : last_.files) all += file.name + '\0' + file.bytes + '\0';
    ServedPages pages{{}, "worklog.html", sha256_hex(all)};
    CAPSTONE_TRY(pages.files[kLiveScript],
                 read_file(workspace_.resources.templates() / "html" / kLiveScript));
    pages.files[pages.front];  // also where nothing could be rendered yet
    for (const ReportFile& file : last_.files) pages.files[file.name] = file.bytes;
    for (auto& [name, bytes] : pages.files)
      if (name.ends_with(".html")) {
        CAPSTONE_TRY(bytes, live_page(std::move(bytes), pages.version, problem_));
      }
    return pages;
  }

 private:
  const Workspace& workspace_;
  ReportFiles last_;
  std::vector<Plot> plots_;
  std::optional<Error> problem_;
};

}  // namespace

Result<void> serve_report(int port, const Workspace& workspace,
                          const std::function<void(const std::string& url, int port)>& ready,
                          const std::function<void(const LiveRendering&)>& rendered) {
  CAPSTONE_TRY(const Project project, project_here(workspace));
  CAPSTONE_TRY(FileWatch watch, FileWatch::make());
  watch_folders(watch, project.root);
  Sources shown = sources_of(project.root);
  Live live(workspace);
  rendered(live.render(true));
  CAPSTONE_TRY(ServedPages first, live.pages());
  CAPSTONE_TRY(PageServer server, PageServer::start(port, std::move(first)));
  ready(server.url(), server.port());
  while (!interrupted()) {
    watch_folders(watch, project.root);
    if (Sources now = sources_of(project.root); now != shown) {
      const bool anew = without_worklog(now) != without_worklog(shown);
      shown = std::move(now);
      const LiveRendering rendering = live.render(anew);
      if (interrupted()) break;  // which also ended the programs that draw
      CAPSTONE_TRY(ServedPages pages, live.pages());
      server.show(std::move(pages));
      rendered(rendering);
      continue;  // it may have been saved during that time
    }
    watch.wait(kLookAgain);
  }
  return {};
}

}  // namespace capstone::workflows
