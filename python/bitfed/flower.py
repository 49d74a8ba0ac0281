"""bitfed in a Flower federation (flwr): a ClientApp and a ServerApp around the halves of a method.

Messages carry a State as one uint8 array, so that every method works and the model is the one of `bitfed run`. For
averaging methods (fedavg) there is a second mode: the parameters as float arrays, for Flower's own strategies and
differential-privacy wrappers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from logging import INFO, WARNING
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.common import log
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import Strategy

from . import _core
from .federation import Federation
from .models import Model

ARRAYS, CONFIG, METRICS = "arrays", "config", "metrics"
_BYTES, _KEPT = "bitfed.state", "bitfed.kept"

MakeFederation = Callable[[Context], Federation]


def to_record(state: bytes) -> ArrayRecord:
    return ArrayRecord({_BYTES: Array(np.frombuffer(state, np.uint8))})


def from_record(record: ArrayRecord) -> bytes:
    if _BYTES not in record:
        raise ValueError(f"record: found {list(record)[:3]}, expected '{_BYTES}'")
    return record[_BYTES].numpy().tobytes()


class _Once:
    """A process makes its federation once per run, not once per message."""

    def __init__(self, make: MakeFederation):
        self._make = make
        self._run: int | None = None
        self._federation: Federation | None = None

    def __call__(self, context: Context) -> Federation:
        if self._federation is None or self._run != context.run_id:
            self._federation, self._run = self._make(context), context.run_id
        return self._federation


def client_of(context: Context) -> int:
    """The number of the client that a node is: its part of the data."""
    return int(context.node_config["partition-id"])


def client_app(make: MakeFederation) -> ClientApp:
    """Client number `partition-id` of the federation that `make` gives. What it keeps is in the node's context."""
    app, federation = ClientApp(), _Once(make)

    def reply(message: Message, **records: Any) -> Message:
        return Message(RecordDict(records), reply_to=message)

    @app.query()
    def query(message: Message, context: Context) -> Message:
        return reply(message, metrics=MetricRecord({"client": client_of(context)}))

    @app.train()
    def train(message: Message, context: Context) -> Message:
        client, number = client_of(context), int(message.content[CONFIG]["server-round"])
        kept = from_record(context.state[_KEPT]) if _KEPT in context.state else b""
        broadcast = from_record(message.content[ARRAYS])
        upload, keeps, samples, seconds = federation(context).train(client, number, broadcast, kept)
        if keeps:
            context.state[_KEPT] = to_record(keeps)
        metrics = MetricRecord({"num-examples": samples, "train-seconds": seconds})
        return reply(message, arrays=to_record(upload), metrics=metrics)

    @app.evaluate()
    def evaluate(message: Message, context: Context) -> Message:
        model = Model(_core.Model.from_bytes(from_record(message.content[ARRAYS])))
        accuracy, samples = federation(context).evaluate_client(model, client_of(context))
        return reply(message, metrics=MetricRecord({"accuracy": accuracy, "num-examples": samples}))

    return app


class BitfedStrategy(Strategy):
    """The server half of a federation's method, with bitfed's own sampling of clients. After `start`, `model` is the
    federation's."""

    def __init__(self, federation: Federation, evaluate_clients: bool = False, timeout: float = 3600):
        self.federation = federation
        self.server = federation.server()
        self.model: Model | None = None
        self._evaluate_clients = evaluate_clients
        self._timeout = timeout
        self._nodes: dict[int, int] = {}
        self._best = -1.0

    def summary(self) -> None:
        log(INFO, "\t├──> bitfed: %s, %s clients", self.federation.method_name, self.federation.clients)

    def _ask_nodes(self, grid: Grid) -> None:
        """Which node is which client: the nodes say."""
        until = time.time() + self._timeout
        while len(list(grid.get_node_ids())) < self.federation.clients:
            if time.time() > until:
                raise TimeoutError(f"nodes: found {len(list(grid.get_node_ids()))}, expected {self.federation.clients}")
            time.sleep(0.2)
        questions = [Message(RecordDict(), node, "query") for node in grid.get_node_ids()]
        for answer in _good(grid.send_and_receive(questions, timeout=self._timeout)):
            client, node = int(answer.content[METRICS]["client"]), answer.metadata.src_node_id
            if self._nodes.setdefault(client, node) != node:
                raise ValueError(f"nodes: found two for client {client}, expected one per client")
        missing = sorted({*range(self.federation.clients)} - {*self._nodes})
        if missing:
            raise ValueError(f"nodes: found none for client {missing[0]}, expected one per client")

    def _messages(self, number: int, record: ArrayRecord, clients: Iterable[int], kind: str) -> list[Message]:
        content = RecordDict({ARRAYS: record, CONFIG: ConfigRecord({"server-round": number})})
        return [Message(content, self._nodes[client], kind) for client in clients]

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        if not self._nodes:
            self._ask_nodes(grid)
        if self.server.needs_preparation:
            everyone = self._messages(0, to_record(self.server.broadcast(0)), self._nodes, "train")
            self._receive(0, grid.send_and_receive(everyone, timeout=self._timeout))
        record = to_record(self.server.broadcast(server_round))
        return self._messages(server_round, record, self.federation.chosen(server_round), "train")

    def _receive(self, server_round: int, replies: Iterable[Message]) -> int:
        """The bytes of the uploads that count. A reply is the client's whose node sent it, whatever it says; one that
        is no upload is logged, and the round goes on without it."""
        client_of_node = {node: client for client, node in self._nodes.items()}
        received = {client_of_node.get(reply.metadata.src_node_id): reply for reply in _good(replies)}
        received.pop(None, None)
        upload_bytes = 0
        for client in sorted(received):
            try:
                upload = from_record(received[client].content[ARRAYS])
                self.server.accept(client, upload)
            except (KeyError, TypeError, ValueError, _core.Failure) as error:
                log(WARNING, "\t> round %d: the reply of client %d does not count: %s", server_round, client, error)
                continue
            upload_bytes += len(upload)
        if upload_bytes == 0:
            raise RuntimeError(f"round {server_round}: no client answered with an upload")
        self.server.finish_round(server_round)
        return upload_bytes

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        upload_bytes = self._receive(server_round, replies)
        model = Model(self.server.model(), self.federation.classes)
        scores = self.federation.evaluate(model)
        selected = scores.get("validation_accuracy", 0.0) if self.federation.selects_by_validation else None
        if selected is None or selected > self._best:
            self._best = self._best if selected is None else selected
            self.model = model
        return to_record(model._core.to_bytes()), MetricRecord({**scores, "upload-bytes": upload_bytes})

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        return self._messages(server_round, arrays, self._nodes, "evaluate") if self._evaluate_clients else []

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        metrics = [reply.content[METRICS] for reply in _good(replies)]
        weights = [float(m["num-examples"]) for m in metrics]
        if not sum(weights):
            return None
        return MetricRecord({"accuracy": float(np.average([float(m["accuracy"]) for m in metrics], weights=weights))})


def _good(replies: Iterable[Message]) -> list[Message]:
    """The replies with content; errors are logged."""
    good = []
    for reply in replies:
        if reply.has_error():
            log(INFO, "\t> node %d: %s", reply.metadata.src_node_id, reply.error.reason)
        else:
            good.append(reply)
    return good


def server_app(make: MakeFederation, done: Callable[[Model, Context], None] | None = None) -> ServerApp:
    """Runs the federation that `make` gives, then calls `done` with its model."""
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        federation = make(context)
        strategy = BitfedStrategy(federation)
        strategy.start(grid=grid, initial_arrays=ArrayRecord(), num_rounds=federation.rounds)
        log(INFO, "model_sha256 %s", strategy.model.sha256)
        if done is not None:
            done(strategy.model, context)

    return app


# The mode with float arrays.


def initial_arrays(federation: Federation) -> ArrayRecord:
    """The parameters of an averaging method before the first round, for a strategy of Flower."""
    server = federation.server()
    if server.needs_preparation:
        raise ValueError(f"{federation.method_name}: found a method with a preparation round, expected fedavg")
    return _arrays_of(server.save())


def model_of(federation: Federation, arrays: ArrayRecord) -> Model:
    """The model of averaged parameters."""
    return Model(_restored(federation, arrays).model(), federation.classes)


def float_client_app(make: MakeFederation) -> ClientApp:
    """A client that takes and returns the parameters of an averaging method as float arrays. It evaluates on its own
    samples."""
    app, federation = ClientApp(), _Once(make)

    @app.train()
    def train(message: Message, context: Context) -> Message:
        client, number = client_of(context), int(message.content[CONFIG]["server-round"])
        arrays = message.content[ARRAYS]
        broadcast = _restored(federation(context), arrays).broadcast(number)
        upload, _, samples, _ = federation(context).train(client, number, broadcast)
        trained = _core.decode_state(upload)
        missing = [name for name in arrays if name not in trained]
        if missing:
            method = federation(context).method_name
            raise ValueError(f"{method}: found no '{missing[0]}' in its upload, expected all parameters: use fedavg")
        records = {
            ARRAYS: ArrayRecord({name: Array(np.asarray(trained[name])) for name in arrays}),
            METRICS: MetricRecord({"num-examples": samples}),
        }
        return Message(RecordDict(records), reply_to=message)

    @app.evaluate()
    def evaluate(message: Message, context: Context) -> Message:
        simulated = federation(context)
        model = model_of(simulated, message.content[ARRAYS])
        accuracy, samples = simulated.evaluate_client(model, client_of(context))
        metrics = MetricRecord({"accuracy": accuracy, "num-examples": samples})
        return Message(RecordDict({METRICS: metrics}), reply_to=message)

    return app


def _arrays_of(state: bytes) -> ArrayRecord:
    return ArrayRecord({name: Array(np.asarray(value)) for name, value in _core.decode_state(state).items()})


def _restored(federation: Federation, arrays: ArrayRecord) -> Any:
    server = federation.server()
    types = {name: value.dtype for name, value in _core.decode_state(server.save()).items()}
    state = {name: np.ascontiguousarray(arrays[name].numpy(), dtype=types[name]) for name in types}
    server.restore(_core.encode_state(state))
    return server
