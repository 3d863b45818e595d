//! Rate fits, regimes and horizons: exact power laws, coverage by simulation, curvature, and crossings to the token.

use crate::common::{length, lengths};
use esscher_core::attention::Softmax;
use esscher_core::concentration::{
    Dependence, Estimator, Horizon, RateFit, RatePoint, Regime, SpreadBasis, horizon, horizon_in_batches,
    local_slopes, rate_fit, regime, typical_error_exponent,
};
use esscher_core::measure::Gaussian;
use esscher_core::numerics::{JointSummary, Stream};
use esscher_core::prompt::{Deviation, FinitePrompt, PromptLength};
use esscher_core::{Accuracy, Error, Estimate, Mat, Result, mat};

const LENGTHS: [u64; 8] = [10, 30, 100, 300, 1000, 3000, 10_000, 1_000_000_000_000];

fn points(lengths: &[u64], value: impl Fn(f64) -> f64, relative_error: f64) -> Vec<RatePoint> {
    let point = |&tokens: &u64| {
        let value = value(tokens as f64);
        RatePoint { length: length(tokens), value, absolute_error: relative_error * value }
    };
    lengths.iter().map(point).collect()
}

fn independent(points: &[RatePoint]) -> RateFit {
    rate_fit(points, Dependence::Independent, 0.95).unwrap()
}

#[test]
fn exact_power_laws_are_recovered_to_rounding() {
    for (constant, exponent) in [(2.5, 1.0), (1e-8, 0.37), (40.0, 0.0), (3.0, -0.2)] {
        for relative_error in [0.0, 1e-9, 0.1] {
            let fit = independent(&points(&LENGTHS, |l| constant * l.powf(-exponent), relative_error));
            assert!((fit.exponent - exponent).abs() < 1e-14, "{fit:?}");
            assert!((fit.constant / constant - 1.0).abs() < 1e-13, "{fit:?}");
            assert!(fit.residuals.iter().all(|residual| residual.abs() < 1e-13));
            assert!(fit.interval.contains(exponent) && fit.dropped.is_empty());
            assert_eq!(fit.degrees_of_freedom, 6);
        }
    }
}

/// Exact points beside sampled ones, anywhere in the list, independent or correlated: nine orders of magnitude in the
/// weights cost no digit.
#[test]
fn power_laws_are_recovered_from_points_of_mixed_precision() {
    let mixtures = [
        [0.1, 1e-9, 0.1, 0.1],
        [1e-12, 0.1, 0.1, 0.1],
        [0.1, 0.1, 0.1, 1e-9],
        [1e-15, 1e-3, 0.3, 1e-9],
        [0.1, 1e-12, 1e-12, 0.1],
        [0.0, 0.3, 1e-8, 0.0],
    ];
    for precision in mixtures {
        let mut mixed = points(&[10, 100, 1000, 10_000], |l| 1.7 * l.powf(-0.7), 0.0);
        mixed.iter_mut().zip(precision).for_each(|(point, error)| point.absolute_error = error * point.value);
        for correlation in [0.0, 0.06, 0.5] {
            let covariance = Mat::from_fn(4, 4, |i, j| {
                precision[i] * precision[j] * if i == j { 1.0 } else { correlation }
            });
            let fit = if correlation == 0.0 {
                rate_fit(&mixed, Dependence::Independent, 0.95)
            } else {
                rate_fit(&mixed, Dependence::LogCovariance(covariance.as_ref()), 0.95)
            };
            let fit = fit.unwrap();
            assert!((fit.exponent - 0.7).abs() < 1e-14, "{precision:?} {correlation}: {fit:?}");
            assert!((fit.constant / 1.7 - 1.0).abs() < 1e-13, "{precision:?} {correlation}: {fit:?}");
            assert!(fit.residuals.iter().all(|residual| residual.abs() < 1e-13));
            assert!(fit.interval.contains(0.7), "{precision:?} {correlation}: {fit:?}");
        }
    }
}

#[test]
fn stated_errors_are_propagated_where_they_explain_the_residuals() {
    // Closed form for equal weights: standard error = r/(Σ (x − x̄)²)^{1/2}.
    let fit = independent(&points(&LENGTHS, |l| 1.0 / l, 0.05));
    let x: Vec<f64> = LENGTHS.iter().map(|&l| (l as f64).ln()).collect();
    let mean = x.iter().sum::<f64>() / 8.0;
    let expected = 0.05 / x.iter().map(|x| (x - mean).powi(2)).sum::<f64>().sqrt();
    assert_eq!(fit.basis, SpreadBasis::StatedErrors);
    assert!((fit.standard_error / expected - 1.0).abs() < 1e-13);
    let half_width = 1.959_963_984_540_054 * expected;
    assert!((fit.interval.upper - 1.0 - half_width).abs() < 1e-13);
    assert!((1.0 - fit.interval.lower - half_width).abs() < 1e-13);
}

/// 4000 fits each; a correct 90 % interval misses the allowed band of five standard errors with probability
/// below 10⁻⁶ per case, and the seeds are fixed.
#[test]
fn the_interval_covers_the_exponent() {
    const FITS: u32 = 4000;
    let level = 0.9;
    let band = 5.0 * (level * (1.0 - level) / f64::from(FITS)).sqrt();
    for (points_of_fit, understated) in [(3usize, 1.0), (5, 1.0), (20, 1.0), (5, 4.0), (20, 4.0)] {
        let grid: Vec<u64> = (0..points_of_fit).map(|k| 100 << k).collect();
        let mut covered = 0;
        for trial in 0..FITS {
            let mut stream = Stream::new(90, trial, points_of_fit as u32);
            let noisy: Vec<RatePoint> = grid
                .iter()
                .map(|&tokens| {
                    let relative_error = 0.01 * (1.0 + stream.uniform());
                    let value =
                        (-0.7 * (tokens as f64).ln() + understated * relative_error * stream.normal()).exp();
                    RatePoint { length: length(tokens), value, absolute_error: relative_error * value }
                })
                .collect();
            let fit = rate_fit(&noisy, Dependence::Independent, level).unwrap();
            covered += u32::from(fit.interval.contains(0.7));
        }
        let coverage = f64::from(covered) / f64::from(FITS);
        println!(
            "{points_of_fit} points, errors understated {understated} times: coverage {coverage:.3} at 0.9"
        );
        if understated == 1.0 {
            assert!(coverage > level - band, "{points_of_fit} points: {coverage}");
        } else {
            // Errors four times too small: the scale comes from the residuals. With few points χ² sometimes
            // looks innocent: P(χ²₃ < 3/16) = 2 %, the most that can be lost.
            assert!((coverage - level).abs() < band + 0.02, "{points_of_fit} points: {coverage}");
        }
    }
}

#[test]
fn curvature_widens_the_interval_of_exact_points() {
    let exact = |bend: f64| independent(&points(&LENGTHS[..7], |l| (l.ln()).powf(bend) / l, 1e-9));
    let (straight, curved, more) = (exact(0.0), exact(1.0), exact(2.0));
    assert_eq!(curved.basis, SpreadBasis::Residuals);
    let width = |fit: &RateFit| fit.interval.upper - fit.interval.lower;
    assert!(width(&straight) < 1e-8);
    assert!(width(&curved) > 0.02 && (width(&more) / width(&curved) - 2.0).abs() < 1e-6);
    // Student's quantile times the residual deviation, from the definition.
    let x: Vec<f64> = LENGTHS[..7].iter().map(|&l| (l as f64).ln()).collect();
    let mean = x.iter().sum::<f64>() / 7.0;
    let spread: f64 = x.iter().map(|x| (x - mean).powi(2)).sum();
    let residual = curved.residuals.iter().map(|r| r * r).sum::<f64>() / 5.0;
    let expected = 2.0 * 2.570_581_835_636_315 * (residual / spread).sqrt();
    assert!((width(&curved) / expected - 1.0).abs() < 1e-12);
    println!("ln L / L from 10 to 10⁴: κ = {:.3} in {:?}", curved.exponent, curved.interval);
}

#[test]
fn generalised_least_squares_extends_the_weighted_fit() {
    let mut bent = points(&LENGTHS[..6], |l| (1.0 + 3.0 / l) / l.sqrt(), 0.02);
    bent[2].absolute_error *= 3.0;
    let plain = independent(&bent);
    let diagonal =
        Mat::from_fn(
            6,
            6,
            |i, j| {
                if i == j { (bent[i].absolute_error / bent[i].value).powi(2) } else { 0.0 }
            },
        );
    let general = rate_fit(&bent, Dependence::LogCovariance(diagonal.as_ref()), 0.95).unwrap();
    assert!((general.exponent - plain.exponent).abs() < 1e-13);
    assert!((general.standard_error / plain.standard_error - 1.0).abs() < 1e-12);
    assert!((general.chi_square / plain.chi_square - 1.0).abs() < 1e-10);
    // Any multiple of the identity is ordinary least squares; only the stated errors scale.
    let ordinary = independent(&points(&LENGTHS[..6], |l| (1.0 + 3.0 / l) / l.sqrt(), 1.0 / 3.0));
    for scale in [1e-4, 0.1] {
        let multiple = Mat::from_fn(6, 6, |i, j| if i == j { scale } else { 0.0 });
        let fit = rate_fit(&bent, Dependence::LogCovariance(multiple.as_ref()), 0.95).unwrap();
        assert!((fit.exponent - ordinary.exponent).abs() < 1e-13);
    }
    // A shift common to all points moves the constant alone: the exponent keeps its error.
    let shared = Mat::from_fn(6, 6, |i, j| 0.05 + diagonal[(i, j)]);
    let shifted = rate_fit(&bent, Dependence::LogCovariance(shared.as_ref()), 0.95).unwrap();
    assert!((shifted.exponent - plain.exponent).abs() < 1e-12);
    assert!((shifted.standard_error / plain.standard_error - 1.0).abs() < 1e-10);
    assert!(shifted.log_constant_standard_error > 1.5 * plain.log_constant_standard_error);
}

/// A random walk in ln L, the correlation of prefixes: GLS knows its error, 4000 fits, band of five standard errors.
#[test]
fn generalised_least_squares_covers_with_correlated_points() {
    const FITS: u32 = 4000;
    let grid: Vec<u64> = (0..8).map(|k| 100 << k).collect();
    let covariance = Mat::from_fn(8, 8, |i, j| 1e-3 * (i.min(j) as f64 + 1.0));
    let (mut covered, mut square, mut stated) = (0, 0.0, 0.0);
    for trial in 0..FITS {
        let mut stream = Stream::new(91, trial, 0);
        let mut walk = 0.0;
        let noisy: Vec<RatePoint> = grid
            .iter()
            .map(|&tokens| {
                walk += 1e-3f64.sqrt() * stream.normal();
                RatePoint {
                    length: length(tokens),
                    value: (walk - (tokens as f64).ln()).exp(),
                    absolute_error: 0.0,
                }
            })
            .collect();
        let fit = rate_fit(&noisy, Dependence::LogCovariance(covariance.as_ref()), 0.9).unwrap();
        covered += u32::from(fit.interval.contains(1.0));
        square += (fit.exponent - 1.0).powi(2) / f64::from(FITS);
        // For a random walk the best slope is the last point minus the first over their distance.
        stated = (7.0 * 1e-3f64).sqrt() / (7.0 * 2f64.ln());
        let ends = -(noisy[7].value / noisy[0].value).ln() / (7.0 * 2f64.ln());
        assert!((fit.exponent - ends).abs() < 1e-10);
    }
    let coverage = f64::from(covered) / f64::from(FITS);
    println!("correlated points: coverage {coverage:.3} at 0.9");
    assert!(coverage > 0.9 - 5.0 * (0.09 / f64::from(FITS)).sqrt());
    assert!((square.sqrt() / stated - 1.0).abs() < 5.0 / (2.0 * f64::from(FITS)).sqrt());
}

/// Prefixes of few prompts: the covariance is estimated from the draws themselves, on both sides of ten draws and
/// of ten draws per length. 4000 fits each; five standard errors below the level have probability below 10⁻⁶.
///
/// Errors are walks in L, so relative errors of neighbours hang together, and grow with the length by a factor
/// of four, so that weights matter. Treated as independent they cover as little as half of the time.
#[test]
fn estimated_covariances_of_prefixes_cover() {
    const FITS: u32 = 4000;
    let level = 0.95;
    let band = 5.0 * (level * (1.0 - level) / f64::from(FITS)).sqrt();
    for (size, draws, estimator) in [
        (4usize, 2u32, Estimator::OrdinaryLeastSquares),
        (8, 5, Estimator::OrdinaryLeastSquares),
        (8, 9, Estimator::OrdinaryLeastSquares),
        (8, 12, Estimator::WeightedLeastSquares),
        (8, 79, Estimator::WeightedLeastSquares),
        (8, 80, Estimator::GeneralisedLeastSquares),
        (4, 40, Estimator::GeneralisedLeastSquares),
        (20, 50, Estimator::WeightedLeastSquares),
    ] {
        let grid: Vec<u64> = (0..size).map(|k| 100 << k).collect();
        let (mut covered, mut alone) = (0, 0);
        for fit in 0..FITS {
            let mut stream = Stream::new(92, fit, 64 * draws + size as u32);
            let mut joint = JointSummary::new(size);
            for _ in 0..draws {
                let (mut walk, mut before) = (0.0, 0.0);
                let values: Vec<f64> = grid
                    .iter()
                    .map(|&tokens| {
                        let tokens = tokens as f64;
                        walk += (tokens - before).sqrt() * stream.normal();
                        before = tokens;
                        // Small errors: the logarithm is linear.
                        let growth = (tokens / 100.0).powf(2.0 / (size as f64 - 1.0));
                        let relative = 0.01 * growth * walk / tokens.sqrt();
                        (1.0 + relative) * tokens.powf(-0.7)
                    })
                    .collect();
                joint.add(&values).unwrap();
            }
            let mean = joint.mean().to_vec();
            let covariance = joint.mean_covariance().unwrap();
            let covariance = Mat::from_fn(size, size, |i, j| covariance[(i, j)] / (mean[i] * mean[j]));
            let points: Vec<RatePoint> = (0..size)
                .map(|i| RatePoint {
                    length: length(grid[i]),
                    value: mean[i],
                    absolute_error: covariance[(i, i)].sqrt() * mean[i],
                })
                .collect();
            let draws = u64::from(draws);
            let dependence = Dependence::EstimatedLogCovariance { covariance: covariance.as_ref(), draws };
            let fit = rate_fit(&points, dependence, level).unwrap();
            assert_eq!(fit.estimator, estimator);
            covered += u32::from(fit.interval.contains(0.7));
            alone += u32::from(independent(&points).interval.contains(0.7));
        }
        let (coverage, alone) = (f64::from(covered) / f64::from(FITS), f64::from(alone) / f64::from(FITS));
        println!("{size} lengths, {draws} draws: coverage {coverage:.3}, as if independent {alone:.3}");
        assert!(coverage > level - band, "{size} lengths, {draws} draws: {coverage}");
    }
}

/// Without inverse: two points that move together in all draws, and points without any spread.
#[test]
fn singular_estimates_are_no_obstacle() {
    let five = points(&LENGTHS[..5], |l| 1.0 / l, 0.01);
    let together = Mat::from_fn(5, 5, |i, j| if i == j || i + j == 1 { 1e-4 } else { 0.0 });
    let estimated = |covariance: &Mat<f64>| {
        let dependence = Dependence::EstimatedLogCovariance { covariance: covariance.as_ref(), draws: 1000 };
        rate_fit(&five, dependence, 0.95).unwrap()
    };
    let fit = estimated(&together);
    assert_eq!(fit.estimator, Estimator::WeightedLeastSquares);
    assert!((fit.exponent - 1.0).abs() < 1e-13 && fit.standard_error > 0.0);
    assert!((estimated(&Mat::zeros(5, 5)).exponent - 1.0).abs() < 1e-13);
    // A known covariance without spread is rounding, not an error.
    let known = rate_fit(&five, Dependence::LogCovariance(Mat::zeros(5, 5).as_ref()), 0.95).unwrap();
    assert!((known.exponent - 1.0).abs() < 1e-13);
    let negative = Mat::from_fn(5, 5, |i, j| if i == j { -1e-4 } else { 0.0 });
    assert!(rate_fit(&five, Dependence::LogCovariance(negative.as_ref()), 0.95).is_err());
    let one_draw = Dependence::EstimatedLogCovariance { covariance: together.as_ref(), draws: 1 };
    assert!(rate_fit(&five, one_draw, 0.95).is_err());
}

#[test]
fn points_lost_in_noise_are_dropped_and_named() {
    let mut noisy = points(&[10, 100, 1000, 10_000, 100_000], |l| 1.0 / l, 0.1);
    noisy[4].value *= 30.0;
    noisy[4].absolute_error = 0.4 * noisy[4].value;
    let fit = independent(&noisy);
    assert_eq!(fit.dropped, [4]);
    assert_eq!((fit.residuals.len(), fit.degrees_of_freedom), (4, 2));
    assert!((fit.exponent - 1.0).abs() < 1e-13);
}

#[test]
fn fits_that_make_no_sense_are_refused() {
    let good = points(&LENGTHS[..4], |l| 1.0 / l, 0.1);
    let refused = |change: &dyn Fn(&mut Vec<RatePoint>)| {
        let mut points = good.clone();
        change(&mut points);
        rate_fit(&points, Dependence::Independent, 0.95).unwrap_err()
    };
    let range = |error: Error| matches!(error, Error::OutOfRange { .. });
    assert!(range(refused(&|points| points[1].value = 0.0)));
    assert!(range(refused(&|points| points[1].value = -1.0)));
    assert!(range(refused(&|points| points[1].value = f64::NAN)));
    assert!(range(refused(&|points| points[1].absolute_error = -0.1)));
    assert!(range(refused(&|points| points.truncate(2))));
    assert!(range(refused(&|points| points.clear())));
    // Three points, two lengths: a line through two places shows no curvature.
    assert!(range(refused(&|points| {
        points.truncate(3);
        points[2].length = points[1].length;
    })));
    for level in [0.0, 1.0, f64::NAN] {
        assert!(rate_fit(&good, Dependence::Independent, level).is_err());
    }
    let covariance = |matrix: Mat<f64>| rate_fit(&good, Dependence::LogCovariance(matrix.as_ref()), 0.95);
    assert!(matches!(covariance(Mat::zeros(3, 3)), Err(Error::Size { .. })));
    assert!(matches!(covariance(Mat::from_fn(4, 4, |_, _| 0.01)), Err(Error::Singular { .. })));
    let impossible = Mat::from_fn(4, 4, |i, j| if i == j { 0.01 } else { -0.009 });
    assert!(matches!(covariance(impossible), Err(Error::Indefinite { .. })));
}

#[test]
fn local_slopes_follow_the_curve() {
    // v = L⁻¹ ln L: κ(L) = 1 − 1/ln L between neighbours, up to their distance.
    let slopes =
        local_slopes(&points(&[1_000_000, 100, 1_000_010], |l| l.ln() / l, 1e-3), Dependence::Independent)
            .unwrap();
    assert_eq!((slopes[0].from, slopes[0].to), (length(100), length(1_000_000)));
    let chord = 1.0 - (1e6f64.ln() / 100f64.ln()).ln() / 1e4f64.ln();
    assert!((slopes[0].slope - chord).abs() < 1e-14);
    assert!((slopes[0].standard_error - 2f64.sqrt() * 1e-3 / 1e4f64.ln()).abs() < 1e-15);
    assert!((slopes[1].slope - (1.0 - 1.0 / 1e6f64.ln())).abs() < 1e-4);
    // Neighbours near 10¹²: the values differ in their last four digits, and the slope keeps all of those.
    let (near, next) = (1e-9, 1e-9 * (1.0 - 1e-12));
    let neighbours = [(999_999_999_999, near), (1_000_000_000_000, next)].map(|(tokens, value)| RatePoint {
        length: length(tokens),
        value,
        absolute_error: 0.0,
    });
    let slope = local_slopes(&neighbours, Dependence::Independent).unwrap()[0].slope;
    let exact = ((near - next) / next).ln_1p() / (1.0 / 999_999_999_999f64).ln_1p();
    assert!((slope / exact - 1.0).abs() < 1e-12, "{slope} {exact}");
    // Errors that move together leave the slope alone.
    let two = points(&[10, 1000], |l| 1.0 / l, 0.1);
    let together = mat![[0.01, 0.009], [0.009, 0.01]];
    let slope = local_slopes(&two, Dependence::LogCovariance(together.as_ref())).unwrap()[0];
    assert!((slope.standard_error - 0.002f64.sqrt() / 100f64.ln()).abs() < 1e-15);
    assert!(local_slopes(&two[..1], Dependence::Independent).unwrap().is_empty());
    assert!(local_slopes(&[two[0], two[0]], Dependence::Independent).is_err());
    let labelled = Estimate { value: 2.0, error: 2e-9, accuracy: Accuracy::Exact };
    assert_eq!(RatePoint::new(length(5), labelled).absolute_error, 2e-9);
}

#[test]
fn regimes_change_at_two_thirds_and_at_two() {
    let at = |t: f64, tokens: u64| {
        let length = length(tokens);
        regime((t * length.as_f64().ln()).sqrt(), length).unwrap()
    };
    for tokens in [2, 1000, 1_000_000_000_000] {
        assert_eq!(at(0.0, tokens), Regime::Diluted);
        assert_eq!(at(2.0 / 3.0 - 1e-9, tokens), Regime::Diluted);
        assert_eq!(at(2.0 / 3.0 + 1e-9, tokens), Regime::Intermediate);
        assert_eq!(at(2.0 - 1e-9, tokens), Regime::Intermediate);
        assert_eq!(at(2.0 + 1e-9, tokens), Regime::Frozen);
        // The heuristic exponent is continuous where the regimes meet.
        let exponent = |t: f64| {
            typical_error_exponent((t * length(tokens).as_f64().ln()).sqrt(), length(tokens)).unwrap()
        };
        assert!((exponent(2.0 / 3.0 - 1e-9) - exponent(2.0 / 3.0 + 1e-9)).abs() < 1e-8);
        assert!(exponent(2.0 - 1e-9) < 1e-8 && exponent(3.0) == 0.0 && exponent(0.0) == 1.0);
    }
    // One token: nothing is diluted but the query that does not look.
    assert_eq!(regime(0.0, PromptLength::MIN).unwrap(), Regime::Diluted);
    assert_eq!(regime(1e-200, PromptLength::MIN).unwrap(), Regime::Frozen);
    assert_eq!(typical_error_exponent(0.0, PromptLength::MIN).unwrap(), 1.0);
    assert_eq!(typical_error_exponent(1.0, PromptLength::MIN).unwrap(), 0.0);
    for wrong in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(regime(wrong, PromptLength::MAX).is_err());
        assert!(typical_error_exponent(wrong, PromptLength::MAX).is_err());
    }
}

/// The local slope in L at fixed t = τ²/ln L of the exact participation E Σp², which is of the order of the squared error.
#[test]
fn exact_values_follow_the_typical_exponent() {
    let head = Softmax::new(mat![[1.0]].as_ref(), mat![[1.0]].as_ref()).unwrap();
    let prompt = FinitePrompt::exact(&head, &Gaussian::standard(1).unwrap()).unwrap();
    for t in [0.2, 0.5, 1.0, 1.4] {
        let log_at = |tokens: u64| {
            let deviation = (t * (tokens as f64).ln()).sqrt();
            prompt.at_query(&[deviation], &lengths(&[tokens])).unwrap()[0].participation.ln()
        };
        let slope = -(log_at(1_000_000_000_000) - log_at(1_000_000_000)) / 1000f64.ln();
        let deviation = (t * 1e12f64.ln()).sqrt();
        let predicted = typical_error_exponent(deviation, PromptLength::MAX).unwrap();
        println!("t = {t}: exact slope {slope:.3}, heuristic exponent {predicted:.3}");
        // Logarithmic corrections: 1/(2 ln L) is 0.02 here.
        assert!((slope - predicted).abs() < 0.03, "t = {t}: {slope} and {predicted}");
    }
}

/// Horizons at the edges of every stage: powers of ten, neighbours of them, and the ends.
const HORIZONS: [u64; 16] = [
    2,
    3,
    9,
    10,
    11,
    12,
    99,
    100,
    101,
    4242,
    999_999,
    123_456_789_012,
    500_000_000_001,
    999_999_999_998,
    999_999_999_999,
    1_000_000_000_000,
];

fn exact(value: f64) -> Estimate {
    Estimate::exact(value, 0.0)
}

#[test]
fn the_horizon_is_the_smallest_length_to_the_token() {
    let (mut most_evaluations, mut most_calls) = (0, 0);
    for expected in HORIZONS {
        let tolerance = 1.0 / (expected as f64 - 0.5);
        let answer = Horizon::Found {
            length: length(expected),
            error: exact(1.0 / expected as f64),
            before: Some(exact(1.0 / (expected as f64 - 1.0))),
        };
        let mut evaluations = 0;
        let found = horizon(tolerance, PromptLength::MAX, |length| {
            evaluations += 1;
            assert!(length.get() <= 10 * expected, "asked {length} for a horizon of {expected}");
            Ok(exact(1.0 / length.as_f64()))
        });
        assert_eq!(found.unwrap(), answer);
        most_evaluations = most_evaluations.max(evaluations);
        for lengths_per_call in [2, 3, 32, 100] {
            let mut calls = 0;
            let found = horizon_in_batches(tolerance, PromptLength::MAX, lengths_per_call, |lengths| {
                calls += 1;
                assert!(lengths.len() <= lengths_per_call && lengths.is_sorted());
                Ok(lengths.iter().map(|length| exact(1.0 / length.as_f64())).collect())
            });
            assert_eq!(found.unwrap(), answer, "{lengths_per_call} lengths per call");
            most_calls = if lengths_per_call == 32 { most_calls.max(calls) } else { most_calls };
        }
    }
    println!("at most {most_evaluations} single evaluations, {most_calls} calls with 32 lengths");
    assert!(most_evaluations <= 53 && most_calls <= 9);
}

#[test]
fn horizons_at_the_ends_are_values_of_their_own() {
    let error = |length: PromptLength| Ok(exact(1.0 / length.as_f64()));
    let batch =
        |lengths: &[PromptLength]| lengths.iter().map(|&length| error(length)).collect::<Result<Vec<_>>>();
    // The tolerance itself is good enough.
    assert_eq!(horizon(0.01, PromptLength::MAX, error).unwrap().length(), Some(length(100)));
    let near = Horizon::Found { length: PromptLength::MIN, error: exact(1.0), before: None };
    assert_eq!(near.bracket(), (None, Some(PromptLength::MIN)));
    assert_eq!(horizon(1.0, PromptLength::MAX, error).unwrap(), near);
    assert_eq!(horizon_in_batches(1.0, PromptLength::MAX, 32, batch).unwrap(), near);
    for longest in [1, 2, 37, 1_000_000_000_000] {
        let longest = length(longest);
        let far = Horizon::Beyond { longest, error: exact(1.0 / longest.as_f64()) };
        assert_eq!(horizon(1e-13, longest, error).unwrap(), far);
        assert_eq!(horizon_in_batches(1e-13, longest, 32, batch).unwrap(), far);
        assert_eq!(far.length(), None);
    }
    for tolerance in [0.0, -1.0, f64::NAN] {
        assert!(horizon(tolerance, PromptLength::MAX, error).is_err());
    }
    assert!(horizon(0.5, PromptLength::MAX, |_| Ok(exact(f64::NAN))).is_err());
    assert!(horizon(0.5, PromptLength::MAX, |_| Err(Error::Empty { what: "the test" })).is_err());
    assert!(horizon_in_batches(0.5, PromptLength::MAX, 1, batch).is_err());
    assert!(horizon_in_batches(0.5, PromptLength::MAX, 8, |_| Ok(vec![exact(1.0)])).is_err());
}

/// Errors that rise again break the assumption: the answer is then a crossing, not the first one.
#[test]
fn without_monotonicity_a_crossing_is_still_a_crossing() {
    let bumpy = |length: PromptLength| {
        let tokens = length.as_f64();
        Ok(exact((2.0 + (tokens * 0.37).sin()) / tokens))
    };
    for tolerance in [0.3, 0.01, 1e-4] {
        let batch = |lengths: &[PromptLength]| lengths.iter().map(|&length| bumpy(length)).collect();
        for found in [
            horizon(tolerance, PromptLength::MAX, bumpy).unwrap(),
            horizon_in_batches(tolerance, PromptLength::MAX, 8, batch).unwrap(),
        ] {
            let Horizon::Found { length, error, before: Some(before) } = found else { unreachable!() };
            assert_eq!(error, bumpy(length).unwrap());
            assert_eq!(before, bumpy(PromptLength::new(length.get() - 1).unwrap()).unwrap());
            assert!(error.value <= tolerance && tolerance < before.value);
        }
    }
}

#[test]
fn exact_prompts_have_a_horizon() {
    let head = Softmax::new(Mat::identity(3, 3).as_ref(), Mat::identity(3, 3).as_ref()).unwrap();
    let prompt = FinitePrompt::exact(&head, &Gaussian::standard(3).unwrap()).unwrap();
    let query = [0.6, 0.0, 0.8];
    let of = |found: &Deviation| Estimate::exact_to(found.errors.output, found.tolerance);
    let mut calls = 0;
    let found = horizon_in_batches(1e-6, PromptLength::MAX, 32, |lengths| {
        calls += 1;
        Ok(prompt.at_query(&query, lengths)?.iter().map(of).collect())
    })
    .unwrap();
    let single = horizon(1e-6, PromptLength::MAX, |length| Ok(of(&prompt.at_query(&query, &[length])?[0])));
    let length = found.length().unwrap();
    // L · error tends to 4e; the next order moves the horizon by less than one part in 10⁵.
    assert!((length.as_f64() / (4e6 * 1f64.exp()) - 1.0).abs() < 1e-5, "{length}");
    // The error is exact to about 10⁻¹²: neighbouring lengths differ by 10⁻⁷ of it.
    assert_eq!(single.unwrap().length(), Some(length));
    println!("horizon of 1e-6: {length} tokens in {calls} calls");
}
