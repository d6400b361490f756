"""Makes testdata/cnn_*.npy: one training step of a small CNN on the digits, by PyTorch.

The files hold a batch of 8 images with their labels, the model's parameters, the loss, and the
gradient of the loss by every parameter and by the images, all in f32 (labels in i64):

    x [8, 1, 8, 8] -> conv 16 3x3 pad 1 (w1, b1) -> relu -> max pool 2
                   -> conv 32 3x3 pad 1 (w2, b2) -> relu -> max pool 2
                   -> flatten [8, 128] -> linear 10 (w3, b3) -> mean cross entropy -> loss

The images are the first rows of digits.csv.gz (beside this script), pixels divided by 16; the
parameters are drawn by a seeded numpy generator. The tests read the files and never run this.

Where two elements of a pooling window tie, or an element stands at the kink of relu, the gradient
is a convention (PyTorch's max_pool2d picks the first of equals, Nestor shares), and next to such a
place rounding decides it. So the fixture keeps clear of both: `relu_and_pool` checks the distance,
and the biases are negative, as else the digits' empty margins give windows of equal positive
elements.

To make them again (on Debian: apt-get install python3-torch python3-numpy):

    /usr/bin/python3 make_fixture.py
"""

import gzip
import pathlib

import numpy as np
import torch
import torch.nn.functional as F

HERE = pathlib.Path(__file__).resolve().parent
BATCH = 8
SEED = 1
MARGIN = 2e-5  # some hundred times the rounding error of a convolution here


def images_and_labels():
    with gzip.open(HERE / "digits.csv.gz", "rt") as file:
        rows = np.loadtxt(file, delimiter=",", max_rows=BATCH, dtype=np.int64)
    images = (rows[:, :64] / 16).astype(np.float32).reshape(BATCH, 1, 8, 8)
    return images, rows[:, 64].copy()


def parameters():
    """Weights of variance 2 / fan-in (He et al., 2015), biases small and negative."""
    generator = np.random.default_rng(SEED)
    result = {}
    for layer, shape in enumerate([(16, 1, 3, 3), (32, 16, 3, 3), (10, 128)], start=1):
        fan_in = np.prod(shape[1:])
        weight = generator.standard_normal(shape) * np.sqrt(2 / fan_in)
        bias = -generator.uniform(0.05, 0.2, shape[0])
        result[f"w{layer}"] = weight.astype(np.float32)
        result[f"b{layer}"] = bias.astype(np.float32)
    return result


def relu_and_pool(x):
    """max_pool2d(relu(x), 2), having checked that its gradient is beyond doubt."""
    n, c, h, w = x.shape
    windows = x.detach().reshape(n, c, h // 2, 2, w // 2, 2).transpose(3, 4).flatten(4)
    second, first = windows.sort().values.clamp(min=0)[..., 2:].unbind(-1)
    assert (x.detach().abs() > MARGIN).all(), "an element at the kink of relu"
    assert ((first - second > MARGIN) | (first == 0)).all(), "a tie in a pooling window"
    return F.max_pool2d(F.relu(x), 2)


def loss_of(x, labels, p):
    x = relu_and_pool(F.conv2d(x, p["w1"], p["b1"], padding=1))
    x = relu_and_pool(F.conv2d(x, p["w2"], p["b2"], padding=1))
    return F.cross_entropy(F.linear(x.flatten(1), p["w3"], p["b3"]), labels)


def main():
    torch.set_num_threads(1)
    images, labels = images_and_labels()
    stored = {"x": images, "labels": labels, **parameters()}

    leaves = {name: torch.tensor(value) for name, value in stored.items() if name != "labels"}
    for leaf in leaves.values():
        leaf.requires_grad_()
    loss = loss_of(leaves["x"], torch.tensor(labels), leaves)
    loss.backward()

    stored["loss"] = loss.detach().numpy()
    for name, leaf in leaves.items():
        stored[f"g_{name}"] = leaf.grad.numpy()
    (HERE / "testdata").mkdir(exist_ok=True)
    for name, value in stored.items():
        value = np.array(value, order="C")
        with open(HERE / "testdata" / f"cnn_{name}.npy", "wb") as file:
            np.lib.format.write_array(file, value, version=(1, 0))


if __name__ == "__main__":
    main()
