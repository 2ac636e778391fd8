#pragma once
// Compares two captures of one call, and gives both the same stack contents at the start. Header-only and
// free of CUDA: the capture worker is built on the user's machine, its tests where there is no GPU.
#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

namespace capstone {

/// Clears the stack below the caller. Bytes of later objects there that are not written, mostly the padding
/// of structs, are then the same in every call.
__attribute__((noinline)) inline void wipe_stack() {
  char below[64 * 1024];
  std::memset(below, 0, sizeof below);
  asm volatile("" : : "r"(below) : "memory");  // prevents the compiler from removing the clearing
}

/// The nodes of a capture, and the host data that its copies read.
struct Recording {
  using Json = nlohmann::ordered_json;
  const Json& nodes;
  const std::string& data;
};

namespace detail {

using Json = Recording::Json;

inline std::string readable(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : symbol;
}

// "bytes 36 to 39 of parameter 3 (40 bytes)" for the first parameter that differs; empty if none does.
// `params` are hexadecimal.
inline std::string parameter_that_differs(const Json& a, const Json& b) {
  const std::string one = a.at("params"), two = b.at("params");
  const Json& sizes = a.at("sizes");
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::size_t begin = sizes[i][0], size = sizes[i][1];
    std::size_t first = size, last = 0;
    for (std::size_t byte = 0; byte < size; ++byte)
      if (one.compare(2 * (begin + byte), 2, two, 2 * (begin + byte), 2) != 0)
        first = std::min(first, byte), last = byte;
    if (first == size) continue;
    const std::string bytes = first == last
                                  ? "byte " + std::to_string(first)
                                  : "bytes " + std::to_string(first) + " to " + std::to_string(last);
    const bool scalar = size == 1 || size == 2 || size == 4 || size == 8;
    return bytes + " of parameter " + std::to_string(i + 1) + " (" + std::to_string(size) + " bytes)" +
           (scalar ? "" : "; where they are padding of a struct, put a member there and set it to 0");
  }
  return {};
}

inline bool same_data(const Json& a, const Recording& first, const Json& b, const Recording& second) {
  const std::size_t bytes = a.at("width");
  return b.at("width") == bytes &&
         first.data.compare(a.at("src").at("data").get<std::size_t>(), bytes, second.data,
                            b.at("src").at("data").get<std::size_t>(), bytes) == 0;
}

// Describes the difference between two steps; empty if there is none. The place of a copy's data in the blob
// does not count.
inline std::string step_difference(const Json& a, const Recording& first, const Json& b,
                                   const Recording& second) {
  if (a.at("kind") != b.at("kind"))
    return "a " + a.at("kind").get<std::string>() + ", then a " + b.at("kind").get<std::string>();
  const bool host_data =
      a.at("kind") == "copy" && a.at("src").contains("data") && b.at("src").contains("data");
  if (host_data && !same_data(a, first, b, second)) return "it copies other data of the host";
  if (a.at("kind") == "kernel") {
    const std::string kernel = readable(a.at("function"));
    if (a.at("function") != b.at("function")) return kernel + ", then " + readable(b.at("function"));
    if (a.at("sizes") == b.at("sizes") && a.at("params").get_ref<const std::string&>().size() ==
                                              b.at("params").get_ref<const std::string&>().size())
      if (const std::string parameter = parameter_that_differs(a, b); !parameter.empty())
        return parameter + ". Kernel: " + kernel;
  }
  for (const auto& [key, value] : a.items())
    if (!(host_data && key == "src") && (!b.contains(key) || b[key] != value))
      return "its " + key + (a.at("kind") == "kernel" ? ". Kernel: " + readable(a.at("function")) : "");
  return a.size() == b.size() ? std::string() : "its attributes";
}

}  // namespace detail

/// Describes the first difference between two captures, with the kernel and its parameter; empty if they are
/// equal.
inline std::string difference(const Recording& first, const Recording& second) {
  if (first.nodes.size() != second.nodes.size())
    return std::to_string(first.nodes.size()) + " steps, then " + std::to_string(second.nodes.size());
  for (std::size_t i = 0; i < first.nodes.size(); ++i)
    if (const std::string what = detail::step_difference(first.nodes[i], first, second.nodes[i], second);
        !what.empty())
      return "step " + std::to_string(i + 1) + ": " + what;
  return {};
}

}  // namespace capstone
