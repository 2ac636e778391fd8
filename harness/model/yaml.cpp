#include "harness/model/yaml.h"

#include <fmt/format.h>
#include <yaml.h>

#include <algorithm>
#include <iterator>
#include <new>

#include "harness/base/text.h"

namespace capstone {
namespace {

/// Builds the tree from the library's events.
class TreeBuilder {
 public:
  TreeBuilder(const std::string& bytes, const std::string& file, const YamlLimits& limits)
      : bytes_(bytes), file_(file), limits_(limits) {
    if (!yaml_parser_initialize(&parser_)) throw std::bad_alloc();
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(bytes.data()),
                                 bytes.size());
  }
  ~TreeBuilder() {
    yaml_event_delete(&event_);
    yaml_parser_delete(&parser_);
  }
  TreeBuilder(const TreeBuilder&) = delete;
  TreeBuilder& operator=(const TreeBuilder&) = delete;

  Result<YamlNode> read() {
    for (bool begun = false;;) {
      CAPSTONE_CHECK(next());
      switch (event_.type) {
        case YAML_STREAM_END_EVENT:
          if (!begun) return fail("file is empty", file_ + ":1:1");
          return std::move(root_);
        case YAML_DOCUMENT_START_EVENT:
          if (begun) {
            CAPSTONE_CHECK(next());
            return refuse(event_.start_mark, "a second document",
                          "keep one document per file (remove `---`)");
          }
          begun = true;
          break;
        case YAML_ALIAS_EVENT:
          return refuse(event_.start_mark, "aliases (`*name`) are not allowed here", "write the value out");
        case YAML_SCALAR_EVENT:
          CAPSTONE_CHECK(scalar());
          break;
        case YAML_SEQUENCE_START_EVENT:
          CAPSTONE_CHECK(open(YamlNode::Kind::kList, event_.data.sequence_start.tag));
          break;
        case YAML_MAPPING_START_EVENT:
          CAPSTONE_CHECK(open(YamlNode::Kind::kMap, event_.data.mapping_start.tag));
          break;
        case YAML_SEQUENCE_END_EVENT:
        case YAML_MAPPING_END_EVENT:
          CAPSTONE_CHECK(close());
          break;
        case YAML_NO_EVENT:
        case YAML_STREAM_START_EVENT:
        case YAML_DOCUMENT_END_EVENT:
          break;
      }
    }
  }

 private:
  /// A collection that is being read. A map remembers the key of the next value.
  struct Frame {
    YamlNode node;
    YamlNode key;
    bool has_key = false;
  };

  tl::unexpected<Error> refuse(std::size_t line, std::size_t column, std::string what,
                               std::string hint) const {
    return fail(std::move(what), fmt::format("{}:{}:{}", file_, line, column), std::move(hint));
  }
  tl::unexpected<Error> refuse(const yaml_mark_t& mark, std::string what, std::string hint) const {
    return refuse(mark.line + 1, mark.column + 1, std::move(what), std::move(hint));
  }

  Result<void> next() {
    yaml_event_delete(&event_);
    if (yaml_parser_parse(&parser_, &event_)) return {};
    if (parser_.error == YAML_MEMORY_ERROR) throw std::bad_alloc();
    std::string what = fmt::format("not valid YAML: {}", parser_.problem);
    if (parser_.error == YAML_READER_ERROR) {  // it has an offset and no mark
      const auto end = bytes_.begin() + static_cast<std::ptrdiff_t>(parser_.problem_offset);
      const auto start = std::find(std::make_reverse_iterator(end), bytes_.rend(), '\n').base();
      return refuse(static_cast<std::size_t>(std::count(bytes_.begin(), end, '\n')) + 1,
                    static_cast<std::size_t>(end - start) + 1, std::move(what), {});
    }
    if (parser_.context) what += fmt::format(", {}", parser_.context);
    std::string hint;
    if (parser_.context && parser_.context_mark.line != parser_.problem_mark.line)
      hint = fmt::format("it begins on line {}", parser_.context_mark.line + 1);
    return refuse(parser_.problem_mark, std::move(what), std::move(hint));
  }

  Result<void> check_tag(const unsigned char* tag) const {
    if (!tag) return {};
    return refuse(event_.start_mark,
                  fmt::format("tags (`{}`) are not allowed here", reinterpret_cast<const char*>(tag)),
                  "write the plain value");
  }

  Result<YamlNode> make(YamlNode::Kind kind) {
    if (++count_ > limits_.nodes)
      return refuse(event_.start_mark, fmt::format("more than {} values", limits_.nodes), {});
    YamlNode node;
    node.kind = kind;
    node.line = static_cast<int>(event_.start_mark.line) + 1;
    node.column = static_cast<int>(event_.start_mark.column) + 1;
    return node;
  }

  Result<void> scalar() {
    const auto& scalar = event_.data.scalar;
    CAPSTONE_CHECK(check_tag(scalar.tag));
    CAPSTONE_TRY(YamlNode node, make(YamlNode::Kind::kScalar));
    node.text.assign(reinterpret_cast<const char*>(scalar.value), scalar.length);
    node.quoted = scalar.style != YAML_PLAIN_SCALAR_STYLE;
    if (!node.quoted && (node.text.empty() || node.text == "~" || node.text == "null"))
      node.kind = YamlNode::Kind::kNull;
    return deliver(std::move(node));
  }

  Result<void> open(YamlNode::Kind kind, const unsigned char* tag) {
    CAPSTONE_CHECK(check_tag(tag));
    if (static_cast<int>(stack_.size()) >= limits_.depth)
      return refuse(event_.start_mark, fmt::format("nested deeper than {} levels", limits_.depth), {});
    Frame frame;
    CAPSTONE_TRY(frame.node, make(kind));
    stack_.push_back(std::move(frame));
    return {};
  }

  Result<void> close() {
    YamlNode done = std::move(stack_.back().node);
    stack_.pop_back();
    return deliver(std::move(done));
  }

  Result<void> deliver(YamlNode node) {
    if (stack_.empty()) {
      root_ = std::move(node);
      return {};
    }
    Frame& parent = stack_.back();
    if (parent.node.is_list()) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.has_key) {
      CAPSTONE_CHECK(check_key(parent.node, node));
      parent.key = std::move(node);
      parent.has_key = true;
    } else {
      parent.node.entries.push_back({std::move(parent.key), std::move(node)});
      parent.has_key = false;
    }
    return {};
  }

  Result<void> check_key(const YamlNode& map, const YamlNode& key) const {
    const auto line = static_cast<std::size_t>(key.line), column = static_cast<std::size_t>(key.column);
    if (!key.is_scalar() || key.text.empty())
      return refuse(line, column, "a key must be a plain word, not " + describe(key), {});
    for (const auto& [earlier, value] : map.entries)
      if (earlier.text == key.text)
        return refuse(line, column, fmt::format("key `{}` appears twice", key.text),
                      fmt::format("it is already on line {}; keep one of them", earlier.line));
    return {};
  }

  const std::string& bytes_;
  const std::string& file_;
  const YamlLimits& limits_;
  yaml_parser_t parser_{};
  yaml_event_t event_{};
  std::vector<Frame> stack_;
  YamlNode root_;
  int count_ = 0;
};

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
  for (const auto& [name, value] : entries)
    if (name.text == key) return &value;
  return nullptr;
}

std::string describe(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "nothing";
    case YamlNode::Kind::kList:
      return "a list";
    case YamlNode::Kind::kMap:
      return "a mapping";
    case YamlNode::Kind::kScalar:
      break;
  }
  constexpr std::size_t kShown = 60;
  return node.text.size() <= kShown ? fmt::format("`{}`", node.text)
                                    : fmt::format("`{}…`", to_utf8(node.text.substr(0, kShown)));
}

Result<YamlNode> parse_yaml(const std::string& bytes, const std::string& file, const YamlLimits& limits) {
  if (bytes.size() > limits.bytes)
    return fail(fmt::format("file is larger than {} KiB", limits.bytes >> 10), file,
                "a definition is about a page of text; do not put data into it");
  if (!is_utf8(bytes) || bytes.find('\0') != std::string::npos)
    return fail("file is not UTF-8 text", file, "save it as UTF-8");
  return TreeBuilder(bytes, file, limits).read();
}

}  // namespace capstone
