//! How far a head's outputs are from the exact ones: relative to themselves, and where it matters, to the residual stream.

use crate::portrait::median;

/// The error of a head's outputs on one text, over the measured queries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Discrepancy {
    /// |approximate − exact| / |exact|, median over queries.
    pub relative: f64,
    /// |W_O (approximate − exact)| / |residual stream|, root mean square over queries: what the layer's reader notices.
    pub residual: Option<f64>,
}

/// At most this many queries of a text are measured: more would only sharpen a median that texts spread far more.
pub const QUERIES: usize = 256;

/// Where a head's output goes.
pub struct Stream<'a> {
    /// |W_O Δ| for rows Δ of `dimension` numbers.
    pub projected_norms: &'a dyn Fn(&[f32]) -> Vec<f32>,
    /// The norm of the residual stream at every token.
    pub norms: &'a [f32],
}

/// Compares two tables of outputs, a row of `dimension` numbers per token, at the queries of these positions. Nothing where there is
/// none: no error is not an error of 0.
pub fn discrepancy(
    approximate: &[f32],
    exact: &[f32],
    dimension: usize,
    positions: &[usize],
    stream: Option<&Stream<'_>>,
) -> Option<Discrepancy> {
    let row =
        |table: &[f32], position: usize| table[position * dimension..(position + 1) * dimension].to_vec();
    let mut differences = Vec::with_capacity(positions.len() * dimension);
    let mut relative = Vec::with_capacity(positions.len());
    for &position in positions {
        let (one, other) = (row(approximate, position), row(exact, position));
        let norm = norm(&other);
        let difference: Vec<f32> = one.iter().zip(&other).map(|(one, other)| one - other).collect();
        let moved = self::norm(&difference);
        // A head that says nothing is answered exactly by nothing.
        relative.push(if moved == 0.0 { 0.0 } else { moved / norm.max(f64::MIN_POSITIVE) });
        differences.extend(difference);
    }
    let residual = stream.map(|stream| {
        let squares: f64 = (stream.projected_norms)(&differences)
            .iter()
            .zip(positions)
            .map(|(moved, position)| {
                (f64::from(*moved) / f64::from(stream.norms[*position]).max(f64::MIN_POSITIVE)).powi(2)
            })
            .sum();
        (squares / positions.len().max(1) as f64).sqrt()
    });
    Some(Discrepancy { relative: median(&mut relative)?, residual })
}

fn norm(vector: &[f32]) -> f64 {
    vector.iter().map(|entry| f64::from(*entry).powi(2)).sum::<f64>().sqrt()
}
