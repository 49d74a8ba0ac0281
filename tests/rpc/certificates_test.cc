#include "bitfed/rpc/security/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bitfed/base/byte_io.h"
#include "bitfed/rpc/security/credentials.h"
#include "bitfed/rpc/security/openssl.h"
#include "tests/base/error_text.h"
#include "tests/base/temporary_folder.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class CertificatesTest : public testing::Test {
 protected:
  CertificatesTest() { make_authority(folder_.path(), "authority", 100); }

  ServerTrust trust() {
    ServerTrust result;
    result.client_ca = folder_ / "ca.pem";
    result.revoked = folder_ / "revoked.pem";
    return result;
  }
  std::string client(const std::string& name) {
    return read_text_file(issue_client(folder_.path(), name, 30).certificate);
  }

  TemporaryFolder folder_;
};

TEST_F(CertificatesTest, KeysAreTheirOwnersAlone) {
  const Issued issued = issue_client(folder_.path(), "ann", 30);
  for (const fs::path& key : {folder_ / "ca.key", issued.key})
    EXPECT_EQ(fs::status(key).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(CertificatesTest, WhatIsInThem) {
  issue_server(folder_.path(), {"federation.example.org", "192.0.2.7", "::1"}, 30);
  const CertificatePointer server = parse_certificate(read_text_file(folder_ / "server.pem"), "server");
  EXPECT_EQ(X509_check_host(server.get(), "federation.example.org", 0, 0, nullptr), 1);
  EXPECT_EQ(X509_check_host(server.get(), "example.org", 0, 0, nullptr), 0);
  EXPECT_EQ(X509_check_ip_asc(server.get(), "192.0.2.7", 0), 1);
  EXPECT_EQ(X509_check_ip_asc(server.get(), "::1", 0), 1);
  EXPECT_EQ(X509_check_purpose(server.get(), X509_PURPOSE_SSL_SERVER, 0), 1);
  EXPECT_EQ(X509_check_purpose(server.get(), X509_PURPOSE_SSL_CLIENT, 0), 0);
  const CertificatePointer ann = parse_certificate(client("ann"), "ann");
  EXPECT_EQ(common_name(*ann), "ann");
  EXPECT_EQ(X509_check_purpose(ann.get(), X509_PURPOSE_SSL_CLIENT, 0), 1);
  EXPECT_EQ(X509_check_purpose(ann.get(), X509_PURPOSE_SSL_SERVER, 0), 0);
  const CertificatePointer ca = parse_certificate(read_text_file(folder_ / "ca.pem"), "ca");
  EXPECT_EQ(X509_verify(ann.get(), X509_get0_pubkey(ca.get())), 1);
  EXPECT_EQ(X509_check_ca(ca.get()), 1);
  EXPECT_EQ(X509_check_ca(ann.get()), 0);
}

TEST_F(CertificatesTest, RevokedWithoutARestart) {
  CertificateCheck check(trust());
  const std::string old_one = client("ann");
  const std::string new_one = client("ann");
  const std::string other = client("bob");
  EXPECT_EQ(check.name_of(old_one), "ann");
  EXPECT_EQ(revoke_client(folder_.path(), "ann"), 2u);
  EXPECT_THAT(error_text([&] { check.name_of(old_one); }), HasSubstr("'ann' was revoked"));
  EXPECT_FALSE(check.is_welcome(new_one));
  EXPECT_TRUE(check.is_welcome(other));
  EXPECT_EQ(check.name_of(client("ann")), "ann");  // a new one, after that
  EXPECT_EQ(revoke_client(folder_.path(), "bob"), 1u);
  EXPECT_FALSE(check.is_welcome(old_one));
  EXPECT_FALSE(check.is_welcome(other));
}

TEST_F(CertificatesTest, OnlyWhoIsOnTheList) {
  ServerTrust listed = trust();
  listed.allowed = folder_ / "allowed";
  write_file_atomically(listed.allowed, std::string_view("ann\n"));
  CertificateCheck check(listed);
  const std::string bob = client("bob");
  EXPECT_TRUE(check.is_welcome(client("ann")));
  EXPECT_THAT(error_text([&] { check.name_of(bob); }), HasSubstr("not on the list"));
  write_file_atomically(listed.allowed, std::string_view("ann\nbob\n"));
  EXPECT_TRUE(check.is_welcome(bob));
  // A list that is gone lets nobody in.
  fs::remove(listed.allowed);
  EXPECT_FALSE(check.is_welcome(bob));
}

TEST_F(CertificatesTest, MistakesHaveOneLine) {
  EXPECT_THAT(error_text([&] { make_authority(folder_.path(), "again", 1); }), HasSubstr("already"));
  EXPECT_THAT(error_text([&] { issue_client(folder_.path(), "../ann", 1); }),
              HasSubstr("expected 1 to 64 letters"));
  EXPECT_THAT(error_text([&] { issue_client(folder_ / "nowhere", "ann", 1); }),
              HasSubstr("bitfed certs init"));
  EXPECT_THAT(error_text([&] { issue_server(folder_.path(), {"a,DNS:b"}, 1); }),
              HasSubstr("expected a name"));
  EXPECT_THAT(error_text([&] { revoke_client(folder_.path(), "nobody"); }), HasSubstr("issued to 'nobody'"));
  CertificateCheck check(trust());
  EXPECT_THAT(error_text([&] { check.name_of("nonsense"); }), HasSubstr("expected a certificate"));
  // A revocation list of somebody else's counts for nothing.
  TemporaryFolder other;
  make_authority(other.path(), "other", 1);
  fs::copy_file(other / "revoked.pem", folder_ / "revoked.pem", fs::copy_options::overwrite_existing);
  EXPECT_THAT(error_text([&] { CertificateCheck{trust()}; }), HasSubstr("not signed by"));
}

TEST(Loopback, IsThisMachine) {
  for (const char* here : {"127.0.0.1:1", "localhost:80", "[::1]:7443"})
    EXPECT_NO_THROW(require_loopback(here));
  for (const char* out : {"0.0.0.0:1", "[::]:1", "192.0.2.1:1", "example.org:1", "127.0.0.1.example.org:1"})
    EXPECT_THAT(error_text([&] { require_loopback(out); }), HasSubstr("expected 127.0.0.1"));
}

}  // namespace
}  // namespace bitfed
