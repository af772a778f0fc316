"""The client-step that all peers do, in NumPy: the network's shapes, the clients' random images, their prior and the
order of their batches. Every peer starts from the same numbers, so that their losses and weights can be compared.

    task = make_task(Sizes(clients=20, steps=50))
    task.weights["group1.block1.conv1"]     # [3, 3, 64, 64]: height, width, in, out
    task.batches[k, s]                      # which of client k's images step s uses

One step of client k, whose N_k images have labels y, on a batch of B:

    g = gradient of mean cross-entropy + (lambda_p * theta - eta_p) / N_k
    m = 0.9 m + g          theta = theta - 0.01 m

The network is pre-activation ResNet-18 for 24x24x3 images and 100 classes, 11,218,212 weights: convolution 7x7 by 2 and
max-pool 3x3 by 2 without a norm; four groups of two blocks, strides 1, 2, 2, 2; in a block norm, ReLU, 3x3, norm, ReLU,
3x3, plus the block's input, which in a first block of a stride goes through 1x1 and norm; norm, ReLU, mean, linear. A
norm has no weights: at each position mean and variance over each half of the channels, epsilon 1e-3. Padding is SAME.
"""

import dataclasses

import numpy as np

LEARNING_RATE = 0.01
MOMENTUM = 0.9
EPSILON = 1e-3
IMAGE = 24
CLASSES = 100
EXAMPLES = 100  # of a client, N_k
CLIENTS_IN_ALL = 500
ALPHA = 0.05  # precision per example of (I)
WEIGHT_DECAY = 1e-4

# Of the tilted objective's prior, scaled identity: that of the other clients' examples, and weight decay's.
LAMBDA_P = ALPHA * EXAMPLES * (CLIENTS_IN_ALL - 1) + WEIGHT_DECAY * EXAMPLES


@dataclasses.dataclass(frozen=True)
class Sizes:
    clients: int = 20
    steps: int = 50
    batch: int = 20
    widths: tuple = (64, 128, 256, 512)


@dataclasses.dataclass(frozen=True)
class Conv:
    """A convolution or (kernel of the max-pool) window: side x side positions in, `out` x `out` positions out."""

    name: str
    kernel: int
    stride: int
    side: int
    channels_in: int
    channels_out: int

    @property
    def out(self):
        return -(-self.side // self.stride)

    @property
    def pads(self):
        """SAME: below and above, the odd one above."""
        total = max((self.out - 1) * self.stride + self.kernel - self.side, 0)
        return total // 2, total - total // 2

    @property
    def live(self):
        """Taps of one axis that meet the image for some output; all others only ever see padding."""
        low = self.pads[0]
        meets = lambda tap: any(0 <= o * self.stride + tap - low < self.side for o in range(self.out))
        return [tap for tap in range(self.kernel) if meets(tap)]


@dataclasses.dataclass(frozen=True)
class Block:
    conv1: Conv
    conv2: Conv
    shortcut: Conv | None


@dataclasses.dataclass(frozen=True)
class Network:
    stem: Conv
    pool: Conv  # its kernel, stride and side
    blocks: tuple
    features: int

    def convs(self):
        yield self.stem
        for block in self.blocks:
            yield block.conv1
            yield block.conv2
            if block.shortcut:
                yield block.shortcut


def make_network(widths):
    stem = Conv("stem", 7, 2, IMAGE, 3, widths[0])
    pool = Conv("pool", 3, 2, stem.out, widths[0], widths[0])
    blocks, side, channels = [], pool.out, widths[0]
    for group, (width, group_stride) in enumerate(zip(widths, (1, 2, 2, 2)), start=1):
        for number in (1, 2):
            name = f"group{group}.block{number}"
            stride = group_stride if number == 1 else 1
            conv1 = Conv(f"{name}.conv1", 3, stride, side, channels, width)
            conv2 = Conv(f"{name}.conv2", 3, 1, conv1.out, width, width)
            shortcut = Conv(f"{name}.shortcut", 1, stride, side, channels, width) if stride > 1 else None
            blocks.append(Block(conv1, conv2, shortcut))
            side, channels = conv1.out, width
    return Network(stem, pool, tuple(blocks), channels)


@dataclasses.dataclass(frozen=True)
class Task:
    sizes: Sizes
    network: Network
    weights: dict  # name -> float32, convolutions [height, width, in, out]; the server's mean, where clients start
    eta: dict  # name -> float32 [clients, ...]
    images: np.ndarray  # float32 [clients, EXAMPLES, IMAGE, IMAGE, 3]
    labels: np.ndarray  # int32 [clients, EXAMPLES]
    batches: np.ndarray  # int32 [clients, steps, batch]


def make_task(sizes, seed=1):
    """Truncated normals of scale 1/sqrt(fan-in) as weights; eta_p is lambda_p times a point near them, another for
    every client, as it is when clients' factors have moved."""
    random = np.random.default_rng(seed)
    network = make_network(sizes.widths)

    def normal(*shape):
        return random.standard_normal(shape, dtype=np.float32)

    weights = {}
    for conv in network.convs():
        shape = (conv.kernel, conv.kernel, conv.channels_in, conv.channels_out)
        scale = np.float32(1 / np.sqrt(np.prod(shape[:3])))
        weights[conv.name] = np.clip(normal(*shape), -2, 2) * scale
    # Zero in the paper's runs; not here, so that a first step's gradients reach every layer.
    weights["logits.weight"] = normal(network.features, CLASSES) * np.float32(0.01)
    weights["logits.bias"] = np.zeros(CLASSES, np.float32)
    eta = {
        name: np.float32(LAMBDA_P) * (value + np.float32(1e-3) * normal(sizes.clients, *value.shape))
        for name, value in weights.items()
    }
    passes = -(-sizes.steps * sizes.batch // EXAMPLES)
    order = [np.concatenate([random.permutation(EXAMPLES) for _ in range(passes)]) for _ in range(sizes.clients)]
    batches = np.stack(order)[:, : sizes.steps * sizes.batch].astype(np.int32)
    return Task(
        sizes=sizes,
        network=network,
        weights=weights,
        eta=eta,
        images=normal(sizes.clients, EXAMPLES, IMAGE, IMAGE, 3),
        labels=random.integers(CLASSES, size=(sizes.clients, EXAMPLES), dtype=np.int32),
        batches=batches.reshape(sizes.clients, sizes.steps, sizes.batch),
    )


def add_size_options(parser, repeats):
    parser.add_argument("--clients", type=int, default=20, help="in a round")
    parser.add_argument("--steps", type=int, default=50, help="of a client's visit (the paper's: 10 epochs of 5)")
    parser.add_argument("--repeats", type=int, default=repeats, help="timed rounds; their median counts")
    parser.add_argument("--widths", default="64,128,256,512", help="channels of the four groups")


def sizes_of(options):
    widths = tuple(int(word) for word in options.widths.split(","))
    if len(widths) != 4 or any(width < 2 or width % 2 for width in widths):
        raise SystemExit(f"--widths: must be four even numbers, but is {options.widths}")
    if min(options.clients, options.steps, options.repeats) < 1:
        raise SystemExit("--clients, --steps, --repeats: must be positive")
    return Sizes(clients=options.clients, steps=options.steps, widths=widths)
