//! Regression by simulation: gradients against differences, risks against closed forms, and every result bit for bit
//! against itself on other threads and after interruptions.

use crate::common::StopAfter;
use esscher_core::measure::{Cube, Gaussian, Law, Mixture, Rademacher};
use esscher_core::numerics::radius::RadiusLaw;
use esscher_core::numerics::statistics::Summary;
use esscher_core::numerics::{InstructionSet, Stream, linalg};
use esscher_core::prompt::PromptLength;
use esscher_core::regression::authors::{
    AuthorsCovariance, AuthorsExperiment, AuthorsOptimiser, AuthorsOptions, AuthorsProgress, DIMENSION, NOISE,
};
use esscher_core::regression::tasks::{
    ClassificationTask, GeneralisedTask, LinearTask, Link, PromptDraw, SparseTask, Task,
};
use esscher_core::regression::{
    AttentionKind, Baseline, Descent, DescentOptions, Draws, Landscape, LayerLandscape, LinearRegression,
    Loss, Optimiser, PointAverage, RegressionHead, RegressionLayer, Response, RiskAverage, RiskOptions,
    RiskSimulation, RiskUnits, baseline_risks, bayes_at_length,
};
use esscher_core::{Completion, Ending, Error, Mat, Unwatched, mat};
use std::io::Write;
use std::sync::Arc;

const KINDS: [AttentionKind; 2] = [AttentionKind::Softmax, AttentionKind::Linear];

fn toeplitz_task(dimension: usize) -> LinearRegression {
    let covariance = LinearRegression::toeplitz(dimension, 0.5).unwrap();
    LinearRegression::new(covariance.as_ref()).unwrap().with_noise(0.3).unwrap().with_prior(0.7).unwrap()
}

fn all_tasks(dimension: usize) -> Vec<Arc<dyn Task>> {
    let cube: Law = Arc::new(Cube::new(dimension).unwrap());
    let signs: Law = Arc::new(Rademacher::new(dimension).unwrap());
    let normal: Law = Arc::new(Gaussian::standard(dimension).unwrap());
    let mixture: Law = Arc::new(
        Mixture::new(vec![(0.4, normal.clone()), (0.6, Arc::new(Cube::new(dimension).unwrap()))]).unwrap(),
    );
    let mut tasks: Vec<Arc<dyn Task>> = vec![
        Arc::new(LinearTask::gaussian(&toeplitz_task(dimension)).unwrap()),
        Arc::new(LinearTask::new(signs.clone()).unwrap().with_noise(0.2).unwrap()),
        Arc::new(LinearTask::with_queries(cube.clone(), mixture).unwrap().with_prior(2.0).unwrap()),
        Arc::new(ClassificationTask::new(1.5, normal.clone()).unwrap()),
        Arc::new(SparseTask::new(1, cube).unwrap().with_noise(0.1).unwrap()),
    ];
    for link in Link::ALL {
        tasks.push(Arc::new(GeneralisedTask::new(link, normal.clone()).unwrap().with_noise(0.1).unwrap()));
    }
    tasks
}

/// Entries of size about `scale`, nothing symmetric.
fn random_head(dimension: usize, scale: f64, stream: &mut Stream) -> RegressionHead {
    let size = dimension + 1;
    let score = Mat::from_fn(size, size, |_, _| scale * stream.normal());
    let value: Vec<f64> = (0..size).map(|_| stream.normal()).collect();
    RegressionHead::new(score.as_ref(), &value).unwrap()
}

fn layers(dimension: usize) -> Vec<RegressionLayer> {
    let mut stream = Stream::new(11, dimension as u32, 0);
    let mut layers = Vec::new();
    for kind in KINDS {
        let heads: Vec<RegressionHead> = (0..2).map(|_| random_head(dimension, 0.4, &mut stream)).collect();
        layers.push(RegressionLayer::heads(kind, &heads[..1]).unwrap());
        layers.push(RegressionLayer::heads(kind, &heads).unwrap());
        layers.push(RegressionLayer::projections_at_random(kind, dimension, &mut stream).unwrap());
    }
    layers
}

fn drawn(task: &dyn Task, length: usize, index: u32) -> PromptDraw {
    let mut prompt = PromptDraw::new();
    task.draw(length, &mut Stream::new(5, index, 0), &mut prompt).unwrap();
    prompt
}

fn risk(task: Arc<dyn Task>, layer: &RegressionLayer, length: usize, prompts: u32) -> Summary {
    let options = RiskOptions { prompts, ..RiskOptions::default() };
    let simulation = RiskSimulation::new(task, layer.clone(), length, options).unwrap();
    simulation.finish(&Unwatched).unwrap().risk
}

/// Five standard errors: a false alarm has probability 6e-7, and the seeds are fixed.
#[track_caller]
fn assert_agrees(found: &Summary, exact: f64, bias: f64) {
    let (mean, error) = (found.mean().unwrap(), found.standard_error().unwrap());
    assert!((mean - exact).abs() <= 5.0 * error + bias, "{mean} ± {error} against {exact}");
}

#[test]
fn a_prompt_is_a_prefix_of_every_longer_one_and_the_past_of_the_buffer_does_not_show() {
    for task in all_tasks(3) {
        let long = drawn(task.as_ref(), 100, 1);
        let mut reused = drawn(task.as_ref(), 77, 2);
        for length in [1, 2, 15, 16, 17, 40, 99] {
            task.draw(length, &mut Stream::new(5, 1, 0), &mut reused).unwrap();
            assert_eq!((reused.length(), reused.dimension()), (length, 3), "{task:?}");
            assert_eq!(reused.tokens(), &long.tokens()[..length * 4], "{task:?}");
            assert_eq!((reused.query(), reused.target()), (long.query(), long.target()), "{task:?}");
            assert_eq!(reused.query()[3], 0.0);
        }
        assert_ne!(drawn(task.as_ref(), 100, 2).tokens(), long.tokens());
    }
}

#[test]
fn labels_are_those_of_the_task() {
    let law: Law = Arc::new(Gaussian::standard(4).unwrap());
    for link in Link::ALL {
        let prompt = drawn(&GeneralisedTask::new(link, law.clone()).unwrap(), 20, 0);
        for token in prompt.tokens().chunks(5) {
            assert_eq!(token[4], link.apply(linalg::dot(prompt.hidden(), &token[..4])), "{}", link.name());
        }
    }
    let prompt = drawn(&SparseTask::new(2, law.clone()).unwrap(), 20, 0);
    assert_eq!(prompt.hidden().iter().filter(|entry| **entry != 0.0).count(), 2);
    // Classes at distance 100 with unit noise: the sign of ⟨m, x⟩ is the label but for events of size e^{−5000}.
    let prompt = drawn(&ClassificationTask::new(100.0, law).unwrap(), 50, 0);
    for token in prompt.tokens().chunks(5) {
        assert_eq!(linalg::dot(prompt.hidden(), &token[..4]).signum(), token[4]);
    }
}

/// Every entry of E (x, y)(x, y)ᵀ against its closed form, five standard errors of the sample.
#[test]
fn tokens_of_the_gaussian_task_have_the_second_moments_of_the_theory() {
    let law =
        toeplitz_task(3).with_query_covariance(LinearRegression::spiked(3, 2.0).unwrap().as_ref()).unwrap();
    let task = LinearTask::gaussian(&law).unwrap();
    let mut summaries = vec![Summary::new(); 16];
    let (mut query, mut target, mut cross) = (vec![Summary::new(); 9], Summary::new(), Summary::new());
    let mut prompt = PromptDraw::new();
    for index in 0..40_000 {
        task.draw(2, &mut Stream::new(6, index, 0), &mut prompt).unwrap();
        let token = prompt.token(1);
        for i in 0..4 {
            (0..4).for_each(|j| summaries[4 * i + j].add(token[i] * token[j]));
        }
        for i in 0..3 {
            (0..3).for_each(|j| query[3 * i + j].add(prompt.query()[i] * prompt.query()[j]));
        }
        target.add(prompt.target() * prompt.target());
        cross.add(prompt.target() * token[3] * linalg::dot(&token[..3], &prompt.query()[..3]));
    }
    let (covariance, query_covariance) = (law.covariance(), law.query_covariance());
    for i in 0..3 {
        for j in 0..3 {
            assert_agrees(&summaries[4 * i + j], covariance[(i, j)], 0.0);
            assert_agrees(&query[3 * i + j], query_covariance[(i, j)], 0.0);
        }
        assert_agrees(&summaries[4 * i + 3], 0.0, 0.0);
    }
    let (scale, noise) = (law.prior_scale(), law.noise());
    assert_agrees(&summaries[15], scale * linalg::trace(covariance) + noise, 0.0);
    assert_agrees(&target, scale * linalg::trace(query_covariance) + noise, 0.0);
    // E ⟨w, x_q⟩ y ⟨x, x_q⟩ = k tr(Σ Σ_q).
    assert_agrees(&cross, scale * linalg::trace_of_product(covariance, query_covariance), 0.0);
}

/// The definition, slowly.
fn prediction_by_definition(layer: &RegressionLayer, prompt: &PromptDraw) -> f64 {
    let mut prediction = 0.0;
    for head in layer.effective_heads().unwrap() {
        let tilt = linalg::apply(head.score(), prompt.query());
        let size = prompt.dimension() + 1;
        let tokens: Vec<&[f64]> = prompt.tokens().chunks(size).collect();
        let scores: Vec<f64> = tokens.iter().map(|token| linalg::dot(token, &tilt)).collect();
        let weights: Vec<f64> = match layer.attention() {
            AttentionKind::Softmax => esscher_core::numerics::softmax(&scores).0,
            AttentionKind::Linear => scores.iter().map(|score| score / tokens.len() as f64).collect(),
        };
        prediction +=
            weights.iter().zip(&tokens).map(|(p, token)| p * linalg::dot(token, head.value())).sum::<f64>();
    }
    prediction
}

/// Rounding of sums of up to 100 terms of size 10.
#[test]
fn predictions_are_those_of_the_definition_at_odd_sizes() {
    for dimension in [1, 3, 8] {
        let task = LinearTask::gaussian(&toeplitz_task(dimension)).unwrap();
        for layer in layers(dimension) {
            for length in [1, 2, 15, 16, 17, 33, 100] {
                let prompt = drawn(&task, length, length as u32);
                let expected = prediction_by_definition(&layer, &prompt);
                let found = layer.predict(&prompt).unwrap();
                assert!((found - expected).abs() < 1e-12 * (1.0 + expected.abs()), "{found} {expected}");
                assert_eq!(layer.predict_with_gradient(&prompt).unwrap().0, found);
            }
        }
    }
}

/// Central differences with step h = 1e-5 err by h² · third derivative (up to about 1e3 here) and rounding 1e-16/h.
#[test]
fn gradients_of_every_layer_are_those_of_central_differences() {
    let step = 1e-5;
    for dimension in [1, 3, 8] {
        for (index, task) in all_tasks(dimension).iter().enumerate() {
            for layer in layers(dimension) {
                let prompt = drawn(task.as_ref(), 7 + 12 * (index % 2), index as u32);
                let (_, gradient) = layer.predict_with_gradient(&prompt).unwrap();
                let largest = gradient.iter().fold(1.0, |size: f64, entry| size.max(entry.abs()));
                for (parameter, slope) in gradient.iter().enumerate() {
                    let at = |shift: f64| {
                        let mut parameters = layer.parameters().to_vec();
                        parameters[parameter] += shift;
                        layer.with_parameters(&parameters).unwrap().predict(&prompt).unwrap()
                    };
                    let difference = (at(step) - at(-step)) / (2.0 * step);
                    assert!(
                        (difference - slope).abs() < 1e-6 * largest,
                        "{layer:?} {parameter}: {difference} {slope}"
                    );
                }
            }
        }
    }
}

#[test]
fn projections_are_one_head_with_their_products() {
    let mut stream = Stream::new(3, 0, 0);
    for kind in KINDS {
        let [query, key, value, output] =
            std::array::from_fn(|_| Mat::from_fn(4, 4, |_, _| 0.5 * stream.normal()));
        let layer =
            RegressionLayer::projections(kind, query.as_ref(), key.as_ref(), value.as_ref(), output.as_ref())
                .unwrap();
        let score = key.transpose() * &query;
        let last = &output * &value;
        let head = layer.effective_heads().unwrap().remove(0);
        for i in 0..4 {
            // Rounding of four products of size one.
            assert!((head.value()[i] - last[(3, i)]).abs() < 1e-14);
            (0..4).for_each(|j| assert!((head.score()[(i, j)] - score[(i, j)] / 2.0).abs() < 1e-14));
        }
    }
}

/// Zhang, Frei and Bartlett: k/2 [tr(Σ_q Aᵀ Σ Γ A) − 2 tr(Σ_q Σ A) + tr Σ_q] + s_q²/2, A including the gain,
/// Γ = (1 + 1/N) Σ + (tr Σ + s²/k)/N I; with shifted query covariance.
#[test]
fn linear_attention_has_the_closed_form_risk() {
    for (dimension, length) in [(1, 1), (1, 5), (3, 10), (3, 50)] {
        let law = toeplitz_task(dimension)
            .with_query_covariance(LinearRegression::spiked(dimension, 1.0).unwrap().as_ref())
            .unwrap();
        let matrix =
            Mat::from_fn(dimension, dimension, |i, j| if i == j { 0.4 } else { 0.1 * (i as f64 - 0.5) });
        let gain = 1.3;
        let head = RegressionHead::block(matrix.as_ref(), gain).unwrap();
        let layer = RegressionLayer::heads(AttentionKind::Linear, &[head]).unwrap();
        let (covariance, query) = (law.covariance(), law.query_covariance());
        let (n, scale) = (length as f64, law.prior_scale());
        let ridge = (linalg::trace(covariance) + law.noise() / scale) / n;
        let gamma = Mat::from_fn(dimension, dimension, |i, j| {
            (1.0 + 1.0 / n) * covariance[(i, j)] + if i == j { ridge } else { 0.0 }
        });
        let a = Mat::from_fn(dimension, dimension, |i, j| gain * matrix[(i, j)]);
        let quadratic = query * a.transpose() * covariance * &gamma * &a;
        let cross = query * covariance * &a;
        let exact = 0.5
            * scale
            * (linalg::trace(quadratic.as_ref()) - 2.0 * linalg::trace(cross.as_ref())
                + linalg::trace(query))
            + law.noise_floor();
        let found = risk(Arc::new(LinearTask::gaussian(&law).unwrap()), &layer, length, 40_000);
        assert_agrees(&found, exact, 0.0);
    }
}

/// One token gets all the weight; equal scores average the labels.
#[test]
fn softmax_has_its_simple_risks() {
    let law = toeplitz_task(3);
    let (scale, gain) = (law.prior_scale(), 0.8);
    let labels = scale * linalg::trace(law.covariance()) + law.noise();
    let mut score = Mat::zeros(3, 3);
    for (length, entry) in [(1, 0.7), (6, 0.0)] {
        (0..3).for_each(|i| score[(i, i)] = entry);
        let head = RegressionHead::block(score.as_ref(), gain).unwrap();
        let layer = RegressionLayer::heads(AttentionKind::Softmax, &[head]).unwrap();
        let exact = 0.5 * (gain * gain * labels / length as f64 + labels);
        assert_agrees(
            &risk(Arc::new(LinearTask::gaussian(&law).unwrap()), &layer, length, 40_000),
            exact,
            0.0,
        );
    }
}

/// Section 4 of the mathematics: R_L = R_∞ + c/L, isotropic A = ωI; the terms left out are of the order (c/L)².
#[test]
fn long_softmax_prompts_have_the_first_order_risk() {
    let (dimension, noise, omega, gain, length) = (6, 0.5, 0.25, 4.0, 2_000);
    let law = LinearRegression::isotropic(dimension).unwrap().with_noise(noise).unwrap();
    let matrix = Mat::from_fn(dimension, dimension, |i, j| if i == j { omega } else { 0.0 });
    let head = RegressionHead::block(matrix.as_ref(), gain).unwrap();
    let layer = RegressionLayer::heads(AttentionKind::Softmax, &[head]).unwrap();
    let limit = 0.5 * dimension as f64 * (gain * omega - 1.0).powi(2) + 0.5 * noise;
    let correction = 82.739 / length as f64;
    let found = risk(Arc::new(LinearTask::gaussian(&law).unwrap()), &layer, length, 20_000);
    assert_agrees(&found, limit + correction, correction * correction);
}

/// The simulated gradient is the difference of simulated risks over the same prompts: rounding and h² only.
#[test]
fn the_gradient_of_a_simulated_risk_is_the_slope_of_that_risk() {
    for task in [all_tasks(2).remove(0), all_tasks(2).remove(3)] {
        for layer in layers(2) {
            let options = RiskOptions { prompts: 300, gradient: true, ..RiskOptions::default() };
            let at = |layer: &RegressionLayer| {
                RiskSimulation::new(task.clone(), layer.clone(), 9, options)
                    .unwrap()
                    .finish(&Unwatched)
                    .unwrap()
            };
            let found = at(&layer);
            assert_eq!(found.gradient.count(), 300);
            assert!(found.gradient.standard_error().unwrap().iter().all(|error| *error >= 0.0));
            for parameter in [0, 4, layer.parameters().len() - 1] {
                let shifted = |shift: f64| {
                    let mut parameters = layer.parameters().to_vec();
                    parameters[parameter] += shift;
                    at(&layer.with_parameters(&parameters).unwrap()).risk.mean().unwrap()
                };
                let slope = (shifted(1e-5) - shifted(-1e-5)) / 2e-5;
                let expected = found.gradient.mean()[parameter];
                assert!((slope - expected).abs() < 1e-6 * (1.0 + expected.abs()), "{slope} {expected}");
            }
        }
    }
}

#[test]
fn simulations_have_the_same_bits_on_any_threads_and_after_interruptions() {
    let layer = layers(3).remove(1);
    let options = RiskOptions { prompts: 5_000, gradient: true, seed: 9, ..RiskOptions::default() };
    let task = all_tasks(3).remove(0);
    let simulation = RiskSimulation::new(task, layer, 200, options).unwrap();
    assert!(simulation.units() > 4);
    let whole = simulation.finish(&Unwatched).unwrap();
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut done = RiskUnits::default();
        let stopped = pool.install(|| simulation.run(&mut done, &StopAfter::looks(2)).unwrap());
        assert!(matches!(stopped, Completion::Stopped { completed, .. } if completed > 0), "{stopped:?}");
        let part = simulation.fold(&done).unwrap();
        assert!(part.risk.count() < 5_000 && part.risk.mean().is_some());
        assert_eq!(pool.install(|| simulation.run(&mut done, &Unwatched).unwrap()), Completion::Finished);
        assert_eq!(simulation.fold(&done).unwrap(), whole);
    }
}

#[test]
fn avx2_and_avx512_simulate_the_same_bits_and_portable_the_same_numbers() {
    let at = |instruction_set| {
        let options = RiskOptions { prompts: 200, gradient: true, seed: 2, instruction_set };
        let layer = layers(3).remove(2);
        RiskSimulation::new(all_tasks(3).remove(0), layer, 37, options).unwrap().finish(&Unwatched).unwrap()
    };
    let portable = at(InstructionSet::PORTABLE);
    // Both widths are compared on every machine by the unit tests of the kernels, which can emulate them.
    let sets: Vec<_> = InstructionSet::available().into_iter().skip(1).collect();
    // Past libtest, which hides what passing tests print: `.ci/run` repeats this line at its end.
    let verdict =
        if sets.len() == 2 { "checked, the same bits as AVX2" } else { "NOT checked on this machine" };
    let names: Vec<_> = sets.iter().map(ToString::to_string).collect();
    writeln!(std::io::stderr(), "\nAVX-512: {verdict}; compared with portable: {names:?}").unwrap();
    let vector: Vec<_> = sets.into_iter().map(at).collect();
    assert!(vector.windows(2).all(|pair| pair[0] == pair[1]));
    for found in vector {
        // Fused and separate rounding of sums of 37 terms of size one.
        let (a, b) = (found.risk.mean().unwrap(), portable.risk.mean().unwrap());
        assert!((a - b).abs() < 1e-12 * b);
    }
}

fn tiny_descent(optimiser: Optimiser, draws: Draws, steps: u32) -> Descent {
    let law = LinearRegression::isotropic(2).unwrap().with_noise(0.1).unwrap();
    let head = RegressionHead::block(mat![[0.2, 0.0], [0.0, 0.2]].as_ref(), 0.2).unwrap();
    let layer = RegressionLayer::heads(AttentionKind::Softmax, &[head]).unwrap();
    let options = DescentOptions {
        optimiser,
        draws,
        steps,
        batch: 300,
        seed: 4,
        record: vec![0, 7, 100, 10, 7],
        ..Default::default()
    };
    Descent::new(Arc::new(LinearTask::gaussian(&law).unwrap()), layer, 40, options).unwrap()
}

#[test]
fn descents_lower_the_risk() {
    for (optimiser, draws) in [
        (Optimiser::Sgd { rate: 0.1 }, Draws::Prompts),
        (Optimiser::Sgd { rate: 0.1 }, Draws::Projections),
        (Optimiser::adam(0.02), Draws::Prompts),
    ] {
        let descent = tiny_descent(optimiser, draws, 300);
        let run = descent.run(descent.start(), &Unwatched).unwrap();
        assert_eq!(run.end.ending, Ending::Completed);
        assert_eq!(run.state.rows.iter().map(|row| row.step).collect::<Vec<_>>(), [0, 7, 10, 100]);
        assert_eq!(
            (run.state.rows[0].smoothed_loss, &run.state.rows[0].parameters),
            (None, &descent.start().parameters)
        );
        let law = LinearRegression::isotropic(2).unwrap().with_noise(0.1).unwrap();
        let task = Arc::new(LinearTask::gaussian(&law).unwrap());
        let before = risk(task.clone(), &descent.layer(&descent.start()).unwrap(), 40, 20_000);
        let after = risk(task.clone(), &descent.layer(&run.state).unwrap(), 40, 20_000);
        let floor = bayes_at_length(&law, PromptLength::new(40).unwrap(), 2_000, 0).unwrap();
        // From 1.02 (of 1.05 for predicting zero) to well under half; never below what is possible.
        assert!(after.mean().unwrap() < 0.5 * before.mean().unwrap(), "{after:?} {before:?}");
        assert!(after.mean().unwrap() + 5.0 * after.standard_error().unwrap() > floor.mean().unwrap());
    }
}

#[test]
fn descents_have_the_same_bits_on_any_threads_and_after_interruptions() {
    for (optimiser, draws) in [
        (Optimiser::Sgd { rate: 0.1 }, Draws::Prompts),
        (Optimiser::adam(0.02), Draws::Projections),
        (Optimiser::adam(0.02), Draws::Prompts),
    ] {
        let descent = tiny_descent(optimiser, draws, 30);
        let whole = descent.run(descent.start(), &Unwatched).unwrap();
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let first = pool.install(|| descent.run(descent.start(), &StopAfter::looks(7)).unwrap());
            assert_eq!((first.end.ending, first.end.step), (Ending::Stopped, 7));
            let second = pool.install(|| descent.run(first.state, &StopAfter::looks(1)).unwrap());
            assert_eq!((second.end.ending, second.end.step), (Ending::Stopped, 8));
            let last = pool.install(|| descent.run(second.state, &Unwatched).unwrap());
            assert_eq!(last, whole);
        }
    }
}

#[test]
fn projections_are_drawn_only_where_they_have_the_law_of_prompts() {
    let (gaussian, signs) = (all_tasks(2).remove(0), all_tasks(2).remove(1));
    let of_law = |law: Law| -> Arc<dyn Task> { Arc::new(LinearTask::new(law).unwrap()) };
    let centred: Law = Arc::new(Gaussian::centred(mat![[2.0, 0.5], [0.5, 1.0]].as_ref()).unwrap());
    let one_component = Mixture::new(vec![(3.0, centred.clone())]).unwrap();
    let two_components = Mixture::new(vec![(1.0, centred.clone()), (1.0, centred.clone())]).unwrap();
    let shifted = Gaussian::new(&[0.1, 0.0], linalg::identity(2).as_ref()).unwrap();
    let flat = Gaussian::centred(mat![[1.0, 1.0], [1.0, 1.0]].as_ref()).unwrap();
    for (task, layer, same) in [
        (of_law(centred), layers(2).remove(0), false),
        (of_law(Arc::new(one_component)), layers(2).remove(0), false),
        (of_law(Arc::new(two_components)), layers(2).remove(0), true),
        (of_law(Arc::new(shifted)), layers(2).remove(0), true),
        (of_law(Arc::new(flat)), layers(2).remove(0), true),
        (signs, layers(2).remove(0), true),
        (gaussian.clone(), layers(2).remove(1), true), // two heads
        (gaussian, layers(2).remove(2), false),
    ] {
        let parameters = |draws| {
            let options = DescentOptions { draws, steps: 3, batch: 10, ..DescentOptions::default() };
            let descent = Descent::new(task.clone(), layer.clone(), 5, options).unwrap();
            descent.run(descent.start(), &Unwatched).unwrap().state.parameters
        };
        assert_eq!(parameters(Draws::Prompts) == parameters(Draws::Projections), same, "{task:?}");
    }
}

#[test]
fn the_two_losses_differ_by_a_factor_of_two() {
    let descent = |loss, rate| {
        let options = DescentOptions {
            optimiser: Optimiser::Sgd { rate },
            loss,
            steps: 5,
            ..DescentOptions::default()
        };
        let descent = Descent::new(all_tasks(2).remove(0), layers(2).remove(0), 10, options).unwrap();
        descent.run(descent.start(), &Unwatched).unwrap().state
    };
    // Powers of two are exact.
    let (half, whole) = (descent(Loss::HalfMeanSquare, 0.25), descent(Loss::MeanSquare, 0.125));
    assert_eq!(half.parameters, whole.parameters);
    assert_eq!(2.0 * half.smoothed_loss.unwrap(), whole.smoothed_loss.unwrap());
}

#[test]
fn divergence_is_named_and_leaves_no_nan() {
    for (rate, draws) in [
        (1e1, Draws::Prompts),
        (1e10, Draws::Projections),
        (1e10, Draws::Prompts),
        (1e200, Draws::Prompts),
        (1e308, Draws::Projections),
    ] {
        for layer in layers(2) {
            let options = DescentOptions {
                draws,
                optimiser: Optimiser::Sgd { rate },
                steps: 2_000,
                batch: 20,
                ..DescentOptions::default()
            };
            let linear = layer.attention() == AttentionKind::Linear;
            let descent = Descent::new(all_tasks(2).remove(0), layer, 5, options).unwrap();
            let run = descent.run(descent.start(), &Unwatched).unwrap();
            assert!(run.state.parameters.iter().all(|parameter| parameter.is_finite()));
            assert!(run.state.smoothed_loss.is_none_or(f64::is_finite));
            descent.layer(&run.state).unwrap();
            match run.end.ending {
                Ending::Diverged => {
                    assert_eq!(run.end.step, run.state.step);
                    assert!(run.end.loss.unwrap().is_finite());
                    // It diverges again from where it stopped.
                    assert_eq!(descent.run(run.state.clone(), &Unwatched).unwrap(), run);
                }
                // Softmax may survive a large rate: its output stays in the hull of the values.
                ending => assert!(!linear && rate < 1e200, "{rate}: {ending:?}"),
            }
        }
    }
}

#[test]
fn the_posterior_mean_beats_every_baseline() {
    let law = toeplitz_task(4);
    let task = LinearTask::gaussian(&law).unwrap();
    let baselines = [
        Baseline::posterior_mean(&law),
        Baseline::Ridge { lambda: 10.0 },
        Baseline::Ridge { lambda: 1e-3 },
        Baseline::LeastSquares,
        Baseline::GradientStep { rate: 0.5 },
        Baseline::Averaging,
        Baseline::NearestNeighbours { neighbours: 3 },
    ];
    for length in [2, 6, 30] {
        let risks = baseline_risks(&task, length, &baselines, 4_000, 1).unwrap();
        let exact = bayes_at_length(&law, PromptLength::new(length as u64).unwrap(), 4_000, 2).unwrap();
        // Two simulations: the error of the closed form is the smaller one, and is added.
        assert_agrees(&risks[0], exact.mean().unwrap(), 5.0 * exact.standard_error().unwrap());
        assert!(exact.standard_error().unwrap() < risks[0].standard_error().unwrap());
        assert!(exact.mean().unwrap() > law.noise_floor());
        for (baseline, risk) in baselines.iter().zip(&risks).skip(1) {
            // Same prompts, so the errors are shared; five of the larger one is more than enough.
            let allowed = 5.0 * risk.standard_error().unwrap().max(risks[0].standard_error().unwrap());
            assert!(risk.mean().unwrap() + allowed > risks[0].mean().unwrap(), "{baseline:?} at {length}");
        }
        let mean = |index: usize| risks[index].mean().unwrap();
        assert!(mean(0) < mean(3) && mean(0) < mean(5) && mean(0) < mean(6), "{length}");
    }
}

/// ½ σ_q² E 1/(σ² χ²_L/s² + 1/k) + ½ s_q² by quadrature over the radius, from one example to 10⁶.
#[test]
fn bayes_in_one_dimension_is_a_quadrature() {
    let law = LinearRegression::new(mat![[1.7]].as_ref())
        .unwrap()
        .with_noise(0.4)
        .unwrap()
        .with_prior(0.6)
        .unwrap()
        .with_query_covariance(mat![[2.5]].as_ref())
        .unwrap();
    for length in [1, 2, 3, 10, 1_000, 1_000_000] {
        let nodes = RadiusLaw::Chi { degrees: length as usize }.quadrature();
        let spread: f64 =
            nodes.iter().map(|(radius, weight)| weight / (1.7 * radius * radius / 0.4 + 1.0 / 0.6)).sum();
        let exact = 0.5 * 2.5 * spread + 0.2;
        let found = bayes_at_length(&law, PromptLength::new(length).unwrap(), 20_000, 7).unwrap();
        // The radius rule itself is exact to about 1e-10.
        assert_agrees(&found, exact, 1e-9);
        if length <= 10 {
            let task = LinearTask::gaussian(&law).unwrap();
            let ridge = Baseline::posterior_mean(&law);
            assert_agrees(
                &baseline_risks(&task, length as usize, &[ridge], 20_000, 8).unwrap()[0],
                exact,
                1e-9,
            );
        }
    }
}

#[test]
fn bayes_without_noise_is_the_prior_across_the_examples() {
    let law = LinearRegression::isotropic(5).unwrap().with_prior(0.6).unwrap();
    for (length, exact) in [(1, 1.2), (3, 0.6), (5, 0.0), (9, 0.0)] {
        let found = bayes_at_length(&law, PromptLength::new(length).unwrap(), 500, 0).unwrap();
        // k (d − L)/2 for every draw: rounding only, of a projection whose smallest pivot may be 1e-5.
        assert!((found.mean().unwrap() - exact).abs() < 1e-9, "{length}: {found:?}");
    }
    // Minimum-norm least squares is the posterior mean then; and long prompts cost nothing.
    let task = LinearTask::gaussian(&law).unwrap();
    let found = baseline_risks(&task, 3, &[Baseline::LeastSquares], 20_000, 0).unwrap();
    assert_agrees(&found[0], 0.6, 0.0);
    let noisy = law.with_noise(0.1).unwrap();
    let found = bayes_at_length(&noisy, PromptLength::MAX, 100, 0).unwrap();
    // s²d/(2L) above the floor.
    assert!((found.mean().unwrap() - 0.05 - 0.25e-12).abs() < 1e-15);
}

/// d − L directions keep their prior for every draw, the others lose all but λ/(σ² + λ) of it, with σ² above 1e-5 in
/// 500 draws. The inverse of I + XᵀX/λ lost its identity here: .93 to 1.15 at 1e-14, refusals at 1e-17.
#[test]
fn bayes_with_few_examples_keeps_the_prior_across_them_however_small_the_noise() {
    let law = LinearRegression::isotropic(3).unwrap();
    for (noise, allowed) in [(0.0, 1e-14), (1e-300, 1e-14), (1e-17, 1e-11), (1e-14, 1e-8), (1e-10, 1e-4)] {
        let law = law.clone().with_noise(noise).unwrap();
        for (length, exact) in [(1, 1.0), (2, 0.5), (3, 0.0), (100, 0.0)] {
            let found = bayes_at_length(&law, PromptLength::new(length).unwrap(), 500, 0).unwrap();
            let (mean, spread) = (found.mean().unwrap(), found.variance().unwrap().sqrt());
            assert!((mean - exact).abs() <= allowed && spread <= allowed, "{noise}, {length}: {found:?}");
            assert!(mean >= exact - 1e-14);
        }
    }
    // Covariates of very different size, and a query of another law: the terms are still added, not subtracted.
    let skewed = LinearRegression::new(mat![[1.0, 0.0], [0.0, 1e-10]].as_ref()).unwrap();
    let skewed = skewed.with_query_covariance(linalg::identity(2).as_ref()).unwrap();
    for length in [1, 2, 3] {
        let noisy = skewed.clone().with_noise(1e-16).unwrap();
        let found = bayes_at_length(&noisy, PromptLength::new(length).unwrap(), 500, 0).unwrap();
        assert!((0.0..=1.0).contains(&found.mean().unwrap()), "{length}: {found:?}");
    }
}

#[test]
fn trials_beyond_the_units_that_are_folded_at_once_all_count() {
    let law = LinearRegression::isotropic(1).unwrap().with_noise(0.1).unwrap();
    let found = bayes_at_length(&law, PromptLength::MIN, 262_145, 0).unwrap();
    assert_eq!(found.count(), 262_145);
}

#[test]
fn the_progress_of_another_experiment_is_refused_and_left_as_it_was() {
    let options =
        AuthorsOptions { lengths: vec![10], steps: 3, test_prompts: 100, ..AuthorsOptions::default() };
    let experiment = AuthorsExperiment::new(options.clone()).unwrap();
    let mut progress = AuthorsProgress::default();
    experiment.run(&mut progress, &Unwatched).unwrap();
    let before = progress.clone();
    let toeplitz = AuthorsCovariance::Toeplitz;
    for (what, other) in [
        ("seed", AuthorsOptions { seed: 1, ..options.clone() }),
        ("rate", AuthorsOptions { rate: 2e-3, ..options.clone() }),
        ("optimiser", AuthorsOptions { optimiser: AuthorsOptimiser::Adam, ..options.clone() }),
        ("covariance", AuthorsOptions { covariance: toeplitz, ..options.clone() }),
        ("kind of draws", AuthorsOptions { draws: Draws::Prompts, ..options.clone() }),
        ("number of test prompts", AuthorsOptions { test_prompts: 101, ..options.clone() }),
    ] {
        let other = AuthorsExperiment::new(AuthorsOptions { steps: 5, ..other }).unwrap();
        for error in [
            other.run(&mut progress, &Unwatched).unwrap_err(),
            other.points(&progress).unwrap_err(),
            other.estimate(&progress).unwrap_err(),
        ] {
            assert!(matches!(&error, Error::OtherRun { what: named, .. } if *named == what), "{error}");
        }
        assert_eq!(progress, before);
    }
    // Other lengths, more steps and a bug without effect are the same experiment.
    let more = AuthorsOptions { lengths: vec![10, 12], steps: 5, covariance_bug: true, ..options };
    let more = AuthorsExperiment::new(more).unwrap();
    more.run(&mut progress, &Unwatched).unwrap();
    assert_eq!(more.points(&progress).unwrap().len(), 2);
    progress.identity = None;
    assert!(matches!(more.run(&mut progress, &Unwatched), Err(Error::OtherRun { what: "identity", .. })));
}

/// The same sums of squares in another order: rounding only.
#[test]
fn rows_carry_the_balance_of_scores_and_values() {
    let law = LinearRegression::isotropic(2).unwrap();
    for layer in layers(2) {
        let options = DescentOptions { steps: 4, record: vec![0, 2, 4], ..DescentOptions::default() };
        let task = Arc::new(LinearTask::gaussian(&law).unwrap());
        let descent = Descent::new(task, layer.clone(), 10, options).unwrap();
        let rows = descent.run(descent.start(), &Unwatched).unwrap().state.rows;
        assert_eq!(rows.len(), 3);
        assert_ne!(rows[0].balance, rows[2].balance);
        for row in rows {
            let at_row = layer.with_parameters(&row.parameters).unwrap();
            assert_eq!(row.balance, at_row.balance());
            let average = RiskAverage::new(&law, PointAverage::default()).unwrap();
            let response = Response::softmax(PromptLength::new(10).unwrap());
            // Several heads have no landscape.
            if let Ok(landscape) = LayerLandscape::new(average, response, &at_row) {
                let expected = landscape.balance(&row.parameters);
                assert!((row.balance.unwrap() - expected).abs() < 1e-14 * (1.0 + expected.abs()));
            }
        }
    }
    let huge = RegressionHead::block(mat![[1e200]].as_ref(), 1.0).unwrap();
    assert_eq!(RegressionLayer::heads(AttentionKind::Softmax, &[huge]).unwrap().balance(), None);
}

/// The list of missing units alone was 17 GB here.
#[test]
fn a_simulation_of_all_prompts_takes_memory_as_it_goes() {
    let layer = layers(1).remove(0);
    let options = RiskOptions { prompts: u32::MAX, gradient: true, ..RiskOptions::default() };
    let simulation = RiskSimulation::new(all_tasks(1).remove(0), layer, 1 << 17, options).unwrap();
    assert_eq!(simulation.units(), u32::MAX);
    let found = simulation.finish(&StopAfter::looks(2)).unwrap();
    assert!((1..100).contains(&found.risk.count()));
    assert_eq!(found.gradient.count(), found.risk.count());
    // Units that are kept must fit.
    let refused = simulation.run(&mut RiskUnits::default(), &Unwatched);
    assert!(matches!(refused, Err(Error::OutOfRange { .. })), "{refused:?}");
}

#[test]
fn the_authors_experiment_resumes_bit_for_bit() {
    let options = AuthorsOptions {
        lengths: vec![40, 10],
        steps: 40,
        test_prompts: 2_000,
        ..AuthorsOptions::same_flow_time(AuthorsCovariance::Toeplitz)
    };
    let experiment = AuthorsExperiment::new(options).unwrap();
    assert!(experiment.estimate(&AuthorsProgress::default()).unwrap() > 0.0);
    let mut whole = AuthorsProgress::default();
    assert_eq!(experiment.run(&mut whole, &Unwatched).unwrap(), Completion::Finished);
    let mut parts = AuthorsProgress::default();
    let mut calls = 0;
    while experiment.run(&mut parts, &StopAfter::looks(33)).unwrap() != Completion::Finished {
        calls += 1;
        assert!(calls < 100);
    }
    assert!(calls > 3);
    assert_eq!(parts, whole);
    // Fewer steps first, and then the rest of them.
    let shorter = AuthorsOptions { steps: 25, ..experiment.options().clone() };
    let mut extended = AuthorsProgress::default();
    AuthorsExperiment::new(shorter).unwrap().run(&mut extended, &Unwatched).unwrap();
    assert!(experiment.points(&extended).unwrap().is_empty());
    experiment.run(&mut extended, &Unwatched).unwrap();
    assert_eq!(extended, whole);
    let points = experiment.points(&whole).unwrap();
    assert_eq!(points.iter().map(|point| point.length).collect::<Vec<_>>(), [10, 40]);
    for point in points {
        for trained in [point.softmax, point.linear] {
            assert_eq!(trained.end.ending, Ending::Completed);
            assert_eq!((trained.head.dimension(), trained.test_error.prompts), (DIMENSION, 2_000));
            assert!(trained.test_error.mean > NOISE);
        }
    }
}

#[test]
fn the_covariance_bug_is_off_unless_asked_for() {
    let law = |covariance_bug| {
        let options = AuthorsOptions {
            covariance: AuthorsCovariance::Toeplitz,
            covariance_bug,
            ..AuthorsOptions::default()
        };
        AuthorsExperiment::new(options).unwrap().law().clone()
    };
    let (right, wrong) = (law(false), law(true));
    assert_eq!(right.covariance(), right.query_covariance());
    assert_eq!(right.covariance()[(0, 1)], 0.5);
    assert_eq!(wrong.query_covariance(), linalg::identity(DIMENSION).as_ref());
    // C = [[1, 0], [½, √¾]] in the corner: C C = [[1, 0], [½ + √¾/2, ¾]], so the covariance there is ½ + √¾/2.
    assert!((wrong.covariance()[(0, 1)] - 0.5 - 0.75f64.sqrt() / 2.0).abs() < 1e-15);
}

#[test]
fn rubbish_is_refused_by_name() {
    let law: Law = Arc::new(Gaussian::standard(2).unwrap());
    let other: Law = Arc::new(Gaussian::standard(3).unwrap());
    let task: Arc<dyn Task> = Arc::new(LinearTask::new(law.clone()).unwrap());
    assert!(matches!(LinearTask::with_queries(law.clone(), other.clone()), Err(Error::Size { .. })));
    assert!(matches!(LinearTask::new(law.clone()).unwrap().with_noise(-1.0), Err(Error::OutOfRange { .. })));
    assert!(matches!(
        LinearTask::new(law.clone()).unwrap().with_noise(f64::NAN),
        Err(Error::OutOfRange { .. })
    ));
    assert!(matches!(LinearTask::new(law.clone()).unwrap().with_prior(0.0), Err(Error::OutOfRange { .. })));
    assert!(matches!(SparseTask::new(0, law.clone()), Err(Error::OutOfRange { .. })));
    assert!(matches!(SparseTask::new(3, law.clone()), Err(Error::OutOfRange { .. })));
    assert!(matches!(ClassificationTask::new(f64::INFINITY, law.clone()), Err(Error::OutOfRange { .. })));
    let mut prompt = PromptDraw::new();
    for length in [0, usize::MAX, 1 << 40] {
        let found = task.draw(length, &mut Stream::new(0, 0, 0), &mut prompt);
        assert!(matches!(found, Err(Error::OutOfRange { .. })), "{length}");
    }
    assert!(matches!(PromptDraw::from_rows(&[1.0], &[], 0.0), Err(Error::Empty { .. })));
    assert!(matches!(PromptDraw::from_rows(&[1.0], &[1.0], 0.0), Err(Error::WholeTokens { .. })));
    assert!(matches!(PromptDraw::from_rows(&[], &[1.0], 0.0), Err(Error::OutOfRange { .. })));
    assert!(matches!(PromptDraw::from_rows(&[1.0, f64::NAN], &[1.0], 0.0), Err(Error::NotFinite { .. })));
    assert!(PromptDraw::new().token(usize::MAX).is_empty());

    let layer = layers(2).remove(0);
    assert!(matches!(RegressionLayer::heads(AttentionKind::Softmax, &[]), Err(Error::Empty { .. })));
    assert!(matches!(layer.with_parameters(&[1.0]), Err(Error::Size { .. })));
    assert!(matches!(layer.with_parameters(&[f64::NAN; 12]), Err(Error::NotFinite { .. })));
    assert!(matches!(layer.predict(&PromptDraw::new()), Err(Error::Size { .. })));
    let scalar = PromptDraw::from_rows(&[1.0, 1.0], &[1.0], 0.0).unwrap();
    assert!(matches!(layer.predict(&scalar), Err(Error::Size { .. })));
    let huge = PromptDraw::from_rows(&[1e300, -1e300, 1e300], &[1e300, 1e300], 0.0).unwrap();
    assert!(matches!(layer.predict(&huge), Err(Error::Overflow { .. })));
    let size = mat![[1.0, 0.0], [0.0, 1.0]];
    let skew = mat![[1.0, 0.0]];
    let wrong = RegressionLayer::projections(
        AttentionKind::Softmax,
        size.as_ref(),
        skew.as_ref(),
        size.as_ref(),
        size.as_ref(),
    );
    assert!(matches!(wrong, Err(Error::Size { .. })));
    for dimension in [0, 5792, usize::MAX - 1, usize::MAX] {
        assert!(matches!(
            RegressionLayer::projections_at_random(
                AttentionKind::Linear,
                dimension,
                &mut Stream::new(0, 0, 0)
            ),
            Err(Error::OutOfRange { .. })
        ));
    }

    let options = RiskOptions { prompts: 0, ..RiskOptions::default() };
    assert!(RiskSimulation::new(task.clone(), layer.clone(), 3, options).is_err());
    assert!(RiskSimulation::new(task.clone(), layer.clone(), 0, RiskOptions::default()).is_err());
    assert!(RiskSimulation::new(task.clone(), layers(3).remove(0), 3, RiskOptions::default()).is_err());
    let simulation = RiskSimulation::new(task.clone(), layer.clone(), 3, RiskOptions::default()).unwrap();
    assert!(matches!(simulation.run_unit(u32::MAX), Err(Error::OutOfRange { .. })));

    for options in [
        DescentOptions { batch: 0, ..DescentOptions::default() },
        DescentOptions { batch: (1 << 24) + 1, ..DescentOptions::default() },
        DescentOptions { batch: u32::MAX, ..DescentOptions::default() },
        DescentOptions { smoothing: 0.0, ..DescentOptions::default() },
        DescentOptions { optimiser: Optimiser::Sgd { rate: f64::NAN }, ..DescentOptions::default() },
        DescentOptions {
            optimiser: Optimiser::Adam { rate: 0.1, first_decay: 1.0, second_decay: 0.9, floor: 1e-8 },
            ..DescentOptions::default()
        },
    ] {
        assert!(matches!(
            Descent::new(task.clone(), layer.clone(), 3, options),
            Err(Error::OutOfRange { .. })
        ));
    }
    let descent = Descent::new(task.clone(), layer, 3, DescentOptions::default()).unwrap();
    let mut state = descent.start();
    state.parameters.pop();
    assert!(matches!(descent.run(state, &Unwatched), Err(Error::Size { .. })));
    let mut state = descent.start();
    state.step = 1_000_000;
    assert!(matches!(descent.run(state, &Unwatched), Err(Error::OutOfRange { .. })));

    assert!(matches!(baseline_risks(task.as_ref(), 3, &[], 10, 0), Err(Error::Empty { .. })));
    for baseline in [
        Baseline::Ridge { lambda: -1.0 },
        Baseline::NearestNeighbours { neighbours: 0 },
        Baseline::GradientStep { rate: f64::NAN },
    ] {
        assert!(baseline.predict(&scalar).is_err());
        assert!(baseline_risks(task.as_ref(), 3, &[baseline], 10, 0).is_err());
    }
    let plain = LinearRegression::isotropic(2).unwrap();
    assert!(matches!(bayes_at_length(&plain, PromptLength::MIN, 0, 0), Err(Error::OutOfRange { .. })));
    for options in [
        AuthorsOptions { lengths: vec![], ..AuthorsOptions::default() },
        AuthorsOptions { lengths: vec![0], ..AuthorsOptions::default() },
        AuthorsOptions { test_prompts: 1, ..AuthorsOptions::default() },
        AuthorsOptions { rate: -1.0, ..AuthorsOptions::default() },
    ] {
        assert!(AuthorsExperiment::new(options).is_err());
    }
}
