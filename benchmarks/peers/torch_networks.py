"""Measures CNN4 (28 x 28 images) and ResNet10 (32 x 32, three channels) in PyTorch on one thread:
torch_networks.py [cnn4|resnet10]-[real|rotated|rotation]...

real: a training step of 64 images (forward, cross-entropy, backward, SGD). rotated: the same with FedBNN's rotated
binary weights and signs as activations, written as one would in PyTorch. rotation: the three iterations that fit all
layers' rotations to their weights, with PyTorch's own singular value decomposition.

Lines of JSON as torch_mlp.py prints them; a step of a rotation is one fit of all layers.
"""
import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch is imported; compiled code asks OpenMP

import torch
import torch.nn.functional as F

from torch_mlp import print_rates, rates_of

BATCH = 64
WIDTHS = (1, 32, 64, 128, 256)
T, K = 1.0, 1.0  # of the surrogate, in mid-training
ITERATIONS = 3


class RotatedSign(torch.autograd.Function):
    """sign(x), with FedBNN's surrogate on the way back."""

    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return torch.where(x >= 0, 1.0, -1.0)

    @staticmethod
    def backward(context, gradient):
        (x,) = context.saved_tensors
        return gradient * torch.clamp(K * (2**0.5 * T - T * T * x.abs()), min=0)


def shape_of(n):
    columns = max(d for d in range(1, int(n**0.5) + 1) if n % d == 0)
    return n // columns, columns


def standardised(weights):
    flat = weights.flatten(1)
    return (flat - flat.mean(1, keepdim=True)) / (flat.std(1, correction=0, keepdim=True) + 1e-12)


class RotatedConvolution(torch.nn.Module):
    def __init__(self, inputs, outputs, side=3, stride=1, binary_input=True):
        super().__init__()
        self.stride, self.padding, self.binary_input = stride, side // 2, binary_input
        count = side * side * inputs
        self.weights = torch.nn.Parameter(torch.empty(outputs, inputs, side, side).uniform_(-1, 1) / count**0.5)
        self.server = self.weights.detach().clone()
        self.mix = torch.nn.Parameter(torch.tensor(0.9))
        self.theta = torch.nn.Parameter(torch.full((outputs, 1), 0.785))
        self.gamma = torch.nn.Parameter(torch.tensor(0.1))
        rows, columns = shape_of(count)
        self.register_buffer("r1", torch.linalg.qr(torch.randn(rows, rows))[0])
        self.register_buffer("r2", torch.linalg.qr(torch.randn(columns, columns))[0])

    def turned(self, w):
        matrices = w.view(-1, self.r1.shape[0], self.r2.shape[0])
        return self.r1.T @ matrices @ self.r2

    def latent(self):
        mix = self.mix.clamp(0, 1)
        return standardised(mix * self.weights + (1 - mix) * self.server)

    @torch.no_grad()
    def rotate(self):
        w = self.latent().view(-1, self.r1.shape[0], self.r2.shape[0])
        for _ in range(ITERATIONS):
            signs = torch.where(self.turned(w) >= 0, 1.0, -1.0)
            u, _, v = torch.linalg.svd(torch.einsum("fij,fkj->ik", w @ self.r2, signs))
            self.r1.copy_(u @ v)
            u, _, v = torch.linalg.svd(torch.einsum("fji,fjk->ik", self.r1.T @ w, signs))
            self.r2.copy_(u @ v)

    def forward(self, x):
        w = self.latent()
        turned = self.turned(w).flatten(1)
        w = w + self.theta.sin().abs() * (turned - w) + self.gamma.sin().abs() * (standardised(self.server) - w)
        signs = RotatedSign.apply(w).view_as(self.weights)
        if self.binary_input:
            flat = x.flatten(1)
            flat = (flat - flat.mean(1, keepdim=True)) / (flat.std(1, correction=0, keepdim=True) + 1e-6)
            x = RotatedSign.apply(flat).view_as(x)
        return F.conv2d(x, signs, stride=self.stride, padding=self.padding)


def convolution(rotated, inputs, outputs, side=3, stride=1, binary_input=True):
    if rotated:
        return RotatedConvolution(inputs, outputs, side, stride, binary_input)
    return torch.nn.Conv2d(inputs, outputs, side, stride=stride, padding=side // 2, bias=False)


def activation(rotated):
    return torch.nn.Hardtanh() if rotated else torch.nn.ReLU()


class Cnn4(torch.nn.Module):
    image = (1, 28, 28)

    def __init__(self, rotated):
        super().__init__()
        layers = []
        for layer, (inputs, outputs) in enumerate(zip(WIDTHS, WIDTHS[1:])):
            layers += [convolution(rotated, inputs, outputs, binary_input=layer > 0), torch.nn.BatchNorm2d(outputs),
                       activation(rotated), torch.nn.MaxPool2d(2)]
        self.layers = torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(WIDTHS[-1], 10, bias=False))

    def forward(self, x, labels):
        return F.cross_entropy(self.layers(x), labels)


class Residual(torch.nn.Module):
    def __init__(self, rotated, inputs, outputs, stride):
        super().__init__()
        self.path = torch.nn.Sequential(
            convolution(rotated, inputs, outputs, stride=stride), torch.nn.BatchNorm2d(outputs), activation(rotated),
            convolution(rotated, outputs, outputs), torch.nn.BatchNorm2d(outputs))
        self.shortcut = torch.nn.Identity() if stride == 1 else torch.nn.Sequential(
            convolution(rotated, inputs, outputs, 1, stride), torch.nn.BatchNorm2d(outputs))
        self.activation = activation(rotated)

    def forward(self, x):
        return self.activation(self.path(x) + self.shortcut(x))


class ResNet10(torch.nn.Module):
    image = (3, 32, 32)

    def __init__(self, rotated):
        super().__init__()
        self.layers = torch.nn.Sequential(
            convolution(False, 3, 64), torch.nn.BatchNorm2d(64), activation(rotated), Residual(rotated, 64, 64, 1),
            Residual(rotated, 64, 128, 2), Residual(rotated, 128, 256, 2), Residual(rotated, 256, 512, 2),
            torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.BatchNorm1d(512), torch.nn.Linear(512, 10))

    def forward(self, x, labels):
        return F.cross_entropy(self.layers(x), labels)


NETWORKS = {"cnn4": Cnn4, "resnet10": ResNet10}


def training_step(network, rotated, compiled, channels_last):
    torch.manual_seed(1)
    torch.compiler.reset()
    model = network(rotated)
    x, labels = torch.randn(BATCH, *network.image), torch.randint(10, (BATCH,))
    if channels_last:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    loss_of = torch.compile(model, dynamic=False) if compiled else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss_of(x, labels).backward()
        optimizer.step()

    return step


def rotation_step(network):
    torch.manual_seed(1)
    layers = [layer for layer in network(True).modules() if isinstance(layer, RotatedConvolution)]

    def step():
        for layer in layers:
            layer.rotate()

    return step


VARIANTS = {
    "eager": dict(compiled=False, channels_last=False),
    "eager-channels-last": dict(compiled=False, channels_last=True),
    "compile": dict(compiled=True, channels_last=False),
    "compile-channels-last": dict(compiled=True, channels_last=True),
}
NAMES = [f"{network}-{what}" for network in NETWORKS for what in ("real", "rotated", "rotation")]


def main():
    torch.set_num_threads(1)
    for name in sys.argv[1:] or NAMES:
        if name not in NAMES:
            sys.exit(f"unknown network {name}; there are {', '.join(NAMES)}")
        network, what = name.split("-")
        if what == "rotation":
            print_rates(name, "svd", lambda: rates_of(rotation_step(NETWORKS[network])))
            continue
        for variant, options in VARIANTS.items():
            print_rates(name, variant, lambda: rates_of(training_step(NETWORKS[network], what == "rotated", **options)))


if __name__ == "__main__":
    main()
