#include "cli/download_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace bitfed::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kBarWidth = 30;

std::string amount(uint64_t done, uint64_t total) {
  const double million = 1e6;
  if (total == 0) return fmt::format("{:.1f} MB", static_cast<double>(done) / million);
  return fmt::format("{:.1f} of {:.1f} MB", static_cast<double>(done) / million,
                     static_cast<double>(total) / million);
}

std::string bar(uint64_t done, uint64_t total) {
  if (total == 0) return "";
  const double part = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const int filled = static_cast<int>(part * kBarWidth);
  return fmt::format("[{:#<{}}{:-<{}}] ", "", filled, "", kBarWidth - filled);
}

}  // namespace

DownloadProgress::DownloadProgress() : terminal_(isatty(STDERR_FILENO) == 1), next_(Clock::now()) {}

DownloadProgress::~DownloadProgress() {
  finish();
}

void DownloadProgress::show(const std::string& file, uint64_t done, uint64_t total) {
  if (done == 0) return;
  const auto now = Clock::now();
  const bool complete = done == total;
  if (file != file_) {
    finish();
    file_ = file;
  } else if (now < next_ && !(terminal_ && complete)) {
    return;
  }
  next_ = now + (terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(3000));
  if (!terminal_) {
    fmt::print(stderr, "{}: {}\n", file, amount(done, total));
    return;
  }
  fmt::print(stderr, "\r\x1b[K{} {}{}", file, bar(done, total), amount(done, total));
  std::fflush(stderr);
  bar_open_ = true;
}

void DownloadProgress::finish() {
  if (bar_open_) fmt::print(stderr, "\n");
  bar_open_ = false;
}

}  // namespace bitfed::cli
