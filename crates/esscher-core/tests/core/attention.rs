//! Attention as a map on measures: closed forms, gradients against differences, extreme scores, heads.

use crate::common::{skew_gaussian, skew_head, skew_mixture};
use esscher_core::attention::{Attention, Heads, Linear, Moment, Projections, Scaling, Softmax};
use esscher_core::measure::{Cube, Empirical, Gaussian, Law, Measure, Rademacher, Sphere};
use esscher_core::numerics::linalg;
use esscher_core::{Mat, mat};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::sync::Arc;

fn prompt() -> Empirical {
    let tokens = [0.3, -1.0, 0.2, 1.1, 0.4, -0.6, -0.9, 0.8, 0.1, 0.0, 0.0, 1.5, 0.7, 0.7, -0.7];
    Empirical::from_tokens(3, &tokens).unwrap()
}

fn laws() -> Vec<Law> {
    vec![
        Arc::new(skew_gaussian()),
        Arc::new(skew_mixture()),
        Arc::new(prompt()),
        Arc::new(Rademacher::new(3).unwrap()),
        Arc::new(Cube::new(3).unwrap()),
        Arc::new(Sphere::new(3, 1.4).unwrap()),
    ]
}

/// Softmax attention written as everyone writes it.
#[test]
fn attention_on_a_prompt_is_ordinary_softmax_attention() {
    let (head, query, prompt) = (skew_head(), [0.8, -0.3], prompt());
    let weights: Vec<f64> =
        prompt.points().map(|token| linalg::dot(token, &linalg::apply(head.score(), &query)).exp()).collect();
    let total: f64 = weights.iter().sum();
    let mut expected = vec![0.0; 2];
    for (token, weight) in prompt.points().zip(&weights) {
        linalg::add_scaled(&mut expected, weight / total, &linalg::apply(head.value(), token));
    }
    let found = head.attend(&prompt, &query).unwrap();
    assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-14));
}

#[test]
fn gaussian_attention_is_the_value_of_the_mean_plus_centred_linear_attention() {
    let (head, tokens, query) = (skew_head(), skew_gaussian(), [0.8, -0.3]);
    let linear = Linear::new(head.score(), head.value(), Moment::Centred).unwrap();
    let mean = linalg::apply(head.value(), tokens.mean_vector());
    let expected = linalg::sum(&mean, &linear.attend(&tokens, &query).unwrap());
    let found = head.attend(&tokens, &query).unwrap();
    assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-14));
    // Raw linear attention differs unless the mean vanishes.
    let raw = Linear::new(head.score(), head.value(), Moment::Raw).unwrap();
    assert!((raw.attend(&tokens, &query).unwrap()[0] - found[0]).abs() > 1e-3);
    // On a prompt the raw form is (1/L) Σ V z ⟨z, Uz⟩.
    let (prompt, tilt) = (prompt(), head.tilt(&query).unwrap());
    let mut expected = vec![0.0; 2];
    for token in prompt.points() {
        let share = linalg::dot(token, &tilt) / prompt.len() as f64;
        linalg::add_scaled(&mut expected, share, &linalg::apply(head.value(), token));
    }
    let found = raw.attend(&prompt, &query).unwrap();
    assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-14));
}

/// Central differences of the output in every entry of U and V, for every law and both kinds of head.
#[test]
fn gradients_equal_differences() {
    let (base, query, weight, step) = (skew_head(), [0.8, -0.3], [0.7, -1.1], 1e-5);
    type Build = fn(&Mat<f64>, &Mat<f64>) -> Box<dyn Attention>;
    let builds: [Build; 3] = [
        |u, v| Box::new(Softmax::new(u.as_ref(), v.as_ref()).unwrap()),
        |u, v| Box::new(Linear::new(u.as_ref(), v.as_ref(), Moment::Raw).unwrap()),
        |u, v| Box::new(Linear::new(u.as_ref(), v.as_ref(), Moment::Centred).unwrap()),
    ];
    let (score, value) = (base.score().to_owned(), base.value().to_owned());
    for law in laws() {
        for build in builds {
            let gradient = build(&score, &value).gradient(law.as_ref(), &query).unwrap();
            let weighted = |u: &Mat<f64>, v: &Mat<f64>| {
                linalg::dot(&weight, &build(u, v).attend(law.as_ref(), &query).unwrap())
            };
            let (in_score, in_value) =
                (gradient.in_score(&weight).unwrap(), gradient.in_value(&weight).unwrap());
            assert_eq!(gradient.output, build(&score, &value).attend(law.as_ref(), &query).unwrap());
            for i in 0..3 {
                for j in 0..2 {
                    let moved = |h: f64| {
                        let mut moved = score.clone();
                        moved[(i, j)] += h;
                        weighted(&moved, &value)
                    };
                    let slope = (moved(step) - moved(-step)) / (2.0 * step);
                    assert!((slope - in_score[(i, j)]).abs() < 1e-8, "U[{i}, {j}] {law:?}");
                    let moved = |h: f64| {
                        let mut moved = value.clone();
                        moved[(j, i)] += h;
                        weighted(&score, &moved)
                    };
                    let slope = (moved(step) - moved(-step)) / (2.0 * step);
                    assert!((slope - in_value[(j, i)]).abs() < 1e-8, "V[{j}, {i}] {law:?}");
                }
            }
        }
    }
}

#[test]
fn cold_attention_picks_the_best_matching_token_at_any_score_size() {
    let (prompt, head) = (prompt(), skew_head());
    for size in [1e2, 1e4, 1e8, 1e150] {
        let query = [size, -0.4 * size];
        let tilt = head.tilt(&query).unwrap();
        let best =
            prompt.points().max_by(|a, b| linalg::dot(a, &tilt).total_cmp(&linalg::dot(b, &tilt))).unwrap();
        let expected = linalg::apply(head.value(), best);
        let found = head.gradient(&prompt, &query).unwrap();
        assert!(found.output.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12), "{size:e}");
        assert!(linalg::squared_frobenius(found.tilt_sensitivity.as_ref()) < 1e-20);
        let queries = Mat::from_fn(6, 2, |_, j| query[j]);
        let all = head.attend_all(&prompt, queries.as_ref()).unwrap();
        assert!(all.row_iter().all(|row| (0..2).all(|j| (row[j] - expected[j]).abs() < 1e-12)), "{size:e}");
    }
}

/// Scores of ±10⁴ on laws with closed forms.
#[test]
fn scores_of_ten_thousand_give_finite_correct_outputs() {
    let head = Softmax::new(mat![[1.0]].as_ref(), mat![[1.0]].as_ref()).unwrap();
    for sign in [1.0, -1.0] {
        let query = [1e4 * sign];
        let at = |law: &dyn Measure| head.attend(law, &query).unwrap()[0];
        assert_eq!(at(&Gaussian::standard(1).unwrap()), 1e4 * sign);
        assert_eq!(at(&Rademacher::new(1).unwrap()), sign);
        assert!((at(&Cube::new(1).unwrap()) - sign * (1.0 - 1e-4)).abs() < 1e-15);
        // In R³ the tilted sphere has mean coth x − 1/x; in R¹ it is a sign.
        assert_eq!(at(&Sphere::new(1, 1.0).unwrap()), sign);
        let prompt = Empirical::from_tokens(1, &[-1.0, 0.5, 1.0]).unwrap();
        assert_eq!(at(&prompt), sign);
    }
}

#[test]
fn many_queries_equal_one_query_at_a_time() {
    let head = skew_head();
    let linear = Linear::new(head.score(), head.value(), Moment::Raw).unwrap();
    let queries = Mat::from_fn(37, 2, |i, j| (i as f64 + 3.0 * j as f64).sin());
    for attention in [&head as &dyn Attention, &linear] {
        for law in laws() {
            let all = attention.attend_all(law.as_ref(), queries.as_ref()).unwrap();
            for row in 0..37 {
                let one = attention.attend(law.as_ref(), &[queries[(row, 0)], queries[(row, 1)]]).unwrap();
                assert!((0..2).all(|j| (all[(row, j)] - one[j]).abs() < 1e-14));
            }
        }
    }
}

#[test]
fn projections_give_the_score_matrix_and_heads_add() {
    let query = mat![[1.0, 2.0], [0.5, -1.0], [0.3, 0.0]];
    let key = mat![[1.0, 0.0, 1.0], [0.0, 1.0, 0.5], [1.0, 1.0, 0.0]];
    let value = mat![[1.0, 0.0, 2.0]];
    let projections =
        Projections::new(query.as_ref(), key.as_ref(), value.as_ref(), Scaling::InverseRootDimension)
            .unwrap();
    let expected = faer::Scale(1.0 / 3f64.sqrt()) * (key.transpose() * &query);
    assert!(linalg::squared_frobenius((&projections.score_matrix() - expected).as_ref()) < 1e-28);
    let softmax = Softmax::from_projections(&projections).unwrap();
    let linear = Linear::from_projections(&projections, Moment::Raw).unwrap();
    let heads = Heads::new(vec![Arc::new(softmax.clone()), Arc::new(linear.clone())]).unwrap();
    let (prompt, z) = (prompt(), [0.4, -0.2]);
    let sum = softmax.attend(&prompt, &z).unwrap()[0] + linear.attend(&prompt, &z).unwrap()[0];
    assert!((heads.attend(&prompt, &z).unwrap()[0] - sum).abs() < 1e-14);
    assert_eq!(heads.gradients(&prompt, &z).unwrap().len(), 2);
}

#[test]
fn mismatched_pieces_are_refused_by_name() {
    let says = |error: esscher_core::Error, words: &[&str]| {
        let text = error.to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };
    let square = Mat::<f64>::identity(2, 2);
    says(
        Softmax::new(square.as_ref(), Mat::identity(3, 3).as_ref()).unwrap_err(),
        &["value matrix (columns)", "2", "3"],
    );
    says(
        Softmax::new(Mat::zeros(0, 2).as_ref(), square.as_ref()).unwrap_err(),
        &["score matrix (rows)", "at least one"],
    );
    says(
        Softmax::new(mat![[f64::NAN]].as_ref(), mat![[1.0]].as_ref()).unwrap_err(),
        &["score matrix[0, 0]", "NaN"],
    );
    let head = skew_head();
    says(
        head.attend(&Gaussian::standard(2).unwrap(), &[0.0, 0.0]).unwrap_err(),
        &["tokens (dimension)", "3", "2"],
    );
    says(head.attend(&prompt(), &[0.0]).unwrap_err(), &["query", "2", "1"]);
    says(head.attend(&prompt(), &[0.0, f64::INFINITY]).unwrap_err(), &["query[1]", "inf"]);
    says(head.attend_all(&prompt(), Mat::zeros(4, 3).as_ref()).unwrap_err(), &["queries (columns)"]);
    says(
        head.attend_all(&prompt(), mat![[0.0, 1.0], [f64::NAN, 1.0]].as_ref()).unwrap_err(),
        &["queries[1, 0]", "NaN"],
    );
    says(
        head.attend_all(&Gaussian::standard(2).unwrap(), Mat::zeros(4, 2).as_ref()).unwrap_err(),
        &["tokens (dimension)", "3", "2"],
    );
    assert_eq!(head.attend_all(&prompt(), Mat::zeros(0, 2).as_ref()).unwrap().shape(), (0, 2));
    says(Heads::new(vec![]).unwrap_err(), &["heads", "at least one"]);
    let gradient = head.gradient(&prompt(), &[0.1, 0.2]).unwrap();
    says(gradient.in_score(&[1.0]).unwrap_err(), &["output weight", "expected size 2", "1"]);
    says(gradient.in_value(&[1.0, 2.0, 3.0]).unwrap_err(), &["output weight", "expected size 2", "3"]);
    says(gradient.in_value(&[1.0, f64::NAN]).unwrap_err(), &["output weight[1]", "NaN"]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(4), ..ProptestConfig::default() })]

    #[test]
    fn no_matrix_makes_attention_panic_or_answer_nan(
        entries in prop::collection::vec(prop::num::f64::ANY, 8),
        exponent in -300i32..300,
    ) {
        for scale in [None, Some(10f64.powi(exponent))] {
            let entry = |k: usize| scale.map_or(entries[k], |scale| entries[k].sin() * scale);
            let score = Mat::from_fn(3, 1, |i, _| entry(i));
            let value = Mat::from_fn(1, 3, |_, j| entry(3 + j));
            let Ok(head) = Softmax::new(score.as_ref(), value.as_ref()) else { continue };
            for law in laws() {
                if let Ok(found) = head.gradient(law.as_ref(), &[entry(6)]) {
                    prop_assert!(found.output.iter().all(|x| x.is_finite()));
                    prop_assert!(linalg::trace(found.tilt_sensitivity.as_ref()).is_finite());
                }
            }
        }
    }
}
