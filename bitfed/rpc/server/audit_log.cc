#include "bitfed/rpc/server/audit_log.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>

#include "bitfed/base/error.h"
#include "bitfed/base/hash/digest.h"
#include "bitfed/run/fields.h"

namespace bitfed {

AuditCheck check_audit_log(const std::filesystem::path& file) {
  AuditCheck found{0, std::string(64, '0')};
  std::ifstream lines(file);
  std::string line;
  while (std::getline(lines, line)) {
    ++found.lines;
    const auto entry = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!entry.is_object() || entry.value("previous", "") != found.last)
      throw input_error("{}: line {}: does not follow from the line before it", file.string(), found.lines);
    found.last = sha256_hex(std::string_view(line));
  }
  return found;
}

AuditLog::AuditLog(const std::filesystem::path& file) : path_(file), last_(check_audit_log(file).last) {
  const int handle = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (handle >= 0) file_.reset(::fdopen(handle, "a"));
  if (file_ == nullptr) throw failure("{}: cannot be written: {}", file.string(), std::strerror(errno));
}

std::string AuditLog::append(AuditEntry entry) {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  entry.time = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", now);
  entry.previous = last_;
  const std::string line = write_fields(entry).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (std::fputs((line + "\n").c_str(), file_.get()) < 0 || std::fflush(file_.get()) != 0 ||
      ::fsync(fileno(file_.get())) != 0) {
    throw failure("{}: cannot be written: {}", path_.string(), std::strerror(errno));
  }
  last_ = sha256_hex(std::string_view(line));
  return last_;
}

}  // namespace bitfed
