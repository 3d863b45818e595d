//! Student's t law: distribution and quantile, for intervals whose spread is itself estimated.

use crate::error::{Error, Result};
use crate::numerics::normal;

/// From this many degrees of freedom on the quantile is the normal one with three correction terms,
/// exact to the last digits there; the continued fraction below slows down like √ν.
const NEARLY_NORMAL: f64 = 1e6;

/// Tails below this are refused: with one degree of freedom their quantile squared would overflow.
const SMALLEST_TAIL: f64 = 1e-100;

/// P(T ≤ t) for Student's law with ν degrees of freedom, density ∝ (1 + t²/ν)^{−(ν+1)/2}.
///
/// # Errors
/// A t that is not finite, or ν not from 1 up.
pub fn distribution(t: f64, degrees: f64) -> Result<f64> {
    check_degrees(degrees)?;
    if !t.is_finite() {
        return Err(Error::OutOfRange { what: "Student's t", value: t, expected: "a finite number" });
    }
    let tail_beyond = if degrees < NEARLY_NORMAL { upper_tail } else { nearly_normal_tail };
    let tail = tail_beyond(t.abs(), degrees);
    Ok(if t < 0.0 { tail } else { 1.0 - tail })
}

/// The t with P(T ≤ t) = `probability` for Student's law with ν degrees of freedom.
///
/// A bracketed Newton iteration in ln t on the logarithm of the tail, which is concave there and bends
/// between two straight lines; the tail is a continued fraction of the incomplete beta function.
///
/// # Errors
/// A probability outside (0, 1) or closer than 10⁻¹⁰⁰ to its ends, or ν not from 1 up.
///
/// ```
/// use esscher_core::numerics::student::quantile;
/// assert!((quantile(0.975, 10.0)? - 2.228_138_852).abs() < 1e-9);
/// # Ok::<(), esscher_core::Error>(())
/// ```
pub fn quantile(probability: f64, degrees: f64) -> Result<f64> {
    check_degrees(degrees)?;
    if !(SMALLEST_TAIL..1.0).contains(&probability) {
        return Err(Error::OutOfRange {
            what: "the probability of a quantile",
            value: probability,
            expected: "a number from 1e-100 up, below 1",
        });
    }
    Ok(if probability > 0.5 {
        upper_quantile(1.0 - probability, degrees)
    } else {
        -upper_quantile(probability, degrees)
    })
}

fn check_degrees(degrees: f64) -> Result<()> {
    if degrees >= 1.0 && degrees.is_finite() {
        return Ok(());
    }
    Err(Error::OutOfRange {
        what: "the degrees of freedom",
        value: degrees,
        expected: "a finite number from 1 up",
    })
}

/// The t ≥ 0 with P(T > t) = tail, for a tail of at most one half.
fn upper_quantile(tail: f64, degrees: f64) -> f64 {
    if tail >= 0.5 {
        return 0.0;
    }
    let start = cornish_fisher(-normal::quantile(tail), degrees);
    if degrees >= NEARLY_NORMAL {
        return start;
    }
    // With ν = 1, the heaviest tail, P(T > t) is about 1/(πt): at 10⁻¹⁰⁰ ln t is 229.
    let (mut low, mut high): (f64, f64) = (-50.0, 235.0);
    let mut t = start.max(low.exp());
    for _ in 0..200 {
        let found = upper_tail(t, degrees);
        if found > tail {
            low = t.ln();
        } else {
            high = t.ln();
        }
        let step = (found / tail).ln() * found / (t * density(t, degrees));
        let inside = t.ln() + step > low && t.ln() + step < high;
        let next = if inside { t * step.exp() } else { (0.5 * (low + high)).exp() };
        let settled = (next / t - 1.0).abs() < 4.0 * f64::EPSILON;
        t = next;
        if settled {
            break;
        }
    }
    t
}

/// The expansion of the quantile in 1/ν at normal quantile z (Abramowitz and Stegun 26.7.5).
fn cornish_fisher(z: f64, degrees: f64) -> f64 {
    let square = z * z;
    let first = z * (square + 1.0) / 4.0;
    let second = z * ((5.0 * square + 16.0) * square + 3.0) / 96.0;
    let third = z * (((3.0 * square + 19.0) * square + 17.0) * square - 15.0) / 384.0;
    z + (first + (second + third / degrees) / degrees) / degrees
}

/// P(T > t) for nearly normal laws: the normal tail at t − t(t² + 1)/4ν + …, the inverse of the expansion.
fn nearly_normal_tail(t: f64, degrees: f64) -> f64 {
    // Beyond 40 the expansion loses its meaning, and the tail has long underflowed.
    let t = t.min(40.0);
    let square = t * t;
    let first = t * (square + 1.0) / 4.0;
    let second = t * ((13.0 * square + 8.0) * square + 3.0) / 96.0;
    normal::distribution(-(t - (first - second / degrees) / degrees))
}

fn density(t: f64, degrees: f64) -> f64 {
    let power = -0.5 * (degrees + 1.0) * (t * t / degrees).ln_1p();
    gamma_ratio(0.5 * degrees) / (degrees * std::f64::consts::PI).sqrt() * power.exp()
}

/// P(T > t) = ½ I_x(ν/2, ½) with x = ν/(ν + t²), for t ≥ 0.
fn upper_tail(t: f64, degrees: f64) -> f64 {
    // t² may overflow: infinity is good enough for x, but would be NaN in ratio/(1 + ratio).
    let ratio = t * t / degrees;
    let (a, b) = (0.5 * degrees, 0.5);
    let (x, rest) = (1.0 / (1.0 + ratio), 1.0 / (1.0 + degrees / t / t));
    // x^a (1 − x)^b / B(a, b).
    let front = (-a * ratio.ln_1p()).exp() * rest.sqrt() * gamma_ratio(a) / std::f64::consts::PI.sqrt();
    if x < (a + 1.0) / (a + b + 2.0) {
        0.5 * front * beta_fraction(a, b, x) / a
    } else {
        0.5 - 0.5 * front * beta_fraction(b, a, rest) / b
    }
}

/// The continued fraction of the incomplete beta function (Abramowitz and Stegun 26.5.8), by Lentz's method.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for step in 1..100_000 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away_from_zero(1.0 + even * d);
        c = away_from_zero(1.0 + even / c);
        value *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away_from_zero(1.0 + odd * d);
        c = away_from_zero(1.0 + odd / c);
        value *= d * c;
        if (d * c - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    value
}

/// Γ(a + ½)/Γ(a): the recurrence up to a ≥ 16, then Stirling's series in w = a − ¼, where odd powers vanish.
fn gamma_ratio(a: f64) -> f64 {
    const SERIES: [f64; 6] = [
        1.0,
        1.0 / 64.0,
        -19.0 / 8192.0,
        631.0 / 524_288.0,
        -174_317.0 / 134_217_728.0,
        20_491_783.0 / 8_589_934_592.0,
    ];
    let (mut shifted, mut factor) = (a, 1.0);
    while shifted < 16.0 {
        factor *= shifted / (shifted + 0.5);
        shifted += 1.0;
    }
    let w = shifted - 0.25;
    factor * w.sqrt() * SERIES.iter().rev().fold(0.0, |value, c| value / (w * w) + c)
}
