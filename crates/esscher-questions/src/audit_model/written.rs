//! What the model writes after the same beginning: with exact attention, with what was accepted, with a control.

use super::compute::{Losses, ModelPlan};
use crate::tabulating::facts;
use esscher_report::{Block, literal};

/// As many tokens of the beginning are shown.
const SHOWN: usize = 40;

impl ModelPlan {
    pub(super) fn written_blocks(&self, losses: &Losses) -> Vec<Block> {
        let writers = self.writers();
        let Some(exact) = losses.written.first() else { return Vec::new() };
        let decoded = |tokens: &[u32]| literal(self.subject.vocabulary.decode(tokens).replace('\n', " "));
        let prompt = self.prompt();
        let end = &prompt[prompt.len().saturating_sub(SHOWN)..];
        let text = self.texts.first().map_or(&[] as &[u32], Vec::as_slice);
        let truth = &text[prompt.len().min(text.len())..];
        let mut lines = vec![
            ("the beginning ends".to_string(), format!("… {}", decoded(end))),
            ("the text itself goes on".to_string(), decoded(truth)),
        ];
        let mut same = Vec::new();
        for (number, written) in writers.iter().zip(&losses.written) {
            let tokens: Vec<u32> = written.iter().copied().map_while(|token| token).collect();
            let alike = written.iter().zip(exact).take_while(|(ours, exact)| ours == exact).count();
            let role = &self.assignments[*number].role;
            if *number > 0 {
                let alike = match alike {
                    0 => "none".to_string(),
                    all if all == exact.len() => format!("all {all}"),
                    some => some.to_string(),
                };
                same.push(format!("{alike} for `{}`", literal(role)));
            }
            let end = if tokens.len() < written.len() { " (then nothing is a number)" } else { "" };
            lines.push((literal(role), format!("{}{end}", decoded(&tokens))));
        }
        let lead = format!(
            "After {} tokens of the first test text the model writes {} more, the likeliest each time. The first of these are identical to \
             those of exact attention: {}.",
            prompt.len(),
            self.written,
            same.join(", ")
        );
        let caption = "Heads are replaced as they would be deployed, in constant memory. One different token changes all that follow, so \
                       that a text which leaves the exact one early need not be worse: the loss above is the measure, this is an \
                       illustration.";
        vec![
            Block::Prose(lead),
            facts(lines.iter().map(|(name, line)| (name.as_str(), line.clone()))),
            Block::Prose(caption.to_string()),
        ]
    }
}
