"""`python -m benchmarks.neural.train METHOD GIVEN.npz RESULT.npz`, in the environment with PyTorch."""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
import torch

from benchmarks.neural import dime, gdfs
from benchmarks.neural.networks import MOST_PURCHASES, Groups, Inputs, walk

FITS = {"DIME": dime.fit, "GDFS": gdfs.fit}


def main(method: str, given: str, result: str) -> None:
    """Train, and write the way of each row of the parts that are tested."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    with np.load(given) as file:
        arrays = dict(file)
    n_tested, seed = (int(n) for n in arrays["parts"])
    torch.manual_seed(seed)
    inputs = Inputs(arrays["X0"], arrays["needs"], arrays["categories"])
    prices = torch.tensor(arrays["prices"], dtype=torch.float32)
    groups = Groups(torch.tensor(inputs.groups, dtype=torch.float32), prices, inputs.group_of_column)
    train, early = ((inputs.read(arrays[f"X{k}"]), torch.tensor(arrays[f"y{k}"]).long()) for k in (0, 1))
    n_classes = int(max(arrays["y0"].max(), arrays["y1"].max())) + 1
    most = min(len(inputs.groups), MOST_PURCHASES)
    started = time.process_time()
    predictor, choose = FITS[method](groups, train, early, n_classes, most)
    found = {"seconds": np.array(time.process_time() - started)}
    for k in range(n_tested):
        with torch.no_grad():
            steps = list(walk(predictor, choose, groups, inputs.read(arrays[f"X{k + 2}"]), most))
        p = torch.stack([torch.softmax(logits, dim=1) for logits, _, _ in steps], dim=1)
        sure, predicted = p.max(dim=2)
        found |= {f"predicted{k}": predicted.numpy().astype(np.int32), f"sure{k}": sure.numpy()}
        found[f"rate{k}"] = torch.stack([rate for *_, rate in steps], dim=1).numpy()
        found[f"bought{k}"] = torch.stack([group for _, group, _ in steps], dim=1)[:, :-1].numpy()
    np.savez(result, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
