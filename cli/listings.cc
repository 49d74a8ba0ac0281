#include <fmt/format.h>

#include "bitfed/data/catalog/catalog.h"
#include "bitfed/federated/method.h"
#include "bitfed/zoo/zoo.h"
#include "cli/commands.h"

namespace bitfed::cli {
namespace {

// One line each, the names aligned.
template <typename Entry>
void print_entries(const std::vector<Entry>& entries) {
  size_t width = 0;
  for (const Entry& entry : entries) width = std::max(width, entry.name.size());
  for (const Entry& entry : entries) fmt::print("{:<{}}  {}\n", entry.name, width, entry.description);
}

}  // namespace

void add_listings(Command& app) {
  app.add_subcommand("methods", "The methods that a recipe's [method] can name")->callback([] {
    print_entries(methods());
  });
  app.add_subcommand("models", "The models that a recipe's [model] can name")->callback([] {
    print_entries(models());
  });
  app.add_subcommand("datasets", "The data sets that a recipe's [data] can name")->callback([] {
    print_entries(datasets());
  });
}

}  // namespace bitfed::cli
