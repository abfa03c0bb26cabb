"""The family of classifier trees and cascades in one picture per data set, and what the papers claim of it.

`python -m benchmarks.family [--sets thyroid mq2008 yahoo] [--splits N] [--n-jobs 1] [--out DIR]`

- thyroid: ann-thyroid, both files together, `costs.toml` (shared blood draw), ten stratified splits, accuracy;
- mq2008: LETOR's five folds, `costs.toml` (shared field reads), NDCG@5 of the grades;
- yahoo: `yahoo_like`, grades of 3 and above relevant, each irrelevant document counted ten times (in training, in the
  metric and in the mean cost), precision@5, as in the papers of Cronus and CSCC; four independent draws.

The machinery is that of `benchmarks.frontier_vs_peers`: points are chosen on validation and read on test, areas are
over the logarithm of the budget, intervals are 95 %, each sweep over exchange rates has 13 points. The family weighs
raw features, or 100 rounds of stumps of a cost-blind boosting, each round grown on 3 of 10 features; "miserly: all" is
the family alone, pooled. "single" is a CSTC of one node.
"""
