//! Tiny checkpoints of every format, written by hand.

use std::io::Write;

use safetensors::Dtype;
use safetensors::tensor::TensorView;

/// Numbers around zero that look random and are always the same.
pub(crate) fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 24) as f32 - 0.5
    };
    (0..count).map(|_| next()).collect()
}

pub(crate) fn bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

pub(crate) const WIDTH: usize = 32;
pub(crate) const HIDDEN: usize = 64;
pub(crate) const VOCABULARY: usize = 4;

/// A GGUF file that can be damaged before it is written.
#[derive(Clone)]
pub(crate) struct Gguf {
    pub(crate) version: u32,
    pub(crate) values: Vec<(String, u32, Vec<u8>)>,
    pub(crate) tensors: Vec<GgufTensor>,
}

#[derive(Clone)]
pub(crate) struct GgufTensor {
    pub(crate) name: String,
    /// The fastest first, as in the file.
    pub(crate) sizes: Vec<u64>,
    pub(crate) kind: u32,
    pub(crate) data: Vec<u8>,
    /// Where it says it is, if not where it is.
    pub(crate) offset: Option<u64>,
}

pub(crate) fn gguf_text(text: &str) -> Vec<u8> {
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

/// Data of so many numbers of a GGUF type.
pub(crate) fn gguf_data(kind: u32, count: usize, seed: u64) -> Vec<u8> {
    let numbers = numbers(count, seed);
    let half = |number: f32| half::f16::from_f32(number).to_le_bytes();
    let byte = |number: &f32| ((number + 0.5) * 255.0) as u8;
    match kind {
        0 => bytes(&numbers),
        1 => numbers.iter().flat_map(|number| half(*number)).collect(),
        30 => numbers.iter().flat_map(|number| half::bf16::from_f32(*number).to_le_bytes()).collect(),
        8 => numbers
            .chunks(32)
            .flat_map(|block| half(0.01).into_iter().chain(block.iter().map(byte)).collect::<Vec<_>>())
            .collect(),
        3 => numbers
            .chunks(32)
            .flat_map(|block| {
                let nibbles = block[..16].iter().map(byte);
                half(0.01).into_iter().chain(half(-0.1)).chain(nibbles).collect::<Vec<_>>()
            })
            .collect(),
        _ => unreachable!("a type that the tests do not write"),
    }
}

impl Gguf {
    /// One layer, two heads that share one key-value head; all known types of tensors.
    pub(crate) fn tiny() -> Self {
        let mut file = Gguf { version: 3, values: Vec::new(), tensors: Vec::new() };
        file.values.push(("general.architecture".to_string(), 8, gguf_text("llama")));
        for (key, size) in [
            ("block_count", 1),
            ("context_length", 16),
            ("embedding_length", WIDTH),
            ("feed_forward_length", HIDDEN),
            ("attention.head_count", 2),
            ("attention.head_count_kv", 1),
        ] {
            file.values.push((format!("llama.{key}"), 4, (size as u32).to_le_bytes().to_vec()));
        }
        let epsilon = 1e-5_f32.to_le_bytes().to_vec();
        file.values.push(("llama.attention.layer_norm_rms_epsilon".to_string(), 6, epsilon));
        file.values.push(("llama.rope.freq_base".to_string(), 6, 1e5_f32.to_le_bytes().to_vec()));
        for (seed, (name, kind, sizes)) in [
            ("token_embd", 8, vec![WIDTH, VOCABULARY]),
            ("output_norm", 0, vec![WIDTH]),
            ("output", 3, vec![WIDTH, VOCABULARY]),
            ("blk.0.attn_norm", 0, vec![WIDTH]),
            ("blk.0.attn_q", 1, vec![WIDTH, WIDTH]),
            ("blk.0.attn_k", 30, vec![WIDTH, WIDTH / 2]),
            ("blk.0.attn_v", 3, vec![WIDTH, WIDTH / 2]),
            ("blk.0.attn_output", 0, vec![WIDTH, WIDTH]),
            ("blk.0.ffn_norm", 1, vec![WIDTH]),
            ("blk.0.ffn_gate", 3, vec![WIDTH, HIDDEN]),
            ("blk.0.ffn_up", 8, vec![WIDTH, HIDDEN]),
            ("blk.0.ffn_down", 3, vec![HIDDEN, WIDTH]),
        ]
        .into_iter()
        .enumerate()
        {
            let data = gguf_data(kind, sizes.iter().product(), seed as u64);
            let sizes = sizes.iter().map(|size| *size as u64).collect();
            let name = format!("{name}.weight");
            file.tensors.push(GgufTensor { name, sizes, kind, data, offset: None });
        }
        file
    }

    /// The same with an embedding for so many tokens.
    pub(crate) fn with_rows(mut self, rows: usize) -> Self {
        for tensor in &mut self.tensors {
            if let [_, count] = tensor.sizes.as_mut_slice()
                && (tensor.name == "token_embd.weight" || tensor.name == "output.weight")
            {
                *count = rows as u64;
                tensor.data = gguf_data(tensor.kind, rows * WIDTH, 1);
            }
        }
        self
    }

    pub(crate) fn tensor(&mut self, name: &str) -> &mut GgufTensor {
        self.tensors.iter_mut().find(|tensor| tensor.name == format!("{name}.weight")).unwrap()
    }

    pub(crate) fn set(&mut self, key: &str, kind: u32, value: Vec<u8>) {
        self.values.retain(|(name, _, _)| name != key);
        self.values.push((key.to_string(), kind, value));
    }

    pub(crate) fn set_texts(&mut self, key: &str, texts: &[String]) {
        let mut value = 8_u32.to_le_bytes().to_vec();
        value.extend((texts.len() as u64).to_le_bytes());
        value.extend(texts.iter().flat_map(|text| gguf_text(text)));
        self.set(key, 9, value);
    }

    /// An array of four-byte numbers, given by their bits.
    pub(crate) fn set_numbers(&mut self, key: &str, kind: u32, bits: &[u32]) {
        let mut value = kind.to_le_bytes().to_vec();
        value.extend((bits.len() as u64).to_le_bytes());
        value.extend(bits.iter().flat_map(|bits| bits.to_le_bytes()));
        self.set(key, 9, value);
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let mut file = b"GGUF".to_vec();
        file.extend(self.version.to_le_bytes());
        file.extend((self.tensors.len() as u64).to_le_bytes());
        file.extend((self.values.len() as u64).to_le_bytes());
        for (key, kind, value) in &self.values {
            file.extend(gguf_text(key));
            file.extend(kind.to_le_bytes());
            file.extend(value);
        }
        let mut data = Vec::new();
        for tensor in &self.tensors {
            file.extend(gguf_text(&tensor.name));
            file.extend((tensor.sizes.len() as u32).to_le_bytes());
            file.extend(tensor.sizes.iter().flat_map(|size| size.to_le_bytes()));
            file.extend(tensor.kind.to_le_bytes());
            data.resize(usize::next_multiple_of(data.len(), 32), 0);
            file.extend(tensor.offset.unwrap_or(data.len() as u64).to_le_bytes());
            data.extend(&tensor.data);
        }
        file.resize(file.len().next_multiple_of(32), 0);
        file.extend(data);
        file
    }
}

/// A llama2.c file of one layer without tokenizer; a negative vocabulary asks for a classifier.
pub(crate) fn llama2c(vocabulary: i32) -> Vec<u8> {
    let (width, hidden, layers, heads, shared, context) = (8, 12, 2, 4, 2, 10);
    let header = [width, hidden, layers, heads, shared, vocabulary, context];
    let mut file: Vec<u8> = header.iter().flat_map(|size: &i32| size.to_le_bytes()).collect();
    let rows = vocabulary.abs();
    let layer = 2 * width * width + 2 * width * width / 2 + 3 * width * hidden + 2 * width;
    let classifier = if vocabulary < 0 { rows * width } else { 0 };
    let count = rows * width + layers * layer + width + context * width / heads + classifier;
    file.extend(bytes(&numbers(count as usize, 5)));
    file
}

/// A tokenizer.bin: three controls, 256 bytes and the given texts with scores.
pub(crate) fn llama2c_tokenizer(texts: &[(&str, f32)]) -> Vec<u8> {
    let mut file = 27_u32.to_le_bytes().to_vec();
    let mut push = |text: &[u8], score: f32| {
        file.extend(score.to_le_bytes());
        file.extend((text.len() as u32).to_le_bytes());
        file.extend(text);
    };
    for control in ["<unk>", "\n<s>\n", "\n</s>\n"] {
        push(control.as_bytes(), 0.0);
    }
    for byte in 0..=255_u8 {
        push(char::from(byte).to_string().as_bytes(), 0.0);
    }
    for (text, score) in texts {
        push(text.as_bytes(), *score);
    }
    file
}

/// Safetensors in single precision.
pub(crate) fn safetensors(tensors: &[(String, Vec<usize>)], order: Option<&str>) -> Vec<u8> {
    let data: Vec<Vec<u8>> = tensors
        .iter()
        .enumerate()
        .map(|(seed, (_, shape))| bytes(&numbers(shape.iter().product(), seed as u64)))
        .collect();
    let views = tensors.iter().zip(&data).map(|((name, shape), data)| {
        (name.clone(), TensorView::new(Dtype::F32, shape.clone(), data).unwrap())
    });
    let metadata = order.map(|order| [("order".to_string(), order.to_string())].into());
    safetensors::serialize(views, metadata).unwrap()
}

/// Names and shapes of a Llama model of transformers, and its config.json.
pub(crate) fn llama_tensors() -> (Vec<(String, Vec<usize>)>, String) {
    let mut tensors = vec![
        ("model.embed_tokens.weight".to_string(), vec![5, 8]),
        ("model.norm.weight".to_string(), vec![8]),
    ];
    for (name, shape) in [
        ("input_layernorm", vec![8]),
        ("self_attn.q_proj", vec![8, 8]),
        ("self_attn.k_proj", vec![4, 8]),
        ("self_attn.v_proj", vec![4, 8]),
        ("self_attn.o_proj", vec![8, 8]),
        ("post_attention_layernorm", vec![8]),
        ("mlp.gate_proj", vec![12, 8]),
        ("mlp.up_proj", vec![12, 8]),
        ("mlp.down_proj", vec![8, 12]),
    ] {
        tensors.push((format!("model.layers.0.{name}.weight"), shape));
    }
    let config = r#"{"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 8, "intermediate_size": 12,
        "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 32, "rms_norm_eps": 1e-5,
        "rope_theta": 5000.0, "tie_word_embeddings": true, "hidden_act": "silu", "rope_scaling": null}"#;
    (tensors, config.to_string())
}

/// Names and shapes of a BERT model of transformers, and its config.json.
pub(crate) fn bert_tensors(prefix: &str) -> (Vec<(String, Vec<usize>)>, String) {
    let mut tensors = Vec::new();
    let mut push = |name: &str, shape: &[usize]| tensors.push((format!("{prefix}{name}"), shape.to_vec()));
    push("embeddings.word_embeddings.weight", &[5, 8]);
    push("embeddings.position_embeddings.weight", &[6, 8]);
    push("embeddings.token_type_embeddings.weight", &[2, 8]);
    push("embeddings.LayerNorm.weight", &[8]);
    push("embeddings.LayerNorm.bias", &[8]);
    push("pooler.dense.weight", &[8, 8]);
    for (part, rows, columns) in [
        ("attention.self.query", 8, 8),
        ("attention.self.key", 8, 8),
        ("attention.self.value", 8, 8),
        ("attention.output.dense", 8, 8),
        ("intermediate.dense", 12, 8),
        ("output.dense", 8, 12),
    ] {
        push(&format!("encoder.layer.0.{part}.weight"), &[rows, columns]);
        push(&format!("encoder.layer.0.{part}.bias"), &[rows]);
    }
    for part in ["attention.output.LayerNorm", "output.LayerNorm"] {
        push(&format!("encoder.layer.0.{part}.weight"), &[8]);
        push(&format!("encoder.layer.0.{part}.bias"), &[8]);
    }
    let config = r#"{"model_type": "bert", "num_hidden_layers": 1, "hidden_size": 8, "intermediate_size": 12,
        "num_attention_heads": 2, "max_position_embeddings": 6, "layer_norm_eps": 1e-12, "hidden_act": "gelu"}"#;
    (tensors, config.to_string())
}

/// Names and shapes of a dump of two layers.
pub(crate) fn dump_tensors() -> Vec<(String, Vec<usize>)> {
    let mut tensors = Vec::new();
    for layer in 0..2 {
        tensors.push((format!("layer.{layer}.queries"), vec![3, 4, 16]));
        tensors.push((format!("layer.{layer}.keys"), vec![3, 2, 16]));
        tensors.push((format!("layer.{layer}.values"), vec![3, 2, 16]));
        tensors.push((format!("layer.{layer}.residual"), vec![3, 10]));
        tensors.push((format!("layer.{layer}.output"), vec![10, 64]));
    }
    tensors
}

/// A .npz archive of arrays given by type, shape as Python writes it, and data.
pub(crate) fn npz(arrays: &[(&str, &str, String, Vec<u8>)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, kind, shape, data) in arrays {
        zip.start_file(format!("{name}.npy"), zip::write::SimpleFileOptions::default()).unwrap();
        let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n");
        zip.write_all(b"\x93NUMPY\x01\x00").unwrap();
        zip.write_all(&(header.len() as u16).to_le_bytes()).unwrap();
        zip.write_all(header.as_bytes()).unwrap();
        zip.write_all(data).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// NumPy's text: four bytes per character.
pub(crate) fn npz_text(text: &str) -> Vec<u8> {
    text.chars().flat_map(|character| u32::from(character).to_le_bytes()).collect()
}
