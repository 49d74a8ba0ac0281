#include "bitfed/edge/c/export_c.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "bitfed/base/error.h"
#include "bitfed/edge/c/c_body.h"
#include "bitfed/edge/c/c_text.h"

namespace bitfed {
namespace {

constexpr const char* kHeader =
    R"(/* A trained model, exported by bitfed. C99, no heap, nothing of the C library but memcpy. */
#ifndef @NAME@_H
#define @NAME@_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { @NAME@_INPUTS = @inputs@, @NAME@_CLASSES = @classes@ };

/* @input_text@ */
typedef @input_type@ @name@_input;

/* From one sample of @NAME@_INPUTS inputs to @NAME@_CLASSES scores; returns the class with the largest, the lowest
   class among equals. Works in static memory (@ram@ bytes): one call at a time. */
int @name@_predict(const @name@_input *input, float *scores);

extern const char *const @name@_class_names[@NAME@_CLASSES];
@columns_declared@
#ifdef __cplusplus
}
#endif
#endif
)";

// Every rounding is part of the model: whatever would change one is switched off, or stops the compilation.
constexpr const char* kPreamble = R"(#include "@name@.h"

#include <float.h>
#include <string.h>

#if defined(__FAST_MATH__) || FLT_EVAL_METHOD != 0
#error "this needs floats that are rounded as they are written: no -ffast-math, and on 32-bit x86 -msse2 -mfpmath=sse"
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

)";

constexpr const char* kEnd = R"(
int @name@_predict(const @name@_input *input, float *scores) {
  int best = 0;
  int k;
  score(input, scores);
  for (k = 1; k < @NAME@_CLASSES; ++k) {
    if (scores[best] < scores[k]) best = k;
  }
  return best;
}

const char *const @name@_class_names[@NAME@_CLASSES] = {
@class_names@};
@columns_defined@)";

constexpr const char* kTrial =
    R"(/* For trying the model: reads samples from standard input, each @NAME@_INPUTS inputs of type @input_type@ as they
   lie in memory, and prints a line for each: the class, then all scores. Without input it predicts one sample of
   zeros. */
#include <stdio.h>

#include "@name@.h"

static void predict(const @name@_input *sample) {
  float scores[@NAME@_CLASSES];
  int k;
  printf("%d", @name@_predict(sample, scores));
  for (k = 0; k < @NAME@_CLASSES; ++k) printf(" %.9g", (double)scores[k]);
  printf("\n");
}

int main(void) {
  static @name@_input sample[@NAME@_INPUTS];
  long samples = 0;
  size_t read;
  while ((read = fread(sample, sizeof(sample[0]), @NAME@_INPUTS, stdin)) == @NAME@_INPUTS) {
    predict(sample);
    ++samples;
  }
  if (read != 0) {
    fprintf(stderr, "the last sample has %lu inputs, expected %d\n", (unsigned long)read, @NAME@_INPUTS);
    return 2;
  }
  if (samples == 0) predict(sample);
  return 0;
}
)";

CBody body_of(const Model& model) {
  if (const auto* tsetlin = dynamic_cast<const TsetlinModel*>(&model)) return c_body(*tsetlin);
  if (const auto* mlp = dynamic_cast<const MlpModel*>(&model)) return c_body(*mlp);
  if (const auto* network = dynamic_cast<const NetworkModel*>(&model)) return c_body(*network);
  throw input_error("--format c: no way to write this kind of model as C");
}

bool is_identifier(const std::string& name) {
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  return !name.empty() && std::isalpha(static_cast<unsigned char>(name[0])) != 0 &&
         std::all_of(name.begin(), name.end(), is_word);
}

// Anything but plain characters as octal escapes of three digits, which end where they end.
std::string c_string(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= ' ' && byte < 127 && c != '"' && c != '\\' && c != '?' && c != '@') {
      result += c;
    } else {
      result += fmt::format("\\{:03o}", byte);
    }
  }
  return result + "\"";
}

std::string c_strings(const std::vector<std::string>& texts) {
  std::string lines;
  for (const std::string& text : texts) lines += "  " + c_string(text) + ",\n";
  return lines;
}

}  // namespace

CBody c_body_for(const SampleShape& input) {
  CBody body;
  body.inputs = input.count();
  if (input.is_table()) {
    body.input_type = "float";
    body.input_text = fmt::format("The {} columns of a row, in their order.", input.columns);
  } else {
    body.input_type = "uint8_t";
    body.input_text =
        fmt::format("{} rows of {} pixels of {} channel{}, row by row, then pixel, then channel.",
                    input.height, input.width, input.channels, input.channels == 1 ? "" : "s");
  }
  return body;
}

CExport export_c(const Model& model, const std::string& name, const std::vector<std::string>& class_names,
                 const std::vector<std::string>& columns) {
  if (!is_identifier(name)) {
    throw input_error("--name: found '{}', expected a C identifier: a letter, then letters, digits and _",
                      name);
  }
  const CBody body = body_of(model);
  std::string upper = name;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](char c) { return static_cast<char>(std::toupper(static_cast<unsigned char>(c))); });
  std::string declared;
  std::string defined;
  if (!columns.empty()) {
    const std::string array = fmt::format("const char *const {}_columns[{}_INPUTS]", name, upper);
    declared = "\n/* The column of each input. */\nextern " + array + ";\n";
    defined = "\n" + array + " = {\n" + c_strings(columns) + "};\n";
  }
  const auto fill = [&](const std::string& text) {
    return filled(text, {{"NAME", upper},
                         {"name", name},
                         {"inputs", std::to_string(body.inputs)},
                         {"classes", std::to_string(model.class_count())},
                         {"input_text", body.input_text},
                         {"input_type", body.input_type},
                         {"ram", std::to_string(body.ram_bytes)},
                         {"class_names", c_strings(class_names)},
                         {"columns_declared", declared},
                         {"columns_defined", defined}});
  };
  return {fill(kHeader), fill(kPreamble + body.code + kEnd), fill(kTrial), body.table_bytes, body.ram_bytes};
}

}  // namespace bitfed
