#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace bitfed {

// Answers an operator's requests on a Unix socket that its owner alone can connect to: one line per
// connection, one request at a time, on a thread of its own.
class AdminSocket {
 public:
  virtual ~AdminSocket() = default;  // removes the socket
};

// `answer` is given the line and the user who asks; what it throws is the answer, after "error: ".
std::unique_ptr<AdminSocket> make_admin_socket(
    const std::filesystem::path& path,
    std::function<std::string(const std::string& line, unsigned user)> answer);

// Asks the server whose socket it is; an input_error where none listens there or its answer is an error.
std::string ask_admin(const std::filesystem::path& path, const std::string& line);

}  // namespace bitfed
