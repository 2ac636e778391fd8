#include "harness/model/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>

#include "harness/base/text.h"

namespace capstone {
namespace {

/// Ends the library's parse from inside an event; never leaves this file.
struct Refused {
  Error error;
};

class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(const std::string& file, const YamlLimits& limits) : file_(file), limits_(limits) {}

  YamlNode take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { deliver(make(YamlNode::Kind::kNull, mark)); }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(mark, "aliases (`*name`) are not allowed here", "write the value out");
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& value) override {
    YamlNode node = make(YamlNode::Kind::kScalar, mark);
    check_tag(mark, tag);
    node.text = value;
    node.quoted = tag == "!";
    if (!node.quoted && (value == "~" || value == "null")) node.kind = YamlNode::Kind::kNull;
    deliver(std::move(node));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::kList, mark, tag);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::kMap, mark, tag);
  }
  void OnMapEnd() override { close(); }

 private:
  /// A collection that is being read. A map remembers the key of the next value.
  struct Frame {
    YamlNode node;
    YamlNode key;
    bool has_key = false;
  };

  [[noreturn]] void refuse(int line, int column, std::string what, std::string hint) const {
    throw Refused{
        {std::move(what), fmt::format("{}:{}:{}", file_, line, column), std::move(hint), ExitCode::kUsage}};
  }
  [[noreturn]] void refuse(const YAML::Mark& mark, std::string what, std::string hint) const {
    refuse(mark.line + 1, mark.column + 1, std::move(what), std::move(hint));
  }

  void check_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (!tag.empty() && tag != "?" && tag != "!")
      refuse(mark, fmt::format("tags (`{}`) are not allowed here", to_utf8(tag)), "write the plain value");
  }

  YamlNode make(YamlNode::Kind kind, const YAML::Mark& mark) {
    if (++count_ > limits_.nodes) refuse(mark, fmt::format("more than {} values", limits_.nodes), {});
    YamlNode node;
    node.kind = kind;
    node.line = mark.line + 1;
    node.column = mark.column + 1;
    return node;
  }

  void open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag) {
    check_tag(mark, tag);
    if (static_cast<int>(stack_.size()) >= limits_.depth)
      refuse(mark, fmt::format("nested deeper than {} levels", limits_.depth), {});
    Frame frame;
    frame.node = make(kind, mark);
    stack_.push_back(std::move(frame));
  }

  void close() {
    YamlNode done = std::move(stack_.back().node);
    stack_.pop_back();
    deliver(std::move(done));
  }

  void deliver(YamlNode node) {
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& parent = stack_.back();
    if (parent.node.is_list()) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.has_key) {
      check_key(parent.node, node);
      parent.key = std::move(node);
      parent.has_key = true;
    } else {
      parent.node.entries.push_back({std::move(parent.key), std::move(node)});
      parent.has_key = false;
    }
  }

  void check_key(const YamlNode& map, const YamlNode& key) const {
    if (!key.is_scalar() || key.text.empty())
      refuse(key.line, key.column, "a key must be a plain word, not " + describe(key), {});
    for (const auto& [earlier, value] : map.entries)
      if (earlier.text == key.text)
        refuse(key.line, key.column, fmt::format("key `{}` appears twice", key.text),
               fmt::format("it is already on line {}; keep one of them", earlier.line));
  }

  const std::string& file_;
  const YamlLimits& limits_;
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
  try {
    std::istringstream stream(bytes);
    YAML::Parser parser(stream);
    TreeBuilder builder(file, limits);
    if (!parser.HandleNextDocument(builder)) return fail("file is empty", file + ":1:1");
    YamlNode root = builder.take();
    TreeBuilder rest(file, limits);
    if (parser.HandleNextDocument(rest)) {
      const YamlNode second = rest.take();
      return fail("a second document", fmt::format("{}:{}:{}", file, second.line, second.column),
                  "keep one document per file (remove `---`)");
    }
    return root;
  } catch (const Refused& refused) {
    return fail(refused.error);
  } catch (const YAML::Exception& e) {
    return fail("not valid YAML: " + e.msg,
                fmt::format("{}:{}:{}", file, std::max(0, e.mark.line) + 1, std::max(0, e.mark.column) + 1));
  }
}

}  // namespace capstone
