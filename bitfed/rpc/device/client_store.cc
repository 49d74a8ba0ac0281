#include "bitfed/rpc/device/client_store.h"

#include <array>
#include <utility>

#include "bitfed/base/error.h"
#include "bitfed/secure/protocol/primitives.h"

namespace bitfed {
namespace {

constexpr std::string_view kSchema = R"(
CREATE TABLE membership (one INTEGER PRIMARY KEY CHECK (one = 1), federation TEXT NOT NULL, number INTEGER NOT NULL);
CREATE TABLE kept (one INTEGER PRIMARY KEY CHECK (one = 1), state BLOB NOT NULL);
CREATE TABLE finished (one INTEGER PRIMARY KEY CHECK (one = 1), round INTEGER NOT NULL, broadcast TEXT NOT NULL,
  sha256 TEXT NOT NULL, upload BLOB NOT NULL, kept BLOB NOT NULL, samples INTEGER NOT NULL,
  trained_samples INTEGER NOT NULL, train_seconds REAL NOT NULL))";

}  // namespace

ClientStore::ClientStore(const std::filesystem::path& file)
    : database_(file, "a federation's client", kSchema) {
  database_.execute("PRAGMA secure_delete = ON");
  // Earlier builds pass it over.
  database_.execute(
      "CREATE TABLE IF NOT EXISTS accepted (one INTEGER PRIMARY KEY CHECK (one = 1), round INTEGER NOT "
      "NULL)");
  database_.execute("DROP TABLE IF EXISTS sum");  // of builds whose channels served one sum
  database_.execute(
      "CREATE TABLE IF NOT EXISTS masked_sum (one INTEGER PRIMARY KEY CHECK (one = 1), round INTEGER NOT "
      "NULL, attempt INTEGER NOT NULL, session BLOB NOT NULL, secret BLOB NOT NULL, channel BLOB NOT NULL)");
  database_.execute(
      "CREATE TABLE IF NOT EXISTS masked_sum_said (part INTEGER PRIMARY KEY, bytes BLOB NOT NULL)");
  database_.execute(
      "CREATE TABLE IF NOT EXISTS next_keys (one INTEGER PRIMARY KEY CHECK (one = 1), secret BLOB NOT NULL, "
      "channel BLOB NOT NULL, until INTEGER NOT NULL)");
  database_.execute(
      "CREATE TABLE IF NOT EXISTS opened (one INTEGER PRIMARY KEY CHECK (one = 1), round INTEGER NOT NULL)");
  database_.execute(
      "CREATE TABLE IF NOT EXISTS privacy (one INTEGER PRIMARY KEY CHECK (one = 1), text TEXT NOT NULL)");
  empty_log();
  next_keys_ = read_next_keys();
}

std::optional<std::string> ClientStore::privacy() const {
  Statement row = database_.prepare("SELECT text FROM privacy");
  if (!row.step()) return std::nullopt;
  return row.text(0);
}

void ClientStore::put_privacy(const std::string& text) {
  database_.prepare("INSERT OR REPLACE INTO privacy VALUES (1, ?)").bind(std::string_view(text)).run();
}

std::optional<ClientStore::Membership> ClientStore::membership() const {
  Statement row = database_.prepare("SELECT federation, number FROM membership");
  if (!row.step()) return std::nullopt;
  return Membership{row.text(0), static_cast<uint32_t>(row.integer(1))};
}

void ClientStore::join(const Membership& membership) {
  database_.prepare("INSERT INTO membership VALUES (1, ?, ?)")
      .bind(membership.federation)
      .bind(int64_t{membership.number})
      .run();
}

Bytes ClientStore::kept() const {
  Statement row = database_.prepare("SELECT state FROM kept");
  return row.step() ? row.bytes(0) : Bytes();
}

std::optional<ClientStore::Update> ClientStore::finished_update() const {
  Statement row = database_.prepare(
      "SELECT round, broadcast, sha256, upload, kept, samples, trained_samples, train_seconds FROM finished");
  if (!row.step()) return std::nullopt;
  Update update;
  update.round = static_cast<uint32_t>(row.integer(0));
  update.broadcast_sha256 = row.text(1);
  update.sha256 = row.text(2);
  update.result.upload = row.bytes(3);
  update.kept = row.bytes(4);
  update.result.samples = static_cast<uint64_t>(row.integer(5));
  update.result.trained_samples = static_cast<uint64_t>(row.integer(6));
  update.result.train_seconds = row.number(7);
  if (text_of(digest_of(update.result.upload)) != update.sha256) {
    throw input_error("{}: the update of round {} does not match its digest: damaged",
                      database_.file().string(), update.round);
  }
  return update;
}

void ClientStore::finish(const Update& update, const Sum* sum) {
  database_.transaction([&] {
    if (sum != nullptr) write_sum(*sum);
    database_.prepare("INSERT OR REPLACE INTO finished VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?)")
        .bind(int64_t{update.round})
        .bind(update.broadcast_sha256)
        .bind(update.sha256)
        .bind(std::span<const uint8_t>(update.result.upload))
        .bind(std::span<const uint8_t>(update.kept))
        .bind(static_cast<int64_t>(update.result.samples))
        .bind(static_cast<int64_t>(update.result.trained_samples))
        .bind(update.result.train_seconds)
        .run();
  });
  if (sum != nullptr) sum_ = *sum;
}

// Without a sync: an update that is offered again because this was forgotten is accepted again.
void ClientStore::accepted() {
  database_.unsynced_transaction([&] { write_accepted(); });
}

void ClientStore::write_accepted() {
  database_.execute("INSERT OR REPLACE INTO kept SELECT 1, kept FROM finished WHERE length(kept) > 0");
  database_.execute("INSERT OR REPLACE INTO accepted SELECT 1, round FROM finished");
  database_.execute("DELETE FROM finished");
}

std::optional<uint32_t> ClientStore::last_accepted() const {
  Statement row = database_.prepare("SELECT round FROM accepted");
  if (!row.step()) return std::nullopt;
  return static_cast<uint32_t>(row.integer(0));
}

uint32_t ClientStore::after_round() const {
  Statement row = database_.prepare(
      "SELECT COALESCE(MAX(round) + 1, 0) FROM (SELECT round FROM accepted UNION SELECT round FROM finished)");
  row.step();
  return static_cast<uint32_t>(row.integer(0));
}

namespace {

// What the server has said, in the order in which it does, and the digest of the update.
std::array<Bytes ClientSession::*, 4> said() {
  return {&ClientSession::key_list, &ClientSession::peer_shares, &ClientSession::survivors,
          &ClientSession::update};
}

constexpr size_t kAnswer = 4;  // the part after them

// The shares of others, and what secrets are agreed with, are of no use without the secret.
constexpr const char* kEraseSecrets = "UPDATE masked_sum SET secret = zeroblob(32), channel = zeroblob(32)";
constexpr const char* kEraseShares = "DELETE FROM masked_sum_said WHERE part IN (0, 1)";

std::array<uint8_t, 32> block_of(const Statement& row, int column, const Database& database) {
  std::array<uint8_t, 32> block;
  const Bytes bytes = row.bytes(column);
  if (bytes.size() != block.size())
    throw input_error("{}: the state of a sum: found {} bytes, expected {}: damaged",
                      database.file().string(), bytes.size(), block.size());
  std::copy(bytes.begin(), bytes.end(), block.begin());
  return block;
}

}  // namespace

const std::optional<ClientStore::Sum>& ClientStore::sum() const {
  if (!sum_) sum_ = read_sum();
  return sum_;
}

std::optional<ClientStore::Sum> ClientStore::read_sum() const {
  Statement row = database_.prepare("SELECT round, attempt, session, secret, channel FROM masked_sum");
  if (!row.step()) return std::nullopt;
  Sum sum{static_cast<uint32_t>(row.integer(0)), static_cast<uint32_t>(row.integer(1)), {}};
  ClientSession& session = sum.session;
  session.session = block_of(row, 2, database_);
  session.secret = block_of(row, 3, database_);
  session.channel = block_of(row, 4, database_);
  Statement parts = database_.prepare("SELECT part, bytes FROM masked_sum_said WHERE part BETWEEN 0 AND 4");
  while (parts.step()) {
    const auto part = static_cast<size_t>(parts.integer(0));
    (part == kAnswer ? sum.answer : session.*said().at(part)) = parts.bytes(1);
  }
  return sum;
}

// Writes what is new: lists of keys are long. Within a transaction.
void ClientStore::write_sum(const Sum& sum) {
  const ClientSession& session = sum.session;
  const std::optional<Sum>& before = this->sum();
  const bool erases = before && session.secret == Secret() && before->session.secret != Secret();
  const bool begins = !before || (before->session.secret != session.secret && !erases);
  if (erases) {
    database_.execute(kEraseSecrets);
    database_.execute(kEraseShares);
  }
  if (begins) {
    database_.execute("DELETE FROM masked_sum_said");
    database_.execute("DELETE FROM next_keys");
    database_.prepare("INSERT OR REPLACE INTO masked_sum VALUES (1, ?, ?, ?, ?, ?)")
        .bind(int64_t{sum.round})
        .bind(int64_t{sum.attempt})
        .bind(std::span<const uint8_t>(session.session))
        .bind(std::span<const uint8_t>(session.secret))
        .bind(std::span<const uint8_t>(session.channel))
        .run();
  }
  const auto write = [&](size_t part, const Bytes& bytes, const Bytes& was) {
    if (bytes.empty() || bytes == was) return;
    database_.prepare("INSERT OR REPLACE INTO masked_sum_said VALUES (?, ?)")
        .bind(static_cast<int64_t>(part))
        .bind(std::span<const uint8_t>(bytes))
        .run();
  };
  for (size_t part = 0; part < said().size(); ++part)
    write(part, session.*said()[part], begins ? Bytes() : before->session.*said()[part]);
  write(kAnswer, sum.answer, begins ? Bytes() : before->answer);
}

void ClientStore::put_sum(const Sum& sum) {
  const bool begins = !this->sum() || this->sum()->session.secret != sum.session.secret;
  database_.unsynced_transaction([&] { write_sum(sum); });
  sum_ = sum;
  if (begins) next_keys_.reset();
}

void ClientStore::open_sum(const Sum& sum, const NextKeys& next, bool accepts) {
  database_.transaction([&] {
    write_sum(sum);
    database_.prepare("INSERT OR REPLACE INTO opened VALUES (1, ?)").bind(int64_t{sum.round}).run();
    write_next_keys(next);
    if (accepts) write_accepted();
  });
  sum_ = sum;
  next_keys_ = next;
  empty_log_of(next);
}

void ClientStore::forget_next_keys() {
  database_.transaction([&] { database_.execute("DELETE FROM next_keys"); });
  next_keys_.reset();
  empty_log();
}

void ClientStore::forget_keys() {
  database_.transaction([&] {
    database_.execute(kEraseSecrets);
    database_.execute(kEraseShares);
    database_.execute("DELETE FROM next_keys");
  });
  sum_.reset();  // read again if it is asked for
  next_keys_.reset();
  empty_log();
}

// The log keeps what was written before, also what is erased since.
void ClientStore::empty_log() {
  database_.execute("PRAGMA wal_checkpoint(TRUNCATE)");
}

// A channel serves an hour; those before it have gone by then.
void ClientStore::empty_log_of(const NextKeys& keys) {
  if (std::exchange(channel_, keys.channel) != keys.channel) empty_log();
}

std::optional<ClientStore::NextKeys> ClientStore::read_next_keys() const {
  Statement row = database_.prepare("SELECT secret, channel, until FROM next_keys");
  if (!row.step()) return std::nullopt;
  return NextKeys{block_of(row, 0, database_), block_of(row, 1, database_), row.integer(2)};
}

void ClientStore::write_next_keys(const NextKeys& keys) {
  if (next_keys_ && next_keys_->secret == keys.secret) return;
  database_.prepare("INSERT OR REPLACE INTO next_keys VALUES (1, ?, ?, ?)")
      .bind(std::span<const uint8_t>(keys.secret))
      .bind(std::span<const uint8_t>(keys.channel))
      .bind(keys.until)
      .run();
}

void ClientStore::put_next_keys(const NextKeys& keys) {
  database_.unsynced_transaction([&] { write_next_keys(keys); });
  next_keys_ = keys;
  empty_log_of(keys);
}

std::optional<uint32_t> ClientStore::last_opened() const {
  Statement row = database_.prepare("SELECT round FROM opened");
  if (!row.step()) return std::nullopt;
  return static_cast<uint32_t>(row.integer(0));
}

void ClientStore::dropped() {
  database_.execute("DELETE FROM finished");
}

}  // namespace bitfed
