#pragma once
// A cohort of two, three graders, and the desk over HTTP.
#include <gtest/gtest.h>
#include <httplib.h>

#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/course/gradebook/marking.h"
#include "harness/course/submissions.h"
#include "harness/desk/desk.h"
#include "harness/desk/guard.h"
#include "harness/workflows/cohort.h"
#include "tests/resources.h"

namespace capstone::desk {

inline const fs::path kSource = CAPSTONE_SOURCE_DIR;

/// A grader's browser: it keeps the session's cookie and sends the token of its forms.
class Browser {
 public:
  Browser(int port, const std::string& token) : client_("127.0.0.1", port) {
    client_.set_read_timeout(60);
    auto answer = client_.Post("/login", httplib::MultipartFormDataItems{{"secret", token, "", ""}});
    if (!answer) return;
    std::smatch found;
    const std::string cookie = answer->get_header_value("Set-Cookie");
    if (std::regex_search(cookie, found, std::regex("capstone_session=([0-9a-f]+)"))) session_ = found[1];
  }
  httplib::Result get(const std::string& path) { return client_.Get(path, headers()); }
  httplib::Result post(const std::string& path, std::map<std::string, std::string> fields = {},
                       std::map<std::string, std::string> more_headers = {}) {
    fields.try_emplace("token", form_token(session_));
    httplib::MultipartFormDataItems items;
    for (const auto& [name, value] : fields) items.push_back({name, value, "", ""});
    httplib::Headers all = headers();
    for (const auto& [name, value] : more_headers) all.emplace(name, value);
    return client_.Post(path, all, items);
  }
  /// The path of the sheet that "next" leads to; "/": none.
  std::string next() { return post("/next")->get_header_value("Location"); }
  std::string session_;
  httplib::Client client_;

 private:
  httplib::Headers headers() const { return {{"Cookie", std::string(kCookie) + "=" + session_}}; }
};

class DeskTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "desk-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    fs::create_directories(folder_ / "graded");
    fs::copy_file(kSource / "rubric" / "rubric.yaml", folder_ / "graded" / "rubric.yaml");
    workspace_.resources = test::suite_resources();
    workspace_.cwd = folder_;
    add("ada", {"Ada Lovelace", "1815", "ada@example.org"});
    add("eve", {"<script>alert(1)</script>", "7", ""});
    auto cohort = workflows::open_cohort(workspace_, "graded");
    ASSERT_TRUE(cohort) << cohort.error().what;
    Marking marking(cohort->book);
    owner_ = marking.add_grader("grace", GraderRole::kOwner, false).value();
    eva_ = marking.add_grader("eva", GraderRole::kGrader, false).value();
    tom_ = marking.add_grader("tom", GraderRole::kGrader, true).value();
  }
  void TearDown() override {
    stop();
    fs::remove_all(folder_);
  }

  /// A graded submission: the finished example, by this person.
  void add(const std::string& name, const Person& person) {
    const fs::path home = folder_ / "graded" / "submissions" / name;
    fs::create_directories(home);
    fs::copy(kSource / "examples" / "fusion_wins", home / "submission", fs::copy_options::recursive);
    std::ofstream(home / "submission" / "worklog.md", std::ios::app)
        << "\nWritten by " << person.name << ", number " << person.id << ". <img src=x onerror=alert(2)>\n";
    SubmissionResult result;
    result.name = name;
    result.problem = "bias_gelu_layernorm";
    result.state = GradingState::kGraded;
    result.members = {person};
    result.inputs.files = "digest-of-" + name;
    result.finished = "2026-03-01T09:30:00Z";
    ASSERT_TRUE(write_result(result, home / "result.json"));
    ASSERT_TRUE(Gradebook::open(folder_ / "graded")->take({result}));
  }

  void start(bool show_names = false) {
    auto opened = Desk::open(workspace_, "graded", {"127.0.0.1", 0, {}, show_names, false});
    ASSERT_TRUE(opened) << opened.error().what;
    desk_.emplace(std::move(*opened));
    thread_ = std::thread([this] { EXPECT_TRUE(desk_->run()); });
    for (int i = 0; i < 600; ++i) {
      if (httplib::Client("127.0.0.1", port()).Get("/login")) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    FAIL() << "the server does not answer";
  }
  void stop() {
    if (!desk_) return;
    desk_->stop();
    thread_.join();
    desk_.reset();
  }
  /// scripts/check_desk.py, with CAPSTONE_DESK_SHOTS=FOLDER in the environment also pictures.
  auto check_in_browser(const std::string& token, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{"http://127.0.0.1:" + std::to_string(port()), token};
    words.insert(words.end(), more.begin(), more.end());
    if (const char* shots = std::getenv("CAPSTONE_DESK_SHOTS")) words.insert(words.end(), {"--shots", shots});
    return run_script("check_desk.py", std::move(words));
  }
  /// One of scripts/. Status 3: there is no Chromium.
  Result<ProcessResult> run_script(const std::string& name, std::vector<std::string> words) const {
    ProcessSpec spec;
    spec.argv = {"/usr/bin/env", "python3", "-B", (kSource / "scripts" / name).string()};
    spec.argv.insert(spec.argv.end(), words.begin(), words.end());
    spec.cwd = folder_;
    spec.timeout = std::chrono::seconds(240);
    return run_process(spec);
  }
  int port() const { return desk_->port(); }

  /// All fields of a sheet as a browser sends them.
  std::map<std::string, std::string> filled(const std::string& points, const std::string& reason) const {
    std::map<std::string, std::string> fields;
    for (const char* id : {"correctness", "depth", "head_to_head", "honesty"}) {
      fields[std::string("points_") + id] = points;
      fields[std::string("reason_") + id] = reason;
      fields[std::string("seen_") + id] = "-";
    }
    return fields;
  }
  std::string history(const std::string& name) {
    std::string all;
    const auto entries = Gradebook::open(folder_ / "graded")->history(name).value();
    for (const HistoryEntry& entry : entries) all += entry.text + "\n";
    return all;
  }
  std::vector<GradebookRow> rows() {
    auto cohort = workflows::open_cohort(workspace_, "graded");
    return cohort->book.rows(cohort->rubric).value();
  }

  fs::path folder_;
  workflows::Workspace workspace_;
  std::string owner_, eva_, tom_;
  std::optional<Desk> desk_;
  std::thread thread_;
};

}  // namespace capstone::desk
