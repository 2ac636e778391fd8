#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/base/version.h"
#include "harness/project/ledger/judge_key.h"
#include "harness/project/ledger/ledger.h"
#include "harness/project/ledger/ledger_file.h"
#include "harness/project/ledger/stored.h"

namespace capstone {
namespace {

Error cannot(const std::string& verb, const fs::path& path, int why) {
  std::string hint = "the ledger was not changed";
  if (why == ENOSPC || why == EDQUOT || why == EFBIG)
    hint = "free some space and run the command again; the ledger was not changed";
  else if (why == EACCES || why == EPERM || why == EROFS)
    hint = "you cannot write to the project; fix its permissions";
  return {"cannot " + verb + " the ledger: " + std::strerror(why), path.string(), hint,
          ExitCode::kEnvironment};
}

// ledger.torn-20260301T093000Z.jsonl; a second one within the same second gets "-2".
fs::path quarantine_path(const fs::path& ledger, int tries) {
  std::string time = replace_all(replace_all(utc_now(), ":", ""), "-", "");
  std::string name = ledger.stem().string() + ".torn-" + time;
  if (tries > 1) name += "-" + std::to_string(tries);
  return ledger.parent_path() / (name + ".jsonl");
}

struct ChainEnd {
  std::int64_t seq;
  std::string digest;
};

// The end of the machine's latest chain, searched from the end of the file. None: its chain starts with this
// record.
std::optional<ChainEnd> last_of_machine(std::string_view bytes, const std::string& machine) {
  auto line = last_line(bytes, bytes.size());
  while (line) {
    auto header = header_of(line->text);
    if (header && header->machine == machine) return ChainEnd{header->seq, sha256_hex(line->text)};
    line = last_line(bytes, line->offset);
  }
  return std::nullopt;
}

}  // namespace

LedgerFile::LedgerFile(fs::path path, FileLock lock, int fd)
    : path_(std::move(path)), lock_(std::move(lock)), fd_(fd) {}

LedgerFile::LedgerFile(LedgerFile&& other) noexcept
    : path_(std::move(other.path_)),
      lock_(std::move(other.lock_)),
      fd_(std::exchange(other.fd_, -1)),
      map_(std::exchange(other.map_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

LedgerFile::~LedgerFile() {
  unmap();
  if (fd_ >= 0) ::close(fd_);
}

Result<LedgerFile> LedgerFile::open(const fs::path& path) {
  CAPSTONE_CHECK(make_folders(path.parent_path()));
  fs::path lock_path = path;
  lock_path += ".lock";
  CAPSTONE_TRY(FileLock lock, FileLock::acquire(lock_path, true));
  CAPSTONE_CHECK(unpack_ledger(path));
  int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return fail(cannot("open", path, errno));
  LedgerFile file(path, std::move(lock), fd);
  CAPSTONE_CHECK(file.map());
  CAPSTONE_CHECK(file.quarantine_torn_line());
  return file;
}

Result<void> LedgerFile::map() {
  unmap();
  struct stat info {};
  if (::fstat(fd_, &info) != 0) return fail(cannot("read", path_, errno));
  size_ = static_cast<std::size_t>(info.st_size);
  if (size_ == 0) return {};
  void* at = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd_, 0);
  if (at == MAP_FAILED) {
    size_ = 0;
    return fail(cannot("read", path_, errno));
  }
  map_ = at;
  return {};
}

void LedgerFile::unmap() {
  if (map_) ::munmap(map_, size_);
  map_ = nullptr;
}

std::string_view LedgerFile::bytes() const {
  return map_ ? std::string_view(static_cast<const char*>(map_), size_) : std::string_view();
}

Result<void> LedgerFile::quarantine_torn_line() {
  auto last = last_line(bytes(), size_);
  if (!last || is_whole_json(last->text)) return {};
  const std::size_t keep = last->offset;
  const std::string torn(bytes().substr(keep));
  for (int tries = 1;; ++tries) {
    fs::path aside = quarantine_path(path_, tries);
    if (fs::exists(aside)) continue;
    CAPSTONE_CHECK(write_new_file(aside, torn));
    break;
  }
  unmap();
  if (::ftruncate(fd_, static_cast<off_t>(keep)) != 0) return fail(cannot("repair", path_, errno));
  return map();
}

Result<void> LedgerFile::append(std::string text) {
  // A whole record without its newline (an editor removed it, or a crash lost the last byte) is kept and
  // ended now.
  if (size_ > 0 && bytes().back() != '\n') text.insert(0, "\n");
  const off_t before = static_cast<off_t>(size_);
  std::string_view rest = text;
  off_t at = before;
  int why = 0;
  while (!rest.empty() && why == 0) {
    ssize_t n = ::pwrite(fd_, rest.data(), rest.size(), at);
    if (n > 0) {
      at += n;
      rest.remove_prefix(static_cast<std::size_t>(n));
    } else if (n == 0) {
      why = ENOSPC;
    } else if (errno != EINTR) {
      why = errno;
    }
  }
  if (why == 0 && ::fsync(fd_) != 0) why = errno;
  if (why == 0) return map();
  if (::ftruncate(fd_, before) != 0)
    return fail(Error{"cannot append to the ledger, and its partial last line could not be cut off",
                      path_.string(),
                      "the next command that records something moves the partial line to a separate file",
                      ExitCode::kEnvironment});
  ::fsync(fd_);
  return fail(cannot("append to", path_, why));
}

Result<Record> append_record(const fs::path& ledger, const std::string& kind, const Json& body,
                             const std::string& machine, const JudgeKey* signer) {
  CAPSTONE_TRY(LedgerFile file, LedgerFile::open(ledger));
  Record record{1, utc_now(), kind, kToolVersion, machine, {}, body, {}};
  if (auto last = last_of_machine(file.bytes(), machine)) {
    record.seq = last->seq + 1;
    record.previous = last->digest;
  }
  if (signer) {
    CAPSTONE_TRY(std::string value, signer->sign(signed_text(Json(record))));
    record.signature = {signer->public_key(), std::move(value)};
  }
  // The log of a compiler may hold any byte, but the ledger is UTF-8.
  std::string text = Json(record).dump(-1, ' ', false, Json::error_handler_t::replace);
  CAPSTONE_CHECK(file.append(text + "\n"));
  return record;
}

Result<std::string> keep_source(const fs::path& sources, std::string_view bytes) {
  std::string digest = sha256_hex(bytes);
  fs::path path = sources / (digest + ".cu");
  if (fs::exists(path)) return digest;
  CAPSTONE_CHECK(make_folders(sources));
  CAPSTONE_CHECK(write_file_atomic(path, bytes));
  return digest;
}

}  // namespace capstone
