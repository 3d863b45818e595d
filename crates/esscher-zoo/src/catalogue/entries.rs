//! The entries of the catalogue: every mechanism with its paper, its claims and how it is built.

use super::{Claims, Cost, Entry, Hybrid, Sizes, StateSize};
use crate::delta_rule::DeltaRule;
use crate::feature_maps::{Elu, Hedgehog, Identity, Performer, Relu, T2r, Taylor};
use crate::gated_linear_attention::GatedLinearAttention;
use crate::inline::{Inline, Kernel};
use crate::large_prompt::Fate;
use crate::linear_attention::{LinearAttention, Normaliser};
use crate::luna::Luna;
use crate::mechanism::Order;
use crate::metala::{Augmentation, MetaLinearAttention};
use crate::mlstm::MatrixLstm;
use crate::normalized_attention::{self, NormalizedAttention};
use crate::quasi_lstm::{Forget, QuasiLstm};
use crate::rg_lru::RgLru;
use crate::s4::S4;
use crate::s6::S6;
use crate::selective_rope::{Rotated, Rotation, Temperatures};
use crate::softmax::{Reach, Softmax};
use crate::ssd::StateSpaceDuality;
use crate::swax;

// Static, not constant: a crate that reads a constant table compiles every mechanism in it again.
pub(super) static HYBRIDS: &[Hybrid] = &[Hybrid {
    name: "swax",
    summary: "SWAX: mLSTM and softmax over a short window in turn, the window drawn anew for every batch of training.",
    year: 2025,
    paper: "Cabannes et al., arXiv 2509.24552",
    key: "cabannes2025",
    recalls: true,
    layers: |sizes, count| swax::layout(count).iter().map(|kind| kind.mechanism(sizes, WINDOW)).collect(),
}];

/// Tokens that `softmax-window` sees.
const WINDOW: usize = 64;

/// A state of d_k × d_v.
const MATRIX: StateSize = StateSize { formula: "d_k d_v", numbers: |sizes, _| sizes.key * sizes.value };

/// A state of d_v.
const VECTOR: StateSize = StateSize { formula: "d_v", numbers: |sizes, _| sizes.value };

/// Keys and values of all tokens.
const CACHE: StateSize =
    StateSize { formula: "L (d_k + d_v)", numbers: |sizes, seen| seen * (sizes.key + sizes.value) };

/// The same, and the angles of the next token.
const ROTATED_CACHE: StateSize = StateSize {
    formula: "L (d_k + d_v) + ⌊d_k/2⌋",
    numbers: |sizes, seen| seen * (sizes.key + sizes.value) + sizes.key / 2,
};

fn softmax(sizes: Sizes, reach: Reach) -> Softmax {
    Softmax { key_width: sizes.key, value_width: sizes.value, reach }
}

fn linear<M>(sizes: Sizes, map: M, normaliser: Normaliser, order: Order) -> LinearAttention<M> {
    LinearAttention { map, value_width: sizes.value, normaliser, order }
}

fn inline(sizes: Sizes, order: Order) -> Inline {
    Inline { kernel: Kernel::Identity, key_width: sizes.key, value_width: sizes.value, order }
}

/// The paper states neither the number of projections nor of channels; these are ours.
fn luna(sizes: Sizes) -> Luna {
    Luna {
        key_width: sizes.key,
        value_width: sizes.value,
        projections: sizes.key,
        channels: 4,
        hidden: 64,
        order: Order::Causal,
    }
}

fn gated(sizes: Sizes) -> GatedLinearAttention {
    GatedLinearAttention { key_width: sizes.key, value_width: sizes.value }
}

pub(super) static ENTRIES: &[Entry] = &[
    Entry {
        name: "softmax",
        summary: "Softmax attention: weights exp(q·k/√d_k) over the tokens so far, divided by their sum.",
        year: 2017,
        paper: "Vaswani et al., arXiv 1706.03762",
        key: "vaswani2017",
        claims: Claims {
            order: Order::Causal,
            normalised: true,
            state: CACHE,
            cost: Cost::Quadratic,
            fate: Fate::Limit,
            dynamical_system: false,
            recalls: true,
        },
        build: |sizes| Box::new(softmax(sizes, Reach::Causal)),
    },
    Entry {
        name: "softmax-whole",
        summary: "Softmax attention in which every token sees all tokens.",
        year: 2017,
        paper: "Vaswani et al., arXiv 1706.03762",
        key: "vaswani2017",
        claims: Claims {
            order: Order::Whole,
            normalised: true,
            state: CACHE,
            cost: Cost::Quadratic,
            fate: Fate::Limit,
            dynamical_system: false,
            recalls: true,
        },
        build: |sizes| Box::new(softmax(sizes, Reach::Whole)),
    },
    Entry {
        name: "softmax-window",
        summary: "Softmax attention over the last 64 tokens.",
        year: 2017,
        paper: "Vaswani et al., arXiv 1706.03762",
        key: "vaswani2017",
        claims: Claims {
            order: Order::Causal,
            normalised: true,
            state: StateSize {
                formula: "64 (d_k + d_v)",
                numbers: |sizes, _| WINDOW * (sizes.key + sizes.value),
            },
            cost: Cost::Linear,
            fate: Fate::StationaryLaw,
            dynamical_system: false,
            recalls: true,
        },
        build: |sizes| Box::new(softmax(sizes, Reach::Window(WINDOW))),
    },
    Entry {
        name: "softmax-rope",
        summary: "Causal softmax attention with rotary positions.",
        year: 2021,
        paper: "Su et al., arXiv 2104.09864",
        key: "su2021",
        claims: Claims {
            order: Order::Causal,
            normalised: true,
            state: CACHE,
            cost: Cost::Quadratic,
            fate: Fate::Limit,
            dynamical_system: false,
            recalls: false,
        },
        build: |sizes| {
            Box::new(Rotated {
                inner: softmax(sizes, Reach::Causal),
                rotation: Rotation::Fixed { base: 10_000.0 },
            })
        },
    },
    Entry {
        name: "softmax-selective-rope",
        summary: "Causal softmax attention whose rotations depend on the tokens.",
        year: 2025,
        paper: "Movahedi et al., arXiv 2511.17388",
        key: "movahedi2025",
        claims: Claims {
            order: Order::Causal,
            normalised: true,
            state: ROTATED_CACHE,
            cost: Cost::Quadratic,
            fate: Fate::Limit,
            dynamical_system: false,
            recalls: true,
        },
        build: |sizes| {
            Box::new(Rotated {
                inner: softmax(sizes, Reach::Causal),
                rotation: Rotation::Selective {
                    temperatures: Temperatures::Rope { largest: 1.0, base: 500_000.0 },
                },
            })
        },
    },
    Entry {
        name: "linear-elu",
        summary: "Linear attention with features elu(x) + 1.",
        year: 2020,
        paper: "Katharopoulos et al., arXiv 2006.16236",
        key: "katharopoulos2020",
        claims: Claims {
            order: Order::Causal,
            normalised: true,
            state: StateSize { formula: "d_k (d_v + 1)", numbers: |sizes, _| sizes.key * (sizes.value + 1) },
            cost: Cost::Linear,
            fate: Fate::Limit,
            dynamical_system: true,
            recalls: false,
        },
        build: |sizes| Box::new(linear(sizes, Elu { width: sizes.key }, Normaliser::Sum, Order::Causal)),
    },
    Entry {
        name: "linear-relu",
        summary: "Linear attention with features max(x, 0).",
        year: 2020,
        paper: "Katharopoulos et al., arXiv 2006.16236",
        key: "katharopoulos2020",
        claims: Claims {
            order: Order::Causal,
            normalised: true,
            state: StateSize { formula: "d_k (d_v + 1)", numbers: |sizes, _| sizes.key * (sizes.value + 1) },
            cost: Cost::Linear,
            fate: Fate::Limit,
            dynamical_system: true,
            recalls: true,
        },
        build: |sizes| Box::new(linear(sizes, Relu { width: sizes.key }, Normaliser::Sum, Order::Causal)),
    },
    Entry {
        name: "linear-identity",
        summary: "Linear attention without features, (1/t) Σ (q·k/√d_k) v: the linear attention of the large-prompt theory.",
        year: 2020,
        paper: "Katharopoulos et al., arXiv 2006.16236",
        key: "katharopoulos2020",
        claims: Claims {
            order: Order::Causal,
            normalised: false,
            state: MATRIX,
            cost: Cost::Linear,
            fate: Fate::Limit,
            dynamical_system: true,
            recalls: true,
        },
        build: |sizes| {
            Box::new(linear(sizes, Identity { width: sizes.key }, Normaliser::Count, Order::Causal))
        },
    },
    Entry {
        name: "linear-elu-whole",
        summary: "Linear attention with features elu(x) + 1 in which every token sees all tokens.",
        year: 2020,
        paper: "Katharopoulos et al., arXiv 2006.16236",
        key: "katharopoulos2020",
        claims: Claims {
            order: Order::Whole,
            normalised: true,
            state: StateSize { formula: "d_k (d_v + 1)", numbers: |sizes, _| sizes.key * (sizes.value + 1) },
            cost: Cost::Linear,
            fate: Fate::Limit,
            dynamical_system: false,
            recalls: false,
        },
        build: |sizes| Box::new(linear(sizes, Elu { width: sizes.key }, Normaliser::Sum, Order::Whole)),
    },
    Entry {
        name: "taylor",
        summary: "Linear attention with the exponential cut off at order 2.",
        year: 2024,
        paper: "Arora et al., arXiv 2402.18668",
        key: "arora2024",
        claims: Claims {
            order: Order::Causal,
            normalised: true,
            state: StateSize {
                formula: "(d_k + 1)(d_k + 2)/2 (d_v + 1)",
                numbers: |sizes, _| (sizes.key + 1) * (sizes.key + 2) / 2 * (sizes.value + 1),
            },
            cost: Cost::Linear,
            fate: Fate::Limit,
            dynamical_system: true,
            recalls: false,
        },
        build: |sizes| Box::new(linear(sizes, Taylor::new(sizes.key, 2), Normaliser::Sum, Order::Causal)),
    },
    Entry {
        name: "performer",
        summary: "Linear attention with 2 d_k positive random features of the exponential.",
        year: 2020,
        paper: "Choromanski et al., arXiv 2009.14794",
        key: "choromanski2020",
        claims: Claims {
            order: Order::Causal,
            normalised: true,
            state: StateSize {
                formula: "2 d_k (d_v + 1)",
                numbers: |sizes, _| 2 * sizes.key * (sizes.value + 1),
            },
            cost: Cost::Linear,
            fate: Fate::Limit,
            dynamical_system: true,
            recalls: true,
        },
        build: |sizes| {
            Box::new(linear(
                sizes,
                Performer { width: sizes.key, features: 2 * sizes.key, seed: 0 },
                Normaliser::Sum,
                Order::Causal,
            ))
        },
    },
    Entry {
        name: "hedgehog",
        summary: "Linear attention with learned softmax features.",
        year: 2024,
        paper: "Zhang et al., arXiv 2402.04347",
        key: "zhang2024hedgehog",
        claims: Claims {
            order: Order::Causal,
            normalised: true,
            state: StateSize {
                formula: "2 d_k (d_v + 1)",
                numbers: |sizes, _| 2 * sizes.key * (sizes.value + 1),
            },
            cost: Cost::Linear,
            fate: Fate::Limit,
            dynamical_system: true,
            recalls: true,
        },
        build: |sizes| Box::new(linear(sizes, Hedgehog { width: sizes.key }, Normaliser::Sum, Order::Causal)),
    },
    Entry {
        name: "t2r",
        summary: "Linear attention with learned features max(Wx + b, 0).",
        year: 2021,
        paper: "Kasai et al., arXiv 2103.13076",
        key: "kasai2021",
        claims: Claims {
            order: Order::Causal,
            normalised: true,
            state: StateSize { formula: "d_k (d_v + 1)", numbers: |sizes, _| sizes.key * (sizes.value + 1) },
            cost: Cost::Linear,
            fate: Fate::Limit,
            dynamical_system: true,
            recalls: true,
        },
        build: |sizes| {
            Box::new(linear(
                sizes,
                T2r { width: sizes.key, features: sizes.key },
                Normaliser::Sum,
                Order::Causal,
            ))
        },
    },
    Entry {
        name: "luna",
        summary: "Linear attention with a learned one-dimensional network on learned projections.",
        year: 2025,
        paper: "Shahbazi et al., arXiv 2512.08061",
        key: "shahbazi2025",
        claims: Claims {
            order: Order::Causal,
            normalised: true,
            state: StateSize {
                formula: "4 d_k (d_v + 1)",
                numbers: |sizes, _| 4 * sizes.key * (sizes.value + 1),
            },
            cost: Cost::Linear,
            fate: Fate::Limit,
            dynamical_system: true,
            recalls: false,
        },
        build: |sizes| Box::new(luna(sizes)),
    },
    Entry {
        name: "inline",
        summary: "Injective linear attention: φ(q)·φ(k) less its mean, plus 1/N.",
        year: 2024,
        paper: "Han et al., arXiv 2412.06590",
        key: "han2024",
        claims: Claims {
            order: Order::Whole,
            normalised: true,
            state: StateSize {
                formula: "(d_k + 1)(d_v + 1) - 1",
                numbers: |sizes, _| (sizes.key + 1) * (sizes.value + 1) - 1,
            },
            cost: Cost::Linear,
            fate: Fate::Limit,
            dynamical_system: false,
            recalls: false,
        },
        build: |sizes| Box::new(inline(sizes, Order::Whole)),
    },
    Entry {
        name: "inline-causal",
        summary: "Injective linear attention with running means: our causal variant.",
        year: 2024,
        paper: "Han et al., arXiv 2412.06590",
        key: "han2024",
        claims: Claims {
            order: Order::Causal,
            normalised: true,
            state: StateSize {
                formula: "(d_k + 1)(d_v + 1) - 1",
                numbers: |sizes, _| (sizes.key + 1) * (sizes.value + 1) - 1,
            },
            cost: Cost::Linear,
            fate: Fate::Limit,
            dynamical_system: true,
            recalls: false,
        },
        build: |sizes| Box::new(inline(sizes, Order::Causal)),
    },
    Entry {
        name: "normalized-attention",
        summary: "Linear attention divided by a learned function of the token.",
        year: 2024,
        paper: "Sieber et al., arXiv 2405.15731",
        key: "sieber2024",
        claims: Claims {
            order: Order::Causal,
            normalised: false,
            state: MATRIX,
            cost: Cost::Linear,
            fate: Fate::Grows,
            dynamical_system: true,
            recalls: true,
        },
        build: |sizes| {
            Box::new(NormalizedAttention {
                key_width: sizes.key,
                value_width: sizes.value,
                normaliser: normalized_attention::Normaliser::Exponential,
            })
        },
    },
    Entry {
        name: "gla",
        summary: "Gated linear attention: one learned decay per key channel.",
        year: 2023,
        paper: "Yang et al., arXiv 2312.06635",
        key: "yang2023gated",
        claims: Claims {
            order: Order::Causal,
            normalised: false,
            state: MATRIX,
            cost: Cost::Linear,
            fate: Fate::StationaryLaw,
            dynamical_system: true,
            recalls: true,
        },
        build: |sizes| Box::new(gated(sizes)),
    },
    Entry {
        name: "gla-rope",
        summary: "Gated linear attention with rotary positions.",
        year: 2021,
        paper: "Su et al., arXiv 2104.09864",
        key: "su2021",
        claims: Claims {
            order: Order::Causal,
            normalised: false,
            state: MATRIX,
            cost: Cost::Linear,
            fate: Fate::StationaryLaw,
            dynamical_system: true,
            recalls: true,
        },
        build: |sizes| {
            Box::new(Rotated { inner: gated(sizes), rotation: Rotation::Fixed { base: 10_000.0 } })
        },
    },
    Entry {
        name: "gla-selective-rope",
        summary: "Gated linear attention whose rotations depend on the tokens.",
        year: 2025,
        paper: "Movahedi et al., arXiv 2511.17388",
        key: "movahedi2025",
        claims: Claims {
            order: Order::Causal,
            normalised: false,
            state: StateSize {
                formula: "d_k d_v + ⌊d_k/2⌋",
                numbers: |sizes, _| sizes.key * sizes.value + sizes.key / 2,
            },
            cost: Cost::Linear,
            fate: Fate::StationaryLaw,
            dynamical_system: true,
            recalls: true,
        },
        build: |sizes| {
            Box::new(Rotated {
                inner: gated(sizes),
                rotation: Rotation::Selective {
                    temperatures: Temperatures::Rope { largest: 1.0, base: 500_000.0 },
                },
            })
        },
    },
    Entry {
        name: "metala",
        summary: "MetaLA: keys are what the decays let go, and a token augments itself.",
        year: 2024,
        paper: "Chou et al., arXiv 2411.10741",
        key: "chou2024",
        claims: Claims {
            order: Order::Causal,
            normalised: false,
            state: MATRIX,
            cost: Cost::Linear,
            fate: Fate::StationaryLaw,
            dynamical_system: false,
            recalls: false,
        },
        build: |sizes| {
            Box::new(MetaLinearAttention {
                key_width: sizes.key,
                value_width: sizes.value,
                augmentation: Augmentation::SelfAttending,
            })
        },
    },
    Entry {
        name: "mlstm",
        summary: "The matrix memory of xLSTM, with exponential input gates.",
        year: 2024,
        paper: "Beck et al., arXiv 2405.04517",
        key: "beck2024",
        claims: Claims {
            order: Order::Causal,
            normalised: false,
            state: StateSize {
                formula: "d_k (d_v + 1) + 1",
                numbers: |sizes, _| sizes.key * (sizes.value + 1) + 1,
            },
            cost: Cost::Linear,
            fate: Fate::StationaryLaw,
            dynamical_system: true,
            recalls: true,
        },
        build: |sizes| Box::new(MatrixLstm { key_width: sizes.key, value_width: sizes.value }),
    },
    Entry {
        name: "delta-rule",
        summary: "DeltaNet: a token overwrites what its key has stored.",
        year: 2024,
        paper: "Yang et al., arXiv 2406.06484",
        key: "yang2024delta",
        claims: Claims {
            order: Order::Causal,
            normalised: false,
            state: MATRIX,
            cost: Cost::Linear,
            fate: Fate::StationaryLaw,
            dynamical_system: true,
            recalls: true,
        },
        build: |sizes| Box::new(DeltaRule { key_width: sizes.key, value_width: sizes.value }),
    },
    Entry {
        name: "ssd",
        summary: "State space duality, the core of Mamba-2: one decay per token and head.",
        year: 2024,
        paper: "Dao and Gu, arXiv 2405.21060",
        key: "dao2024",
        claims: Claims {
            order: Order::Causal,
            normalised: false,
            state: MATRIX,
            cost: Cost::Linear,
            fate: Fate::StationaryLaw,
            dynamical_system: true,
            recalls: false,
        },
        build: |sizes| Box::new(StateSpaceDuality { key_width: sizes.key, value_width: sizes.value }),
    },
    Entry {
        name: "s6",
        summary: "The selective state space of Mamba: a decay per channel and state.",
        year: 2023,
        paper: "Gu and Dao, arXiv 2312.00752",
        key: "gu2023",
        claims: Claims {
            order: Order::Causal,
            normalised: false,
            state: MATRIX,
            cost: Cost::Linear,
            fate: Fate::StationaryLaw,
            dynamical_system: true,
            recalls: false,
        },
        build: |sizes| Box::new(S6 { width: sizes.value, expansion: sizes.key }),
    },
    Entry {
        name: "s4",
        summary: "A time-invariant diagonal state space (S4D-Lin).",
        year: 2022,
        paper: "Gu et al., arXiv 2206.11893",
        key: "gu2022diagonal",
        claims: Claims {
            order: Order::Causal,
            normalised: false,
            state: StateSize { formula: "2 d_k d_v", numbers: |sizes, _| 2 * sizes.key * sizes.value },
            cost: Cost::Linear,
            fate: Fate::StationaryLaw,
            dynamical_system: true,
            recalls: false,
        },
        build: |sizes| Box::new(S4 { width: sizes.value, pairs: sizes.key }),
    },
    Entry {
        name: "rg-lru",
        summary: "The gated linear recurrence of Griffin.",
        year: 2024,
        paper: "De et al., arXiv 2402.19427",
        key: "de2024",
        claims: Claims {
            order: Order::Causal,
            normalised: false,
            state: VECTOR,
            cost: Cost::Linear,
            fate: Fate::StationaryLaw,
            dynamical_system: true,
            recalls: false,
        },
        build: |sizes| Box::new(RgLru { width: sizes.value }),
    },
    Entry {
        name: "qlstm",
        summary: "The quasi-LSTM: an LSTM whose gates do not see the state.",
        year: 2024,
        paper: "Sieber et al., arXiv 2405.15731",
        key: "sieber2024",
        claims: Claims {
            order: Order::Causal,
            normalised: false,
            state: VECTOR,
            cost: Cost::Linear,
            fate: Fate::StationaryLaw,
            dynamical_system: true,
            recalls: false,
        },
        build: |sizes| Box::new(QuasiLstm { width: sizes.value, forget: Forget::Sigmoid }),
    },
    Entry {
        name: "qlstm-reversed",
        summary: "The quasi-LSTM with the decay of S6.",
        year: 2024,
        paper: "Sieber et al., arXiv 2405.15731",
        key: "sieber2024",
        claims: Claims {
            order: Order::Causal,
            normalised: false,
            state: VECTOR,
            cost: Cost::Linear,
            fate: Fate::StationaryLaw,
            dynamical_system: true,
            recalls: false,
        },
        build: |sizes| Box::new(QuasiLstm { width: sizes.value, forget: Forget::Reversed }),
    },
];
