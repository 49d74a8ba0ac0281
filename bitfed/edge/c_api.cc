// include/bitfed.h: the models of the zoo behind a C interface that lets nothing through.

#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "bitfed/base/error.h"
#include "bitfed/model/largest_scores.h"
#include "bitfed/model/predictor.h"
#include "bitfed/zoo/model_file.h"
#include "include/bitfed.h"

struct bitfed_model {
  bitfed_model(std::vector<std::string> names, const bitfed::SampleShape& takes,
               std::unique_ptr<bitfed::Predictor> first)
      : class_names(std::move(names)), input(takes), predictors(std::move(first)) {}

  std::vector<std::string> class_names;
  bitfed::SampleShape input;
  mutable bitfed::PredictorPool predictors;
};

namespace {

using namespace bitfed;

thread_local std::string last_error;

// Whatever a call throws becomes the thread's last error, and `otherwise` its result.
template <typename Result, typename Call>
Result guarded(Result otherwise, Call call) noexcept {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    last_error.assign("out of memory");  // short enough to need none
  } catch (const std::exception& error) {
    try {
      last_error = error.what();
    } catch (const std::bad_alloc&) {
      last_error.assign("out of memory");
    }
  } catch (...) {
    last_error.assign("unknown error");
  }
  return otherwise;
}

// Keeps what predicts, not the model.
bitfed_model* opened(const State& state, const std::string& source) {
  ModelFile file = model_file_of(state, source);
  return new bitfed_model(std::move(file.class_names), input_of_model(*file.model), file.model->predictor());
}

int answer(const bitfed_model& model, const Samples& samples, uint16_t* classes, float* scores) {
  const PredictorPool::Lease predictor = model.predictors.lease();
  if (scores != nullptr) {
    predictor->predict(samples, scores);
    if (classes != nullptr) largest_scores(scores, samples.count, model.class_names.size(), classes);
  } else if (classes != nullptr) {
    predictor->classify(samples, classes);
  }
  return 0;
}

}  // namespace

bitfed_model* bitfed_open(const char* path) {
  return guarded<bitfed_model*>(nullptr, [&] { return opened(read_state(path), path); });
}

bitfed_model* bitfed_open_bytes(const void* bytes, size_t size) {
  return guarded<bitfed_model*>(nullptr, [&] {
    return opened(decode({static_cast<const uint8_t*>(bytes), size}, "model"), "model");
  });
}

void bitfed_close(bitfed_model* model) {
  delete model;
}

bitfed_input bitfed_input_of(const bitfed_model* model) {
  const SampleShape& input = model->input;
  return {input.count(), input.height, input.width, input.channels, input.columns};
}

size_t bitfed_class_count(const bitfed_model* model) {
  return model->class_names.size();
}

const char* bitfed_class_name(const bitfed_model* model, size_t index) {
  return index < model->class_names.size() ? model->class_names[index].c_str() : nullptr;
}

int bitfed_predict_pixels(const bitfed_model* model, const uint8_t* pixels, size_t samples, uint16_t* classes,
                          float* scores) {
  return guarded(-1, [&] {
    if (model->input.is_table())
      throw input_error("the model takes rows of {} numbers, not pixels", model->input.columns);
    return answer(*model, {pixels, nullptr, samples}, classes, scores);
  });
}

int bitfed_predict_numbers(const bitfed_model* model, const float* numbers, size_t samples, uint16_t* classes,
                           float* scores) {
  return guarded(-1, [&] {
    if (!model->input.is_table()) {
      throw input_error("the model takes images of {} x {} x {}, not numbers", model->input.height,
                        model->input.width, model->input.channels);
    }
    return answer(*model, {nullptr, numbers, samples}, classes, scores);
  });
}

const char* bitfed_error(void) {
  return last_error.c_str();
}
