//! The numbers that definitions are written over: f32, f64, and [`Traced`](crate::traced::Traced), which remembers how it was made.

use crate::kernels::matrix::Matrix;
use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::{
    solve_unit_lower_triangular_in_place, solve_unit_upper_triangular_in_place,
};
use faer::{Accum, MatMut, Par};
use std::fmt::Debug;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

/// What a definition may do with a number. Comparisons look at the value.
///
/// Reference and recurrent forms are written once over this trait. With [`Traced`](crate::traced::Traced) numbers they
/// yield their own gradients, which hand-written backward passes are checked against.
pub trait Number:
    Copy
    + Debug
    + PartialOrd
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
{
    /// A constant.
    fn constant(value: f64) -> Self;
    /// The value, as f64.
    fn value(self) -> f64;
    /// e^x.
    fn exp(self) -> Self;
    /// e^x − 1, accurate near zero.
    fn exp_m1(self) -> Self;
    /// ln x.
    fn ln(self) -> Self;
    /// ln(1 + x), accurate near zero.
    fn ln_1p(self) -> Self;
    /// √x.
    fn sqrt(self) -> Self;
    /// tanh x.
    fn tanh(self) -> Self;
    /// sin x.
    fn sin(self) -> Self;
    /// cos x.
    fn cos(self) -> Self;

    /// 0.
    fn zero() -> Self {
        Self::constant(0.0)
    }

    /// 1.
    fn one() -> Self {
        Self::constant(1.0)
    }

    /// The larger of two numbers.
    fn larger(self, other: Self) -> Self {
        if self < other { other } else { self }
    }

    /// |x|.
    fn magnitude(self) -> Self {
        if self.value() < 0.0 { -self } else { self }
    }

    /// max(x, 0).
    fn relu(self) -> Self {
        if self.value() > 0.0 { self } else { Self::zero() }
    }

    /// 1 / (1 + e^{−x}), without overflow.
    fn sigmoid(self) -> Self {
        if self.value() >= 0.0 {
            Self::one() / (Self::one() + (-self).exp())
        } else {
            let e = self.exp();
            e / (Self::one() + e)
        }
    }

    /// ln(1 + e^x), without overflow.
    fn softplus(self) -> Self {
        if self.value() > 0.0 { self + (-self).exp().ln_1p() } else { self.exp().ln_1p() }
    }

    /// ln σ(x) = −softplus(−x).
    fn log_sigmoid(self) -> Self {
        -(-self).softplus()
    }
}

/// f32 or f64: the numbers that the chunked forms work on.
pub trait Real: Number + Default {
    /// Bytes of one number.
    const BYTES: usize;

    /// The largest finite number.
    const LARGEST: Self;

    /// Replaces every x ≤ 0 by e^x with the fastest instructions of the machine; tiny, never zero, for anything low.
    fn exponentials(values: &mut [Self]);

    /// to ← factor · left · right, added to what is there if `add`; see [`crate::kernels::matrix`].
    fn product(to: &mut [Self], add: bool, factor: Self, left: Matrix<'_, Self>, right: Matrix<'_, Self>);

    /// to ← (I + L)⁻¹ to; see [`crate::kernels::matrix::solve_unit_triangle`].
    fn solve_unit_triangle(to: &mut [Self], lower: Matrix<'_, Self>);
}

macro_rules! real {
    ($type:ty, $exponentials:path) => {
        impl Number for $type {
            fn constant(value: f64) -> Self {
                value as $type
            }
            fn value(self) -> f64 {
                f64::from(self)
            }
            fn exp(self) -> Self {
                <$type>::exp(self)
            }
            fn exp_m1(self) -> Self {
                <$type>::exp_m1(self)
            }
            fn ln(self) -> Self {
                <$type>::ln(self)
            }
            fn ln_1p(self) -> Self {
                <$type>::ln_1p(self)
            }
            fn sqrt(self) -> Self {
                <$type>::sqrt(self)
            }
            fn tanh(self) -> Self {
                <$type>::tanh(self)
            }
            fn sin(self) -> Self {
                <$type>::sin(self)
            }
            fn cos(self) -> Self {
                <$type>::cos(self)
            }
        }

        impl Real for $type {
            const BYTES: usize = size_of::<$type>();
            const LARGEST: Self = <$type>::MAX;

            fn exponentials(values: &mut [Self]) {
                $exponentials(values);
            }

            fn product(
                to: &mut [Self],
                add: bool,
                factor: Self,
                left: Matrix<'_, Self>,
                right: Matrix<'_, Self>,
            ) {
                let (left, right) = (left.view(), right.view());
                let (rows, columns) = (left.nrows(), right.ncols());
                let to = MatMut::from_row_major_slice_mut(&mut to[..rows * columns], rows, columns);
                let accumulate = if add { Accum::Add } else { Accum::Replace };
                matmul(to, accumulate, left, right, factor, Par::Seq);
            }

            fn solve_unit_triangle(to: &mut [Self], lower: Matrix<'_, Self>) {
                let view = lower.view();
                let rows = view.nrows();
                let columns = to.len() / rows;
                let to = MatMut::from_row_major_slice_mut(to, rows, columns);
                if lower.is_transposed() {
                    solve_unit_upper_triangular_in_place(view, to, Par::Seq);
                } else {
                    solve_unit_lower_triangular_in_place(view, to, Par::Seq);
                }
            }
        }
    };
}

real!(f32, esscher_core::numerics::exponentials_f32);
real!(f64, esscher_core::numerics::exponentials_f64);
