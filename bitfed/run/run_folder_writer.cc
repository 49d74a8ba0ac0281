#include "bitfed/run/run_folder_writer.h"

#include <fmt/chrono.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"
#include "bitfed/base/text_difference.h"
#include "bitfed/run/same_recipe.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxLogBytes = uint64_t{256} << 20;
constexpr double kFlushSeconds = 0.1;

bool is_there(const fs::path& path) {
  std::error_code code;
  return fs::exists(path, code);
}

// Removes the files of a run and nothing else that may lie in the folder. The recipe is removed last: while
// files of the old run are left, it identifies them.
void remove_run(const fs::path& folder) {
  std::error_code code;
  for (const char* name :
       {"summary.json", "model.safetensors", "report.html", "events.jsonl", "samples.png"}) {
    fs::remove(folder / name, code);
  }
  for (const auto& entry : fs::directory_iterator(folder / "checkpoint", code)) {
    if (entry.path().filename() != "lock") fs::remove_all(entry.path(), code);
  }
  fs::remove(folder / "recipe.toml", code);
}

// A crash may have cut the last line short; the log goes on after the last whole one. Read from its end: the
// log of a long federation is larger than memory need be.
void cut_half_line(const fs::path& file) {
  std::error_code code;
  const uint64_t size = fs::file_size(file, code);
  std::ifstream log(file, std::ios::binary);
  uint64_t whole = size;
  for (char last = 0; whole > 0; --whole) {
    log.seekg(static_cast<std::streamoff>(whole - 1));
    if (!log.get(last) || last == '\n') break;
  }
  if (whole != size) fs::resize_file(file, whole, code);
}

}  // namespace

RunFolderWriter::RunFolderWriter(fs::path folder, const std::string& recipe, Existing existing)
    : folder_(std::move(folder)) {
  create_folders(checkpoint());
  lock();
  remove_half_written(folder_);
  const fs::path recipe_file = folder_ / "recipe.toml";
  if (is_there(recipe_file)) {
    if (existing == Existing::kRefuse) {
      throw input_error("{}: holds a run already; --resume goes on with it, --overwrite replaces it",
                        folder_.string());
    }
    if (existing == Existing::kOverwrite) remove_run(folder_);
  }
  if (is_there(recipe_file)) {
    if (const std::string before = read_text_file(recipe_file); !same_recipe(before, recipe)) {
      throw input_error("{}: the run was begun with another recipe: {}", recipe_file.string(),
                        first_difference(before, recipe));
    }
  } else {
    write_file_atomically(recipe_file, recipe);
  }
  open_log();
}

bool RunFolderWriter::is_finished() const {
  return is_there(folder_ / "summary.json");
}

void RunFolderWriter::check_data(const std::string& fingerprint) const {
  const fs::path file = checkpoint() / "data";
  if (!is_there(file)) {
    // A finished run of an earlier build has none.
    if (!is_finished()) write_file_atomically(file, fingerprint);
    return;
  }
  if (const std::string before = read_text_file(file); before != fingerprint) {
    throw input_error("{}: the run was begun with other data: found {}, expected {}", folder_.string(),
                      fingerprint, before);
  }
}

void RunFolderWriter::lock() {
  const fs::path file = checkpoint() / "lock";
  lock_.reset(std::fopen(file.c_str(), "ae"));
  if (lock_ == nullptr) throw failure("{}: cannot be written: {}", file.string(), std::strerror(errno));
  if (flock(fileno(lock_.get()), LOCK_EX | LOCK_NB) != 0) {
    throw input_error("{}: another bitfed is at work in this folder", folder_.string());
  }
}

void RunFolderWriter::open_log() {
  const fs::path file = folder_ / "events.jsonl";
  if (is_there(file)) cut_half_line(file);
  log_.reset(std::fopen(file.c_str(), "ae"));
  if (log_ == nullptr) throw failure("{}: cannot be written: {}", file.string(), std::strerror(errno));
  std::error_code code;
  log_bytes_ = fs::file_size(file, code);
}

void RunFolderWriter::log(const Event& event) {
  if (std::holds_alternative<ClientProgress>(event)) return;
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
  const std::string time = fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", seconds, (now - seconds).count());
  const std::string line = event_line(event, time) + "\n";
  const bool can_wait =
      std::holds_alternative<ClientFinished>(event) && since_flush_.seconds() < kFlushSeconds;
  if (std::fwrite(line.data(), 1, line.size(), log_.get()) != line.size() ||
      (!can_wait && std::fflush(log_.get()) != 0)) {
    throw failure("{}: cannot be written: {}", (folder_ / "events.jsonl").string(), std::strerror(errno));
  }
  if (!can_wait) since_flush_ = Stopwatch();
  log_bytes_ += line.size();
  if (log_bytes_ > kMaxLogBytes) {
    std::error_code code;
    fs::rename(folder_ / "events.jsonl", folder_ / "events.jsonl.1", code);
    open_log();
  }
}

}  // namespace bitfed
