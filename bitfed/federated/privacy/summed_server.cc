#include "bitfed/federated/privacy/summed_server.h"

#include <cassert>

#include "bitfed/base/error.h"
#include "bitfed/federated/privacy/masked_sum.h"
#include "bitfed/federated/privacy/private_sum.h"

namespace bitfed {
namespace {

class SummedServer : public ServerHalf, public MaskedSum {
 public:
  SummedServer(const PrivacyRecipe& privacy, const std::optional<ServerNoise>& noise,
               std::unique_ptr<ServerHalf> method)
      : privacy_(privacy), noise_(noise), method_(std::move(method)) {}

  bool needs_preparation() const override { return method_->needs_preparation(); }
  State broadcast(uint32_t round) const override { return method_->broadcast(round); }

  void accept(uint32_t /*client*/, const State& upload) override {
    const ModularVector update = read_sum_message(upload);
    const SumParts parts = parts_on_grid();
    std::vector<ModularField> expected = privacy_.grid->fields(parts);
    if (update.fields != expected) {
      throw input_error("{}: tensor 'fields': found {} elements in {} fields, expected {} in {}",
                        upload.source(), elements_of(update.fields), update.fields.size(),
                        elements_of(expected), expected.size());
    }
    // What is masked, or has noise, looks like anything.
    if (!privacy_.secure_aggregation && !clients_add_noise()) {
      check_on_grid(*privacy_.grid, parts, update, upload.source());
      if (noise_) private_sum().check(update, upload.source());
    }
    if (clients_ == 0) sum_ = ModularVector::zero(std::move(expected));
    sum_.add(update);
    ++clients_;
  }

  // The one place where the sum is at hand before the method uses it.
  void finish_round(uint32_t round) override {
    if (clients_add_noise()) {
      // Fewer have too little noise between them; with masks their sum would not have been opened.
      const bool is_enough = clients_ >= noise_->differential.noise_clients;
      if (is_enough) method_->accept_mean(private_sum().mean(sum_, {}, static_cast<uint32_t>(clients_)));
      forget();
      if (!is_enough) return;
    } else if (noise_) {
      if (clients_ == 0) sum_ = ModularVector::zero(privacy_.grid->fields(parts_on_grid()));  // noise alone
      method_->accept_mean(noised_mean(round));
      forget();
    } else if (clients_ > 0) {
      method_->accept_mean(from_grid(*privacy_.grid, *method_->sum_parts(), sum_, clients_));
      forget();
    }
    method_->finish_round(round);
  }

  MaskedSum* masked_sum() override { return privacy_.secure_aggregation ? this : nullptr; }
  std::vector<ModularField> fields() const override { return privacy_.grid->fields(parts_on_grid()); }
  void remove(const ModularVector& masks) override { sum_.subtract(masks); }
  void forget() override {
    sum_ = {};
    clients_ = 0;
  }

  std::unique_ptr<Model> model() const override { return method_->model(); }
  State save() const override { return method_->save(); }
  void restore(const State& saved) override { method_->restore(saved); }

  std::vector<std::string> notes() const override {
    std::vector<std::string> notes = method_->notes();
    notes.push_back(fmt::format("updates were rounded to multiples of 2^-{} before they were summed",
                                privacy_.grid->bits));
    if (privacy_.secure_aggregation)
      notes.emplace_back("secure aggregation: updates were masked, and only their sum was opened");
    if (noise_) {
      notes.emplace_back(
          "differential privacy: epsilon is of the models of all rounds; accuracies, who took part, and models "
          "of the clients' own are not part of it");
    }
    if (noise_ && !noise_->served) {
      notes.emplace_back(
          "differential privacy: a simulation draws its noise from the recipe's seed, which is public; it shows "
          "what privacy costs and protects nobody");
    }
    return notes;
  }

  std::optional<uint64_t> raw_upload_bytes() const override { return method_->raw_upload_bytes(); }

 private:
  bool clients_add_noise() const { return noise_ && noise_->differential.noise_clients > 0; }

  SumParts parts_on_grid() const {
    const SumParts parts = *method_->sum_parts();
    return noise_ ? PrivateSum::on_grid(parts) : parts;
  }

  PrivateSum private_sum() const { return {noise_->differential, *privacy_.grid, *method_->sum_parts()}; }

  UpdateMean noised_mean(uint32_t round) const {
    const PrivateSum sum = private_sum();
    const RandomWords words =
        noise_->served ? system_random_words()
                       : seeded_random_words({noise_->seed, "noise", round, noise_->differential.draw});
    return sum.mean(sum_, sum.noise(words), noise_->expected_clients);
  }

  PrivacyRecipe privacy_;
  std::optional<ServerNoise> noise_;
  std::unique_ptr<ServerHalf> method_;
  ModularVector sum_;
  size_t clients_ = 0;
};

}  // namespace

std::unique_ptr<ServerHalf> make_summed_server(const PrivacyRecipe& privacy,
                                               const std::optional<ServerNoise>& noise,
                                               std::unique_ptr<ServerHalf> method) {
  return std::make_unique<SummedServer>(privacy, noise, std::move(method));
}

}  // namespace bitfed
