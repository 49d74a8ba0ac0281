#include "bitfed/federated/privacy/private_method.h"

#include "bitfed/base/error.h"
#include "bitfed/federated/privacy/summed_client.h"
#include "bitfed/federated/privacy/summed_server.h"

namespace bitfed {
namespace {

class PrivateMethod : public Method {
 public:
  PrivateMethod(const PrivacyRecipe& privacy, std::unique_ptr<Method> method)
      : privacy_(privacy), method_(std::move(method)) {}

  std::unique_ptr<ClientHalf> make_client() const override {
    return make_summed_client(privacy_, method_->make_client());
  }
  std::unique_ptr<ServerHalf> make_server() const override {
    return make_summed_server(privacy_, method_->make_server());
  }
  std::string client_key() const override {
    const UpdateGrid& grid = *privacy_.grid;
    return fmt::format("{} grid={} range={} clients={} weight={}{}", method_->client_key(), grid.bits,
                       grid.range, grid.max_clients, grid.max_weight,
                       privacy_.secure_aggregation ? " masked" : "");
  }
  uint32_t default_rounds() const override { return method_->default_rounds(); }
  uint32_t max_rounds() const override { return method_->max_rounds(); }

 private:
  PrivacyRecipe privacy_;
  std::unique_ptr<Method> method_;
};

}  // namespace

std::unique_ptr<Method> with_privacy(const MethodContext& context, std::unique_ptr<Method> method) {
  const PrivacyRecipe privacy = read_privacy(context.recipe, context.clients);
  if (!privacy.grid) return method;
  if (!method->make_server()->sum_parts()) {
    const Config section = context.recipe.section("privacy");
    throw input_error(
        "{}: found together with method '{}', expected a method that averages: it needs each client's upload "
        "by itself",
        section.where(privacy.secure_aggregation ? "secure_aggregation" : "update_grid"),
        context.recipe.section("method").text("name", ""));
  }
  return std::make_unique<PrivateMethod>(privacy, std::move(method));
}

}  // namespace bitfed
