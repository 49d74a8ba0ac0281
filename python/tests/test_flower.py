"""Flower: a simulation gives the models of `bitfed run`. Needs flwr with its simulation; skipped without."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("flwr")
pytest.importorskip("ray")

# Ray's workers would be the last to run on a busy machine.
ENVIRONMENT = {"FLWR_TELEMETRY_ENABLED": "0", "RAY_worker_niceness": "0"}

SCRIPT = """
import sys
import bitfed, flwr
from bitfed import flower
recipe, out, mode, clients = sys.argv[1:5]
make = lambda context: bitfed.Federation(recipe)
def done(model, context): model.save(out)
if mode in ("float", "private"):
    from flwr.serverapp import ServerApp
    from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg
    client, server = flower.float_client_app(make), ServerApp()
    @server.main()
    def main(grid, context):
        federation = make(context)
        strategy = FedAvg()
        if mode == "private":
            strategy = DifferentialPrivacyServerSideFixedClipping(strategy, 1e-3, 10, int(clients))
        result = strategy.start(grid=grid, initial_arrays=flower.initial_arrays(federation),
                                num_rounds=federation.rounds)
        measured = result.evaluate_metrics_clientapp
        assert len(measured) == federation.rounds, measured
        assert 0.3 < measured[federation.rounds]["accuracy"] <= 1, measured
        done(flower.model_of(federation, result.arrays), context)
else:
    client, server = flower.client_app(make), flower.server_app(make, done)
from flwr.simulation import run_simulation
run_simulation(server, client, int(clients), backend_config={"client_resources": {"num_cpus": 1}})
"""


def simulate(recipe, tmp_path, mode, clients):
    out = tmp_path / "model.safetensors"
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(recipe), str(out), mode, str(clients)], text=True,
                          capture_output=True, timeout=550, env=os.environ | ENVIRONMENT)
    assert out.exists(), done.stdout[-3000:] + done.stderr[-5000:]
    import bitfed

    return bitfed.load(out)


def with_clients(tiny, name, clients, tmp_path, *changes):
    """A tiny recipe with so many clients, for two rounds of its method."""
    text = (tiny / f"{name}.toml").read_text().replace("clients = 4", f"clients = {clients}")
    header, *rows = (tiny / "table.csv").read_text().splitlines()
    people = [f"p{clients * i // len(rows)}," + row.split(",", 1)[1] for i, row in enumerate(rows)]
    (tmp_path / "people.csv").write_text("\n".join([header, *people]) + "\n")
    text = text.replace('file = "table.csv"', f'file = "{tmp_path}/people.csv"')
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "recipe.toml").write_text(text)
    return tmp_path / "recipe.toml"


@pytest.mark.parametrize("name, clients, changes", [
    ("one-shot", 8, [("fedtm-bank", "fedtmos")]),
    ("people", 8, [("rounds = 6", "rounds = 3")]),  # with a preparation round, and clients that keep their models
    ("network", 8, []),  # fedbnn, three clients per round, the round best in validation
    ("network", 8, [("fedbnn", "scaffold")]),
])
def test_a_simulation_gives_the_models_of_the_program(name, clients, changes, tiny, summary_of, tmp_path):
    recipe = with_clients(tiny, name, clients, tmp_path, *changes)
    expected = summary_of(recipe, tmp_path / "run")
    assert simulate(recipe, tmp_path, "state", clients).sha256 == expected["model_sha256"]


@pytest.mark.parametrize("mode", ["float", "private"])
def test_float_arrays_train_under_flowers_own_strategy(mode, tiny, tmp_path):
    """FedAvg as it comes, which has clients evaluate, too; and within a wrapper for differential privacy."""
    recipe = with_clients(tiny, "network", 4, tmp_path, ("fedbnn", "fedavg"), ("clients_per_round = 3", ""),
                          ('select = "validation"', ""), ("rounds = 2", "rounds = 6"))
    model = simulate(recipe, tmp_path, mode, 4)
    import bitfed

    scores = bitfed.Federation(recipe).evaluate(model)
    assert scores["accuracy"] > 0.5  # of four classes


def reply(node, record, **metrics):
    from types import SimpleNamespace

    from flwr.app import MetricRecord, RecordDict

    content = RecordDict({"arrays": record, "metrics": MetricRecord(metrics or {"num-examples": 1})})
    return SimpleNamespace(has_error=lambda: False, metadata=SimpleNamespace(src_node_id=node), content=content)


def test_a_node_speaks_for_its_own_client_alone(tiny, tmp_path):
    """Whatever number it sends; what is no upload does not end the round."""
    import numpy as np
    from flwr.app import Array, ArrayRecord

    import bitfed
    from bitfed import flower

    federation = bitfed.Federation(with_clients(tiny, "one-shot", 4, tmp_path, ("fedtm-bank", "fedtmos")))
    expected, broadcast = federation.server(), federation.server().broadcast(1)
    uploads = [federation.train(client, 1, broadcast, b"")[0] for client in range(4)]
    for client in (0, 2):
        expected.accept(client, uploads[client])
    expected.finish_round(1)
    damaged = [flower.to_record(b"no state"), ArrayRecord({"other": Array(np.zeros(3, np.uint8))}),
               flower.to_record(uploads[3][:-1]), ArrayRecord()]
    for wrong in damaged:
        strategy = flower.BitfedStrategy(federation)
        strategy._nodes = {client: 70 + client for client in range(4)}
        strategy.server.broadcast(1)
        replies = [reply(72, flower.to_record(uploads[2]), client=0), reply(70, flower.to_record(uploads[0])),
                   reply(71, wrong, client=0), reply(99, flower.to_record(uploads[1]), client=1)]
        _, metrics = strategy.aggregate_train(1, replies)
        assert strategy.model.sha256 == bitfed.Model(expected.model()).sha256
        assert metrics["upload-bytes"] == len(uploads[0]) + len(uploads[2])
    with pytest.raises(RuntimeError, match="round 1: no client answered with an upload"):
        flower.BitfedStrategy(federation).aggregate_train(1, [reply(71, damaged[0])])


def test_two_nodes_are_not_one_client(tiny, tmp_path, monkeypatch):
    from types import SimpleNamespace

    import bitfed
    from bitfed import flower

    strategy = flower.BitfedStrategy(bitfed.Federation(with_clients(tiny, "one-shot", 4, tmp_path)))
    answers = [reply(node, flower.to_record(b""), client=client) for node, client in enumerate([0, 1, 2, 3, 2])]
    grid = SimpleNamespace(get_node_ids=lambda: range(5), send_and_receive=lambda *_, **__: answers)
    monkeypatch.setattr(flower, "Message", lambda *arguments: arguments)  # Flower's is made within a run alone
    with pytest.raises(ValueError, match="^nodes: found two for client 2, expected one per client"):
        strategy._ask_nodes(grid)
