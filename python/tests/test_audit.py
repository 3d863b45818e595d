"""The audit from Python: replacements against the definition, caches token by token, a checkpoint from end to end."""

import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import esscher as es
from esscher import audit

TOKENS, WIDTH = 300, 8
# Single precision in sums of some hundred terms of size one.
ROUNDING = 2e-5


def head(seed=0, tokens=TOKENS, heads=None):
    random = np.random.default_rng(seed)
    shape = (tokens, WIDTH) if heads is None else (heads, tokens, WIDTH)
    queries = random.standard_normal(shape)
    keys, values = random.standard_normal((2, tokens, WIDTH))
    return queries, keys, values


def attention(queries, keys, values, scale=WIDTH**-0.5, order="causal"):
    """The definition of one head, in double precision."""
    scores = scale * queries @ keys.T
    if order == "causal":
        scores[~np.tri(len(scores), dtype=bool)] = -np.inf
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ values


@pytest.mark.parametrize("order", ["causal", "whole"])
@pytest.mark.parametrize("scale", [None, 0.1, 1.5])
def test_exact_attention_is_the_definition(order, scale):
    rows = head()
    found = audit.replace(*rows, "exact", order=order, scale=scale)
    assert found.dtype == np.float32
    expected = attention(*rows, scale=WIDTH**-0.5 if scale is None else scale, order=order)
    np.testing.assert_allclose(found, expected, atol=ROUNDING)


@pytest.mark.parametrize("candidate", ["dropped", "tilted-gaussian", "sink-window/8", "observed-attention/8"])
@pytest.mark.parametrize("running", ["offline", "streaming"])
def test_a_window_over_all_tokens_leaves_nothing_to_replace(candidate, running):
    rows = head()
    found = audit.replace(*rows, candidate, running=running, window=TOKENS)
    np.testing.assert_allclose(found, attention(*rows), atol=ROUNDING)


@pytest.mark.parametrize("candidate", ["mean", "gaussian", "tilted-gaussian", "tilted-means/4", "top-3+mean"])
@pytest.mark.parametrize("running", ["offline", "streaming"])
def test_equal_tokens_are_their_own_mean(candidate, running):
    queries, keys, values = head()
    keys, values = np.broadcast_to(keys[0], keys.shape), np.broadcast_to(values[0], values.shape)
    found = audit.replace(queries, keys, values, candidate, running=running, window=0)
    np.testing.assert_allclose(found, values, atol=ROUNDING)


def test_a_dropped_middle_is_attention_to_what_is_kept():
    queries, keys, values = head()
    found = audit.replace(queries, keys, values, "dropped", window=0, first=4, most_light=0)
    # The last query of a block sees the first tokens and its own block of 32.
    for last in (63, 255):
        kept = [*range(4), *range(last - 31, last + 1)]
        expected = attention(np.repeat(queries[last : last + 1], len(kept), 0), keys[kept], values[kept])[-1]
        np.testing.assert_allclose(found[last], expected, atol=ROUNDING)


def test_the_middle_as_its_mean_has_the_weight_of_its_number():
    queries, keys, values = head()
    found = audit.replace(queries, keys, values, "mean", order="whole", first=4, most_light=0)
    scores = WIDTH**-0.5 * queries @ np.vstack([keys[:4], keys[4:].mean(0)]).T
    weights = np.exp(scores) * [1, 1, 1, 1, TOKENS - 4]
    expected = weights / weights.sum(1, keepdims=True) @ np.vstack([values[:4], values[4:].mean(0)])
    np.testing.assert_allclose(found, expected, atol=ROUNDING)


def test_heads_that_share_keys_are_those_heads_one_by_one():
    queries, keys, values = head(heads=3)
    together = audit.replace(queries, keys, values, "tilted-gaussian")
    assert together.shape == queries.shape
    for number in range(3):
        alone = audit.replace(queries[number], keys, values, "tilted-gaussian")
        np.testing.assert_array_equal(together[number], alone)


def test_the_readers_without_any_are_those_of_the_text():
    queries, keys, values = head(heads=2)
    given = audit.replace(
        queries, keys, values, "tilted-gaussian", running="streaming", readers=audit.calibrate(queries, values)
    )
    np.testing.assert_array_equal(given, audit.replace(queries, keys, values, "tilted-gaussian", running="streaming"))


def test_calibration_is_the_mean_covariance_and_median_of_all_readers():
    queries, _, values = head(heads=2)
    readers = audit.calibrate(queries, values, scale=0.5)
    tilts = 0.5 * queries.reshape(-1, WIDTH)
    np.testing.assert_allclose(readers.mean_tilt, tilts.mean(0), atol=1e-6)
    np.testing.assert_allclose(readers.tilt_covariance, np.cov(tilts.T, bias=True), atol=1e-6)
    norms = np.sort(np.linalg.norm(values, axis=1))
    assert readers.median_value_norm == pytest.approx(norms[len(norms) // 2], rel=1e-6)


@pytest.mark.parametrize(
    "candidate",
    [
        "exact",
        "dropped",
        "mean",
        "tilted-gaussian",
        "reduced-gaussian/2",
        "tilted-means/3",
        "top-4+mean",
        "sink-window/8",
        "cluster-means/8",
    ],
)
def test_a_cache_gives_token_by_token_what_the_whole_text_gets(candidate):
    queries, keys, values = head()
    readers = audit.calibrate(*head(1)[::2])
    whole = audit.replace(queries, keys, values, candidate, running="streaming", window=16, readers=readers)
    cache = audit.StreamingCache(candidate, WIDTH, readers, window=16)
    steps = []
    for query, key, value in zip(queries, keys, values, strict=True):
        cache.absorb(key, value)
        steps.append(cache.read(query))
    np.testing.assert_allclose(steps, whole, atol=ROUNDING)
    assert cache.tokens_seen == TOKENS


def test_the_memory_of_a_cache_does_not_grow_with_the_text():
    queries, keys, values = head()
    cache = audit.StreamingCache("tilted-gaussian", WIDTH, audit.calibrate(queries, values))
    np.testing.assert_array_equal(cache.read(queries[0]), np.zeros(WIDTH, np.float32))
    cache.absorb(keys, values)
    after_some, twin = cache.bytes, cache.copy()
    for _ in range(10):
        cache.absorb(keys, values)
    assert cache.bytes <= 1.5 * after_some
    assert (cache.tokens_seen, twin.tokens_seen) == (11 * TOKENS, TOKENS)
    assert cache.read(queries).shape == queries.shape
    assert "3300 tokens" in repr(cache)


def test_a_cache_that_another_thread_uses_says_so():
    keys, values = np.random.default_rng(0).standard_normal((2, 50_000, 64))
    cache = audit.StreamingCache("tilted-gaussian", 64, audit.calibrate(keys[:300], values[:300]))
    thread = threading.Thread(target=cache.absorb, args=(keys, values))

    def copy_meanwhile():
        while thread.is_alive():
            cache.copy()

    thread.start()
    with pytest.raises(RuntimeError, match="the cache is used by another thread: make one per thread"):
        copy_meanwhile()
    thread.join()
    assert cache.tokens_seen == len(keys)


def test_the_state_is_counted_in_tokens():
    kept = 4 + 16 + 64 + 32
    assert audit.state_tokens("dropped", 64) == kept
    assert audit.state_tokens("tilted-gaussian", 64) == kept + 6561 / 128
    assert audit.state_tokens("top-8+tilted-means/32", 64, window=0, first=0, most_light=0) == 40
    assert audit.state_tokens("exact", 64) == np.inf


@pytest.mark.parametrize(
    ("change", "raised", "message"),
    [
        ({"candidate": "median"}, ValueError, "`median` is not a candidate: expected dropped"),
        ({"candidate": 3}, TypeError, "candidate: expected a text, found an object of type int"),
        ({"keys": np.ones((5, WIDTH))}, ValueError, r"keys: expected shape \(300, 8\), found shape \(5, 8\)"),
        ({"values": np.ones(5)}, ValueError, r"values: expected shape \(300, 8\), found shape \(5,\)"),
        ({"queries": np.ones(5)}, ValueError, r"queries: expected \(tokens, d\) or \(heads, tokens, d\), found shape"),
        ({"queries": np.ones((0, 8))}, ValueError, "queries: expected at least one head and one token"),
        ({"queries": np.ones((2, 2000))}, ValueError, "the last axis of queries is 2000: expected from 1 to 1024"),
        (
            {"keys": np.where(np.eye(TOKENS, WIDTH, -2), np.nan, 0)},
            ValueError,
            r"keys\[2, 0\] is NaN: expected a finite",
        ),
        ({"values": [["x"]]}, TypeError, "values: expected an array of real numbers"),
        ({"scale": 0}, ValueError, "scale is 0: expected a number above 0"),
        ({"order": np.ones(2)}, TypeError, "order: expected a text, found an object of type ndarray"),
        ({"order": "backwards"}, ValueError, 'order is "backwards": expected "causal" or "whole"'),
        ({"running": "fast"}, ValueError, 'running is "fast": expected "offline" or "streaming"'),
        ({"order": "whole", "window": 64}, ValueError, "window is 64: expected 0 where every token sees all"),
        ({"window": -1}, ValueError, "window is -1: expected a whole number from 0"),
        ({"light": np.nan}, ValueError, "light is NaN: expected a share"),
        ({"readers": 3}, TypeError, "readers: expected what calibrate returns"),
        (
            {"readers": audit.Readers(np.ones(3, np.float32), np.eye(3, dtype=np.float32), 1.0)},
            ValueError,
            r"mean_tilt: expected shape \(8,\), found shape \(3,\)",
        ),
    ],
)
def test_what_is_no_head_is_refused(change, raised, message):
    queries, keys, values = head()
    given = {"queries": queries, "keys": keys, "values": values, "candidate": "mean", **change}
    with pytest.raises(raised, match=message):
        audit.replace(**given)


def test_what_a_cache_cannot_take_is_refused():
    readers = audit.calibrate(*head()[::2])
    with pytest.raises(ValueError, match="no cache of observed-attention that reads token by token: ask `replace`"):
        audit.StreamingCache("observed-attention/8", WIDTH, readers)
    with pytest.raises(ValueError, match="dimension is 0: expected from 1 to 1024"):
        audit.StreamingCache("mean", 0, readers)
    cache = audit.StreamingCache("mean", WIDTH, readers)
    with pytest.raises(ValueError, match=r"key: expected \(d,\) or \(tokens, d\) with d = 8, found shape \(3,\)"):
        cache.absorb(np.ones(3), np.ones(3))
    with pytest.raises(ValueError, match=r"value: expected shape \(8,\), found shape \(7,\)"):
        cache.absorb(np.ones(8), np.ones(7))
    with pytest.raises(ValueError, match=r"query\[1\] is inf: expected a finite number"):
        cache.read([0, np.inf, 0, 0, 0, 0, 0, 0])
    assert cache.tokens_seen == 0


def test_named_models_are_listed():
    found = audit.models()
    assert {"stories15M", "tiny-random"} <= set(found["name"])
    assert {"name", "summary", "download", "licence"} <= set(found.names)
    assert set(es.catalogue("models")["name"]) == set(found["name"])


QUICK = {"lengths": [192], "texts": 3, "candidates": ["dropped", "mean", "tilted-gaussian"], "progress": False}


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """The audit of the checkpoint that is made on the spot, and the folder that it is in."""
    out = tmp_path_factory.mktemp("audit")
    return audit.audit("tiny-random", out=out, **QUICK), out


def test_an_audit_tells_of_heads_and_model(audited):
    found, out = audited
    assert (found.model, found.sizes, found.length, found.running) == ("tiny-random", (2, 4, 2), 192, "streaming")
    assert (found.texts, found.tolerance, found.criterion, found.folder.parent) == (3, 0.05, "output", out)
    assert (len(found.heads), len(found.key_value_heads)) == (8, 4)
    assert set(found.heads["verdict"]) <= {"accepted", "uncertain", "refused"}
    assert (found.heads["low"] <= found.heads["error"]).all()
    assert (found.heads["error"] <= found.heads["high"]).all()
    np.testing.assert_allclose(found.heads["prompt_length_asked"], np.exp(found.heads["score_variance"]))
    assert ((found.heads["sink_position"] >= 0) & (found.heads["sink_position"] < 192)).all()
    assert set(found.errors["candidate"]) == {"dropped", "mean", "tilted-gaussian"}
    assert found.assignments["name"][0] == "exact attention"
    assert found.assignments["difference"][0] == 0
    assert (found.assignments["log_loss"] > 0).all()
    assert found.report.read_text().startswith("<!")
    assert str(found.report) in repr(found)
    assert "of 8 accepted" in repr(found)
    assert "of 4 accepted" in repr(found)
    assert "<table>" in found._repr_html_()


def test_full_attention_heads_are_those_whose_middle_cannot_be_dropped(audited):
    found, _ = audited
    assert found.full_attention_heads.shape == (2, 2)
    asked = (found.errors["candidate"] == "dropped") & (found.errors["running"] == "streaming")
    # Two readers of each key-value head: the one that misses the middle most decides.
    worst = found.errors["error"][asked].reshape(2, 2, 2).max(axis=2)
    expected = np.minimum(worst / (2 * found.tolerance), 1)
    told = found.full_attention_heads
    assert ((np.abs(told - expected) < 6e-5) | np.isin(told, [0.4999, 0.5001])).all()


def test_a_finished_audit_is_read(audited):
    found, out = audited
    results = [found.folder / run / "result.parquet" for run in ("heads", "model")]
    written = [path.stat().st_mtime_ns for path in results]
    again = audit.audit("tiny-random", out=out, **QUICK)
    assert again.folder == found.folder
    assert [path.stat().st_mtime_ns for path in results] == written
    np.testing.assert_array_equal(again.heads["error"], found.heads["error"])


def test_an_audit_of_heads_leaves_the_model_out(tmp_path):
    seen = []
    found = audit.audit("tiny-random", out=tmp_path, heads_only=True, **QUICK | {"progress": seen.append})
    assert len(found.assignments) == 0
    assert found.assignments.names[0] == "name"
    assert [path.name for path in found.folder.iterdir() if path.is_dir()] == ["heads"]
    assert all(0 <= part <= 1 for part in seen)
    assert "report" in found._repr_html_()


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_interrupted_audit_goes_on(tmp_path):
    call = f"""
        from esscher import audit
        def progress(part):
            if part > 0:
                print("begun", flush=True)
        audit.audit("tiny-random", out={str(tmp_path)!r}, lengths=[256], texts=24, progress=progress)
    """
    program = [sys.executable, "-c", textwrap.dedent(call)]
    process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if process.stdout.readline():
        process.send_signal(signal.SIGINT)
    began = time.monotonic()
    _, errors = process.communicate(timeout=120)
    if process.returncode == 0:
        pytest.skip("it was finished before it could be interrupted")
    assert "KeyboardInterrupt" in errors
    assert time.monotonic() - began < 60
    shards = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/heads/shards/*")}
    found = audit.audit("tiny-random", out=tmp_path, lengths=[256], texts=24, progress=False)
    assert len(list(tmp_path.iterdir())) == 1
    assert len(found.heads) == 8
    for path, written in shards.items():
        assert path.stat().st_mtime_ns == written, "a finished unit is never computed again"


@pytest.mark.parametrize(
    ("change", "raised", "message"),
    [
        ({"model": "absent-model"}, ValueError, "absent-model"),
        ({"model": 3}, ValueError, "model: expected text in quotes, found 3"),
        ({"model": ""}, ValueError, "model: expected a name or a path, found an empty text"),
        ({"text": "absent.txt"}, ValueError, "cannot read the text absent.txt"),
        ({"lengths": 512}, ValueError, "512 tokens are more than the model's context of 256"),
        ({"lengths": "many"}, ValueError, "lengths: expected a whole number"),
        ({"lengths": [9.5]}, ValueError, "lengths: expected a whole number .* found 9.5"),
        ({"lengths": [None, 256]}, TypeError, "lengths: expected no None in a list"),
        ({"lengths": []}, ValueError, "lengths: expected a list of 1 to 16 entries, found 0"),
        ({"tolerance": np.nan}, ValueError, "tolerance: expected a number from .* found NaN"),
        ({"tolerance": -1}, ValueError, "tolerance"),
        ({"criterion": "taste"}, ValueError, 'criterion: expected one of "output", "residual", found "taste"'),
        ({"candidates": ["median"]}, ValueError, "`median` is not a candidate"),
        ({"candidates": [3]}, ValueError, "candidates: expected text in quotes, found 3"),
        ({"candidates": []}, ValueError, "candidates: expected a list of 1 to 64 entries, found 0"),
        ({"texts": 1}, ValueError, "texts"),
        ({"heads_only": "yes"}, ValueError, "heads_only: expected true or false"),
        ({"seed": -1}, ValueError, "seed is -1"),
    ],
)
def test_requests_that_make_no_sense_are_refused(tmp_path, monkeypatch, change, raised, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(raised, match=message):
        audit.audit(**{"model": "tiny-random", "out": tmp_path, **QUICK, **change})
    assert list(tmp_path.iterdir()) == []
