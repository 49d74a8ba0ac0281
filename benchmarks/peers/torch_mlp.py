"""Measures training steps of the MLP 14-64-32-16-6 in PyTorch on one thread: torch_mlp.py [mlp-binary|mlp-full]...

A step is one batch of 32: forward, cross-entropy, backward, Adam, and for the binary network the clipping of its weights
to [-1,1]. Binary: sign(W) and sign of the inputs of layers 2 to 4, gradients straight through where |x| <= 1; full: real
weights and ReLU. No biases; BatchNorm with shift but no scale after every layer, the logits included.

Each way to run PyTorch is a line of JSON: steps a second of process time, the best of the repetitions and their median.
Ways that do not work here (no C++ compiler, say) have "error" instead.
"""
import json
import os
import statistics
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch is imported; compiled code asks OpenMP

import torch
import torch.nn.functional as F

WIDTHS = (14, 64, 32, 16, 6)
BATCH = 32
BATCHES = 64
WARM_UP_SECONDS = 1.0
REPETITION_SECONDS = 1.0
REPETITIONS = 7
ONE = torch.tensor(1.0)
ABOVE_ONE = 1.0 + 2.0**-23  # the next float: hardtanh's gradient leaves its limits out, straight-through has them in


class SignStraightThrough(torch.autograd.Function):
    """One operation each way. Zero gives +1, as it should; negative zero -1, which does not occur here."""

    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return torch.copysign(ONE, x)

    @staticmethod
    def backward(context, gradient):
        (x,) = context.saved_tensors
        return torch.ops.aten.hardtanh_backward(gradient, x, -ABOVE_ONE, ABOVE_ONE)


class Mlp(torch.nn.Module):
    def __init__(self, binary):
        super().__init__()
        self.binary = binary
        self.weights = torch.nn.ParameterList()
        self.shifts = torch.nn.ParameterList()
        for layer, (inputs, outputs) in enumerate(zip(WIDTHS, WIDTHS[1:])):
            self.weights.append(torch.nn.init.xavier_uniform_(torch.empty(outputs, inputs)))
            self.shifts.append(torch.zeros(outputs))
            self.register_buffer(f"mean{layer}", torch.zeros(outputs))
            self.register_buffer(f"variance{layer}", torch.ones(outputs))

    def forward(self, x, labels):
        activation, quantize = (SignStraightThrough.apply,) * 2 if self.binary else (F.relu, lambda weight: weight)
        for layer, (weight, shift) in enumerate(zip(self.weights, self.shifts)):
            x = F.linear(activation(x) if layer > 0 else x, quantize(weight))
            x = F.batch_norm(x, getattr(self, f"mean{layer}"), getattr(self, f"variance{layer}"), None, shift,
                             training=True, momentum=0.1, eps=1e-3)
        return F.cross_entropy(x, labels)


def make_step(binary, compiled, **adam):
    """A function of a batch and its labels. Compiled: "" for eager, "loss" for forward and backward, "all" for Adam and
    the clipping too."""
    torch.manual_seed(1)
    torch.compiler.reset()
    model = Mlp(binary)
    loss_of = torch.compile(model, fullgraph=True, dynamic=False) if compiled else model
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, eps=1e-7, **adam)
    weights = list(model.weights)

    def update():
        optimizer.step()
        if binary:
            with torch.no_grad():
                torch._foreach_clamp_min_(weights, -1.0)
                torch._foreach_clamp_max_(weights, 1.0)

    if compiled == "all":
        update = torch.compile(update)

    def step(x, labels):
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(x, labels)
        loss.backward()
        update()
        return loss

    return step


def make_step_in_one_graph(binary):
    """The whole step as one graph, traced once with its backward pass and Adam written out, then compiled: nothing is
    left to Python but one call. Few write PyTorch so, but it is the most that it gives."""
    torch.manual_seed(1)
    torch.compiler.reset()
    model = Mlp(binary)
    parameters = [parameter.detach() for parameter in model.parameters()]
    weights = len(model.weights)
    state = [parameters, [torch.zeros_like(p) for p in parameters], [torch.zeros_like(p) for p in parameters],
             [torch.ones(()), torch.ones(())], list(model.buffers())]
    names = [name for name, _ in model.named_parameters()], [name for name, _ in model.named_buffers()]

    def step(parameters, first, second, powers, buffers, x, labels):
        leaves = [parameter.detach().requires_grad_() for parameter in parameters]
        loss = torch.func.functional_call(model, dict(zip(names[0] + names[1], leaves + buffers)), (x, labels))
        gradients = torch.autograd.grad(loss, leaves)
        powers[0].mul_(0.9)
        powers[1].mul_(0.999)
        for i, gradient in enumerate(gradients):
            first[i].lerp_(gradient, 0.1)
            second[i].mul_(0.999).addcmul_(gradient, gradient, value=0.001)
            divisor = (second[i] / (1 - powers[1])).sqrt() + 1e-7
            parameters[i].sub_(1e-3 * first[i] / (1 - powers[0]) / divisor)
            if binary and i < weights:
                parameters[i].clamp_(-1.0, 1.0)
        return loss.detach()

    from torch.fx.experimental.proxy_tensor import make_fx
    graph = make_fx(step)(*[[t.clone() for t in part] for part in state], torch.rand(BATCH, WIDTHS[0]),
                          torch.zeros(BATCH, dtype=torch.int64))
    compiled = torch.compile(graph, fullgraph=True, dynamic=False)

    def run(x, labels):
        with torch.no_grad():
            return compiled(*state, x, labels)

    return run


VARIANTS = {
    "eager-foreach": dict(compiled="", foreach=True),
    "eager-fused": dict(compiled="", fused=True),
    "compile-fused": dict(compiled="loss", fused=True),
    "compile-all": dict(compiled="all", foreach=True),
    "compile-one-graph": None,
}


def rates_of(step, at_once=1):
    """Steps a second of process time, of every repetition, after some to warm up. A step may be several."""

    def rate(seconds):
        steps, start = 0, time.process_time()
        while (elapsed := time.process_time() - start) < seconds:
            step()
            steps += at_once
        return steps / elapsed

    rate(WARM_UP_SECONDS)
    return [rate(REPETITION_SECONDS) for _ in range(REPETITIONS)]


def print_rates(name, variant, measure):
    """A line of JSON; an error in it if that is what measuring came to."""
    line = {"name": name, "variant": variant, "torch": torch.__version__}
    try:
        rates = measure()
        line |= {"steps_per_second": max(rates), "median_steps_per_second": statistics.median(rates),
                 "repetitions": len(rates)}
    except Exception as error:  # whatever a compiler may do: the other ways still count
        line["error"] = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
    print(json.dumps(line), flush=True)


def measure(binary, variant):
    step = make_step(binary, **variant) if variant else make_step_in_one_graph(binary)
    batches = list(zip(torch.rand(BATCHES, BATCH, WIDTHS[0]).mul_(2).sub_(1).unbind(),
                       torch.randint(WIDTHS[-1], (BATCHES, BATCH)).unbind()))

    def all_batches():
        for x, labels in batches:
            step(x, labels)

    return rates_of(all_batches, BATCHES)


def main():
    names = sys.argv[1:] or ["mlp-binary", "mlp-full"]
    torch.set_num_threads(1)
    for name in names:
        if name not in ("mlp-binary", "mlp-full"):
            sys.exit(f"unknown network {name}; there are mlp-binary and mlp-full")
        for variant, options in VARIANTS.items():
            print_rates(name, variant, lambda: measure(name == "mlp-binary", options))


if __name__ == "__main__":
    main()
