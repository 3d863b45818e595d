//! σ(x) and σ(−x) of many numbers at once, both accurate to the last digits wherever x lies.

use crate::number::Real;

/// Writes σ(x) to `up` and σ(−x) = 1 − σ(x) to `down`. The derivative of both is σ(x) σ(−x), up to sign.
pub(crate) fn logistic<T: Real>(arguments: &[T], up: &mut [T], down: &mut [T]) {
    for (e, x) in down.iter_mut().zip(arguments) {
        *e = -x.magnitude();
    }
    T::exponentials(&mut down[..arguments.len()]);
    for ((up, down), x) in up.iter_mut().zip(down).zip(arguments) {
        let large = T::one() / (T::one() + *down);
        let small = *down * large;
        (*up, *down) = if *x < T::zero() { (small, large) } else { (large, small) };
    }
}
