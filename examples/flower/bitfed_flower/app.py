"""The two apps. Every node reads the recipe's data and trains on its own part, number `partition-id`."""

from pathlib import Path

from flwr.app import Context

import bitfed
from bitfed.flower import client_app, server_app


def federation(context: Context) -> bitfed.Federation:
    recipe = Path(__file__).parent / str(context.run_config["recipe"])
    return bitfed.Federation(recipe, data_dir=str(context.run_config["data-dir"]))


def done(model: bitfed.Model, context: Context) -> None:
    if context.run_config["out"]:
        model.save(str(context.run_config["out"]))
    print(f"model_sha256 {model.sha256}")


client = client_app(federation)
server = server_app(federation, done)
