// Asks an endpoint with OpenAI's chat interface, through libcurl.
#include <curl/curl.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <mutex>
#include <random>

#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/machine/provider.h"
#include "harness/machine/waiting.h"
#include "harness/project/reply/api_reply.h"
#include "harness/project/reply/extract.h"

namespace capstone::machine {
namespace {

constexpr std::size_t kMaxBodyBytes =
    3 * kMaxReplyBytes;                  // JSON escapes the reply; thoughts may be beside it
constexpr std::size_t kMaxQuoted = 300;  // [B] of an endpoint's message in an error
constexpr double kLongestPause = 300, kLongestTimeout = 86400;  // [s]
constexpr const char* kPath = "/chat/completions";

// libcurl's functions. It is loaded when the first endpoint is made: `capstone` starts without it, and a
// package need not bring it along.
#define CAPSTONE_CURL_FUNCTIONS(X)                                                                  \
  X(global_init)                                                                                    \
  X(easy_init)                                                                                      \
  X(easy_setopt)                                                                                    \
  X(easy_getinfo)                                                                                   \
  X(easy_cleanup) X(easy_strerror) X(multi_init) X(multi_add_handle) X(multi_perform) X(multi_poll) \
      X(multi_info_read) X(multi_remove_handle) X(multi_cleanup) X(multi_strerror) X(slist_append)  \
          X(slist_free_all) X(url) X(url_set) X(url_get) X(url_cleanup) X(free)
struct Curl {
#define CAPSTONE_DECLARE(name) decltype(&curl_##name) name = nullptr;
  CAPSTONE_CURL_FUNCTIONS(CAPSTONE_DECLARE)
#undef CAPSTONE_DECLARE
};

Result<Curl> load_curl() {
  void* library = nullptr;
  std::string why;
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"}) {
    if ((library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL))) break;
    if (why.empty()) why = ::dlerror();
  }
  const auto unusable = [](std::string reason) {
    return fail("libcurl is needed to ask a model over HTTP, and cannot be loaded", std::move(reason),
                "apt-get install libcurl4", ExitCode::kEnvironment);
  };
  if (!library) return unusable(why);
  Curl curl;
#define CAPSTONE_FIND(name)                                                           \
  curl.name = reinterpret_cast<decltype(curl.name)>(::dlsym(library, "curl_" #name)); \
  if (!curl.name) return unusable("it has no function curl_" #name);
  CAPSTONE_CURL_FUNCTIONS(CAPSTONE_FIND)
#undef CAPSTONE_FIND
  if (curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) return unusable("curl_global_init() failed");
  return curl;
}

const Result<Curl>& loaded_curl() {
  static const Result<Curl> curl = load_curl();
  return curl;
}

struct Address {
  std::string request;  // the URL to post to
  std::string shown;    // the same without its query, which may hold a secret
  std::string host;     // scheme, host and port
};

Result<Address> read_address(const Curl& curl, const std::string& url) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> parsed(curl.url(), curl.url_cleanup);
  const auto part = [&](CURLUPart which, unsigned flags = 0) {
    char* text = nullptr;
    if (curl.url_get(parsed.get(), which, &text, flags) != CURLUE_OK) return std::string();
    std::string copy(text);
    curl.free(text);
    return copy;
  };
  const char* hint = "an endpoint's `url` looks like https://api.example.org/v1";
  // The text of a bad URL is not shown: it may hold a password.
  if (curl.url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK)
    return fail("the endpoint's `url` is no URL", {}, hint);
  const std::string scheme = part(CURLUPART_SCHEME), host = part(CURLUPART_HOST), port = part(CURLUPART_PORT);
  if (scheme != "http" && scheme != "https")
    return fail(fmt::format("an endpoint is asked over https or http, not {}", printable(scheme)), {}, hint);
  if (!part(CURLUPART_USER).empty() || !part(CURLUPART_PASSWORD).empty())
    return fail("the endpoint's `url` holds a user or a password", scheme + "://" + host,
                "give the key in `key_env` or `key_file`");
  std::string path = part(CURLUPART_PATH);
  while (path.ends_with('/')) path.pop_back();
  if (!path.ends_with(kPath)) path += kPath;
  curl.url_set(parsed.get(), CURLUPART_PATH, path.c_str(), 0);
  curl.url_set(parsed.get(), CURLUPART_FRAGMENT, nullptr, 0);
  Address address;
  address.request = part(CURLUPART_URL);
  address.shown = address.request.substr(0, address.request.find('?'));
  address.host = scheme + "://" + host + (port.empty() ? "" : ":" + port);
  return address;
}

// What came of one request.
struct Exchange {
  CURLcode code = CURLE_OK;
  std::string trouble;  // in libcurl's words, where the code is another
  long status = 0;
  double retry_after = 0;  // [s]
  std::string redirect;    // where a 3xx points to
  std::string body;
  bool too_long = false, stopped = false;
};

std::size_t keep_body(char* data, std::size_t, std::size_t size, void* exchange) {
  Exchange& into = *static_cast<Exchange*>(exchange);
  into.too_long = into.body.size() + size > kMaxBodyBytes;
  if (into.too_long) return 0;
  into.body.append(data, size);
  return size;
}

// One request. The multi interface lets a wait end within a tenth of a second; the easy one looks up only
// once a second.
class Transfer {
 public:
  explicit Transfer(const Curl& curl) : curl_(curl), multi_(curl.multi_init()), easy_(curl.easy_init()) {}
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer() {
    if (multi_ && easy_) curl_.multi_remove_handle(multi_, easy_);
    if (easy_) curl_.easy_cleanup(easy_);
    if (multi_) curl_.multi_cleanup(multi_);
    curl_.slist_free_all(headers_);
  }

  Exchange post(const std::string& url, const std::string& key, const std::string& body, double timeout,
                const std::stop_token& stop) {
    if (!multi_ || !easy_) return failed(CURLE_OUT_OF_MEMORY);
    set_up(url, key, body, timeout);
    curl_.multi_add_handle(multi_, easy_);
    for (int running = 1; running;) {
      if (const CURLMcode code = curl_.multi_perform(multi_, &running); code != CURLM_OK)
        return failed(CURLE_SEND_ERROR, curl_.multi_strerror(code));
      if (running) curl_.multi_poll(multi_, nullptr, 0, 100, nullptr);
      if (running && stopped(stop)) {
        exchange_.stopped = true;
        return std::move(exchange_);
      }
    }
    int left = 0;
    if (const CURLMsg* message = curl_.multi_info_read(multi_, &left); message && message->data.result)
      return failed(message->data.result);
    read_head();
    return std::move(exchange_);
  }

 private:
  template <class Value>
  void set(CURLoption option, Value value) {
    curl_.easy_setopt(easy_, option, value);
  }

  void add_header(const std::string& line) { headers_ = curl_.slist_append(headers_, line.c_str()); }

  void set_up(const std::string& url, const std::string& key, const std::string& body, double timeout) {
    add_header("Content-Type: application/json");
    add_header("Accept: application/json");
    add_header("Expect:");  // some servers never say "100 Continue"
    if (!key.empty()) add_header("Authorization: Bearer " + key);
    set(CURLOPT_URL, url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_FOLLOWLOCATION, 0L);  // the key goes to this host only
    set(CURLOPT_HTTPHEADER, headers_);
    set(CURLOPT_USERAGENT, "capstone");
    set(CURLOPT_POSTFIELDS, body.c_str());
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    set(CURLOPT_WRITEFUNCTION, &keep_body);
    set(CURLOPT_WRITEDATA, &exchange_);
    set(CURLOPT_ERRORBUFFER, static_cast<char*>(trouble_));
    set(CURLOPT_TIMEOUT_MS, std::max(1L, std::lround(std::min(timeout, kLongestTimeout) * 1e3)));
    set(CURLOPT_CONNECTTIMEOUT, 30L);
    set(CURLOPT_TCP_KEEPALIVE, 1L);  // routers forget a connection on which a model thinks for minutes
    set(CURLOPT_NOSIGNAL, 1L);       // several threads ask at once
    set(CURLOPT_QUICK_EXIT, 1L);     // to be stopped, do not wait for the name server
  }

  Exchange failed(CURLcode code, const char* trouble = nullptr) {
    exchange_.code = code;
    exchange_.trouble = trouble ? trouble : *trouble_ ? trouble_ : curl_.easy_strerror(code);
    return std::move(exchange_);
  }

  void read_head() {
    curl_.easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &exchange_.status);
    curl_off_t seconds = 0;  // libcurl reads both forms, a number and a date
    if (curl_.easy_getinfo(easy_, CURLINFO_RETRY_AFTER, &seconds) == CURLE_OK && seconds > 0)
      exchange_.retry_after = std::min(static_cast<double>(seconds), kLongestPause);
    const char* redirect = nullptr;
    if (curl_.easy_getinfo(easy_, CURLINFO_REDIRECT_URL, &redirect) == CURLE_OK && redirect)
      exchange_.redirect = redirect;
  }

  const Curl& curl_;
  CURLM* multi_;
  CURL* easy_;
  curl_slist* headers_ = nullptr;
  char trouble_[CURL_ERROR_SIZE] = "";
  Exchange exchange_;
};

bool may_pass(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return true;
    default:
      return false;
  }
}

bool may_pass(long status) { return status == 408 || status == 429 || (status >= 500 && status != 501); }

std::string hint_for(long status) {
  switch (status) {
    case 400:
      return "the endpoint does not take this request; check `model`, `temperature` and `max_tokens`";
    case 401:
    case 403:
      return "check the key that `key_env` or `key_file` names, and that it may use this model";
    case 404:
      return "check `model`, and `url`: everything before /chat/completions";
    case 429:
      return "limit the requests with `requests_per_minute`, or check what your account may use";
    default:
      return may_pass(status) ? "the endpoint has trouble; try again later" : "";
  }
}

const Json& member(const Json& object, const char* key) {
  static const Json nothing;
  return object.is_object() && object.contains(key) ? object[key] : nothing;
}

std::int64_t count_at(const Json& usage, const char* key) {
  const Json& count = member(usage, key);
  return count.is_number_integer() ? std::max<std::int64_t>(0, count.get<std::int64_t>()) : 0;
}

// Why there is no answer, and whether asking again may help.
struct Refusal {
  Error error;
  bool again = false;
  double wait = 0;               // [s] at least, before it is asked again
  bool over_max_tokens = false;  // it does not take the parameter of this name
};

// Gives each request a moment at which it may begin.
class Limiter {
 public:
  explicit Limiter(double per_minute)
      : gap_(per_minute > 0 ? to_duration(60 / per_minute) : Clock::duration{}) {}

  /// @return false: stopped.
  bool wait(const std::stop_token& stop) {
    Clock::time_point begin = Clock::now();
    {
      const std::lock_guard lock(mutex_);
      begin = std::max(begin, free_);
      free_ = begin + gap_;
    }
    return sleep_until(begin, stop);
  }

 private:
  Clock::duration gap_;
  std::mutex mutex_;
  Clock::time_point free_;
};

class HttpProvider : public Provider {
 public:
  HttpProvider(const Curl& curl, Endpoint endpoint, Address address)
      : curl_(curl),
        endpoint_(std::move(endpoint)),
        address_(std::move(address)),
        limiter_(endpoint_.requests_per_minute) {}

  std::string description() const override {
    // Servers of one's own often name a model by its path.
    const std::string& model = endpoint_.model;
    std::string text = fmt::format(
        "{} at {}", model.starts_with('/') ? model.substr(model.rfind('/') + 1) : model, address_.host);
    if (endpoint_.temperature >= 0) text += fmt::format(", temperature {}", endpoint_.temperature);
    if (endpoint_.max_tokens > 0) text += fmt::format(", at most {} tokens", endpoint_.max_tokens);
    return masked(text);
  }

  Result<Answer> ask(const Question& question, const std::stop_token& stop) override {
    const Clock::time_point begin = Clock::now();
    bool newer = newer_name_;
    int failures = 0;
    for (int requests = 1;; ++requests) {
      if (!limiter_.wait(stop)) return fail(interruption());
      const Exchange exchange = Transfer(curl_).post(
          address_.request, endpoint_.key, body_of(question, newer), endpoint_.timeout_seconds, stop);
      if (exchange.stopped) return fail(interruption());
      auto answer = read(exchange);
      if (answer) {
        if (newer) newer_name_ = true;
        answer->requests = requests;
        answer->seconds = seconds_since(begin);
        return std::move(*answer);
      }
      Refusal& refusal = answer.error();
      if (refusal.over_max_tokens && !newer) {
        newer = true;
        continue;
      }
      if (!refusal.again || ++failures >= endpoint_.most_requests) {
        if (requests > 1) refusal.error.what += fmt::format(" (asked {} times)", requests);
        return fail(refusal.error);
      }
      if (!sleep_until(Clock::now() + pause(failures, refusal.wait), stop)) return fail(interruption());
    }
  }

 private:
  // OpenAI renamed `max_tokens`; its newer models refuse the old name, and most other servers know only that.
  std::string body_of(const Question& question, bool newer) const {
    Json body{{"model", endpoint_.model}, {"messages", Json::array()}};
    for (const Message& message : question.conversation)
      body["messages"].push_back({{"role", message.role}, {"content", message.text}});
    if (endpoint_.temperature >= 0) body["temperature"] = endpoint_.temperature;
    if (endpoint_.max_tokens > 0) body[newer ? "max_completion_tokens" : "max_tokens"] = endpoint_.max_tokens;
    return body.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  tl::expected<Answer, Refusal> read(const Exchange& exchange) const {
    if (exchange.code != CURLE_OK) return tl::unexpected(unreached(exchange));
    const Json json = parse_json(trim(exchange.body));
    long status = exchange.status;
    if (status / 100 == 2) {
      if (json.is_discarded())
        return tl::unexpected(Refusal{error("the endpoint's answer is no JSON", said(exchange.body, json),
                                            "check `url`: everything before /chat/completions"),
                                      true});
      const auto reply = read_api_reply(exchange.body);
      if (!reply)
        return tl::unexpected(
            Refusal{error("the endpoint's answer is no chat completion", said(exchange.body, json),
                          "check `url`: it needs OpenAI's interface")});
      if (reply->error.empty()) return answer_of(json, *reply);
      // Services in front of others answer 200, and give the status of the other one inside.
      const Json& code = member(member(json, "error"), "code");
      if (code.is_number_integer()) status = code.get<long>();
    }
    return tl::unexpected(refused(exchange, status, json));
  }

  tl::expected<Answer, Refusal> answer_of(const Json& json, const ApiReply& reply) const {
    if (reply.text.size() > kMaxReplyBytes) return tl::unexpected(Refusal{too_long()});
    Answer answer;
    answer.text = reply.text;
    answer.notes = reply.notes;
    answer.model = printable(text_at(json, "model"));
    const Json& usage = member(json, "usage");
    answer.tokens_in = count_at(usage, "prompt_tokens");
    answer.tokens_out = count_at(usage, "completion_tokens");
    answer.cost = (static_cast<double>(answer.tokens_in) * endpoint_.price_in +
                   static_cast<double>(answer.tokens_out) * endpoint_.price_out) /
                  1e6;
    return answer;
  }

  Refusal unreached(const Exchange& exchange) const {
    if (exchange.too_long) return {too_long()};
    const bool again = may_pass(exchange.code);
    if (exchange.code == CURLE_OPERATION_TIMEDOUT)
      return {error(fmt::format("the endpoint did not answer within {:g} s", endpoint_.timeout_seconds),
                    exchange.trouble, "raise `timeout`, or try again later"),
              again};
    return {error("the endpoint cannot be asked", exchange.trouble,
                  "check `url`, your network, and whether the server runs"),
            again};
  }

  Refusal refused(const Exchange& exchange, long status, const Json& json) const {
    const Json& details = member(json, "error");
    const bool spent = text_at(details, "code") == "insufficient_quota";  // also a 429, which never passes
    std::string hint = hint_for(status);
    if (!exchange.redirect.empty())
      hint = "it has moved; if you trust that place, change `url`: " +
             quotable(exchange.redirect.substr(0, exchange.redirect.find('?')));
    Refusal refusal{error(exchange.status / 100 == 2
                              ? "the endpoint answered with an error"
                              : fmt::format("the endpoint answered {}", exchange.status),
                          said(exchange.body, json), hint)};
    refusal.again = may_pass(status) && !spent;
    refusal.wait = exchange.retry_after;
    refusal.over_max_tokens =
        status == 400 && endpoint_.max_tokens > 0 && exchange.body.find("max_tokens") != std::string::npos;
    if (!may_pass(status) || spent) refusal.error.code = ExitCode::kUsage;
    return refusal;
  }

  Error too_long() const {
    return error("the endpoint's answer is too long",
                 fmt::format("a reply may have {}", format_bytes(static_cast<double>(kMaxReplyBytes))),
                 "set `max_tokens`");
  }

  Error error(const std::string& what, const std::string& details, std::string hint) const {
    return {details.empty() ? what : what + ": " + quotable(details), masked(address_.shown), std::move(hint),
            ExitCode::kEnvironment};
  }

  // What the body of an error says. Servers agree on no form.
  static std::string said(const std::string& body, const Json& json) {
    for (const Json* at : {&member(json, "error"), &json})
      for (const char* key : {"message", "error", "detail"})
        if (const std::string text = text_at(*at, key); !text.empty()) return text;
    return body.find("<html") != std::string::npos || body.find("<!DOCTYPE") != std::string::npos
               ? "an HTML page"
               : body;
  }

  // One line of a stranger's text for an error, without the key.
  std::string quotable(const std::string& text) const {
    std::string line = masked(text);
    if (line.size() > kMaxQuoted) {
      std::size_t end = kMaxQuoted;
      while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80) --end;
      line = line.substr(0, end) + " …";
    }
    return std::string(trim(replace_all(printable(to_utf8(line)), "\n", " ")));
  }

  std::string masked(const std::string& text) const {
    return endpoint_.key.empty() ? text : replace_all(text, endpoint_.key, "***");
  }

  // Doubled after each failure. Threads that failed together do not ask again together.
  Clock::duration pause(int failures, double at_least) const {
    thread_local std::mt19937 generator{std::random_device{}()};
    const double spread = std::uniform_real_distribution<double>(0, 1)(generator);
    const double doubled = endpoint_.first_pause_seconds * std::exp2(failures - 1) * (0.75 + 0.5 * spread);
    return to_duration(std::min(std::max(doubled, at_least * (1 + 0.1 * spread)), kLongestPause));
  }

  const Curl& curl_;
  const Endpoint endpoint_;
  const Address address_;
  Limiter limiter_;
  std::atomic<bool> newer_name_{false};
};

}  // namespace

Result<std::unique_ptr<Provider>> http_provider(const Endpoint& endpoint) {
  if (!loaded_curl()) return fail(loaded_curl().error());
  CAPSTONE_TRY(Address address, read_address(*loaded_curl(), endpoint.url));
  for (const char c : endpoint.key)
    if (c <= ' ' || c > '~')
      return fail("the endpoint's key holds a character that no key has", address.shown,
                  "look for blanks and line breaks in what `key_env` or `key_file` names");
  return std::make_unique<HttpProvider>(*loaded_curl(), endpoint, std::move(address));
}

}  // namespace capstone::machine
