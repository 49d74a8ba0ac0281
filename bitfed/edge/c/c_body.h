#pragma once

#include <cstdint>
#include <string>

#include "bitfed/tsetlin/tsetlin_model.h"
#include "bitfed/zoo/mlp_model.h"
#include "bitfed/zoo/model_file.h"
#include "bitfed/zoo/network/network_model.h"

namespace bitfed {

// What differs from model to model in the C code: tables and functions, the last of them
//   static void score(const INPUT *input, float *scores)
struct CBody {
  std::string input_type;  // of C
  size_t inputs = 0;       // a sample
  std::string input_text;  // what they are and how they lie
  std::string code;
  uint64_t table_bytes = 0;
  uint64_t ram_bytes = 0;
};

// One without code, for samples of that kind.
CBody c_body_for(const SampleShape& input);

CBody c_body(const TsetlinModel& model);
CBody c_body(const MlpModel& model);
CBody c_body(const NetworkModel& model);

}  // namespace bitfed
