#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "bitfed/base/byte_io.h"
#include "bitfed/edge/c/export_c.h"
#include "bitfed/edge/onnx/export_onnx.h"
#include "bitfed/report/humanise.h"
#include "bitfed/zoo/model_file.h"
#include "cli/commands.h"

namespace bitfed::cli {
namespace {

struct ExportArguments {
  std::string model;
  std::string format;
  std::string out;
  std::string name = "model";
};

void write_c(const ExportArguments& arguments, const ModelFile& file) {
  const CExport code = export_c(*file.model, arguments.name, file.class_names, file.columns);
  const std::filesystem::path folder = arguments.out;
  create_folders(folder);
  write_file_atomically(folder / (arguments.name + ".h"), code.header);
  write_file_atomically(folder / (arguments.name + ".c"), code.source);
  write_file_atomically(folder / "main.c", code.trial);
  fmt::print("{0}/{1}.h, {1}.c   the model\n{0}/main.c   for trying it: cc -std=c99 -O2 {1}.c main.c\n",
             arguments.out, arguments.name);
  fmt::print("flash   {} bytes of tables, and the code\nRAM     {} bytes, and the stack\n",
             exact_count(code.table_bytes), exact_count(code.ram_bytes));
}

void write_onnx(const ExportArguments& arguments, const ModelFile& file) {
  const Bytes bytes = export_onnx(*file.model, arguments.name, file.class_names, file.columns);
  const std::filesystem::path path = std::filesystem::path(arguments.out) / (arguments.name + ".onnx");
  create_folders(arguments.out);
  write_file_atomically(path, bytes);
  fmt::print("{}   {} bytes\n", path.string(), exact_count(bytes.size()));
}

void export_model(const ExportArguments& arguments) {
  const ModelFile file = read_model_file(arguments.model);
  arguments.format == "c" ? write_c(arguments, file) : write_onnx(arguments, file);
}

}  // namespace

void add_export(Command& app) {
  auto arguments = std::make_shared<ExportArguments>();
  Command* command =
      app.add_subcommand("export", "Write a model in a form that runs without bitfed, with the same answers");
  command->add_option("MODEL", arguments->model, "A model.safetensors of a run")->required();
  command
      ->add_option("--format", arguments->format,
                   "c: a header and a source of C99 for microcontrollers: no heap, tables in flash\n"
                   "onnx: standard operators of opset 17, for ONNX runtimes")
      ->one_of({"c", "onnx"})
      ->required();
  command->add_option("--out", arguments->out, "The folder to write to")->type_name("DIR")->required();
  command->add_option("--name", arguments->name, "Names the files and functions")->show_default();
  command->callback([arguments] { export_model(*arguments); });
}

}  // namespace bitfed::cli
