//! Evictions against a literal simulation, and what they must never do.

use crate::unwatched::{eviction::outputs, offline};
use esscher_audit::Error;
use esscher_audit::eviction::{Eviction, Policy};
use esscher_audit::head::{Head, Order};
use esscher_audit::readers::{Readers, Tilts};
use esscher_audit::replacement::{Atoms, BLOCK, Middle, Replacement};
use esscher_core::numerics::Stream;

const DIMENSION: usize = 5;
const TOKENS: usize = 230;

fn rows(seed: u64, mean: f64, scale: f64) -> Vec<f32> {
    let mut stream = Stream::new(seed, 0, 0);
    (0..TOKENS * DIMENSION)
        .map(|i| (mean * (i % DIMENSION) as f64 + scale * stream.normal()) as f32)
        .collect()
}

/// Two query heads on the same tokens.
struct Group {
    tilts: [Vec<f32>; 2],
    keys: Vec<f32>,
    values: Vec<f32>,
}

impl Group {
    fn new() -> Group {
        Group {
            tilts: [rows(1, 0.2, 0.8), rows(2, -0.1, 0.8)],
            keys: rows(3, 0.1, 1.0),
            values: rows(4, 0.0, 1.0),
        }
    }

    fn heads(&self, order: Order) -> Vec<Head<'_>> {
        let head =
            |tilts| Head { order, dimension: DIMENSION, tilts, keys: &self.keys, values: &self.values };
        self.tilts.iter().map(|tilts| head(tilts)).collect()
    }
}

/// Four sinks, and half of the rest of a budget for recent tokens.
fn usual(policy: Policy, budget: usize) -> Eviction {
    let rest = budget - BLOCK - 4;
    Eviction { policy, sinks: 4, recent: rest / 2, chosen: rest - rest / 2 }
}

fn row(numbers: &[f32], index: usize) -> Vec<f64> {
    numbers[index * DIMENSION..(index + 1) * DIMENSION].iter().map(|&entry| f64::from(entry)).collect()
}

fn inner(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(a, b)| a * b).sum()
}

/// The policy in double precision, token sets as sets of positions. Returns outputs and the most tokens ever held.
fn by_definition(eviction: &Eviction, group: &Group, readers: &Readers) -> (Vec<f64>, usize) {
    let mut held: Vec<usize> = Vec::new();
    let mut received = [0.0; TOKENS];
    let mut outputs = vec![0.0; 2 * TOKENS * DIMENSION];
    let mut most = 0;
    for start in (0..TOKENS).step_by(BLOCK) {
        // What each query head is expected to score a token, and the sum over all that are there but the sinks.
        let expected = |tilts: &Tilts, l: usize| -> f64 {
            let key = row(&group.keys, l);
            let mean: Vec<f64> = tilts.mean.iter().map(|&entry| f64::from(entry)).collect();
            let moved: Vec<f64> = (0..DIMENSION).map(|i| inner(&row(&tilts.covariance, i), &key)).collect();
            (inner(&mean, &key) + inner(&moved, &key) / 2.0).exp()
        };
        let rivals: Vec<usize> = held.iter().copied().filter(|&l| l >= eviction.sinks).collect();
        let totals: Vec<f64> = readers
            .heads
            .iter()
            .map(|tilts| rivals.iter().map(|&l| expected(tilts, l)).sum::<f64>())
            .collect();
        while held.len() > eviction.budget() - BLOCK {
            let worth = |l: usize| -> f64 {
                let value = row(&group.values, l);
                let shares =
                    readers.heads.iter().zip(&totals).map(|(tilts, total)| expected(tilts, l) / total);
                match eviction.policy {
                    Policy::ObservedAttention => received[l],
                    Policy::ExpectedAttention => shares.sum::<f64>() * inner(&value, &value).sqrt(),
                    _ => l as f64,
                }
            };
            let (at, _) = held
                .iter()
                .enumerate()
                .filter(|&(_, &l)| l >= eviction.sinks && l + eviction.recent < start)
                .min_by(|x, y| worth(*x.1).total_cmp(&worth(*y.1)))
                .unwrap();
            held.remove(at);
        }
        let end = (start + BLOCK).min(TOKENS);
        held.extend(start..end);
        most = most.max(held.len());
        for (index, tilts) in group.tilts.iter().enumerate() {
            for t in start..end {
                let tilt = row(tilts, t);
                let seen: Vec<usize> = held.iter().copied().filter(|&l| l <= t).collect();
                let weights: Vec<f64> =
                    seen.iter().map(|&l| inner(&tilt, &row(&group.keys, l)).exp()).collect();
                let total: f64 = weights.iter().sum();
                for (&l, weight) in seen.iter().zip(&weights) {
                    received[l] += weight / total;
                    for (i, entry) in row(&group.values, l).iter().enumerate() {
                        outputs[(index * TOKENS + t) * DIMENSION + i] += weight / total * entry;
                    }
                }
            }
        }
    }
    (outputs, most)
}

#[test]
fn every_policy_keeps_what_its_definition_keeps() {
    let group = Group::new();
    let heads = group.heads(Order::Causal);
    let readers = Readers::from_heads(std::slice::from_ref(&heads)).unwrap();
    for policy in [Policy::SinkWindow, Policy::ObservedAttention, Policy::ExpectedAttention] {
        for budget in [48, 100] {
            let usual = usual(policy, budget);
            for recent in [usual.recent, 0] {
                let eviction = Eviction { recent, chosen: usual.recent + usual.chosen - recent, ..usual };
                let found = outputs(&eviction, &heads, &readers).concat();
                let (expected, most) = by_definition(&eviction, &group, &readers);
                assert_eq!(most, budget);
                // Softmax in single precision at scores of size 8: a different token would change outputs by 0.01 and more.
                let difference = found
                    .iter()
                    .zip(&expected)
                    .fold(0.0, |most: f64, (a, b)| most.max((f64::from(*a) - b).abs()));
                assert!(difference < 2e-5, "{policy} {budget} {recent}: {difference}");
            }
        }
    }
}

#[test]
fn a_budget_for_the_whole_text_is_exact_attention() {
    let group = Group::new();
    let heads = group.heads(Order::Causal);
    let readers = Readers::from_heads(std::slice::from_ref(&heads)).unwrap();
    let atoms = Atoms { first: 0, light: 0.0, most_light: 0 };
    let whole = Replacement { atoms, window: 0, top: 0, middle: Middle::Exact };
    let exact: Vec<f32> = heads.iter().flat_map(|head| offline::outputs(&whole, head)).collect();
    for policy in Policy::ALL {
        // Cluster means keep half of their budget as a window.
        let found = outputs(&usual(policy, 2 * TOKENS + 40), &heads, &readers).concat();
        let difference = found.iter().zip(&exact).fold(0.0, |most: f32, (a, b)| most.max((a - b).abs()));
        assert!(difference < 2e-5, "{policy}: {difference}");
    }
}

#[test]
fn cluster_means_spend_the_same_budget() {
    for budget in [64, 129] {
        let replacement = usual(Policy::ClusterMeans, budget).as_replacement(Order::Causal).unwrap();
        assert_eq!(replacement.state_tokens(64), budget as f64);
        let replacement = usual(Policy::SinkWindow, budget).as_replacement(Order::Causal).unwrap();
        assert_eq!(replacement.state_tokens(64), budget as f64);
    }
}

#[test]
fn beside_a_frame_budgets_are_those_of_replacements() {
    let atoms = Atoms { first: 4, light: 0.4, most_light: 16 };
    for policy in Policy::ALL {
        let eviction = Eviction::beside(policy, &atoms, 64, 32);
        let replacement = Replacement { atoms, window: 64, top: 32, middle: Middle::Dropped };
        assert_eq!(eviction.budget() as f64, replacement.state_tokens(64));
    }
}

#[test]
fn a_text_where_all_see_all_is_cut_once() {
    let group = Group::new();
    let heads = group.heads(Order::Whole);
    let readers = Readers::from_heads(std::slice::from_ref(&heads)).unwrap();
    let atoms = Atoms { first: 0, light: 0.0, most_light: 0 };
    let exact = offline::outputs(&Replacement { atoms, window: 0, top: 0, middle: Middle::Exact }, &heads[0]);
    for policy in Policy::ALL {
        let all = Eviction { policy, sinks: 0, recent: 0, chosen: TOKENS };
        let found = &outputs(&all, &heads, &readers)[0];
        let difference = found.iter().zip(&exact).fold(0.0, |most: f32, (a, b)| most.max((a - b).abs()));
        assert!(difference < 2e-5, "{policy}: {difference}");
        // One token left: every query's output is one and the same value.
        let one = &outputs(&Eviction { chosen: 1, ..all }, &heads, &readers)[1];
        assert!(one.chunks_exact(DIMENSION).all(|row| row == &one[..DIMENSION]), "{policy}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_in_one_sentence() {
    for policy in Policy::ALL {
        assert_eq!(policy.to_string().parse::<Policy>().unwrap(), policy);
    }
    assert!(matches!("best".parse::<Policy>(), Err(Error::UnknownName { kind: "an eviction", .. })));
}
