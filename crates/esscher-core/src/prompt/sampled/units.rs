//! Finished parts of a simulation by number: what a stopped call returns, what shards hand over, what is merged.

use super::identity::{SampleIdentity, check_same};
use crate::error::{Error, Result};
use crate::numerics::JointSummary;
use crate::numerics::statistics::Summary;
use crate::prompt::PromptLength;
use crate::quantity::PerQuantity;
use std::collections::BTreeMap;

/// Simulated errors at one length.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledLength {
    /// The prompt length L.
    pub length: PromptLength,
    /// Squared errors over the trials, each the average over queries; the score gradient's is empty unless asked for.
    pub errors: PerQuantity<Summary>,
}

/// What one unit, or several folded together, contributes.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledUnit {
    /// The simulation that it is a part of.
    pub identity: SampleIdentity,
    /// For every length in order.
    pub lengths: Vec<SampledLength>,
    /// Mean and covariance over trials of the vector of errors at all lengths, which are prefixes of the same
    /// prompts: the rate fits need them.
    pub joint: PerQuantity<JointSummary>,
}

/// Finished units by number: what a stopped call returns, what shards hand over, what is merged.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SampledUnits {
    /// The finished units.
    pub units: BTreeMap<u32, SampledUnit>,
}

impl SampledUnits {
    /// Adds the units of another share or machine.
    ///
    /// # Errors
    /// [`Error::OtherSimulation`] if the units come from different simulations (another instruction set is another
    /// simulation), [`Error::OutOfRange`] if a unit is in both and its bits differ. Nothing is added then.
    pub fn merge(&mut self, other: SampledUnits) -> Result<()> {
        let mut identities = self.units.values().chain(other.units.values()).map(|unit| unit.identity);
        if let Some(first) = identities.next() {
            identities.try_for_each(|identity| check_same(first, identity))?;
        }
        let differs =
            |(number, unit): &(&u32, &SampledUnit)| self.units.get(number).is_some_and(|mine| mine != *unit);
        if let Some((&number, _)) = other.units.iter().find(differs) {
            return Err(Error::OutOfRange {
                what: "the number of a unit whose two results differ",
                value: f64::from(number),
                expected: "units of one simulation, unchanged",
            });
        }
        self.units.extend(other.units);
        Ok(())
    }
}
