//! Vector registers: the operations that kernels need, on arrays (portable) and on the registers of AVX2 and AVX-512.

use super::Real;

/// Several numbers that are worked on together. Lanes never mix, so results do not depend on the width.
pub(crate) trait Register<T>: Copy {
    const WIDTH: usize;
    fn splat(value: T) -> Self;
    /// The first `WIDTH` numbers of a slice that has at least as many.
    fn load(from: &[T]) -> Self;
    fn store(self, to: &mut [T]);
    fn add(self, other: Self) -> Self;
    fn subtract(self, other: Self) -> Self;
    fn multiply(self, other: Self) -> Self;
    /// self · b + c, rounded as the arithmetic of the register says.
    fn multiply_add(self, b: Self, c: Self) -> Self;
    /// The larger; the second where either is not a number.
    fn larger(self, other: Self) -> Self;
    /// self · 2ⁿ for n = shifted − ROUNDER, through the bits.
    fn scale_by_power(self, shifted: Self) -> Self;
}

/// A register of the portable set: multiplication and addition round separately, and four lanes stay in the registers of
/// any 64-bit processor.
pub(crate) type Portable<T> = Lanes<T, 4, false>;

/// A register as an array, whose a · b + c rounds once if it is fused.
#[derive(Clone, Copy)]
pub(crate) struct Lanes<T, const WIDTH: usize, const FUSED: bool>([T; WIDTH]);

impl<T: Real, const WIDTH: usize, const FUSED: bool> Lanes<T, WIDTH, FUSED> {
    #[inline(always)]
    fn each(self, other: Self, operation: impl Fn(T, T) -> T) -> Self {
        Lanes(std::array::from_fn(|lane| operation(self.0[lane], other.0[lane])))
    }
}

impl<T: Real, const WIDTH: usize, const FUSED: bool> Register<T> for Lanes<T, WIDTH, FUSED> {
    const WIDTH: usize = WIDTH;

    #[inline(always)]
    fn splat(value: T) -> Self {
        Lanes([value; WIDTH])
    }

    #[inline(always)]
    fn load(from: &[T]) -> Self {
        let from = &from[..WIDTH];
        Lanes(std::array::from_fn(|lane| from[lane]))
    }

    #[inline(always)]
    fn store(self, to: &mut [T]) {
        to[..WIDTH].copy_from_slice(&self.0);
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.each(other, |a, b| a + b)
    }

    #[inline(always)]
    fn subtract(self, other: Self) -> Self {
        self.each(other, |a, b| a - b)
    }

    #[inline(always)]
    fn multiply(self, other: Self) -> Self {
        self.each(other, |a, b| a * b)
    }

    #[inline(always)]
    fn multiply_add(self, b: Self, c: Self) -> Self {
        if FUSED {
            Lanes(std::array::from_fn(|lane| self.0[lane].fused_multiply_add(b.0[lane], c.0[lane])))
        } else {
            self.multiply(b).add(c)
        }
    }

    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        self.each(other, |a, b| if a > b { a } else { b })
    }

    #[inline(always)]
    fn scale_by_power(self, shifted: Self) -> Self {
        self.each(shifted, T::scale_by_power)
    }
}

/// Implements [`Register`] with the intrinsics of one vector type.
#[cfg(target_arch = "x86_64")]
macro_rules! register {
    ($number:ty, $vector:ident, $width:literal, $mantissa_bits:literal, $splat:ident, $load:ident, $store:ident,
     $add:ident, $subtract:ident, $multiply:ident, $fused:ident, $max:ident,
     $to_bits:ident, $from_bits:ident, $shift:ident, $add_bits:ident) => {
        // SAFETY of all intrinsics below: they need AVX2 and FMA, or AVX-512F. These registers are reached only
        // through the arithmetics `Avx2` and `Avx512`, which only `InstructionSet::run` names, inside functions
        // that are called after the processor was found to have the features. `load` and `store` check their
        // slices, and the instructions need no alignment.
        #[allow(unsafe_code)]
        impl Register<$number> for core::arch::x86_64::$vector {
            const WIDTH: usize = $width;

            #[inline(always)]
            fn splat(value: $number) -> Self {
                unsafe { core::arch::x86_64::$splat(value) }
            }

            #[inline(always)]
            fn load(from: &[$number]) -> Self {
                let from = &from[..$width];
                unsafe { core::arch::x86_64::$load(from.as_ptr()) }
            }

            #[inline(always)]
            fn store(self, to: &mut [$number]) {
                let to = &mut to[..$width];
                unsafe { core::arch::x86_64::$store(to.as_mut_ptr(), self) }
            }

            #[inline(always)]
            fn add(self, other: Self) -> Self {
                unsafe { core::arch::x86_64::$add(self, other) }
            }

            #[inline(always)]
            fn subtract(self, other: Self) -> Self {
                unsafe { core::arch::x86_64::$subtract(self, other) }
            }

            #[inline(always)]
            fn multiply(self, other: Self) -> Self {
                unsafe { core::arch::x86_64::$multiply(self, other) }
            }

            #[inline(always)]
            fn multiply_add(self, b: Self, c: Self) -> Self {
                unsafe { core::arch::x86_64::$fused(self, b, c) }
            }

            #[inline(always)]
            fn larger(self, other: Self) -> Self {
                unsafe { core::arch::x86_64::$max(self, other) }
            }

            #[inline(always)]
            fn scale_by_power(self, shifted: Self) -> Self {
                use core::arch::x86_64::{$add_bits, $from_bits, $shift, $to_bits};
                unsafe { $from_bits($add_bits($to_bits(self), $shift::<$mantissa_bits>($to_bits(shifted)))) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
register!(
    f64,
    __m256d,
    4,
    52,
    _mm256_set1_pd,
    _mm256_loadu_pd,
    _mm256_storeu_pd,
    _mm256_add_pd,
    _mm256_sub_pd,
    _mm256_mul_pd,
    _mm256_fmadd_pd,
    _mm256_max_pd,
    _mm256_castpd_si256,
    _mm256_castsi256_pd,
    _mm256_slli_epi64,
    _mm256_add_epi64
);
#[cfg(target_arch = "x86_64")]
register!(
    f32,
    __m256,
    8,
    23,
    _mm256_set1_ps,
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    _mm256_add_ps,
    _mm256_sub_ps,
    _mm256_mul_ps,
    _mm256_fmadd_ps,
    _mm256_max_ps,
    _mm256_castps_si256,
    _mm256_castsi256_ps,
    _mm256_slli_epi32,
    _mm256_add_epi32
);
#[cfg(target_arch = "x86_64")]
register!(
    f64,
    __m512d,
    8,
    52,
    _mm512_set1_pd,
    _mm512_loadu_pd,
    _mm512_storeu_pd,
    _mm512_add_pd,
    _mm512_sub_pd,
    _mm512_mul_pd,
    _mm512_fmadd_pd,
    _mm512_max_pd,
    _mm512_castpd_si512,
    _mm512_castsi512_pd,
    _mm512_slli_epi64,
    _mm512_add_epi64
);
#[cfg(target_arch = "x86_64")]
register!(
    f32,
    __m512,
    16,
    23,
    _mm512_set1_ps,
    _mm512_loadu_ps,
    _mm512_storeu_ps,
    _mm512_add_ps,
    _mm512_sub_ps,
    _mm512_mul_ps,
    _mm512_fmadd_ps,
    _mm512_max_ps,
    _mm512_castps_si512,
    _mm512_castsi512_ps,
    _mm512_slli_epi32,
    _mm512_add_epi32
);
