// Exported C of models trained on real data: over the whole test set on the host, and on an emulated
// Cortex-M4.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "bitfed/base/error.h"
#include "bitfed/data/catalog.h"
#include "bitfed/simulation/experiment.h"
#include "bitfed/zoo/zoo.h"
#include "tests/edge/exported_c.h"

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

void expect_same_everywhere(const std::string& recipe, const std::vector<std::string>& overrides) {
  const std::optional<Trained> trained = train(recipe, overrides);
  if (!trained) GTEST_SKIP() << "no data for " << recipe;
  Answers expected = answers_of(*trained->model, trained->test);
  const Answers host = run_exported_c(*trained->model, trained->test, "-O2");
  EXPECT_EQ(host.classes, expected.classes);
  EXPECT_EQ(host.scores, expected.scores);
  // Classes that differ, or the test would say little.
  EXPECT_GT(*std::max_element(expected.classes.begin(), expected.classes.end()), 0);
  if (!have("arm-none-eabi-gcc") || !have("qemu-system-arm")) {
    GTEST_SKIP() << "packages gcc-arm-none-eabi, libnewlib-arm-none-eabi, qemu-system-arm";
  }
  expected.classes.resize(kDeviceSamples);
  expected.scores.resize(kDeviceSamples * trained->model->class_count());
  // With its floating-point unit and without.
  for (const char* flags : {"-mfloat-abi=hard -mfpu=fpv4-sp-d16 -O2", "-mfloat-abi=soft -std=c99 -Os"}) {
    const Answers device = run_on_cortex_m4(*trained->model, trained->test, kDeviceSamples, flags);
    EXPECT_EQ(device.classes, expected.classes) << flags;
    EXPECT_EQ(device.scores, expected.scores) << flags;
  }
}

TEST(ExportCSlow, HealthPerceptron) {
  expect_same_everywhere("health-hapt.toml", {"rounds=10"});
}

TEST(ExportCSlow, HealthTsetlinMachine) {
  expect_same_everywhere("health-tm.toml", {"rounds=1", "client.epochs=1"});
}

TEST(ExportCSlow, FashionConvolutionalTsetlinMachine) {
  expect_same_everywhere("quickstart.toml", {"client.epochs=1"});
}

TEST(ExportCSlow, FashionBinaryNetwork) {
  expect_same_everywhere("fedbnn-fashion-mnist.toml",
                         {"rounds=1", "client.epochs=1", "federation.clients_per_round=3"});
}

TEST(ExportCSlow, CifarComposite) {
  expect_same_everywhere("fedtmos-cifar10.toml",
                         {"client.epochs=1", "method.name=fedtm-bank", "data.partition.clients=40"});
}

}  // namespace
}  // namespace bitfed
