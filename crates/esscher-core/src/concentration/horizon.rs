//! The horizon: the smallest prompt length whose error is at most a tolerance.

use crate::accuracy::Estimate;
use crate::error::{Entry, Error, Result};
use crate::numerics::check;
use crate::prompt::PromptLength;

/// Where an error that falls with the length first meets a tolerance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Horizon {
    /// The error is at most the tolerance at this length, and above it one token earlier. That it stays so at all
    /// longer lengths, and was above at all shorter ones, is assumed: see [`horizon`].
    Found {
        /// The horizon.
        length: PromptLength,
        /// The error there, at most the tolerance.
        error: Estimate,
        /// The error with one token less, above the tolerance; none if one token is enough.
        before: Option<Estimate>,
    },
    /// The longest length asked for is not enough: allow a longer one or a larger tolerance.
    Beyond {
        /// The longest length that was allowed.
        longest: PromptLength,
        /// The error there, above the tolerance.
        error: Estimate,
    },
    /// The monitor asked to stop: the horizon lies between these lengths, as far as they are known.
    Stopped {
        /// The longest length known to be above the tolerance.
        above: Option<PromptLength>,
        /// The shortest length known to be within it.
        within: Option<PromptLength>,
    },
}

impl Horizon {
    /// The word under which tables, documents and every door know the outcome.
    pub fn name(&self) -> &'static str {
        match self {
            Horizon::Found { .. } => "found",
            Horizon::Beyond { .. } => "beyond",
            Horizon::Stopped { .. } => "stopped",
        }
    }

    /// The horizon as a length, unless it lies beyond the longest or was not found.
    pub fn length(&self) -> Option<PromptLength> {
        match self {
            Horizon::Found { length, .. } => Some(*length),
            Horizon::Beyond { .. } | Horizon::Stopped { .. } => None,
        }
    }

    /// The error at the horizon or, beyond, at the longest length.
    pub fn error(&self) -> Option<Estimate> {
        match self {
            Horizon::Found { error, .. } | Horizon::Beyond { error, .. } => Some(*error),
            Horizon::Stopped { .. } => None,
        }
    }

    /// The longest length known to be above the tolerance and the shortest known to be within it.
    pub fn bracket(&self) -> (Option<PromptLength>, Option<PromptLength>) {
        match *self {
            Horizon::Found { length, .. } => (PromptLength::new(length.get() - 1).ok(), Some(length)),
            Horizon::Beyond { longest, .. } => (Some(longest), None),
            Horizon::Stopped { above, within } => (above, within),
        }
    }
}

/// The smallest L from 1 to `longest` with error(L) ≤ tolerance, asking one length at a time.
///
/// Powers of ten until one is good enough, then bisection on whole numbers: at most 53 evaluations, and
/// none beyond ten times the horizon, so that an error whose cost grows with L stays affordable.
///
/// # What is assumed
/// That the lengths with error ≤ tolerance are all those from some length on; a decreasing error has this
/// for every tolerance. If it fails, [`Horizon::Found`] is still a crossing, error(L) ≤ tolerance <
/// error(L − 1), since both ends are evaluated, but there may be an earlier one, and later lengths may be
/// worse again. With errors estimated by simulation that happens near the tolerance: use the same
/// random streams at every length and read the horizon to the precision of the error, not to the token.
///
/// # Errors
/// A tolerance that is not positive and finite, an error that is not finite, or what `error` fails with.
///
/// ```
/// use esscher_core::Estimate;
/// use esscher_core::concentration::horizon;
/// use esscher_core::prompt::PromptLength;
/// let error = |length: PromptLength| Ok(Estimate::exact_to(2.0 / length.as_f64(), 1e-15));
/// let found = horizon(1e-3, PromptLength::MAX, error)?;
/// assert_eq!(found.length(), Some(PromptLength::new(2000)?));
/// # Ok::<(), esscher_core::Error>(())
/// ```
pub fn horizon(
    tolerance: f64,
    longest: PromptLength,
    mut error: impl FnMut(PromptLength) -> Result<Estimate>,
) -> Result<Horizon> {
    check::positive("the tolerance of a horizon", tolerance)?;
    let mut bracket = Bracket::new(tolerance, longest);
    let mut next = PromptLength::MIN;
    loop {
        bracket.record(&[next], &[error(next)?])?;
        next = match bracket.state() {
            State::Open { above } => PromptLength::new(above.saturating_mul(10).clamp(1, longest.get()))?,
            State::Between { above, within } => PromptLength::new(above + (within - above) / 2)?,
            State::Settled(horizon) => return Ok(horizon),
        };
    }
}

/// The smallest L from 1 to `longest` with error(L) ≤ tolerance, asking several lengths per call.
///
/// For errors that cost about the same at one length and at many, as the exact ones do: a logarithmic
/// grid, then sections of the bracket into `lengths_per_call` + 1 parts; with 32 lengths per call at most
/// 9 calls up to 10¹². `error` receives increasing lengths and answers in their order. The assumption is
/// that of [`horizon`]; where it fails, the first crossing of each grid is followed.
///
/// # Errors
/// As [`horizon`], and fewer than two lengths per call or an answer of the wrong size.
pub fn horizon_in_batches(
    tolerance: f64,
    longest: PromptLength,
    lengths_per_call: usize,
    mut error: impl FnMut(&[PromptLength]) -> Result<Vec<Estimate>>,
) -> Result<Horizon> {
    let error = |lengths: &[PromptLength]| error(lengths).map(Some);
    horizon_until_stopped(tolerance, longest, lengths_per_call, lengths_per_call, error)
}

/// The same for errors that may stop on the way, by answering nothing; the first call may be finer.
pub(super) fn horizon_until_stopped(
    tolerance: f64,
    longest: PromptLength,
    first_grid: usize,
    lengths_per_call: usize,
    mut error: impl FnMut(&[PromptLength]) -> Result<Option<Vec<Estimate>>>,
) -> Result<Horizon> {
    check::positive("the tolerance of a horizon", tolerance)?;
    if lengths_per_call < 2 {
        return Err(Error::OutOfRange {
            what: "the number of lengths per call",
            value: lengths_per_call as f64,
            expected: "at least 2",
        });
    }
    let mut bracket = Bracket::new(tolerance, longest);
    let mut lengths = PromptLength::logarithmic(PromptLength::MIN, longest, first_grid);
    loop {
        let Some(errors) = error(&lengths)? else {
            let (above, within) = (bracket.above.map(|known| known.0), bracket.within.map(|known| known.0));
            return Ok(Horizon::Stopped { above, within });
        };
        bracket.record(&lengths, &errors)?;
        lengths = match bracket.state() {
            // The first grid ends at the longest length, so the bracket is never open after it.
            State::Open { .. } => vec![longest],
            State::Between { above, within } => section(above, within, lengths_per_call)?,
            State::Settled(horizon) => return Ok(horizon),
        };
    }
}

/// Up to `count` whole numbers strictly between two others, evenly spread.
fn section(above: u64, within: u64, count: usize) -> Result<Vec<PromptLength>> {
    let (gap, count) = (u128::from(within - above), (count as u128).min(u128::from(within - above) - 1));
    // 128 bits: the product of a gap and a count may exceed 64.
    (1..=count).map(|k| PromptLength::new(above + (gap * k / (count + 1)) as u64)).collect()
}

/// What the evaluations so far say about the crossing.
struct Bracket {
    tolerance: f64,
    longest: PromptLength,
    /// The longest length known to be above the tolerance, below the one known to be within.
    above: Option<(PromptLength, Estimate)>,
    /// The shortest length known to be within the tolerance.
    within: Option<(PromptLength, Estimate)>,
}

enum State {
    /// Nothing longer than `above` (0: nothing at all) has been asked.
    Open {
        above: u64,
    },
    /// The crossing lies between two lengths that are not neighbours.
    Between {
        above: u64,
        within: u64,
    },
    Settled(Horizon),
}

impl Bracket {
    fn new(tolerance: f64, longest: PromptLength) -> Self {
        Bracket { tolerance, longest, above: None, within: None }
    }

    /// Takes in the errors of increasing lengths inside the bracket.
    fn record(&mut self, lengths: &[PromptLength], errors: &[Estimate]) -> Result<()> {
        check::size("the answer of the error function", lengths.len(), errors.len())?;
        for (index, (&length, &error)) in lengths.iter().zip(errors).enumerate() {
            if !error.value.is_finite() {
                let (what, entry) = ("the answer of the error function", Entry::Index(index));
                return Err(Error::NotFinite { what, entry, value: error.value });
            }
            if error.value <= self.tolerance {
                self.within = Some((length, error));
                return Ok(());
            }
            self.above = Some((length, error));
        }
        Ok(())
    }

    fn state(&self) -> State {
        match (self.above, self.within) {
            (None, None) => State::Open { above: 0 },
            (Some((above, error)), None) if above == self.longest => {
                State::Settled(Horizon::Beyond { longest: self.longest, error })
            }
            (Some((above, _)), None) => State::Open { above: above.get() },
            // The first length asked for is 1, in either search.
            (None, Some((length, error))) => State::Settled(Horizon::Found { length, error, before: None }),
            (Some((above, before)), Some((length, error))) => {
                if length.get() - above.get() == 1 {
                    State::Settled(Horizon::Found { length, error, before: Some(before) })
                } else {
                    State::Between { above: above.get(), within: length.get() }
                }
            }
        }
    }
}
