// A Tsetlin machine as C. A sample's bits lie plane by plane, row by row, a bit a column, end to end: the
// literal of a patch is then a distance from the patch's first bit, and 32 patches side by side are one word
// from there on. A clause goes over the rows of patches with a word of those that still match, and gives up a
// word as it becomes zero.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bitfed/base/error.h"
#include "bitfed/edge/c/c_body.h"
#include "bitfed/edge/c/c_text.h"
#include "bitfed/edge/exportable.h"
#include "bitfed/edge/plain_clauses.h"
#include "bitfed/zoo/model_file.h"

namespace bitfed {
namespace {

constexpr const char* kBits = R"(
/* The bits of the sample as the present machine sees it. */
static uint32_t bits[@words@];

static void put(uint32_t place) {
  bits[place >> 5] |= (uint32_t)1 << (place & 31);
}

static void clear(void) {
  int i;
  for (i = 0; i < @words@; ++i) bits[i] = 0;
}
)";

constexpr const char* kThreshold = R"(
static void see_@view@(const @name@_input *pixels) {
  uint32_t y, x, c;
  clear();
  for (y = 0; y < @height@; ++y) {
    for (x = 0; x < @width@; ++x) {
      for (c = 0; c < @channels@; ++c) {
        if (*pixels++ > @level@) put((c * @height@ + y) * @width@ + x);
      }
    }
  }
}
)";

constexpr const char* kThermometer = R"(
static void see_@view@(const @name@_input *pixels) {
  uint32_t y, x, c, z;
  clear();
  for (y = 0; y < @height@; ++y) {
    for (x = 0; x < @width@; ++x) {
      for (c = 0; c < @channels@; ++c, ++pixels) {
        for (z = 0; z < @levels@ && *pixels * @steps@u >= (z + 1) * 255; ++z)
          put(((c * @levels@ + z) * @height@ + y) * @width@ + x);
      }
    }
  }
}
)";

// The order of additions is that of the booleanizer: the sums down the columns round.
constexpr const char* kAdaptive = R"(
/* Rows averaged along themselves, as many as the window looks at; row y is at y % @window@. */
static double averaged_@view@[@window@][@row@];

static void average_@view@(const @name@_input *pixels, int y) {
  const @name@_input *row = pixels + y * @row@;
  double *result = averaged_@view@[y % @window@];
  int i, k;
  for (i = 0; i < @row@; ++i) {
    const int c = i % @channels@;
    double sum = gaussian_@view@[0] * row[i];
    for (k = 1; k <= @radius@; ++k) {
      const int left = i - k * @channels@;
      const int right = i + k * @channels@;
      sum += gaussian_@view@[k] *
             ((double)row[left < 0 ? c : left] + row[right < @row@ ? right : @row@ - @channels@ + c]);
    }
    result[i] = sum;
  }
}

static void see_@view@(const @name@_input *pixels) {
  int next = 0; /* the first row that is not averaged yet */
  int y, i, k;
  clear();
  for (y = 0; y < @height@; ++y) {
    while (next < @height@ && next <= y + @radius@) average_@view@(pixels, next++);
    for (i = 0; i < @row@; ++i) {
      double mean = gaussian_@view@[0] * averaged_@view@[y % @window@][i];
      for (k = 1; k <= @radius@; ++k) {
        const int above = y - k < 0 ? 0 : y - k;
        const int below = y + k < @height@ ? y + k : @height@ - 1;
        mean += gaussian_@view@[k] *
                (averaged_@view@[above % @window@][i] + averaged_@view@[below % @window@][i]);
      }
      mean = (mean + 0x1.8p52) - 0x1.8p52; /* rounds, halves to even */
      if (pixels[y * @row@ + i] - mean > @least@)
        put((uint32_t)((i % @channels@ * @height@ + y) * @width@ + i / @channels@));
    }
  }
}
)";

constexpr const char* kQuantile = R"(
static void see_@view@(const @name@_input *values) {
  uint32_t plane = 0;
  int column, i;
  clear();
  for (column = 0; column < @columns@; ++column) {
    for (i = 0; i < cut_counts_@view@[column]; ++i, ++plane) {
      if (values[column] > cuts_@view@[plane]) put(plane);
    }
  }
}
)";

constexpr const char* kScore = R"(
/* Whether all literals hold in one of the patches that the clause looks at: rows first_y to last_y, columns first_x to
   last_x. A literal is twice its distance from the patch's first bit, plus one where it is negated. */
static int fires(uint32_t clause, const @literal@ *list, uint32_t count, uint32_t row_bits) {
  uint32_t y, x, i;
  for (y = first_y[clause]; y <= last_y[clause]; ++y) {
    for (x = first_x[clause]; x <= last_x[clause]; x += 32) {
      const uint32_t more = last_x[clause] - x;
      uint32_t matches = more < 31 ? ((uint32_t)2 << more) - 1 : 0xffffffffu;
      for (i = 0; i < count && matches != 0; ++i) {
        const uint32_t place = ((uint32_t)list[i] >> 1) + y * row_bits + x;
        const uint32_t *word = bits + (place >> 5);
        const uint32_t shift = place & 31;
        const uint32_t holds = shift == 0 ? word[0] : word[0] >> shift | word[1] << (32 - shift);
        matches &= (list[i] & 1) != 0 ? ~holds : holds;
      }
      if (matches != 0) return 1;
    }
  }
  return 0;
}

static void score(const @name@_input *input, float *scores) {
  static void (*const see[@views@])(const @name@_input *) = {@see@};
  const @literal@ *list = literals;
  uint32_t clause = 0;
  int member, k;
  uint32_t i;
  for (k = 0; k < @classes@; ++k) scores[k] = 0;
  for (member = 0; member < @members@; ++member) {
    if (member == 0 || member_view[member] != member_view[member - 1]) see[member_view[member]](input);
    for (k = 0; k < @classes@; ++k) {
      @sum@ sum = bias[member * @classes@ + k];
      for (i = 0; i < clause_counts[member * @classes@ + k]; ++i, ++clause) {
        if (fires(clause, list, literal_counts[clause], row_bits[member])) sum += weights[clause];
        list += literal_counts[clause];
      }
@clamp@      scores[k] += (float)sum / scale[member];
    }
  }
}
)";

constexpr const char* kClamp =
    R"(      if (sum > clamp[member] && clamp[member] > 0) sum = clamp[member];
      if (sum < -(@sum@)clamp[member] && clamp[member] > 0) sum = -(@sum@)clamp[member];
)";

// How a machine sees samples: its booleanizer and the size of what it sees.
bool sees_alike(const TsetlinMember& a, const TsetlinMember& b) {
  return a.booleanizer == b.booleanizer && a.shape.height == b.shape.height &&
         a.shape.width == b.shape.width && a.shape.planes == b.shape.planes;
}

class TsetlinWriter {
 public:
  explicit TsetlinWriter(const TsetlinModel& model) : model_(model) {}

  CBody write() {
    check_exportable(model_, "c");
    input_ = member_input(model_.members().front());
    for (const TsetlinMember& member : model_.members()) add_member(member);
    add_tables();
    CBody body = c_body_for(input_);
    body.code =
        tables_.text() + filled(kBits, {{"words", std::to_string(most_words_)}}) + views_text_ + score_text();
    body.table_bytes = tables_.bytes();
    body.ram_bytes = 4 * most_words_ + view_ram_;
    return body;
  }

 private:
  void add_member(const TsetlinMember& member) {
    size_t view = 0;
    while (view < viewers_.size() && !sees_alike(*viewers_[view], member)) ++view;
    if (view == viewers_.size()) add_view(member);
    view_.push_back(static_cast<int64_t>(view));
    row_bits_.push_back(static_cast<int64_t>(member.shape.width));
    clamp_.push_back(member.clamp);
    scale_.push_back(member.scale);
    bias_.insert(bias_.end(), member.bias.begin(), member.bias.end());
    for (size_t label = 0; label < model_.class_count(); ++label) {
      const std::vector<PlainClause> clauses = plain_clauses(member, label);
      int64_t most = std::abs(int64_t{member.bias[label]});
      for (const PlainClause& clause : clauses) {
        add_clause(member.shape, clause);
        most += std::abs(int64_t{clause.weight});
      }
      clause_counts_.push_back(static_cast<int64_t>(clauses.size()));
      most_sum_ = std::max(most_sum_, most);
    }
  }

  void add_clause(const PatchShape& shape, const PlainClause& clause) {
    first_y_.push_back(static_cast<int64_t>(clause.first_y));
    last_y_.push_back(static_cast<int64_t>(clause.last_y));
    first_x_.push_back(static_cast<int64_t>(clause.first_x));
    last_x_.push_back(static_cast<int64_t>(clause.last_x));
    weights_.push_back(clause.weight);
    literal_counts_.push_back(static_cast<int64_t>(clause.literals.size()));
    for (const PlainClause::Literal& literal : clause.literals) {
      const size_t place = (literal.plane * shape.height + literal.y) * shape.width + literal.x;
      literals_.push_back(static_cast<int64_t>(2 * place + (literal.negated ? 1 : 0)));
    }
  }

  void add_view(const TsetlinMember& member) {
    const BooleanizerSpec& spec = member.booleanizer;
    const PatchShape& shape = member.shape;
    const std::string view = std::to_string(viewers_.size());
    viewers_.push_back(&member);
    // A word more than the bits fill, since clauses read two at a time.
    most_words_ = std::max(most_words_, (shape.height * shape.width * shape.planes + 31) / 32 + 1);
    const size_t channels = input_.channels;
    const size_t row = shape.width * channels;
    std::vector<std::pair<std::string, std::string>> values = {{"view", view},
                                                               {"height", std::to_string(shape.height)},
                                                               {"width", std::to_string(shape.width)},
                                                               {"channels", std::to_string(channels)},
                                                               {"row", std::to_string(row)},
                                                               {"level", std::to_string(spec.level)},
                                                               {"levels", std::to_string(spec.levels)},
                                                               {"steps", std::to_string(spec.levels + 1)},
                                                               {"least", std::to_string(-spec.offset)},
                                                               {"window", std::to_string(spec.window)},
                                                               {"radius", std::to_string(spec.window / 2)},
                                                               {"columns", std::to_string(spec.cuts.size())}};
    if (spec.kind == "threshold") {
      views_text_ += filled(kThreshold, values);
    } else if (spec.kind == "colour-thermometer") {
      views_text_ += filled(kThermometer, values);
    } else if (spec.kind == "adaptive-gaussian") {
      tables_.doubles("gaussian_" + view, gaussian_weights(spec.window));
      view_ram_ += 8 * static_cast<size_t>(spec.window) * row;
      views_text_ += filled(kAdaptive, values);
    } else if (spec.kind == "quantile") {
      std::vector<int64_t> counts;
      std::vector<float> cuts;
      for (const std::vector<float>& column : spec.cuts) {
        counts.push_back(static_cast<int64_t>(column.size()));
        cuts.insert(cuts.end(), column.begin(), column.end());
      }
      tables_.integers("cut_counts_" + view, counts);
      tables_.floats("cuts_" + view, cuts);
      views_text_ += filled(kQuantile, values);
    } else {
      throw input_error("--format c: no way to write the booleanizer '{}' as C", spec.kind);
    }
  }

  void add_tables() {
    const int64_t most = literals_.empty() ? 0 : *std::max_element(literals_.begin(), literals_.end());
    if (most <= UINT8_MAX) {
      literal_type_ = "uint8_t";
    } else if (most <= UINT16_MAX) {
      literal_type_ = "uint16_t";
    } else {
      literal_type_ = "uint32_t";
    }
    tables_.integers("literals", literals_);
    tables_.integers("literal_counts", literal_counts_);
    tables_.integers("first_y", first_y_);
    tables_.integers("last_y", last_y_);
    tables_.integers("first_x", first_x_);
    tables_.integers("last_x", last_x_);
    tables_.integers("weights", weights_);
    tables_.integers("clause_counts", clause_counts_);
    tables_.integers("bias", bias_);
    tables_.integers("member_view", view_);
    tables_.integers("row_bits", row_bits_);
    if (is_clamped()) tables_.integers("clamp", clamp_);
    tables_.floats("scale", scale_);
  }

  bool is_clamped() const {
    return std::any_of(clamp_.begin(), clamp_.end(), [](int64_t clamp) { return clamp > 0; });
  }

  std::string score_text() const {
    std::string see;
    for (size_t i = 0; i < viewers_.size(); ++i) see += fmt::format("{}see_{}", i == 0 ? "" : ", ", i);
    const std::string sum = most_sum_ <= INT32_MAX ? "int32_t" : "int64_t";
    return filled(kScore, {{"literal", literal_type_},
                           {"views", std::to_string(viewers_.size())},
                           {"see", see},
                           {"classes", std::to_string(model_.class_count())},
                           {"members", std::to_string(model_.members().size())},
                           {"clamp", is_clamped() ? kClamp : ""},
                           {"sum", sum}});
  }

  const TsetlinModel& model_;
  SampleShape input_;
  std::vector<const TsetlinMember*> viewers_;  // the first of those that see alike
  CTables tables_;
  std::string views_text_;
  size_t most_words_ = 0;
  size_t view_ram_ = 0;
  int64_t most_sum_ = 0;
  std::string literal_type_;
  std::vector<int64_t> literals_, literal_counts_, first_y_, last_y_, first_x_, last_x_, weights_;
  std::vector<int64_t> clause_counts_, bias_, view_, row_bits_, clamp_;
  std::vector<float> scale_;
};

}  // namespace

CBody c_body(const TsetlinModel& model) {
  return TsetlinWriter(model).write();
}

}  // namespace bitfed
