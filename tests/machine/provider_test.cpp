// Endpoints over HTTP: servers of this process that answer well, badly, late and not at all.
#include "harness/machine/provider.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <functional>
#include <mutex>
#include <thread>

#include "harness/base/json.h"
#include "harness/base/subprocess.h"

namespace capstone::machine {
namespace {

constexpr const char* kSecret = "sk-secret-of-the-test";
const Question kAsked{"0001", {{"user", "Write a kernel."}}};
// A machine's proxy would not find servers of this process.
[[maybe_unused]] const int kNoProxy = ::setenv("no_proxy", "*", 1);

std::string completion(const std::string& text) {
  return Json{{"model", "served-model"},
              {"choices", {{{"message", {{"content", text}}}, {"finish_reason", "stop"}}}},
              {"usage", {{"prompt_tokens", 1000}, {"completion_tokens", 200}}}}
      .dump();
}

std::string error_body(const std::string& text) { return Json{{"error", {{"message", text}}}}.dump(); }

void answer(httplib::Response& response, int status, const std::string& body) {
  response.status = status;
  response.set_content(body, "application/json");
}

/// A server with OpenAI's interface. The script answers request n, from 1.
class Server {
 public:
  using Script = std::function<void(int n, const httplib::Request&, httplib::Response&)>;

  explicit Server(Script script) {
    server_.Post("/v1/chat/completions", [this, script = std::move(script)](const httplib::Request& request,
                                                                            httplib::Response& response) {
      int n = 0;
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(request);
        n = static_cast<int>(requests_.size());
      }
      script(n, request, response);
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
  }
  ~Server() {
    while (!server_.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    server_.stop();
    thread_.join();
  }

  int count() const {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(requests_.size());
  }
  httplib::Request request(std::size_t n) const {
    const std::lock_guard lock(mutex_);
    return requests_.at(n);
  }
  Json body(std::size_t n) const { return parse_json(request(n).body); }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/v1"; }

 private:
  httplib::Server server_;
  mutable std::mutex mutex_;
  std::vector<httplib::Request> requests_;
  int port_ = 0;
  std::thread thread_;
};

// A socket that listens; whether somebody accepts is the test's choice.
class Port {
 public:
  Port() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket_, 16), 0);
    EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~Port() { ::close(socket_); }
  int socket() const { return socket_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/v1"; }

 private:
  int socket_ = -1, port_ = 0;
};

/// Sends what no HTTP server would. The script answers connection n, from 1, once its request was read.
class RawServer {
 public:
  explicit RawServer(std::function<void(int n, int connection)> script)
      : thread_([this, script = std::move(script)] {
          for (int connection;
               (connection = ::accept4(port_.socket(), nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
            read_request(connection);
            script(++count_, connection);
            ::close(connection);
          }
        }) {}
  ~RawServer() {
    ::shutdown(port_.socket(), SHUT_RDWR);
    thread_.join();
  }
  std::string url() const { return port_.url(); }
  int count() const { return count_; }

  static bool send(int connection, const std::string& bytes) {
    return ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }
  static void send_completion(int connection, const std::string& text) {
    const std::string body = completion(text);
    send(connection, "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }

 private:
  static void read_request(int connection) {
    std::string got;
    char buffer[4096];
    for (std::size_t wanted = std::string::npos; got.size() < wanted;) {
      const ssize_t n = ::recv(connection, buffer, sizeof buffer, 0);
      if (n <= 0) return;
      got.append(buffer, static_cast<std::size_t>(n));
      const std::size_t end = got.find("\r\n\r\n"), length = got.find("Content-Length: ");
      if (end != got.npos && length != got.npos) wanted = end + 4 + std::stoul(got.substr(length + 16));
    }
  }

  Port port_;
  std::atomic<int> count_{0};
  std::thread thread_;
};

Endpoint endpoint_at(const std::string& url) {
  Endpoint endpoint;
  endpoint.url = url;
  endpoint.model = "test-model";
  endpoint.key = kSecret;
  endpoint.timeout_seconds = 60;
  endpoint.first_pause_seconds = 0.01;
  return endpoint;
}

std::unique_ptr<Provider> provider_of(const Endpoint& endpoint) {
  auto provider = http_provider(endpoint);
  if (!provider) throw std::runtime_error(render(provider.error()));
  return std::move(*provider);
}

Result<Answer> ask(const Endpoint& endpoint) { return provider_of(endpoint)->ask(kAsked, {}); }

std::string reply_of(const Result<Answer>& answer) { return answer ? answer->text : render(answer.error()); }

void expect_error(const Result<Answer>& answer, const std::vector<std::string>& parts) {
  ASSERT_FALSE(answer);
  const std::string error = render(answer.error());
  for (const std::string& part : parts) EXPECT_NE(error.find(part), error.npos) << part << "\n" << error;
  EXPECT_EQ((error + answer.error().trace).find(kSecret), std::string::npos) << error;
}

TEST(HttpProvider, SendsTheConversationAndReadsTheReply) {
  Server server([](int, const auto&, auto& response) { answer(response, 200, completion("the kernel")); });
  Endpoint endpoint = endpoint_at(server.url());
  endpoint.price_in = 3;
  endpoint.price_out = 10;
  endpoint.temperature = 0.5;
  endpoint.max_tokens = 77;
  const auto got =
      provider_of(endpoint)->ask({"1", {{"user", "a"}, {"assistant", "b \xff"}, {"user", "c"}}}, {});
  ASSERT_TRUE(got) << render(got.error());
  EXPECT_EQ(got->text, "the kernel");
  EXPECT_EQ(got->model, "served-model");
  EXPECT_EQ(got->tokens_in, 1000);
  EXPECT_EQ(got->tokens_out, 200);
  EXPECT_DOUBLE_EQ(got->cost, (1000 * 3 + 200 * 10) / 1e6);
  EXPECT_GT(got->seconds, 0);
  EXPECT_EQ(got->requests, 1);
  EXPECT_EQ(server.request(0).get_header_value("Authorization"), std::string("Bearer ") + kSecret);
  EXPECT_EQ(server.request(0).get_header_value("Content-Type"), "application/json");
  EXPECT_EQ(server.body(0),
            parse_json(R"({"model": "test-model", "messages": [{"role": "user", "content": "a"},
      {"role": "assistant", "content": "b \ufffd"}, {"role": "user", "content": "c"}],
      "temperature": 0.5, "max_tokens": 77})"));
}

TEST(HttpProvider, SendsOnlyWhatIsSet) {
  Server server([](int, const auto&, auto& response) { answer(response, 200, completion("x")); });
  Endpoint endpoint = endpoint_at(server.url() + "/");
  endpoint.key = "";
  EXPECT_EQ(reply_of(ask(endpoint)), "x");
  EXPECT_FALSE(server.request(0).has_header("Authorization"));
  EXPECT_EQ(server.body(0).size(), 2u) << server.request(0).body;
}

TEST(HttpProvider, AQueryStaysAQuery) {
  Server server(
      [](int, const auto&, auto& response) { answer(response, 404, error_body("no such deployment")); });
  const auto got = ask(endpoint_at(server.url() + "?api-version=7#x"));
  expect_error(got, {"answered 404: no such deployment", "check `model`, and `url`"});
  EXPECT_EQ(got.error().where, server.url() + "/chat/completions");
  EXPECT_EQ(server.request(0).get_param_value("api-version"), "7");
}

TEST(HttpProvider, AReplyThatWasCutOffSaysSo) {
  Server server([](int, const auto&, auto& response) {
    answer(response, 200, R"({"choices": [{"message": {"content": "half"}, "finish_reason": "length"}]})");
  });
  const auto got = ask(endpoint_at(server.url()));
  ASSERT_TRUE(got) << render(got.error());
  ASSERT_EQ(got->notes.size(), 1u);
  EXPECT_NE(got->notes[0].find("cut the reply off"), std::string::npos);
  EXPECT_EQ(got->tokens_in + got->tokens_out, 0);
  EXPECT_EQ(got->cost, 0);
}

TEST(HttpProvider, TokensThatAreNoneCountAsNotReported) {
  Server server([](int, const auto&, auto& response) {
    answer(response, 200, R"({"choices": [{"message": {"content": "x"}}],
                              "usage": {"prompt_tokens": -5, "completion_tokens": "many"}})");
  });
  const auto got = ask(endpoint_at(server.url()));
  ASSERT_TRUE(got) << render(got.error());
  EXPECT_EQ(got->tokens_in, 0);
  EXPECT_EQ(got->tokens_out, 0);
}

TEST(HttpProvider, WaitsAsLongAsA429Says) {
  Server server([](int n, const auto&, auto& response) {
    if (n > 1) return answer(response, 200, completion("at last"));
    response.set_header("Retry-After", "1");
    answer(response, 429, error_body("slow down"));
  });
  const auto got = ask(endpoint_at(server.url()));
  ASSERT_TRUE(got) << render(got.error());
  EXPECT_EQ(got->text, "at last");
  EXPECT_EQ(got->requests, 2);
  EXPECT_GE(got->seconds, 0.99);
}

TEST(HttpProvider, WaitsUntilTheDateOfA429AndIsStoppedThere) {
  Server server([](int, const auto&, auto& response) {
    const std::time_t later = std::time(nullptr) + 3600;
    char date[64];
    std::strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", std::gmtime(&later));
    response.set_header("Retry-After", date);
    answer(response, 429, error_body("slow down"));
  });
  std::stop_source source;
  Result<Answer> got;
  std::thread thread([&, provider = provider_of(endpoint_at(server.url()))] {
    got = provider->ask(kAsked, source.get_token());
  });
  while (server.count() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  source.request_stop();
  thread.join();
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, ExitCode::kInterrupted);
  EXPECT_EQ(server.count(), 1) << "it did not wait";
}

TEST(HttpProvider, AsksAgainWhenTheServerFails) {
  Server server([](int n, const auto&, auto& response) {
    if (n == 1) return answer(response, 500, "oops");
    if (n == 2) return answer(response, 503, error_body("overloaded"));
    answer(response, 200, completion("third time"));
  });
  const auto got = ask(endpoint_at(server.url()));
  ASSERT_TRUE(got) << render(got.error());
  EXPECT_EQ(got->text, "third time");
  EXPECT_EQ(got->requests, 3);
}

TEST(HttpProvider, GivesUpAfterTheMostRequests) {
  Server server([](int, const auto&, auto& response) { answer(response, 502, "<html>Bad gateway</html>"); });
  Endpoint endpoint = endpoint_at(server.url());
  endpoint.most_requests = 3;
  const auto got = ask(endpoint);
  expect_error(got, {"answered 502: an HTML page (asked 3 times)", "try again later"});
  EXPECT_EQ(got.error().code, ExitCode::kEnvironment);
  EXPECT_EQ(server.count(), 3);
}

TEST(HttpProvider, ARefusalIsFinalAndNeverShowsTheKey) {
  for (const int status : {400, 401, 403, 404, 422}) {
    Server server([&](int, const auto&, auto& response) {
      answer(response, status,
             error_body(std::string("Incorrect API key provided: ") + kSecret + ".\nSee \x1b[31m"));
    });
    const auto got = ask(endpoint_at(server.url()));
    expect_error(got, {"answered " + std::to_string(status), "Incorrect API key provided: ***. See"});
    EXPECT_EQ(got.error().what.find_first_of("\n\x1b"), std::string::npos);
    EXPECT_EQ(got.error().code, ExitCode::kUsage);
    EXPECT_EQ(server.count(), 1);
  }
}

TEST(HttpProvider, AnEmptyAccountIsNotAskedAgain) {
  Server server([](int, const auto&, auto& response) {
    answer(response, 429,
           R"({"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}})");
  });
  expect_error(ask(endpoint_at(server.url())), {"answered 429: You exceeded your quota"});
  EXPECT_EQ(server.count(), 1);
}

TEST(HttpProvider, ErrorsComeInManyForms) {
  for (const char* body : {R"({"error": "out of order"})", R"({"detail": "out of order"})",
                           R"({"object": "error", "message": "out of order"})", "out of order"}) {
    Server server([&](int, const auto&, auto& response) { answer(response, 400, body); });
    expect_error(ask(endpoint_at(server.url())), {"answered 400: out of order\n"});
  }
}

TEST(HttpProvider, AnErrorInsideA200IsAnError) {
  Server passing([](int n, const auto&, auto& response) {
    answer(response, 200, n == 1 ? R"({"error": {"message": "overloaded", "code": 503}})" : completion("x"));
  });
  EXPECT_EQ(reply_of(ask(endpoint_at(passing.url()))), "x");
  for (const char* code : {"402", "\"bad\"", "null"}) {
    Server final([&](int, const auto&, auto& response) {
      answer(response, 200, std::string(R"({"error": {"message": "no credit", "code": )") + code + "}}");
    });
    expect_error(ask(endpoint_at(final.url())), {"answered with an error: no credit"});
    EXPECT_EQ(final.count(), 1);
  }
}

TEST(HttpProvider, WhatIsNoJsonIsAskedForAgain) {
  Server server([](int n, const auto&, auto& response) {
    const char* bodies[] = {"<!DOCTYPE html><html>log in</html>", R"({"choices": [)", ""};
    answer(response, 200, n <= 3 ? bodies[n - 1] : completion("x"));
  });
  const auto got = ask(endpoint_at(server.url()));
  EXPECT_EQ(reply_of(got), "x");
  EXPECT_EQ(got->requests, 4);
  Server page([](int, const auto&, auto& response) { answer(response, 200, "<html>log in</html>"); });
  Endpoint endpoint = endpoint_at(page.url());
  endpoint.most_requests = 2;
  expect_error(ask(endpoint), {"is no JSON: an HTML page (asked 2 times)", "check `url`"});
}

TEST(HttpProvider, OtherJsonIsRefused) {
  for (const std::string& body :
       {std::string(R"({"hello": 1})"), std::string("17"), std::string(100000, '[')}) {
    Server server([&](int, const auto&, auto& response) { answer(response, 200, body); });
    Endpoint endpoint = endpoint_at(server.url());
    endpoint.most_requests = 2;
    const auto got = ask(endpoint);
    expect_error(got, {"the endpoint's answer is no"});
    EXPECT_LT(got.error().what.size(), 500u);
  }
}

TEST(HttpProvider, TheOtherNameOfMaxTokensIsTriedOnceAndRemembered) {
  Server server([](int, const auto& request, auto& response) {
    if (parse_json(request.body).contains("max_completion_tokens"))
      return answer(response, 200, completion("x"));
    answer(response, 400, error_body("'max_tokens' is not supported. Use 'max_completion_tokens' instead."));
  });
  Endpoint endpoint = endpoint_at(server.url());
  endpoint.max_tokens = 50;
  const auto provider = provider_of(endpoint);
  const auto first = provider->ask(kAsked, {}), second = provider->ask(kAsked, {});
  ASSERT_TRUE(first && second) << reply_of(first) << reply_of(second);
  EXPECT_EQ(first->requests, 2);
  EXPECT_EQ(second->requests, 1);
  EXPECT_EQ(server.body(2)["max_completion_tokens"], 50);
  EXPECT_FALSE(server.body(2).contains("max_tokens"));
}

TEST(HttpProvider, ANameThatHelpsNothingIsNotRemembered) {
  Server server(
      [](int, const auto&, auto& response) { answer(response, 400, error_body("max_tokens is too large")); });
  Endpoint endpoint = endpoint_at(server.url());
  endpoint.max_tokens = 50;
  const auto provider = provider_of(endpoint);
  for (int i = 0; i < 2; ++i) expect_error(provider->ask(kAsked, {}), {"max_tokens is too large"});
  EXPECT_EQ(server.count(), 4);
  EXPECT_TRUE(server.body(2).contains("max_tokens"));
}

TEST(HttpProvider, ARedirectIsNotFollowed) {
  Server other([](int, const auto&, auto& response) { answer(response, 200, completion("stolen")); });
  Server server([&](int, const auto&, auto& response) {
    response.set_redirect(other.url() + "/chat/completions?token=1", 307);
  });
  const auto got = ask(endpoint_at(server.url()));
  expect_error(got, {"answered 307", "change `url`: " + other.url()});
  EXPECT_EQ(render(got.error()).find("token"), std::string::npos);
  EXPECT_EQ(other.count(), 0);
}

TEST(HttpProvider, AConnectionThatIsCutIsMadeAgain) {
  RawServer server([](int n, int connection) {
    if (n == 1) RawServer::send(connection, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"choices\": [");
    if (n == 2)
      RawServer::send(connection, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":");
    if (n == 3) {
      const linger reset{1, 0};
      ::setsockopt(connection, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    }
    if (n == 5) RawServer::send_completion(connection, "whole");  // 4 is closed without a word
  });
  const auto got = ask(endpoint_at(server.url()));
  ASSERT_TRUE(got) << render(got.error());
  EXPECT_EQ(got->text, "whole");
  EXPECT_EQ(got->requests, 5);
}

TEST(HttpProvider, NobodyThereIsAnError) {
  std::string url;
  {
    const Port port;
    url = port.url();
  }
  Endpoint endpoint = endpoint_at(url);
  endpoint.most_requests = 2;
  expect_error(ask(endpoint), {"cannot be asked", "(asked 2 times)", "whether the server runs"});
}

TEST(HttpProvider, ASlowAnswerIsCutOffAndAskedForAgain) {
  std::atomic<bool> over{false};
  RawServer server([&](int n, int connection) {
    if (n > 1) return RawServer::send_completion(connection, "in time");
    bool there = RawServer::send(connection, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
    while (there && !over) {
      there = RawServer::send(connection, " ");
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  });
  Endpoint endpoint = endpoint_at(server.url());
  endpoint.timeout_seconds = 0.5;
  endpoint.most_requests = 50;  // a busy machine may be late more than once
  const auto got = ask(endpoint);
  over = true;
  ASSERT_TRUE(got) << render(got.error());
  EXPECT_EQ(got->text, "in time");
  EXPECT_GE(got->requests, 2);
}

TEST(HttpProvider, SilenceEndsWithTheTimeout) {
  const Port port;
  Endpoint endpoint = endpoint_at(port.url());
  endpoint.timeout_seconds = 0.1;
  endpoint.most_requests = 2;
  expect_error(ask(endpoint), {"did not answer within 0.1 s", "(asked 2 times)", "raise `timeout`"});
}

TEST(HttpProvider, AnEndlessAnswerIsRefused) {
  RawServer server([](int, int connection) {
    bool there = RawServer::send(connection, "HTTP/1.1 200 OK\r\n\r\n");
    for (const std::string much(1 << 16, 'a'); there;) there = RawServer::send(connection, much);
  });
  expect_error(ask(endpoint_at(server.url())), {"too long", "4.00 MiB"});
  EXPECT_EQ(server.count(), 1);
}

TEST(HttpProvider, AReplyOverTheLimitIsRefused) {
  Server server([](int, const auto&, auto& response) {
    answer(response, 200, completion(std::string((4u << 20) + 1, 'a')));
  });
  expect_error(ask(endpoint_at(server.url())), {"too long"});
}

TEST(HttpProvider, SeveralThreadsAskAtOnce) {
  Server server([](int n, const auto& request, auto& response) {
    if (n <= 4) return answer(response, 503, "busy");
    answer(response, 200, completion(parse_json(request.body)["messages"][0]["content"]));
  });
  Endpoint endpoint = endpoint_at(server.url());
  endpoint.most_requests = 30;
  const auto provider = provider_of(endpoint);
  std::vector<std::string> texts(8);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < texts.size(); ++i)
      threads.emplace_back([&, i] {
        texts[i] = reply_of(provider->ask({"q", {{"user", std::to_string(i)}}}, {}));
      });
  }
  for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(texts[i], std::to_string(i));
}

TEST(HttpProvider, RequestsAreSpacedOut) {
  Server server([](int, const auto&, auto& response) { answer(response, 200, completion("x")); });
  Endpoint endpoint = endpoint_at(server.url());
  endpoint.requests_per_minute = 600;
  const auto provider = provider_of(endpoint);
  const auto begin = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] { EXPECT_EQ(reply_of(provider->ask(kAsked, {})), "x"); });
  }
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(300));
}

TEST(HttpProvider, AStopEndsARunningRequest) {
  const Port port;  // connections are made, and nobody answers
  std::stop_source source;
  std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    source.request_stop();
  });
  const auto got = provider_of(endpoint_at(port.url()))->ask(kAsked, source.get_token());
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, ExitCode::kInterrupted) << render(got.error());
}

TEST(HttpProvider, AnInterruptEndsARunningRequest) {
  const Port port;
  EXPECT_EXIT(
      {
        std::thread([] {
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
          request_interrupt();
        }).detach();
        const auto got = ask(endpoint_at(port.url()));
        std::_Exit(got ? 0 : static_cast<int>(got.error().code));
      },
      testing::ExitedWithCode(static_cast<int>(ExitCode::kInterrupted)), "");
}

TEST(HttpProvider, ACertificateThatNobodyVouchesForIsRefused) {
  EVP_PKEY* const key = EVP_RSA_gen(2048);
  X509* const certificate = X509_new();
  X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
  X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
  X509_sign(certificate, key, EVP_sha256());
  httplib::SSLServer server(certificate, key);
  X509_free(certificate);
  EVP_PKEY_free(key);
  std::atomic<int> asked{0};
  server.Post(".*", [&](const auto&, auto& response) {
    ++asked;
    answer(response, 200, completion("trusted"));
  });
  const int port = server.bind_to_any_port("127.0.0.1");
  std::thread thread([&] { server.listen_after_bind(); });
  const auto got = ask(endpoint_at("https://localhost:" + std::to_string(port) + "/v1"));
  while (!server.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  server.stop();
  thread.join();
  expect_error(got, {"cannot be asked", "certificate"});
  EXPECT_EQ(got.error().what.find("asked 6 times"), std::string::npos) << got.error().what;
  EXPECT_EQ(asked, 0);
}

TEST(HttpProvider, AUrlIsHttpAndHoldsNoPassword) {
  for (const char* url : {"", "api.example.org/v1", "ftp://api.example.org/v1", "file:///etc/passwd",
                          "https://", "https://ada:hunter2@api.example.org/v1", "https://a b/v1"}) {
    const auto provider = http_provider(endpoint_at(url));
    ASSERT_FALSE(provider) << url;
    EXPECT_FALSE(provider.error().hint.empty());
    EXPECT_EQ(render(provider.error()).find("hunter2"), std::string::npos);
  }
  Endpoint endpoint = endpoint_at("https://api.example.org/v1");
  endpoint.key = "sk-1\r\nX-Other: 1";
  EXPECT_FALSE(http_provider(endpoint));
}

TEST(HttpProvider, ItsDescriptionTellsModelAndHost) {
  Endpoint endpoint = endpoint_at("https://api.example.org:8443/secret/v1?token=1");
  endpoint.temperature = 0.2;
  endpoint.max_tokens = 100;
  EXPECT_EQ(provider_of(endpoint)->description(),
            "test-model at https://api.example.org:8443, temperature 0.2, at most 100 tokens");
  endpoint.model = "/home/ada/models/small";
  EXPECT_EQ(provider_of(endpoint)->description().find("small at https"), 0u);
}

}  // namespace
}  // namespace capstone::machine
