"""What comes in: every array protocol, every dtype, every shape, and every kind of nonsense with its sentence."""

import decimal
import fractions
import itertools

import numpy as np
import pytest

import esscher as es

HEAD = es.SoftmaxAttention(np.eye(2), np.eye(2))
TOKENS = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
QUERY = np.array([0.3, -0.2])
EXPECTED = HEAD(TOKENS, QUERY)


class Protocol:
    """An array of another library, known by the protocol alone."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.array, dtype=dtype)


@pytest.mark.parametrize(
    "tokens",
    [
        TOKENS.tolist(),
        tuple(map(tuple, TOKENS)),
        TOKENS.astype(np.float32),
        TOKENS.astype(np.float16),
        TOKENS.astype(np.longdouble),
        TOKENS.astype(">f8"),
        np.asfortranarray(TOKENS),
        np.repeat(TOKENS, 2, axis=0)[::2],
        np.stack([TOKENS, TOKENS], axis=-1)[..., 0],
        TOKENS[::-1][::-1],
        np.ma.masked_array(TOKENS),
        Protocol(TOKENS),
        memoryview(TOKENS),
    ],
    ids=lambda tokens: type(tokens).__name__ + str(getattr(tokens, "dtype", "")),
)
def test_every_kind_of_array_is_read(tokens):
    np.testing.assert_array_equal(HEAD(tokens, QUERY), EXPECTED)


def test_unaligned_arrays_are_read():
    buffer = np.zeros(TOKENS.nbytes + 1, dtype=np.uint8)
    buffer[1:] = np.frombuffer(TOKENS.tobytes(), dtype=np.uint8)
    unaligned = buffer[1:].view(np.float64).reshape(TOKENS.shape)
    assert not unaligned.flags.aligned
    np.testing.assert_array_equal(HEAD(unaligned, QUERY), EXPECTED)


def test_read_only_arrays_are_read():
    tokens = TOKENS.copy()
    tokens.flags.writeable = False
    np.testing.assert_array_equal(HEAD(tokens, QUERY), EXPECTED)


def test_integers_and_truths_are_numbers():
    np.testing.assert_array_equal(HEAD([[1, 0], [0, 1]], QUERY), HEAD([[1.0, 0.0], [0.0, 1.0]], QUERY))
    np.testing.assert_array_equal(HEAD(np.eye(2, dtype=bool), QUERY), HEAD(np.eye(2), QUERY))


def test_numbers_of_every_library_are_numbers():
    for number in (
        np.longdouble(0.5),
        decimal.Decimal("0.5"),
        fractions.Fraction(1, 2),
        np.array(0.5),
        np.float16(0.5),
    ):
        assert ask(query=[number]) == ask(query=[0.5])
        assert es.Sphere(2, radius=number) == es.Sphere(2, radius=0.5)


def test_pandas_and_polars_frames_are_read():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    np.testing.assert_array_equal(HEAD(pandas.DataFrame(TOKENS), QUERY), EXPECTED)
    np.testing.assert_array_equal(HEAD(polars.DataFrame(TOKENS), QUERY), EXPECTED)


def test_jax_arrays_are_read():
    jax = pytest.importorskip("jax")
    np.testing.assert_allclose(HEAD(jax.numpy.asarray(TOKENS), jax.numpy.asarray(QUERY)), EXPECTED, rtol=1e-7)


def test_pytorch_tensors_are_read():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed; bench/python_against_pytorch installs it")
    np.testing.assert_array_equal(HEAD(torch.tensor(TOKENS), torch.tensor(QUERY)), EXPECTED)
    np.testing.assert_allclose(HEAD(torch.tensor(TOKENS).float(), QUERY), EXPECTED, rtol=1e-7)
    with pytest.raises(TypeError, match=r"tokens: expected an array of real numbers: .*detach"):
        HEAD(torch.tensor(TOKENS, requires_grad=True), QUERY)


def broken(position, value):
    tokens = TOKENS.copy()
    tokens[position] = value
    return tokens


# Tokens so wide that the atoms' covariances would fill gigabytes.
WIDE_HEAD = es.SoftmaxAttention(np.eye(3000), np.eye(1, 3000))

NONSENSE = [
    # What is called, the exception, what its sentence must say.
    (lambda: HEAD(broken((2, 1), np.nan), QUERY), ValueError, r"tokens\[2, 1\] is NaN: every entry must be"),
    (lambda: HEAD(broken((0, 0), np.inf), QUERY), ValueError, r"tokens\[0, 0\] is inf"),
    (lambda: HEAD(TOKENS, [np.nan, 0.0]), ValueError, r"query\[0\] is NaN"),
    (lambda: HEAD(TOKENS, [[0.0, 0.0], [0.0, np.nan]]), ValueError, r"NaN"),
    (lambda: HEAD(TOKENS, [1.0, 2.0, 3.0]), ValueError, "query: expected size 2, found 3"),
    (lambda: HEAD(TOKENS, [[1.0, 2.0, 3.0]]), ValueError, r"queries \(last axis\): expected size 2, found 3"),
    (
        lambda: HEAD(TOKENS, 1.0),
        ValueError,
        r"queries: expected an array whose last axis is a vector, found shape \(\)",
    ),
    (lambda: HEAD(TOKENS[0], QUERY), ValueError, r"tokens: expected two axes, a matrix, found shape \(2,\)"),
    (lambda: HEAD(np.empty((0, 2)), QUERY), ValueError, "the prompt: none given"),
    (lambda: HEAD(np.empty((3, 0)), QUERY), ValueError, "dimension"),
    (lambda: HEAD(np.ones((3, 4)), QUERY), ValueError, r"tokens \(dimension\): expected size 2, found 4"),
    (lambda: HEAD(np.array([[1, "a"]], dtype=object), QUERY), TypeError, r"tokens\[0, 1\]: expected .* of type str"),
    (lambda: es.Gaussian([0.0, None], np.eye(2)), TypeError, r"mean\[1\]: expected a real number, found .* NoneType"),
    (lambda: es.Gaussian([10**400], [[1.0]]), ValueError, r"mean\[0\]: the number is too large"),
    (lambda: HEAD([["a", "b"]], QUERY), TypeError, "found dtype <U1"),
    (lambda: HEAD(TOKENS.astype(complex), QUERY), TypeError, "found dtype complex128"),
    (lambda: HEAD(TOKENS.astype("datetime64[s]"), QUERY), TypeError, "found dtype datetime64"),
    (lambda: HEAD(None, QUERY), TypeError, "found an object of type NoneType"),
    (lambda: HEAD(TOKENS, {"a": 1}), TypeError, "queries: expected an array of real numbers"),
    (lambda: HEAD([[1.0, 2.0], [3.0]], QUERY), ValueError, "tokens: expected an array of real numbers"),
    (lambda: HEAD(np.ma.masked_array(TOKENS, TOKENS > 0.9), QUERY), ValueError, "tokens: some entries are masked"),
    (lambda: HEAD(TOKENS * 1e200, QUERY * 1e200), ValueError, "overflows double precision"),
    (lambda: es.SoftmaxAttention(np.eye(2), np.eye(3)), ValueError, r"value matrix \(columns\): expected size 2"),
    (lambda: es.SoftmaxAttention([1.0], [[1.0]]), ValueError, r"score matrix: expected two axes"),
    (lambda: es.SoftmaxAttention(np.empty((0, 0)), np.eye(1)), ValueError, "score matrix"),
    (lambda: es.SoftmaxAttention.from_qkv(np.eye(2), np.eye(2), np.eye(2), scaling="root"), ValueError, "scaling"),
    (lambda: es.SoftmaxAttention.from_qkv(np.eye(2), np.eye(2), np.eye(2), scaling=np.nan), ValueError, "factor"),
    (lambda: es.LinearAttention(np.eye(2), np.eye(2), moment="second"), ValueError, '"raw" or "centred"'),
    (lambda: es.Gaussian([0, 0], [[1, 2], [3, 4]]), ValueError, "not symmetric"),
    (lambda: es.Gaussian([0, 0], [[1, 2], [2, 1]]), ValueError, "not positive semi-definite"),
    (lambda: es.Gaussian([0], [[1, 0], [0, 1]]), ValueError, "size"),
    (lambda: es.Gaussian(0.0, [[1.0]]), ValueError, r"mean: expected one axis, found shape \(\)"),
    (lambda: es.Gaussian.standard(0), ValueError, "the dimension is 0"),
    (lambda: es.Gaussian.standard(10**9), ValueError, "expected a whole number from 1 to 8192"),
    (lambda: es.Gaussian.standard(10**30), ValueError, r"the dimension is 10{30}: expected a whole number"),
    (lambda: es.Gaussian.standard(2.5), ValueError, r"the dimension is 2\.5: expected a whole number"),
    (lambda: es.Cube(True), TypeError, "the dimension: expected a whole number, found an object of type bool"),
    (lambda: es.Cube(2).sample(2, seed=-1), ValueError, "seed is -1: expected a whole number from 0 to 2⁶⁴ − 1"),
    (lambda: es.Cube(2).sample(2, seed="x"), TypeError, "seed: expected a whole number, found an object of type str"),
    (lambda: es.Sphere(2, radius=-1.0), ValueError, "radius"),
    (lambda: es.Laplace(2, scale=np.nan), ValueError, "scale"),
    (lambda: es.Laplace(1).log_partition([2.0]), ValueError, "log-partition of the"),
    (lambda: es.Empirical(TOKENS, weights=[1, -1, 1]), ValueError, r"weight\[1\] is -1: weights must be positive"),
    (lambda: es.Empirical(TOKENS, weights=[1, 1]), ValueError, "weights: expected size 3, found 2"),
    (lambda: es.Mixture([es.Cube(2), es.Cube(2)], weights=[0.0, 1.0]), ValueError, r"weight\[0\] is 0"),
    (lambda: es.Mixture([es.Cube(2), es.Cube(3)]), ValueError, "size"),
    (lambda: es.Mixture([]), ValueError, "none given"),
    (lambda: es.Mixture([1.0]), TypeError, "components: expected measures"),
    (lambda: es.Product([]), ValueError, "none given"),
    (lambda: es.Product([es.Cube(8000), es.Cube(8000)]), ValueError, "at most 8192"),
    (lambda: es.Affine(es.Cube(2), np.eye(3)), ValueError, "size"),
    (lambda: es.Cube(2).sample(-1), ValueError, "count is -1"),
    (lambda: es.Cube(2).sample(10**15), MemoryError, "more than there is memory for"),
    (lambda: es.Cube(2).tilted([1.0]), ValueError, "tilt"),
    (lambda: es.Cube(2).tilted_mean([1.0]), ValueError, "the tilt: expected size 2, found 1"),
    (lambda: es.Cube(2).check_laws(np.empty((0, 2))), ValueError, "tilts"),
    (lambda: es.Cube(2).check_laws([[0.1, 0.1]], draws=10**15), ValueError, "draws is 10{15}: expected"),
    (lambda: es.Cube(2).check_laws([[0.1, 0.1]], draws=-1), ValueError, "draws is -1: expected"),
    (lambda: es.Cube(2).check_laws([[0.1, 0.1]], identity=np.nan), ValueError, "identity is NaN: expected a tolerance"),
    (lambda: es.Cube(2).check_laws([[0.1, 0.1]], derivative=-1), ValueError, "derivative is -1: expected a tolerance"),
    (lambda: es.Sphere(2, radius=10**400), ValueError, "radius: the number is too large"),
    (lambda: es.Sphere(2, radius="a"), TypeError, "radius: expected a real number, found an object of type str"),
    (lambda: es.finite_prompt(WIDE_HEAD, np.ones((256, 3000)), np.ones(3000), [10]), ValueError, "mixture"),
    (lambda: es.run("", progress=False), ValueError, "spec is empty"),
    (lambda: es.run("a = 1", name=3), TypeError, "name: expected a text"),
    (lambda: es.run("a = 1", seed="a"), TypeError, "seed: expected a whole number"),
    (lambda: es.regression([[1.0]]).flow(largest="a"), TypeError, "largest: expected a real number"),
    (lambda: es.regression([[1.0]]).flow(progress=3), TypeError, "progress: expected None, a bool or a function"),
    (lambda: es.Heads(range(10**12)), ValueError, "heads: a list of 10{12}, at most"),
    (lambda: es.Mixture(range(2**62)), (ValueError, OverflowError), "."),
    (lambda: es.Mixture("ab"), TypeError, "components: expected a list, found an object of type str"),
    (lambda: es.Mixture({es.Cube(2): 0.9, es.Rademacher(2): 0.1}), TypeError, "components: expected a list, .* dict"),
    (lambda: es.Product({es.Cube(2)}), TypeError, "factors: expected a list, found an object of type set"),
    (lambda: es.Product([1.0]), TypeError, "factors: expected measures, found an object of type float"),
    (lambda: es.RegressionLayer(range(10**12)), ValueError, "heads: a list of"),
    (lambda: es.Empirical(range(10**12)), MemoryError, "tokens: more numbers than there is memory for"),
    (lambda: es.Cube(np.True_), TypeError, "the dimension: expected a whole number"),
    (lambda: es.SoftmaxAttention.from_qkv(np.eye(2), np.eye(2), np.eye(2), scaling=[1]), TypeError, "scaling"),
    (lambda: es.Custom(2, lambda t: t @ t / 2, sampler=lambda t, n, g: 1 / 0).sample(3), ZeroDivisionError, "division"),
    (lambda: es.response(1e200, 100), ValueError, "overflows double precision"),
    (lambda: es.reproduce(0), TypeError, "only: expected names of claims"),
    (lambda: es.reproduce([]), ValueError, "only: no claim is named"),
    (lambda: es.report("absent", force="no"), TypeError, "force: expected True or False, found an object of type str"),
    (lambda: es.Task(), TypeError, "a Task cannot be made itself: make a LinearRegression"),
    (lambda: es.weight_moments(np.broadcast_to(1.0, 10**15), 9), MemoryError, "score_deviation: more numbers than"),
    (lambda: es.weight_moments(1.0, np.broadcast_to(9, 10**15)), MemoryError, "lengths: more numbers than"),
    (lambda: es.example(None), TypeError, "name: expected a text, found an object of type NoneType"),
    (lambda: es.example("\ud800"), ValueError, "name is '.ud800': expected whole characters"),
    (lambda: es.catalogue(5), TypeError, "group: expected a text, found an object of type int"),
    (lambda: es.schema("\ud800"), ValueError, "question is '.ud800': expected whole characters"),
    (lambda: es.Layer("\ud800", [[1.0]], [[1.0]]), ValueError, "kind is '.ud800': expected whole characters"),
    (lambda: es.zoo.Mechanism("\ud800", key_width=1, value_width=1), ValueError, "name is '.ud800': expected whole"),
    (lambda: es.LinearAttention(np.eye(2), np.eye(2), moment=5), TypeError, "moment: expected a text"),
    (lambda: es.ask("nope"), ValueError, "^question: "),
    (
        lambda: es.Estimate(0.5, "guessed", 0.1),
        ValueError,
        'accuracy is "guessed": expected "exact", "quasi-monte-carlo" or',
    ),
    (lambda: es.Estimate(0.5, "exact", -0.1), ValueError, r"error is -0\.1: expected a number from 0 on"),
    (lambda: es.Estimate("a", "exact", 0.1), TypeError, "value: expected a real number"),
    (lambda: es.Results(None), TypeError, "columns: expected a dictionary of columns by name, found .* NoneType"),
    (lambda: es.Results({"a": MASKED}), ValueError, "column 'a': some entries are masked"),
    (lambda: es.shard("a = 1", 10**5000, 3), ValueError, "index is a number of thousands of digits: expected a whole"),
    (lambda: es.zoo.Mechanism("gla", key_width=1, value_width=1).stream(heads=10**400), ValueError, "401 digits"),
    (lambda: es.Sphere(2, radius=NANOSECONDS[0]), TypeError, r"radius: expected real numbers, found dtype timedelta64"),
    (lambda: es.Sphere(2, radius=np.ma.masked), ValueError, "radius: some entries are masked"),
    (lambda: es.ClassificationTask(1.0, {}), TypeError, "noise: expected a measure"),
    (lambda: es.regression([[1.0]]).baselines(5, ridge="x"), TypeError, "ridge: expected a real number"),
    (lambda: es.regression([[1.0]]).flow(method=5), TypeError, "method: expected a text"),
    (lambda: es.authors_experiment([5], instruction_set=5), TypeError, "instruction_set: expected a text"),
    (lambda: es.Results({"a": 5}), ValueError, "column 'a': expected one axis"),
    (lambda: es.Results({}).plot(), ValueError, "nothing to draw"),
    (lambda: es.Measure(), TypeError, "cannot create"),
    (lambda: es.Attention(), TypeError, "cannot create"),
    (lambda: es.Gradient(), TypeError, "cannot create"),
    (lambda: es.Cube(10**5000), ValueError, "the dimension is a number of thousands of digits: expected"),
    (lambda: es.Cube(10**400), ValueError, r"the dimension is 10{11}… \(401 digits\): expected a whole number"),
    (lambda: es.Block(np.eye(2), 10**400), ValueError, "^gain: the number is too large for double precision"),
    (lambda: es.Block(np.eye(2), "a"), TypeError, "^gain: expected a real number, found an object of type str"),
    (lambda: es.Block.initial(np.eye(2), 10**400), ValueError, "^scale: the number is too large"),
    (lambda: es.toeplitz(3, 10**400), ValueError, "^correlation: the number is too large for double precision"),
    (lambda: es.spiked(3, 10**400), ValueError, "^strength: the number is too large"),
    (lambda: es.SpectralTask([1.0], noise=10**400), ValueError, "^noise: the number is too large"),
    (lambda: es.HighDimensional(1, 2, diversity=10**400), ValueError, "^diversity: the number is too large"),
    (lambda: es.Cube(2).check_laws([[0.1, 0.1]], identity=10**400), ValueError, "^identity: the number is too large"),
    (
        lambda: es.Layer.softmax([[0.5]], [[1.0]]).step(es.Gaussian.standard(1), 10**400),
        ValueError,
        "^step_size: the number is too large",
    ),
    (
        lambda: es.Custom(1, lambda t: float(t @ t / 2), sub_gaussian=10**400),
        ValueError,
        "^sub_gaussian: the number is too large for double precision",
    ),
    (lambda: ask(query=[10**400]), ValueError, "query: the number is too large for double precision"),
    (lambda: ask(query=[10**5000]), ValueError, "query: the number is too large for double precision"),
    (lambda: ask(query=ENDLESS), ValueError, "query: lists or tables are nested deeper than 32, or hold themselves"),
    (lambda: ask(tokens={"family": ENDLESS_TABLE}), ValueError, "nested deeper than 32, or hold themselves"),
    (lambda: ask(query=itertools.count()), ValueError, "query: expected at most 2200000 entries in all, found more"),
    (lambda: ask(kind="attend"), ValueError, "there is no argument kind: the question is horizon"),
    (lambda: es.Sphere(2, radius=np.complex64(3)), TypeError, "radius: expected a real number, found .* complex64"),
    (lambda: es.Cube(np.complex128(3)), TypeError, "the dimension: expected a whole number, found .* complex128"),
    (lambda: ask(query={0.5}), TypeError, "query: expected numbers, words, lists, arrays or tables, found .* type set"),
    (lambda: ask(query=b"ab"), TypeError, "query: expected numbers, .* found an object of type bytes"),
    (lambda: ask(tokens="\ud800"), ValueError, "expected whole characters, without lone surrogates"),
    (lambda: ask(tokens={"\ud800": 1}), ValueError, "a key of tokens is '.ud800': expected whole characters"),
    (lambda: ask(tokens={1: 1}), TypeError, "a key of tokens: expected a text, found an object of type int"),
    (lambda: es.run("a = 1", name="\ud800"), ValueError, r"name is '.ud800': expected a path"),
    (lambda: es.run("a = 1", out="\ud800"), ValueError, "out is '.ud800': expected a path"),
    (lambda: es.run("a = 1", out="a\0"), ValueError, "out is .*: expected a path, which holds no character zero"),
    (lambda: es.run("a = 1", out=3), TypeError, "out: expected a path, a text or a pathlib.Path, found .* type int"),
    (lambda: es.read_run("\ud800"), ValueError, "folder is '.ud800': expected a path"),
    (lambda: es.report([3]), TypeError, "runs: expected a path"),
    (lambda: es.merge(None), TypeError, "folders: expected folders of runs, found an object of type NoneType"),
    (lambda: es.merge(np.array(3)), TypeError, "folders: expected folders of runs, found an object of type ndarray"),
    (lambda: es.report(np.array(3)), TypeError, "runs: expected folders of runs, found an object of type ndarray"),
    (lambda: es.reproduce("\ud800"), ValueError, "only is '.ud800': expected whole characters"),
    (lambda: es.run("a = 1", engine=QUERY), TypeError, "engine: expected a text, found an object of type ndarray"),
    (lambda: es.run(QUERY), TypeError, "spec is ndarray: expected the path"),
    (lambda: es.run("a = 1", name=QUERY), TypeError, "name: expected a text, found an object of type ndarray"),
    (lambda: es.Estimate(0.5, QUERY, 0.1), TypeError, "accuracy: expected a text, found an object of type ndarray"),
    (lambda: es.depth(NORMAL, 3), TypeError, "layers: expected Layer objects, found an object of type int"),
    (
        lambda: es.depth(NORMAL, np.array(3)),
        TypeError,
        "layers: expected Layer objects, found an object of type ndarray",
    ),
    (lambda: es.depth(DEEP, []), TypeError, "start: expected a Gaussian, found an object of type list"),
    (lambda: es.depth(10**5000, []), TypeError, "start: expected a Gaussian, found an object of type int"),
    (lambda: es.depth(es.Cube(2), []), TypeError, r"start: expected a Gaussian, found Cube\(dimension=2\)"),
    (lambda: es.Affine([[1.0]], [[1.0]]), TypeError, "base: expected a measure, found an object of type list"),
    (lambda: TASK.descend(BLOCK, 5, state=3), TypeError, "state: expected a DescentState, found an object of type int"),
    (lambda: TASK.baselines(5, neighbours=None), TypeError, "neighbours: expected a whole number, found .* NoneType"),
    (lambda: TASK.baselines(5, gradient_step=None), TypeError, "gradient_step: expected a real number, found .* None"),
    (lambda: TASK.baselines(5, ridge=10**400), ValueError, "ridge: the number is too large for double precision"),
    (lambda: TASK.flow(None, initial=10**400), ValueError, "^initial: the number is too large for double precision"),
    (lambda: TASK.spectral.flow(None, initial=10**400), ValueError, "^initial: the number is too large for double"),
    (lambda: es.regression(x for x in [1]), TypeError, "covariance.*: expected .*generator"),
    (lambda: es.regression(DEEP), (TypeError, ValueError), "covariance"),
    (lambda: es.LinearTask(x for x in [1]), TypeError, "covariates: expected .*generator"),
    (lambda: es.regime(np.ones((1,) * 40), 10), (ValueError, TypeError), "score_deviation: expected at most 32 axes"),
    (lambda: es.zoo.Mechanism("gla", key_width=1, value_width=1).stream(dtype="\ud800"), TypeError, "dtype: expected"),
    (lambda: es.Results({1: [1], "1": [2]}), ValueError, "columns: two of them are called '1'"),
    (
        lambda: es.Results({}, notes=None),
        TypeError,
        "notes: expected a list of texts, found an object of type NoneType",
    ),
    (lambda: es.Results({}, notes=[3]), TypeError, "notes: expected a list of texts, found an object of type int"),
    (lambda: es.Results({}, notes="ab"), TypeError, "notes: expected a list of texts, found an object of type str"),
    (lambda: es.Results({}, title=5), TypeError, "title: expected a text, found an object of type int"),
    (
        lambda: es.Results({"a": [1.0], "b": [1.0]}).plot(ax=3),
        TypeError,
        "ax: expected axes of matplotlib, found .* int",
    ),
    (lambda: es.LinearAttention(np.eye(2), np.eye(2), moment="a\nb"), ValueError, r'moment is "a\\nb": expected'),
    (
        lambda: ask(query=np.ones((2000, 2000))),
        ValueError,
        "query: expected at most 2200000 entries in all, found 4000000",
    ),
    (
        lambda: ask(query=np.broadcast_to(1.0, (10**6, 10**6))),
        ValueError,
        "query: expected at most 2200000 entries in all",
    ),
    (
        lambda: ask(query=[[1.0] * 10**5] * 100),
        ValueError,
        "query: expected at most 2200000 entries in all, found more",
    ),
    (lambda: es.regime(1.0, np.broadcast_to(9, 10**9)), MemoryError, "length: more numbers than are read one by one"),
    (lambda: state(parameters=[np.nan]), ValueError, "parameters: expected finite numbers, found NaN"),
    (lambda: state(smoothed_loss=np.nan), ValueError, "smoothed_loss: expected finite numbers, found NaN"),
    (lambda: state(smoothed_loss="a"), TypeError, "smoothed_loss: expected a real number, found an object of type str"),
    (lambda: state(second_moment=[np.inf]), ValueError, "second_moment: expected finite numbers, found inf"),
    (lambda: state(rows=[(0, None, None, [np.inf])]), ValueError, "rows: expected finite numbers, found inf"),
    (
        lambda: state(rows=[3]),
        TypeError,
        "rows: expected rows of step, smoothed loss, balance and parameters, found .* int",
    ),
]

TASK = es.regression([[1.0]])
BLOCK = es.Block([[0.1]], 0.1)

# Lists inside each other, more than Python follows.
DEEP: list[object] = []
for _ in range(100_000):
    DEEP = [DEEP]


def state(**given):
    usual = dict(step=1, parameters=[1.0], first_moment=[], second_moment=[], smoothed_loss=None, rows=[])
    return es.DescentState(**{**usual, **given})


# Numbers that were not meant as such.
MASKED = np.ma.array([1.0, 2.0], mask=[False, True])
NANOSECONDS = np.array([5, 6], dtype="timedelta64[ns]")

# What holds itself.
ENDLESS: list[object] = []
ENDLESS.append(ENDLESS)
ENDLESS_TABLE: dict[str, object] = {}
ENDLESS_TABLE["family"] = ENDLESS_TABLE


def ask(**request):
    return es.ask("horizon", **{"tokens": "gaussian:1", "query": [0.5], "tolerance": 0.01, **request})


@pytest.mark.parametrize(("call", "exception", "sentence"), NONSENSE)
def test_nonsense_gets_a_sentence(call, exception, sentence):
    with pytest.raises(exception, match=sentence) as raised:
        call()
    assert "panick" not in str(raised.value)


NORMAL = es.Gaussian.standard(2)
NUMBERS = {
    "a mean": lambda numbers: es.Gaussian(numbers, np.eye(2)),
    "a list of arrays": lambda numbers: HEAD([numbers, numbers], QUERY),
    "norms": lambda numbers: es.rate_exponent(numbers),
    "lengths of regimes": lambda numbers: es.regime(1.0, numbers),
    "score deviations": lambda numbers: es.weight_moments(numbers, 10),
    "lengths of moments": lambda numbers: es.weight_moments(1.0, numbers),
    "lengths of shrinkage": lambda numbers: es.shrinkage(1.0, numbers),
    "lengths of pairs": lambda numbers: es.opposite_pair(1.0, numbers),
    "lengths of prompts": lambda numbers: es.finite_prompt(HEAD, NORMAL, QUERY, numbers),
    "lengths of a fit": lambda numbers: es.rate_fit(numbers, [1.0, 0.1]),
    "lengths of slopes": lambda numbers: es.local_slopes(numbers, [1.0, 0.1]),
    "lengths of a study": lambda numbers: es.concentration(HEAD, NORMAL, queries=NORMAL, lengths=numbers),
    "lengths of a training": lambda numbers: es.authors_experiment(numbers, steps=1),
    "score variances": lambda numbers: es.response(numbers, 10),
    "a query": lambda numbers: ask(tokens="gaussian:2", query=numbers),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_masked_entries_and_times_are_no_numbers(name):
    with pytest.raises(ValueError, match="some entries are masked: fill them or leave them out"):
        NUMBERS[name](MASKED)
    with pytest.raises(TypeError, match=r"expected real numbers, found dtype timedelta64\[ns\]"):
        NUMBERS[name](NANOSECONDS)


def test_a_mask_that_hides_nothing_is_none():
    assert es.rate_exponent(np.ma.array([0.5, 0.6])).tolist() == [1.0, 1.0]


def test_objects_that_are_numbers_are_read():
    law = es.Gaussian([2**70, fractions.Fraction(1, 2), decimal.Decimal("0.25")], np.eye(3))
    assert law.mean().tolist() == [2.0**70, 0.5, 0.25]


@pytest.mark.parametrize("raised", [KeyboardInterrupt, MemoryError])
def test_what_a_number_raises_itself_is_not_swallowed(raised):
    class Number:
        def __float__(self):
            raise raised("mine")

    for call in (lambda: es.Sphere(2, radius=Number()), lambda: es.Cube(Number()), lambda: es.regime(1.0, Number())):
        with pytest.raises(raised, match="mine"):
            call()
