// The file that says which models there are and where they answer.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "harness/base/scratch_folder.h"
#include "harness/machine/provider.h"

namespace capstone::machine {
namespace {

constexpr const char* kKey = "sk-of-the-test";

std::string environment(const std::string& variable) { return variable == "TEST_KEY" ? kKey : ""; }

class EndpointFile : public testing::Test {
 protected:
  EndpointFile() { fs::create_directories(folder()); }

  const fs::path& folder() const { return folder_.path(); }

  fs::path write(const std::string& name, const std::string& text) const {
    const auto written = write_file_atomic(folder() / name, text);
    EXPECT_TRUE(written) << (written ? "" : render(written.error()));
    return folder() / name;
  }

  Result<Endpoint> read(const std::string& yaml, const std::string& name = "") const {
    return read_endpoint(write("models.yaml", yaml), name, &environment);
  }

  // The error of a file that is refused, as a user sees it.
  std::string refusal(const std::string& yaml, const std::string& name = "") const {
    const auto endpoint = read(yaml, name);
    return endpoint ? "it was read" : render(endpoint.error());
  }

  void expect_refused(const std::string& yaml, const std::vector<std::string>& parts,
                      const std::string& name = "") const {
    const std::string error = refusal(yaml, name);
    for (const std::string& part : parts) EXPECT_NE(error.find(part), error.npos) << part << "\n" << error;
  }

  static std::string model(const std::string& lines) {
    return "models:\n  one:\n    url: https://api.example.org/v1\n    model: m\n" + lines;
  }

 private:
  ScratchFolder folder_{fs::temp_directory_path() / "capstone-endpoint"};
};

TEST_F(EndpointFile, EveryKeyIsRead) {
  const auto endpoint =
      read(model("    key_env: TEST_KEY\n    price_in: 2.5\n    price_out: 10\n    temperature: 0\n"
                 "    max_tokens: 4096\n    timeout: 60\n    requests_per_minute: 30\n"));
  ASSERT_TRUE(endpoint) << render(endpoint.error());
  EXPECT_EQ(endpoint->url, "https://api.example.org/v1");
  EXPECT_EQ(endpoint->model, "m");
  EXPECT_EQ(endpoint->key, kKey);
  EXPECT_EQ(endpoint->price_in, 2.5);
  EXPECT_EQ(endpoint->price_out, 10);
  EXPECT_EQ(endpoint->temperature, 0);
  EXPECT_EQ(endpoint->max_tokens, 4096);
  EXPECT_EQ(endpoint->timeout_seconds, 60);
  EXPECT_EQ(endpoint->requests_per_minute, 30);
}

TEST_F(EndpointFile, WhatIsLeftOutIsTheEndpointsOwn) {
  const auto endpoint = read(model(""));
  ASSERT_TRUE(endpoint) << render(endpoint.error());
  EXPECT_EQ(endpoint->key, "");
  EXPECT_EQ(endpoint->temperature, Endpoint().temperature);
  EXPECT_EQ(endpoint->timeout_seconds, Endpoint().timeout_seconds);
}

TEST_F(EndpointFile, ModelsAreChosenByName) {
  const std::string both = model("  other:\n    url: http://localhost:8000/v1\n    model: n\n");
  EXPECT_EQ(read(both, "other")->model, "n");
  expect_refused(both, {"several models", "one, other"});
  expect_refused(both, {"no model `othr`", "did you mean `other`?"}, "othr");
}

TEST_F(EndpointFile, MistakesHaveAPlaceAndARemedy) {
  expect_refused(model("    prize_in: 3\n"), {"models.yaml:5:5", "did you mean `price_in`?"});
  expect_refused(model("    price_in: cheap\n"), {"models.yaml:5:15", "`price_in` must be a number"});
  expect_refused(model("    price_in: -1\n"), {"`price_in` must be a number from 0"});
  expect_refused(model("    timeout: nan\n"), {"`timeout` must be a number"});
  expect_refused(model("    timeout: \"60\"\n"), {"`timeout` must be a number"});
  expect_refused(model("    timeout: [60]\n"), {"`timeout` must be a number", "a list"});
  expect_refused(model("    max_tokens: 1.5\n"), {"whole number"});
  expect_refused(model("    model: n\n"), {"models.yaml:5:5"});
  expect_refused("models:\n  one:\n    url: https://x/v1\n", {"`model` is missing"});
  expect_refused("models:\n  one: https://x/v1\n", {"models.yaml:2:8", "expected a mapping"});
  expect_refused("models: {}\n", {"names no model"});
  expect_refused("model:\n  one: {}\n", {"did you mean `models`?"});
  expect_refused("", {"models.yaml:1:1", "file is empty"});
  expect_refused("models: [\n", {"models.yaml:"});
}

TEST_F(EndpointFile, AKeyIsNeverInTheFile) {
  expect_refused(model("    key: sk-literal\n"), {"models.yaml:5:5", "key_env", "key_file"});
  EXPECT_EQ(refusal(model("    key: sk-literal\n")).find("sk-literal"), std::string::npos);
}

TEST_F(EndpointFile, AVariableWithoutAKeyIsNamed) {
  expect_refused(model("    key_env: OTHER_KEY\n"), {"OTHER_KEY is not set", "export OTHER_KEY="});
}

TEST_F(EndpointFile, AKeyFileIsForItsOwnerOnly) {
  const fs::path key = write("key", std::string(kKey) + "\n");
  ASSERT_EQ(::chmod(key.c_str(), 0644), 0);
  expect_refused(model("    key_file: key\n"), {"others can read", "chmod 600 " + key.string()});
  ASSERT_EQ(::chmod(key.c_str(), 0640), 0);
  expect_refused(model("    key_file: key\n"), {"others can read"});
  ASSERT_EQ(::chmod(key.c_str(), 0600), 0);
  const auto endpoint = read(model("    key_file: key\n"));
  ASSERT_TRUE(endpoint) << render(endpoint.error());
  EXPECT_EQ(endpoint->key, kKey);
  EXPECT_EQ(read(model("    key_file: " + key.string() + "\n"))->key, kKey) << "an absolute path";
  expect_refused(model("    key_file: key\n    key_env: TEST_KEY\n"), {"are both given"});
  expect_refused(model("    key_file: none\n"), {"cannot read", (folder() / "none").string()});
}

TEST_F(EndpointFile, AKeyFileHasOneLine) {
  for (const char* text : {"", "\n", "one\ntwo\n"}) {
    ASSERT_EQ(::chmod(write("key", text).c_str(), 0600), 0);
    expect_refused(model("    key_file: key\n"), {"must hold one line"});
  }
}

TEST_F(EndpointFile, NothingOfItLiesInAProject) {
  fs::create_directories(folder() / "project" / "deep");
  write("project/capstone.yaml", "schema: 1\n");
  for (const char* place : {"project/models.yaml", "project/deep/models.yaml"}) {
    const auto endpoint = read_endpoint(write(place, model("")), "", &environment);
    ASSERT_FALSE(endpoint) << place;
    EXPECT_NE(endpoint.error().what.find("lies in a capstone project"), std::string::npos);
  }
  ASSERT_EQ(::chmod(write("project/key", kKey).c_str(), 0600), 0);
  expect_refused(model("    key_file: project/key\n"), {"the file with the key lies in a capstone project"});
}

TEST_F(EndpointFile, AFileThatIsNotThereIsNamed) {
  const auto endpoint = read_endpoint(folder() / "none.yaml", "", &environment);
  ASSERT_FALSE(endpoint);
  EXPECT_EQ(endpoint.error().where, (folder() / "none.yaml").string());
}

}  // namespace
}  // namespace capstone::machine
