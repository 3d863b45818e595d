//! Cosines and sines of many angles at once: x = nπ/2 + r with |r| ≤ π/4, then polynomials in r², without branches.
//!
//! π/2 is taken in three parts, of which the first two have 33 bits, so that n times each is exact for n below 2²⁰. The
//! polynomials are those of the C library of Sun Microsystems (fdlibm), good to the last digit. Larger angles go to the standard
//! library, one by one.

use std::f64::consts::FRAC_2_PI;

/// π/2 in parts.
const PARTS: [f64; 3] = [1.570_796_326_734_125_6, 6.077_100_506_303_966e-11, 2.022_266_248_795_950_6e-21];

/// (sin r − r)/r³ and (cos r − 1 + r²/2)/r⁴, in powers of r².
const SINE: [f64; 6] = [
    -1.666_666_666_666_663_2e-1,
    8.333_333_333_322_49e-3,
    -1.984_126_982_985_795e-4,
    2.755_731_370_707_007e-6,
    -2.505_076_025_340_686_3e-8,
    1.589_690_995_211_55e-10,
];
const COSINE: [f64; 6] = [
    4.166_666_666_666_66e-2,
    -1.388_888_888_887_411e-3,
    2.480_158_728_947_673e-5,
    -2.755_731_435_139_066_3e-7,
    2.087_572_321_298_175e-9,
    -1.135_964_755_778_819_5e-11,
];

/// Beyond this, n has too many bits.
const LARGEST: f64 = 1e6;

/// Adding it rounds to a whole number, which then stands in the last bits.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// Writes the cosine of every angle and replaces the angle by its sine.
pub(crate) fn cosines_and_sines(angles: &mut [f64], cosines: &mut [f64]) {
    // Not `>`: NaN goes to the library as well.
    if !angles.iter().all(|x| x.abs() <= LARGEST) {
        for (x, cosine) in angles.iter_mut().zip(cosines) {
            (*x, *cosine) = x.sin_cos();
        }
        return;
    }
    for (x, cosine) in angles.iter_mut().zip(cosines) {
        let rounded = *x * FRAC_2_PI + ROUNDER;
        let quadrant = rounded.to_bits();
        let n = rounded - ROUNDER;
        let r = ((*x - n * PARTS[0]) - n * PARTS[1]) - n * PARTS[2];
        let z = r * r;
        let series = |c: [f64; 6]| c[0] + z * (c[1] + z * (c[2] + z * (c[3] + z * (c[4] + z * c[5]))));
        let s = r + r * z * series(SINE);
        let c = 1.0 - 0.5 * z + z * z * series(COSINE);
        let (s, c) = if quadrant & 1 == 0 { (s, c) } else { (c, s) };
        // Signs by the quadrant's second bit, moved to where a sign stands.
        *x = f64::from_bits(s.to_bits() ^ ((quadrant & 2) << 62));
        *cosine = f64::from_bits(c.to_bits() ^ ((quadrant.wrapping_add(1) & 2) << 62));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cosines_and_sines_are_those_of_the_standard_library() {
        let given: Vec<f64> = (-4000..4000)
            .map(|i| 0.001 * f64::from(i) * f64::from(i).abs().powf(1.5) / 4.0)
            .chain([0.0, -0.0, 1e-300, std::f64::consts::PI, std::f64::consts::FRAC_PI_4, 999_999.9])
            .filter(|x| x.abs() <= LARGEST)
            .collect();
        let (mut sines, mut cosines) = (given.clone(), vec![0.0; given.len()]);
        cosines_and_sines(&mut sines, &mut cosines);
        for ((x, s), c) in given.iter().zip(sines).zip(cosines) {
            // Two units in the last place of 1.
            assert!((s - x.sin()).abs() < 5e-16 && (c - x.cos()).abs() < 5e-16, "{x}: {s} {c}");
        }
    }

    #[test]
    fn huge_angles_go_to_the_standard_library() {
        let (mut sines, mut cosines) = (vec![1e9, 0.5], vec![0.0; 2]);
        cosines_and_sines(&mut sines, &mut cosines);
        assert_eq!((sines[0], cosines[0], sines[1]), (1e9f64.sin(), 1e9f64.cos(), 0.5f64.sin()));
    }
}
