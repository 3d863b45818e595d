//! Colours and marker shapes of series: told apart without colour vision, and in print without colour.

/// Number of different appearances; the colour numbers of series repeat after it.
pub(crate) const COUNT: usize = 8;

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
