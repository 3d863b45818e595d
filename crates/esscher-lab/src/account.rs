//! How much of a plan is done, by cost: what progress displays show.

use crate::experiment::Unit;
use std::collections::HashMap;

/// A unit counts at least this many seconds, so that plans of nothing but cheap units move too.
const LEAST_COST: f64 = 1e-3;

/// The cost of a plan's units, and the part of it that is done.
///
/// ```
/// use esscher_lab::{Account, Unit};
/// let unit = |cost| Unit { label: String::new(), cost };
/// let mut account = Account::new(&[(0, unit(1.0), true), (1, unit(3.0), false)]);
/// account.advance(1, 0.5);
/// assert_eq!((account.fraction(), account.fraction_when_begun()), (2.5 / 4.0, 1.0 / 4.0));
/// account.finish(1);
/// assert_eq!((account.fraction(), account.finished(), account.units()), (1.0, 2, 2));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Account {
    /// The cost of each unit, and the part of it that is done, from 0 to 1.
    units: HashMap<usize, (f64, f64)>,
    total: f64,
    done: f64,
    kept: f64,
    finished: usize,
}

impl Account {
    /// The account of a plan: units by number, and whether each is there already.
    pub fn new(plan: &[(usize, Unit, bool)]) -> Self {
        let mut account = Account::default();
        for (unit, described, is_done) in plan {
            let cost = described.cost.max(LEAST_COST);
            account.units.insert(*unit, (cost, f64::from(u8::from(*is_done))));
            account.total += cost;
            if *is_done {
                account.kept += cost;
                account.finished += 1;
            }
        }
        account.done = account.kept;
        account
    }

    /// A unit has done this part of its work, from 0 to 1.
    pub fn advance(&mut self, unit: usize, part: f64) {
        if let Some((cost, known)) = self.units.get_mut(&unit) {
            let gain = (part.clamp(0.0, 1.0) - *known).max(0.0);
            *known += gain;
            self.done += gain * *cost;
        }
    }

    /// A unit is finished.
    pub fn finish(&mut self, unit: usize) {
        self.advance(unit, 1.0);
        self.finished += 1;
    }

    /// The part of the whole cost that is done, from 0 to 1.
    pub fn fraction(&self) -> f64 {
        (self.done / self.total.max(1e-9)).min(1.0)
    }

    /// The part that was there when the account was opened: it took no time now.
    pub fn fraction_when_begun(&self) -> f64 {
        self.kept / self.total.max(1e-9)
    }

    /// Units that are finished.
    pub fn finished(&self) -> usize {
        self.finished
    }

    /// Units of the plan.
    pub fn units(&self) -> usize {
        self.units.len()
    }
}
