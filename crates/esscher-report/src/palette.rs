//! Colours and marker shapes of series: told apart without colour vision, and in print without colour.

/// Number of different appearances; the colour numbers of series repeat after it.
pub(crate) const COUNT: usize = 8;
/// The grey one: for controls, and for what belongs to no colour.
pub(crate) const GREY: usize = 7;

/// On white: Okabe and Ito (2008), with grey for their yellow, which white paper swallows.
pub(crate) const LIGHT: [&str; COUNT] =
    ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F"];

/// On dark: the same hues, lighter.
pub(crate) const DARK: [&str; COUNT] =
    ["#4C9BE8", "#FF8A4A", "#2CC79B", "#E79AC6", "#F2B73F", "#9BDCF5", "#EDEDED", "#A0A0A0"];

/// The shape of a dot, in the names that Vega gives them.
pub(crate) const SHAPES: [&str; COUNT] = [
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "triangle-down",
    "cross",
    "triangle-right",
    "triangle-left",
];

/// Number of colours of heat maps: more than eyes tell apart, few enough to draw each level at once.
pub(crate) const LEVELS: usize = 256;

/// Viridis (Smith and van der Walt 2015) at every tenth: even steps to the eye, also without colour vision and in grey,
/// where it runs from dark to light.
const VIRIDIS: [[u8; 3]; 11] = [
    [0x44, 0x01, 0x54],
    [0x48, 0x25, 0x76],
    [0x41, 0x44, 0x87],
    [0x35, 0x60, 0x8d],
    [0x2a, 0x78, 0x8e],
    [0x21, 0x90, 0x8c],
    [0x22, 0xa8, 0x84],
    [0x43, 0xbf, 0x71],
    [0x7a, 0xd1, 0x51],
    [0xbb, 0xdf, 0x27],
    [0xfd, 0xe7, 0x25],
];

/// The colour of a level below [`LEVELS`].
pub(crate) fn ramp(level: usize) -> String {
    let [red, green, blue] = colour(level);
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// The ink that stands out on a level.
pub(crate) fn ink_on(level: usize) -> &'static str {
    if level < LEVELS * 6 / 10 { "#ffffff" } else { "#000000" }
}

fn colour(level: usize) -> [u8; 3] {
    let steps = VIRIDIS.len() - 1;
    let place = level.min(LEVELS - 1) as f64 / (LEVELS - 1) as f64 * steps as f64;
    let below = (place as usize).min(steps - 1);
    let part = place - below as f64;
    std::array::from_fn(|channel| {
        let ends = [VIRIDIS[below][channel], VIRIDIS[below + 1][channel]].map(f64::from);
        (ends[0] + part * (ends[1] - ends[0])).round() as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of CIE 1976, from 0 to 100.
    fn lightness(level: usize) -> f64 {
        let light = luminance(level);
        if light > 0.008856 { 116.0 * light.cbrt() - 16.0 } else { 903.3 * light }
    }

    fn luminance(level: usize) -> f64 {
        let linear = colour(level).map(|channel| {
            let part = f64::from(channel) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    }

    #[test]
    fn the_ramp_reads_in_grey_with_even_steps() {
        let whole = lightness(LEVELS - 1) - lightness(0);
        assert!(whole > 70.0);
        for level in 0..LEVELS {
            // Viridis has even steps of a colour difference, of which lightness is the greater part.
            let even = lightness(0) + whole * level as f64 / (LEVELS - 1) as f64;
            assert!((lightness(level) - even).abs() < 3.0, "{level}: {} {even}", lightness(level));
            assert!(level == 0 || lightness(level) > lightness(level - 1) - 0.2);
        }
    }

    #[test]
    fn ink_on_every_level_has_the_contrast_of_large_print() {
        for level in 0..LEVELS {
            let (light, dark) = match ink_on(level) {
                "#ffffff" => (1.0, luminance(level)),
                _ => (luminance(level), 0.0),
            };
            assert!((light + 0.05) / (dark + 0.05) > 3.0, "{level}");
        }
    }
}
