#include "harness/model/fields.h"

#include <fmt/format.h>

#include <utility>

#include "harness/base/json_number.h"
#include "harness/base/text.h"

namespace capstone {
namespace {

constexpr const char* kText = "text";
constexpr const char* kWhole = "a whole number";
constexpr const char* kNumber = "a number";

std::string text_of(const Json& value, const std::string& key) {
  if (!value.is_string()) throw WrongType(key, kText, value);
  return printable(value.get_ref<const std::string&>());
}

template <class Integer>
Integer whole_of(const Json& value, const std::string& key) {
  if (value.is_number_unsigned()) {
    if (const auto number = value.get<std::uint64_t>(); std::in_range<Integer>(number))
      return static_cast<Integer>(number);
  } else if (value.is_number_integer()) {
    if (const auto number = value.get<std::int64_t>(); std::in_range<Integer>(number))
      return static_cast<Integer>(number);
  }
  throw WrongType(key, kWhole, value);
}

double number_of(const Json& value, const std::string& key) {
  if (const std::optional<double> number = number_from(value)) return *number;
  throw WrongType(key, kNumber, value);
}

template <class T>
void read_list(const Json& value, const std::string& key, std::vector<T>& into,
               T (*read_one)(const Json&, const std::string&)) {
  detail::require_list(value, key.c_str());
  into.clear();
  into.reserve(value.size());
  for (std::size_t i = 0; i < value.size(); ++i)
    into.push_back(read_one(value[i], detail::element(key.c_str(), i)));
}

std::vector<double> numbers_of(const Json& value, const std::string& key) {
  std::vector<double> numbers;
  read_list(value, key, numbers, number_of);
  return numbers;
}

}  // namespace

WrongType::WrongType(std::string key, std::string expected, const Json& found)
    : key_(std::move(key)), rest_(fmt::format(" must be {}, not {}", expected, describe(found))) {
  text_ = key_ + rest_;
}

void WrongType::lies_in(std::string_view key) {
  key_ = fmt::format("{}.{}", key, key_);
  text_ = key_ + rest_;
}

std::string describe(const Json& value) {
  constexpr std::size_t kShown = 40;
  switch (value.type()) {
    case Json::value_t::null:
      return "nothing (null)";
    case Json::value_t::object:
      return value.empty() ? "an empty object" : "an object";
    case Json::value_t::array:
      return value.empty() ? "an empty list" : "a list";
    case Json::value_t::string: {
      const std::string text = printable(value.get_ref<const std::string&>());
      return text.size() > kShown ? "the text \"" + to_utf8(text.substr(0, kShown)) + "…\""
                                  : "the text \"" + text + "\"";
    }
    case Json::value_t::boolean:
      return value.get<bool>() ? "true" : "false";
    default:
      return "the number " + value.dump();
  }
}

const Json* field(const Json& json, const char* key) {
  auto found = json.find(key);
  return found == json.end() || found->is_null() ? nullptr : &*found;
}

void read(const Json& json, const char* key, bool& into) {
  const Json* value = field(json, key);
  if (value && !value->is_boolean()) throw WrongType(key, "true or false", *value);
  if (value) into = value->get<bool>();
}
void read(const Json& json, const char* key, int& into) {
  if (const Json* value = field(json, key)) into = whole_of<int>(*value, key);
}
void read(const Json& json, const char* key, std::int64_t& into) {
  if (const Json* value = field(json, key)) into = whole_of<std::int64_t>(*value, key);
}
void read(const Json& json, const char* key, std::uint64_t& into) {
  if (const Json* value = field(json, key)) into = whole_of<std::uint64_t>(*value, key);
}
void read(const Json& json, const char* key, double& into) {
  if (const Json* value = field(json, key)) into = number_of(*value, key);
}
void read(const Json& json, const char* key, std::optional<double>& into) {
  if (const Json* value = field(json, key)) into = number_of(*value, key);
}
void read(const Json& json, const char* key, std::string& into) {
  if (const Json* value = field(json, key)) into = text_of(*value, key);
}
void read(const Json& json, const char* key, std::vector<std::string>& into) {
  if (const Json* value = field(json, key)) read_list(*value, key, into, text_of);
}
void read(const Json& json, const char* key, std::vector<std::int64_t>& into) {
  if (const Json* value = field(json, key)) read_list(*value, key, into, whole_of<std::int64_t>);
}
void read(const Json& json, const char* key, std::vector<std::vector<double>>& into) {
  if (const Json* value = field(json, key)) read_list(*value, key, into, numbers_of);
}

void read_counts(const Json& json, const char* key, Json& into) {
  const Json* value = field(json, key);
  if (!value) return;
  detail::require_object(*value, key);
  for (const auto& [name, count] : value->items())
    if (!count.is_number_integer())
      throw WrongType(fmt::format("{}.{}", key, printable(name)), kWhole, count);
  into = *value;
}

void read_object(const Json& json, const char* key, Json& into, const KnownKeys& known) {
  const Json* value = field(json, key);
  if (!value) return;
  detail::require_object(*value, key);
  Json object = *value;
  const auto path = [&](const char* name) { return fmt::format("{}.{}", key, name); };
  for (const char* name : known.texts)
    if (const Json* text = field(object, name)) object[name] = text_of(*text, path(name));
  for (const char* name : known.counts)
    if (const Json* count = field(object, name)) object[name] = whole_of<int>(*count, path(name));
  for (const char* name : known.numbers)
    if (const Json* number = field(object, name); number && !number->is_number())
      throw WrongType(path(name), kNumber, *number);
  for (const auto& names : {known.texts, known.counts, known.numbers})
    for (const char* name : names)  // a key that holds nothing is as good as none
      if (object.contains(name) && object[name].is_null()) object.erase(name);
  into = std::move(object);
}

namespace detail {

void require_object(const Json& value, const char* key) {
  if (!value.is_object()) throw WrongType(key, "an object", value);
}
void require_list(const Json& value, const char* key) {
  if (!value.is_array()) throw WrongType(key, "a list", value);
}
std::string element(const char* key, std::size_t index) { return fmt::format("{}[{}]", key, index); }

}  // namespace detail

}  // namespace capstone
