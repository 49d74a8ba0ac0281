#include "bitfed/rpc/server/database.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "bitfed/base/error.h"

namespace bitfed {
namespace {

constexpr int64_t kVersion = 1;

Error sqlite_failure(sqlite3* database, int code, const std::string& source) {
  if ((code & 0xff) == SQLITE_BUSY) {
    return input_error("{}: another bitfed is at work in this folder", source);
  }
  if ((code & 0xff) == SQLITE_FULL) {
    return failure("{}: the disk is full; nothing is lost: make room, then start again", source);
  }
  return failure("{}: {}", source, database != nullptr ? sqlite3_errmsg(database) : sqlite3_errstr(code));
}

}  // namespace

void FinalizeStatement::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

// Pragmas are compiled for every use: SQLite carries some of them out while it compiles them, and what is
// durable must not depend on when it does so again.
Statement::Statement(const Database& database, std::string_view sql) : database_(database) {
  const auto held = database.lock();
  if (!sql.starts_with("PRAGMA")) {
    auto found = database.idle_.find(sql);
    if (found == database.idle_.end()) found = database.idle_.try_emplace(std::string(sql)).first;
    idle_ = &found->second;
    if (!idle_->empty()) {
      statement_ = std::move(idle_->back());
      idle_->pop_back();
      return;
    }
  }
  sqlite3_stmt* statement = nullptr;
  check(sqlite3_prepare_v3(database.handle_.get(), sql.data(), static_cast<int>(sql.size()),
                           idle_ != nullptr ? SQLITE_PREPARE_PERSISTENT : 0, &statement, nullptr));
  statement_.reset(statement);
}

Statement::~Statement() {
  if (idle_ == nullptr) return;
  const auto held = database_.lock();
  sqlite3_reset(statement_.get());  // a failure of its last step was reported there
  sqlite3_clear_bindings(statement_.get());
  idle_->push_back(std::move(statement_));
}

void Statement::check(int code) const {
  if (code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE)
    throw sqlite_failure(database_.handle_.get(), code, database_.file().string());
}

Statement& Statement::bind(int64_t value) {
  check(sqlite3_bind_int64(statement_.get(), ++bound_, value));
  return *this;
}

Statement& Statement::bind(double value) {
  check(sqlite3_bind_double(statement_.get(), ++bound_, value));
  return *this;
}

Statement& Statement::bind(std::string_view value) {
  check(sqlite3_bind_text64(statement_.get(), ++bound_, value.data() != nullptr ? value.data() : "",
                            value.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}

Statement& Statement::bind(std::span<const uint8_t> value) {
  check(value.empty()
            ? sqlite3_bind_zeroblob(statement_.get(), ++bound_, 0)
            : sqlite3_bind_blob64(statement_.get(), ++bound_, value.data(), value.size(), SQLITE_TRANSIENT));
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(statement_.get());
  check(code);
  return code == SQLITE_ROW;
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

double Statement::number(int column) const {
  return sqlite3_column_double(statement_.get(), column);
}

std::string Statement::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  return text == nullptr ? "" : std::string(text, sqlite3_column_bytes(statement_.get(), column));
}

Bytes Statement::bytes(int column) const {
  const auto* first = static_cast<const uint8_t*>(sqlite3_column_blob(statement_.get(), column));
  return first == nullptr ? Bytes() : Bytes(first, first + sqlite3_column_bytes(statement_.get(), column));
}

void Database::Close::operator()(sqlite3* handle) const {
  sqlite3_close_v2(handle);
}

namespace {

// The file is its owner's alone from the first byte, whatever the umask: it may hold updates and personal
// models. SQLite gives its companions (-wal, -shm) the same mode. A file that exists is not opened here:
// closing it would give up the locks that this process may have on it.
void create_private(const std::filesystem::path& file) {
  const int handle = ::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (handle >= 0) {
    ::close(handle);
  } else if (errno == EEXIST) {
    ::chmod(file.c_str(), 0600);
  } else {
    throw failure("{}: cannot be written: {}", file.string(), std::strerror(errno));
  }
}

}  // namespace

Database::Database(const std::filesystem::path& file, std::string_view kind, std::string_view schema)
    : file_(file) {
  create_folders(file.parent_path());
  create_private(file);
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(file.c_str(), &handle,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  handle_.reset(handle);
  if (code != SQLITE_OK) throw sqlite_failure(handle, code, file.string());
  sqlite3_extended_result_codes(handle, 1);
  // Exclusive before the first access: the lock is held until the process ends, however it ends.
  for (const char* pragma : {"PRAGMA locking_mode = EXCLUSIVE", "PRAGMA journal_mode = WAL",
                             "PRAGMA synchronous = FULL", "PRAGMA foreign_keys = ON"}) {
    execute(pragma);
  }
  int64_t version = 0;
  {
    Statement statement = prepare("PRAGMA user_version");
    if (statement.step()) version = statement.integer(0);
  }
  if (version == 0) {
    transaction([&] {
      std::string_view rest = schema;
      while (!rest.empty()) {
        const size_t end = rest.find(';');
        execute(rest.substr(0, end));
        rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
      }
      execute("CREATE TABLE kind (text TEXT NOT NULL)");
      prepare("INSERT INTO kind VALUES (?)").bind(kind).run();
      execute("PRAGMA user_version = 1");
    });
  } else if (version != kVersion) {
    throw input_error("{}: found version {}, expected {}", file.string(), version, kVersion);
  }
  Statement statement = prepare("SELECT text FROM kind");
  if (!statement.step() || statement.text(0) != kind)
    throw input_error("{}: expected the state of {}, found something else", file.string(), kind);
}

void Database::transaction(const std::function<void()>& body) {
  const auto held = lock();
  if (in_transaction_) {
    body();
    return;
  }
  execute("BEGIN IMMEDIATE");
  in_transaction_ = true;
  try {
    body();
    execute("COMMIT");
  } catch (...) {
    in_transaction_ = false;
    // Some failures have rolled back already.
    if (sqlite3_get_autocommit(handle_.get()) == 0)
      sqlite3_exec(handle_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
    throw;
  }
  in_transaction_ = false;
}

void Database::back_up(const std::filesystem::path& copy) {
  std::error_code code;
  if (copy.empty() || std::filesystem::exists(copy, code))
    throw input_error("backup: {}: found a file, expected a new one", copy.string());
  create_private(copy);
  const auto held = lock();
  prepare("VACUUM INTO ?").bind(std::string_view(copy.native())).run();
}

void Database::unsynced_transaction(const std::function<void()>& body) {
  const auto held = lock();
  execute("PRAGMA synchronous = NORMAL");
  try {
    transaction(body);
  } catch (...) {
    execute("PRAGMA synchronous = FULL");
    throw;
  }
  execute("PRAGMA synchronous = FULL");
}

}  // namespace bitfed
