#include "templates/gnuplot.h"

#include <fmt/format.h>
#include <stdlib.h>  // mkdtemp

#include <filesystem>

#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"

namespace capstone {

namespace {

// gnuplot draws in these colours. Afterwards each colour is replaced by a CSS variable, so that the plots
// follow the page's light or dark scheme. The exact values do not matter, as long as they are distinct.
struct Ink {
  const char* name;
  const char* rgb;
  const char* css;
};
constexpr std::array<Ink, 7> kInks{{
    {"ink", "#111213", "var(--plot-ink)"},
    {"grid", "#212223", "var(--plot-grid)"},
    {"human", "#313233", "var(--human)"},
    {"llm", "#414243", "var(--llm)"},
    {"together", "#717273", "var(--together)"},
    {"base", "#515253", "var(--base)"},
    {"bad", "#616263", "var(--bad)"},
}};

std::string rgb_of(std::string_view name) {
  for (const Ink& i : kInks)
    if (name == i.name) return fmt::format("rgb '{}'", i.rgb);
  return "black";
}

constexpr const char* kPreamble =
    "reset\n"
    "set encoding utf8\n"
    "set datafile separator tab\n"
    "set border 3 lw 0.8 {ink}\n"
    "set tics nomirror scale 0.5 textcolor {rgb}\n"
    "set key tmargin left horizontal Left reverse textcolor {rgb} samplen 1.5 spacing 1.2\n"
    "set grid ytics {grid} lw 0.7 dt 1\n"
    "set pointintervalbox 0\n";

std::string file_of(const Plot& plot, const Canvas& canvas) { return plot.name + "_" + canvas.name; }

std::string script_of(const std::vector<Draft>& drafts) {
  std::string script;
  for (const Draft& d : drafts)
    for (std::size_t i = 0; i < kCanvases.size(); ++i) {
      const Canvas& canvas = kCanvases[i];
      script += fmt::format(fmt::runtime(kPreamble), fmt::arg("ink", ink("ink")),
                            fmt::arg("grid", ink("grid")), fmt::arg("rgb", rgb_of("ink")));
      script += fmt::format(
          "set terminal svg size {},{} dynamic noenhanced font 'sans-serif,{}'\nset output '{}.svg'\n",
          canvas.width, d.drawings[i].height, canvas.font, file_of(d.plot, canvas));
      script += d.drawings[i].commands + "unset output\n";
    }
  return script;
}

std::string escape_xml(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

// gnuplot writes a colour as "rgb( 17,  18,  19)" or "rgb(17,18,19)", and its default colours by name.
void recolour(std::string& svg) {
  for (const Ink& i : kInks) {
    auto channel = [&](int at) { return std::stoi(std::string(i.rgb + at, 2), nullptr, 16); };
    int red = channel(1), green = channel(3), blue = channel(5);
    svg = replace_all(svg, fmt::format("rgb({:3d}, {:3d}, {:3d})", red, green, blue), i.css);
    svg = replace_all(svg, fmt::format("rgb({},{},{})", red, green, blue), i.css);
  }
  // The remaining colours are defaults of gnuplot.
  for (std::size_t at = 0; (at = svg.find("rgb(", at)) != std::string::npos;)
    if (std::size_t close = svg.find(')', at); close != std::string::npos)
      svg.replace(at, close + 1 - at, "var(--plot-ink)");
    else
      break;
  for (auto [name, css] :
       {std::pair{"black", "var(--plot-ink)"}, {"gray", "var(--plot-ink)"}, {"white", "var(--paper)"}})
    for (char quote : {'\'', '"'})
      svg = replace_all(svg, fmt::format("{0}{1}{0}", quote, name), fmt::format("{0}{1}{0}", quote, css));
}

// gnuplot's tooltips call a script. A <title> does the same without one. The text is plain_text(), which has
// no quotes.
bool without_scripts(std::string& body) {
  static constexpr std::string_view kBegin = "<g onmousemove=\"gnuplot_svg.showHypertext(evt,'",
                                    kEnd = "')\" onmouseout=\"gnuplot_svg.hideHypertext()\">";
  std::string out;
  std::size_t at = 0;
  for (std::size_t begin; (begin = body.find(kBegin, at)) != std::string::npos;) {
    const std::size_t text = begin + kBegin.size(), end = body.find(kEnd, text);
    if (end == std::string::npos) return false;
    out.append(body, at, begin - at);
    out += "<g><title>" + body.substr(text, end - text) + "</title>";
    at = end + kEnd.size();
  }
  out.append(body, at);
  body = std::move(out);
  return body.find("onmouse") == std::string::npos && body.find("<script") == std::string::npos;
}

// Turns gnuplot's file into an element for the page: one <svg> with a name, a description, unique ids, and
// the page's colours. Empty if gnuplot wrote something else.
std::string to_inline(const std::string& svg, const Plot& plot, const Canvas& canvas, int height) {
  std::size_t begin = svg.find("<svg"), open_end = begin == std::string::npos ? begin : svg.find('>', begin),
              end = svg.rfind("</svg>");
  if (open_end == std::string::npos || end == std::string::npos || end < open_end) return {};
  std::string body = svg.substr(open_end + 1, end - open_end - 1);
  // Remove gnuplot's titles and descriptions ("Gnuplot", "gnuplot_plot_2"): a browser would show them as
  // tooltips.
  for (std::string tag : {"title", "desc"})
    for (std::size_t from; (from = body.find("<" + tag + ">")) != std::string::npos;) {
      std::size_t to = body.find("</" + tag + ">", from);
      if (to == std::string::npos) return {};
      body.erase(from, to + tag.size() + 3 - from);
    }
  if (!without_scripts(body)) return {};
  // Inline plots share one id space, so each plot's ids get a prefix.
  const std::string prefix = replace_all(plot.name, "-", "_") + (canvas.narrow ? "_narrow_" : "_");
  recolour(body);
  for (const char* name : {"id='", "id=\"", "href='#", "href=\"#", "url(#"})
    body = replace_all(body, name, name + prefix);
  return fmt::format(
      "<svg class=\"plot {}\" role=\"img\" viewBox=\"0 0 {} {}\" aria-labelledby=\"{}title {}desc\" "
      "xmlns=\"http://www.w3.org/2000/svg\" "
      "xmlns:xlink=\"http://www.w3.org/1999/xlink\"><title id=\"{}title\">{}</title><desc "
      "id=\"{}desc\">{}</desc>{}</svg>",
      canvas.name, canvas.width, height, prefix, prefix, prefix, escape_xml(plot.title), prefix,
      escape_xml(plot.description), body);
}

// RAII temporary folder.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code error;
    std::string pattern = (fs::temp_directory_path(error) / "capstone-plot-XXXXXX").string();
    if (!error && mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

Result<void> run_gnuplot(std::vector<Draft>& drafts, const Resources& resources) {
  std::optional<fs::path> program = find_program("gnuplot", resources.path_variable);
  if (!program)
    return fail("install gnuplot to see the plots", "gnuplot", "the tables have the same numbers",
                ExitCode::kEnvironment);
  TemporaryFolder folder;
  if (folder.path().empty())
    return fail("cannot create a temporary folder for the plots", "", "check TMPDIR and the free disk space",
                ExitCode::kEnvironment);
  for (const Draft& d : drafts)
    for (const Drawing& drawing : d.drawings)
      for (const auto& [name, bytes] : drawing.files)
        CAPSTONE_CHECK(write_new_file(folder.path() / name, bytes));
  CAPSTONE_CHECK(write_new_file(folder.path() / "plots.gp", script_of(drafts)));
  ProcessSpec spec;
  spec.argv = {program->string(), "-d", "plots.gp"};
  spec.cwd = folder.path();
  spec.timeout = std::chrono::seconds(20);
  CAPSTONE_TRY(ProcessResult run, run_process(spec));
  if (!run.ok())
    return fail("gnuplot failed: " + std::string(trim(split(std::string(trim(run.err)), '\n').front())),
                "gnuplot", "", ExitCode::kEnvironment);
  for (Draft& d : drafts)
    for (std::size_t i = 0; i < kCanvases.size(); ++i) {
      const fs::path file = folder.path() / (file_of(d.plot, kCanvases[i]) + ".svg");
      Result<std::string> svg = read_file(file, std::size_t{8} << 20);
      const std::string element =
          svg ? to_inline(*svg, d.plot, kCanvases[i], d.drawings[i].height) : std::string();
      d.plot.svg += element;
      if (element.empty()) d.plot.note = "gnuplot drew nothing for this plot";
    }
  for (Draft& d : drafts)
    if (!d.plot.note.empty()) d.plot.svg.clear();
  return {};
}

}  // namespace

std::string Drawing::data(const Canvas& canvas, const std::string& name, const std::string& rows) {
  files.emplace_back(fmt::format("{}_{}.dat", name, canvas.name), rows);
  return "'" + files.back().first + "'";
}

Draft drafted(Plot plot, const std::function<void(const Canvas&, Drawing&)>& draw) {
  Draft draft{std::move(plot), {}};
  for (std::size_t i = 0; i < kCanvases.size(); ++i) draw(kCanvases[i], draft.drawings[i]);
  return draft;
}

std::string ink(std::string_view name) { return "lc " + rgb_of(name); }
std::string text_ink(std::string_view name) { return "textcolor " + rgb_of(name); }

std::string plain_text(std::string_view text, std::size_t limit) {
  std::string out;
  for (char c : text) {
    bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                 std::string_view(" .+-_/:,()%[]").find(c) != std::string_view::npos;
    if (plain) out += c;
    if (out.size() == limit) break;
  }
  return out.empty() ? "?" : out;
}

std::string hover(const std::string& file) {
  // Transparent points, larger than those that are seen.
  return fmt::format("{} using 1:2:3 with labels hypertext point pt 7 ps 2 lc rgb '#ff{}' notitle", file,
                     std::string_view(kInks[0].rgb).substr(1));
}

std::vector<Plot> render_plots(std::vector<Draft> drafts, const Resources& resources) {
  if (drafts.empty()) return {};
  const Result<void> drawn = run_gnuplot(drafts, resources);
  std::vector<Plot> plots;
  for (Draft& d : drafts) {
    if (!drawn) d.plot.note = drawn.error().what;
    plots.push_back(std::move(d.plot));
  }
  return plots;
}

}  // namespace capstone
