// A fuzzer that plays members of a federation: messages of the whole protocol, drawn from a grammar that
// mostly goes on as an honest client would and now and then says anything. BITFED_FUZZ_MESSAGES sets how
// many; a million under the asan preset take a few minutes.

#include <malloc.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "tests/rpc/coordinator_fixture.h"

namespace bitfed {
namespace {

class Member {
 public:
  explicit Member(uint32_t seed) : draw_(seed) {}

  size_t below(size_t end) { return draw_() % end; }
  template <typename T>
  T any_of(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }

  std::string text() {
    switch (below(8)) {
      case 0:
        return "";
      case 1:
        return std::string(63, 'a') + "\u00e9";
      case 2:
        return std::string(499, 'a') + "\U0001f600";
      case 3:
        return std::string(100000, 'x');
      case 4:
        return "\x1b]0;title\x07\n\"\\";
      case 5:
        return sha256_hex(std::string_view("broadcast"));
      case 6:
        return std::string(64, 'g');
      default:
        return "0.1.0";
    }
  }
  uint64_t number(uint32_t round) {
    return any_of<uint64_t>(
        {0, 1, 2, 3, round - 1, round, round, round, round + 1, 100, 101, UINT32_MAX, UINT64_MAX});
  }

  FromClient hello() {
    FromClient message;
    v1::Hello& said = *message.mutable_hello();
    said.set_least_protocol(any_of<uint32_t>({0, 1, 1, 1, 2, UINT32_MAX}));
    said.set_most_protocol(any_of<uint32_t>({0, 1, 1, 1, 2, UINT32_MAX}));
    said.set_version(text());
    if (below(4) == 0) said.set_federation(text());
    if (below(4) == 0) said.set_name(text());
    if (below(3) > 0) said.set_part(any_of<uint32_t>({0, 1, 2, 3, UINT32_MAX}));
    if (below(3) == 0) said.set_after_round(any_of<uint32_t>({0, 1, 2, UINT32_MAX}));
    return message;
  }
  FromClient honest_hello(uint32_t part) {
    FromClient message;
    message.mutable_hello()->set_least_protocol(1);
    message.mutable_hello()->set_most_protocol(1);
    message.mutable_hello()->set_part(part);
    return message;
  }
  FromClient ready() {
    FromClient message;
    message.mutable_ready()->set_samples(number(0));
    return message;
  }
  FromClient offer(uint32_t round) {
    FromClient message;
    v1::Offer& made = *message.mutable_offer();
    const bool honest = below(2) == 0;
    update_ = any_of<std::string>({"misfit", "update", std::string(100, 'u'), std::string(101, 'u')});
    made.set_round(honest ? round : static_cast<uint32_t>(number(round)));
    made.set_broadcast_sha256(honest ? sha256_hex(std::string_view("broadcast")) : text());
    made.set_size(honest ? update_.size() : number(round));
    made.set_sha256(below(4) > 0 ? sha256_hex(std::string_view(update_)) : text());
    made.set_samples(number(round));
    made.set_trained_samples(number(round));
    made.set_train_seconds(
        any_of<double>({0, -1, 1e308, std::nan(""), std::numeric_limits<double>::infinity()}));
    return message;
  }
  FromClient chunk() {
    FromClient message;
    message.set_chunk(
        any_of<std::string>({update_, update_, update_.substr(0, 3), "", "x", std::string(5000, 'x')}));
    return message;
  }
  FromClient failed(uint32_t round) {
    FromClient message;
    message.mutable_failed()->set_round(static_cast<uint32_t>(number(round)));
    message.mutable_failed()->set_reason(text());
    return message;
  }

  FromClient renew() {
    FromClient message;
    message.set_renew(text());
    return message;
  }

  // The next message of a client that was sent `said` so far.
  FromClient next(size_t said, uint32_t round, uint32_t part) {
    if (said == 0 && below(8) > 0) return below(4) > 0 ? honest_hello(part) : hello();
    if (said == 1 && below(8) > 0) return ready();
    switch (below(9)) {
      case 0:
        return hello();
      case 8:
        return renew();
      case 1:
        return ready();
      case 2:
        return failed(round);
      case 3:
        return {};
      case 4:
      case 5:
        return offer(round);
      default:
        return chunk();
    }
  }

 private:
  std::minstd_rand draw_;
  std::string update_ = "update";
};

// Bytes of the heap in use.
size_t heap_bytes() {
  return mallinfo2().uordblks;
}

TEST_F(CoordinatorTest, MembersThatSayAnythingAtAll) {
  const char* const wanted = std::getenv("BITFED_FUZZ_MESSAGES");
  const size_t count = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 20000;
  constexpr size_t kPerRound = 2000;
  options_.allowance.max = 1e9;
  options_.max_waiting_bytes = 300;
  options_.policy.deadline_seconds = 60;
  options_.renew = [](const std::string& /*name*/, const std::string& request) {
    if (request.size() > 100) throw input_error("too long");
    return request;
  };
  start();
  FakePeer ann;
  connect(ann, "ann", 0);
  uint32_t round = 0;
  {
    // Three honest members, to compare the memory with.
    FakePeer bob;
    FakePeer cem;
    connect(bob, "bob", 1);
    connect(cem, "cem", 2);
    for (const size_t end = round + count / kPerRound; round < end;) {
      begin(++round, {0, 1, 2});
      for (FakePeer* peer : {&ann, &bob, &cem})
        ASSERT_EQ(answer(*peer, round, "honest").kind(), Verdict::ACCEPTED);
      finish_round(round);
    }
    coordinator_->closed(bob, true);
    coordinator_->closed(cem, true);
  }
  const size_t honest_heap = heap_bytes();
  Member member(11);
  const std::vector<std::string> names = {"bob", "cem", "stranger", "two\nlines", ""};
  for (size_t sent = 0; sent < count;) {
    begin(++round, {0, 1, 2});
    ASSERT_EQ(ann.next().work().round(), round);
    for (const size_t end = sent + kPerRound; sent < end;) {
      FakePeer peer;
      const size_t who = member.below(names.size());
      coordinator_->opened(peer, names[who], "address");
      const size_t messages = 1 + member.below(12);
      for (size_t said = 0; said < messages; ++said, ++sent) {
        // What a peer cannot send, protobuf refuses: strings are UTF-8.
        FromClient message;
        ASSERT_TRUE(message.ParseFromString(
            member.next(said, round, static_cast<uint32_t>(1 + who % 2)).SerializeAsString()));
        coordinator_->received(peer, message);
      }
      if (member.below(16) == 0) pass(0.1);
      coordinator_->closed(peer, member.below(2) == 0);
    }
    const Verdict first = verdict(ann, offer(round, "honest"));
    if (first.kind() == Verdict::WANTED) send_chunk(ann, "honest");
    ASSERT_EQ(ann.next().verdict().kind(), Verdict::ACCEPTED) << round;
    pass(61);
    finish_round(round);
    ASSERT_EQ(std::count(received_.begin(), received_.end(), 0u), round);
  }
  EXPECT_EQ(coordinator_->status().connections, 1u);
  coordinator_->present(round + 1,
                        3);  // discards what came after its round, and reports a failure of any handler
  EXPECT_EQ(coordinator_->status().waiting_bytes, 0u);
  EXPECT_LT(longest_event_, 1000u);
#ifndef __SANITIZE_ADDRESS__  // it has a heap of its own
  EXPECT_LT(heap_bytes(), 2 * honest_heap);
#endif
  std::printf("heap: %zu bytes after honest rounds, %zu after %zu messages of the fuzzer\n", honest_heap,
              heap_bytes(), count);
}

}  // namespace
}  // namespace bitfed
