#pragma once

#include <filesystem>
#include <optional>

#include "bitfed/federated/client_round.h"
#include "bitfed/rpc/server/database.h"
#include "bitfed/secure/protocol/secure_client.h"

namespace bitfed {

// What a device must not forget: which federation it belongs to, what its method keeps, and the update it has
// finished until the server has given its verdict.
class ClientStore {
 public:
  explicit ClientStore(const std::filesystem::path& file);

  struct Membership {
    std::string federation;
    uint32_t number = 0;
  };
  std::optional<Membership> membership() const;
  void join(const Membership& membership);
  // The recipe's [privacy] that this client has joined with. Empty: it joined with an earlier build.
  std::optional<std::string> privacy() const;
  void put_privacy(const std::string& text);

  Bytes kept() const;  // empty: nothing

  struct Update {
    uint32_t round = 0;
    std::string broadcast_sha256;
    std::string sha256;
    ClientResult result;
    Bytes kept;  // what is kept from now on once the update counts; empty: as before
  };
  std::optional<Update> finished_update() const;
  struct Sum;
  void finish(const Update& update, const Sum* sum = nullptr);  // with the sum that the update is masked for
  void accepted();  // the update counts: what goes with it is kept from now on
  // The round of the last update that counted. Work for it or for an earlier round comes only from a server
  // that was restored from an older copy.
  std::optional<uint32_t> last_accepted() const;
  // 1 + the newest round of an update, whether it counted or is still to be settled; 0: there is none.
  uint32_t after_round() const;
  void dropped();  // it does not: as if the round had not been

  // The last sum that this client took part in, of secure aggregation. put_sum() keeps it through kill -9;
  // once an update was finished after it, or it was opened, also through a loss of power.
  struct Sum {
    uint32_t round = 0;
    uint32_t attempt = 0;
    ClientSession session;  // without secret and channel once it has answered,
    Bytes answer = {};      // which is this, to be repeated
  };
  const std::optional<Sum>& sum() const;
  void put_sum(const Sum& sum);  // a new one takes the place of the next keys
  // What the keys of a sum are made of that are sent before it begins; kept as put_sum() does.
  struct NextKeys {
    Secret secret = {};
    Secret channel = {};
    int64_t until = 0;  // a sum may begin with them, in seconds since 1970
  };
  const std::optional<NextKeys>& next_keys() const { return next_keys_; }
  void put_next_keys(const NextKeys& keys);
  // The sum has survivors, and this client helps to open it. `accepts`: the finished update is in it and
  // counts, as after accepted(). Durable.
  void open_sum(const Sum& sum, const NextKeys& next, bool accepts);
  // The next keys go, or all keys. What this class erases is overwritten in the file; in its log here, when
  // it is opened, and when keys of another channel come.
  void forget_next_keys();
  void forget_keys();
  // The newest round of which it helped to open a sum: it opens no other of that round or before.
  std::optional<uint32_t> last_opened() const;

 private:
  std::optional<Sum> read_sum() const;
  void write_sum(const Sum& sum);
  std::optional<NextKeys> read_next_keys() const;
  void write_next_keys(const NextKeys& keys);
  void empty_log();
  void empty_log_of(const NextKeys& keys);
  void write_accepted();

  mutable Database database_;
  mutable std::optional<Sum> sum_;  // as committed last: lists of keys are too long to be read at every step
  std::optional<NextKeys> next_keys_;  // likewise
  Secret channel_ = {};                // of the newest keys
};

}  // namespace bitfed
