#include "bitfed/run/run_folder_writer.h"

#include <fmt/chrono.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"
#include "bitfed/base/text_difference.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code code;
  return fs::exists(path, code);
}

// Removes what a run writes, and nothing else that may lie in the folder. The recipe goes last: as long as
// anything of the old run is left, it says whose it is.
void remove_run(const fs::path& folder) {
  std::error_code code;
  for (const char* name : {"summary.json", "model.safetensors", "report.html", "events.jsonl"}) {
    fs::remove(folder / name, code);
  }
  for (const auto& entry : fs::directory_iterator(folder / "checkpoint", code)) {
    if (entry.path().filename() != "lock") fs::remove_all(entry.path(), code);
  }
  fs::remove(folder / "recipe.toml", code);
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
    if (const std::string before = read_text_file(recipe_file); before != recipe) {
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
  // A crash may have cut the last line short; the log goes on after the last whole one.
  if (is_there(file)) {
    const std::string text = read_text_file(file);
    const size_t whole = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
    std::error_code code;
    if (whole != text.size()) fs::resize_file(file, whole, code);
  }
  log_.reset(std::fopen(file.c_str(), "ae"));
  if (log_ == nullptr) throw failure("{}: cannot be written: {}", file.string(), std::strerror(errno));
}

void RunFolderWriter::log(const Event& event) {
  if (std::holds_alternative<ClientProgress>(event)) return;
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
  const std::string time = fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", seconds, (now - seconds).count());
  const std::string line = event_line(event, time) + "\n";
  if (std::fwrite(line.data(), 1, line.size(), log_.get()) != line.size() || std::fflush(log_.get()) != 0) {
    throw failure("{}: cannot be written: {}", (folder_ / "events.jsonl").string(), std::strerror(errno));
  }
}

}  // namespace bitfed
