#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "bitfed/base/config.h"
#include "bitfed/base/error.h"
#include "bitfed/base/thread_pool.h"
#include "bitfed/federated/tsetlin/booleanizer_fit.h"
#include "bitfed/federated/tsetlin/tsetlin_client.h"
#include "bitfed/tsetlin/machine/machine.h"
#include "bitfed/tsetlin/tsetlin_model.h"
#include "bitfed/zoo/tsetlin_zoo.h"
#include "python/src/arrays.h"
#include "python/src/bindings.h"
#include "python/src/interrupt.h"
#include "python/src/model.h"

namespace bitfed::python {
namespace {

std::string states_name(size_t member) {
  return fmt::format("{}.states", member);
}

std::string weights_name(size_t member) {
  return fmt::format("{}.weights", member);
}

// The machines of an estimator, in training. Samples are read where the array has them; what is kept of them
// is a bit per literal, for the time of a call.
class TsetlinTrainer {
 public:
  TsetlinTrainer(const std::string& recipe, const std::vector<std::string>& columns, const SampleShape& shape,
                 size_t classes, uint64_t seed)
      : seed_(seed) {
    const Config config = Config::parse(recipe, "TsetlinClassifier");
    recipe_.prototype = empty_dataset("X", shape);
    if (!columns.empty()) recipe_.prototype.columns = columns;
    recipe_.prototype.class_names.resize(classes);
    recipe_.specialists = read_specialists(config, recipe_.prototype);
    config.reject_unknown_keys();
  }

  TsetlinTrainer(const TsetlinTrainer&) = delete;
  TsetlinTrainer& operator=(const TsetlinTrainer&) = delete;

  // Takes the cuts of a table's columns from their quantiles, as a federation of one client would.
  void fit_booleanizer(const SampleView& view) {
    if (!BooleanizerFit(recipe_).needed()) return;
    std::vector<std::vector<float>> cuts;
    for (size_t column = 0; column < view.shape.columns; ++column) cuts.push_back(column_cuts(view, column));
    for (SpecialistSpec& spec : recipe_.specialists) spec.booleanizer.cuts = cuts;
  }

  void train(const SampleView& view, std::span<const uint16_t> labels, uint32_t epochs, unsigned threads,
             const Stop& stop) {
    check(view, labels);
    make_machines();
    passes_ = 0;
    ThreadPool pool(threads);
    pool.for_each(machines_.size(), [&](size_t i) { train_machine(i, view, labels, epochs, stop); });
    if (stop()) throw Error(Error::Kind::kStopped, "stopped");
    epochs_ += epochs;
  }

  // Of a call of train with so many epochs, also while it runs.
  double fraction(uint32_t epochs) const {
    const double all = static_cast<double>(recipe_.specialists.size()) * std::max(1U, epochs);
    return static_cast<double>(passes_) / all;
  }

  // `columns`: the names of a table's, or none.
  NamedModel model(const std::vector<std::string>& class_names,
                   const std::vector<std::string>& columns) const {
    std::vector<TsetlinMember> members;
    for (size_t i = 0; i < machines_.size(); ++i)
      members.push_back(member_of(*machines_[i], recipe_.specialists[i].booleanizer));
    return {std::make_shared<TsetlinModel>(recipe_.prototype.class_count(), std::move(members)),
            "",
            class_names,
            "",
            {columns}};
  }

  State save() const {
    State state;
    state.add_scalar<uint64_t>("epochs", epochs_);
    add_booleanizers(recipe_, &state);
    for (size_t i = 0; i < machines_.size(); ++i) {
      const TsetlinMachine& machine = *machines_[i];
      const size_t rows = machine.votes().size();
      std::vector<uint8_t> states;
      for (size_t row = 0; row < rows; ++row) {
        const auto of_row = machine.states(row);
        states.insert(states.end(), of_row.begin(), of_row.end());
      }
      state.add(states_name(i), {rows, machine.shape().literals()}, states);
      state.add(weights_name(i), {rows}, machine.weights());
    }
    return state;
  }

  void restore(const State& state) {
    epochs_ = state.scalar<uint64_t>("epochs");
    take_booleanizers(state, &recipe_);
    if (!state.has(states_name(0))) return;
    make_machines();
    for (size_t i = 0; i < machines_.size(); ++i) {
      TsetlinMachine& machine = *machines_[i];
      const size_t rows = machine.votes().size();
      machine.restart_from(state.values<uint8_t>(states_name(i), {rows, machine.shape().literals()}),
                           state.values<int32_t>(weights_name(i), {rows}));
    }
  }

 private:
  std::vector<float> column_cuts(const SampleView& view, size_t column) const {
    TsetlinRecipe alone = recipe_;
    alone.prototype = empty_dataset("X", {.columns = 1});
    Dataset values = alone.prototype;
    values.labels.resize(view.samples.count);
    for (size_t i = 0; i < view.samples.count; ++i)
      values.values.push_back(view.samples.values[i * view.shape.columns + column]);
    BooleanizerFit fit(alone);
    fit.accept(0, quantile_message(fit.broadcast(), values));
    fit.finish(&alone);
    return alone.specialists.front().booleanizer.cuts.front();
  }

  void check(const SampleView& view, std::span<const uint16_t> labels) const {
    if (view.shape != shape_of(recipe_.prototype))
      throw input_error("X: found samples of another shape than those of the first call");
    if (labels.size() != view.samples.count)
      throw input_error("y: found {} labels, expected {}", labels.size(), view.samples.count);
    for (const uint16_t label : labels) {
      if (label >= recipe_.prototype.class_count())
        throw input_error("y: found class {}, expected less than {}", label, recipe_.prototype.class_count());
    }
  }

  void make_machines() {
    if (!machines_.empty()) return;
    for (const SpecialistSpec& spec : recipe_.specialists) {
      machines_.push_back(std::make_unique<TsetlinMachine>(spec.options, spec.shape(recipe_.prototype),
                                                           recipe_.prototype.class_count()));
    }
  }

  void train_machine(size_t index, const SampleView& view, std::span<const uint16_t> labels, uint32_t epochs,
                     const Stop& stop) {
    TsetlinMachine& machine = *machines_[index];
    const PatchShape& shape = machine.shape();
    BitImages images(view.samples.count, shape.height, shape.width, shape.planes);
    make_booleanizer(recipe_.specialists[index].booleanizer, view.shape)->fill(view.samples, &images);
    // The stream of the first client in the first round of a federation.
    const RandomStream random = RandomStream({seed_, "client", 1, 0}).substream(index);
    for (uint32_t epoch = 0; epoch < epochs && !stop(); ++epoch) {
      machine.train_epoch(images, labels, random.substream(epochs_ + epoch), stop);
      ++passes_;
    }
  }

  TsetlinRecipe recipe_;
  uint64_t seed_;
  uint64_t epochs_ = 0;             // done
  std::atomic<size_t> passes_ = 0;  // of all machines over the samples, in this call of train
  std::vector<std::unique_ptr<TsetlinMachine>> machines_;
};

SampleShape shape_from(const std::vector<size_t>& sizes) {
  if (sizes.size() == 1) return {.columns = sizes[0]};
  return {.height = sizes.at(0), .width = sizes.at(1), .channels = sizes.at(2)};
}

}  // namespace

void add_tsetlin_trainer(nb::module_& module) {
  nb::class_<TsetlinTrainer>(module, "TsetlinTrainer", "Tsetlin machines in training, for the estimators.")
      .def(
          "__init__",
          [](TsetlinTrainer* self, const std::string& recipe, const std::vector<std::string>& columns,
             const std::vector<size_t>& shape, size_t classes,
             uint64_t seed) { new (self) TsetlinTrainer(recipe, columns, shape_from(shape), classes, seed); },
          nb::arg("recipe"), nb::arg("columns"), nb::arg("shape"), nb::arg("classes"), nb::arg("seed"))
      .def("fit_booleanizer",
           [](TsetlinTrainer& self, const Array& array) {
             const SampleView view = view_samples(array);
             run_interruptibly([&](const Stop&) { self.fit_booleanizer(view); });
           })
      .def(
          "train",
          [](TsetlinTrainer& self, const Array& array, const Labels& labels, uint32_t epochs,
             unsigned threads, const nb::object& progress) {
            const SampleView view = view_samples(array);
            run_interruptibly(
                [&](const Stop& stop) { self.train(view, view_labels(labels), epochs, threads, stop); },
                [&] {
                  if (!progress.is_none()) progress(self.fraction(epochs));
                });
          },
          nb::arg("X"), nb::arg("y"), nb::arg("epochs"), nb::arg("threads"), nb::arg("progress").none())
      .def("model", &TsetlinTrainer::model, nb::arg("class_names"), nb::arg("columns"))
      .def("save", [](const TsetlinTrainer& self) { return bytes_of(encode(self.save())); })
      .def("restore", [](TsetlinTrainer& self, const nb::bytes& bytes) {
        self.restore(decode(view_bytes(bytes), "the pickled estimator"));
      });
}

}  // namespace bitfed::python
