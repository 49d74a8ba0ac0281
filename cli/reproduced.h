#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "bitfed/report/reproduction/reproduction.h"
#include "bitfed/simulation/reproduction.h"

namespace bitfed::cli {

// The table with the figures of all finished cells, also those of earlier calls. `not_run`: why a row was
// skipped.
ReproducedTable gather(const PaperTable& table, const ReproductionOptions& options,
                       const std::vector<ReproductionCell>& cells,
                       const std::map<size_t, std::string>& not_run);

// "4 x Some CPU; 4 clients at once, avx2, bitfed 0.1.0".
std::string machine_of(const RunSummary& summary);

// table.html, table.md, table.csv and table.tex.
void write_reproduced(const ReproducedTable& table, const std::filesystem::path& folder);

// "mnist/Dir(0.1): FedTMOS 98.17 ± 0.08 (paper 96.60 ± 1.85), fedtm-bank 98.42 ± 0.08".
std::string row_line(const ReproducedTable& table, size_t row);

}  // namespace bitfed::cli
