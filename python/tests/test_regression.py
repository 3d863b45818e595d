"""In-context regression: closed forms, independent checks in NumPy, engines against each other, and bad requests."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import esscher as es

COVARIANCE = es.toeplitz(3, 0.5)
BLOCK = es.Block([[0.5, 0.1, 0.0], [0.0, 0.4, 0.0], [0.1, 0.0, 0.6]], 1.2)


def numpy_risk(task, matrix, gain, length, prompts, seed, attention="softmax"):
    """½ E (prediction − target)² by Monte Carlo in NumPy alone: mean and standard error."""
    rng = np.random.default_rng(seed)
    d = task.dimension
    root = np.linalg.cholesky(task.covariance)
    query_root = np.linalg.cholesky(task.query_covariance)
    w = np.sqrt(task.prior) * rng.standard_normal((prompts, d))
    x = rng.standard_normal((prompts, length, d)) @ root.T
    y = np.einsum("pld,pd->pl", x, w) + np.sqrt(task.noise) * rng.standard_normal((prompts, length))
    query = rng.standard_normal((prompts, d)) @ query_root.T
    target = (w * query).sum(1) + np.sqrt(task.query_noise) * rng.standard_normal(prompts)
    scores = np.einsum("pld,pd->pl", x, query @ matrix.T)
    if attention == "softmax":
        weights = np.exp(scores - scores.max(1, keepdims=True))
        weights /= weights.sum(1, keepdims=True)
    else:
        weights = scores / length
    loss = 0.5 * (gain * (weights * y).sum(1) - target) ** 2
    return loss.mean(), loss.std(ddof=1) / np.sqrt(prompts)


def task_with_shift():
    return es.regression(COVARIANCE, noise=0.2, prior=0.7, query_covariance=es.spiked(3, 0.5), query_noise=0.1)


def test_the_noise_floor_is_half_the_variance_of_the_query_noise():
    assert es.regression(COVARIANCE, noise=0.2).noise_floor == 0.1
    assert task_with_shift().noise_floor == 0.05


def test_numbers_of_other_libraries_are_numbers_here_too():
    noise, prior = Decimal("0.1"), Fraction(1, 2)
    assert es.regression([[1.0]], noise=noise, prior=prior).noise == 0.1
    assert es.LinearTask(es.Cube(1), noise=noise, prior=prior).dimension == 1
    assert es.DrawnCovariates(es.Cube(1), noise=noise, prompts=5, longest=5).noise_floor == 0.05


@pytest.mark.parametrize("attention", ["softmax", "linear"])
def test_a_risk_at_finite_length_is_that_of_drawn_prompts(attention):
    # 4.5 standard errors: a false alarm once in 150,000 seeds; the seed is fixed.
    task = task_with_shift()
    found = task.risk(BLOCK, 7, attention=attention)
    mean, error = numpy_risk(task, BLOCK.matrix, BLOCK.gain, 7, 40_000, 3, attention)
    assert abs(found - mean) < 4.5 * error
    assert found.accuracy == "exact"


def test_the_risk_of_the_infinite_prompt_is_closed():
    task = task_with_shift()
    miss = BLOCK.gain * task.covariance @ BLOCK.matrix - np.eye(3)
    expected = 0.5 * 0.7 * np.trace(miss @ task.query_covariance @ miss.T) + 0.05
    for length in (None, float("inf"), np.inf):
        assert task.risk(BLOCK, length) == pytest.approx(expected, rel=1e-12)
    # Scores small enough for the rate 1/L, with a coefficient of order one.
    small = es.Block(0.2 * np.eye(3), 1.0)
    assert task.risk(small, 1e12) == pytest.approx(task.risk(small), abs=1e-10)
    assert 0 < task.risk(BLOCK, 1e12) - expected < 1e-7


@pytest.mark.parametrize("attention", ["softmax", "linear", "opposite-heads"])
def test_the_gradient_of_a_block_is_the_slope_of_its_risk(attention):
    # Differences of step 1e-4 err by about 1e-8, the tables of the response by 1e-9/1e-4.
    task, step = task_with_shift(), 1e-4
    found = task.risk_and_gradient(BLOCK, 20, attention=attention)
    for i in range(3):
        for j in range(3):
            bump = np.zeros((3, 3))
            bump[i, j] = step
            ahead = task.risk(es.Block(BLOCK.matrix + bump, BLOCK.gain), 20, attention=attention)
            behind = task.risk(es.Block(BLOCK.matrix - bump, BLOCK.gain), 20, attention=attention)
            assert found.matrix[i, j] == pytest.approx((ahead - behind) / (2 * step), abs=2e-5)
    ahead = task.risk(es.Block(BLOCK.matrix, BLOCK.gain + step), 20, attention=attention)
    behind = task.risk(es.Block(BLOCK.matrix, BLOCK.gain - step), 20, attention=attention)
    assert found.gain == pytest.approx((ahead - behind) / (2 * step), abs=2e-5)


def test_a_head_of_block_form_has_the_risk_and_gradient_of_its_block():
    task = task_with_shift()
    for length, attention in ((None, "softmax"), (30, "linear")):
        block = task.risk_and_gradient(BLOCK, length, attention=attention)
        head = task.risk_and_gradient(BLOCK.head(), length, attention=attention)
        assert head.risk == pytest.approx(block.risk, rel=1e-8)
        np.testing.assert_allclose(head.score[:3, :3], block.matrix, atol=1e-8)
        assert head.value[3] == pytest.approx(block.gain, abs=1e-8)
    sampled = task.risk(BLOCK.head(), 30)
    assert sampled.accuracy == "quasi-monte-carlo"
    assert abs(sampled - task.risk(BLOCK, 30)) < 6 * sampled.error


def test_linear_attention_is_minimised_by_the_inverse_of_gamma():
    task, length = task_with_shift(), 12
    gamma = (1 + 1 / length) * task.covariance + (np.trace(task.covariance) + 0.2 / 0.7) / length * np.eye(3)
    attention = task.linear_attention(length)
    np.testing.assert_allclose(attention.gamma, gamma, rtol=1e-13)
    np.testing.assert_allclose(attention.minimiser @ gamma, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(attention.gradient(attention.minimiser), 0, atol=1e-12)
    assert attention.risk(BLOCK) == pytest.approx(task.risk(BLOCK, length, attention="linear"), rel=1e-10)
    assert attention.risk(BLOCK) - attention.minimal_risk == pytest.approx(attention.excess_risk(BLOCK), rel=1e-10)
    limit = attention.flow_limit(0.3)
    np.testing.assert_allclose(limit.product(), attention.minimiser, rtol=1e-12)
    assert limit.conserved == pytest.approx(0.3, rel=1e-10)
    flow = task.flow(length, attention="linear", initial=es.Block(0.5 * np.eye(3), 0.5))
    np.testing.assert_allclose(flow.block().product(), attention.minimiser, atol=1e-7)


def test_the_infinite_flow_ends_at_its_limit_and_keeps_its_balance():
    task = es.regression(COVARIANCE, noise=0.1)
    flow = task.flow(None)
    limit = task.infinite_limit()
    assert flow.stationary
    assert flow.form == "spectral"
    np.testing.assert_allclose(flow.matrix[-1], limit.matrix, atol=1e-7)
    assert flow.gain[-1] == pytest.approx(limit.gain, abs=1e-7)
    assert abs(flow["balance"]).max() < 1e-9
    assert flow["risk"][-1] == pytest.approx(0.05, abs=1e-12)


def test_the_flow_of_the_design_runs_and_its_end_is_stationary():
    task = es.regression(np.eye(2), noise=0.1)
    flow = task.flow(prompt_length=1000)
    assert flow.stationary
    assert "stationary" in flow.ending
    assert (np.diff(flow["risk"]) < 1e-10).all()
    assert task.risk_and_gradient(flow.block(), 1000).norm < 1e-6
    settled = task.settle(flow.block(), 1100)
    assert settled is not None
    assert task.risk_and_gradient(settled, 1100).norm < 1e-8
    assert len(flow.to_pandas()) == len(flow)
    assert pickle.loads(pickle.dumps(flow)).block().gain == flow.gain[-1]


def test_a_start_that_does_not_commute_takes_the_block_form():
    task = es.regression(np.diag([1.0, 2.0]), noise=0.1)
    flow = task.flow(1e6, initial=es.Block([[0.4, 0.1], [0.0, 0.3]], 0.5), end_time=1.0, rows=3)
    assert flow.form == "block"
    np.testing.assert_allclose(flow.matrix[0], [[0.4, 0.1], [0.0, 0.3]])
    assert flow.matrix.shape == (4, 2, 2)
    # Queries that do not commute with the covariates.
    tilted = es.regression(np.diag([1.0, 2.0]), query_covariance=[[1.0, 0.3], [0.3, 1.0]])
    assert tilted.flow(None, end_time=1.0, rows=2).form == "block"
    with pytest.raises(ValueError, match="commute"):
        _ = tilted.spectral


def test_a_full_head_flows_like_its_block():
    task = es.regression(np.diag([1.0, 2.0]), noise=0.1)
    block = es.Block(0.4 * np.eye(2), 0.5)
    flow = task.flow(None, initial=block.head(), end_time=2.0, rows=3)
    same = task.flow(None, initial=block, end_time=2.0, rows=3)
    assert flow.form == "layer"
    np.testing.assert_allclose(flow["risk"], same["risk"], rtol=1e-8)
    head = flow.layer().heads[0]
    np.testing.assert_allclose(head.score[:2, :2], same.matrix[-1], atol=1e-8)
    with pytest.raises(AttributeError, match="layer"):
        _ = flow.gain


def test_training_at_long_prompts_stays_near_the_infinite_one():
    training = es.regression(np.eye(4), noise=0.1).train(1e12, end_time=5, rows=5)
    assert training.within_theorem
    assert training["distance_to_infinite"].max() < 1e-4
    assert training["distance_to_limit"][-1] < training["distance_to_limit"][0]


def test_the_spectral_task_is_the_matrix_task():
    task = es.regression(COVARIANCE, noise=0.3)
    spectral = task.spectral
    entries, gain = np.array([0.3, 0.4, 0.5]), 1.1
    block = spectral.block(entries, gain)
    np.testing.assert_allclose(spectral.entries_of(block), entries, atol=1e-12)
    found = spectral.risk_and_gradient(entries, gain, 50)
    whole = task.risk_and_gradient(block, 50)
    assert found.risk == pytest.approx(whole.risk, rel=1e-9)
    vectors = spectral.eigenvectors
    np.testing.assert_allclose(np.diag(vectors.T @ whole.matrix @ vectors), found.entries, atol=1e-8)
    assert spectral.entries_of(BLOCK) is None
    large = es.SpectralTask([1.0], [1_000_000], noise=0.1)
    assert large.dimension == 1_000_000
    np.testing.assert_allclose(large.valley(2.0), [0.5])


def test_the_response_of_linear_attention_is_closed_and_softmax_tends_to_one():
    linear = es.response([0.5, 2.0], 10, attention="linear")
    np.testing.assert_allclose(linear["second"], 1.1)
    np.testing.assert_allclose(linear["spread"], [0.05, 0.2])
    assert es.response(1.0, 1e12)["first_deficit"][0] == pytest.approx(np.exp(1.0) / 1e12, rel=1e-6)


def test_simulation_and_exact_engine_agree():
    # Five standard errors, a fixed seed: a false alarm has probability 6e-7 each.
    task = task_with_shift()
    for attention in ("softmax", "linear", "opposite-heads"):
        found = task.simulate_risk(BLOCK, 20, attention=attention, prompts=20_000, seed=4)
        assert abs(found.risk - task.risk(BLOCK, 20, attention=attention)) < 5 * found.risk.error
    gradient = task.risk_and_gradient(BLOCK, 20).gain
    found = task.simulate_risk(BLOCK, 20, prompts=20_000, gradient=True, seed=4)
    assert abs(found.gradient[-1] - gradient) < 5 * found.gradient_standard_error[-1]
    assert found.prompts == 20_000


def test_layers_predict_what_numpy_predicts():
    rng = np.random.default_rng(1)
    layer = es.RegressionLayer.at_random(2, seed=5)
    tokens, query = rng.standard_normal((6, 3)), rng.standard_normal(2)
    (head,) = layer.heads
    weights = np.exp(tokens @ head.score @ np.append(query, 0.0))
    expected = (weights / weights.sum()) @ tokens @ head.value
    assert layer.predict(tokens, query) == pytest.approx(expected, rel=1e-12)
    prediction, gradient = layer.predict_with_gradient(tokens, query)
    step = 1e-6
    for index in (0, 7, 20, 35):
        moved = layer.parameters.copy()
        moved[index] += step
        slope = (layer.with_parameters(moved).predict(tokens, query) - prediction) / step
        assert gradient[index] == pytest.approx(slope, abs=1e-5)


@pytest.mark.parametrize(
    "task",
    [
        es.regression(np.eye(2), noise=0.1),
        es.LinearTask(es.Rademacher(2), noise=0.1),
        es.GeneralisedTask("tanh", es.Gaussian.standard(2), noise=0.1),
        es.SparseTask(1, es.Cube(2)),
        es.ClassificationTask(1.5, es.Gaussian.standard(2)),
        es.LinearTask(np.random.default_rng(0).standard_normal((50, 2)), es.Gaussian.standard(2)),
    ],
    ids=lambda task: type(task).__name__,
)
def test_every_task_is_drawn_simulated_descended_on_and_pickled(task):
    tokens, query, target, hidden = task.draw(4, seed=7)
    assert tokens.shape == (4, 3)
    assert query.shape == hidden.shape == (2,)
    longer = pickle.loads(pickle.dumps(task)).draw(9, seed=7)
    np.testing.assert_array_equal(longer.tokens[:4], tokens)
    assert longer.target == target
    layer = es.RegressionLayer.at_random(2)
    assert task.simulate_risk(layer, 5, prompts=50).risk > 0
    descent = task.descend(layer, 5, steps=10, batch=8, record=5)
    assert descent.stop == "finished"
    assert len(descent) == 6
    assert descent.parameters.shape == (6, 36)
    assert (task.baselines(5, prompts=50)["risk"] >= 0).all()


def test_a_resumed_descent_is_the_whole_one_bit_for_bit():
    task = es.regression(np.eye(2), noise=0.1)
    layer = es.RegressionLayer.at_random(2)
    options = {"optimiser": "adam", "rate": 0.01, "batch": 16, "draws": "projections", "record": [0, 10, 25, 40]}
    whole = task.descend(layer, 10, steps=40, **options)
    half = task.descend(layer, 10, steps=20, **options)
    resumed = task.descend(layer, 10, steps=40, state=pickle.loads(pickle.dumps(half.state)), **options)
    np.testing.assert_array_equal(resumed.state.parameters, whole.state.parameters)
    np.testing.assert_array_equal(resumed["smoothed_loss"], whole["smoothed_loss"])


def test_divergence_is_a_result():
    task = es.regression(np.eye(2))
    descent = task.descend(es.Block(np.eye(2), 1.0), 10, attention="linear", rate=100.0, steps=50, batch=4)
    assert "diverged" in descent.stop


def test_the_posterior_mean_beats_the_baselines():
    task = es.regression(np.eye(3), noise=0.5)
    bayes = task.bayes_risk(20, prompts=2000)
    found = task.baselines(20, prompts=4000)
    assert found["baseline"][0] == "posterior mean"
    assert abs(found["risk"][0] - bayes) < 5 * found["standard_error"][0]
    assert (found["risk"][1:] > bayes).all()
    assert task.bayes_risk(1e12, prompts=10) == pytest.approx(0.25, rel=1e-9)


def test_drawn_covariates_of_a_gaussian_are_near_the_exact_risk():
    # 1000 prompts: one standard error of the average is about 0.04 of the risk here.
    task = es.regression(np.eye(2), noise=0.1)
    block = es.Block(0.5 * np.eye(2), 1.0)
    drawn = es.DrawnCovariates(es.Gaussian.standard(2), noise=0.1, prompts=1000, longest=20)
    assert drawn.risk_and_gradient(block, 20).risk == pytest.approx(task.risk(block, 20), rel=0.2)
    assert drawn.risk_and_gradient(block).risk == pytest.approx(task.risk(block), rel=0.2)
    flow = drawn.flow(20, initial=block, end_time=1.0, rows=3, tolerance=1e-4)
    assert flow["risk"][-1] < flow["risk"][0]
    assert flow.matrix.shape == (4, 2, 2)


def test_a_users_own_law_is_a_task_and_its_exception_comes_through():
    def sampler(tilt, count, generator):
        return generator.standard_normal((count, 1)) + tilt

    law = es.Custom(1, lambda tilt: 0.5 * tilt[0] ** 2, sampler=sampler)
    assert es.LinearTask(law).simulate_risk(es.Block([[0.5]], 1.0), 5, prompts=20).risk > 0

    def broken(tilt, count, generator):
        raise RuntimeError("no tokens today")

    law = es.Custom(1, lambda tilt: 0.5 * tilt[0] ** 2, sampler=broken)
    with pytest.raises(RuntimeError, match="no tokens today"):
        es.LinearTask(law).simulate_risk(es.Block([[0.5]], 1.0), 5, prompts=20)


def test_the_authors_experiment_has_both_attentions_and_their_optima():
    found = es.authors_experiment([10, 20], steps=30, test_prompts=500)
    assert list(found["length"]) == [10, 20]
    assert (found["softmax_error"] > 0.1).all()
    assert (np.diff(found["linear_optimum"]) < 0).all()
    assert len(found.softmax_layers) == 2
    # Γ of the task: tr Σ = 5, s²/k = 0.5.
    gamma = 1.1 + 5.5 / 10
    assert found["linear_optimum"][0] == pytest.approx(0.1 + (1 - 1 / gamma), rel=1e-12)


def test_high_dimensional_errors_fall_with_more_prompts():
    errors = [es.HighDimensional(ratio, 2.0, 0.1, 10.0).error_on_new_tasks() for ratio in (2.0, 5.0, 100.0)]
    assert errors == sorted(errors, reverse=True)


def test_predictors_are_pickled():
    head = es.RegressionHead(np.arange(9.0).reshape(3, 3), [1.0, 2.0, 3.0])
    assert (pickle.loads(pickle.dumps(head)).score == head.score).all()
    for layer in (es.RegressionLayer([head, head], attention="linear"), es.RegressionLayer.at_random(2, seed=3)):
        again = pickle.loads(pickle.dumps(layer))
        assert repr(again) == repr(layer)
        assert (again.parameters == layer.parameters).all()


def test_control_c_ends_a_long_descent():
    program = (
        "import esscher as es, numpy as np\n"
        "task = es.regression(np.eye(5), noise=0.1)\n"
        "print('begin', flush=True)\n"
        "task.descend(es.RegressionLayer.at_random(5), 1000, steps=10**8, record=2)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"begin\n"
        time.sleep(0.5)
        os.kill(child.pid, signal.SIGINT)
        _, errors = child.communicate(timeout=30)
    assert errors.rstrip().endswith(b"KeyboardInterrupt")


TASK = es.regression(np.eye(2), noise=0.1)
SMALL = es.Block(np.eye(2), 1.0)
LAYER = es.RegressionLayer.at_random(2)

REFUSED = [
    # covariance
    (ValueError, "covariance", lambda: es.regression([[1.0, 0.5], [0.2, 1.0]])),
    (ValueError, "covariance", lambda: es.regression([[1.0, 2.0], [2.0, 1.0]])),
    (ValueError, "covariance", lambda: es.regression([1.0, 2.0])),
    (ValueError, "covariance", lambda: es.regression([[np.nan]])),
    (ValueError, "covariance", lambda: es.regression(np.ones((2, 3)))),
    (ValueError, "covariance", lambda: es.regression(np.zeros((0, 0)))),
    (ValueError, "covariance", lambda: es.regression([[0.0]])),
    (TypeError, "covariance", lambda: es.regression([["a"]])),
    (TypeError, "covariance", lambda: es.regression(np.array([[1j]]))),
    (TypeError, "covariance", lambda: es.regression(None)),
    (ValueError, "query", lambda: es.regression(np.eye(2), query_covariance=np.eye(3))),
    (ValueError, "noise", lambda: es.regression(np.eye(2), noise=-1)),
    (ValueError, "noise", lambda: es.regression(np.eye(2), noise=float("nan"))),
    (TypeError, "noise", lambda: es.regression(np.eye(2), noise="x")),
    (ValueError, "noise", lambda: es.regression(np.eye(2), query_noise=-0.1)),
    (ValueError, "prior", lambda: es.regression(np.eye(2), prior=0.0)),
    (ValueError, "dimension", lambda: es.LinearRegression.isotropic(10**9)),
    (ValueError, "dimension", lambda: es.toeplitz(0, 0.5)),
    (ValueError, "correlation", lambda: es.toeplitz(3, 1.5)),
    (ValueError, "strength", lambda: es.spiked(3, -2.0)),
    # predictors
    (ValueError, "A", lambda: es.Block(np.ones((2, 3)), 1.0)),
    (ValueError, "gain", lambda: es.Block(np.eye(2), float("inf"))),
    (ValueError, "score", lambda: es.RegressionHead(np.eye(2), [1.0, 2.0, 3.0])),
    (TypeError, "predictor", lambda: TASK.risk(np.eye(2), 10)),
    (ValueError, "block", lambda: TASK.risk(es.Block(np.eye(3), 1.0), 10)),
    (TypeError, "attention", lambda: TASK.risk(LAYER, 10, attention="linear")),
    (ValueError, "attention", lambda: TASK.risk(SMALL, 10, attention="hard")),
    (TypeError, "several heads", lambda: TASK.risk(es.RegressionLayer([SMALL.head()] * 2), 10)),
    (ValueError, "tokens", lambda: LAYER.predict(np.ones((3, 4)), [1.0, 2.0])),
    # lengths
    *[(ValueError, "length", lambda length=length: TASK.risk(SMALL, length)) for length in (0, 2.5, 1e13, -3, 10**400)],
    *[(TypeError, "length", lambda length=length: TASK.risk(SMALL, length)) for length in (True, "x", [10])],
    (ValueError, "length", lambda: TASK.simulate_risk(SMALL, float("inf"))),
    (ValueError, "length", lambda: TASK.simulate_risk(SMALL, 1e12)),
    (ValueError, "length", lambda: TASK.draw(1e12)),
    # flows
    (TypeError, "initial", lambda: TASK.flow(10, initial="x")),
    (ValueError, "initial", lambda: TASK.flow(10, initial=-1.0)),
    (ValueError, "initial", lambda: TASK.flow(10, initial=es.Block(np.eye(3), 1.0))),
    (ValueError, "end time", lambda: TASK.flow(10, end_time=float("nan"))),
    (ValueError, "rows", lambda: TASK.flow(10, rows=0)),
    (ValueError, "rows", lambda: TASK.flow(10, rows=10**9)),
    (ValueError, "rows", lambda: TASK.flow(10, rows=2.5)),
    (TypeError, "rows", lambda: TASK.flow(10, rows="x")),
    (ValueError, "tolerance", lambda: TASK.flow(10, tolerance=-1.0)),
    (ValueError, "stationary", lambda: TASK.flow(10, stationary=0.0)),
    (ValueError, "method", lambda: TASK.flow(10, method="euler")),
    (ValueError, "points", lambda: TASK.flow(10, initial=SMALL.head(), points=10**9)),
    (ValueError, "explicit", lambda: es.LinearRegression.isotropic(80).flow(
        10, initial=es.Block(np.triu(np.ones((80, 80))), 1.0), method="stiff")),
    (ValueError, "scale", lambda: TASK.train(10, scale=-1.0)),
    (ValueError, "excess", lambda: TASK.horizon(1e-20)),
    (ValueError, "multiplicities", lambda: es.SpectralTask([1.0], [0.5])),
    (ValueError, "multiplicities", lambda: es.SpectralTask([1.0, 2.0], [1])),
    (ValueError, "eigenvalue", lambda: es.SpectralTask([-1.0])),
    (ValueError, "eigenvalues", lambda: es.SpectralTask(np.arange(1.0, 3000.0))),
    # simulation and descent
    (ValueError, "prompts", lambda: TASK.simulate_risk(SMALL, 10, prompts=0)),
    (ValueError, "prompts", lambda: TASK.simulate_risk(SMALL, 10, prompts=10**12)),
    (ValueError, "seed", lambda: TASK.simulate_risk(SMALL, 10, seed=-1)),
    (ValueError, "seed", lambda: TASK.simulate_risk(SMALL, 10, seed=1.5)),
    (ValueError, "instruction set", lambda: TASK.simulate_risk(SMALL, 10, instruction_set="mmx")),
    (ValueError, "steps", lambda: TASK.descend(LAYER, 10, steps=10**12)),
    (ValueError, "steps", lambda: TASK.descend(LAYER, 10, steps=-1)),
    (TypeError, "steps", lambda: TASK.descend(LAYER, 10, steps="x")),
    (ValueError, "batch", lambda: TASK.descend(LAYER, 10, batch=0)),
    (ValueError, "batch", lambda: TASK.descend(LAYER, 10, batch=2**31)),
    (ValueError, "rate", lambda: TASK.descend(LAYER, 10, rate=float("nan"))),
    (ValueError, "record", lambda: TASK.descend(LAYER, 10, record=10**9)),
    (ValueError, "record", lambda: TASK.descend(LAYER, 10, record=[-1])),
    (ValueError, "optimiser", lambda: TASK.descend(LAYER, 10, optimiser="newton")),
    (ValueError, "dimension", lambda: TASK.descend(es.RegressionLayer.at_random(3), 10)),
    (ValueError, "neighbours", lambda: TASK.baselines(10, neighbours=0)),
    (ValueError, "prompts", lambda: TASK.bayes_risk(10, prompts=0)),
    (ValueError, "dimension", lambda: es.RegressionLayer.at_random(8000)),
    # tasks
    (TypeError, "covariates", lambda: es.LinearTask(None)),
    (ValueError, "covariates", lambda: es.LinearTask([1.0, 2.0])),
    (ValueError, "query", lambda: es.LinearTask(es.Rademacher(2), es.Rademacher(3))),
    (ValueError, "link", lambda: es.GeneralisedTask("exp", es.Rademacher(2))),
    (ValueError, "non_zero", lambda: es.SparseTask(0, es.Rademacher(2))),
    (ValueError, "non-zero", lambda: es.SparseTask(3, es.Rademacher(2))),
    (ValueError, "separation", lambda: es.ClassificationTask(-1.0, es.Rademacher(2))),
    (ValueError, "draws", lambda: es.DrawnCovariates(es.Rademacher(2), prompts=10**6, longest=10**9)),
    (ValueError, "longest", lambda: es.DrawnCovariates(es.Rademacher(2), prompts=2).risk_and_gradient(SMALL, 1000)),
    (ValueError, "lengths", lambda: es.authors_experiment([])),
    (ValueError, "length", lambda: es.authors_experiment([0])),
    (ValueError, "covariance", lambda: es.authors_experiment([10], covariance="x")),
    (ValueError, "test_prompts", lambda: es.authors_experiment([10], test_prompts=1)),
    (ValueError, "ratio", lambda: es.HighDimensional(1.0, 2.0)),
]  # fmt: skip


@pytest.mark.parametrize(("error", "words", "request_"), REFUSED, ids=range(len(REFUSED)))
def test_a_request_that_makes_no_sense_is_refused_by_name(error, words, request_):
    with pytest.raises(error, match=words):
        request_()
