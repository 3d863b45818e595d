//! Verdicts, decisions, assignments and their prices.

use esscher_audit::Error;
use esscher_audit::assignment::{Assignment, Running};
use esscher_audit::candidate::{Candidate, Frame};
use esscher_audit::controls::{BYTES_PER_NUMBER, budget, equal_bytes};
use esscher_audit::discrepancy::Discrepancy;
use esscher_audit::dossier::{Criterion, Dossier, Standard};
use esscher_audit::eviction::Policy;
use esscher_audit::examination::Findings;
use esscher_audit::head::Order;
use esscher_audit::model::Shape;
use esscher_audit::portrait::{Portrait, Sink};
use esscher_audit::readers::{Readers, Tilts};
use esscher_audit::replacement::{Atoms, Middle, Replacement, StreamingCache};
use esscher_audit::role::Role;
use esscher_audit::verdict::{Offer, Verdict, decide, judge, spread};
use esscher_core::numerics::Stream;

const SHAPE: Shape = Shape {
    layers: 2,
    heads: 4,
    key_value_heads: 2,
    head_dimension: 16,
    width: 64,
    vocabulary: 100,
    context: 512,
    order: Order::Causal,
};

fn measure(name: &str) -> Candidate {
    name.parse().unwrap()
}

#[test]
fn one_text_never_decides() {
    assert_eq!(judge(&[0.001], 0.05), Verdict::Uncertain);
    assert_eq!(judge(&[], 0.05), Verdict::Uncertain);
    assert_eq!(spread(&[0.5]).unwrap().high, f64::INFINITY);
}

/// Normal errors of mean exactly at the tolerance are accepted with probability 5 %: of 2000 trials 100 ± 10; five standard errors.
#[test]
fn a_head_at_the_tolerance_is_accepted_once_in_twenty() {
    let mut stream = Stream::new(5, 0, 0);
    let accepted = (0..2000)
        .filter(|_| {
            let errors: Vec<f64> = (0..6).map(|_| 0.05 + 0.01 * stream.normal()).collect();
            judge(&errors, 0.05) == Verdict::Accepted
        })
        .count();
    assert!((50..=150).contains(&accepted), "{accepted}");
}

/// Ten offers whose mean error is exactly the tolerance: judged each by itself, some would be accepted for four heads in ten. Of 2000
/// heads at most 100 ± 10 may be; five standard errors.
#[test]
fn many_offers_at_the_tolerance_do_not_make_a_head_accepted() {
    let mut stream = Stream::new(6, 0, 0);
    let mut errors = |_| (0..6).map(|_| 0.05 + 0.01 * stream.normal()).collect::<Vec<f64>>();
    let accepted = (0..2000)
        .filter(|_| {
            let offers: Vec<Offer> = (0..10)
                .map(|number| Offer {
                    candidate: measure("mean"),
                    state_tokens: 1.0,
                    errors: vec![errors(number)],
                })
                .collect();
            decide(&offers, 0.05).verdict == Verdict::Accepted
        })
        .count();
    assert!(accepted <= 150, "{accepted}");
}

#[test]
fn names_of_candidates_are_read_as_they_are_written() {
    for name in [
        "exact",
        "dropped",
        "mean",
        "gaussian",
        "tilted-gaussian",
        "reduced-gaussian/8",
        "tilted-means/32",
        "tilted-gaussians/4",
        "top-16+dropped",
        "top-32+tilted-means/32",
    ] {
        assert_eq!(measure(name).to_string(), name);
    }
    for wrong in [
        "",
        "tilted",
        "top-0+mean",
        "top-4+exact",
        "tilted-means/0",
        "tilted-means/9999",
        "mean/3",
        "top-x+mean",
    ] {
        assert!(wrong.parse::<Candidate>().is_err(), "{wrong}");
    }
    let told = "x".parse::<Candidate>().unwrap_err().to_string();
    for family in ["dropped", "tilted-gaussians/COUNT", "top-N+", "sink-window/B", "cluster-means/B"] {
        assert!(told.contains(family), "{family}: {told}");
    }
    assert!(!told.contains("exact"), "it is refused in audits: {told}");
}

/// Findings whose error with candidate c on text t of head (l, h) is `error(l, h, c, t)`.
fn dossier(candidates: &[&str], error: impl Fn(usize, usize, usize, usize) -> f64) -> Dossier {
    let portrait = Portrait {
        score_variance: 1.0,
        effective_tokens: 10.0,
        half_token_noise: 0.1,
        first_token_weight: 0.5,
        sink: Sink { position: 0, weight: 0.5 },
        heaviest: Vec::new(),
    };
    let texts = (0..3)
        .map(|text| {
            (0..SHAPE.layers * SHAPE.heads)
                .map(|place| {
                    let (layer, head) = (place / SHAPE.heads, place % SHAPE.heads);
                    let errors = (0..candidates.len())
                        .map(|candidate| {
                            let relative = error(layer, head, candidate, text);
                            Discrepancy { relative, residual: Some(relative / 10.0) }
                        })
                        .collect();
                    Findings { layer, head, portrait: portrait.clone(), errors }
                })
                .collect()
        })
        .collect();
    let candidates = candidates.iter().map(|name| (measure(name), Running::Streaming)).collect();
    Dossier::new(&SHAPE, candidates, texts).unwrap()
}

#[test]
fn the_cheapest_accepted_candidate_is_chosen_and_a_group_needs_all_its_readers() {
    // The mean is good enough for head 0, the Gaussian for heads 0, 1 and 2, nothing for head 3.
    let errors = [[0.01, 0.2, 0.2, 0.2], [0.01, 0.01, 0.01, 0.2]];
    let dossier = dossier(&["mean", "tilted-gaussian"], |_, head, candidate, text| {
        errors[candidate][head] * (1.0 + 0.01 * text as f64)
    });
    let (running, criterion) = (Running::Streaming, Criterion::Output);
    let standard = Standard { running, criterion, tolerance: 0.05, only: None };
    let heads = dossier.decide_heads(&standard);
    let chosen: Vec<_> = heads[0].iter().map(|decision| decision.candidate).collect();
    let (mean, gaussian) = (Some(measure("mean")), Some(measure("tilted-gaussian")));
    assert_eq!(chosen, [mean, gaussian, gaussian, None]);
    assert_eq!(heads[1][3].verdict, Verdict::Refused);
    let groups = dossier.decide_groups(&standard);
    assert_eq!(groups[0].iter().map(|decision| decision.candidate).collect::<Vec<_>>(), [gaussian, None]);
    let assignment = dossier.assignment(&groups).unwrap();
    assert_eq!((assignment.replaced_heads(), assignment.freed_groups(&SHAPE)), (4, 2));
    // By the residual criterion, ten times smaller here, everything is accepted.
    let residual = dossier.decide_heads(&Standard { criterion: Criterion::Residual, ..standard });
    assert!(residual.iter().flatten().all(|decision| decision.candidate == mean));
    // Nothing was asked offline.
    let offline = dossier.decide_heads(&Standard { running: Running::Offline, ..standard });
    assert!(offline.iter().flatten().all(|decision| decision.verdict == Verdict::Uncertain));
    // If the mean alone is offered, nobody gets the Gaussian.
    let only = dossier.decide_heads(&Standard { only: mean, ..standard });
    assert_eq!(
        only[0].iter().map(|decision| decision.candidate).collect::<Vec<_>>(),
        [mean, None, None, None]
    );
}

#[test]
fn the_control_moves_candidates_and_keeps_their_numbers() {
    let mut rows = vec![vec![Candidate::Exact; 4]; 2];
    rows[0] = vec![measure("mean"); 4];
    let assignment = Assignment::new(&SHAPE, rows).unwrap();
    let moved: Vec<Assignment> =
        (0..8).map(|trial| assignment.shuffled(2, &mut Stream::new(1, trial, 0))).collect();
    assert!(moved.iter().all(|other| other.replaced_heads() == 4 && other.freed_groups(&SHAPE) == 2));
    assert!(moved.iter().any(|other| *other != assignment));
}

#[test]
fn a_cache_costs_what_its_tokens_and_states_take() {
    let frame = Frame::default();
    let tokens = 10_000;
    let (exact, ours) = Assignment::everywhere(&SHAPE, Candidate::Exact).cache_bytes(
        &SHAPE,
        &frame,
        Running::Streaming,
        tokens,
        2,
    );
    assert_eq!(exact, ours);
    assert_eq!(exact, (2 * 16 * 2 * tokens * 2 * 2) as f64);
    let (_, dropped) = Assignment::everywhere(&SHAPE, measure("dropped")).cache_bytes(
        &SHAPE,
        &frame,
        Running::Streaming,
        tokens,
        2,
    );
    assert_eq!(dropped, (2 * 16 * 2 * frame.tokens() * 2 * 2) as f64);
    let gaussian =
        Assignment::everywhere(&SHAPE, Candidate::Measure { top: 0, middle: Middle::TiltedGaussian });
    let (_, shared) = gaussian.cache_bytes(&SHAPE, &frame, Running::Streaming, tokens, 2);
    let (_, owned) = gaussian.cache_bytes(&SHAPE, &frame, Running::Offline, tokens, 2);
    // Moments in single precision: means and mass, a symmetric and a full covariance, the boxes of keys and values.
    let state = (4 * (2 * 16 + 1 + 16 * 17 / 2 + 16 * 16 + 4 * 16)) as f64;
    assert!((shared - dropped - 4.0 * state).abs() < 1e-6);
    assert!((owned - dropped - 8.0 * state).abs() < 1e-6);
    // A short prompt is kept as it is.
    assert_eq!(gaussian.cache_bytes(&SHAPE, &frame, Running::Streaming, 50, 2), (12_800.0, 12_800.0));
}

/// Cluster means are moments in single precision, whatever they are called.
#[test]
fn cluster_means_cost_what_tilted_means_cost() {
    let frame = Frame::default();
    let bytes = |candidate: Candidate| candidate.bytes(&frame, 64, 4096, 2);
    // The policy fills the places of light tokens with clusters too.
    let lights = frame.atoms.most_light;
    let means = Replacement {
        atoms: Atoms { first: 4, light: 0.0, most_light: 0 },
        window: 64,
        top: 0,
        middle: Middle::TiltedMeans { count: 32 + lights },
    };
    assert_eq!(bytes(measure("cluster-means/32")), means.bytes(64, 4096, 2));
    assert!(bytes(measure("cluster-means/32")) > bytes(measure("expected-attention/32")));
}

#[test]
fn an_assignment_of_another_model_is_refused() {
    for rows in [vec![vec![Candidate::Exact; 4]], vec![vec![Candidate::Exact; 4], vec![]]] {
        let refused = Assignment::new(&SHAPE, rows);
        assert!(matches!(refused, Err(Error::OtherModel { .. })), "{refused:?}");
    }
}

/// Lookups go by value, and tables hold names: the way back must be the same for every role.
#[test]
fn every_role_comes_back_from_its_name() {
    let measure = |name: &str| name.parse::<Candidate>().unwrap();
    let (dropped, kept) = (measure("dropped"), measure("top-8+tilted-means/4"));
    let mut roles = vec![
        (Role::Exact, "exact attention"),
        (Role::AcceptedGroups, "accepted key-value heads"),
        (Role::AcceptedGroupsDropped, "accepted key-value heads, middle dropped"),
        (Role::RandomGroups { draw: 3 }, "as many random key-value heads, draw 3"),
        (Role::OtherGroups, "the other key-value heads"),
        (Role::AllHeads { candidate: dropped, running: None }, "all heads dropped"),
        (Role::EqualBytes(kept), "equal bytes: top-8+tilted-means/4"),
        (
            Role::Named("as many random key-value heads, draw 03".into()),
            "as many random key-value heads, draw 03",
        ),
        (Role::Named("equal bytes: best".into()), "equal bytes: best"),
    ];
    let offline = Running::Offline;
    roles.extend([
        (Role::AcceptedHeads(offline), "accepted heads, offline"),
        (Role::AcceptedHeadsDropped(offline), "accepted heads, middle dropped, offline"),
        (Role::RandomHeads(offline), "as many random heads, offline"),
        (
            Role::AllHeads { candidate: kept, running: Some(offline) },
            "all heads top-8+tilted-means/4, offline",
        ),
        (Role::AcceptedHeads(Running::Streaming), "accepted heads, streaming"),
    ]);
    for (role, name) in roles {
        assert_eq!(role.to_string(), name);
        assert_eq!(Role::from(name), role);
    }
}

#[test]
fn every_choice_comes_back_from_its_name() {
    for verdict in Verdict::ALL {
        assert_eq!(verdict.name().parse(), Ok(verdict));
    }
    for criterion in Criterion::ALL {
        assert_eq!(criterion.name().parse(), Ok(criterion));
    }
    for running in Running::ALL {
        assert_eq!(running.name().parse(), Ok(running));
    }
    for order in Order::ALL {
        assert_eq!(order.name().parse(), Ok(order));
    }
    let refused = "taste".parse::<Criterion>().unwrap_err();
    assert_eq!(refused.to_string(), "`taste` is not a criterion: expected output or residual");
}

#[test]
fn the_middle_is_what_a_cache_no_longer_holds() {
    let frame = Frame::default();
    let replacement = frame.replacement(0, Middle::Dropped);
    // Without scores the output is a mean: of n kept tokens, of which the last alone has the value 1, it is 1/n.
    let dropped = |length: usize, median_value_norm: f32| {
        let pooled = Tilts { mean: vec![0.0], covariance: vec![0.0] };
        let readers = Readers { pooled, heads: Vec::new(), median_value_norm };
        let mut cache = StreamingCache::new(&replacement, &readers, 1);
        for token in 0..length {
            cache.absorb(&[0.0], &[f32::from(u8::from(token + 1 == length))]).unwrap();
        }
        let mut output = [0.0];
        cache.read(&[0.0], &mut output).unwrap();
        length - (1.0 / output[0]).round() as usize
    };
    for length in [96, 128, 129, 200, 256, 1000] {
        // Values of norm 0 are light unless nothing is.
        let expected = (dropped(length, 1.0), dropped(length, 0.0));
        assert_eq!(frame.middle_at_the_end(Order::Causal, length), expected, "{length}");
    }
    assert_eq!(frame.middle_at_the_end(Order::Causal, 128), (12, 28));
    assert_eq!(frame.middle_at_the_end(Order::Whole, 128), (108, 124));
}

#[test]
fn no_candidate_of_equal_bytes_takes_more_than_evicted_tokens() {
    for order in [Order::Causal, Order::Whole] {
        let window = if order == Order::Causal { 64 } else { 0 };
        let frame = Frame { window, ..Frame::default() };
        for head_dimension in [16, 48, 64, 128] {
            let shape = Shape { head_dimension, width: 4 * head_dimension, context: 8192, order, ..SHAPE };
            for length in [128, 256, 1024, 8192] {
                let bytes = |one: &Candidate| one.bytes(&frame, head_dimension, length, BYTES_PER_NUMBER);
                let kept = (frame.tokens() + budget(length)) * 2 * head_dimension * BYTES_PER_NUMBER;
                let all = equal_bytes(&shape, &frame, length);
                assert!(all.iter().all(|one| bytes(one) <= kept), "{all:?}");
                let named = |name: &str| all.iter().any(|one| one.to_string().starts_with(name));
                assert!(named("tilted-means/") && named("reduced-gaussian/"), "{all:?}");
                let clusters = order == Order::Causal && length >= 1024;
                assert_eq!(named(Policy::ClusterMeans.name()), clusters, "{all:?}");
            }
        }
    }
}
