#include "harness/project/ledger/lines.h"

#include "harness/base/json.h"
#include "harness/base/text.h"

namespace capstone {
namespace {

std::string_view without_return(std::string_view text) {
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

// Collects the top-level scalars of a record until its body begins.
class HeaderReader : public nlohmann::json_sax<Json> {
 public:
  Header header;
  bool seen_seq = false, seen_kind = false, seen_machine = false;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t value) override { return integer(value); }
  bool number_unsigned(number_unsigned_t value) override {
    return value > kMost || integer(static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool string(string_t& value) override {
    if (depth_ != 1) return true;
    if (key_ == "kind") header.kind = value, seen_kind = true;
    if (key_ == "machine") header.machine = value, seen_machine = true;
    if (key_ == "previous") header.previous = value;
    return true;
  }
  bool start_object(std::size_t) override { return ++depth_ > 0; }
  bool end_object() override { return --depth_ >= 0; }
  bool start_array(std::size_t) override { return ++depth_ > 0; }
  bool end_array() override { return --depth_ >= 0; }
  bool key(string_t& name) override {
    if (depth_ != 1) return true;
    key_ = name;
    return !(name == "body" && complete());  // false ends the parse
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) override { return false; }
  bool complete() const { return seen_seq && seen_kind && seen_machine; }

 private:
  bool integer(std::int64_t value) {
    if (depth_ != 1 || value < 0 || value > std::int64_t{kMost}) return true;
    if (key_ == "seq") header.seq = value, seen_seq = true;
    if (key_ == "schema_version") header.schema = static_cast<int>(value);
    return true;
  }
  static constexpr std::int32_t kMost = 1'000'000'000;  // as the number of a record, and as a schema
  int depth_ = 0;
  std::string key_;
};

}  // namespace

std::vector<Line> lines_of(std::string_view bytes) {
  std::vector<Line> lines;
  std::size_t number = 0;
  for (std::size_t start = 0; start < bytes.size();) {
    std::size_t newline = bytes.find('\n', start);
    bool ended = newline != std::string_view::npos;
    std::size_t stop = ended ? newline : bytes.size();
    std::string_view text = without_return(bytes.substr(start, stop - start));
    ++number;
    if (!trim(text).empty()) lines.push_back({number, start, text, ended});
    start = stop + 1;
  }
  return lines;
}

std::optional<Line> last_line(std::string_view bytes, std::size_t end) {
  while (end > 0) {
    bool ended = bytes[end - 1] == '\n';
    std::size_t stop = ended ? end - 1 : end;
    std::size_t newline = stop == 0 ? std::string_view::npos : bytes.rfind('\n', stop - 1);
    std::size_t start = newline == std::string_view::npos ? 0 : newline + 1;
    std::string_view text = without_return(bytes.substr(start, stop - start));
    if (!trim(text).empty()) return Line{0, start, text, ended};
    end = start;
  }
  return std::nullopt;
}

std::optional<Header> header_of(std::string_view line) {
  HeaderReader reader;
  Json::sax_parse(line.begin(), line.end(), &reader);
  if (!reader.complete()) return std::nullopt;
  return reader.header;
}

bool is_whole_json(std::string_view line) { return Json::accept(line.begin(), line.end()); }

}  // namespace capstone
