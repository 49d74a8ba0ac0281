#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bitfed/base/byte_io.h"

struct sqlite3;
struct sqlite3_stmt;

namespace bitfed {

class Database;

struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const;
};
using CompiledStatement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

// One SQL statement with its values; steps through its rows. Columns count from 0, values in order. Does not
// outlive its database, which keeps what was compiled for the next statement of the same text.
class Statement {
 public:
  Statement(const Database& database, std::string_view sql);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(int64_t value);
  Statement& bind(double value);
  Statement& bind(std::string_view value);
  Statement& bind(std::span<const uint8_t> value);

  bool step();  // true: a row is there
  void run() {  // for statements without rows
    while (step()) {
    }
  }

  bool is_null(int column) const;
  int64_t integer(int column) const;
  double number(int column) const;
  std::string text(int column) const;
  Bytes bytes(int column) const;

 private:
  void check(int code) const;

  const Database& database_;
  std::vector<CompiledStatement>* idle_ = nullptr;  // of this text; null: it is not kept
  CompiledStatement statement_;
  int bound_ = 0;
};

// A file of SQLite's that this process has to itself: write-ahead log, synced at every commit, so that what
// is committed survives a crash of the process or the machine. Failures (a full disk, a damaged file) are
// errors that name the file. Any thread may use it while it holds lock().
class Database {
 public:
  // `schema` makes the tables of version 1 of a new file; `kind` ("a federation") is what the file must hold.
  Database(const std::filesystem::path& file, std::string_view kind, std::string_view schema);

  Statement prepare(std::string_view sql) const { return {*this, sql}; }
  void execute(std::string_view sql) const { prepare(sql).run(); }

  // All of `body` or nothing, one sync for all of it. Within another transaction it is a part of that one.
  void transaction(const std::function<void()>& body);
  // The same, but a crash of the machine (not of the process) may take it back: for what can be learnt again.
  void unsynced_transaction(const std::function<void()>& body);

  // A copy of the whole, as of now. An input_error where `copy` exists.
  void back_up(const std::filesystem::path& copy);

  std::unique_lock<std::recursive_mutex> lock() const { return std::unique_lock(mutex_); }
  const std::filesystem::path& file() const { return file_; }

 private:
  friend class Statement;
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  std::filesystem::path file_;
  std::unique_ptr<sqlite3, Close> handle_;
  mutable std::recursive_mutex mutex_;
  // Compiled statements that nobody uses now, by their text: to compile one takes longer than to run it. Two
  // of one text may be in use at once.
  mutable std::map<std::string, std::vector<CompiledStatement>, std::less<>> idle_;
  bool in_transaction_ = false;
};

}  // namespace bitfed
