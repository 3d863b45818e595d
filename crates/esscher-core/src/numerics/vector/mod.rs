//! Vector arithmetic with run-time choice of the instruction set: the one place of this crate with `unsafe` code.
//!
//! A [`Kernel`] is written once, over the [`Register`] of an [`Arithmetic`] (or arrays of lanes);
//! [`InstructionSet::run`] compiles it for each instruction set and calls the right one. AVX2 and AVX-512 use
//! fused multiply-add and give the same bits as each other, since lanes never mix and the order of every sum is
//! fixed by the kernel; the portable set rounds twice and gives the same bits on every machine. Compiled with
//! `RUSTFLAGS="--cfg esscher_portable"` there is no other.

#![allow(clippy::needless_range_loop, reason = "loops over lanes read and write several arrays")]
#![allow(clippy::excessive_precision, reason = "coefficients stand as they were computed")]

mod exponentials;
mod functions;
mod loops;
mod normals;
mod register;

pub use exponentials::{exponentials_f32, exponentials_f64};
pub use loops::{MultiplyAdd, VectorLoops, vectorised};

pub(crate) use functions::{Real, exp};
pub(crate) use normals::{NORMALS_PER_CALL, normals};
pub(crate) use register::Register;

use std::fmt;

/// The instructions that vector kernels are compiled for; a value exists only where they can run.
///
/// ```
/// use esscher_core::numerics::InstructionSet;
/// let fastest = InstructionSet::best();
/// assert_eq!(InstructionSet::named(&fastest.to_string())?, fastest);
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstructionSet(Kind);

/// Private, so that only checked constructors can promise AVX.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Portable,
    Avx2,
    Avx512,
    /// The lanes of AVX2, emulated: for tests on machines that lack it.
    #[cfg(test)]
    Emulated4,
    /// The lanes of AVX-512, emulated.
    #[cfg(test)]
    Emulated8,
}

impl InstructionSet {
    /// Plain multiplications and additions: the same bits on every machine.
    pub const PORTABLE: InstructionSet = InstructionSet(Kind::Portable);

    /// The fastest set of this machine.
    pub fn best() -> Self {
        [Kind::Avx512, Kind::Avx2]
            .into_iter()
            .find(|kind| kind.is_here())
            .map_or(Self::PORTABLE, InstructionSet)
    }

    /// Every set that runs on this machine, the portable one first.
    pub fn available() -> Vec<Self> {
        [Kind::Portable, Kind::Avx2, Kind::Avx512]
            .into_iter()
            .filter(|kind| kind.is_here())
            .map(InstructionSet)
            .collect()
    }

    /// Every set whose a · b + c rounds once, emulated ones first: on any machine registers of both widths are compared.
    #[cfg(test)]
    pub(crate) fn fused() -> Vec<Self> {
        let real = InstructionSet::available().into_iter().skip(1);
        [Kind::Emulated4, Kind::Emulated8].map(InstructionSet).into_iter().chain(real).collect()
    }

    /// The set of this name: `portable`, `avx2` or `avx512`.
    ///
    /// # Errors
    /// An unknown name, or a set that this machine does not have.
    pub fn named(name: &str) -> crate::Result<Self> {
        InstructionSet::available().into_iter().find(|set| set.to_string() == name).ok_or_else(|| {
            crate::Error::InstructionSet {
                name: name.to_string(),
                available: InstructionSet::available()
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(", "),
            }
        })
    }

    /// Runs a kernel compiled for this set.
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self.0 {
            Kind::Portable => kernel.run::<Portable>(),
            #[cfg(test)]
            Kind::Emulated4 => kernel.run::<Emulated<4>>(),
            #[cfg(test)]
            Kind::Emulated8 => kernel.run::<Emulated<8>>(),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => {
                // SAFETY: a value with this kind is only made by `best`, `available` and `named`, after
                // `is_here` has found AVX2 and FMA on this processor.
                #[allow(unsafe_code)]
                unsafe {
                    with_avx2(kernel)
                }
            }
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => {
                // SAFETY: as above, for AVX-512F, DQ, VL and FMA.
                #[allow(unsafe_code)]
                unsafe {
                    with_avx512(kernel)
                }
            }
            #[cfg(not(target_arch = "x86_64"))]
            Kind::Avx2 | Kind::Avx512 => kernel.run::<Portable>(),
        }
    }
}

impl Kind {
    fn is_here(self) -> bool {
        match self {
            Kind::Portable => true,
            #[cfg(test)]
            Kind::Emulated4 | Kind::Emulated8 => true,
            // As on a machine that has nothing else; CI tests it so.
            _ if cfg!(esscher_portable) => false,
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => {
                Kind::Avx2.is_here()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Kind::Avx2 | Kind::Avx512 => false,
        }
    }
}

impl fmt::Display for InstructionSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.0 {
            Kind::Portable => "portable",
            Kind::Avx2 => "avx2",
            Kind::Avx512 => "avx512",
            #[cfg(test)]
            Kind::Emulated4 => "emulated registers of 4 lanes",
            #[cfg(test)]
            Kind::Emulated8 => "emulated registers of 8 lanes",
        })
    }
}

/// The registers of an instruction set, and how it rounds a · b + c.
pub(crate) trait Arithmetic: Copy {
    type Register<T: Real>: Register<T>;
    fn multiply_add<T: Real>(a: T, b: T, c: T) -> T;
}

/// Two roundings, available everywhere.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

/// One rounding, in registers of 256 bits.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct Avx2;

/// One rounding, in registers of 512 bits.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct Avx512;

impl Arithmetic for Portable {
    type Register<T: Real> = register::Portable<T>;

    #[inline(always)]
    fn multiply_add<T: Real>(a: T, b: T, c: T) -> T {
        a * b + c
    }
}

/// One rounding, in arrays of so many lanes.
#[cfg(test)]
#[derive(Clone, Copy)]
struct Emulated<const WIDTH: usize>;

#[cfg(test)]
impl<const WIDTH: usize> Arithmetic for Emulated<WIDTH> {
    type Register<T: Real> = register::Lanes<T, WIDTH, true>;

    #[inline(always)]
    fn multiply_add<T: Real>(a: T, b: T, c: T) -> T {
        a.fused_multiply_add(b, c)
    }
}

#[cfg(target_arch = "x86_64")]
impl Arithmetic for Avx2 {
    type Register<T: Real> = T::Register256;

    #[inline(always)]
    fn multiply_add<T: Real>(a: T, b: T, c: T) -> T {
        a.fused_multiply_add(b, c)
    }
}

#[cfg(target_arch = "x86_64")]
impl Arithmetic for Avx512 {
    type Register<T: Real> = T::Register512;

    #[inline(always)]
    fn multiply_add<T: Real>(a: T, b: T, c: T) -> T {
        a.fused_multiply_add(b, c)
    }
}

/// Work that is compiled once per instruction set. `run` and all that it calls must be `#[inline(always)]`.
pub(crate) trait Kernel {
    type Output;
    fn run<A: Arithmetic>(self) -> Self::Output;
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn with_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Avx2>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,avx512f,avx512dq,avx512vl")]
fn with_avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Avx512>()
}
