#include "bitfed/tsetlin/member_sums.h"

#include <algorithm>

namespace bitfed {
namespace {

constexpr size_t kMaxSums = 1 << 20;  // of a block and all members

}  // namespace

// The constant part, shared by all threads.
struct MemberSums::Plan {
  struct Member {
    size_t index;   // within the model
    int64_t limit;  // sums are clamped to ± this
    CompiledClauses clauses;
  };
  // Members with the same booleanizer and patch shape.
  struct Group {
    BooleanizerSpec booleanizer;
    PatchShape shape;
    std::vector<Member> members;
  };

  SampleShape sample;
  size_t class_count = 0;
  size_t block = 1;
  std::vector<Group> groups;
};

// The working memory of a thread for one booleanizer and patch shape.
class MemberSums::Workspace {
 public:
  Workspace(const Plan& plan, const Plan::Group& group)
      : plan_(&plan),
        group_(&group),
        booleanizer_(make_booleanizer(group.booleanizer, plan.sample)),
        images_(block(), group.shape.height, group.shape.width, group.shape.planes),
        sums_(clauses_of(group)),
        exact_(group.members.size() * block() * plan.class_count) {
    for (size_t k = 0; k < group.members.size(); ++k)
      outputs_.push_back(exact_.data() + k * block() * plan.class_count);
  }

  // A convolutional machine processes one image at a time.
  size_t block() const { return group_->shape.is_flat() ? plan_->block : 1; }

  void fill(const Samples& samples, float* sums, size_t stride) {
    booleanizer_->fill(samples, &images_);
    sums_.fill(images_, outputs_);
    for (size_t k = 0; k < outputs_.size(); ++k) {
      const Plan::Member& member = group_->members[k];
      float* out = sums + member.index * stride;
      for (size_t i = 0; i < samples.count * plan_->class_count; ++i)
        out[i] = static_cast<float>(std::clamp(outputs_[k][i], -member.limit, member.limit));
    }
  }

 private:
  static std::vector<const CompiledClauses*> clauses_of(const Plan::Group& group) {
    std::vector<const CompiledClauses*> all;
    for (const Plan::Member& member : group.members) all.push_back(&member.clauses);
    return all;
  }

  const Plan* plan_;
  const Plan::Group* group_;
  std::unique_ptr<Booleanizer> booleanizer_;
  BitImages images_;
  ClauseSums sums_;
  std::vector<int64_t> exact_;     // unclamped sums, [member][sample][class]
  std::vector<int64_t*> outputs_;  // within exact_, of each member
};

std::shared_ptr<const MemberSums::Plan> MemberSums::make_plan(const std::vector<TsetlinMember>& members,
                                                              size_t class_count) {
  auto plan = std::make_shared<Plan>();
  plan->sample = member_input(members.front());
  plan->class_count = class_count;
  for (size_t i = 0; i < members.size(); ++i) {
    const TsetlinMember& member = members[i];
    auto group = std::find_if(plan->groups.begin(), plan->groups.end(), [&](const Plan::Group& other) {
      return other.booleanizer == member.booleanizer && other.shape == member.shape;
    });
    if (group == plan->groups.end())
      group = plan->groups.insert(group, {member.booleanizer, member.shape, {}});
    const int64_t limit = member.clamp > 0 ? member.clamp : INT64_MAX;
    group->members.push_back({i, limit, CompiledClauses(member, class_count)});
    // Flat machines match a block of samples, one per bit, in the time of one sample.
    if (member.shape.is_flat())
      plan->block = std::clamp<size_t>(kMaxSums / (members.size() * class_count), 1, FlatLiterals::kSamples);
  }
  return plan;
}

MemberSums::MemberSums(const std::vector<TsetlinMember>& members, size_t class_count)
    : MemberSums(make_plan(members, class_count)) {}

MemberSums::MemberSums(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {
  for (const Plan::Group& group : plan_->groups) workspaces_.emplace_back(*plan_, group);
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
  for (Workspace& workspace : workspaces_) {
    for (size_t first = 0; first < samples.count; first += workspace.block()) {
      const size_t count = std::min(workspace.block(), samples.count - first);
      workspace.fill(samples.part(plan_->sample, first, count), sums + first * plan_->class_count, stride);
    }
  }
}

}  // namespace bitfed
