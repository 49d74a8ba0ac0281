"""Seconds of a round of Flower's simulation with SecAgg+ and without, for docs/results/secure-aggregation.md.

    flower_secagg.py CLIENTS VALUES ROUNDS SHARES THRESHOLD

Needs flwr[simulation]. Clients return the same array of float32 and train nothing. All of them share this machine's
processors, two at a time; Flower's simulation has no network. The first round is left out: processes are started in it.
"""
import json
import os
import sys
import time

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
os.environ.setdefault("RAY_DEDUP_LOGS", "0")
import numpy
from flwr.client import ClientApp, NumPyClient
from flwr.client.mod import secaggplus_mod
from flwr.common import ndarrays_to_parameters
from flwr.server import LegacyContext, ServerApp, ServerConfig
from flwr.server.strategy import FedAvg
from flwr.server.workflow import DefaultWorkflow, SecAggPlusWorkflow
from flwr.simulation import run_simulation

clients, values, rounds, shares, threshold = map(int, sys.argv[1:])
update = numpy.linspace(-1, 1, values, dtype=numpy.float32)


class Client(NumPyClient):
    def fit(self, parameters, config):
        return [update], 20, {}


def processor_seconds():
    """Of this process and its descendants."""
    parents, used = {}, {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = open(f"/proc/{entry}/stat").read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        parents[int(entry)] = int(fields[1])
        used[int(entry)] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def is_ours(pid):
        while pid > 1:
            if pid == os.getpid():
                return True
            pid = parents.get(pid, 0)
        return False

    return sum(seconds for pid, seconds in used.items() if is_ours(pid))


def measure(masked):
    marks = []

    class Strategy(FedAvg):
        def aggregate_fit(self, server_round, results, failures):
            assert len(results) > 0 and not failures, failures
            marks.append((time.time(), processor_seconds()))
            return super().aggregate_fit(server_round, results, failures)

    app = ServerApp()

    @app.main()
    def main(grid, context):
        strategy = Strategy(fraction_fit=1.0, min_fit_clients=clients, min_available_clients=clients,
                            fraction_evaluate=0.0, initial_parameters=ndarrays_to_parameters([update]))
        legacy = LegacyContext(context=context, config=ServerConfig(num_rounds=rounds), strategy=strategy)
        fit = SecAggPlusWorkflow(num_shares=shares, reconstruction_threshold=threshold) if masked else None
        DefaultWorkflow(fit_workflow=fit)(grid, legacy)

    client_app = ClientApp(client_fn=lambda context: Client().to_client(), mods=[secaggplus_mod] if masked else [])
    run_simulation(server_app=app, client_app=client_app, num_supernodes=clients,
                   backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0.0}})
    differences = [(b[0] - a[0], b[1] - a[1]) for a, b in zip(marks, marks[1:])]
    return {"seconds": [round(wall, 3) for wall, _ in differences],
            "processor_seconds": [round(used, 3) for _, used in differences]}


print(json.dumps({"clients": clients, "values": values, "shares": shares, "threshold": threshold,
                  "plain": measure(False), "masked": measure(True)}))
