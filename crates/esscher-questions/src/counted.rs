//! Counts as people write them: digits in groups, and large ones in words too.

/// `9,817`.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `9,817 tokens`, `523,468,475 tokens (523 million)`, `1 token`.
pub(crate) fn tokens(count: u64) -> String {
    let tokens = if count == 1 { "token" } else { "tokens" };
    let rounded = |unit: f64| {
        let amount = count as f64 / unit;
        if amount < 9.95 {
            format!("{:.1}", amount).trim_end_matches(".0").to_string()
        } else {
            format!("{amount:.0}")
        }
    };
    let words = match count {
        0..1_000_000 => return format!("{} {tokens}", grouped(count)),
        1_000_000..999_500_000 => format!("{} million", rounded(1e6)),
        999_500_000..999_500_000_000 => format!("{} billion", rounded(1e9)),
        _ => format!("{} trillion", rounded(1e12)),
    };
    format!("{} {tokens} ({words})", grouped(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped_and_large_ones_are_said_in_words() {
        for (count, said) in [
            (1, "1 token"),
            (999, "999 tokens"),
            (9_817, "9,817 tokens"),
            (1_000_000, "1,000,000 tokens (1 million)"),
            (1_250_000, "1,250,000 tokens (1.2 million)"),
            (523_468_475, "523,468,475 tokens (523 million)"),
            (999_900_000, "999,900,000 tokens (1 billion)"),
            (1_000_000_000_000, "1,000,000,000,000 tokens (1 trillion)"),
        ] {
            assert_eq!(tokens(count), said);
        }
    }
}
