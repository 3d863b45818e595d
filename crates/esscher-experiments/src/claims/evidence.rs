//! What judges share: collecting what contradicts a claim, and short numbers.

use esscher_report::{Block, Verdict};

/// What a judge has found against a claim, and against the measurement itself.
#[derive(Debug, Default)]
pub(super) struct Findings {
    against: Vec<String>,
    doubts: Vec<String>,
}

impl Findings {
    /// Notes what contradicts the claim unless the condition holds.
    pub(super) fn require(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.against.push(otherwise());
        }
    }

    /// Notes what makes the measurement itself doubtful unless the condition holds: it then decides nothing.
    pub(super) fn trust(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.doubts.push(otherwise());
        }
    }

    /// Holds with this reason if nothing was found; fails with what was found against the claim; decides nothing with what
    /// was found against the measurement.
    pub(super) fn verdict(self, reason: String) -> (Verdict, String) {
        let (verdict, word, found) = match (self.doubts.is_empty(), self.against.is_empty()) {
            (false, _) => (Verdict::NotMeasurable, "The measurement is in doubt", self.doubts),
            (true, false) => (Verdict::Fails, "Refuted", self.against),
            (true, true) => return (Verdict::Holds, reason),
        };
        let more = found.len() - 1;
        let rest = if more > 0 { format!(" {more} more such findings.") } else { String::new() };
        (verdict, format!("{word}: {}.{rest}", found[0]))
    }
}

/// Evidence whose drawings and tables are called after their claim: a document may hold several claims of one kind.
pub(super) fn named(claim: &str, mut evidence: Vec<Block>) -> Vec<Block> {
    for block in &mut evidence {
        match block {
            Block::Figure(figure) => figure.id = format!("{claim}-{}", figure.id),
            Block::HeatMap(map) => map.id = format!("{claim}-{}", map.id),
            Block::Table(table) => table.id = format!("{claim}-{}", table.id),
            Block::Prose(_) | Block::Formula(_) | Block::Facts(_) => {}
        }
    }
    evidence
}

/// A number with two or three digits, in powers of ten where that is shorter.
pub(super) fn short(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        return "0".to_string();
    }
    if (1e-2..1e4).contains(&size) {
        let digits = match size {
            100.0.. => 0,
            1.0.. => 1,
            _ => 3,
        };
        return format!("{value:.digits$}");
    }
    let exponent = size.log10().floor();
    let mantissa = format!("{:.1}", value / 10f64.powf(exponent));
    match mantissa.as_str() {
        "1.0" => format!("$10^{{{exponent}}}$"),
        "-1.0" => format!("$-10^{{{exponent}}}$"),
        _ => format!("${mantissa} \\cdot 10^{{{exponent}}}$"),
    }
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn numbers_are_short() {
        assert_eq!([0.0, 0.0341, 1.436, 1234.5].map(short), ["0", "0.034", "1.4", "1234"]);
        assert_eq!([-2.34e-13, 1e6].map(short), ["$-2.3 \\cdot 10^{-13}$", "$10^{6}$"]);
    }
}
