#include "harness/project/archive/submission.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/instant.h"
#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/project/archive/archive.h"
#include "harness/project/archive/collect.h"
#include "harness/project/archive/privacy.h"
#include "harness/project/ledger/stored.h"

namespace capstone {
namespace {

using Finding = SubmissionFinding;

constexpr std::size_t kMaxFindingsPerFile = 5;

bool is_text(std::string_view bytes) { return bytes.find('\0') == bytes.npos; }

bool is_ledger(const std::string& path) { return path.starts_with(".capstone/ledger."); }

// These files are never changed: the ledger or capstone.yaml holds their digests, or they name the student.
bool is_bound(const std::string& path) {
  if (path.starts_with(".capstone/") || path.starts_with("problem/") || path == "capstone.yaml") return true;
  if (path.starts_with("human/") || path.starts_with("together/"))
    return !path.ends_with(".md") && !path.ends_with(".txt");
  bool attempt = path.starts_with("llm/attempt-");
  return attempt && (path.ends_with("/prompt.md") || path.ends_with("/reply.md") || path.ends_with(".cu") ||
                     path.ends_with(".py"));
}

std::string plain(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!out.empty() && out.back() != '-')
      out += '-';
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out.substr(0, 60);
}

// "s1234567-bias-gelu-layernorm": the archives of a cohort unpack into different folders.
std::string prefix_of(const ProjectConfig& config) {
  std::vector<std::string> parts;
  for (const Person& member : config.members) {
    std::string name = plain(member.id.empty() ? member.name : member.id);
    if (!name.empty()) parts.push_back(name);
  }
  if (parts.empty()) parts.push_back("capstone");
  parts.push_back(plain(config.problem_id));
  return join(parts, "-");
}

std::vector<std::string> public_words(const ProjectConfig& config) {
  std::vector<std::string> words;
  for (const Person& member : config.members)
    words.insert(words.end(), {member.name, member.id, member.email});
  return words;
}

// The time of the ledger's last record [Unix seconds]; 0 when there is none.
Instant last_record_time(std::string_view ledger) {
  std::string_view body = trim(ledger);
  std::size_t newline = body.rfind('\n');
  Json line = parse_json(newline == body.npos ? body : body.substr(newline + 1));
  if (!line.is_object() || !line.contains("time") || !line["time"].is_string()) return 0;
  return std::max<Instant>(0, parse_instant(line["time"].get<std::string>()).value_or(0));
}

class Planner {
 public:
  Planner(const Project& project, const SubmissionOptions& options)
      : project_(project), options_(options), mask_(options.identity, public_words(project.config)) {}

  Result<SubmissionPlan> run() {
    CAPSTONE_TRY(auto collection, collect_files(project_.root, options_.max_files));
    plan_.skipped = std::move(collection.skipped);
    plan_.prefix = prefix_of(project_.config);
    plan_.allow_secrets = options_.allow_secrets;
    for (const CollectedFile& file : collection.files) CAPSTONE_CHECK(add(file));
    note_missing();
    return std::move(plan_);
  }

 private:
  Result<void> add(const CollectedFile& file) {
    CAPSTONE_CHECK(check_size(file));
    CAPSTONE_TRY(auto bytes, read_file(file.source, options_.max_file));
    plan_.bytes += bytes.size();
    if (plan_.bytes > options_.max_total)
      return fail(
          fmt::format("more than {} to hand in", format_bytes(static_cast<double>(options_.max_total))),
          file.path, "remove what the capstone does not need, largest files first");
    if (file.path == ".capstone/ledger.jsonl") plan_.mtime = last_record_time(bytes);
    int masked = 0;
    if (is_text(bytes)) {
      look_for_secrets(file.path, bytes);
      if (is_bound(file.path))
        look_for_names(file.path, bytes);
      else
        bytes = mask_.apply(bytes, masked);
    }
    plan_.files.push_back({file.path, std::move(bytes), masked});
    return {};
  }

  Result<void> check_size(const CollectedFile& file) const {
    if (file.bytes <= options_.max_file) return {};
    return fail(
        fmt::format("a file of {} is too large to hand in", format_bytes(static_cast<double>(file.bytes))),
        file.path,
        fmt::format("the limit is {} per file: remove it, or keep it outside the project",
                    format_bytes(static_cast<double>(options_.max_file))));
  }

  void look_for_secrets(const std::string& path, std::string_view bytes) {
    for (const SecretHit& hit : find_secrets(bytes))
      plan_.findings.push_back({Finding::Kind::kSecret, fmt::format("{}:{}", path, hit.line),
                                fmt::format("looks like a secret ({}): {}", hit.kind, hit.shown),
                                "revoke the key where it was issued and take it out of the file"});
  }

  void look_for_names(const std::string& path, std::string_view bytes) {
    bool ledger = is_ledger(path);
    std::size_t shown = 0;
    for (const auto& hit : mask_.find(bytes)) {
      if (++shown > kMaxFindingsPerFile) return;
      plan_.findings.push_back({ledger ? Finding::Kind::kLedger : Finding::Kind::kIdentity,
                                fmt::format("{}:{}", path, hit.line), "names " + hit.what,
                                ledger
                                    ? "the ledger is handed in unchanged: its records are chained by digest"
                                    : "not masked, because its digest is on record; if you mind, change the "
                                      "file and measure again"});
    }
  }

  void note_missing() {
    const std::string kernel = "human/" + project_.human_kernel().filename().string();
    for (std::string_view path : {std::string_view("capstone.yaml"), std::string_view("worklog.md"),
                                  std::string_view(kernel), std::string_view(".capstone/ledger.jsonl")}) {
      bool there = std::any_of(plan_.files.begin(), plan_.files.end(),
                               [&](const SubmissionFile& f) { return f.path == path; });
      if (!there)
        plan_.findings.push_back(
            {Finding::Kind::kMissing, std::string(path), "is missing", "run: capstone check"});
    }
  }

  const Project& project_;
  const SubmissionOptions& options_;
  IdentityMask mask_;
  SubmissionPlan plan_;
};

Result<void> refuse_secrets(const SubmissionPlan& plan) {
  std::vector<const Finding*> secrets;
  for (const Finding& finding : plan.findings)
    if (finding.kind == Finding::Kind::kSecret) secrets.push_back(&finding);
  if (secrets.empty() || plan.allow_secrets) return {};
  std::string more = secrets.size() > 1 ? fmt::format(" (and {} more)", secrets.size() - 1) : "";
  return fail(secrets.front()->what + more, secrets.front()->where,
              "revoke the key and take it out of the file; if it is no secret, hand in with --allow-secrets");
}

}  // namespace

Result<SubmissionPlan> plan_submission(const Project& project, const SubmissionOptions& options) {
  CAPSTONE_CHECK(unpack_ledger(project.ledger()));  // mentors receive the ledger as text
  return Planner(project, options).run();
}

Result<Receipt> write_submission(const SubmissionPlan& plan, const fs::path& out) {
  CAPSTONE_CHECK(refuse_secrets(plan));
  std::vector<PackEntry> entries;
  for (const SubmissionFile& file : plan.files)
    entries.push_back({plan.prefix + "/" + file.path, file.content});
  CAPSTONE_TRY(auto bytes, pack_archive(std::move(entries), Packing::kTarGz, plan.mtime));
  CAPSTONE_CHECK(write_file_atomic(out, bytes));
  return Receipt{out, bytes.size(), sha256_hex(bytes)};
}

}  // namespace capstone
