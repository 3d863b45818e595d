"""Every mechanism of the zoo from Python: forms that agree, streams, batches, derivatives, and nonsense refused."""

import copy
import keyword
import pickle
import threading

import numpy as np
import pytest

import esscher as es
from esscher import zoo

ENTRIES = zoo.mechanisms()
NAMES = [entry.name for entry in ENTRIES]
LENGTH = 11
WITHOUT_TORCH = "PyTorch is not installed; bench/zoo_bridge_against_autograd installs it"

every_mechanism = pytest.mark.parametrize("name", NAMES)


def make(name):
    """A mechanism of an odd head."""
    return zoo.Mechanism(name, key_width=4, value_width=3)


def draw(mechanism, *axes, seed=0, dtype=np.float64):
    """Allowed numbers for every port."""
    random = np.random.default_rng(seed)

    def numbers(port):
        normal = random.normal(size=(*axes, port.width))
        return {
            "log decay": -0.1 * np.exp(normal),
            "rate": 0.1 * np.exp(normal),
            "fraction": 1 / (1 + np.exp(normal)),
        }.get(port.meaning, normal)

    return {port.name: numbers(port).astype(dtype) for port in mechanism.ports}


def draw_parameters(mechanism, heads=None, seed=1):
    """Parameters a little away from where they start."""
    random = np.random.default_rng(seed)
    start = mechanism.initial_parameters(heads=heads)
    return {name: numbers + 0.05 * random.normal(size=numbers.shape) for name, numbers in start.items()}


def token(tokens, index):
    return {name: rows[index] for name, rows in tokens.items()}


def close(found, expected, tolerance=1e-10):
    scale = max(np.abs(expected).max(), 1e-300)
    assert np.shape(found) == np.shape(expected)
    assert np.abs(found - expected).max() <= tolerance * scale


def test_the_catalogue_is_a_tuple_and_a_table():
    assert len(set(NAMES)) == len(NAMES) > 0
    table = zoo.table()
    assert table["name"].tolist() == NAMES
    assert table["causal"].tolist() == [make(name).causal for name in NAMES]
    assert es.zoo is zoo


@every_mechanism
def test_names_of_ports_and_parameters_are_keywords_that_collide_with_nothing(name):
    mechanism = make(name)
    names = [each.name for each in (*mechanism.ports, *mechanism.parameters)]
    taken = {
        "parameters",
        "lengths",
        "packed",
        "initial",
        "form",
        "return_state",
        "output_slopes",
        "state_slopes",
        "channel",
    }
    assert len(set(names)) == len(names)
    assert all(each.isidentifier() and each not in taken for each in names)
    assert not any(keyword.iskeyword(port.name) for port in mechanism.ports)


@every_mechanism
def test_the_three_forms_agree(name):
    mechanism = make(name)
    parameters = draw_parameters(mechanism)
    tokens = draw(mechanism, LENGTH)
    expected, last = mechanism(**tokens, parameters=parameters, form="reference", return_state=True)
    assert expected.shape == (LENGTH, mechanism.output_width)
    assert last.seen == LENGTH
    for form in ("recurrent", "chunked"):
        found, state = mechanism(**tokens, parameters=parameters, form=form, return_state=True)
        close(found, expected)
        close(state.numbers, last.numbers)
        assert state.seen == LENGTH
    single = {name: rows.astype(np.float32) for name, rows in tokens.items()}
    found = mechanism(**single, parameters=parameters)
    assert found.dtype == np.float32
    close(found, expected, 2e-4)


@every_mechanism
def test_a_stream_gives_what_the_whole_sequence_gives(name):
    mechanism = make(name)
    parameters = draw_parameters(mechanism, heads=2)
    tokens = draw(mechanism, LENGTH, 2)
    expected, last = mechanism(**tokens, parameters=parameters, return_state=True)
    stream = mechanism.stream(parameters, heads=2)
    if mechanism.causal:
        first = [stream.step(**token(tokens, index)) for index in range(4)]
        rest = stream.extend(**token(tokens, slice(4, None)))
        close(np.concatenate([first, rest]), expected)
    else:
        for index in range(LENGTH):
            stream.absorb(**token(tokens, index))
        close(np.array([stream.read(**token(tokens, index)) for index in range(LENGTH)]), expected)
        with pytest.raises(ValueError, match="absorb, then read"):
            stream.step(**token(tokens, 0))
    assert stream.seen == LENGTH
    assert stream.bytes == last.numbers.nbytes
    close(stream.state.numbers, last.numbers)


@every_mechanism
def test_streams_are_copied_pickled_and_set(name):
    mechanism = make(name)
    tokens = draw(mechanism, 6, dtype=np.float32)
    stream = mechanism.stream(draw_parameters(mechanism), dtype="float32")
    stream.extend(**token(tokens, slice(0, 4)))
    twins = [stream.copy(), copy.deepcopy(stream), pickle.loads(pickle.dumps(stream))]
    fresh = mechanism.stream(draw_parameters(mechanism), dtype="float32")
    fresh.state = stream.state
    before = stream.state.numbers
    expected = stream.extend(**token(tokens, slice(4, 6)))
    for twin in (*twins, fresh):
        np.testing.assert_array_equal(twin.state.numbers, before)
        np.testing.assert_array_equal(twin.extend(**token(tokens, slice(4, 6))), expected)
    assert expected.dtype == np.float32


@every_mechanism
def test_a_fresh_stream_can_be_pickled(name):
    stream = pickle.loads(pickle.dumps(make(name).stream(heads=2)))
    assert stream.seen == 0


@every_mechanism
def test_packed_and_padded_sequences_are_those_one_by_one(name):
    mechanism = make(name)
    lengths, heads = [3, 7, 1], 2
    parameters = draw_parameters(mechanism, heads)
    padded = draw(mechanism, len(lengths), 7, heads)
    ends = np.cumsum(lengths)
    alone = [
        mechanism(**{name: rows[i, :n] for name, rows in padded.items()}, parameters=parameters, return_state=True)
        for i, n in enumerate(lengths)
    ]
    for name, rows in padded.items():
        for index, length in enumerate(lengths):
            rows[index, length:] = np.nan if name == "value" else 0.0  # padding may be anything
    packed = {n: np.concatenate([rows[i, :m] for i, m in enumerate(lengths)]) for n, rows in padded.items()}
    found, states = mechanism(**padded, parameters=parameters, lengths=lengths, return_state=True)
    together, last = mechanism(**packed, parameters=parameters, packed=np.array(lengths), return_state=True)
    for index, (length, end) in enumerate(zip(lengths, ends, strict=True)):
        expected, state = alone[index]
        np.testing.assert_array_equal(found[index, :length], expected)
        np.testing.assert_array_equal(found[index, length:], 0)
        np.testing.assert_array_equal(together[end - length : end], expected)
        for one in (states[index], last[index]):
            np.testing.assert_array_equal(one.numbers, state.numbers)
            assert one.seen == length


@every_mechanism
def test_a_sequence_goes_on_from_a_state(name):
    mechanism = make(name)
    tokens = draw(mechanism, LENGTH, 2)
    expected, last = mechanism(**tokens, return_state=True)
    _, middle = mechanism(**token(tokens, slice(0, 5)), return_state=True)
    middle = pickle.loads(pickle.dumps(middle))
    for form in ("chunked", "recurrent"):
        found, state = mechanism(**token(tokens, slice(5, None)), initial=middle, form=form, return_state=True)
        close(found, expected[5:])
        close(state.numbers, last.numbers)


@every_mechanism
def test_derivatives_are_those_of_finite_differences(name):
    mechanism = make(name)
    heads, lengths = 2, [2, 4]
    parameters = draw_parameters(mechanism, heads)
    tokens = draw(mechanism, 2, 4, heads, seed=3)
    random = np.random.default_rng(4)
    slopes = random.normal(size=mechanism(**tokens, parameters=parameters).shape)

    def loss(changed):
        ports = {name: changed[name] for name in tokens}
        rest = {name: changed[name] for name in parameters}
        return float((slopes * mechanism(**ports, parameters=rest, lengths=lengths)).sum())

    gradient = mechanism.gradient(slopes, **tokens, parameters=parameters, lengths=lengths)
    everything = {**tokens, **parameters}
    assert {name: array.shape for name, array in gradient.items()} == {n: a.shape for n, a in everything.items()}
    largest = max(np.abs(array).max() for array in gradient.values())
    for name, numbers in everything.items():
        direction = random.normal(size=numbers.shape)
        # A multiple of the number keeps gates inside of what they may be.
        step = 1e-6 * (numbers * np.tanh(direction) if name in tokens else direction)
        up, down = ({**everything, name: numbers + sign * step} for sign in (1, -1))
        expected = (loss(up) - loss(down)) / 2
        found = float((gradient[name] * step).sum())
        assert abs(found - expected) <= 1e-6 * max(1e-6 * largest, np.abs(step).max() * largest), name


@every_mechanism
def test_derivatives_pass_through_the_final_state(name):
    mechanism = make(name)
    tokens = draw(mechanism, 6, seed=5)
    parameters = draw_parameters(mechanism)
    outputs, last = mechanism(**tokens, parameters=parameters, return_state=True)
    slopes = zoo.State(last.seen, np.random.default_rng(6).normal(size=last.numbers.shape))
    none = np.zeros_like(outputs)
    found = mechanism.gradient(none, state_slopes=slopes, **tokens, parameters=parameters)

    def loss(port, numbers):
        state = mechanism(**{**tokens, port: numbers}, parameters=parameters, return_state=True)[1]
        return float((slopes.numbers * state.numbers).sum())

    largest = max(np.abs(array).max() for array in found.values())
    for port, numbers in tokens.items():
        step = 1e-6 * numbers * np.sign(np.random.default_rng(7).normal(size=numbers.shape))
        expected = (loss(port, numbers + step) - loss(port, numbers - step)) / 2
        assert abs((found[port] * step).sum() - expected) <= 1e-11 * max(largest, 1.0) * max(1, np.abs(numbers).max())


@every_mechanism
def test_dynamical_systems_give_the_outputs(name):
    mechanism = make(name)
    tokens = draw(mechanism, 7)
    claimed = ENTRIES[NAMES.index(name)].dynamical_system
    if not claimed:
        with pytest.raises(ValueError, match="has no dynamical system"):
            mechanism.dynamical_system(**tokens)
        return
    system = mechanism.dynamical_system(**tokens)
    close(system.simulate(tokens[system.input_port]), mechanism(**tokens))
    single = {name: rows.astype(np.float32) for name, rows in tokens.items()}
    assert mechanism.dynamical_system(**single).transition.shape == system.transition.shape


@every_mechanism
def test_weights_times_values_are_the_outputs(name):
    mechanism = make(name)
    tokens = draw(mechanism, 6)
    try:
        weights = mechanism.weights(**tokens, channel=1)
    except ValueError as refused:
        assert "\n" not in str(refused)  # noqa: PT017
        return
    entry = ENTRIES[NAMES.index(name)]
    port = mechanism.dynamical_system(**tokens).input_port if entry.dynamical_system else "value"
    alone = np.zeros_like(tokens[port])
    none = mechanism(**but(tokens, **{port: alone}))
    alone[:, 1] = tokens[port][:, 1]
    close(weights @ alone[:, 1], (mechanism(**but(tokens, **{port: alone})) - none)[:, 1], 1e-9)
    if entry.normalised:
        # A query whose features all vanish has no weights at all.
        sums = weights.sum(axis=1)[np.abs(weights).max(axis=1) > 0]
        assert len(sums) > 3
        close(sums, np.ones_like(sums), 1e-5)


def test_weights_of_softmax_are_those_of_its_definition():
    mechanism = make("softmax")
    tokens = draw(mechanism, 6)
    scores = np.exp(tokens["query"] @ tokens["key"].T / 2) * np.tri(6)
    close(mechanism.weights(**tokens), scores / scores.sum(axis=1, keepdims=True))


@every_mechanism
def test_every_kind_of_array_is_read(name):
    mechanism = make(name)
    tokens = draw(mechanism, 5, 2)
    expected = mechanism(**tokens)
    for change in (
        lambda rows: rows.astype(">f8"),
        np.asfortranarray,
        lambda rows: np.repeat(rows, 2, axis=0)[::2],
        lambda rows: rows.tolist(),
        lambda rows: np.ma.masked_array(rows),
    ):
        np.testing.assert_array_equal(mechanism(**{name: change(rows) for name, rows in tokens.items()}), expected)
    kept = {name: rows.copy() for name, rows in tokens.items()}
    for rows in kept.values():
        rows.flags.writeable = False
    np.testing.assert_array_equal(mechanism(**kept), expected)
    swapped = mechanism(**{name: rows.astype(">f4") for name, rows in tokens.items()})
    assert swapped.dtype == np.float32
    assert swapped.dtype.isnative


def test_integers_are_numbers():
    ones = {port.name: np.zeros((3, port.width), dtype=int) for port in make("gla").ports}
    assert make("gla")(**ones).dtype == np.float64


def test_parameters_start_by_seed():
    for name in NAMES:
        mechanism = make(name)
        first, again, other = (mechanism.initial_parameters(seed, heads=2) for seed in (1, 1, 2))
        for parameter in mechanism.parameters:
            shape = (parameter.size,) if parameter.shared else (2, parameter.size)
            assert first[parameter.name].shape == shape
            np.testing.assert_array_equal(first[parameter.name], again[parameter.name])
        assert other.keys() == first.keys()
        assert all(array.dtype == np.float32 for array in mechanism.initial_parameters(dtype=np.float32).values())


def test_mechanisms_are_compared_and_pickled():
    mechanism = make("gla")
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism == make("gla")
    assert mechanism != zoo.Mechanism("gla", key_width=1, value_width=3)
    assert len({mechanism, make("gla")}) == 1
    assert repr(mechanism) == 'Mechanism("gla", key_width=4, value_width=3)'
    assert "seen=0" in repr(mechanism.stream())


def test_answers_are_the_same_on_many_python_threads():
    mechanism = make("gla")
    tokens = draw(mechanism, 4, 200, 2)
    expected, found = mechanism(**tokens), [None] * 4

    def work(index):
        found[index] = mechanism(**tokens)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for outputs in found:
        np.testing.assert_array_equal(outputs, expected)


def test_a_stream_that_another_thread_uses_says_so():
    stream = zoo.Mechanism("gla", key_width=1, value_width=1).stream()

    class Row:
        """An array that is asked for while the stream reads it."""

        def __array__(self, dtype=None, copy=None):
            stream._native.seen  # noqa: B018
            return np.ones(1)

    with pytest.raises(TypeError, match="the stream is used by another thread: make one per thread"):
        stream._native.act("step", [Row()] * 4)


GATED = make("gla")
GOOD = draw(GATED, 5)
HEADS = draw(GATED, 5, 2)
BATCH = draw(GATED, 2, 5, 2)
STATE = GATED(**GOOD, return_state=True)[1]


def but(tokens, **changes):
    return {**tokens, **changes}


def broken(port, place, number):
    rows = GOOD[port].copy()
    rows[place] = number
    return but(GOOD, **{port: rows})


def without(port):
    return {name: rows for name, rows in GOOD.items() if name != port}


NONSENSE = [
    # What is called, the exception, what its sentence must say.
    (lambda: zoo.Mechanism("gal", key_width=1, value_width=1), ValueError, 'no mechanism is called "gal"; there are'),
    (lambda: zoo.Mechanism(3, key_width=1, value_width=1), TypeError, "name: expected a text"),
    (lambda: zoo.Mechanism("gla", key_width=0, value_width=1), ValueError, "key_width: expected 1 to 4096, found 0"),
    (lambda: zoo.Mechanism("gla", key_width=1, value_width=10**6), ValueError, "value_width: expected 1 to 4096"),
    (lambda: zoo.Mechanism("gla", key_width=10**30, value_width=1), ValueError, "key_width is 10{30}"),
    (lambda: zoo.Mechanism("gla", key_width="a", value_width=1), TypeError, "key_width: expected a whole number"),
    (lambda: zoo.Mechanism("gla", key_width=1.5, value_width=1), ValueError, r"key_width is 1\.5"),
    (lambda: GATED(**without("key")), TypeError, "missing port key: gla has the ports query, key, value, log_decay"),
    (lambda: GATED(**GOOD, gate=1), TypeError, "unknown port gate: gla has the ports query, key, value, log_decay"),
    (lambda: GATED(), TypeError, "missing port query, key, value, log_decay"),
    (lambda: GATED(GOOD), TypeError, "positional"),
    (lambda: GATED(**broken("query", (1, 2), np.nan)), ValueError, r"query\[1, 2\] is NaN: expected a finite number"),
    (lambda: GATED(**broken("key", (4, 0), np.inf)), ValueError, r"key\[4, 0\] is inf: expected a finite number"),
    (lambda: GATED(**broken("log_decay", (2, 3), 0.5)), ValueError, r"log_decay\[2, 3\] is 0\.5: .* at most 0"),
    (lambda: GATED(**but(GOOD, key=np.ones((5, 7)))), ValueError, r"key: expected width 4 \(last axis\)"),
    (lambda: GATED(**but(GOOD, key=np.ones((4, 4)))), ValueError, r"key: expected shape \(5, 4\), found \(4, 4\)"),
    (lambda: GATED(**but(GOOD, key=np.ones(4))), ValueError, r"key: expected shape \(length, width\) or"),
    (lambda: GATED(**but(GOOD, key=1.0)), ValueError, r"key: .* found \(\)"),
    (lambda: GATED(**but(HEADS, key=np.ones((5, 3, 4)))), ValueError, r"key: expected shape \(5, 2, 4\)"),
    (lambda: GATED(**{n: r[:0] for n, r in GOOD.items()}), ValueError, "at least one token"),
    (lambda: GATED(**{n: r[:, :0] for n, r in HEADS.items()}), ValueError, "at least one token, head and sequence"),
    (lambda: GATED(**{n: r[:0] for n, r in BATCH.items()}), ValueError, "at least one token, head and sequence"),
    (lambda: GATED(**but(GOOD, key=GOOD["key"].astype(np.float32))), TypeError, "query is float64, key is float32"),
    (lambda: GATED(**but(GOOD, key=GOOD["key"].astype(complex))), TypeError, "key: .* found dtype complex128"),
    (lambda: GATED(**but(GOOD, key=None)), TypeError, "key: expected an array of real numbers"),
    (lambda: GATED(**but(GOOD, key=[["a"] * 4] * 5)), TypeError, "key: .*found dtype <U1"),
    (lambda: GATED(**but(GOOD, key=[[1.0], [1.0, 2.0]])), ValueError, "key: expected an array of real numbers"),
    (lambda: GATED(**but(GOOD, key=np.ma.masked_greater(GOOD["key"], 0))), ValueError, "key: some entries are masked"),
    (lambda: GATED(**{n: np.broadcast_to(r[:1], (10**12, r.shape[1])) for n, r in GOOD.items()}), MemoryError, "query"),
    (
        lambda: GATED(**GOOD, form="fast"),
        ValueError,
        'form is "fast": expected "chunked" or "recurrent" or "reference"',
    ),
    (lambda: GATED(**GOOD, lengths=[5]), ValueError, "lengths are of a padded batch"),
    (lambda: GATED(**BATCH, packed=[5]), ValueError, "packed sequences have no batch axis"),
    (lambda: GATED(**BATCH, lengths=[5]), ValueError, "lengths: expected 2, one per sequence, found 1"),
    (lambda: GATED(**BATCH, lengths=[5, 6]), ValueError, "lengths is 6: expected a whole number from 1 to 5"),
    (lambda: GATED(**BATCH, lengths=[5, 0]), ValueError, "lengths is 0"),
    (lambda: GATED(**BATCH, lengths=[5, 1.5]), TypeError, "lengths: expected a whole number"),
    (lambda: GATED(**BATCH, lengths=[5, True]), TypeError, "lengths: expected a whole number"),
    (lambda: GATED(**BATCH, lengths=5), TypeError, "lengths: expected a list"),
    (lambda: GATED(**GOOD, packed=np.array(5)), TypeError, "packed: expected a list, found an object of type ndarray"),
    (
        lambda: GATED(**GOOD, initial=np.array(5)),
        TypeError,
        "initial: expected a list, found an object of type ndarray",
    ),
    (
        lambda: GATED.gradient(np.ones((5, 3)), state_slopes=np.array(5), **GOOD),
        TypeError,
        "state_slopes: expected a list, found an object of type ndarray",
    ),
    (lambda: GATED(**GOOD, packed=[2, 2]), ValueError, "packed: expected lengths whose sum is 5, found 4"),
    (lambda: GATED(**GOOD, packed=[]), ValueError, "packed: expected lengths whose sum is 5, found 0"),
    (lambda: GATED(**GOOD, packed=[-1, 6]), ValueError, "packed is -1"),
    (lambda: GATED(**GOOD, packed=[10**30]), ValueError, "packed is 10{30}"),
    (lambda: GATED(**GOOD, parameters={"scale": 1}), TypeError, "unknown parameter scale: gla has no parameters"),
    (lambda: GATED(**GOOD, parameters=[1]), TypeError, "parameters: expected a dictionary by name"),
    (lambda: GATED(**GOOD, initial=3), TypeError, "initial: expected a list"),
    (lambda: GATED(**GOOD, initial=[3]), TypeError, "initial: expected a State"),
    (lambda: GATED(**BATCH, initial=STATE), ValueError, "initial: expected 2, one state per sequence, found 1"),
    (
        lambda: GATED(**HEADS, initial=STATE),
        ValueError,
        r"initial: expected shape \(2, 12\) after 5 tokens, found shape \(1, 12",
    ),
    (lambda: GATED(**GOOD, initial=zoo.State(5, np.ones((1, 3)))), ValueError, r"initial: expected shape \(1, 12\)"),
    (lambda: GATED(**GOOD, initial=zoo.State(5, np.full((1, 12), np.nan))), ValueError, "initial: entry 0 is NaN"),
    (lambda: GATED(**GOOD, initial=zoo.State(-1, STATE.numbers)), ValueError, "seen is -1"),
    (lambda: GATED(**GOOD, initial=STATE, form="reference"), ValueError, "the reference starts from the empty state"),
    (lambda: GATED.gradient(np.ones((5, 2)), **GOOD), ValueError, r"output_slopes: expected shape \(5, 3\)"),
    (lambda: GATED.gradient(np.full((5, 3), np.nan), **GOOD), ValueError, "output_slopes: expected finite numbers"),
    (
        lambda: GATED.gradient(np.ones((5, 3)), state_slopes=zoo.State(5, np.ones((1, 2))), **GOOD),
        ValueError,
        r"state_slopes: expected shape \(1, 12\) after 5 tokens, found shape \(1, 2\)",
    ),
    (lambda: GATED.initial_parameters(-1), ValueError, "seed is -1"),
    (lambda: GATED.initial_parameters(heads=0), ValueError, "heads is 0"),
    (lambda: GATED.initial_parameters(dtype=np.float16), TypeError, "dtype: expected float32 or float64"),
    (lambda: GATED.stream(dtype="no"), TypeError, "dtype: expected float32 or float64, found 'no'"),
    (lambda: GATED.stream(heads=0), ValueError, "heads is 0"),
    (lambda: GATED.stream(heads=2.5), TypeError, "heads: expected a whole number"),
    (lambda: zoo.Mechanism("gla", key_width=4096, value_width=4096).stream(heads=10**6), MemoryError, "states of"),
    (lambda: GATED.stream().step(**GOOD), ValueError, r"query: expected shape \(width,\), found \(5, 4\)"),
    (lambda: GATED.stream().extend(**token(GOOD, 0)), ValueError, r"query: expected shape \(length, width\)"),
    (lambda: GATED.stream().extend(**token(GOOD, slice(0, 0))), ValueError, "at least one token"),
    (lambda: GATED.stream(heads=3).step(**token(HEADS, 0)), ValueError, "heads: the stream has 3, the ports have 2"),
    (
        lambda: GATED.stream(dtype="float32").step(**token(GOOD, 0)),
        TypeError,
        "ports are float64, the stream is float32",
    ),
    (lambda: GATED.stream().step(**token(broken("key", (0, 1), np.nan), 0)), ValueError, r"key\[1\] is NaN"),
    (lambda: setattr(GATED.stream(), "state", 3), TypeError, "state: expected a State"),
    (lambda: setattr(GATED.stream(), "state", zoo.State(1, [[1.0]])), ValueError, r"state: expected shape \(1, 12\)"),
    (lambda: GATED.dynamical_system(**HEADS), ValueError, "a dynamical system: of one sequence and head"),
    (
        lambda: zoo.Mechanism("gla", key_width=4096, value_width=4096).dynamical_system(
            query=np.ones((1, 4096)), key=np.ones((1, 4096)), value=np.ones((1, 4096)), log_decay=np.zeros((1, 4096))
        ),
        ValueError,
        "the dynamical system has .* use narrower heads",
    ),
    (lambda: GATED.weights(**HEADS), ValueError, "weights: of one sequence and head"),
    (lambda: GATED.weights(**GOOD, channel=3), ValueError, "channel is 3: expected a whole number from 0 to 2"),
    (lambda: GATED.dynamical_system(**GOOD).simulate(np.ones((2, 3))), ValueError, r"inputs: expected shape \(5, 3\)"),
]


@pytest.mark.parametrize(("call", "exception", "sentence"), NONSENSE, ids=range(len(NONSENSE)))
def test_nonsense_gets_a_sentence(call, exception, sentence):
    with pytest.raises(exception, match=sentence) as raised:
        call()
    assert "panick" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_failed_step_leaves_the_stream_as_it_was():
    stream = GATED.stream()
    stream.step(**token(GOOD, 0))
    before = stream.state.numbers
    with pytest.raises(ValueError, match="NaN"):
        stream.step(**token(broken("value", (1, 0), np.nan), 1))
    np.testing.assert_array_equal(stream.state.numbers, before)
    assert stream.seen == 1


@every_mechanism
def test_parameters_of_wrong_names_and_shapes_are_refused(name):
    mechanism = make(name)
    tokens, parameters = draw(mechanism, 3, 2), draw_parameters(mechanism, heads=2)
    for each in mechanism.parameters:
        with pytest.raises(TypeError, match=f"missing parameter {each.name}"):
            mechanism(**tokens, parameters={n: v for n, v in parameters.items() if n != each.name})
        with pytest.raises(ValueError, match=f"{each.name}: expected shape"):
            mechanism(**tokens, parameters=but(parameters, **{each.name: np.ones(each.size + 1)}))
        with pytest.raises(ValueError, match=rf"{each.name}\[.*0\] is NaN: expected a finite number"):
            mechanism(**tokens, parameters=but(parameters, **{each.name: np.nan * parameters[each.name]}))
        with pytest.raises(ValueError, match=rf"{each.name}\[.*0\] is NaN: expected a finite number"):
            mechanism.stream(but(parameters, **{each.name: np.nan * parameters[each.name]}), heads=2)


@every_mechanism
def test_pytorch_takes_the_same_derivatives(name):
    torch = pytest.importorskip("torch", reason=WITHOUT_TORCH)
    from esscher import zoo_torch

    mechanism = make(name)
    tokens, parameters = draw(mechanism, 2, 4, 2), draw_parameters(mechanism, 2)
    lengths = [4, 2]
    tensors = {n: torch.tensor(rows, requires_grad=True) for n, rows in tokens.items()}
    constants = {n: torch.tensor(numbers, requires_grad=True) for n, numbers in parameters.items()}
    outputs = zoo_torch.apply(mechanism, parameters=constants, lengths=lengths, **tensors)
    expected = mechanism(**tokens, parameters=parameters, lengths=lengths)
    np.testing.assert_array_equal(outputs.detach().numpy(), expected)
    slopes = np.random.default_rng(8).normal(size=expected.shape)
    outputs.backward(torch.tensor(slopes))
    gradient = mechanism.gradient(slopes, **tokens, parameters=parameters, lengths=lengths)
    for n, tensor in {**tensors, **constants}.items():
        np.testing.assert_array_equal(tensor.grad.numpy(), gradient[n])


def test_pytorch_tensors_that_cannot_be_read_are_refused():
    torch = pytest.importorskip("torch", reason=WITHOUT_TORCH)
    from esscher import zoo_torch

    tensors = {name: torch.tensor(rows) for name, rows in GOOD.items()}
    nonsense = [
        (lambda: zoo_torch.apply(GATED, **but(tensors, key=tensors["key"].half())), "key: expected torch.float32"),
        (lambda: zoo_torch.apply(GATED, **but(tensors, key=tensors["key"].float())), "must have one precision"),
        (lambda: zoo_torch.apply(GATED, **but(tensors, key=GOOD["key"])), "key: expected a tensor"),
        (lambda: zoo_torch.apply(GATED, **but(tensors, key=tensors["key"].to("meta"))), "key: .* on the CPU"),
        (lambda: zoo_torch.apply(GATED, **but(tensors, key=tensors["key"].to_sparse())), "key: expected a dense"),
        (lambda: zoo_torch.apply(GATED, gate=tensors["key"]), "unknown port gate"),
    ]
    for call, sentence in nonsense:
        with pytest.raises(TypeError, match=sentence):
            call()
    tensors = {name: tensor.requires_grad_() for name, tensor in tensors.items()}
    (first,) = torch.autograd.grad(zoo_torch.apply(GATED, **tensors).sum(), tensors["key"], create_graph=True)
    with pytest.raises(RuntimeError, match="first derivatives only"):
        first.sum().backward()


@every_mechanism
def test_a_pytorch_module_trains(name):
    torch = pytest.importorskip("torch", reason=WITHOUT_TORCH)
    from esscher import zoo_torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    mixer = zoo_torch.Mixer(make(name), width=6, heads=2)
    tokens = torch.randn(3, 8, 6)
    wanted = torch.roll(tokens, 1, dims=1)
    optimiser = torch.optim.Adam(mixer.parameters(), lr=0.01)
    losses = []
    for _ in range(8):
        loss = ((mixer(tokens) - wanted) ** 2).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def outcome(call):
    """What a call returns, or the sentence that refuses it."""
    try:
        return call(), ""
    except ValueError as refused:
        return (), str(refused)


@every_mechanism
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_overflows_is_refused_and_not_handed_on(name, dtype):
    mechanism = zoo.Mechanism(name, key_width=2, value_width=2)
    large = dtype(0.01) * np.finfo(dtype).max
    tokens = draw(mechanism, 3, dtype=dtype)
    for port in mechanism.ports:
        if port.meaning == "content":
            tokens[port.name] = np.full((3, port.width), large, dtype)
    slopes = np.full((3, mechanism.output_width), large, dtype)

    def streamed():
        stream = mechanism.stream(dtype=dtype)
        for t in range(3):
            stream.absorb(**token(tokens, t))
        return (stream.read(**token(tokens, 2)),)

    def called():
        outputs, state = mechanism(**tokens, return_state=True)
        assert not (np.isnan(state.numbers) | (state.numbers == np.inf)).any()
        return (outputs,)

    calls = [
        called,
        streamed,
        lambda: (mechanism.stream(dtype=dtype).extend(**tokens),),
        lambda: tuple(mechanism.gradient(slopes, **tokens).values()),
    ]
    for call in calls:
        # Where the mechanism is bounded, it answers.
        found, refusal = outcome(call)
        assert refusal == "" or "overflows" in refusal
        assert all(np.isfinite(numbers).all() for numbers in found)


def test_an_overflow_is_named():
    softmax, ones = zoo.Mechanism("softmax", key_width=2, value_width=2), np.ones((3, 2), np.float32)
    with pytest.raises(ValueError, match=r"^an output of softmax overflows single precision: scale the ports"):
        softmax(query=1e20 * ones, key=1e20 * ones, value=ones)
    gated, ones = zoo.Mechanism("gla", key_width=2, value_width=2), np.ones((3, 2))
    tokens = dict(query=ones, key=1e300 * ones, value=1e300 * ones, log_decay=0 * ones)
    stream = gated.stream()
    with pytest.raises(ValueError, match=r"^an output of gla overflows double precision"):
        stream.extend(**tokens)
    assert stream.seen == 0
    with pytest.raises(ValueError, match=r"^an output of the dynamical system overflows double precision"):
        gated.dynamical_system(**{**tokens, "value": ones}).simulate(1e300 * ones)
