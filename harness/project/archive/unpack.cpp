// Unpacks archives from untrusted sources. All decisions are made here; libarchive's own extraction is not
// used.
#include <fcntl.h>
#include <fmt/format.h>
#include <iconv.h>
#include <locale.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/project/archive/archive.h"
#include "harness/project/archive/archive_handle.h"

namespace capstone {
namespace {

constexpr std::size_t kMaxPath = 1024;
constexpr std::size_t kMaxName = 200;

// A name that is safe to show: no control characters, not too long.
std::string shown(std::string_view path) {
  std::string text = to_utf8(path.substr(0, 120));
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return path.size() > 120 ? text + "…" : text;
}

template <class T>
using Unpacking = tl::expected<T, UnpackError>;

tl::unexpected<UnpackError> refuse(const std::string& why, std::string_view path) {
  return tl::unexpected(
      UnpackError(UnpackError::Kind::kRefused,
                  {"archive refused: " + why, shown(path),
                   "nothing was unpacked; ask the sender to pack it with `capstone submit`"}));
}

// The parts of the path, or the reason why it may not be written.
Unpacking<std::vector<std::string>> safe_parts(const std::string& path, std::size_t max_depth) {
  if (path.empty()) return refuse("an entry without a name", path);
  if (path.size() > kMaxPath) return refuse("a path is too long", path);
  if (path.front() == '/') return refuse("an absolute path", path);
  bool control = std::any_of(path.begin(), path.end(),
                             [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (control) return refuse("a control character in a name", path);
  if (path.find('\\') != std::string::npos || path.find(':') != std::string::npos)
    return refuse("a backslash or colon in a name", path);
  std::vector<std::string> parts;
  for (std::string& part : split(path, '/')) {
    if (part.empty() || part == ".") continue;  // "a//b", "./a", "folder/"
    if (part == "..") return refuse("a path that climbs out with \"..\"", path);
    if (part.size() > kMaxName) return refuse("a name is too long", path);
    parts.push_back(std::move(part));
  }
  if (parts.size() > max_depth) return refuse(fmt::format("more than {} folders deep", max_depth), path);
  return parts;
}

// libarchive converts names between UTF-8 and the locale of the calling thread. In the locale "C", in which
// this program runs, a name like "Müller" is lost.
class Utf8Names {
 public:
  Utf8Names() : locale_(::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {
    if (locale_) before_ = ::uselocale(locale_);
  }
  Utf8Names(const Utf8Names&) = delete;
  Utf8Names& operator=(const Utf8Names&) = delete;
  ~Utf8Names() {
    if (!locale_) return;
    ::uselocale(before_);
    ::freelocale(locale_);
  }

 private:
  locale_t locale_, before_ = nullptr;
};

// A name in an older encoding as UTF-8. The archive does not say which encoding: Windows writes zip files
// with the code page of its console, and Windows-1252 is what most other tools wrote. What cannot be
// converted becomes %XX, so that two names stay two names.
std::string decoded(const std::string& name, bool zip) {
  if (is_utf8(name)) return name;
  if (iconv_t converter = ::iconv_open("UTF-8", zip ? "CP850" : "CP1252");
      converter != reinterpret_cast<iconv_t>(-1)) {
    std::string in = name, out(4 * name.size(), '\0');
    char *from = in.data(), *to = out.data();
    std::size_t left = in.size(), room = out.size();
    const bool converted = ::iconv(converter, &from, &left, &to, &room) != static_cast<std::size_t>(-1);
    ::iconv_close(converter);
    if (converted) return out.substr(0, out.size() - room);
  }
  std::string out;
  for (char c : name)
    out += static_cast<unsigned char>(c) < 0x80 ? std::string(1, c)
                                                : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return out;
}

// A folder next to the destination that is removed unless it is kept.
class Staging {
 public:
  explicit Staging(fs::path path) : path_(std::move(path)) {}
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }
  void keep() { path_.clear(); }

 private:
  fs::path path_;
};

Result<void> check_destination(const fs::path& destination) {
  std::error_code code;
  fs::file_status status = fs::symlink_status(destination, code);
  if (status.type() == fs::file_type::not_found) return {};
  if (status.type() == fs::file_type::directory && fs::is_empty(destination, code) && !code) return {};
  return fail("the destination exists and is not an empty folder", destination.string(),
              "choose a new folder");
}

class Unpacker {
 public:
  Unpacker(archive* reader, fs::path root, const UnpackLimits& limits)
      : reader_(reader), root_(std::move(root)), limits_(limits) {}

  Unpacking<Unpacked> run() {
    archive_entry* entry = nullptr;
    for (;;) {
      int status = archive_read_next_header(reader_, &entry);
      if (status == ARCHIVE_EOF) break;
      if (status != ARCHIVE_OK && status != ARCHIVE_WARN)
        return fail("archive is damaged: " + archive_reason(reader_), "",
                    "download it again, or ask for a new copy");
      if (++entries_ > limits_.entries)
        return refuse(fmt::format("more than {} entries", limits_.entries), "");
      CAPSTONE_CHECK(take(entry));
    }
    std::sort(out_.files.begin(), out_.files.end());
    return std::move(out_);
  }

 private:
  Unpacking<void> take(archive_entry* entry) {
    const char* raw = archive_entry_pathname_utf8(entry);
    if (!raw) raw = archive_entry_pathname(entry);  // a name that is not UTF-8
    const bool zip = (archive_format(reader_) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_ZIP;
    if (!raw) return refuse("a name that is not in the encoding that the archive gives for it", "");
    const std::string path = decoded(raw, zip);
    CAPSTONE_TRY(auto parts, safe_parts(path, limits_.depth));
    if (archive_entry_hardlink(entry) || archive_entry_symlink(entry)) return refuse("a link", path);
    auto type = archive_entry_filetype(entry);
    if (type != AE_IFREG && type != AE_IFDIR) return refuse("neither a plain file nor a folder", path);
    std::string clean = join(parts, "/");
    if (type == AE_IFDIR) return parts.empty() ? Unpacking<void>{} : folder(clean);
    if (parts.empty()) return refuse("a file without a name", path);
    parts.pop_back();
    if (!parts.empty()) CAPSTONE_CHECK(folder(join(parts, "/")));
    return file(clean);
  }

  Unpacking<void> folder(const std::string& path) {
    if (files_.count(path)) return refuse("a file and a folder of the same name", path);
    CAPSTONE_CHECK(make_folders(root_ / path));
    return {};
  }

  Unpacking<void> file(const std::string& path) {
    if (!files_.insert(path).second) return refuse("the same file twice", path);
    int fd = ::open((root_ / path).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0 && (errno == EEXIST || errno == EISDIR))
      return refuse("a file and a folder of the same name", path);
    if (fd < 0)
      return fail(std::string("cannot write: ") + std::strerror(errno), path, "", ExitCode::kEnvironment);
    Unpacking<void> done = copy(fd, path);
    ::close(fd);
    if (done) out_.files.push_back(path);
    return done;
  }

  // Counts the bytes that come out and does not trust the header: a small archive may hold a large file.
  Unpacking<void> copy(int fd, const std::string& path) {
    char buffer[1 << 16];
    std::uintmax_t size = 0;
    for (;;) {
      la_ssize_t n = archive_read_data(reader_, buffer, sizeof buffer);
      if (n == 0) return {};
      if (n < 0)
        return fail("archive is damaged: " + archive_reason(reader_), shown(path),
                    "download it again, or ask for a new copy");
      size += static_cast<std::uintmax_t>(n);
      out_.bytes += static_cast<std::uintmax_t>(n);
      if (size > limits_.file)
        return refuse(
            fmt::format("a file is larger than {}", format_bytes(static_cast<double>(limits_.file))), path);
      if (out_.bytes > limits_.total)
        return refuse(fmt::format("more than {} unpacked", format_bytes(static_cast<double>(limits_.total))),
                      path);
      CAPSTONE_CHECK(write_all(fd, {buffer, static_cast<std::size_t>(n)}, path));
    }
  }

  static Unpacking<void> write_all(int fd, std::string_view bytes, const std::string& path) {
    while (!bytes.empty()) {
      ssize_t n = ::write(fd, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0)
        return fail(std::string("cannot write: ") + std::strerror(errno), path, "is the disk full?",
                    ExitCode::kEnvironment);
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return {};
  }

  archive* reader_;
  fs::path root_;
  UnpackLimits limits_;
  std::size_t entries_ = 0;
  std::set<std::string> files_;
  Unpacked out_;
};

ArchiveReader open_reader() {
  ArchiveReader reader(archive_read_new(), archive_read_free);
  archive_read_support_filter_gzip(reader.get());
  archive_read_support_format_tar(reader.get());
  archive_read_support_format_zip(reader.get());
  return reader;
}

}  // namespace

tl::expected<Unpacked, UnpackError> try_unpack_archive(const fs::path& file, const fs::path& destination,
                                                       const UnpackLimits& limits) {
  CAPSTONE_CHECK(check_destination(destination));
  const Utf8Names names;
  ArchiveReader reader = open_reader();
  if (archive_read_open_filename(reader.get(), file.c_str(), 1 << 16) != ARCHIVE_OK)
    return fail("cannot read as a tar, tar.gz or zip: " + archive_reason(reader.get()), file.string());

  fs::path target = destination.has_filename() ? destination : destination.parent_path();
  fs::path folder = target;
  folder += ".unpacking-" + std::to_string(::getpid());
  std::error_code code;
  fs::remove_all(folder, code);  // left by a dead process with the same number
  CAPSTONE_CHECK(make_folders(folder));
  Staging staging(folder);
  CAPSTONE_TRY(auto unpacked, Unpacker(reader.get(), folder, limits).run());
  if (unpacked.files.empty()) return refuse("it holds no file", file.string());
  fs::rename(folder, target, code);  // also replaces an empty folder
  if (code)
    return fail("cannot put the unpacked folder in place: " + code.message(), destination.string(), "",
                ExitCode::kEnvironment);
  staging.keep();
  return unpacked;
}

Result<Unpacked> unpack_archive(const fs::path& archive, const fs::path& destination,
                                const UnpackLimits& limits) {
  auto unpacked = try_unpack_archive(archive, destination, limits);
  if (!unpacked) return fail(std::move(unpacked.error().error));
  return std::move(*unpacked);
}

}  // namespace capstone
