//! Simulated prompts: against the exact engine, against brute force, and bit for bit against themselves.

use crate::common::{StopAfter, lengths, long, skew_gaussian, skew_head, skew_mixture};
use esscher_core::attention::{Attention, Softmax};
use esscher_core::measure::{Affine, Cube, Empirical, Gaussian, Law, Measure, Mixture, Rademacher, Sphere};
use esscher_core::numerics::statistics::Summary;
use esscher_core::numerics::{InstructionSet, Stream, linalg};
use esscher_core::prompt::{
    FinitePrompt, Precision, PromptLength, QueryAverage, SampleOptions, SampledPrompts, SampledUnit,
    SampledUnits, delta_method,
};
use esscher_core::{Completion, Error, Mat, Unwatched, mat};
use std::sync::Arc;

fn options(trials: u32) -> SampleOptions {
    SampleOptions { trials, queries: 30, seed: 5, ..SampleOptions::default() }
}

fn simulated(prompts: &SampledPrompts) -> SampledUnit {
    let mut done = SampledUnits::default();
    assert_eq!(prompts.run(&mut done, &Unwatched).unwrap(), Completion::Finished);
    prompts.fold(&done).unwrap()
}

/// Five standard errors of the simulation and of the exact average: a tenth to a fifth of most numbers. The time is the exact engine's,
/// so that fewer trials would save none.
#[test]
fn simulation_agrees_with_the_exact_engine_for_gaussian_and_mixture_tokens() {
    let (head, standard) = (skew_head(), Arc::new(Gaussian::standard(2).unwrap()));
    // Radius nodes of both parts fit into 100 queries: the heavy tail is integrated, not drawn.
    let off_centre = Arc::new(Gaussian::new(&[0.3, -0.5], mat![[0.4, 0.1], [0.1, 0.2]].as_ref()).unwrap());
    let mixture: Law =
        Arc::new(Mixture::new(vec![(0.3, standard.clone() as Law), (0.7, off_centre)]).unwrap());
    let trials = 1500;
    let all = lengths(&[1, 2, 7, 40, 300, 1000]);
    for (tokens, queries, count) in [
        (Arc::new(skew_gaussian()) as Law, standard.clone() as Law, 30),
        (Arc::new(skew_mixture()), standard, 30),
        (Arc::new(skew_gaussian()), mixture, 100),
    ] {
        let average = QueryAverage { directions: 16, randomisations: 4, seed: 0 };
        let exact = FinitePrompt::exact(&head, tokens.as_ref()).unwrap();
        let exact = exact.over_queries(queries.as_ref(), &all, average, &Unwatched).unwrap().deviations;
        let prompts = SampledPrompts::new(
            &head,
            tokens,
            queries.clone(),
            &all,
            SampleOptions { queries: count, ..options(trials) },
        )
        .unwrap();
        for (found, exact) in simulated(&prompts).lengths.iter().zip(&exact) {
            for (name, found, exact) in [
                ("output", &found.errors.output, exact.errors.output),
                ("score gradient", &found.errors.score_gradient, exact.errors.score_gradient),
                ("value gradient", &found.errors.value_gradient, exact.errors.value_gradient),
            ] {
                assert_eq!(found.count(), u64::from(trials));
                let (mean, error) = (found.mean().unwrap(), found.standard_error().unwrap());
                let allowed = 5.0 * error.hypot(exact.error) + 1e-9 * exact.value;
                assert!((mean - exact.value).abs() < allowed, "{name}: {mean} ± {error} against {exact:?}");
            }
        }
    }
}

/// One trial at one query, done by hand with the same tokens through an empirical measure.
#[test]
fn the_streaming_kernel_is_ordinary_attention_on_the_same_tokens() {
    let head = skew_head();
    let query = [0.9, -1.4];
    let queries: Law = Arc::new(Empirical::atom(&query).unwrap());
    for tokens in
        [Arc::new(skew_gaussian()) as Law, Arc::new(Rademacher::new(3).unwrap()), Arc::new(skew_mixture())]
    {
        // Lengths that end inside blocks, at their ends and across random streams.
        let all = lengths(&[1, 3, 255, 256, 257, 1000, 1024, 2500]);
        let tight = 1e-10;
        for (precision, tolerance) in [(Precision::Double, tight), (Precision::Single, 1e-3)] {
            for set in InstructionSet::available() {
                let options = SampleOptions { precision, instruction_set: set, queries: 1, ..options(1) };
                let prompts =
                    SampledPrompts::new(&head, tokens.clone(), queries.clone(), &all, options).unwrap();
                for found in simulated(&prompts).lengths {
                    let count = found.length.get() as usize;
                    let drawn = drawn_prompt(tokens.as_ref(), set, 0, count);
                    let expected = ordinary_errors(&head, tokens.as_ref(), &drawn, &query);
                    for (found, expected) in
                        [found.errors.output, found.errors.score_gradient].iter().zip(expected)
                    {
                        let found = found.mean().unwrap();
                        assert!(
                            (found / expected - 1.0).abs() < tolerance,
                            "{set} {precision:?} L = {count}: {found} {expected}"
                        );
                    }
                }
            }
        }
    }
}

fn in_pool<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

#[test]
fn threads_shards_and_resumption_do_not_change_a_bit() {
    let head = skew_head();
    let tokens: Law = Arc::new(Cube::new(3).unwrap());
    let queries: Law = Arc::new(Gaussian::standard(2).unwrap());
    let all = lengths(&[10, 3000, 20_000]);
    for set in InstructionSet::available() {
        let options = SampleOptions { instruction_set: set, ..options(100) };
        let prompts = SampledPrompts::new(&head, tokens.clone(), queries.clone(), &all, options).unwrap();
        assert!(prompts.units() >= 14, "{}", prompts.units());
        let one = in_pool(1, || simulated(&prompts));
        let two = in_pool(2, || simulated(&prompts));
        assert_eq!(one, two, "one thread against two, {set}");

        let mut gathered = SampledUnits::default();
        // The shards arrive in another order than they were cut.
        for share in [3, 0, 6, 1, 5, 2, 4] {
            let mut part = SampledUnits::default();
            prompts.run_share(share, 7, &mut part, &Unwatched).unwrap();
            gathered.merge(part).unwrap();
        }
        assert_eq!(one, prompts.fold(&gathered).unwrap(), "one share against seven, {set}");

        let mut stopped = SampledUnits::default();
        let completion = in_pool(2, || prompts.run(&mut stopped, &StopAfter::looks(3))).unwrap();
        assert!(
            matches!(completion, Completion::Stopped { completed, .. } if completed == stopped.units.len())
        );
        assert!(!stopped.units.is_empty() && stopped.units.len() < prompts.units() as usize);
        let partial = prompts.fold(&stopped).unwrap();
        assert!(
            partial.lengths[0].errors.output.count() > 0 && partial.lengths[0].errors.output.count() < 100
        );
        prompts.run(&mut stopped, &Unwatched).unwrap();
        assert_eq!(one, prompts.fold(&stopped).unwrap(), "after a stop and a resume, {set}");
    }
}

#[test]
fn units_of_another_simulation_are_refused() {
    let (head, tokens, queries) =
        (skew_head(), Arc::new(skew_gaussian()), Arc::new(Gaussian::standard(2).unwrap()));
    let prompts = |seed, all: &[u64]| {
        let options = SampleOptions { seed, ..options(4) };
        SampledPrompts::new(&head, tokens.clone(), queries.clone(), &lengths(all), options).unwrap()
    };
    let run = |prompts: &SampledPrompts| {
        let mut done = SampledUnits::default();
        prompts.run(&mut done, &Unwatched).unwrap();
        done
    };
    let (first, second) = (prompts(1, &[10, 20]), prompts(2, &[10, 20]));
    let mut mixed = run(&first);
    assert!(mixed.clone().merge(run(&first)).is_ok());
    assert!(mixed.merge(run(&second)).is_err());
    assert!(prompts(1, &[10]).fold(&run(&first)).is_err());
    // As many lengths, but others; the same lengths, but another law that differs in its last digit.
    assert!(matches!(prompts(1, &[10, 21]).fold(&run(&first)), Err(Error::OtherSimulation { .. })));
    let nearly = |covariance: f64| {
        let queries =
            Arc::new(Gaussian::new(&[0.0, 0.0], mat![[1.0, 0.0], [0.0, covariance]].as_ref()).unwrap());
        SampledPrompts::new(&head, tokens.clone(), queries, &lengths(&[10, 20]), options(4)).unwrap()
    };
    let (plain, next) = (nearly(1.0), nearly(1.0 + 4.0 * f64::EPSILON));
    assert!(next.fold(&run(&plain)).is_err() && next.run(&mut run(&plain), &Unwatched).is_err());
    assert_eq!(plain.identity(), nearly(1.0).identity());
    // A number that does not exist, and a unit with trials missing.
    let mut renumbered = run(&first);
    let unit = renumbered.units.pop_first().unwrap().1;
    renumbered.units.insert(7, unit.clone());
    assert!(matches!(first.fold(&renumbered), Err(Error::OutOfRange { .. })));
    let mut short = unit;
    short.lengths[1].errors.output = short.lengths[1].errors.score_gradient;
    short.lengths[1].errors.value_gradient = Summary::of(&[1.0]);
    let short = SampledUnits { units: [(0, short)].into() };
    assert!(matches!(first.fold(&short), Err(Error::Size { .. })));
    assert!(first.run_unit(first.units(), &Unwatched).is_err());
    assert!(first.run_share(2, 2, &mut SampledUnits::default(), &Unwatched).is_err());
}

/// Bounded laws approach the delta method with slope one: L · error at L = 10⁴ within five standard errors, which are a ninth of the
/// error; in the short form that is so of the first law, and a quarter of the error for the others.
#[test]
fn bounded_laws_approach_the_delta_method() {
    let head = skew_head();
    let query = [0.8, 0.5];
    let queries: Law = Arc::new(Empirical::atom(&query).unwrap());
    let laws: [Law; 3] = [
        Arc::new(Rademacher::new(3).unwrap()),
        Arc::new(Cube::new(3).unwrap()),
        Arc::new(Sphere::new(3, 1.5).unwrap()),
    ];
    for (place, tokens) in laws.into_iter().enumerate() {
        let constants = delta_method(&head, tokens.as_ref(), &query).unwrap();
        let trials = if long() || place == 0 { 3000 } else { 600 };
        let options = SampleOptions { queries: 1, score_gradient: false, ..options(trials) };
        let length = [PromptLength::new(10_000).unwrap()];
        let prompts = SampledPrompts::new(&head, tokens.clone(), queries.clone(), &length, options).unwrap();
        let found = &simulated(&prompts).lengths[0].errors.output;
        let (mean, error) = (found.mean().unwrap() * 1e4, found.standard_error().unwrap() * 1e4);
        assert!(
            (mean - constants.output_error).abs() < 5.0 * error + 1e-3 * mean,
            "{tokens:?}: {mean} ± {error}"
        );
    }
}

/// The tokens of trial 0 at seed 5, as the simulation draws them: whole streams of 1024 tokens.
fn drawn_prompt(tokens: &dyn Measure, set: InstructionSet, trial: u32, count: usize) -> Empirical {
    let dimension = tokens.dimension();
    let mut prompt = vec![0.0; dimension * count];
    for (stream, part) in (0..).zip(prompt.chunks_mut(dimension * 1024)) {
        let mut whole = vec![0.0; dimension * 1024];
        let mut numbers = Stream::new(5, trial, stream).with_instruction_set(set);
        tokens.sample(&mut numbers, &mut whole).unwrap();
        part.copy_from_slice(&whole[..part.len()]);
    }
    Empirical::from_tokens(dimension, &prompt).unwrap()
}

/// Output error and error of the gradient in U of a drawn prompt, by ordinary attention.
fn ordinary_errors(head: &Softmax, tokens: &dyn Measure, drawn: &Empirical, query: &[f64]) -> [f64; 2] {
    let (here, there) = (head.gradient(drawn, query).unwrap(), head.gradient(tokens, query).unwrap());
    let bend: Mat<f64> = &here.tilt_sensitivity - &there.tilt_sensitivity;
    [
        linalg::squared_norm(&linalg::difference(&here.output, &there.output)),
        linalg::squared_frobenius(bend.as_ref()) * linalg::squared_norm(query),
    ]
}

/// Short prompts whose scores are all far below zero, also below the mean of their law: rows beyond the last token
/// must not count. d = 1 and d = 9 leave register tiles half empty.
#[test]
fn very_negative_scores_are_streamed_as_ordinary_attention() {
    for dimension in [1, 9] {
        let mut far = vec![0.0; dimension];
        far[0] = 9.0;
        let mut near = vec![0.0; dimension];
        near[0] = -1.0;
        for size in [100.0, 1000.0, 5000.0] {
            // Nine tokens of ten near −1, where scores are −size ± 1, and one at 9: the mean is 0.
            let covariance =
                Mat::from_fn(dimension, dimension, |i, j| if i == j { 1.0 / (size * size) } else { 0.0 });
            let parts: Vec<(f64, Law)> = vec![
                (0.9, Arc::new(Gaussian::new(&near, covariance.as_ref()).unwrap())),
                (0.1, Arc::new(Empirical::atom(&far).unwrap())),
            ];
            let tokens: Law = Arc::new(Mixture::new(parts).unwrap());
            let identity = Mat::<f64>::identity(dimension, dimension);
            let head = Softmax::new(identity.as_ref(), identity.as_ref()).unwrap();
            let mut query = vec![0.0; dimension];
            query[0] = size;
            let queries: Law = Arc::new(Empirical::atom(&query).unwrap());
            // f32 scores of size 5000 are known to 3e-4, which is the tolerance of their weights.
            for (precision, tolerance) in [(Precision::Double, 1e-9), (Precision::Single, 1e-3)] {
                for set in InstructionSet::available() {
                    let (mut all_near, all) = (0, lengths(&[1, 2, 3, 5]));
                    for trial in 0..8 {
                        // One trial alone: the sum over the first trials minus that over those before.
                        let total = |trials: u32| {
                            let options = SampleOptions {
                                precision,
                                instruction_set: set,
                                queries: 1,
                                ..options(trials)
                            };
                            let prompts =
                                SampledPrompts::new(&head, tokens.clone(), queries.clone(), &all, options);
                            let found = simulated(&prompts.unwrap()).lengths.into_iter();
                            found
                                .map(|found| {
                                    [found.errors.output, found.errors.score_gradient]
                                        .map(|error| error.mean().unwrap() * f64::from(trials))
                                })
                                .collect::<Vec<_>>()
                        };
                        let before = if trial == 0 { vec![[0.0; 2]; 4] } else { total(trial) };
                        for ((with, before), length) in total(trial + 1).iter().zip(&before).zip(&all) {
                            let drawn = drawn_prompt(tokens.as_ref(), set, trial, length.get() as usize);
                            all_near += u32::from(drawn.points().all(|point| point[0] < 0.0));
                            let expected = ordinary_errors(&head, tokens.as_ref(), &drawn, &query);
                            for part in 0..2 {
                                let found = with[part] - before[part];
                                let allowed = tolerance * (expected[part] + with[part]).max(1.0);
                                assert!(
                                    (found - expected[part]).abs() < allowed,
                                    "{set} {precision:?} d = {dimension}, L = {length}, score −{size}, part {part}: \
                                     {found} {expected:?}"
                                );
                            }
                        }
                    }
                    assert!(all_near > 10, "{all_near} prompts without a far token");
                }
            }
        }
    }
}

/// Rademacher tokens in d = 1 are two atoms, which the exact engine knows. Off-centre queries and U = 4 make the error
/// turn sharply along the radius; a fixed coarse rule is off by −29 % here, and no error bar would tell.
#[test]
fn the_radius_is_part_of_the_standard_error() {
    let head = Softmax::new(mat![[4.0]].as_ref(), mat![[1.0]].as_ref()).unwrap();
    let atoms: Vec<(f64, Law)> = vec![
        (0.5, Arc::new(Empirical::atom(&[-1.0]).unwrap())),
        (0.5, Arc::new(Empirical::atom(&[1.0]).unwrap())),
    ];
    let queries: Law = Arc::new(Gaussian::new(&[2.0], mat![[1.0]].as_ref()).unwrap());
    let all = lengths(&[100]);
    let exact = FinitePrompt::exact(&head, &Mixture::new(atoms).unwrap()).unwrap();
    let exact = exact.over_queries(queries.as_ref(), &all, QueryAverage::default(), &Unwatched).unwrap();
    let exact = exact.deviations[0].errors.output;
    assert!(exact.error < 1e-4 * exact.value, "{exact:?}");
    for (count, trials) in [(10, 12_000), (100, 4000)] {
        let options = SampleOptions { queries: count, score_gradient: false, ..options(trials) };
        let tokens: Law = Arc::new(Rademacher::new(1).unwrap());
        let prompts = SampledPrompts::new(&head, tokens, queries.clone(), &all, options).unwrap();
        let found = simulated(&prompts).lengths[0].errors.output;
        let (mean, error) = (found.mean().unwrap(), found.standard_error().unwrap());
        assert!(error < 0.04 * exact.value, "{count} queries: {error}");
        assert!((mean - exact.value).abs() < 5.0 * error, "{count}: {mean} ± {error}, {}", exact.value);
    }
}

/// Far from the origin a covariance must not be the difference of two large numbers.
#[test]
fn tokens_far_from_the_origin_keep_their_digits() {
    let head = skew_head();
    let query = [0.9, -1.4];
    let queries: Law = Arc::new(Empirical::atom(&query).unwrap());
    let shift = [1e6, -2e6, 5e5];
    let identity = Mat::<f64>::identity(3, 3);
    let tokens: Law = Arc::new(Affine::new(identity.as_ref(), &shift, Arc::new(skew_gaussian())).unwrap());
    let near: Law = Arc::new(skew_gaussian());
    for (precision, tolerance) in [(Precision::Double, 1e-8), (Precision::Single, 1e-3)] {
        for set in InstructionSet::available() {
            let options = SampleOptions { precision, instruction_set: set, queries: 1, ..options(1) };
            let all = lengths(&[3, 1000]);
            let prompts = SampledPrompts::new(&head, tokens.clone(), queries.clone(), &all, options).unwrap();
            for found in simulated(&prompts).lengths {
                // The same prompt at the origin: the shift leaves errors and weights alone.
                let drawn = drawn_prompt(near.as_ref(), set, 0, found.length.get() as usize);
                let expected = ordinary_errors(&head, near.as_ref(), &drawn, &query);
                for (found, expected) in
                    [found.errors.output, found.errors.score_gradient].iter().zip(expected)
                {
                    let found = found.mean().unwrap();
                    assert!(
                        (found / expected - 1.0).abs() < tolerance,
                        "{set} {precision:?}: {found} {expected}"
                    );
                }
            }
        }
    }
}

/// A prompt of 10¹² tokens takes hours; the monitor is asked inside it.
#[test]
fn a_long_prompt_can_be_stopped_and_absurd_options_are_refused() {
    let (tokens, queries): (Law, Law) = (Arc::new(skew_gaussian()), Arc::new(Gaussian::standard(2).unwrap()));
    let prompts = |options| {
        SampledPrompts::new(
            &skew_head(),
            tokens.clone(),
            queries.clone(),
            &lengths(&[10, 1_000_000_000_000]),
            options,
        )
    };
    let long = prompts(options(3)).unwrap();
    let mut done = SampledUnits::default();
    let completion = long.run(&mut done, &StopAfter::looks(4)).unwrap();
    assert_eq!(completion, Completion::Stopped { completed: 0, total: 3 });
    assert!(done.units.is_empty());
    assert_eq!(long.run_unit(0, &StopAfter::looks(1)).unwrap(), None);
    for absurd in [
        SampleOptions { queries: u32::MAX, ..options(3) },
        SampleOptions { queries: 0, ..options(3) },
        options(u32::MAX),
        options(0),
    ] {
        let text = prompts(absurd).unwrap_err().to_string();
        assert!(text.contains("the number of"), "{text}");
    }
    // The most that is allowed is cut into units without overflow.
    assert_eq!(prompts(options(1 << 24)).unwrap().units(), 1 << 24);
}

/// A point has one query, whatever number is asked for: the same bits, at the cost of one.
#[test]
fn a_point_is_one_query() {
    let queries: Law = Arc::new(Empirical::atom(&[0.9, -1.4]).unwrap());
    let found = |count| {
        let options = SampleOptions { queries: count, ..options(1) };
        let tokens: Law = Arc::new(skew_gaussian());
        let prompts =
            SampledPrompts::new(&skew_head(), tokens, queries.clone(), &lengths(&[200_000]), options)
                .unwrap();
        simulated(&prompts).lengths[0].errors.output
    };
    assert_eq!(found(1), found(100_000));
}
