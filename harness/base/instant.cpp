#include "harness/base/instant.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <optional>

#include "harness/base/text.h"

namespace capstone {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}
  // Reads at least `digits` and at most `most` digits.
  std::optional<int> number(std::size_t digits, int most) {
    int value = 0;
    if (rest_.size() < digits) return std::nullopt;
    auto [end, error] = std::from_chars(rest_.data(), rest_.data() + digits, value);
    if (error != std::errc{} || end != rest_.data() + digits || value < 0 || value > most)
      return std::nullopt;
    rest_.remove_prefix(digits);
    return value;
  }
  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void skip_fraction() {
    if (!take(".")) return;
    while (!rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9') rest_.remove_prefix(1);
  }
  bool done() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

// [s] east of Greenwich.
std::optional<int> read_zone(Reader& reader) {
  reader.take(" ");
  if (reader.take("Z") || reader.take("UTC")) return 0;
  const int sign = reader.take("+") ? 1 : reader.take("-") ? -1 : 0;
  if (!sign) return std::nullopt;
  auto hours = reader.number(2, 14);
  reader.take(":");
  auto minutes = reader.number(2, 59);
  if (!hours || !minutes) return std::nullopt;
  return sign * (*hours * 3600 + *minutes * 60);
}

}  // namespace

Result<Instant> parse_instant(std::string_view written) {
  const std::string text(trim(written));
  auto refuse = [&](const char* why) {
    return fail(std::string(why) + ": \"" + to_utf8(text) + "\"", {},
                "for example 2026-11-20T23:59Z or 2026-11-20T23:59+01:00");
  };
  Reader reader(text);
  auto year = reader.number(4, 9999);
  auto month = year && reader.take("-") ? reader.number(2, 12) : std::nullopt;
  auto day = month && reader.take("-") ? reader.number(2, 31) : std::nullopt;
  auto hour = day && (reader.take("T") || reader.take(" ")) ? reader.number(2, 23) : std::nullopt;
  auto minute = hour && reader.take(":") ? reader.number(2, 59) : std::nullopt;
  if (!minute) return refuse("not a date with a time of day");
  std::optional<int> second = 0;
  if (reader.take(":")) second = reader.number(2, 60);
  if (!second) return refuse("not a date with a time of day");
  reader.skip_fraction();
  const std::chrono::year_month_day date{std::chrono::year{*year},
                                         std::chrono::month{static_cast<unsigned>(*month)},
                                         std::chrono::day{static_cast<unsigned>(*day)}};
  if (!date.ok()) return refuse("this date does not exist");
  auto zone = read_zone(reader);
  if (!zone || !reader.done()) return refuse("the time has no time zone");
  return std::chrono::sys_days{date}.time_since_epoch().count() * Instant{86'400} + *hour * 3600 +
         *minute * 60 + *second - *zone;
}

std::string utc_text(Instant instant) {
  const Instant days = instant >= 0 ? instant / 86'400 : -((86'399 - instant) / 86'400),
                rest = instant - days * 86'400;
  const std::chrono::year_month_day date{std::chrono::sys_days{std::chrono::days{days}}};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), rest / 3600,
                     rest / 60 % 60, rest % 60);
}

}  // namespace capstone
