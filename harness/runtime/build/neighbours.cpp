#include "harness/runtime/build/neighbours.h"

#include <fmt/format.h>

#include <chrono>
#include <map>

#include "harness/base/digest.h"
#include "harness/base/files.h"

namespace capstone {
namespace {

constexpr std::size_t kMaxEntries = 1024;
constexpr std::uintmax_t kMaxRead = 4u << 20;  // [B]

std::string content_of(const fs::directory_entry& file) {
  std::error_code code;
  const std::uintmax_t bytes = file.file_size(code);
  if (!code && bytes <= kMaxRead)
    if (auto text = read_file(file.path(), kMaxRead)) return "text " + *text;
  const auto time = file.last_write_time(code).time_since_epoch();
  return fmt::format("{} bytes of {}", bytes, std::chrono::nanoseconds(time).count());
}

}  // namespace

std::string digest_of_neighbours(const fs::path& source) {
  const fs::path folder = source.has_parent_path() ? source.parent_path() : fs::path(".");
  std::map<std::string, std::string> files;  // sorted: folders are read in any order
  std::error_code code;
  std::size_t entries = 0;
  for (fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, code), end;
       !code && at != end; at.increment(code)) {
    if (++entries > kMaxEntries)
      return fmt::format("uncounted at {}", std::chrono::steady_clock::now().time_since_epoch().count());
    std::error_code ignored;
    if (at->path().filename().string().starts_with(".") && at->is_directory(ignored))
      at.disable_recursion_pending();
    else if (at->is_regular_file(ignored))
      files[at->path().lexically_relative(folder).string()] = content_of(*at);
  }
  DigestBuilder digest;
  for (const auto& [name, content] : files) digest.add(name, content);
  return digest.hex();
}

}  // namespace capstone
