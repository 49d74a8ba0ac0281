"""A published federation by another simulator: federation_peers.py pfl|flwr cifar10|mnist --rounds N --data DIR.

Prints the seconds of every round as JSON. One core per process: PyTorch has one thread, Flower's Ray one actor per core.
"""

import argparse
import gzip
import json
import os
import pathlib
import time

import numpy as np

# name: clients of a round, learning rate; 1,000 clients, batches of 10, one epoch, evaluated in every tenth round.
SETUPS = {"cifar10": (50, 0.1), "mnist": (10, 0.03)}
CLIENTS, BATCH, EVALUATE_EVERY = 1000, 10, 10


def read_cifar10(folder):
    def read(names):
        rows = np.concatenate([np.fromfile(folder / "cifar-10-batches-bin" / name, np.uint8) for name in names])
        rows = rows.reshape(-1, 3073)
        return (rows[:, 1:].reshape(-1, 3, 32, 32) / np.float32(255)), rows[:, 0].astype(np.int64)

    return read([f"data_batch_{i}.bin" for i in range(1, 6)]), read(["test_batch.bin"])


def read_mnist(folder):
    def read(name, skip):
        return np.frombuffer(gzip.open(folder / "mnist" / name).read(), np.uint8, offset=skip)

    def both(prefix):
        images = read(f"{prefix}-images-idx3-ubyte.gz", 16).reshape(-1, 784) / np.float32(255)
        return images, read(f"{prefix}-labels-idx1-ubyte.gz", 8).astype(np.int64)

    return both("train"), both("t10k")


def load(setup, folder):
    (x, y), test = (read_cifar10 if setup == "cifar10" else read_mnist)(pathlib.Path(folder))
    order = np.random.default_rng(0).permutation(len(y))
    return [(x[part], y[part]) for part in np.array_split(order, CLIENTS)], test


def network(setup):
    import torch
    from torch import nn

    torch.set_num_threads(1)
    if setup == "mnist":
        return nn.Linear(784, 10)
    return nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Dropout(0.25), nn.Flatten(), nn.Linear(12544, 128), nn.ReLU(), nn.Dropout(0.5),
                         nn.Linear(128, 10))


def accuracy(model, test):
    import torch

    model.eval()
    with torch.no_grad():
        right = sum(int((model(torch.from_numpy(x)).argmax(1) == torch.from_numpy(y)).sum())
                    for x, y in zip(np.array_split(test[0], 20), np.array_split(test[1], 20)))
    return right / len(test[1])


class Clock:
    def __init__(self):
        self.seconds, self.accuracies, self.start = [], [], time.time()

    def end_round(self):
        now = time.time()
        self.seconds.append(now - self.start)
        self.start = now

    def print(self):
        print(json.dumps({"seconds": self.seconds, "accuracies": self.accuracies}))


def run_pfl(setup, rounds, folder, cores):
    import torch
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.callback.base import TrainingProcessCallback
    from pfl.data.dataset import Dataset
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.data.sampling import get_user_sampler
    from pfl.hyperparam.base import NNEvalHyperParams, NNTrainHyperParams
    from pfl.metrics import Metrics, Weighted
    from pfl.model.pytorch import PyTorchModel

    clients, test = load(setup, folder)
    per_round, rate = SETUPS[setup]

    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = network(setup)

        def forward(self, x):
            return self.layers(x)

        def loss(self, x, y, eval=False):
            self.eval() if eval else self.train()
            return torch.nn.functional.cross_entropy(self(x), y)

        def metrics(self, x, y, eval=True):
            self.eval() if eval else self.train()
            return {"loss": Weighted(torch.nn.functional.cross_entropy(self(x), y, reduction="sum").item(), len(y))}

    torch.set_num_threads(cores)
    module = Classifier()
    torch.set_num_threads(cores)
    model = PyTorchModel(module, local_optimizer_create=torch.optim.SGD,
                         central_optimizer=torch.optim.SGD(module.parameters(), 1.0))
    data = FederatedDataset(lambda user: Dataset(raw_data=[torch.from_numpy(part) for part in clients[user]]),
                            get_user_sampler("random", range(CLIENTS)))
    clock = Clock()

    class Rounds(TrainingProcessCallback):
        def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):
            if (central_iteration + 1) % EVALUATE_EVERY == 0:
                clock.accuracies.append(accuracy(module, test))
            clock.end_round()
            return False, Metrics()

    parameters = NNAlgorithmParams(central_num_iterations=rounds, evaluation_frequency=rounds + 1,
                                   train_cohort_size=per_round, val_cohort_size=0)
    FederatedAveraging().run(parameters, SimulatedBackend(training_data=data, val_data=data), model,
                             NNTrainHyperParams(local_num_epochs=1, local_learning_rate=rate, local_batch_size=BATCH),
                             NNEvalHyperParams(local_batch_size=1000), callbacks=[Rounds()])
    clock.print()
    os._exit(0)  # without its sampling process


def train_at_client(setup, folder, message, context, cache={}):
    import torch
    from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict

    if "clients" not in cache:
        cache["clients"] = load(setup, folder)[0]
    model = network(setup)
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    x, y = map(torch.from_numpy, cache["clients"][context.node_config["partition-id"]])
    optimizer = torch.optim.SGD(model.parameters(), SETUPS[setup][1])
    model.train()
    for batch in torch.randperm(len(y)).split(BATCH):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
        optimizer.step()
    content = RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": MetricRecord({"num-examples": len(y)})})
    return Message(content=content, reply_to=message)


def run_flwr(setup, rounds, folder, cores):
    from flwr.app import ArrayRecord, MetricRecord
    from flwr.clientapp import ClientApp
    from flwr.serverapp import ServerApp
    from flwr.serverapp.strategy import FedAvg
    from flwr.simulation import run_simulation

    per_round, _ = SETUPS[setup]
    _, test = load(setup, folder)
    client, server, clock = ClientApp(), ServerApp(), Clock()

    @client.train()
    def train(message, context):
        return train_at_client(setup, folder, message, context)

    def evaluate(server_round, arrays):
        if server_round > 0 and server_round % EVALUATE_EVERY == 0:
            model = network(setup)
            model.load_state_dict(arrays.to_torch_state_dict())
            clock.accuracies.append(accuracy(model, test))
        if server_round > 0:
            clock.end_round()
        clock.start = time.time()
        return MetricRecord({})

    @server.main()
    def main(grid, context):
        strategy = FedAvg(fraction_train=per_round / CLIENTS, fraction_evaluate=0.0, min_available_nodes=CLIENTS)
        strategy.start(grid=grid, initial_arrays=ArrayRecord(network(setup).state_dict()), num_rounds=rounds,
                       evaluate_fn=evaluate)

    run_simulation(server, client, num_supernodes=CLIENTS,
                   backend_config={"init_args": {"num_cpus": cores, "include_dashboard": False},
                                   "client_resources": {"num_cpus": 1, "num_gpus": 0}})
    clock.print()


parser = argparse.ArgumentParser()
parser.add_argument("simulator", choices=["pfl", "flwr"])
parser.add_argument("setup", choices=list(SETUPS))
parser.add_argument("--rounds", type=int, default=10)
parser.add_argument("--data", required=True)
parser.add_argument("--cores", type=int, default=1)
arguments = parser.parse_args()
{"pfl": run_pfl, "flwr": run_flwr}[arguments.simulator](arguments.setup, arguments.rounds, arguments.data, arguments.cores)
