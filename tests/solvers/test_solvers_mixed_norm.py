import numpy as np
import pytest

from miserly.baselines._group_lasso import GroupLasso
from miserly.solvers._mixed_norm import AcquisitionNorm, MixedNorm, centred_gram
from oracles.classifier_graphs import mixed_minimum, mixed_value


def problem(seed, n_outputs=1, shared_needs=True, with_base=False, lam=0.1, rho=0.02, d=1.0):
    rng = np.random.default_rng(seed)
    n, T = 200, 9
    Z = rng.normal(size=(n, T)) @ (np.eye(T) + 0.3 * rng.normal(size=(T, T)))
    Z = (Z - Z.mean(0)) / Z.std(0)
    Y = Z[:, :3] @ rng.normal(size=(3, n_outputs)) + 0.3 * Z[:, 3:6] @ rng.normal(size=(3, n_outputs))
    Y = Y + 0.5 * rng.normal(size=Y.shape)
    Y -= Y.mean(0)
    masks = [1 << t for t in range(T)]
    if shared_needs:
        masks = [(1 << t) | (1 << (T + t // 3)) for t in range(T)]
        masks[8] = 1 << (T + 3)
    prices = rng.uniform(0.2, 2.0, size=T + 4)
    evaluation = rng.uniform(0, 0.3, size=T) * (rng.random(T) < 0.5)
    norm = AcquisitionNorm.of(masks, evaluation, prices).times(lam)
    base = np.where(rng.random(T) < 0.4, rng.random(T), 0.0) if with_base else np.zeros(T)
    shared = np.where(rng.random(len(norm.prices)) < 0.2, 0.5, 0.0) if with_base else np.zeros(len(norm.prices))
    return MixedNorm(Z.T @ Z / n, Z.T @ Y / n, norm, rho, 0.7, d, base, shared), Z, Y


def parts(p):
    needs = p.norm.needs.toarray()
    return p.norm.evaluation, p.norm.prices, needs, p.rho, p.w, p.d, p.base, p.shared


CASES = [
    {"n_outputs": k, "shared_needs": s, "with_base": b, "d": d}
    for k, s, b, d in [(1, False, False, 1.0), (1, True, False, 1.0), (1, True, True, 0.4), (3, True, True, 1.0)]
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("lam", [0.01, 0.1, 0.4])
def test_minimum_of_a_general_minimiser(case, seed, lam):
    p, *_ = problem(seed, lam=lam, **case)
    fit = p.run(tol=1e-10, max_iter=5000)
    assert fit.converged
    assert fit.values[-1] == pytest.approx(mixed_value(p.A, p.b, fit.beta, *parts(p)), rel=1e-10)
    best = mixed_minimum(p.A, p.b, *parts(p))
    assert fit.values[-1] <= best + 2e-5 * abs(best)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_objective_never_rises_and_the_set_in_use_only_shrinks(case):
    p, *_ = problem(5, lam=0.2, **case)
    beta = p.ridge_start()
    used, values = set(range(9)), [p.value(beta)]
    for _ in range(60):
        p._solve(beta)
        values.append(p.value(beta))
        p._drop(beta, 0.1)
        values.append(p.value(beta))
        now = set(np.flatnonzero(beta.any(axis=1)))
        assert now <= used
        used = now
    assert max(np.diff(values)) <= 1e-9 * abs(values[0])
    assert len(used) < 9


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_quadratic_touches_from_above(case):
    """½ Γ (‖β‖² − ‖β₀‖²) bounds the change of the penalties everywhere, and has their slope where it touches."""
    p, *_ = problem(2, **case)
    rng = np.random.default_rng(0)
    at = p.ridge_start()
    curve = p.majoriser(at)

    def penalty(beta):
        return p.value(beta) - 0.5 * np.sum(beta * (p.A @ beta)) + np.sum(p.b * beta)

    for scale in (1e-6, 0.1, 3.0):
        other = at + scale * rng.normal(size=at.shape)
        bound = 0.5 * curve @ ((other**2).sum(axis=1) - (at**2).sum(axis=1))
        assert penalty(other) - penalty(at) <= bound + 1e-12
    step = 1e-6 * rng.normal(size=at.shape)
    slope = (penalty(at + step) - penalty(at - step)) / 2
    assert slope == pytest.approx(np.sum(curve[:, None] * at * step), rel=1e-6)


def test_without_shared_acquisitions_it_is_the_group_lasso():
    p, Z, Y = problem(3, n_outputs=2, shared_needs=False, lam=0.15, rho=0.0)
    p.w = 1.0
    fit = p.run(tol=1e-12, max_iter=20000)
    penalty = p.norm.evaluation + p.norm.needs.T @ p.norm.prices
    exact = GroupLasso(Z / np.sqrt(len(Z)), Y / np.sqrt(len(Z))).solve(penalty).beta
    assert fit.values[-1] <= p.value(exact) + 1e-7
    assert set(np.flatnonzero(fit.beta.any(axis=1))) == set(np.flatnonzero(exact.any(axis=1)))
    np.testing.assert_allclose(fit.beta, exact, atol=2e-3)
    assert not p.misses(exact)


def test_learners_of_one_acquisition_pay_it_once_together():
    """Two trees over one expensive feature: the second adds to a root that is there already, so it enters for less."""
    A, b = np.eye(2), np.array([[1.0], [0.8]])
    apart = MixedNorm(A, b, AcquisitionNorm.of([1, 2], [0, 0], [0.9, 0.9])).run()
    together = MixedNorm(A, b, AcquisitionNorm.of([1, 1], [0, 0], [0.9])).run()
    assert np.flatnonzero(apart.beta[:, 0]).tolist() == [0]
    assert np.flatnonzero(together.beta[:, 0]).tolist() == [0, 1]
    size = np.hypot(1.0, 0.8)
    np.testing.assert_allclose(together.beta, b * (1 - 0.9 / size), rtol=1e-3)


def test_what_the_path_owns_is_free():
    A, b = np.eye(1), np.array([[0.1]])
    norm = AcquisitionNorm.of([1], [0.0], [5.0])
    assert not MixedNorm(A, b, norm).run().beta.any()
    assert MixedNorm(A, b, norm, base=np.ones(1)).run().beta.any()
    assert MixedNorm(A, b, norm, shared=np.ones(1)).run().beta.any()


def test_a_zero_is_for_ever():
    p, *_ = problem(0)
    start = p.ridge_start()
    start[2] = 0.0
    assert not p.run(start).beta[2].any()
    full = p.run()
    assert full.beta[2].any()
    assert p.misses(p.run(start).beta)
    np.testing.assert_allclose(p.run_from(start).beta, full.beta)


def test_times_zero_nothing_is_priced():
    norm = AcquisitionNorm.of([1, 3], [0.5, 0.0], [1.0, 2.0]).times(0.0)
    assert norm.value(np.array([1.0, 4.0])) == 0.0
    assert not norm.slopes(np.array([1.0, 4.0])).any()


def test_free_acquisitions_and_those_that_nobody_needs_are_left_out():
    norm = AcquisitionNorm.of([0b011, 0b001], [0.0, 0.0], [2.0, 0.0, 7.0])
    assert norm.prices.tolist() == [2.0]
    assert norm.value(np.array([9.0, 16.0])) == 10.0


def test_learners_that_hold_each_other_up_go_together_where_nothing_pays():
    """Every learner needs one expensive acquisition: none is the only one that does, so all of them stayed with weights
    of 1e-12, which were charged in full."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(200, 5))
    norm = AcquisitionNorm.of([1, 3, 5, 7, 1], [0.0] * 5, [100.0, 1.0, 1.0])
    fit = MixedNorm(Z.T @ Z / 200, Z.T @ Z[:, :1] / 200, norm).run()
    assert fit.converged
    assert not fit.beta.any()


@pytest.mark.parametrize("case", [case for case in CASES if case["shared_needs"]], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_a_sharper_cost_lies_between_root_and_count_and_is_lowered(case, seed):
    p, *_ = problem(seed, **case)
    first, last = p.run_from(None).beta, p.reweighted().beta
    largest = max(part.max() for part in roots(p, first))

    def near_a_count(beta):
        rest = p.value(beta) - p.w * p.norm.value(p.base + (p.d * np.linalg.norm(beta, axis=1)) ** 2, p.shared)
        own, shared = (np.log1p(part / (0.01 * largest)) * largest / np.log(101.0) for part in roots(p, beta))
        return rest + p.w * (p.norm.evaluation @ own + p.norm.prices @ shared)

    assert near_a_count(first) >= p.value(first) - 1e-12
    assert near_a_count(last) <= near_a_count(first)
    assert set(np.flatnonzero(last.any(axis=1))) <= set(np.flatnonzero(first.any(axis=1)))


def roots(p, beta):
    squares = p.base + (p.d * np.linalg.norm(beta, axis=1)) ** 2
    return np.sqrt(squares), np.sqrt(p.norm.needs @ squares + p.shared)


def test_of_learners_that_say_nearly_the_same_a_sharper_cost_keeps_few():
    """Ten copies, more and more noisy, that share an expensive acquisition and each need a cheap one: roots keep most,
    since    many small weights are shorter than one large one."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=500)
    Z = y[:, None] + np.linspace(0.1, 0.5, 10) * rng.normal(size=(500, 10))
    norm = AcquisitionNorm.of([1 | 2 << t for t in range(10)], [0.0] * 10, [1.0] + [0.1] * 10).times(0.05)
    p = MixedNorm(Z.T @ Z / 500, Z.T @ y[:, None] / 500, norm)
    assert np.count_nonzero(p.run().beta) == 10
    assert 1 <= np.count_nonzero(p.reweighted().beta) <= 6


def test_without_shared_acquisitions_there_is_nothing_to_sharpen():
    p, *_ = problem(1, shared_needs=False)
    assert np.array_equal(p.reweighted().beta, p.run_from(None).beta)


def test_columns_that_do_not_vary_leave_no_rounding_in_the_gram_matrix():
    """Survivors of a cascade that all fall into the same leaves ended a fit with a singular matrix."""
    rng = np.random.default_rng(0)
    H = np.column_stack([np.full(30, 0.1), np.full(30, 1.0 / 3.0), rng.normal(size=30)])
    weight = rng.random(30)
    centre = weight @ H / weight.sum()
    found = centred_gram(H.T @ (weight[:, None] * H), float(weight.sum()), centre)
    assert not found[:2].any()
    assert not found[:, :2].any()
    assert found[2, 2] == pytest.approx(float(weight @ (H[:, 2] - centre[2]) ** 2))
