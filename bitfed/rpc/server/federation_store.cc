#include "bitfed/rpc/server/federation_store.h"

#include <nlohmann/json.hpp>
#include <random>

#include "bitfed/base/error.h"
#include "bitfed/base/hash/digest.h"
#include "bitfed/base/text_difference.h"
#include "bitfed/model/json_fields.h"
#include "bitfed/secure/protocol/messages.h"

namespace bitfed {
namespace {

constexpr std::string_view kSchema = R"(
CREATE TABLE federation (id TEXT NOT NULL);
CREATE TABLE clients (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE rounds (round INTEGER PRIMARY KEY, clients TEXT NOT NULL, depends_on TEXT);
CREATE TABLE updates (round INTEGER NOT NULL, client INTEGER NOT NULL, sha256 TEXT NOT NULL, upload BLOB,
  samples INTEGER NOT NULL, trained_samples INTEGER NOT NULL, train_seconds REAL NOT NULL,
  PRIMARY KEY (round, client));
CREATE TABLE checkpoint (one INTEGER PRIMARY KEY CHECK (one = 1), round INTEGER NOT NULL, state BLOB NOT NULL))";

// What later builds added; earlier ones pass it over.
constexpr std::string_view kAdded[] = {
    "CREATE INDEX IF NOT EXISTS updates_with_bytes ON updates (round) WHERE upload IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS updates_of_client ON updates (client, round)",
    "CREATE TABLE IF NOT EXISTS attempts (round INTEGER PRIMARY KEY, count INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS checkpoint_digest (one INTEGER PRIMARY KEY CHECK (one = 1), sha256 TEXT NOT "
    "NULL)",
    "CREATE TABLE IF NOT EXISTS dropped (client INTEGER PRIMARY KEY)",
    "CREATE TABLE IF NOT EXISTS paused (one INTEGER PRIMARY KEY CHECK (one = 1))",
    "DROP TABLE IF EXISTS sums",  // of builds that masked otherwise
    "CREATE TABLE IF NOT EXISTS sum_phases (round INTEGER NOT NULL, phase INTEGER NOT NULL, state BLOB NOT "
    "NULL, PRIMARY KEY (round, phase))",
    "CREATE TABLE IF NOT EXISTS newest (client INTEGER PRIMARY KEY, round INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS policy (one INTEGER PRIMARY KEY CHECK (one = 1), minimum_clients INTEGER NOT "
    "NULL, "
    "quorum REAL NOT NULL, deadline_seconds REAL NOT NULL, least_answers INTEGER NOT NULL)",
};

std::string random_id() {
  std::random_device device;
  std::string id;
  for (int i = 0; i < 4; ++i) id += fmt::format("{:08x}", device());
  return id;
}

}  // namespace

FederationStore::FederationStore(const std::filesystem::path& file, uint32_t kept_rounds)
    : database_(file, "a federation's server", kSchema), kept_rounds_(kept_rounds) {
  for (const std::string_view sql : kAdded) database_.execute(sql);
  Statement known = database_.prepare("SELECT id FROM federation");
  if (known.step()) {
    federation_ = known.text(0);
  } else {
    federation_ = random_id();
    database_.prepare("INSERT INTO federation VALUES (?)").bind(federation_).run();
  }
  Statement checkpoint = database_.prepare("SELECT round FROM checkpoint");
  if (checkpoint.step()) finished_ = checkpoint.integer(0);
}

uint32_t FederationStore::register_client(const std::string& name, std::optional<uint32_t> wanted,
                                          uint32_t clients) {
  const auto held = database_.lock();
  Statement known = database_.prepare("SELECT number FROM clients WHERE name = ?");
  if (known.bind(name).step()) {
    const auto number = static_cast<uint32_t>(known.integer(0));
    if (wanted && *wanted != number)
      throw input_error("client '{}' is number {}, not {}", name, number, *wanted);
    return number;
  }
  const uint32_t number = wanted ? *wanted : lowest_free_number();
  if (wanted) {
    if (number >= clients)
      throw input_error("client '{}': found part {}, expected 0 to {}", name, number, clients - 1);
    Statement owner = database_.prepare("SELECT name FROM clients WHERE number = ?");
    if (owner.bind(int64_t{number}).step())
      throw input_error("client '{}': part {} is held by client '{}'; an operator can free it", name, number,
                        owner.text(0));
  } else if (number >= clients) {
    throw input_error("client '{}': all {} places of the federation are taken", name, clients);
  }
  database_.prepare("INSERT INTO clients VALUES (?, ?)").bind(int64_t{number}).bind(name).run();
  return number;
}

uint32_t FederationStore::lowest_free_number() const {
  Statement counted = database_.prepare("SELECT COUNT(*), COALESCE(MAX(number) + 1, 0) FROM clients");
  counted.step();
  // Without gaps, as where no client asks for a part, there is nothing to search.
  if (counted.integer(0) == counted.integer(1)) return static_cast<uint32_t>(counted.integer(0));
  Statement taken = database_.prepare("SELECT number FROM clients ORDER BY number");
  uint32_t number = 0;
  while (taken.step() && taken.integer(0) == number) ++number;
  return number;
}

std::map<uint32_t, std::string> FederationStore::clients() const {
  const auto held = database_.lock();
  std::map<uint32_t, std::string> known;
  Statement rows = database_.prepare("SELECT number, name FROM clients");
  while (rows.step()) known[static_cast<uint32_t>(rows.integer(0))] = rows.text(1);
  return known;
}

void FederationStore::free_part(uint32_t part) {
  const auto held = database_.lock();
  database_.prepare("DELETE FROM clients WHERE number = ?").bind(int64_t{part}).run();
  database_.prepare("DELETE FROM newest WHERE client = ?").bind(int64_t{part}).run();
}

std::set<uint32_t> FederationStore::dropped() const {
  const auto held = database_.lock();
  std::set<uint32_t> clients;
  Statement rows = database_.prepare("SELECT client FROM dropped");
  while (rows.step()) clients.insert(static_cast<uint32_t>(rows.integer(0)));
  return clients;
}

void FederationStore::set_dropped(uint32_t client, bool dropped) {
  const auto held = database_.lock();
  const char* const sql =
      dropped ? "INSERT OR IGNORE INTO dropped VALUES (?)" : "DELETE FROM dropped WHERE client = ?";
  database_.prepare(sql).bind(int64_t{client}).run();
}

std::optional<RoundPolicy> FederationStore::policy() const {
  const auto held = database_.lock();
  Statement row =
      database_.prepare("SELECT minimum_clients, quorum, deadline_seconds, least_answers FROM policy");
  if (!row.step()) return std::nullopt;
  RoundPolicy policy;
  policy.minimum_clients = static_cast<uint32_t>(row.integer(0));
  policy.quorum = row.number(1);
  policy.deadline_seconds = row.number(2);
  policy.min_answers = static_cast<uint32_t>(row.integer(3));
  return policy;
}

void FederationStore::set_policy(const RoundPolicy& policy) {
  const auto held = database_.lock();
  database_.prepare("INSERT OR REPLACE INTO policy VALUES (1, ?, ?, ?, ?)")
      .bind(int64_t{policy.minimum_clients})
      .bind(policy.quorum)
      .bind(policy.deadline_seconds)
      .bind(int64_t{policy.min_answers})
      .run();
}

bool FederationStore::paused() const {
  const auto held = database_.lock();
  return database_.prepare("SELECT 1 FROM paused").step();
}

void FederationStore::set_paused(bool paused) {
  const auto held = database_.lock();
  database_.prepare(paused ? "INSERT OR IGNORE INTO paused VALUES (1)" : "DELETE FROM paused").run();
}

std::optional<uint32_t> FederationStore::newest_accepted(uint32_t client) const {
  const auto held = database_.lock();
  Statement row = database_.prepare("SELECT round FROM newest WHERE client = ?");
  if (!row.bind(int64_t{client}).step()) return std::nullopt;
  return static_cast<uint32_t>(row.integer(0));
}

std::optional<std::string> FederationStore::accepted(uint32_t round, uint32_t client) const {
  const auto held = database_.lock();
  Statement row = database_.prepare("SELECT sha256 FROM updates WHERE round = ? AND client = ?");
  row.bind(int64_t{round}).bind(int64_t{client});
  if (!row.step()) return std::nullopt;
  return row.text(0);
}

int64_t FederationStore::finished_round() const {
  const auto held = database_.lock();
  return finished_;
}

std::optional<std::vector<uint32_t>> FederationStore::chosen(uint32_t round) const {
  const auto held = database_.lock();
  Statement row = database_.prepare("SELECT clients FROM rounds WHERE round = ?");
  row.bind(int64_t{round});
  if (!row.step()) return std::nullopt;
  return parse_json(row.text(0), database_.file().string()).get<std::vector<uint32_t>>();
}

void FederationStore::begin_round(uint32_t round, const std::vector<uint32_t>& clients) {
  const auto held = database_.lock();
  database_.prepare("INSERT INTO rounds (round, clients) VALUES (?, ?)")
      .bind(int64_t{round})
      .bind(nlohmann::json(clients).dump())
      .run();
}

std::optional<uint32_t> FederationStore::abandon_round(uint32_t round) {
  database_.transaction([&] {
    database_.prepare("DELETE FROM rounds WHERE round = ?").bind(int64_t{round}).run();
    database_.prepare("DELETE FROM updates WHERE round = ?").bind(int64_t{round}).run();
    database_.prepare("DELETE FROM sum_phases WHERE round = ?").bind(int64_t{round}).run();
    database_
        .prepare("INSERT INTO attempts VALUES (?, 1) ON CONFLICT (round) DO UPDATE SET count = count + 1")
        .bind(int64_t{round})
        .run();
  });
  return attempts(round);
}

uint32_t FederationStore::attempts(uint32_t round) const {
  const auto held = database_.lock();
  Statement row = database_.prepare("SELECT count FROM attempts WHERE round = ?");
  return row.bind(int64_t{round}).step() ? static_cast<uint32_t>(row.integer(0)) : 0;
}

std::vector<Bytes> FederationStore::sum_phases(uint32_t round) const {
  const auto held = database_.lock();
  std::vector<Bytes> phases;
  Statement row = database_.prepare("SELECT state FROM sum_phases WHERE round = ? ORDER BY phase");
  row.bind(int64_t{round});
  while (row.step()) phases.push_back(row.bytes(0));
  return phases;
}

void FederationStore::add_sum_phase(uint32_t round, const Bytes& state) {
  const auto held = database_.lock();
  database_.prepare("INSERT INTO sum_phases SELECT ?1, COUNT(*), ?2 FROM sum_phases WHERE round = ?1")
      .bind(int64_t{round})
      .bind(std::span<const uint8_t>(state))
      .run();
}

void FederationStore::put(uint32_t round, const ClientResult& result, const std::string& depends_on) {
  database_.transaction([&] {
    database_.prepare("UPDATE rounds SET depends_on = ? WHERE round = ? AND depends_on IS NULL")
        .bind(depends_on)
        .bind(int64_t{round})
        .run();
    database_.prepare("INSERT INTO updates VALUES (?, ?, ?, ?, ?, ?, ?)")
        .bind(int64_t{round})
        .bind(int64_t{result.client})
        .bind(text_of(digest_of(result.upload)))
        .bind(std::span<const uint8_t>(result.upload))
        .bind(static_cast<int64_t>(result.samples))
        .bind(static_cast<int64_t>(result.trained_samples))
        .bind(result.train_seconds)
        .run();
    database_.prepare("INSERT OR REPLACE INTO newest VALUES (?, ?)")
        .bind(int64_t{result.client})
        .bind(int64_t{round})
        .run();
  });
}

std::optional<ClientResult> FederationStore::find(uint32_t round, uint32_t client,
                                                  const std::string& depends_on) const {
  const auto held = database_.lock();
  Statement row = database_.prepare(
      "SELECT upload, sha256, samples, trained_samples, train_seconds, depends_on FROM updates "
      "JOIN rounds USING (round) WHERE round = ? AND client = ?");
  row.bind(int64_t{round}).bind(int64_t{client});
  if (!row.step() || row.is_null(0)) return std::nullopt;
  if (const std::string made_with = row.text(5); made_with != depends_on) {
    throw input_error("{}: the updates of round {} were made with other settings: {}",
                      database_.file().string(), round, first_difference(made_with, depends_on));
  }
  ClientResult result;
  result.client = client;
  result.upload = row.bytes(0);
  result.samples = static_cast<uint64_t>(row.integer(2));
  result.trained_samples = static_cast<uint64_t>(row.integer(3));
  result.train_seconds = row.number(4);
  if (text_of(digest_of(result.upload)) != row.text(1)) {
    throw input_error("{}: round {}: the update of client {} does not match its digest: damaged",
                      database_.file().string(), round, client);
  }
  return result;
}

void FederationStore::remove_round(uint32_t round) {
  const auto held = database_.lock();
  removable_ = std::max<int64_t>(removable_, round);
}

void FederationStore::save(uint32_t round, const State& state) {
  const Bytes bytes = encode(state);
  database_.transaction([&] {
    database_.prepare("INSERT OR REPLACE INTO checkpoint VALUES (1, ?, ?)")
        .bind(int64_t{round})
        .bind(std::span<const uint8_t>(bytes))
        .run();
    database_.prepare("INSERT OR REPLACE INTO checkpoint_digest VALUES (1, ?)").bind(sha256_hex(bytes)).run();
    prune();
  });
  const auto held = database_.lock();
  finished_ = round;
}

// Of updates whose bytes are not needed any more the digest stays, so that a repeat is known. A device offers
// its last update alone: of rounds long past each client's newest digest is enough. Rows are rewritten
// rather than changed, since a row that shrinks in place keeps its page of 4 KiB.
void FederationStore::prune() {
  database_
      .prepare(
          "INSERT OR REPLACE INTO updates SELECT round, client, sha256, NULL, samples, trained_samples, "
          "train_seconds FROM updates WHERE round <= ? AND upload IS NOT NULL")
      .bind(removable_)
      .run();
  database_.prepare("DELETE FROM sum_phases WHERE round <= ?").bind(removable_).run();
  const int64_t oldest = removable_ - kept_rounds_;
  database_.prepare("DELETE FROM rounds WHERE round < ?").bind(oldest).run();
  database_
      .prepare(
          "DELETE FROM updates WHERE round < ? AND EXISTS (SELECT 1 FROM updates AS newer WHERE newer.client "
          "= "
          "updates.client AND newer.round > updates.round)")
      .bind(oldest)
      .run();
}

std::optional<State> FederationStore::load() const {
  const auto held = database_.lock();
  Statement row =
      database_.prepare("SELECT state, sha256 FROM checkpoint LEFT JOIN checkpoint_digest USING (one)");
  if (!row.step()) return std::nullopt;
  const Bytes bytes = row.bytes(0);
  // Earlier builds wrote no digest.
  if (!row.is_null(1) && sha256_hex(bytes) != row.text(1))
    throw input_error("{}: the checkpoint does not match its digest: damaged", database_.file().string());
  return decode(bytes, database_.file().string() + ": checkpoint");
}

}  // namespace bitfed
