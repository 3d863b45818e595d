//! Short numbers for the sentences of judges.

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
