"""Exact finite prompts and softmax weights against closed forms, reference values and simulations in NumPy."""

import json
from pathlib import Path

import numpy as np
import pytest

import esscher as es

REFERENCE = Path(__file__).parents[2] / "crates" / "esscher-core" / "tests" / "reference"

SCORE = np.array([[0.8, -0.3], [0.2, 0.5]])
VALUE = np.array([[1.0, 0.5], [-0.2, 0.7], [0.3, 0.3]])
HEAD = es.SoftmaxAttention(score=SCORE, value=VALUE)
GAUSSIAN = es.Gaussian([0.3, -0.1], [[1.0, 0.4], [0.4, 0.6]])
MIXTURE = es.Mixture([GAUSSIAN, es.Gaussian([-1.0, 0.5], [[0.3, 0.0], [0.0, 0.2]])], weights=[0.7, 0.3])
QUERY = np.array([0.9, -0.4])


def test_one_token_deviates_as_a_token_does():
    found = es.finite_prompt(HEAD, GAUSSIAN, QUERY, 1)
    covariance = VALUE @ GAUSSIAN.covariance() @ VALUE.T
    bias = -VALUE @ GAUSSIAN.covariance() @ SCORE @ QUERY
    np.testing.assert_allclose(found.bias[0, 0], bias, rtol=1e-11)
    np.testing.assert_allclose(found.covariance[0, 0], covariance, rtol=1e-11)
    np.testing.assert_allclose(found["output_error"], np.trace(covariance) + bias @ bias, rtol=1e-11)
    assert found["participation"].tolist() == [1.0]


@pytest.mark.parametrize("tokens", [GAUSSIAN, MIXTURE], ids=["Gaussian", "mixture"])
@pytest.mark.parametrize("length", [2, 7, 40])
def test_exact_deviations_agree_with_prompts_simulated_in_numpy(tokens, length):
    prompts = 20_000
    drawn = tokens.sample(prompts * length, seed=length).reshape(prompts, length, 2)
    tilt = SCORE @ QUERY
    scores = drawn @ tilt
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    attended = np.einsum("pl,pld->pd", weights, drawn)
    outputs = attended @ VALUE.T
    second = np.einsum("pl,pld,ple->pde", weights, drawn, drawn) - np.einsum("pd,pe->pde", attended, attended)
    limit = tokens.tilted_mean(tilt)
    gradient_gap = VALUE @ (second - tokens.tilted_covariance(tilt))
    measured = {
        "output_error": ((outputs - VALUE @ limit) ** 2).sum(axis=1),
        "value_gradient_error": len(VALUE) * ((attended - limit) ** 2).sum(axis=1),
        "score_gradient_error": (QUERY @ QUERY) * (gradient_gap**2).sum(axis=(1, 2)),
        "participation": (weights**2).sum(axis=1),
    }
    exact = es.finite_prompt(HEAD, tokens, QUERY, [length])
    # Five standard errors: false alarms have a probability of 6e-7 each, and the seeds are fixed.
    for name, values in measured.items():
        standard_error = values.std(ddof=1) / np.sqrt(prompts)
        assert abs(values.mean() - exact[name][0]) < 5 * standard_error, name
    bias_error = outputs.std(axis=0, ddof=1) / np.sqrt(prompts)
    assert np.all(np.abs(outputs.mean(axis=0) - VALUE @ limit - exact.bias[0, 0]) < 5 * bias_error)
    # A covariance entry is a mean of products; its standard error is that of these products.
    centred = outputs - outputs.mean(axis=0)
    products = np.einsum("pi,pj->pij", centred, centred)
    covariance_error = products.std(axis=0, ddof=1) / np.sqrt(prompts)
    assert np.all(np.abs(products.mean(axis=0) - exact.covariance[0, 0]) < 5 * covariance_error)


def test_a_trillion_tokens_approach_the_delta_method():
    found = es.finite_prompt(HEAD, GAUSSIAN, QUERY, [1e12])
    constants = es.delta_method(HEAD, GAUSSIAN, QUERY)
    np.testing.assert_allclose(found["output_error"] * 1e12, constants.output_error, rtol=1e-8)
    np.testing.assert_allclose(found.bias[0, 0] * 1e12, constants.bias, rtol=1e-8)
    np.testing.assert_allclose(found.covariance[0, 0] * 1e12, constants.covariance, rtol=1e-8)
    gradient = es.gaussian_gradient_constant(HEAD, GAUSSIAN, QUERY)
    np.testing.assert_allclose(found["score_gradient_error"] * 1e12, gradient, rtol=1e-8)


def test_the_delta_method_of_gaussian_tokens_has_its_closed_form():
    covariance, tilt = GAUSSIAN.covariance(), SCORE @ QUERY
    shift, growth = covariance @ tilt, np.exp(tilt @ covariance @ tilt)
    expected = growth * VALUE @ (covariance + np.outer(shift, shift)) @ VALUE.T
    found = es.delta_method(HEAD, GAUSSIAN, QUERY)
    np.testing.assert_allclose(found.covariance, expected, rtol=1e-12)
    np.testing.assert_allclose(found.bias, -growth * VALUE @ shift, rtol=1e-12)


def test_queries_and_lengths_span_the_rows():
    queries = np.array([[0.1, 0.2], [0.9, -0.4], [0.0, 0.0]])
    lengths = [10, 1000]
    found = es.finite_prompt(HEAD, GAUSSIAN, queries, lengths)
    assert found["query"].tolist() == [0, 0, 1, 1, 2, 2]
    assert found["length"].tolist() == [10, 1000] * 3
    assert found.bias.shape == (3, 2, 3)
    assert found.covariance.shape == (3, 2, 3, 3)
    alone = es.finite_prompt(HEAD, GAUSSIAN, queries[1], lengths)
    assert alone["output_error"].tolist() == found["output_error"][2:4].tolist()
    np.testing.assert_array_equal(alone.covariance[0], found.covariance[1])


def test_any_array_of_numbers_is_a_list_of_queries():
    queries = np.array([[0.5, 0.25], [1.0, -0.5]])
    expected = es.finite_prompt(HEAD, GAUSSIAN, queries, [100])["output_error"]
    for same in [
        queries.tolist(),
        queries.astype(np.float32),
        np.asfortranarray(queries),
        np.repeat(queries, 2, 0)[::2],
    ]:
        assert es.finite_prompt(HEAD, GAUSSIAN, same, np.int32([100]))["output_error"].tolist() == expected.tolist()


def test_tokens_may_be_points():
    points = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
    found = es.finite_prompt(HEAD, points, QUERY, [1])
    outputs, limit = points @ VALUE.T, HEAD(points, QUERY)
    np.testing.assert_allclose(found["output_error"][0], ((outputs - limit) ** 2).sum(axis=1).mean(), rtol=1e-10)


def test_a_result_turns_into_tables():
    found = es.finite_prompt(HEAD, GAUSSIAN, QUERY, [10, 100])
    assert found.to_polars()["length"].to_list() == [10, 100]
    assert found.to_pandas().shape == (2, 7)
    assert "exact" in repr(found)


def test_progress_is_reported_and_may_stop_the_call():
    queries = np.random.default_rng(0).normal(size=(300, 2))
    seen = []
    es.finite_prompt(HEAD, MIXTURE, queries, np.logspace(1, 12, 12).round(), progress=seen.append)
    assert seen
    assert seen == sorted(seen)
    assert all(0.0 <= part <= 1.0 for part in seen)

    def stop(_):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        es.finite_prompt(HEAD, MIXTURE, np.tile(queries, (20, 1)), [1e6], progress=stop)


def reference(name):
    return json.loads((REFERENCE / name).read_text())


NAMES = {
    "bias": "mean_bias",
    "mse": "mean_squared_error",
    "sum_p2": "sum_of_squares",
    "sum_p3": "sum_of_cubes",
    "sum_p4": "sum_of_fourths",
    "sum_p2_squared": "squared_sum_of_squares",
    "sum_p2_sum_p3": "squares_times_cubes",
    "sum_p2_cubed": "cubed_sum_of_squares",
    "var_mean": "variance",
    "var_second_moment": "squared_variance",
    "var_mse": "variance_squared_error",
    "var_times_sum_p2": "variance_times_squares",
    "cross": "cross",
    "frob": "frobenius",
}


def test_weight_moments_have_their_reference_values():
    compared = 0
    for tau, by_length in reference("softmax_moments_wide.json").items():
        found = es.weight_moments(float(tau), [float(length) for length in by_length])
        for row, values in zip(found, by_length.values(), strict=True):
            for name, column in NAMES.items():
                assert row[column] == pytest.approx(float(values[name]), rel=1e-12, abs=0.0), (tau, name, row["length"])
                compared += 1
    assert compared == 12 * 11 * 14


def test_opposite_pairs_have_their_reference_values():
    rows = [row for row in reference("opposite_heads.json") if row["tau"] <= 4.0][::3]
    for row in rows:
        found = es.opposite_pair(row["tau"], row["length"])
        for name in ("first_deficit", "second_deficit", "spread"):
            assert found[name][0] == pytest.approx(row[name], abs=1e-10), (row, name)


def test_every_score_deviation_meets_every_length():
    found = es.weight_moments([0.5, 1.0], [1, 10, 100])
    assert found["score_deviation"].tolist() == [0.5] * 3 + [1.0] * 3
    assert found["length"].tolist() == [1, 10, 100] * 2
    np.testing.assert_allclose(found["closure"], 1.0, rtol=1e-12)


def test_shrinkage_is_the_mean_score_over_its_limit():
    tau, length = 1.3, 50
    moments, shrunk = es.weight_moments(tau, length), es.shrinkage(tau, length)
    first = 1.0 + moments["mean_bias"][0] / tau
    mean_square = moments["mean_variance"][0] + (tau * first) ** 2
    assert shrunk["first"][0] == pytest.approx(first, rel=1e-12)
    assert shrunk["second"][0] == pytest.approx((mean_square - moments["sum_of_squares"][0]) / tau**2, rel=1e-10)
    # The slope in σ = τ² against a central difference; its error is of order step².
    step = 1e-4
    ends = es.shrinkage(np.sqrt([tau**2 - step, tau**2 + step]), length)["first"]
    assert shrunk["first_slope"][0] == pytest.approx((ends[1] - ends[0]) / (2 * step), rel=1e-6)


@pytest.mark.parametrize(
    "lengths", [0, -1, 2.5, 1e13, 10**30, 10**400, np.nan, np.inf, [10, 0], [[10]], np.array([1.5])], ids=repr
)
def test_lengths_that_make_no_sense_are_value_errors(lengths):
    with pytest.raises(ValueError, match="length"):
        es.finite_prompt(HEAD, GAUSSIAN, QUERY, lengths)
    with pytest.raises(ValueError, match="length"):
        es.weight_moments(1.0, lengths)


@pytest.mark.parametrize("lengths", [True, "x", None, [None], {"a": 1}, 1j, [True]], ids=repr)
def test_lengths_that_are_no_numbers_are_type_errors(lengths):
    with pytest.raises(TypeError, match="length"):
        es.finite_prompt(HEAD, GAUSSIAN, QUERY, lengths)
    with pytest.raises(TypeError, match="length"):
        es.opposite_pair(1.0, lengths)


WRONG = {
    "a query of the wrong size": (ValueError, "quer", dict(queries=[1.0, 2.0, 3.0])),
    "queries of the wrong size": (ValueError, "queries", dict(queries=np.ones((4, 3)))),
    "queries with three axes": (ValueError, "queries", dict(queries=np.ones((4, 2, 2)))),
    "a number for queries": (ValueError, "queries", dict(queries=1.0)),
    "ragged queries": (ValueError, "queries", dict(queries=[[1.0], [1.0, 2.0]])),
    "a query that is not a number": (ValueError, "query", dict(queries=[np.nan, 1.0])),
    "objects for queries": (TypeError, "queries", dict(queries=np.array([None, object()]))),
    "texts for queries": (TypeError, "queries", dict(queries=["a", "b"])),
    "complex queries": (TypeError, "queries", dict(queries=np.array([1j, 0.0]))),
    "tokens of the wrong dimension": (ValueError, "tokens", dict(tokens=es.Gaussian.standard(3))),
    "tokens without an exact theory": (ValueError, "simulate", dict(tokens=es.Cube(2))),
    "tokens that are not numbers": (ValueError, "token", dict(tokens=[[np.nan, 0.0]])),
    "no tokens": (TypeError, "tokens", dict(tokens=None)),
    "a head of another kind": (TypeError, "head", dict(head=es.LinearAttention(SCORE, VALUE))),
    "no head": (TypeError, "head", dict(head=None)),
    "no lengths": (ValueError, "lengths", dict(lengths=[])),
}


@pytest.mark.parametrize("name", WRONG)
def test_requests_that_make_no_sense_say_why(name):
    exception, words, changes = WRONG[name]
    request = dict(head=HEAD, tokens=GAUSSIAN, queries=QUERY, lengths=[10]) | changes
    with pytest.raises(exception, match=words):
        es.finite_prompt(**request)


def test_negative_weights_are_refused():
    with pytest.raises(ValueError, match=r"weight\[1\]"):
        es.finite_prompt(HEAD, es.Mixture([GAUSSIAN, GAUSSIAN], weights=[1.0, -1.0]), QUERY, [10])


def test_answers_that_do_not_fit_into_memory_are_refused():
    wide = es.SoftmaxAttention(score=np.eye(2), value=np.ones((8192, 2)))
    with pytest.raises(MemoryError, match="covariances"):
        es.finite_prompt(wide, GAUSSIAN, np.zeros((10_000, 2)), [1, 10])


@pytest.mark.parametrize("score_deviation", [-1.0, np.nan, np.inf, 1e5, 10**400], ids=repr)
def test_score_deviations_out_of_range_are_refused(score_deviation):
    for ask in (es.weight_moments, es.shrinkage, es.opposite_pair):
        with pytest.raises(ValueError, match=r"score.deviation"):
            ask(score_deviation, 10)
    with pytest.raises(TypeError, match="score_deviation"):
        es.weight_moments("x", 10)


def test_figures_name_their_axes():
    pytest.importorskip("matplotlib").use("agg")
    lengths = np.logspace(0, 6, 7)
    one = es.finite_prompt(HEAD, GAUSSIAN, QUERY, lengths).plot()
    assert one.get_xscale() == one.get_yscale() == "log"
    assert "prompt length" in one.get_xlabel()
    assert len(one.get_lines()) == 4
    many = es.finite_prompt(HEAD, GAUSSIAN, np.random.default_rng(1).normal(size=(20, 2)), lengths).plot(ax=one)
    assert many is one
