// `open`, and what a browser sees of `open --serve`.
#include <httplib.h>
#include <signal.h>

#include <mutex>
#include <regex>
#include <thread>

#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

using std::chrono::milliseconds;

class Open : public CliTest {
 protected:
  fs::path new_project() const { return project("project", "01", "vector_add"); }

  // Waits up to a minute.
  template <class Condition>
  static bool soon(const Condition& holds) {
    for (int i = 0; i < 1200; ++i) {
      if (holds()) return true;
      std::this_thread::sleep_for(milliseconds(50));
    }
    return false;
  }

  // Every file of a project, with its content.
  static std::map<std::string, std::string> content(const fs::path& root) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(root))
      if (entry.is_regular_file()) files[entry.path().string()] = slurp(entry.path());
    return files;
  }

  static void write_answer(const fs::path& root, const std::string& text) {
    spit(root / "worklog.md", slurp(root / "worklog.md") + "\n" + text + "\n");
  }
};

// `open --serve` in the background.
struct Served {
  fs::path seen;
  Child child;
  int port = 0;
  std::string path;  // "/3f9a…/"

  Served(ProcessSpec spec, fs::path output, const std::string& options = "")
      : seen(output), child(start(spec, output, options)) {
    for (int i = 0; i < 1200 && port == 0; ++i) {
      std::smatch match;
      const std::string text = slurp(seen);
      if (std::regex_search(text, match, std::regex("http://127\\.0\\.0\\.1:(\\d+)(/[0-9a-f]+/)\n"))) {
        port = std::stoi(match[1]);
        path = match[2];
      }
      std::this_thread::sleep_for(milliseconds(50));
    }
  }

  static Child start(ProcessSpec spec, const fs::path& output, const std::string& options) {
    spec.argv = {"sh", "-c", "exec \"$0\" open --serve --no-browser " + options + " > " + output.string(),
                 CAPSTONE_BINARY};
    return Child::start(spec).value();
  }

  std::string page() const {
    const auto answer = httplib::Client("127.0.0.1", port).Get(path);
    return answer && answer->status == 200 ? answer->body : "";
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port) + path; }

  ProcessResult interrupt() {
    ::kill(child.pid(), SIGINT);
    return child.finish(milliseconds(20000));
  }
};

TEST_F(Open, RendersOnlyAReportThatIsStaleAndSaysWhereItIs) {
  const fs::path root = new_project(), page = root / "report" / "worklog.html";
  const How no_screen{.cwd = root, .env = {{"DISPLAY", ""}, {"WAYLAND_DISPLAY", ""}, {"BROWSER", ""}}};
  const Outcome first = capstone({"open"}, no_screen);
  EXPECT_EQ(first.code, 0) << first;
  EXPECT_EQ(first.out, page.string() + "\n");
  EXPECT_TRUE(says(first.err, "no browser: there is no display here"));
  EXPECT_TRUE(says(first.err, "open this in a browser: " + page.string()));
  const auto written = fs::last_write_time(page);
  EXPECT_EQ(capstone({"open"}, no_screen).code, 0);
  EXPECT_EQ(fs::last_write_time(page), written);
  write_answer(root, "Three streams of four bytes.");
  EXPECT_EQ(capstone({"open"}, no_screen).code, 0);
  EXPECT_TRUE(says(slurp(page), "Three streams of four bytes."));
  EXPECT_EQ(capstone({"open"}).code, 2) << "no project here";
  EXPECT_EQ(capstone({"open", "--port", "80"}, no_screen).code, 2) << "without --serve";
}

TEST_F(Open, StartsTheBrowserAndDoesNotWaitForItsEnd) {
  const fs::path root = new_project(), browser = home_ / "my browser";
  const fs::path go = home_ / "go", ended = home_ / "ended";
  spit(browser, "#!/bin/sh\necho \"$1\" > " + (home_ / "opened").string() + "\nwhile [ ! -e " + go.string() +
                    " ]; do sleep 0.05; done\ntouch " + ended.string() + "\n");
  fs::permissions(browser, fs::perms::owner_all);
  const Outcome opened = capstone({"open"}, {.cwd = root, .env = {{"BROWSER", browser.string()}}});
  EXPECT_EQ(opened.code, 0) << opened;
  EXPECT_TRUE(
      soon([&] { return slurp(home_ / "opened") == (root / "report" / "worklog.html").string() + "\n"; }));
  EXPECT_FALSE(fs::exists(ended)) << "capstone ended before the browser";
  spit(go, "");
  EXPECT_TRUE(soon([&] { return fs::exists(ended); })) << "the browser outlived capstone";
  spit(browser, "#!/bin/sh\nexit 4\n");
  const Outcome failed = capstone({"open"}, {.cwd = root, .env = {{"BROWSER", browser.string()}}});
  EXPECT_EQ(failed.code, 0) << "the report is there";
  EXPECT_TRUE(says(failed.err, "this program ended with exit code 4"));
  EXPECT_TRUE(says(failed.err, "open this in a browser: "));
}

TEST_F(Open, ServesAReportThatFollowsItsSourcesAndLeavesNothing) {
  const fs::path root = new_project();
  const std::string worklog = slurp(root / "worklog.md");
  const auto before = content(root);
  Served served(spec({}, {.cwd = root}), home_ / "seen", "--port 0");
  ASSERT_NE(served.port, 0) << slurp(served.seen);
  EXPECT_TRUE(says(served.page(), "<script src=\"live.js\""));

  std::string told;  // by the server, as events
  std::mutex mutex;
  std::thread listener([&] {
    httplib::Client client("127.0.0.1", served.port);
    client.set_read_timeout(std::chrono::seconds(120));
    client.Get(served.path + "events", [&](const char* data, std::size_t size) {
      const std::lock_guard lock(mutex);
      told.append(data, size);
      return true;
    });
  });
  // The page has the text, and its version is the last one that the listener was told.
  const auto shows = [&](const std::string& text, bool alert = false) {
    return soon([&] {
      const std::string page = served.page();
      std::smatch version;
      if (page.find(text) == std::string::npos ||
          (page.find("role=\"alert\"") != std::string::npos) != alert ||
          !std::regex_search(page, version, std::regex("data-version=\"([0-9a-f]+)\"")))
        return false;
      const std::lock_guard lock(mutex);
      return told.ends_with("data: " + version.str(1) + "\n\n");
    });
  };
  EXPECT_TRUE(shows("No prediction was recorded."));
  write_answer(root, "Written in place.");
  EXPECT_TRUE(shows("Written in place."));
  spit(root / "new", slurp(root / "worklog.md") + "\nSaved by a rename, with {{v9.speedup}}.\n");
  fs::rename(root / "new", root / "worklog.md");
  EXPECT_TRUE(shows("Saved by a rename"));
  EXPECT_TRUE(soon([&] {
    return slurp(served.seen).find("first: unknown placeholder {{v9.speedup}} (worklog.md:") !=
           std::string::npos;
  })) << slurp(served.seen);
  fs::remove(root / "worklog.md");
  EXPECT_TRUE(shows("Saved by a rename", true)) << "the last good report";
  EXPECT_TRUE(says(served.page(), "error: cannot read"));
  spit(root / "worklog.md", worklog);
  EXPECT_TRUE(shows("No prediction was recorded."));
  EXPECT_EQ(served.page().find("Saved by a rename"), std::string::npos);

  EXPECT_EQ(content(root), before) << "report/ is not written, and nothing else is";
  EXPECT_EQ(capstone({"predict", "memory", "--because", "three streams"}, {.cwd = root}).code, 0);
  EXPECT_TRUE(shows("three streams")) << "from the ledger";
  EXPECT_EQ(served.interrupt().status, 130);
  listener.join();
}

TEST_F(Open, TwoServersShareNothing) {
  const fs::path one = project("one", "01", "vector_add"), two = project("two", "01", "vector_add");
  write_answer(one, "The first project.");
  write_answer(two, "The second project.");
  Served first(spec({}, {.cwd = one}), home_ / "first", "--port 0");
  ASSERT_NE(first.port, 0);
  Served second(spec({}, {.cwd = two}), home_ / "second", "--port " + std::to_string(first.port));
  ASSERT_NE(second.port, 0);
  EXPECT_NE(first.port, second.port);
  EXPECT_TRUE(says(first.page(), "The first project."));
  EXPECT_TRUE(says(second.page(), "The second project."));
  first.interrupt();
  EXPECT_TRUE(says(second.interrupt().err, "port " + std::to_string(first.port) + " is taken: this is " +
                                               std::to_string(second.port)));
}

// Chromium's debugging port tells the titles of its pages.
TEST_F(Open, APageInABrowserReloadsItself) {
  std::string chromium;
  for (const char* name : {"/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"})
    if (chromium.empty() && fs::exists(name)) chromium = name;
  if (chromium.empty()) GTEST_SKIP() << "no Chromium found";
  const fs::path root = new_project(), profile = home_ / "profile";
  Served served(spec({}, {.cwd = root}), home_ / "seen", "--port 0");
  ASSERT_NE(served.port, 0);
  ProcessSpec browser = spec({}, {.cwd = home_});
  browser.argv = {chromium,
                  "--headless",
                  "--no-sandbox",
                  "--disable-gpu",
                  "--no-first-run",
                  "--disable-extensions",
                  "--disable-background-networking",
                  "--remote-debugging-port=0",
                  "--user-data-dir=" + profile.string(),
                  served.url()};
  auto shown = Child::start(browser);
  ASSERT_TRUE(shown);
  const auto has_title = [&](const std::string& part) {
    const int port = std::atoi(slurp(profile / "DevToolsActivePort").c_str());
    if (port == 0) return false;
    const auto answer = httplib::Client("127.0.0.1", port).Get("/json/list");
    return answer && answer->body.find(part) != std::string::npos;
  };
  ASSERT_TRUE(soon([&] { return has_title(": Ada Lovelace"); })) << shown->err_so_far();
  const std::string config = slurp(root / "capstone.yaml");
  spit(root / "capstone.yaml", std::regex_replace(config, std::regex("Ada Lovelace"), "Grace Hopper"));
  EXPECT_TRUE(soon([&] { return has_title(": Grace Hopper"); })) << slurp(served.seen);
  shown->finish(milliseconds(0));
  served.interrupt();
}

}  // namespace
}  // namespace capstone::cli_test
