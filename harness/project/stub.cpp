#include "harness/project/stub.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>
#include <set>

#include "harness/base/files.h"
#include "harness/base/text.h"

namespace capstone {
namespace {

// Text for a // comment: one line, and no backslash that would continue it on the next line.
std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n' || c == '\r' || c == '\\') c = ' ';
  return text;
}

// The text between the parentheses of `name(…);` in the generated header, the only source of the signature.
std::string parameters_of(const std::string& header, const std::string& name) {
  std::size_t at = header.find(" " + name + "(");
  if (at == std::string::npos) return {};
  std::size_t begin = at + name.size() + 2;
  return std::string(trim(std::string_view(header).substr(begin, header.find(");", begin) - begin)));
}

std::string without_comments(const std::string& code) {
  std::string bare;
  for (std::size_t at = 0; at < code.size();) {
    std::size_t open = code.find("/*", at);
    bare += code.substr(at, open - at);
    std::size_t close = open == std::string::npos ? open : code.find("*/", open);
    at = close == std::string::npos ? code.size() : close + 2;
  }
  return bare;
}

struct Declared {
  std::string text;  ///< "const float* x"
  std::string name;  ///< "x"
};

std::vector<Declared> declarations(const std::string& parameters) {
  std::vector<Declared> declared;
  for (const std::string& part : split(without_comments(parameters), ',')) {
    std::string text(trim(part));
    std::size_t space = text.find_last_of(" *&");
    declared.push_back({text, text.substr(space + 1)});
  }
  return declared;
}

// From the first #include of the header to its last.
std::string includes_of(const std::string& header) {
  const std::size_t first = header.find("#include"), last = header.rfind("#include");
  return first == std::string::npos ? "" : header.substr(first, header.find('\n', last) + 1 - first);
}

// Whether an expression over size symbols means the same in C++: integers, + - * / % and parentheses.
bool is_plain_cpp(const Expression& expression, const Problem& problem) {
  const std::string& text = expression.text;
  for (std::size_t i = 0; i < text.size();) {
    auto c = static_cast<unsigned char>(text[i]);
    if (!std::isalpha(c) && c != '_') {
      if (!std::isdigit(c) && std::string_view(" +-*/%()").find(text[i]) == std::string_view::npos)
        return false;
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_'))
      ++end;
    const std::string word = text.substr(i, end - i);
    if (std::find(problem.symbols.begin(), problem.symbols.end(), word) == problem.symbols.end())
      return false;
    i = end;
  }
  return !text.empty();
}

bool is_one_word(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

// "rows * cols"; empty if the shape is too complex for a C++ expression of this form.
std::string element_count(const Parameter& tensor, const Problem& problem) {
  if (tensor.shape.empty()) return "1";
  std::vector<std::string> factors;
  for (const Expression& dimension : tensor.shape) {
    if (!is_plain_cpp(dimension, problem)) return {};
    factors.push_back(is_one_word(dimension.text) ? dimension.text : "(" + dimension.text + ")");
  }
  return join(factors, " * ");
}

std::string shape_text(const Parameter& tensor) {
  std::vector<std::string> dimensions;
  for (const Expression& dimension : tensor.shape) dimensions.push_back(dimension.text);
  return one_line("[" + join(dimensions, ", ") + "]");
}

std::vector<const Parameter*> written_tensors(const Problem& problem) {
  std::vector<const Parameter*> written;
  for (const Parameter& parameter : problem.signature)
    if (parameter.is_written()) written.push_back(&parameter);
  return written;
}

// Chooses names that differ from the parameters' names: a problem may have a size called `blocks`.
class Names {
 public:
  explicit Names(const std::vector<Declared>& declared) {
    for (const Declared& each : declared) taken_.insert(each.name);
  }
  std::string fresh(std::string name) const {
    while (taken_.contains(name)) name += '_';
    return name;
  }

 private:
  std::set<std::string> taken_;
};

std::string opening_comment(const Problem& problem, const std::vector<const Parameter*>& written) {
  std::vector<std::string> outputs;
  for (const Parameter* each : written)
    outputs.push_back(fmt::format("`{}` {}", each->name, shape_text(*each)));
  return fmt::format(
      "// Your kernel for: {title} ({id}).\n"
      "//\n"
      "// It compiles and runs, but computes nothing yet: gate one will report that nothing was written to\n"
      "// {outputs}.\n"
      "//\n"
      "// How to start\n"
      "//   1. Read problem/statement.md and problem/reference.py: they define the computation.\n"
      "//   2. Guess first: will memory, arithmetic or latency be the limit? `capstone predict` records your "
      "guess.\n"
      "//   3. Make it correct: one thread computes one element, as in the reference. `capstone measure` "
      "judges it.\n"
      "//   4. Make it fast: change one thing, say which speedup you expect (--expect), measure, read the "
      "percentage of\n"
      "//      the peak, and write in worklog.md what you learned. Repeat.\n"
      "//\n"
      "// The contract\n"
      "//   - The judge chooses the sizes: do not expect a size to be a multiple of anything.\n"
      "//   - Tensors are in device memory, row-major. Each base is 256-byte aligned; rows need not be.\n"
      "//   - Outputs are filled with garbage before the call: write every element.\n"
      "//   - `workspace` is null until you define workspace_bytes(); problem/launch.h has its "
      "declaration.\n",
      fmt::arg("title", one_line(problem.title)), fmt::arg("id", problem.id),
      fmt::arg("outputs", join(outputs, ", ")));
}

// The line that turns the flat index into coordinates, if the last dimension has a simple name.
std::string coordinates_comment(const Parameter& tensor, const std::string& index) {
  if (tensor.shape.size() < 2 || !is_one_word(tensor.shape.back().text)) return {};
  const std::string& last = tensor.shape.back().text;
  return fmt::format("  //   its column is {0} % {1}, its row (over all other dimensions) is {0} / {1}\n",
                     index, last);
}

std::string kernel_text(const Problem& problem, const Parameter& output, const std::vector<Declared>& passed,
                        const Names& names) {
  std::vector<std::string> parameters;
  for (const Declared& each : passed) parameters.push_back(each.text);
  const std::string count = element_count(output, problem), index = names.fresh("element");
  std::string text = fmt::format(
      "// One thread for one element of {0} {1}. Launched with a one-dimensional grid of blocks of kThreads "
      "threads.\n"
      "__global__ void {2}({3}) {{\n",
      output.name, shape_text(output), names.fresh("first_kernel"), join(parameters, ", "));
  text += fmt::format("  const int64_t {} = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;\n",
                      index);
  if (count.empty())
    text += fmt::format("  if ({} >= 1) return;  // launch() starts only one block; see there\n", index);
  else
    text += fmt::format("  if ({} >= {}) return;  // the last block is rarely full\n", index, count);
  text += fmt::format(
      "  // Write your code here: compute element number `{0}` of {1} and store it:\n"
      "  //   {1}[{0}] = …\n",
      index, output.name);
  return text + coordinates_comment(output, index) + "}\n";
}

std::string launch_text(const Problem& problem, const Parameter& output, const std::string& header,
                        const std::vector<Declared>& passed, const Names& names) {
  std::vector<std::string> arguments;
  for (const Declared& each : passed) arguments.push_back(each.name);
  const std::string count = element_count(output, problem);
  const std::string elements = names.fresh("elements"), blocks = names.fresh("blocks");
  std::string text = fmt::format("extern \"C\" void launch(\n    {}) {{\n", parameters_of(header, "launch"));
  if (count.empty()) {
    text += fmt::format("  // The number of elements of {} is not a simple product: compute it here.\n",
                        output.name);
    text += fmt::format("  const int64_t {} = 1;\n", elements);
  } else {
    text += fmt::format("  const int64_t {} = {};\n", elements, count);
  }
  text += fmt::format("  if ({} == 0) return;  // an empty grid is an error\n", elements);
  text +=
      fmt::format("  const int64_t {} = ({} + kThreads - 1) / kThreads;  // rounded up\n", blocks, elements);
  text += fmt::format("  {}<<<static_cast<unsigned>({}), kThreads, 0, stream>>>({});\n}}\n",
                      names.fresh("first_kernel"), blocks, join(arguments, ", "));
  return text;
}

std::string prepare_text(const std::string& header) {
  return fmt::format(
      "\n// Untimed: you may repack the parameters into `prepared`, which launch() then receives. The work "
      "is optional, but\n"
      "// both functions must exist for this problem.\n"
      "extern \"C\" size_t prepared_bytes({}) {{\n  return 0;\n}}\n"
      "\nextern \"C\" void prepare(\n    {}) {{}}\n",
      parameters_of(header, "prepared_bytes"), parameters_of(header, "prepare"));
}

}  // namespace

std::string stub_kernel(const Problem& problem) {
  const std::string header = launch_header(problem);
  const auto declared = declarations(parameters_of(header, "launch"));
  const auto written = written_tensors(problem);
  const Names names(declared);
  std::vector<Declared> passed;  // a kernel needs neither the workspace, which is null, nor the stream
  for (const Declared& each : declared)
    if (each.name != "workspace" && each.name != "stream") passed.push_back(each);
  const Parameter& output = *written.front();
  std::string text = opening_comment(problem, written) + "\n" + includes_of(header) + "\nnamespace {\n\n";
  text +=
      "constexpr int kThreads = 256;  // threads in a block: a multiple of 32 (one warp), at most 1024\n\n";
  text += kernel_text(problem, output, passed, names) + "\n}  // namespace\n\n";
  text += launch_text(problem, output, header, passed, names);
  if (problem.prepare) text += prepare_text(header);
  return text;
}

namespace {

struct PythonLanguage {
  const char* id;
  const char* name;
  const char* imports;
  const char* pattern;  ///< a kernel that nothing calls yet
};

constexpr PythonLanguage kPythonLanguages[]{
    {"triton", "Triton", "import triton\nimport triton.language as tl\n", R"(@triton.jit
def scaled(x, y, count, factor, BLOCK: tl.constexpr):
    """A pattern: y = factor x. Launched by scaled[(triton.cdiv(n, 1024),)](x, y, n, 2.0, BLOCK=1024)."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.store(y + at, factor * tl.load(x + at, mask=inside), mask=inside)
)"},
    {"tilelang", "TileLang", "import tilelang\nimport tilelang.language as T\n",
     R"(@tilelang.jit(out_idx=[-1])
def scaled(count, factor, block=1024, dtype="float32"):
    """A pattern: y = factor x, where block divides count: kernel = scaled(n, 2.0); y = kernel(x)."""

    @T.prim_func
    def main(x: T.Tensor((count,), dtype), y: T.Tensor((count,), dtype)):
        with T.Kernel(count // block, threads=128) as program:
            for i in T.Parallel(block):
                y[program * block + i] = x[program * block + i] * factor

    return main
)"},
    {"cute", "CuTe-DSL",
     "import cutlass\nimport cutlass.cute as cute\nfrom cutlass.cute.runtime import from_dlpack\n",
     R"(@cute.kernel
def scaled_kernel(x: cute.Tensor, y: cute.Tensor, factor: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    threads, _, _ = cute.arch.block_dim()
    at = block * threads + thread
    if at < cute.size(x):
        y[at] = x[at] * factor


@cute.jit
def scaled(x: cute.Tensor, y: cute.Tensor, factor: cutlass.Constexpr):
    """A pattern: y = factor x, of one dimension. Launched by scaled(from_dlpack(x), from_dlpack(y), 2.0)."""
    scaled_kernel(x, y, factor).launch(grid=((cute.size(x) + 255) // 256, 1, 1), block=(256, 1, 1))
)"},
};

// The reference's module as ModelNew: what comes before class Model, without its opening text, and the class.
struct ReferenceParts {
  std::string before, model;
};
std::optional<ReferenceParts> parts_of(const std::string& reference) {
  ReferenceParts parts;
  bool inside = false, opening = reference.starts_with("\"\"\"");
  bool first = true;
  for (const std::string& line : split(reference, '\n')) {
    if (opening) {
      const std::size_t from = first ? 3 : 0;
      opening = line.find("\"\"\"", from) == line.npos;
      first = false;
      continue;
    }
    if (line.starts_with("class Model(")) {
      inside = true;
      parts.model = "class ModelNew(" + line.substr(12) + "\n";
      continue;
    }
    if (inside && !line.empty() && line[0] != ' ') break;
    (inside ? parts.model : parts.before) += line + "\n";
  }
  if (!inside) return std::nullopt;
  parts.before = trim(parts.before);
  parts.model = trim(parts.model);
  return parts;
}

}  // namespace

const std::vector<std::string>& python_languages() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> ids;
    for (const PythonLanguage& language : kPythonLanguages) ids.emplace_back(language.id);
    return ids;
  }();
  return names;
}

Result<std::string> stub_module(const Problem& problem, const std::string& language) {
  const auto* found = std::find_if(std::begin(kPythonLanguages), std::end(kPythonLanguages),
                                   [&](const PythonLanguage& each) { return language == each.id; });
  if (found == std::end(kPythonLanguages))
    return fail("no such language: " + language, {}, "languages: " + join(python_languages(), ", "));
  const std::filesystem::path file = problem.folder / "reference.py";
  CAPSTONE_TRY(const std::string reference, read_file(file));
  const auto parts = parts_of(reference);
  if (!parts)
    return fail("the reference has no class Model at its top level", file.string(),
                "write human/kernel.py with class ModelNew yourself");
  return fmt::format(
      "\"\"\"{}, in {}. ModelNew is the reference: right, and as slow. Put kernels in the place of its\n"
      "operations, one after the other.\"\"\"\n\n{}\n{}\n\n{}\n\n{}\n",
      one_line(problem.title), found->name, parts->before, found->imports, found->pattern, parts->model);
}

}  // namespace capstone
