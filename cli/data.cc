#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"
#include "bitfed/data/catalog/catalog.h"
#include "bitfed/data/catalog/fetch.h"
#include "bitfed/data/check_split.h"
#include "bitfed/data/formats/sample_sheet.h"
#include "bitfed/data/pixel_statistics.h"
#include "cli/commands.h"
#include "cli/download_progress.h"

namespace bitfed::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSearchPathHelp =
    "Data is looked for in --data-dir, $BITFED_DATA, ./data, ~/.local/share/bitfed and\n"
    "/usr/share/datasets, in that order.";

std::string default_fetch_folder() {
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') {
    throw input_error("no folder to fetch into: $HOME is not set; name one with --data-dir");
  }
  return (fs::path(home) / ".local/share/bitfed").string();
}

std::string whereabouts(const DatasetEntry& entry, const std::string& data_dir) {
  if (entry.is_generated()) return "generated";
  if (const auto folder = find_dataset(entry, data_dir)) return folder->string();
  return entry.downloads.empty() ? "missing (see bitfed data info)" : "missing (can be fetched)";
}

void list(const std::string& data_dir) {
  size_t widest_name = 4;
  size_t widest_text = 11;
  for (const DatasetEntry& entry : datasets()) {
    widest_name = std::max(widest_name, entry.name.size());
    widest_text = std::max(widest_text, entry.description.size());
  }
  fmt::print("{:{}}  {:{}}  {}\n", "name", widest_name, "description", widest_text, "where");
  for (const DatasetEntry& entry : datasets()) {
    fmt::print("{:{}}  {:{}}  {}\n", entry.name, widest_name, entry.description, widest_text,
               whereabouts(entry, data_dir));
  }
}

std::vector<size_t> class_sizes(const Dataset& dataset) {
  std::vector<size_t> sizes(dataset.class_count());
  for (const uint16_t label : dataset.labels) ++sizes[label];
  return sizes;
}

std::string shape(const Dataset& dataset) {
  if (dataset.is_table()) return fmt::format("a table of {} columns", dataset.columns.size());
  return fmt::format("{} x {} pixels, {} {}", dataset.height, dataset.width, dataset.channels,
                     dataset.channels == 1 ? "channel" : "channels");
}

void print_classes(const DataSplit& split) {
  size_t widest = 5;
  for (const std::string& name : split.train.class_names) widest = std::max(widest, name.size());
  const std::vector<size_t> train = class_sizes(split.train);
  const std::vector<size_t> test = class_sizes(split.test);
  fmt::print("\n{:{}}  {:>7}  {:>7}\n", "class", widest, "train", "test");
  for (size_t i = 0; i < train.size(); ++i) {
    fmt::print("{:{}}  {:>7}  {:>7}\n", split.train.class_names[i], widest, train[i], test[i]);
  }
}

// The pixel statistics of the training images, to be put into a recipe's [data], and those in use without
// them.
void print_pixels(const Dataset& train) {
  const PixelStatistics measured = measure_pixels(train);
  fmt::print("pixels    pixel_mean = [{:.4f}], pixel_std = [{:.4f}]\n", fmt::join(measured.mean, ", "),
             fmt::join(measured.standard_deviation, ", "));
  if (train.pixel_mean.empty()) return;
  fmt::print("default   pixel_mean = [{}], pixel_std = [{}]\n", fmt::join(train.pixel_mean, ", "),
             fmt::join(train.pixel_std, ", "));
}

struct Options {
  std::string name;
  std::string data_dir;
  std::vector<std::string> keys;  // of [data], as label=activity
  std::string pictures;           // the file to write them to; empty: none
};

// What a recipe, a file or a folder names, as its [data] would.
DataSplit load_named(const Options& options) {
  const bool is_recipe = fs::path(options.name).extension() == ".toml";
  Config recipe = is_recipe ? Config::load(options.name) : Config::parse("[data]", options.name);
  if (!is_recipe)
    recipe.set(fs::is_directory(options.name) ? "data.folder" : "data.file",
               fmt::format("{:?}", options.name));
  for (const std::string& key : options.keys)
    recipe.set_all(std::vector<std::string>{key.starts_with("data.") ? key : "data." + key});
  const auto seed = static_cast<uint64_t>(recipe.integer("seed", 0, 0, INT64_MAX));
  const Config data = recipe.section("data");
  DataSplit split = load_data(data, options.data_dir, seed);
  check_split(split);
  if (!is_recipe) recipe.reject_unknown_keys();
  return split;
}

void write_pictures(const Dataset& train, const std::string& path) {
  if (train.is_table()) throw input_error("--pictures: {} is a table", train.name);
  write_file_atomically(path, encode_png(sample_sheet(train)));
  fmt::print(stderr, "wrote {}\n", path);
}

void info(const Options& options) {
  const std::vector<DatasetEntry>& known = datasets();
  const bool is_own = std::none_of(known.begin(), known.end(),
                                   [&](const DatasetEntry& entry) { return entry.name == options.name; });
  std::error_code code;
  if (is_own && !fs::exists(options.name, code)) find_entry(options.name);  // throws, with the nearest name
  const DataSplit split = is_own ? load_named(options) : load_dataset(options.name, options.data_dir);
  if (is_own) {
    fmt::print("name      {}\nwhere     {}\n", split.train.name, options.name);
  } else {
    const DatasetEntry& entry = find_entry(options.name);
    fmt::print("name      {}\nabout     {}\nlicence   {}\n", entry.name, entry.description, entry.licence);
    fmt::print("where     {}\n", whereabouts(entry, options.data_dir));
  }
  fmt::print("samples   {} for training, {} for testing\n", split.train.size(), split.test.size());
  fmt::print("shape     {}\nclasses   {}\n", shape(split.train), split.train.class_count());
  if (!split.train.is_table()) print_pixels(split.train);
  if (!split.train.groups.empty()) fmt::print("people    {}\n", split.train.group_names.size());
  for (const std::string& note : split.notes) fmt::print("note      {}\n", note);
  print_classes(split);
  if (!options.pictures.empty()) write_pictures(split.train, options.pictures);
}

void fetch(const std::string& name, const std::string& data_dir) {
  const DatasetEntry& entry = find_entry(name);
  if (entry.is_generated()) {
    fmt::print("{}: {}\n", name, entry.how_to_get);
    return;
  }
  const std::string folder = data_dir.empty() ? default_fetch_folder() : data_dir;
  if (has_files(entry, folder)) {
    fmt::print("{}: already in {}\n", name, folder);
    return;
  }
  fmt::print(stderr, "{}: {}\n", name, entry.licence);
  DownloadProgress progress;
  fetch_dataset(
      entry, folder, fetch_options_from_environment(),
      [&](const std::string& file, uint64_t done, uint64_t total) { progress.show(file, done, total); });
  progress.finish();
  fmt::print("{}: fetched into {}\n", name, folder);
}

}  // namespace

void add_data(Command& app) {
  Command* data = app.add_subcommand("data", "List, describe, download and partition data sets");
  data->footer(kSearchPathHelp);
  const auto options = std::make_shared<Options>();

  Command* list_command = data->add_subcommand("list", "The built-in data sets, and which of them are here");
  list_command->add_option("--data-dir", options->data_dir, "Look here first")->type_name("DIR");
  list_command->footer(kSearchPathHelp);
  list_command->callback([options] { list(options->data_dir); });

  Command* info_command =
      data->add_subcommand("info", "Load a data set and describe it: shape, classes, licence");
  info_command
      ->add_option("NAME-or-PATH", options->name,
                   "A name that 'bitfed data list' shows, a file, a folder of images, or a recipe")
      ->required();
  info_command->add_option("--set", options->keys, "A key of [data]: --set label=activity")
      ->type_name("KEY=VALUE")
      ->one_at_a_time();
  info_command->add_option("--pictures", options->pictures, "Write the first samples of every class")
      ->type_name("FILE.png");
  info_command->add_option("--data-dir", options->data_dir, "Look here first")->type_name("DIR");
  info_command->footer(
      "Examples:\n  bitfed data info mnist\n  bitfed data info pets/ --pictures pets.png\n"
      "  bitfed data info letters-images-idx3-ubyte --set labels=letters-labels-idx1-ubyte\n\n" +
      std::string(kSearchPathHelp));
  info_command->callback([options] { info(*options); });

  Command* fetch_command =
      data->add_subcommand("fetch", "Download a data set from its public home and check its sums");
  fetch_command->add_option("NAME", options->name, "A name that 'bitfed data list' shows")->required();
  fetch_command->add_option("--data-dir", options->data_dir, "Put it here (default: ~/.local/share/bitfed)")
      ->type_name("DIR");
  fetch_command->footer(
      "Example: bitfed data fetch mnist\n\n"
      "A file gets its final name only once its published sum is right. $BITFED_MIRROR names another\n"
      "server that offers the same paths, for example http://mirror.example:8080.");
  fetch_command->callback([options] { fetch(options->name, options->data_dir); });

  add_data_partition(*data);
}

}  // namespace bitfed::cli
