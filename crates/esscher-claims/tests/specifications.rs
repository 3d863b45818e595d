//! Every shipped specification and example is in order, and no disfigured one makes the reader panic, hang or forget.

use esscher_claims::{Scale, claims};
use esscher_lab::Experiment;
use esscher_lab::specification::Mistake;
use esscher_questions::{Asked, Planned, Settings, Sources, questions};
use proptest::prelude::*;
use std::path::Path;

/// Plans larger than this would not be meant.
const MOST_UNITS: usize = 1_000_000;

fn shipped() -> Vec<(String, &'static str)> {
    let mut all: Vec<(String, &'static str)> =
        questions().iter().map(|kind| (format!("example of {}", kind.name), kind.example)).collect();
    for claim in claims() {
        all.push((format!("{}/quick.toml", claim.name), claim.quick));
        all.push((format!("{}/full.toml", claim.name), claim.full));
    }
    all
}

fn planned(name: &str, text: &str, settings: Settings) -> Result<Planned, Mistake> {
    Asked::read(name, text, settings)?.plan(&Sources::of_user(|_| {}))
}

/// Reads, plans and reads the normal form again.
fn read(name: &str, text: &str) -> Option<Planned> {
    let settings = Settings::default();
    let plan = planned(name, text, settings).ok()?;
    let units = plan.units();
    assert!(!units.is_empty() && units.len() <= MOST_UNITS, "{name}: {} units\n{text}", units.len());
    assert!(units.iter().all(|unit| unit.cost.is_finite() && unit.cost >= 0.0), "{name}: costs\n{text}");
    let again = planned(name, plan.specification(), settings).unwrap_or_else(|mistake| {
        panic!("{name}: the normal form is refused: {mistake}\n{}", plan.specification())
    });
    assert_eq!(again.specification(), plan.specification(), "{name}");
    assert_eq!(again.units(), units, "{name}");
    Some(plan)
}

#[test]
fn shipped_specifications_are_read_and_their_normal_form_is_stable() {
    for (name, text) in shipped() {
        assert!(read(&name, text).is_some(), "{name}: {:?}", planned(&name, text, Settings::default()).err());
    }
}

#[test]
fn every_claim_has_its_folder_and_the_folders_hold_nothing_else() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let mut folders: Vec<String> = std::fs::read_dir(&root)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    folders.sort();
    let mut names: Vec<String> = claims().iter().map(|claim| claim.name.to_string()).collect();
    names.sort();
    assert_eq!(folders, names);
    for claim in claims() {
        for (file, text) in [("quick.toml", claim.quick), ("full.toml", claim.full)] {
            assert_eq!(std::fs::read_to_string(root.join(claim.name).join(file)).unwrap(), text);
        }
        assert!(claim.experiment(Scale::Quick, Settings::default()).is_ok());
    }
}

#[test]
fn a_seed_given_at_the_door_is_that_of_the_normal_form() {
    for (name, text) in shipped() {
        let settings = Settings { seed: Some(12345), ..Settings::default() };
        let planned = planned(&name, text, settings).unwrap();
        assert_eq!(planned.seed(), 12345);
        assert!(planned.specification().contains("seed = 12345\n"), "{name}");
    }
}

/// What may happen to a file between two saves.
#[derive(Debug, Clone)]
enum Accident {
    Delete(usize),
    Repeat(usize),
    Swap(usize, usize),
    Value(usize, &'static str),
    Letter(usize, char),
    Cut(usize),
}

fn accident() -> impl Strategy<Value = Accident> {
    let values = prop::sample::select(vec![
        "0",
        "-1",
        "1",
        "2",
        "0.0",
        "-0.0",
        "1e-320",
        "1e308",
        "1e12",
        "1e13",
        "16777216",
        "9223372036854775807",
        "nan",
        "inf",
        "\"\"",
        "\"x\"",
        "[]",
        "[0]",
        "[1, 2]",
        "[[1.0]]",
        "[[0, 0], [0, 0]]",
        "[[1, 2], [3, 4]]",
        "{}",
        "true",
        "1979-05-27",
        "[1e12, 1]",
        "{ from = 1, to = 1e12, per_decade = 20 }",
    ]);
    prop_oneof![
        any::<usize>().prop_map(Accident::Delete),
        any::<usize>().prop_map(Accident::Repeat),
        (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Accident::Swap(a, b)),
        (any::<usize>(), values).prop_map(|(line, value)| Accident::Value(line, value)),
        (any::<usize>(), any::<char>()).prop_map(|(place, letter)| Accident::Letter(place, letter)),
        any::<usize>().prop_map(Accident::Cut),
    ]
}

fn suffer(text: &str, accidents: &[Accident]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    for accident in accidents {
        let count = lines.len().max(1);
        if lines.is_empty() {
            break;
        }
        match accident {
            Accident::Delete(line) => {
                lines.remove(line % count);
            }
            Accident::Repeat(line) => {
                let line = line % count;
                lines.insert(line, lines[line].clone());
            }
            Accident::Swap(first, second) => lines.swap(first % count, second % count),
            Accident::Value(line, value) => {
                let line = line % count;
                if let Some((key, _)) = lines[line].split_once('=') {
                    lines[line] = format!("{key}= {value}");
                }
            }
            Accident::Letter(place, letter) => {
                let line = place % count;
                let letters = lines[line].chars().count().max(1);
                lines[line] = lines[line]
                    .chars()
                    .enumerate()
                    .map(|(index, old)| if index == (place / count) % letters { *letter } else { old })
                    .collect();
            }
            Accident::Cut(line) => lines.truncate(line % count),
        }
    }
    lines.join("\n")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn disfigured_specifications_are_refused_or_planned(
        which in any::<prop::sample::Index>(), accidents in prop::collection::vec(accident(), 1..6),
    ) {
        let all = shipped();
        let (name, text) = &all[which.index(all.len())];
        read(name, &suffer(text, &accidents));
    }
}

#[test]
fn every_example_in_the_document_is_read() {
    let text = include_str!("../../../docs/specifications.md");
    let blocks: Vec<&str> =
        text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(blocks.len(), questions().len(), "one example for each kind");
    for (block, kind) in blocks.iter().zip(questions()) {
        let planned = planned("docs/specifications.md", block, Settings::default());
        let planned = planned.unwrap_or_else(|mistake| panic!("{mistake} {:?}", mistake.hint));
        assert_eq!(planned.question().name, kind.name, "in the order of the catalogue");
    }
}

#[test]
fn small_files_that_ask_for_too_much_are_refused() {
    let refused = |text: String, said: &str| {
        let mistake = Planned::read("greedy.toml", &text, Settings::default()).err();
        let mistake = mistake.unwrap_or_else(|| panic!("{said}: not refused"));
        assert!(mistake.message().contains(said), "{mistake}");
    };
    let path = "kind = \"path\"\nlengths = [10]\nqueries = [[1]]\n";
    let point = vec!["1"; 2000].join(", ");
    refused(
        format!("{path}[tokens]\nfamily = \"points\"\npoints = [[{point}]]"),
        "dimension up to 1024, found 2000",
    );
    let component = "[[tokens.component]]\n".repeat(5);
    let mixture = format!("{path}[tokens]\nfamily = \"mixture\"\ndimension = 1024\n{component}");
    refused(mixture, "expected a list of 1 to 4 entries, found 5");
    let laws: String = (0..20)
        .map(|law| format!("[[law]]\nname = \"{law}\"\nfamily = \"gaussian\"\ndimension = 1\n"))
        .collect();
    refused(format!("{path}prompts = 10000\n{laws}"), "200020 units of work, at most 100000");
}
