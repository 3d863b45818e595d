//! What an audit of a model says first: what can be replaced, what that costs, and whether the test could have told otherwise.

use super::compute::{Losses, ModelPlan};
use esscher_audit::assignment::Running;
use esscher_audit::candidate::Candidate;
use esscher_audit::head::Order;
use esscher_audit::role::Role;
use esscher_audit::verdict::{Spread, spread};

/// What was accepted, beside as many that were drawn at random.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Comparison {
    /// The number of the assignment.
    pub(crate) accepted: usize,
    /// The numbers of its random controls.
    random: Vec<usize>,
    /// How many are replaced, and of how many.
    pub(crate) replaced: (usize, usize),
    /// What is counted.
    pub(crate) what: &'static str,
}

/// How what was accepted fared beside its controls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The controls cost more.
    ToldApart,
    /// The texts do not tell that they do.
    NotToldApart,
    /// The controls cost less.
    Contradicted,
    /// There is no other choice of as many.
    NoChoice,
    /// Some loss is not finite.
    NotFinite,
}

impl ModelPlan {
    /// Key-value heads and query heads that were accepted, as far as some were: what would be deployed first.
    pub(crate) fn comparisons(&self) -> Vec<Comparison> {
        let shape = self.shape();
        let find = |is: &dyn Fn(&Role) -> bool| -> Vec<usize> {
            (0..self.assignments.len()).filter(|number| is(&self.assignments[*number].role)).collect()
        };
        let offline = Running::Offline;
        let heads =
            find(&|role| *role == Role::AcceptedHeads(offline)).into_iter().map(|accepted| Comparison {
                accepted,
                random: find(&|role| *role == Role::RandomHeads(offline)),
                replaced: (
                    self.assignments[accepted].assignment.replaced_heads(),
                    shape.layers * shape.heads,
                ),
                what: "heads",
            });
        let groups = find(&|role| *role == Role::AcceptedGroups).into_iter().map(|accepted| Comparison {
            accepted,
            random: find(&|role| matches!(role, Role::RandomGroups { .. })),
            replaced: (
                self.assignments[accepted].assignment.freed_groups(shape),
                shape.layers * shape.key_value_heads,
            ),
            what: "key-value heads",
        });
        groups.chain(heads).collect()
    }

    /// The key-value heads that were accepted, if some were: what would be deployed.
    pub(crate) fn groups(&self) -> Option<Comparison> {
        let all = self.comparisons().into_iter();
        all.rev().find(|one| self.assignments[one.accepted].role == Role::AcceptedGroups)
    }

    /// How much more the random controls cost than what was accepted, text by text; and their own cost.
    pub(crate) fn beside_random(&self, one: &Comparison, losses: &Losses) -> Option<(Spread, Spread)> {
        let texts = self.texts.len();
        let mean = |text: usize| {
            one.random.iter().map(|draw| losses.texts[*draw][text]).sum::<f64>() / one.random.len() as f64
        };
        let against = |number: usize| {
            spread(&(0..texts).map(|text| mean(text) - losses.texts[number][text]).collect::<Vec<_>>())
        };
        Some((against(one.accepted)?, against(0)?)).filter(|_| !one.random.is_empty())
    }

    pub(crate) fn outcome(&self, one: &Comparison, losses: &Losses) -> Outcome {
        let finite = |spread: Option<Spread>| spread.is_some_and(|spread| spread.mean.is_finite());
        if !finite(losses.paired_difference(one.accepted)) {
            return Outcome::NotFinite;
        }
        if one.random.is_empty() || one.replaced.0 == one.replaced.1 {
            return Outcome::NoChoice;
        }
        match self.beside_random(one, losses) {
            None => Outcome::NotFinite,
            Some((more, _)) if !more.mean.is_finite() => Outcome::NotFinite,
            Some((more, _)) if more.low > 0.0 => Outcome::ToldApart,
            Some((more, _)) if more.high < 0.0 => Outcome::Contradicted,
            Some(_) => Outcome::NotToldApart,
        }
    }

    /// The finding in a few sentences, prose: true whatever was found.
    pub(crate) fn lead(&self, losses: &Losses) -> String {
        let comparisons = self.comparisons();
        let Some(first) = comparisons.first() else { return self.lead_without_accepted(losses) };
        let mut lead = self.first_sentences(first, losses);
        if self.assignments[first.accepted].role == Role::AcceptedGroups {
            lead.push_str(&self.of_cache(first, losses));
        }
        lead
    }

    /// What else was found, prose: with a blank in front, or nothing.
    pub(crate) fn also(&self, losses: &Losses) -> String {
        let others = self.comparisons();
        let heads = others.get(1).map(|other| self.of_query_heads(other, losses)).unwrap_or_default();
        if others.is_empty() { String::new() } else { heads + &self.of_equal_bytes(losses) }
    }

    fn first_sentences(&self, one: &Comparison, losses: &Losses) -> String {
        let (replaced, all) = one.replaced;
        let (what, texts, unit) = (one.what, self.texts.len(), self.unit());
        let outcome = self.outcome(one, losses);
        let how = self.how(one);
        let finite = losses.paired_difference(one.accepted).filter(|cost| cost.mean.is_finite());
        let (Some(cost), false) = (finite, outcome == Outcome::NotFinite) else {
            return format!(
                "**The {replaced} of {all} {what} that were accepted cannot be compared with random ones**: with these or with those \
                 replaced the loss is not finite on some text."
            );
        };
        let random = self.beside_random(one, losses).map(|(_, cost)| signed(&cost));
        let beside = random.map_or(String::new(), |random| format!("as many random {what} cost {random}"));
        let free = cost.low <= 0.0;
        let cost_in_words = signed(&cost);
        match outcome {
            Outcome::ToldApart if free => format!(
                "**{replaced} of {all} {what} can be replaced{how} at no cost that {texts} texts can measure**: {cost_in_words} {unit}; \
                 {beside}."
            ),
            Outcome::ToldApart => format!(
                "**{replaced} of {all} {what} can be replaced{how} for {cost_in_words} {unit}**; {beside}."
            ),
            Outcome::NoChoice if free => format!(
                "**{replaced} of {all} {what} can be replaced{how} at no cost that {texts} texts can measure**: {cost_in_words} {unit}. \
                 No other choice of as many was there to compare them with."
            ),
            Outcome::NoChoice => format!(
                "**{replaced} of {all} {what} can be replaced{how} for {cost_in_words} {unit}**. No other choice of as many was there to \
                 compare them with."
            ),
            Outcome::Contradicted => format!(
                "**This test speaks against the {replaced} of {all} {what} that were accepted**: replaced they cost {cost_in_words} \
                 {unit}, {beside}, which is less."
            ),
            Outcome::NotToldApart | Outcome::NotFinite => format!(
                "**This test proves nothing about the {replaced} of {all} {what} that were accepted**: replaced they cost \
                 {cost_in_words} {unit}, {beside}, and {texts} texts do not tell one from the other. {}",
                self.why_nothing_is_told(losses)
            ),
        }
    }

    /// What a reader can do about texts that do not tell.
    fn why_nothing_is_told(&self, losses: &Losses) -> String {
        let dropped = Role::AllHeads { candidate: Candidate::DROPPED, running: None };
        let dropped = self.assignments.iter().position(|one| one.role == dropped);
        let cost = dropped.and_then(|number| losses.paired_difference(number));
        let unit = self.unit();
        match cost.filter(|cost| cost.mean.is_finite() && cost.low <= 0.0) {
            Some(cost) => format!(
                "These texts hardly need what was replaced: with nothing in its place in all heads the cost is {} {unit}. Test on \
                 longer texts, or with a model and a text that must remember.",
                signed(&cost)
            ),
            None => "The texts differ more among themselves than the two do: test on more texts.".to_string(),
        }
    }

    /// In which way heads are replaced; where every token sees all there is one way.
    pub(super) fn how(&self, one: &Comparison) -> &'static str {
        match (self.shape().order, self.assignments[one.accepted].running) {
            (Order::Whole, _) => "",
            (Order::Causal, Running::Streaming) => " in constant memory",
            (Order::Causal, Running::Offline) => " offline",
        }
    }

    /// What the key-value heads that were accepted leave of the cache.
    fn of_cache(&self, one: &Comparison, losses: &Losses) -> String {
        if losses.paired_difference(one.accepted).is_none_or(|cost| !cost.mean.is_finite()) {
            return String::new();
        }
        let accepted = &self.assignments[one.accepted];
        let percent = |tokens| format!("{:.0} %", 100.0 * self.cache_share(accepted, tokens));
        let context = self.shape().context;
        let longer = match context == self.length {
            true => String::new(),
            false => format!(
                " (at the model's context of {context} it would be {}; no loss was measured there)",
                percent(context)
            ),
        };
        format!(" That leaves {} of the cache at {} tokens{longer}.", percent(self.length), self.length)
    }

    fn of_query_heads(&self, one: &Comparison, losses: &Losses) -> String {
        let (replaced, all) = one.replaced;
        let Some(cost) = losses.paired_difference(one.accepted).filter(|cost| cost.mean.is_finite()) else {
            return format!(
                " With single query heads replaced, {replaced} of {all}, the loss is not finite on some text."
            );
        };
        let random = match (self.outcome(one, losses), self.beside_random(one, losses)) {
            (Outcome::ToldApart, Some((_, random))) => format!("; as many random ones {}", signed(&random)),
            (Outcome::NotToldApart, Some((_, random))) => {
                format!("; as many random ones {}, which these texts do not tell from it", signed(&random))
            }
            (Outcome::Contradicted, Some((_, random))) => {
                format!("; as many random ones less, {}", signed(&random))
            }
            _ => String::new(),
        };
        let how = match self.how(one) {
            " offline" => {
                " replaced offline, by what is made anew from their whole cache (not what would be deployed),"
            }
            _ => "",
        };
        format!(" Of single query heads{how} {replaced} of {all} cost {}{random}.", signed(&cost))
    }

    /// All heads at once with the same few bytes: the best of today's evictions beside the best measure.
    fn of_equal_bytes(&self, losses: &Losses) -> String {
        let best = |is_eviction: bool| {
            let known = self.assignments.iter().enumerate().filter_map(|(number, one)| match &one.role {
                Role::EqualBytes(candidate) if matches!(candidate, Candidate::Kept { .. }) == is_eviction => {
                    let cost = losses.paired_difference(number).filter(|cost| cost.mean.is_finite())?;
                    Some((number, candidate, cost))
                }
                _ => None,
            });
            known.min_by(|(.., one), (.., other)| one.mean.total_cmp(&other.mean))
        };
        let (Some((evicted, eviction, evicting)), Some((measured, measure, measuring))) =
            (best(true), best(false))
        else {
            return String::new();
        };
        let pairs = losses.texts[measured].iter().zip(&losses.texts[evicted]);
        let more: Vec<f64> = pairs.map(|(measured, evicted)| measured - evicted).collect();
        let beside = match spread(&more) {
            Some(more) if more.low > 0.0 => ", which is more",
            Some(more) if more.high < 0.0 => ", which is less",
            _ => "; these texts do not tell the two apart",
        };
        format!(
            " On all heads at once, with {:.0} % of the cache, the best of today’s evictions, `{eviction}`, costs {}, the best measure, \
             `{measure}`, {}{beside}.",
            100.0 * self.cache_share(&self.assignments[evicted], self.length),
            signed(&evicting),
            signed(&measuring)
        )
    }

    /// Where no assignment is called accepted: all were named by a specification, or nothing was accepted.
    fn lead_without_accepted(&self, losses: &Losses) -> String {
        let unit = self.unit();
        let named = self.assignments.iter().any(|one| matches!(one.role, Role::Named(_)));
        let mut costs: Vec<(usize, Spread)> = (1..self.assignments.len())
            .filter_map(|number| Some((number, losses.paired_difference(number)?)))
            .filter(|(_, cost)| cost.mean.is_finite())
            .collect();
        costs.sort_by(|(_, one), (_, other)| one.mean.total_cmp(&other.mean));
        let words = |(number, cost): &(usize, Spread)| {
            let name = esscher_report::literal(self.assignments[*number].in_words());
            format!("{name}: {} {unit}", signed(cost))
        };
        let range = match (costs.first(), costs.last()) {
            (Some(least), Some(most)) if costs.len() > 1 => {
                format!("The least is lost with {}; the most with {}.", words(least), words(most))
            }
            (Some(only), _) => format!("What is lost with {}.", words(only)),
            _ => "No loss is finite on all texts.".to_string(),
        };
        match named {
            true => range,
            false => {
                format!("**No head was accepted, so that nothing can be replaced.** On all heads: {range}")
            }
        }
    }

    /// What costs are counted in.
    pub(crate) fn unit(&self) -> &'static str {
        match self.shape().order {
            Order::Causal => "nats per token",
            Order::Whole => "of embedding distance (1 − cosine)",
        }
    }
}

/// A mean with its standard error as people write them, two digits of the error: +0.0027 ± 0.0005.
pub(crate) fn signed(spread: &Spread) -> String {
    if !spread.mean.is_finite() {
        return "more than numbers hold (not finite)".to_string();
    }
    let sign = if spread.mean < 0.0 { '−' } else { '+' };
    let mean = spread.mean.abs();
    let Some(error) = spread.standard_error.filter(|error| error.is_finite() && *error > 0.0) else {
        return format!("{sign}{mean:.4}");
    };
    // 0.0017 has its first digit in the third place.
    let places = (1.0 - error.log10().floor()).clamp(0.0, 6.0) as usize;
    format!("{sign}{mean:.places$} ± {error:.places$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_two_digits_of_their_error() {
        let of = |mean, error| signed(&Spread { mean, standard_error: error, low: 0.0, high: 0.0 });
        assert_eq!(of(-0.00251, Some(0.00172)), "−0.0025 ± 0.0017");
        assert_eq!(of(0.1704, Some(0.0352)), "+0.170 ± 0.035");
        assert_eq!(of(0.0007, Some(0.0)), "+0.0007");
        assert_eq!(of(12.3, None), "+12.3000");
    }
}
