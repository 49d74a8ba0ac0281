#include "bitfed/federated/privacy/summed_client.h"

#include <algorithm>

#include "bitfed/base/pool_or_caller.h"
#include "bitfed/federated/privacy/private_sum.h"

namespace bitfed {
namespace {

constexpr uint64_t kNoiseStream = UINT64_MAX;

class SummedClient : public ClientHalf {
 public:
  SummedClient(const PrivacyRecipe& privacy, const std::optional<DifferentialPrivacy>& differential,
               std::unique_ptr<ClientHalf> method, NoiseSource noise)
      : privacy_(privacy),
        differential_(differential),
        method_(std::move(method)),
        noise_(std::move(noise)) {}

  State train(const State& broadcast, const Dataset& samples, const ClientContext& context) const override {
    return summed(broadcast, method_->train(broadcast, samples, context), context);
  }

  size_t cohort() const override { return method_->cohort(); }

  std::vector<CohortUpload> train_cohort(const State& broadcast, std::span<const CohortClient> clients,
                                         ThreadPool* pool) const override {
    std::vector<CohortUpload> uploads = method_->train_cohort(broadcast, clients, pool);
    for_each(pool, uploads.size(), [&](size_t i) {
      if (uploads[i].error) return;
      try {
        uploads[i].upload = summed(broadcast, uploads[i].upload, clients[i].context);
      } catch (...) {
        uploads[i].error = std::current_exception();
      }
    });
    return uploads;
  }

  std::unique_ptr<Model> personal_model(const State& kept) const override {
    return method_->personal_model(kept);
  }

 private:
  // The one place where a client's update is at hand before it becomes integers, and as integers before it
  // is masked.
  State summed(const State& broadcast, const State& upload, const ClientContext& context) const {
    ClientUpdate update = method_->update_of(broadcast, upload);
    update.weight = privacy_.equal_weights ? 1 : std::min(update.weight, privacy_.grid->max_weight);
    if (!differential_) return sum_message(to_grid(*privacy_.grid, update));
    const PrivateSum sum(*differential_, *privacy_.grid, update.parts);
    sum.clip(&update);
    ModularVector vector = to_grid(*privacy_.grid, update);
    if (differential_->noise_clients > 0) sum.add_noise(noise_ ? noise_() : seeded(context), &vector);
    return sum_message(vector);
  }

  // Of a substream that no training uses.
  static RandomWords seeded(const ClientContext& context) {
    return [random = context.random.substream(kNoiseStream)]() mutable { return random.next_u64(); };
  }

  PrivacyRecipe privacy_;
  std::optional<DifferentialPrivacy> differential_;
  std::unique_ptr<ClientHalf> method_;
  NoiseSource noise_;
};

}  // namespace

std::unique_ptr<ClientHalf> make_summed_client(const PrivacyRecipe& privacy,
                                               const std::optional<DifferentialPrivacy>& differential,
                                               std::unique_ptr<ClientHalf> method, NoiseSource noise) {
  return std::make_unique<SummedClient>(privacy, differential, std::move(method), std::move(noise));
}

}  // namespace bitfed
