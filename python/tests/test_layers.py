"""Gaussians through residual layers: closed forms, differences, particles, and bad requests."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import esscher as es

SCORE = np.array([[0.3, 0.1], [-0.2, 0.2]])
VALUE = np.array([[0.5, 0.2], [0.0, -0.4]])
START = es.Gaussian([0.3, -0.5], [[1.0, 0.4], [0.4, 0.8]])
LAYERS = [
    es.Layer.softmax(SCORE, VALUE),
    es.Layer.linear(SCORE, VALUE),
    es.Layer.l2(SCORE, VALUE, VALUE),
    es.Layer.sinkhorn(SCORE, VALUE, VALUE),
]


def test_affine_forms_are_those_of_the_table():
    mean, covariance = START.mean(), START.covariance()
    offset, matrix = LAYERS[0].affine_form(START)
    np.testing.assert_allclose(offset, VALUE @ mean)
    np.testing.assert_allclose(matrix, VALUE @ covariance @ SCORE)
    offset, matrix = LAYERS[1].affine_form(START)
    np.testing.assert_allclose(offset, 0)
    np.testing.assert_allclose(matrix, VALUE @ (covariance + np.outer(mean, mean)) @ SCORE)
    query, key = SCORE, VALUE
    gain = covariance @ key.T @ np.linalg.inv(key @ covariance @ key.T + np.eye(2) / 2)
    offset, matrix = LAYERS[2].affine_form(START)
    np.testing.assert_allclose(offset, VALUE @ (mean - gain @ key @ mean))
    np.testing.assert_allclose(matrix, VALUE @ gain @ query)


def test_softmax_at_a_gaussian_is_the_head_of_the_same_matrices():
    head = es.SoftmaxAttention(SCORE, VALUE)
    offset, matrix = LAYERS[0].affine_form(START)
    query = np.array([0.7, -0.2])
    np.testing.assert_allclose(head(START, query), offset + matrix @ query, rtol=1e-13)


@pytest.mark.parametrize("layer", LAYERS, ids=repr)
def test_steps_velocities_and_flows_agree(layer):
    mean, covariance = layer.velocity(START)
    small = layer.step(START, 1e-6)
    np.testing.assert_allclose((small.mean() - START.mean()) / 1e-6, mean, atol=1e-5)
    np.testing.assert_allclose((small.covariance() - START.covariance()) / 1e-6, covariance, atol=1e-5)
    offset, matrix = layer.affine_form(START)
    pushed = layer.push_forward(START)
    np.testing.assert_allclose(pushed.mean(), offset + matrix @ START.mean())
    np.testing.assert_allclose(pushed.covariance(), matrix @ START.covariance() @ matrix.T, atol=1e-14)
    flow = layer.flow(START, [0.0, 0.5])
    assert flow.finished
    np.testing.assert_allclose(flow.covariance[0], START.covariance(), atol=1e-12)
    # Euler's method is of first order: the error at 2000 steps is below 1e-3.
    stack = es.depth(START, [layer] * 2000, 0.5 / 2000)
    np.testing.assert_allclose(stack.covariance[-1], flow.covariance[-1], atol=1e-3)
    again = pickle.loads(pickle.dumps(layer))
    np.testing.assert_array_equal(again.affine_form(START)[1], matrix)


def test_the_softmax_flow_with_identity_value_is_the_closed_form():
    exact = es.exact_softmax_flow(SCORE, START)
    flow = es.Layer.softmax(SCORE, np.eye(2)).flow(START, [0.5 * exact.blow_up_time, 2 * exact.blow_up_time])
    np.testing.assert_allclose(flow.covariance[0], exact.covariance(0.5 * exact.blow_up_time), rtol=1e-8)
    assert flow.blow_up_time == pytest.approx(exact.blow_up_time, rel=1e-8)
    assert "blows up" in flow.stop
    assert not flow.finished
    inverse = np.linalg.inv(START.covariance()) - 0.1 * (SCORE + SCORE.T)
    np.testing.assert_allclose(exact.covariance(0.1), np.linalg.inv(inverse), rtol=1e-12)
    assert es.exact_softmax_flow(-np.eye(2), START).limit_rank == 0
    with pytest.raises(ValueError, match="blow"):
        exact.covariance(2 * exact.blow_up_time)


def test_a_collapse_stops_the_flow_or_is_noted():
    shrinking = es.Layer.linear(-np.eye(1), np.eye(1) * 50)
    start = es.Gaussian.standard(1)
    stopped = shrinking.flow(start, [1.0, 1e6], collapse_threshold=1e-3)
    assert "at_collapse" in stopped.stop
    assert len(stopped.laws) == len(stopped)
    noted = shrinking.flow(start, [1.0, 1e6], collapse_threshold=1e-3, at_collapse="continue")
    assert noted.finished
    assert [collapse.rank for collapse in noted.collapses] == [0]
    # S(t)⁻¹ = 1 + 100 t passes 1000 at t = 9.99.
    assert noted.collapses[0].time == pytest.approx(9.99, rel=1e-3)


def test_rows_have_laws_and_tables():
    flow = es.Layer.softmax(SCORE, VALUE).flow(START, 0.3)
    assert len(flow) == 101
    assert flow.laws[3].dimension == 2
    np.testing.assert_allclose(flow["trace"], flow.eigenvalues.sum(1))
    assert flow.to_polars().shape == (101, 5)
    assert len(pickle.loads(pickle.dumps(flow))) == 101
    assert list(es.depth(START, [])["layer"]) == [0]


REFUSED = [
    (ValueError, "score", lambda: es.Layer.softmax(np.eye(3), VALUE)),
    (ValueError, "value", lambda: es.Layer.softmax(SCORE, np.ones((2, 3)))),
    (ValueError, "value", lambda: es.Layer.softmax(np.zeros((0, 0)), np.zeros((0, 0)))),
    (ValueError, "score", lambda: es.Layer.softmax([[np.nan]], [[1.0]])),
    (TypeError, "score", lambda: es.Layer.softmax("x", VALUE)),
    (ValueError, "key", lambda: es.Layer.l2(SCORE, np.eye(3), VALUE)),
    (ValueError, "kind", lambda: es.Layer("hard", SCORE, VALUE)),
    (TypeError, "Gaussian", lambda: LAYERS[0].step(es.Rademacher(2))),
    (TypeError, "tokens", lambda: LAYERS[0].step([[1.0, 2.0]])),
    (ValueError, "dimension", lambda: LAYERS[0].step(es.Gaussian.standard(3))),
    (ValueError, "step size", lambda: LAYERS[0].step(START, float("inf"))),
    (ValueError, "time", lambda: LAYERS[0].flow(START, -1.0)),
    (ValueError, "time", lambda: LAYERS[0].flow(START, [1.0, 0.5])),
    (ValueError, "time", lambda: LAYERS[0].flow(START, [np.nan])),
    (ValueError, "time", lambda: LAYERS[0].flow(START, [])),
    (TypeError, "times", lambda: LAYERS[0].flow(START, "x")),
    (TypeError, "times", lambda: LAYERS[0].flow(START, None)),
    (ValueError, "time", lambda: LAYERS[0].flow(START, float("inf"))),
    (ValueError, "time", lambda: LAYERS[0].flow(START, float("nan"))),
    (ValueError, "times", lambda: LAYERS[0].flow(START, np.linspace(0, 1, 2**24))),
    (ValueError, "tolerance", lambda: LAYERS[0].flow(START, relative_tolerance=-1.0)),
    (ValueError, "threshold", lambda: LAYERS[0].flow(START, collapse_threshold=2.0)),
    (ValueError, "at_collapse", lambda: LAYERS[0].flow(START, at_collapse="panic")),
    (ValueError, "max_steps", lambda: LAYERS[0].flow(START, max_steps=0)),
    (TypeError, "layers", lambda: es.depth(START, [VALUE])),
    (ValueError, "score", lambda: es.exact_softmax_flow(np.eye(3), START)),
]


@pytest.mark.parametrize(("error", "words", "request_"), REFUSED, ids=range(len(REFUSED)))
def test_a_request_that_makes_no_sense_is_refused_by_name(error, words, request_):
    with pytest.raises(error, match=words):
        request_()
