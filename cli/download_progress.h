#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace bitfed::cli {

// Shows how far a download is, on standard error: a bar on a terminal, elsewhere a line every few seconds.
class DownloadProgress {
 public:
  DownloadProgress();
  ~DownloadProgress();  // leaves the cursor at the start of a line

  void show(const std::string& file, uint64_t done, uint64_t total);
  void finish();

 private:
  bool terminal_ = false;
  bool bar_open_ = false;
  std::string file_;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace bitfed::cli
