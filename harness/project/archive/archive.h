#pragma once
// Writes archives reproducibly, and unpacks archives that cannot write outside of their destination.
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/base/error.h"

namespace capstone {

/// One regular file to pack.
struct PackEntry {
  std::string path;          ///< relative; '/' separates the parts
  std::string_view content;  ///< not owned
};

enum class Packing { kTar, kTarGz };

/// Packs regular files into a tar.gz: sorted by path, owner and group 0 without names, mode 0644, one time
/// for all entries, no time in gzip's header. The same entries give the same bytes.
/// @param mtime  Unix seconds.
Result<std::string> pack_archive(std::vector<PackEntry> entries, Packing packing, std::int64_t mtime);

/// Upper limits for an archive that is unpacked.
struct UnpackLimits {
  std::size_t entries = 10000;
  std::uintmax_t total = std::uintmax_t{256} << 20;  ///< [B] in total, counted while unpacking
  std::uintmax_t file = std::uintmax_t{64} << 20;    ///< [B] per file
  std::size_t depth = 16;                            ///< nested folders
};

struct Unpacked {
  std::vector<std::string> files;  ///< sorted, relative to the destination
  std::uintmax_t bytes = 0;
};

/// Why an archive was not unpacked.
struct UnpackError {
  enum class Kind {
    kUnreadable,  ///< damaged, or the machine's fault
    kRefused,     ///< readable but unsafe: links, climbing paths, over the limits
  } kind = Kind::kUnreadable;
  Error error;

  UnpackError(Error reason) : error(std::move(reason)) {}  // NOLINT: an Error of any other call becomes one
  UnpackError(Kind what, Error reason) : kind(what), error(std::move(reason)) {}
};

/// Unpacks a tar, tar.gz or zip from an untrusted source, completely or not at all.
///
/// Only plain files and folders are accepted. A link, a device, an absolute path, "..", a control character,
/// a repeated path or anything over the limits refuses the whole archive. Owners and modes in the archive are
/// ignored. Names come out as UTF-8, whatever their encoding in the archive.
/// @param destination  must not exist, or be an empty folder; it appears complete or not at all.
/// @error names the entry and what is wrong with it.
tl::expected<Unpacked, UnpackError> try_unpack_archive(const std::filesystem::path& archive,
                                                       const std::filesystem::path& destination,
                                                       const UnpackLimits& limits = {});
/// The same, where the kind of the error does not matter.
Result<Unpacked> unpack_archive(const std::filesystem::path& archive,
                                const std::filesystem::path& destination, const UnpackLimits& limits = {});

}  // namespace capstone
