#include "harness/project/archive/gzip.h"

#include <archive.h>
#include <archive_entry.h>

#include <memory>

namespace capstone {

Result<std::string> gzip(std::string_view bytes) {
  const std::unique_ptr<archive, int (*)(archive*)> writer(archive_write_new(), archive_write_free);
  const std::unique_ptr<archive_entry, void (*)(archive_entry*)> entry(archive_entry_new(),
                                                                       archive_entry_free);
  std::string packed;
  const auto take = [](archive*, void* into, const void* part, std::size_t size) -> la_ssize_t {
    static_cast<std::string*>(into)->append(static_cast<const char*>(part), size);
    return static_cast<la_ssize_t>(size);
  };
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  archive_entry_set_size(entry.get(), static_cast<la_int64_t>(bytes.size()));
  const bool done =
      archive_write_set_format_raw(writer.get()) == ARCHIVE_OK &&
      archive_write_add_filter_gzip(writer.get()) == ARCHIVE_OK &&
      archive_write_set_filter_option(writer.get(), "gzip", "timestamp", nullptr) == ARCHIVE_OK &&
      archive_write_set_bytes_in_last_block(writer.get(), 1) == ARCHIVE_OK &&  // no padding
      archive_write_open(writer.get(), &packed, nullptr, take, nullptr) == ARCHIVE_OK &&
      archive_write_header(writer.get(), entry.get()) == ARCHIVE_OK &&
      archive_write_data(writer.get(), bytes.data(), bytes.size()) == la_ssize_t(bytes.size()) &&
      archive_write_close(writer.get()) == ARCHIVE_OK;
  if (done) return packed;
  const char* why = archive_error_string(writer.get());
  return fail(std::string("cannot compress: ") + (why ? why : "libarchive failed"), {}, {},
              ExitCode::kEnvironment);
}

}  // namespace capstone
