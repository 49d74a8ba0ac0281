#include "bitfed/federated/privacy/private_method.h"

#include "bitfed/base/error.h"
#include "bitfed/federated/privacy/private_sum.h"
#include "bitfed/federated/privacy/summed_client.h"
#include "bitfed/federated/privacy/summed_server.h"

namespace bitfed {
namespace {

class PrivateMethod : public Method {
 public:
  PrivateMethod(const PrivacyRecipe& privacy, const std::optional<ServerNoise>& noise,
                std::unique_ptr<Method> method)
      : privacy_(privacy), noise_(noise), method_(std::move(method)) {}

  std::unique_ptr<ClientHalf> make_client() const override {
    return make_summed_client(privacy_, noise_ ? std::optional(noise_->differential) : std::nullopt,
                              method_->make_client());
  }
  std::unique_ptr<ServerHalf> make_server() const override {
    return make_summed_server(privacy_, noise_, method_->make_server());
  }
  std::string client_key() const override {
    const UpdateGrid& grid = *privacy_.grid;
    std::string clip = noise_ ? fmt::format(" clip={} statistics={}", noise_->differential.clip,
                                            noise_->differential.statistics_clip)
                              : "";
    if (noise_ && noise_->differential.noise_clients > 0)
      clip += fmt::format(" noise={} of={}", noise_->differential.release.noise_multiplier,
                          noise_->differential.noise_clients);
    return fmt::format("{} grid={} range={} clients={} weight={}{}{}", method_->client_key(), grid.bits,
                       grid.range, grid.max_clients, grid.max_weight,
                       privacy_.secure_aggregation ? " masked" : "", clip);
  }
  uint32_t default_rounds() const override { return method_->default_rounds(); }
  uint32_t max_rounds() const override { return method_->max_rounds(); }

 private:
  PrivacyRecipe privacy_;
  std::optional<ServerNoise> noise_;
  std::unique_ptr<Method> method_;
};

std::optional<ServerNoise> read_noise(const MethodContext& context, const PrivacyRecipe& privacy,
                                      const Method& method) {
  if (!has_differential_privacy(context.recipe)) return std::nullopt;
  const Config section = context.recipe.section("privacy");
  if (clients_add_noise(context.recipe) && context.served && !privacy.secure_aggregation) {
    throw input_error(
        "{}: found 'clients' without secure_aggregation, expected it: the server would see each update with "
        "its small share of the noise",
        section.where("noise"));
  }
  Sampling sampling = context.sampling;
  sampling.rounds = static_cast<uint32_t>(
      context.recipe.integer("rounds", method.default_rounds(), 1, method.max_rounds()));
  const std::unique_ptr<ServerHalf> server = method.make_server();
  if (server->needs_preparation()) {
    throw input_error(
        "{}: found for a method whose first round asks clients for ranges, expected none: "
        "method.scaling = \"declared\" with lower and upper asks nobody",
        section.where("clip"));
  }
  ServerNoise noise{.differential = read_differential_privacy(context.recipe, sampling),
                    .expected_clients = sampling.clients_per_round,
                    .seed = context.seed,
                    .served = context.served};
  if (noise.differential.noise_clients > sampling.clients_per_round) {
    throw input_error("{}: found {}, expected at most the {} clients of a round",
                      section.where("min_survivors"), noise.differential.noise_clients,
                      sampling.clients_per_round);
  }
  PrivateSum(noise.differential, *privacy.grid, *server->sum_parts());  // fits the grid
  return noise;
}

}  // namespace

std::unique_ptr<Method> with_privacy(const MethodContext& context, std::unique_ptr<Method> method) {
  PrivacyRecipe privacy = read_privacy(context.recipe, context.clients);
  if (!privacy.grid) return method;
  if (!method->make_server()->sum_parts()) {
    const Config section = context.recipe.section("privacy");
    throw input_error(
        "{}: found together with method '{}', expected a method that averages: it needs each client's upload "
        "by itself",
        section.where(privacy.secure_aggregation ? "secure_aggregation"
                      : section.has("clip")      ? "clip"
                                                 : "update_grid"),
        context.recipe.section("method").text("name", ""));
  }
  const std::optional<ServerNoise> noise = read_noise(context, privacy, *method);
  if (noise) privacy.grid = PrivateSum::with_room(*privacy.grid, noise->differential);
  return std::make_unique<PrivateMethod>(privacy, noise, std::move(method));
}

}  // namespace bitfed
