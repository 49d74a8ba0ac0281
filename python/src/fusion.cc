#include "python/src/fusion.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <vector>

#include "bitfed/base/error.h"
#include "bitfed/federated/tsetlin/tsetlin_server.h"
#include "python/src/arrays.h"

namespace bitfed::python {
namespace {

// The clauses of several banks: [bank][clause][literal] and the signed votes [bank][clause].
nb::dict banks_of(const std::vector<ClassBank>& banks, size_t clauses, size_t literals) {
  std::vector<uint8_t> actions;
  std::vector<int32_t> weights;
  std::vector<float> means;
  actions.reserve(banks.size() * clauses * literals);
  for (const ClassBank& bank : banks) {
    for (size_t clause = 0; clause < clauses; ++clause) {
      for (size_t literal = 0; literal < literals; ++literal)
        actions.push_back(bank.actions.get(clause, literal) ? 1 : 0);
      weights.push_back(clause % 2 == 0 ? bank.weights[clause] : -bank.weights[clause]);
    }
    means.insert(means.end(), {bank.positive_mean, bank.negative_mean, bank.hardest_mean});
  }
  nb::dict dict;
  dict["actions"] = own_array(std::move(actions), {banks.size(), clauses, literals});
  dict["weights"] = own_array(std::move(weights), {banks.size(), clauses});
  dict["means"] = own_array(std::move(means), {banks.size(), 3});
  return dict;
}

nb::dict upload_of(uint32_t client, const TsetlinUpload& upload, const TsetlinRecipe& recipe) {
  nb::dict dict;
  dict["client"] = client;
  dict["classes"] = own_array(std::vector(upload.classes), {upload.classes.size()});
  dict["samples"] = own_array(std::vector(upload.samples), {upload.samples.size()});
  nb::list machines;
  for (size_t s = 0; s < upload.banks.size(); ++s) {
    const SpecialistSpec& spec = recipe.specialists[s];
    machines.append(banks_of(upload.banks[s], spec.options.clauses, spec.shape(recipe.prototype).literals()));
  }
  dict["machines"] = machines;
  return dict;
}

using Actions = nb::ndarray<const uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Weights = nb::ndarray<const int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// A machine of the model, from arrays [class][clause][literal] and [class][clause].
TsetlinMember member_from(const nb::dict& dict, const TsetlinRecipe& recipe) {
  const auto specialist = nb::cast<size_t>(dict["machine"]);
  if (specialist >= recipe.specialists.size())
    throw input_error("fuse: machine: found {}, expected less than {}", specialist,
                      recipe.specialists.size());
  const auto actions = nb::cast<Actions>(dict["actions"]);
  const auto weights = nb::cast<Weights>(dict["weights"]);
  const size_t classes = recipe.prototype.class_count();
  const size_t clauses = actions.shape(1);
  TsetlinMember member = empty_member(recipe, specialist, clauses);
  if (actions.shape(0) != classes || actions.shape(2) != member.shape.literals() ||
      weights.shape(0) != classes || weights.shape(1) != clauses) {
    throw input_error(
        "fuse: found actions [{}, {}, {}] and weights [{}, {}], expected [{}, clauses, {}] and [{}, clauses]",
        actions.shape(0), clauses, actions.shape(2), weights.shape(0), weights.shape(1), classes,
        member.shape.literals(), classes);
  }
  for (size_t row = 0; row < classes * clauses; ++row) {
    member.weights[row] = weights.data()[row];
    for (size_t literal = 0; literal < member.shape.literals(); ++literal) {
      if (actions.data()[row * member.shape.literals() + literal] != 0)
        set_bit(member.actions.row(row), literal);
    }
  }
  member.clamp = nb::cast<int32_t>(dict["clamp"]);
  member.scale = nb::cast<float>(dict["scale"]);
  return member;
}

Fused fuse(const PythonObject& method, const TsetlinRecipe& recipe, const Uploads& uploads) {
  const nb::gil_scoped_acquire gil;
  nb::list list;
  for (const auto& [client, upload] : uploads) list.append(upload_of(client, upload, recipe));
  nb::list machines;
  for (const SpecialistSpec& spec : recipe.specialists) {
    nb::dict about;
    about["clauses"] = spec.options.clauses;
    about["threshold"] = spec.options.threshold;
    about["literals"] = spec.shape(recipe.prototype).literals();
    machines.append(about);
  }
  Fused fused;
  const nb::object members = method->attr("_fuse")(list, machines, recipe.prototype.class_count());
  for (const nb::handle member : members)
    fused.members.push_back(member_from(nb::cast<nb::dict>(member), recipe));
  if (fused.members.empty()) throw input_error("fuse: found no machine, expected at least one");
  return fused;
}

}  // namespace

std::unique_ptr<Method> make_python_fusion(const MethodContext& context, const PythonObject& method) {
  return make_one_shot_method(context, [method](const TsetlinRecipe& recipe, const Uploads& uploads) {
    return fuse(method, recipe, uploads);
  });
}

}  // namespace bitfed::python
