#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "bitfed/base/error.h"
#include "bitfed/data/catalog/catalog.h"
#include "bitfed/data/dataset.h"
#include "bitfed/data/formats/csv.h"
#include "bitfed/data/partition/partition.h"
#include "bitfed/report/charts/partition_picture.h"
#include "python/src/arrays.h"
#include "python/src/bindings.h"
#include "python/src/interrupt.h"

namespace bitfed::python {
namespace {

// Who a sample belongs to; without an array, nobody.
void add_groups(const std::optional<Groups>& groups, const std::vector<std::string>& names,
                Dataset* dataset) {
  if (!groups) return;
  if (groups->shape(0) != dataset->size())
    throw input_error("person: found {}, expected {}: one per sample", groups->shape(0), dataset->size());
  dataset->groups.assign(groups->data(), groups->data() + groups->shape(0));
  dataset->group_names = names;
}

// The array, kept for as long as a data set reads it. The last reader may be a thread without the GIL.
std::shared_ptr<const void> keep(const Array& array) {
  return {new Array(array), [](const Array* kept) {
            const nb::gil_scoped_acquire gil;
            delete kept;
          }};
}

// A data set that reads its samples where the array has them.
Dataset dataset_of(const std::string& name, const Array& array, const Labels& labels,
                   const std::vector<std::string>& class_names, const std::vector<std::string>& columns) {
  const SampleView view = view_samples(array);
  if (labels.shape(0) != view.samples.count)
    throw input_error("y: found {} labels, expected {}: one per sample", labels.shape(0), view.samples.count);
  Dataset dataset = empty_dataset(name, view.shape);
  if (!columns.empty()) dataset.columns = columns;
  const size_t values = view.samples.count * view.shape.count();
  if (view.shape.is_table()) {
    dataset.values = Elements<float>::borrowed({view.samples.values, values}, keep(array));
  } else {
    dataset.pixels = Elements<uint8_t>::borrowed({view.samples.pixels, values}, keep(array));
  }
  dataset.labels.assign(labels.data(), labels.data() + labels.shape(0));
  dataset.class_names = class_names;
  return dataset;
}

// CSV text by the rules of the program, which are those of a recipe's data.file.
Dataset parse_table(const nb::bytes& text, const std::string& name, const std::string& label,
                    const std::string& person, const std::string& ignore) {
  Dataset dataset;
  run_interruptibly([&](const Stop&) {
    dataset = parse_csv({text.c_str(), text.size()}, name, {label, person, split_names(ignore)});
  });
  return dataset;
}

nb::dict arrays_of(const Dataset& dataset) {
  nb::dict dict;
  dict["X"] = array_of(dataset);
  dict["y"] = own_array(std::vector<uint16_t>(dataset.labels), {dataset.size()});
  dict["class_names"] = dataset.class_names;
  dict["columns"] = dataset.columns;
  if (!dataset.groups.empty()) {
    dict["person"] = own_array(std::vector<uint32_t>(dataset.groups), {dataset.size()});
    dict["person_names"] = dataset.group_names;
  }
  return dict;
}

nb::tuple load_arrays(const std::string& name, const std::string& data_dir) {
  DataSplit split;
  run_interruptibly([&](const Stop&) { split = load_dataset(name, data_dir); });
  return nb::make_tuple(arrays_of(split.train), arrays_of(split.test));
}

nb::list names_of_datasets() {
  nb::list names;
  for (const DatasetEntry& entry : datasets()) names.append(entry.name);
  return names;
}

// The partition of a recipe's table, as text, over labels and people alone.
nb::tuple partition(const std::string& spec_text, const Labels& labels,
                    const std::vector<std::string>& class_names, const std::optional<Groups>& groups,
                    const std::vector<std::string>& group_names, uint64_t seed) {
  Dataset dataset;
  dataset.name = "y";
  dataset.labels.assign(labels.data(), labels.data() + labels.shape(0));
  dataset.class_names = class_names;
  add_groups(groups, group_names, &dataset);
  const Config config = Config::parse(spec_text, "partition");
  const PartitionSpec spec = read_partition(config);
  config.reject_unknown_keys();
  const Partition parts = make_partition(dataset, spec, seed);
  nb::list indices;
  for (const std::vector<uint32_t>& part : parts) indices.append(own_array(std::vector(part), {part.size()}));
  const auto counts = class_counts(dataset, parts);
  return nb::make_tuple(indices, counts, partition_picture(counts, class_names, describe(spec)));
}

}  // namespace

void add_data(nb::module_& module) {
  nb::class_<Dataset>(module, "Dataset", "Labelled samples of a federation.")
      .def(
          "__init__",
          [](Dataset* self, const std::string& name, const Array& array, const Labels& labels,
             const std::vector<std::string>& class_names, const std::vector<std::string>& columns,
             const std::optional<Groups>& groups, const std::vector<std::string>& group_names) {
            new (self) Dataset(dataset_of(name, array, labels, class_names, columns));
            add_groups(groups, group_names, self);
          },
          nb::arg("name"), nb::arg("X"), nb::arg("y"), nb::arg("class_names"), nb::arg("columns"),
          nb::arg("groups").none(), nb::arg("group_names"))
      .def("__len__", &Dataset::size)
      .def_ro("class_names", &Dataset::class_names);
  module.def("parse_table", parse_table, nb::arg("text"), nb::arg("name"), nb::arg("label"),
             nb::arg("person"), nb::arg("ignore"));
  module.def(
      "find_data_file",
      [](const std::string& file, const std::string& data_dir) {
        return find_data_file(file, "data.file", data_dir).string();
      },
      nb::arg("file"), nb::arg("data_dir"));
  module.def("load_arrays", load_arrays, nb::arg("name"), nb::arg("data_dir") = "");
  module.def("datasets", names_of_datasets);
  module.def("partition", partition, nb::arg("spec"), nb::arg("y"), nb::arg("class_names"),
             nb::arg("groups").none(), nb::arg("group_names"), nb::arg("seed"));
}

}  // namespace bitfed::python
