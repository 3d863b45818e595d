//! Units of a simulation as plain numbers in a table, and back bit for bit.
//!
//! A unit is a run of rows with its number. The first number is its count of trials. A unit of one trial goes on with
//! its errors, which are all that its summaries know: for each quantity, for each length. A unit of several trials goes
//! on with the states of its summaries, for each length and quantity, then with the joint states of the quantities.

use esscher_core::numerics::JointSummary;
use esscher_core::numerics::statistics::{STATE_LENGTH, Summary};
use esscher_core::prompt::{JointErrors, SampledLength, SampledPrompts, SampledUnit, SampledUnits};
use esscher_lab::{Column, Failure, Table};

pub(super) const COLUMNS: [(&str, Column); 2] = [("unit", Column::Integer), ("number", Column::Real)];

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

/// Appends a unit to a table.
pub(super) fn write(table: &mut Table, number: u32, unit: &SampledUnit) -> Result<(), Failure> {
    let trials = unit.joint.output.count();
    let mut numbers = vec![trials as f64];
    let joints = [&unit.joint.output, &unit.joint.score_gradient, &unit.joint.value_gradient];
    let measured = joints.into_iter().filter(|joint| joint.count() > 0);
    if trials == 1 {
        measured.for_each(|joint| numbers.extend(joint.mean()));
    } else {
        for length in &unit.lengths {
            let summaries = [length.output_error, length.score_gradient_error, length.value_gradient_error];
            for summary in summaries.iter().filter(|summary| summary.count() > 0) {
                numbers.extend(summary.state());
            }
        }
        measured.for_each(|joint| numbers.extend(joint.state()));
    }
    for value in numbers {
        table.push([i64::from(number).into(), value.into()])?;
    }
    Ok(())
}

/// All units of a simulation from the tables that hold them.
pub(super) fn read(simulation: &SampledPrompts, tables: &[Table]) -> Result<SampledUnits, Failure> {
    let mut units = SampledUnits::default();
    let mut numbers: Vec<f64> = Vec::new();
    let mut rows = tables.iter().flat_map(Table::rows).peekable();
    while let Some(row) = rows.next() {
        let unit = row.integer("unit")?;
        numbers.push(row.real("number")?);
        if rows.peek().map(|next| next.integer("unit")).transpose()? != Some(unit) {
            let number = u32::try_from(unit).map_err(|_| Damage::Unexpected { unit })?;
            let made = decode(simulation, number, &numbers)?;
            if number >= simulation.units() || units.units.insert(number, made).is_some() {
                return Err(Damage::Unexpected { unit }.into());
            }
            numbers.clear();
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
    // The gradient in U stands between the other two where it was measured.
    let place = |all: &[Summary]| if gradient { all[1] } else { Summary::new() };
    let lengths = simulation
        .lengths()
        .iter()
        .zip(&summaries)
        .map(|(&length, all)| SampledLength {
            length,
            output_error: all[0],
            score_gradient_error: place(all),
            value_gradient_error: all[quantities - 1],
        })
        .collect();
    let joint = JointErrors {
        output: joints[0].clone(),
        score_gradient: if gradient { joints[1].clone() } else { JointSummary::new(count) },
        value_gradient: joints[quantities - 1].clone(),
    };
    Ok(SampledUnit { identity: simulation.identity(), lengths, joint })
}

#[cfg(test)]
mod tests {
    use super::*;
    use esscher_core::Unwatched;
    use esscher_core::attention::Softmax;
    use esscher_core::measure::{Cube, Gaussian};
    use esscher_core::numerics::linalg;
    use esscher_core::prompt::{PromptLength, SampleOptions};
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
                let mut tables = vec![Table::new(&COLUMNS), Table::new(&COLUMNS)];
                for (&number, unit) in &units.units {
                    let half = usize::from(number > 0);
                    write(&mut tables[half], number, unit).unwrap();
                }
                assert_eq!(read(&simulation, &tables).unwrap(), units);
                // A lost table is noticed, and so is a unit that is there twice.
                let lost = read(&simulation, &tables[..1]).unwrap_err().to_string();
                assert!(lost.contains("simulated unit 1 is missing"), "{lost}");
                tables.push(tables[1].clone());
                assert!(read(&simulation, &tables).unwrap_err().to_string().contains("twice"));
            }
        }
    }
}
