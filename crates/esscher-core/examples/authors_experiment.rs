//! The authors' experiment: softmax and linear attention trained by SGD (d = 5), beside the exact optimum at each length.
//!
//! `cargo run --release --example authors_experiment -- [isotropic|toeplitz] [default|same-flow-time|authors-grid] [FILE]`
//!
//! `default` takes 3,000 steps at the authors' rate, which hardly leaves the start; `same-flow-time` as many steps at a
//! hundred times the rate; `authors-grid` their own lengths and 300,000 steps. Time is estimated before it is spent.
//! With a FILE progress is saved there after every training, and a second call goes on from it.

use esscher_core::prompt::PromptLength;
use esscher_core::regression::authors::{
    AuthorsCovariance, AuthorsExperiment, AuthorsIdentity, AuthorsLeg, AuthorsOptions, AuthorsProgress,
    TrainedLayer,
};
use esscher_core::regression::{
    AttentionKind, DescentEnd, DescentState, FlowOptions, LinearAttention, PointAverage, Response,
    RiskAverage, SpectralLandscape, SpectralTask, bayes_at_length, flow,
};
use esscher_core::{Ending, Monitor, Result, Unwatched};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument =
        |index: usize, or: &'static str| arguments.get(index).map_or(or, String::as_str).to_string();
    let covariance = match argument(0, "isotropic").as_str() {
        "toeplitz" => AuthorsCovariance::Toeplitz,
        _ => AuthorsCovariance::Isotropic,
    };
    let options = match argument(1, "default").as_str() {
        "same-flow-time" => AuthorsOptions::same_flow_time(covariance),
        "authors-grid" => AuthorsOptions::authors_grid(covariance),
        _ => AuthorsOptions { covariance, ..AuthorsOptions::default() },
    };
    let experiment = AuthorsExperiment::new(options)?;
    let file = arguments.get(2).map(Path::new);
    let mut progress = match file {
        Some(file) if file.exists() => {
            read(&std::fs::read_to_string(file)?, experiment.options().identity())?
        }
        _ => AuthorsProgress::default(),
    };
    eprintln!("about {:.0} s to go", experiment.estimate(&progress)?);
    let percent = Percent::default();
    match file {
        None => {
            experiment.run(&mut progress, &percent)?;
        }
        Some(file) => {
            // One length after the other, so that each is saved.
            for &length in &experiment.options().lengths {
                let one = AuthorsOptions { lengths: vec![length], ..experiment.options().clone() };
                AuthorsExperiment::new(one)?.run(&mut progress, &Unwatched)?;
                let part = file.with_extension("part");
                std::fs::write(&part, text(&progress))?;
                std::fs::rename(&part, file)?;
                eprintln!("saved L = {length}");
            }
        }
    }
    report(&experiment, &progress)?;
    Ok(())
}

/// Mean squared errors, twice the halved risks of the library; the floor is the label noise, 0.1. What follows ± is one
/// standard error; the two optima are exact.
fn report(experiment: &AuthorsExperiment, progress: &AuthorsProgress) -> Result<()> {
    let law = experiment.law();
    let average = RiskAverage::new(law, PointAverage::default())?;
    println!(
        "{:>6}{:>18}{:>18}{:>10}{:>18}{:>10}{:>18}",
        "L", "softmax, trained", "(in the tokens)", "optimum", "linear, trained", "optimum", "Bayes"
    );
    for point in experiment.points(progress)? {
        let length = PromptLength::new(point.length as u64)?;
        let in_tokens = average.evaluate(&point.softmax.head, &Response::softmax(length))?.risk;
        let linear = LinearAttention::new(law, length)?.minimal_risk()?;
        let bayes = bayes_at_length(law, length, 20_000, 1)?;
        let optimum = SpectralTask::new(law).and_then(|(task, _)| {
            let start = task.initial(0.5)?;
            let landscape = SpectralLandscape { task, response: Response::softmax(length) };
            Ok(flow(
                &landscape,
                &start,
                &FlowOptions { end_time: 1e12, ..FlowOptions::default() },
                &Unwatched,
            )?
            .last()?
            .risk)
        });
        let with_error = |mean: f64, error: f64| format!("{mean:.4} ± {error:.4}");
        let tested =
            |trained: &TrainedLayer| with_error(trained.test_error.mean, trained.test_error.standard_error);
        println!(
            "{:>6}{:>18}{:>18}{:>10.4}{:>18}{:>10.4}{:>18}",
            point.length,
            tested(&point.softmax),
            with_error(2.0 * in_tokens.value, 2.0 * in_tokens.error),
            2.0 * optimum?,
            tested(&point.linear),
            2.0 * linear,
            match (bayes.mean(), bayes.standard_error()) {
                (Some(mean), Some(error)) => with_error(2.0 * mean, 2.0 * error),
                _ => "none".to_string(),
            }
        );
    }
    Ok(())
}

/// Progress to standard error, a line for every twentieth.
#[derive(Default)]
struct Percent(AtomicUsize);

impl Monitor for Percent {
    fn progress(&self, completed: usize, total: usize) {
        let twentieths = 20 * completed / total.max(1);
        if self.0.swap(twentieths, Ordering::Relaxed) != twentieths {
            eprintln!("{} %", 5 * twentieths);
        }
    }

    fn should_stop(&self) -> bool {
        false
    }
}

/// A line that names the experiment, then one per training: length, kind, steps, smoothed loss, parameters; numbers by their bits.
fn text(progress: &AuthorsProgress) -> String {
    let mut text = progress.identity.map_or(String::new(), |identity| format!("{identity:?}\n"));
    for ((length, kind), leg) in &progress.legs {
        let kind = if *kind == AttentionKind::Softmax { "softmax" } else { "linear" };
        let finished = leg.end.is_some_and(|end| end.ending == Ending::Completed);
        let loss = leg.state.smoothed_loss.map_or("none".to_string(), |loss| format!("{:x}", loss.to_bits()));
        let _ = write!(text, "{length} {kind} {} {finished} {loss}", leg.state.step);
        for parameter in &leg.state.parameters {
            let _ = write!(text, " {:x}", parameter.to_bits());
        }
        text.push('\n');
    }
    text
}

/// The progress of this experiment; a file of another is refused.
fn read(
    text: &str,
    identity: AuthorsIdentity,
) -> std::result::Result<AuthorsProgress, Box<dyn std::error::Error>> {
    let bits = |field: &str| u64::from_str_radix(field, 16).map(f64::from_bits);
    let mut progress = AuthorsProgress { identity: Some(identity), ..AuthorsProgress::default() };
    let mut lines = text.lines();
    let found = lines.next().unwrap_or("nothing");
    if found != format!("{identity:?}") {
        return Err(format!("the file is of another experiment\nexpected {identity:?}\nfound {found}").into());
    }
    for line in lines {
        let fields: Vec<&str> = line.split(' ').collect();
        let [length, kind, step, finished, loss, parameters @ ..] = fields.as_slice() else {
            return Err(format!("damaged line: {line}").into());
        };
        let kind = if *kind == "softmax" { AttentionKind::Softmax } else { AttentionKind::Linear };
        let state = DescentState {
            step: step.parse()?,
            parameters: parameters.iter().map(|field| bits(field)).collect::<std::result::Result<_, _>>()?,
            first_moment: Vec::new(),
            second_moment: Vec::new(),
            smoothed_loss: if *loss == "none" { None } else { Some(bits(loss)?) },
            rows: Vec::new(),
        };
        let end = DescentEnd { ending: Ending::Completed, step: state.step, loss: None };
        let end = (*finished == "true").then_some(end);
        progress.legs.insert((length.parse()?, kind), AuthorsLeg { state, end, test_error: None });
    }
    Ok(progress)
}
