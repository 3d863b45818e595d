"""Studies, rates, horizons and scales against closed forms, each other, and computations in NumPy."""

import copy
import os
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import esscher as es

HEAD = es.SoftmaxAttention(score=0.6 * np.eye(2), value=[[1.0, 0.5]])
NORMAL = es.Gaussian.standard(2)
LENGTHS = [10, 100, 1000]


def test_both_engines_agree():
    exact = es.concentration(HEAD, NORMAL, queries=NORMAL, lengths=LENGTHS, engine="exact")
    sampled = es.concentration(HEAD, NORMAL, queries=NORMAL, lengths=LENGTHS, engine="sampled", trials=2000, seed=3)
    assert set(exact["accuracy"]) == {"quasi-monte-carlo"}
    assert set(sampled["accuracy"]) == {"sampled"}
    for name in ("output_error", "score_gradient_error", "value_gradient_error"):
        spread = np.hypot(exact[f"{name}_uncertainty"], sampled[f"{name}_uncertainty"])
        # Five standard errors, nine comparisons with a fixed seed.
        assert np.all(np.abs(exact[name] - sampled[name]) < 5 * spread), name


def test_an_array_of_queries_is_their_average():
    queries = np.array([[0.5, 0.1], [-0.3, 1.0], [0.0, 0.2]])
    study = es.concentration(HEAD, NORMAL, queries=queries, lengths=LENGTHS)
    each = es.finite_prompt(HEAD, NORMAL, queries, LENGTHS)["output_error"].reshape(3, 3)
    assert np.all(np.abs(study["output_error"] - each.mean(axis=0)) <= 5 * study["output_error_uncertainty"] + 1e-12)


def test_one_dimensional_gaussians_are_exact_up_to_a_trillion_tokens():
    head, line = es.SoftmaxAttention([[0.5]], [[1.0]]), es.Gaussian.standard(1)
    study = es.concentration(head, line, queries=line, lengths=np.logspace(3, 12, 10))
    assert set(study["accuracy"]) == {"exact"}
    assert study["length"][-1] == 10**12
    assert study.operator_norm == pytest.approx(0.5, rel=1e-12)
    # ∫ e^{h²x²}(1 + h²x²) dN(0, 1) with h = ½ is (1 − 2h²)^{−1/2}(1 + h²/(1 − 2h²)), the constant of 1/L.
    constant = 0.5**-0.5 * (1 + 0.25 / 0.5)
    assert study["output_error"][-1] * 1e12 == pytest.approx(constant, rel=1e-3)
    assert study.rate().exponent == pytest.approx(1.0, abs=0.01)


def test_errors_do_not_depend_on_the_order_of_lengths():
    one = es.concentration(HEAD, NORMAL, queries=NORMAL, lengths=[1000, 10, 100, 10])
    two = es.concentration(HEAD, NORMAL, queries=NORMAL, lengths=LENGTHS)
    assert one["length"].tolist() == LENGTHS
    assert one["output_error"].tolist() == two["output_error"].tolist()


def test_simulations_repeat():
    request = dict(queries=NORMAL, lengths=[10, 50], engine="sampled", trials=50, instruction_set="portable")
    one, two = (es.concentration(HEAD, es.Cube(2), **request, seed=seed) for seed in (7, 7))
    assert one["output_error"].tolist() == two["output_error"].tolist()
    other = es.concentration(HEAD, es.Cube(2), **request, seed=8)
    assert one["output_error"].tolist() != other["output_error"].tolist()


def test_single_precision_and_missing_gradients():
    double = es.concentration(HEAD, es.Cube(2), queries=NORMAL, lengths=[10, 50], trials=50)
    single = es.concentration(
        HEAD, es.Cube(2), queries=NORMAL, lengths=[10, 50], trials=50, precision="single", score_gradient=False
    )
    np.testing.assert_allclose(single["output_error"], double["output_error"], rtol=1e-4)
    assert "score_gradient_error" not in single.names
    with pytest.raises(ValueError, match="quantity"):
        single.rate("score-gradient")
    with pytest.raises(TypeError, match="quantity: expected a text, found an object of type list"):
        single.rate([])


def test_a_study_keeps_what_its_fits_need():
    study = es.concentration(HEAD, es.Cube(2), queries=NORMAL, lengths=[10, 30, 100, 300], trials=400)
    fit, slopes = study.rate(), study.local_slopes()
    assert fit.estimator == "generalised-least-squares"
    assert fit.interval[0] < fit.exponent < fit.interval[1]
    assert slopes["from"].tolist() == [10, 30, 100]
    again = pickle.loads(pickle.dumps(study))
    assert str(again.rate()) == str(fit)
    assert repr(copy.deepcopy(study)) == repr(study)


def test_queries_may_have_another_dimension_than_tokens():
    head = es.SoftmaxAttention(score=[[0.5], [0.2]], value=[[1.0, 0.5]])
    study = es.concentration(head, NORMAL, queries=[[0.7]], lengths=[50])
    exact = es.finite_prompt(head, NORMAL, [0.7], 50)["output_error"]
    assert study["output_error"] == pytest.approx(exact, rel=1e-10)


def test_a_user_law_is_simulated_and_its_exceptions_are_raised():
    def normal_log_partition(tilt):
        return 0.5 * float(tilt @ tilt)

    def sampler(tilt, count, generator):
        return tilt + generator.normal(size=(count, 2))

    law = es.Custom(2, normal_log_partition, tilted_mean=lambda tilt: tilt, sampler=sampler)
    asked = dict(queries=[[0.4, -0.8]], lengths=[20])
    study = es.concentration(HEAD, law, **asked, trials=400, score_gradient=False, seed=1)
    exact = es.concentration(HEAD, NORMAL, **asked)
    spread = np.hypot(study["output_error_uncertainty"], exact["output_error_uncertainty"])
    assert np.all(np.abs(study["output_error"] - exact["output_error"]) < 5 * spread)

    def broken(tilt, count, generator):
        raise LookupError("no tokens today")

    with pytest.raises(LookupError, match="no tokens today"):
        es.concentration(
            HEAD, es.Custom(2, normal_log_partition, sampler=broken), queries=NORMAL, lengths=[20], trials=4
        )


def test_progress_is_reported_and_may_stop_the_study():
    seen = []
    es.concentration(HEAD, es.Cube(2), queries=NORMAL, lengths=[10_000], trials=200, progress=seen.append)
    assert seen
    assert seen == sorted(seen)

    def stop(_):
        raise RuntimeError("enough")

    began = time.monotonic()
    with pytest.raises(RuntimeError, match="enough"):
        es.concentration(HEAD, es.Cube(2), queries=NORMAL, lengths=[10**9], trials=10_000, progress=stop)
    assert time.monotonic() - began < 5


LONG = {
    "long prompts": "es.concentration(head, es.Cube(2), queries=law, lengths=[10**9], trials=1000, progress=tell)",
    "a user's sampler": "es.concentration(head, own, queries=law, lengths=[10, 100], trials=10**4, progress=tell)",
    "a large batch": "task.descend(es.Block(0.3 * np.eye(2), 0.5), 1000, steps=10, batch=10**6, progress=tell)",
}


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("call", LONG.values(), ids=LONG)
def test_an_interrupt_ends_a_long_simulation_within_two_seconds(call):
    script = f"""
import time
import numpy as np
import esscher as es
law = es.Gaussian.standard(2)
head = es.SoftmaxAttention(np.eye(2), [[1.0, 0]])
task = es.regression(np.eye(2), noise=0.1)
def drawn(tilt, count, generator):
    time.sleep(0.02)
    return generator.standard_normal((count, 2)) + tilt
own = es.Custom(2, lambda tilt: float(tilt @ tilt / 2), sampler=drawn)
def tell(part):
    print("running", flush=True)
try:
    {call}
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "running\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        rest = process.stdout.read()
        assert process.wait(timeout=60) == 0
    assert time.monotonic() - began < 2
    assert rest.endswith("interrupted\n")


def test_a_rate_is_the_slope_of_a_line():
    lengths = np.array([10.0, 40.0, 100.0, 1000.0])
    values = 3.0 * lengths**-0.7 * np.exp([0.01, -0.02, 0.0, 0.01])
    errors = values * np.array([0.02, 0.01, 0.03, 0.02])
    fit = es.rate_fit(lengths, values, errors)
    (slope, intercept), covariance = np.polyfit(np.log(lengths), np.log(values), 1, w=values / errors, cov="unscaled")
    assert fit.exponent == pytest.approx(-slope, rel=1e-10)
    assert fit.constant == pytest.approx(np.exp(intercept), rel=1e-10)
    assert fit.estimator == "weighted-least-squares"
    residuals = np.log(values) - np.polyval([slope, intercept], np.log(lengths))
    np.testing.assert_allclose(fit.residuals, residuals, atol=1e-12)
    assert fit.chi_square == pytest.approx(((residuals * values / errors) ** 2).sum(), rel=1e-9)
    scale = max(1.0, np.sqrt(fit.chi_square / fit.degrees_of_freedom))
    assert fit.standard_error == pytest.approx(scale * np.sqrt(covariance[0, 0]), rel=1e-9)


def test_a_known_covariance_gives_generalised_least_squares():
    lengths, values = [10, 100, 1000, 10_000], [0.1, 0.012, 0.0009, 0.00011]
    covariance = 0.01 * (0.5 * np.eye(4) + 0.5)
    fit = es.rate_fit(lengths, values, covariance=covariance)
    design = np.column_stack([np.ones(4), np.log(lengths)])
    inverse = np.linalg.inv(covariance)
    solution = np.linalg.solve(design.T @ inverse @ design, design.T @ inverse @ np.log(values))
    assert fit.exponent == pytest.approx(-solution[1], rel=1e-10)
    assert fit.estimator == "generalised-least-squares"


def test_points_lost_in_noise_are_dropped():
    fit = es.rate_fit([10, 100, 1000, 10_000], [1.0, 0.1, 0.01, 0.001], [0.01, 0.001, 0.0001, 0.001])
    assert fit.dropped == (3,)
    assert len(fit.residuals) == 3


WRONG_FITS = {
    "sizes": (ValueError, "values", ([10, 100, 1000], [1.0, 0.1], None), {}),
    "error sizes": (ValueError, "errors", ([10, 100, 1000], [1.0, 0.1, 0.01], [0.1]), {}),
    "a zero": (ValueError, "value of the rate fit", ([10, 100, 1000], [1.0, 0.1, 0.0], None), {}),
    "not a number": (ValueError, "value of the rate fit", ([10, 100, 1000], [1.0, 0.1, np.nan], None), {}),
    "a negative error": (ValueError, "error", ([10, 100, 1000], [1.0, 0.1, 0.01], [1.0, -1.0, 1.0]), {}),
    "two lengths": (ValueError, "lengths", ([10, 100], [1.0, 0.1], None), {}),
    "a level of one": (ValueError, "level", ([10, 100, 1000], [1.0, 0.1, 0.01], None), dict(level=1.0)),
    "a text for a level": (TypeError, "level", ([10, 100, 1000], [1.0, 0.1, 0.01], None), dict(level="x")),
    "texts": (TypeError, "values", ([10, 100, 1000], ["a", "b", "c"], None), {}),
    "covariance": (ValueError, "covariance", ([10, 100, 1000], [1.0, 0.1, 0.01], None), dict(covariance=np.eye(2))),
    "errors twice": (
        ValueError,
        "errors: given beside a covariance",
        ([10, 100, 1000], [1.0, 0.1, 0.01], [0.1, 0.01, 0.001]),
        dict(covariance=np.eye(3)),
    ),
    "draws alone": (ValueError, "draws", ([10, 100, 1000], [1.0, 0.1, 0.01], None), dict(draws=5)),
    "too many": (ValueError, "at most 1000", (np.arange(1, 1002), np.ones(1001), None), {}),
}


@pytest.mark.parametrize("name", WRONG_FITS)
def test_fits_that_make_no_sense_say_why(name):
    exception, words, arguments, keywords = WRONG_FITS[name]
    with pytest.raises(exception, match=words):
        es.rate_fit(*arguments, **keywords)


def test_a_horizon_needs_its_head_and_tokens():
    for head, tokens, name in [(None, NORMAL, "head"), ({}, NORMAL, "head"), (HEAD, None, "tokens")]:
        with pytest.raises((TypeError, ValueError), match=f"^{name}: expected a value"):
            es.horizon(head, tokens, tolerance=0.1)


def test_a_horizon_is_where_the_error_meets_the_tolerance():
    query = [0.5, -0.3]
    found = es.horizon(HEAD, NORMAL, query=query, tolerance=0.01)
    assert (found.outcome, found.accuracy) == ("found", "exact")
    assert found.bracket == (found.length - 1, found.length)
    errors = es.finite_prompt(HEAD, NORMAL, query, found.bracket)["output_error"] ** 0.5
    assert errors[1] <= 0.01 < errors[0]
    assert str(found).startswith(f"{found.length:,} tokens suffice: the root-mean-square error is at most 0.01")
    assert str(found).endswith("at most 0.01 (exact)")


def test_a_horizon_over_a_law_of_queries():
    points = dict(directions=32, randomisations=4)
    found = es.horizon(HEAD, NORMAL, queries=NORMAL, tolerance=0.02, quantity="value-gradient", **points)
    study = es.concentration(HEAD, NORMAL, queries=NORMAL, lengths=found.bracket, **points)
    # The study may place its radii elsewhere; both are good to a thousandth here.
    assert study["value_gradient_error"][1] ** 0.5 == pytest.approx(0.02, rel=1e-3)
    assert found.accuracy == "quasi-monte-carlo"
    assert str(found).endswith(", exact in the tokens, queries averaged over quasi-Monte-Carlo points)")
    # The law of the tokens is the default.
    assert found == es.horizon(HEAD, NORMAL, tolerance=0.02, quantity="value-gradient", **points)


def test_horizons_at_both_ends():
    one = es.horizon(HEAD, NORMAL, query=[0.0, 0.0], tolerance=100.0)
    assert (one.length, one.bracket) == (1, (None, 1))
    beyond = es.horizon(HEAD, NORMAL, query=[0.0, 0.0], tolerance=1e-9)
    assert (beyond.outcome, beyond.length, beyond.bracket) == ("beyond", None, (10**12, None))
    assert str(beyond).startswith("more than 1,000,000,000,000 tokens (1 trillion) are needed")


def test_given_tokens_stand_for_their_gaussian():
    tokens = np.random.default_rng(0).normal(size=(500, 2))
    found = es.horizon(HEAD, tokens, query=[0.5, 0.0], tolerance=0.1)
    gaussian = es.Gaussian(tokens.mean(axis=0), np.cov(tokens.T, bias=True))
    assert found.length == es.horizon(HEAD, gaussian, query=[0.5, 0.0], tolerance=0.1).length
    assert str(found).startswith("tokens: the Gaussian with the mean and covariance of the 500 given tokens\n")


@pytest.mark.parametrize(
    ("tolerance", "expected"),
    [(0.0, "a number above 0"), (-1.0, "a number above 0"), (np.nan, "a number above 0"), (np.inf, "a finite number")],
)
def test_tolerances_are_positive(tolerance, expected):
    with pytest.raises(ValueError, match=f"tolerance: expected {expected}"):
        es.horizon(HEAD, NORMAL, query=[0.0, 0.0], tolerance=tolerance)


WRONG_STUDIES = {
    "no such engine": (ValueError, "engine", dict(engine="quick")),
    "two engines": (ValueError, 'expected "best"', dict(engine="both")),
    "no room for directions": (
        ValueError,
        "fit into memory; expected at most",
        dict(
            head=es.SoftmaxAttention(np.eye(300), np.eye(300)),
            tokens=es.Gaussian.standard(300),
            queries=es.Gaussian.standard(300),
            directions=2**20,
        ),
    ),
    "no such precision": (ValueError, "precision", dict(precision="half")),
    "no such instruction set": (ValueError, "instruction set", dict(instruction_set="abacus", engine="sampled")),
    "a word for a truth": (TypeError, "score_gradient: expected True or False", dict(score_gradient="no")),
    "one trial": (ValueError, "trials", dict(trials=1)),
    "too many trials": (ValueError, "trials", dict(trials=10**9)),
    "half a trial": (ValueError, "trials", dict(trials=2.5)),
    "a text for trials": (ValueError, "trials", dict(trials="many")),
    "true trials": (ValueError, "trials", dict(trials=True)),
    "no queries per prompt": (ValueError, "query_count", dict(query_count=0)),
    "no directions": (ValueError, "directions", dict(directions=0)),
    "huge directions": (ValueError, "directions", dict(directions=10**30)),
    "one randomisation": (ValueError, "randomisations", dict(randomisations=1)),
    "a negative seed": (ValueError, "seed", dict(seed=-1)),
    "a huge seed": (ValueError, "seed", dict(seed=2**64)),
    "a broken seed": (ValueError, "seed", dict(seed=0.5)),
    "no lengths": (ValueError, "lengths", dict(lengths=[])),
    "zero": (ValueError, "length", dict(lengths=[0])),
    "negative": (ValueError, "length", dict(lengths=-1)),
    "half a token": (ValueError, "length", dict(lengths=[2.5])),
    "too long": (ValueError, "length", dict(lengths=1e13)),
    "far too long": (ValueError, "length", dict(lengths=[10**30])),
    "a bool": (ValueError, "length", dict(lengths=True)),
    "a text": (ValueError, "length", dict(lengths="x")),
    "too many lengths": (ValueError, "1 to 1000 entries", dict(lengths=np.arange(1, 2000))),
    "none short enough": (ValueError, "lengths", dict(tokens=es.Cube(2), lengths=[2000], longest=1000)),
    "queries of another dimension": (ValueError, "queries", dict(queries=es.Gaussian.standard(3))),
    "texts for queries": (ValueError, "queries", dict(queries="normal")),
    "objects for queries": (TypeError, "queries", dict(queries=np.array([[None, None]]))),
    "a query that is not a number": (ValueError, "is NaN", dict(queries=[[np.nan, 0.0]])),
    "tokens of another dimension": (ValueError, "tokens", dict(tokens=es.Cube(3))),
    "an engine that cannot": (ValueError, "no exact theory", dict(tokens=es.Cube(2), engine="exact")),
    "no head": (ValueError, "head", dict(head="softmax")),
    "another head": (TypeError, "head", dict(head=es.LinearAttention(np.eye(2), np.eye(2)))),
    "no room": (ValueError, "fit into memory", dict(tokens=es.Cube(2), lengths=np.arange(1, 1000), trials=2**24)),
    "huge queries per prompt": (ValueError, "^query_count: the number is too large", dict(query_count=10**400)),
    "many tokens": (ValueError, "^lengths, trials: ", dict(tokens=es.Cube(2), lengths=[10**6], trials=10**6)),
    "a head that is not there": (TypeError, "^head: expected a value, found None", dict(head=None)),
    "an empty head": (ValueError, "^head: expected a value, found a dictionary without entries", dict(head={})),
    "tokens that are not there": (TypeError, "^tokens: expected a value, found None", dict(tokens=None)),
    "queries that are not there": (TypeError, "^queries: expected a value, found None", dict(queries=None)),
    "an array for a head": (ValueError, "^head: expected at most 2200000 entries", dict(head=np.ones((2000, 2000)))),
    "an array for an engine": (TypeError, "^engine: expected a text, found .* ndarray", dict(engine=np.ones(2))),
    "too much work": (
        ValueError,
        "^lengths, trials: .* units of work",
        dict(tokens=es.Cube(2), lengths=[10**9], trials=2**24),
    ),
}


@pytest.mark.parametrize("name", WRONG_STUDIES)
def test_studies_that_make_no_sense_say_why(name):
    exception, words, changes = WRONG_STUDIES[name]
    request = dict(head=HEAD, tokens=NORMAL, queries=NORMAL, lengths=[10]) | changes
    with pytest.raises(exception, match=words):
        es.concentration(request.pop("head"), request.pop("tokens"), **request)


def test_scales_broadcast():
    assert es.regime(1.0, 1000) == "diluted"
    assert es.regime([[1.0], [5.0]], [1, 1000]).tolist() == [["frozen", "diluted"], ["frozen", "frozen"]]
    lengths = np.array([2, 10**3, 10**12])
    np.testing.assert_allclose(es.critical_score_deviation(lengths), np.sqrt(2 * np.log(lengths)), rtol=1e-14)
    np.testing.assert_allclose(es.rate_exponent([0.1, 1.5]), [1.0, np.sqrt(1 / 1.5**2 + 0.25) - 0.5], rtol=1e-13)
    deviations = np.array([0.5, 2.5, 9.0])
    t = deviations**2 / np.log(1000)
    expected = [1 - t[0], (1 / np.sqrt(t[1]) - np.sqrt(t[1]) / 2) ** 2 / 2, 0.0]
    np.testing.assert_allclose(es.typical_error_exponent(deviations, 1000), expected, rtol=1e-12)
    constants = dict(sub_gaussian=1.5, factor=2.0, exponent=0.5)
    decay = lengths ** (-0.5 / 1.5**2)
    np.testing.assert_allclose(es.output_bound(lengths, **constants), 2 * 1.5**6 * np.log(lengths) * decay)
    np.testing.assert_allclose(
        es.score_gradient_bound(lengths, **constants), 2 * 1.5**12 * np.log(lengths) ** 2 * decay
    )
    assert es.value_gradient_bound(100, **constants) == es.output_bound(100, **constants)
    time = np.linspace(0.0, 3.0, 4)
    np.testing.assert_allclose(
        es.trajectory_bound(gradient_gap=0.1, growth=0.7, time=time), 0.1 * time * np.exp(0.7 * time), rtol=1e-14
    )
    assert es.critical_score_deviation(np.ones((0, 3))).shape == (0, 3)


WRONG_SCALES = [
    (ValueError, "score deviation", lambda: es.regime(-1.0, 10)),
    (ValueError, "score deviation", lambda: es.regime([1.0, np.nan], 10)),
    (TypeError, "score_deviation", lambda: es.regime("x", 10)),
    (TypeError, "prompt length", lambda: es.regime(1.0, True)),
    (TypeError, "prompt length", lambda: es.critical_score_deviation("x")),
    (TypeError, "prompt length", lambda: es.critical_score_deviation(None)),
    (ValueError, "prompt length", lambda: es.critical_score_deviation([10, 2.5])),
    (ValueError, "prompt length", lambda: es.critical_score_deviation(10**400)),
    (ValueError, r"prompt length -10{10}… \(401 digits\)", lambda: es.critical_score_deviation(-(10**400))),
    (ValueError, "do not broadcast", lambda: es.regime([1.0, 2.0], [10, 20, 30])),
    (ValueError, "length", lambda: es.critical_score_deviation([[1], [1, 2]])),
    (ValueError, "prompt length", lambda: es.output_bound(1, sub_gaussian=1.0, factor=1.0, exponent=1.0)),
    (ValueError, "sub-Gaussian", lambda: es.output_bound(2, sub_gaussian=0.5, factor=1.0, exponent=1.0)),
    (ValueError, "c₁", lambda: es.output_bound(2, sub_gaussian=1.0, factor=-1.0, exponent=1.0)),
    (TypeError, "exponent", lambda: es.output_bound(2, sub_gaussian=1.0, factor=1.0, exponent=None)),
    (ValueError, "operator norm", lambda: es.rate_exponent(-1.0)),
    (ValueError, "operator_norm", lambda: es.rate_exponent(10**400)),
    (ValueError, "time", lambda: es.trajectory_bound(gradient_gap=1.0, growth=1.0, time=-1.0)),
]


@pytest.mark.parametrize(("exception", "words", "ask"), WRONG_SCALES)
def test_scales_that_make_no_sense_say_why(exception, words, ask):
    with pytest.raises(exception, match=words):
        ask()


def test_the_figure_of_a_study_has_bars_and_a_fit():
    pytest.importorskip("matplotlib").use("agg")
    study = es.concentration(HEAD, es.Cube(2), queries=NORMAL, lengths=[10, 100, 1000], trials=64)
    axes = study.plot()
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert any("kappa" in label for label in labels)
    assert len(labels) == 4
    two = es.concentration(HEAD, es.Cube(2), queries=NORMAL, lengths=[10, 100], trials=64).plot()
    assert len(two.get_legend().get_texts()) == 3
