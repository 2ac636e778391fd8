#include "harness/workflows/output_path.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/runtime/python/exported_kernel.h"

namespace capstone::workflows {
namespace {

constexpr std::size_t kMaxOutput = std::size_t{256} << 20;  // [B] larger than any output

const char* name_of(Output kind) {
  switch (kind) {
    case Output::kPage:
      return "an HTML page";
    case Output::kArchive:
      return "a .tar.gz archive";
    case Output::kBundle:
      return "a bundle";
    case Output::kCheckIn:
      return "a check-in";
    case Output::kPrompt:
      return "a prompt of capstone";
    case Output::kBench:
      return "JSON of Google Benchmark";
    case Output::kLadders:
      return "a record of ladders";
    case Output::kSelftest:
      return "a record of selftest";
    case Output::kCalibration:
      return "a record of calibrate";
    case Output::kRecords:
      return "a ledger of results";
    case Output::kCurve:
      return "a gnuplot curve";
    case Output::kNcuTable:
      return "an ncu table";
    case Output::kDemo:
      return "a record of a demo";
    case Output::kExportedKernel:
      return "an exported kernel";
  }
  return "";
}

bool is_object_with(std::string_view text, std::initializer_list<const char*> keys) {
  const Json json = parse_json(text);
  return json.is_object() &&
         std::all_of(keys.begin(), keys.end(), [&](const char* key) { return json.contains(key); });
}

// Whether a file's content is of this kind. An empty file (as mktemp makes) may be replaced by anything.
bool is_of_kind(std::string_view text, Output kind) {
  if (trim(text).empty()) return true;
  const std::string_view first_line = text.substr(0, text.find('\n'));
  switch (kind) {
    case Output::kPage:
      return trim(text.substr(0, 64)).starts_with("<!DOCTYPE html>");
    case Output::kArchive:
      return text.starts_with("\x1f\x8b");
    case Output::kBundle:
      return text.size() > 262 && text.substr(257, 5) == "ustar";
    case Output::kCheckIn:
      return is_object_with(text, {"kind", "schema_version", "digest"});
    case Output::kPrompt:
      return text.starts_with("# Write a CUDA kernel: ");
    case Output::kBench:
      return is_object_with(text, {"context", "benchmarks"});
    case Output::kLadders:
      return is_object_with(text, {"schema", "ladders"});
    case Output::kSelftest:
      return is_object_with(text, {"selftest", "rows"});
    case Output::kCalibration:
      return is_object_with(first_line, {"kind", "verdict"});
    case Output::kRecords:
      return is_object_with(first_line, {"seq", "kind", "body"});
    case Output::kCurve:
      return text.substr(0, 64).find("<?xml") != std::string_view::npos &&
             text.substr(0, 4096).find("<svg") != std::string_view::npos;
    case Output::kNcuTable:
      return text.starts_with("\"ID\"");
    case Output::kDemo:
      return is_object_with(text, {"demo", "device"});
    case Output::kExportedKernel:
      return text.starts_with(kExportedMark);
  }
  return false;
}

// Which part of a project the file is or would be; empty: no part of one.
std::string part_of_project(const fs::path& file) {
  std::error_code code;
  for (fs::path root = file.parent_path();; root = root.parent_path()) {
    if (fs::exists(root / "capstone.yaml", code)) {
      const fs::path part = file.lexically_relative(root);
      const std::string top = part.begin()->string(), text = part.generic_string();
      const bool below = std::next(part.begin()) != part.end();
      // Results of remote jobs wait in .capstone/remote until they are in the ledger.
      const bool kept = top == ".capstone" && !text.starts_with(".capstone/remote/");
      if (text == "capstone.yaml" || text == "worklog.md" || kept || (top == "problem" && below) ||
          text.starts_with("human/kernel.") || text.starts_with("llm/attempt-"))
        return text;
    }
    if (root == root.parent_path()) return {};
  }
}

Result<void> refuse_project_files(const fs::path& path) {
  std::error_code code;
  // The path as it is named, and the target of its links.
  for (const fs::path& seen :
       {fs::weakly_canonical(path.parent_path(), code) / path.filename(), fs::weakly_canonical(path, code)})
    if (const std::string part = part_of_project(seen); !part.empty())
      return fail("this would overwrite a file of a project: " + part, path.string(),
                  "choose another name; problem/, human/kernel.*, llm/attempt-*, .capstone/, worklog.md and "
                  "capstone.yaml are protected");
  return {};
}

}  // namespace

Result<fs::path> output_path(const Workspace& workspace, const std::string& name, Output kind) {
  const fs::path path = (workspace.cwd / name).lexically_normal();
  CAPSTONE_CHECK(refuse_project_files(path));
  std::error_code code;
  if (!fs::is_regular_file(path, code))
    return path;  // new, /dev/stdout, or a folder: writing fails with the reason
  CAPSTONE_TRY(const std::string text, read_file(path, kMaxOutput));
  if (!is_of_kind(text, kind))
    return fail(fmt::format("the file exists already and is not {}", name_of(kind)), path.string(),
                "choose another name, or delete the file first");
  return path;
}

Result<fs::path> report_folder(const Workspace& workspace, const std::string& name) {
  const fs::path folder = (workspace.cwd / name).lexically_normal();
  std::error_code code;
  CAPSTONE_CHECK(refuse_project_files(folder / "worklog.md"));
  if (fs::exists(folder / "worklog.md", code) && !fs::exists(folder / "score_sheet.json", code))
    return fail("a worklog.md exists there already and is not part of a report",
                (folder / "worklog.md").string(), "choose another folder, or delete the file first");
  return folder;
}

}  // namespace capstone::workflows
