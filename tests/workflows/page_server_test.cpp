// The server of `open --serve`, over real sockets.
#include "harness/workflows/page_server.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include <fstream>
#include <thread>

namespace capstone::workflows {
namespace {

ServedPages pages(const std::string& version) {
  return {{{"worklog.html", "<p>page " + version + "</p>"}, {"score_sheet.json", "{}"}, {"live.js", "1"}},
          "worklog.html",
          version};
}

PageServer serve(int port = 0) {
  auto server = PageServer::start(port, pages("one"));
  if (!server) throw std::runtime_error(render(server.error()));
  return std::move(*server);
}

// The part of the URL that only the page's reader knows, with its slashes: "/3f9a…/".
std::string folder_of(const PageServer& server) {
  const std::string url = server.url();
  return url.substr(url.find('/', std::string("http://").size()));
}

int status_of(const PageServer& server, const std::string& path, const std::string& host = "localhost") {
  const auto answer = httplib::Client("127.0.0.1", server.port()).Get(path, {{"Host", host}});
  return answer ? answer->status : -1;
}

// A page that listens until it was told a version.
struct Listener {
  std::thread thread;
  std::string told;
  Listener(const PageServer& server, std::string until) {
    thread = std::thread([this, port = server.port(), path = folder_of(server) + "events", until] {
      httplib::Client client("127.0.0.1", port);
      client.set_read_timeout(std::chrono::seconds(60));
      client.Get(path, [&](const char* data, std::size_t size) {
        told.append(data, size);
        return told.find("data: " + until + "\n\n") == std::string::npos;
      });
    });
  }
  const std::string& wait() {
    thread.join();
    return told;
  }
};

TEST(PageServer, ServesItsFilesWithTheirTypes) {
  const PageServer server = serve();
  httplib::Client client("127.0.0.1", server.port());
  const auto front = client.Get(folder_of(server));
  ASSERT_TRUE(front);
  EXPECT_EQ(front->body, "<p>page one</p>");
  EXPECT_EQ(front->get_header_value("Content-Type"), "text/html; charset=utf-8");
  EXPECT_EQ(front->get_header_value("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(front->get_header_value("Cache-Control"), "no-store");
  const auto sheet = client.Get(folder_of(server) + "score_sheet.json");
  ASSERT_TRUE(sheet);
  EXPECT_EQ(sheet->get_header_value("Content-Type"), "application/json");
}

TEST(PageServer, ServesNothingElse) {
  const PageServer server = serve();
  const std::string folder = folder_of(server);
  EXPECT_EQ(status_of(server, folder + "worklog.html"), 200);
  for (const std::string path :
       {"..", "../", "../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd", "..%2f..%2fetc%2fpasswd", "/etc/passwd",
        "worklog.html/../../../etc/passwd", "worklog.md", "worklog.html%00"})
    EXPECT_EQ(status_of(server, folder + path), 404) << path;
  for (const std::string path : {"/", "/worklog.html", "/events", "/etc/passwd", "/../etc/passwd"})
    EXPECT_EQ(status_of(server, path), 404) << path << ": without the random word";
  const auto posted =
      httplib::Client("127.0.0.1", server.port()).Post(folder + "worklog.html", "x", "text/plain");
  ASSERT_TRUE(posted);
  EXPECT_EQ(posted->status, 404);
}

TEST(PageServer, TheWordDiffersFromServerToServer) {
  const PageServer one = serve(), other = serve();
  EXPECT_GE(folder_of(one).size(), 34u);
  EXPECT_NE(folder_of(one), folder_of(other));
  EXPECT_EQ(status_of(other, folder_of(one)), 404);
}

TEST(PageServer, RefusesTheNamesOfOtherHosts) {
  const PageServer server = serve();
  const std::string folder = folder_of(server);
  for (const std::string host : {"evil.example", "evil.example:8642", "127.0.0.1.evil.example",
                                 "localhost.evil.example", "evil.example:localhost", ""})
    EXPECT_EQ(status_of(server, folder, host), 403) << host;
  for (const std::string host : {"localhost", "127.0.0.1", "localhost:9000"})  // 9000: a forwarded port
    EXPECT_EQ(status_of(server, folder, host), 200) << host;
}

TEST(PageServer, ListensOnThisMachineAlone) {
  const PageServer server = serve();
  char port[8];
  std::snprintf(port, sizeof port, ":%04X ", server.port());
  std::vector<std::string> listening;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    for (std::string line; std::getline(file, line);)
      if (line.find(port) < 40 && line.find(" 0A ") != std::string::npos) listening.push_back(line);
  }
  ASSERT_EQ(listening.size(), 1u);
  EXPECT_NE(listening[0].find(std::string("0100007F") + port), std::string::npos) << listening[0];
}

TEST(PageServer, TellsEveryListenerWhenThePagesChange) {
  PageServer server = serve();
  Listener first(server, "two"), second(server, "two");
  Listener(server, "one").wait();  // a listener is told the version that is there
  server.show(pages("two"));
  EXPECT_TRUE(first.wait().ends_with("data: two\n\n"));
  EXPECT_TRUE(second.wait().ends_with("data: two\n\n"));
  EXPECT_EQ(httplib::Client("127.0.0.1", server.port()).Get(folder_of(server))->body, "<p>page two</p>");
}

TEST(PageServer, APortThatIsTakenIsLeftToItsOwner) {
  const PageServer owner = serve();
  const PageServer next = serve(owner.port());
  EXPECT_NE(next.port(), owner.port());
  EXPECT_EQ(status_of(owner, folder_of(owner)), 200);
  EXPECT_EQ(status_of(next, folder_of(next)), 200);
}

TEST(PageServer, EndsThoughPagesListen) {
  std::optional<PageServer> server = serve();
  Listener listener(*server, "never");
  Listener(*server, "one").wait();
  const int port = server->port();
  server.reset();
  EXPECT_EQ(listener.wait().find("never"), std::string::npos);
  EXPECT_FALSE(httplib::Client("127.0.0.1", port).Get("/")) << "nothing listens any more";
}

TEST(PageServer, EndsThoughItHasJustBegun) {
  for (int i = 0; i < 20; ++i) serve();
}

}  // namespace
}  // namespace capstone::workflows
