#include "bitfed/mpi/messages.h"

#include <bit>
#include <new>

namespace bitfed {
namespace {

constexpr const char* kSource = "a rank's message";
constexpr double kMaxSeconds = 1e10;
constexpr size_t kSmallBytes = 256 << 10;  // that rank 0 sends to all by itself
constexpr size_t kClientBytes = 64;        // of a client in a message, besides what it keeps and uploads

class Writer {
 public:
  // With room for so many bytes, where they are many.
  explicit Writer(MessageKind kind, size_t room = 0) {
    bytes_.reserve(room);
    u8(static_cast<uint8_t>(kind));
  }

  void u8(uint8_t value) { bytes_.push_back(value); }
  void u32(uint32_t value) { little_endian(value, 4); }
  void u64(uint64_t value) { little_endian(value, 8); }
  void f64(double value) { u64(std::bit_cast<uint64_t>(value)); }
  void bytes(std::span<const uint8_t> value) {
    u64(value.size());
    bytes_.insert(bytes_.end(), value.begin(), value.end());
  }
  void text(const std::string& value) {
    bytes({reinterpret_cast<const uint8_t*>(value.data()), value.size()});
  }
  Bytes take() { return std::move(bytes_); }

 private:
  void little_endian(uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes_.push_back(static_cast<uint8_t>(value >> (8 * i)));
  }
  Bytes bytes_;
};

class Reader {
 public:
  explicit Reader(const Bytes& message) : reader_(message, kSource) { u8(); }
  ~Reader() = default;
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  uint8_t u8() { return reader_.u8(); }
  uint32_t u32() { return reader_.u32_le(); }
  uint64_t u64() { return reader_.u64_le(); }
  double f64() { return std::bit_cast<double>(u64()); }
  bool flag() {
    const uint8_t value = u8();
    if (value > 1) throw input_error("{}: found {}, expected 0 or 1", kSource, value);
    return value == 1;
  }
  std::span<const uint8_t> span() { return reader_.take(u64()); }
  Bytes bytes() {
    const auto part = span();
    return {part.begin(), part.end()};
  }
  std::string text() {
    const auto part = span();
    return {part.begin(), part.end()};
  }
  // Of something that takes at least `least` bytes each: a false count allocates nothing.
  size_t count(size_t least) {
    const uint64_t count = u64();
    if (count > reader_.left() / least)
      throw input_error("{}: found a count of {}, expected at most {}", kSource, count,
                        reader_.left() / least);
    return count;
  }
  void finish() const {
    if (reader_.left() > 0)
      throw input_error("{}: {} bytes after its end, expected none", kSource, reader_.left());
  }

 private:
  ByteReader reader_;
};

void write_failure(const Failure& failure, Writer* writer) {
  writer->u8(static_cast<uint8_t>(failure.kind));
  writer->text(failure.text);
}

Failure parse_failure(Reader* reader) {
  const uint8_t kind = reader->u8();
  if (kind > static_cast<uint8_t>(Error::Kind::kStopped))
    throw input_error("{}: found {}, expected a kind of error", kSource, kind);
  return {static_cast<Error::Kind>(kind), reader->text()};
}

void write_shared(const Shared& shared, Writer* writer) {
  writer->u64(shared.follows);
  writer->bytes(shared.bytes);
}

Shared parse_shared(Reader* reader) {
  Shared shared{.follows = reader->u64()};
  shared.bytes = reader->bytes();
  return shared;
}

void write_client(const TrainedClient& client, Writer* writer) {
  writer->u32(client.result.client);
  writer->u64(client.result.samples);
  writer->u64(client.result.trained_samples);
  writer->f64(client.result.train_seconds);
  writer->u8(client.result.keeps_state ? 1 : 0);
  writer->u8(client.result.added_up ? 1 : 0);
  writer->u64(client.result.upload_bytes);
  writer->bytes(client.result.upload);
  writer->bytes(client.kept);
  writer->u8(client.judged.has_model ? 1 : 0);
  writer->u8(client.judged.accuracy ? 1 : 0);
  writer->f64(client.judged.accuracy.value_or(0));
}

TrainedClient parse_client(Reader* reader) {
  TrainedClient client;
  client.result.client = reader->u32();
  client.result.samples = reader->u64();
  client.result.trained_samples = reader->u64();
  client.result.train_seconds = reader->f64();
  client.result.keeps_state = reader->flag();
  client.result.added_up = reader->flag();
  client.result.upload_bytes = reader->u64();
  client.result.upload = reader->bytes();
  client.kept = reader->bytes();
  client.judged.has_model = reader->flag();
  const bool has_accuracy = reader->flag();
  const double accuracy = reader->f64();
  if (has_accuracy) client.judged.accuracy = accuracy;
  return client;
}

void write_confusion(const Confusion& confusion, Writer* writer) {
  writer->u64(confusion.size());
  for (const std::vector<uint64_t>& row : confusion) {
    for (const uint64_t count : row) writer->u64(count);
  }
}

Confusion parse_confusion(Reader* reader) {
  const size_t classes = reader->count(8);
  if (classes > 65536) throw input_error("{}: found {} classes, expected at most 65536", kSource, classes);
  Confusion confusion(classes);
  for (std::vector<uint64_t>& row : confusion) {
    for (size_t i = 0; i < classes; ++i) row.push_back(reader->u64());
  }
  return confusion;
}

}  // namespace

MessageKind kind_of(const Bytes& message) {
  const uint8_t kind = message.empty() ? 0 : message[0];
  if (kind < static_cast<uint8_t>(MessageKind::kJob) || kind > static_cast<uint8_t>(MessageKind::kHello))
    throw input_error("{}: found kind {}, expected 1 to {}", kSource, kind,
                      static_cast<int>(MessageKind::kHello));
  return static_cast<MessageKind>(kind);
}

Bytes number_message(MessageKind kind, uint32_t number) {
  Writer writer(kind);
  writer.u32(number);
  return writer.take();
}

uint32_t read_number(const Bytes& message) {
  Reader reader(message);
  const uint32_t number = reader.u32();
  reader.finish();
  return number;
}

Bytes plain_message(MessageKind kind) {
  return Writer(kind).take();
}

Shared shared(const Bytes& bytes, size_t workers) {
  return bytes.size() * workers <= kSmallBytes ? Shared{bytes, 0} : Shared{{}, bytes.size()};
}

Bytes round_message(const RoundStart& start) {
  Writer writer(MessageKind::kRound, kClientBytes + start.broadcast.bytes.size());
  writer.u64(start.number);
  writer.u32(start.round);
  writer.f64(start.sum_below);
  write_shared(start.broadcast, &writer);
  return writer.take();
}

RoundStart read_round(const Bytes& message) {
  Reader reader(message);
  RoundStart start{reader.u64(), reader.u32(), reader.f64(), {}};
  start.broadcast = parse_shared(&reader);
  reader.finish();
  return start;
}

Bytes part_message(const Part& part) {
  const Bytes sum = encode(part.sum);
  Writer writer(MessageKind::kPart, kClientBytes + sum.size());
  writer.u64(part.number);
  writer.bytes(sum);
  return writer.take();
}

Part read_part(const Bytes& message) {
  Reader reader(message);
  Part part{.number = reader.u64()};
  part.sum = decode(reader.span(), kSource);
  reader.finish();
  return part;
}

Bytes failed_message(const Failure& failure) {
  Writer writer(MessageKind::kFailed);
  write_failure(failure, &writer);
  return writer.take();
}

Failure read_failed(const Bytes& message) {
  Reader reader(message);
  Failure failure = parse_failure(&reader);
  reader.finish();
  return failure;
}

Failure current_failure() {
  try {
    throw;
  } catch (const Error& error) {
    return {error.kind(), error.what()};
  } catch (const std::bad_alloc&) {
    return {Error::Kind::kFailure, "out of memory"};
  } catch (const std::exception& error) {
    return {Error::Kind::kFailure, error.what()};
  }
}

Bytes hello_message(const Hello& hello) {
  Writer writer(MessageKind::kHello);
  writer.text(hello.program);
  writer.text(hello.host);
  writer.u32(hello.threads);
  writer.u32(hello.processors);
  return writer.take();
}

Hello read_hello(const Bytes& message) {
  Reader reader(message);
  Hello hello;
  hello.program = reader.text();
  hello.host = reader.text();
  hello.threads = reader.u32();
  hello.processors = reader.u32();
  reader.finish();
  return hello;
}

Bytes ready_message(const Ready& ready) {
  Writer writer(MessageKind::kReady);
  writer.text(ready.experiment);
  writer.text(ready.device);
  writer.u8(ready.failure ? 1 : 0);
  write_failure(ready.failure.value_or(Failure()), &writer);
  return writer.take();
}

Ready read_ready(const Bytes& message) {
  Reader reader(message);
  Ready ready;
  ready.experiment = reader.text();
  ready.device = reader.text();
  const bool has_failed = reader.flag();
  Failure failure = parse_failure(&reader);
  if (has_failed) ready.failure = std::move(failure);
  reader.finish();
  return ready;
}

Bytes work_message(const std::vector<ClientTask>& tasks) {
  size_t room = kClientBytes;
  for (const ClientTask& task : tasks) room += kClientBytes + task.kept.size();
  Writer writer(MessageKind::kWork, room);
  writer.u64(tasks.size());
  for (const ClientTask& task : tasks) {
    writer.u32(task.client);
    writer.bytes(task.kept);
  }
  return writer.take();
}

std::vector<ClientTask> read_work(const Bytes& message) {
  Reader reader(message);
  std::vector<ClientTask> tasks(reader.count(12));
  for (ClientTask& task : tasks) {
    task.client = reader.u32();
    task.kept = reader.bytes();
  }
  reader.finish();
  return tasks;
}

Bytes results_message(const Results& results) {
  size_t room = kClientBytes;
  for (const TrainedClient& client : results.clients)
    room += kClientBytes + client.result.upload.size() + client.kept.size();
  Writer writer(MessageKind::kResults, room);
  writer.f64(results.busy_seconds);
  writer.u8(results.wants_more ? 1 : 0);
  writer.u64(results.clients.size());
  for (const TrainedClient& client : results.clients) write_client(client, &writer);
  return writer.take();
}

Results read_results(const Bytes& message) {
  Reader reader(message);
  Results results;
  results.busy_seconds = reader.f64();
  if (!(results.busy_seconds >= 0 && results.busy_seconds < kMaxSeconds))
    throw input_error("{}: found {} seconds, expected 0 to {}", kSource, results.busy_seconds, kMaxSeconds);
  results.wants_more = reader.flag();
  results.clients.resize(reader.count(63));
  for (TrainedClient& client : results.clients) client = parse_client(&reader);
  reader.finish();
  return results;
}

Bytes evaluate_message(const EvaluationTask& task) {
  const EvaluationPart& part = task.part;
  Writer writer(MessageKind::kEvaluate, kClientBytes + task.model.bytes.size());
  for (const uint64_t bound : {part.test_begin, part.test_end, part.validation_begin, part.validation_end})
    writer.u64(bound);
  write_shared(task.model, &writer);
  return writer.take();
}

EvaluationTask read_evaluate(const Bytes& message) {
  Reader reader(message);
  EvaluationTask task;
  EvaluationPart& part = task.part;
  for (uint64_t* bound : {&part.test_begin, &part.test_end, &part.validation_begin, &part.validation_end})
    *bound = reader.u64();
  task.model = parse_shared(&reader);
  reader.finish();
  return task;
}

Bytes confusion_message(const Confusions& confusions) {
  Writer writer(MessageKind::kConfusion);
  write_confusion(confusions.test, &writer);
  write_confusion(confusions.validation, &writer);
  return writer.take();
}

Confusions read_confusion(const Bytes& message) {
  Reader reader(message);
  Confusions confusions;
  confusions.test = parse_confusion(&reader);
  confusions.validation = parse_confusion(&reader);
  reader.finish();
  return confusions;
}

Bytes progress_message(const ClientFraction& progress) {
  Writer writer(MessageKind::kProgress);
  writer.u32(progress.client);
  writer.f64(progress.fraction);
  return writer.take();
}

ClientFraction read_progress(const Bytes& message) {
  Reader reader(message);
  const ClientFraction progress{reader.u32(), reader.f64()};
  reader.finish();
  return progress;
}

}  // namespace bitfed
