//! e^x of every number of a slice, for kernels outside this crate.

use super::{Arithmetic, InstructionSet, Kernel, Real, Register, exp};

/// Replaces every x ≤ 0 by e^x, with the fastest instructions of this machine.
///
/// Within two units in the last place; tiny, never zero, for anything low.
///
/// ```
/// let mut numbers = [0.0_f32, -1.0, -1e9];
/// esscher_core::numerics::exponentials_f32(&mut numbers);
/// assert!((numbers[1] - (-1f32).exp()).abs() < 1e-7 && numbers[2] < 1e-37);
/// ```
pub fn exponentials_f32(numbers: &mut [f32]) {
    InstructionSet::best().run(OfEach(numbers));
}

/// Replaces every x ≤ 0 by e^x: [`exponentials_f32`] in double precision.
pub fn exponentials_f64(numbers: &mut [f64]) {
    InstructionSet::best().run(OfEach(numbers));
}

struct OfEach<'a, T>(&'a mut [T]);

/// The widest register has this many numbers of four bytes.
const WIDEST: usize = 16;

impl<T: Real> Kernel for OfEach<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        let width = A::Register::<T>::WIDTH;
        let mut fours = self.0.chunks_exact_mut(4 * width);
        for four in &mut fours {
            // Plain loops: closures over registers are not always inlined.
            let mut registers = [A::Register::<T>::splat(T::ONE); 4];
            for k in 0..4 {
                registers[k] = A::Register::<T>::load(&four[k * width..]);
            }
            let registers = exp(registers);
            for k in 0..4 {
                registers[k].store(&mut four[k * width..]);
            }
        }
        for rest in fours.into_remainder().chunks_mut(width) {
            let mut lanes = [T::default(); WIDEST];
            lanes[..rest.len()].copy_from_slice(rest);
            let [value] = exp([A::Register::<T>::load(&lanes)]);
            value.store(&mut lanes);
            rest.copy_from_slice(&lanes[..rest.len()]);
        }
    }
}
