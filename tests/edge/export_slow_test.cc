// Models trained on real data, over the whole test set: the engine on every instruction set, the layers that
// were trained, exported C on the host (and some of it on an emulated Cortex-M4), ONNX in onnxruntime. Of
// ONNX also models of random numbers.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

#include "bitfed/base/error.h"
#include "bitfed/bits/kernels.h"
#include "bitfed/data/catalog/catalog.h"
#include "bitfed/edge/onnx/export_onnx.h"
#include "bitfed/nn/products/sign_bits.h"
#include "bitfed/simulation/experiment.h"
#include "bitfed/zoo/network/network_predictor.h"
#include "bitfed/zoo/zoo.h"
#include "tests/edge/exported_c.h"
#include "tests/edge/some_models.h"

namespace bitfed {
namespace {

constexpr size_t kDeviceSamples = 100;

struct Trained {
  std::unique_ptr<Model> model;
  Dataset test;
};

// A short run of a recipe of ours; nothing where its data is not at hand.
std::optional<Trained> train(const std::string& recipe_name, const std::vector<std::string>& overrides) {
  const TemporaryFolder folder;
  Config recipe = Config::load(std::string(BITFED_TESTS_DIR) + "/../recipes/" + recipe_name);
  recipe.set_all(overrides);
  const Config data = recipe.section("data");
  Trained trained;
  try {
    trained.test = load_data(data, "", 0).test;
  } catch (const Error&) {
    return std::nullopt;
  }
  ExperimentOptions options;
  options.out = folder / "run";
  run_experiment(recipe, options, [](const Event&) {});
  const std::string path = folder / "run/model.safetensors";
  trained.model = load_model(read_state(path), path);
  return trained;
}

std::string samples_as_c(const Dataset& samples, size_t count) {
  const bool table = samples.is_table();
  std::string text = fmt::format(
      "#include \"model.h\"\nextern const unsigned sample_count;\nextern const model_input samples[];\n"
      "const unsigned sample_count = {};\nconst model_input samples[] = {{\n",
      count);
  for (size_t i = 0; i < count; ++i) {
    if (table) {
      for (const float value : samples.row(i)) text += fmt::format("{:a}f,", value);
    } else {
      for (const uint8_t pixel : samples.image(i)) text += fmt::format("{},", pixel);
    }
    text += "\n";
  }
  return text + "};\n";
}

float float_of_hex(const std::string& text) {
  const auto bits = static_cast<uint32_t>(std::stoul(text, nullptr, 16));
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

bool have(const char* tool) {
  return std::system(("command -v " + std::string(tool) + " >/dev/null").c_str()) == 0;
}

// Builds for a Cortex-M4 and runs it under qemu; prints what it takes of flash and RAM.
Answers run_on_cortex_m4(const Model& model, const Dataset& samples, size_t count, const std::string& flags) {
  const TemporaryFolder folder;
  write_c(export_c(model, "model", std::vector<std::string>(model.class_count(), "a")), folder.path());
  write_file_atomically(folder / "samples.c", samples_as_c(samples, count));
  const std::string board = std::string(BITFED_TESTS_DIR) + "/edge/cortex_m4/";
  const std::string build =
      "cd '" + folder.path().string() +
      "' && arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb -Wall -Wextra -Werror " + flags +
      " -I. -c model.c samples.c '" + board +
      "board.c' && arm-none-eabi-size model.o && arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb " + flags +
      " -nostartfiles -T '" + board + "memory.ld' *.o -o image.elf";
  EXPECT_EQ(std::system(build.c_str()), 0) << build;
  const std::string run =
      "cd '" + folder.path().string() +
      "' && timeout 900 qemu-system-arm -M mps2-an386 -nographic -monitor none -serial none "
      "-semihosting-config enable=on,target=native -kernel image.elf >answers 2>&1 </dev/null";
  EXPECT_EQ(std::system(run.c_str()), 0) << read_text_file(folder / "answers").substr(0, 1000);
  Answers answers;
  std::ifstream words(folder / "answers");
  std::string word;
  for (size_t i = 0; words >> word; ++i) {
    if (i % (model.class_count() + 1) == 0) {
      answers.classes.push_back(static_cast<uint16_t>(std::stoul(word, nullptr, 16)));
    } else {
      answers.scores.push_back(float_of_hex(word));
    }
  }
  return answers;
}

// A Python with onnx and onnxruntime: the system's, or one in an environment of our own; "" where there is
// none.
std::string onnx_python() {
  static const std::string kFound = [] {
    const std::string packages = "onnx onnxruntime numpy";
    const std::string try_import = " -c 'import onnx, onnxruntime, numpy' >/dev/null 2>&1";
    if (std::system(("python3" + try_import).c_str()) == 0) return std::string("python3");
    const std::string folder = testing::TempDir() + "bitfed-onnx";
    const std::string python = folder + "/bin/python";
    if (std::system((python + try_import).c_str()) == 0) return python;
    const std::string make = "python3 -m venv " + folder + " >/dev/null 2>&1 && " + folder +
                             "/bin/pip install --quiet --disable-pip-version-check " + packages;
    return std::system(make.c_str()) == 0 ? python : std::string();
  }();
  return kFound;
}

void expect_same_in_onnxruntime(const Model& model, const Dataset& samples, const Answers& expected) {
  const std::string python = onnx_python();
  if (python.empty()) GTEST_SKIP() << "no Python packages onnx and onnxruntime";
  const TemporaryFolder folder;
  write_file_atomically(folder / "model.onnx",
                        export_onnx(model, "model", std::vector<std::string>(model.class_count(), "a")));
  write_file_atomically(folder / "samples", raw_samples(samples));
  std::string lines;
  for (size_t i = 0; i < expected.classes.size(); ++i) {
    lines += std::to_string(expected.classes[i]);
    for (size_t k = 0; k < model.class_count(); ++k)
      lines += fmt::format(" {:.9g}", expected.scores[i * model.class_count() + k]);
    lines += "\n";
  }
  write_file_atomically(folder / "answers", lines);
  const std::string check = python + " " + BITFED_TESTS_DIR + "/edge/check_onnx.py " +
                            (folder / "model.onnx").string() + " " + (folder / "samples").string() + " " +
                            (folder / "answers").string();
  EXPECT_EQ(std::system(check.c_str()), 0) << check;
}

// The layers that were trained, of signs as floats.
void expect_same_in_layers(const NetworkModel& model, const Dataset& samples, const Answers& expected) {
  const State state = model.state();
  NetworkParameters parameters;
  for (const NetworkTensor& tensor : network_tensors(model.architecture())) {
    parameters.push_back(tensor.signs ? unpack_signs(state.values<uint8_t>(tensor.name, {State::kAny}),
                                                     tensor.count(), tensor.name)
                                      : state.values<float>(tensor.name, {tensor.rows, tensor.columns}));
  }
  std::vector<float> scores(expected.scores.size());
  make_layers_predictor(model.spec(), parameters)->predict(samples_of(samples), scores.data());
  EXPECT_EQ(scores, expected.scores);
}

void expect_same_in_engine(const Model& model, const Dataset& samples, const Answers& expected) {
  const std::string before = kernels().name;
  for (const Kernels* table : supported_kernels()) {
    force_kernels(table->name);
    EXPECT_EQ(answers_of(model, samples).scores, expected.scores) << table->name;
  }
  force_kernels(before);
  if (const auto* network = dynamic_cast<const NetworkModel*>(&model))
    expect_same_in_layers(*network, samples, expected);
}

// For networks that C cannot carry.
void expect_same_in_onnxruntime(const std::string& recipe, const std::vector<std::string>& overrides) {
  const std::optional<Trained> trained = train(recipe, overrides);
  if (!trained) GTEST_SKIP() << "no data for " << recipe;
  const Answers expected = answers_of(*trained->model, trained->test);
  EXPECT_GT(*std::max_element(expected.classes.begin(), expected.classes.end()), 0);
  expect_same_in_engine(*trained->model, trained->test, expected);
  expect_same_in_onnxruntime(*trained->model, trained->test, expected);
}

// Over the whole test set on the host, and over some of it on a device.
void expect_same_in_c(const Trained& trained) {
  Answers expected = answers_of(*trained.model, trained.test);
  expect_same_in_engine(*trained.model, trained.test, expected);
  const Answers host = run_exported_c(*trained.model, trained.test, "-O2");
  EXPECT_EQ(host.classes, expected.classes);
  EXPECT_EQ(host.scores, expected.scores);
  // Classes that differ, or the test would say little.
  EXPECT_GT(*std::max_element(expected.classes.begin(), expected.classes.end()), 0);
  if (!have("arm-none-eabi-gcc") || !have("qemu-system-arm")) {
    GTEST_SKIP() << "packages gcc-arm-none-eabi, libnewlib-arm-none-eabi, qemu-system-arm";
  }
  expected.classes.resize(kDeviceSamples);
  expected.scores.resize(kDeviceSamples * trained.model->class_count());
  // With its floating-point unit and without.
  for (const char* flags : {"-mfloat-abi=hard -mfpu=fpv4-sp-d16 -O2", "-mfloat-abi=soft -std=c99 -Os"}) {
    const Answers device = run_on_cortex_m4(*trained.model, trained.test, kDeviceSamples, flags);
    EXPECT_EQ(device.classes, expected.classes) << flags;
    EXPECT_EQ(device.scores, expected.scores) << flags;
  }
}

// `onnx_samples`: runtimes take their time over thousands of clauses as filters.
void expect_same_everywhere(const std::string& recipe, const std::vector<std::string>& overrides,
                            size_t onnx_samples = 100000) {
  const std::optional<Trained> trained = train(recipe, overrides);
  if (!trained) GTEST_SKIP() << "no data for " << recipe;
  std::vector<uint32_t> first(std::min(onnx_samples, trained->test.size()));
  std::iota(first.begin(), first.end(), 0u);
  const Dataset some = subset(trained->test, first);
  expect_same_in_onnxruntime(*trained->model, some, answers_of(*trained->model, some));
  expect_same_in_c(*trained);
}

TEST(ExportSlow, RandomModelsInOnnxruntime) {
  for (const std::vector<SomeModel>& models :
       {some_tsetlin_models(), some_mlp_models(), some_network_models(), some_resnet_models(),
        some_custom_networks()}) {
    for (const SomeModel& some : models) {
      SCOPED_TRACE(some.name);
      expect_same_in_onnxruntime(*some.model, some.samples, answers_of(*some.model, some.samples));
    }
  }
}

TEST(ExportSlow, CodeOfRandomModelsKeepsToItsMemory) {
  for (const std::vector<SomeModel>& models :
       {some_tsetlin_models(), some_mlp_models(), some_network_models(), some_static_networks()}) {
    for (const SomeModel& some : models) {
      const Answers found = run_exported_c(*some.model, some.samples,
                                           "-g -fsanitize=address,undefined -fno-sanitize-recover=all");
      EXPECT_EQ(found.scores, answers_of(*some.model, some.samples).scores) << some.name;
    }
  }
}

TEST(ExportSlow, HealthPerceptron) {
  expect_same_everywhere("health-hapt.toml", {"rounds=10"});
}

TEST(ExportSlow, HealthTsetlinMachine) {
  expect_same_everywhere("health-tm.toml", {"rounds=1", "client.epochs=1"});
}

TEST(ExportSlow, FashionConvolutionalTsetlinMachine) {
  expect_same_everywhere("quickstart.toml", {"client.epochs=1"}, 1000);
}

TEST(ExportSlow, FashionBinaryNetwork) {
  expect_same_everywhere("fedbnn-fashion-mnist.toml",
                         {"rounds=1", "client.epochs=1", "federation.clients_per_round=3"});
}

TEST(ExportSlow, CifarBinaryResnet) {
  expect_same_in_onnxruntime("fedbnn-cifar10.toml", {"model.width=16", "rounds=2", "client.epochs=2",
                                                     "federation.clients_per_round=2"});
}

TEST(ExportSlow, CifarRealResnet) {
  expect_same_in_onnxruntime("fedbnn-cifar10.toml",
                             {"method.name=fedavg", "model.width=8", "rounds=1", "client.epochs=2",
                              "federation.clients_per_round=2", "client.learning_rate=0.05"});
}

TEST(ExportSlow, FashionStaticNetwork) {
  expect_same_everywhere(
      "fedbnn-fashion-mnist.toml",
      {"rounds=1", "client.epochs=1", "federation.clients_per_round=3", "model.deploy=static"});
}

TEST(ExportSlow, CifarComposite) {
  expect_same_everywhere("fedtmos-cifar10.toml",
                         {"client.epochs=1", "method.name=fedtm-bank", "data.partition.clients=40"}, 100);
}

}  // namespace
}  // namespace bitfed
