// bitfed-client: bitfed join alone, for devices.

#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "bitfed/base/error.h"
#include "bitfed/rpc/device/own_samples.h"
#include "cli/commands.h"

int main(int argc, char** argv) {
  try {
    CLI::App app("Take part in a federation with the data of this device.", "bitfed-client");
    app.set_version_flag("--version", BITFED_VERSION);
    bitfed::cli::add_join_options(app, {});
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return app.exit(error) == 0 ? 0 : 2;
    }
    return 0;
  } catch (const bitfed::Error& error) {
    fmt::print(stderr, "bitfed-client: {}\n", error.what());
    return error.kind() == bitfed::Error::Kind::kInput ? 2 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bitfed-client: {}\n", error.what());
  }
  return 1;
}
