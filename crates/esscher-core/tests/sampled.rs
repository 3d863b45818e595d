//! Simulated prompts: against the exact engine, against brute force, and bit for bit against themselves.

mod common;

use common::{StopAfter, lengths, skew_gaussian, skew_head, skew_mixture};
use esscher_core::attention::{Attention, Softmax};
use esscher_core::measure::{Cube, Empirical, Gaussian, Law, Mixture, Rademacher, Sphere};
use esscher_core::numerics::{InstructionSet, Stream, linalg};
use esscher_core::prompt::{
    FinitePrompt, Precision, PromptLength, QueryAverage, SampleOptions, SampledPrompts, SampledUnit,
    SampledUnits, delta_method,
};
use esscher_core::{Completion, Mat, Unwatched, mat};
use std::sync::Arc;

fn options(trials: u32) -> SampleOptions {
    SampleOptions { trials, queries: 30, seed: 5, ..SampleOptions::default() }
}

fn simulated(prompts: &SampledPrompts) -> SampledUnit {
    let mut done = SampledUnits::default();
    assert_eq!(prompts.run(&mut done, &Unwatched).unwrap(), Completion::Finished);
    prompts.fold(&done).unwrap()
}

/// Five standard errors of the simulation, plus the error of the coarse radius rule (1e-3).
#[test]
fn simulation_agrees_with_the_exact_engine_for_gaussian_and_mixture_tokens() {
    let (head, standard) = (skew_head(), Arc::new(Gaussian::standard(2).unwrap()));
    // Radius nodes of both parts fit into 100 queries: the heavy tail is integrated, not drawn.
    let off_centre = Arc::new(Gaussian::new(&[0.3, -0.5], mat![[0.4, 0.1], [0.1, 0.2]].as_ref()).unwrap());
    let mixture: Law =
        Arc::new(Mixture::new(vec![(0.3, standard.clone() as Law), (0.7, off_centre)]).unwrap());
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
            SampleOptions { queries: count, ..options(1500) },
        )
        .unwrap();
        for (found, exact) in simulated(&prompts).lengths.iter().zip(&exact) {
            for (name, found, exact) in [
                ("output", &found.output_error, exact.output_error),
                ("score gradient", &found.score_gradient_error, exact.score_gradient_error),
                ("value gradient", &found.value_gradient_error, exact.value_gradient_error),
            ] {
                assert_eq!(found.count(), 1500);
                let (mean, error) = (found.mean().unwrap(), found.standard_error().unwrap());
                let allowed = 5.0 * error.hypot(exact.absolute_error()) + 2e-3 * exact.value;
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
                    let mut prompt = vec![0.0; 3 * count];
                    for (stream, part) in (0..).zip(prompt.chunks_mut(3 * 1024)) {
                        // A stream is drawn whole: its first tokens are those of a longer draw.
                        let mut whole = vec![0.0; 3 * 1024];
                        let mut numbers = Stream::new(5, 0, stream).with_instruction_set(set);
                        tokens.sample(&mut numbers, &mut whole).unwrap();
                        part.copy_from_slice(&whole[..part.len()]);
                    }
                    let drawn = Empirical::from_tokens(3, &prompt).unwrap();
                    let (here, there) = (
                        head.gradient(&drawn, &query).unwrap(),
                        head.gradient(tokens.as_ref(), &query).unwrap(),
                    );
                    let gap = linalg::difference(&here.output, &there.output);
                    let bend: Mat<f64> = &here.tilt_sensitivity - &there.tilt_sensitivity;
                    let expected = linalg::squared_norm(&gap);
                    let found_output = found.output_error.mean().unwrap();
                    assert!(
                        (found_output / expected - 1.0).abs() < tolerance,
                        "{set} {precision:?} L = {count}: {found_output} {expected}"
                    );
                    let expected = linalg::squared_frobenius(bend.as_ref()) * linalg::squared_norm(&query);
                    let found_score = found.score_gradient_error.mean().unwrap();
                    assert!(
                        (found_score - expected).abs() < tolerance * (expected + 1.0),
                        "{set} {precision:?} L = {count}"
                    );
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
        assert!(partial.lengths[0].output_error.count() > 0 && partial.lengths[0].output_error.count() < 100);
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
    assert!(first.run_unit(first.units()).is_err());
    assert!(first.run_share(2, 2, &mut SampledUnits::default(), &Unwatched).is_err());
}

/// Bounded laws approach the delta method with slope one: L · error at L = 10⁴ within five standard errors.
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
    for tokens in laws {
        let constants = delta_method(&head, tokens.as_ref(), &query).unwrap();
        let options = SampleOptions { queries: 1, score_gradient: false, ..options(3000) };
        let length = [PromptLength::new(10_000).unwrap()];
        let prompts = SampledPrompts::new(&head, tokens.clone(), queries.clone(), &length, options).unwrap();
        let found = &simulated(&prompts).lengths[0].output_error;
        let (mean, error) = (found.mean().unwrap() * 1e4, found.standard_error().unwrap() * 1e4);
        assert!(
            (mean - constants.output_error).abs() < 5.0 * error + 1e-3 * mean,
            "{tokens:?}: {mean} ± {error}"
        );
    }
}

#[test]
fn large_scores_and_odd_shapes_are_streamed_safely() {
    // d = 1 and d = 9 leave register tiles half empty; scores reach ±10⁴.
    for dimension in [1, 9] {
        let score = Mat::from_fn(dimension, dimension, |i, j| if i == j { 5e3 } else { 0.0 });
        let head = Softmax::new(score.as_ref(), Mat::identity(dimension, dimension).as_ref()).unwrap();
        let tokens: Law = Arc::new(Cube::new(dimension).unwrap());
        let queries: Law = Arc::new(Cube::new(dimension).unwrap());
        let prompts =
            SampledPrompts::new(&head, tokens, queries, &lengths(&[1, 100, 700]), options(5)).unwrap();
        for found in simulated(&prompts).lengths {
            assert!(found.output_error.mean().unwrap().is_finite());
            assert!(found.score_gradient_error.mean().unwrap() >= 0.0);
        }
    }
}
