//! What judges share: collecting what contradicts a claim, and short numbers.

use esscher_report::Verdict;

/// What a judge has found against a claim.
#[derive(Debug, Default)]
pub(super) struct Findings {
    against: Vec<String>,
}

impl Findings {
    /// Notes what contradicts the claim unless the condition holds.
    pub(super) fn require(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.against.push(otherwise());
        }
    }

    /// Holds with this reason if nothing was found against it; otherwise fails with what was found.
    pub(super) fn verdict(self, reason: String) -> (Verdict, String) {
        let Some(first) = self.against.first() else { return (Verdict::Holds, reason) };
        let more = self.against.len() - 1;
        let rest = if more > 0 { format!(" {more} more such findings.") } else { String::new() };
        (Verdict::Fails, format!("Contradicted: {first}.{rest}"))
    }
}

/// A number with three digits, in powers of ten where that is shorter.
pub(super) fn short(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || (1e-2..1e4).contains(&size) {
        let digits = if size >= 100.0 { 0 } else { 3 };
        return format!("{value:.digits$}");
    }
    let exponent = size.log10().floor();
    format!("${:.1} \\cdot 10^{{{exponent}}}$", value / 10f64.powf(exponent))
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn numbers_are_short() {
        assert_eq!([short(0.0), short(0.5), short(1234.5)], ["0.000", "0.500", "1234"]);
        assert_eq!(short(-2.34e-13), "$-2.3 \\cdot 10^{-13}$");
    }
}
