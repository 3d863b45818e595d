//! Small synthetic matrices and models.

use esscher_audit::checkpoint::{
    Affine, BertLayer, BertWeights, LayerNorm, LlamaLayer, LlamaWeights, Pairs, Rotation, Weights,
};
use esscher_audit::weights::{Matrix, Storage};
use esscher_core::numerics::Stream;

pub(crate) const STORAGES: [Storage; 5] =
    [Storage::F32, Storage::F16, Storage::Bf16, Storage::Q8_0, Storage::Q4_1];

/// Normal numbers of a seed.
pub(crate) fn numbers(seed: u64, count: usize, scale: f32) -> Vec<f32> {
    let mut stream = Stream::new(seed, 0, 0);
    (0..count).map(|_| scale * stream.normal() as f32).collect()
}

/// A matrix whose stored bytes are arbitrary but sensible.
pub(crate) fn matrix(seed: u64, storage: Storage, rows: usize, columns: usize) -> Matrix {
    let scale = 1.0 / (columns as f32).sqrt();
    let numbers = numbers(seed, rows * columns, scale);
    let half = |x: f32| half::f16::from_f32(x).to_le_bytes();
    let bytes = match storage {
        Storage::F32 => numbers.iter().flat_map(|x| x.to_le_bytes()).collect(),
        Storage::F16 => numbers.iter().flat_map(|x| half(*x)).collect(),
        Storage::Bf16 => numbers.iter().flat_map(|x| half::bf16::from_f32(*x).to_le_bytes()).collect(),
        Storage::Q8_0 => numbers
            .chunks(32)
            .flat_map(|block| {
                let bytes = block.iter().map(|x| (x / scale * 40.0).clamp(-127.0, 127.0) as i8 as u8);
                half(scale / 40.0).into_iter().chain(bytes).collect::<Vec<_>>()
            })
            .collect(),
        Storage::Q4_1 => numbers
            .chunks(32)
            .flat_map(|block| {
                let nibble = |x: f32| ((x / scale + 2.0) * 4.0).clamp(0.0, 15.0) as u8;
                let bytes = (0..16).map(|k| nibble(block[k]) | nibble(block[16 + k]) << 4);
                let head = half(scale / 4.0).into_iter().chain(half(-2.0 * scale));
                head.chain(bytes).collect::<Vec<_>>()
            })
            .collect(),
    };
    Matrix::from_bytes("synthetic", storage, rows, columns, bytes).unwrap()
}

/// A matrix row by row, decoded literally from the description of its format.
pub(crate) fn decoded(matrix: &Matrix) -> Vec<Vec<f32>> {
    let half = |bytes: &[u8]| half::f16::from_le_bytes([bytes[0], bytes[1]]).to_f32();
    let bytes = matrix.bytes();
    let number = |place: usize| match matrix.storage() {
        Storage::F32 => f32::from_le_bytes(bytes[4 * place..4 * place + 4].try_into().unwrap()),
        Storage::F16 => half(&bytes[2 * place..]),
        Storage::Bf16 => half::bf16::from_le_bytes([bytes[2 * place], bytes[2 * place + 1]]).to_f32(),
        Storage::Q8_0 => {
            let block = &bytes[place / 32 * 34..];
            half(block) * f32::from(block[2 + place % 32] as i8)
        }
        Storage::Q4_1 => {
            let block = &bytes[place / 32 * 20..];
            let byte = block[4 + place % 16];
            let nibble = if place % 32 < 16 { byte & 15 } else { byte >> 4 };
            half(block) * f32::from(nibble) + half(&block[2..])
        }
    };
    let columns = matrix.columns();
    (0..matrix.rows())
        .map(|row| (0..columns).map(|column| number(row * columns + column)).collect())
        .collect()
}

/// A decoder of 3 layers with 4 query heads on 2 key-value heads.
pub(crate) fn llama(pairs: Pairs, storage: Storage) -> LlamaWeights {
    let (width, dimension, hidden) = (64, 16, 96);
    let layer = |seed: u64| LlamaLayer {
        attention_norm: numbers(seed, width, 1.0),
        query: matrix(seed + 1, storage, 4 * dimension, width),
        key: matrix(seed + 2, storage, 2 * dimension, width),
        value: matrix(seed + 3, storage, 2 * dimension, width),
        output: matrix(seed + 4, storage, width, 4 * dimension),
        feed_forward_norm: numbers(seed + 5, width, 1.0),
        gate: matrix(seed + 6, storage, hidden, width),
        up: matrix(seed + 7, storage, hidden, width),
        down: matrix(seed + 8, storage, width, hidden),
    };
    LlamaWeights {
        heads: 4,
        key_value_heads: 2,
        head_dimension: dimension,
        context: 512,
        rotation: Rotation { base: 1e4, pairs },
        norm_epsilon: 1e-5,
        embedding: matrix(1, storage, 301, width),
        layers: vec![layer(10), layer(20), layer(30)],
        final_norm: numbers(2, width, 1.0),
        unembedding: None,
    }
}

/// An encoder of 2 layers with 4 heads.
pub(crate) fn bert() -> BertWeights {
    let (width, hidden) = (64, 128);
    let affine = |seed: u64, rows: usize, columns: usize| Affine {
        matrix: matrix(seed, Storage::F32, rows, columns),
        bias: numbers(seed + 100, rows, 0.1),
    };
    let norm =
        |seed: u64| LayerNorm { gain: numbers(seed, width, 1.0), bias: numbers(seed + 100, width, 0.1) };
    let layer = |seed: u64| BertLayer {
        query: affine(seed, width, width),
        key: affine(seed + 1, width, width),
        value: affine(seed + 2, width, width),
        output: affine(seed + 3, width, width),
        attention_norm: norm(seed + 4),
        up: affine(seed + 5, hidden, width),
        down: affine(seed + 6, width, hidden),
        feed_forward_norm: norm(seed + 7),
    };
    BertWeights {
        heads: 4,
        norm_epsilon: 1e-12,
        words: matrix(1, Storage::F32, 101, width),
        positions: matrix(2, Storage::F32, 200, width),
        segment: numbers(3, width, 0.1),
        embedding_norm: norm(4),
        layers: vec![layer(10), layer(20)],
    }
}

/// Tokens of a seed.
pub(crate) fn tokens(seed: u64, count: usize, vocabulary: u32) -> Vec<u32> {
    numbers(seed, count, 1e4).iter().map(|x| x.abs() as u32 % vocabulary).collect()
}

/// Both models.
pub(crate) fn weights() -> [Weights; 2] {
    [Weights::Llama(llama(Pairs::Neighbours, Storage::Q8_0)), Weights::Bert(bert())]
}

/// The largest difference of two slices as a share of the largest number of the second.
pub(crate) fn difference(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    let largest = expected.iter().fold(0.0_f32, |a, b| a.max(b.abs()));
    found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max) / largest
}
