#include "bitfed/federated/experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bitfed/base/byte_io.h"
#include "tests/base/error_text.h"
#include "tests/base/temporary_folder.h"

namespace bitfed {
namespace {

using ::testing::HasSubstr;

class ReadExperimentTest : public testing::Test {
 protected:
  ReadExperimentTest() {
    std::string table = "who,a,label\n";
    for (int i = 0; i < 40; ++i) table += fmt::format("p{},{},{}\n", i % 4, i, i % 3 == 0 ? "x" : "y");
    write_file_atomically(folder_ / "table.csv", table);
  }
  Experiment read(ClientsAre clients, const std::string& federation) {
    const std::string text = fmt::format(
        "[data]\nfile = '{}'\nlabel = 'label'\nperson = 'who'\npartition = {{ kind = 'column' }}\n"
        "[model]\nname = 'mlp'\n[method]\nname = 'fed-bin-mlp'\n[federation]\n{}",
        (folder_ / "table.csv").string(), federation);
    return load_experiment(Config::parse(text, "recipe"), "", "name", clients);
  }
  TemporaryFolder folder_;
};

TEST_F(ReadExperimentTest, EverybodyIsWaitedForUnlessTheRecipeSaysOtherwise) {
  const Experiment all = read(ClientsAre::kReal, "");
  EXPECT_EQ(all.clients, 4u);
  EXPECT_EQ(all.clients_per_round, 4u);
  EXPECT_EQ(all.policy.minimum_clients, 4u);
  EXPECT_EQ(all.policy.quorum, 1);
  EXPECT_EQ(all.policy.deadline_seconds, 0);
  EXPECT_EQ(all.policy.min_answers, 1u);
  const Experiment some =
      read(ClientsAre::kReal,
           "clients_per_round = 3\nminimum_clients = 2\nquorum = 0.5\ndeadline_seconds = 9\n"
           "least_answers = 2\n");
  EXPECT_EQ(some.policy.minimum_clients, 2u);
  EXPECT_EQ(some.policy.quorum, 0.5);
  EXPECT_EQ(some.policy.deadline_seconds, 9);
  EXPECT_EQ(some.policy.min_answers, 2u);
  EXPECT_EQ(read(ClientsAre::kReal, "min_answers = 3\n").policy.min_answers, 3u);
}

TEST_F(ReadExperimentTest, ClientsWithDataOfTheirOwn) {
  const Experiment own = read(ClientsAre::kReal, "clients = 50\nfraction = 0.1\n");
  EXPECT_EQ(own.clients, 50u);
  EXPECT_EQ(own.clients_per_round, 5u);
  EXPECT_TRUE(own.partition.empty());
  EXPECT_EQ(partition_text(own), "their own, 50 clients");
}

TEST_F(ReadExperimentTest, ASimulationPassesOverWhatRealOnesRead) {
  const Experiment simulated =
      read(ClientsAre::kSimulated, "clients = 50\nquorum = 0.5\nminimum_clients = 2\n");
  EXPECT_EQ(simulated.clients, 4u);
  EXPECT_EQ(simulated.partition.size(), 4u);
  // The recipe as resolved is that of earlier builds.
  EXPECT_EQ(simulated.recipe.find("quorum"), std::string::npos);
  EXPECT_NE(read(ClientsAre::kReal, "quorum = 0.5\n").recipe.find("quorum"), std::string::npos);
}

TEST_F(ReadExperimentTest, Mistakes) {
  const auto error = [&](const std::string& federation) {
    return error_text([&] { read(ClientsAre::kReal, federation); });
  };
  EXPECT_THAT(error("dropout = 0.1\n"), HasSubstr("federation.dropout"));
  EXPECT_THAT(error("minimum_clients = 5\n"), HasSubstr("federation.minimum_clients"));
  EXPECT_THAT(error("quorum = 1.5\n"), HasSubstr("federation.quorum"));
  EXPECT_THAT(error("quorums = 1\n"), HasSubstr("did you mean 'quorum'"));
}

}  // namespace
}  // namespace bitfed
