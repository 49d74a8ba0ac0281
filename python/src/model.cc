#include "python/src/model.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"
#include "bitfed/edge/c/export_c.h"
#include "bitfed/edge/onnx/export_onnx.h"
#include "bitfed/report/charts/clause_logic.h"
#include "bitfed/report/charts/clause_picture.h"
#include "bitfed/tsetlin/tsetlin_model.h"
#include "python/src/bindings.h"
#include "python/src/interrupt.h"

namespace bitfed::python {
namespace {

// Whether a sample's scores depend on the others of the call, which then must not be divided.
bool depends_on_the_call(const Model& model) {
  const auto* tsetlin = dynamic_cast<const TsetlinModel*>(&model);
  return tsetlin != nullptr && std::any_of(tsetlin->members().begin(), tsetlin->members().end(),
                                           [](const TsetlinMember& member) { return member.scale == 0; });
}

nb::ndarray<nb::numpy, float> predict_scores(const NamedModel& named, const Array& array, unsigned threads) {
  const SampleView view = view_samples(array);
  std::vector<float> scores;
  run_interruptibly([&](const Stop&) { scores = scores_of(*named.model, view, threads); });
  return own_array(std::move(scores), {view.samples.count, named.model->class_count()});
}

const TsetlinModel& tsetlin_of(const NamedModel& named) {
  const auto* model = dynamic_cast<const TsetlinModel*>(named.model.get());
  if (model == nullptr) throw input_error("rules: found another kind of model, expected a Tsetlin machine");
  return *model;
}

// A clause that votes for its class.
struct Rule {
  size_t class_index;
  double vote;
  std::string text;
  std::string svg;  // empty for tables
};

std::vector<Rule> rules_of(const NamedModel& named, size_t per_class, size_t literals) {
  const TsetlinModel& model = tsetlin_of(named);
  std::vector<Rule> rules;
  for (size_t c = 0; c < model.class_count(); ++c) {
    for (const ClauseView& clause : strongest_clauses(model.members(), c, per_class)) {
      const bool picture = clause.member->booleanizer.kind != "quantile" && clause.member->shape.height > 1;
      rules.push_back({c, clause.vote(), clause_text(clause, literals, named.notes.columns),
                       picture ? clause_picture(clause) : std::string()});
    }
  }
  return rules;
}

State file_state(const NamedModel& named) {
  return model_file_state(*named.model, named.name, named.class_names, named.data, named.notes);
}

NamedModel from_bytes(const nb::bytes& bytes) {
  return named(model_file_of(decode(view_bytes(bytes), "the pickled model"), "the pickled model"));
}

nb::dict costs_of(const NamedModel& named) {
  const ModelCosts costs = named.model->costs();
  nb::dict dict;
  dict["bytes"] = costs.bytes;
  dict["flops"] = costs.flops;
  dict["binary_ops"] = costs.binary_ops;
  return dict;
}

nb::tuple input_shape(const NamedModel& named) {
  const SampleShape shape = input_of_model(*named.model);
  if (shape.is_table()) return nb::make_tuple(shape.columns);
  return nb::make_tuple(shape.height, shape.width, shape.channels);
}

}  // namespace

NamedModel named(ModelFile file) {
  return {std::move(file.model),
          std::move(file.name),
          std::move(file.class_names),
          std::move(file.data),
          {std::move(file.columns), std::move(file.trained_on)}};
}

std::vector<float> scores_of(const Model& model, const SampleView& view, unsigned threads) {
  Dataset like = empty_dataset("X", view.shape);
  model.check_fits(like);
  const size_t classes = model.class_count();
  std::vector<float> scores(view.samples.count * classes);
  ThreadPool pool(threads);
  PredictorPool predictors(model.predictor());
  const size_t share = depends_on_the_call(model) ? std::max<size_t>(1, view.samples.count)
                                                  : prediction_share(view.samples.count, pool);
  pool.for_ranges(view.samples.count, share, [&](size_t begin, size_t end) {
    predictors.lease()->predict(view.samples.part(view.shape, begin, end - begin), &scores[begin * classes]);
  });
  return scores;
}

void add_models(nb::module_& module) {
  nb::class_<Rule>(module, "Rule", "A clause that votes for its class.")
      .def_ro("class_index", &Rule::class_index)
      .def_ro("vote", &Rule::vote, "What the clause adds to the score of its class when it fires.")
      .def_ro("text", &Rule::text)
      .def_ro("svg", &Rule::svg, "A picture of the patch; empty for tables.")
      .def("__str__", [](const Rule& rule) { return rule.text; })
      .def("_repr_svg_", [](const Rule& rule) { return rule.svg; });
  nb::class_<NamedModel>(module, "Model", "A trained model.")
      .def_static(
          "load", [](const std::string& path) { return named(read_model_file(path)); }, nb::arg("path"))
      .def_static("from_bytes", from_bytes)
      .def("to_bytes", [](const NamedModel& self) { return bytes_of(encode(file_state(self))); })
      .def(
          "save",
          [](const NamedModel& self, const std::string& path) { write_state(path, file_state(self)); },
          nb::arg("path"), "Writes a model file (safetensors).")
      .def("__getstate__", [](const NamedModel& self) { return bytes_of(encode(file_state(self))); })
      .def("__setstate__",
           [](NamedModel& self, const nb::bytes& bytes) { new (&self) NamedModel(from_bytes(bytes)); })
      .def_ro("name", &NamedModel::name)
      .def_ro("class_names", &NamedModel::class_names)
      .def_prop_ro(
          "columns", [](const NamedModel& self) { return self.notes.columns; },
          "Of a table, in the order of the model's inputs; empty where the file names none.")
      .def_prop_ro(
          "sha256", [](const NamedModel& self) { return self.model->state().sha256(); },
          "The digest of the tensors: model_sha256 of a run's summary.")
      .def_prop_ro("costs", costs_of, "Bytes, floating-point and one-bit operations of one prediction.")
      .def_prop_ro("input_shape", input_shape)
      .def(
          "state", [](const NamedModel& self) { return dict_of(self.model->state()); },
          "The tensors by name, and the metadata.")
      .def("scores", predict_scores, nb::arg("X"), nb::arg("threads") = 0,
           "Scores [sample, class]; 0 threads: one per processor.")
      .def("rules", rules_of, nb::arg("per_class") = 3, nb::arg("literals") = 24)
      .def(
          "rules_html",
          [](const NamedModel& self, size_t per_class) {
            return clause_pictures(tsetlin_of(self).members(), self.class_names, per_class,
                                   self.notes.columns);
          },
          nb::arg("per_class") = 3)
      .def(
          "export_c",
          [](const NamedModel& self, const std::string& name) {
            const CExport code = export_c(*self.model, name, self.class_names, self.notes.columns);
            return std::make_tuple(code.header, code.source, code.trial);
          },
          nb::arg("name") = "model", "C99: header, source, and a main() to try it.")
      .def(
          "export_onnx",
          [](const NamedModel& self, const std::string& name) {
            return bytes_of(export_onnx(*self.model, name, self.class_names, self.notes.columns));
          },
          nb::arg("name") = "model");
}

}  // namespace bitfed::python
