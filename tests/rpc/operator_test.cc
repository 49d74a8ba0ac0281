#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "bitfed/base/byte_io.h"
#include "bitfed/rpc/server/admin_socket.h"
#include "bitfed/rpc/server/operator_acts.h"
#include "tests/base/error_text.h"
#include "tests/base/temporary_folder.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;

class OperatorTest : public testing::Test {
 protected:
  OperatorTest() : store_(folder_ / "federation.sqlite"), audit_(folder_ / "audit.jsonl") {
    CoordinatorOptions options;
    options.clients = 3;
    coordinator_ = std::make_unique<Coordinator>(options, store_, [](const Event&) {});
    acts_ = std::make_unique<OperatorActs>(*coordinator_, store_, audit_, [] { return "{}\n"; });
  }
  std::string refusal(const std::string& line) {
    return error_text([&] { acts_->answer(line, {.user = 0}); });
  }

  TemporaryFolder folder_;
  FederationStore store_;
  AuditLog audit_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<OperatorActs> acts_;
};

TEST_F(OperatorTest, ActsAreDoneAndLogged) {
  EXPECT_EQ(acts_->answer("status", {.user = 7}), "{}\n");
  EXPECT_EQ(check_audit_log(folder_ / "audit.jsonl").lines, 0u);
  EXPECT_THAT(acts_->answer("policy deadline_seconds=60 quorum=0.5", {.user = 7}),
              HasSubstr("quorum=0.5 deadline_seconds=60"));
  EXPECT_EQ(coordinator_->policy().deadline_seconds, 60);
  EXPECT_EQ(store_.policy()->quorum, 0.5);
  acts_->answer("pause", {.user = 7});
  EXPECT_TRUE(coordinator_->status().paused);
  acts_->answer("resume", {.user = 7});
  EXPECT_FALSE(coordinator_->status().paused);
  acts_->answer("end", {.user = 7});
  EXPECT_TRUE(coordinator_->present(1, 3).empty());
  EXPECT_EQ(check_audit_log(folder_ / "audit.jsonl").lines, 8u);
  EXPECT_THAT(read_text_file(folder_ / "audit.jsonl"), HasSubstr("\"act\":\"pause\""));
}

TEST_F(OperatorTest, MistakesHaveOneLine) {
  EXPECT_THAT(refusal("sudo"), HasSubstr("found 'sudo', expected status"));
  EXPECT_THAT(refusal("drop nobody"), HasSubstr("'nobody': not known here"));
  EXPECT_THAT(refusal("free 9"), HasSubstr("part 9: no client holds it"));
  EXPECT_THAT(refusal("free x"), HasSubstr("expected a number"));
  EXPECT_THAT(refusal("policy quorum=2"), HasSubstr("expected a number from"));
  EXPECT_THAT(refusal("policy colour=red"), HasSubstr("found 'colour'"));
  EXPECT_THAT(read_text_file(folder_ / "audit.jsonl"), HasSubstr("\"failed\":\"policy quorum=2\""));
}

TEST_F(OperatorTest, ABackupIsTheState) {
  store_.register_client("ann", 2, 3);
  const fs::path copy = folder_ / "copy.sqlite";
  acts_->answer("backup " + copy.string(), {.user = 0});
  EXPECT_EQ(fs::status(copy).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(FederationStore(copy).clients().at(2), "ann");
  EXPECT_EQ(FederationStore(copy).federation(), store_.federation());
  EXPECT_THAT(refusal("backup " + copy.string()), HasSubstr("expected a new one"));
}

TEST_F(OperatorTest, OverTheNetworkTheOperatorIsNamed) {
  acts_->answer("pause", {.name = "olga"});
  const std::string log = read_text_file(folder_ / "audit.jsonl");
  EXPECT_THAT(log, HasSubstr("\"operator\":\"olga\",\"act\":\"pause\""));
  EXPECT_EQ(log.find("\"user\""), std::string::npos);
  EXPECT_THAT(error_text([&] { acts_->answer("backup /tmp/x", {.name = "olga"}); }),
              HasSubstr("expected one on the server"));
}

TEST(AuditLog, ABrokenChainShows) {
  TemporaryFolder folder;
  const fs::path file = folder / "audit.jsonl";
  std::string last;
  {
    AuditLog log(file);
    for (const char* act : {"one", "two", "three"}) last = log.append({.act = act});
  }
  last = AuditLog(file).append({.act = "four"});  // goes on after a restart
  EXPECT_EQ(check_audit_log(file).last, last);
  EXPECT_EQ(check_audit_log(file).lines, 4u);
  const std::string text = read_text_file(file);
  const auto broken_at = [&](const std::string& changed) {
    write_file_atomically(file, std::string_view(changed));
    return error_text([&] { check_audit_log(file); });
  };
  std::string changed = text;
  changed.replace(changed.find("two"), 3, "tow");
  EXPECT_THAT(broken_at(changed), HasSubstr("line 3: does not follow"));
  const size_t second = text.find('\n') + 1;
  EXPECT_THAT(broken_at(text.substr(second)), HasSubstr("line 1"));
  EXPECT_THAT(broken_at(text.substr(0, second) + text.substr(text.find('\n', second) + 1)),
              HasSubstr("line 2"));
  EXPECT_THAT(error_text([&] { AuditLog{file}; }), HasSubstr("line 2"));
}

TEST(AdminSocket, AnswersItsOwner) {
  TemporaryFolder folder;
  const fs::path path = folder / "admin.sock";
  {
    const auto socket = make_admin_socket(path, [](const std::string& line, unsigned user) {
      if (line == "bad") throw std::runtime_error("no");
      return line + " by " + std::to_string(user) + std::string(100000, 'x');
    });
    EXPECT_EQ(fs::status(path).permissions() & (fs::perms::group_all | fs::perms::others_all),
              fs::perms::none);
    EXPECT_THAT(ask_admin(path, "status"),
                testing::StartsWith("status by " + std::to_string(getuid()) + "xxx"));
    EXPECT_EQ(error_text([&] { ask_admin(path, "bad"); }), "no");
  }
  EXPECT_FALSE(fs::exists(path));
  EXPECT_THAT(error_text([&] { ask_admin(path, "status"); }), HasSubstr("no server answers here"));
  EXPECT_THAT(error_text([&] { make_admin_socket(folder / std::string(200, 'x'), {}); }),
              HasSubstr("expected at most"));
}

}  // namespace
}  // namespace bitfed
