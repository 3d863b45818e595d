"""Heads from Python: the definition in NumPy, broadcasting, gradients, and prompts that are not copied."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

import esscher as es


def softmax_attention(tokens, queries, score, value):
    """The definition, transcribed."""
    scores = queries @ score.T @ tokens.T
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (weights / weights.sum(axis=-1, keepdims=True)) @ tokens @ value.T


@pytest.fixture
def case():
    random = np.random.default_rng(0)
    d, k, p, length = 5, 4, 3, 257
    return (
        random.normal(size=(length, d)),
        random.normal(size=(11, k)),
        random.normal(size=(d, k)),
        random.normal(size=(p, d)),
    )


def test_a_finite_prompt_is_softmax_attention(case):
    tokens, queries, score, value = case
    head = es.SoftmaxAttention(score=score, value=value)
    np.testing.assert_allclose(head(tokens, queries), softmax_attention(*case), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(head(tokens, queries[0]), softmax_attention(*case)[0], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(head(es.Empirical(tokens), queries), head(tokens, queries), rtol=1e-13, atol=1e-14)


def test_queries_broadcast(case):
    tokens, queries, score, value = case
    head = es.SoftmaxAttention(score=score, value=value)
    stacked = np.stack([queries, 2 * queries])
    assert head(tokens, stacked).shape == (2, 11, 3)
    np.testing.assert_array_equal(head(tokens, stacked)[1], head(tokens, 2 * queries))
    assert head(tokens, np.empty((0, 4))).shape == (0, 3)
    assert head(tokens, np.empty((3, 0, 4))).shape == (3, 0, 3)


def test_gaussian_tokens_make_it_linear():
    mean, covariance = np.array([1.0, -1.0]), np.array([[2.0, 0.5], [0.5, 1.0]])
    score, value = np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([[1.0, 1.0]])
    head = es.SoftmaxAttention(score, value)
    query = np.array([0.3, 0.7])
    np.testing.assert_allclose(
        head(es.Gaussian(mean, covariance), query), value @ (mean + covariance @ score @ query), rtol=1e-14
    )
    linear = es.LinearAttention(score, value, moment="centred")
    np.testing.assert_allclose(
        linear(es.Gaussian(mean, covariance), query), value @ covariance @ score @ query, rtol=1e-14
    )


def test_queries_keys_and_values(case):
    tokens, queries, _, _ = case
    random = np.random.default_rng(1)
    q, k, v = random.normal(size=(6, 4)), random.normal(size=(6, 5)), random.normal(size=(2, 5))
    expected = softmax_attention(tokens, queries, k.T @ q / np.sqrt(6), v)
    head = es.SoftmaxAttention.from_qkv(q, k, v, scaling="inverse-root-dimension")
    np.testing.assert_allclose(head(tokens, queries), expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(es.SoftmaxAttention.from_qkv(q, k, v, scaling=0.5).score, 0.5 * k.T @ q, rtol=1e-14)
    np.testing.assert_allclose(es.LinearAttention.from_qkv(q, k, v).score, k.T @ q, rtol=1e-14)


def test_gradients_are_derivatives(case):
    tokens, queries, score, value = case
    head, query, weight = es.SoftmaxAttention(score, value), queries[0], np.array([1.0, -2.0, 0.5])
    gradient = head.gradient(tokens, query)
    np.testing.assert_allclose(gradient.output, head(tokens, query), rtol=1e-13)
    step = 1e-5

    def along(matrix, make):
        found = np.empty_like(matrix)
        for index in np.ndindex(matrix.shape):
            there, back = matrix.copy(), matrix.copy()
            there[index] += step
            back[index] -= step
            found[index] = weight @ (make(there)(tokens, query) - make(back)(tokens, query)) / (2 * step)
        return found

    in_score = along(score, lambda moved: es.SoftmaxAttention(moved, value))
    in_value = along(value, lambda moved: es.SoftmaxAttention(score, moved))
    # Central differences: step² times third derivatives, and rounding over step.
    np.testing.assert_allclose(gradient.in_score(weight), in_score, atol=1e-8)
    np.testing.assert_allclose(gradient.in_value(weight), in_value, atol=1e-8)
    assert gradient.tilt_sensitivity.shape == (3, 5)
    assert gradient.attended_token.shape == (5,)
    np.testing.assert_array_equal(gradient.query, query)


def test_heads_add(case):
    tokens, queries, score, value = case
    softmax, linear = es.SoftmaxAttention(score, value), es.LinearAttention(score, value)
    both = es.Heads([softmax, linear])
    np.testing.assert_allclose(both(tokens, queries), softmax(tokens, queries) + linear(tokens, queries))
    assert (len(both), len(both.gradients(tokens, queries[0]))) == (2, 2)
    with pytest.raises(ValueError, match="at least one is needed"):
        es.Heads([])


def test_heads_survive_pickling(case):
    tokens, queries, score, value = case
    softmax, linear = es.SoftmaxAttention(score, value), es.LinearAttention(score, value, moment="centred")
    for head in [softmax, linear, es.Heads([softmax, linear])]:
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(head))(tokens, queries), head(tokens, queries))


def test_any_number_of_threads_gives_the_same_bits():
    script = (
        "import numpy as np, esscher as es, hashlib;"
        "r = np.random.default_rng(0); t = r.normal(size=(100_001, 7)); q = r.normal(size=(50, 7));"
        "h = es.SoftmaxAttention(np.eye(7), np.eye(7));"
        "print(hashlib.sha256(h(t, q).tobytes() + h(t, q[0]).tobytes()).hexdigest())"
    )
    run = [
        subprocess.run(
            [sys.executable, "-c", script], env={"RAYON_NUM_THREADS": threads}, capture_output=True, check=True
        )
        for threads in ["1", "2", "3"]
    ]
    assert len({one.stdout for one in run}) == 1


def test_a_large_prompt_is_read_where_it_lies():
    resource = pytest.importorskip("resource")
    assert resource
    script = """
import resource, numpy as np, esscher as es
tokens = np.random.default_rng(0).normal(size=(1_000_000, 16))
head = es.SoftmaxAttention(np.eye(16), np.eye(16))
query = np.ones(16)
head(tokens[:1000], query)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
output = head(tokens, query)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    # The prompt is 125,000 kB: a copy would show. Measured: a few hundred kB of thread stacks.
    assert int(run.stdout) < 16_000, run.stdout


def test_a_forked_process_can_compute():
    script = """
import os, numpy as np, esscher as es
head = es.SoftmaxAttention(np.eye(16), np.eye(16))
tokens, queries = np.ones((100_000, 16)), np.ones((100, 16))
def work():
    head(tokens, queries)
    head(tokens, queries[0])
    head.gradient(tokens, queries[0])
    es.Empirical(tokens).tilted_mean(queries[0])
    es.concentration(head, es.Gaussian.standard(16), queries=tokens[:5], lengths=[10, 100])
work()
child = os.fork()
if child == 0:
    work()
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    # All of these use several threads, which a forked process does not inherit.
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    assert run.stdout.strip() == "7", run
