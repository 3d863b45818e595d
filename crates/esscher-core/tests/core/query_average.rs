//! Averages over queries: against one- and two-dimensional quadrature, simulation, and their own error bars.

use crate::common::{StopAfter, length, lengths, skew_gaussian, skew_head, skew_mixture};
use esscher_core::attention::Softmax;
use esscher_core::measure::{Cube, Empirical, Gaussian, Law, Mixture, Sphere};
use esscher_core::numerics::normal;
use esscher_core::prompt::{FinitePrompt, PromptLength, QueryAverage};
use esscher_core::{Accuracy, Completion, Mat, Monitor, Unwatched, mat};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn scaled_identity(dimension: usize, scale: f64) -> Mat<f64> {
    Mat::from_fn(dimension, dimension, |i, j| if i == j { scale } else { 0.0 })
}

/// N(0, 1) tokens and queries, U = H: every error is an integral over one normal variable, done here by a
/// plain trapezoid sum over z that shares nothing with the radius rule or the τ table.
#[test]
fn averages_at_a_trillion_tokens_equal_one_dimensional_quadrature() {
    let tokens = Gaussian::standard(1).unwrap();
    let all = lengths(&[1, 2, 100, 1_000_000, 1_000_000_000_000]);
    for operator_norm in [0.5, 1.0, 2.0] {
        let head = Softmax::new(mat![[operator_norm]].as_ref(), mat![[1.0]].as_ref()).unwrap();
        let prompt = FinitePrompt::exact(&head, &tokens).unwrap();
        let averaged = prompt.over_queries(&tokens, &all, QueryAverage::default(), &Unwatched).unwrap();
        let mut direct = vec![[0.0; 4]; all.len()];
        let step = 0.06;
        for k in -200..=200 {
            let z = step * f64::from(k);
            let weight = step * normal::density(z);
            for (sums, deviation) in direct.iter_mut().zip(prompt.at_query(&[z], &all).unwrap()) {
                sums[0] += weight * deviation.errors.output;
                sums[1] += weight * deviation.errors.score_gradient;
                sums[2] += weight * deviation.errors.value_gradient;
                sums[3] += weight * deviation.participation;
            }
        }
        for (found, expected) in averaged.deviations.iter().zip(&direct) {
            let parts = [
                found.errors.output,
                found.errors.score_gradient,
                found.errors.value_gradient,
                found.participation,
            ];
            for (found, expected) in parts.iter().zip(expected) {
                assert!(found.accuracy == Accuracy::Exact);
                // The issue asks for 1e-6; the rule itself claims 1e-8.
                let error = (found.value / expected - 1.0).abs();
                assert!(error < 1e-8, "H = {operator_norm}: {} {expected}: {error:e}", found.value);
            }
        }
    }
}

/// Isotropic queries in R⁸: all directions are alike, so the radius rule alone must be right, and the
/// reported randomisation error must be rounding.
#[test]
fn isotropic_averages_have_no_randomisation_error() {
    let dimension = 8;
    let tokens = Gaussian::standard(dimension).unwrap();
    for operator_norm in [1.0, 2.0] {
        let head =
            Softmax::new(scaled_identity(dimension, operator_norm).as_ref(), Mat::identity(8, 8).as_ref())
                .unwrap();
        let prompt = FinitePrompt::exact(&head, &tokens).unwrap();
        let longest = [PromptLength::MAX];
        let options = QueryAverage { directions: 4, randomisations: 4, seed: 1 };
        let averaged = &prompt.over_queries(&tokens, &longest, options, &Unwatched).unwrap().deviations[0];
        // χ₈ density ∝ r⁷ e^{−r²/2}, trapezoid in r (smooth at 0 to seventh order).
        let (mut total, mut mass) = (0.0, 0.0);
        for k in 1..220 {
            let radius = 0.06 * f64::from(k);
            let weight = radius.powi(7) * (-0.5 * radius * radius).exp();
            let mut query = vec![0.0; dimension];
            query[3] = radius;
            mass += weight;
            total += weight * prompt.at_query(&query, &longest).unwrap()[0].errors.output;
        }
        let error = (averaged.errors.output.value / (total / mass) - 1.0).abs();
        assert!(error < 1e-8, "H = {operator_norm}: {error:e}");
        assert!(averaged.errors.output.error < 1e-10 * averaged.errors.output.value);
    }
}

/// Anisotropic queries in R²: the truth by a product rule in angle and radius; the reported error must
/// cover it (five errors) and be small.
#[test]
fn anisotropic_averages_are_right_within_their_randomisation_error() {
    let tokens = Gaussian::standard(2).unwrap();
    let score = mat![[1.5, 0.2], [0.0, 0.3]];
    let head = Softmax::new(score.as_ref(), mat![[1.0, -0.5]].as_ref()).unwrap();
    let prompt = FinitePrompt::exact(&head, &tokens).unwrap();
    let all = lengths(&[10, 1_000_000, 1_000_000_000_000]);
    let averaged =
        prompt.over_queries(&tokens, &all, QueryAverage::default(), &Unwatched).unwrap().deviations;
    let errors_at = |radius: f64, angle: f64| -> Vec<[f64; 2]> {
        let deviations = prompt.at_query(&[radius * angle.cos(), radius * angle.sin()], &all).unwrap();
        deviations.iter().map(|found| [found.errors.output, found.errors.score_gradient]).collect()
    };
    let mut truth = vec![[0.0; 2]; all.len()];
    let (angles, step) = (24, 0.1);
    let mut add = |weight: f64, errors: Vec<[f64; 2]>| {
        for (sums, errors) in truth.iter_mut().zip(errors) {
            sums[0] += weight * errors[0] / f64::from(angles);
            sums[1] += weight * errors[1] / f64::from(angles);
        }
    };
    for a in 0..angles {
        let angle = std::f64::consts::PI * (f64::from(a) + 0.5) / f64::from(angles);
        // Midpoint rule for ∫ r e^{−r²/2} f(r) dr with its end correction −h²/24 f(0): next error h⁴.
        for k in 0..125 {
            let radius = step * (f64::from(k) + 0.5);
            add(step * radius * (-0.5 * radius * radius).exp(), errors_at(radius, angle));
        }
        add(-step * step / 24.0, errors_at(0.0, angle));
    }
    for (found, truth) in averaged.iter().zip(&truth) {
        for (found, truth) in [found.errors.output, found.errors.score_gradient].iter().zip(truth) {
            let claimed = found.error;
            let gap = (found.value - truth).abs();
            // The product rule itself is good to about 1e-6.
            assert!(gap < 5.0 * claimed + 1e-6 * truth, "{found:?} against {truth}");
            assert!(claimed < 0.01 * found.value, "{found:?}");
            println!("relative error {:.1e}, claimed {:.1e}", gap / truth, claimed / truth);
        }
    }
}

/// Off-centre queries go through the same τ nodes without the ray shortcut.
#[test]
fn off_centre_averages_equal_one_dimensional_quadrature() {
    let tokens = Gaussian::standard(1).unwrap();
    let queries = Gaussian::new(&[0.7], mat![[0.49]].as_ref()).unwrap();
    let head = Softmax::new(mat![[1.3]].as_ref(), mat![[1.0]].as_ref()).unwrap();
    let prompt = FinitePrompt::exact(&head, &tokens).unwrap();
    let all = lengths(&[50, 1_000_000_000]);
    let averaged =
        prompt.over_queries(&queries, &all, QueryAverage::default(), &Unwatched).unwrap().deviations;
    for (index, found) in averaged.iter().enumerate() {
        let direct: f64 = (-400..=400)
            .map(|k| {
                let g = 0.025 * f64::from(k);
                let deviation = &prompt.at_query(&[0.7 + 0.7 * g], &all[index..=index]).unwrap()[0];
                0.025 * normal::density(g) * deviation.errors.output
            })
            .sum();
        assert!(
            (found.errors.output.value / direct - 1.0).abs() < 1e-8,
            "{} {direct}",
            found.errors.output.value
        );
    }
}

/// Two Gaussian tokens have Σp² = (1 + tanh²(τg/√2))/2, g normal: a plain double sum, against which the stated
/// tolerance has to hold where the rays pass the origin at a sharp turn.
#[test]
fn off_centre_lines_keep_their_tolerance_at_any_steepness() {
    let tokens = Gaussian::standard(1).unwrap();
    let queries = Gaussian::new(&[2.0], mat![[1.0]].as_ref()).unwrap();
    for steepness in [1.0, 3.0, 10.0] {
        let head = Softmax::new(mat![[steepness]].as_ref(), mat![[1.0]].as_ref()).unwrap();
        let prompt = FinitePrompt::exact(&head, &tokens).unwrap();
        let all = lengths(&[2, 100]);
        let found = prompt.over_queries(&queries, &all, QueryAverage::default(), &Unwatched).unwrap();
        let found = found.deviations[0].participation;
        assert_eq!(found.accuracy, Accuracy::Exact);
        let tolerance = found.error / found.value;
        // Poles of tanh lie 0.03 from the axis at the outermost nodes: both steps are far below.
        let (query_step, normal_step) = (0.006, 0.008);
        let mut expected = 0.0;
        for j in -1400..=1400 {
            let g = query_step * f64::from(j);
            let tau = steepness * (2.0 + g).abs();
            let squares: f64 = (-1100..=1100)
                .map(|k| normal_step * f64::from(k))
                .map(|g| normal_step * normal::density(g) * (tau * g / 2f64.sqrt()).tanh().powi(2))
                .sum();
            expected += query_step * normal::density(g) * 0.5 * (1.0 + squares);
        }
        let error = (found.value / expected - 1.0).abs();
        println!("U = {steepness}: relative error {error:.1e}, stated {tolerance:.1e}");
        assert!(tolerance < 2e-9 && error < tolerance, "U = {steepness}: {error:e}, stated {tolerance:e}");
    }
}

#[test]
fn mixture_tokens_average_like_the_gaussian_they_are() {
    let gaussian = Gaussian::standard(2).unwrap();
    let halves: Vec<(f64, Law)> = vec![(0.5, Arc::new(gaussian.clone())), (0.5, Arc::new(gaussian.clone()))];
    let head = Softmax::new(mat![[0.9, 0.1], [0.0, 0.6]].as_ref(), Mat::identity(2, 2).as_ref()).unwrap();
    let options = QueryAverage { directions: 2, randomisations: 2, seed: 3 };
    let all = lengths(&[100, 1_000_000_000_000]);
    let average = |tokens: &dyn esscher_core::measure::Measure| {
        FinitePrompt::exact(&head, tokens)
            .unwrap()
            .over_queries(&gaussian, &all, options, &Unwatched)
            .unwrap()
    };
    let (one, two) = (average(&gaussian), average(&Mixture::new(halves).unwrap()));
    for (one, two) in one.deviations.iter().zip(&two.deviations) {
        assert!((one.errors.output.value / two.errors.output.value - 1.0).abs() < 1e-8);
        assert!((one.errors.score_gradient.value / two.errors.score_gradient.value - 1.0).abs() < 1e-8);
        assert!((one.errors.value_gradient.value / two.errors.value_gradient.value - 1.0).abs() < 1e-8);
    }
}

/// A sphere has one radius; a cube has no radial form and is sampled, and labelled so.
#[test]
fn every_query_law_is_averaged_and_labelled() {
    let prompt = FinitePrompt::exact(&skew_head(), &skew_gaussian()).unwrap();
    let all = [length(1000)];
    let average = |law: &dyn esscher_core::measure::Measure, directions: u32| {
        let options = QueryAverage { directions, ..QueryAverage::default() };
        prompt.over_queries(law, &all, options, &Unwatched).unwrap().deviations[0].errors.output
    };
    let sphere = average(&Sphere::new(2, 1.2).unwrap(), 64);
    let circle: f64 = (0..64)
        .map(|k| {
            let (sine, cosine) = (std::f64::consts::TAU * f64::from(k) / 64.0).sin_cos();
            prompt.at_query(&[1.2 * cosine, 1.2 * sine], &all).unwrap()[0].errors.output / 64.0
        })
        .sum();
    assert!(sphere.accuracy == Accuracy::QuasiMonteCarlo);
    assert!((sphere.value - circle).abs() < 5.0 * sphere.error, "{sphere:?} {circle}");

    let cube = average(&Cube::new(2).unwrap(), 512);
    assert!(cube.accuracy == Accuracy::Sampled);
    // The mean over the square by a midpoint rule.
    let square: f64 = (0..400)
        .map(|k| {
            let (i, j) = (f64::from(k % 20), f64::from(k / 20));
            let query = [(i + 0.5) / 10.0 - 1.0, (j + 0.5) / 10.0 - 1.0];
            prompt.at_query(&query, &all).unwrap()[0].errors.output / 400.0
        })
        .sum();
    assert!((cube.value - square).abs() < 5.0 * cube.error + 0.01 * square, "{cube:?} {square}");

    let one_query = average(&Gaussian::new(&[0.4, -0.3], Mat::zeros(2, 2).as_ref()).unwrap(), 8);
    let direct = prompt.at_query(&[0.4, -0.3], &all).unwrap()[0].errors.output;
    assert!((one_query.value / direct - 1.0).abs() < 1e-8);
    let two_queries = average(&Empirical::from_tokens(2, &[0.4, -0.3, 0.4, -0.3]).unwrap(), 8);
    assert!((two_queries.value / direct - 1.0).abs() < 1e-8);
}

#[test]
fn a_stopped_average_says_so_and_one_randomisation_is_refused() {
    for tokens in [Arc::new(skew_gaussian()) as Law, Arc::new(skew_mixture())] {
        let prompt = FinitePrompt::exact(&skew_head(), tokens.as_ref()).unwrap();
        let queries = Gaussian::standard(2).unwrap();
        let stopped = prompt
            .over_queries(&queries, &[length(10)], QueryAverage::default(), &StopAfter::looks(0))
            .unwrap();
        assert_eq!(stopped.completion, Completion::Stopped { completed: 0, total: 16 });
        assert!(stopped.deviations.is_empty());
        let single = QueryAverage { randomisations: 1, ..QueryAverage::default() };
        assert!(prompt.over_queries(&queries, &[length(10)], single, &Unwatched).is_err());
    }
}

/// Whoever asks for very many directions can stop before all of them are made: the monitor is asked on the way.
#[test]
fn many_directions_can_be_stopped_before_they_are_all_made() {
    struct Counting(AtomicUsize);
    impl Monitor for Counting {
        fn progress(&self, _completed: usize, _total: usize) {}
        fn should_stop(&self) -> bool {
            self.0.fetch_add(1, Ordering::SeqCst);
            false
        }
    }
    let options = QueryAverage { directions: 4096, randomisations: 2, seed: 0 };
    let prompt = FinitePrompt::exact(&skew_head(), &skew_gaussian()).unwrap();
    let beside_the_origin = Gaussian::new(&[0.4, -1.0], mat![[0.5, 0.1], [0.1, 0.4]].as_ref()).unwrap();
    for queries in [Gaussian::standard(2).unwrap(), beside_the_origin] {
        let looks = Counting(AtomicUsize::new(0));
        prompt.over_queries(&queries, &[length(10)], options, &looks).unwrap();
        // At least one for each 256 directions of each randomisation.
        assert!(looks.0.into_inner() >= 2 * 4096 / 256);
        let stopped = prompt.over_queries(&queries, &[length(10)], options, &StopAfter::looks(3)).unwrap();
        assert_eq!(stopped.completion, Completion::Stopped { completed: 0, total: 2 });
    }
}

/// Two atoms read by off-centre queries: the error turns sharply along the ray, so the radius rule has to be
/// refined until it settles, and the stated tolerance has to hold against a fine trapezoid sum.
#[test]
fn sharp_mixtures_are_averaged_within_the_stated_tolerance() {
    let atoms = Mixture::new(vec![
        (0.5, Arc::new(Empirical::atom(&[-1.0]).unwrap()) as Law),
        (0.5, Arc::new(Empirical::atom(&[1.0]).unwrap())),
    ])
    .unwrap();
    let queries = Gaussian::new(&[2.0], mat![[1.0]].as_ref()).unwrap();
    let all = lengths(&[10, 1000]);
    for scale in [1.0, 8.0] {
        let head = Softmax::new(mat![[scale]].as_ref(), mat![[1.0]].as_ref()).unwrap();
        let prompt = FinitePrompt::exact(&head, &atoms).unwrap();
        let averaged = prompt.over_queries(&queries, &all, QueryAverage::default(), &Unwatched).unwrap();
        let step = 0.1 / scale;
        let mut direct = vec![0.0; all.len()];
        let count = (9.0 / step) as i32;
        for k in -count..=count {
            let g = step * f64::from(k);
            for (sum, found) in direct.iter_mut().zip(prompt.at_query(&[2.0 + g], &all).unwrap()) {
                *sum += step * normal::density(g) * found.errors.output;
            }
        }
        for (found, direct) in averaged.deviations.iter().zip(&direct) {
            let error = (found.errors.output.value / direct - 1.0).abs();
            assert_eq!(found.errors.output.accuracy, Accuracy::Exact);
            let tolerance = found.errors.output.error / found.errors.output.value;
            assert!(tolerance < 1e-3, "U = {scale}: tolerance {tolerance:e}");
            assert!(error < 2.0 * tolerance + 1e-9, "U = {scale}: {error:e}, tolerance {tolerance:e}");
        }
    }
}

/// A product or a mixture of Gaussians is as good a query law as the Gaussian that it is.
#[test]
fn disguised_gaussian_queries_are_not_sampled() {
    let line: Law = Arc::new(Gaussian::standard(1).unwrap());
    let plane = esscher_core::measure::Product::new(vec![line.clone(), line]).unwrap();
    let head = Softmax::new(Mat::identity(2, 2).as_ref(), Mat::identity(2, 2).as_ref()).unwrap();
    let prompt = FinitePrompt::exact(&head, &Gaussian::standard(2).unwrap()).unwrap();
    let average = |law: &dyn esscher_core::measure::Measure| {
        prompt.over_queries(law, &[PromptLength::MAX], QueryAverage::COARSE, &Unwatched).unwrap().deviations
            [0]
        .errors
        .output
    };
    let (disguised, plain) = (average(&plane), average(&Gaussian::standard(2).unwrap()));
    assert!(disguised.accuracy == Accuracy::QuasiMonteCarlo);
    assert!((disguised.value / plain.value - 1.0).abs() < 1e-12);
}

#[test]
fn overflow_and_absurd_options_are_errors() {
    let huge = Mat::from_fn(1, 1, |_, _| 1e160);
    let head = Softmax::new(mat![[1.0]].as_ref(), huge.as_ref()).unwrap();
    let law = Gaussian::standard(1).unwrap();
    let prompt = FinitePrompt::exact(&head, &law).unwrap();
    assert!(prompt.over_queries(&law, &[length(10)], QueryAverage::COARSE, &Unwatched).is_err());
    for options in [
        QueryAverage { directions: u32::MAX, ..QueryAverage::COARSE },
        QueryAverage { directions: 0, ..QueryAverage::COARSE },
        QueryAverage { randomisations: u32::MAX, ..QueryAverage::COARSE },
    ] {
        let text = prompt.over_queries(&law, &[length(10)], options, &Unwatched).unwrap_err().to_string();
        assert!(text.contains("the number of"), "{text}");
    }
    // Scores of deviation 1000 are allowed although the far tail of the radius exceeds the engine's range.
    let steep = Softmax::new(mat![[1000.0]].as_ref(), mat![[1.0]].as_ref()).unwrap();
    let prompt = FinitePrompt::exact(&steep, &law).unwrap();
    assert!(prompt.over_queries(&law, &[length(10)], QueryAverage::COARSE, &Unwatched).is_ok());
}
