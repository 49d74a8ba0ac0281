#pragma once

#include <string>
#include <vector>

#include "bitfed/model/model.h"

namespace bitfed {

// A model as an ONNX file of standard operators. Input "pixels", bytes [samples, height, width, channels], or
// "values", floats [samples, columns]; outputs "class", int64 [samples], and "scores", float [samples,
// classes]. The names of classes and of a table's columns are metadata, JSON arrays. An input_error where
// ONNX cannot carry the model.
Bytes export_onnx(const Model& model, const std::string& name, const std::vector<std::string>& class_names,
                  const std::vector<std::string>& columns = {});

}  // namespace bitfed
