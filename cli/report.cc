#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bitfed/base/byte_io.h"
#include "bitfed/report/pages/comparison.h"
#include "bitfed/report/pages/page.h"
#include "cli/commands.h"

namespace bitfed::cli {
namespace {

struct ReportOptions {
  std::vector<std::string> folders;
  std::string out;
  bool json = false;
};

std::filesystem::path page_path(const ReportOptions& options) {
  if (!options.out.empty()) return options.out;
  const std::filesystem::path name = "report.html";
  return options.folders.size() == 1 ? options.folders[0] / name : name;
}

// The summaries as the runs wrote them, each with its folder.
std::string as_json(const std::vector<RunFolder>& runs, const std::filesystem::path& page) {
  nlohmann::ordered_json document;
  document["report"] = page.string();
  document["runs"] = nlohmann::ordered_json::array();
  for (const RunFolder& run : runs) {
    auto as_found = nlohmann::ordered_json::parse(run.summary_text);
    as_found["folder"] = run.folder.string();
    document["runs"].push_back(std::move(as_found));
  }
  return document.dump(2);
}

void write_report(const ReportOptions& options) {
  std::vector<RunFolder> runs;
  for (const std::string& folder : options.folders) runs.push_back(read_run_with_model(folder));
  const std::filesystem::path page = page_path(options);
  write_file_atomically(page, std::string_view(report_page(runs)));
  if (options.json) {
    fmt::print("{}\n", as_json(runs, page));
  } else {
    fmt::print("{}", comparison_text(runs));
    fmt::print(stderr, "wrote {}\n", page.string());
  }
}

}  // namespace

void add_report(Command& app) {
  auto options = std::make_shared<ReportOptions>();
  Command* command = app.add_subcommand("report", "Compare runs: one page of curves, tables and costs");
  command->add_option("DIR", options->folders, "A run's folder; several are compared")->required();
  command
      ->add_option("--out", options->out,
                   "The page to write (default: DIR/report.html, of several ./report.html)")
      ->type_name("FILE.html");
  command->add_flag("--json", options->json, "Print one JSON document instead of a table");
  command->callback([options] { write_report(*options); });
}

}  // namespace bitfed::cli
