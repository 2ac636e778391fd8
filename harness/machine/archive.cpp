#include "harness/machine/archive.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/spelling.h"
#include "harness/base/text.h"
#include "harness/model/fields.h"

namespace capstone::machine {
namespace {

constexpr int kSchema = 1;
constexpr DatabaseKind kArchive{
    "the machine's archive",
    "it is damaged or not an archive of `capstone machine`: move .capstone/machine "
    "away and begin again, or restore it from a copy",
    "it is made by `capstone machine sample`"};

constexpr const char* kTables = R"(
CREATE TABLE run (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, body TEXT NOT NULL,
                  minutes REAL NOT NULL DEFAULT 0, ended TEXT NOT NULL DEFAULT '');
CREATE TABLE node (run INTEGER NOT NULL REFERENCES run(id), position INTEGER NOT NULL, name TEXT NOT NULL,
                   body TEXT NOT NULL, PRIMARY KEY (run, name), UNIQUE (run, position));
PRAGMA user_version = 1;
)";

Result<void> bring_up_to_date(const Database& database, const fs::path& file) {
  CAPSTONE_TRY(Transaction transaction, Transaction::begin(database));
  CAPSTONE_TRY(Statement version, database.prepare("PRAGMA user_version"));
  CAPSTONE_TRY(const bool row, version.step());
  const std::int64_t schema = row ? version.integer(0) : 0;
  if (schema > kSchema)
    return fail("the machine's archive was made by a newer capstone", file.string(),
                "use that version here, too", ExitCode::kEnvironment);
  if (schema == kSchema) return {};
  CAPSTONE_CHECK(database.run(kTables));
  return transaction.commit();
}

Json json_of(const RunInfo& info) {
  return Json{{"kind", info.kind},
              {"settings", info.settings},
              {"problem", info.problem},
              {"problem_digest", info.problem_digest},
              {"prompt_sha256", info.prompt_sha256},
              {"with_statement", info.with_statement},
              {"provider", info.provider},
              {"started", info.started}};
}

Result<RunInfo> run_from(const Statement& row) {
  RunInfo info;
  info.id = row.integer(0);
  info.name = row.text(1);
  info.minutes = row.number(3);
  info.ended = row.text(4);
  const Json body = Json::parse(row.text(2), nullptr, false);
  try {
    read(body, "kind", info.kind);
    if (const Json* settings = field(body, "settings")) info.settings = *settings;
    read(body, "problem", info.problem);
    read(body, "problem_digest", info.problem_digest);
    read(body, "prompt_sha256", info.prompt_sha256);
    read(body, "with_statement", info.with_statement);
    read(body, "provider", info.provider);
    read(body, "started", info.started);
  } catch (const WrongType& wrong) {
    return fail(fmt::format("run {} of the machine's archive: {}", info.name, wrong.what()), {},
                kArchive.if_damaged);
  }
  return info;
}

Result<Node> node_from(const std::string& text) {
  const Json body = Json::parse(text, nullptr, false);
  try {
    if (body.is_object()) return body.get<Node>();
  } catch (const WrongType& wrong) {
    return fail(fmt::format("a node of the machine's archive: {}", wrong.what()), {}, kArchive.if_damaged);
  }
  return fail("a node of the machine's archive is no object", {}, kArchive.if_damaged);
}

constexpr const char* kSelectRuns = "SELECT id, name, body, minutes, ended FROM run ORDER BY id";

}  // namespace

std::string exhausted(const Budget& budget, const Spent& spent) {
  if (budget.tries > 0 && spent.tries >= budget.tries) return fmt::format("{} tries", budget.tries);
  if (budget.tokens > 0 && spent.tokens >= budget.tokens) return fmt::format("{} tokens", budget.tokens);
  if (budget.money > 0 && spent.money >= budget.money) return fmt::format("{:g} of money", budget.money);
  if (budget.minutes > 0 && spent.minutes >= budget.minutes)
    return fmt::format("{:g} minutes", budget.minutes);
  return {};
}

Spent spent_by(const Tree& tree, const RunInfo& run) {
  Spent spent;
  for (const Node& node : tree) {
    if (node.state == NodeState::kPlanned) continue;
    ++spent.tries;
    spent.tokens += node.tokens_in + node.tokens_out;
    spent.money += node.cost;
  }
  spent.minutes = run.minutes;
  return spent;
}

Result<Archive> Archive::open(const fs::path& folder) {
  CAPSTONE_CHECK(make_folders(folder / "texts"));
  const fs::path file = folder / "archive.sqlite";
  CAPSTONE_TRY(Database database, Database::open(file, kArchive));
  CAPSTONE_CHECK(bring_up_to_date(database, file));
  return Archive(folder, std::make_shared<Database>(std::move(database)));
}

Result<std::vector<RunInfo>> Archive::runs() const {
  std::vector<RunInfo> all;
  CAPSTONE_TRY(Statement rows, database_->prepare(kSelectRuns));
  for (;;) {
    CAPSTONE_TRY(const bool more, rows.step());
    if (!more) return all;
    CAPSTONE_TRY(RunInfo info, run_from(rows));
    all.push_back(std::move(info));
  }
}

Result<RunInfo> Archive::run(const std::string& name) const {
  CAPSTONE_TRY(const std::vector<RunInfo> all, runs());
  std::vector<std::string> names;
  for (const RunInfo& info : all) {
    if (info.name == name) return info;
    names.push_back(info.name);
  }
  if (names.empty())
    return fail("the machine has no runs here", folder_.string(),
                "begin with: capstone machine sample -k 10");
  const std::optional<std::string> near = nearest(name, names);
  return fail(fmt::format("no run is called `{}`", printable(name)), {},
              "the runs are " + join(names, ", ") + (near ? fmt::format("; did you mean `{}`?", *near) : ""));
}

Result<RunInfo> Archive::begin(RunInfo info) const {
  CAPSTONE_TRY(Transaction transaction, Transaction::begin(*database_));
  CAPSTONE_TRY(const std::vector<RunInfo> all, runs());
  const auto taken = [&all](const std::string& name) {
    return std::any_of(all.begin(), all.end(), [&](const RunInfo& other) { return other.name == name; });
  };
  if (info.name.empty())
    for (int number = 1; info.name.empty(); ++number)
      if (std::string name = fmt::format("{}-{}", info.kind, number); !taken(name)) info.name = name;
  if (taken(info.name)) return fail(fmt::format("there is a run `{}` already", printable(info.name)));
  CAPSTONE_TRY(Statement insert, database_->prepare("INSERT INTO run (name, body) VALUES (?, ?)"));
  CAPSTONE_CHECK(insert.bind(info.name).bind(json_of(info).dump()).run());
  CAPSTONE_TRY(Statement id, database_->prepare("SELECT id FROM run WHERE name=?"));
  CAPSTONE_TRY(const bool row, id.bind(info.name).step());
  info.id = row ? id.integer(0) : 0;
  CAPSTONE_CHECK(transaction.commit());
  return info;
}

Result<void> Archive::set_settings(const RunInfo& info, const Json& settings) const {
  RunInfo changed = info;
  changed.settings = settings;
  CAPSTONE_TRY(Statement update, database_->prepare("UPDATE run SET body=? WHERE id=?"));
  return update.bind(json_of(changed).dump()).bind(info.id).run();
}

Result<void> Archive::set_ended(const RunInfo& info, const std::string& why) const {
  CAPSTONE_TRY(Statement update, database_->prepare("UPDATE run SET ended=? WHERE id=?"));
  return update.bind(why).bind(info.id).run();
}

Result<void> Archive::add_minutes(const RunInfo& info, double minutes) const {
  CAPSTONE_TRY(Statement update, database_->prepare("UPDATE run SET minutes=minutes+? WHERE id=?"));
  return update.bind(minutes).bind(info.id).run();
}

Result<Tree> Archive::tree(const RunInfo& run) const {
  Tree tree;
  CAPSTONE_TRY(Statement rows, database_->prepare("SELECT body FROM node WHERE run=? ORDER BY position"));
  rows.bind(run.id);
  for (;;) {
    CAPSTONE_TRY(const bool more, rows.step());
    if (!more) return tree;
    CAPSTONE_TRY(Node node, node_from(rows.text(0)));
    tree.push_back(std::move(node));
  }
}

Result<void> Archive::plan(const RunInfo& run, const std::vector<Node>& nodes) const {
  CAPSTONE_TRY(Transaction transaction, Transaction::begin(*database_));
  for (const Node& node : nodes) {
    CAPSTONE_TRY(Statement insert,
                 database_->prepare("INSERT INTO node (run, position, name, body) VALUES (?, "
                                    "(SELECT COALESCE(MAX(position), 0) + 1 FROM node WHERE run=?), ?, ?)"));
    CAPSTONE_CHECK(insert.bind(run.id).bind(run.id).bind(node.name).bind(Json(node).dump()).run());
  }
  return transaction.commit();
}

Result<void> Archive::save(const RunInfo& run, const Node& node) const {
  CAPSTONE_TRY(Statement update, database_->prepare("UPDATE node SET body=? WHERE run=? AND name=?"));
  return update.bind(Json(node).dump()).bind(run.id).bind(node.name).run();
}

Result<std::string> Archive::keep(const std::string& text) const {
  const std::string digest = sha256_hex(text);
  const fs::path path = folder_ / "texts" / digest;
  std::error_code code;
  if (!fs::exists(path, code)) CAPSTONE_CHECK(write_file_atomic(path, text));
  return digest;
}

Result<std::string> Archive::text(const std::string& sha256) const {
  const fs::path path = folder_ / "texts" / sha256;
  CAPSTONE_TRY(std::string text, read_file(path, std::size_t{64} << 20));
  if (sha256_hex(text) != sha256)
    return fail("a text of the machine's archive was changed", path.string(), "restore it from a copy");
  return text;
}

Result<fs::path> Archive::kernel_file(const std::string& sha256, bool python) const {
  const fs::path path = folder_ / "kernels" / sha256 / (python ? "kernel.py" : "kernel.cu");
  CAPSTONE_TRY(const std::string code, text(sha256));
  CAPSTONE_CHECK(make_folders(path.parent_path()));
  CAPSTONE_CHECK(write_file_atomic(path, code));
  return path;
}

}  // namespace capstone::machine
