//! Units of a simulation as plain numbers, and back bit for bit.
//!
//! A unit is a run of rows with its number. The first number is its count of trials. A unit of one trial goes on with
//! its errors, which are all that its summaries know: for each quantity, for each length. A unit of several trials goes
//! on with the states of its summaries, for each length and quantity, then with the joint states of the quantities.

use esscher_core::numerics::JointSummary;
use esscher_core::numerics::statistics::{STATE_LENGTH, Summary};
use esscher_core::prompt::{SampledLength, SampledPrompts, SampledUnit, SampledUnits};
use esscher_core::{PerQuantity, Quantity};
use esscher_lab::{Failure, rows};

rows! {
    /// A number of a unit.
    #[derive(Debug, Clone)]
    pub(super) struct UnitNumber {
        /// The unit of the simulation, from 0.
        unit: i64,
        /// The number.
        number: f64,
    }
}

/// What a table of units may be wrong with.
#[derive(Debug, thiserror::Error)]
enum Damage {
    #[error("simulated unit {unit} holds {found} numbers, which is no unit of this simulation")]
    Size { unit: u32, found: usize },
    #[error("simulated unit {unit} is missing: expected {expected} units, found {found}")]
    Missing { unit: u32, expected: u32, found: usize },
    #[error("simulated unit {unit} appears twice or is not of this simulation")]
    Unexpected { unit: i64 },
}

/// A unit as its numbers.
pub(super) fn encode(number: u32, unit: &SampledUnit) -> impl Iterator<Item = UnitNumber> {
    let trials = unit.joint.output.count();
    let mut numbers = vec![trials as f64];
    let joints = Quantity::ALL.map(|quantity| &unit.joint[quantity]);
    let measured = joints.into_iter().filter(|joint| joint.count() > 0);
    if trials == 1 {
        measured.for_each(|joint| numbers.extend(joint.mean()));
    } else {
        for length in &unit.lengths {
            let summaries = Quantity::ALL.map(|quantity| length.errors[quantity]);
            for summary in summaries.iter().filter(|summary| summary.count() > 0) {
                numbers.extend(summary.state());
            }
        }
        measured.for_each(|joint| numbers.extend(joint.state()));
    }
    numbers.into_iter().map(move |value| UnitNumber { unit: i64::from(number), number: value })
}

/// All units of a simulation from their numbers.
pub(super) fn read(simulation: &SampledPrompts, numbers: &[UnitNumber]) -> Result<SampledUnits, Failure> {
    let mut units = SampledUnits::default();
    for run in numbers.chunk_by(|one, next| one.unit == next.unit) {
        let unit = run[0].unit;
        let number = u32::try_from(unit).map_err(|_| Damage::Unexpected { unit })?;
        let made = decode(simulation, number, &run.iter().map(|one| one.number).collect::<Vec<_>>())?;
        if number >= simulation.units() || units.units.insert(number, made).is_some() {
            return Err(Damage::Unexpected { unit }.into());
        }
    }
    let expected = simulation.units();
    if let Some(unit) = (0..expected).find(|unit| !units.units.contains_key(unit)) {
        return Err(Damage::Missing { unit, expected, found: units.units.len() }.into());
    }
    Ok(units)
}

fn decode(simulation: &SampledPrompts, unit: u32, numbers: &[f64]) -> Result<SampledUnit, Failure> {
    let (count, gradient) = (simulation.lengths().len(), simulation.options().score_gradient);
    let quantities = if gradient { 3 } else { 2 };
    let joint_length = 1 + count + count * (count + 1) / 2;
    let is_single = numbers.first() == Some(&1.0);
    let expected = 1 + quantities * if is_single { count } else { count * STATE_LENGTH + joint_length };
    if numbers.len() != expected {
        return Err(Damage::Size { unit, found: numbers.len() }.into());
    }
    let rest = &numbers[1..];
    let (mut summaries, mut joints) = (Vec::new(), Vec::new());
    if is_single {
        for values in rest.chunks(count) {
            let mut joint = JointSummary::new(count);
            joint.add(values)?;
            joints.push(joint);
        }
        for length in 0..count {
            let at_length = rest.chunks(count).map(|values| Summary::of(&values[length..=length]));
            summaries.push(at_length.collect::<Vec<_>>());
        }
    } else {
        let (states, joint_states) = rest.split_at(quantities * count * STATE_LENGTH);
        for at_length in states.chunks(quantities * STATE_LENGTH) {
            let made: esscher_core::Result<Vec<Summary>> =
                at_length.chunks(STATE_LENGTH).map(Summary::from_state).collect();
            summaries.push(made?);
        }
        for state in joint_states.chunks(joint_length) {
            joints.push(JointSummary::from_state(state)?);
        }
    }
    // The quantities that were measured, in their order.
    let lengths = simulation
        .lengths()
        .iter()
        .zip(summaries)
        .map(|(&length, all)| SampledLength { length, errors: spread(simulation, all, Summary::new) })
        .collect();
    let joint = spread(simulation, joints, || JointSummary::new(count));
    Ok(SampledUnit { identity: simulation.identity(), lengths, joint })
}

/// What was measured, and `empty` where nothing was.
fn spread<T>(simulation: &SampledPrompts, measured: Vec<T>, empty: impl Fn() -> T) -> PerQuantity<T> {
    let mut measured = measured.into_iter();
    PerQuantity::from_fn(|quantity| {
        let next = if simulation.options().measures(quantity) { measured.next() } else { None };
        next.unwrap_or_else(&empty)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use esscher_core::Unwatched;
    use esscher_core::attention::Softmax;
    use esscher_core::measure::{Cube, Gaussian};
    use esscher_core::numerics::linalg;
    use esscher_core::prompt::{PromptLength, SampleOptions};
    use esscher_lab::Table;
    use std::sync::Arc;

    fn simulation(lengths: &[u64], trials: u32, score_gradient: bool) -> SampledPrompts {
        let head = Softmax::new(linalg::identity(2).as_ref(), linalg::identity(2).as_ref()).unwrap();
        let lengths: Vec<_> = lengths.iter().map(|&length| PromptLength::new(length).unwrap()).collect();
        let options = SampleOptions { trials, queries: 4, score_gradient, ..SampleOptions::default() };
        let queries = Arc::new(Gaussian::standard(2).unwrap());
        SampledPrompts::new(&head, Arc::new(Cube::new(2).unwrap()), queries, &lengths, options).unwrap()
    }

    /// Units of many trials, of one trial because prompts are long, and a last unit of one trial by chance.
    #[test]
    fn units_come_back_bit_for_bit() {
        for (lengths, trials) in [(vec![3, 10, 40], 150), (vec![7, 70_000], 3), (vec![5, 60_000], 3)] {
            for score_gradient in [false, true] {
                let simulation = simulation(&lengths, trials, score_gradient);
                let mut units = SampledUnits::default();
                simulation.run(&mut units, &Unwatched).unwrap();
                let numbers = units.units.iter().flat_map(|(&number, unit)| encode(number, unit));
                let numbers: Vec<UnitNumber> = numbers.collect();
                // Through a table, as a run keeps them.
                let mut numbers: Vec<UnitNumber> = Table::of(&numbers).unwrap().read().unwrap();
                assert_eq!(read(&simulation, &numbers).unwrap(), units);
                // A lost part is noticed, and so is a unit that is there twice.
                let first = numbers.iter().take_while(|one| one.unit == 0).count();
                let lost = read(&simulation, &numbers[..first]).unwrap_err().to_string();
                assert!(lost.contains("simulated unit 1 is missing"), "{lost}");
                numbers.extend_from_within(first..);
                assert!(read(&simulation, &numbers).is_err());
            }
        }
    }
}
