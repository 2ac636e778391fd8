#include "harness/project/archive/bundle.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <optional>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/model/upgrade.h"
#include "harness/project/archive/archive.h"
#include "harness/project/archive/collect.h"

namespace capstone {
namespace {

constexpr int kBundleSchema = 1;
constexpr std::size_t kMaxFile = std::size_t{16} << 20;
constexpr std::size_t kMaxFiles = 10000;
const std::string kManifest = ".capstone/bundle.json";
const std::string kLedger = ".capstone/ledger.jsonl";

// "llm/attempt-3/kernel.cu" → 3.
std::optional<int> attempt_of(std::string_view path) {
  constexpr std::string_view kFolder = "llm/attempt-";
  if (!path.starts_with(kFolder)) return std::nullopt;
  int number = 0;
  auto [end, error] = std::from_chars(path.data() + kFolder.size(), path.data() + path.size(), number);
  if (error != std::errc{} || end == path.data() + path.size() || *end != '/') return std::nullopt;
  return number;
}

bool is_kernel(const std::string& path) {
  return path.ends_with("/kernel.cu") || path.ends_with("/kernel.py");
}

// Whether the path lies in a folder of `candidate`.
bool belongs_to(const std::string& candidate, const std::string& path) {
  if (candidate == "human" || candidate == "together") return path.starts_with(candidate + "/");
  std::optional<int> attempt = attempt_of(path);
  return attempt && (candidate == "llm" || candidate == fmt::format("attempt-{}", *attempt));
}

// Whether judging `candidate` may need the file. A kernel may include a file of any name; Markdown is for
// people.
bool needs(const std::string& candidate, const std::string& path) {
  return belongs_to(candidate, path) && !path.ends_with(".md");
}

// The kernel in a candidate's own folder, not in a folder below it.
bool is_kernel_of(const std::string& candidate, const std::string& path) {
  return belongs_to(candidate, path) && is_kernel(path) &&
         std::count(path.begin(), path.end(), '/') ==
             (candidate == "human" || candidate == "together" ? 1 : 2);
}

Result<void> check_candidate(const std::string& candidate, const std::vector<CollectedFile>& files) {
  bool known = candidate == "human" || candidate == "llm" || candidate == "together" ||
               (candidate.starts_with("attempt-") && attempt_of("llm/" + candidate + "/"));
  if (!known)
    return fail(fmt::format("unknown candidate \"{}\"", candidate), "",
                "name human, llm, together or attempt-1, attempt-2 …");
  bool kernel = std::any_of(files.begin(), files.end(),
                            [&](const CollectedFile& f) { return is_kernel_of(candidate, f.path); });
  if (!kernel)
    return fail(fmt::format("candidate \"{}\" has no kernel to judge", candidate), "",
                candidate == "human"      ? "write human/kernel.cu (or kernel.py)"
                : candidate == "together" ? "capstone together begin"
                                          : "add a reply first: capstone llm add REPLY");
  return {};
}

std::string manifest(const Project& project, const BundleRequest& request) {
  Json json = {{"schema", kBundleSchema},
               {"tool", request.tool},
               {"problem_id", project.config.problem_id},
               {"problem_digest", project.config.problem_digest},
               {"candidates", request.candidates},
               {"options", request.options}};
  return json.dump(2) + "\n";
}

Result<std::string> text_at(const Json& json, const char* key, const fs::path& where) {
  if (!json.contains(key) || !json[key].is_string())
    return fail(fmt::format("\"{}\" is missing or is not text", key), where.string());
  return json[key].get<std::string>();
}

Result<Bundle> read_manifest(const fs::path& root) {
  const fs::path path = kManifest;  // relative: messages do not need to show where the bundle was unpacked
  CAPSTONE_TRY(auto text, read_file(root / path, 1 << 20));
  Json json = parse_recorded(text);
  if (!json.is_object()) return fail("not JSON", path.string());
  if (json.value("schema", Json()) != Json(kBundleSchema))
    return fail("this version of capstone does not know the bundle's format", path.string(),
                "use the same version of capstone on both machines", ExitCode::kEnvironment);
  Bundle bundle;
  bundle.root = root;
  CAPSTONE_TRY(bundle.tool, text_at(json, "tool", path));
  CAPSTONE_TRY(bundle.problem_id, text_at(json, "problem_id", path));
  CAPSTONE_TRY(bundle.problem_digest, text_at(json, "problem_digest", path));
  bundle.options = json.value("options", Json::object());
  if (!bundle.options.is_object()) return fail("\"options\" is not an object", path.string());
  Json candidates = json.value("candidates", Json::array());
  for (const Json& candidate : candidates) {
    if (!candidate.is_string()) return fail("\"candidates\" is not a list of names", path.string());
    bundle.candidates.push_back(candidate);
  }
  return bundle;
}

// Without these files the folder is not a project. The ledger must be empty: records made elsewhere would be
// an unchecked claim.
Result<void> check_layout(const fs::path& root) {
  std::error_code code;
  for (const char* path :
       {"capstone.yaml", "problem/problem.yaml", ".capstone/bundle.json", ".capstone/ledger.jsonl"})
    if (!fs::is_regular_file(root / path, code))
      return fail(fmt::format("not a bundle: it holds no {}", path), root.filename().string(),
                  "make one with: capstone measure --bundle FILE");
  if (fs::file_size(root / kLedger, code) != 0 || code)
    return fail("not a bundle: its ledger is not empty", kLedger,
                "make one with: capstone measure --bundle FILE");
  return {};
}

}  // namespace

Result<BundleReceipt> pack_bundle(const Project& project, const BundleRequest& request, const fs::path& out) {
  CAPSTONE_TRY(auto collection, collect_files(project.root, kMaxFiles));
  if (request.candidates.empty())
    return fail("a bundle needs at least one candidate", "", "name human, llm or attempt-1, attempt-2 …");
  for (const std::string& candidate : request.candidates)
    CAPSTONE_CHECK(check_candidate(candidate, collection.files));
  std::deque<std::string> contents;  // the entries' views stay valid
  std::vector<PackEntry> entries;
  auto add = [&](const std::string& path, std::string bytes) {
    contents.push_back(std::move(bytes));
    entries.push_back({path, contents.back()});
  };
  auto of_any = [&](auto holds, const std::string& path) {
    return std::any_of(request.candidates.begin(), request.candidates.end(),
                       [&](const std::string& c) { return holds(c, path); });
  };
  BundleReceipt receipt;
  for (const SkippedFile& file : collection.skipped)
    if (of_any(needs, file.path)) receipt.left_out.push_back(file);
  for (const CollectedFile& file : collection.files) {
    const bool common =
        file.path == "capstone.yaml" || file.path.starts_with("problem/") || of_any(is_kernel_of, file.path);
    if (!common && !of_any(needs, file.path)) continue;
    if (!common && file.bytes > kMaxFile) {
      receipt.left_out.push_back({file.path, file.bytes, fmt::format("larger than {} MiB", kMaxFile >> 20)});
      continue;
    }
    CAPSTONE_TRY(auto bytes, read_file(file.source, kMaxFile));
    if (!common && bytes.find('\0') != std::string::npos)
      receipt.left_out.push_back({file.path, file.bytes, "not a text file"});
    else
      add(file.path, std::move(bytes));
  }
  add(kManifest, manifest(project, request));
  add(kLedger, "");
  CAPSTONE_TRY(auto bytes, pack_archive(std::move(entries), Packing::kTar, 0));
  CAPSTONE_CHECK(write_file_atomic(out, bytes));
  receipt.file = out;
  receipt.bytes = bytes.size();
  receipt.sha256 = sha256_hex(bytes);
  return receipt;
}

Result<Bundle> unpack_bundle(const fs::path& file, const fs::path& destination) {
  // Unpack into a folder next to the destination first: if it is not a bundle, nothing is left behind.
  fs::path target = destination.has_filename() ? destination : destination.parent_path();
  fs::path folder = target;
  folder += ".bundle";
  std::error_code code;
  if (fs::exists(fs::symlink_status(target, code)) &&
      !(fs::is_directory(target, code) && fs::is_empty(target, code)))
    return fail("the destination exists and is not an empty folder", destination.string(),
                "choose a new folder");
  CAPSTONE_TRY(auto unpacked, unpack_archive(file, folder));
  Result<void> layout = check_layout(folder);
  Result<Bundle> bundle = layout ? read_manifest(folder) : Result<Bundle>(tl::unexpected(layout.error()));
  if (bundle) fs::rename(folder, target, code);
  if (!bundle || code) {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }
  if (!bundle) return bundle;
  if (code)
    return fail("cannot put the unpacked folder in place: " + code.message(), destination.string(), "",
                ExitCode::kEnvironment);
  bundle->root = target;
  return bundle;
}

}  // namespace capstone
