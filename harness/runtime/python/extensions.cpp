#include "harness/runtime/python/extensions.h"

#include <fmt/format.h>

#include "harness/base/files.h"
#include "harness/base/scratch_folder.h"
#include "harness/runtime/python/python.h"

namespace capstone {
namespace {

constexpr std::size_t kLargestPython = std::size_t{16} << 20;  // [B]

}  // namespace

bool builds_extensions(const fs::path& source) {
  const auto text = read_file(source, kLargestPython);
  return text && text->find("cpp_extension") != std::string::npos;
}

fs::path extension_script(const Resources& resources) {
  return resources.share / "harness" / "emulator" / "torch" / "capstone_torch.py";
}

Result<void> allow_extensions(Surroundings& into, const Resources& resources, const fs::path& builds,
                              const std::string& options) {
  const fs::path program = resources.libexec.parent_path().parent_path() / "bin" / "capstone";
  const fs::path cache = builds / "cache", objects = cache / "emulated" / "objects";
  CAPSTONE_TRY(const fs::path headers, find_cuda_headers(resources));
  CAPSTONE_TRY(const std::vector<fs::path> own, build_emulator_objects(resources));
  CAPSTONE_CHECK(make_folders(objects));
  std::error_code code;
  for (const fs::path& object : own) {  // copies: what the process writes must not reach other builds
    fs::copy_file(object, objects / object.filename(), fs::copy_options::overwrite_existing, code);
    if (code)
      return fail("cannot copy a part of the emulator: " + code.message(), objects.string(),
                  "is the disk full?", ExitCode::kEnvironment);
  }
  // Fetched headers lie in the cache, and the process has one of its own.
  if (headers.parent_path() == resources.cache / "cuda-headers")
    fs::create_directory_symlink(headers.parent_path(), cache / "cuda-headers", code);
  into.read.insert(into.read.end(), {program, resources.libexec / "capstone-rewrite",
                                     resources.libexec / "libcapstone_emulator.a",
                                     resources.libexec / "libcapstone_emulator_hooks.a",
                                     resources.share / "harness" / "emulator", headers});
  into.env.emplace_back("CAPSTONE_TORCH_BUILD", "'" + program.string() + "' run " + options);
  into.env.emplace_back("CAPSTONE_CACHE", cache.string());
  into.env.emplace_back("CAPSTONE_ISOLATION", "none");  // it is in a sandbox
  if (resources.ignore_toolkit) into.env.emplace_back("CAPSTONE_IGNORE_TOOLKIT", "1");
  if (const auto cutlass = find_cutlass_headers(resources)) {
    into.read.push_back(*cutlass);
    into.env.emplace_back("CAPSTONE_CUTLASS", cutlass->string());
  }
  return {};
}

Result<ProgramRun> run_python_program(const ProgramRequest& request, ProcessSpec spec,
                                      const Resources& resources) {
  std::error_code ignored;
  if (!fs::is_regular_file(request.source, ignored))
    return fail("no such source file", request.source.string());
  if (request.observe || !request.output.empty())
    return fail("a .py can only be run", request.source.string(),
                "put the CUDA source into a .cu with a main()");
  if (!request.more_sources.empty() || !request.include_folders.empty() || !request.definitions.empty() ||
      request.openmp)
    return fail("a .py takes no options for its sources", request.source.string(),
                "give them to load_inline() or load(): extra_cuda_cflags, extra_include_paths");
  const Sandbox sandbox = Sandbox::detect(resources);
  CAPSTONE_TRY(const Python python, find_python(request.python, resources));
  const ScratchFolder builds(resources.cache / "python" / "program");
  CAPSTONE_CHECK(make_folders(builds.path() / "tmp"));
  std::string options;
  if (request.variant == BuildVariant::kInstrumented) options += " --check races";
  if (request.variant == BuildVariant::kAsan) options += " --check memory";
  if (request.cuda_arch != 0) options += fmt::format(" --arch {}", request.cuda_arch);
  Surroundings surroundings;
  surroundings.read = python.roots;
  surroundings.env = python.environment(builds.path(), "/usr/local/bin:/usr/bin:/bin");
  surroundings.env.emplace_back("TMPDIR", (builds.path() / "tmp").string());
  CAPSTONE_CHECK(allow_extensions(surroundings, resources, builds.path(), options));
  surroundings.read.push_back(fs::canonical(request.source).parent_path());
  spec.argv = {python.program.string(), extension_script(resources).string(),
               fs::canonical(request.source).string()};
  spec.cwd = fs::canonical(request.source).parent_path();
  spec.argv.insert(spec.argv.end(), request.arguments.begin(), request.arguments.end());
  spec.env.insert(spec.env.end(), surroundings.env.begin(), surroundings.env.end());
  ProgramRun run;
  run.build.result.ok = true;
  CAPSTONE_TRY(run.process,
               run_process(sandbox.confine(
                   std::move(spec), {.read = surroundings.read, .write = {builds.path()}, .gpu = false})));
  return run;
}

}  // namespace capstone
