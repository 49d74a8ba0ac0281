#pragma once

#include <filesystem>
#include <string>

namespace bitfed {

// Where requests for new certificates wait for the authority, whose key is not on the server: NAME.req in a
// folder. `bitfed certs renew FOLDER` answers them with NAME.pem, which the device gets when it asks again.
class RenewalMailbox {
 public:
  explicit RenewalMailbox(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // A request of the client that TLS knows by `name`. Returns its new certificate (PEM); empty where it is
  // not signed yet. An input_error where the request is none, or another client's.
  std::string ask(const std::string& name, const std::string& request) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace bitfed
