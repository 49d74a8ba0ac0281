// include/bitfed.h: the models of the zoo behind a C interface that lets nothing through.

#include <algorithm>
#include <exception>
#include <new>
#include <string>

#include "bitfed/base/error.h"
#include "bitfed/base/thread_pool.h"
#include "bitfed/model/largest_scores.h"
#include "bitfed/zoo/model_file.h"
#include "include/bitfed.h"

struct bitfed_model {
  bitfed_model(bitfed::ModelFile opened, const bitfed::ModelInput& takes)
      : file(std::move(opened)), input(takes) {}

  bitfed::ModelFile file;
  bitfed::ModelInput input;
  mutable bitfed::ThreadPool pool{1};  // which leaves the work to the calling thread
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

bitfed_model* opened(const State& state, const std::string& source) {
  ModelFile file = model_file_of(state, source);
  const ModelInput input = input_of_model(*file.model);
  return new bitfed_model(std::move(file), input);
}

// Samples of the model's kind, without content.
Dataset prototype(const ModelInput& input, size_t samples) {
  Dataset data;
  data.name = "samples";
  data.height = input.height;
  data.width = input.width;
  data.channels = input.channels;
  data.columns.resize(input.columns);
  data.labels.resize(samples);
  return data;
}

int answer(const bitfed_model& model, const Dataset& data, uint16_t* classes, float* scores) {
  const std::vector<float> found = model.file.model->scores(data, model.pool);
  if (scores != nullptr) std::copy(found.begin(), found.end(), scores);
  if (classes != nullptr) {
    const std::vector<uint16_t> best = largest_scores(found, model.file.model->class_count());
    std::copy(best.begin(), best.end(), classes);
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
  const ModelInput& input = model->input;
  return {input.count(), input.height, input.width, input.channels, input.columns};
}

size_t bitfed_class_count(const bitfed_model* model) {
  return model->file.class_names.size();
}

const char* bitfed_class_name(const bitfed_model* model, size_t index) {
  return index < model->file.class_names.size() ? model->file.class_names[index].c_str() : nullptr;
}

int bitfed_predict_pixels(const bitfed_model* model, const uint8_t* pixels, size_t samples, uint16_t* classes,
                          float* scores) {
  return guarded(-1, [&] {
    if (model->input.is_table())
      throw input_error("the model takes rows of {} numbers, not pixels", model->input.columns);
    Dataset data = prototype(model->input, samples);
    data.pixels.assign(pixels, pixels + samples * data.image_bytes());
    return answer(*model, data, classes, scores);
  });
}

int bitfed_predict_numbers(const bitfed_model* model, const float* numbers, size_t samples, uint16_t* classes,
                           float* scores) {
  return guarded(-1, [&] {
    if (!model->input.is_table()) {
      throw input_error("the model takes images of {} x {} x {}, not numbers", model->input.height,
                        model->input.width, model->input.channels);
    }
    Dataset data = prototype(model->input, samples);
    data.values.assign(numbers, numbers + samples * model->input.columns);
    return answer(*model, data, classes, scores);
  });
}

const char* bitfed_error(void) {
  return last_error.c_str();
}
