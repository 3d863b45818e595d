//! Training, measured: stability in L, the horizon of the in-context theorem, the drift, limits and refusals.

use crate::common::{StopAfter, length, long};
use esscher_core::concentration::{Dependence, Horizon, RatePoint, local_slopes, rate_fit};
use esscher_core::measure::{Cube, Law, Rademacher};
use esscher_core::regression::{
    Block, BlockLandscape, DrawnCovariates, FlowOptions, Landscape, LinearRegression, Method, Response,
    SpectralLandscape, SpectralTask, flow, flow_through, train, training_horizon,
};
use esscher_core::{Ending, Mat, Unwatched, mat};
use std::sync::Arc;

const TIMES: [f64; 12] = [0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0];

fn isotropic(dimension: u32, noise: f64, response: Response) -> SpectralLandscape {
    SpectralLandscape { task: SpectralTask::isotropic(dimension, noise, 1.0).unwrap(), response }
}

/// sup over the times of |θ_L(t) − θ_∞(t)|.
fn largest_distance(
    finite: &dyn Landscape,
    infinite: &dyn Landscape,
    start: &[f64],
    options: &FlowOptions,
) -> f64 {
    let run = |landscape| flow_through(landscape, start, &TIMES, options, &Unwatched).unwrap();
    let distances = run(finite).distances(finite, &run(infinite));
    assert_eq!(distances.len(), TIMES.len() + 1);
    distances.into_iter().map(|(_, distance)| distance).fold(0.0, f64::max)
}

#[test]
fn the_infinite_flow_reaches_its_limit() {
    let task =
        LinearRegression::new(mat![[0.5, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 2.0]].as_ref()).unwrap();
    let (spectral, _) = SpectralTask::new(&task).unwrap();
    let landscape = SpectralLandscape { task: spectral.clone(), response: Response::infinite() };
    let start = spectral.initial(0.6).unwrap();
    let trajectory = flow(&landscape, &start, &FlowOptions::without_drift(), &Unwatched).unwrap();
    assert!(trajectory.ending == Ending::Stationary, "{}", trajectory.sentence);
    let (entries, gain) = spectral.infinite_limit(0.0).unwrap();
    let last = trajectory.last().unwrap();
    for (found, expected) in last.parameters.iter().zip(entries.iter().chain([&gain])) {
        assert!((found - expected).abs() < 1e-8, "{found} {expected}");
    }
    // The values printed in the theory, half a unit of their last digit.
    for (found, printed) in last.parameters.iter().zip([1.3212657, 0.6606329, 0.3303164, 1.51370005]) {
        assert!((found - printed).abs() < 6e-8, "{found} {printed}");
    }
    let limit: Vec<f64> = entries.iter().copied().chain([gain]).collect();
    let distances = trajectory.distances_to(&landscape, &limit).unwrap();
    assert!(distances[0] > 0.5 && distances[distances.len() - 1] < 1e-8);
    assert!(trajectory.rows.iter().all(|row| row.balance.abs() < 1e-9));
    assert!(trajectory.rows.windows(2).all(|pair| pair[1].risk <= pair[0].risk + 1e-14));
}

/// Exact for Gaussian tokens: the distance between trajectories falls at a rate that grows with L towards 1
/// (local rates 0.42 to 0.64 for d = 2, 0.39 to 0.82 for d = 6, 0.21 to 0.85 for d = 20).
#[test]
fn trajectories_approach_the_infinite_one_as_prompts_grow() {
    let options = FlowOptions { tolerance: 1e-9, stationary: 1e-14, ..FlowOptions::without_drift() };
    for (dimension, last_rate) in [(2, 0.6), (6, 0.8), (20, 0.8)] {
        let start = SpectralTask::isotropic(dimension, 0.1, 1.0).unwrap().initial(0.5).unwrap();
        let infinite = isotropic(dimension, 0.1, Response::infinite());
        let points: Vec<RatePoint> = [1_000, 100_000, 10_000_000, 1_000_000_000]
            .map(|tokens| {
                let finite = isotropic(dimension, 0.1, Response::softmax(length(tokens)));
                let value = largest_distance(&finite, &infinite, &start, &options);
                // Both flows are integrated to 1e-9 of their size per step.
                RatePoint { length: length(tokens), value, absolute_error: 1e-8 }
            })
            .to_vec();
        let slopes = local_slopes(&points, Dependence::Independent).unwrap();
        for (point, slope) in points[1..].iter().zip(&slopes) {
            println!(
                "d = {dimension}, L = {}: {:.3e}, local rate {:.3}",
                point.length.get(),
                point.value,
                slope.slope
            );
        }
        assert!(slopes.windows(2).all(|pair| pair[1].slope > pair[0].slope - 0.01), "d = {dimension}");
        assert!(slopes[2].slope > last_rate && slopes[2].slope < 1.01, "d = {dimension}");
    }
}

/// Rademacher and cube covariates, on fixed draws that all lengths share: the same fall, sampled.
#[test]
fn sub_gaussian_trajectories_approach_theirs_too() {
    let laws: [(&str, Law); 2] =
        [("Rademacher", Arc::new(Rademacher::new(2).unwrap())), ("cube", Arc::new(Cube::new(2).unwrap()))];
    let options =
        FlowOptions { method: Method::Explicit, tolerance: 1e-6, stationary: 1e-12, ..Default::default() };
    let lengths: &[u64] = if long() { &[30, 100, 300, 1000] } else { &[30, 100, 300] };
    let longest = length(*lengths.last().unwrap());
    for (name, law) in laws {
        // Four sets of draws: their spread is the error of each distance.
        let sets: Vec<DrawnCovariates> = (0..4)
            .map(|seed| DrawnCovariates::new(law.clone(), 0.1, 1.0, 192, longest, seed).unwrap())
            .collect();
        let block = Block::initial(mat![[1.0, 0.0], [0.0, 1.0]].as_ref(), 0.7).unwrap();
        let start = BlockLandscape::parameters(&block);
        // One exponent for each set of draws, whose lengths share queries and prefixes.
        let exponents: Vec<f64> = sets
            .iter()
            .map(|draws| {
                let points: Vec<RatePoint> = lengths
                    .iter()
                    .map(|&tokens| {
                        let finite = draws.landscape(Some(length(tokens))).unwrap();
                        let infinite = draws.landscape(None).unwrap();
                        let value = largest_distance(&finite, &infinite, &start, &options);
                        RatePoint { length: length(tokens), value, absolute_error: 0.0 }
                    })
                    .collect();
                assert!(points.windows(2).all(|pair| pair[1].value < pair[0].value), "{name}: {points:?}");
                rate_fit(&points, Dependence::Independent, 0.95).unwrap().exponent
            })
            .collect();
        let mean = exponents.iter().sum::<f64>() / 4.0;
        let error =
            (exponents.iter().map(|exponent| (exponent - mean).powi(2)).sum::<f64>() / 3.0 / 4.0).sqrt();
        // Student's 97.5 % point with three degrees of freedom.
        let half_width = 3.182 * error;
        println!("{name}: rate {mean:.3} ± {half_width:.3} (95 %), L = 30 to {longest}");
        // Any fall is the theorem; the bias of the risk falls like 1/L.
        assert!(mean - half_width > 0.5 && mean + half_width < 1.2, "{name}: {exponents:?}");
    }
}

/// Gradients on drawn covariates against differences, and against the exact engine for Gaussian covariates.
#[test]
fn drawn_landscapes_have_right_gradients_and_the_exact_mean() {
    let block = Block::new(mat![[0.5, -0.2], [0.3, 0.6]].as_ref(), 1.3).unwrap();
    let parameters = BlockLandscape::parameters(&block);
    let laws: [Law; 2] =
        [Arc::new(Cube::new(2).unwrap()), Arc::new(esscher_core::measure::Gaussian::standard(2).unwrap())];
    for law in laws {
        let draws = DrawnCovariates::new(law, 0.3, 1.2, 64, length(20), 3).unwrap();
        for tokens in [Some(length(1)), Some(length(7)), Some(length(20)), None] {
            let landscape = draws.landscape(tokens).unwrap();
            let mut gradient = vec![0.0; 5];
            landscape.slope(&parameters, &mut gradient).unwrap();
            for index in 0..5 {
                let moved = |by: f64| {
                    let mut moved = parameters.clone();
                    moved[index] += by;
                    landscape.slope(&moved, &mut [0.0; 5]).unwrap()
                };
                let difference = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                // Central differences: step² and rounding/step, both about 1e-10.
                assert!((gradient[index] - difference).abs() < 1e-8, "{tokens:?}: {gradient:?} {difference}");
            }
        }
    }
    let task = LinearRegression::isotropic(2).unwrap().with_noise(0.3).unwrap();
    let exact = block.risk(&task, &Response::softmax(length(20))).unwrap();
    let law: Law = Arc::new(esscher_core::measure::Gaussian::standard(2).unwrap());
    let risks: Vec<f64> = (0..16)
        .map(|seed| {
            let draws = DrawnCovariates::new(law.clone(), 0.3, 1.0, 500, length(20), seed).unwrap();
            draws.landscape(Some(length(20))).unwrap().risk_and_gradient(&block).unwrap().risk
        })
        .collect();
    let mean = risks.iter().sum::<f64>() / 16.0;
    let error = (risks.iter().map(|risk| (risk - mean).powi(2)).sum::<f64>() / 15.0 / 16.0).sqrt();
    assert!((mean - exact).abs() < 5.0 * error, "{mean} ± {error}, {exact}");
}

/// Coefficients of 1/L printed in the theory, three figures after the point, and where there is none.
#[test]
fn first_orders_are_those_of_the_theory() {
    let task = SpectralTask::isotropic(6, 0.5, 1.0).unwrap();
    for (entry, gain, printed) in [(0.25, 4.0, 82.739), (0.3, 3.0, 59.619), (0.2, 4.0, 70.799)] {
        let found = task.first_order(&[entry], gain).unwrap().unwrap();
        assert!((found - printed).abs() < 5e-4, "{found} {printed}");
    }
    // At the limit of the infinite flow with Σ = I: 2ω² = 2/√d, finite from d = 5 on.
    for (dimension, finite) in [(2, false), (3, false), (5, true), (20, true)] {
        let task = SpectralTask::isotropic(dimension, 0.5, 1.0).unwrap();
        let (entries, gain) = task.infinite_limit(0.0).unwrap();
        assert_eq!(task.first_order(&entries, gain).unwrap().is_some(), finite);
    }
}

/// Along the valley bΣA = I the infinite risk is flat and the coefficient of 1/L is not: training at length L should
/// move by db/dt = −R₁′(b)/(L |θ′(b)|²), θ(b) = (1/(bs), b). The exact flow does, the better the longer the prompt.
#[test]
fn training_drifts_along_the_valley_in_time_proportional_to_the_length() {
    let task = SpectralTask::isotropic(6, 0.5, 1.0).unwrap();
    // The infinite flow ends at b = 1.565, where second orders still matter; further on the first alone counts.
    let gain = 2.2;
    let start = [task.valley(gain).unwrap()[0], gain];
    // In units of L.
    let times = [0.003, 0.01, 0.03, 0.1, 0.3, 1.0];
    let predicted = task.valley_drift(gain, &times, &Unwatched).unwrap().unwrap();
    assert!((predicted[5] / gain - 1.0).abs() > 0.1, "there is a drift to see: {gain} {predicted:?}");
    let mut last_gap = f64::INFINITY;
    for tokens in [10_000u64, 100_000, 1_000_000] {
        let landscape = isotropic(6, 0.5, Response::softmax(length(tokens)));
        let real_times = times.map(|time| time * tokens as f64);
        let options = FlowOptions { stationary: 1e-15, tolerance: 1e-7, ..FlowOptions::default() };
        let rows = flow_through(&landscape, &start, &real_times, &options, &Unwatched).unwrap().rows;
        let gap = rows[1..]
            .iter()
            .zip(&predicted)
            .map(|(row, predicted)| (row.parameters[1] - predicted).abs())
            .fold(0.0, f64::max);
        println!(
            "L = {tokens}: b from {gain:.4} to {:.4}, predicted {:.4}, largest gap {gap:.1e}",
            rows[6].parameters[1], predicted[5]
        );
        // Third moments of e^σ are infinite here, so the gap falls more slowly than 1/L.
        assert!(gap < 0.4 * last_gap, "{gap} {last_gap}");
        last_gap = gap;
    }
    assert!(last_gap < 1e-2);
}

/// L(ε) at d = 5: `examples/training_horizons.rs` prints the whole table over d and ε.
#[test]
fn the_in_context_theorem_has_its_horizon() {
    let mut last = 0;
    let excesses: &[f64] = if long() { &[0.5, 0.3, 0.1] } else { &[0.5, 0.3] };
    for &excess in excesses {
        let task = SpectralTask::isotropic(5, 0.1, 1.0).unwrap();
        let found = training_horizon(&task, 0.5, excess, &Unwatched).unwrap();
        let tokens = found.length().unwrap().get();
        println!("d = 5, ε = {excess}: L = {tokens}");
        assert!(tokens > last);
        last = tokens;
        // Flows on both sides of the answer, from the start of the theorem.
        for (tokens, reached) in [(tokens, true), (tokens - 1, false)] {
            let landscape = isotropic(5, 0.1, Response::softmax(length(tokens)));
            let start = landscape.task.initial(0.5).unwrap();
            let trajectory = flow(
                &landscape,
                &start,
                &FlowOptions { end_time: 1e12, ..FlowOptions::default() },
                &Unwatched,
            )
            .unwrap();
            assert!(trajectory.ending == Ending::Stationary);
            let above = trajectory.last().unwrap().risk - landscape.task.noise_floor();
            assert_eq!(above <= excess, reached, "{tokens}: {above}");
        }
    }
}

#[test]
fn refusals_are_errors_and_divergence_is_named() {
    let task = SpectralTask::isotropic(3, 0.1, 1.0).unwrap();
    for scale in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(task.initial(scale).is_err());
    }
    assert!(SpectralTask::isotropic(0, 0.1, 1.0).is_err());
    assert!(LinearRegression::isotropic(0).is_err());
    assert!(LinearRegression::new(mat![[1.0, 2.0], [2.0, 1.0]].as_ref()).is_err());
    assert!(LinearRegression::new(mat![[1.0, 0.0], [0.0, f64::NAN]].as_ref()).is_err());
    // α far outside the theorem's range runs and says so; the default lies inside.
    let response = Response::softmax(length(100));
    let outside = train(&task, &response, Some(3.0), &FlowOptions::default(), &Unwatched).unwrap();
    assert!(!outside.within_theorem && outside.trajectory.rows.iter().all(|row| row.risk.is_finite()));
    println!("α = 3: {}", outside.trajectory.sentence);
    let inside = train(&task, &response, None, &FlowOptions::default(), &Unwatched).unwrap();
    assert!(inside.within_theorem && inside.scale == 0.5 * task.proved_scale());
    assert_eq!(inside.distance_to_limit.len(), inside.trajectory.rows.len());
    assert_eq!(inside.distance_to_infinite[0], (0.0, 0.0));
    let landscape = SpectralLandscape { task: task.clone(), response };
    // A limit on the parameters turns growth into a named ending.
    let options = FlowOptions { largest: 1.0, ..FlowOptions::default() };
    let stopped = flow(&landscape, &task.initial(0.5).unwrap(), &options, &Unwatched).unwrap();
    assert!(stopped.ending == Ending::Diverged, "{}", stopped.sentence);
    assert!(stopped.rows.iter().all(|row| row.risk.is_finite()));
    // Scores beyond what can be computed are an error, not a number.
    assert!(task.risk_and_gradient(&[1e200], 1.0, &landscape.response).is_err());
    assert!(task.risk_and_gradient(&[1e154], 1e-154, &landscape.response).is_err());
    for dimension in [20_000, usize::MAX] {
        assert!(LinearRegression::isotropic(dimension).is_err());
        assert!(LinearRegression::toeplitz(dimension, 0.5).is_err());
    }
    let endless = FlowOptions { rows: usize::MAX, ..FlowOptions::default() };
    assert!(flow(&landscape, &[0.1, 0.1], &endless, &Unwatched).is_err());
    for options in [
        FlowOptions { largest: f64::NAN, ..FlowOptions::default() },
        FlowOptions { stationary: f64::NAN, ..FlowOptions::default() },
    ] {
        assert!(flow_through(&landscape, &[0.1, 0.1], &[1.0], &options, &Unwatched).is_err());
    }
    // A stopped search is a bracket and no error.
    let stopped = training_horizon(&task, 0.5, 0.1, &StopAfter::looks(40)).unwrap();
    assert!(matches!(stopped, Horizon::Stopped { .. }), "{stopped:?}");
    // Commuting covariances of very different size are recognised.
    let turn = mat![[0.6, -0.8, 0.0], [0.8, 0.6, 0.0], [0.0, 0.0, 1.0]];
    let with = |values: [f64; 3]| {
        let diagonal = Mat::from_fn(3, 3, |i, j| if i == j { values[i] } else { 0.0 });
        &turn * diagonal * turn.transpose()
    };
    let commuting = LinearRegression::new(with([1e-6, 1e-6, 1.0]).as_ref())
        .and_then(|task| task.with_query_covariance(with([1.0, 2.0, 3.0]).as_ref()))
        .unwrap();
    assert!(SpectralTask::new(&commuting).is_ok());
    assert!(task.risk_and_gradient(&[f64::NAN], 1.0, &landscape.response).is_err());
}
