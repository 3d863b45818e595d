//! The kinds of experiment on mechanisms: their examples run, and their numbers are the zoo's.

use esscher_core::Unwatched;
use esscher_lab::{Experiment, Table};
use esscher_questions::{Planned, Settings, large_prompts, questions, recall};
use esscher_report::Block;

fn read(text: &str) -> Planned {
    Planned::read("test.toml", text, Settings::default()).unwrap()
}

fn example(name: &str) -> Planned {
    read(questions().iter().find(|kind| kind.name == name).unwrap().example)
}

fn run(planned: &Planned) -> Table {
    let units =
        (0..planned.units().len()).map(|unit| planned.run_unit(unit, &Unwatched).unwrap().unwrap()).collect();
    planned.merge(units).unwrap()
}

/// Values of a quantity, with the mechanism and the length or step.
fn values(table: &Table, quantity: &str) -> Vec<(String, f64)> {
    table
        .rows()
        .filter(|row| row.text("quantity").unwrap() == quantity)
        .map(|row| (row.text("mechanism").unwrap().to_string(), row.real("value").unwrap()))
        .collect()
}

#[test]
fn normal_forms_are_their_own() {
    for name in ["large-prompts", "recall"] {
        let planned = example(name);
        let again = read(planned.specification());
        assert_eq!(planned.specification(), again.specification(), "{name}");
    }
}

#[test]
fn inline_goes_where_softmax_goes_for_gaussian_tokens() {
    let planned = example("large-prompts");
    let result = run(&planned);
    let distances = values(&result, "distance-to-softmax");
    let of = |name: &str| distances.iter().find(|(mechanism, _)| mechanism == name).unwrap().1;
    assert!(of("softmax") < 1e-12 && of("inline") < 1e-12);
    assert!(of("linear-elu") > 1e-2, "elu + 1 is not the exponential");
    for (mechanism, error) in values(&result, "mean-squared-error") {
        assert!(error.is_finite() && error > 0.0, "{mechanism}");
    }
    let sections = planned.sections(&result).unwrap();
    assert_eq!(sections.len(), 1);
    // One limit beside that of softmax, which nothing has named before.
    let rows: Vec<large_prompts::answer::Row> = result.read().unwrap();
    let two = rows.into_iter().filter(|row| ["softmax", "linear-elu"].contains(&row.mechanism.as_str()));
    let said = lead(&planned, &Table::of(&two.collect::<Vec<_>>()).unwrap());
    assert!(said.contains(" Another limit is that of linear-elu, "), "{said}");
}

#[test]
fn trained_models_stream_as_they_were_trained() {
    let planned = example("recall");
    let result = run(&planned);
    assert!(result == run(&planned), "same seed, same numbers");
    assert_eq!(
        values(&result, "streaming-agreement"),
        [("softmax".to_string(), 1.0), ("gla".to_string(), 1.0)]
    );
    for ((mechanism, first), (_, last)) in
        values(&result, "first-loss").iter().zip(values(&result, "test-loss"))
    {
        assert!(last < 0.9 * first, "{mechanism}: {last} after {first}");
    }
    assert_eq!(planned.sections(&result).unwrap().len(), 1);
}

/// The finding that a table tells.
fn lead(planned: &Planned, table: &Table) -> String {
    match &planned.sections(table).unwrap()[0].blocks[0] {
        Block::Lead(lead) => lead.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn trainings_that_diverge_are_named() {
    let planned = example("recall");
    let rows: Vec<recall::answer::Row> = run(&planned).read().unwrap();
    let told = |tested: &[&str]| {
        // What diverged is not tested; without a finite first loss it leaves no row at all.
        let left = rows.iter().filter(|row| tested.contains(&row.mechanism.as_str()));
        lead(&planned, &Table::of(&left.cloned().collect::<Vec<_>>()).unwrap())
    };
    assert!(!told(&["softmax", "gla"]).contains("diverged"));
    let said = told(&["softmax"]);
    assert!(said.ends_with(" Training diverged: gla. Try a smaller learning rate."), "{said}");
    let said = told(&[]);
    assert!(
        said.starts_with("No model could be asked") && said.contains("diverged: softmax, gla."),
        "{said}"
    );
}

#[test]
fn what_makes_no_model_is_refused_by_name() {
    let said = |text: &str| Planned::read("t.toml", text, Settings::default()).err().unwrap().to_string();
    let head = "kind = \"recall\"\nmechanisms = [\"gla\"]\n";
    assert!(said("kind = \"recall\"\nmechanisms = [\"gls\"]").contains("gla"), "near names are offered");
    assert!(said(&format!("{head}heads = 3")).contains("a divisor of the width, 64"));
    assert!(said(&format!("{head}vocabulary = 64")).contains("an even number above the length, 64"));
    assert!(said(&format!("{head}pairs = 17")).contains("a quarter of the length"));
    let head = "kind = \"large-prompts\"\nmechanisms = [\"gla\"]\nlengths = [10]\n[tokens]\nfamily = \"gaussian\"\ndimension = 2\n";
    assert!(said(&head.replace("lengths", "query = [1]\nlengths")).contains("query"));
    assert!(said(&head.replace("[10]", "[1e7]\nquery = [1, 2]")).contains("token by token"));
}
