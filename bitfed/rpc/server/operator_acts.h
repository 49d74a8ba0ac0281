#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "bitfed/rpc/server/audit_log.h"
#include "bitfed/rpc/server/coordinator.h"
#include "bitfed/rpc/server/federation_store.h"

namespace bitfed {

// Who asks: a user of this machine, or over the network the name in an operator's certificate.
struct Asker {
  std::optional<uint32_t> user = {};
  std::optional<std::string> name = {};
};

// What `bitfed admin` can ask of a running server, a line each: status; pause; resume; drop NAME; free PART;
// policy KEY=VALUE ...; backup FILE; end. All but status are acts: they stand in the audit log before they
// are done, and with their outcome after. A backup writes to any path, so that it can be asked for from this
// machine alone. Any thread may call.
class OperatorActs {
 public:
  OperatorActs(Coordinator& coordinator, FederationStore& store, AuditLog& audit,
               std::function<std::string()> status)
      : coordinator_(coordinator), store_(store), audit_(audit), status_(std::move(status)) {}

  // An input_error for a line that is none of these, or that does not fit.
  std::string answer(const std::string& line, const Asker& asker);

 private:
  std::string perform(const std::string& act, const std::string& argument, const Asker& asker);
  std::string change_policy(const std::string& settings);

  std::mutex mutex_;  // one act at a time
  Coordinator& coordinator_;
  FederationStore& store_;
  AuditLog& audit_;
  std::function<std::string()> status_;
};

}  // namespace bitfed
