// Clients that send or read one byte at a time, against the server of the desk.
#include "harness/desk/limited_server.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "harness/workflows/http_settings.h"
#include "tests/desk/raw_socket.h"

namespace capstone::desk {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr int kMoreThanThreads = 40;      // apply_common_settings() starts 32
constexpr std::size_t kLarge = 8u << 20;  // [B]; more than the sockets hold

class LimitedServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    workflows::apply_common_settings(server_);
    server_.set_read_timeout(10);
    server_.Get("/",
                [](const httplib::Request&, httplib::Response& r) { r.set_content("whole", "text/plain"); });
    server_.Get("/late", [](const httplib::Request&, httplib::Response& r) {
      std::this_thread::sleep_for(milliseconds(1500));
      r.set_content("worked long", "text/plain");
    });
    server_.Get("/large", [](const httplib::Request&, httplib::Response& r) {
      r.set_content(std::string(kLarge, 'x'), "text/plain");
    });
    server_.Post("/", [](const httplib::Request& q, httplib::Response& r) {
      r.set_content(std::to_string(q.body.size()), "text/plain");
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::sleep_for(milliseconds(1));
  }
  void TearDown() override {
    for (int each : open_) ::close(each);
    server_.stop();
    thread_.join();
  }

  int connect(int buffer = 0) {
    open_.push_back(connect_to(port_, buffer));
    return open_.back();
  }
  static void send(int to, const std::string& text) {
    (void)::send(to, text.data(), text.size(), MSG_NOSIGNAL);
  }
  static bool is_closed(int connection) {
    char part[4096];  // a refusal comes before the end
    ssize_t got = 0;
    while ((got = ::recv(connection, part, sizeof part, MSG_DONTWAIT)) > 0) continue;
    return got == 0 || errno != EAGAIN;
  }
  static void drip(const std::vector<int>& connections, const std::string& byte) {
    for (int each : connections) send(each, byte);
    std::this_thread::sleep_for(milliseconds(50));
  }
  /// Sends `byte` on every connection, again and again. @return whether the server closes all of them
  static bool all_are_closed(const std::vector<int>& connections, const std::string& byte) {
    std::set<int> open(connections.begin(), connections.end());
    for (const auto end = Clock::now() + std::chrono::seconds(30); Clock::now() < end && !open.empty();) {
      drip(connections, byte);
      std::erase_if(open, is_closed);
    }
    return open.empty();
  }
  void expect_an_answer() {
    httplib::Client honest("127.0.0.1", port_);
    honest.set_read_timeout(20);
    const auto answer = honest.Get("/");
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->body, "whole");
  }

  LimitedServer server_{milliseconds(1000)};
  int port_ = 0;
  std::thread thread_;
  std::vector<int> open_;
};

TEST_F(LimitedServerTest, HeadersOneByteAtATimeHoldNoThreadForEver) {
  std::vector<int> slow;
  for (int i = 0; i < kMoreThanThreads; ++i) send(slow.emplace_back(connect()), "GET / HTTP/1.1\r\nX-Slow: ");
  // Those above 32 wait for a thread and have a limit of their own from then on.
  EXPECT_TRUE(all_are_closed(slow, "a"));
  expect_an_answer();
}

TEST_F(LimitedServerTest, AThreadIsFreeAgainWhileTheSlowOnesStillSend) {
  std::vector<int> slow;
  for (int i = 0; i < 32; ++i) send(slow.emplace_back(connect()), "GET / HTTP/1.1\r\nX-Slow: ");
  std::jthread sending([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) drip(slow, "a");
  });
  expect_an_answer();
}

TEST_F(LimitedServerTest, ABodyOneByteAtATimeHoldsNoThreadForEver) {
  std::vector<int> slow;
  for (int i = 0; i < kMoreThanThreads; ++i)
    send(slow.emplace_back(connect()), "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
  EXPECT_TRUE(all_are_closed(slow, "b"));
  expect_an_answer();
}

TEST_F(LimitedServerTest, AnAnswerReadOneByteAtATimeHoldsNoThreadForEver) {
  std::vector<int> slow;
  for (int i = 0; i < 32; ++i)
    send(slow.emplace_back(connect(4096)), "GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  std::this_thread::sleep_for(milliseconds(300));
  std::jthread reading([&](const std::stop_token& stop) {
    for (char byte = 0; !stop.stop_requested(); std::this_thread::sleep_for(milliseconds(50)))
      for (int each : slow) (void)::recv(each, &byte, 1, MSG_DONTWAIT);
  });
  expect_an_answer();
}

TEST_F(LimitedServerTest, WhatIsHonestArrivesWhole) {
  httplib::Client client("127.0.0.1", port_);
  client.set_read_timeout(20);
  EXPECT_EQ(client.Get("/late")->body, "worked long") << "the time of the handler does not count";
  EXPECT_EQ(client.Get("/large")->body.size(), kLarge);
  EXPECT_EQ(client.Post("/", std::string(900'000, 'b'), "text/plain")->body, "900000");
  // Slow, and within the limit.
  const int unhurried = connect();
  for (const char each : std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n")) {
    send(unhurried, std::string(1, each));
    std::this_thread::sleep_for(milliseconds(10));
  }
  std::string answer;
  for (char part[4096];;) {
    const ssize_t got = ::recv(unhurried, part, sizeof part, 0);
    if (got <= 0) break;
    answer.append(part, static_cast<std::size_t>(got));
  }
  EXPECT_TRUE(answer.ends_with("whole")) << answer;
}

}  // namespace
}  // namespace capstone::desk
