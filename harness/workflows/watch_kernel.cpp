#include "harness/workflows/watch_kernel.h"

#include <chrono>

#include "harness/base/digest.h"
#include "harness/base/subprocess.h"
#include "harness/project/included.h"
#include "harness/workflows/report.h"

namespace capstone::workflows {
namespace {

// How often the files are read though no event came: network file systems send none.
constexpr std::chrono::milliseconds kLookAgain{2000};

// The content of all files that the kernel is made of. Events say only when to look: an editor also touches
// backups and swap files.
struct Content {
  std::string source;  ///< digest
  std::vector<IncludedFile> included;
  bool operator==(const Content&) const = default;
};

// None: the file is not there, or not readable, at this moment.
std::optional<Content> content_of(const TriedKernel& kernel) {
  auto digest = sha256_file(kernel.source);
  auto included = included_files(kernel.root, kernel.source);
  if (!digest || !included) return std::nullopt;
  return Content{*digest, *included};
}

void watch_folders(FileWatch& watch, const TriedKernel& kernel, const std::optional<Content>& content) {
  (void)watch.add(kernel.root);
  (void)watch.add(
      kernel.source.parent_path());  // it may be missing for a moment, too; kLookAgain tries again
  if (!content) return;
  for (const IncludedFile& file : content->included) (void)watch.add((kernel.root / file.path).parent_path());
}

}  // namespace

Result<void> watch_kernel(const TryRequest& request, const Workspace& workspace, const ProgressSink& progress,
                          const WatchSink& sink) {
  CAPSTONE_TRY(const TriedKernel kernel, kernel_to_try(request, workspace));
  const auto worklog = [&kernel] { return sha256_file(kernel.root / "worklog.md").value_or(""); };
  std::string reviewed = worklog();
  CAPSTONE_TRY(FileWatch watch, FileWatch::make());
  std::optional<Content> tried;
  bool told = false;  // that the file is gone
  while (!interrupted()) {
    const std::optional<Content> now = content_of(kernel);
    watch_folders(watch, kernel, now);
    if (const std::string saved = worklog(); saved != reviewed) {
      reviewed = saved;
      if (!saved.empty()) sink.reviewed(review_here(workspace));
    }
    if (now && now != tried) {
      const auto outcome = try_kernel(request, kernel, workspace, progress);
      if (interrupted()) break;
      if (!outcome && content_of(kernel) == now) return fail(outcome.error());
      if (!outcome) continue;  // it was saved or vanished while it was read
      sink.tried(*outcome);
      tried = now;
      told = false;
      continue;  // it may have been saved during the run
    }
    if (!now && !told && !watch.wait(std::chrono::milliseconds(500)) && !content_of(kernel)) {
      sink.gone(kernel);
      told = true;
      tried.reset();
      continue;
    }
    watch.wait(kLookAgain);
  }
  return {};
}

}  // namespace capstone::workflows
