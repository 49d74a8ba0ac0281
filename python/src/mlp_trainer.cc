#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <numeric>

#include "bitfed/base/error.h"
#include "bitfed/federated/mlp/column_ranges.h"
#include "bitfed/federated/mlp/mlp_messages.h"
#include "bitfed/nn/mlp/mlp_trainer.h"
#include "bitfed/zoo/mlp_model.h"
#include "python/src/arrays.h"
#include "python/src/bindings.h"
#include "python/src/interrupt.h"
#include "python/src/model.h"

namespace bitfed::python {
namespace {

// The perceptron of an estimator. A call trains as a client of fed-bin-mlp does in a round: Adam starts anew,
// so that the parameters are all there is to keep.
class PerceptronTrainer {
 public:
  PerceptronTrainer(std::vector<uint32_t> widths, bool binary, double rate, size_t batch, uint64_t seed)
      : shape_{std::move(widths), binary},
        batch_(batch),
        seed_(seed),
        parameters_(initial_parameters(shape_, RandomStream({seed, "mlp"}))) {
    adam_.rate = rate;
  }

  // Column by column: a table is never copied as a whole.
  void fit_scaling(const SampleView& view) {
    const State question = ask_for_ranges(RangeKind::kQuantiles);
    ColumnScaling scaling;
    for (size_t column = 0; column < view.shape.columns; ++column) {
      Dataset values = empty_dataset("X", {.columns = 1});
      values.labels.resize(view.samples.count);
      for (size_t i = 0; i < view.samples.count; ++i)
        values.values.push_back(view.samples.values[i * view.shape.columns + column]);
      ColumnRanges ranges(RangeKind::kQuantiles, 1);
      ranges.accept(0, ranges_message(question, values));
      const ColumnScaling of_column = ranges.scaling();
      scaling.offset.push_back(of_column.offset.front());
      scaling.factor.push_back(of_column.factor.front());
      scaling.limit = of_column.limit;
    }
    scaling_ = std::move(scaling);
  }

  void train(const SampleView& view, std::span<const uint16_t> labels, uint32_t epochs, const Stop& stop) {
    check(view, labels);
    fraction_ = 0;
    MlpTrainer trainer(shape_, std::min(batch_, view.samples.count), adam_);
    trainer.load(parameters_);
    std::vector<uint32_t> order(view.samples.count);
    std::iota(order.begin(), order.end(), 0u);
    RandomStream random = RandomStream({seed_, "client", ++calls_, 0}).substream(0);
    for (uint32_t epoch = 0; epoch < epochs; ++epoch) {
      random.shuffle(std::span(order));
      train_epoch(view, labels, order, stop, &trainer);
      fraction_ = static_cast<double>(epoch + 1) / epochs;
    }
    parameters_ = trainer.parameters();
  }

  // What is done of the last call of train, also while it runs.
  double fraction() const { return fraction_; }

  NamedModel model(const std::vector<std::string>& class_names,
                   const std::vector<std::string>& columns) const {
    return {std::make_shared<MlpModel>(shape_, scaling_, parameters_), "", class_names, "", {columns}};
  }

  State save() const {
    State state;
    state.add_scalar<uint64_t>("calls", calls_);
    if (!scaling_.factor.empty()) add_scaling(scaling_, &state);
    add_parameters(parameters_, MlpPrecision::kFloats, &state);
    return state;
  }

  void restore(const State& state) {
    calls_ = state.scalar<uint64_t>("calls");
    if (state.has("scaling")) scaling_ = read_scaling(state, shape_.widths.front());
    parameters_ = read_parameters(state, shape_);
  }

 private:
  void check(const SampleView& view, std::span<const uint16_t> labels) const {
    if (view.shape != SampleShape{.columns = shape_.widths.front()})
      throw input_error("X: found samples of another shape, expected {} columns", shape_.widths.front());
    if (labels.size() != view.samples.count)
      throw input_error("y: found {} labels, expected {}", labels.size(), view.samples.count);
    for (const uint16_t label : labels) {
      if (label >= shape_.widths.back())
        throw input_error("y: found class {}, expected less than {}", label, shape_.widths.back());
    }
  }

  void train_epoch(const SampleView& view, std::span<const uint16_t> labels,
                   const std::vector<uint32_t>& order, const Stop& stop, MlpTrainer* trainer) const {
    const size_t columns = view.shape.columns;
    std::vector<uint16_t> of_batch;
    for (size_t first = 0; first < order.size(); first += batch_) {
      if (stop()) throw Error(Error::Kind::kStopped, "stopped");
      const size_t rows = std::min(batch_, order.size() - first);
      of_batch.resize(rows);
      for (size_t r = 0; r < rows; ++r) {
        const size_t sample = order[first + r];
        scaling_.apply({view.samples.values + sample * columns, columns}, trainer->input(r));
        of_batch[r] = labels[sample];
      }
      if (!std::isfinite(trainer->step(of_batch)))
        throw failure("training diverged, parameters are no longer finite: lower learning_rate (now {})",
                      adam_.rate);
    }
  }

  MlpShape shape_;
  AdamOptions adam_;
  size_t batch_;
  uint64_t seed_;
  uint64_t calls_ = 0;
  std::atomic<double> fraction_ = 0;
  ColumnScaling scaling_;
  MlpParameters parameters_;
};

}  // namespace

void add_mlp_trainer(nb::module_& module) {
  nb::class_<PerceptronTrainer>(module, "PerceptronTrainer", "A perceptron in training, for the estimators.")
      .def(nb::init<std::vector<uint32_t>, bool, double, size_t, uint64_t>(), nb::arg("widths"),
           nb::arg("binary"), nb::arg("rate"), nb::arg("batch"), nb::arg("seed"))
      .def("fit_scaling",
           [](PerceptronTrainer& self, const Array& array) {
             const SampleView view = view_samples(array);
             run_interruptibly([&](const Stop&) { self.fit_scaling(view); });
           })
      .def(
          "train",
          [](PerceptronTrainer& self, const Array& array, const Labels& labels, uint32_t epochs,
             const nb::object& progress) {
            const SampleView view = view_samples(array);
            run_interruptibly([&](const Stop& stop) { self.train(view, view_labels(labels), epochs, stop); },
                              [&] {
                                if (!progress.is_none()) progress(self.fraction());
                              });
          },
          nb::arg("X"), nb::arg("y"), nb::arg("epochs"), nb::arg("progress").none())
      .def("model", &PerceptronTrainer::model, nb::arg("class_names"), nb::arg("columns"))
      .def("save", [](const PerceptronTrainer& self) { return bytes_of(encode(self.save())); })
      .def("restore", [](PerceptronTrainer& self, const nb::bytes& bytes) {
        self.restore(decode(view_bytes(bytes), "the pickled estimator"));
      });
}

}  // namespace bitfed::python
