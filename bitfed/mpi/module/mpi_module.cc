// The module that launcher.cc loads where a launcher has started the program: the only code that sees MPI,
// and so the only one to build again for another MPI library. MPI-3 calls, all from one thread.

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <new>
#include <thread>

#include "bitfed/mpi/communicator.h"

namespace bitfed {
namespace {

constexpr int kTag = 1;
constexpr size_t kMaxChunk = size_t{1} << 30;  // counts are int

// Ends all ranks. Without memory: a message that was not received would keep its sender waiting.
[[noreturn]] void give_up(const char* text, size_t bytes) {
  int rank = 0;
  int length = 0;
  char host[MPI_MAX_PROCESSOR_NAME + 1] = {};
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Get_processor_name(host, &length);
  std::fprintf(stderr, "bitfed: rank %d on %s: %s (%zu bytes)\n", rank, host, text, bytes);
  MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  std::abort();
}

// MPI's own waiting spins and would take a core from the ranks that train.
void wait_for(MPI_Request* request) {
  using std::chrono::microseconds;
  int done = 0;
  for (int tries = 0; MPI_Test(request, &done, MPI_STATUS_IGNORE), done == 0; ++tries) {
    if (tries >= 100) std::this_thread::sleep_for(microseconds(tries < 1000 ? 20 : 200));
  }
}

class MpiCommunicator : public Communicator {
 public:
  MpiCommunicator() {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  ~MpiCommunicator() override {
    for (Pending& pending : pending_) wait_for(&pending.request);
    MPI_Finalize();
  }
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void send(int to, Bytes message) override {
    if (message.size() > kMaxChunk) give_up("a message is too large", message.size());
    pending_.push_back({std::move(message), MPI_REQUEST_NULL});
    Pending& last = pending_.back();
    MPI_Isend(last.bytes.data(), static_cast<int>(last.bytes.size()), MPI_BYTE, to, kTag, MPI_COMM_WORLD,
              &last.request);
  }

  std::optional<Message> poll() override {
    forget_sent();
    int found = 0;
    MPI_Message arrived{};
    MPI_Status status{};
    MPI_Improbe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &found, &arrived, &status);
    if (found == 0) return std::nullopt;
    int count = 0;
    MPI_Get_count(&status, MPI_BYTE, &count);
    Message message{status.MPI_SOURCE, {}};
    make_room(static_cast<size_t>(count), &message.bytes);
    MPI_Mrecv(message.bytes.data(), count, MPI_BYTE, &arrived, MPI_STATUS_IGNORE);
    return message;
  }

  // MPI's root only reads them.
  void broadcast(const Bytes& bytes) override {
    broadcast_chunks(const_cast<uint8_t*>(bytes.data()), bytes.size());
  }

  Bytes receive_broadcast(size_t size) override {
    Bytes bytes;
    make_room(size, &bytes);
    broadcast_chunks(bytes.data(), size);
    return bytes;
  }

 private:
  struct Pending {
    Bytes bytes;
    MPI_Request request;
  };

  static void make_room(size_t size, Bytes* bytes) {
    try {
      bytes->resize(size);
    } catch (const std::bad_alloc&) {
      give_up("out of memory for a message", size);
    }
  }

  static void broadcast_chunks(uint8_t* data, size_t size) {
    for (size_t begin = 0; begin < size; begin += kMaxChunk)
      broadcast_chunk(data + begin, std::min(kMaxChunk, size - begin));
  }

  static void broadcast_chunk(uint8_t* data, size_t size) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibcast(data, static_cast<int>(size), MPI_BYTE, 0, MPI_COMM_WORLD, &request);
    wait_for(&request);
  }

  void forget_sent() {
    pending_.remove_if([](Pending& pending) {
      int done = 0;
      MPI_Test(&pending.request, &done, MPI_STATUS_IGNORE);
      return done != 0;
    });
  }

  int rank_ = 0;
  int size_ = 1;
  std::list<Pending> pending_;  // a list: MPI holds the addresses
};

}  // namespace
}  // namespace bitfed

extern "C" __attribute__((visibility("default"))) bitfed::Communicator* bitfed_connect_ranks_2() {
  return new bitfed::MpiCommunicator();
}
