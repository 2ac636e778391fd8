#pragma once
// A thin wrapper around SQLite: errors become Results, and handles are released automatically.
#include <sqlite3.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "harness/base/error.h"

namespace capstone {

/// What a database holds, for its errors. Must outlive the database.
struct DatabaseKind {
  const char* name;        ///< "the gradebook"
  const char* if_damaged;  ///< what to do where the file is damaged or no such database
  const char* if_missing;  ///< what to do where the file has to exist and does not
};

/// A prepared statement. Values are bound in order. Text is copied.
class Statement {
 public:
  Statement& bind(std::string_view text);
  Statement& bind_optional(const std::optional<std::string>& text);
  Statement& bind(double value);
  Statement& bind(std::int64_t value);
  /// Advances to the next row; false when there are no more. @error the database's message.
  Result<bool> step();
  /// Runs a statement that returns no rows. @error the database's message.
  Result<void> run();
  std::string text(int column) const;
  double number(int column) const;
  std::int64_t integer(int column) const;
  bool is_null(int column) const;

 private:
  friend class Database;
  Statement(sqlite3* handle, sqlite3_stmt* statement, const DatabaseKind* kind)
      : handle_(handle), kind_(kind), statement_(statement, sqlite3_finalize) {}
  sqlite3* handle_;
  const DatabaseKind* kind_;
  std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement_;
  int bound_ = 0;
};

class Database {
 public:
  /// @error cannot be opened; not a database; locked by another program for more than ten seconds.
  static Result<Database> open(const std::filesystem::path& file, const DatabaseKind& kind);
  /// As open(), for a file that must exist. @error also: no such file.
  static Result<Database> open_existing(const std::filesystem::path& file, const DatabaseKind& kind);
  Result<Statement> prepare(std::string_view sql) const;
  Result<void> run(const char* sql) const;
  /// Copies everything into another database, while this one may be in use. @error the database's message.
  Result<void> copy_to(const Database& target) const;

 private:
  Database(sqlite3* handle, const DatabaseKind* kind) : handle_(handle, sqlite3_close), kind_(kind) {}
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> handle_;
  const DatabaseKind* kind_;
};

/// A transaction that is rolled back at the end of its scope unless it was committed.
class Transaction {
 public:
  static Result<Transaction> begin(const Database& database);
  Result<void> commit();
  Transaction(Transaction&& other) noexcept : database_(other.database_) { other.database_ = nullptr; }
  ~Transaction();

 private:
  explicit Transaction(const Database* database) : database_(database) {}
  const Database* database_;
};

}  // namespace capstone
