// bitfed-client: bitfed join alone, for devices.

#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "bitfed/base/error.h"
#include "bitfed/rpc/device/own_samples.h"
#include "cli/commands.h"

int main(int argc, char** argv) {
  try {
    bitfed::cli::Command app("bitfed-client", "Take part in a federation with the data of this device.");
    app.set_version(BITFED_VERSION);
    bitfed::cli::add_join_options(app, {});
    app.run(argc, argv);
    return 0;
  } catch (const bitfed::Error& error) {
    fmt::print(stderr, "bitfed-client: {}\n", error.what());
    return error.kind() == bitfed::Error::Kind::kInput ? 2 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bitfed-client: {}\n", error.what());
  }
  return 1;
}
