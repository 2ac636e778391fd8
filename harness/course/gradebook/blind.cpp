#include "harness/course/gradebook/blind.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/project/ledger/ledger.h"
#include "rubric/numbers.h"

namespace capstone {
namespace {

constexpr std::size_t kMaxText = 4u << 20, kShortestPart = 3;  // [B]
constexpr std::string_view kAuthor = "[author]";

bool in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

bool same(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

// What the ledger recorded, without the names of machines.
std::string measurements_of(const LedgerView& ledger) {
  std::string text =
      "# What was measured\n\n| version | gate one | gate two | speedup | expected | reason |\n"
      "|:--|:--|:--|:--|:--|:--|\n";
  for (const char* candidate : kCandidates)
    for (const Measurement* m : ledger.versions(candidate)) {
      const auto expected = ledger.expected_speedup(candidate, m->version);
      text += fmt::format(
          "| {} | {} | {} | {} | {} | {} |\n", m->version, label_of(m->gate_one), label_of(m->gate_two),
          speedup_text(*m), expected ? format_speedup(*expected) : "",
          replace_all(replace_all(to_utf8(ledger.reason(candidate, m->version)), "\n", " "), "|", "\\|"));
    }
  return text;
}

}  // namespace

NameMask::NameMask(const std::vector<Person>& people, const std::vector<std::string>& also) {
  std::set<std::string> words(also.begin(), also.end());
  for (const Person& person : people) {
    words.insert({person.name, person.id, person.email});
    if (std::size_t at = person.email.find('@'); at != std::string::npos)
      words.insert(person.email.substr(0, at));
    std::string part;
    for (char c : person.name + " ") {
      if (in_word(c))
        part += c;
      else {
        // Skips "von", "the".
        if (part.size() >= kShortestPart && !(part[0] >= 'a' && part[0] <= 'z')) words.insert(part);
        part.clear();
      }
    }
  }
  words.erase("");
  words_.assign(words.begin(), words.end());
  std::stable_sort(words_.begin(), words_.end(),
                   [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
}

std::string NameMask::apply(std::string_view text) const {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const bool begins = at == 0 || !in_word(text[at - 1]) || !in_word(text[at]);
    auto word = std::find_if(words_.begin(), words_.end(), [&](const std::string& w) {
      return begins && at + w.size() <= text.size() && same(text.substr(at, w.size()), w) &&
             (at + w.size() == text.size() || !in_word(text[at + w.size()]) || !in_word(w.back()));
    });
    if (word == words_.end()) {
      out += text[at++];
    } else {
      out += kAuthor;
      at += word->size();
    }
  }
  return out;
}

Result<void> write_blind_copy(const fs::path& folder, const std::string& code, const fs::path& project,
                              const fs::path& worklog, const GradebookRow& row, const Rubric& rubric,
                              Json evidence, const Comments& comments, const NameMask& mask) {
  CAPSTONE_CHECK(make_folders(folder));
  std::error_code error;
  std::vector<fs::path> files;
  if (auto rendered = read_file(worklog, kMaxText))
    CAPSTONE_CHECK(write_file_atomic(folder / "worklog.md", mask.apply(*rendered)));
  else
    files.push_back(project / "worklog.md");
  if (auto ledger = read_ledger(project / ".capstone" / "ledger.jsonl"); !project.empty() && ledger)
    CAPSTONE_CHECK(write_file_atomic(folder / "ledger.md", mask.apply(measurements_of(*ledger))));
  for (const char* part : kCandidates)
    if (!project.empty())
      for (fs::recursive_directory_iterator walk(project / part, error), end; !error && walk != end;
           walk.increment(error))
        if (walk->is_regular_file(error) && !walk->is_symlink(error)) files.push_back(walk->path());
  for (const fs::path& file : files) {
    auto text = read_file(file, kMaxText);
    // Names in binary files (pictures, programs) cannot be masked, so these files are not copied.
    if (project.empty() || !text || text->find('\0') != std::string::npos) continue;
    const fs::path place = folder / file.lexically_relative(project);
    CAPSTONE_CHECK(make_folders(place.parent_path()));
    CAPSTONE_CHECK(write_file_atomic(place, mask.apply(*text)));
  }
  evidence.erase("places");  // they lie in a folder with the author's name
  for (Json& criterion : evidence["criteria"]) {
    if (!criterion.is_object()) continue;
    criterion.erase("suggested");
    for (Json& found : criterion["evidence"])
      if (found.is_object()) found["found"] = mask.apply(found.value("found", ""));
  }
  GradebookRow blind;
  blind.submission = code;
  blind.problem = row.problem;
  blind.state = row.state;
  blind.marks.resize(rubric.criteria.size());
  return write_file_atomic(folder / "marks.yaml", marking_sheet(blind, rubric, evidence, comments));
}

}  // namespace capstone
