#include "bitfed/federated/privacy/summed_server.h"

#include <cassert>

#include "bitfed/base/error.h"
#include "bitfed/federated/privacy/masked_sum.h"

namespace bitfed {
namespace {

class SummedServer : public ServerHalf, public MaskedSum {
 public:
  SummedServer(const PrivacyRecipe& privacy, std::unique_ptr<ServerHalf> method)
      : privacy_(privacy), method_(std::move(method)) {}

  bool needs_preparation() const override { return method_->needs_preparation(); }
  State broadcast(uint32_t round) const override { return method_->broadcast(round); }

  void accept(uint32_t /*client*/, const State& upload) override {
    const ModularVector update = read_sum_message(upload);
    const SumParts parts = *method_->sum_parts();
    std::vector<ModularField> expected = privacy_.grid->fields(parts);
    if (update.fields != expected) {
      throw input_error("{}: tensor 'fields': found {} elements in {} fields, expected {} in {}",
                        upload.source(), elements_of(update.fields), update.fields.size(),
                        elements_of(expected), expected.size());
    }
    // What is masked looks like anything.
    if (!privacy_.secure_aggregation) check_on_grid(*privacy_.grid, parts, update, upload.source());
    if (clients_ == 0) sum_ = ModularVector::zero(std::move(expected));
    sum_.add(update);
    ++clients_;
  }

  // The one place where the sum is at hand before the method uses it.
  void finish_round(uint32_t round) override {
    if (clients_ > 0) {
      method_->accept_mean(from_grid(*privacy_.grid, *method_->sum_parts(), sum_, clients_));
      forget();
    }
    method_->finish_round(round);
  }

  MaskedSum* masked_sum() override { return privacy_.secure_aggregation ? this : nullptr; }
  std::vector<ModularField> fields() const override { return privacy_.grid->fields(*method_->sum_parts()); }
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
    return notes;
  }

  std::optional<uint64_t> raw_upload_bytes() const override { return method_->raw_upload_bytes(); }

 private:
  PrivacyRecipe privacy_;
  std::unique_ptr<ServerHalf> method_;
  ModularVector sum_;
  size_t clients_ = 0;
};

}  // namespace

std::unique_ptr<ServerHalf> make_summed_server(const PrivacyRecipe& privacy,
                                               std::unique_ptr<ServerHalf> method) {
  return std::make_unique<SummedServer>(privacy, std::move(method));
}

}  // namespace bitfed
