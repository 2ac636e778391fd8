#include "harness/project/lab/lab.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "harness/base/files.h"
#include "harness/base/spelling.h"
#include "harness/base/text.h"
#include "harness/model/strict_yaml.h"

namespace capstone {
namespace {

double per(double amount, double of) { return of > 0 ? amount / of : 0; }

// L2 to L8 and W1 to W6, a hyphen and a number.
bool is_lab_id(const std::string& id) {
  return id.size() == 4 && (id[0] == 'L' || id[0] == 'W') && id[1] >= '1' && id[1] <= '8' && id[2] == '-' &&
         id[3] >= '1' && id[3] <= '9';
}

class LabReader : StrictYaml {
 public:
  using StrictYaml::StrictYaml;

  Result<Lab> read(const YamlNode& root) const {
    CAPSTONE_CHECK(keys(root, {"title", "rung", "aim", "read", "spans", "hints"}, {"limits"}));
    Lab lab;
    CAPSTONE_TRY(lab.title, text(root, "title"));
    CAPSTONE_TRY(lab.rung, text(root, "rung"));
    CAPSTONE_TRY(lab.aim, text(root, "aim"));
    CAPSTONE_TRY(lab.read, texts(*root.find("read"), "read"));
    CAPSTONE_TRY(lab.hints, texts(*root.find("hints"), "hints"));
    if (lab.hints.size() != 3)
      return refuse(*root.find("hints"), "a lab has three hints, from vague to exact");
    const YamlNode& spans = *root.find("spans");
    if (!spans.is_list() || spans.items.empty()) return refuse(spans, "`spans` must be a list of spans");
    for (const YamlNode& node : spans.items) {
      CAPSTONE_TRY(LabSpan span, read_span(node));
      lab.spans.push_back(std::move(span));
    }
    if (const YamlNode* limits = root.find("limits")) {
      CAPSTONE_TRY(lab.limits, read_limits(*limits));
    }
    return lab;
  }

 private:
  Result<LabSpan> read_span(const YamlNode& node) const {
    CAPSTONE_CHECK(keys(node, {"first", "put"}, {"last"}));
    LabSpan span;
    CAPSTONE_TRY(span.first, text(node, "first"));
    span.last = span.first;
    if (node.find("last")) {
      CAPSTONE_TRY(span.last, text(node, "last"));
    }
    CAPSTONE_TRY(span.put, text(node, "put"));
    if (count_todos(span.put) == 0)
      return refuse(*node.find("put"), "`put` says nothing to do",
                    "a comment in it must begin with `// TODO`");
    return span;
  }

  // {sectors per request: {at_most: 4}}
  Result<std::vector<LabLimit>> read_limits(const YamlNode& map) const {
    if (!map.is_map()) return refuse(map, "`limits` must map counts to bounds, not " + describe(map));
    std::vector<LabLimit> limits;
    for (const auto& [key, value] : map.entries) {
      const auto& counts = lab_counts();
      const auto found =
          std::find_if(counts.begin(), counts.end(), [&](const LabCount& c) { return c.name == key.text; });
      if (found == counts.end()) {
        std::vector<std::string> names;
        for (const LabCount& count : counts) names.emplace_back(count.name);
        return refuse(key, fmt::format("`{}` is not counted", key.text), "counts: " + join(names, ", "));
      }
      CAPSTONE_TRY(LabLimit limit, read_bound(value));
      limit.count = &*found;
      limits.push_back(limit);
    }
    return limits;
  }

  Result<LabLimit> read_bound(const YamlNode& map) const {
    CAPSTONE_CHECK(keys(map, {}, {"at_most", "at_least"}));
    if (map.entries.size() != 1) return refuse(map, "a limit is either at_most or at_least", "{at_most: 4}");
    const auto& [key, value] = map.entries.front();
    LabLimit limit;
    limit.at_least = key.text == "at_least";
    const char* end = value.text.data() + value.text.size();
    const auto [stop, error] = std::from_chars(value.text.data(), end, limit.bound);
    if (!value.is_scalar() || value.quoted || error != std::errc() || stop != end || !(limit.bound >= 0))
      return refuse(value, fmt::format("`{}` must be a number from 0, not {}", key.text, describe(value)));
    return limit;
  }
};

std::string indentation(const std::string& line) { return line.substr(0, line.find_first_not_of(' ')); }

// Where a span lies in a rung: lines, from 0, both included.
struct Place {
  std::size_t first = 0, last = 0;
};

Result<std::vector<Place>> places(const Lab& lab, const std::vector<std::string>& lines) {
  const std::string where = lab.rung.string();
  const std::string hint = "the span of lab " + lab.id + " must name lines of the rung, without indentation";
  std::vector<Place> found;
  for (const LabSpan& span : lab.spans) {
    auto is = [&](const std::string& wanted) {
      return [&wanted](const std::string& line) { return trim(line) == wanted; };
    };
    const auto times = std::count_if(lines.begin(), lines.end(), is(span.first));
    if (times != 1)
      return fail(
          fmt::format("the rung has {} the line `{}`", times ? "more than once" : "nowhere", span.first),
          where, hint);
    const auto first = std::find_if(lines.begin(), lines.end(), is(span.first));
    const auto last = std::find_if(first, lines.end(), is(span.last));
    if (last == lines.end())
      return fail(fmt::format("the rung has no line `{}` after `{}`", span.last, span.first), where, hint);
    const Place place{static_cast<std::size_t>(first - lines.begin()),
                      static_cast<std::size_t>(last - lines.begin())};
    if (!found.empty() && place.first <= found.back().last)
      return fail(fmt::format("the span that begins with `{}` overlaps the one before it", span.first), where,
                  "spans are in the order of the rung");
    found.push_back(place);
  }
  return found;
}

// The fields of the rung's comment that an exercise keeps: what a student must know and cannot guess.
std::string kept_comment(const std::vector<std::string>& lines) {
  std::string kept;
  bool keeping = false;
  for (const std::string& line : lines) {
    if (!line.starts_with("//")) break;
    if (line.size() > 3 && line[3] != ' ') {
      keeping = false;
      for (const char* field : {"// Shapes ", "// Launch ", "// Divides "})
        keeping |= line.starts_with(field);
    }
    if (keeping && line != "//") kept += line + "\n";
  }
  return kept;
}

}  // namespace

const std::vector<LabCount>& lab_counts() {
  static const std::vector<LabCount> counts{
      {"sectors per request", "neighbouring lanes must touch neighbouring addresses of global memory",
       [](const Explanation& e) { return e.total.global.units_per_request(); }},
      {"times the ideal wavefronts", "the lanes of a warp must touch different banks of shared memory",
       [](const Explanation& e) { return e.total.shared.excess(); }},
      {"times the necessary bytes", "what is used several times must be kept in shared memory or registers",
       [](const Explanation& e) { return per(e.moved_bytes(), e.compulsory_bytes); }},
      {"FLOPs per shared byte", "a value must be loaded from shared memory once and used several times",
       [](const Explanation& e) {
         return per(static_cast<double>(e.total.flops), static_cast<double>(e.total.shared.bytes));
       }},
      {"lanes per request", "the lanes of a warp must go the same way",
       [](const Explanation& e) { return e.total.both().lanes_per_request(); }},
      {"launches", "one launch must do the work of several",
       [](const Explanation& e) {
         double launches = 0;
         for (const KernelCounts& kernel : e.kernels) launches += static_cast<double>(kernel.launches);
         return launches;
       }},
      {"barriers for each warp", "threads must wait for each other less often",
       [](const Explanation& e) {
         std::uint64_t warps = 0;
         for (const KernelCounts& kernel : e.kernels) warps += kernel.threads / 32;
         return per(static_cast<double>(e.total.barriers), static_cast<double>(warps));
       }},
      {"launches", "one launch must do the work of several",
       [](const Explanation& e) {
         double launches = 0;
         for (const KernelCounts& kernel : e.kernels) launches += static_cast<double>(kernel.launches);
         return launches;
       }},
  };
  return counts;
}

Result<Lab> load_lab(const fs::path& file) {
  const std::string id = file.stem();
  if (!is_lab_id(id)) return fail("a lab is named like L4-2.yaml", file.string(), "session, hyphen, number");
  CAPSTONE_TRY(const std::string bytes, read_file(file, YamlLimits{}.bytes));
  CAPSTONE_TRY(const YamlNode root, parse_yaml(bytes, file.string()));
  CAPSTONE_TRY(Lab lab, LabReader(file).read(root));
  lab.id = id;
  return lab;
}

Result<std::vector<Lab>> labs_of(const fs::path& reference_kernels, const std::string& session) {
  std::error_code code;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(reference_kernels / "labs", code))
    if (entry.path().extension() == ".yaml" && entry.path().filename().string().starts_with(session))
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<Lab> labs;
  for (const fs::path& file : files) {
    CAPSTONE_TRY(Lab lab, load_lab(file));
    labs.push_back(std::move(lab));
  }
  return labs;
}

Result<std::vector<Lab>> load_labs(const fs::path& reference_kernels) {
  CAPSTONE_TRY(auto labs, labs_of(reference_kernels, ""));
  if (labs.empty())
    return fail("this installation has no labs", (reference_kernels / "labs").string(),
                "install capstone again, or take the whole package", ExitCode::kEnvironment);
  return labs;
}

Result<Lab> find_lab(const std::vector<Lab>& labs, const std::string& id) {
  std::string wanted = id;
  std::transform(wanted.begin(), wanted.end(), wanted.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  std::vector<std::string> known, of_session;
  for (const Lab& lab : labs) {
    if (lab.id == wanted) return lab;
    known.push_back(lab.id);
    if (lab.session() == wanted.substr(0, 2)) of_session.push_back(lab.id);
  }
  const auto meant = nearest(wanted, known);
  return fail("no lab is called " + id, {},
              !of_session.empty() ? "labs of " + wanted.substr(0, 2) + ": " + join(of_session, ", ")
              : meant             ? "did you mean " + *meant + "?"
                                  : "`capstone lab list` shows all of them");
}

Result<std::vector<TakenOut>> taken_out(const Lab& lab, const std::string& rung) {
  const auto lines = split(rung, '\n');
  CAPSTONE_TRY(const auto found, places(lab, lines));
  std::vector<TakenOut> all;
  for (const Place& place : found) {
    TakenOut out{static_cast<int>(place.first) + 1, {}};
    for (std::size_t i = place.first; i <= place.last; ++i) out.text += lines[i] + "\n";
    all.push_back(std::move(out));
  }
  return all;
}

Result<std::string> exercise(const Lab& lab, const std::string& rung) {
  const auto lines = split(rung, '\n');
  CAPSTONE_TRY(const auto found, places(lab, lines));
  std::string text = fmt::format(
      "// Lab {}: {}.\n//\n// Write what each TODO says. README.md says what to read first.\n"
      "// `capstone lab` in this folder checks the kernel.\n//\n{}",
      lab.id, lab.title, kept_comment(lines));
  const auto code =
      std::find_if(lines.begin(), lines.end(), [](const auto& line) { return !line.starts_with("//"); });
  auto span = found.begin();
  for (auto i = static_cast<std::size_t>(code - lines.begin()); i < lines.size(); ++i) {
    if (span == found.end() || i != span->first) {
      text += lines[i] + (i + 1 < lines.size() ? "\n" : "");
      continue;
    }
    const std::string indent = indentation(lines[i]);
    for (const std::string& line : split(lab.spans[static_cast<std::size_t>(span - found.begin())].put, '\n'))
      text += (line.empty() || line.starts_with("#") ? line : indent + line) + "\n";
    i = span++->last;
  }
  return text;
}

int count_todos(const std::string& source) {
  const auto lines = split(source, '\n');
  return static_cast<int>(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find("// TODO") != std::string::npos;
  }));
}

}  // namespace capstone
