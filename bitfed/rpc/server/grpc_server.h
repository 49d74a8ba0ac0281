#pragma once

#include <functional>
#include <memory>
#include <string>

#include "bitfed/rpc/security/trust.h"
#include "bitfed/rpc/server/coordinator.h"

namespace bitfed {

// Carries a coordinator's messages over gRPC. Listens as long as it lives.
class GrpcServer {
 public:
  virtual ~GrpcServer() = default;
  virtual uint16_t port() const = 0;
};

// Answers an operator's line; `name` is the certificate's. See OperatorActs.
using AnswerOperator = std::function<std::string(const std::string& line, const std::string& name)>;

// `listen`: "HOST:PORT", port 0 for any that is free. An input_error where it cannot be listened on.
std::unique_ptr<GrpcServer> make_grpc_server(const std::string& listen, const ServerTrust& trust,
                                             Coordinator& coordinator, AnswerOperator answer_operator);

}  // namespace bitfed
