#include "hooks/source_lines.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace capstone_emu::hooks {
namespace {

bool belongs_to_a_header_of_ours(std::string_view path) {
  for (std::string_view part :
       {"/emulator/include/", "/cuda-headers/", "/lib/gcc/", "/include/c++/", "/targets/"})
    if (path.find(part) != std::string_view::npos) return true;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return path.starts_with("/usr/") || name.starts_with("cuda_") || path.starts_with("??") || path.empty();
}

std::string own_path() {
  char path[4096];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path - 1);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : std::string();
}

}  // namespace

std::string output_of(const char* tool, const std::vector<std::string>& arguments, const std::string& input) {
  const int in = ::memfd_create("input", MFD_CLOEXEC), out = ::memfd_create("output", MFD_CLOEXEC);
  if (in < 0 || out < 0 || ::write(in, input.data(), input.size()) != static_cast<ssize_t>(input.size()))
    return {};
  ::lseek(in, 0, SEEK_SET);
  const std::string program = own_path();
  std::vector<std::string> words = {tool};
  for (const std::string& argument : arguments) words.push_back(argument == "{}" ? program : argument);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const std::string first = std::string("/usr/bin/") + tool, second = std::string("/usr/local/bin/") + tool;
  const pid_t child = ::vfork();
  if (child == 0) {
    ::dup2(in, 0);
    ::dup2(out, 1);
    ::execv(first.c_str(), argv.data());
    ::execv(second.c_str(), argv.data());
    ::_exit(127);
  }
  int status = 0;
  std::string text;
  if (child > 0 && ::waitpid(child, &status, 0) == child && status == 0) {
    const off_t size = ::lseek(out, 0, SEEK_END);
    text.resize(static_cast<std::size_t>(size));
    if (::pread(out, text.data(), text.size(), 0) != size) text.clear();
  }
  ::close(in);
  ::close(out);
  return text;
}

std::unordered_map<std::uint32_t, Place> places_of(std::vector<std::uint32_t> addresses) {
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  std::unordered_map<std::uint32_t, Place> places;
  if (addresses.empty()) return places;
  std::string input;
  char word[16];
  for (std::uint32_t address : addresses) {
    std::snprintf(word, sizeof word, "0x%x\n", address);
    input += word;
  }
  // For each address a line with it, then one for each frame, the innermost first: "path:line (discriminator
  // n)".
  const std::string text = output_of("addr2line", {"-a", "-i", "-e", "{}"}, input);
  std::uint32_t address = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line(text.data() + at, end - at);
    at = end + 1;
    if (line.starts_with("0x")) {
      address = static_cast<std::uint32_t>(std::strtoul(std::string(line).c_str(), nullptr, 16));
      continue;
    }
    line = line.substr(0, line.find(" ("));
    const std::size_t colon = line.rfind(':');
    if (colon == std::string_view::npos || places.contains(address)) continue;
    const std::string_view path = line.substr(0, colon);
    const int number = std::atoi(std::string(line.substr(colon + 1)).c_str());
    if (number > 0 && !belongs_to_a_header_of_ours(path))
      places[address] = {std::string(path.substr(path.rfind('/') + 1)), number};
  }
  return places;
}

}  // namespace capstone_emu::hooks
