"""Whatever a user holds survives pickling and copying, and equals itself afterwards, or says how to carry it over."""

import copy
import pickle

import numpy as np
import pytest

import esscher as es
from esscher import audit, recording, zoo


def gaussian_log_partition(tilt):
    return float(tilt @ tilt / 2)


class NamedLayer(es.Layer):
    """A class of the user's own."""


TOKENS = es.Gaussian([0, 1], [[1, 0.3], [0.3, 0.5]])
HEAD = es.SoftmaxAttention(np.eye(2), np.eye(2))
QUERY = np.array([0.5, -0.2])
TASK = es.regression(np.diag([1.0, 2.0]), noise=0.1)
BLOCK = es.Block(0.3 * np.eye(2), 0.5)
GATED = zoo.Mechanism("gla", key_width=2, value_width=2)
ROWS = {port.name: -np.ones((4, 2)) for port in GATED.ports}


def stepped():
    stream = GATED.stream()
    stream.step(**{name: rows[0] for name, rows in ROWS.items()})
    return stream


HELD = {
    "Gaussian": lambda: TOKENS,
    "Mixture": lambda: es.Mixture([TOKENS, es.Cube(2)], weights=[0.9, 0.1]),
    "Empirical": lambda: es.Empirical([[1.0, 0.0], [0.0, 1.0]], weights=[3, 1]),
    "Rademacher": lambda: es.Rademacher(2),
    "Sphere": lambda: es.Sphere(2, radius=3.0),
    "Laplace": lambda: es.Laplace(2, scale=0.1),
    "Affine": lambda: es.Affine(es.Cube(2), matrix=[[1, 1]], shift=[0.5]),
    "Product": lambda: es.Product([es.Cube(1), es.Rademacher(2)]),
    "Custom": lambda: es.Custom(2, gaussian_log_partition, sub_gaussian=1.0),
    "a tilted measure": lambda: es.Cube(2).tilted([0.1, 0.2]),
    "SoftmaxAttention": lambda: HEAD,
    "LinearAttention": lambda: es.LinearAttention(np.eye(2), np.eye(2), moment="centred"),
    "Heads": lambda: es.Heads([HEAD, es.LinearAttention(np.eye(2), np.eye(2))]),
    "Gradient": lambda: HEAD.gradient(TOKENS, QUERY),
    "ExactFlow": lambda: es.exact_softmax_flow([[0.125]], es.Gaussian.centred([[4.0]])),
    "Layer": lambda: es.Layer.sinkhorn(np.eye(2), np.eye(2), np.eye(2)),
    "LayerFlow": lambda: es.Layer.softmax(np.eye(2), -np.eye(2)).flow(TOKENS, times=[0.1, 1.0]),
    "LayerStack": lambda: es.depth(TOKENS, [es.Layer.softmax(np.eye(2), -np.eye(2))] * 2, 0.1),
    "Block": lambda: BLOCK,
    "RegressionHead": lambda: BLOCK.head(),
    "RegressionLayer": lambda: es.RegressionLayer.at_random(2, seed=1),
    "RegressionLayer of heads": lambda: es.RegressionLayer([BLOCK.head()]),
    "LinearAttentionTraining": lambda: TASK.linear_attention(10),
    "HighDimensional": lambda: es.HighDimensional(2.0, 1.0),
    "LinearRegression": lambda: TASK,
    "LinearTask": lambda: es.LinearTask(np.eye(2), noise=0.1),
    "ClassificationTask": lambda: es.ClassificationTask(1.0, es.Gaussian.standard(2)),
    "SpectralTask": lambda: es.SpectralTask([1.0, 0.1], [10, 1000], noise=0.1),
    "SpectralTask of matrices": lambda: TASK.spectral,
    "DrawnCovariates": lambda: es.DrawnCovariates(es.Rademacher(2), noise=0.1, prompts=20, longest=10),
    "Prompt": lambda: TASK.draw(3),
    "BlockGradient": lambda: TASK.risk_and_gradient(BLOCK, 100),
    "BlockGradient of draws": lambda: es.DrawnCovariates(es.Rademacher(2), prompts=9).risk_and_gradient(BLOCK, 5),
    "HeadGradient": lambda: TASK.risk_and_gradient(BLOCK.head(), 100, points=64),
    "SpectralGradient": lambda: TASK.spectral.risk_and_gradient([0.1, 0.1], 1.0, 1e6),
    "SimulatedRisk": lambda: TASK.simulate_risk(BLOCK, 5, prompts=20, gradient=True),
    "Estimate": lambda: TASK.risk(BLOCK),
    "Flow": lambda: TASK.flow(100, end_time=1.0, rows=3),
    "Training": lambda: TASK.train(1e6, end_time=1.0, rows=3),
    "TrainingHorizon": lambda: TASK.horizon(0.3),
    "Descent": lambda: TASK.descend(BLOCK, 5, steps=5),
    "DescentState": lambda: TASK.descend(BLOCK, 5, steps=5, optimiser="adam").state,
    "Baselines": lambda: TASK.baselines(5, prompts=20),
    "Response": lambda: es.response([0.5, 2.0], 10),
    "FinitePrompt": lambda: es.finite_prompt(HEAD, TOKENS, QUERY, [1, 100]),
    "DeltaMethod": lambda: es.delta_method(HEAD, TOKENS, QUERY),
    "WeightMoments": lambda: es.weight_moments(1.0, [10, 1e12]),
    "Study": lambda: es.concentration(HEAD, es.Cube(2), queries=TOKENS, lengths=[10, 100], trials=8),
    "RateFit": lambda: es.rate_fit([10, 100, 1000], [1.0, 0.11, 0.01]),
    "LocalSlopes": lambda: es.local_slopes([10, 100, 1000], [1.0, 0.11, 0.01]),
    "Horizon": lambda: es.horizon(HEAD, TOKENS, query=QUERY, tolerance=0.1),
    "Answer": lambda: es.ask("horizon", tokens="gaussian:1", query=[0.5], tolerance=0.01),
    "Plan": lambda: es.plan(es.example("concentration")),
    "catalogue": lambda: es.catalogue(),
    "Mechanism": lambda: GATED,
    "Stream": stepped,
    "State": lambda: stepped().state,
    "DynamicalSystem": lambda: GATED.dynamical_system(**ROWS),
    "Entry": lambda: zoo.mechanisms()[0],
    "Readers": lambda: audit.calibrate(np.eye(3), np.eye(3)),
    "Recorder": lambda: recording.Recorder().add(*np.ones((3, 4, 1, 2)), order="causal"),
}


@pytest.mark.parametrize("name", HELD)
def test_it_is_the_same_after_pickling_and_copying(name):
    held, again = HELD[name](), HELD[name]()
    assert held == again
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(held, protocol)) == held
    assert copy.copy(held) == held
    assert copy.deepcopy(held) == held
    assert held != 1


def test_what_differs_is_not_the_same():
    assert es.Gaussian.standard(2) != TOKENS
    assert es.Cube(2) != es.Rademacher(2)
    assert es.SoftmaxAttention(2 * np.eye(2), np.eye(2)) != HEAD
    assert es.Block(np.eye(2), 1.0) != es.Block(np.eye(2), 2.0)
    assert es.Results({"a": [1.0]}) != es.Results({"a": [2.0]})
    assert es.Results({"a": [np.nan]}) == es.Results({"a": [np.nan]})
    assert es.LinearTask(np.eye(2)) != es.LinearTask(np.eye(2), noise=0.1)
    assert TASK.draw(3) != TASK.draw(3, seed=1)
    assert es.LinearRegression([[1.0]]).spectral != es.LinearRegression([[2.0]]).spectral


def test_equal_measures_have_one_hash():
    assert len({es.Gaussian.standard(2), es.Gaussian.standard(2), es.Cube(2)}) == 2


def test_what_is_equal_with_a_negative_zero_has_one_hash():
    assert len({es.Block([[1.0]], 0.0), es.Block([[1.0]], -0.0)}) == 1
    assert len({es.HighDimensional(2.0, 2.0, noise=0.0), es.HighDimensional(2.0, 2.0, noise=-0.0)}) == 1


def test_what_prints_has_no_address():
    for held in (HELD["DrawnCovariates"](), HELD["Recorder"]()):
        assert " at 0x" not in repr(held)


def test_an_array_that_is_changed_later_changes_no_task():
    covariates = np.eye(2)
    task = es.LinearTask(covariates)
    before = task.draw(5)
    covariates[:] = 7.0
    assert pickle.loads(pickle.dumps(task)).draw(5) == before


def test_a_cache_is_copied_and_says_how_it_is_carried_over():
    keys, values = np.random.default_rng(0).standard_normal((2, 9, 4))
    cache = audit.StreamingCache("mean", 4, audit.calibrate(keys, values))
    cache.absorb(keys, values)
    twin = copy.deepcopy(cache)
    cache.absorb(keys, values)
    assert (twin.tokens_seen, copy.copy(cache).tokens_seen) == (9, 18)
    with pytest.raises(TypeError, match="cannot be pickled: pickle its readers, make it again"):
        pickle.dumps(cache)


def test_a_layer_of_the_users_own_class_keeps_what_was_added():
    layer = NamedLayer.softmax([[0.5]], [[1.0]])
    layer.name = "first"
    assert pickle.loads(pickle.dumps(layer)).name == "first"
