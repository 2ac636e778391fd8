// The desk as a browser sees it: over HTTP, several graders at once.
#include "harness/desk/desk.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include <fstream>
#include <regex>
#include <set>
#include <thread>

#include "harness/base/files.h"
#include "harness/course/gradebook/marking.h"
#include "harness/course/submissions.h"
#include "harness/desk/guard.h"
#include "harness/workflows/cohort.h"
#include "tests/resources.h"

namespace capstone::desk {
namespace {

const fs::path kSource = CAPSTONE_SOURCE_DIR;

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

TEST_F(DeskTest, WithoutASessionNothingIsShownAndNothingDone) {
  start();
  httplib::Client stranger("127.0.0.1", port());
  for (const char* path :
       {"/", "/items", "/progress", "/publish", "/sheet/123456", "/sheet/123456/worklog"}) {
    auto answer = stranger.Get(path);
    ASSERT_TRUE(answer) << path;
    EXPECT_EQ(answer->status, 303) << path;
    EXPECT_EQ(answer->get_header_value("Location"), "/login") << path;
  }
  EXPECT_EQ(stranger.Post("/next", httplib::MultipartFormDataItems{{"token", "x", "", ""}})->status, 401);
  Browser guess(port(), std::string(64, 'a'));
  EXPECT_EQ(guess.session_, "");
  EXPECT_EQ(Browser(port(), eva_).get("/")->status, 200);
}

TEST_F(DeskTest, TheCookieIsOutOfReachOfScriptsAndOtherSites) {
  start();
  httplib::Client client("127.0.0.1", port());
  auto answer = client.Post("/login", httplib::MultipartFormDataItems{{"secret", eva_, "", ""}});
  const std::string cookie = answer->get_header_value("Set-Cookie");
  EXPECT_NE(cookie.find("HttpOnly"), std::string::npos) << cookie;
  EXPECT_NE(cookie.find("SameSite=Strict"), std::string::npos) << cookie;
  EXPECT_EQ(cookie.find(eva_), std::string::npos) << "the token itself is exchanged";
}

TEST_F(DeskTest, ForeignHostsOriginsAndFormsWithoutTheTokenAreRefused) {
  start();
  Browser eva(port(), eva_);
  EXPECT_EQ(eva.client_.Get("/login", {{"Host", "evil.example"}})->status, 421);
  EXPECT_EQ(eva.post("/next", {}, {{"Origin", "http://evil.example"}})->status, 403);
  EXPECT_EQ(eva.post("/next", {{"token", "guessed"}})->status, 403);
  EXPECT_EQ(eva.post("/next", {{"token", ""}})->status, 403);
  EXPECT_EQ(eva.post("/next")->status, 303);
}

TEST_F(DeskTest, ALargeFormIsRefusedAndPathsAreOnlyCodes) {
  start();
  Browser eva(port(), eva_);
  const auto large = eva.post("/next", {{"x", std::string(2u << 20, 'x')}});
  EXPECT_TRUE(!large || large->status == 413) << large->status;
  for (const char* path : {"/sheet/../../etc/passwd", "/sheet/%2e%2e%2f%2e%2e/worklog", "/../rubric.yaml",
                           "/sheet/ada/worklog", "/submissions/ada/result.json"})
    EXPECT_EQ(eva.get(path)->status, 404) << path;
  const std::string sheet = eva.next();
  EXPECT_EQ(eva.get(sheet + "/source?file=99999")->body.find("root:"), std::string::npos);
  EXPECT_NE(eva.get(sheet + "/source?file=99999")->body.find("there is no such file"), std::string::npos);
}

TEST_F(DeskTest, PagesAllowNoScriptOfStudentsAndShowNoName) {
  start();
  Browser eva(port(), eva_);
  std::string all = eva.get("/")->body;
  for (std::string sheet = eva.next(); sheet != "/"; sheet = eva.next()) {
    for (const char* view : {"", "/worklog", "/source", "/versions", "/model", "/machine"}) {
      auto answer = eva.get(sheet + view);
      ASSERT_TRUE(answer);
      EXPECT_EQ(answer->status, 200) << view << answer->body.substr(0, 300);
      const std::string policy = answer->get_header_value("Content-Security-Policy");
      EXPECT_NE(policy.find("default-src 'none'"), std::string::npos) << view;
      if (*view) {
        EXPECT_NE(policy.find("sandbox"), std::string::npos) << view;
        EXPECT_EQ(policy.find("script-src"), std::string::npos) << view;
      } else {
        EXPECT_NE(policy.find("script-src 'self'"), std::string::npos);
        EXPECT_EQ(policy.find("unsafe"), std::string::npos);
      }
      all += answer->body;
    }
    ASSERT_EQ(eva.post(sheet + "/save",
                       [&] {
                         auto f = filled("5", "ok");
                         f["then"] = "next";
                         return f;
                       }())
                  ->status,
              303);
    ASSERT_TRUE(Gradebook::open(folder_ / "graded"));
  }
  EXPECT_EQ(all.find("<script>alert"), std::string::npos);
  EXPECT_EQ(all.find("<img"), std::string::npos);
  for (const char* word : {"Lovelace", "1815", "ada@example.org"})
    EXPECT_EQ(all.find(word), std::string::npos) << word;
  stop();
  start(true);
  const std::string named = Browser(port(), owner_).get("/")->body;
  EXPECT_NE(named.find("Ada Lovelace"), std::string::npos) << "where names are shown on purpose";
  EXPECT_NE(named.find("&lt;script&gt;alert(1)"), std::string::npos) << "escaped";
  EXPECT_EQ(named.find("<script>alert"), std::string::npos);
}

TEST_F(DeskTest, TwoGradersGetTwoSheetsAndWhoTakesOneOverKnowsIt) {
  start();
  Browser eva(port(), eva_), grace(port(), owner_);
  const std::string first = eva.next(), second = grace.next();
  EXPECT_NE(first, second);
  EXPECT_NE(grace.get(first)->body.find("eva has this sheet open since"), std::string::npos);
  auto refused = grace.post(first + "/save", filled("5", "over eva"));
  EXPECT_NE(refused->body.find("Not given: eva has this sheet open"), std::string::npos);
  EXPECT_NE(refused->body.find("over eva"), std::string::npos) << "what was typed stands in the page";
  EXPECT_EQ(grace.post(first + "/take")->status, 303);
  EXPECT_EQ(eva.post(first + "/beat")->body, "{\"holder\":\"grace\"}");
  EXPECT_EQ(grace.post(first + "/save", filled("5", "over eva"))->status, 303);
  EXPECT_TRUE(eva.post(first + "/save", filled("6", "eva again"))
                  ->body.find("Not given: grace has this sheet open") != std::string::npos);
}

TEST_F(DeskTest, AMarkThatCameInTheMeantimeIsToldBeforeItIsReplaced) {
  start();
  Browser eva(port(), eva_);
  const std::string sheet = eva.next();
  const std::string page = eva.get(sheet)->body;
  const std::string name = page.find("Submission") != std::string::npos ? rows()[0].submission : "";
  // The command line is another process; a claim does not stop it.
  std::string marked;
  {
    auto cohort = workflows::open_cohort(workspace_, "graded");
    for (const char* each : {"ada", "eve"}) {
      Mark mark;
      mark.submission = each, mark.criterion = "depth", mark.points = 24,
      mark.reason = "from the command line";
      mark.grader = "grace";
      ASSERT_TRUE(cohort->book.mark(cohort->rubric, {mark}));
    }
  }
  auto told_first = eva.post(sheet + "/save", filled("5", "mine"));
  EXPECT_EQ(told_first->status, 200);
  EXPECT_NE(told_first->body.find("has 24 by grace at "), std::string::npos)
      << told_first->body.substr(0, 1500);
  EXPECT_EQ(history("ada").find("by eva") != std::string::npos, false);
  auto again = filled("5", "mine");
  std::smatch seen;
  ASSERT_TRUE(
      std::regex_search(told_first->body, seen, std::regex("name=\"seen_depth\" value=\"([^\"]*)\"")));
  again["seen_depth"] = seen[1];
  EXPECT_EQ(eva.post(sheet + "/save", again)->status, 303);
  EXPECT_NE(eva.get(sheet)->body.find("depth replaces 24 by grace at "), std::string::npos);
  const std::string both = history("ada") + history("eve");
  EXPECT_NE(both.find("depth 5 by eva: mine"), std::string::npos);
  EXPECT_NE(both.find("depth 24 by grace"), std::string::npos);
}

TEST_F(DeskTest, WhatIsTypedOutlivesTheServer) {
  start();
  std::string sheet;
  {
    Browser eva(port(), eva_);
    sheet = eva.next();
    auto typed = filled("", "");
    typed["reason_depth"] = "half a sentence with \"quotes\" & <tags>";
    EXPECT_EQ(eva.post(sheet + "/draft", typed)->status, 200);
  }
  stop();
  start();
  Browser eva(port(), eva_);
  EXPECT_NE(eva.get(sheet)->body.find("half a sentence with &quot;quotes&quot; &amp; &lt;tags&gt;"),
            std::string::npos);
  EXPECT_EQ(eva.post(sheet + "/undo", {})->status, 303);
  EXPECT_EQ(eva.get(sheet)->body.find("half a sentence"), std::string::npos);
}

TEST_F(DeskTest, MarksFromTheDeskAreThoseOfTheGradebook) {
  start();
  Browser eva(port(), eva_);
  const std::string sheet = eva.next();
  auto incomplete = filled("5", "");
  EXPECT_NE(eva.post(sheet + "/save", incomplete)->body.find("needs points and a reason"), std::string::npos);
  auto too_many = filled("1000", "generous");
  EXPECT_NE(eva.post(sheet + "/save", too_many)->body.find("out of range"), std::string::npos);
  EXPECT_FALSE(rows()[0].total() || rows()[1].total()) << "all or none";
  auto whole = filled("5", "as\r\nsaid");
  whole["then"] = "next";
  const std::string following = eva.post(sheet + "/save", whole)->get_header_value("Location");
  EXPECT_NE(following, sheet);
  const auto all = rows();
  const auto& marked = all[0].total() ? all[0] : all[1];
  EXPECT_EQ(marked.total(), 20);
  EXPECT_EQ(marked.marks[0]->reason, "as\nsaid");
  EXPECT_EQ(marked.marks[0]->grader, "eva");
}

TEST_F(DeskTest, ItemsAndCommentsOnLinesAreKeptFromTheBrowser) {
  start();
  Browser eva(port(), eva_);
  const std::string sheet = eva.next();
  EXPECT_EQ(eva.post("/items", {{"criterion", "depth"}, {"id", "0"}, {"points", "7"}, {"text", "told well"}})
                ->status,
            303);
  EXPECT_NE(eva.get(sheet)->body.find("name=\"item_depth_1\""), std::string::npos);
  EXPECT_EQ(
      eva.post(sheet + "/save",
               {{"points_depth", "1"}, {"reason_depth", ""}, {"item_depth_1", "1"}, {"seen_depth", "-"}})
          ->status,
      303);
  EXPECT_EQ(eva.post("/items", {{"criterion", "depth"}, {"id", "1"}, {"points", "9"}, {"text", "told best"}})
                ->status,
            303);
  EXPECT_NE(eva.get("/items")->body.find("1 marks were given again"), std::string::npos);
  const auto all = rows();
  const auto& mark = all[0].marks[1] ? all[0].marks[1] : all[1].marks[1];
  EXPECT_EQ(mark->points, 10);
  EXPECT_EQ(mark->reason, "told best");
  EXPECT_EQ(eva.post(sheet + "/comment", {{"file", "0"}, {"line", "3"}, {"text", "why <b>?"}})->status, 303);
  EXPECT_NE(eva.get(sheet + "/source?file=0")->body.find("why &lt;b&gt;?"), std::string::npos);
}

TEST_F(DeskTest, WhoSeesOnlyWhatIsAssignedSeesNothingElse) {
  start();
  Browser eva(port(), eva_), tom(port(), tom_);
  const std::string sheet = eva.next();
  EXPECT_EQ(tom.next(), "/");
  EXPECT_EQ(tom.get(sheet)->status, 400);
  EXPECT_EQ(tom.get(sheet + "/worklog")->status, 400);
  EXPECT_EQ(tom.get("/")->body.find(sheet), std::string::npos);
  {
    auto cohort = workflows::open_cohort(workspace_, "graded");
    ASSERT_TRUE(Marking(cohort->book).assign({{"ada", "tom"}, {"eve", "tom"}}, "grace"));
  }
  EXPECT_EQ(tom.get(sheet + "/worklog")->status, 200);
}

TEST_F(DeskTest, OnlyTheOwnerPublishes) {
  start();
  Browser eva(port(), eva_), grace(port(), owner_);
  EXPECT_EQ(eva.get("/publish")->status, 400);
  EXPECT_EQ(eva.post("/publish")->status, 400);
  const std::string sheet = eva.next();
  ASSERT_EQ(eva.post(sheet + "/save", filled("5", "ok"))->status, 303);
  EXPECT_FALSE(rows()[0].published || rows()[1].published);
  EXPECT_EQ(grace.post("/publish")->status, 303);
  EXPECT_TRUE(rows()[0].published || rows()[1].published);
  EXPECT_EQ(eva.get("/progress")->status, 200);
}

TEST_F(DeskTest, WithoutAGraderItSaysHowToAddOne) {
  {
    auto cohort = workflows::open_cohort(workspace_, "graded");
    for (const char* who : {"grace", "eva", "tom"}) ASSERT_TRUE(Marking(cohort->book).remove_grader(who));
  }
  auto refused = Desk::open(workspace_, "graded", {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().hint, "capstone grader add NAME --owner --cohort graded");
}

TEST_F(DeskTest, TwoServersCannotShareAPort) {
  start();
  auto second = Desk::open(workspace_, "graded", {"127.0.0.1", port(), {}, false, false});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().what, "cannot listen on 127.0.0.1");
}

// Ten graders with two requests each at a time: no mark is lost, no lock is told to anyone.
TEST_F(DeskTest, TenGradersAtOnceLoseNoMark) {
  for (int i = 0; i < 20; ++i) {
    SubmissionResult result;
    result.name = "s" + std::to_string(i);
    result.problem = "softmax";
    result.state = GradingState::kGraded;
    result.members = {{"Student " + std::to_string(i), std::to_string(100 + i), ""}};
    result.inputs.files = "d" + std::to_string(i);
    result.finished = "2026-03-01T09:30:00Z";
    ASSERT_TRUE(Gradebook::open(folder_ / "graded")->take({result}));
  }
  std::vector<std::string> tokens;
  {
    auto cohort = workflows::open_cohort(workspace_, "graded");
    for (int i = 0; i < 10; ++i)
      tokens.push_back(
          Marking(cohort->book).add_grader("g" + std::to_string(i), GraderRole::kGrader, false).value());
  }
  start();
  std::atomic<int> given = 0;
  std::vector<std::thread> graders;
  for (const std::string& token : tokens)
    graders.emplace_back([&, token] {
      Browser browser(port(), token);
      for (std::string sheet = browser.next(); sheet != "/" && !sheet.empty();) {
        auto fields = filled("5", "by " + token.substr(0, 8));
        EXPECT_EQ(browser.post(sheet + "/draft", fields)->status, 200);
        fields["then"] = "next";
        auto saved = browser.post(sheet + "/save", fields);
        ASSERT_EQ(saved->status, 303) << saved->body.substr(0, 2000);
        ++given;
        sheet = saved->get_header_value("Location");
      }
    });
  for (std::thread& grader : graders) grader.join();
  EXPECT_EQ(given, 22);
  for (const GradebookRow& row : rows()) {
    EXPECT_EQ(row.total(), 20) << row.submission;
    std::set<std::string> reasons;
    for (const auto& mark : row.marks) reasons.insert(mark->reason);
    EXPECT_EQ(reasons.size(), 1u) << "one grader for each sheet";
  }
}

}  // namespace
}  // namespace capstone::desk
