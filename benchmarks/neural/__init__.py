"""Neural acquisition methods as peers: DIME and GDFS, compact, on the CPU, with their published settings.

- DIME (Gadgil, Covert and Lee, ICLR 2024): a predictor for every set of known groups, and a value network that
  estimates the conditional mutual information of each group and the label; it buys the group with the most per price.
- GDFS (Covert et al., ICML 2023): a predictor and a selector, trained end to end through a relaxed choice.

They need PyTorch, in an environment of its own that needs nothing but PyTorch and NumPy:

    python -m venv ../torch-env && ../torch-env/bin/pip install torch numpy
    python -m benchmarks.frontier_vs_peers --neural ../torch-env/bin/python --methods auto DIME
    python -m benchmarks.neural_vs_active --neural ../torch-env/bin/python thyroid pairs

The rows and prices go to that environment in one file, and come back as each row's order of purchases with what was
predicted after each (`exchange`). All costs are counted here. Only `networks`, `dime`, `gdfs` and `train` import
PyTorch.

Published settings (from the authors' code for tabular data): two hidden layers of 128, dropout 0.3, batches of 128,
Adam with 1e-3, divided by five after 5 epochs without gain, the mask beside the values, a predictor pretrained on
uniformly random masks, at most 35 purchases a row. DIME: ε = 0.05, times 0.2 at each of 10 plateaus, estimates bounded
by the entropy, at most 100 epochs. GDFS: temperatures from 1 to 0.1 in 5 steps.

What differs: values are standardised (the authors only take off the mean), categories get one column each, missing
values are the mean with a column that says so. Prices of shared acquisitions are those of what is not owned yet; in
DIME this replaces the fixed price of a group. Training never buys a group twice. GDFS knows no prices.
"""
