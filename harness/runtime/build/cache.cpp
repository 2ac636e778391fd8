#include "harness/runtime/build/cache.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <vector>

#include "harness/base/files.h"

namespace capstone {
namespace {

using Clock = fs::file_time_type::clock;

struct Entry {
  fs::path path;
  fs::file_time_type used;
  std::uintmax_t bytes = 0;
};

std::uintmax_t bytes_of(const fs::path& entry) {
  std::error_code code;
  if (!fs::is_directory(entry, code)) return fs::file_size(entry, code);
  std::uintmax_t bytes = 0;
  for (fs::recursive_directory_iterator at(entry, code), end; !code && at != end; at.increment(code)) {
    std::error_code gone;
    if (const auto size = fs::file_size(at->path(), gone); !gone) bytes += size;
  }
  return bytes;
}

std::vector<Entry> entries_of(const fs::path& cache) {
  std::vector<Entry> entries;
  for (const char* folder : {"emulated", "emulated/objects", "cuda", "nvcc", "oracles", "programs"}) {
    std::error_code code;
    for (fs::directory_iterator at(cache / folder, code), end; !code && at != end; at.increment(code)) {
      std::error_code gone;
      Entry entry{at->path(), fs::last_write_time(at->path(), gone)};
      if (gone || entry.path == cache / "emulated" / "objects") continue;
      entry.bytes = bytes_of(entry.path);
      entries.push_back(std::move(entry));
    }
  }
  return entries;
}

// First out of the way in one step, so that no other process finds half of it.
bool remove_entry(const Entry& entry) {
  const fs::path aside = temporary_beside(entry.path);
  std::error_code code;
  fs::rename(entry.path, aside, code);
  if (code) return false;
  // Somebody has used it since it was looked at: back with it, unless it was built again in the meantime.
  if (fs::last_write_time(aside, code) != entry.used && !code) {
    fs::rename(aside, entry.path, code);
    if (!code) return false;
  }
  fs::remove_all(aside, code);
  return true;
}

}  // namespace

bool use_cached(const fs::path& entry) { return ::utimensat(AT_FDCWD, entry.c_str(), nullptr, 0) == 0; }

int prune_cache(const fs::path& cache, const CacheLimits& limits) {
  const auto now = Clock::now();
  const fs::path stamp = cache / "pruned";
  std::error_code code;
  if (const auto last = fs::last_write_time(stamp, code); !code && now - last < limits.rest) return 0;
  if (!write_file_atomic(stamp, "")) return 0;
  std::vector<Entry> entries = entries_of(cache);
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  std::uintmax_t total = 0;
  for (const Entry& entry : entries) total += entry.bytes;
  int removed = 0;
  for (const Entry& entry : entries) {
    const auto unused = now - entry.used;
    if (unused < limits.kept || (unused < limits.unused && total <= limits.bytes)) break;
    if (!remove_entry(entry)) continue;
    total -= entry.bytes;
    ++removed;
  }
  return removed;
}

}  // namespace capstone
