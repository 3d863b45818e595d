//! The audit of a model in words and tables: what can be replaced, what it costs, and how that was found.

use super::compute::{Losses, ModelPlan};
use crate::audit::excerpt::ChosenText;
use crate::audit::{frame_in_words, glossary, number_cell};
use crate::tabulating::{facts, rounded, table, whole, words};
use esscher_audit::controls::BYTES_PER_NUMBER;
use esscher_audit::head::Order;
use esscher_audit::role::Role;
use esscher_audit::verdict::{Spread, spread};
use esscher_report::{Block, Cell, Section, literal};

/// The ids of what comes first in a report on heads and model.
pub(crate) const REPLACED: &str = "replaced";
pub(crate) const WRITTEN: &str = "written";

impl Losses {
    /// The mean over texts of an assignment's loss; nothing if it is not finite on some text.
    pub(crate) fn mean(&self, assignment: usize) -> Option<Spread> {
        spread(&self.texts[assignment])
    }

    /// The mean over texts of its difference to exact attention on the same text: what all texts have in common cancels.
    pub(crate) fn paired_difference(&self, assignment: usize) -> Option<Spread> {
        let pairs = self.texts[assignment].iter().zip(self.texts.first()?);
        spread(&pairs.map(|(ours, exact)| ours - exact).collect::<Vec<_>>())
    }

    /// The mean share of hidden codes that it finds whole.
    pub(crate) fn retrieval(&self, assignment: usize) -> Option<Spread> {
        spread(&self.needles[assignment])
    }
}

impl ModelPlan {
    /// The sections of a report: what can be replaced and what it costs, what the model writes then, and how that was found.
    pub(super) fn sections_of(&self, losses: &Losses) -> Vec<Section> {
        let mut blocks = vec![Block::Lead(self.lead(losses))];
        blocks.extend(self.notes().into_iter().map(Block::Prose));
        blocks.extend(self.beside_controls(losses));
        let all = Block::Figure(self.figure(losses));
        let deployed = self.deployed_figure(losses).map(Block::Figure);
        let (first, folded) = deployed.map_or((all.clone(), None), |deployed| (deployed, Some(all)));
        blocks.push(first);
        let also = self.also(losses);
        if !also.is_empty() {
            blocks.push(Block::Prose(also.trim_start().to_string()));
        }
        blocks.push(glossary(self.shape().order));
        blocks.extend(folded.map(|all| Block::Folded {
            id: "every".to_string(),
            title: "Every assignment, also of all heads at once, against the cache".to_string(),
            blocks: vec![all],
        }));
        let cache = vec![
            Block::Figure(self.bytes_figure()),
            Block::Prose(
                "Only key-value heads free memory: a cache that one query head still needs is kept whole for all that read it."
                    .to_string(),
            ),
        ];
        blocks.push(Block::Folded {
            id: "cache".to_string(),
            title: "What that leaves of the cache, against the length".to_string(),
            blocks: cache,
        });
        let mut sections = vec![Section::new(REPLACED, "What can be replaced, and what it costs", blocks)];
        let written = self.written_blocks(losses);
        if !written.is_empty() {
            sections.push(Section::new(WRITTEN, "The same text, continued", written));
        }
        sections.push(Section::new("tested", "How the model was tested", self.method(losses)));
        sections
    }

    /// What a reader of the finding must know of this model and this text, prose.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.subject.is("stories15M") {
            notes.push(
                "**This audit is a smoke test.** stories15M is a small model of children's stories: it shows in a minute that everything \
                 works, and its text hardly needs what heads replace. SmolLM2 (`smollm2`) shows what an audit can find."
                    .to_string(),
            );
        }
        let (chosen, tested) = (self.calibrating.in_words(), self.testing.in_words());
        // A text that is divided is named once.
        notes.push(match (chosen.split_once(" of "), tested.split_once(" of ")) {
            (Some((first, text)), Some((last, same))) if text == same => {
                format!("Of {text}, heads were chosen on {first}, and the model was tested on {last}.")
            }
            _ => format!("Heads were chosen on {chosen}; the model was tested on {tested}."),
        });
        notes.extend(self.caution().map(|caution| format!("**Note:** {}.", literal(caution))));
        notes
    }

    /// What would be deployed and its controls, row by row: in the figure they lie close together.
    fn beside_controls(&self, losses: &Losses) -> Option<Block> {
        let is_shown = |role: &Role| {
            matches!(role, Role::AcceptedGroups | Role::AcceptedGroupsDropped | Role::RandomGroups { .. })
        };
        let numbers: Vec<usize> =
            (0..self.assignments.len()).filter(|number| is_shown(&self.assignments[*number].role)).collect();
        let row = |&number: &usize| {
            let named = &self.assignments[number];
            let loss = match self.shape().order {
                Order::Causal => losses.paired_difference(number),
                Order::Whole => losses.mean(number),
            };
            vec![
                ("replaced", words(&named.role)),
                ("heads", whole(named.assignment.freed_groups(self.shape()))),
                ("cache", rounded(self.cache_share(named, self.length))),
                ("added loss", number_cell(loss)),
            ]
        };
        let caption = format!(
            "What would be deployed, and its controls: the same key-value heads with nothing in the place of their middles, and as many random \
             ones with the same replacements. Cache: share of exact attention's at {} tokens. Loss: {}, one standard error over texts.",
            self.length,
            self.unit()
        );
        (numbers.len() > 1).then(|| table("controls", caption, numbers.iter().map(row).collect()))
    }

    /// How it was found: folded, for those who want to check.
    fn method(&self, losses: &Losses) -> Vec<Block> {
        let (all, some): (Vec<usize>, Vec<usize>) =
            (0..self.assignments.len()).partition(|number| self.is_everywhere(*number));
        let mut blocks = vec![self.facts()];
        for (id, what, numbers) in [
            ("assignments", "Which heads are replaced", some),
            (
                "everywhere",
                "The same candidate on all heads; `equal bytes` are what is used today and the largest measures that take no more",
                all,
            ),
        ] {
            if !numbers.is_empty() {
                blocks.push(self.table(id, what, &numbers, losses));
            }
        }
        vec![Block::Folded {
            id: "tested-how".to_string(),
            title: "Texts, words, and every assignment with its loss".to_string(),
            blocks,
        }]
    }

    /// Whether an assignment gives the same candidate to all heads.
    pub(super) fn is_everywhere(&self, number: usize) -> bool {
        let rows = self.assignments[number].assignment.rows();
        number > 0 && rows.iter().flatten().all(|candidate| *candidate == rows[0][0])
    }

    fn facts(&self) -> Block {
        let needles = match (self.haystacks.len(), &self.no_needles) {
            (0, None) => String::new(),
            (0, Some(reason)) => format!("; no needles are hidden, for {}", literal(reason)),
            (count, _) => format!(
                "; {count} prompts with four hidden numbers that are asked for at the end (a number is found if all its \
                 digits are right; blind guessing finds one in 10⁴, copying any of the four finds one in four)"
            ),
        };
        let segments = |count: usize, of: &ChosenText| {
            format!("{count} segments of {} tokens of {}", self.length, of.in_words())
        };
        let tested = segments(self.texts.len(), &self.testing);
        facts([
            ("model", self.subject.in_words()),
            ("calibrated on", segments(self.calibration_segments, &self.calibrating)),
            ("tested on", format!("{tested}{needles}")),
            ("kept exactly in replaced heads", frame_in_words(&self.frame)),
        ])
    }

    fn table(&self, id: &str, title: &str, numbers: &[usize], losses: &Losses) -> Block {
        let shape = self.shape();
        let causal = shape.order == Order::Causal;
        let mut lengths = vec![self.length, shape.context];
        lengths.dedup();
        let at = match lengths.len() {
            1 => format!("at {} tokens, which are the model's context", self.length),
            _ => format!("at {} tokens and at the model's context of {}", self.length, shape.context),
        };
        let caches: Vec<String> = lengths.iter().map(|length| format!("cache at {length}")).collect();
        let row = |&number: &usize| {
            let named = &self.assignments[number];
            let mut row = vec![
                ("assignment", words(&named.role)),
                ("running", words(if number == 0 { "" } else { named.running.name() })),
                ("heads replaced", whole(named.assignment.replaced_heads())),
                ("key-value heads freed", whole(named.assignment.freed_groups(shape))),
            ];
            let shares = lengths.iter().map(|length| rounded(self.cache_share(named, *length)));
            row.extend(caches.iter().map(String::as_str).zip(shares));
            let difference = losses.paired_difference(number);
            // Exact attention differs from itself by nothing: there is no number to show.
            let against_exact =
                |spread: Option<Spread>| if number > 0 { number_cell(spread) } else { Cell::Missing };
            match causal {
                true => row.extend([
                    ("perplexity", number_cell(losses.mean(number).map(exponential))),
                    ("log-loss difference", against_exact(difference)),
                    ("perplexity ratio", against_exact(difference.map(exponential))),
                ]),
                false => row.push(("embedding distance", against_exact(losses.mean(number)))),
            }
            if self.hides_needles() {
                row.push(("needles found", number_cell(losses.retrieval(number))));
            }
            row
        };
        let what = match causal {
            true => {
                "Differences are paired: text by text against exact attention; errors are one standard error over texts (that of a \
                 perplexity contains how much texts differ, that of its ratio does not)."
            }
            false => {
                "Distances are 1 − cosine to the embedding with exact attention; errors are one standard error over texts."
            }
        };
        let caption = format!(
            "{title}; the key-value heads whose whole cache may go, the cache as a share of exact attention's \
             {at} ({BYTES_PER_NUMBER} bytes per number), and what the model makes of \
             held-out text. {what}"
        );
        table(id, caption, numbers.iter().map(row).collect())
    }
}

/// e to a mean, with its error to first order.
fn exponential(spread: Spread) -> Spread {
    let mean = spread.mean.exp();
    Spread {
        mean,
        standard_error: spread.standard_error.map(|error| error * mean),
        low: spread.low.exp(),
        high: spread.high.exp(),
    }
}
