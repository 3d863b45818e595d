//! The figures of an audit of a model: what was accepted beside its controls, and the cache against the length.

use super::compute::{Losses, ModelPlan};
use super::headline::{Outcome, signed};
use crate::measured::GREY;
use esscher_audit::assignment::Running;
use esscher_audit::candidate::Candidate;
use esscher_audit::controls::BYTES_PER_NUMBER;
use esscher_audit::head::Order;
use esscher_audit::role::Role;
use esscher_audit::verdict::Spread;
use esscher_report::{Axis, Figure, Mark, Point, Series, literal};

/// Whether what was accepted is compared with it.
fn is_control(role: &Role) -> bool {
    matches!(
        role,
        Role::RandomHeads(_)
            | Role::RandomGroups { .. }
            | Role::AcceptedHeadsDropped(_)
            | Role::AcceptedGroupsDropped
            | Role::OtherGroups
    )
}

/// What an assignment is to a reader, with the name and the colour of its points.
fn group(role: &Role) -> Option<(&'static str, usize)> {
    match role {
        Role::AcceptedHeads(_) | Role::AcceptedGroups => Some(("accepted heads", 0)),
        control if is_control(control) => Some(("controls", GREY)),
        Role::EqualBytes(Candidate::Kept { .. }) => Some(("all heads, by what is evicted today", 1)),
        Role::AllHeads { .. } | Role::EqualBytes(_) => Some(("all heads, by one measure", 2)),
        _ => None,
    }
}

impl ModelPlan {
    /// What would be deployed beside its controls, if key-value heads were accepted: in the figure of everything they lie close together.
    pub(super) fn deployed_figure(&self, losses: &Losses) -> Option<Figure> {
        let groups = self.groups().filter(|_| self.shape().order == Order::Causal)?;
        let accepted = losses.paired_difference(groups.accepted).filter(|cost| cost.high.is_finite())?;
        let names = [
            ("accepted key-value heads", 0),
            ("the same, nothing for their middles", 1),
            ("as many random ones", GREY),
        ];
        let place = |role: &Role| match role {
            Role::AcceptedGroups => Some(0),
            Role::AcceptedGroupsDropped => Some(1),
            Role::RandomGroups { .. } => Some(2),
            _ => None,
        };
        let mut series = names.map(|(name, colour)| Series {
            name: name.to_string(),
            mark: Mark::Dots,
            colour,
            points: Vec::new(),
        });
        for (number, named) in self.assignments.iter().enumerate() {
            let cost = losses.paired_difference(number).filter(|cost| cost.mean.is_finite());
            if let (Some(place), Some(cost)) = (place(&named.role), cost) {
                let share = self.cache_share(named, self.length);
                let error = cost.standard_error.unwrap_or(0.0);
                series[place].points.push(Point::with_error(share, cost.mean, error));
            }
        }
        let series: Vec<Series> = series.into_iter().filter(|one| !one.points.is_empty()).collect();
        let band = no_measurable_loss(&accepted, &series);
        Some(Figure {
            id: "deployed".to_string(),
            title: self.figure_title(losses),
            caption: format!(
                "Each dot is the model with so many key-value heads replaced, at {} tokens of text that chose nothing; bars are one \
                 standard error over texts, and the grey band is what they cannot tell from no loss for the accepted ones. Random heads \
                 get the same replacements.",
                self.length
            ),
            x: Axis::linear("cache that is left, share of exact attention’s"),
            y: Axis::linear("loss added to exact attention’s, nats per token"),
            series: [band].into_iter().chain(series).collect(),
        })
    }

    pub(super) fn figure(&self, losses: &Losses) -> Figure {
        let causal = self.shape().order == Order::Causal;
        let mut series: Vec<Series> = Vec::new();
        let (mut named_so_far, mut failed, mut has_controls) = (0, 0, false);
        for (number, named) in self.assignments.iter().enumerate().skip(1) {
            let loss = if causal { losses.paired_difference(number) } else { losses.mean(number) };
            let Some(spread) = loss.filter(|loss| loss.mean.is_finite()) else {
                failed += 1;
                continue;
            };
            let share = self.cache_share(named, self.length);
            let point = Point::with_error(share, spread.mean, spread.standard_error.unwrap_or(0.0));
            let (name, colour) = match group(&named.role) {
                Some((name, colour)) => (name.to_string(), colour),
                // A specification gives each its own name; grey is for controls.
                None => (literal(named.in_words()), named_so_far % GREY),
            };
            named_so_far += usize::from(matches!(named.role, Role::Named(_)));
            has_controls |= is_control(&named.role);
            match series.iter_mut().find(|one| one.name == name) {
                Some(known) => known.points.push(point),
                None => series.push(Series { name, mark: Mark::Dots, colour, points: vec![point] }),
            }
        }
        let title = match self.groups() {
            Some(_) if causal => "The loss of every assignment, against the bytes of the cache".to_string(),
            _ => self.figure_title(losses),
        };
        // Below all dots: what these texts cannot measure.
        let first = self.comparisons().into_iter().next();
        let reach = first.and_then(|one| Some((one.accepted, losses.paired_difference(one.accepted)?)));
        let reach = reach.filter(|(_, reach)| reach.high.is_finite() && causal);
        let band = reach.map(|(_, reach)| no_measurable_loss(&reach, &series));
        let band_in_words = reach.map_or(String::new(), |(accepted, _)| {
            format!(
                " The grey band is what these texts cannot tell from no loss for `{}`; other dots have errors of their own.",
                self.assignments[accepted].in_words()
            )
        });
        let controls = match has_controls {
            true => {
                " Controls, in grey, are as many random heads with the same replacements, the accepted ones with nothing in their place, and the heads that were not \
                 accepted."
            }
            false => "",
        };
        let offline = match causal && self.assignments.iter().any(|one| one.running == Running::Offline) {
            true => {
                " What runs offline stands at the bytes of what replaces it, though it needs the whole cache."
            }
            false => "",
        };
        let missing = match failed {
            0 => String::new(),
            failed => format!(" Not shown: {failed} whose loss is not finite on some text."),
        };
        let label = match causal {
            true => "loss added to exact attention’s, nats per token",
            false => "embedding distance",
        };
        Figure {
            id: "loss-against-cache".to_string(),
            title,
            caption: format!(
                "Each dot is the model with some heads replaced, at {} tokens of text that calibrated nothing; bars are one standard \
                 error over texts. Down and to the left is better.{controls}{offline}{band_in_words}{missing}",
                self.length
            ),
            x: Axis::from_zero("cache that is left, share of exact attention’s"),
            y: Axis::linear(label),
            series: band.into_iter().chain(series).collect(),
        }
    }

    /// The finding, if there is one.
    fn figure_title(&self, losses: &Losses) -> String {
        let general = "The loss that replaced heads add, against the bytes of the cache";
        let comparisons = self.comparisons();
        let Some(first) = comparisons.first() else { return general.to_string() };
        let random = self.beside_random(first, losses);
        match (self.outcome(first, losses), losses.paired_difference(first.accepted), random) {
            (Outcome::ToldApart, Some(cost), Some((_, random))) => format!(
                "Accepted {what} replaced{} add {} to the loss, as many random ones {}",
                if self.how(first) == " offline" { " offline" } else { "" },
                if cost.low <= 0.0 { "nothing measurable".to_string() } else { signed(&cost) },
                signed(&random),
                what = first.what,
            ),
            (Outcome::Contradicted, ..) => {
                format!("Random {what} cost less than accepted {what}", what = first.what)
            }
            (Outcome::NotToldApart, ..) => {
                format!("These texts do not tell accepted {what} from random {what}", what = first.what)
            }
            _ => general.to_string(),
        }
    }
}

/// From no loss to as much as the confidence over texts leaves open, on both sides.
fn no_measurable_loss(accepted: &Spread, series: &[Series]) -> Series {
    let reach = accepted.high - accepted.mean;
    let shares = || series.iter().flat_map(|one| &one.points).map(|point| point.x);
    let ends = [0.0, shares().fold(1.0, f64::max)];
    let points = ends.map(|x| Point { x, y: 0.0, interval: Some((-reach, reach)) });
    Series { name: "no measurable loss".to_string(), mark: Mark::Line, colour: GREY, points: points.to_vec() }
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

    pub(super) fn bytes_figure(&self) -> Figure {
        let context = self.shape().context;
        // Eight lengths to a doubling: where the window is full is a corner.
        let doublings = (context as f64 / SHORTEST_CURVE as f64).log2().max(0.0);
        let steps = (8.0 * doublings).ceil().max(1.0);
        let begin = SHORTEST_CURVE.min(context) as f64;
        let mut lengths: Vec<usize> = (0..=steps as usize)
            .map(|step| (begin * (step as f64 / steps * doublings).exp2()).round() as usize)
            .collect();
        lengths.dedup();
        let shown = self.shown_in_bytes();
        let stays_small = |number: &usize| {
            let named = &self.assignments[*number];
            named.running == Running::Streaming && named.assignment.freed_groups(self.shape()) > 0
        };
        let title = match shown.len() > 1 && shown[1..].iter().all(stays_small) {
            true => "With replaced heads the cache grows more slowly with the text, or not at all",
            false => "The cache against the length of the text",
        };
        let series = shown.into_iter().enumerate().map(|(colour, number)| {
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
        Figure {
            id: "bytes-against-length".to_string(),
            title: title.to_string(),
            caption: format!(
                "Keys and values of all layers, {BYTES_PER_NUMBER} bytes per number, moments in single precision, from \
                 {} to the model's context of {context} tokens. Verdicts are about {} tokens: elsewhere a curve says what the same \
                 assignment would take, not what it would lose.",
                lengths.first().copied().unwrap_or(context),
                self.length
            ),
            x: Axis::from_zero("tokens"),
            y: Axis::from_zero("cache, MB"),
            series,
        }
    }
}
