#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>

#include "bitfed/base/error.h"
#include "cli/commands.h"

namespace {

constexpr int kFailed = 1;
constexpr int kBadInput = 2;

int run(int argc, char** argv) {
  CLI::App app(
      "Federated learning with one-bit models: simulate a federation on this machine, compare methods,\n"
      "run it between machines, look at the result, predict with it.",
      "bitfed");
  app.require_subcommand(1);
  app.set_version_flag("--version", BITFED_VERSION);
  app.footer(
      "Try:\n"
      "  bitfed data list                        which data sets are here\n"
      "  bitfed run recipes/quickstart.toml      ten clients, one shot, a report\n"
      "  bitfed reproduce                        run a paper's table and compare with its figures\n"
      "  bitfed run --help                       what a recipe is and how to change it");
  bitfed::cli::add_run(app);
  bitfed::cli::add_report(app);
  bitfed::cli::add_reproduce(app);
  bitfed::cli::add_sweep(app);
  bitfed::cli::add_data(app);
  bitfed::cli::add_inspect(app);
  bitfed::cli::add_predict(app);
  bitfed::cli::add_export(app);
  bitfed::cli::add_forget(app);
  bitfed::cli::add_privacy(app);
#ifdef BITFED_RPC
  bitfed::cli::add_serve(app);
  bitfed::cli::add_join(app);
  bitfed::cli::add_certs(app);
  bitfed::cli::add_admin(app);
#else
  for (const char* name : {"serve", "join", "certs", "admin"}) {
    app.add_subcommand(name, "(federation between machines: not in this build)")
        ->allow_extras()
        ->callback([name] {
          throw bitfed::failure(
              "{} is not in this build, which found no gRPC, protobuf, SQLite or OpenSSL: install their "
              "development packages (rpc_packages in scripts/setup.sh), then configure with -DBITFED_RPC=ON "
              "and "
              "build again",
              name);
        });
  }
#endif
  bitfed::cli::add_listings(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadInput;
  }
  // Results that could not be written are no results.
  if (std::fflush(stdout) != 0) throw bitfed::failure("standard output: cannot be written");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const bitfed::Error& error) {
    fmt::print(stderr, "bitfed: {}\n", error.what());
    return error.kind() == bitfed::Error::Kind::kInput ? kBadInput : kFailed;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "bitfed: out of memory\n");
  } catch (const std::exception& error) {
    fmt::print(stderr, "bitfed: {}\n", error.what());
  }
  return kFailed;
}
