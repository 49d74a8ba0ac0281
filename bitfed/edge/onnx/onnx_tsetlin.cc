// A Tsetlin machine as ONNX: a clause is a filter that counts how many of its literals fail in a patch, and
// it fires if somewhere none does. All of that is in whole numbers.

#include <algorithm>

#include "bitfed/base/error.h"
#include "bitfed/edge/exportable.h"
#include "bitfed/edge/onnx/onnx_body.h"
#include "bitfed/edge/plain_clauses.h"

namespace bitfed {
namespace {

using Shape = OnnxGraph::Shape;

int64_t signed_of(size_t value) {
  return static_cast<int64_t>(value);
}

// The sum over a window along an axis, in the booleanizer's order: middle, then pairs outward. Borders are
// repeated.
std::string window_sums(const std::string& x, int64_t axis, size_t length, const std::vector<double>& weights,
                        OnnxGraph* graph) {
  const auto radius = signed_of(weights.size()) - 1;
  std::vector<int64_t> pads(8);
  pads[static_cast<size_t>(axis)] = pads[static_cast<size_t>(axis) + 4] = radius;
  const std::string padded =
      graph->node("Pad", {x, graph->constant({8}, pads)}, {{"mode", std::string("edge")}});
  const auto shifted = [&](int64_t by) {
    return graph->slice(padded, axis, radius + by, radius + by + signed_of(length));
  };
  const auto weight = [&](int64_t k) {
    return graph->constant({}, std::vector{weights[static_cast<size_t>(k)]});
  };
  std::string sum = graph->node("Mul", {shifted(0), weight(0)});
  for (int64_t k = 1; k <= radius; ++k) {
    const std::string pair = graph->node("Add", {shifted(-k), shifted(k)});
    sum = graph->node("Add", {sum, graph->node("Mul", {pair, weight(k)})});
  }
  return sum;
}

// The bits of the samples as booleans: [samples, height, width, planes].
std::string booleanized(const TsetlinMember& member, const std::string& input, OnnxGraph* graph) {
  const BooleanizerSpec& spec = member.booleanizer;
  const PatchShape& shape = member.shape;
  const Shape image = {-1, signed_of(shape.height), signed_of(shape.width), signed_of(shape.planes)};
  if (spec.kind == "quantile") {
    std::vector<int64_t> columns;
    std::vector<float> cuts;
    for (size_t column = 0; column < spec.cuts.size(); ++column) {
      columns.insert(columns.end(), spec.cuts[column].size(), signed_of(column));
      cuts.insert(cuts.end(), spec.cuts[column].begin(), spec.cuts[column].end());
    }
    const Shape planes = {signed_of(cuts.size())};
    const std::string values =
        graph->node("Gather", {input, graph->constant(planes, columns)}, {{"axis", int64_t{1}}});
    const std::string bits = graph->node("Greater", {values, graph->constant(planes, cuts)});
    return graph->node("Reshape", {bits, graph->constant({4}, image)});
  }
  if (spec.kind == "threshold") {
    const std::string pixels = graph->cast(input, OnnxType::kFloat);
    return graph->node("Greater", {pixels, graph->constant({}, std::vector{static_cast<float>(spec.level)})});
  }
  if (spec.kind == "colour-thermometer") {
    std::vector<float> levels;
    for (int z = 1; z <= spec.levels; ++z) levels.push_back(static_cast<float>(z * 255));
    std::string x = graph->cast(input, OnnxType::kFloat);
    x = graph->node("Mul", {x, graph->constant({}, std::vector{static_cast<float>(spec.levels + 1)})});
    x = graph->node("Unsqueeze", {x, graph->constant({1}, std::vector<int64_t>{4})});
    x = graph->node("GreaterOrEqual", {x, graph->constant({spec.levels}, levels)});
    return graph->node("Reshape", {x, graph->constant({4}, image)});
  }
  if (spec.kind == "adaptive-gaussian") {
    const std::vector<double> weights = gaussian_weights(spec.window);
    const std::string pixels = graph->cast(input, OnnxType::kDouble);
    std::string mean = window_sums(pixels, 2, shape.width, weights, graph);
    mean = graph->node("Round", {window_sums(mean, 1, shape.height, weights, graph)});
    const std::string least = graph->constant({}, std::vector{static_cast<double>(-spec.offset)});
    return graph->node("Greater", {graph->node("Sub", {pixels, mean}), least});
  }
  throw input_error("--format onnx: no way to write the booleanizer '{}' as ONNX", spec.kind);
}

// The sums of a machine's classes, in doubles, which hold them all exactly.
class MemberGraph {
 public:
  MemberGraph(const TsetlinMember& member, size_t classes, OnnxGraph* graph)
      : member_(member), classes_(classes), graph_(*graph) {}

  std::string write(const std::string& bits) {
    const auto classes = signed_of(classes_);
    const std::vector<double> bias(member_.bias.begin(), member_.bias.end());
    std::string sums = graph_.constant({1, classes}, bias);
    std::vector<PlainClause> clauses;
    std::vector<size_t> labels;
    for (size_t label = 0; label < classes_; ++label) {
      for (PlainClause& clause : plain_clauses(member_, label)) {
        clauses.push_back(std::move(clause));
        labels.push_back(label);
      }
    }
    if (clauses.empty()) {  // the bias alone, for every sample
      const std::string none = graph_.node(
          "ReduceSum",
          {graph_.cast(bits, OnnxType::kDouble), graph_.constant({3}, std::vector<int64_t>{1, 2, 3})},
          {{"keepdims", int64_t{0}}});
      const std::string zeros = graph_.node("Mul", {none, graph_.constant({}, std::vector{0.0})});
      return graph_.node(
          "Add", {sums, graph_.node("Unsqueeze", {zeros, graph_.constant({1}, std::vector<int64_t>{1})})});
    }
    std::vector<double> votes(clauses.size() * classes_);
    for (size_t i = 0; i < clauses.size(); ++i) votes[i * classes_ + labels[i]] = clauses[i].weight;
    const std::string fired = graph_.cast(fires(bits, clauses), OnnxType::kDouble);
    const std::string weights = graph_.constant({signed_of(clauses.size()), classes}, votes);
    sums = graph_.node("Add", {graph_.node("MatMul", {fired, weights}), sums});
    if (member_.clamp == 0) return sums;
    const auto limit = static_cast<double>(member_.clamp);
    return graph_.node(
        "Clip", {sums, graph_.constant({}, std::vector{-limit}), graph_.constant({}, std::vector{limit})});
  }

 private:
  // [samples, clauses]: whether in some patch nothing fails.
  std::string fires(const std::string& bits, const std::vector<PlainClause>& clauses) {
    const PatchShape& shape = member_.shape;
    const auto count = signed_of(clauses.size());
    const size_t patch = shape.patch_height * shape.patch_width;
    std::vector<int8_t> filters(clauses.size() * shape.planes * patch);
    std::vector<float> demanded;        // literals that are not negated: they fail where the bit is 0
    std::vector<int8_t> rows, columns;  // 1: not looked at
    for (size_t i = 0; i < clauses.size(); ++i) {
      const PlainClause& clause = clauses[i];
      float positive = 0;
      for (const PlainClause::Literal& literal : clause.literals) {
        const size_t place =
            (i * shape.planes + literal.plane) * patch + literal.y * shape.patch_width + literal.x;
        filters[place] = literal.negated ? 1 : -1;
        if (!literal.negated) ++positive;
      }
      demanded.push_back(positive);
      for (size_t y = 0; y < shape.positions_y(); ++y)
        rows.push_back(y < clause.first_y || y > clause.last_y);
      for (size_t x = 0; x < shape.positions_x(); ++x)
        columns.push_back(x < clause.first_x || x > clause.last_x);
    }
    const std::string planes = graph_.node("Transpose", {graph_.cast(bits, OnnxType::kFloat)},
                                           {{"perm", std::vector<int64_t>{0, 3, 1, 2}}});
    const std::string weights = graph_.small_floats(
        {count, signed_of(shape.planes), signed_of(shape.patch_height), signed_of(shape.patch_width)},
        filters);
    std::string failing = graph_.node("Conv", {planes, weights, graph_.constant({count}, demanded)});
    failing =
        graph_.node("Add", {failing, graph_.small_floats({count, signed_of(shape.positions_y()), 1}, rows)});
    failing = graph_.node(
        "Add", {failing, graph_.small_floats({count, 1, signed_of(shape.positions_x())}, columns)});
    const std::string least =
        graph_.node("ReduceMin", {failing}, {{"axes", std::vector<int64_t>{2, 3}}, {"keepdims", int64_t{0}}});
    return graph_.node("Less", {least, graph_.constant({}, std::vector{0.5f})});
  }

  const TsetlinMember& member_;
  size_t classes_;
  OnnxGraph& graph_;
};

}  // namespace

std::string add_onnx(const TsetlinModel& model, const std::string& input, OnnxGraph* graph) {
  check_exportable(model, "onnx");
  std::string scores;
  for (const TsetlinMember& member : model.members()) {
    const std::string bits = booleanized(member, input, graph);
    const std::string sums = MemberGraph(member, model.class_count(), graph).write(bits);
    const std::string part = graph->node(
        "Div", {graph->cast(sums, OnnxType::kFloat), graph->constant({}, std::vector{member.scale})});
    scores = scores.empty() ? part : graph->node("Add", {scores, part});
  }
  return scores;
}

}  // namespace bitfed
