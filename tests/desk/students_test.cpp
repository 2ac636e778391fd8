// `serve --students`: each student sees what was published for them, and nothing else.
#include "harness/course/gradebook/students.h"

#include <sys/stat.h>

#include "harness/base/csv.h"
#include "harness/workflows/publish.h"
#include "harness/workflows/student_tokens.h"
#include "tests/desk/desk_fixture.h"

namespace capstone::desk {
namespace {

class StudentsTest : public DeskTest {
 protected:
  static constexpr const char* kReason = "the halo of the tile is never loaded";

  workflows::OpenCohort cohort() { return std::move(*workflows::open_cohort(workspace_, "graded")); }

  /// The tokens of `gradebook tokens`, by submission.
  std::map<std::string, std::string> make_tokens(const std::string& out = "students.csv",
                                                 bool again = false) {
    auto opened = cohort();
    const auto written = workflows::write_student_tokens(
        workspace_, opened, {{}, out, "https://marks.example.org", "grace", again});
    EXPECT_TRUE(written) << written.error().what;
    std::map<std::string, std::string> tokens;
    const auto text = read_file(folder_ / out, 1u << 20);
    if (!text) return tokens;
    const auto rows = read_csv(*text, out).value();
    for (std::size_t i = 1; i < rows.size(); ++i) {
      const std::string& url = rows[i].cells.at(4);
      EXPECT_EQ(url.find("https://marks.example.org/student#"), 0u);
      tokens[rows[i].cells.at(3)] = url.substr(url.find('#') + 1);
    }
    return tokens;
  }
  void mark(const std::string& name, double points, const std::string& reason) {
    auto opened = cohort();
    std::vector<Mark> marks;
    for (const Criterion& criterion : opened.rubric.criteria) {
      Mark one;
      one.submission = name;
      one.criterion = criterion.id;
      one.points = points;
      one.reason = reason;
      one.grader = "eva";
      marks.push_back(one);
    }
    ASSERT_TRUE(opened.book.mark(opened.rubric, marks));
  }
  void comment(const std::string& name, const std::string& text) {
    auto opened = cohort();
    ASSERT_TRUE(Marking(opened.book).comment(name, {"human/kernel.cu", 7, text, "eva", {}}));
  }
  void publish(const std::string& name) {
    auto opened = cohort();
    const auto done = workflows::publish_marks(workspace_, opened, {{name}, false}, "grace");
    ASSERT_TRUE(done) << done.error().what;
  }
  /// A judgement that failed, in the result file and in the verdict for the student.
  void judge_wrong(const std::string& name) {
    const fs::path home = folder_ / "graded" / "submissions" / name;
    SubmissionResult result = read_result(home / "result.json").value();
    Measurement m;
    m.candidate = "human";
    m.version = "v1";
    m.gate_one = GateOne::kWrong;
    CaseResult bad;
    bad.id = "check-0";
    bad.passed = false;
    bad.problem = "wrong values";
    bad.diagnosis = Diagnosis{};
    bad.diagnosis->output = "y";
    bad.diagnosis->first = {3, 5};
    bad.diagnosis->first_expected = 1.25;
    bad.diagnosis->first_got = 2.5;
    m.cases = {bad};
    result.judged = {m};
    ASSERT_TRUE(write_result(result, home / "result.json"));
    fs::create_directories(home / "feedback");
    std::ofstream(home / "feedback" / "verdict.json") << "{\"judged\": \"of " << name << "\"}\n";
  }
  void start_for_students() {
    auto opened = Desk::open(workspace_, "graded", {"127.0.0.1", 0, {}, false, false, true});
    ASSERT_TRUE(opened) << opened.error().what;
    desk_.emplace(std::move(*opened));
    thread_ = std::thread([this] { EXPECT_TRUE(desk_->run()); });
    for (int i = 0; i < 600 && !httplib::Client("127.0.0.1", port()).Get("/student"); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  /// The header with the session that a token opens; empty: the token is not known.
  httplib::Headers log_in(const std::string& token) {
    httplib::Client client("127.0.0.1", port());
    auto answer = client.Post("/student/login", httplib::MultipartFormDataItems{{"secret", token, "", ""}});
    std::smatch found;
    const std::string cookie = answer->get_header_value("Set-Cookie");
    if (!std::regex_search(cookie, found,
                           std::regex("capstone_student=([0-9a-f]+); HttpOnly; SameSite=Strict")))
      return {};
    session_ = found[1];
    EXPECT_EQ(cookie.find(token), std::string::npos) << "the token itself is exchanged";
    return {{"Cookie", "capstone_student=" + session_}};
  }
  httplib::Result get(const std::string& path, const httplib::Headers& headers) {
    return httplib::Client("127.0.0.1", port()).Get(path, headers);
  }
  std::string session_;
};

TEST_F(StudentsTest, EachSeesTheirOwnPublishedPageAndNoOneElses) {
  const auto tokens = make_tokens();
  ASSERT_EQ(tokens.size(), 2u);
  mark("ada", 7.13, kReason);
  mark("eve", 3.5, "another reason");
  comment("ada", "why <b>twice</b>?");
  judge_wrong("ada");
  judge_wrong("eve");
  publish("ada");
  publish("eve");
  start_for_students();
  const auto ada = log_in(tokens.at("ada"));
  const auto page = get("/student", ada);
  ASSERT_EQ(page->status, 200);
  for (const char* word :
       {"Ada Lovelace", kReason, "28.52", "human/kernel.cu", "why &lt;b&gt;twice&lt;/b&gt;?",
        "y[3, 5]: expected 1.25, got 2.5", "capstone replay verdict.json --who human"})
    EXPECT_NE(page->body.find(word), std::string::npos) << word << "\n" << page->body;
  for (const char* word : {"another reason", "alert(1)", "eva", "grace", "tom", " eve,", "Suggested"})
    EXPECT_EQ(page->body.find(word), std::string::npos) << word;
  EXPECT_NE(page->get_header_value("Content-Security-Policy").find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(page->get_header_value("Cache-Control"), "no-store");
  EXPECT_EQ(get("/student/verdict.json", ada)->body, "{\"judged\": \"of ada\"}\n");

  const auto eve = log_in(tokens.at("eve"));
  const std::string other = get("/student", eve)->body;
  EXPECT_NE(other.find("another reason"), std::string::npos);
  EXPECT_NE(other.find("&lt;script&gt;alert(1)&lt;/script&gt;"), std::string::npos) << "escaped";
  EXPECT_EQ(other.find("<script"), std::string::npos) << "the page has no script at all";
  for (const char* word : {"Lovelace", kReason, "1815", "twice"})
    EXPECT_EQ(other.find(word), std::string::npos) << word;
  EXPECT_EQ(get("/student/verdict.json", eve)->body, "{\"judged\": \"of eve\"}\n");
}

// Two widths, 1280 and 390 pixels: no page is wider than its window.
TEST_F(StudentsTest, APageFitsAPhone) {
  const auto tokens = make_tokens();
  mark("eve", 7.13, std::string(kReason) + ": " + std::string(300, 'x'));
  comment("eve", "see https://example.org/" + std::string(200, 'y'));
  judge_wrong("eve");
  publish("eve");
  start_for_students();
  const auto checked = check_in_browser(tokens.at("eve"), {"--student"});
  ASSERT_TRUE(checked);
  if (checked->status == 3) GTEST_SKIP() << checked->err;
  EXPECT_EQ(checked->status, 0) << checked->out << checked->err;
}

TEST_F(StudentsTest, NothingIsShownBeforeItIsPublished) {
  const auto tokens = make_tokens();
  mark("ada", 7.13, kReason);
  comment("ada", "the first comment");
  judge_wrong("ada");
  start_for_students();
  const auto ada = log_in(tokens.at("ada"));
  const std::string before = get("/student", ada)->body;
  EXPECT_NE(before.find("Nothing is published yet."), std::string::npos);
  for (const char* word : {kReason, "7.13", "28.52", "the first comment", "expected 1.25", "replay"})
    EXPECT_EQ(before.find(word), std::string::npos) << word;
  EXPECT_EQ(get("/student/verdict.json", ada)->status, 404);
  publish("ada");
  EXPECT_NE(get("/student", ada)->body.find("the first comment"), std::string::npos);
  // Marks and comments that came later wait for the next publication.
  mark("ada", 2.25, "a later reason");
  comment("ada", "a later comment");
  const std::string after = get("/student", ada)->body;
  EXPECT_NE(after.find(kReason), std::string::npos);
  EXPECT_NE(after.find("the first comment"), std::string::npos);
  EXPECT_EQ(after.find("a later"), std::string::npos);
  publish("ada");
  const std::string last = get("/student", ada)->body;
  EXPECT_NE(last.find("a later reason"), std::string::npos);
  EXPECT_NE(last.find("a later comment"), std::string::npos);
  EXPECT_EQ(last.find("the first comment"), std::string::npos);
  // A version that was handed in later is not judged for the student before it is marked and published.
  SubmissionResult newer = read_result(folder_ / "graded/submissions/ada/result.json").value();
  newer.inputs.files = "digest-of-another-version";
  newer.finished = "2026-03-02T09:30:00Z";
  ASSERT_TRUE(write_result(newer, folder_ / "graded/submissions/ada/result.json"));
  ASSERT_TRUE(Gradebook::open(folder_ / "graded")->take({newer}));
  EXPECT_EQ(get("/student", ada)->body.find("expected 1.25"), std::string::npos);
  EXPECT_EQ(get("/student/verdict.json", ada)->status, 404);
}

TEST_F(StudentsTest, NoPathAndNoTokenLeadsToAGradersPage) {
  const auto tokens = make_tokens();
  mark("ada", 7.13, kReason);
  std::string code;
  {
    auto opened = cohort();
    const auto codes = Marking(opened.book).codes().value();
    code = codes.begin()->first;
  }
  start_for_students();
  const auto ada = log_in(tokens.at("ada"));
  const std::vector<std::string> paths{"/login",
                                       "/items",
                                       "/progress",
                                       "/publish",
                                       "/second",
                                       "/publish/" + code,
                                       "/sheet/" + code,
                                       "/sheet/" + code + "/worklog",
                                       "/student/../sheet/" + code,
                                       "/student/../../etc/passwd",
                                       "/student/%2e%2e/result.json",
                                       "/student/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
                                       "/student/eve",
                                       "/student/ada/verdict.json",
                                       "/submissions/ada/result.json"};
  for (const std::string& path : paths) EXPECT_EQ(get(path, ada)->status, 404) << path;
  httplib::Client client("127.0.0.1", port());
  for (const char* path : {"/next", "/login", "/publish", "/second/next"})
    EXPECT_EQ(
        client.Post(path, ada, httplib::MultipartFormDataItems{{"token", form_token(session_), "", ""}})
            ->status,
        404)
        << path;
  EXPECT_TRUE(log_in(owner_).empty()) << "a grader's token is no student's";
  EXPECT_TRUE(log_in("").empty());
  EXPECT_NE(get("/student", {})->body.find("Your token"), std::string::npos);
  EXPECT_EQ(get("/student/verdict.json", {})->status, 404);
  EXPECT_EQ(get("/student", {{"Host", "evil.example"}})->status, 421);
  const std::string session = ada.begin()->second.substr(std::string("capstone_student=").size());
  stop();
  // On the graders' server, a student's token and session are nothing.
  start();
  Browser student(port(), tokens.at("ada"));
  EXPECT_EQ(student.session_, "");
  for (const char* path : {"/", "/items", "/progress", "/publish", "/second"})
    for (const char* name : {"capstone_session=", "capstone_student="})
      EXPECT_EQ(get(path, {{"Cookie", name + session}})->get_header_value("Location"), "/login") << path;
  EXPECT_EQ(get("/student", {{"Cookie", "capstone_student=" + session}})->status, 404);
}

TEST_F(StudentsTest, TokensAreMadeByTheOwnerAndKeptAsDigests) {
  auto opened = cohort();
  const auto refused = workflows::write_student_tokens(workspace_, opened, {{}, "x.csv", "", "eva", false});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what, "'eva' is no owner");
  auto early = Desk::open(workspace_, "graded", {"127.0.0.1", 0, {}, false, false, true});
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().hint, "capstone gradebook tokens --out students.csv --cohort graded");

  const auto first = make_tokens();
  struct stat file {};
  ASSERT_EQ(::stat((folder_ / "students.csv").c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777u, 0600u);
  EXPECT_FALSE(workflows::write_student_tokens(workspace_, opened, {{}, "students.csv", "", "grace", true}))
      << "a list is not overwritten";
  EXPECT_EQ(workflows::write_student_tokens(workspace_, opened, {{}, "more.csv", "", "grace", false}), 0u);
  EXPECT_FALSE(fs::exists(folder_ / "more.csv"));
  const std::string stored = read_file(folder_ / "graded" / "gradebook.sqlite", 64u << 20).value();
  for (const auto& [name, token] : first) EXPECT_EQ(stored.find(token), std::string::npos);

  start_for_students();
  const auto old = log_in(first.at("ada"));
  ASSERT_FALSE(old.empty());
  const auto second = make_tokens("again.csv", true);
  EXPECT_NE(get("/student", old)->body.find("Your token"), std::string::npos) << "its session has ended";
  EXPECT_TRUE(log_in(first.at("ada")).empty());
  const auto now = log_in(second.at("ada"));
  ASSERT_FALSE(now.empty());
  httplib::Client client("127.0.0.1", port());
  const auto leave = [&](const std::string& token) {
    return client.Post("/student/logout", now, httplib::MultipartFormDataItems{{"token", token, "", ""}})
        ->status;
  };
  EXPECT_EQ(leave("guessed"), 403);
  EXPECT_EQ(leave(form_token(session_)), 303);
  EXPECT_NE(get("/student", now)->body.find("Your token"), std::string::npos);
}

}  // namespace
}  // namespace capstone::desk
