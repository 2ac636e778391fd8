#include "harness/runtime/cuda/captured_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <set>
#include <stdexcept>

namespace capstone {
namespace {

// Thrown inside this file alone: the checks below are many and nested, and each ends the reading.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};
[[noreturn]] void refuse(const std::string& where, const std::string& why) {
  throw Refused(where + ": " + why);
}

class Checker {
 public:
  Checker(const GraphLimits& limits, std::size_t data_bytes) : limits_(limits), data_bytes_(data_bytes) {}

  void document(const Json& graph) {
    keys(graph, "plan", {"plan", "scratch", "notes", "first", "steady"}, {});
    if (number(graph, "plan", "plan", 1, 1) != 1) refuse("plan", "unknown version");
    scratch_ = number(graph, "scratch", "plan", 0, limits_.scratch_bytes);
    const Json& notes = graph["notes"];
    if (!notes.is_array() || notes.size() > 16) refuse("plan.notes", "not a short list");
    for (const Json& note : notes)
      if (!note.is_string() || note.get_ref<const std::string&>().size() > 500)
        refuse("plan.notes", "not a short text");
    sequence(graph["first"], "first");
    sequence(graph["steady"], "steady");
  }

  std::size_t scratch() const { return scratch_; }

 private:
  static void keys(const Json& object, const std::string& where, std::initializer_list<const char*> must,
                   std::initializer_list<const char*> may) {
    if (!object.is_object()) refuse(where, "not an object");
    for (const char* key : must)
      if (!object.contains(key)) refuse(where, std::string("lacks ") + key);
    for (const auto& item : object.items()) {
      auto is = [&](const char* key) { return item.key() == key; };
      if (std::none_of(must.begin(), must.end(), is) && std::none_of(may.begin(), may.end(), is))
        refuse(where, "has an unknown field");
    }
  }
  static std::uint64_t number(const Json& object, const char* key, const std::string& where,
                              std::uint64_t least, std::uint64_t most) {
    auto at = object.find(key);
    if (at == object.end() || !at->is_number_unsigned()) refuse(where + "." + key, "not a whole number");
    std::uint64_t value = at->get<std::uint64_t>();
    if (value < least || value > most) refuse(where + "." + key, "out of range");
    return value;
  }
  static std::string symbol(const Json& object, const char* key, const std::string& where) {
    auto at = object.find(key);
    if (at == object.end() || !at->is_string()) refuse(where + "." + key, "not a name");
    const std::string& name = at->get_ref<const std::string&>();
    auto plain = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '$' || c == '.'; };
    if (name.empty() || name.size() > 4096 || !std::all_of(name.begin(), name.end(), plain))
      refuse(where + "." + key, "not a symbol");
    return name;
  }
  static void dimensions(const Json& object, const char* key, const std::string& where,
                         std::array<std::uint64_t, 3> most, std::uint64_t most_in_all) {
    auto at = object.find(key);
    if (at == object.end() || !at->is_array() || at->size() != 3)
      refuse(where + "." + key, "not three numbers");
    std::uint64_t all = 1;
    for (std::size_t i = 0; i < 3; ++i) {
      const Json& value = (*at)[i];
      if (!value.is_number_unsigned() || value.get<std::uint64_t>() < 1 ||
          value.get<std::uint64_t>() > most[i])
        refuse(where + "." + key, "out of range");
      all *= value.get<std::uint64_t>();
      if (all > most_in_all) refuse(where + "." + key, "too large in all");
    }
  }

  void sequence(const Json& nodes, const std::string& where) {
    if (!nodes.is_array() || nodes.size() > limits_.nodes) refuse(where, "not a list of at most 4096 nodes");
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const std::string place = fmt::format("{}[{}]", where, i);
      const Json& node = nodes[i];
      if (!node.is_object() || !node.contains("kind") || !node["kind"].is_string()) refuse(place, "no kind");
      const std::string kind = node["kind"];
      if (kind == "kernel")
        kernel(node, place);
      else if (kind == "memset")
        memset(node, place);
      else if (kind == "copy")
        copy(node, place);
      else
        refuse(place, "unknown kind");
      edges(node, "after", i, place);
      if (node.contains("early")) edges(node, "early", i, place);
    }
  }
  static void edges(const Json& node, const char* key, std::size_t self, const std::string& where) {
    auto at = node.find(key);
    if (at == node.end() || !at->is_array() || at->size() > self)
      refuse(where + "." + key, "not a list of earlier nodes");
    for (const Json& before : *at)
      if (!before.is_number_unsigned() || before.get<std::uint64_t>() >= self)
        refuse(where + "." + key, "names a later node");
  }

  void kernel(const Json& node, const std::string& where) {
    keys(node, where,
         {"kind", "function", "grid", "block", "shared", "max_shared", "params", "sizes", "after"},
         {"early", "relocations", "cluster", "cluster_policy", "portable", "cooperative", "carveout",
          "window"});
    symbol(node, "function", where);
    dimensions(node, "grid", where, {0x7fffffff, 65535, 65535}, ~0ull >> 1);
    dimensions(node, "block", where, {1024, 1024, 64}, 1024);
    number(node, "shared", where, 0, 1u << 20);
    number(node, "max_shared", where, 0, 1u << 20);
    if (!node["params"].is_string()) refuse(where + ".params", "not text");
    const std::string& hex = node["params"].get_ref<const std::string&>();
    auto digit = [](unsigned char c) { return std::isdigit(c) || (c >= 'a' && c <= 'f'); };
    if (hex.size() % 2 || hex.size() > 2 * 32764 || !std::all_of(hex.begin(), hex.end(), digit))
      refuse(where + ".params", "not hexadecimal bytes");
    const std::size_t bytes = hex.size() / 2;
    const Json& sizes = node["sizes"];
    if (!sizes.is_array() || sizes.size() > 4096) refuse(where + ".sizes", "not a list");
    for (const Json& pair : sizes) {
      if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number_unsigned() ||
          !pair[1].is_number_unsigned())
        refuse(where + ".sizes", "not pairs of numbers");
      std::uint64_t at = pair[0], size = pair[1];
      if (at > bytes || size > bytes - at) refuse(where + ".sizes", "outside the parameters");
    }
    if (node.contains("relocations")) {
      if (!node["relocations"].is_array() || node["relocations"].size() > 4096)
        refuse(where + ".relocations", "not a list");
      for (const Json& relocation : node["relocations"]) {
        keys(relocation, where + ".relocations", {"at", "global", "offset"}, {});
        symbol(relocation, "global", where);
        number(relocation, "offset", where, 0, 1ull << 40);
        if (bytes < 8) refuse(where + ".relocations", "outside the parameters");
        number(relocation, "at", where, 0, bytes - 8);
      }
    }
    if (node.contains("cluster")) dimensions(node, "cluster", where, {16, 16, 16}, 16);
    if (node.contains("cluster_policy")) number(node, "cluster_policy", where, 0, 2);
    for (const char* flag : {"portable", "cooperative"})
      if (node.contains(flag) && !node[flag].is_boolean()) refuse(where + "." + flag, "not true or false");
    if (node.contains("carveout")) number(node, "carveout", where, 0, 100);
    if (node.contains("window")) {
      const Json& window = node["window"];
      keys(window, where + ".window", {"base", "bytes", "ratio", "hit", "miss"}, {});
      span(window["base"], number(window, "bytes", where, 0, 1ull << 40), where + ".window");
      if (!window["ratio"].is_number() ||
          !(window["ratio"].get<double>() >= 0 && window["ratio"].get<double>() <= 1))
        refuse(where + ".window", "ratio out of range");
      number(window, "hit", where, 0, 2);
      number(window, "miss", where, 0, 2);
    }
  }

  void memset(const Json& node, const std::string& where) {
    keys(node, where, {"kind", "dst", "value", "element", "width", "height", "pitch", "after"}, {"early"});
    std::uint64_t element = number(node, "element", where, 1, 4);
    if (element == 3) refuse(where + ".element", "not 1, 2 or 4");
    number(node, "value", where, 0, 0xffffffffu);
    std::uint64_t width = number(node, "width", where, 1, 1ull << 40),
                  height = number(node, "height", where, 1, 1ull << 32);
    std::uint64_t pitch = number(node, "pitch", where, 0, 1ull << 40);
    span(node["dst"], extent(width * element, height, pitch, where), where + ".dst");
  }

  void copy(const Json& node, const std::string& where) {
    keys(node, where, {"kind", "dst", "src", "width", "height", "dst_pitch", "src_pitch", "after"},
         {"early"});
    std::uint64_t width = number(node, "width", where, 1, 1ull << 40),
                  height = number(node, "height", where, 1, 1ull << 32);
    span(node["dst"], extent(width, height, number(node, "dst_pitch", where, 0, 1ull << 40), where),
         where + ".dst");
    const std::uint64_t from = extent(width, height, number(node, "src_pitch", where, 0, 1ull << 40), where);
    if (node["src"].is_object() && node["src"].contains("data")) {
      keys(node["src"], where + ".src", {"data"}, {});
      std::uint64_t at = number(node["src"], "data", where, 0, data_bytes_);
      if (from > data_bytes_ - at) refuse(where + ".src", "outside the data");
    } else {
      span(node["src"], from, where + ".src");
    }
  }
  static std::uint64_t extent(std::uint64_t row, std::uint64_t rows, std::uint64_t pitch,
                              const std::string& where) {
    if (rows > 1 && pitch < row) refuse(where, "rows overlap");
    unsigned __int128 all = static_cast<unsigned __int128>(rows - 1) * pitch + row;
    if (all > (1ull << 40)) refuse(where, "too large");
    return static_cast<std::uint64_t>(all);
  }
  // An address in one of the three spaces that a submission may touch, and `bytes` from there. How large a
  // global is the replayer knows, which has the module; it checks again.
  void span(const Json& address, std::uint64_t bytes, const std::string& where) {
    if (!address.is_object()) refuse(where, "not an address");
    if (address.contains("global")) {
      keys(address, where, {"global", "offset"}, {});
      symbol(address, "global", where);
      number(address, "offset", where, 0, 1ull << 40);
      return;
    }
    const bool arena = address.contains("arena");
    keys(address, where, {arena ? "arena" : "scratch"}, {});
    const std::uint64_t space = arena ? limits_.arena_bytes : scratch_;
    const std::uint64_t at = number(address, arena ? "arena" : "scratch", where, 0, space);
    if (bytes > space - at) refuse(where, arena ? "leaves the tensors" : "leaves the scratch memory");
  }

  const GraphLimits& limits_;
  std::size_t data_bytes_;
  std::size_t scratch_ = 0;
};

}  // namespace

tl::expected<CapturedGraph, std::string> read_graph(std::span<const std::byte> packet,
                                                    const GraphLimits& limits) {
  std::uint64_t length = 0;
  if (packet.size() < sizeof length) return tl::unexpected(std::string("shorter than its own header"));
  std::memcpy(&length, packet.data(), sizeof length);
  packet = packet.subspan(sizeof length);
  if (length > limits.document_bytes || length > packet.size())
    return tl::unexpected(std::string("its document is too long"));
  if (packet.size() - length > limits.data_bytes)
    return tl::unexpected(std::string("it carries too much data"));
  const char* text = reinterpret_cast<const char*>(packet.data());
  CapturedGraph graph;
  graph.document = parse_json({text, length});
  if (graph.document.is_discarded()) return tl::unexpected(std::string("its document is not JSON"));
  packet = packet.subspan(length);
  try {
    Checker checker(limits, packet.size());
    checker.document(graph.document);
    graph.scratch_bytes = checker.scratch();
  } catch (const Refused& refused) {
    return tl::unexpected(std::string(refused.what()));
  }
  graph.data.assign(packet.begin(), packet.end());
  for (const Json& node : graph.document["steady"]) {
    if (node["kind"] != "kernel") continue;
    std::string name = node["function"];
    if (std::find(graph.kernels.begin(), graph.kernels.end(), name) == graph.kernels.end())
      graph.kernels.push_back(std::move(name));
  }
  for (const Json& note : graph.document["notes"]) graph.notes.push_back(note);
  return graph;
}

std::vector<std::byte> graph_packet(const Json& document, std::span<const std::byte> data) {
  const std::string text = document.dump();
  const std::uint64_t length = text.size();
  std::vector<std::byte> packet(sizeof length + text.size() + data.size());
  std::memcpy(packet.data(), &length, sizeof length);
  std::memcpy(packet.data() + sizeof length, text.data(), text.size());
  if (!data.empty()) std::memcpy(packet.data() + sizeof length + text.size(), data.data(), data.size());
  return packet;
}

}  // namespace capstone
