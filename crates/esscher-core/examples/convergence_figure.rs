//! The figure of the README, as SVG on standard output: exact errors from one token to a trillion, and simulation.

use esscher_core::Mat;
use esscher_core::Result;
use esscher_core::attention::{Attention, Softmax};
use esscher_core::measure::{Empirical, Gaussian, Measure};
use esscher_core::numerics::{Stream, linalg};
use esscher_core::prompt::{FinitePrompt, PromptLength};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 96.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 52.0;
const COLOURS: [&str; 4] = ["#0072b2", "#009e73", "#d55e00", "#cc79a7"];
/// Powers of ten at the ends of the two axes.
const LENGTHS: (f64, f64) = (0.0, 12.0);
const ERRORS: (f64, f64) = (-12.0, 2.0);

fn main() -> Result<()> {
    let dimension = 4;
    let identity = Mat::<f64>::identity(dimension, dimension);
    let head = Softmax::new(identity.as_ref(), identity.as_ref())?;
    let tokens = Gaussian::standard(dimension)?;
    let prompt = FinitePrompt::exact(&head, &tokens)?;
    let lengths = PromptLength::logarithmic(PromptLength::MIN, PromptLength::MAX, 121);

    println!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">
<title>Mean squared error of L tokens against the infinite prompt</title>
<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>
<text x="{LEFT}" y="22" font-size="15">How far L tokens are from the infinite prompt: lines exact, dots simulated (± 2 s.e.)</text>"##
    );
    axes();
    // The labels of the two lowest curves are moved apart.
    let curves = [(0.5, 11.0), (1.0, 0.0), (2.0, 4.0), (4.0, 4.0)];
    for ((size, label_drop), colour) in curves.into_iter().zip(COLOURS) {
        let query = [0.6 * size, -0.8 * size, 0.0, 0.0];
        let path: Vec<String> = prompt
            .at_query(&query, &lengths)?
            .iter()
            .map(|found| format!("{:.1},{:.1}", across(found.length.as_f64()), up(found.errors.output)))
            .collect();
        println!(r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2"/>"#, path.join(" "));
        let last = &prompt.at_query(&query, &[PromptLength::MAX])?[0];
        let (x, y) = (WIDTH - RIGHT + 8.0, up(last.errors.output) + label_drop);
        println!(r#"<text x="{x}" y="{y:.1}" fill="{colour}">τ = {size}</text>"#);
        for (tokens_per_prompt, trials) in [(3, 4000), (10, 4000), (100, 2000), (1000, 400), (10_000, 100)] {
            let (mean, error) = simulate(&head, &tokens, &query, tokens_per_prompt, trials)?;
            let (x, y) = (across(tokens_per_prompt as f64), up(mean));
            let (low, high) = (up((mean - 2.0 * error).max(0.2 * mean)), up(mean + 2.0 * error));
            println!(r#"<path d="M{x:.1},{low:.1}V{high:.1}" stroke="{colour}"/>"#);
            println!(
                r##"<circle cx="{x:.1}" cy="{y:.1}" r="3.5" fill="#ffffff" stroke="{colour}" stroke-width="1.5"/>"##
            );
        }
    }
    println!("</svg>");
    Ok(())
}

fn across(length: f64) -> f64 {
    LEFT + (WIDTH - LEFT - RIGHT) * (length.log10() - LENGTHS.0) / (LENGTHS.1 - LENGTHS.0)
}

fn up(error: f64) -> f64 {
    HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (error.log10() - ERRORS.0) / (ERRORS.1 - ERRORS.0)
}

fn axes() {
    const SUPERSCRIPTS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let power = |exponent: i32| {
        let digits = exponent.abs().to_string();
        let digits =
            digits.chars().filter_map(|digit| digit.to_digit(10)).map(|digit| SUPERSCRIPTS[digit as usize]);
        format!("10{}{}", if exponent < 0 { "⁻" } else { "" }, digits.collect::<String>())
    };
    for exponent in (0..=12).step_by(2) {
        let x = across(10f64.powi(exponent));
        let (top, bottom) = (TOP, HEIGHT - BOTTOM);
        println!(r##"<path d="M{x:.1},{top}V{bottom}" stroke="#e4e4e4"/>"##);
        println!(
            r#"<text x="{x:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
            bottom + 18.0,
            power(exponent)
        );
    }
    for exponent in (-12..=2).step_by(2) {
        let y = up(10f64.powi(exponent));
        println!(r##"<path d="M{LEFT},{y:.1}H{:.1}" stroke="#e4e4e4"/>"##, WIDTH - RIGHT);
        println!(
            r#"<text x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"#,
            LEFT - 8.0,
            y + 4.0,
            power(exponent)
        );
    }
    let middle = 0.5 * (LEFT + WIDTH - RIGHT);
    println!(r#"<text x="{middle}" y="{}" text-anchor="middle">prompt length L</text>"#, HEIGHT - 12.0);
    let height = 0.5 * (TOP + HEIGHT - BOTTOM);
    println!(
        r#"<text transform="translate(16 {height}) rotate(-90)" text-anchor="middle">E |T[μ_L](z) − T[μ](z)|²</text>"#
    );
}

/// Mean squared error of simulated prompts, and its standard error.
fn simulate(
    head: &Softmax,
    tokens: &dyn Measure,
    query: &[f64],
    length: usize,
    trials: u32,
) -> Result<(f64, f64)> {
    let limit = head.attend(tokens, query)?;
    let mut prompt = vec![0.0; length * tokens.dimension()];
    let errors: Vec<f64> = (0..trials)
        .map(|trial| {
            tokens.sample(&mut Stream::new(5, trial, 0), &mut prompt)?;
            let drawn = Empirical::from_tokens(tokens.dimension(), &prompt)?;
            Ok(linalg::squared_norm(&linalg::difference(&head.attend(&drawn, query)?, &limit)))
        })
        .collect::<Result<_>>()?;
    let count = f64::from(trials);
    let mean = errors.iter().sum::<f64>() / count;
    let variance = errors.iter().map(|error| (error - mean).powi(2)).sum::<f64>() / (count - 1.0);
    Ok((mean, (variance / count).sqrt()))
}
