#include "harness/project/archive/archive.h"

#include <algorithm>

#include "harness/project/archive/archive_handle.h"

namespace capstone {
namespace {

la_ssize_t append(archive*, void* target, const void* bytes, std::size_t count) {
  static_cast<std::string*>(target)->append(static_cast<const char*>(bytes), count);
  return static_cast<la_ssize_t>(count);
}

tl::unexpected<Error> broken(archive* writer, const std::string& where) {
  return fail("cannot make the archive: " + archive_reason(writer), where, "", ExitCode::kInternal);
}

Result<void> put(archive* writer, const PackEntry& item, std::int64_t mtime) {
  ArchiveEntry entry(archive_entry_new(), archive_entry_free);
  archive_entry_set_pathname(entry.get(), item.path.c_str());
  archive_entry_set_size(entry.get(), static_cast<la_int64_t>(item.content.size()));
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  archive_entry_set_perm(entry.get(), 0644);
  archive_entry_set_mtime(entry.get(), mtime, 0);
  archive_entry_set_uid(entry.get(), 0);
  archive_entry_set_gid(entry.get(), 0);
  if (archive_write_header(writer, entry.get()) != ARCHIVE_OK) return broken(writer, item.path);
  la_ssize_t written = archive_write_data(writer, item.content.data(), item.content.size());
  if (written != static_cast<la_ssize_t>(item.content.size())) return broken(writer, item.path);
  return {};
}

}  // namespace

Result<std::string> pack_archive(std::vector<PackEntry> entries, Packing packing, std::int64_t mtime) {
  std::sort(entries.begin(), entries.end(),
            [](const PackEntry& a, const PackEntry& b) { return a.path < b.path; });
  std::string bytes;
  ArchiveWriter writer(archive_write_new(), archive_write_free);
  archive_write_set_format_gnutar(writer.get());  // names as plain bytes: the same in every locale
  if (packing == Packing::kTarGz) {
    archive_write_add_filter_gzip(writer.get());
    archive_write_set_filter_option(writer.get(), "gzip", "timestamp", nullptr);
  }
  archive_write_set_bytes_in_last_block(writer.get(), 1);
  if (archive_write_open(writer.get(), &bytes, nullptr, append, nullptr) != ARCHIVE_OK)
    return broken(writer.get(), "");
  for (const PackEntry& entry : entries) CAPSTONE_CHECK(put(writer.get(), entry, mtime));
  if (archive_write_close(writer.get()) != ARCHIVE_OK) return broken(writer.get(), "");
  return bytes;
}

}  // namespace capstone
