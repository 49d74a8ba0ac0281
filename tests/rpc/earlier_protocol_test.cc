// The protocol as released first (tests/golden/protocol-v1.desc, the schema that protoc wrote of it) with
// this build's: an earlier device with this server, and this device with an earlier server. Both sides may
// know fields that the other does not.

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/text_format.h>

#include "bitfed/base/byte_io.h"
#include "tests/rpc/coordinator_fixture.h"

namespace bitfed {
namespace {

namespace pb = google::protobuf;

class EarlierProtocol : public CoordinatorTest {
 protected:
  EarlierProtocol() {
    const Bytes bytes = read_file(BITFED_TESTS_DIR "/golden/protocol-v1.desc");
    pb::FileDescriptorSet files;
    EXPECT_TRUE(files.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
    for (const pb::FileDescriptorProto& file : files.file()) EXPECT_NE(pool_.BuildFile(file), nullptr);
  }

  std::unique_ptr<pb::Message> earlier(const std::string& type) {
    return std::unique_ptr<pb::Message>(
        factory_.GetPrototype(pool_.FindMessageTypeByName("bitfed.v1." + type))->New());
  }
  // The bytes that an earlier build sends for this text.
  std::string bytes_of_earlier(const std::string& type, const std::string& text) {
    const auto message = earlier(type);
    EXPECT_TRUE(pb::TextFormat::ParseFromString(text, message.get())) << text;
    return message->SerializeAsString();
  }
  // What an earlier build reads of a message of this one, as text, without the fields that it does not know.
  std::string as_earlier(const std::string& type, const pb::MessageLite& message) {
    const auto read = earlier(type);
    EXPECT_TRUE(read->ParseFromString(message.SerializeAsString()));
    read->GetReflection()->MutableUnknownFields(read.get())->Clear();
    pb::TextFormat::Printer printer;
    printer.SetSingleLineMode(true);
    printer.SetHideUnknownFields(true);
    std::string text;
    EXPECT_TRUE(printer.PrintToString(*read, &text));
    return text;
  }
  void receive_earlier(FakePeer& peer, const std::string& text) {
    FromClient message;
    ASSERT_TRUE(message.ParseFromString(bytes_of_earlier("FromClient", text)));
    coordinator_->received(peer, message);
  }

  pb::DescriptorPool pool_;
  pb::DynamicMessageFactory factory_;
};

TEST_F(EarlierProtocol, AnEarlierDeviceWithThisServer) {
  options_.renew = [](const std::string& /*name*/, const std::string& /*request*/) { return ""; };
  start();
  FakePeer peer;
  coordinator_->opened(peer, "ann", "address");
  receive_earlier(peer, "hello { least_protocol: 1 most_protocol: 1 version: '0.1.0' part: 0 }");
  const std::string welcome = as_earlier("FromServer", peer.next());
  EXPECT_THAT(welcome, HasSubstr("protocol: 1"));
  EXPECT_THAT(welcome, HasSubstr("federation: \"" + store_->federation() + "\""));
  EXPECT_THAT(welcome, HasSubstr("seed: 5 recipe: \"recipe\""));
  EXPECT_THAT(welcome, HasSubstr("columns: \"a\" class_names: \"x\" class_names: \"y\""));
  EXPECT_EQ(welcome.find("renews"), std::string::npos);
  receive_earlier(peer, "ready { samples: 10 }");
  begin(1, {0});
  const FromServer work = peer.next();
  EXPECT_THAT(as_earlier("FromServer", work),
              HasSubstr("work { round: 1 size: 9 sha256: \"" + work.work().sha256()));
  receive_earlier(peer, "offer { round: 1 broadcast_sha256: '" + work.work().sha256() +
                            "' size: 6 sha256: '" + sha256_hex(std::string_view("update")) +
                            "' samples: 10 train_seconds: 0.5 }");
  EXPECT_THAT(as_earlier("FromServer", peer.next()), HasSubstr("verdict { kind: WANTED round: 1"));
  receive_earlier(peer, "chunk: 'update'");
  EXPECT_THAT(as_earlier("FromServer", peer.next()), HasSubstr("verdict { kind: ACCEPTED round: 1"));
  finish_round(1);
  EXPECT_THAT(received_, ElementsAre(0));
  EXPECT_TRUE(faults_.empty());
}

TEST_F(EarlierProtocol, ThisDeviceWithAnEarlierServer) {
  FromServer message;
  ASSERT_TRUE(message.ParseFromString(bytes_of_earlier(
      "FromServer",
      "welcome { protocol: 1 federation: 'f' number: 3 seed: 7 recipe: 'r' prototype { name: 'p' } }")));
  EXPECT_EQ(message.welcome().number(), 3u);
  EXPECT_FALSE(message.welcome().renews());  // so that it does not ask what the server would not understand
  FromClient hello;
  hello.mutable_hello()->set_least_protocol(1);
  hello.mutable_hello()->set_most_protocol(1);
  hello.mutable_hello()->set_federation("f");
  hello.mutable_hello()->set_after_round(4);
  EXPECT_EQ(as_earlier("FromClient", hello),
            "hello { least_protocol: 1 most_protocol: 1 federation: \"f\" } ");
  const FromClient offered = offer(2, "update");
  EXPECT_THAT(as_earlier("FromClient", offered), HasSubstr("offer { round: 2 broadcast_sha256: "));
}

}  // namespace
}  // namespace bitfed
