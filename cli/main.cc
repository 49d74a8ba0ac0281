#include <fmt/format.h>

#include <cstdio>

#include "bitfed/base/error.h"
#include "cli/commands.h"

int main(int argc, char** argv) {
  CLI::App app("Federated learning with one-bit models", "bitfed");
  app.require_subcommand(1);
  try {
    bitfed::cli::add_data(app);
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const bitfed::Error& error) {
    fmt::print(stderr, "bitfed: {}\n", error.what());
    return error.kind() == bitfed::Error::Kind::kInput ? 2 : 1;
  }
}
