#include "bitfed/tsetlin/member_sums.h"

#include <algorithm>

namespace bitfed {
namespace {

constexpr size_t kMostSums = 1 << 20;  // of a block and all members

}  // namespace

// What never changes.
struct MemberSums::Plan {
  struct Member {
    size_t index;  // within the model
    int64_t limit;
    CompiledClauses clauses;
  };
  // Members that look at samples in the same way.
  struct Alike {
    BooleanizerSpec booleanizer;
    PatchShape shape;
    std::vector<Member> members;
  };

  SampleShape sample;
  size_t class_count = 0;
  size_t block = 1;
  std::vector<Alike> alike;
};

// What a thread needs to look at samples in one way.
class MemberSums::Look {
 public:
  Look(const Plan& plan, const Plan::Alike& alike)
      : plan_(&plan),
        alike_(&alike),
        booleanizer_(make_booleanizer(alike.booleanizer, plan.sample)),
        images_(block(), alike.shape.height, alike.shape.width, alike.shape.planes),
        sums_(clauses_of(alike)),
        exact_(alike.members.size() * block() * plan.class_count) {
    for (size_t k = 0; k < alike.members.size(); ++k)
      places_.push_back(exact_.data() + k * block() * plan.class_count);
  }

  // A convolutional machine takes one image after the other.
  size_t block() const { return alike_->shape.is_flat() ? plan_->block : 1; }

  void fill(const Samples& samples, float* sums, size_t stride) {
    booleanizer_->fill(samples, &images_);
    sums_.fill(images_, places_);
    for (size_t k = 0; k < places_.size(); ++k) {
      const Plan::Member& member = alike_->members[k];
      float* out = sums + member.index * stride;
      for (size_t i = 0; i < samples.count * plan_->class_count; ++i)
        out[i] = static_cast<float>(std::clamp(places_[k][i], -member.limit, member.limit));
    }
  }

 private:
  static std::vector<const CompiledClauses*> clauses_of(const Plan::Alike& alike) {
    std::vector<const CompiledClauses*> all;
    for (const Plan::Member& member : alike.members) all.push_back(&member.clauses);
    return all;
  }

  const Plan* plan_;
  const Plan::Alike* alike_;
  std::unique_ptr<Booleanizer> booleanizer_;
  BitImages images_;
  ClauseSums sums_;
  std::vector<int64_t> exact_;
  std::vector<int64_t*> places_;  // within exact_, of each member
};

std::shared_ptr<const MemberSums::Plan> MemberSums::make_plan(const std::vector<TsetlinMember>& members,
                                                              size_t class_count) {
  auto plan = std::make_shared<Plan>();
  plan->sample = member_input(members.front());
  plan->class_count = class_count;
  for (size_t i = 0; i < members.size(); ++i) {
    const TsetlinMember& member = members[i];
    auto alike = std::find_if(plan->alike.begin(), plan->alike.end(), [&](const Plan::Alike& other) {
      return other.booleanizer == member.booleanizer && other.shape == member.shape;
    });
    if (alike == plan->alike.end()) alike = plan->alike.insert(alike, {member.booleanizer, member.shape, {}});
    const int64_t limit = member.clamp > 0 ? member.clamp : INT64_MAX;
    alike->members.push_back({i, limit, CompiledClauses(member, class_count)});
    // Flat machines take as many samples as there are bits in a block at the price of one.
    if (member.shape.is_flat())
      plan->block = std::clamp<size_t>(kMostSums / (members.size() * class_count), 1, FlatLiterals::kSamples);
  }
  return plan;
}

MemberSums::MemberSums(const std::vector<TsetlinMember>& members, size_t class_count)
    : MemberSums(make_plan(members, class_count)) {}

MemberSums::MemberSums(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {
  for (const Plan::Alike& alike : plan_->alike) looks_.emplace_back(*plan_, alike);
}

MemberSums::~MemberSums() = default;
MemberSums::MemberSums(MemberSums&&) noexcept = default;

const SampleShape& MemberSums::shape() const {
  return plan_->sample;
}

size_t MemberSums::block() const {
  return plan_->block;
}

void MemberSums::fill(const Samples& samples, float* sums, size_t stride) {
  for (Look& look : looks_) {
    for (size_t first = 0; first < samples.count; first += look.block()) {
      const size_t count = std::min(look.block(), samples.count - first);
      look.fill(samples.part(plan_->sample, first, count), sums + first * plan_->class_count, stride);
    }
  }
}

}  // namespace bitfed
