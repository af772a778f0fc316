#!/usr/bin/env python3
"""JAX three ways, a JSON line each:

    per_client     jit, lax.scan over the steps, one client after another
    vmap           the same function, vmap over the clients
    written_out    the client axis in every array: a convolution is its live taps' shifted slices, concatenated, times
                   the weights in one batched product over the clients; dead weights take all their steps at the end

    jax_peers.py [--variants per_client,vmap,written_out] [--clients 20] [--steps 50] [--repeats 3]
    jax_peers.py --check [--against eager.npz]      # the same losses and weights after 3 steps? TF32 off, small network

task.py has the step.
"""

import argparse
import functools
import json
import platform
import statistics
import sys
import time

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np
from jax import lax

import task as peers

TOLERANCE = 1e-4  # of losses, and of weights less where they began; rounding is some 1e-5


def norm(x):
    """Over each half of the channels, the last axis; whatever comes before it."""
    halves = x.reshape(*x.shape[:-1], 2, x.shape[-1] // 2)
    mean = halves.mean(axis=-1, keepdims=True)
    variance = jnp.square(halves - mean).mean(axis=-1, keepdims=True)
    return ((halves - mean) * lax.rsqrt(variance + peers.EPSILON)).reshape(x.shape)


def forward(network, theta, x, convolve, max_pool):
    """Features that the logits are linear in: [..., features]."""
    x = max_pool(convolve(x, theta[network.stem.name], network.stem), network.pool)
    for block in network.blocks:
        y = convolve(jax.nn.relu(norm(x)), theta[block.conv1.name], block.conv1)
        y = convolve(jax.nn.relu(norm(y)), theta[block.conv2.name], block.conv2)
        x = y + (norm(convolve(x, theta[block.shortcut.name], block.shortcut)) if block.shortcut else x)
    return jax.nn.relu(norm(x)).mean(axis=(-3, -2))


def cross_entropy(logits, labels):
    """Mean over the last axis of labels."""
    chosen = (logits * jax.nn.one_hot(labels, peers.CLASSES)).sum(axis=-1)  # no gather, whose gradient would scatter
    return (jax.nn.logsumexp(logits, axis=-1) - chosen).mean(axis=-1)


def sgd(theta, momentum, gradient, eta):
    """One step of every weight, and what it leaves as momentum."""
    add = lambda m, g, t, e: peers.MOMENTUM * m + g + (peers.LAMBDA_P * t - e) * (1 / peers.EXAMPLES)
    momentum = jax.tree.map(add, momentum, gradient, theta, eta)
    theta = jax.tree.map(lambda t, m: t - peers.LEARNING_RATE * m, theta, momentum)
    return theta, momentum


# One client.


def convolve_one(x, weight, conv):
    return lax.conv_general_dilated(
        x, weight, (conv.stride, conv.stride), (conv.pads, conv.pads), dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def max_pool_one(x, pool):
    window = lambda extent: (1, extent, extent, 1)
    pads = ((0, 0), pool.pads, pool.pads, (0, 0))
    return lax.reduce_window(x, -jnp.inf, lax.max, window(pool.kernel), window(pool.stride), pads)


def visit_one(network, theta, eta, images, labels, batches):
    def loss_of(theta, batch):
        features = forward(network, theta, images[batch], convolve_one, max_pool_one)
        return cross_entropy(features @ theta["logits.weight"] + theta["logits.bias"], labels[batch])

    def step(carry, batch):
        loss, gradient = jax.value_and_grad(loss_of)(carry[0], batch)
        return sgd(*carry, gradient, eta), loss

    (theta, _), losses = lax.scan(step, (theta, jax.tree.map(jnp.zeros_like, theta)), batches)
    return theta, losses


# All clients, the client axis first.


def shifted(x, conv, taps):
    """Windows of x [clients, batch, side, side, channels], padded already, at each tap's outputs."""
    reach = (conv.out - 1) * conv.stride + 1
    for i in taps:
        for j in taps:
            yield x[:, :, i : i + reach : conv.stride, j : j + reach : conv.stride, :]


def pad(x, conv, value=0.0):
    low, high = conv.pads
    if low == high == 0:
        return x
    return jnp.pad(x, ((0, 0), (0, 0), (low, high), (low, high), (0, 0)), constant_values=value)


def convolve_all(x, weight, conv):
    """weight [clients, live taps * channels in, channels out]."""
    windows = list(shifted(pad(x, conv), conv, conv.live))
    patches = jnp.concatenate(windows, axis=-1) if len(windows) > 1 else windows[0]
    clients, batch = x.shape[:2]
    rows = patches.reshape(clients, batch * conv.out * conv.out, patches.shape[-1])
    return jnp.einsum("kmc,kcn->kmn", rows, weight).reshape(clients, batch, conv.out, conv.out, conv.channels_out)


def max_pool_all(x, pool):
    return functools.reduce(jnp.maximum, shifted(pad(x, pool, -jnp.inf), pool, range(pool.kernel)))


def live_part(network, tree):
    """Of weights [clients, ...]: convolutions' live taps as matrices."""
    out = dict(tree)
    for conv in network.convs():
        taps = np.array(conv.live)
        live = tree[conv.name][:, taps[:, None], taps[None, :]]
        out[conv.name] = live.reshape(live.shape[0], -1, conv.channels_out)
    return out


def coast(theta, eta, steps):
    """Steps without data, from momentum 0: (theta - eta/lambda_p, momentum) is multiplied by a 2x2 matrix each time."""
    rate, pull = peers.LEARNING_RATE, peers.LAMBDA_P / peers.EXAMPLES
    step = np.array([[1 - rate * pull, -rate * peers.MOMENTUM], [pull, peers.MOMENTUM]])
    left = float(np.linalg.matrix_power(step, steps)[0, 0])
    centre = eta * (1 / peers.LAMBDA_P)
    return centre + left * (theta - centre)


def whole(network, live, start, eta, steps):
    """All weights from the live ones; those of dead taps have coasted."""
    out = dict(live)
    for conv in network.convs():
        taps = np.array(conv.live)
        shape = (live[conv.name].shape[0], len(taps), len(taps), conv.channels_in, conv.channels_out)
        values = live[conv.name].reshape(shape)
        if len(taps) < conv.kernel:
            values = coast(start[conv.name], eta[conv.name], steps).at[:, taps[:, None], taps[None, :]].set(values)
        out[conv.name] = values
    return out


def visit_all(network, theta, eta, images, labels, batches):
    """theta [...], all else with the client axis first -> weights [clients, ...], losses [clients, steps]."""
    clients, steps, _ = batches.shape
    start = jax.tree.map(lambda value: jnp.broadcast_to(value, (clients, *value.shape)), theta)
    live, live_eta = live_part(network, start), live_part(network, eta)
    rows = jnp.arange(clients)[:, None]

    def loss_of(theta, batch):
        features = forward(network, theta, images[rows, batch], convolve_all, max_pool_all)
        logits = jnp.einsum("kbf,kfc->kbc", features, theta["logits.weight"]) + theta["logits.bias"][:, None]
        losses = cross_entropy(logits, labels[rows, batch])
        return losses.sum(), losses  # the sum: a client's weights are in its own loss alone

    def step(carry, batch):
        (_, losses), gradient = jax.value_and_grad(loss_of, has_aux=True)(carry[0], batch)
        return sgd(*carry, gradient, live_eta), losses

    batches = batches.transpose(1, 0, 2)
    (live, _), losses = lax.scan(step, (live, jax.tree.map(jnp.zeros_like, live)), batches)
    return whole(network, live, start, eta, steps), losses.T


class Variant:
    """Compiles when made. play() is for timing, results() gives weights and losses, client axis first."""

    def __init__(self, name, task):
        self.theta = jax.device_put(task.weights)
        clients = (task.eta, task.images, task.labels, task.batches)
        one = functools.partial(visit_one, task.network)
        if name == "per_client":
            function = one
            pick = lambda k: jax.device_put(jax.tree.map(lambda value: value[k], clients))
            self.arguments = [pick(k) for k in range(task.sizes.clients)]
        else:
            in_axes = (None, 0, 0, 0, 0)
            function = jax.vmap(one, in_axes) if name == "vmap" else functools.partial(visit_all, task.network)
            self.arguments = [jax.device_put(clients)]
        self.one = name == "per_client"
        start = time.perf_counter()
        self.visit = jax.jit(function).lower(self.theta, *self.arguments[0]).compile()
        self.compile_seconds = time.perf_counter() - start

    def play(self):
        """All clients' visits, to their end; calls run in order, so the last one's end is all's."""
        done = None
        for arguments in self.arguments:
            done = self.visit(self.theta, *arguments)
        jax.block_until_ready(done)

    def results(self):
        if not self.one:
            return jax.device_get(self.visit(self.theta, *self.arguments[0]))
        visits = [jax.device_get(self.visit(self.theta, *arguments)) for arguments in self.arguments]
        return jax.tree.map(lambda *values: np.stack(values), *visits)

    def seconds_of_a_round(self):
        start = time.perf_counter()
        self.play()
        return time.perf_counter() - start


VARIANTS = ("per_client", "vmap", "written_out")


def report(name, task, repeats):
    variant = Variant(name, task)
    variant.play()  # warm-up
    seconds = statistics.median(variant.seconds_of_a_round() for _ in range(repeats))
    sizes, device = task.sizes, jax.devices()[0]
    return {
        "peer": f"jax_{name}",
        "ms_per_client_step": round(1e3 * seconds / (sizes.clients * sizes.steps), 4),
        "compile_seconds": round(variant.compile_seconds, 2),
        "device": device.device_kind,
        "versions": {
            "python": platform.python_version(),
            "jax": jax.__version__,
            "jaxlib": jaxlib.__version__,
            "platform": device.client.platform_version.splitlines()[-1],
        },
        "clients": sizes.clients,
        "steps": sizes.steps,
        "repeats": repeats,
    }


def difference(came, expected):
    """2-norm of the difference over 2-norm."""
    return float(np.linalg.norm(came - expected) / np.linalg.norm(expected))


def check_counts():
    """The paper's network has as many weights, and as many dead ones, as it should."""
    weights, dead = 512 * peers.CLASSES + peers.CLASSES, 0
    for conv in peers.make_network(peers.Sizes().widths).convs():
        pairs = conv.channels_in * conv.channels_out
        weights += conv.kernel**2 * pairs
        dead += (conv.kernel**2 - len(conv.live) ** 2) * pairs
    print(f"{weights:,} weights, {dead:,} of them dead")
    return (weights, dead) == (11_218_212, 6_946_816)


def check(task, against):
    """Prints the largest difference of each variant to the first; -> whether all are small."""
    results = {}
    for name in VARIANTS:
        weights, losses = Variant(name, task).results()
        results[name] = {"losses": losses, **weights}
    if against:
        results["pytorch_eager"] = dict(np.load(against))
    expected = results.pop("per_client")
    good = check_counts()
    for name, came in results.items():
        for key, value in expected.items():
            if came[key].shape != value.shape:
                raise SystemExit(f"{name}: {key} must be {value.shape}, but is {came[key].shape}")
        losses = difference(came["losses"], expected["losses"])
        moves = {key: difference(came[key] - start, expected[key] - start) for key, start in task.weights.items()}
        good = good and max(losses, *moves.values()) <= TOLERANCE
        worst = max(moves, key=moves.get)
        print(f"{name}: losses differ by {losses:.1e}, moves of weights by at most {moves[worst]:.1e} ({worst})")
    print("good" if good else f"not within {TOLERANCE}")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    peers.add_size_options(parser, repeats=3)
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--check", action="store_true", help="2 clients, 3 steps, widths 8,16,32,64; no timing")
    parser.add_argument("--against", metavar="NPZ", help="with --check: what pytorch_eager.py --dump wrote")
    options = parser.parse_args()
    if options.check:
        jax.config.update("jax_default_matmul_precision", "highest")
        options.clients, options.steps, options.widths = 2, 3, "8,16,32,64"
        sys.exit(0 if check(peers.make_task(peers.sizes_of(options)), options.against) else 1)
    names = options.variants.split(",")
    if unknown := set(names) - set(VARIANTS):
        raise SystemExit(f"--variants: must be of {', '.join(VARIANTS)}, but has {', '.join(sorted(unknown))}")
    jax.config.update("jax_default_matmul_precision", "tensorfloat32")
    task = peers.make_task(peers.sizes_of(options))
    for name in names:
        print(json.dumps(report(name, task, options.repeats)), flush=True)


if __name__ == "__main__":
    main()
