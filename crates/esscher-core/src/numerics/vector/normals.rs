//! Standard normals by Box and Muller's transform on vectors of Philox counters.

use super::functions::{Real, polynomial};
use super::{Arithmetic, InstructionSet, Kernel};

/// Counters that one call turns into numbers, side by side: enough independent chains to keep the processor busy.
const LANES: usize = 16;

/// Each counter gives two normals.
pub(crate) const NORMALS_PER_CALL: usize = 2 * LANES;

/// The normals of the counters `position` … `position + 15`, in pairs, in the order of the counters.
pub(crate) fn normals(
    set: InstructionSet,
    key: [u32; 2],
    position: u64,
    block: u32,
    trial: u32,
    output: &mut [[f64; NORMALS_PER_CALL]],
) {
    set.run(BoxMuller { key, position, block, trial, output });
}

struct BoxMuller<'a> {
    key: [u32; 2],
    position: u64,
    block: u32,
    trial: u32,
    output: &'a mut [[f64; NORMALS_PER_CALL]],
}

impl Kernel for BoxMuller<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        for (call, output) in self.output.iter_mut().enumerate() {
            let position = self.position.wrapping_add((call * LANES) as u64);
            let positions: [u64; LANES] = std::array::from_fn(|lane| position.wrapping_add(lane as u64));
            let counter = [
                positions.map(|position| position & 0xFFFF_FFFF),
                positions.map(|position| position >> 32),
                [u64::from(self.block); LANES],
                [u64::from(self.trial); LANES],
            ];
            let words = philox(counter, self.key);
            let radius = radius::<A>(uniform(words[0], words[1]));
            let (sine, cosine) = circle::<A>(uniform(words[2], words[3]));
            for lane in 0..LANES {
                output[2 * lane] = radius[lane] * cosine[lane];
                output[2 * lane + 1] = radius[lane] * sine[lane];
            }
        }
    }
}

/// The Philox4x32-10 bijection on all counters at once; words are kept in 64-bit lanes.
#[inline(always)]
fn philox(mut counter: [[u64; LANES]; 4], mut key: [u32; 2]) -> [[u64; LANES]; 4] {
    const LOW: u64 = 0xFFFF_FFFF;
    for _ in 0..10 {
        let mut next = [[0; LANES]; 4];
        for lane in 0..LANES {
            let even = counter[0][lane] * 0xD251_1F53;
            let odd = counter[2][lane] * 0xCD9E_8D57;
            next[0][lane] = (odd >> 32) ^ counter[1][lane] ^ u64::from(key[0]);
            next[1][lane] = odd & LOW;
            next[2][lane] = (even >> 32) ^ counter[3][lane] ^ u64::from(key[1]);
            next[3][lane] = even & LOW;
        }
        counter = next;
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    counter
}

/// (k + ½)/2⁵² for the 52 highest of 64 bits: inside (0, 1), the same as `Stream::uniform`.
#[inline(always)]
fn uniform(high: [u64; LANES], low: [u64; LANES]) -> [f64; LANES] {
    let mut uniform = [0.0; LANES];
    for lane in 0..LANES {
        let bits = high[lane] << 32 | low[lane];
        uniform[lane] =
            f64::from_bits(0x3FF0_0000_0000_0000 | bits >> 12) - (1.0 - 0.5 / 4_503_599_627_370_496.0);
    }
    uniform
}

/// √(−2 ln u) for u in (0, 1).
#[inline(always)]
fn radius<A: Arithmetic>(u: [f64; LANES]) -> [f64; LANES] {
    // 2 atanh(f)/f as a polynomial in f²; relative error 2e-18 for |f| ≤ 0.1716.
    const ATANH: [f64; 8] = [
        2.0,
        0.666_666_666_666_676_5,
        0.399_999_999_993_014_86,
        0.285_714_287_608_349_3,
        0.222_221_970_360_782_4,
        0.181_836_328_031_802_76,
        0.153_124_980_779_139_24,
        0.148_100_248_017_037,
    ];
    const ROOT_HALF_BITS: u64 = 0x3FE6_A09E_667F_3BCD;
    const EXPONENT_OF_ONE: u64 = 0x3FF0_0000_0000_0000;
    // u = 2ᵉ m with m in [√½, √2); f = (m − 1)/(m + 1).
    let mut exponent = [0.0; LANES];
    let mut f = [0.0; LANES];
    let mut square = [0.0; LANES];
    for lane in 0..LANES {
        let shifted = u[lane].to_bits().wrapping_add(EXPONENT_OF_ONE - ROOT_HALF_BITS);
        let mantissa = f64::from_bits((shifted & 0x000F_FFFF_FFFF_FFFF).wrapping_add(ROOT_HALF_BITS));
        // The exponent as a float through its bits: AVX2 has no conversion of 64-bit integers.
        exponent[lane] = f64::from_bits(0x4330_0000_0000_0000 | shifted >> 52) - 4_503_599_627_371_519.0;
        f[lane] = (mantissa - 1.0) / (mantissa + 1.0);
        square[lane] = f[lane] * f[lane];
    }
    let series = polynomial::<f64, A, LANES>(&ATANH, square);
    let mut radius = [0.0; LANES];
    for lane in 0..LANES {
        let low = A::multiply_add(exponent[lane], f64::LN_2_LOW, f[lane] * series[lane]);
        let log = A::multiply_add(exponent[lane], f64::LN_2_HIGH, low);
        radius[lane] = (-2.0 * log).sqrt();
    }
    radius
}

/// sin and cos of 2πv for v in (0, 1).
#[inline(always)]
fn circle<A: Arithmetic>(v: [f64; LANES]) -> ([f64; LANES], [f64; LANES]) {
    // sin(x)/x and cos(x) as polynomials in x², |x| ≤ π/4; relative errors below 4e-18 and 5e-20.
    const SINE: [f64; 7] = [
        1.0,
        -0.166_666_666_666_666_17,
        0.008_333_333_333_320_356,
        -0.000_198_412_698_286_452_6,
        2.755_731_337_464_985_6e-6,
        -2.505_071_669_669_567_6e-8,
        1.589_472_030_022_311e-10,
    ];
    const COSINE: [f64; 8] = [
        1.0,
        -0.5,
        0.041_666_666_666_666_45,
        -0.001_388_888_888_886_108,
        2.480_158_728_387_408_3e-5,
        -2.755_731_309_595_640_6e-7,
        2.087_558_214_647_743_4e-9,
        -1.135_336_795_783_079_2e-11,
    ];
    let mut quarter = [0; LANES];
    let mut angle = [0.0; LANES];
    let mut square = [0.0; LANES];
    for lane in 0..LANES {
        let shifted = A::multiply_add(v[lane], 4.0, f64::ROUNDER);
        // The quarter turn, in the two lowest bits.
        quarter[lane] = shifted.to_bits();
        let turns = A::multiply_add(v[lane], 4.0, f64::ROUNDER - shifted);
        angle[lane] = turns * std::f64::consts::FRAC_PI_2;
        square[lane] = angle[lane] * angle[lane];
    }
    let odd_part = polynomial::<f64, A, LANES>(&SINE, square);
    let even_part = polynomial::<f64, A, LANES>(&COSINE, square);
    let (mut sine, mut cosine) = ([0.0; LANES], [0.0; LANES]);
    for lane in 0..LANES {
        let (odd, even) = ((odd_part[lane] * angle[lane]).to_bits(), even_part[lane].to_bits());
        // All ones where the two swap places.
        let swap = 0u64.wrapping_sub(quarter[lane] & 1);
        let difference = (odd ^ even) & swap;
        sine[lane] = f64::from_bits(odd ^ difference ^ (quarter[lane] >> 1 & 1) << 63);
        cosine[lane] = f64::from_bits(even ^ difference ^ ((quarter[lane] >> 1 ^ quarter[lane]) & 1) << 63);
    }
    (sine, cosine)
}
