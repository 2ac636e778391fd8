#include "harness/project/lab/progress.h"

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/model/fields.h"

namespace capstone {

std::string LabProgress::state() const {
  if (passed) return helped() ? "passed after giving up" : "passed";
  return given_up.empty() ? "begun" : "gave up";
}

fs::path progress_file(const fs::path& folder) { return folder / "lab.json"; }

Result<LabProgress> read_progress(const fs::path& folder) {
  const fs::path file = progress_file(folder);
  const std::string hint = "`capstone lab ID DIR` makes the folder of a lab";
  CAPSTONE_TRY(const std::string text, read_file(file, 1u << 20));
  const Json json = parse_json(text);
  if (!json.is_object()) return fail("this is not the lab.json of a lab's folder", file.string(), hint);
  LabProgress progress;
  try {
    read(json, "lab", progress.lab);
    read(json, "started", progress.started);
    read(json, "exercise_sha256", progress.exercise_sha256);
    read(json, "hints", progress.hints);
    read(json, "given_up", progress.given_up);
    LabProgress::Pass pass;
    if (read_with<LabProgress::Pass>(json, "passed", pass, [](const Json& from) {
          LabProgress::Pass one;
          read(from, "time", one.time);
          read(from, "source_sha256", one.source_sha256);
          return one;
        }))
      progress.passed = pass;
  } catch (const WrongType& wrong) {
    return fail(wrong.what(), file.string(),
                "make the lab again in a new folder, and copy your kernel.cu there");
  }
  if (progress.lab.empty()) return fail("this lab.json does not say which lab it is", file.string(), hint);
  return progress;
}

Result<void> write_progress(const fs::path& folder, const LabProgress& progress) {
  Json json{{"lab", progress.lab},
            {"started", progress.started},
            {"exercise_sha256", progress.exercise_sha256},
            {"hints", progress.hints}};
  if (progress.passed)
    json["passed"] = {{"time", progress.passed->time}, {"source_sha256", progress.passed->source_sha256}};
  if (!progress.given_up.empty()) json["given_up"] = progress.given_up;
  return write_file_atomic(progress_file(folder), json.dump(2) + "\n");
}

std::optional<fs::path> lab_folder(fs::path folder) {
  std::error_code code;
  for (folder = fs::absolute(folder, code).lexically_normal(); !folder.empty();
       folder = folder.parent_path()) {
    if (fs::is_regular_file(progress_file(folder), code)) return folder;
    if (folder == folder.parent_path()) break;
  }
  return std::nullopt;
}

}  // namespace capstone
