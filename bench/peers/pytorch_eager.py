#!/usr/bin/env python3
"""PyTorch in eager mode, one client after another: what federated simulators built on it do. Prints a JSON line.

    pytorch_eager.py [--clients 20] [--steps 50] [--repeats 2]
    pytorch_eager.py --clients 2 --steps 3 --widths 8,16,32,64 --dump eager.npz     # for jax_peers.py --check

task.py has the step. Images and weights are in PyTorch's own order (channels first), where its users leave them.
"""

import argparse
import json
import platform
import statistics
import time

import numpy as np
import torch
import torch.nn.functional as F

import task as peers


def to_torch(value):
    """[..., height, width, in, out] -> [..., out, in, height, width]; matrices and vectors stay."""
    if value.ndim < 4:
        return torch.from_numpy(value)
    first = value.ndim - 4
    order = tuple(range(first)) + (first + 3, first + 2, first, first + 1)
    return torch.from_numpy(np.ascontiguousarray(value.transpose(order)))


def convolve(x, weight, conv):
    low, high = conv.pads
    if low == high:
        return F.conv2d(x, weight, stride=conv.stride, padding=low)
    return F.conv2d(F.pad(x, (low, high, low, high)), weight, stride=conv.stride)


def norm(x):
    batch, channels, height, width = x.shape
    halves = x.view(batch, 2, channels // 2, height, width)
    variance, mean = torch.var_mean(halves, dim=2, unbiased=False, keepdim=True)
    return ((halves - mean) * torch.rsqrt(variance + peers.EPSILON)).view_as(x)


def logits_of(network, theta, x):
    x = convolve(x, theta["stem"], network.stem)
    low, high = network.pool.pads
    x = F.max_pool2d(F.pad(x, (low, high, low, high), value=float("-inf")), network.pool.kernel, network.pool.stride)
    for block in network.blocks:
        y = convolve(F.relu(norm(x)), theta[block.conv1.name], block.conv1)
        y = convolve(F.relu(norm(y)), theta[block.conv2.name], block.conv2)
        x = y + (norm(convolve(x, theta[block.shortcut.name], block.shortcut)) if block.shortcut else x)
    x = F.relu(norm(x)).mean(dim=(2, 3))
    return torch.addmm(theta["logits.bias"], x, theta["logits.weight"])


class Clients:
    """All that a round needs, on the device."""

    def __init__(self, task, device):
        self.network = task.network
        self.start = {name: to_torch(value).to(device) for name, value in task.weights.items()}
        self.eta = {name: to_torch(value).to(device) for name, value in task.eta.items()}
        self.images = torch.from_numpy(np.ascontiguousarray(task.images.transpose(0, 1, 4, 2, 3))).to(device)
        self.labels = torch.from_numpy(task.labels).long().to(device)
        self.batches = torch.from_numpy(task.batches).long().to(device)

    def visit(self, client):
        """-> weights after the client's steps, and their losses."""
        theta = {name: value.clone().requires_grad_() for name, value in self.start.items()}
        eta = [self.eta[name][client] for name in theta]
        values = list(theta.values())
        optimizer = torch.optim.SGD(values, lr=peers.LEARNING_RATE, momentum=peers.MOMENTUM)
        losses = []
        for batch in self.batches[client]:
            optimizer.zero_grad(set_to_none=True)
            logits = logits_of(self.network, theta, self.images[client, batch])
            loss = F.cross_entropy(logits, self.labels[client, batch])
            loss.backward()
            with torch.no_grad():
                gradients = [value.grad for value in values]
                torch._foreach_add_(gradients, values, alpha=peers.LAMBDA_P / peers.EXAMPLES)
                torch._foreach_add_(gradients, eta, alpha=-1.0 / peers.EXAMPLES)
            optimizer.step()
            losses.append(loss.detach())
        return theta, torch.stack(losses)


def dump(path, task, clients):
    """Losses [clients, steps] and weights [clients, ...] in task.py's order."""
    visits = [clients.visit(client) for client in range(task.sizes.clients)]
    arrays = {"losses": np.stack([losses.cpu().numpy() for _, losses in visits])}
    for name in task.weights:
        stacked = np.stack([theta[name].detach().cpu().numpy() for theta, _ in visits])
        arrays[name] = stacked.transpose(0, 3, 4, 2, 1) if stacked.ndim == 5 else stacked
    np.savez(path, **arrays)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    peers.add_size_options(parser, repeats=2)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--dump", metavar="NPZ", help="TF32 off; write losses and weights after the steps; no timing")
    options = parser.parse_args()
    sizes = peers.sizes_of(options)
    device = torch.device(options.device)
    tf32 = options.dump is None
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = True

    task = peers.make_task(sizes)
    clients = Clients(task, device)
    if options.dump:
        dump(options.dump, task, clients)
        return

    def synchronize():
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    def seconds_of_a_round():
        synchronize()
        start = time.perf_counter()
        for client in range(sizes.clients):
            clients.visit(client)
        synchronize()
        return time.perf_counter() - start

    synchronize()
    start = time.perf_counter()
    clients.visit(0)  # warm-up; cuDNN chooses its algorithms
    synchronize()
    first = time.perf_counter() - start
    rounds = [seconds_of_a_round() for _ in range(options.repeats)]
    on_gpu = device.type == "cuda"
    line = {
        "peer": "pytorch_eager",
        "ms_per_client_step": round(1e3 * statistics.median(rounds) / (sizes.clients * sizes.steps), 4),
        "compile_seconds": 0.0,
        "warm_up_seconds": round(first, 3),
        "device": torch.cuda.get_device_name(device) if on_gpu else "cpu",
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
        },
        "clients": sizes.clients,
        "steps": sizes.steps,
        "repeats": options.repeats,
    }
    print(json.dumps(line))


if __name__ == "__main__":
    main()
