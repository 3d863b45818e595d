//! Numbers that remember how they were made, so that a literal transcription yields its own gradient.
//!
//! The tape belongs to the thread and lives as long as one call of [`gradient`] or [`operations`].

use crate::number::Number;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

/// A value and its place on this thread's tape.
#[derive(Debug, Clone, Copy)]
pub struct Traced {
    value: f64,
    node: Option<u32>,
}

/// One operation: what it was made of, with the derivatives.
#[derive(Clone, Copy)]
struct Node {
    parents: [(Option<u32>, f64); 2],
}

thread_local! {
    static TAPE: RefCell<Vec<Node>> = const { RefCell::new(Vec::new()) };
}

/// The value of a function and its gradient at a point, by reverse accumulation.
///
/// ```
/// use esscher_zoo::traced::gradient;
/// use esscher_zoo::Number;
/// let (value, slope) = gradient(&[2.0, 3.0], |x| x[0] * x[1].exp());
/// assert_eq!(value, 2.0 * 3f64.exp());
/// assert_eq!(slope, [3f64.exp(), 2.0 * 3f64.exp()]);
/// ```
pub fn gradient(at: &[f64], function: impl FnOnce(&[Traced]) -> Traced) -> (f64, Vec<f64>) {
    let (result, nodes) = record(at, function);
    let mut adjoints = vec![0.0; nodes.len()];
    if let Some(node) = result.node {
        adjoints[node as usize] = 1.0;
    }
    for index in (at.len()..nodes.len()).rev() {
        let adjoint = adjoints[index];
        if adjoint != 0.0 {
            for (parent, derivative) in nodes[index].parents {
                if let Some(parent) = parent {
                    adjoints[parent as usize] += adjoint * derivative;
                }
            }
        }
    }
    adjoints.truncate(at.len());
    (result.value, adjoints)
}

/// How many operations on `at` a function performs: its cost, free of clocks.
pub fn operations(at: &[f64], function: impl FnOnce(&[Traced]) -> Traced) -> usize {
    record(at, function).1.len() - at.len()
}

fn record(at: &[f64], function: impl FnOnce(&[Traced]) -> Traced) -> (Traced, Vec<Node>) {
    let outer = TAPE.take();
    let variables: Vec<Traced> =
        at.iter().map(|&value| Traced { value, node: push([(None, 0.0); 2]) }).collect();
    let result = function(&variables);
    (result, TAPE.replace(outer))
}

fn push(parents: [(Option<u32>, f64); 2]) -> Option<u32> {
    TAPE.with_borrow_mut(|tape| {
        tape.push(Node { parents });
        u32::try_from(tape.len() - 1).ok()
    })
}

impl Traced {
    fn unary(self, value: f64, derivative: f64) -> Self {
        let node = self.node.and_then(|node| push([(Some(node), derivative), (None, 0.0)]));
        Traced { value, node }
    }

    fn binary(self, other: Self, value: f64, left: f64, right: f64) -> Self {
        if self.node.is_none() && other.node.is_none() {
            return Traced { value, node: None };
        }
        Traced { value, node: push([(self.node, left), (other.node, right)]) }
    }
}

impl PartialEq for Traced {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl PartialOrd for Traced {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.value.partial_cmp(&other.value)
    }
}

impl Add for Traced {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        self.binary(other, self.value + other.value, 1.0, 1.0)
    }
}

impl Sub for Traced {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.binary(other, self.value - other.value, 1.0, -1.0)
    }
}

impl Mul for Traced {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        self.binary(other, self.value * other.value, other.value, self.value)
    }
}

impl Div for Traced {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        let value = self.value / other.value;
        self.binary(other, value, 1.0 / other.value, -value / other.value)
    }
}

impl Neg for Traced {
    type Output = Self;
    fn neg(self) -> Self {
        self.unary(-self.value, -1.0)
    }
}

impl AddAssign for Traced {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Traced {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl MulAssign for Traced {
    fn mul_assign(&mut self, other: Self) {
        *self = *self * other;
    }
}

impl Number for Traced {
    fn constant(value: f64) -> Self {
        Traced { value, node: None }
    }
    fn value(self) -> f64 {
        self.value
    }
    fn exp(self) -> Self {
        let value = self.value.exp();
        self.unary(value, value)
    }
    fn exp_m1(self) -> Self {
        self.unary(self.value.exp_m1(), self.value.exp())
    }
    fn ln(self) -> Self {
        self.unary(self.value.ln(), 1.0 / self.value)
    }
    fn ln_1p(self) -> Self {
        self.unary(self.value.ln_1p(), 1.0 / (1.0 + self.value))
    }
    fn sqrt(self) -> Self {
        let value = self.value.sqrt();
        self.unary(value, 0.5 / value)
    }
    fn tanh(self) -> Self {
        let value = self.value.tanh();
        self.unary(value, 1.0 - value * value)
    }
    fn sin(self) -> Self {
        self.unary(self.value.sin(), self.value.cos())
    }
    fn cos(self) -> Self {
        self.unary(self.value.cos(), -self.value.sin())
    }
}
