#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "bitfed/base/byte_io.h"
#include "bitfed/edge/c/export_c.h"
#include "tests/base/temporary_folder.h"

namespace bitfed {

// What a model says of samples: for each the class, then the scores.
struct Answers {
  std::vector<uint16_t> classes;
  std::vector<float> scores;
};

inline Answers answers_of(const Model& model, const Dataset& samples) {
  ThreadPool pool(1);
  return {predict(model, samples, pool), model.scores(samples, pool)};
}

// Samples as the trial program reads them.
inline Bytes raw_samples(const Dataset& samples) {
  if (!samples.is_table()) return {samples.pixels.begin(), samples.pixels.end()};
  const auto* first = reinterpret_cast<const uint8_t*>(samples.values.data());
  return {first, first + samples.values.size() * sizeof(float)};
}

// Reads the lines of the trial program.
inline Answers read_answers(const std::filesystem::path& path, size_t classes) {
  Answers answers;
  std::ifstream lines(path);
  for (std::string line; std::getline(lines, line);) {
    const char* at = line.c_str();
    char* end = nullptr;
    answers.classes.push_back(static_cast<uint16_t>(std::strtol(at, &end, 10)));
    for (size_t k = 0; k < classes; ++k) {
      at = end;
      answers.scores.push_back(std::strtof(at, &end));
      EXPECT_NE(at, end) << line;
    }
    EXPECT_EQ(*end, '\0') << line;
  }
  return answers;
}

inline void write_c(const CExport& code, const std::filesystem::path& folder) {
  write_file_atomically(folder / "model.h", code.header);
  write_file_atomically(folder / "model.c", code.source);
  write_file_atomically(folder / "main.c", code.trial);
}

// Exports, compiles with the host's compiler and runs over the samples.
inline Answers run_exported_c(const Model& model, const Dataset& samples, const std::string& flags = "") {
  const TemporaryFolder folder;
  std::vector<std::string> names;
  for (size_t k = 0; k < model.class_count(); ++k) names.push_back("class \"" + std::to_string(k) + "\"?\?/");
  write_c(export_c(model, "model", names), folder.path());
  write_file_atomically(folder / "samples", raw_samples(samples));
  const std::string in = "cd '" + folder.path().string() + "' && ";
  const std::string compile =
      in + "cc -std=c99 -Wall -Wextra -pedantic -Werror -O1 " + flags + " model.c main.c -o trial";
  EXPECT_EQ(std::system(compile.c_str()), 0) << compile;
  EXPECT_EQ(std::system((in + "./trial <samples >answers").c_str()), 0);
  return read_answers(folder / "answers", model.class_count());
}

}  // namespace bitfed
