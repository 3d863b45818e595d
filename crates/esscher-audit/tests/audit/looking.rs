//! Portraits, discrepancies, segments and needles in worlds whose answers are known.

use crate::worlds::numbers;
use esscher_audit::Error;
use esscher_audit::checkpoint::{Checkpoint, Source};
use esscher_audit::discrepancy::{self, discrepancy};
use esscher_audit::head::{Head, Order};
use esscher_audit::likelihood::retrieval;
use esscher_audit::model::{ExactAttention, Model};
use esscher_audit::needle::Haystack;
use esscher_audit::portrait::{Portrait, measured_positions, median, portrait};
use esscher_audit::segment::segments;
use esscher_audit::vocabulary::Template;
use esscher_core::Unwatched;
use esscher_core::numerics::Stream;

/// One coordinate, tilts 1: the score of a token is its key.
fn head<'a>(order: Order, tilts: &'a [f32], keys: &'a [f32], values: &'a [f32]) -> Head<'a> {
    Head { order, dimension: 1, tilts, keys, values }
}

#[test]
fn equal_scores_spread_over_all_tokens() {
    let ones = vec![1.0; 200];
    let seen = portrait(&head(Order::Whole, &ones, &ones, &ones), &mut Stream::new(1, 0, 0)).unwrap();
    assert!(seen.score_variance < 1e-12);
    assert!((seen.effective_tokens - 200.0).abs() < 1e-3, "{}", seen.effective_tokens);
    assert!(seen.half_token_noise < 1e-6);
    assert!((seen.first_token_weight - 4.0 / 200.0).abs() < 1e-6);
    // Causal queries of the second half see 100 to 200 tokens: the median is in the middle.
    let seen = portrait(&head(Order::Causal, &ones, &ones, &ones), &mut Stream::new(1, 0, 0)).unwrap();
    assert!((seen.effective_tokens - 150.0).abs() < 2.0, "{}", seen.effective_tokens);
}

/// E Σp² of the softmax of L normal scores of variance s² is close to e^{s²}/L: effective tokens L e^{−s²}. At s² = 1/2 and L = 20,000
/// the next order is 1/L · e^{2s²}(…) below a percent; the sample's own fluctuation of Σe^{2s} is 1.5 % (two standard errors 3 %).
#[test]
fn normal_scores_have_the_variance_and_the_effective_tokens_of_the_theory() {
    let (tokens, variance) = (20_000, 0.5_f64);
    let mut stream = Stream::new(3, 0, 0);
    let keys: Vec<f32> = (0..tokens).map(|_| (variance.sqrt() * stream.normal()) as f32).collect();
    let ones = vec![1.0; tokens];
    let seen = portrait(&head(Order::Whole, &ones, &keys, &keys), &mut Stream::new(1, 0, 0)).unwrap();
    assert!((seen.score_variance - variance).abs() < 0.02, "{}", seen.score_variance);
    let expected = tokens as f64 * (-variance).exp();
    assert!((seen.effective_tokens / expected - 1.0).abs() < 0.05, "{} {expected}", seen.effective_tokens);
}

#[test]
fn a_sink_is_found_with_its_weight() {
    let tokens = 64;
    let mut keys = vec![0.0_f32; tokens];
    keys[7] = 63.0_f32.ln();
    let ones = vec![1.0; tokens];
    let seen = portrait(&head(Order::Whole, &ones, &keys, &ones), &mut Stream::new(1, 0, 0)).unwrap();
    assert_eq!(seen.sink.position, 7);
    assert!((seen.sink.weight - 0.5).abs() < 1e-5);
}

#[test]
fn only_queries_with_something_replaced_are_measured() {
    assert_eq!(measured_positions(Order::Causal, 128, 96, 1000), (96..128).collect::<Vec<_>>());
    assert_eq!(measured_positions(Order::Causal, 1024, 96, 1000), (512..1024).collect::<Vec<_>>());
    assert_eq!(measured_positions(Order::Whole, 8, 96, 4), [1, 3, 5, 7]);
    assert!(measured_positions(Order::Causal, 64, 96, 4).is_empty());
}

/// Keys that are all alike tell no token from another, however large they are.
#[test]
fn a_portrait_is_of_scores_that_single_precision_does_not_hold() {
    let (tilts, values) = (numbers(1, 400, 1.0), numbers(2, 400, 1.0));
    let of = |key: f32| {
        let keys = vec![key; 400];
        let head = Head { order: Order::Causal, dimension: 4, tilts: &tilts, keys: &keys, values: &values };
        portrait(&head, &mut Stream::new(1, 0, 0)).unwrap()
    };
    let (large, zero) = (of(3e38), of(0.0));
    // A mean of equal numbers is off by some roundings.
    assert!(large.score_variance < 1e-28 * 3e38_f64.powi(2), "{}", large.score_variance);
    assert_eq!(Portrait { score_variance: 0.0, ..large }, zero);
    assert!(!of(f32::INFINITY).effective_tokens.is_finite(), "what is not finite stays so");
    assert!(median(&mut [1.0, -f64::NAN, 2.0]).unwrap().is_nan(), "no number is no small one");
}

#[test]
fn a_text_of_one_token_has_no_portrait() {
    assert_eq!(portrait(&head(Order::Causal, &[1.0], &[1.0], &[1.0]), &mut Stream::new(1, 0, 0)), None);
}

#[test]
fn discrepancies_are_relative_to_the_output_and_to_the_stream() {
    let exact: Vec<f32> = (0..20).flat_map(|_| [3.0, 4.0]).collect();
    let moved: Vec<f32> = (0..20).flat_map(|_| [3.0, 4.5]).collect();
    let projected_norms =
        &|rows: &[f32]| rows.chunks(2).map(|row| 2.0 * (row[0] * row[0] + row[1] * row[1]).sqrt()).collect();
    let norms = vec![10.0; 20];
    let stream = discrepancy::Stream { projected_norms, norms: &norms };
    let found = discrepancy(&moved, &exact, 2, &[3, 12, 19], Some(&stream)).unwrap();
    assert!((found.relative - 0.1).abs() < 1e-7);
    assert!((found.residual.unwrap() - 0.1).abs() < 1e-7);
    assert_eq!(discrepancy(&exact, &exact, 2, &[0], None).unwrap().relative, 0.0);
    assert_eq!(discrepancy(&exact, &exact, 2, &[], None), None);
}

#[test]
fn segments_are_disjoint_and_begin_and_end_as_the_model_expects() {
    let text: Vec<u32> = (10..110).collect();
    let template = Template { prefix: vec![1], suffix: vec![2, 3] };
    let cut = segments(&text, &template, 13, 5).unwrap();
    assert_eq!(cut.len(), 5);
    assert!(cut.iter().all(|segment| segment.len() == 13 && segment[0] == 1 && segment[11..] == [2, 3]));
    let mut all: Vec<u32> = cut.iter().flat_map(|segment| segment[1..11].to_vec()).collect();
    let count = all.len();
    assert!(all.iter().all(|token| *token >= 10));
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
}

#[test]
fn segments_of_nothing_and_of_too_little_say_so() {
    let template = Template::default();
    let around = Template { prefix: vec![1], suffix: vec![2] };
    for (template, tokens, length, count, (of, expected, least)) in [
        (&template, 0, 8, 1, ("the text", 0, 8)),
        (&template, 20, 8, 3, ("the text", 20, 24)),
        (&template, 20, 0, 3, ("a segment", 0, 1)),
        (&template, 20, 8, 0, ("a segment", 0, 1)),
        (&around, 20, 2, 1, ("a segment", 2, 3)),
    ] {
        let refused = segments(&vec![1; tokens], template, length, count).unwrap_err();
        assert!(
            matches!(refused, Error::TooFewTokens { what, found, needed, .. }
                if (what, found, needed) == (of, expected, least)),
            "{refused}"
        );
    }
}

/// The model's own choices are the codes.
#[test]
fn codes_are_found_whole_or_not_at_all() {
    let bytes = crate::tiny::llama2c(261);
    let source = Source { name: "tiny", weights: &bytes, config: None, tokenizer: None };
    let model = Model::new(Checkpoint::read(&source).unwrap().weights).unwrap();
    let mut tokens = vec![1, 5, 9];
    for _ in 0..4 {
        let hidden =
            model.forward(&tokens, 0, &mut ExactAttention::new(model.shape()), &Unwatched).unwrap().unwrap();
        let logits = model.logits(&hidden[hidden.len() - model.shape().width..]).unwrap();
        let best = logits.iter().enumerate().max_by(|(_, one), (_, other)| one.total_cmp(other)).unwrap();
        tokens.push(best.0 as u32);
    }
    let found = |tokens: &[u32], answers: &[&[usize]]| {
        let answers = answers.iter().map(|code| code.to_vec()).collect();
        let haystack = Haystack { tokens: tokens.to_vec(), answers };
        retrieval(&model, &haystack, &mut ExactAttention::new(model.shape()), &Unwatched)
    };
    assert_eq!(found(&tokens, &[&[3, 4], &[5, 6]]), Ok(Some(1.0)));
    let mut wrong = tokens.clone();
    wrong[6] = (wrong[6] + 1) % 261;
    // One of the two tokens of the second code is wrong.
    assert_eq!(found(&wrong, &[&[3, 4], &[5, 6]]), Ok(Some(0.5)));
    assert_eq!(found(&wrong, &[&[5, 6]]), Ok(Some(0.0)));
    for position in [0, 7] {
        let expected = Err(Error::NotPredictable { position, tokens: 7 });
        assert_eq!(found(&tokens, &[&[position]]), expected);
    }
    for answers in [&[&[] as &[usize]] as &[&[usize]], &[]] {
        let refused = found(&tokens, answers);
        assert!(matches!(refused, Err(Error::TooFewTokens { found: 0, needed: 1, .. })), "{refused:?}");
    }
}
