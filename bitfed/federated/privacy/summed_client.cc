#include "bitfed/federated/privacy/summed_client.h"

#include <algorithm>

#include "bitfed/base/pool_or_caller.h"

namespace bitfed {
namespace {

class SummedClient : public ClientHalf {
 public:
  SummedClient(const PrivacyRecipe& privacy, std::unique_ptr<ClientHalf> method)
      : privacy_(privacy), method_(std::move(method)) {}

  State train(const State& broadcast, const Dataset& samples, const ClientContext& context) const override {
    return summed(broadcast, method_->train(broadcast, samples, context));
  }

  size_t cohort() const override { return method_->cohort(); }

  std::vector<CohortUpload> train_cohort(const State& broadcast, std::span<const CohortClient> clients,
                                         ThreadPool* pool) const override {
    std::vector<CohortUpload> uploads = method_->train_cohort(broadcast, clients, pool);
    for_each(pool, uploads.size(), [&](size_t i) {
      if (uploads[i].error) return;
      try {
        uploads[i].upload = summed(broadcast, uploads[i].upload);
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
  State summed(const State& broadcast, const State& upload) const {
    ClientUpdate update = method_->update_of(broadcast, upload);
    update.weight = privacy_.equal_weights ? 1 : std::min(update.weight, privacy_.grid->max_weight);
    return sum_message(to_grid(*privacy_.grid, update));
  }

  PrivacyRecipe privacy_;
  std::unique_ptr<ClientHalf> method_;
};

}  // namespace

std::unique_ptr<ClientHalf> make_summed_client(const PrivacyRecipe& privacy,
                                               std::unique_ptr<ClientHalf> method) {
  return std::make_unique<SummedClient>(privacy, std::move(method));
}

}  // namespace bitfed
