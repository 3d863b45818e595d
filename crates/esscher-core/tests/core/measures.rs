//! The laws of a measure, checked by one function on every family, and what each family alone promises.

use crate::common::{skew_gaussian, skew_mixture};
use esscher_core::measure::laws::{LawTolerance, LawViolation, check_laws};
use esscher_core::measure::{
    Affine, Cube, Custom, Empirical, Gaussian, Laplace, Law, Measure, Mixture, Product, Prompt, Rademacher,
    Sphere, tilted_mean_by_definition,
};
use esscher_core::numerics::{Stream, linalg};
use esscher_core::{Error, Mat, Result, mat};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::sync::Arc;

/// Tokens of dimension 3 that outlive every measure on them.
static POINTS: [f64; 12] = [0.3, -1.0, 0.2, 1.1, 0.4, -0.6, -0.9, 0.8, 0.1, 0.0, 0.0, 1.5];

/// Every family, in dimension 3 where it has a choice.
fn families() -> Vec<Law> {
    let plane = mat![[1.0, 0.2], [0.3, -0.8], [0.5, 0.5]];
    let singular = &plane * plane.transpose();
    let rotation = mat![[0.9, -0.3, 0.2], [0.1, 0.7, 0.4]];
    let poisson = Custom::new(3, |tilt| tilt.iter().map(|entry| 2.0 * entry.exp_m1()).sum())
        .unwrap()
        .with_sampler(|tilt, stream, tokens| {
            for (index, token) in tokens.iter_mut().enumerate() {
                // Poisson by counting exponential gaps.
                let mut left = 2.0 * tilt[index % 3].exp() - stream.exponential();
                *token = 0.0;
                while left > 0.0 {
                    *token += 1.0;
                    left -= stream.exponential();
                }
            }
        });
    vec![
        Arc::new(skew_gaussian()),
        Arc::new(Gaussian::new(&[0.1, 0.2, 0.3], singular.as_ref()).unwrap()),
        Arc::new(Gaussian::new(&[0.1, 0.2, 0.3], Mat::zeros(3, 3).as_ref()).unwrap()),
        Arc::new(skew_mixture()),
        Arc::new(Empirical::from_tokens(3, &POINTS).unwrap().with_weights(&[1.0, 2.0, 0.5, 0.1]).unwrap()),
        Arc::new(Prompt::new(3, &POINTS).unwrap()),
        Arc::new(Rademacher::new(3).unwrap()),
        Arc::new(Cube::new(3).unwrap()),
        Arc::new(Sphere::new(1, 0.7).unwrap()),
        Arc::new(Sphere::new(2, 1.3).unwrap()),
        Arc::new(Sphere::new(3, 2.0).unwrap()),
        Arc::new(Sphere::new(9, 3.0).unwrap()),
        // The laws ask at a + b, 2θ and nearby: tilts below stay within |θᵢ| < 2, so Λ exists to |θᵢ| < 5.
        Arc::new(Laplace::new(3, 0.2).unwrap()),
        Arc::new(Affine::new(rotation.as_ref(), &[0.5, -0.2], Arc::new(Cube::new(3).unwrap())).unwrap()),
        Arc::new(Affine::scaled(1.7, Arc::new(Rademacher::new(3).unwrap())).unwrap()),
        Arc::new(
            Product::new(vec![
                Arc::new(Sphere::new(2, 1.0).unwrap()),
                Arc::new(Gaussian::standard(1).unwrap()),
            ])
            .unwrap(),
        ),
        Arc::new(
            Mixture::new(vec![
                (0.3, Arc::new(Sphere::new(3, 2.0).unwrap())),
                (0.7, Arc::new(Laplace::new(3, 0.2).unwrap())),
            ])
            .unwrap(),
        ),
        Arc::new(poisson),
    ]
}

/// Differences of differences cost a user's law digits.
fn tolerance_of(measure: &Law) -> LawTolerance {
    if measure.family() == "user's law" {
        LawTolerance { identity: 1e-7, derivative: 1e-5, ..LawTolerance::default() }
    } else {
        LawTolerance::default()
    }
}

/// Sizes at which differences of doubles lose digits break no law.
#[test]
fn far_and_wide_laws_are_not_accused() {
    let far = Gaussian::new(&[1e9, 0.0], mat![[1.0, 0.0], [0.0, 1.0]].as_ref()).unwrap();
    let wide = Gaussian::new(&[0.0, 0.0], mat![[1e18, 0.0], [0.0, 1e18]].as_ref()).unwrap();
    let laws: [Law; 3] = [Arc::new(far), Arc::new(wide), Arc::new(Sphere::new(2, 1e15).unwrap())];
    for law in laws {
        let family = law.family();
        check_laws(law, &[vec![0.1, 0.2]], LawTolerance::default())
            .unwrap_or_else(|violation| panic!("{family}: {violation}"));
    }
}

#[test]
fn every_family_obeys_the_laws_and_so_do_its_tilts() {
    for measure in families() {
        let dimension = measure.dimension();
        let tilt =
            |seed: f64| -> Vec<f64> { (0..dimension).map(|i| (seed + 2.1 * i as f64).sin()).collect() };
        let tilts = [vec![0.0; dimension], tilt(0.3), tilt(1.9)];
        let tolerance = tolerance_of(&measure);
        check_laws(measure.clone(), &tilts, tolerance)
            .unwrap_or_else(|violation| panic!("{measure:?}: {violation}"));
        let tilted = measure.tilted(&tilt(0.7)).unwrap();
        check_laws(tilted, &tilts[..2], tolerance)
            .unwrap_or_else(|violation| panic!("{measure:?}: {violation}"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, rng_seed: RngSeed::Fixed(2), ..ProptestConfig::default() })]

    #[test]
    fn the_laws_hold_at_random_tilts(entries in prop::collection::vec(-1.2f64..1.2, 18)) {
        for measure in families() {
            let dimension = measure.dimension();
            let tilts: Vec<Vec<f64>> = entries.chunks_exact(9).map(|chunk| chunk[..dimension].to_vec()).collect();
            // Sampling on a fixed stream is checked above; at random tilts six standard errors would
            // sooner or later be exceeded by chance.
            let tolerance = LawTolerance { draws: 0, ..tolerance_of(&measure) };
            let checked = check_laws(measure.clone(), &tilts, tolerance);
            prop_assert!(checked.is_ok(), "{:?}: {:?}", measure, checked);
        }
    }

    /// Whatever the tilt, an answer is finite or an error.
    #[test]
    fn no_tilt_makes_a_measure_panic_or_answer_nan(
        entries in prop::collection::vec(prop::num::f64::ANY, 9),
        exponent in -320i32..308,
    ) {
        let ordinary: Vec<f64> = entries.iter().map(|entry| entry.sin() * 10f64.powi(exponent)).collect();
        for measure in families() {
            // The sampler of the user's law above counts to its mean, which such a tilt makes astronomical.
            if measure.family().contains("user") { continue; }
            for tilt in [&entries[..measure.dimension()], &ordinary[..measure.dimension()]] {
                if let Ok(value) = measure.log_partition(tilt) { prop_assert!(value.is_finite()); }
                if let Ok(mean) = measure.tilted_mean(tilt) { prop_assert!(mean.iter().all(|x| x.is_finite())); }
                if let Ok(covariance) = measure.tilted_covariance(tilt) {
                    prop_assert!(covariance.col_iter().all(|column| column.iter().all(|x| x.is_finite())));
                    prop_assert!((0..covariance.nrows()).all(|i| covariance[(i, i)] >= 0.0));
                }
                let mut tokens = vec![0.0; 4 * measure.dimension()];
                if measure.sample_tilted(tilt, &mut Stream::new(0, 0, 0), &mut tokens).is_ok() {
                    prop_assert!(tokens.iter().all(|x| x.is_finite()), "{:?} {:?} {:?}", measure, tilt, tokens);
                }
            }
        }
    }
}

/// A family that lies about its mean must be caught, and so one that lies about its variance or samples.
#[derive(Debug)]
struct Liar {
    truth: Gaussian,
    lie: &'static str,
}

impl Measure for Liar {
    fn family(&self) -> &'static str {
        "liar"
    }
    fn dimension(&self) -> usize {
        2
    }
    fn log_partition(&self, tilt: &[f64]) -> Result<f64> {
        let honest = self.truth.log_partition(tilt)?;
        Ok(if self.lie == "mass" { honest + 1e-3 } else { honest })
    }
    fn tilted_mean(&self, tilt: &[f64]) -> Result<Vec<f64>> {
        let mut mean = self.truth.tilted_mean(tilt)?;
        mean[0] += if self.lie == "mean" { 1e-3 } else { 0.0 };
        Ok(mean)
    }
    fn tilted_covariance(&self, tilt: &[f64]) -> Result<Mat<f64>> {
        let mut covariance = self.truth.tilted_covariance(tilt)?;
        covariance[(1, 1)] += if self.lie == "covariance" { 1e-3 } else { 0.0 };
        Ok(covariance)
    }
    fn sample_tilted(&self, tilt: &[f64], stream: &mut Stream, tokens: &mut [f64]) -> Result<()> {
        self.truth.sample_tilted(tilt, stream, tokens)?;
        for token in tokens.iter_mut().filter(|_| self.lie == "samples") {
            *token *= 1.2;
        }
        Ok(())
    }
    fn tilted(&self, tilt: &[f64]) -> Result<Law> {
        let turned: Vec<f64> =
            tilt.iter().map(|entry| if self.lie == "group" { -entry } else { *entry }).collect();
        self.truth.tilted(&turned)
    }
}

#[test]
fn a_broken_law_is_found_and_named() {
    let tilts = [vec![0.4, -0.3], vec![0.2, 0.9]];
    let check = |lie| {
        let truth = Gaussian::new(&[0.2, 0.1], mat![[1.0, 0.4], [0.4, 0.7]].as_ref()).unwrap();
        check_laws(Arc::new(Liar { truth, lie }), &tilts, LawTolerance::default())
    };
    assert_eq!(check("none"), Ok(()));
    for (lie, law) in [
        ("mass", "Λ(0)"),
        ("mean", "∇Λ"),
        ("covariance", "∇²Λ"),
        ("samples", "tokens of the tilted measure"),
        ("group", "a + b"),
    ] {
        match check(lie) {
            Err(LawViolation::Broken { law: found, .. }) => assert!(found.contains(law), "{lie}: {found}"),
            other => panic!("the lie about {lie} passed: {other:?}"),
        }
    }
}

#[test]
fn tanh_of_two_is_the_negative_control() {
    let mean = Rademacher::new(1).unwrap().tilted_mean(&[2.0]).unwrap()[0];
    assert!((mean - 0.964_027_580_075_816_9).abs() < 1e-15);
}

#[test]
fn the_same_stream_gives_the_same_tokens() {
    for measure in families() {
        let draw = || {
            let mut tokens = vec![0.0; 50 * measure.dimension()];
            measure.sample(&mut Stream::new(3, 1, 4), &mut tokens).unwrap();
            tokens
        };
        let here = draw();
        let there = std::thread::scope(|scope| scope.spawn(draw).join().unwrap());
        assert_eq!(here, there, "{measure:?}");
    }
}

/// Exact at every tilt for a Gaussian; for others the mean agrees to second order around the tilt.
#[test]
fn the_gaussian_limit_touches_the_measure_at_its_tilt() {
    let tokens = skew_gaussian();
    let limit = tokens.gaussian_limit(&[0.3, -0.7, 0.2]).unwrap();
    for (a, b) in limit.mean_vector().iter().zip(tokens.mean_vector()) {
        assert!((a - b).abs() < 1e-14);
    }
    let mixture = skew_mixture();
    let base = [0.5, -0.4, 0.3];
    let limit = mixture.gaussian_limit(&base).unwrap();
    let gap = |step: f64| {
        let tilt: Vec<f64> = base.iter().map(|entry| entry + step).collect();
        let gap =
            linalg::difference(&limit.tilted_mean(&tilt).unwrap(), &mixture.tilted_mean(&tilt).unwrap());
        linalg::squared_norm(&gap).sqrt()
    };
    assert!(gap(0.0) < 1e-14);
    assert!((gap(2e-3) / gap(1e-3) - 4.0).abs() < 0.02, "second order: {}", gap(2e-3) / gap(1e-3));
}

#[test]
fn laws_that_are_gaussian_mixtures_say_so_whatever_they_are_wrapped_in() {
    let mixture: Law = Arc::new(skew_mixture());
    let square = mat![[1.0, 0.5, 0.0], [0.0, 1.0, -0.5], [0.2, 0.0, 1.0]];
    let affine: Law = Arc::new(Affine::new(square.as_ref(), &[0.1, 0.2, 0.3], mixture.clone()).unwrap());
    let product: Law =
        Arc::new(Product::new(vec![mixture.clone(), Arc::new(Gaussian::standard(1).unwrap())]).unwrap());
    for wrapped in [mixture.clone(), affine, product] {
        let tilt: Vec<f64> = (0..wrapped.dimension()).map(|i| 0.3 - 0.2 * i as f64).collect();
        for law in [wrapped.clone(), wrapped.tilted(&tilt).unwrap()] {
            let rebuilt: Vec<(f64, Law)> = law
                .as_gaussian_mixture()
                .unwrap()
                .into_iter()
                .map(|component| (component.weight(), Arc::new(component.gaussian) as Law))
                .collect();
            let rebuilt = Mixture::new(rebuilt).unwrap();
            let (a, b) = (law.log_partition(&tilt).unwrap(), rebuilt.log_partition(&tilt).unwrap());
            assert!((a - b).abs() < 1e-12, "{law:?}");
        }
    }
    assert!(Cube::new(2).unwrap().as_gaussian_mixture().is_none());
}

/// The definition knows nothing of the closed form that it checks, nor of the size of the tilt.
#[test]
fn the_tilted_mean_of_a_mixture_is_that_of_its_definition() {
    for mixture in [Arc::new(skew_mixture()) as Law, Arc::new(skew_gaussian())] {
        let components = mixture.as_gaussian_mixture().unwrap();
        for size in [0.0, 0.3, 4.0, 60.0] {
            let tilt: Vec<f64> = (0..mixture.dimension()).map(|i| size * (1.0 - 0.7 * i as f64)).collect();
            let exact = mixture.tilted_mean(&tilt).unwrap();
            let found = tilted_mean_by_definition(&components, &tilt);
            let gap = linalg::norm(&linalg::difference(&found, &exact));
            assert!(gap < 1e-12 * (1.0 + linalg::norm(&exact)), "{size}: {found:?} {exact:?}");
        }
    }
}

#[test]
fn a_user_law_is_differentiated_or_taken_at_its_word() {
    // Gumbel tokens: Λ(θ) = ln Γ(1 − θ), infinite from θ = 1 on.
    let gumbel =
        Custom::new(1, |tilt| if tilt[0] < 1.0 { esscher_gamma(1.0 - tilt[0]) } else { f64::INFINITY })
            .unwrap();
    assert!((gumbel.mean().unwrap()[0] - 0.577_215_664_901_532_9).abs() < 1e-8);
    let variance = gumbel.covariance().unwrap()[(0, 0)];
    assert!((variance - std::f64::consts::PI.powi(2) / 6.0).abs() < 1e-5, "{variance}");
    assert!(matches!(gumbel.log_partition(&[1.5]), Err(Error::UserFunction { .. })));
    assert!(matches!(gumbel.sample(&mut Stream::new(0, 0, 0), &mut [0.0]), Err(Error::Unsupported { .. })));
    assert!(Custom::new(1, |_| 1.0).is_err());
    let exact =
        Custom::new(1, |tilt| tilt[0] * tilt[0]).unwrap().with_tilted_mean(|tilt| vec![2.0 * tilt[0]]);
    assert_eq!(exact.tilted_mean(&[0.3]).unwrap(), [0.6]);
}

/// ln Γ by Stirling's series after shifting the argument up: the test's own, to stay independent.
fn esscher_gamma(x: f64) -> f64 {
    let shift: f64 = (0..20).map(|k| (x + f64::from(k)).ln()).sum();
    let y = x + 20.0;
    let series = 1.0 / (12.0 * y) - 1.0 / (360.0 * y.powi(3)) + 1.0 / (1260.0 * y.powi(5));
    (y - 0.5) * y.ln() - y + 0.5 * (2.0 * std::f64::consts::PI).ln() + series - shift
}

#[test]
fn nonsense_is_refused_with_the_entry_and_the_expectation() {
    let says = |result: Result<()>, words: &[&str]| {
        let text = result.unwrap_err().to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };
    let gaussian = |mean: &[f64], covariance: Mat<f64>| Gaussian::new(mean, covariance.as_ref()).map(|_| ());
    says(gaussian(&[0.0], mat![[1.0, 0.0], [0.0, 1.0]]), &["covariance", "1", "2"]);
    says(gaussian(&[0.0, f64::NAN], mat![[1.0, 0.0], [0.0, 1.0]]), &["mean[1]", "NaN"]);
    says(gaussian(&[0.0, 0.0], mat![[1.0, f64::INFINITY], [0.0, 1.0]]), &["covariance[0, 1]", "inf"]);
    says(gaussian(&[0.0, 0.0], mat![[1.0, 0.2], [0.1, 1.0]]), &["not symmetric", "[0, 1]", "0.2", "0.1"]);
    says(gaussian(&[0.0, 0.0], mat![[1.0, 2.0], [2.0, 1.0]]), &["positive semi-definite", "-1"]);
    says(gaussian(&[], Mat::zeros(0, 0)), &["dimension", "is 0", "at least 1"]);
    says(Gaussian::standard(0).map(|_| ()), &["dimension of a Gaussian is 0", "at least 1"]);
    let points = Empirical::from_tokens(1, &[1.0, 2.0]).unwrap();
    says(points.clone().with_weights(&[1.0, 0.0]).map(|_| ()), &["weight[1]", "0"]);
    says(points.clone().with_weights(&[-1.0, 1.0]).map(|_| ()), &["weight[0]", "-1"]);
    says(points.clone().with_weights(&[1.0]).map(|_| ()), &["weights", "expected size 2", "1"]);
    says(
        Empirical::from_tokens(2, &[1.0, 2.0, 3.0]).map(|_| ()),
        &["3 numbers", "multiple of the dimension, 2"],
    );
    says(
        points.clone().with_weights(&[1e-300, 1e300]).map(|_| ()),
        &["weight[0] is 1e-300", "1e300", "underflows"],
    );
    let concave = Custom::new(2, |tilt| -tilt[1] * tilt[1]).unwrap();
    let stated = Custom::new(1, |_| 0.0).unwrap().with_tilted_covariance(|_| mat![[-1.0]]);
    for found in [concave.tilted_covariance(&[0.1, 0.5]), stated.tilted_covariance(&[0.5])] {
        assert!(found.unwrap_err().to_string().contains("a log-partition is convex"));
    }
    let wide = Custom::new(1, |_| 0.0).unwrap().with_tilted_covariance(|_| Mat::zeros(1, 2));
    says(wide.covariance().map(|_| ()), &["covariance (columns)", "expected size 1", "2"]);
    says(
        Laplace::new(1, 1e-300).unwrap().mean().map(|_| ()).and(Sphere::new(2, -1e300).map(|_| ())),
        &["-1e300"],
    );
    says(Empirical::from_tokens(2, &[]).map(|_| ()), &["prompt", "at least one"]);
    says(Empirical::from_tokens(2, &[0.0, 1.0, f64::NAN, 0.0]).map(|_| ()), &["tokens[1, 0]", "NaN"]);
    says(Prompt::new(2, &[0.0, 1.0, 2.0, f64::INFINITY]).map(|_| ()), &["tokens[1, 1]", "inf"]);
    says(Prompt::new(0, &[]).map(|_| ()), &["dimension", "is 0", "at least 1"]);
    says(Prompt::new(2, &[]).map(|_| ()), &["prompt", "at least one"]);
    says(Prompt::new(2, &[1.0]).map(|_| ()), &["1 numbers", "multiple of the dimension, 2"]);
    says(Mixture::new(vec![]).map(|_| ()), &["weights", "at least one"]);
    says(Rademacher::new(0).map(|_| ()), &["dimension", "is 0", "at least 1"]);
    says(Sphere::new(2, -1.0).map(|_| ()), &["radius", "-1", "positive"]);
    says(Laplace::new(2, f64::NAN).map(|_| ()), &["scale", "NaN"]);
    says(Laplace::new(1, 0.5).unwrap().tilted_mean(&[-3.0]).map(|_| ()), &["|θ[0]| < 2", "-3"]);
    says(Gaussian::standard(2).unwrap().tilted_mean(&[1.0]).map(|_| ()), &["tilt", "expected size 2", "1"]);
    says(Gaussian::standard(1).unwrap().log_partition(&[1e200]).map(|_| ()), &["overflow"]);
}

/// Variances that differ by more than double precision are all kept, and so are the ends of the doubles.
#[test]
fn a_gaussian_keeps_every_variance_at_every_scale() {
    for (large, small) in [(1e13, 1.0), (1e300, 1e-300), (1.7e308, 5e-324)] {
        let tokens = Gaussian::centred(mat![[large, 0.0], [0.0, small]].as_ref()).unwrap();
        assert_eq!(tokens.root().ncols(), 2);
        let tilt = 1.0 / f64::sqrt(small);
        assert!((tokens.log_partition(&[0.0, tilt]).unwrap() - 0.5).abs() < 1e-12, "{small:e}");
        let mut token = [0.0; 2];
        tokens.sample(&mut Stream::new(0, 0, 0), &mut token).unwrap();
        assert!(token[1] != 0.0 && token[0].is_finite());
    }
    // A correlation of one half, whatever the units.
    for scale in [1e-309, 1e-200, 1.0, 1e200, 1e308] {
        let tokens = Gaussian::centred(mat![[scale, 0.5 * scale], [0.5 * scale, scale]].as_ref()).unwrap();
        let tilt = 1.0 / f64::sqrt(scale);
        let value = tokens.log_partition(&[tilt, tilt]).unwrap();
        assert!((value - 1.5).abs() < 1e-12, "{scale:e}: {value}");
    }
    // Correlated coordinates of different units: 1 − 0.9² of the variance is left across.
    let tokens = Gaussian::centred(mat![[1e20, 0.9e10], [0.9e10, 1.0]].as_ref()).unwrap();
    let value = tokens.log_partition(&[-0.9e-10, 1.0]).unwrap();
    assert!((value - 0.5 * 0.19).abs() < 1e-14, "{value}");
    // What products leave behind is still rounding: rank two, not three.
    let plane = mat![[1.0, 0.2], [0.3, -0.8], [0.5, 0.5]];
    let flat = Gaussian::centred((&plane * plane.transpose()).as_ref()).unwrap();
    assert_eq!(flat.root().ncols(), 2);
    let rounded = Gaussian::centred(mat![[1.0, 1e-14], [1e-14, -1e-30]].as_ref()).unwrap();
    assert_eq!(rounded.root().ncols(), 1);
}

/// A tilt of any size leaves the tokens on the sphere, and near its pole.
#[test]
fn the_sphere_is_sampled_at_any_concentration() {
    for tilt in [1e99, 1e102, 1e250, 1e307, 1.7e308] {
        let mut tokens = [0.0; 30];
        Sphere::new(3, 1.0)
            .unwrap()
            .sample_tilted(&[0.0, tilt, 0.0], &mut Stream::new(1, 2, 3), &mut tokens)
            .unwrap();
        for token in tokens.chunks_exact(3) {
            assert_eq!(token[1], 1.0);
            // Across, χ² with two degrees of freedom over the concentration.
            let across = (token[0] * tilt.sqrt()).hypot(token[2] * tilt.sqrt());
            assert!(across > 1e-3 && across < 10.0, "{tilt:e}: {across}");
        }
    }
    let variance = Sphere::new(1, 1.0).unwrap().tilted_covariance(&[30.0]).unwrap()[(0, 0)];
    assert!((variance * 30f64.cosh().powi(2) - 1.0).abs() < 1e-12);
}

/// Borrowed, copied, and copied with equal weights written out: one measure, also of many tokens.
#[test]
fn a_borrowed_prompt_is_the_empirical_measure_of_its_tokens() {
    let (dimension, tilt) = (3, [0.4, -1.3, 0.7]);
    for count in [1, 2, 300, 5000] {
        let mut tokens = vec![0.0; count * dimension];
        Stream::new(7, 1, 0).fill_normals(&mut tokens);
        let prompt = Prompt::new(dimension, &tokens).unwrap();
        let owned = Empirical::from_tokens(dimension, &tokens).unwrap();
        let weighted = owned.clone().with_weights(&vec![2.0; count]).unwrap();
        assert_eq!((prompt.len(), prompt.dimension(), prompt.family()), (count, 3, owned.family()));
        assert!(prompt.points().eq(owned.points()));
        // The owned measure is summed with the portable instructions: the last bits may differ.
        for (ours, theirs) in prompt.tilted_mean(&tilt).unwrap().iter().zip(owned.tilted_mean(&tilt).unwrap())
        {
            assert!((ours - theirs).abs() < 1e-13);
        }
        assert!((prompt.log_partition(&tilt).unwrap() - owned.log_partition(&tilt).unwrap()).abs() < 1e-13);
        assert_eq!(prompt.tilted_covariance(&tilt).unwrap(), owned.tilted_covariance(&tilt).unwrap());
        assert_eq!(prompt.sub_gaussian(), owned.sub_gaussian());
        let atoms = |measure: &dyn Measure| measure.as_gaussian_mixture().map(|parts| parts.len());
        assert_eq!((atoms(&prompt), atoms(&owned)), ((count <= 256).then_some(count), atoms(&prompt)));
        let drawn = |measure: &dyn Measure| {
            let mut drawn = vec![0.0; 30];
            measure.sample_tilted(&tilt, &mut Stream::new(1, 2, 3), &mut drawn).unwrap();
            drawn
        };
        assert_eq!(drawn(&prompt), drawn(&owned));
        let means = |measure: &dyn Measure| {
            [measure.tilted_mean(&tilt).unwrap(), measure.tilted(&tilt).unwrap().mean().unwrap()]
        };
        for (one, other) in means(&prompt).iter().zip(means(&weighted)) {
            assert!(one.iter().zip(other).all(|(a, b)| (a - b).abs() < 1e-13), "{count}");
        }
    }
}

#[test]
fn what_exceeds_double_precision_is_an_overflow_and_not_an_infinity() {
    let overflows = |result: Result<()>| assert!(matches!(result, Err(Error::Overflow { .. })), "{result:?}");
    let mut stream = Stream::new(0, 0, 0);
    let mut tokens = [0.0; 100];
    overflows(Laplace::new(1, 1e308).unwrap().sample(&mut stream, &mut tokens));
    let wide: Law = Arc::new(Gaussian::standard(1).unwrap());
    overflows(Affine::scaled(1e308, wide).unwrap().sample(&mut stream, &mut tokens));
    let far = Gaussian::new(&[1.7e308], mat![[1.7e308]].as_ref()).unwrap();
    overflows(far.tilted(&[-1e-3]).map(|_| ()).and(far.tilted(&[1.0]).map(|_| ())));
    overflows(Empirical::from_tokens(1, &[f64::MAX; 11]).unwrap().mean().map(|_| ()));
    // Their sum overflows, their mean does not.
    assert_eq!(Empirical::from_tokens(1, &[1e308; 4]).unwrap().mean().unwrap(), [1e308]);
    assert_eq!(Empirical::from_tokens(1, &[1e308; 4]).unwrap().tilted_means(&[0.0; 5]).unwrap(), [1e308; 5]);
    // Finite values whose differences are not.
    let steep = Custom::new(1, |tilt| if tilt[0] == 0.0 { 0.0 } else { 1.7e308 * tilt[0].signum() }).unwrap();
    overflows(steep.mean().map(|_| ()));
}

/// Tokens of any size, and tilts up to the edge of the domain.
/// Squares of small tokens underflow long before the tokens do: a covariance is then no zero, and neither is an output.
#[test]
fn what_is_too_small_for_its_squares_is_an_underflow_and_not_a_zero() {
    let tiny = 1e-180;
    let laws: Vec<Law> = vec![
        Arc::new(Empirical::from_tokens(1, &[tiny, 2.0 * tiny]).unwrap()),
        Arc::new(Affine::scaled(tiny, Arc::new(Rademacher::new(1).unwrap())).unwrap()),
        Arc::new(Affine::scaled(tiny, Arc::new(Gaussian::standard(1).unwrap())).unwrap()),
        Arc::new(Sphere::new(1, tiny).unwrap()),
        Arc::new(Laplace::new(1, tiny).unwrap()),
        Arc::new(
            Mixture::new(vec![
                (1.0, Arc::new(Empirical::atom(&[tiny]).unwrap())),
                (1.0, Arc::new(Empirical::atom(&[3.0 * tiny]).unwrap())),
            ])
            .unwrap(),
        ),
    ];
    for law in laws {
        assert!(matches!(law.covariance(), Err(Error::Underflow { .. })), "{law:?}");
        assert!(law.mean().is_ok(), "{law:?}");
    }
    // What does not vary has no variance, and a probability that vanishes takes its variance with it.
    assert_eq!(Empirical::from_tokens(1, &[tiny; 3]).unwrap().covariance().unwrap()[(0, 0)], 0.0);
    assert_eq!(Rademacher::new(1).unwrap().tilted_covariance(&[1e3]).unwrap()[(0, 0)], 0.0);
}

#[test]
fn no_dimension_is_too_large_to_be_refused() {
    for dimension in [usize::MAX, 1 << 40, (1 << 24) + 1] {
        for made in [
            Gaussian::standard(dimension).map(|_| ()),
            Rademacher::new(dimension).map(|_| ()),
            Cube::new(dimension).map(|_| ()),
            Sphere::new(dimension, 1.0).map(|_| ()),
            Laplace::new(dimension, 1.0).map(|_| ()),
        ] {
            assert!(matches!(made, Err(Error::OutOfRange { .. })), "{dimension}: {made:?}");
        }
    }
    let long = Rademacher::new(1 << 20).unwrap();
    assert!(long.mean().is_ok() && matches!(long.covariance(), Err(Error::OutOfRange { .. })));
    assert!(Affine::scaled(2.0, Arc::new(long)).is_err());
}

#[test]
fn a_user_law_is_differentiated_on_its_own_scale_and_up_to_the_edge() {
    for scale in [1e-6, 1e-2, 1.0, 30.0, 1e6] {
        let cosh = move |tilt: &[f64]| {
            let size = (scale * tilt[0]).abs();
            size + (-2.0 * size).exp().ln_1p() - std::f64::consts::LN_2
        };
        let signs = Custom::new(1, cosh).unwrap();
        // At 10 and beyond almost all mass is on one sign: σ is tiny, and no measure of how far to step.
        for x in [0.0f64, 0.3, 1.5, 5.0, 10.0, 14.0, 20.0, 200.0] {
            let mean = signs.tilted_mean(&[x / scale]).unwrap()[0] / scale;
            assert!((mean - x.tanh()).abs() < 1e-9, "{scale:e} {x}: {mean}");
            let variance = signs.tilted_covariance(&[x / scale]).unwrap()[(0, 0)] / (scale * scale);
            assert!((variance - 1.0 / x.cosh().powi(2)).abs() < 1e-8, "{scale:e} {x}: {variance}");
        }
    }
    // Exponential tokens: Λ(θ) = −ln(1 − θ), mean and variance 1/(1 − θ) and its square.
    let exponential =
        Custom::new(1, |tilt| if tilt[0] < 1.0 { -(-tilt[0]).ln_1p() } else { f64::INFINITY }).unwrap();
    for gap in [0.5, 1e-2, 1e-4] {
        let mean = exponential.tilted_mean(&[1.0 - gap]).unwrap()[0];
        assert!((mean * gap - 1.0).abs() < 1e-7, "{gap:e}: {mean}");
        let variance = exponential.tilted_covariance(&[1.0 - gap]).unwrap()[(0, 0)];
        assert!((variance * gap * gap - 1.0).abs() < 1e-6, "{gap:e}: {variance}");
    }
    // A mixed difference with coordinates of different units, and an atom, which never bends.
    let skew = Custom::new(2, |t| 0.5 * (1e8 * t[0] * t[0] + 1e4 * t[0] * t[1] + t[1] * t[1])).unwrap();
    let covariance = skew.tilted_covariance(&[1e-4, 0.7]).unwrap();
    assert!((covariance[(0, 1)] / 5e3 - 1.0).abs() < 1e-8, "{}", covariance[(0, 1)]);
    let atom = Custom::new(1, |tilt| 3.0 * tilt[0]).unwrap();
    assert!((atom.tilted_mean(&[5.0]).unwrap()[0] - 3.0).abs() < 1e-11);
}

#[test]
fn very_large_products_are_not_offered_as_mixtures() {
    let pair = || -> Law { Arc::new(Empirical::from_tokens(1, &[-1.0, 1.0]).unwrap()) };
    let cube = |dimension| Product::new((0..dimension).map(|_| pair()).collect()).unwrap();
    assert_eq!(cube(5).as_gaussian_mixture().unwrap().len(), 32);
    assert!(cube(13).as_gaussian_mixture().is_none());
    assert!(cube(200).as_gaussian_mixture().is_none());
    let many: Vec<(f64, Law)> = (0..20).map(|_| (1.0, Arc::new(cube(8)) as Law)).collect();
    assert!(Mixture::new(many).unwrap().as_gaussian_mixture().is_none());
}

#[test]
fn a_rare_event_that_was_never_drawn_is_no_false_alarm() {
    let signs: Law = Arc::new(Rademacher::new(1).unwrap());
    check_laws(signs.clone(), &[vec![10.0]], LawTolerance::default()).unwrap();
    let none = check_laws(signs, &[], LawTolerance::default());
    assert!(matches!(none, Err(LawViolation::Refused(Error::Empty { .. }))));
}

#[test]
fn a_tilted_law_that_is_no_mixture_says_so() {
    assert!(Rademacher::new(2).unwrap().tilted(&[0.3, 1.0]).unwrap().as_gaussian_mixture().is_none());
}

/// The weight of the left atom underflows on the way, and comes back.
#[test]
fn tilting_far_and_back_again_forgets_nothing() {
    let atom = |point: f64| -> Law { Arc::new(Empirical::atom(&[point]).unwrap()) };
    let signs = Mixture::new(vec![(0.5, atom(1.0)), (0.5, atom(-1.0))]).unwrap();
    let back = signs.tilted(&[400.0]).unwrap().tilted(&[-800.0]).unwrap();
    assert_eq!(back.mean().unwrap(), [-1.0]);
}

/// KL and D₂ by mpmath with 60 digits. At 10⁻⁸ the plain differences have no digit left; the tolerance is of a few roundings.
#[test]
fn divergences_keep_their_digits_at_small_tilts() {
    let near = |what: &str, found: Result<f64>, expected: f64| {
        let found = found.unwrap();
        assert!((found / expected - 1.0).abs() < 1e-14, "{what}: {found:e} instead of {expected:e}");
    };
    for (dimension, tilt, divergence, renyi, log_partition) in [
        (1, 1e-8, 5e-17, 1e-16, 5e-17),
        (2, 1e-8, 2.5e-17, 5e-17, 2.5e-17),
        (3, 1e-8, 1.6666666666666667e-17, 3.3333333333333335e-17, 1.6666666666666667e-17),
        (3, 1e-3, 1.6666665000000177e-07, 3.333332555555774e-07, 1.6666666111111146e-07),
        (3, 0.3, 0.014866273676851354, 0.02938551450626919, 0.014955255419671121),
        (9, 1e-8, 5.5555555555555555e-18, 1.1111111111111111e-17, 5.5555555555555555e-18),
        (9, 2.0, 0.20970119694084574, 0.3918949206178896, 0.21792644893483074),
    ] {
        let (sphere, mut along) = (Sphere::new(dimension, 1.0).unwrap(), vec![0.0; dimension]);
        along[0] = tilt;
        near("Λ of the sphere", sphere.log_partition(&along), log_partition);
        near("KL of the sphere", sphere.tilt_divergence(&along), divergence);
        near("D₂ of the sphere", sphere.renyi_divergence(&along), renyi);
    }
    // −ln(1 − x²): KL = 2x²/(1 − x²) + ln(1 − x²).
    let laplace = Laplace::new(1, 2.0).unwrap();
    for (tilt, divergence, renyi, log_partition) in [
        (1e-100, 4e-200, 8e-200, 4e-200),
        (1e-17, 4e-34, 8e-34, 4e-34),
        (1e-8, 4.0000000000000024e-16, 8.000000000000001e-16, 4.000000000000001e-16),
    ] {
        near("Λ of Laplace", laplace.log_partition(&[tilt]), log_partition);
        near("KL of Laplace", laplace.tilt_divergence(&[tilt]), divergence);
        near("D₂ of Laplace", laplace.renyi_divergence(&[tilt]), renyi);
    }
    let signs = Empirical::from_tokens(1, &[1.0, -1.0]).unwrap();
    near("KL of two signs", signs.tilt_divergence(&[1e-8]), 5e-17);
    near("D₂ of two signs", signs.renyi_divergence(&[1e-8]), 1e-16);
    let far = Empirical::from_tokens(1, &[1e8, 1e8 + 1.0, 1e8 + 3.0]).unwrap();
    let far = far.with_weights(&[1.0, 1.0, 2.0]).unwrap();
    let gaussian = |mean: f64, variance: f64| -> Law {
        Arc::new(Gaussian::new(&[mean], mat![[variance]].as_ref()).unwrap())
    };
    let mixture = Mixture::new(vec![(1.0, gaussian(1.0, 4.0)), (3.0, gaussian(-1.0, 0.25))]).unwrap();
    for (what, law, tilt, divergence, renyi) in [
        ("a prompt far away", &far as &dyn Measure, 1e-8, 8.437499984375e-17, 1.6874999953124998e-16),
        ("a prompt far away", &far, 1e-3, 8.435931378715023e-07, 1.6870283939015483e-06),
        ("a prompt far away", &far, 0.7, 0.26952754861943795, 0.39166277385404574),
        ("a prompt far away", &far, 300.0, std::f64::consts::LN_2, std::f64::consts::LN_2),
        ("a mixture", &mixture, 1e-8, 9.687500165625003e-17, 1.937500049687501e-16),
        ("a mixture", &mixture, 1e-3, 9.704082475403503e-07, 1.9424780745669254e-06),
        ("a mixture", &mixture, 0.7, 1.3697715324135515, 2.833594144456271),
        ("a mixture", &mixture, 5.0, 51.38629436111989, 101.3862943611199),
        // θᵀGθ/2, whatever the mean.
        ("a Gaussian far away", &*gaussian(1e8, 2.0), 1e-8, 1e-16, 2e-16),
    ] {
        near(what, law.tilt_divergence(&[tilt]), divergence);
        near(what, law.renyi_divergence(&[tilt]), renyi);
    }
    // Of an integral of variances.
    let tilted = Sphere::new(3, 1.0).unwrap().tilted(&[0.75, 0.0, 0.0]).unwrap();
    for (tilt, divergence, renyi) in [
        (1e-8, 1.4946794045153404e-17, 2.9893588062285704e-17),
        (1e-3, 1.4943991035257734e-07, 2.988517748776511e-07),
    ] {
        near("KL of a tilted sphere", tilted.tilt_divergence(&[tilt, 0.0, 0.0]), divergence);
        near("D₂ of a tilted sphere", tilted.renyi_divergence(&[tilt, 0.0, 0.0]), renyi);
    }
}

/// A law that is tilted knows Λ only as a difference: at 10¹⁷, with half of the tilt taken back, D₂ is log 2 of signs, and its terms have
/// no digit of it. KL is about 0 there, which the integral finds. Where a divergence is as large as its terms it is known.
#[test]
fn divergences_of_tilted_laws_are_right_or_refused() {
    let large = 1e17;
    for law in [
        Arc::new(Rademacher::new(1).unwrap()) as Law,
        Arc::new(Sphere::new(3, 1.0).unwrap()),
        Arc::new(Cube::new(1).unwrap()),
    ] {
        let mut along = vec![0.0; law.dimension()];
        let mut at = |tilt: f64| {
            along[0] = tilt;
            along.clone()
        };
        let tilted = law.tilted(&at(large)).unwrap();
        let refused = tilted.renyi_divergence(&at(-0.5 * large)).unwrap_err();
        assert!(matches!(refused, Error::Cancelled { .. }), "{law:?}: {refused}");
        // Back at the law itself: KL = Λ(a), as large as a.
        let back = tilted.tilt_divergence(&at(-large)).unwrap();
        assert!((back / law.log_partition(&at(large)).unwrap() - 1.0).abs() < 1e-12, "{law:?}: {back}");
    }
    let signs = Rademacher::new(1).unwrap();
    assert_eq!(signs.tilted(&[large]).unwrap().tilt_divergence(&[-0.5 * large]).unwrap(), 0.0);
    // Where the terms are 1 in size three digits and more are left, at 10¹² none but what is below a millionth is sure.
    for (tilt, is_known) in [(1e3, true), (1e7, true), (1e12, false)] {
        let renyi = signs.tilted(&[tilt]).unwrap().renyi_divergence(&[-0.5 * tilt]);
        match renyi {
            Ok(renyi) => assert!(is_known && (renyi - 2_f64.ln()).abs() < 1e-6, "{tilt}: {renyi}"),
            Err(error) => assert!(!is_known && matches!(error, Error::Cancelled { .. }), "{tilt}: {error}"),
        }
    }
    // What is no law is not hidden: its divergence is handed out as it is.
    let wrong = Custom::new(1, |tilt: &[f64]| -0.5 * tilt[0] * tilt[0]).unwrap();
    assert!((wrong.tilt_divergence(&[1.0]).unwrap() + 0.5).abs() < 1e-9);
    // Gains of ±10¹⁶ cancel: the difference is −1, and neither that nor 0 may be handed out.
    let far = Custom::new(2, |tilt: &[f64]| {
        1e16 * (tilt[0] + tilt[1]) + 0.5 * (tilt[0] * tilt[0] + tilt[1] * tilt[1])
    });
    if let Ok(divergence) = far.unwrap().tilt_divergence(&[1.0, -1.0]) {
        assert!((divergence - 1.0).abs() < 1e-3, "{divergence}");
    }
}

/// KL and D₂ by mpmath with 60 digits, and by their limits where the tilt is beyond 10¹⁵: there Λ has no digit of them left.
#[test]
fn divergences_keep_their_digits_at_large_tilts() {
    let near = |law: &dyn Measure, tilt: f64, divergence: f64, renyi: f64| {
        let mut along = vec![0.0; law.dimension()];
        along[0] = tilt;
        for (found, expected) in [
            (law.tilt_divergence(&along).unwrap(), divergence),
            (law.renyi_divergence(&along).unwrap(), renyi),
        ] {
            assert!((found / expected - 1.0).abs() < 1e-13, "{law:?} at {tilt:e}: {found} not {expected}");
        }
    };
    let (signs, cube) = (Rademacher::new(2).unwrap(), Cube::new(2).unwrap());
    let sphere = |dimension| Sphere::new(dimension, 1.0).unwrap();
    let ln_2 = std::f64::consts::LN_2;
    for (tilt, divergence, renyi) in [
        (0.9, 0.28483765321299315, 0.4141490525160051),
        (-1.1, 0.36861278472794207, 0.4951831256302496),
        (5.0, 0.6926478029737041, 0.6930563848226652),
        (30.0, ln_2, ln_2),
        (1e16, ln_2, ln_2),
        (-1e300, ln_2, ln_2),
    ] {
        near(&signs, tilt, divergence, renyi);
        near(&sphere(1), tilt, divergence, renyi);
    }
    for (tilt, divergence, renyi) in [
        (0.9, 0.12492876080576414, 0.2282986630448823),
        (-1.1, 0.180036850202273, 0.3178301483858799),
        (5.0, 1.303084513864513, 1.6095287122936877),
        (30.0, 3.094344562222101, 3.4011973816621555),
        (1e16, ln_2 + 1e16_f64.ln() - 1.0, 1e16_f64.ln()),
        (1e300, ln_2 + 1e300_f64.ln() - 1.0, 1e300_f64.ln()),
    ] {
        near(&cube, tilt, divergence, renyi);
        near(&sphere(3), tilt, divergence, renyi);
    }
    for (dimension, tilt, divergence, renyi) in [
        (2, 50.0, 2.369872867053083, 2.5245816861989745),
        (2, 1000.0, 3.8725659849348153, 4.026054972918501),
        (5, 40.0, 5.023252633745024, 5.624056272761537),
        (5, 1000.0, 11.412046951190694, 12.025251964361704),
        (9, 1e5, 38.091008691183326, 39.31838996856855),
        (40, 1e5, 153.4149120093206, 159.39764010213955),
    ] {
        near(&sphere(dimension), tilt, divergence, renyi);
    }
    let pi = std::f64::consts::PI;
    for tilt in [1e17, 1e250] {
        near(&sphere(2), tilt, 0.5 * ((2.0 * pi * tilt).ln() - 1.0), 0.5 * (pi * tilt).ln());
    }
}

/// KL = Var⟨θ, z⟩/2 and D₂ = Var⟨θ, z⟩ to first order: 10⁻⁴ at tilts of 10⁻⁵, whose skewness is of order one. A user's mean is
/// of differences, whose errors are larger than that.
#[test]
fn divergences_of_every_family_begin_with_the_variance() {
    for measure in families().into_iter().filter(|measure| measure.family() != "user's law") {
        let dimension = measure.dimension();
        let tilt =
            |size: f64| -> Vec<f64> { (0..dimension).map(|i| size * (0.3 + i as f64).sin()).collect() };
        for law in [measure.clone(), measure.tilted(&tilt(0.7)).unwrap()] {
            for size in [1e-5, 1e-8] {
                let tilt = tilt(size);
                let covariance = law.covariance().unwrap();
                let variance = linalg::dot(&tilt, &linalg::apply(covariance.as_ref(), &tilt));
                let (divergence, renyi) =
                    (law.tilt_divergence(&tilt).unwrap(), law.renyi_divergence(&tilt).unwrap());
                assert!((divergence - 0.5 * variance).abs() <= 1e-4 * variance, "{law:?}: {divergence:e}");
                assert!((renyi - variance).abs() <= 1e-4 * variance, "{law:?}: {renyi:e}");
            }
        }
    }
    // Many tokens, many directions: never below zero.
    let (mut tokens, mut tilts) = (vec![0.0; 3000], vec![0.0; 300]);
    Stream::new(4, 0, 0).fill_normals(&mut tokens);
    Stream::new(5, 0, 0).fill_normals(&mut tilts);
    let prompt = Empirical::from_tokens(3, &tokens).unwrap();
    for (index, tilt) in tilts.chunks_exact(3).enumerate() {
        let size = 10f64.powi(-(index as i32 % 20));
        let tilt: Vec<f64> = tilt.iter().map(|entry| size * entry).collect();
        let (divergence, renyi) =
            (prompt.tilt_divergence(&tilt).unwrap(), prompt.renyi_divergence(&tilt).unwrap());
        assert!(divergence > 0.0 && renyi > divergence, "{size:e}: {divergence:e} {renyi:e}");
    }
}

/// Where tokens have no score, because it underflows every double, or cannot be measured from the first.
#[test]
fn divergences_of_prompts_at_the_ends_of_the_doubles_are_right_or_refused() {
    let ends = Empirical::from_tokens(1, &[1.5e308, -1.5e308]).unwrap();
    // Two signs at tilt 1.5: θ tanh θ − ln cosh θ and ln(1 + tanh²θ).
    let (divergence, renyi) =
        (1.5 * 1.5f64.tanh() - 1.5f64.cosh().ln(), (1.5f64.tanh() * 1.5f64.tanh()).ln_1p());
    assert!((ends.tilt_divergence(&[1e-308]).unwrap() - divergence).abs() < 1e-14);
    assert!((ends.renyi_divergence(&[1e-308]).unwrap() - renyi).abs() < 1e-14);
    let gone = Empirical::from_tokens(1, &[1.0, -1e200]).unwrap();
    // All weight on one token of two.
    for found in [gone.tilt_divergence(&[1e200]), gone.renyi_divergence(&[1e200])] {
        assert!((found.unwrap() - std::f64::consts::LN_2).abs() < 1e-15);
    }
    let none = Empirical::from_tokens(1, &[1e200, 2e200]).unwrap();
    assert!(matches!(none.tilt_divergence(&[1e200]), Err(Error::Overflow { .. })));
}

#[test]
fn a_tolerance_that_makes_no_sense_is_refused_before_a_law_is_blamed() {
    let check = |identity, derivative| {
        let tolerance = LawTolerance { identity, derivative, ..LawTolerance::default() };
        check_laws(Arc::new(Cube::new(1).unwrap()), &[vec![0.3]], tolerance)
    };
    for (found, name) in [
        (check(f64::NAN, 1e-6), "identities is NaN"),
        (check(-1e-3, 1e-6), "identities is -0.001"),
        (check(1e-10, f64::INFINITY), "derivatives is inf"),
    ] {
        let Err(LawViolation::Refused(error)) = found else { panic!("{name}: {found:?}") };
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn a_user_mean_that_is_no_number_is_called_by_its_name() {
    let law = Custom::new(1, |tilt| tilt[0] * tilt[0]).unwrap().with_tilted_mean(|_| vec![f64::NAN]);
    let error = law.tilted_mean(&[0.5]).unwrap_err().to_string();
    assert!(error.contains("the user's tilted mean returned NaN at tilt [0.5]"), "{error}");
}
