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
if mode == "float":
    from flwr.serverapp import ServerApp
    from flwr.serverapp.strategy import FedAvg
    client, server = flower.float_client_app(make), ServerApp()
    @server.main()
    def main(grid, context):
        federation = make(context)
        strategy = FedAvg(fraction_evaluate=0.0)
        result = strategy.start(grid=grid, initial_arrays=flower.initial_arrays(federation),
                                num_rounds=federation.rounds)
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


def test_float_arrays_train_under_flowers_own_strategy(tiny, tmp_path):
    recipe = with_clients(tiny, "network", 4, tmp_path, ("fedbnn", "fedavg"), ("clients_per_round = 3", ""),
                          ('select = "validation"', ""), ("rounds = 2", "rounds = 6"))
    model = simulate(recipe, tmp_path, "float", 4)
    import bitfed

    scores = bitfed.Federation(recipe).evaluate(model)
    assert scores["accuracy"] > 0.5  # of four classes
