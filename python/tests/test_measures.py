"""Measures from Python: closed forms, broadcasting, pickling, a user's own law."""

import gc
import math
import pickle
import weakref

import numpy as np
import pytest

import esscher as es

MEAN = np.array([0.0, 1.0])
COVARIANCE = np.array([[1.0, 0.3], [0.3, 0.5]])


def families() -> list[es.Measure]:
    gaussian = es.Gaussian(MEAN, COVARIANCE)
    return [
        gaussian,
        es.Mixture([gaussian, es.Sphere(2, radius=3.0)], weights=[0.9, 0.1]),
        es.Empirical([[1.0, 0.0], [0.0, 1.0], [-1.0, 2.0]], weights=[1, 2, 3]),
        es.Rademacher(2),
        es.Cube(2),
        es.Sphere(2, radius=1.5),
        es.Laplace(2, scale=0.2),
        es.Affine(es.Cube(2), matrix=[[1.0, 0.5], [0.0, 2.0]], shift=[1.0, -1.0]),
        es.Product([es.Rademacher(1), es.Laplace(1, scale=0.2)]),
        gaussian.tilted([0.1, 0.2]),
        es.Cube(2).tilted([0.4, -0.3]),
        poisson_pair(),
    ]


def log_partition_of_poissons(tilt: np.ndarray) -> float:
    return 3 * math.expm1(tilt[0]) + 2 * math.expm1(tilt[1])


def sample_poissons(tilt: np.ndarray, count: int, generator: np.random.Generator) -> np.ndarray:
    return generator.poisson([3 * math.exp(tilt[0]), 2 * math.exp(tilt[1])], size=(count, 2))


def poisson_pair() -> es.Measure:
    return es.Custom(2, log_partition_of_poissons, sampler=sample_poissons)


@pytest.mark.parametrize("measure", families(), ids=repr)
def test_every_family_obeys_the_laws(measure: es.Measure) -> None:
    # Differences of a user's function are good to about 1e-8, closed forms to rounding.
    identity = 1e-6 if isinstance(measure, es.Custom) else 1e-10
    measure.check_laws([[0.3, -0.4], [0.1, 0.2]], identity=identity)


@pytest.mark.parametrize("measure", families(), ids=repr)
def test_tilts_broadcast(measure: es.Measure) -> None:
    tilts = np.random.default_rng(1).normal(scale=0.2, size=(2, 3, 2))
    assert np.shape(measure.log_partition(tilts)) == (2, 3)
    assert measure.tilted_mean(tilts).shape == (2, 3, 2)
    assert measure.tilted_covariance(tilts).shape == (2, 3, 2, 2)
    for index in np.ndindex(2, 3):
        assert measure.log_partition(tilts)[index] == measure.log_partition(tilts[index])
        np.testing.assert_array_equal(measure.tilted_mean(tilts)[index], measure.tilted_mean(tilts[index]))
        np.testing.assert_array_equal(measure.tilted_covariance(tilts)[index], measure.tilted_covariance(tilts[index]))
    assert isinstance(measure.log_partition(tilts[0, 0]), float)


@pytest.mark.parametrize("measure", families(), ids=repr)
def test_measures_survive_pickling(measure: es.Measure) -> None:
    again = pickle.loads(pickle.dumps(measure))
    tilt = [0.2, -0.1]
    assert type(again) is type(measure)
    assert again.log_partition(tilt) == measure.log_partition(tilt)
    np.testing.assert_array_equal(again.sample(5, seed=3), measure.sample(5, seed=3))


@pytest.mark.parametrize("measure", families(), ids=repr)
def test_samples_have_the_mean_of_the_tilted_law(measure: es.Measure) -> None:
    tilt = np.array([0.2, -0.1])
    count = 20_000
    tokens = measure.sample(count, seed=7, tilt=tilt)
    assert tokens.shape == (count, 2)
    error = np.sqrt(np.diag(measure.tilted_covariance(tilt)) / count)
    # Five standard errors, two coordinates, twelve laws: false alarm below 2e-5.
    assert np.all(np.abs(tokens.mean(axis=0) - measure.tilted_mean(tilt)) < 5 * error)


def test_gaussian_closed_forms() -> None:
    tokens, tilt = es.Gaussian(MEAN, COVARIANCE), np.array([0.5, -0.2])
    assert tokens.log_partition(tilt) == pytest.approx(tilt @ MEAN + tilt @ COVARIANCE @ tilt / 2, rel=1e-15)
    np.testing.assert_allclose(tokens.tilted_mean(tilt), MEAN + COVARIANCE @ tilt, rtol=1e-15)
    np.testing.assert_allclose(tokens.second_moment(), COVARIANCE + np.outer(MEAN, MEAN), rtol=1e-15)
    assert tokens.tilt_divergence(tilt) == pytest.approx(tilt @ COVARIANCE @ tilt / 2)
    assert tokens.renyi_divergence(tilt) == pytest.approx(tilt @ COVARIANCE @ tilt)
    weights, means, covariances = tokens.gaussian_mixture()
    assert (weights.tolist(), means.tolist(), covariances.tolist()) == ([1], [MEAN.tolist()], [COVARIANCE.tolist()])
    assert tokens.sub_gaussian() == (pytest.approx(math.sqrt(np.linalg.eigvalsh(COVARIANCE)[-1])), True)
    assert es.Gaussian.standard(3).covariance().tolist() == np.eye(3).tolist()
    assert es.Gaussian.centred(COVARIANCE).mean().tolist() == [0, 0]


def test_the_gaussian_limit_agrees_at_its_tilt() -> None:
    cube, tilt = es.Cube(2), [0.4, -0.3]
    limit = cube.gaussian_limit(tilt)
    assert isinstance(limit, es.Gaussian)
    np.testing.assert_allclose(limit.tilted_mean(tilt), cube.tilted_mean(tilt), rtol=1e-14)


def test_signs_and_cubes_against_numpy() -> None:
    tilt = np.array([0.7, -1.3])
    assert es.Rademacher(2).log_partition(tilt) == pytest.approx(np.log(np.cosh(tilt)).sum(), rel=1e-14)
    assert es.Cube(2).log_partition(tilt) == pytest.approx(np.log(np.sinh(tilt) / tilt).sum(), rel=1e-14)
    assert es.Rademacher(2).gaussian_mixture() is None or len(es.Rademacher(2).gaussian_mixture()[0]) == 4


def test_a_users_exception_comes_through() -> None:
    class OwnError(Exception):
        pass

    def fails_away_from_zero(tilt: np.ndarray) -> float:
        if tilt.any():
            raise OwnError("not there")
        return 0.0

    law = es.Custom(2, fails_away_from_zero)
    with pytest.raises(OwnError, match="not there"):
        law.log_partition([1.0, 0.0])
    # Also from inside a measure that contains it, and from the threads of many queries.
    head = es.SoftmaxAttention(np.eye(2), np.eye(2))
    with pytest.raises(OwnError, match="not there"):
        head(es.Mixture([law, es.Cube(2)]), np.ones((50, 2)))
    # The exception is gone with the call that met it, also if the call was stopped by something else.
    assert law.log_partition([0.0, 0.0]) == 0.0
    with pytest.raises(OwnError, match="not there"):
        law.check_laws([[0.1, 0.2]])
    assert law.log_partition([0.0, 0.0]) == 0.0


def test_a_users_overflow_is_the_edge_of_the_domain() -> None:
    law = es.Custom(1, lambda tilt: math.expm1(tilt[0]))
    with pytest.raises(ValueError, match="log-partition returned NaN at tilt"):
        law.log_partition([1e6])


def test_functions_of_a_users_law_are_checked() -> None:
    with pytest.raises(ValueError, match="tilt 0 is 1: expected 0"):
        es.Custom(1, lambda tilt: 1.0)
    with pytest.raises(TypeError, match="log_partition: expected a function"):
        es.Custom(1, 3.0)
    with pytest.raises(TypeError, match="expected an array of real numbers"):
        es.Custom(1, lambda tilt: "zero")
    with pytest.raises(ValueError, match="log_partition returned shape"):
        es.Custom(1, lambda tilt: [0.0, 0.0])
    wrong = es.Custom(2, log_partition_of_poissons, sampler=lambda tilt, count, generator: [1.0])
    with pytest.raises(ValueError, match=r"sampler returned shape \[1\]: expected \(4, 2\)"):
        wrong.sample(4)
    with pytest.raises(ValueError, match="sampling is not available"):
        es.Custom(2, log_partition_of_poissons).sample(4)


def test_exact_derivatives_of_a_users_law_are_used() -> None:
    law = es.Custom(
        1,
        lambda tilt: tilt[0] ** 2 / 2,
        tilted_mean=lambda tilt: tilt,
        tilted_covariance=lambda tilt: np.eye(1),
        sub_gaussian=1.0,
    )
    assert law.tilted_mean([0.3]).tolist() == [0.3]
    assert law.tilted_covariance([0.3]).tolist() == [[1.0]]
    assert law.sub_gaussian() == (1.0, False)


def test_towers_of_measures_end() -> None:
    measure: es.Measure = es.Cube(1)
    for _ in range(63):
        measure = es.Affine(measure, 1.0)
    with pytest.raises(ValueError, match="nested 65 deep"):
        es.Affine(measure, 1.0)
    tilted: es.Measure = es.Cube(1)
    for _ in range(1000):
        tilted = tilted.tilted([0.001])
    assert tilted.log_partition([0.0]) == pytest.approx(0.0, abs=1e-12)


def test_a_law_whose_function_knows_it_is_collected() -> None:
    class Owner:
        pass

    owner = Owner()
    owner.law = es.Custom(1, lambda tilt, owner=owner: tilt[0] ** 2 / 2, tilted_mean=lambda tilt, owner=owner: tilt)
    owner.made = [owner.law.tilted([0.1]), es.Affine(owner.law, 2.0), es.Mixture([owner.law, es.Cube(1)])]
    owner.task = es.LinearTask(owner.law)
    gone = weakref.ref(owner)
    del owner
    gc.collect()
    assert gone() is None


def test_a_law_that_is_used_is_not_collected() -> None:
    class Factor:
        half = 0.5

    def made() -> es.Measure:
        factor = Factor()
        factor.law = es.Custom(1, lambda tilt: factor.half * tilt[0] ** 2)
        return es.Affine(factor.law, 2.0)

    law = made()
    gc.collect()
    assert law.log_partition([1.0]) == 2.0
