#include "rubric/speed_claims.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <regex>

#include "harness/base/ascii.h"
#include "harness/base/text.h"

namespace capstone {
namespace {

// std::regex recurses once per character, so every repetition below is bounded, and so is the length of every
// text that it sees.
constexpr auto kAnyCase = std::regex::ECMAScript | std::regex::icase | std::regex::optimize;
constexpr std::size_t kAround = 60;    // [B] of a number's neighbourhood
constexpr std::size_t kReach = 300;    // [B] of a sentence, to each side
constexpr std::size_t kMost = 20'000;  // numbers that are looked at: bounds the work on a dump
constexpr double kRoundWords = 0.25, kMagnitude = 0.6;  // slack of number words, of "an order of magnitude"
constexpr double kLeastPercent = 5;  // a smaller change is within the slack of every number

using Match = std::match_results<std::string_view::const_iterator>;

bool begins(std::string_view text, const std::regex& pattern, Match& match) {
  return std::regex_search(text.begin(), text.end(), match, pattern, std::regex_constants::match_continuous);
}
bool holds(std::string_view text, const std::regex& pattern) {
  return std::regex_search(text.begin(), text.end(), pattern);
}

// The prose in plain ASCII as far as numbers go: one space for any run of white space, signs that mean "x"
// or "about" in their plain form, no invisible characters. at[i] is the place of byte i in the prose.
struct Plain {
  std::string text;
  std::vector<std::size_t> at;
};

// {UTF-8, what it stands for}
constexpr std::array<std::pair<std::string_view, std::string_view>, 26> kSigns{{
    {"\xC2\xA0", " "},     {"\xE2\x80\x87", " "}, {"\xE2\x80\x89", " "}, {"\xE2\x80\x8A", " "},
    {"\xE2\x80\xAF", " "}, {"\xE3\x80\x80", " "}, {"\xE2\x89\x88", " "}, {"\xE2\x88\xBC", " "},
    {"\xE2\x80\x93", " "}, {"\xE2\x80\x94", " "}, {"\xE2\x80\x9C", " "}, {"\xE2\x80\x9D", " "},
    {"\xC2\xAD", ""},      {"\xE2\x80\x8B", ""},  {"\xE2\x80\x8C", ""},  {"\xE2\x80\x8D", ""},
    {"\xE2\x81\xA0", ""},  {"\xEF\xBB\xBF", ""},  {"\xC3\x97", "x"},     {"\xE2\x9C\x95", "x"},
    {"\xE2\x9C\x96", "x"}, {"\xE2\xA8\xAF", "x"}, {"\xD1\x85", "x"},     {"\xCF\x87", "x"},
    {"\xEF\xBD\x98", "x"}, {"\xE2\x80\x91", "-"},
}};

Plain plain_of(std::string_view prose) {
  Plain plain;
  auto put = [&](char c, std::size_t at) {
    const bool space = c == ' ' || (c >= '\t' && c <= '\r');
    if (space && !plain.text.empty() && plain.text.back() == ' ') return;
    plain.text += space ? ' ' : c;
    plain.at.push_back(at);
  };
  for (std::size_t i = 0; i < prose.size();) {
    const auto u = static_cast<unsigned char>(prose[i]);
    const auto sign =
        u < 0x80 ? kSigns.end() : std::find_if(kSigns.begin(), kSigns.end(), [&](const auto& s) {
          return prose.substr(i).starts_with(s.first);
        });
    if (sign != kSigns.end()) {
      for (char c : sign->second) put(c, i);
      i += sign->first.size();
    } else if (u == 0xEF && prose.size() - i > 2 && prose[i + 1] == '\xBC' &&
               static_cast<unsigned char>(prose[i + 2]) - 0x90u < 10) {  // full-width digits
      put(static_cast<char>('0' + static_cast<unsigned char>(prose[i + 2]) - 0x90), i);
      i += 3;
    } else {
      put(prose[i], i);
      ++i;
    }
  }
  plain.at.push_back(prose.size());
  return plain;
}

// Words that show that a sentence is about time.
bool speaks_of_speed(const std::string& sentence) {
  static const std::regex pattern(
      R"(\b(fast|slow|quick|speed|sped|win|won|beat|lost|lose|gain|improv|accelerat|ahead|behind|outperform|time(?!s\b)))",
      kAnyCase);
  return std::regex_search(sentence, pattern);
}

// Where the last of a pattern's matches before `end` ends; 0: none.
std::size_t last_before(const std::string& sentence, std::size_t end, const std::regex& pattern) {
  std::size_t last = 0;
  for (std::sregex_iterator it(sentence.begin(), sentence.end(), pattern), none; it != none; ++it)
    if (static_cast<std::size_t>(it->position()) < end)
      last = static_cast<std::size_t>(it->position() + it->length());
  return last;
}

// Words that show that a sentence is a prediction, a bound or a rule of thumb, and so not a claim about a
// measurement. "memory-bound" is none.
const std::regex& hope() {
  static const std::regex pattern(
      R"(\b(expect|predict|guess|hop(e|ed|ing)\b|estimat|assum|should|would|could|might|may\b|theor|ideal|at most|up to|at best|limit|ceiling|roof|if\b|target|goal|aim|want|need(?!s\s(?:only\s|just\s|about\s)?\d)|suppose|in principle|potential|plan|said|says|claim|paper|reported)|(^|[^-\w])bound)",
      kAnyCase);
  return pattern;
}

const std::regex& measuring() {
  static const std::regex pattern(
      R"(\b(measured|measurement|got|achieved|reached|came out|turned out|ended up|delivered|actually|in fact|(ledger|judge|capstone|verdict|record|report) (says|said|shows|gives|reported|claims))\b)",
      kAnyCase);
  return pattern;
}

// A sentence hopes, unless a word of measuring stands between the last hope and the number.
bool only_hoped(std::string sentence, std::size_t number) {
  for (const char* what : {"memory", "compute", "latency", "bandwidth", "launch"})  // of the same length
    sentence = replace_all(std::move(sentence), std::string(what) + " bound", std::string(what) + "-bound");
  if (!std::regex_search(sentence, hope())) return false;
  const std::size_t measured = last_before(sentence, number, measuring());
  return measured == 0 || last_before(sentence, number, hope()) > measured;
}

// "4x fewer bytes", "8x unrolled" and "2x the traffic" are factors, but not of time.
bool counts_something_else(std::string_view after) {
  static const std::regex pattern(
      R"(^\s?(-|the\s|as\s(many|much)|few|more|less|larg|small|big|wid|unroll|redund|reuse|read|writ|load|stor|vector|coars|block|tile|thread|warp|byte|memory|traffic|float|higher|lower|register|occup|iteration))",
      kAnyCase);
  static const std::regex anyway(
      R"(^\s?((more|less|higher|lower|better|shorter)\s(time|speed|throughput|performance|runtime|latency)|the\s(speed|throughput|performance|reference|baseline|library|cublas|eager|pytorch|model)))",
      kAnyCase);
  const std::string_view head = after.substr(0, kAround);
  return holds(head, pattern) && !holds(head, anyway);
}

// The sentence around [begin, end), and where `begin` is in it. A full stop inside a number does not end a
// sentence.
std::pair<std::string, std::size_t> sentence_around(std::string_view text, std::size_t begin,
                                                    std::size_t end) {
  auto ends = [&](std::size_t i) {
    return (text[i] == '.' || text[i] == '!' || text[i] == '?' || text[i] == ';') &&
           (i + 1 >= text.size() || text[i + 1] == ' ');
  };
  std::size_t first = begin, farthest = std::min(text.size(), end + kReach);
  while (first > 0 && begin - first < kReach && !ends(first - 1)) --first;
  while (end < farthest && !ends(end)) ++end;
  return {std::string(text.substr(first, end - first)), begin - first};
}

bool counts_anything(const std::string& clause) {
  static const std::regex pattern(
      R"(\b(unroll|tile|coars|register|byte|traffic|load|stor|read|writ|vector|width|occup|block|sector|instruction|barrier))",
      kAnyCase);
  return std::regex_search(clause, pattern);
}

// The part of a sentence between two commas or conjunctions.
std::string clause_around(const std::string& sentence, std::size_t place) {
  static const std::regex border(R"([,;()]|\s(and|but|so|which|because|while)\s)", kAnyCase);
  std::size_t first = 0, last = sentence.size();
  for (std::sregex_iterator it(sentence.begin(), sentence.end(), border), none; it != none; ++it) {
    const auto at = static_cast<std::size_t>(it->position());
    if (at < place)
      first = at;
    else if (last == sentence.size())
      last = at;
  }
  return sentence.substr(first, last - first);
}

// One way to claim a speed with a number.
struct Reading {
  std::size_t before = 0, after = 0;  // [B] of the words that belong to the number
  std::vector<double> ratios;
  enum class Speaks {
    kOfSpeed,  // the words themselves: no other word has to
    kPerhaps,  // "7x": a word of speed in the sentence, or a fraction
    kRather,   // "a factor of 7": the same in its clause, which counts nothing else
  } speaks = Speaks::kPerhaps;
  double slack = 0.05;
};

std::vector<double> changes(double percent) {
  const double p = percent / 100;
  return p < 1 ? std::vector<double>{1 + p, 1 - p} : std::vector<double>{1 + p};
}

// By what stands behind the number.
std::optional<Reading> read_forwards(std::string_view before, std::string_view after, double n) {
  static const std::regex faster(
      R"(\s?(?:x\s?|times\s)(?:as\s(?:fast|quick)|faster|slower|quicker|speedier|the\s(?:\w{1,12}'s\s)?(?:speed|throughput|performance)|(?:the\s|a\s)?speed-?\s?up|(?:improvement|gain)(?!\s(?:in|of)\s)|better(?=\s?(?:[.,;:!)]|than|$))|(?:more|higher)\s(?:speed|throughput|performance)))",
      kAnyCase),
      factor(R"(\s?x(?!\s?\d|[a-z_(]))", kAnyCase), fold(R"([-\s]?fold\b)", kAnyCase),
      ratio(R"((?:\s?:\s?|\sto\s)1\b(?!\.\d))", kAnyCase), speedup(R"(\sspeed-?\s?up\b)", kAnyCase),
      in(R"(\bin\s(?:only\s|just\s|about\s)?$)", kAnyCase),
      of_the_time(R"(\s?(?:%|per\s?cent)\sof\s(?:the|its|their)\s(?:[\w'.-]{1,16}\s){0,2}(?:run\s?)?time\b)",
                  kAnyCase),
      of_anothers_time(
          R"(\s?(?:%|per\s?cent)\sof\s(?:the\s)?(?:reference|baseline|library|eager|pytorch|cublas|model|original|v\d{1,4})(?:'s)?\s(?:run\s?)?time\b)",
          kAnyCase),
      percent(
          R"(\s?(?:%|per\s?cent)\s(?:faster|slower|quicker|better(?=\s?(?:[.,;:!)]|than|$))|speed-?\s?up|(?:performance\s|speed\s)?(?:improvement|gain)(?!\s(?:in|of)\s)|(?:more|higher)\s(?:speed|throughput|performance)))",
          kAnyCase),
      less(R"(\s?(?:%|per\s?cent)\s(?:less|lower|shorter)\s(?:run\s?)?(?:time|latency))", kAnyCase);
  using Speaks = Reading::Speaks;
  Match m, x;
  auto reading = [&](std::vector<double> ratios, Speaks speaks) {
    return Reading{0, static_cast<std::size_t>(m.length(0)), std::move(ratios), speaks};
  };
  const bool sure = begins(after, faster, m);
  if (begins(after, factor, x)) {  // "7.3x" alone is the quotation, whatever follows
    m = x;
    return reading({n}, sure ? Speaks::kOfSpeed : Speaks::kPerhaps);
  }
  if (sure || begins(after, speedup, m)) return reading({n}, Speaks::kOfSpeed);
  if (begins(after, fold, m) || begins(after, ratio, m)) return reading({n}, Speaks::kRather);
  if (begins(after, of_anothers_time, m) || (holds(before, in) && begins(after, of_the_time, m)))
    return reading({n / 100}, Speaks::kOfSpeed);
  if (begins(after, percent, m) && n >= kLeastPercent) return reading(changes(n), Speaks::kOfSpeed);
  if (begins(after, less, m) && n >= kLeastPercent && n < 100)
    return reading({1 - n / 100}, Speaks::kOfSpeed);
  return std::nullopt;
}

// A cheap test, before patterns are tried.
bool may_introduce_a_claim(std::string_view before) {
  const std::string plain = ascii_lower(std::string(before));
  const std::string_view end = trim(plain);
  const auto in = [&](std::string_view word) { return plain.find(word) != std::string::npos; };
  return end.ends_with("x") || end.ends_with("by") || in("factor") || in("speed") || in("sped up") ||
         in("faster") || in("accelerat") || in("improv") || in(" by ");
}

// By what stands before it.
std::optional<Reading> read_backwards(std::string_view before, std::string_view after, double n) {
  static const std::regex factor(
      R"(\bfactor(?:\s(?:of|is|was))?(?:\s(?:about|around|nearly|almost|roughly|over))?\s?$)", kAnyCase),
      speedup(
          R"(\bspeed-?\s?ups?(?:\s?(?:of|is|was|at|by|to|:|=|~|\(|about|around|nearly|almost|over|reached)){0,3}\s?$)",
          kAnyCase),
      by(R"(\b(?:faster|quicker|slower|ahead|wins?|won|leads?|sped\sup|speeds?\sup|accelerat\w{1,4}|improv\w{1,5}|beats?)(?:\s[\w'-]{1,16}){0,4}\sby(?:\s(?:about|around|nearly|almost|over))?\s?$)",
         kAnyCase),
      verb(R"(\b(?:faster|sped\sup|speeds?\sup|accelerat\w{1,4}|improv\w{1,5})(?:\s[\w'-]{1,16}){0,4}\s?$)",
           kAnyCase),
      times(R"(\stimes\b)", kAnyCase), sign(R"((?:^|[^\d\s])\s?\bx\s?$)", kAnyCase),
      unit(R"(\s?(?:%|per\s?cent|ms\b|us\b|µs|s\b|ns\b|[kmgt]i?b\b|[kmgt]?flop|sm\b|\d))", kAnyCase);
  using Speaks = Reading::Speaks;
  Match m;
  if (!may_introduce_a_claim(before) || begins(after, unit, m)) return std::nullopt;
  const std::size_t said_times = begins(after, times, m) ? static_cast<std::size_t>(m.length(0)) : 0;
  auto found = [&](const std::regex& pattern, Speaks speaks) -> std::optional<Reading> {
    if (!std::regex_search(before.begin(), before.end(), m, pattern)) return std::nullopt;
    return Reading{static_cast<std::size_t>(m.length(0)), said_times, {n}, speaks};
  };
  if (auto reading = found(speedup, Speaks::kOfSpeed)) return reading;
  if (auto reading = found(by, Speaks::kOfSpeed)) return reading;
  if (auto reading = found(factor, Speaks::kRather)) return reading;
  if (auto reading = said_times ? found(verb, Speaks::kOfSpeed) : std::nullopt) return reading;
  return found(sign, Speaks::kRather);
}

// "from 8 ms to 1.1 ms", seen from the first number.
std::optional<Reading> read_times(std::string_view before, std::string_view after, double n) {
  static const std::regex from(R"(\bfrom\s(?:about\s)?$)", kAnyCase),
      to(R"(\s?(ms|us|µs|s)\s(?:down\s)?to\s(?:about\s)?(\d{1,6}(?:\.\d{1,6})?)\s?(ms|us|µs|s)\b)", kAnyCase);
  Match m;
  if (!holds(before, from) || !begins(after, to, m)) return std::nullopt;
  const auto in_ms = [](const std::string& unit) { return unit == "ms" ? 1.0 : unit == "s" ? 1e3 : 1e-3; };
  const double then = n * in_ms(m[1].str()),
               now = std::strtod(m[2].str().c_str(), nullptr) * in_ms(m[3].str());
  if (!(now > 0)) return std::nullopt;
  return Reading{0, static_cast<std::size_t>(m.length(0)), {then / now}, Reading::Speaks::kOfSpeed};
}

// Numbers in words. "twice as fast", "seven times faster", "sevenfold", "half the time".
std::optional<Reading> read_word(std::string_view word, std::string_view before, std::string_view after) {
  struct Number {
    std::string_view word;
    double value;
  };
  static constexpr std::array<Number, 21> numbers{
      {{"two", 2},     {"three", 3},   {"four", 4},      {"five", 5},      {"six", 6},     {"seven", 7},
       {"eight", 8},   {"nine", 9},    {"ten", 10},      {"eleven", 11},   {"twelve", 12}, {"fifteen", 15},
       {"twenty", 20}, {"thirty", 30}, {"fifty", 50},    {"hundred", 100}, {"double", 2},  {"doubled", 2},
       {"tripled", 3}, {"triple", 3},  {"quadrupled", 4}}};
  static constexpr std::array<Number, 3> parts{{{"half", 2}, {"third", 3}, {"quarter", 4}}};
  static const std::regex times(
      R"(\stimes\s(?:as\s(?:fast|quick)|faster|slower|quicker|the\s(?:\w{1,12}'s\s)?(?:speed|throughput|performance)))",
      kAnyCase),
      fold(R"([-\s]?fold\b)", kAnyCase),
      twice(R"(\s(?:as\s(?:fast|quick)|faster|the\s(?:speed|throughput|performance)))", kAnyCase),
      doubled(R"(\s(?:the\s|its\s|my\s)?(?:speed|throughput|performance)\b)", kAnyCase),
      needs(R"(\b(?:in|takes?|took|needs?|needed)\s(?:only\s|just\s|about\s)?(?:an?\s)?$)", kAnyCase),
      of_time(R"(\s(?:of\s)?(?:the|its|their)\s(?:[\w'.-]{1,16}\s){0,2}(?:run\s?)?time\b)", kAnyCase),
      magnitude(R"(\sof\smagnitude\s(?:faster|quicker|slower))", kAnyCase);
  Match m;
  auto reading = [&](double n, double slack) {
    return Reading{0, static_cast<std::size_t>(m.length(0)), {n}, Reading::Speaks::kOfSpeed, slack};
  };
  if ((word == "twice" || word == "thrice") && begins(after, twice, m))
    return reading(word == "twice" ? 2 : 3, kRoundWords);
  if (word == "order" && begins(after, magnitude, m)) return reading(10, kMagnitude);
  for (const Number& part : parts)
    if (word == part.word && holds(before, needs) && begins(after, of_time, m))
      return reading(part.value, kRoundWords);
  for (const Number& number : numbers) {
    if (!word.starts_with(number.word)) continue;
    if (word == number.word && (begins(after, times, m) || begins(after, doubled, m)))
      return reading(number.value, kRoundWords);
    const bool joined = word.substr(number.word.size()) == "fold";
    if (joined || (word == number.word && begins(after, fold, m)))
      return Reading{0,
                     joined ? 0 : static_cast<std::size_t>(m.length(0)),
                     {number.value},
                     Reading::Speaks::kRather,
                     kRoundWords};
  }
  return std::nullopt;
}

class Finder {
 public:
  Finder(std::string_view prose, const ProseContext& context)
      : prose_(prose), context_(context), plain_(plain_of(prose)), text_(plain_.text) {}

  std::vector<SpeedClaim> find() {
    if (auto cell = bare_cell()) return {*cell};
    std::size_t seen = 0;
    for (std::size_t at = 0; at < text_.size() && seen < kMost;) {
      const bool digit = is_digit(at), letter = is_letter(at);
      if ((!digit && !letter) || inside_word(at)) {
        ++at;
        continue;
      }
      const std::size_t end = digit ? end_of_number(at) : end_of_word(at);
      ++seen;
      at = std::max(end, digit ? number(at, end) : word(at, end));
    }
    return std::move(claims_);
  }

 private:
  bool is_digit(std::size_t i) const { return i < text_.size() && text_[i] >= '0' && text_[i] <= '9'; }
  bool is_letter(std::size_t i) const {
    return i < text_.size() && std::isalpha(static_cast<unsigned char>(text_[i])) != 0;
  }
  bool inside_word(std::size_t at) const {
    if (at == 0) return false;
    const auto before = static_cast<unsigned char>(text_[at - 1]);
    if (is_digit(at) && (before == 'x' || before == 'X'))  // "x7.3" and no "float4x2"
      return at > 1 && std::isspace(static_cast<unsigned char>(text_[at - 2])) == 0 && text_[at - 2] != '(';
    return std::isalnum(before) != 0 || before == '.' || before == '_' || before == '-' || before == '/' ||
           before >= 0x80;
  }
  // Digits with at most one fraction: "7.3", "7,3".
  std::size_t end_of_number(std::size_t at) const {
    while (is_digit(at)) ++at;
    if (at + 1 < text_.size() && (text_[at] == '.' || text_[at] == ',') && is_digit(at + 1))
      for (++at; is_digit(at);) ++at;
    return at;
  }
  std::size_t end_of_word(std::size_t at) const {
    while (is_letter(at)) ++at;
    return at;
  }
  std::string_view before(std::size_t at) const {
    return text_.substr(at - std::min(at, kAround), std::min(at, kAround));
  }
  std::string_view after(std::size_t at) const { return text_.substr(at, kAround); }
  double value(std::size_t begin, std::size_t end) const {
    return std::strtod(replace_all(std::string(text_.substr(begin, end - begin)), ",", ".").c_str(), nullptr);
  }

  // @return the end of what was read
  std::size_t number(std::size_t begin, std::size_t end) {
    if (end - begin > 13) return end;
    const double n = value(begin, end);
    if (!(n > 0)) return end;
    const bool decimal = text_.substr(begin, end - begin).find_first_of(".,") != std::string_view::npos;
    auto reading = read_forwards(before(begin), after(end), n);
    if (!reading) reading = read_backwards(before(begin), after(end), n);
    if (!reading) reading = read_times(before(begin), after(end), n);
    return reading ? take(begin, end, decimal, *reading) : end;
  }
  std::size_t word(std::size_t begin, std::size_t end) {
    if (end - begin > 14) return end;
    auto reading =
        read_word(ascii_lower(std::string(text_.substr(begin, end - begin))), before(begin), after(end));
    return reading ? take(begin, end, false, *reading) : end;
  }

  std::size_t take(std::size_t begin, std::size_t end, bool decimal, const Reading& reading) {
    const std::size_t first = begin - reading.before, last = end + reading.after;
    auto [sentence, place] = sentence_around(text_, begin, last);
    const std::string headings = context_.column + " " + context_.row + " ";
    if (only_hoped(headings + sentence, headings.size() + place)) return end;
    if (context_.section == 1 && !std::regex_search(sentence, measuring())) return end;
    if (!speaks_of_time(reading, decimal, headings, sentence, place, text_.substr(last))) return end;
    add(first, last, reading, std::move(sentence));
    return last;
  }

  static bool speaks_of_time(const Reading& reading, bool decimal, const std::string& headings,
                             const std::string& sentence, std::size_t place, std::string_view behind) {
    if (reading.speaks == Reading::Speaks::kOfSpeed) return true;
    if (counts_something_else(behind)) return false;
    if (reading.speaks == Reading::Speaks::kPerhaps) return decimal || speaks_of_speed(headings + sentence);
    const std::string clause = clause_around(sentence, place);
    return !counts_anything(clause) && (decimal || speaks_of_speed(headings + clause));
  }

  void add(std::size_t first, std::size_t last, const Reading& reading, std::string sentence) {
    while (first < last && text_[first] == ' ') ++first;
    SpeedClaim claim;
    claim.begin = plain_.at[first], claim.end = plain_.at[last];
    if (!claims_.empty()) claim.begin = std::max(claim.begin, claims_.back().end);
    claim.text = prose_.substr(claim.begin, claim.end - claim.begin);
    claim.ratios = reading.ratios;
    claim.slack = reading.slack;
    claim.sentence = std::move(sentence);
    claims_.push_back(std::move(claim));
  }

  // A number alone in a column, or a row, of speedups.
  std::optional<SpeedClaim> bare_cell() {
    static const std::regex speedups(R"(speed-?\s?up|times\sfaster|\bx\sfaster|faster\sby|^\s*x\s*$)",
                                     kAnyCase),
        percents(R"((%|per\s?cent)\s(faster|gain|improvement))", kAnyCase);
    const std::string column = plain_of(context_.column.substr(0, kReach)).text,
                      row = plain_of(context_.row.substr(0, kReach)).text;
    const std::string_view cell = trim(text_);
    if (cell.empty() || cell.size() > 13 || (column.empty() && row.empty())) return std::nullopt;
    const std::size_t begin = static_cast<std::size_t>(cell.data() - text_.data());
    if (!is_digit(begin) || end_of_number(begin) != begin + cell.size()) return std::nullopt;
    const double n = value(begin, begin + cell.size());
    Reading reading{0, 0, {n}, Reading::Speaks::kOfSpeed};
    if (holds(column, percents) || holds(row, percents))
      reading.ratios = changes(n);
    else if (!holds(column, speedups) && !holds(row, speedups))
      return std::nullopt;
    if (!(n > 0) || n == 1 || context_.section == 1 ||
        only_hoped(column + " " + row, column.size() + row.size() + 1))
      return std::nullopt;
    add(begin, begin + cell.size(), reading, column + " " + row);
    return claims_.back();
  }

  std::string_view prose_;
  const ProseContext& context_;
  Plain plain_;
  std::string_view text_;
  std::vector<SpeedClaim> claims_;
};

}  // namespace

std::vector<SpeedClaim> speed_claims(std::string_view prose, const ProseContext& context) {
  return Finder(prose, context).find();
}

}  // namespace capstone
