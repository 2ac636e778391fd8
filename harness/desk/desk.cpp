#include "harness/desk/desk.h"

#include <chrono>

#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"
#include "harness/desk/app.h"
#include "harness/workflows/http_settings.h"

namespace capstone::desk {
namespace {

constexpr std::size_t kMaxBody = 1u << 20;  // [B]; a form of a sheet has a few kilobytes
constexpr int kPatience = 10;               // [s] between two bytes of a client
constexpr std::chrono::seconds kLimit{60};  // for a whole request, and for a whole answer

void refuse(httplib::Response& response, int status, const std::string& text) {
  response.status = status;
  response.set_content(text + "\n", "text/plain; charset=utf-8");
}

int status_of(const Error& error) { return error.code == ExitCode::kUsage ? 400 : 500; }

}  // namespace

std::string field(const httplib::Request& request, const std::string& name) {
  return request.has_file(name) ? replace_all(request.get_file_value(name).content, "\r\n", "\n")
                                : std::string();
}

void redirect(httplib::Response& response, const std::string& to) { response.set_redirect(to, 303); }

std::string session_of(const httplib::Request& request) {
  return session_in(request.get_header_value("Cookie"));
}

Desk::App::App(const workflows::Workspace& workspace, workflows::OpenCohort cohort, DeskOptions options)
    : workspace_(workspace),
      options_(std::move(options)),
      templates_(workspace.resources.templates() / "html"),
      server_(kLimit),
      cohort_(std::move(cohort)),
      marking_(cohort_.book),
      students_(cohort_.book) {
  options_.names.insert(options_.names.end(), {options_.host, "localhost", "127.0.0.1", "[::1]"});
  workflows::apply_common_settings(server_);
  server_.set_payload_max_length(kMaxBody);
  server_.set_read_timeout(kPatience);
  server_.set_write_timeout(kPatience);
  server_.set_tcp_nodelay(true);
  server_.set_default_headers({{"X-Content-Type-Options", "nosniff"},
                               {"X-Frame-Options", "SAMEORIGIN"},
                               {"Referrer-Policy", "same-origin"},
                               {"Cache-Control", "no-store"}});
  server_.set_pre_routing_handler([this](const Request& request, Response& response) {
    return refused(request, response) ? httplib::Server::HandlerResponse::Handled
                                      : httplib::Server::HandlerResponse::Unhandled;
  });
  if (options_.students)
    add_student_routes();
  else
    add_routes();
}

Desk::App::~App() { server_.stop(); }

bool Desk::App::refused(const Request& request, Response& response) const {
  const std::string host = request.get_header_value("Host");
  if (!is_our_host(host, options_.names, options_.port)) {
    refuse(response, 421, "This server is not called " + host + ". Start it with --name HOST.");
    return true;
  }
  if (request.method != "GET" && request.method != "HEAD") {
    if (!is_same_origin(request.get_header_value("Origin"), host)) {
      refuse(response, 403, "The form comes from another site.");
      return true;
    }
    if (request.has_header("Content-Encoding")) {
      refuse(response, 415, "Compressed forms are not read.");
      return true;
    }
  }
  return false;
}

void Desk::App::serve_file(const char* path, const char* file, const char* type) {
  server_.Get(path, [this, file, type](const Request&, Response& response) {
    auto text = read_file(workspace_.resources.templates() / "html" / file, std::size_t{1} << 20);
    if (!text) return refuse(response, 500, text.error().what);
    response.set_content(*text, type);
  });
}

void Desk::App::route(const char* method, const char* pattern, Handler handler) {
  auto run = [this, handler](const Request& request, Response& response) {
    answer(request, response, handler);
  };
  if (std::string_view(method) == "GET")
    server_.Get(pattern, run);
  else
    server_.Post(pattern, run);
}

void Desk::App::answer(const Request& request, Response& response, Handler handler) {
  auto viewer = viewer_of(request);
  if (!viewer) return refuse(response, status_of(viewer.error()), viewer.error().what);
  if (!*viewer) {
    if (request.method == "GET") return redirect(response, "/login");
    return refuse(response, 401, "You are not logged in. Log in in another tab, then send this form again.");
  }
  if (request.method == "POST" && !same_secret(field(request, "token"), (*viewer)->form_token))
    return refuse(response, 403, "The form is not of this session. Reload the page.");
  if (auto done = (this->*handler)(request, response, **viewer); !done) {
    const Error& error = done.error();
    if (response.status < 400) response.status = status_of(error);  // unless the handler has chosen one
    const std::string text = error.what + (error.where.empty() ? "" : " (" + error.where + ")");
    auto shown = page(templates_, "Error", &**viewer, {{text, true}, {error.hint, true}}, "<main></main>");
    response.set_content(shown ? *shown : text,
                         shown ? "text/html; charset=utf-8" : "text/plain; charset=utf-8");
    response.set_header("Content-Security-Policy", kPagePolicy);
  }
}

void Desk::App::add_routes() {
  serve_file("/page.css", "page.css", "text/css");
  serve_file("/desk.css", "desk.css", "text/css");
  serve_file("/desk.js", "desk.js", "text/javascript");
  server_.Get("/login", [this](const Request&, Response& response) {
    auto body = login_body(templates_);
    auto shown = body ? page(templates_, "Log in", nullptr, {}, *body) : body;
    if (!shown) return refuse(response, 500, shown.error().what);
    response.set_content(*shown, "text/html; charset=utf-8");
    response.set_header("Content-Security-Policy", kPagePolicy);
  });
  server_.Post("/login", [this](const Request& request, Response& response) {
    if (auto done = log_in(request, response); !done) refuse(response, 403, done.error().what);
  });
  route("POST", "/logout", &App::log_out);
  route("GET", "/", &App::list);
  route("POST", "/next", &App::next);
  route("GET", "/items", &App::items);
  route("POST", "/items", &App::keep_item);
  route("GET", "/progress", &App::progress);
  route("GET", "/publish", &App::publishing);
  route("GET", "/publish/([0-9a-f]{6})", &App::preview);
  route("POST", "/publish", &App::publish);
#define CAPSTONE_SHEET "/sheet/([0-9a-f]{6})"
  route("GET", CAPSTONE_SHEET, &App::sheet);
  route("GET", CAPSTONE_SHEET "/worklog", &App::worklog);
  route("GET", CAPSTONE_SHEET "/source", &App::source);
  route("GET", CAPSTONE_SHEET "/versions", &App::versions);
  route("GET", CAPSTONE_SHEET "/model", &App::model);
  route("GET", CAPSTONE_SHEET "/machine", &App::machine);
  route("POST", CAPSTONE_SHEET "/draft", &App::keep_draft);
  route("POST", CAPSTONE_SHEET "/save", &App::save);
  route("POST", CAPSTONE_SHEET "/undo", &App::undo);
  route("POST", CAPSTONE_SHEET "/take", &App::take);
  route("POST", CAPSTONE_SHEET "/close", &App::close);
  route("POST", CAPSTONE_SHEET "/beat", &App::beat);
  route("POST", CAPSTONE_SHEET "/comment", &App::comment);
#undef CAPSTONE_SHEET
  route("GET", "/second", &App::seconds);
  route("POST", "/second/next", &App::next_second);
#define CAPSTONE_SECOND "/second/(copy-[0-9a-f]{10})"
  route("GET", CAPSTONE_SECOND, &App::second_sheet);
  route("GET", CAPSTONE_SECOND "/worklog", &App::worklog);
  route("GET", CAPSTONE_SECOND "/source", &App::source);
  route("GET", CAPSTONE_SECOND "/versions", &App::versions);
  route("GET", CAPSTONE_SECOND "/model", &App::model);
  route("GET", CAPSTONE_SECOND "/machine", &App::machine);
  route("POST", CAPSTONE_SECOND "/draft", &App::draft_second);
  route("POST", CAPSTONE_SECOND "/save", &App::save_second);
  route("POST", CAPSTONE_SECOND "/undo", &App::undo_second);
  route("POST", CAPSTONE_SECOND "/close", &App::close_second);
  route("POST", CAPSTONE_SECOND "/beat", &App::beat_second);
#undef CAPSTONE_SECOND
}

Result<void> Desk::App::bind() {
  {
    const Lock lock(mutex_);
    CAPSTONE_TRY(codes_, marking_.codes());
  }
  if (options_.port == 0)
    options_.port = server_.bind_to_any_port(options_.host);
  else if (!server_.bind_to_port(options_.host, options_.port))
    options_.port = -1;
  if (options_.port < 0)
    return fail("cannot listen on " + options_.host, {},
                "another program uses the port, or the address is not of this machine: choose others with "
                "--port and --bind",
                ExitCode::kEnvironment);
  return {};
}

Result<void> Desk::App::run() {
  std::jthread preparing;
  if (options_.prepare && !options_.students)
    preparing = std::jthread([this](const std::stop_token& stop) { prepare_worklogs(stop); });
  // Until the server has ended: a stop before it listens has no effect.
  const std::jthread watching([this](const std::stop_token& stop) {
    for (; !stop.stop_requested(); std::this_thread::sleep_for(std::chrono::milliseconds(100)))
      if (interrupted()) server_.stop();
  });
  if (!server_.listen_after_bind() && !interrupted())
    return fail("the server has ended", options_.host, "run the command again", ExitCode::kEnvironment);
  return {};
}

// Drawing a worklog's figures takes up to seconds; the first grader who opens it should not wait.
void Desk::App::prepare_worklogs(const std::stop_token& stop) {
  std::map<std::string, std::string> codes;
  {
    const Lock lock(mutex_);
    codes = codes_;
  }
  for (const auto& [code, name] : codes) {
    if (stop.stop_requested() || interrupted()) return;
    auto looked = [&, &code = code, &name = name] {
      const Lock lock(mutex_);
      return look_at(name, code);
    }();
    if (looked && !looked->project.empty()) (void)worklog_html(*looked);  // shown again where it is opened
  }
}

Desk::Desk(std::unique_ptr<App> app) : app_(std::move(app)) {}
Desk::Desk(Desk&&) noexcept = default;
Desk::~Desk() = default;
int Desk::port() const { return app_->port(); }
Result<void> Desk::run() { return app_->run(); }
void Desk::stop() { app_->stop(); }

Result<Desk> Desk::open(const workflows::Workspace& workspace, const std::string& cohort,
                        DeskOptions options) {
  CAPSTONE_TRY(auto opened, workflows::open_cohort(workspace, cohort));
  CAPSTONE_TRY(const auto graders, Marking(opened.book).graders());
  CAPSTONE_TRY(const bool any_student, StudentAccess(opened.book).any_token());
  if (options.students && !any_student)
    return fail("no student can log in yet", opened.folder.string(),
                "capstone gradebook tokens --out students.csv --cohort " + cohort);
  if (!options.students && graders.empty())
    return fail("no grader can log in yet", opened.folder.string(),
                "capstone grader add NAME --owner --cohort " + cohort);
  auto app = std::make_unique<App>(workspace, std::move(opened), std::move(options));
  CAPSTONE_CHECK(app->bind());
  return Desk(std::move(app));
}

}  // namespace capstone::desk
