#include "bitfed/data/catalog/catalog.h"
#include "bitfed/data/catalog/own_data.h"
#include "bitfed/rpc/device/own_samples.h"
#include "cli/commands.h"

namespace bitfed::cli {

void add_join(Command& app) {
  add_join_options(*app.add_subcommand("join", "Take part in a federation with the data of this device"),
                   {load_data, load_own_training});
}

}  // namespace bitfed::cli
