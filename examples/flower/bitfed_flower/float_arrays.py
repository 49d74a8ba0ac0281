"""The mode with float arrays: FedAvg of a CNN4 under Flower's own strategy. In pyproject.toml: serverapp =
"bitfed_flower.float_arrays:server", clientapp = "bitfed_flower.float_arrays:client", and a recipe with
method.name = "fedavg"."""

from flwr.app import Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from bitfed.flower import float_client_app, initial_arrays, model_of
from bitfed_flower.app import done, federation

client = float_client_app(federation)
server = ServerApp()


@server.main()
def main(grid: Grid, context: Context) -> None:
    simulated = federation(context)

    def evaluate(number, arrays):
        return MetricRecord(simulated.evaluate(model_of(simulated, arrays))) if number > 0 else None

    strategy = FedAvg(fraction_evaluate=0.0)
    result = strategy.start(grid=grid, initial_arrays=initial_arrays(simulated), num_rounds=simulated.rounds,
                            evaluate_fn=evaluate)
    done(model_of(simulated, result.arrays), context)
