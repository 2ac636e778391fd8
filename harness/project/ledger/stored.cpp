#include "harness/project/ledger/stored.h"

#include "harness/base/files.h"
#include "harness/project/archive/archive_handle.h"

namespace capstone {
namespace {

constexpr std::size_t kMaxText = std::size_t{1} << 30;  // [B]

fs::path gzipped(const fs::path& path) { return path.string() + ".gz"; }

bool only_gzipped(const fs::path& path) {
  std::error_code ignored;
  return !fs::exists(path, ignored) && fs::exists(gzipped(path), ignored);
}

Result<std::string> gunzip(const fs::path& file) {
  ArchiveReader reader(archive_read_new(), archive_read_free);
  archive_read_support_filter_gzip(reader.get());
  archive_read_support_format_raw(reader.get());
  archive_entry* entry = nullptr;
  auto broken = [&] {
    return fail("cannot unpack the ledger: " + archive_reason(reader.get()), file.string(),
                "restore the file from its original place", ExitCode::kUsage);
  };
  if (archive_read_open_filename(reader.get(), file.c_str(), 1 << 16) != ARCHIVE_OK ||
      archive_read_next_header(reader.get(), &entry) != ARCHIVE_OK)
    return broken();
  std::string text;
  char block[1 << 16];
  for (la_ssize_t n = 1; n != 0;) {
    n = archive_read_data(reader.get(), block, sizeof block);
    if (n < 0) return broken();
    text.append(block, static_cast<std::size_t>(n));
    if (text.size() > kMaxText)
      return fail("the ledger is larger than 1 GiB", file.string(), "this is not a ledger of capstone",
                  ExitCode::kUsage);
  }
  return text;
}

}  // namespace

Result<std::string> read_ledger_text(const fs::path& path) {
  return only_gzipped(path) ? gunzip(gzipped(path)) : read_file(path);
}

Result<void> unpack_ledger(const fs::path& path) {
  if (!only_gzipped(path)) return {};
  CAPSTONE_TRY(const std::string text, gunzip(gzipped(path)));
  CAPSTONE_CHECK(write_file_atomic(path, text));
  std::error_code ignored;
  fs::remove(gzipped(path), ignored);
  return {};
}

}  // namespace capstone
