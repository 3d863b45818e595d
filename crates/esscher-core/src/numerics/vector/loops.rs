//! Plain loops of other crates, compiled for each instruction set and run with the best one of this machine.

use super::{Arithmetic, InstructionSet, Kernel};
use std::marker::PhantomData;

/// Loops over slices that the compiler turns into vector instructions. `run` and all that it calls must be
/// `#[inline(always)]`; sums need lanes of their own (arrays of 8 or 16), since the order of additions is kept.
///
/// ```
/// use esscher_core::numerics::{MultiplyAdd, VectorLoops, vectorised};
/// struct Scaled<'a>(f32, &'a [f32], &'a mut [f32]);
/// impl VectorLoops for Scaled<'_> {
///     type Output = ();
///     #[inline(always)]
///     fn run<M: MultiplyAdd>(self) {
///         for (to, from) in self.2.iter_mut().zip(self.1) {
///             *to = M::multiply_add(self.0, *from, *to);
///         }
///     }
/// }
/// let mut to = [1.0; 3];
/// vectorised(Scaled(2.0, &[1.0, 2.0, 3.0], &mut to));
/// assert_eq!(to, [3.0, 5.0, 7.0]);
/// ```
pub trait VectorLoops {
    /// What the loops give.
    type Output;
    /// The loops, with the a · b + c of an instruction set.
    fn run<M: MultiplyAdd>(self) -> Self::Output;
}

/// How an instruction set rounds a · b + c: once where the processor has a fused instruction, else twice.
pub trait MultiplyAdd {
    /// a · b + c.
    fn multiply_add(a: f32, b: f32, c: f32) -> f32;
}

/// Runs loops compiled for the fastest instruction set of this machine.
pub fn vectorised<L: VectorLoops>(loops: L) -> L::Output {
    InstructionSet::best().run(AsKernel(loops))
}

struct AsKernel<L>(L);

/// The rounding of an arithmetic, without its registers.
struct RoundingOf<A>(PhantomData<A>);

impl<A: Arithmetic> MultiplyAdd for RoundingOf<A> {
    #[inline(always)]
    fn multiply_add(a: f32, b: f32, c: f32) -> f32 {
        A::multiply_add(a, b, c)
    }
}

impl<L: VectorLoops> Kernel for AsKernel<L> {
    type Output = L::Output;

    #[inline(always)]
    fn run<A: Arithmetic>(self) -> L::Output {
        self.0.run::<RoundingOf<A>>()
    }
}
