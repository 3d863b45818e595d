//! Elementary functions by polynomials: the same operations in every lane and on every set.

use super::{Arithmetic, Register};
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
    /// The registers of AVX2 and AVX-512.
    #[cfg(target_arch = "x86_64")]
    type Register256: Register<Self>;
    #[cfg(target_arch = "x86_64")]
    type Register512: Register<Self>;
    const ONE: Self;
    /// The largest finite number.
    const LARGEST: Self;
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
    #[cfg(target_arch = "x86_64")]
    type Register256 = core::arch::x86_64::__m256d;
    #[cfg(target_arch = "x86_64")]
    type Register512 = core::arch::x86_64::__m512d;
    const ONE: f64 = 1.0;
    const LARGEST: f64 = f64::MAX;
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
    #[cfg(target_arch = "x86_64")]
    type Register256 = core::arch::x86_64::__m256;
    #[cfg(target_arch = "x86_64")]
    type Register512 = core::arch::x86_64::__m512;
    const ONE: f32 = 1.0;
    const LARGEST: f32 = f32::MAX;
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

/// exp of every lane, for arguments up to 0 or a little above.
///
/// Within two units in the last place of T (measured: 1.0 in f64, 1.3 in f32); tiny, never zero, for anything low.
/// Several registers at a time: each is one long chain of operations, and the processor works on all chains at once.
#[inline(always)]
pub(crate) fn exp<T: Real, R: Register<T>, const N: usize>(mut x: [R; N]) -> [R; N] {
    // Plain loops: closures over registers are not always inlined.
    let mut shifted = x;
    for k in 0..N {
        x[k] = x[k].larger(R::splat(T::SMALLEST_EXPONENT));
        // Adding the rounder leaves the integer n = round(x / ln 2) in the lowest bits.
        shifted[k] = x[k].multiply_add(R::splat(T::LOG2_E), R::splat(T::ROUNDER));
        let n = R::splat(T::ROUNDER).subtract(shifted[k]);
        x[k] = n.multiply_add(R::splat(T::LN_2_LOW), n.multiply_add(R::splat(T::LN_2_HIGH), x[k]));
    }
    let highest = T::EXP.len() - 1;
    let mut value = [R::splat(T::EXP[highest]); N];
    for &coefficient in T::EXP[..highest].iter().rev() {
        for k in 0..N {
            value[k] = value[k].multiply_add(x[k], R::splat(coefficient));
        }
    }
    for k in 0..N {
        value[k] = value[k].scale_by_power(shifted[k]);
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

#[cfg(test)]
mod tests {
    use super::super::{InstructionSet, Kernel};
    use super::*;

    struct ExpOfEach<'a, T>(&'a mut [T]);

    impl<T: Real> Kernel for ExpOfEach<'_, T> {
        type Output = ();

        #[inline(always)]
        fn run<A: Arithmetic>(self) {
            for lanes in self.0.chunks_exact_mut(A::Register::<T>::WIDTH) {
                let [value] = exp([A::Register::<T>::load(lanes)]);
                value.store(lanes);
            }
        }
    }

    /// The largest error over a fine grid of [lowest, 0.5], in units of the last place of T.
    fn largest_error<T: Real>(set: InstructionSet, lowest: f64, epsilon: f64) -> f64 {
        let arguments: Vec<T> = (0..1 << 20)
            .map(|k| T::from_f64(0.5 + (lowest - 0.5) * f64::from(k) / f64::from(1 << 20)))
            .collect();
        let mut values = arguments.clone();
        set.run(ExpOfEach(&mut values));
        arguments.iter().zip(&values).fold(0.0, |largest: f64, (argument, value)| {
            let exact = argument.to_f64().exp();
            let unit = exact.log2().floor().exp2() * epsilon;
            largest.max((value.to_f64() - exact).abs() / unit)
        })
    }

    /// The reference is the system's exp in f64, itself within one unit; f64 may use that up.
    #[test]
    fn exp_is_within_the_stated_units_in_the_last_place_on_every_set() {
        for set in InstructionSet::available() {
            let double = largest_error::<f64>(set, -708.0, f64::EPSILON);
            let single = largest_error::<f32>(set, -87.0, f64::from(f32::EPSILON));
            println!("{set}: {double:.2} ulp in f64, {single:.2} ulp in f32");
            assert!(double <= 2.0, "{set}: {double} ulp in f64");
            assert!(single <= 2.0, "{set}: {single} ulp in f32");
        }
    }

    #[test]
    fn exp_of_anything_low_is_tiny_and_never_not_a_number() {
        for set in InstructionSet::available() {
            let mut low = [f64::NEG_INFINITY, -1e300, f64::NAN, -709.0].repeat(4);
            set.run(ExpOfEach(&mut low));
            assert!(low.iter().all(|&value| (0.0..1e-300).contains(&value)), "{set}: {low:?}");
            let mut zero = [0.0f32; 16];
            set.run(ExpOfEach(&mut zero));
            assert_eq!(zero, [1.0; 16], "{set}");
        }
    }

    /// Fused multiply-add in lanes that never mix: the width of the registers does not show.
    #[test]
    fn avx2_and_avx512_give_the_same_bits() {
        let exponentials = |set: InstructionSet| {
            let mut values: Vec<f64> = (0..4096).map(|k| -f64::from(k) * 0.17).collect();
            set.run(ExpOfEach(&mut values));
            values
        };
        let sets = InstructionSet::fused();
        for set in &sets[1..] {
            assert_eq!(exponentials(sets[0]), exponentials(*set), "{} and {set}", sets[0]);
        }
    }
}
