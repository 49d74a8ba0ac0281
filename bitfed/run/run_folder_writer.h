#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "bitfed/base/stopwatch.h"
#include "bitfed/run/events.h"

namespace bitfed {

// The folder that a run writes: made, locked against a second run, and checked to be fit for this one.
class RunFolderWriter {
 public:
  enum class Existing { kRefuse, kResume, kOverwrite };

  // `recipe` is the recipe as resolved. A run that is there already is an input_error unless `existing`
  // says what to do with it; one that was made by another recipe cannot be resumed.
  RunFolderWriter(std::filesystem::path folder, const std::string& recipe, Existing existing);
  ~RunFolderWriter() = default;
  RunFolderWriter(const RunFolderWriter&) = delete;
  RunFolderWriter& operator=(const RunFolderWriter&) = delete;

  const std::filesystem::path& path() const { return folder_; }
  std::filesystem::path checkpoint() const { return folder_ / "checkpoint"; }
  bool is_finished() const;

  // An input_error if the run was begun with other data: arrays, or a file that has changed since.
  void check_data(const std::string& fingerprint) const;

  // Appends a line to events.jsonl, with the time. The clients' progress is not logged. A log of 256 MiB
  // becomes events.jsonl.1, in place of an older one, and a new log begins. Lines of finished clients may be
  // written a moment later, with others: a round may have thousands.
  void log(const Event& event);

 private:
  void lock();
  void open_log();

  // Streams close themselves, also where the constructor throws: a refused folder does not stay locked.
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;

  std::filesystem::path folder_;
  File lock_;
  File log_;
  uint64_t log_bytes_ = 0;
  Stopwatch since_flush_;
};

}  // namespace bitfed
