#include "bitfed/rpc/server/remote_admin.h"

#include <grpcpp/grpcpp.h>

#include "bitfed/base/error.h"
#include "bitfed/rpc/security/credentials.h"
#include "bitfed_operator_v1.grpc.pb.h"

namespace bitfed {
namespace {

constexpr auto kPatience = std::chrono::seconds(30);
constexpr int kMaxReplyBytes = 64 << 20;  // the status of a large federation

}  // namespace

std::string ask_remote_admin(const std::string& server, const ClientTrust& trust, const std::string& line) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxReplyBytes);
  const auto stub =
      v1::Operator::NewStub(grpc::CreateCustomChannel(server, client_credentials(trust), arguments));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  v1::Question question;
  question.set_line(line);
  v1::Reply reply;
  const grpc::Status status = stub->Ask(&context, question, &reply);
  if (status.ok()) return reply.text();
  const bool refused = status.error_code() == grpc::StatusCode::INVALID_ARGUMENT ||
                       status.error_code() == grpc::StatusCode::PERMISSION_DENIED;
  throw refused ? input_error("{}: {}", server, status.error_message())
                : failure("{}: {}", server, status.error_message());
}

}  // namespace bitfed
