//! What an audit leaves for other programs: verdicts as JSON, and the table that DuoAttention reads.

use crate::audit::dumps::DumpFile;
use crate::audit::excerpt::ChosenText;
use crate::audit_heads::compute::HeadsPlan;
use crate::audit_heads::evidence::Evidence;
use esscher_audit::candidate::Frame;
use esscher_audit::dossier::{Dossier, Standard};
use esscher_audit::portrait::Portrait;
use esscher_audit::verdict::{Decision, Spread, Verdict, spread};
use serde_json::{Value, json};

fn text(chosen: &ChosenText) -> Value {
    json!({
        "name": chosen.text.name, "part": chosen.excerpt.to_string(), "sha256": chosen.text.sha256, "what": chosen.what(),
    })
}

/// Every head and every key-value head: verdict, cheapest accepted candidate, errors with their intervals, portrait; `test` is what the
/// model was tested on, if it was.
///
/// Numbers that are not finite are null.
pub(super) fn verdicts(
    plan: &HeadsPlan,
    length: usize,
    dossier: &Dossier,
    test: Option<&ChosenText>,
    advice: Option<&str>,
) -> String {
    let shape = dossier.shape();
    let Standard { running, criterion, tolerance, .. } = plan.standard;
    let decide_heads = dossier.decide_heads(&plan.standard);
    let decide_groups = dossier.decide_groups(&plan.standard);
    let heads: Vec<Value> = places(&decide_heads)
        .map(|(layer, head, decision)| {
            let errors: Vec<Value> = dossier
                .candidates()
                .iter()
                .enumerate()
                .map(|(number, (candidate, running))| {
                    let errors = dossier.errors(layer, head, number, criterion);
                    let mut error = interval(spread(&errors).as_ref());
                    error["texts_not_finite"] =
                        json!(errors.iter().filter(|error| !error.is_finite()).count());
                    error["candidate"] = json!(candidate.to_string());
                    error["running"] = json!(running.name());
                    error
                })
                .collect();
            let mut all = decided(layer, head, decision);
            all["errors"] = json!(errors);
            all["portrait"] = portrait(dossier, layer, head);
            all
        })
        .collect();
    let groups: Vec<Value> =
        places(&decide_groups).map(|(layer, group, decision)| decided(layer, group, decision)).collect();
    let frame = &plan.questions.frame;
    let (sha256, calibrating, dumps) = match &plan.evidence {
        Evidence::Run(run) => (json!(run.subject.sha256), text(&run.text), Value::Null),
        Evidence::Dumps(dumps) => {
            let file = |file: &DumpFile| json!({ "path": file.name, "sha256": file.sha256() });
            (Value::Null, Value::Null, dumps.files.iter().map(file).collect())
        }
    };
    let all = json!({
        "schema": 1,
        "model": plan.evidence.name(),
        "sha256": sha256,
        "text": calibrating,
        "test": test.map(text),
        "seed": plan.questions.seed,
        "esscher": env!("CARGO_PKG_VERSION"),
        "dumps": dumps,
        "advice": advice,
        "layers": shape.layers,
        "heads_per_layer": shape.heads,
        "key_value_heads_per_layer": shape.key_value_heads,
        "length": length,
        "texts": dossier.findings(0, 0).count(),
        "tolerance": tolerance,
        "criterion": criterion.name(),
        "running": running.name(),
        "confidence": esscher_audit::verdict::CONFIDENCE,
        "kept_exactly": {
            "first": frame.atoms.first, "light": frame.atoms.light, "most_light": frame.atoms.most_light,
            "window": frame.window,
        },
        "heads": heads,
        "key_value_heads": groups,
    });
    format!("{all:#}\n")
}

fn places(decisions: &[Vec<Decision>]) -> impl Iterator<Item = (usize, usize, &Decision)> {
    decisions
        .iter()
        .enumerate()
        .flat_map(|(layer, row)| row.iter().enumerate().map(move |(head, decision)| (layer, head, decision)))
}

fn decided(layer: usize, head: usize, decision: &Decision) -> Value {
    json!({
        "layer": layer,
        "head": head,
        "verdict": decision.verdict.name(),
        "candidate": decision.candidate.map(|candidate| candidate.to_string()),
        "best_error": decision.best_error,
    })
}

fn interval(spread: Option<&Spread>) -> Value {
    json!({
        "mean": spread.map(|spread| spread.mean),
        "standard_error": spread.and_then(|spread| spread.standard_error),
        "low": spread.map(|spread| spread.low),
        "high": spread.map(|spread| spread.high),
    })
}

fn portrait(dossier: &Dossier, layer: usize, head: usize) -> Value {
    let mean = |pick: fn(&Portrait) -> f64| dossier.portrayed(layer, head, pick).map(|spread| spread.mean);
    let sinks = dossier.findings(layer, head).map(|found| found.portrait.sink.position);
    let score_variance = mean(|portrait| portrait.score_variance);
    json!({
        "score_variance": score_variance,
        "theory_length": score_variance.map(f64::exp),
        "effective_tokens": mean(|portrait| portrait.effective_tokens),
        "half_token_noise": mean(|portrait| portrait.half_token_noise),
        "first_token_weight": mean(|portrait| portrait.first_token_weight),
        "sink_positions": sinks.collect::<Vec<_>>(),
        "sink_weight": mean(|portrait| portrait.sink.weight),
    })
}

/// A line per layer, a number from 0 to 1 per key-value head: its best error over twice the tolerance. DuoAttention keeps full
/// attention where the number is at least its threshold, so that 0.5 gives the verdict: what is not accepted is written above it,
/// what is accepted below, also where the mean error alone would say otherwise.
pub(super) fn full_attention_heads(decisions: &[Vec<Decision>], tolerance: f64) -> String {
    let number = |decision: &Decision| {
        let error = decision.best_error / (2.0 * tolerance);
        let score = if error.is_finite() { error.clamp(0.0, 1.0) } else { 1.0 };
        match decision.verdict {
            Verdict::Accepted => score.min(BELOW),
            Verdict::Uncertain | Verdict::Refused => score.max(ABOVE),
        }
    };
    let line = |row: &Vec<Decision>| {
        row.iter().map(|one| format!("{:.4}", number(one))).collect::<Vec<_>>().join("\t")
    };
    decisions.iter().map(|row| line(row) + "\n").collect()
}

/// What DuoAttention reads beside the table: how many first and last tokens its streaming heads keep.
pub(super) fn configuration(frame: &Frame) -> String {
    format!("{:#}\n", json!({ "sink_size": frame.atoms.first, "recent_size": frame.window }))
}

/// The neighbours of the threshold one half in four decimals.
const BELOW: f64 = 0.4999;
const ABOVE: f64 = 0.5001;

#[cfg(test)]
mod tests {
    use super::full_attention_heads;
    use esscher_audit::verdict::{Decision, Verdict};

    #[test]
    fn the_threshold_one_half_gives_the_verdict() {
        let decision = |verdict, best_error| Decision { verdict, candidate: None, best_error };
        let rows = [
            vec![decision(Verdict::Accepted, 0.01), decision(Verdict::Uncertain, 0.04)],
            vec![decision(Verdict::Refused, 0.07), decision(Verdict::Refused, f64::INFINITY)],
        ];
        assert_eq!(full_attention_heads(&rows, 0.05), "0.1000\t0.5001\n0.7000\t1.0000\n");
    }
}
