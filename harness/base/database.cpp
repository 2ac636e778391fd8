#include "harness/base/database.h"

#include <fmt/format.h>

#include <string>

namespace capstone {
namespace {

constexpr int kPatienceMs = 10'000;

tl::unexpected<Error> complain(sqlite3* handle, const DatabaseKind& kind) {
  const char* file = sqlite3_db_filename(handle, "main");
  const bool not_ours = sqlite3_errcode(handle) == SQLITE_NOTADB || sqlite3_errcode(handle) == SQLITE_CORRUPT;
  return fail(fmt::format("{}: {}", kind.name, sqlite3_errmsg(handle)), file ? file : "",
              not_ours ? kind.if_damaged : "check whether the disk is full or another command uses it",
              not_ours ? ExitCode::kUsage : ExitCode::kEnvironment);
}

}  // namespace

Statement& Statement::bind(std::string_view text) {
  sqlite3_bind_text(statement_.get(), ++bound_, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
  return *this;
}

Statement& Statement::bind_optional(const std::optional<std::string>& text) {
  if (text) return bind(std::string_view(*text));
  sqlite3_bind_null(statement_.get(), ++bound_);
  return *this;
}

Statement& Statement::bind(double value) {
  sqlite3_bind_double(statement_.get(), ++bound_, value);
  return *this;
}

Statement& Statement::bind(std::int64_t value) {
  sqlite3_bind_int64(statement_.get(), ++bound_, value);
  return *this;
}

Result<bool> Statement::step() {
  int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return complain(handle_, *kind_);
}

Result<void> Statement::run() {
  CAPSTONE_TRY(bool row, step());
  (void)row;
  return {};
}

std::string Statement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  return bytes ? std::string(bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column)))
               : std::string();
}

double Statement::number(int column) const { return sqlite3_column_double(statement_.get(), column); }
std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

Result<Database> Database::open(const std::filesystem::path& file, const DatabaseKind& kind) {
  sqlite3* handle = nullptr;
  const int code =
      sqlite3_open_v2(file.c_str(), &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  Database database(handle, &kind);
  if (code != SQLITE_OK)
    return fail(fmt::format("cannot open {}: {}", kind.name, sqlite3_errstr(code)), file.string(), {},
                ExitCode::kEnvironment);
  sqlite3_busy_timeout(handle, kPatienceMs);
  // Guarantees that what was committed is on the disk before it is acknowledged.
  CAPSTONE_CHECK(database.run("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;"));
  return database;
}

Result<Database> Database::open_existing(const std::filesystem::path& file, const DatabaseKind& kind) {
  std::error_code code;
  if (!std::filesystem::exists(file, code))
    return fail(fmt::format("{} does not exist", kind.name), file.string(), kind.if_missing);
  return open(file, kind);
}

Result<void> Database::copy_to(const Database& target) const {
  constexpr int kAllPages = -1, kPauseMs = 10;
  sqlite3_backup* backup = sqlite3_backup_init(target.handle_.get(), "main", handle_.get(), "main");
  if (!backup) return complain(target.handle_.get(), *kind_);
  // In one step, which takes milliseconds: with pauses between steps, a class that marks would make SQLite
  // begin again and again.
  int code = sqlite3_backup_step(backup, kAllPages);
  for (int waited = 0; (code == SQLITE_BUSY || code == SQLITE_LOCKED) && waited < kPatienceMs;
       waited += kPauseMs) {
    sqlite3_sleep(kPauseMs);
    code = sqlite3_backup_step(backup, kAllPages);
  }
  const int end = sqlite3_backup_finish(backup);
  if (code == SQLITE_DONE && end == SQLITE_OK) return {};
  return complain(end == SQLITE_OK ? handle_.get() : target.handle_.get(), *kind_);
}

Result<Statement> Database::prepare(std::string_view sql) const {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(handle_.get(), sql.data(), static_cast<int>(sql.size()), &statement, nullptr) !=
      SQLITE_OK)
    return complain(handle_.get(), *kind_);
  return Statement(handle_.get(), statement, kind_);
}

Result<void> Database::run(const char* sql) const {
  if (sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK)
    return complain(handle_.get(), *kind_);
  return {};
}

Result<Transaction> Transaction::begin(const Database& database) {
  CAPSTONE_CHECK(database.run("BEGIN IMMEDIATE"));
  return Transaction(&database);
}

Result<void> Transaction::commit() {
  CAPSTONE_CHECK(database_->run("COMMIT"));
  database_ = nullptr;
  return {};
}

Transaction::~Transaction() {
  if (database_) (void)database_->run("ROLLBACK");
}

}  // namespace capstone
