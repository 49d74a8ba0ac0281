#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <mutex>
#include <utility>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"
#include "bitfed/data/catalog/catalog.h"
#include "bitfed/data/catalog/own_data.h"
#include "bitfed/data/pixel_statistics.h"
#include "bitfed/federated/client_round.h"
#include "bitfed/federated/experiment.h"
#include "bitfed/federated/federation.h"
#include "bitfed/report/pages/comparison.h"
#include "bitfed/report/pages/page.h"
#include "bitfed/simulation/experiment.h"
#include "python/src/arrays.h"
#include "python/src/bindings.h"
#include "python/src/interrupt.h"
#include "python/src/model.h"
#include "python/src/python_method.h"

namespace bitfed::python {
namespace {

// What a simulation tells, from any thread, until the calling thread picks it up.
class EventQueue {
 public:
  void put(const Event& event) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(event_line(event, ""));
  }
  void hand_to(const nb::object& callback) {
    std::vector<std::string> lines;
    {
      const std::lock_guard lock(mutex_);
      lines.swap(lines_);
    }
    if (callback.is_none()) return;
    for (const std::string& line : lines) callback(line);
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

// Takes the samples out of `train` and `test`: a federation holds them once. Without test samples a table is
// split as a CSV file is, images as files of images are.
DataSplit split_of(const Config& data, Dataset* train, Dataset* test, uint64_t seed) {
  const SplitSpec usual = train->is_table() ? SplitSpec{} : usual_split(*train);
  DataSplit split = test != nullptr ? DataSplit{std::move(*train), std::move(*test)}
                                    : split_table(*train, read_split(data, usual), seed);
  *train = {};
  add_pixel_statistics(data, &split);
  return with_notes(std::move(split));
}

struct Source {
  std::string recipe;
  std::string name;  // of the file, for errors
  std::vector<std::string> overrides;
  std::string default_name;
  std::string data_dir;
};

Experiment read(const Source& source, Dataset* train, Dataset* test, const MakeMethod& make) {
  Config recipe = Config::parse(source.recipe, source.name);
  recipe.set_all(source.overrides);
  const auto seed = static_cast<uint64_t>(recipe.integer("seed", 0, 0, INT64_MAX));
  const Config data = recipe.section("data");
  DataSplit split =
      train != nullptr ? split_of(data, train, test, seed) : load_data(data, source.data_dir, seed);
  return read_experiment(recipe, std::move(split), source.default_name, ClientsAre::kSimulated, make);
}

// The server half of an experiment's method, for federations that another framework carries.
class Server {
 public:
  explicit Server(std::shared_ptr<const Experiment> experiment)
      : experiment_(std::move(experiment)), half_(experiment_->method->make_server()) {}

  ServerHalf& half() { return *half_; }
  NamedModel model() const {
    const Dataset& train = experiment_->train;
    return {half_->model(), experiment_->name, train.class_names, "", {train.columns}};
  }

 private:
  std::shared_ptr<const Experiment> experiment_;
  std::unique_ptr<ServerHalf> half_;
};

class Federation {
 public:
  explicit Federation(Experiment experiment)
      : experiment_(std::make_shared<Experiment>(std::move(experiment))),
        client_(experiment_->method->make_client()) {}

  const Experiment& experiment() const { return *experiment_; }
  Server server() const { return Server(experiment_); }

  std::string run(const ExperimentOptions& options, const nb::object& callback) const {
    EventQueue events;
    ExperimentResult result;
    run_interruptibly(
        [&](const Stop& stop) {
          ExperimentOptions stoppable = options;
          stoppable.stop = stop;
          result = run_experiment(*experiment_, stoppable, [&](const Event& event) { events.put(event); });
          write_file_atomically(result.folder / "report.html",
                                report_page({read_run_with_model(result.folder)}));
        },
        [&] { events.hand_to(callback); });
    return result.folder.string();
  }

  // One client's work in one round, on its part of the data.
  ClientOutcome train(uint32_t client, uint32_t round, const Bytes& broadcast, const Bytes& kept) const {
    const Dataset samples = part(client);
    ClientOutcome outcome;
    run_interruptibly([&](const Stop& stop) {
      outcome = run_client({*client_, decode(broadcast, "broadcast"), experiment_->seed, round, stop},
                           {client, samples, kept, [](double /*fraction*/) {}});
    });
    return outcome;
  }

  // The accuracy on a client's own samples, and how many they are.
  std::pair<double, size_t> evaluate_client(const NamedModel& model, uint32_t client) const {
    EvaluationData data{part(client), {}};
    ThreadPool pool(1);
    return {evaluate_model(*model.model, data, pool).scores.accuracy, data.test.size()};
  }

  nb::dict evaluate(const NamedModel& model) const {
    Evaluation evaluation;
    run_interruptibly([&](const Stop&) {
      ThreadPool pool;
      evaluation = evaluate_model(*model.model, experiment_->evaluation, pool);
    });
    nb::dict scores;
    scores["accuracy"] = evaluation.scores.accuracy;
    if (evaluation.scores.validation_accuracy)
      scores["validation_accuracy"] = *evaluation.scores.validation_accuracy;
    scores["f1_micro"] = evaluation.scores.f1_micro;
    return scores;
  }

 private:
  Dataset part(uint32_t client) const {
    if (client >= experiment_->partition.size())
      throw input_error("client: found {}, expected less than {}", client, experiment_->partition.size());
    return subset(experiment_->train, experiment_->partition[client]);
  }

  std::shared_ptr<const Experiment> experiment_;
  std::unique_ptr<ClientHalf> client_;
};

RunFolderWriter::Existing existing_of(const std::string& word) {
  if (word == "resume") return RunFolderWriter::Existing::kResume;
  if (word == "overwrite") return RunFolderWriter::Existing::kOverwrite;
  return RunFolderWriter::Existing::kRefuse;
}

std::vector<RunFolder> read_runs(const std::vector<std::string>& folders) {
  std::vector<RunFolder> runs;
  for (const std::string& folder : folders) runs.push_back(read_run_with_model(folder));
  return runs;
}

Bytes copy_of(const nb::bytes& bytes) {
  const auto view = view_bytes(bytes);
  return {view.begin(), view.end()};
}

void add_servers(nb::module_& module) {
  nb::class_<Server>(module, "Server",
                     "The server half of a method. Rounds count from 1; 0 is the preparation.")
      .def_prop_ro("needs_preparation", [](Server& self) { return self.half().needs_preparation(); })
      .def(
          "broadcast",
          [](Server& self, uint32_t round) { return bytes_of(encode(self.half().broadcast(round))); },
          nb::arg("round"))
      .def(
          "accept",
          [](Server& self, uint32_t client, const nb::bytes& upload) {
            self.half().accept(client,
                               decode(view_bytes(upload), fmt::format("upload of client {}", client)));
          },
          nb::arg("client"), nb::arg("upload"))
      .def(
          "finish_round",
          [](Server& self, uint32_t round) {
            run_interruptibly([&](const Stop&) { self.half().finish_round(round); });
          },
          nb::arg("round"))
      .def("model", &Server::model)
      .def("save", [](Server& self) { return bytes_of(encode(self.half().save())); })
      .def("restore",
           [](Server& self, const nb::bytes& saved) {
             self.half().restore(decode(view_bytes(saved), "the saved state"));
           })
      .def_prop_ro("notes", [](Server& self) { return self.half().notes(); });
}

std::unique_ptr<Federation> make_federation(const std::string& recipe, const std::string& source,
                                            const std::vector<std::string>& overrides,
                                            const std::string& default_name, const std::string& data_dir,
                                            Dataset* train, Dataset* test, const nb::object& method) {
  const MakeMethod make = method.is_none() ? MakeMethod(make_method) : python_method(method);
  std::unique_ptr<Federation> federation;
  run_interruptibly([&](const Stop&) {
    federation = std::make_unique<Federation>(
        read({recipe, source, overrides, default_name, data_dir}, train, test, make));
  });
  return federation;
}

nb::list partition_of(const Federation& self) {
  nb::list parts;
  for (const std::vector<uint32_t>& part : self.experiment().partition)
    parts.append(own_array(std::vector(part), {part.size()}));
  return parts;
}

}  // namespace

void add_experiments(nb::module_& module) {
  add_client_progress(module);
  add_servers(module);
  nb::class_<Federation>(module, "Federation", "A recipe with its data: what `bitfed run` simulates.")
      .def(nb::new_(&make_federation), nb::arg("recipe"), nb::arg("source"), nb::arg("overrides"),
           nb::arg("default_name"), nb::arg("data_dir"), nb::arg("train").none(), nb::arg("test").none(),
           nb::arg("method").none())
      .def_prop_ro("name", [](const Federation& self) { return self.experiment().name; })
      .def_prop_ro("method_name", [](const Federation& self) { return self.experiment().method_name; })
      .def_prop_ro("seed", [](const Federation& self) { return self.experiment().seed; })
      .def_prop_ro("rounds", [](const Federation& self) { return self.experiment().rounds; })
      .def_prop_ro("clients", [](const Federation& self) { return self.experiment().clients; })
      .def_prop_ro(
          "recipe", [](const Federation& self) { return self.experiment().recipe; }, "As resolved.")
      .def_prop_ro("class_names", [](const Federation& self) { return self.experiment().train.class_names; })
      .def_prop_ro("partition", partition_of, "The indices of each client's training samples.")
      .def(
          "chosen",
          [](const Federation& self, uint32_t round) {
            const Experiment& experiment = self.experiment();
            const uint32_t count = round > 0 ? experiment.clients_per_round : experiment.clients;
            return sample_clients(experiment.seed, round, experiment.clients, count);
          },
          nb::arg("round"), "The clients of a round.")
      .def(
          "run",
          [](const Federation& self, const std::string& out, unsigned threads, const std::string& existing,
             const std::string& reuse, const nb::object& callback) {
            ExperimentOptions options;
            options.out = out;
            options.threads = threads;
            options.existing = existing_of(existing);
            options.reuse = reuse;
            options.version = BITFED_VERSION;
            return self.run(options, callback);
          },
          nb::arg("out"), nb::arg("threads"), nb::arg("existing"), nb::arg("reuse"),
          nb::arg("callback").none(), "Runs it, or what is left of it; returns the run's folder.")
      .def("server", &Federation::server)
      .def(
          "train",
          [](const Federation& self, uint32_t client, uint32_t round, const nb::bytes& broadcast,
             const nb::bytes& kept) {
            const ClientOutcome outcome = self.train(client, round, copy_of(broadcast), copy_of(kept));
            return nb::make_tuple(bytes_of(outcome.result.upload), bytes_of(outcome.kept),
                                  outcome.result.samples, outcome.result.train_seconds);
          },
          nb::arg("client"), nb::arg("round"), nb::arg("broadcast"), nb::arg("kept") = nb::bytes("", 0),
          "A client's round: upload, what it keeps (empty: as before), samples, seconds.")
      .def_prop_ro("selects_by_validation",
                   [](const Federation& self) { return self.experiment().select_by_validation; })
      .def("evaluate", &Federation::evaluate, nb::arg("model"))
      .def("evaluate_client", &Federation::evaluate_client, nb::arg("model"), nb::arg("client"),
           "The accuracy on the client's own samples, and their number.");
  module.def("report_page",
             [](const std::vector<std::string>& folders) { return report_page(read_runs(folders)); });
  module.def("comparison_text",
             [](const std::vector<std::string>& folders) { return comparison_text(read_runs(folders)); });
  module.def("decode_state",
             [](const nb::bytes& bytes) { return dict_of(decode(view_bytes(bytes), "state")); });
  module.def("encode_state", [](const nb::dict& dict) { return bytes_of(encode(state_of(dict, "state"))); });
}

}  // namespace bitfed::python
