// Who is let in, what a page may do, and what a student's text cannot.
#include "tests/desk/desk_fixture.h"
#include "tests/desk/raw_socket.h"

namespace capstone::desk {
namespace {

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

/// What the server answers to these bytes; the client sends nothing more.
std::string answer_to(int port, const std::string& bytes) {
  const int made = connect_to(port);
  std::string answer;
  if (::send(made, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size())) {
    ::shutdown(made, SHUT_WR);
    char part[4096];
    for (ssize_t got; (got = ::recv(made, part, sizeof part, 0)) > 0;)
      answer.append(part, static_cast<std::size_t>(got));
  }
  ::close(made);
  return answer;
}

TEST_F(DeskTest, MalformedRequestsAreRefusedAndHarmNothing) {
  start();
  Browser eva(port(), eva_);
  const std::string sheet = eva.next();
  const std::string host = "Host: 127.0.0.1:" + std::to_string(port()) + "\r\n";
  const std::string cookie = "Cookie: " + std::string(kCookie) + "=" + eva.session_ + "\r\n";
  const std::string form = "POST " + sheet + "/save HTTP/1.1\r\n" + host + cookie;
  const std::string parts = "Content-Type: multipart/form-data; boundary=b\r\n";
  const std::string token = "--b\r\nContent-Disposition: form-data; name=\"token\"\r\n\r\n";
  ASSERT_TRUE(answer_to(port(), "GET / HTTP/1.1\r\n" + host + cookie + "\r\n").starts_with("HTTP/1.1 200"));
  for (const std::string& bytes : {
           std::string("\0\xff\xfe\r\n\r\n", 7),
           std::string("GET\r\n\r\n"),
           "GET / HTTP/9.9\r\n" + host + "\r\n",
           "GET /" + std::string(100'000, 'a') + " HTTP/1.1\r\n" + host + "\r\n",
           "GET / HTTP/1.1\r\n" + host + "X: " + std::string(100'000, 'a') + "\r\n\r\n",
           "GET /sheet/%zz%00 HTTP/1.1\r\n" + host + cookie + "\r\n",
           form + "Content-Length: -1\r\n\r\n",
           form + "Content-Length: 99999999999999999999\r\n\r\n",
           form + parts + "Content-Length: 20\r\n\r\n--b\r\n",
           form + parts + "Content-Length: 40\r\n\r\n" + token.substr(0, 40),
           form + "Content-Type: multipart/form-data\r\nContent-Length: 3\r\n\r\n--b",
           form + parts + "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
           form + parts + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n--b--\r",
       }) {
    const std::string answer = answer_to(port(), bytes);
    EXPECT_FALSE(answer.starts_with("HTTP/1.1 2") || answer.starts_with("HTTP/1.1 3"))
        << bytes.substr(0, 200) << "\n"
        << answer.substr(0, 200);
  }
  EXPECT_EQ(eva.get(sheet)->status, 200);
  for (const GradebookRow& row : rows()) EXPECT_FALSE(row.total()) << row.submission;
}

TEST_F(DeskTest, OnlyTheOwnerPublishes) {
  start();
  Browser eva(port(), eva_), grace(port(), owner_);
  EXPECT_EQ(eva.get("/publish")->status, 400);
  EXPECT_EQ(eva.post("/publish")->status, 400);
  const std::string sheet = eva.next();
  ASSERT_EQ(eva.post(sheet + "/save", filled("5", "ok"))->status, 303);
  EXPECT_FALSE(rows()[0].published || rows()[1].published);
  const std::string code = sheet.substr(sheet.rfind('/') + 1);
  EXPECT_EQ(eva.get("/publish/" + code)->status, 400);
  EXPECT_EQ(eva.post("/publish", {{"pick_" + code, "1"}})->status, 400);
  EXPECT_EQ(grace.post("/publish", {{"pick_" + code, "1"}})->status, 303);
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

}  // namespace
}  // namespace capstone::desk
