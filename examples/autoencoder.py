"""A small autoencoder in NumPy alone: train it on generated data, compress with it, decompress again.

    python examples/autoencoder.py train MODEL.npz [--epochs 20]
    python examples/autoencoder.py compress MODEL.npz SMALL.npz
    python examples/autoencoder.py decompress MODEL.npz SMALL.npz

The data are spectra: sums of a few bell-shaped lines on 256 channels, so that 16 numbers can carry most of each.
"""

import argparse
import itertools

import numpy as np

CHANNELS, HIDDEN, CODE = 256, 256, 16
TRAINING, ARCHIVE = 2048, 20_000


def generate(count, seed):
    """Spectra of three lines each."""
    random = np.random.default_rng(seed)
    channel = np.arange(CHANNELS, dtype=np.float32)
    spectra = np.zeros((count, CHANNELS), np.float32)
    for _ in range(3):
        centre, width, height = (random.uniform(*ends, (count, 1)).astype(np.float32)
                                 for ends in ((20, CHANNELS - 20), (4, 16), (0.3, 1.0)))  # fmt: skip
        spectra += height * np.exp(-(((channel - centre) / width) ** 2))
    return spectra


def begin(seed=0):
    """Weights and biases of four layers: 256 → 256 → 16 → 256 → 256."""
    random = np.random.default_rng(seed)
    sizes = (CHANNELS, HIDDEN, CODE, HIDDEN, CHANNELS)
    pairs = list(itertools.pairwise(sizes))
    model = {f"w{i}": random.normal(0, (2 / a) ** 0.5, (a, b)).astype(np.float32) for i, (a, b) in enumerate(pairs)}
    return model | {f"b{i}": np.zeros(b, np.float32) for i, (_, b) in enumerate(pairs)}


def layer(model, i, x):
    out = x @ model[f"w{i}"] + model[f"b{i}"]
    return out if i in (1, 3) else np.maximum(out, 0)


def encode(model, x):
    hidden = layer(model, 0, x)
    return hidden, layer(model, 1, hidden)


def decode(model, code):
    hidden = layer(model, 2, code)
    return hidden, layer(model, 3, hidden)


def gradients(model, x, inputs, error):
    """Backwards through the four layers; ``inputs`` are what went into each."""
    found = {}
    for i in (3, 2, 1, 0):
        found[f"w{i}"] = inputs[i].T @ error
        found[f"b{i}"] = error.sum(axis=0)
        error = error @ model[f"w{i}"].T
        if i in (3, 1):
            error *= inputs[i] > 0
    return found


def update(model, moments, found, step, rate=1e-3):
    """Adam."""
    for name, gradient in found.items():
        first, second = moments[name]
        first += 0.1 * (gradient - first)
        second += 0.001 * (gradient * gradient - second)
        size = rate * (1 - 0.999**step) ** 0.5 / (1 - 0.9**step)
        model[name] -= size * first / (np.sqrt(second) + 1e-8)


def train(path, epochs):
    spectra, model, step = generate(TRAINING, seed=1), begin(), 0
    moments = {name: (np.zeros_like(value), np.zeros_like(value)) for name, value in model.items()}
    for _ in range(epochs):
        for batch in np.array_split(np.random.default_rng(step).permutation(TRAINING), 32):
            x, step = spectra[batch], step + 1
            first, code = encode(model, x)
            second, out = decode(model, code)
            error = (out - x) * (2 / x.size)
            update(model, moments, gradients(model, x, (x, first, code, second), error * CHANNELS), step)
    print(f"mean squared error after {epochs} epochs: {float(((out - x) ** 2).mean()):.4f}")
    np.savez(path, **model)


def compress(model_path, small_path):
    model, spectra = dict(np.load(model_path)), generate(ARCHIVE, seed=2)
    codes = np.concatenate([encode(model, part)[1] for part in np.array_split(spectra, 60)])
    np.savez_compressed(small_path, codes=codes.astype(np.float16))
    print(f"{spectra.nbytes / codes.astype(np.float16).nbytes:.0f} times smaller")


def decompress(model_path, small_path):
    model, codes = dict(np.load(model_path)), np.load(small_path)["codes"].astype(np.float32)
    spectra, worst = generate(ARCHIVE, seed=2), 0.0
    for part, truth in zip(np.array_split(codes, 60), np.array_split(spectra, 60), strict=True):
        worst = max(worst, float(((decode(model, part)[1] - truth) ** 2).mean()))
    print(f"worst mean squared error: {worst:.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=["train", "compress", "decompress"])
    parser.add_argument("model")
    parser.add_argument("small", nargs="?")
    parser.add_argument("--epochs", type=int, default=20)
    given = parser.parse_args()
    if given.mode == "train":
        train(given.model, given.epochs)
    elif given.mode == "compress":
        compress(given.model, given.small)
    else:
        decompress(given.model, given.small)


if __name__ == "__main__":
    main()
