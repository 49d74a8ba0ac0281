#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace bitfed {

// One line: an act that begins, or its outcome.
struct AuditEntry {
  std::optional<uint32_t> user = {};     // of the server's machine who asked, or
  std::optional<std::string> name = {};  // the operator's, over the network
  std::optional<std::string> act = {};
  std::optional<std::string> done = {};
  std::optional<std::string> failed = {};
  std::optional<std::string> text = {};  // why it failed
  std::string time = {};                 // UTC; set by append(), as is what follows
  std::string previous = {};

  static void fields(auto& self, auto& field) {
    field.if_set("user", self.user);
    field.if_set("operator", self.name);
    field.if_set("act", self.act);
    field.if_set("done", self.done);
    field.if_set("failed", self.failed);
    field.if_set("text", self.text);
    field("time", self.time);
    field("previous", self.previous);
  }
};

// The acts of operators, appended to a file as one JSON object per line. Every line holds the SHA-256 of the
// line before it ("previous"): a line that is changed, removed or inserted breaks the chain at that place.
// Removed last lines show only to a reader who knows the digest of the last line; append() returns it.
class AuditLog {
 public:
  // Goes on after the lines of an existing file; an input_error where their chain is broken.
  explicit AuditLog(const std::filesystem::path& file);

  // Adds time and chain; durable when it returns.
  std::string append(AuditEntry entry);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::string last_;  // digest of the last line
};

struct AuditCheck {
  size_t lines = 0;
  std::string last;  // digest of the last line; 64 zeros where there is none
};

// An input_error that names the first line which does not follow from the one before.
AuditCheck check_audit_log(const std::filesystem::path& file);

}  // namespace bitfed
