#include "harness/runtime/python/python.h"

#include <fmt/format.h>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/last_line.h"
#include "harness/base/text.h"

namespace capstone {
namespace {

// One line of JSON. The version is read from PyTorch's own file, because importing it takes seconds.
// Folders that come as arguments are read as site-packages are, with their .pth files.
constexpr const char* kProbe = R"(
import importlib.metadata, importlib.util, json, os, re, site, sys
own = list(sys.path)
for folder in sys.argv[1:]:
    site.addsitedir(folder)
sys.path = [p for p in sys.path if p not in own] + own
found = importlib.util.find_spec('torch')
version = ''
if found and found.origin:
    try:
        text = open(os.path.join(os.path.dirname(found.origin), 'version.py')).read()
        version = re.search(r"__version__ = '([^']*)'", text).group(1)
    except (OSError, AttributeError):
        version = 'of an unknown version'
try:
    triton = importlib.metadata.version('triton') if importlib.util.find_spec('numpy') else ''
except importlib.metadata.PackageNotFoundError:
    triton = ''
print(json.dumps({'program': sys.executable, 'version': sys.version.split()[0], 'torch': version, 'triton': triton,
                  'paths': [p for p in sys.path if p and os.path.exists(p)],
                  'roots': [sys.prefix, sys.base_prefix] + ([os.path.dirname(os.path.realpath(os.path.dirname(found.origin)))] if version else [])}))
)";

// "CUDA 13.0 True": what it is built for, and whether this GPU runs what it holds.
constexpr const char* kTry = R"(import torch
try:
    works = torch.cuda.is_available() and torch.zeros(1, device='cuda').item() == 0
except RuntimeError:
    works = False
print(f'CUDA {torch.version.cuda}' if torch.version.cuda else 'the CPU', works))";

// PYTHONPATH for a process of it.
std::string packages_of(const Python& python) {
  std::vector<std::string> packages;
  for (const fs::path& path : python.paths) packages.push_back(path.string());
  return join(packages, ":");
}

Result<Python> examine(const fs::path& program, const std::vector<std::string>& more) {
  ProcessSpec spec;
  spec.argv = {program.string(), "-c", kProbe};
  spec.argv.insert(spec.argv.end(), more.begin(), more.end());
  spec.timeout = std::chrono::seconds(30);
  CAPSTONE_TRY(auto ran, run_process(spec));
  if (ran.end == ProcessResult::End::kInterrupted) return fail("interrupted", {}, {}, ExitCode::kInterrupted);
  const Json said = parse_json(last_line(to_utf8(ran.out)));
  if (!ran.ok() || !said.is_object())
    return fail("this is no Python that runs: " + last_line(to_utf8(ran.err)).substr(0, 200),
                program.string(), "give --python the path of a python3", ExitCode::kEnvironment);
  Python python;
  python.program = said.value("program", program.string());
  python.version = said.value("version", "");
  python.torch = said.value("torch", "");
  python.triton = said.value("triton", "");
  for (const Json& path : said["paths"]) python.paths.emplace_back(path.get<std::string>());
  for (const Json& root : said["roots"]) python.roots.emplace_back(root.get<std::string>());
  python.roots.insert(python.roots.end(), python.paths.begin(), python.paths.end());
  if (python.torch.empty())
    return fail(fmt::format("Python {} has no PyTorch", python.version), program.string(),
                "install it there (https://pytorch.org/get-started), or give --python another python3",
                ExitCode::kEnvironment);
  return python;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> Python::environment(const fs::path& builds,
                                                                     const std::string& path_variable) const {
  std::string programs = program.parent_path().string() + ":" + path_variable;
  return {
      {"PYTHONPATH", packages_of(*this)},
      {"PYTHONNOUSERSITE", "1"},
      {"PYTHONDONTWRITEBYTECODE", "1"},
      {"PATH", programs},
      // Everything loaded at once would take a second and a gigabyte; what is used is loaded by the warm-up.
      {"CUDA_MODULE_LOADING", "LAZY"},
      {"TORCH_EXTENSIONS_DIR", (builds / "extensions").string()},
      {"TORCHINDUCTOR_CACHE_DIR", (builds / "inductor").string()},
      {"TORCHINDUCTOR_COMPILE_THREADS", "4"},
      {"TRITON_CACHE_DIR", (builds / "triton").string()},
      {"TILELANG_CACHE_DIR", (builds / "tilelang").string()},
      {"CUTE_DSL_CACHE_DIR", (builds / "cute").string()},
      {"USER", "capstone"}};  // PyTorch asks for the name, and a sandbox has no list of users
}

Error broken_torch(const Python& python, const std::string& said) {
  return {"PyTorch cannot be imported: " + said.substr(0, 300), python.program.string(),
          "repair it there, or give --python another python3", ExitCode::kEnvironment};
}

Result<ImportedTorch> import_torch(const Python& python) {
  ProcessSpec spec;
  spec.argv = {python.program.string(), "-c", kTry};
  spec.env = {{"PYTHONPATH", packages_of(python)}};
  spec.timeout = std::chrono::seconds(100);  // from a cold disk, on a busy machine
  CAPSTONE_TRY(const auto ran, run_process(spec));
  if (ran.end == ProcessResult::End::kInterrupted) return fail("interrupted", {}, {}, ExitCode::kInterrupted);
  const std::string said = last_line(to_utf8(ran.out));
  const std::size_t space = said.rfind(' ');
  if (!ran.ok() || space == said.npos) return fail(broken_torch(python, last_line(to_utf8(ran.err))));
  return ImportedTorch{said.substr(0, space), said.ends_with(" True")};
}

Result<Python> find_python(const std::string& wanted, const Resources& resources, const std::string& more) {
  std::vector<std::string> folders;
  for (const std::string& folder : split(more, ':')) {
    std::error_code code;
    if (folder.empty()) continue;
    if (!fs::is_directory(folder, code))
      return fail("no such folder of Python packages: " + folder, {},
                  "give --python-path the folder that wheels were unpacked to", ExitCode::kEnvironment);
    folders.push_back(fs::absolute(folder).string());
  }
  if (wanted != "auto") {
    const auto program = wanted.find('/') == std::string::npos
                             ? find_program(wanted, resources.path_variable)
                             : std::optional<fs::path>(fs::absolute(wanted));
    std::error_code code;
    if (!program || !fs::exists(*program, code))
      return fail("no such Python: " + wanted, {},
                  "give --python the path of a python3 that has PyTorch, auto or none",
                  ExitCode::kEnvironment);
    return examine(*program, folders);
  }
  std::string seen;
  for (const std::string& folder : split(resources.path_variable, ':')) {
    const fs::path program = fs::path(folder) / "python3";
    std::error_code code;
    if (folder.empty() || !fs::exists(program, code)) continue;
    auto python = examine(program, folders);
    if (python || python.error().code == ExitCode::kInterrupted) return python;
    if (seen.empty()) seen = python.error().what;
  }
  return fail(
      "no python3 on PATH has PyTorch", seen.empty() ? "there is no python3 on PATH" : seen,
      "install PyTorch (https://pytorch.org/get-started), or give --python the path of a python3 that has it",
      ExitCode::kEnvironment);
}

}  // namespace capstone
