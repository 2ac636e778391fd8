#include "harness/workflows/editor_files.h"

#include "harness/base/json.h"
#include "harness/runtime/build/build.h"

namespace capstone::workflows {
namespace {

std::string compile_commands(const fs::path& root, const fs::path& emulator, const fs::path& cuda) {
  const Json arguments = {"clang++",
                          "-x",
                          "cuda",
                          "-nocudainc",
                          "-nocudalib",
                          "--cuda-host-only",
                          "-Wno-unknown-cuda-version",
                          "-Xclang",
                          "-fcuda-allow-variadic-functions",
                          "-std=gnu++17",
                          "-I",
                          emulator.string(),
                          "-isystem",
                          cuda.string(),
                          "-include",
                          "capstone_clangd.h",
                          "-include",
                          "problem/launch.h",
                          "human/kernel.cu"};
  const Json entry = {{"directory", root.string()}, {"file", "human/kernel.cu"}, {"arguments", arguments}};
  return Json::array({entry}).dump(2) + "\n";
}

// Whether the file was written for a project in this folder.
bool is_for(const fs::path& file, const fs::path& root) {
  const auto text = read_file(file, 1u << 20);
  const Json commands = text ? Json::parse(*text, nullptr, false) : Json();
  return commands.is_array() && !commands.empty() && commands[0].is_object() &&
         commands[0].value("directory", "") == root.string();
}

// The first pattern reads compiler messages, the second a verdict and the place below it.
constexpr const char* kTasks = R"json({
  "version": "2.0.0",
  "tasks": [
    {
      "label": "capstone try",
      "type": "process",
      "command": "capstone",
      "args": ["try"],
      "options": { "cwd": "${workspaceFolder}" },
      "group": { "kind": "build", "isDefault": true },
      "problemMatcher": [
        {
          "owner": "capstone-compiler",
          "source": "capstone",
          "fileLocation": ["relative", "${workspaceFolder}/human"],
          "pattern": {
            "regexp": "^\\s*(?:human/)?([^\\s:]+\\.\\w+):(\\d+):(\\d+): (?:fatal )?(error|warning): (.*)$",
            "file": 1, "line": 2, "column": 3, "severity": 4, "message": 5
          }
        },
        {
          "owner": "capstone-verdict",
          "source": "capstone",
          "fileLocation": ["relative", "${workspaceFolder}/human"],
          "pattern": [
            { "regexp": "^human: (.*)$", "message": 1 },
            { "regexp": "^  --> (?:human/)?([^\\s:]+\\.\\w+):(\\d+)", "file": 1, "line": 2 }
          ]
        }
      ]
    },
    {
      "label": "capstone watch",
      "type": "process",
      "command": "capstone",
      "args": ["watch"],
      "options": { "cwd": "${workspaceFolder}" },
      "problemMatcher": []
    }
  ]
}
)json";

}  // namespace

Result<void> write_editor_files(const fs::path& root, const Resources& resources) {
  std::error_code code;
  const fs::path tasks = root / ".vscode" / "tasks.json";
  if (!fs::exists(tasks, code)) CAPSTONE_CHECK(write_new_file(tasks, kTasks));
  const fs::path commands = root / "compile_commands.json";
  if (is_for(commands, root)) return {};
  CAPSTONE_TRY(const fs::path cuda, find_cuda_headers(resources));
  return write_file_atomic(
      commands, compile_commands(root, resources.share / "harness" / "emulator" / "include", cuda));
}

}  // namespace capstone::workflows
