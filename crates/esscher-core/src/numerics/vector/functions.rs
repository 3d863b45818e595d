//! Elementary functions on arrays of lanes, by polynomials: the same operations in every lane and on every set.

use super::Arithmetic;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

/// f32 or f64 inside a vector kernel.
pub(crate) trait Real:
    Copy
    + PartialOrd
    + Default
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + AddAssign
{
    /// e^x for |x| ≤ ln 2 / 2, lowest coefficient first.
    const EXP: &'static [Self];
    /// 1/ln 2, ln 2 in two parts whose first is short, and the number that rounds to an integer.
    const LOG2_E: Self;
    const LN_2_HIGH: Self;
    const LN_2_LOW: Self;
    const ROUNDER: Self;
    /// Arguments of `exp` below this are raised to it.
    const SMALLEST_EXPONENT: Self;
    fn from_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;
    fn fused_multiply_add(self, b: Self, c: Self) -> Self;
    /// value · 2ⁿ for n = shifted − ROUNDER, through the bits.
    fn scale_by_power(self, shifted: Self) -> Self;
}

impl Real for f64 {
    // Interpolation at Chebyshev nodes; relative error 5e-18.
    const EXP: &'static [f64] = &[
        1.0,
        1.0,
        0.500_000_000_000_001_8,
        0.166_666_666_666_666_8,
        0.041_666_666_666_487_95,
        0.008_333_333_333_319_59,
        0.001_388_888_895_235_286_3,
        0.000_198_412_698_900_764_03,
        2.480_148_544_156_131_3e-5,
        2.755_724_088_722_987e-6,
        2.763_265_472_252_779e-7,
        2.511_004_920_481_866e-8,
    ];
    const LOG2_E: f64 = std::f64::consts::LOG2_E;
    const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    const ROUNDER: f64 = 6_755_399_441_055_744.0;
    const SMALLEST_EXPONENT: f64 = -708.0;

    #[inline(always)]
    fn from_f64(value: f64) -> f64 {
        value
    }

    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }

    #[inline(always)]
    fn fused_multiply_add(self, b: f64, c: f64) -> f64 {
        self.mul_add(b, c)
    }

    #[inline(always)]
    fn scale_by_power(self, shifted: f64) -> f64 {
        f64::from_bits(self.to_bits().wrapping_add(shifted.to_bits() << 52))
    }
}

impl Real for f32 {
    const EXP: &'static [f32] =
        &[1.0, 1.000_000_04, 0.500_000_005, 0.166_664_15, 0.041_666_353, 0.008_375_135, 0.001_394_112];
    const LOG2_E: f32 = std::f32::consts::LOG2_E;
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    const ROUNDER: f32 = 12_582_912.0;
    const SMALLEST_EXPONENT: f32 = -87.0;

    #[inline(always)]
    fn from_f64(value: f64) -> f32 {
        value as f32
    }

    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    #[inline(always)]
    fn fused_multiply_add(self, b: f32, c: f32) -> f32 {
        self.mul_add(b, c)
    }

    #[inline(always)]
    fn scale_by_power(self, shifted: f32) -> f32 {
        f32::from_bits(self.to_bits().wrapping_add(shifted.to_bits() << 23))
    }
}

/// exp of every lane, for arguments up to 0 or a little above; within one unit in the last place.
#[inline(always)]
pub(crate) fn exp<T: Real, A: Arithmetic, const W: usize>(x: [T; W]) -> [T; W] {
    let zero = T::default();
    let mut shifted = [zero; W];
    let mut rest = [zero; W];
    for lane in 0..W {
        let x = if x[lane] > T::SMALLEST_EXPONENT { x[lane] } else { T::SMALLEST_EXPONENT };
        // Adding the rounder leaves the integer n = round(x / ln 2) in the lowest bits.
        shifted[lane] = A::multiply_add(x, T::LOG2_E, T::ROUNDER);
        let n = T::ROUNDER - shifted[lane];
        rest[lane] = A::multiply_add(n, T::LN_2_LOW, A::multiply_add(n, T::LN_2_HIGH, x));
    }
    let mut value = polynomial::<T, A, W>(T::EXP, rest);
    for lane in 0..W {
        value[lane] = value[lane].scale_by_power(shifted[lane]);
    }
    value
}

/// Horner's rule, lowest coefficient first.
#[inline(always)]
pub(super) fn polynomial<T: Real, A: Arithmetic, const W: usize>(coefficients: &[T], x: [T; W]) -> [T; W] {
    let highest = coefficients.len() - 1;
    let mut value = [coefficients[highest]; W];
    for &coefficient in coefficients[..highest].iter().rev() {
        for lane in 0..W {
            value[lane] = A::multiply_add(value[lane], x[lane], coefficient);
        }
    }
    value
}
