#pragma once

#include <CLI/CLI.hpp>

namespace bitfed {
struct ImageReaders;
}

namespace bitfed::cli {

// One file per subcommand; each adds itself with its options, help text and callback. A callback throws
// bitfed::Error; main() prints its line and chooses the exit status.
void add_run(CLI::App& app);
void add_report(CLI::App& app);
void add_reproduce(CLI::App& app);
void add_sweep(CLI::App& app);
void add_data(CLI::App& app);
void add_data_partition(CLI::App& data);  // a subcommand of data
void add_inspect(CLI::App& app);
void add_predict(CLI::App& app);
void add_export(CLI::App& app);
void add_serve(CLI::App& app);
void add_join(CLI::App& app);
// The options of join itself, and of bitfed-client, which has no readers of images.
void add_join_options(CLI::App& app, const ImageReaders& readers);
void add_certs(CLI::App& app);
void add_admin(CLI::App& app);
void add_forget(CLI::App& app);
void add_privacy(CLI::App& app);
void add_privacy_audit(CLI::App& privacy);  // a subcommand of privacy
void add_listings(CLI::App& app);           // methods, models, datasets

}  // namespace bitfed::cli
