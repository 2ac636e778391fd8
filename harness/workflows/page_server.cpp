#include "harness/workflows/page_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "harness/base/random_id.h"
#include "harness/workflows/http_settings.h"

namespace capstone::workflows {
namespace {

constexpr int kPortsTried = 20;
constexpr std::chrono::seconds kLookAtPeer{1};

const char* type_of(const std::string& name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (name.ends_with(".json")) return "application/json";
  return "text/plain; charset=utf-8";
}

// The port is left out: behind a forwarded one, it is another.
bool is_this_machine(const std::string& host) {
  const std::string name = host.substr(0, host.rfind(':'));
  return name == "127.0.0.1" || name == "localhost";
}

void refuse(httplib::Response& response, int status, const char* text) {
  response.status = status;
  response.set_content(text, "text/plain; charset=utf-8");
}

}  // namespace

struct PageServer::State {
  httplib::Server server;
  std::string word;
  int port = 0;
  std::thread thread;
  std::mutex mutex;
  std::condition_variable changed;
  ServedPages pages;    // under the mutex
  bool ending = false;  // under the mutex

  ~State() {
    {
      const std::lock_guard lock(mutex);
      ending = true;
    }
    changed.notify_all();
    if (!thread.joinable()) return;
    // stop() does nothing before the loop of the thread has begun.
    while (!server.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    server.stop();
    thread.join();
  }

  void answer(const std::string& path, httplib::Response& response) {
    const std::lock_guard lock(mutex);
    const auto file = pages.files.find(path.empty() ? pages.front : path);
    if (file == pages.files.end()) return refuse(response, 404, "There is no such page here.\n");
    response.set_content(file->second, type_of(file->first));
  }

  // Sends the version once it is another than `told`. False: the page is gone, or the server ends.
  bool announce(std::string& told, httplib::DataSink& sink) {
    std::unique_lock lock(mutex);
    const auto news = [&] { return ending || pages.version != told; };
    while (!changed.wait_for(lock, kLookAtPeer, news)) {
      lock.unlock();
      if (!sink.is_writable()) return false;
      lock.lock();
    }
    if (ending) return false;
    told = pages.version;
    lock.unlock();
    const std::string event = "retry: 500\ndata: " + told + "\n\n";
    return sink.write(event.data(), event.size());
  }

  void route() {
    server.set_pre_routing_handler([](const httplib::Request& request, httplib::Response& response) {
      if (is_this_machine(request.get_header_value("Host")))
        return httplib::Server::HandlerResponse::Unhandled;
      refuse(response, 403, "Only the names 127.0.0.1 and localhost are served.\n");
      return httplib::Server::HandlerResponse::Handled;
    });
    server.set_default_headers({{"Cache-Control", "no-store"},
                                {"X-Content-Type-Options", "nosniff"},
                                {"Cross-Origin-Resource-Policy", "same-origin"},
                                {"Referrer-Policy", "no-referrer"}});
    server.Get("/" + word + "/events", [this](const httplib::Request&, httplib::Response& response) {
      response.set_chunked_content_provider(
          "text/event-stream", [this, told = std::string()](std::size_t, httplib::DataSink& sink) mutable {
            return announce(told, sink);
          });
    });
    server.Get("/" + word + "/([A-Za-z0-9._-]*)",
               [this](const httplib::Request& request, httplib::Response& response) {
                 answer(request.matches[1], response);
               });
  }

  Result<void> listen(int wanted) {
    apply_common_settings(server);
    for (int next = wanted; wanted > 0 && next <= std::min(wanted + kPortsTried, 65535) && port == 0; ++next)
      if (server.bind_to_port("127.0.0.1", next)) port = next;
    if (port == 0) port = std::max(0, server.bind_to_any_port("127.0.0.1"));
    if (port == 0)
      return fail("no port of 127.0.0.1 can be listened on", {},
                  "the report's files need no server: capstone open", ExitCode::kEnvironment);
    thread = std::thread([this] { server.listen_after_bind(); });
    return {};
  }
};

PageServer::PageServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
PageServer::PageServer(PageServer&&) noexcept = default;
PageServer::~PageServer() = default;

Result<PageServer> PageServer::start(int port, ServedPages pages) {
  auto state = std::make_unique<State>();
  CAPSTONE_TRY(state->word, random_id(16));
  state->pages = std::move(pages);
  state->route();
  CAPSTONE_CHECK(state->listen(port));
  return PageServer(std::move(state));
}

int PageServer::port() const { return state_->port; }

std::string PageServer::url() const {
  return fmt::format("http://127.0.0.1:{}/{}/", state_->port, state_->word);
}

void PageServer::show(ServedPages pages) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->pages = std::move(pages);
  }
  state_->changed.notify_all();
}

}  // namespace capstone::workflows
