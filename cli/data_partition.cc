#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"
#include "bitfed/data/catalog/catalog.h"
#include "bitfed/data/partition/partition.h"
#include "bitfed/report/charts/partition_picture.h"
#include "cli/commands.h"

namespace bitfed::cli {
namespace {

// Up to this many classes a terminal has room for counts; with more, cells are shaded.
constexpr size_t kMaxNumberedClasses = 12;

struct PartitionOptions {
  std::string recipe;
  std::string out = "partition.svg";
  std::string data_dir;
  std::vector<std::string> sets;
  std::optional<uint64_t> seed;
};

Config load_recipe(const PartitionOptions& options) {
  Config recipe = Config::load(options.recipe);
  recipe.set_all(options.sets);
  if (options.seed) recipe.set("seed", fmt::format("{}", *options.seed));
  return recipe;
}

std::string_view shade(uint32_t count, uint32_t most) {
  constexpr std::string_view kShades[] = {"░", "▒", "▓", "█"};
  if (count == 0) return "·";
  return kShades[std::min<uint64_t>(3, uint64_t{count} * 4 / (uint64_t{most} + 1))];
}

std::string client_line(const std::vector<uint32_t>& counts, uint32_t most) {
  std::string line;
  for (const uint32_t count : counts) {
    if (counts.size() <= kMaxNumberedClasses) {
      fmt::format_to(std::back_inserter(line), " {:>6}", count);
    } else {
      line += shade(count, most);
    }
  }
  return line;
}

void print_table(const std::vector<std::vector<uint32_t>>& counts) {
  uint32_t most = 0;
  for (const auto& row : counts) most = std::max(most, *std::max_element(row.begin(), row.end()));
  const size_t classes = counts.front().size();
  std::string head = "client   total ";
  if (classes <= kMaxNumberedClasses) {
    for (size_t c = 0; c < classes; ++c)
      fmt::format_to(std::back_inserter(head), " {:>6}", fmt::format("[{}]", c));
  } else {
    head += fmt::format(" classes 0 … {}", classes - 1);
  }
  fmt::print("{}\n", head);
  for (size_t client = 0; client < counts.size(); ++client) {
    const uint64_t total = std::accumulate(counts[client].begin(), counts[client].end(), uint64_t{0});
    fmt::print("{:>6} {:>7}  {}\n", client, total, client_line(counts[client], most));
  }
}

void draw_partition(const PartitionOptions& options) {
  const Config recipe = load_recipe(options);
  const auto seed = static_cast<uint64_t>(recipe.integer("seed", 0, 0, INT64_MAX));
  const Config data = recipe.section("data");
  const PartitionSpec spec = read_partition(data.section("partition"));
  const DataSplit split = load_data(data, options.data_dir, seed);
  const auto counts = class_counts(split.train, make_partition(split.train, spec, seed));
  const std::string title = fmt::format("{}: {}", split.train.name, describe(spec));
  write_file_atomically(options.out,
                        std::string_view(partition_picture(counts, split.train.class_names, title)));
  fmt::print("{}\n", title);
  print_table(counts);
  for (const std::string& note : split.notes) fmt::print(stderr, "note: {}\n", note);
  fmt::print(stderr, "wrote {}\n", options.out);
}

}  // namespace

void add_data_partition(Command& data) {
  auto options = std::make_shared<PartitionOptions>();
  Command* command = data.add_subcommand("partition", "Show how a recipe deals the samples to its clients");
  command->add_option("RECIPE", options->recipe, "The recipe")->required()->type_name("FILE.toml");
  command->add_option("--out", options->out, "The picture to write")->type_name("FILE.svg")->show_default();
  command->add_option("--set", options->sets, "Override a value of the recipe")->type_name("key=value");
  command->add_option("--data-dir", options->data_dir, "Where to look for data first")->type_name("DIR");
  command->add_option("--seed", options->seed, "Instead of the recipe's seed");
  command->callback([options] { draw_partition(*options); });
}

}  // namespace bitfed::cli
