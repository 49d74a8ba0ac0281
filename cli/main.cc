#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>

#include "bitfed/base/error.h"
#include "bitfed/mpi/launcher.h"
#include "cli/commands.h"

namespace {

constexpr int kFailed = 1;
constexpr int kBadInput = 2;

int run(int argc, char** argv) {
  bitfed::cli::Command app(
      "bitfed",
      "Federated learning with one-bit models: simulate a federation on this machine, compare methods,\n"
      "run it between machines, look at the result, predict with it.");
  app.set_version(BITFED_VERSION);
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
    auto* command = app.add_subcommand(name, "(federation between machines: not in this build)");
    command->accept_anything();
    command->callback([name] {
      throw bitfed::failure(
          "{} is not in this build, which found no gRPC, protobuf, SQLite or OpenSSL: install their "
          "development packages (rpc_packages in scripts/setup.sh), then configure with -DBITFED_RPC=ON "
          "and build again",
          name);
    });
  }
#endif
  bitfed::cli::add_listings(app);
  app.run(argc, argv);
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
    fmt::print(stderr, "bitfed: {}out of memory\n", bitfed::own_rank_prefix());
  } catch (const std::exception& error) {
    fmt::print(stderr, "bitfed: {}\n", error.what());
  }
  return kFailed;
}
