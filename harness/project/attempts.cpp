#include "harness/project/attempts.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/base/version.h"

namespace capstone {
namespace {

int highest_number(const fs::path& folder, const LedgerView& ledger) {
  int highest = 0;
  for (const Attempt& each : ledger.attempts) highest = std::max(highest, each.number);
  for (const Withdrawal& each : ledger.withdrawals) highest = std::max(highest, each.attempt);
  std::error_code code;
  fs::directory_iterator entry(folder, code), end;
  for (; !code && entry != end; entry.increment(code)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with("attempt-")) continue;
    const std::string digits = name.substr(8);
    if (digits.empty() || digits.size() > 8 || digits.find_first_not_of("0123456789") != std::string::npos)
      continue;
    highest = std::max(highest, std::stoi(digits));
  }
  return highest;
}

Result<int> claim_number(const Project& project, const LedgerView& ledger) {
  const fs::path folder = project.root / "llm";
  CAPSTONE_CHECK(make_folders(folder));
  for (int number = highest_number(folder, ledger) + 1;; ++number) {
    if (::mkdir(project.attempt(number).c_str(), 0777) == 0) return number;
    if (errno != EEXIST)
      return fail(std::string("cannot create the attempt's folder: ") + std::strerror(errno),
                  project.attempt(number).string(), "check that the project is writable",
                  ExitCode::kEnvironment);
  }
}

std::string meta_text(const Attempt& attempt) {
  Json meta = attempt;
  meta["filed"] = utc_now();
  meta["tool"] = kToolVersion;
  return meta.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<void> write_files(const fs::path& folder, const Attempt& attempt, const AttemptFiles& files) {
  CAPSTONE_CHECK(write_new_file(folder / "prompt.md", files.prompt));
  CAPSTONE_CHECK(write_new_file(folder / "reply.md", files.reply));
  if (files.kernel) {
    CAPSTONE_CHECK(write_new_file(folder / (files.python ? "kernel.py" : "kernel.cu"), *files.kernel));
  }
  return write_new_file(folder / "meta.json", meta_text(attempt));
}

}  // namespace

Result<Attempt> file_attempt(const Project& project, const LedgerView& ledger, Attempt attempt,
                             const AttemptFiles& files) {
  CAPSTONE_TRY(attempt.number, claim_number(project, ledger));
  attempt.prompt_sha256 = sha256_hex(files.prompt);
  attempt.reply_sha256 = sha256_hex(files.reply);
  if (files.kernel) attempt.kernel_sha256 = sha256_hex(*files.kernel);
  const fs::path folder = project.attempt(attempt.number);
  if (auto written = write_files(folder, attempt, files); !written) {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
    return fail(written.error());
  }
  return attempt;
}

}  // namespace capstone
