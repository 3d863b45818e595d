"""Dumps of heads: their layout, what is refused, and, where PyTorch and transformers are, models of theirs."""

import os
import stat
import sys
import types
from contextlib import nullcontext

import numpy as np
import pytest

from esscher.recording import Recorder, record

TOKENS, HEADS, SHARED, WIDTH = 5, 4, 2, 8


def heads(seed=0, tokens=TOKENS, key_value_heads=SHARED):
    random = np.random.default_rng(seed)
    shapes = [(tokens, HEADS, WIDTH), (tokens, key_value_heads, WIDTH), (tokens, key_value_heads, WIDTH)]
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


def attention(queries, keys, values, scale, causal):
    """The definition, head by head."""
    outputs = np.empty_like(queries)
    for head in range(queries.shape[1]):
        shared = head // (queries.shape[1] // keys.shape[1])
        scores = scale * queries[:, head].astype(float) @ keys[:, shared].T
        if causal:
            scores[~np.tri(len(scores), dtype=bool)] = -np.inf
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        outputs[:, head] = weights / weights.sum(axis=1, keepdims=True) @ values[:, shared]
    return outputs


def test_a_dump_has_the_documented_layout(tmp_path):
    recorder = Recorder()
    layers = [heads(0), heads(1)]
    stream, output = np.ones((TOKENS, 12)), np.ones((12, HEADS * WIDTH))
    recorder.add(*layers[0], order="causal", residual=stream, output=output)
    recorder.add(*layers[1], order="causal")
    written = recorder.write(tmp_path / "heads.npz")
    assert (written.layers, written.tokens, written.heads, written.key_value_heads) == (2, TOKENS, HEADS, SHARED)
    assert (written.order, written.head_dimension, written.path) == ("causal", WIDTH, tmp_path / "heads.npz")
    with np.load(tmp_path / "heads.npz") as dump:
        names = {f"layer.{layer}.{name}" for layer in (0, 1) for name in ("queries", "keys", "values")}
        assert set(dump) == names | {"layer.0.residual", "layer.0.output", "scale", "order"}
        assert str(dump["order"]) == "causal"
        assert dump["scale"] == np.float32(WIDTH**-0.5)
        assert all(dump[name].dtype == np.float32 for name in names)
        np.testing.assert_array_equal(dump["layer.1.keys"], layers[1][1])
    assert [path.name for path in tmp_path.iterdir()] == ["heads.npz"]


def test_layers_of_different_scales_keep_their_scores(tmp_path):
    recorder = Recorder()
    for layer, scale in enumerate([0.5, 0.25]):
        recorder.add(*heads(layer), order="whole", scale=scale)
    recorder.write(tmp_path / "heads.npz")
    with np.load(tmp_path / "heads.npz") as dump:
        for layer, scale in enumerate([0.5, 0.25]):
            found = dump["scale"] * dump[f"layer.{layer}.queries"]
            np.testing.assert_allclose(found, scale * heads(layer)[0], rtol=1e-6)


def test_what_makes_no_dump_is_refused_with_its_reason(tmp_path):
    recorder = Recorder()
    queries, keys, values = heads()
    for refused, reason in [
        ((queries[0], keys, values), "queries: expected an array with 3 dimensions"),
        ((queries, keys[1:], values), "5 queries but 4 keys"),
        ((queries, keys, values[:, :, 1:]), "keys and values one shape"),
        ((queries[:, :3], keys, values), "3 query heads cannot share 2 key-value heads"),
        ((queries * np.nan, keys, values), "not finite"),
        ((queries * 1j, keys, values), "queries: expected an array of real numbers: found dtype complex"),
        ((np.ma.masked_array(queries, queries > 0), keys, values), "queries: .* some entries are masked"),
        (([[[10**400]]], keys, values), "queries: expected an array of real numbers"),
    ]:
        with pytest.raises(ValueError, match=reason):
            recorder.add(*refused, order="causal")
    for scale, raised, reason in [
        (1e300, ValueError, "layer 0: scale must be a number above 0 in single precision"),
        (1e-60, ValueError, "layer 0: scale must be a number above 0 in single precision"),
        (1e38, ValueError, "queries times it are too large for single precision"),
        ("a", TypeError, "layer 0: scale: expected a real number, found an object of type str"),
    ]:
        with pytest.raises(raised, match=reason):
            recorder.add(100 * queries, keys, values, order="causal", scale=scale)
    with pytest.raises(ValueError, match='layer 0: order is "backwards": expected "causal" or "whole"'):
        recorder.add(queries, keys, values, order="backwards")
    with pytest.raises(TypeError, match="layer 0: order: expected a text, found an object of type ndarray"):
        recorder.add(queries, keys, values, order=np.ones(2))
    with pytest.raises(ValueError, match="nothing was recorded"):
        recorder.write(tmp_path / "heads.npz")
    recorder.add(queries, keys, values, order="causal")
    with pytest.raises(ValueError, match="of one text and of equal layers"):
        recorder.add(*heads(tokens=6), order="causal")
    with pytest.raises(ValueError, match="order is 'whole', but that of layer 0 is 'causal'"):
        recorder.add(queries, keys, values, order="whole")
    with pytest.raises(ValueError, match=r"ends in \.npz or \.safetensors"):
        recorder.write(tmp_path / "heads.txt")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        recorder.write(tmp_path / "none" / "heads.npz")
    assert len(recorder) == 1
    assert list(tmp_path.iterdir()) == []


def test_only_dumps_are_written_over(tmp_path):
    recorder = Recorder().add(*heads(), order="causal")
    dump, link, pipe, mine = (tmp_path / f"{name}.npz" for name in ("dump", "link", "pipe", "mine"))
    before = os.umask(0o022)
    try:
        recorder.write(dump)
    finally:
        os.umask(before)
    assert stat.S_IMODE(dump.stat().st_mode) == 0o644
    link.symlink_to(dump)
    recorder.write(link)
    assert link.is_symlink()
    np.savez(mine, results=np.ones(3))
    os.mkfifo(pipe)
    (tmp_path / "folder.npz").mkdir()
    (tmp_path / "notes.npz").write_text("mine")
    for kept in (mine, pipe, tmp_path / "folder.npz", tmp_path / "notes.npz"):
        with pytest.raises(FileExistsError, match=f"{kept.name} exists and is no dump: it is kept"):
            recorder.write(kept)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    with np.load(mine) as kept_numbers:
        assert kept_numbers["results"].sum() == 3
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".part")]
    # A name as long as names may be.
    recorder.write(tmp_path / ("n" * 251 + ".npz"))


@pytest.fixture
def fake_torch(monkeypatch):
    """A PyTorch that is one function on arrays."""

    def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None):
        rows = [array[0].transpose(1, 0, 2) for array in (query, key, value)]
        return attention(*rows, scale or query.shape[-1] ** -0.5, is_causal)

    functional = types.SimpleNamespace(scaled_dot_product_attention=scaled_dot_product_attention)
    torch = types.ModuleType("torch")
    torch.nn = types.SimpleNamespace(functional=functional)
    torch.no_grad = nullcontext
    monkeypatch.setitem(sys.modules, "torch", torch)
    return functional


def test_any_module_that_calls_torchs_attention_is_recorded(fake_torch, tmp_path):
    layers = [heads(0, key_value_heads=HEADS), heads(1, key_value_heads=HEADS)]

    def model(factor):
        for layer in layers:
            batch = [factor * array.transpose(1, 0, 2)[None] for array in layer]
            fake_torch.scaled_dot_product_attention(*batch, is_causal=True)

    before = fake_torch.scaled_dot_product_attention
    assert record(model, 2.0, tmp_path / "heads.npz").layers == 2
    assert fake_torch.scaled_dot_product_attention is before
    with np.load(tmp_path / "heads.npz") as dump:
        np.testing.assert_array_equal(dump["layer.1.values"], 2 * layers[1][2])


def record_texts(fake_torch, folder, count, tokens=128):
    """Dumps of one model, a module that calls PyTorch's attention in two layers, on several random texts."""

    def model(seed):
        for layer in range(2):
            batch = [array.transpose(1, 0, 2)[None] for array in heads(10 * seed + layer, tokens, HEADS)]
            fake_torch.scaled_dot_product_attention(*batch, is_causal=True)

    return [record(model, seed, folder / f"text{seed}.npz").path for seed in range(count)]


def test_what_is_recorded_is_audited(fake_torch, tmp_path):
    audit = pytest.importorskip("esscher.audit")
    paths = record_texts(fake_torch, tmp_path, 4)
    asked = {"candidates": ["dropped", "mean"], "tolerance": 0.5, "out": tmp_path / "runs", "progress": False}
    found = audit.audit(paths, **asked)
    assert found.sizes == (2, HEADS, HEADS)
    assert (found.length, found.texts, found.running) == (128, 4, "streaming")
    assert "only 9 to 22 %" in found.advice
    assert len(found.assignments) == 0
    assert set(found.heads["verdict"]) <= {"accepted", "uncertain", "refused"}
    assert set(found.heads["verdict"]) != {"uncertain"}, "four texts decide"
    assert found.full_attention_heads.shape == (2, HEADS)
    again = audit.audit(paths, **asked)
    assert again.folder == found.folder


def test_one_dump_decides_nothing(fake_torch, tmp_path):
    audit = pytest.importorskip("esscher.audit")
    [path] = record_texts(fake_torch, tmp_path, 1)
    found = audit.audit(path, candidates="mean", tolerance=9.0, out=tmp_path / "runs", progress=False)
    assert set(found.heads["verdict"]) == {"uncertain"}
    assert "Several dumps decide" in found.advice
    assert "Several dumps decide" in repr(found)


def test_dumps_that_do_not_fit_are_refused(fake_torch, tmp_path):
    audit = pytest.importorskip("esscher.audit")
    (tmp_path / "short").mkdir()
    paths = record_texts(fake_torch, tmp_path, 2) + record_texts(fake_torch, tmp_path / "short", 1, tokens=64)
    (tmp_path / "cut.npz").write_bytes(paths[0].read_bytes()[:1000])
    for model, asked, message in [
        (paths, {}, "expected 128 tokens, found 64"),
        ([paths[0], paths[0]], {}, "the same dump"),
        ([*paths[:2], "tiny-random"], {}, "tiny-random is not a dump"),
        ([*paths[:2], tmp_path / "cut.npz"], {}, "truncated"),
        (paths[:2], {"text": "bible"}, "a text is given beside dumps"),
        (paths[:2], {"criterion": "residual"}, "`residual` needs the residual stream"),
        ([], {}, "model: expected a list of 1 to"),
    ]:
        with pytest.raises(ValueError, match=message):
            audit.audit(model, out=tmp_path / "runs", progress=False, **asked)
    assert not (tmp_path / "runs").exists()


def test_masks_say_the_order_or_are_refused(fake_torch, tmp_path):
    queries, keys, values = (array.transpose(1, 0, 2)[None] for array in heads(key_value_heads=HEADS))
    causal = np.tri(TOKENS, dtype=bool)

    def order(mask):
        recorder = Recorder()
        with recorder.listen_to_torch():
            fake_torch.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
        return recorder.write(tmp_path / "heads.npz").order

    assert order(None) == "whole"
    assert order(causal[None, None]) == "causal"
    assert order(np.where(causal, 0, -np.inf)) == "causal"
    assert order(np.where(causal, 0, np.finfo(np.float32).min)) == "causal"
    assert order(np.ones((1, 1, 1, TOKENS), dtype=bool)) == "whole"
    for precision in (np.float16, np.float32):
        assert order(np.where(causal, 0, np.finfo(precision).min).astype(precision)) == "causal"
        assert order(np.where(causal, 0, -np.inf).astype(precision)) == "causal"
    with pytest.raises(ValueError, match="neither causal nor whole"):
        order(causal & ~np.tri(TOKENS, k=-3, dtype=bool))
    with pytest.raises(ValueError, match="position bias"):
        order(np.where(causal, 0.5, -np.inf))
    two = np.concatenate([queries, queries])
    with pytest.raises(ValueError, match="a batch of 2"), Recorder().listen_to_torch():
        fake_torch.scaled_dot_product_attention(two, two, two)


def test_without_pytorch_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match="pip install torch"):
        record(lambda inputs: None, 0, tmp_path / "heads.npz")
    with pytest.raises(TypeError, match="expected a PyTorch module, found an object of type str"):
        record("gpt2", 0, tmp_path / "heads.npz")
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    with pytest.raises(ImportError, match=r"or write a \.npz"):
        Recorder().write(tmp_path / "heads.safetensors")


SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48, "vocab_size": 50}


def tiny(name):
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    if name == "llama":
        return transformers.LlamaForCausalLM(transformers.LlamaConfig(num_key_value_heads=2, **SIZES))
    if name == "bert":
        return transformers.BertModel(transformers.BertConfig(**SIZES))
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=50))


@pytest.mark.parametrize(("name", "order"), [("llama", "causal"), ("bert", "whole"), ("gpt2", "causal")])
@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_the_heads_of_a_dump_are_those_of_the_model(name, order, implementation, tmp_path):
    model = tiny(name)
    import torch

    model.set_attn_implementation(implementation)
    ids = torch.arange(7)[None] * 3 % 50
    model.eval()
    exact = model(input_ids=ids, output_hidden_states=True).hidden_states
    model.train()
    written = record(model, {"input_ids": ids}, tmp_path / "heads.npz")
    assert model.training
    assert model.config._attn_implementation == implementation
    assert (written.layers, written.tokens, written.heads, written.order) == (2, 7, 4, order)
    assert written.key_value_heads == (2 if name == "llama" else 4)

    captured = []
    places = {"llama": "self_attn.o_proj", "bert": "attention.output.dense", "gpt2": "attn.c_proj"}
    for part_name, part in model.named_modules():
        if part_name.endswith(places[name]):
            part.register_forward_pre_hook(lambda _, given: captured.append(given[0].detach().numpy()[0]))
    model.eval()
    model(input_ids=ids)
    with np.load(tmp_path / "heads.npz") as dump:
        for layer in range(2):
            q, k, v = (dump[f"layer.{layer}.{part}"] for part in ("queries", "keys", "values"))
            outputs = attention(q, k, v, float(dump["scale"][0]), order == "causal").reshape(7, -1)
            stream = exact[layer][0].detach().numpy()
            # Single precision on both sides, and sums in another order than those of "eager".
            for found, expected in [(outputs, captured[layer]), (dump[f"layer.{layer}.residual"], stream)]:
                np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * np.abs(expected).max())
            assert dump[f"layer.{layer}.output"].shape == (32, 32)


def test_padding_and_batches_are_refused(tmp_path):
    model = tiny("llama")
    import torch

    ids = torch.arange(7)[None]
    padding = (torch.arange(7) > 2).long()[None]
    with pytest.raises(ValueError, match="neither causal nor whole"):
        record(model, {"input_ids": ids, "attention_mask": padding}, tmp_path / "heads.npz")
    with pytest.raises(ValueError, match="a batch of 2"):
        record(model, torch.zeros((2, 7), dtype=torch.long), tmp_path / "heads.npz")
    assert model.config._attn_implementation == "sdpa"
    assert list(tmp_path.iterdir()) == []


def test_safetensors_hold_the_same(tmp_path):
    safetensors = pytest.importorskip("safetensors")
    recorder = Recorder()
    recorder.add(*heads(), order="whole")
    recorder.write(tmp_path / "heads.npz")
    recorder.write(tmp_path / "heads.safetensors")
    with np.load(tmp_path / "heads.npz") as dump, safetensors.safe_open(tmp_path / "heads.safetensors", "np") as other:
        assert other.metadata() == {"order": "whole"}
        assert set(other.keys()) == set(dump) - {"order"}
        for name in other.keys():  # noqa: SIM118
            np.testing.assert_array_equal(other.get_tensor(name), dump[name])
