// An endpoint with OpenAI's chat interface.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <mutex>
#include <random>
#include <thread>

#include "harness/base/ascii.h"
#include "harness/base/json.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"
#include "harness/machine/curl.h"
#include "harness/machine/provider.h"
#include "harness/project/reply/api_reply.h"
#include "harness/project/reply/extract.h"

namespace capstone::machine {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr std::size_t kMostBody = 4 * kMaxReplyBytes;  // [B] a reply as JSON, with its thoughts
constexpr double kLongestPause = 300;                  // [s] between two requests for one question

tl::unexpected<Error> stopped() { return fail("stopped", {}, {}, ExitCode::kInterrupted); }

// One response, or why there is none.
struct Response {
  long status = 0;  ///< 0: none came
  std::string body;
  std::string retry_after;
  std::string trouble;  ///< the transfer's, in words
  bool final = false;   ///< sending the request again would not help
};

struct Transfer {
  Response response;
  const std::stop_token* stop;
};

std::size_t on_body(char* bytes, std::size_t, std::size_t count, void* user) {
  Transfer& transfer = *static_cast<Transfer*>(user);
  if (transfer.response.body.size() + count > kMostBody) {
    transfer.response.trouble = fmt::format("it sends more than {}", format_bytes(kMostBody));
    transfer.response.final = true;
    return 0;
  }
  transfer.response.body.append(bytes, count);
  return count;
}

std::size_t on_header(char* bytes, std::size_t, std::size_t count, void* user) {
  const std::string line(bytes, count);
  constexpr std::string_view kRetry = "retry-after:";
  if (ascii_lower(line).starts_with(kRetry))
    static_cast<Transfer*>(user)->response.retry_after = std::string(trim(line.substr(kRetry.size())));
  return count;
}

int on_progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Transfer*>(user)->stop->stop_requested() || interrupted();
}

// Seconds to wait for, from a number or an HTTP date; nothing where it is neither.
std::optional<double> seconds_of(const std::string& retry_after) {
  if (retry_after.empty()) return std::nullopt;
  if (retry_after.find_first_not_of("0123456789.") == std::string::npos)
    return std::atof(retry_after.c_str());
  std::tm date{};
  if (!::strptime(retry_after.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &date)) return std::nullopt;
  return std::max(0.0, std::difftime(::timegm(&date), std::time(nullptr)));
}

// At most so many requests a minute, evenly spread, over all threads.
class RateLimit {
 public:
  explicit RateLimit(double per_minute) : step_(per_minute > 0 ? Seconds(60 / per_minute) : Seconds(0)) {}
  Clock::time_point next() {
    const std::lock_guard lock(mutex_);
    const Clock::time_point at = std::max(Clock::now(), next_);
    next_ = at + std::chrono::duration_cast<Clock::duration>(step_);
    return at;
  }

 private:
  Seconds step_;
  std::mutex mutex_;
  Clock::time_point next_{};
};

class HttpProvider : public Provider {
 public:
  explicit HttpProvider(const Endpoint& endpoint)
      : endpoint_(endpoint), limit_(endpoint.requests_per_minute) {}

  std::string description() const override { return endpoint_.model + " at " + place(); }

  Result<Answer> ask(const Question& question, const std::stop_token& stop) override {
    CAPSTONE_TRY(const Curl* library, curl());
    const auto begun = Clock::now();
    double pause = endpoint_.first_pause_seconds;
    for (int request = 1;; ++request) {
      if (!wait_until(limit_.next(), stop)) return stopped();
      const Response response = post(*library, body_of(question), stop);
      if (stop.stop_requested() || interrupted()) return stopped();
      std::string trouble = response.trouble;
      if (trouble.empty() && response.status == 200) {
        Result<Answer> answer = answer_in(response.body, trouble);
        if (answer) {
          answer->seconds = Seconds(Clock::now() - begun).count();
          answer->requests = request;
        }
        if (trouble.empty()) return answer;
      } else if (trouble.empty()) {
        if (wants_other_name_of_limit(response)) continue;
        trouble = fmt::format("it answers {}{}", response.status, said_in(response.body));
      }
      const bool again =
          !response.final && (response.status == 0 || response.status == 200 || response.status == 408 ||
                              response.status == 429 || response.status >= 500);
      if (!again || request >= endpoint_.most_requests)
        return complain(question, trouble, response.status, request);
      const double asked_for = seconds_of(response.retry_after).value_or(0);
      if (!wait_until(
              Clock::now() + to_clock(std::clamp(std::max(asked_for, pause * jitter()), 0.0, kLongestPause)),
              stop))
        return stopped();
      pause *= 2;
    }
  }

 private:
  static Clock::duration to_clock(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(Seconds(seconds));
  }

  static bool wait_until(Clock::time_point then, const std::stop_token& stop) {
    constexpr auto kStep = std::chrono::milliseconds(50);
    while (Clock::now() < then) {
      if (stop.stop_requested() || interrupted()) return false;
      std::this_thread::sleep_for(std::min<Clock::duration>(kStep, then - Clock::now()));
    }
    return !stop.stop_requested() && !interrupted();
  }

  // Threads that were refused together do not come back together.
  static double jitter() {
    static thread_local std::mt19937 random{std::random_device{}()};
    return std::uniform_real_distribution<double>(0.8, 1.2)(random);
  }

  // The URL without user, password and query.
  std::string place() const {
    std::string url = endpoint_.url.substr(0, endpoint_.url.find_first_of("?#"));
    const std::size_t host = url.find("://") + 3, at = url.find('@', host);
    if (at != std::string::npos && at < url.find('/', host)) url.erase(host, at + 1 - host);
    return url;
  }

  std::string masked(std::string text) const {
    return endpoint_.key.empty() ? text : replace_all(text, endpoint_.key, "***");
  }

  std::string said_in(const std::string& body) const {
    constexpr std::size_t kShown = 400;
    const auto api = read_api_reply(body);
    const std::string said = api && !api->error.empty() ? api->error : std::string(trim(to_utf8(body)));
    return said.empty() ? "" : ": " + masked(printable(said.substr(0, kShown)));
  }

  std::string body_of(const Question& question) const {
    Json messages = Json::array();
    for (const Message& message : question.conversation)
      messages.push_back({{"role", message.role}, {"content", to_utf8(message.text)}});
    Json body{{"model", endpoint_.model}, {"messages", std::move(messages)}};
    if (endpoint_.temperature >= 0) body["temperature"] = endpoint_.temperature;
    if (endpoint_.max_tokens > 0)
      body[completion_tokens_ ? "max_completion_tokens" : "max_tokens"] = endpoint_.max_tokens;
    return body.dump();
  }

  // Newer models refuse `max_tokens` and name what they want instead.
  bool wants_other_name_of_limit(const Response& response) {
    if (response.status != 400 || endpoint_.max_tokens == 0 || completion_tokens_) return false;
    if (response.body.find("max_completion_tokens") == std::string::npos) return false;
    completion_tokens_ = true;
    return true;
  }

  Response post(const Curl& library, const std::string& body, const std::stop_token& stop) const {
    Transfer transfer{{}, &stop};
    CURL* handle = library.init();
    if (!handle) return {0, {}, {}, "libcurl cannot be used", true};
    curl_slist* headers = library.append(nullptr, "Content-Type: application/json");
    if (!endpoint_.key.empty())
      headers = library.append(headers, ("Authorization: Bearer " + endpoint_.key).c_str());
    const std::string url = url_of_chat();
    library.setopt(handle, CURLOPT_URL, url.c_str());
    library.setopt(handle, CURLOPT_HTTPHEADER, headers);
    library.setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    library.setopt(handle, CURLOPT_POSTFIELDS, body.c_str());
    library.setopt(handle, CURLOPT_WRITEFUNCTION, on_body);
    library.setopt(handle, CURLOPT_WRITEDATA, &transfer);
    library.setopt(handle, CURLOPT_HEADERFUNCTION, on_header);
    library.setopt(handle, CURLOPT_HEADERDATA, &transfer);
    library.setopt(handle, CURLOPT_XFERINFOFUNCTION, on_progress);
    library.setopt(handle, CURLOPT_XFERINFODATA, &transfer);
    library.setopt(handle, CURLOPT_NOPROGRESS, 0L);
    library.setopt(handle, CURLOPT_NOSIGNAL, 1L);
    library.setopt(handle, CURLOPT_FOLLOWLOCATION, 0L);  // another host must not get the key
    library.setopt(handle, CURLOPT_CONNECTTIMEOUT, 30L);
    library.setopt(handle, CURLOPT_TIMEOUT_MS, static_cast<long>(endpoint_.timeout_seconds * 1000));
    const CURLcode code = library.perform(handle);
    library.getinfo(handle, CURLINFO_RESPONSE_CODE, &transfer.response.status);
    library.free_all(headers);
    library.cleanup(handle);
    if (code == CURLE_OK) return transfer.response;
    Response& response = transfer.response;
    response.status = 0;  // what came is not whole
    response.final = response.final || code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL ||
                     code == CURLE_PEER_FAILED_VERIFICATION;
    if (response.trouble.empty())
      response.trouble = ascii_lower(std::string(library.strerror(code)).substr(0, 1)) +
                         std::string(library.strerror(code)).substr(1);
    return response;
  }

  std::string url_of_chat() const {
    std::string url = endpoint_.url;
    const std::size_t query = url.find('?');
    const std::string rest = query == std::string::npos ? "" : url.substr(query);
    url = url.substr(0, query);
    while (url.ends_with('/')) url.pop_back();
    return url + "/chat/completions" + rest;
  }

  // `trouble` is set where the same request may have a better answer.
  Result<Answer> answer_in(const std::string& body, std::string& trouble) const {
    const auto api = read_api_reply(body);
    const Json json = Json::parse(body, nullptr, false);
    if (!api || json.is_discarded()) {
      trouble = "its answer is not the JSON of a chat completion" + said_in(body);
      return fail(trouble);
    }
    if (!api->error.empty()) {
      trouble = "it answers with an error: " + masked(printable(api->error));
      return fail(trouble);
    }
    Answer answer;
    answer.text = api->text;
    const auto text_at = [](const Json& object, const char* key) {
      return object.is_object() && object.contains(key) && object[key].is_string()
                 ? object[key].get<std::string>()
                 : std::string();
    };
    const auto count_at = [](const Json& object, const char* key) -> std::int64_t {
      return object.is_object() && object.contains(key) && object[key].is_number_unsigned()
                 ? static_cast<std::int64_t>(
                       std::min<std::uint64_t>(object[key].get<std::uint64_t>(), 1u << 30))
                 : 0;
    };
    answer.model = printable(text_at(json, "model"));
    const Json usage = json.value("usage", Json::object());
    answer.tokens_in = count_at(usage, "prompt_tokens");
    answer.tokens_out = count_at(usage, "completion_tokens");
    constexpr double kMillion = 1e6;
    answer.cost = (static_cast<double>(answer.tokens_in) * endpoint_.price_in +
                   static_cast<double>(answer.tokens_out) * endpoint_.price_out) /
                  kMillion;
    return answer;
  }

  tl::unexpected<Error> complain(const Question& question, const std::string& trouble, long status,
                                 int requests) const {
    const std::string hint =
        status == 401 || status == 403 ? "is the key right, and may it use this model?"
        : status == 404 ? "is the URL right (it ends before /chat/completions), and the model's name?"
        : status == 400 ? "the endpoint does not take the request: see its words"
        : status == 429 ? "fewer at a time: --parallel 1, or requests_per_minute in the file of endpoints"
                        : "the same command goes on where it stopped";
    return fail(
        fmt::format("no answer to {} after {}: {}", question.name,
                    requests == 1 ? "one request" : fmt::format("{} requests", requests), masked(trouble)),
        place(), hint, ExitCode::kEnvironment);
  }

  Endpoint endpoint_;
  RateLimit limit_;
  std::atomic<bool> completion_tokens_ = false;
};

}  // namespace

Result<std::unique_ptr<Provider>> http_provider(const Endpoint& endpoint) {
  const std::string lower = ascii_lower(endpoint.url);
  if (!lower.starts_with("http://") && !lower.starts_with("https://"))
    return fail("the endpoint's URL must begin with https:// or http://", printable(endpoint.url),
                "for example http://localhost:8080/v1");
  return std::make_unique<HttpProvider>(endpoint);
}

}  // namespace capstone::machine
