//! The paper's propositions, measured: rates against σ and H, constants of bounded laws, horizons, both engines.

use crate::common::{StopAfter, length, long};
use esscher_core::attention::Softmax;
use esscher_core::concentration::{Concentration, Engine, Horizon, Quantity, Regime, regime};
use esscher_core::measure::{Affine, Cube, Empirical, Gaussian, Law, Mixture, Rademacher, Sphere};
use esscher_core::prompt::{
    FinitePrompt, PromptLength, QueryAverage, SampleOptions, delta_method, rate_exponent,
};
use esscher_core::{Accuracy, Completion, Error, Mat, Unwatched, mat};
use std::sync::Arc;

fn plain_head(dimension: usize) -> Softmax {
    let identity = Mat::<f64>::identity(dimension, dimension);
    Softmax::new(identity.as_ref(), identity.as_ref()).unwrap()
}

fn isotropic(dimension: usize, sigma: f64) -> Law {
    let covariance = Mat::from_fn(dimension, dimension, |i, j| if i == j { sigma * sigma } else { 0.0 });
    Arc::new(Gaussian::centred(covariance.as_ref()).unwrap())
}

/// Tokens N(0, σ²I), queries N(0, I), so H = σ; slopes at the longest lengths against κ(H).
///
/// The heuristic is a limit with logarithmic corrections, so what is asked for H > 1/√2 is that the slope comes
/// closer to κ as L grows from 10³ to 10¹². The paper's statement: the slope times σ² is bounded below.
#[test]
fn gaussian_slopes_follow_the_exponent_of_h() {
    let lengths = PromptLength::logarithmic(length(1_000), PromptLength::MAX, 10);
    let mut last_slope = f64::INFINITY;
    for sigma in [0.5, 1.0, 1.5, 2.0, 3.0] {
        let setting =
            Concentration::new(plain_head(2), isotropic(2, sigma), isotropic(2, 1.0), &lengths).unwrap();
        assert!((setting.operator_norm().unwrap() - sigma).abs() < 1e-12);
        let study = setting.run(Engine::Exact(QueryAverage::COARSE), &Unwatched).unwrap();
        assert_eq!(study.completion, Completion::Finished);
        for quantity in [Quantity::Output, Quantity::ScoreGradient, Quantity::ValueGradient] {
            let slopes = study.local_slopes(quantity).unwrap();
            assert!(
                slopes.iter().all(|slope| slope.slope * sigma * sigma > 0.1),
                "{quantity:?} at σ = {sigma}"
            );
        }
        let slopes: Vec<f64> =
            study.local_slopes(Quantity::Output).unwrap().iter().map(|slope| slope.slope).collect();
        let kappa = rate_exponent(sigma).unwrap();
        let (first, last) = (slopes[0], slopes[slopes.len() - 1]);
        println!(
            "σ = {sigma}: slope {first:.3} … {last:.3}, κ {kappa:.3}, slope × σ² {:.2}",
            last * sigma * sigma
        );
        if sigma < 0.5f64.sqrt() {
            assert!((last - 1.0).abs() < 1e-3);
        } else {
            assert!((last - kappa).abs() < (first - kappa).abs(), "σ = {sigma}: {slopes:?}, κ = {kappa}");
            // Measured at 10¹²: 0.034, 0.007, 0.015 and 0.024 for σ = 1, 1.5, 2 and 3.
            assert!((last - kappa).abs() < 0.04, "σ = {sigma}: {slopes:?}, κ = {kappa}");
        }
        assert!(last < last_slope);
        last_slope = last;
    }
}

/// A mixture of N(0, σ²) and an atom at the origin has the exponent of its Gaussian, up to the same logarithmic
/// corrections: the slope comes closer to κ from 10³ to 10¹².
#[test]
fn mixture_slopes_follow_the_exponent_of_their_gaussian() {
    let lengths = [1_000, 10_000, 100_000_000_000, 1_000_000_000_000].map(length);
    let sigmas: &[f64] = if long() { &[0.5, 1.0, 1.5, 2.0, 3.0] } else { &[0.5, 1.0, 2.0] };
    for &sigma in sigmas {
        let parts: Vec<(f64, Law)> =
            vec![(0.2, Arc::new(Empirical::atom(&[0.0]).unwrap())), (0.8, isotropic(1, sigma))];
        let tokens: Law = Arc::new(Mixture::new(parts).unwrap());
        let setting = Concentration::new(plain_head(1), tokens, isotropic(1, 1.0), &lengths).unwrap();
        let study = setting.run(Engine::Exact(QueryAverage::COARSE), &Unwatched).unwrap();
        let slopes = study.local_slopes(Quantity::Output).unwrap();
        let (first, last) = (slopes[0].slope, slopes[2].slope);
        let kappa = rate_exponent(sigma).unwrap();
        println!("σ = {sigma}: slope {first:.3} … {last:.3}, κ {kappa:.3}");
        let gaps = ((first - kappa).abs(), (last - kappa).abs());
        // At σ = 1 the corrections change sign on the way: κ itself is near at both ends.
        assert!(gaps.1 < 0.02 || gaps.1 < 0.5 * gaps.0, "σ = {sigma}: {first} {last} {kappa}");
        assert!(slopes.iter().all(|slope| slope.slope * sigma * sigma > 0.2));
    }
}

/// Bounded laws have slope 1 at every σ, with the constant of the delta method; their sub-Gaussian parameter
/// only moves the length from which it shows.
#[test]
fn bounded_laws_have_slope_one_and_the_constant_of_the_delta_method() {
    let query = [0.6, -0.4];
    let queries: Law = Arc::new(Empirical::atom(&query).unwrap());
    let lengths = [300, 1000, 3000, 10_000].map(length);
    let head = plain_head(2);
    for sigma in [0.5, 1.0, 1.5, 2.0, 3.0] {
        let bases: [Law; 3] = [
            Arc::new(Rademacher::new(2).unwrap()),
            Arc::new(Cube::new(2).unwrap()),
            Arc::new(Sphere::new(2, 1.0).unwrap()),
        ];
        for base in bases {
            // Scaled so that the optimal sub-Gaussian parameter is σ.
            let factor = sigma / base.sub_gaussian().unwrap().parameter;
            let tokens: Law = Arc::new(Affine::scaled(factor, base).unwrap());
            assert!((tokens.sub_gaussian().unwrap().parameter - sigma).abs() < 1e-12);
            let setting =
                Concentration::new(head.clone(), tokens.clone(), queries.clone(), &lengths).unwrap();
            let options = SampleOptions { trials: 400, queries: 1, seed: 3, ..SampleOptions::default() };
            let study = setting.run(Engine::Best(QueryAverage::COARSE, options), &Unwatched).unwrap();
            let rate = study.rate(Quantity::Output, 0.999).unwrap();
            // Curvature of order 1/L at L = 300 moves the exponent by less than 0.1.
            assert!((rate.exponent - 1.0).abs() < 0.1 + 4.0 * rate.standard_error, "{tokens:?}: {rate:?}");
            let constant = delta_method(&head, tokens.as_ref(), &query).unwrap().output_error;
            let row = study.rows.last().unwrap();
            let measured = row.errors.output.unwrap();
            let (found, error) = (measured.value * 1e4, measured.error * 1e4);
            assert_eq!(measured.accuracy, Accuracy::Sampled);
            assert!(
                (found - constant).abs() < 5.0 * error + 0.02 * constant,
                "{tokens:?}: {found} ± {error}, {constant}"
            );
            if sigma == 1.0 || sigma == 3.0 {
                println!(
                    "{}, σ = {sigma}: exponent {:.3} ± {:.3}",
                    base_name(&tokens),
                    rate.exponent,
                    rate.standard_error
                );
            }
        }
    }
}

fn base_name(tokens: &Law) -> String {
    format!("{tokens:?}").split("base: ").nth(1).unwrap_or("").chars().take(10).collect()
}

#[test]
fn exact_and_sampled_studies_agree() {
    let head = Softmax::new(mat![[0.6, 0.1], [-0.2, 0.5]].as_ref(), mat![[1.0, 0.5]].as_ref()).unwrap();
    let tokens: Law = Arc::new(Gaussian::new(&[0.2, -0.1], mat![[1.0, 0.3], [0.3, 0.7]].as_ref()).unwrap());
    let lengths = [10, 100, 1000].map(length);
    let setting = Concentration::new(head, tokens, isotropic(2, 1.0), &lengths).unwrap();
    let exact = setting.run(Engine::Exact(QueryAverage::default()), &Unwatched).unwrap();
    let options = SampleOptions { trials: 2000, queries: 40, seed: 8, ..SampleOptions::default() };
    let sampled = setting.run(Engine::Sampled(options), &Unwatched).unwrap();
    for (exact, sampled) in exact.rows.iter().zip(&sampled.rows) {
        for quantity in Quantity::ALL {
            let (a, b) = (exact.errors[quantity].unwrap(), sampled.errors[quantity].unwrap());
            let allowed = 5.0 * a.error.hypot(b.error);
            assert!((a.value - b.value).abs() < allowed, "{a:?} {b:?}");
        }
    }
    // The joint covariance of prefixes enters the fit: exact and sampled exponents agree within its error.
    let (a, b) = (exact.rate(Quantity::Output, 0.95).unwrap(), sampled.rate(Quantity::Output, 0.95).unwrap());
    assert!((a.exponent - b.exponent).abs() < 5.0 * b.standard_error + 0.02, "{a:?} {b:?}");
}

/// The horizon is a crossing: the error is at most the tolerance there and above it one token earlier.
#[test]
fn the_horizon_is_the_first_sufficient_length() {
    let lengths = [length(10)];
    let setting = Concentration::new(plain_head(1), isotropic(1, 0.5), isotropic(1, 1.0), &lengths).unwrap();
    let found = setting.horizon(Quantity::Output, 1e-6, QueryAverage::COARSE, &Unwatched).unwrap();
    let Horizon::Found { length: at, error, before: Some(before) } = found else { panic!("{found:?}") };
    assert!(error.value <= 1e-6 && before.value > 1e-6);
    // A law on a line has no directions to average over.
    assert_eq!(error.accuracy, Accuracy::Exact);
    let check = Concentration::new(plain_head(1), isotropic(1, 0.5), isotropic(1, 1.0), &[at]).unwrap();
    let again =
        check.run(Engine::Exact(QueryAverage::COARSE), &Unwatched).unwrap().rows[0].errors.output.unwrap();
    assert!((again.value / error.value - 1.0).abs() < 1e-9);
    let hard = Concentration::new(plain_head(1), isotropic(1, 3.0), isotropic(1, 1.0), &lengths).unwrap();
    assert!(matches!(
        hard.horizon(Quantity::Output, 1e-6, QueryAverage::COARSE, &Unwatched).unwrap(),
        Horizon::Beyond { .. }
    ));
}

/// Numbers that nobody asked for may leave the doubles: at tokens of size 10⁻¹⁰⁰ the gradient in U has an error of 10⁻⁴⁰⁰.
#[test]
fn tiny_tokens_have_the_horizon_of_ordinary_ones() {
    let scale = 2f64.powi(-340);
    let head = Softmax::new(mat![[1.0 / scale]].as_ref(), mat![[1.0]].as_ref()).unwrap();
    let tiny = Concentration::new(head, isotropic(1, scale), isotropic(1, 0.5), &[length(10)]).unwrap();
    let plain =
        Concentration::new(plain_head(1), isotropic(1, 1.0), isotropic(1, 0.5), &[length(10)]).unwrap();
    let horizon = |setting: &Concentration, quantity, tolerance| {
        setting.horizon(quantity, tolerance, QueryAverage::COARSE, &Unwatched)
    };
    let (here, there) =
        (horizon(&tiny, Quantity::Output, 1e-6 * scale * scale), horizon(&plain, Quantity::Output, 1e-6));
    let (here, there) = (here.unwrap(), there.unwrap());
    assert!(here.length().is_some() && here.length() == there.length(), "{here:?} {there:?}");
    assert_eq!(here.error().unwrap().value, scale * there.error().unwrap().value * scale);
    let gradient = horizon(&tiny, Quantity::ScoreGradient, 1e-6);
    assert!(matches!(gradient, Err(Error::Underflow { .. })), "{gradient:?}");
    let run = |score_gradient| {
        let options = SampleOptions { score_gradient, ..SampleOptions::default() };
        tiny.run(Engine::Best(QueryAverage::COARSE, options), &Unwatched)
    };
    let errors = run(false).unwrap().rows[0].errors;
    assert!(errors.output.unwrap().value > 0.0 && errors.score_gradient.is_none());
    assert!(matches!(run(true), Err(Error::Underflow { .. })));
    // H is a size, not a square.
    let (here, there) = (tiny.operator_norm().unwrap(), plain.operator_norm().unwrap());
    assert_eq!(here, there);
    let small = Softmax::new(mat![[1e-200]].as_ref(), mat![[1.0]].as_ref()).unwrap();
    let small = Concentration::new(small, isotropic(1, 1.0), isotropic(1, 1.0), &[length(10)]).unwrap();
    assert_eq!(small.operator_norm().unwrap(), 1e-200);
}

/// Simulated squares, and the squares of those in standard errors, must be doubles as well.
#[test]
fn simulations_of_vanishing_outputs_are_refused() {
    let tokens: Law = Arc::new(Rademacher::new(1).unwrap());
    let study = |value: f64| {
        let head = Softmax::new(mat![[1.0]].as_ref(), mat![[value]].as_ref()).unwrap();
        let setting = Concentration::new(head, tokens.clone(), tokens.clone(), &[length(10)]).unwrap();
        setting.run(Engine::Sampled(SampleOptions { trials: 20, ..SampleOptions::default() }), &Unwatched)
    };
    assert!(matches!(study(1e-100), Err(Error::Underflow { .. })));
    assert_eq!(study(0.0).unwrap().rows[0].errors.output.unwrap().value, 0.0);
    // Tokens that rounding has made equal are not without spread.
    let far =
        |mean: f64| -> Law { Arc::new(Affine::new(mat![[1.0]].as_ref(), &[mean], tokens.clone()).unwrap()) };
    let simulated = |mean: f64| {
        let setting = Concentration::new(plain_head(1), far(mean), tokens.clone(), &[length(10)]).unwrap();
        let options = SampleOptions { trials: 200, ..SampleOptions::default() };
        setting.run(Engine::Sampled(options), &Unwatched).map(|study| study.rows[0].errors.output.unwrap())
    };
    assert!(matches!(simulated(1e17), Err(Error::OutOfRange { .. })));
    let (far, near) = (simulated(1e12).unwrap(), simulated(0.0).unwrap());
    assert!((far.value / near.value - 1.0).abs() < 1e-2, "{far:?} {near:?}");
    let (small, plain) = (study(2f64.powi(-100)).unwrap(), study(1.0).unwrap());
    let (small, plain) = (small.rows[0].errors.output.unwrap(), plain.rows[0].errors.output.unwrap());
    assert_eq!((small.value, small.error), (plain.value * 2f64.powi(-200), plain.error * 2f64.powi(-200)));
}

/// Every τ up to the largest is answered, also where the nodes of its interpolation lie beyond.
#[test]
fn the_largest_score_deviation_is_that_of_the_message() {
    for tau in [9998.0, 9999.0, 9999.5, 1e4] {
        let query: Law = Arc::new(Empirical::atom(&[tau]).unwrap());
        let all = [length(2), length(1000)];
        let setting = Concentration::new(plain_head(1), isotropic(1, 1.0), query, &all).unwrap();
        let study = setting.run(Engine::Exact(QueryAverage::COARSE), &Unwatched).unwrap();
        let direct = FinitePrompt::exact(&plain_head(1), isotropic(1, 1.0).as_ref()).unwrap();
        let direct = direct.at_query(&[tau], &all).unwrap();
        for (row, direct) in study.rows.iter().zip(&direct) {
            let found = row.errors.output.unwrap().value;
            assert!((found / direct.errors.output - 1.0).abs() < 1e-9, "τ = {tau}: {found}");
        }
    }
    let query: Law = Arc::new(Empirical::atom(&[10000.5]).unwrap());
    let setting = Concentration::new(plain_head(1), isotropic(1, 1.0), query, &[length(2)]).unwrap();
    let refused = setting.run(Engine::Exact(QueryAverage::COARSE), &Unwatched).unwrap_err().to_string();
    assert!(refused.contains("is 10000.5: expected a number from 0 to 10000"), "{refused}");
}

/// A monitor that stops in the middle leaves a bracket, never an answer from a partial average and never an error.
#[test]
fn a_stopped_horizon_is_a_bracket() {
    let lengths = [length(10)];
    let setting = Concentration::new(plain_head(2), isotropic(2, 0.5), isotropic(2, 1.0), &lengths).unwrap();
    let average = QueryAverage { directions: 4, randomisations: 16, seed: 0 };
    let stopped = |looks| setting.horizon(Quantity::Output, 1e-6, average, &StopAfter::looks(looks)).unwrap();
    let found = setting.horizon(Quantity::Output, 1e-6, average, &Unwatched).unwrap().length().unwrap();
    let mut brackets = 0;
    for looks in (0..).map(|power| 2usize.pow(power) - 1) {
        match stopped(looks) {
            Horizon::Stopped { above, within } => {
                assert!(above.is_none_or(|above| above < found), "{looks} looks: {above:?} {found}");
                assert!(within.is_none_or(|within| found <= within), "{looks} looks: {within:?} {found}");
                brackets += usize::from(above.is_some() && within.is_some());
                assert!(looks > 0 || (above.is_none() && within.is_none()));
            }
            ended => {
                assert_eq!(ended.length(), Some(found));
                break;
            }
        }
    }
    assert!(brackets > 1, "stopped on both sides of the horizon {brackets} times");
}

/// The radius of mixture tokens is as fine at every length asked for as at the first ones: the error at the horizon is that
/// of a study over those lengths, to rounding.
#[test]
fn a_horizon_keeps_its_query_points() {
    let parts: Vec<(f64, Law)> = vec![
        (0.5, Arc::new(Empirical::atom(&[-1.0, 0.5]).unwrap())),
        (0.5, Arc::new(Empirical::atom(&[1.0, 0.0]).unwrap())),
    ];
    let tokens: Law = Arc::new(Mixture::new(parts).unwrap());
    let queries: Law = Arc::new(Gaussian::new(&[1.0, 0.0], Mat::identity(2, 2).as_ref()).unwrap());
    // At this steepness the first lengths need one level more than the short ones around the horizon.
    let score = mat![[2.65, 0.0], [0.0, 2.65]];
    let head = Softmax::new(score.as_ref(), Mat::identity(2, 2).as_ref()).unwrap();
    // In the plane a radius rule has settled where it changes by 10⁻³, so that another one would show.
    let average = QueryAverage { directions: 2, randomisations: 2, seed: 0 };
    let mut lengths = PromptLength::logarithmic(PromptLength::MIN, PromptLength::MAX, 24);
    let setting = |lengths: &[PromptLength]| {
        Concentration::new(head.clone(), tokens.clone(), queries.clone(), lengths).unwrap()
    };
    let found = setting(&lengths).horizon(Quantity::Output, 0.1, average, &Unwatched).unwrap();
    let Horizon::Found { length, error, .. } = found else { panic!("{found:?}") };
    lengths.push(length);
    let study = setting(&lengths).run(Engine::Exact(average), &Unwatched).unwrap();
    let row = study.rows.iter().find(|row| row.length == length).unwrap();
    let change = (row.errors.output.unwrap().value / error.value - 1.0).abs();
    assert!(change < 1e-12, "{found:?} {row:?}: {change:e}");
}

#[test]
fn studies_without_a_standard_error_are_refused() {
    let lengths = [10, 100, 1000].map(length);
    let tokens: Law = Arc::new(Cube::new(1).unwrap());
    let setting = Concentration::new(plain_head(1), tokens.clone(), isotropic(1, 1.0), &lengths).unwrap();
    let one = SampleOptions { trials: 1, ..SampleOptions::default() };
    assert!(matches!(setting.run(Engine::Sampled(one), &Unwatched), Err(Error::OutOfRange { .. })));
    // Errors of 10²⁰⁰ have a mean but no variance.
    let huge = Mat::from_fn(1, 1, |_, _| 1e100);
    let head = Softmax::new(mat![[1.0]].as_ref(), huge.as_ref()).unwrap();
    let setting = Concentration::new(head, tokens, isotropic(1, 1.0), &lengths).unwrap();
    let few = SampleOptions { trials: 4, ..SampleOptions::default() };
    assert!(matches!(setting.run(Engine::Sampled(few), &Unwatched), Err(Error::Overflow { .. })));
}

#[test]
fn queries_have_their_regime() {
    assert_eq!(regime(1.0, length(1000)).unwrap(), Regime::Diluted);
    assert_eq!(regime(3.0, length(1000)).unwrap(), Regime::Intermediate);
    assert_eq!(regime(4.0, length(1000)).unwrap(), Regime::Frozen);
}

fn on_two_threads<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap().install(work)
}

#[test]
fn a_stopped_study_resumes_to_the_same_bits() {
    let lengths = [10, 100, 200].map(length);
    let tokens: Law = Arc::new(Cube::new(2).unwrap());
    let setting = Concentration::new(plain_head(2), tokens, isotropic(2, 1.0), &lengths).unwrap();
    let options = SampleOptions { trials: 300, ..SampleOptions::default() };
    let whole = setting.run(Engine::Sampled(options), &Unwatched).unwrap();
    // 300 trials are five units; a step is as many units as there are threads.
    for looks in [0, 1, 2] {
        let stopped =
            on_two_threads(|| setting.run(Engine::Sampled(options), &StopAfter::looks(looks))).unwrap();
        assert!(matches!(stopped.completion, Completion::Stopped { total: 5, .. }));
        assert_eq!(stopped.units.units.len(), 2 * looks);
        assert_eq!(stopped.rows.is_empty(), looks == 0);
        let resumed = setting.resume(options, stopped.units, &Unwatched).unwrap();
        assert_eq!(whole.rows, resumed.rows);
        assert_eq!(whole.rate(Quantity::Output, 0.9).ok(), resumed.rate(Quantity::Output, 0.9).ok());
    }
    // Units of another law, seed or grid are not taken for one's own.
    let other = |change: &dyn Fn(&mut SampleOptions)| {
        let mut other = options;
        change(&mut other);
        setting.resume(other, whole.units.clone(), &Unwatched)
    };
    assert!(matches!(other(&|options| options.seed = 1), Err(Error::OtherSimulation { .. })));
    assert!(matches!(
        other(&|options| options.trials = 200),
        Err(Error::OutOfRange { .. } | Error::OtherSimulation { .. })
    ));
    let wider = Concentration::new(plain_head(2), isotropic(2, 2.0), isotropic(2, 1.0), &lengths).unwrap();
    assert!(wider.resume(options, whole.units, &Unwatched).is_err());
}
