"""Cronus: the objective from its definition, gradients by finite differences, both algorithms."""

import numpy as np
import pytest

from miserly.estimators.cronus._soft_cascade import CascadeTask, SoftCascade, Stage, StageProblem, weighted_quantile
from miserly.solvers._design import RawDesign
from miserly.solvers._mixed_norm import AcquisitionNorm
from oracles.classifier_graphs import cascade_objective


def a_task(seed=0, n=60, lam=0.05, signal=False, shared=True):
    rng = np.random.default_rng(seed)
    T = 6
    X = rng.normal(size=(n, T))
    masks = [(1 << t) | ((1 << T + t // 3) if shared else 0) for t in range(T)]
    prices, evaluation = rng.uniform(0.5, 2, size=T + 2), rng.uniform(0, 0.3, size=T)
    y = np.sign(X[:, 0] + X[:, 3] * 0.5 - 1.0 + 0.3 * rng.normal(size=n)) if signal else rng.normal(size=n)
    omega = rng.random(n)
    norm = AcquisitionNorm.of(masks, evaluation, prices).times(lam)
    return CascadeTask(RawDesign(X), y, omega / omega.sum(), np.full(n, 1 / n), norm, (0.02, 0.03, 0.01))


def a_cascade(seed=0, n=60, steepness=3.0, **settings):
    cascade = SoftCascade(a_task(seed, n, **settings), steepness)
    rng = np.random.default_rng(seed + 100)
    for k in range(3):
        beta = np.where(rng.random(6) < 0.3, 0.0, rng.normal(size=6))
        beta[k] = 0.8
        threshold = -np.inf if k == 2 else rng.normal() * 0.3
        cascade.stages.append(Stage(beta, rng.normal(), threshold))
        cascade.refresh(k)
    return cascade


def slow_objective(cascade):
    task = cascade.task
    H = np.column_stack([task.design.column(j) for j in range(6)])
    params = [(s.beta, s.bias, s.threshold, cascade.steepness) for s in cascade.stages]
    needs = task.norm.needs.toarray()
    return cascade_objective(
        H, task.y, task.omega, task.share, params, task.norm.evaluation, task.norm.prices, needs, task.rhos, 1.0
    )


@pytest.mark.parametrize("shared", [False, True])
def test_objective_is_equation_8(shared):
    cascade = a_cascade(n=15, shared=shared)
    assert cascade.objective() == pytest.approx(slow_objective(cascade), rel=1e-12)


def finite_differences(function, v, h=1e-6):
    eye = np.eye(len(v)) * h
    return np.array([(function(v + step) - function(v - step)) / (2 * h) for step in eye])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", range(3))
def test_gradient(seed, k):
    """Of the surrogate anywhere, and of the objective itself where it touches; the last stage has no threshold."""
    stage = StageProblem(a_cascade(seed), k)
    free = slice(0, len(stage.at) - 1 if stage.is_last else None)
    rng = np.random.default_rng(seed)
    stage.at[-1] = 0.0 if stage.is_last else stage.at[-1]
    away = stage.at + 0.3 * rng.normal(size=stage.at.shape)
    slope = stage.surrogate(away)[1]
    expected = finite_differences(lambda v: stage.surrogate(v)[0], away)
    np.testing.assert_allclose(slope[free], expected[free], atol=3e-8 * np.abs(slope).max())
    slope = stage.surrogate(stage.at)[1]
    np.testing.assert_allclose(
        slope[free], finite_differences(stage.value, stage.at)[free], atol=3e-8 * np.abs(slope).max()
    )


@pytest.mark.parametrize("k", range(3))
def test_the_surrogate_touches_from_above_and_the_stage_sees_all_that_depends_on_it(k):
    cascade = a_cascade(4)
    stage = StageProblem(cascade, k)
    rng = np.random.default_rng(0)
    assert stage.surrogate(stage.at)[0] == pytest.approx(stage.value(stage.at), rel=1e-12)
    before, value = cascade.objective(), stage.value(stage.at)
    for scale in (1e-3, 0.2, 2.0):
        other = stage.at + scale * rng.normal(size=stage.at.shape)
        assert stage.surrogate(other)[0] >= stage.value(other) - 1e-12
        kept = cascade.stages[k]
        beta = np.zeros(6)
        beta[stage.columns] = other[:-2]
        cascade.stages[k] = Stage(beta, float(other[-2]), float(other[-1]))
        cascade.refresh(k)
        assert cascade.objective() - before == pytest.approx(stage.value(other) - value, rel=1e-9, abs=1e-12)
        cascade.stages[k] = kept
        cascade.refresh(k)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("steepness", [3.0, 15.0])
def test_the_objective_never_rises_and_zeros_stay(seed, steepness):
    cascade = a_cascade(seed, 200, steepness, lam=0.1)
    value = first = cascade.objective()
    zero = [stage.beta == 0 for stage in cascade.stages]
    for _ in range(4):
        for k in range(3):
            cascade.improve(k)
            now = cascade.objective()
            assert now <= value + 1e-9 * abs(value)
            value = now
            assert not cascade.stages[k].beta[zero[k]].any()
    assert value < 0.9 * first
    assert value == pytest.approx(cascade.objective(), rel=1e-14)


def test_initialisation_keeps_the_share_that_was_asked_for():
    cascade = SoftCascade.initialise(a_task(n=3000, lam=0.002, signal=True), 1.3, 0.7)
    assert not any(stage.is_dummy for stage in cascade.stages)
    np.testing.assert_allclose(cascade.d, [1.0, 0.7, 0.49], atol=0.02)
    assert cascade.stages[-1].threshold == -np.inf


def test_the_first_stage_alone_pays_the_inflated_price():
    """With δ large the first stage buys nothing and becomes a dummy; the last pays λ itself."""
    cascade = SoftCascade.initialise(a_task(n=500, lam=0.05, signal=True), 30.0, 0.85)
    assert cascade.stages[0].is_dummy
    assert cascade.stages[0].threshold == -np.inf
    assert not cascade.stages[-1].is_dummy
    np.testing.assert_allclose(cascade.d, 1.0, rtol=1e-14)
    cascade.sharpen(50.0)
    assert cascade.objective() == pytest.approx(slow_objective(cascade), rel=1e-10)


def test_optimisation_lowers_the_initialisation():
    cascade = SoftCascade.initialise(a_task(n=1000, lam=0.02, signal=True), 1.3, 0.85)
    cascade.sharpen(5.0)
    values = cascade.optimise(5)
    assert values[-1] < 0.98 * values[0]


def test_quantile_lies_between_values():
    values, weights = np.array([3.0, 1.0, 2.0, 2.0]), np.array([1.0, 1.0, 1.0, 1.0])
    assert weighted_quantile(values, weights, 0.25) == 1.5
    assert weighted_quantile(values, weights, 0.5) == 2.5
    assert weighted_quantile(values, weights, 1.0) == 3.0
