// Creates hostile files as their manifests describe, and gives them to the code that reads such files.
#include <archive.h>
#include <archive_entry.h>
#include <unistd.h>

#include <fstream>

#include "harness/analysis/selftest/selftest.h"
#include "harness/base/files.h"
#include "harness/model/problem.h"
#include "harness/project/archive/archive.h"
#include "harness/project/archive/archive_handle.h"
#include "harness/project/reply/extract.h"

namespace capstone {
namespace {

constexpr std::size_t kBombBytes = std::size_t{80} << 20;  // more than one file of a submission may have

// RAII temporary directory.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "capstone-corpus-XXXXXX").string();
    if (::mkdtemp(pattern.data())) path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

void add_entry(archive* writer, const char* path, unsigned type, const char* link, std::size_t bytes) {
  ArchiveEntry entry(archive_entry_new(), archive_entry_free);
  archive_entry_set_pathname(entry.get(), path);
  archive_entry_set_filetype(entry.get(), type);
  archive_entry_set_perm(entry.get(), 0644);
  archive_entry_set_size(entry.get(), static_cast<la_int64_t>(bytes));
  if (link) archive_entry_set_symlink(entry.get(), link);
  archive_write_header(writer, entry.get());
  const std::string zeros(1 << 16, '\0');
  for (std::size_t left = bytes; left > 0;) {
    const std::size_t part = std::min(left, zeros.size());
    archive_write_data(writer, zeros.data(), part);
    left -= part;
  }
}

void write_hostile_archive(const std::string& kind, const fs::path& file) {
  ArchiveWriter writer(archive_write_new(), archive_write_free);
  if (kind == "link")
    archive_write_set_format_gnutar(writer.get());
  else
    archive_write_set_format_zip(writer.get());
  archive_write_open_filename(writer.get(), file.c_str());
  if (kind == "climbs") add_entry(writer.get(), "../../escaped.txt", AE_IFREG, nullptr, 1);
  if (kind == "absolute") add_entry(writer.get(), "/tmp/escaped.txt", AE_IFREG, nullptr, 1);
  if (kind == "link") {
    add_entry(writer.get(), "human", AE_IFLNK, "/etc", 0);
    add_entry(writer.get(), "human/passwd", AE_IFREG, nullptr, 1);
  }
  if (kind == "bomb") add_entry(writer.get(), "human/kernel.cu", AE_IFREG, nullptr, kBombBytes);
  archive_write_close(writer.get());
}

std::optional<std::string> read_reply(const HostileInput& input) {
  Extraction extraction = extract_code(hostile_text(input));
  if (extraction.why_not.empty()) return std::nullopt;
  return extraction.why_not;
}

std::optional<std::string> read_problem(const HostileInput& input) {
  TemporaryFolder folder;
  std::ofstream(folder.path() / "problem.yaml", std::ios::binary) << hostile_text(input);
  auto problem = load_problem(folder.path());
  if (problem) return std::nullopt;
  return problem.error().what;
}

std::optional<std::string> read_submission(const HostileInput& input) {
  TemporaryFolder folder;
  const fs::path file = folder.path() / "submission";
  write_hostile_archive(input.archive, file);
  auto unpacked = unpack_archive(file, folder.path() / "a" / "b");
  if (unpacked) return std::nullopt;
  return unpacked.error().what;
}

}  // namespace

std::string hostile_text(const HostileInput& input) {
  std::string text = input.begin;
  text.reserve(text.size() + input.repeat.size() * static_cast<std::size_t>(input.times) + input.end.size());
  for (std::int64_t i = 0; i < input.times; ++i) text += input.repeat;
  return text + input.end;
}

std::map<std::string, InputReader> input_readers() {
  return {{"reply", read_reply}, {"problem", read_problem}, {"submission", read_submission}};
}

}  // namespace capstone
