#pragma once

#include <optional>

#include "bitfed/base/byte_io.h"

namespace bitfed {

// The processes that a launcher (mpirun, srun) started together. They are called ranks and numbered from 0.
// Only one thread of a process may use it. The MPI library is behind it in a module of its own, see
// launcher.h; tests put threads of one process behind it.
class Communicator {
 public:
  struct Message {
    int from = 0;
    Bytes bytes = {};
  };

  // Waits until the other ranks have received what was sent to them.
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Returns at once. What one rank sends another arrives in the order in which it was sent.
  virtual void send(int to, Bytes message) = 0;

  // A message that has arrived; empty: none yet.
  virtual std::optional<Message> poll() = 0;

  // Called by rank 0, while each of the others calls the second with the number of these bytes: they receive
  // them.
  virtual void broadcast(const Bytes& bytes) = 0;
  virtual Bytes receive_broadcast(size_t size) = 0;
};

}  // namespace bitfed
