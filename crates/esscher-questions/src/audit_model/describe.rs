//! The audit of a model in words, a table and a figure: what is saved, and what it costs.

use super::compute::{Losses, ModelPlan};
use crate::audit::excerpt::ChosenText;
use crate::audit::{frame_in_words, number_cell};
use crate::tabulating::{facts, rounded, section, table, whole, words};
use esscher_audit::controls::BYTES_PER_NUMBER;
use esscher_audit::head::Order;
use esscher_audit::role::Role;
use esscher_audit::verdict::{Spread, spread};
use esscher_report::{Axis, Block, Cell, Figure, Mark, Point, Scale, Section, Series, literal};

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
    /// The sections of a report.
    pub(super) fn sections_of(&self, losses: &Losses) -> Vec<Section> {
        // Long tables are folded on a page: what was accepted and its controls come first, then what all heads do.
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
        blocks.extend([self.figure(losses), self.bytes_figure()].map(Block::Figure));
        vec![section("replaced", "What can be saved", blocks)]
    }

    /// Whether an assignment gives the same candidate to all heads.
    fn is_everywhere(&self, number: usize) -> bool {
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
        let caution =
            self.caution().map_or(String::new(), |caution| format!(". **Note:** {}", literal(caution)));
        let segments = |count: usize, of: &ChosenText| {
            format!("{count} segments of {} tokens of {}", self.length, of.in_words())
        };
        let tested = segments(self.texts.len(), &self.testing);
        facts([
            ("model", self.subject.in_words()),
            ("calibrated on", segments(self.calibration_segments, &self.calibrating)),
            ("tested on", format!("{tested}{needles}{caution}")),
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

    fn figure(&self, losses: &Losses) -> Figure {
        let causal = self.shape().order == Order::Causal;
        let series: Vec<Series> = self
            .assignments
            .iter()
            .enumerate()
            .skip(1)
            .filter_map(|(number, named)| {
                let spread = if causal { losses.paired_difference(number)? } else { losses.mean(number)? };
                let share = self.cache_share(named, self.length);
                let point = Point::with_error(share, spread.mean, spread.standard_error.unwrap_or(0.0));
                let (name, colour) = (literal(named.in_words()), number - 1);
                Some(Series { name, mark: Mark::Dots, colour, points: vec![point] })
            })
            .collect();
        let label = if causal { "log-loss difference to exact attention" } else { "embedding distance" };
        let missing = match self.assignments.len() - 1 - series.len() {
            0 => String::new(),
            failed => format!(" Not shown: {failed} whose loss is not finite on some text."),
        };
        Figure {
            id: "loss-against-cache".to_string(),
            title: "Loss against the bytes of the cache".to_string(),
            caption: format!(
                "At {} tokens; bars are one standard error over texts. Down and to the left is better.{missing}",
                self.length
            ),
            x: Axis { label: "cache, share of exact attention's".to_string(), scale: Scale::Linear },
            y: Axis { label: label.to_string(), scale: Scale::Linear },
            series,
        }
    }
}

/// Where the curves of bytes begin.
const SHORTEST_CURVE: usize = 128;

/// More curves are hard to tell apart.
const MOST_CURVES: usize = 6;

impl ModelPlan {
    /// Exact attention, what was accepted and the cheapest on all heads; where nothing is called accepted, the first assignments.
    fn shown_in_bytes(&self) -> Vec<usize> {
        let context = self.shape().context;
        let bytes = |number: &usize| self.cache_bytes(&self.assignments[*number], context).1;
        let accepted = self.assignments.iter().position(|named| named.role == Role::AcceptedGroups);
        let everywhere = (1..self.assignments.len())
            .filter(|number| self.is_everywhere(*number) && Some(*number) != accepted);
        let cheapest = everywhere.min_by(|one, other| bytes(one).total_cmp(&bytes(other)));
        match accepted {
            Some(accepted) => [Some(0), Some(accepted), cheapest].into_iter().flatten().collect(),
            None => (0..self.assignments.len().min(MOST_CURVES)).collect(),
        }
    }

    fn bytes_figure(&self) -> Figure {
        let context = self.shape().context;
        // Eight lengths to a doubling: where the window is full is a corner.
        let doublings = (context as f64 / SHORTEST_CURVE as f64).log2().max(0.0);
        let steps = (8.0 * doublings).ceil().max(1.0);
        let begin = SHORTEST_CURVE.min(context) as f64;
        let mut lengths: Vec<usize> = (0..=steps as usize)
            .map(|step| (begin * (step as f64 / steps * doublings).exp2()).round() as usize)
            .collect();
        lengths.dedup();
        let series = self.shown_in_bytes().into_iter().enumerate().map(|(colour, number)| {
            let named = &self.assignments[number];
            let point = |length: &usize| Point::new(*length as f64, self.cache_bytes(named, *length).1 / 1e6);
            Series {
                name: literal(if number == 0 { named.role.to_string() } else { named.in_words() }),
                mark: if number == 0 { Mark::Dashed } else { Mark::Line },
                colour,
                points: lengths.iter().map(point).collect(),
            }
        });
        let series: Vec<Series> = series.collect();
        let megabytes = || series.iter().flat_map(|one| &one.points).map(|point| point.y);
        let ratio = megabytes().fold(0.0, f64::max) / megabytes().fold(f64::INFINITY, f64::min);
        // Less than a decade has hardly a tick.
        let scale = if ratio < 10.0 { Scale::Linear } else { Scale::Logarithmic };
        Figure {
            id: "bytes-against-length".to_string(),
            title: "Bytes of the cache against the length".to_string(),
            caption: format!(
                "Keys and values of all layers, {BYTES_PER_NUMBER} bytes per number, moments in single precision, from \
                 {} to the model's context of {context} tokens. Verdicts are about {} tokens: elsewhere a curve says what the same \
                 assignment would take, not what it would lose.",
                lengths.first().copied().unwrap_or(context),
                self.length
            ),
            x: Axis { label: "tokens".to_string(), scale: Scale::Logarithmic },
            y: Axis { label: "cache, MB".to_string(), scale },
            series,
        }
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
