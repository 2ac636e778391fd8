#include "harness/project/archive/collect.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>

#include "harness/base/files.h"
#include "harness/base/text.h"

namespace capstone {
namespace {

constexpr std::array<std::string_view, 3> kTopFiles = {"capstone.yaml", "worklog.md", "README.md"};
constexpr std::array<std::string_view, 5> kTopFolders = {"problem", "human", "llm", "together", "report"};
constexpr std::array<std::string_view, 13> kProducts = {".o",        ".so",      ".a",   ".cubin", ".ptx",
                                                        ".fatbin",   ".exe",     ".out", ".obj",   ".pyc",
                                                        ".nsys-rep", ".ncu-rep", ".gch"};
constexpr std::array<std::string_view, 4> kProductFolders = {"build", "__pycache__", "node_modules",
                                                             "CMakeFiles"};

template <class List>
bool contains(const List& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

bool is_product(std::string_view name) {
  return std::any_of(kProducts.begin(), kProducts.end(),
                     [&](std::string_view end) { return name.ends_with(end); });
}

bool is_leftover(std::string_view name) {
  return name.ends_with("~") || name.ends_with(".swp") || name.ends_with(".orig") || name.ends_with(".rej") ||
         name.find(".tmp-") != name.npos || (name.starts_with("#") && name.ends_with("#"));
}

// Of the folder .capstone, only the ledger and the files that its records refer to.
bool is_record(const std::vector<std::string>& parts) {
  if (parts.size() == 1) return true;
  if (parts[1] == "sources") return parts.size() <= 3;
  bool torn = parts[1].starts_with("ledger.torn-") && parts[1].ends_with(".jsonl");
  return parts.size() == 2 && (parts[1] == "ledger.jsonl" || parts[1] == "ledger.jsonl.gz" || torn);
}

std::string why_by_place(const std::vector<std::string>& parts, bool is_folder) {
  if (parts.front() == ".capstone") return is_record(parts) ? "" : "a working file of capstone";
  if (parts.size() == 1 && !is_folder) return contains(kTopFiles, parts[0]) ? "" : "not part of a capstone";
  return contains(kTopFolders, parts[0]) ? "" : "not part of a capstone";
}

bool is_program(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  char magic[4] = {};
  return file.read(magic, 4) && magic[0] == 0x7f && magic[1] == 'E' && magic[2] == 'L' && magic[3] == 'F';
}

bool is_clean_name(const std::string& path) {
  return is_utf8(path) && std::none_of(path.begin(), path.end(), [](char c) {
           return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\' || c == ':';
         });
}

class Walk {
 public:
  Walk(fs::path root, std::size_t max_files) : root_(std::move(root)), max_files_(max_files) {}

  Result<Collection> run() {
    CAPSTONE_CHECK(folder(root_, ""));
    auto by_path = [](const auto& a, const auto& b) { return a.path < b.path; };
    std::sort(out_.files.begin(), out_.files.end(), by_path);
    std::sort(out_.skipped.begin(), out_.skipped.end(), by_path);
    return std::move(out_);
  }

 private:
  Result<void> folder(const fs::path& at, const std::string& prefix) {
    std::error_code code;
    fs::directory_iterator iterator(at, code), end;
    if (code)
      return fail("cannot read the folder: " + code.message(), at.string(),
                  "fix its permissions, or remove it");
    for (; iterator != end; iterator.increment(code)) {
      CAPSTONE_CHECK(entry(*iterator, prefix + iterator->path().filename().string()));
      if (out_.files.size() > max_files_)
        return fail("more than " + std::to_string(max_files_) + " files to hand in", root_.string(),
                    "remove what is not part of the capstone");
    }
    return {};
  }

  Result<void> entry(const fs::directory_entry& item, const std::string& path) {
    std::error_code code;
    fs::file_status status = item.symlink_status(code);
    bool is_folder = status.type() == fs::file_type::directory;
    if (!is_clean_name(path)) return skip(to_utf8(path), 0, "the name is not plain UTF-8 text");
    if (std::string why = why_left_out(path, is_folder); !why.empty())
      return skip(is_folder ? path + "/" : path, is_folder ? 0 : size_of_file(item), why);
    if (is_folder) return folder(item.path(), path + "/");
    if (status.type() == fs::file_type::symlink) return link(item.path(), path);
    if (status.type() != fs::file_type::regular) return skip(path, 0, "neither a file nor a folder");
    if (is_program(item.path())) return skip(path, size_of_file(item), "a compiled program");
    out_.files.push_back({path, item.path(), size_of_file(item)});
    return {};
  }

  // The file behind a link is handed in only if it would be handed in under its own name, too.
  Result<void> link(const fs::path& at, const std::string& path) {
    std::error_code code;
    fs::path target = fs::canonical(at, code);
    if (code) return skip(path, 0, "a link whose target does not exist");
    fs::path root = fs::canonical(root_, code);
    fs::path inside = target.lexically_relative(root);
    if (code || inside.empty() || *inside.begin() == "..")
      return skip(path, 0, "a link that leaves the project");
    if (fs::is_directory(target, code))
      return skip(path, 0, "a link to a folder; the folder is handed in under its own name");
    if (!fs::is_regular_file(target, code)) return skip(path, 0, "a link to neither a file nor a folder");
    if (!why_left_out(inside.generic_string(), false).empty() || is_program(target))
      return skip(path, 0, "a link to a file that is not handed in");
    out_.files.push_back({path, target, fs::file_size(target, code)});
    return {};
  }

  static std::uintmax_t size_of_file(const fs::directory_entry& item) {
    std::error_code code;
    std::uintmax_t size = item.is_regular_file(code) && !item.is_symlink(code) ? item.file_size(code) : 0;
    return code ? 0 : size;
  }

  Result<void> skip(std::string path, std::uintmax_t bytes, std::string reason) {
    out_.skipped.push_back({std::move(path), bytes, std::move(reason)});
    return {};
  }

  fs::path root_;
  std::size_t max_files_;
  Collection out_;
};

}  // namespace

std::string why_left_out(const std::string& path, bool is_folder) {
  std::vector<std::string> parts = split(path, '/');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i == 0 && parts[i] == ".capstone") continue;
    if (parts[i].starts_with(".")) return "a hidden file";
    bool inner_folder = i + 1 < parts.size() || is_folder;
    if (inner_folder && contains(kProductFolders, parts[i])) return "a build folder";
  }
  if (!is_folder && is_leftover(parts.back())) return "an editor's leftover";
  if (!is_folder && is_product(parts.back())) return "a build product";
  return why_by_place(parts, is_folder);
}

Result<Collection> collect_files(const fs::path& root, std::size_t max_files) {
  return Walk(root, max_files).run();
}

}  // namespace capstone
