#include "bitfed/rpc/security/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bitfed/base/byte_io.h"
#include "bitfed/rpc/security/credentials.h"
#include "bitfed/rpc/security/openssl.h"
#include "bitfed/rpc/security/renewal.h"
#include "bitfed/rpc/server/renewal_mailbox.h"
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
  EXPECT_EQ(check.check(old_one).name, "ann");
  EXPECT_EQ(revoke_client(folder_.path(), "ann"), 2u);
  EXPECT_EQ(check.check(old_one).standing, Standing::kRevoked);
  EXPECT_THAT(check.check(old_one).text, HasSubstr("'ann' was revoked"));
  EXPECT_EQ(check.check(new_one).standing, Standing::kRevoked);
  EXPECT_EQ(check.check(other).standing, Standing::kWelcome);
  EXPECT_EQ(check.check(client("ann")).standing, Standing::kWelcome);  // a new one, after that
  EXPECT_EQ(revoke_client(folder_.path(), "bob"), 1u);
  EXPECT_EQ(check.check(old_one).standing, Standing::kRevoked);
  EXPECT_EQ(check.check(other).standing, Standing::kRevoked);
  EXPECT_THAT(check.take_complaints(), testing::IsEmpty());
}

TEST_F(CertificatesTest, OnlyClientsOnTheList) {
  ServerTrust listed = trust();
  listed.allowed = folder_ / "allowed";
  write_file_atomically(listed.allowed, std::string_view("ann\n"));
  CertificateCheck check(listed);
  const std::string bob = client("bob");
  EXPECT_EQ(check.check(client("ann")).standing, Standing::kWelcome);
  EXPECT_EQ(check.check(bob).standing, Standing::kNotListed);
  EXPECT_THAT(check.check(bob).text, HasSubstr("not on the server's list"));
  write_file_atomically(listed.allowed, std::string_view("ann\nbob 3\n"));
  EXPECT_EQ(check.check(bob).standing, Standing::kWelcome);
  EXPECT_EQ(check.check(bob).part, 3u);
  EXPECT_EQ(check.check(client("ann")).part, std::nullopt);
}

// Files that are read while they are copied: the last good lists stay in force, with one complaint each.
TEST_F(CertificatesTest, HalfWrittenListsChangeNothing) {
  ServerTrust listed = trust();
  listed.allowed = folder_ / "allowed";
  write_file_atomically(listed.allowed, std::string_view("ann\nbob\n"));
  CertificateCheck check(listed);
  const std::string ann = client("ann");
  const std::string bob = client("bob");
  const std::string cem = client("cem");
  const auto all_as_before = [&] {
    return check.check(ann).standing == Standing::kWelcome &&
           check.check(bob).standing == Standing::kWelcome &&
           check.check(cem).standing == Standing::kNotListed;
  };
  EXPECT_TRUE(all_as_before());
  const std::string whole = read_text_file(listed.revoked);
  write_file_atomically(listed.revoked, whole.substr(0, whole.size() / 2));
  EXPECT_TRUE(all_as_before());
  EXPECT_EQ(check.take_complaints().size(), 1u);
  write_file_atomically(listed.revoked, std::string_view(whole));
  EXPECT_TRUE(all_as_before());
  for (const char* half : {"", "ann\nbo", "ann three\nbob\n"}) {
    write_file_atomically(listed.allowed, std::string_view(half));
    EXPECT_TRUE(all_as_before()) << half;
    EXPECT_EQ(check.take_complaints().size(), 1u) << half;
  }
  fs::remove(listed.allowed);
  EXPECT_TRUE(all_as_before());
  // Whole again, it counts.
  write_file_atomically(listed.allowed, std::string_view("ann\n"));
  EXPECT_EQ(check.check(bob).standing, Standing::kNotListed);
}

TEST_F(CertificatesTest, RenewedByAValidCertificate) {
  const Issued ann = issue_client(folder_.path(), "ann", 3);
  const std::string request = renewal_request(ann.certificate, ann.key);
  const std::string renewed = renew_client(folder_.path(), request, 30);
  const CertificatePointer certificate = parse_certificate(renewed, "renewed");
  EXPECT_EQ(common_name(*certificate), "ann");
  EXPECT_GT(seconds_left(*certificate), 29 * 86400);
  const KeyPointer key = parse_key(read_text_file(ann.key), "key");
  EXPECT_EQ(X509_check_private_key(certificate.get(), key.get()), 1);
  CertificateCheck check(trust());
  EXPECT_EQ(check.check(renewed).standing, Standing::kWelcome);

  // Another client's certificate with ann's request; another authority; after a revocation, which takes both.
  const Issued bob = issue_client(folder_.path(), "bob", 3);
  const std::string signing = request.substr(request.find("-----BEGIN CERTIFICATE REQUEST"));
  EXPECT_THAT(
      error_text([&] { renew_client(folder_.path(), read_text_file(bob.certificate) + signing, 30); }),
      HasSubstr("another key"));
  EXPECT_THAT(error_text([&] { renew_client(folder_.path(), read_text_file(bob.certificate), 30); }),
              HasSubstr("expected a signing request"));
  TemporaryFolder other;
  make_authority(other.path(), "other", 30);
  EXPECT_THAT(error_text([&] { renew_client(other.path(), request, 30); }), HasSubstr("another authority"));
  EXPECT_EQ(revoke_client(folder_.path(), "ann"), 2u);
  EXPECT_EQ(check.check(renewed).standing, Standing::kRevoked);
  EXPECT_THAT(error_text([&] { renew_client(folder_.path(), request, 30); }), HasSubstr("was revoked"));
  EXPECT_THAT(error_text([&] { renewal_request(ann.certificate, bob.key); }), HasSubstr("not the key of"));
}

// The way of a renewal over the network: mailbox at the server, authority, mailbox, device.
TEST_F(CertificatesTest, RenewedThroughTheServersMailbox) {
  const Issued ann = issue_client(folder_.path(), "ann", 3);
  const Issued bob = issue_client(folder_.path(), "bob", 3);
  const fs::path requests = folder_ / "renewals";
  const RenewalMailbox mailbox(requests);
  const std::string request = renewal_request(ann.certificate, ann.key);
  EXPECT_EQ(mailbox.ask("ann", request), "");
  EXPECT_EQ(read_text_file(requests / "ann.req"), request);
  EXPECT_THAT(error_text([&] { mailbox.ask("bob", request); }), HasSubstr("another client"));
  EXPECT_THAT(error_text([&] { mailbox.ask("../ann", request); }), HasSubstr("name '../ann'"));
  EXPECT_THAT(error_text([&] { mailbox.ask("ann", std::string(20000, 'x')); }), HasSubstr("20000 bytes"));
  EXPECT_THAT(error_text([&] { mailbox.ask("ann", read_text_file(ann.certificate)); }),
              HasSubstr("expected a signing request"));

  write_file_atomically(requests / "eve.req", std::string_view("nonsense"));
  std::vector<std::string> refused;
  const auto note = [&](const std::string& text) { refused.push_back(text); };
  EXPECT_EQ(renew_clients(folder_.path(), requests, 30, "", note), 1u);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_THAT(refused[0], HasSubstr("eve.req"));
  EXPECT_FALSE(fs::exists(requests / "ann.req"));

  const std::string renewed = mailbox.ask("ann", request);
  const ClientTrust trust{folder_ / "ca.pem", ann.certificate, ann.key, false};
  EXPECT_THAT(error_text([&] {
                install_renewed({folder_ / "ca.pem", bob.certificate, bob.key, false}, renewed);
              }),
              HasSubstr("found the name 'ann'"));
  install_renewed(trust, renewed);
  EXPECT_EQ(read_text_file(ann.certificate), renewed);
  EXPECT_THAT(error_text([&] { install_renewed(trust, renewed); }), HasSubstr("expected later"));
  EXPECT_THAT(error_text([&] { install_renewed(trust, "nonsense"); }), HasSubstr("expected a certificate"));
  const Issued again = issue_client(folder_.path(), "ann", 300);  // with another key
  const std::string other_key = read_text_file(again.certificate);
  write_file_atomically(ann.certificate, renewed);
  EXPECT_THAT(error_text([&] { install_renewed(trust, other_key); }), HasSubstr("another key"));
  // The next time there is nothing newer yet.
  EXPECT_EQ(mailbox.ask("ann", renewed + request.substr(request.find("-----BEGIN CERTIFICATE REQUEST"))), "");
}

TEST_F(CertificatesTest, AnOperatorIsNoClient) {
  const Issued olga = issue_operator(folder_.path(), "olga", 3);
  EXPECT_EQ(olga.certificate, folder_ / "operators" / "olga.pem");
  ServerTrust listed = trust();
  listed.allowed = folder_ / "allowed";
  write_file_atomically(listed.allowed, std::string_view("ann\n"));
  CertificateCheck check(listed);
  const auto answer = check.check(read_text_file(olga.certificate));
  EXPECT_EQ(answer.standing, Standing::kWelcome);
  EXPECT_TRUE(answer.is_operator);
  const Issued ann = issue_client(folder_.path(), "ann", 3);
  EXPECT_FALSE(check.check(read_text_file(ann.certificate)).is_operator);
  EXPECT_THAT(
      error_text([&] { renew_client(folder_.path(), renewal_request(olga.certificate, olga.key), 30); }),
      HasSubstr("an operator's certificate"));
  revoke_client(folder_.path(), "olga");
  EXPECT_EQ(check.check(read_text_file(olga.certificate)).standing, Standing::kRevoked);
}

TEST_F(CertificatesTest, AnEncryptedAuthorityNeedsItsPassword) {
  TemporaryFolder folder;
  make_authority(folder.path(), "authority", 30, "open sesame");
  EXPECT_THAT(read_text_file(folder / "ca.key"), HasSubstr("BEGIN ENCRYPTED PRIVATE KEY"));
  EXPECT_THAT(error_text([&] { issue_client(folder.path(), "ann", 3); }), HasSubstr("or its password"));
  EXPECT_THAT(error_text([&] { issue_client(folder.path(), "ann", 3, "wrong"); }),
              HasSubstr("and its password"));
  issue_client(folder.path(), "ann", 3, "open sesame");
  EXPECT_EQ(revoke_client(folder.path(), "ann", "open sesame"), 1u);
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
  EXPECT_THAT(check.check("nonsense").text, HasSubstr("expected a certificate"));
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
