#pragma once

#include "cli/command.h"

namespace bitfed {
struct ImageReaders;
}

namespace bitfed::cli {

// One file per subcommand; each adds itself with its options, help text and callback. A callback throws
// bitfed::Error; main() prints its line and chooses the exit status.
void add_run(Command& app);
void add_report(Command& app);
void add_reproduce(Command& app);
void add_sweep(Command& app);
void add_data(Command& app);
void add_data_partition(Command& data);  // a subcommand of data
void add_inspect(Command& app);
void add_predict(Command& app);
void add_export(Command& app);
void add_serve(Command& app);
void add_join(Command& app);
// The options of join itself, and of bitfed-client, which has no readers of images.
void add_join_options(Command& app, const ImageReaders& readers);
void add_certs(Command& app);
void add_admin(Command& app);
void add_forget(Command& app);
void add_privacy(Command& app);
void add_privacy_audit(Command& privacy);  // a subcommand of privacy
void add_listings(Command& app);           // methods, models, datasets

}  // namespace bitfed::cli
