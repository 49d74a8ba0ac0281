#include "bitfed/federated/arithmetic/client_mean.h"
#include "bitfed/mpi/messages.h"

// The first byte chooses the reader. What is read must come back from its own message.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace bitfed;
  const Bytes message(data, data + size);
  try {
    switch (kind_of(message)) {
      case MessageKind::kWork:
        if (work_message(read_work(message)) != message) __builtin_trap();
        break;
      case MessageKind::kResults:
        read_results(results_message(read_results(message)));
        break;
      case MessageKind::kHello:
        if (hello_message(read_hello(message)) != message) __builtin_trap();
        break;
      case MessageKind::kReady:
        read_ready(ready_message(read_ready(message)));
        break;
      case MessageKind::kFailed:
        if (failed_message(read_failed(message)) != message) __builtin_trap();
        break;
      case MessageKind::kEvaluate:
        if (evaluate_message(read_evaluate(message)) != message) __builtin_trap();
        break;
      case MessageKind::kConfusion:
        if (confusion_message(read_confusion(message)) != message) __builtin_trap();
        break;
      case MessageKind::kProgress:
        read_progress(message);
        break;
      case MessageKind::kRound:
        read_round(message);
        break;
      case MessageKind::kPart: {
        ClientMean mean({}, {true, false});
        mean.add_part(read_part(message).sum, {{0, 0, 0}, {0}});
        break;
      }
      default:
        read_number(message);
        break;
    }
  } catch (const Error&) {
  }
  return 0;
}
