#include "python/src/python_method.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <memory>

#include "bitfed/base/error.h"
#include "python/src/arrays.h"
#include "python/src/fusion.h"
#include "python/src/python_object.h"

namespace bitfed::python {
namespace {

constexpr size_t kBlock = 1024;  // samples that a model in Python is given at once

// The client's context for the time of one call; later calls do nothing.
struct ClientProgress {
  const ClientContext* context;

  void progress(double fraction) const {
    if (context != nullptr && context->progress) context->progress(fraction);
  }
  bool stopped() const { return context != nullptr && context->stop && context->stop(); }
};

nb::object class_scores(const PythonObject& method, const State& state, const nb::object& samples) {
  return method->attr("_scores")(dict_of(state), samples);
}

void copy_scores(const nb::object& result, size_t count, float* scores) {
  const auto array = nb::cast<nb::ndarray<const float, nb::c_contig, nb::device::cpu>>(result);
  if (array.size() != count)
    throw input_error("scores: found {} values, expected {}: one per sample and class", array.size(), count);
  std::copy_n(array.data(), count, scores);
}

class PythonPredictor : public Predictor {
 public:
  PythonPredictor(PythonObject method, const State& state, const SampleShape& shape, size_t class_count)
      : Predictor(shape, class_count, kBlock), method_(std::move(method)), state_(state) {}

  std::unique_ptr<Predictor> another() const override {
    return std::make_unique<PythonPredictor>(method_, state_, shape(), class_count());
  }

 private:
  void predict_block(const Samples& samples, float* scores) override {
    const nb::gil_scoped_acquire gil;
    copy_scores(class_scores(method_, state_, array_of(samples, shape())), samples.count * class_count(),
                scores);
  }

  PythonObject method_;
  State state_;
};

// The server's state, scored by the method.
class PythonModel : public Model {
 public:
  PythonModel(PythonObject method, State state, const Dataset& prototype)
      : method_(std::move(method)), state_(std::move(state)), prototype_(prototype) {}

  std::vector<float> scores(const Dataset& dataset, ThreadPool& /*pool*/) const override {
    check_fits(dataset);
    std::vector<float> scores(dataset.size() * class_count());
    const nb::gil_scoped_acquire gil;
    copy_scores(class_scores(method_, state_, array_of(dataset)), scores.size(), scores.data());
    return scores;
  }
  void check_fits(const Dataset& dataset) const override {
    if (shape_of(dataset) != shape_of(prototype_))
      throw input_error("{}: samples of another shape than the training data's", dataset.name);
  }
  std::unique_ptr<Predictor> predictor() const override {
    return std::make_unique<PythonPredictor>(method_, state_, shape_of(prototype_), class_count());
  }
  size_t class_count() const override { return prototype_.class_count(); }
  State state() const override {
    State state = state_;
    state.metadata["bitfed.format"] = "1";
    state.metadata["bitfed.kind"] = "python";
    return state;
  }
  ModelCosts costs() const override {
    ModelCosts costs;
    costs.bytes = state_.tensor_bytes();
    return costs;
  }

 private:
  PythonObject method_;
  State state_;
  Dataset prototype_;
};

class PythonClient : public ClientHalf {
 public:
  explicit PythonClient(PythonObject method) : method_(std::move(method)) {}

  State train(const State& broadcast, const Dataset& samples, const ClientContext& context) const override {
    const nb::gil_scoped_acquire gil;
    RandomStream random = context.random;
    const uint64_t first = random.next_u64();
    const nb::tuple seed = nb::make_tuple(first, random.next_u64());
    const nb::object kept = context.kept.empty() ? nb::none() : nb::object(dict_of(context.kept));
    const nb::object progress = nb::cast(ClientProgress{&context});
    const auto forget = [&] { nb::inst_ptr<ClientProgress>(progress)->context = nullptr; };
    nb::tuple result;
    try {
      result = nb::cast<nb::tuple>(method_->attr("_train")(
          dict_of(broadcast), array_of(samples), own_array(std::vector(samples.labels), {samples.size()}),
          kept, seed, progress));
    } catch (...) {
      forget();
      throw;
    }
    forget();
    if (context.stop && context.stop()) throw Error(Error::Kind::kStopped, "stopped");
    if (!result[1].is_none()) context.keep(state_of(result[1], "what the client keeps"));
    if (context.trained) context.trained(samples.size());
    return state_of(result[0], "upload");
  }

 private:
  PythonObject method_;
};

// Everything is a State between calls: the next round sees what a checkpoint would give it.
class PythonServer : public ServerHalf {
 public:
  PythonServer(PythonObject method, Dataset prototype)
      : method_(std::move(method)), prototype_(std::move(prototype)) {
    const nb::gil_scoped_acquire gil;
    nb::dict about;
    const SampleShape shape = shape_of(prototype_);
    about["shape"] = shape.is_table() ? nb::make_tuple(shape.columns)
                                      : nb::make_tuple(shape.height, shape.width, shape.channels);
    about["columns"] = prototype_.columns;
    about["class_names"] = prototype_.class_names;
    state_ = state_of(method_->attr("_start")(about), "start");
  }

  State broadcast(uint32_t round) const override {
    const nb::gil_scoped_acquire gil;
    return state_of(method_->attr("broadcast")(dict_of(state_), round), "broadcast");
  }
  void accept(uint32_t client, const State& upload) override { uploads_[client] = upload; }
  void finish_round(uint32_t /*round*/) override {
    const nb::gil_scoped_acquire gil;
    nb::dict uploads;
    for (const auto& [client, upload] : uploads_) uploads[nb::int_(client)] = dict_of(upload);
    state_ = state_of(method_->attr("aggregate")(dict_of(state_), uploads), "aggregate");
    uploads_.clear();
  }
  std::unique_ptr<Model> model() const override {
    return std::make_unique<PythonModel>(method_, state_, prototype_);
  }
  State save() const override { return state_; }
  void restore(const State& saved) override {
    state_ = saved;
    state_.metadata.erase("checkpoint");
  }

 private:
  PythonObject method_;
  Dataset prototype_;
  State state_;
  std::map<uint32_t, State> uploads_;  // by client, whatever the order of arrival
};

class PythonMethod : public Method {
 public:
  PythonMethod(PythonObject method, const Dataset& prototype)
      : method_(std::move(method)), prototype_(prototype) {}

  std::unique_ptr<ClientHalf> make_client() const override { return std::make_unique<PythonClient>(method_); }
  std::unique_ptr<ServerHalf> make_server() const override {
    return std::make_unique<PythonServer>(method_, prototype_);
  }
  std::string client_key() const override {
    const nb::gil_scoped_acquire gil;
    return nb::cast<std::string>(method_->attr("_key")());
  }
  uint32_t default_rounds() const override {
    const nb::gil_scoped_acquire gil;
    return nb::cast<uint32_t>(method_->attr("rounds"));
  }

 private:
  PythonObject method_;
  Dataset prototype_;
};

// An option of the method: the recipe's value where it has one, else the object's.
nb::object read_option(const Config& section, const std::string& key, const nb::handle& value) {
  constexpr double kFar = 1e300;
  if (nb::isinstance<nb::bool_>(value)) return nb::bool_(section.flag(key, nb::cast<bool>(value)));
  if (nb::isinstance<nb::int_>(value))
    return nb::int_(section.integer(key, nb::cast<int64_t>(value), INT64_MIN, INT64_MAX));
  if (nb::isinstance<nb::float_>(value))
    return nb::float_(section.number(key, nb::cast<double>(value), -kFar, kFar));
  return nb::cast(section.text(key, nb::cast<std::string>(value)));
}

void read_options(const MethodContext& context, const nb::object& method) {
  const Config section = context.recipe.section("method");
  section.text("name", nb::cast<std::string>(method.attr("name")));
  for (const auto& [key, value] : nb::cast<nb::dict>(method.attr("_options")())) {
    const auto name = nb::cast<std::string>(key);
    method.attr(name.c_str()) = read_option(section, name, value);
  }
  for (const auto& [name, text] : nb::cast<std::map<std::string, std::string>>(method.attr("_recorded")())) {
    const std::string found = section.text(name, text);
    if (found != text)
      throw input_error("{}: found '{}', expected '{}' as in Python: recipes set flags, numbers and strings",
                        section.where(name), found, text);
  }
}

}  // namespace

MakeMethod python_method(nb::object method) {
  return [shared = share(std::move(method))](const MethodContext& context) -> std::unique_ptr<Method> {
    const nb::gil_scoped_acquire gil;
    read_options(context, *shared);
    if (nb::hasattr(*shared, "fuse")) return make_python_fusion(context, shared);
    return std::make_unique<PythonMethod>(shared, context.prototype);
  };
}

void add_client_progress(nb::module_& module) {
  nb::class_<ClientProgress>(module, "ClientProgress")
      .def("progress", &ClientProgress::progress, nb::arg("fraction"),
           "Reports the fraction of the work done.")
      .def("stopped", &ClientProgress::stopped, "Whether the user asked to stop.");
}

}  // namespace bitfed::python
