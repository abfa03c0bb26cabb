"""Whole frontiers of quality against cost: Miserly beside LightGBM's CEGB, CatBoost's penalties and a plain tree.

`python -m benchmarks.frontier_vs_peers [--quick] [--data NAME ...] [--methods WORD ...] [--n-jobs 2] [--out DIR]`

"auto" is the documented call with default settings, on all rows that are not test; it cross-validates by itself. Its
defaults were chosen by results on the sets of `data.DEVELOPMENT`; heart and waimai were looked at once before.
The neural methods (`benchmarks.neural`) take part with `--neural PYTHON`, the Python of an environment that has
PyTorch, where classes are predicted. FrugalML's strategy takes part where features are the labels and confidences of
services.

What is the same for all others:
- rows: a setting is fitted on the training part, its points are chosen on the validation part, and the same setting is
  fitted again on both parts, as "auto" fits its models again; that second model is tested;
- trees: up to 300 rounds, learning rate 0.1; 3 levels, or 6 with 16 leaves, whichever cost-blind model is better on
  validation; the same least rows in a leaf;
- early stopping: every boosted model may be stopped after 1, 2, 4, 8, 12, … rounds, each of which is a point;
- the grid: the cost-blind end, 7 exchange rates, geometric, up to where nothing is bought, then 7 more, each between
  the two neighbours with most between them (cost on validation times rate, in logarithms);
- "miser" is one setting for all data: both charges, joined as CatBoost's two kinds of penalty are, half of the rows for
  each round, leaves shrunk. The peers that charge by path have an entry with half of the rows too;
- every model becomes a Miserly `Plan` (checked to predict what its maker predicts), so one ledger counts all costs;
- the points are chosen on validation (Pareto) and read on test. The score is the area under the steps of quality over
  the logarithm of the budget, from the cheapest acquisition to the price of everything; below a frontier's first
  point stands the constant answer, which is free.

Ranking is squared loss on the grades for all; NDCG@5 counts a query without relevant documents as 0, as LETOR's own
script does (no ranking can change it). Intervals are 95 %, Nadeau and Bengio's correction for overlapping splits.
"""
