//! The kinds and claims of training, in-context regression and layers: specifications, numbers, and judges that can fail.

use esscher_claims::{Claim, Judgement, Scale, claims};
use esscher_core::regression::AttentionKind;
use esscher_core::regression::authors::{AuthorsExperiment, AuthorsOptions, AuthorsProgress};
use esscher_core::{Monitor, Unwatched};
use esscher_lab::{Experiment, Table, Value};
use esscher_questions::{Planned, Question, Settings, questions};
use esscher_report::{Block, Section, Verdict};

const KINDS: [&str; 4] = ["training", "training-horizon", "authors", "layers"];

const CLAIMS: [&str; 6] = [
    "training-stability",
    "training-stability-sub-gaussian",
    "in-context-noise-floor",
    "linear-attention-transfer",
    "finite-prompt-drift",
    "authors-experiment",
];

fn kind(name: &str) -> &'static Question {
    questions().iter().find(|kind| kind.name == name).unwrap()
}

fn claim(name: &str) -> &'static Claim {
    claims().iter().find(|claim| claim.name == name).unwrap()
}

fn read(text: &str) -> Planned {
    Planned::read("test.toml", text, Settings::default()).unwrap_or_else(|mistake| panic!("{mistake}"))
}

fn refused(text: &str) -> String {
    Planned::read("test.toml", text, Settings::default()).err().unwrap().to_string()
}

fn run(planned: &Planned) -> Table {
    let units = planned.units();
    assert!(units.iter().all(|unit| unit.cost > 0.0 && !unit.label.is_empty()));
    let tables = (0..units.len()).map(|unit| planned.run_unit(unit, &Unwatched).unwrap().unwrap()).collect();
    planned.merge(tables).unwrap()
}

fn judged(name: &str, table: &Table) -> Judgement {
    let judgement = claim(name).judge(table).unwrap();
    // One document holds the evidence of all claims.
    for block in judgement.evidence() {
        match block {
            Block::Figure(figure) => assert!(figure.id.starts_with(name), "{}", figure.id),
            Block::Panels(panels) => assert!(panels.id.starts_with(name), "{}", panels.id),
            Block::Table(table) => {
                assert!(table.id.starts_with(name) && table.columns.len() <= 8, "{}", table.id);
            }
            _ => {}
        }
    }
    speaks_as_it_judges(&judgement);
    judgement
}

/// What is read first never contradicts the verdict.
fn speaks_as_it_judges(judgement: &Judgement) {
    let Judgement { verdict, lead, number, meaning, figure, explained, .. } = judgement;
    let words = |start: &str| lead.starts_with(start) && lead.ends_with('.');
    assert!(!number.is_empty() && !meaning.is_empty() && !lead.contains("  "), "{lead}");
    match verdict {
        Verdict::Holds => {
            assert!(!lead.contains("claim") && figure.is_some(), "{lead}");
            println!("  {lead}\n  {number}: {meaning}\n  {explained:?}");
        }
        Verdict::Fails => assert!(words("The measurement contradicts the claim: "), "{lead}"),
        Verdict::NotMeasurable => {
            let said = words("This result does not decide the claim: ")
                || words("The measurement itself is in doubt");
            assert!(said, "{lead}");
        }
    }
    // Neither of them says that the claim holds.
    assert!(*verdict == Verdict::Holds || explained.is_empty());
}

/// A row as a judge's saboteur sees it: the value of a column.
type Seen<'a> = &'a dyn Fn(&str) -> Value;

/// The same table with some values replaced by what `change` makes of them.
fn doctored(table: &Table, change: impl Fn(Seen<'_>, f64) -> Option<f64>) -> Table {
    let columns: Vec<(&str, _)> = table.columns().iter().map(|(name, kind)| (name.as_str(), *kind)).collect();
    let mut made = Table::new(&columns);
    let mut changed = 0;
    for row in table.rows() {
        let new = change(&|column| row.value(column).unwrap().clone(), row.real("value").unwrap());
        changed += usize::from(new.is_some());
        let values = columns.iter().map(|(name, _)| match new {
            Some(new) if *name == "value" => Value::Real(new),
            _ => row.value(name).unwrap().clone(),
        });
        made.push(values).unwrap();
    }
    assert!(changed > 0, "nothing was doctored");
    made
}

/// The same table with some entries replaced.
fn rewritten(table: &Table, change: impl Fn(Seen<'_>, &str) -> Option<Value>) -> Table {
    let columns: Vec<(&str, _)> = table.columns().iter().map(|(name, kind)| (name.as_str(), *kind)).collect();
    let mut made = Table::new(&columns);
    for row in table.rows() {
        let seen = |column: &str| row.value(column).unwrap().clone();
        made.push(columns.iter().map(|(name, _)| change(&seen, name).unwrap_or_else(|| seen(name)))).unwrap();
    }
    assert_ne!(&made, table, "nothing was rewritten");
    made
}

/// The same table without some rows.
fn without(table: &Table, drop: impl Fn(Seen<'_>) -> bool) -> Table {
    let columns: Vec<(&str, _)> = table.columns().iter().map(|(name, kind)| (name.as_str(), *kind)).collect();
    let mut made = Table::new(&columns);
    for row in table.rows().filter(|row| !drop(&|column| row.value(column).unwrap().clone())) {
        made.push(columns.iter().map(|(name, _)| row.value(name).unwrap().clone())).unwrap();
    }
    assert_ne!(&made, table, "nothing was left out");
    made
}

/// The value of the last row of these properties.
fn last(table: &Table, properties: &[(&str, Value)]) -> f64 {
    let fits = |row: &esscher_lab::Row<'_>| {
        properties.iter().all(|(column, value)| row.value(column).unwrap() == value)
    };
    table.rows().filter(fits).last().unwrap().real("value").unwrap()
}

fn check_sections(sections: &[Section]) {
    assert!(!sections.is_empty());
    let mut ids: Vec<String> = Vec::new();
    for section in sections {
        ids.push(section.id.clone());
        assert!(!section.blocks.is_empty());
        for block in section.blocks.iter().flat_map(|block| std::iter::once(block).chain(block.folded())) {
            match block {
                Block::Table(table) => {
                    ids.push(table.id.clone());
                    assert!(!table.rows.is_empty());
                    assert!(table.rows.iter().all(|row| row.len() == table.columns.len()));
                }
                Block::Figure(figure) => {
                    ids.push(figure.id.clone());
                    assert!(figure.series.iter().any(|series| !series.points.is_empty()), "{}", figure.id);
                }
                Block::Panels(panels) => {
                    ids.push(panels.id.clone());
                    assert!(panels.panels.iter().all(|panel| !panel.series.is_empty()), "{}", panels.id);
                }
                _ => {}
            }
        }
    }
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count, "{ids:?}");
}

struct Stop;

impl Monitor for Stop {
    fn progress(&self, _completed: usize, _total: usize) {}

    fn should_stop(&self) -> bool {
        true
    }
}

#[test]
fn examples_read_normalise_run_and_describe_themselves() {
    for name in KINDS {
        let planned = read(kind(name).example);
        assert_eq!(planned.question().name, name);
        let again = read(planned.specification());
        assert_eq!(again.specification(), planned.specification(), "{name}");
        assert_eq!(again.units(), planned.units());
        let table = run(&planned);
        assert_eq!(run(&planned), table, "{name}: a unit is a pure function of its number");
        for row in table.rows() {
            let class = row.text("accuracy").unwrap();
            assert!(["exact", "quasi-monte-carlo", "sampled"].contains(&class), "{name}: {class}");
            assert!(row.optional_real("error").unwrap().is_some_and(|error| error >= 0.0), "{name}");
        }
        check_sections(&planned.sections(&table).unwrap());
        assert!(planned.run_unit(usize::MAX, &Unwatched).is_err());
        assert!(
            planned.run_unit(0, &Stop).unwrap().is_none(),
            "{name}: a stopped unit leaves nothing behind"
        );
    }
}

#[test]
fn shipped_specifications_are_read_and_normalise_to_themselves() {
    for name in CLAIMS {
        for scale in [Scale::Quick, Scale::Full] {
            let planned = claim(name).experiment(scale, Settings::default()).unwrap();
            assert_eq!(read(planned.specification()).specification(), planned.specification(), "{name}");
            assert!(!planned.units().is_empty());
        }
    }
}

#[test]
fn impossible_combinations_are_mistakes_that_name_the_key() {
    let regression = "kind = \"training\"\nlengths = [9]\n";
    let task = "[task]\ndimensions = [2]\n";
    for (text, key) in [
        (format!("kind = \"training\"\n{task}"), "lengths"),
        (format!("kind = \"training\"\nmodels = [\"infinite\"]\nlengths = [10]\n{task}"), "lengths"),
        (format!("{regression}initial_scale = 1\ninitial_fraction = 0.5\n{task}"), "initial_fraction"),
        (format!("{regression}models = [\"linear\"]\n{task}covariates = [\"cube\"]"), "models"),
        (format!("kind = \"training\"\nlengths = [1e9]\n{task}covariates = [\"cube\"]"), "lengths"),
        (
            "kind = \"training\"\nlengths = { from = 10, to = 100, per_decade = 20 }\n[task]\n\
             dimensions = [1, 2, 3, 4, 5, 6, 7, 8]\ncovariates = [\"cube\"]\n[sampling]\ndraws = 1000"
                .to_string(),
            "lengths",
        ),
        (format!("{regression}[task]\ndimensions = [2, 2]"), "task.dimensions"),
        (format!("{regression}[task]\ncovariance = \"matrix\"\nmatrix = [[1, 2], [2, 1]]"), "task.matrix"),
        (format!("{regression}{task}strength = 1"), "strength"),
        (format!("kind = \"training-horizon\"\nexcesses = [0.1, 0.1]\n{task}"), "excesses"),
        ("kind = \"authors\"\nlengths = [1e6]".to_string(), "lengths"),
        ("kind = \"authors\"\nlengths = [10]\ncovariance_bug = true".to_string(), "covariance_bug"),
        ("kind = \"layers\"\ndimension = 2\nscore = 1\nquery = 1".to_string(), "score"),
        ("kind = \"layers\"\ndimension = 2\nlayers = 3\nend_time = 1".to_string(), "end_time"),
        ("kind = \"layers\"\ndimension = 2\nstep_size = 0.1".to_string(), "step_size"),
        ("kind = \"layers\"\ndimension = 2\n[start]\ncovariance = -1.0".to_string(), "start.covariance"),
    ] {
        let mistake = refused(&text);
        assert!(mistake.contains(key), "{key}: {mistake}");
    }
}

#[test]
fn questions_that_were_renamed_say_their_new_name() {
    let renamed = refused("kind = \"regression\"\nlengths = [9]\n[task]\ndimensions = [2]");
    assert!(
        renamed.contains("`kind`") && renamed.contains("`regression` is called `training` now"),
        "{renamed}"
    );
    let renamed = refused("kind = \"horizon\"\nexcesses = [0.3]\n[task]\ndimensions = [2]");
    assert!(renamed.contains("`horizon` is called `training-horizon` now"), "{renamed}");
    // Without the keys of training the word means something else.
    assert!(!refused("kind = \"horizon\"").contains("is called"));
}

/// d = 5, noise 0.1, α = 0.6, ε = 0.3: 132 tokens, as the search of the core documents.
#[test]
fn the_horizon_is_the_known_one_and_its_judge_can_fail() {
    let text = "kind = \"training-horizon\"\nexcesses = [0.3, 0.1]\ninitial_scale = 0.6\nbeyond = [2]\n\
                [task]\ndimensions = [5]\nnoise = 0.1";
    let table = run(&read(text));
    let horizon = [("excess", Value::Real(0.3)), ("quantity", Value::from("horizon"))];
    assert_eq!(last(&table, &horizon), 132.0);
    let name = "in-context-noise-floor";
    let good = judged(name, &table);
    assert_eq!(good.verdict, Verdict::Holds, "{}", good.reason);
    check_sections(&[claim(name).section(&good, None)]);
    for (quantity, value) in [("excess-risk", 0.5), ("excess-risk-beyond", 0.5), ("excess-risk-before", 0.01)]
    {
        let bad = doctored(&table, |row, _| (row("quantity") == Value::from(quantity)).then_some(value));
        assert_eq!(judged(name, &bad).verdict, Verdict::Fails, "{quantity}");
    }
    // Nothing but the search, or a start that no theorem speaks of, decides nothing.
    let searched = without(&table, |row| row("quantity") == Value::from("excess-risk-beyond"));
    let outside = doctored(&table, |row, _| (row("quantity") == Value::from("proved-scale")).then_some(0.59));
    for table in [searched, outside] {
        assert_eq!(judged(name, &table).verdict, Verdict::NotMeasurable);
    }
}

/// The limit of the infinite flow for Σ = diag(.5, 1, 2), as the theory prints it: half a unit of the last digit.
#[test]
fn the_infinite_flow_ends_at_the_printed_limit_and_the_judge_of_limits_can_fail() {
    let name = "linear-attention-transfer";
    let text = claim(name).quick;
    let printed =
        [("entry-1", 1.3212657), ("entry-2", 0.6606329), ("entry-3", 0.3303164), ("gain", 1.51370005)];
    let check_limit = |table: &Table| {
        for (quantity, printed) in printed {
            let found =
                last(table, &[("model", Value::from("infinite")), ("quantity", Value::from(quantity))]);
            assert!((found - printed).abs() < 6e-8, "{quantity}: {found} {printed}");
        }
    };
    let table = run(&read(text));
    check_limit(&table);
    let good = judged(name, &table);
    assert_eq!(good.verdict, Verdict::Holds, "{}", good.reason);
    check_sections(&[claim(name).section(&good, None)]);
    // At α = 0.6, outside the range of the theorem, the limit is the same, and the claim is silent.
    let mut outside: String =
        text.lines().filter(|line| !line.starts_with("lengths")).map(|line| format!("{line}\n")).collect();
    outside = outside.replace("initial_scale = 0.5", "initial_scale = 0.6");
    outside = outside.replace("\"infinite\", \"linear\", \"softmax\"", "\"infinite\"");
    check_limit(&run(&read(&outside)));
    let outside = rewritten(&table, |_, column| (column == "initial_scale").then_some(Value::Real(0.6)));
    let found = judged(name, &outside);
    assert_eq!(found.verdict, Verdict::NotMeasurable);
    assert!(found.reason.contains("outside the range"), "{}", found.reason);
    let faults = [("distance-to-own-limit", 1e-3), ("final-risk", 0.1), ("distance-to-infinite-limit", 0.5)];
    for (quantity, value) in faults {
        let bad = doctored(&table, |row, _| (row("quantity") == Value::from(quantity)).then_some(value));
        assert_eq!(judged(name, &bad).verdict, Verdict::Fails, "{quantity}");
    }
    // Softmax that does not come nearer, and one that comes nearer by a hundredth only.
    for far in [1.0, 0.99] {
        let bad =
            doctored(&table, |row, _| {
                let Value::Integer(length) = row("length") else { return None };
                let is_distance = row("quantity") == Value::from("distance-to-infinite-limit");
                (is_distance && row("model") == Value::from("softmax"))
                    .then_some(if length == 1_000_000_000 { 0.5 * far } else { 0.5 })
            });
        assert_eq!(judged(name, &bad).verdict, Verdict::Fails, "{far}");
    }
    for model in ["infinite", "linear", "softmax"] {
        let missing = without(&table, |row| row("model") == Value::from(model));
        assert_eq!(judged(name, &missing).verdict, Verdict::NotMeasurable, "{model}");
    }
    let outside =
        doctored(&table, |row, _| (row("quantity") == Value::from("sufficient-bound")).then_some(0.4));
    assert_eq!(judged(name, &outside).verdict, Verdict::NotMeasurable);
    let moving = rewritten(&table, |row, column| {
        (column == "ending" && row("model") == Value::from("linear")).then(|| Value::from("completed"))
    });
    assert_eq!(judged(name, &moving).verdict, Verdict::NotMeasurable);
}

#[test]
fn stability_holds_and_a_distance_that_levels_off_refutes_it() {
    let text = "kind = \"training\"\nmodels = [\"softmax\"]\nlengths = [1e3, 1e5, 1e7]\nend_time = 5\nrows = 4\n\
                initial_scale = 0.5\ntolerance = 1e-8\n[task]\ndimensions = [6]\nnoise = 0.1";
    let table = run(&read(text));
    let name = "training-stability";
    let good = judged(name, &table);
    assert_eq!(good.verdict, Verdict::Holds, "{}", good.reason);
    check_sections(&[claim(name).section(&good, None)]);
    let is_distance = |row: Seen<'_>| row("quantity") == Value::from("distance-to-infinite");
    let grows = doctored(&table, |row, value| {
        (is_distance(row) && row("length") == Value::Integer(10_000_000)).then_some(1e3 * value)
    });
    assert_eq!(judged(name, &grows).verdict, Verdict::Fails);
    // A fall of one per cent a hundredfold in L: above the errors, and levelling off.
    let levels = doctored(&table, |row, _| {
        let Value::Integer(length) = row("length") else { return None };
        is_distance(row).then(|| 0.1 * (length as f64).powf(-0.002))
    });
    let found = judged(name, &levels);
    assert_eq!(found.verdict, Verdict::Fails);
    assert!(found.reason.contains("levels off"), "{}", found.reason);
    // A flow that ended early, one beside which the infinite flow ended early, and an error that is not known.
    let long = |row: Seen<'_>| row("length") == Value::Integer(10_000_000);
    let early =
        rewritten(&table, |row, column| (column == "ending" && long(row)).then(|| Value::from("diverged")));
    let beside =
        without(&table, |row| long(row) && row("quantity") == Value::from("largest-distance-to-infinite"));
    let unknown = rewritten(&table, |row, column| {
        (column == "error" && long(row) && is_distance(row)).then_some(Value::Missing)
    });
    for table in [early, beside, unknown] {
        assert_eq!(judged(name, &table).verdict, Verdict::NotMeasurable);
    }
}

/// A flow that stands still before the end is compared with the infinite one as long as that moves.
#[test]
fn distances_are_followed_after_a_flow_stands_still() {
    let text = "kind = \"training\"\nmodels = [\"softmax\"]\nlengths = [100]\nend_time = 1e6\nrows = 30\n\
                initial_scale = 0.5\ntolerance = 1e-6\nmethod = \"stiff\"\nstationary = 1e-6\n[task]\ndimensions = [2]\nnoise = 0.1";
    let table = run(&read(text));
    let of = |quantity: &str| -> Vec<f64> {
        table
            .rows()
            .filter(|row| row.text("quantity").unwrap() == quantity)
            .map(|row| row.real("time").unwrap())
            .collect()
    };
    assert!(of("risk").last().unwrap() < &1e6);
    assert_eq!(of("distance-to-infinite").last(), Some(&1e6));
}

#[test]
fn drawn_covariates_have_errors_and_their_judge_holds_fails_and_abstains() {
    let text = "kind = \"training\"\nmodels = [\"softmax\", \"infinite\"]\nlengths = [10, 40, 160]\nend_time = 2\n\
                rows = 3\ninitial_scale = 0.7\ntolerance = 1e-5\nstationary = 1e-12\n[task]\ndimensions = [2]\n\
                noise = 0.1\ncovariates = [\"rademacher\", \"sphere\"]\n[sampling]\nprompts = 16\ndraws = 4";
    let planned = read(text);
    let table = run(&planned);
    check_sections(&planned.sections(&table).unwrap());
    let name = "training-stability-sub-gaussian";
    let chosen = |is_mean: bool| {
        table.rows().filter(move |row| {
            row.text("quantity").unwrap() == "risk"
                && row.real("time").unwrap() == 2.0
                && row.text("covariates").unwrap() == "sphere"
                && row.value("length").unwrap() == &Value::Integer(40)
                && (row.value("draw").unwrap() == &Value::Missing) == is_mean
        })
    };
    let draws: Vec<f64> = chosen(false).map(|row| row.real("value").unwrap()).collect();
    assert_eq!(draws.len(), 4);
    let mean = draws.iter().sum::<f64>() / 4.0;
    let deviation = (draws.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 3.0).sqrt();
    let summary = chosen(true).next().unwrap();
    assert!((summary.real("value").unwrap() - mean).abs() < 1e-12);
    assert!((summary.real("error").unwrap() - 0.5 * deviation).abs() < 1e-12);
    let one = chosen(false).next().unwrap().real("error").unwrap();
    assert!((one - deviation).abs() < 1e-12);

    // Distances c L^−κ with a jitter by draw.
    let with = |rate: f64, jitter: f64| {
        doctored(&table, |row, _| {
            let Value::Integer(length) = row("length") else { return None };
            let draw = if let Value::Integer(draw) = row("draw") { draw as f64 - 1.5 } else { 0.0 };
            (row("quantity") == Value::from("largest-distance-to-infinite"))
                .then(|| 0.5 * (length as f64).powf(-rate - jitter * draw))
        })
    };
    let good = judged(name, &with(0.8, 0.005));
    assert_eq!(good.verdict, Verdict::Holds, "{}", good.reason);
    check_sections(&[claim(name).section(&good, None)]);
    assert_eq!(judged(name, &with(0.0, 0.0)).verdict, Verdict::Fails);
    assert_eq!(judged(name, &with(-0.3, 0.005)).verdict, Verdict::Fails);
    assert_eq!(judged(name, &with(0.3, 0.3)).verdict, Verdict::NotMeasurable);
    // An interval that is above 0 and reaches below 0.1.
    assert_eq!(judged(name, &with(0.12, 0.002)).verdict, Verdict::NotMeasurable);
    // A fall that ends in a plateau has a rate over all lengths; between the last two it has none, or none that is known.
    let plateau = |jitter: f64| {
        doctored(&table, |row, _| {
            let Value::Integer(length) = row("length") else { return None };
            let draw = if let Value::Integer(draw) = row("draw") { draw as f64 - 1.5 } else { 0.0 };
            let end = 0.1 * (jitter * draw).exp();
            let value = if length == 10 {
                1.0
            } else if length == 40 {
                0.1
            } else {
                end
            };
            (row("quantity") == Value::from("largest-distance-to-infinite")).then_some(value)
        })
    };
    assert_eq!(judged(name, &plateau(0.0)).verdict, Verdict::Fails);
    assert_eq!(judged(name, &plateau(0.2)).verdict, Verdict::NotMeasurable);
    // One draw that diverged, and one without a distance.
    let one = |row: Seen<'_>| row("draw") == Value::Integer(2) && row("length") == Value::Integer(40);
    let good = with(0.8, 0.005);
    let diverged =
        rewritten(&good, |row, column| (column == "ending" && one(row)).then(|| Value::from("diverged")));
    let missing =
        without(&good, |row| one(row) && row("quantity") == Value::from("largest-distance-to-infinite"));
    for table in [diverged, missing] {
        assert_eq!(judged(name, &table).verdict, Verdict::NotMeasurable);
    }
}

#[test]
fn the_drift_is_found_where_prompts_are_long_and_its_judge_can_fail() {
    let text = "kind = \"training\"\nmodels = [\"softmax\"]\nlengths = [1e5, 1e6, 1e7]\nend_time = 1e9\n\
                rows = 160\ninitial_scale = 0.5\nmethod = \"stiff\"\ntolerance = 1e-6\nstationary = 1e-10\n\
                [task]\ndimensions = [6]\nnoise = 0.5";
    let table = run(&read(text));
    let name = "finite-prompt-drift";
    let good = judged(name, &table);
    assert_eq!(good.verdict, Verdict::Holds, "{}", good.reason);
    check_sections(&[claim(name).section(&good, None)]);
    // Were training to end the nearer to the infinite limit the longer the prompt, there would be no drift to claim.
    let stays = doctored(&table, |row, value| {
        let Value::Integer(length) = row("length") else { return None };
        (row("quantity") == Value::from("distance-to-infinite-limit")).then(|| value * 1e5 / length as f64)
    });
    assert_eq!(judged(name, &stays).verdict, Verdict::Fails);
    // The same times at a length twice as long: an exponent that leaves 1.
    let slow = rewritten(&table, |row, column| {
        (column == "length" && row(column) == Value::Integer(10_000_000))
            .then_some(Value::Integer(20_000_000))
    });
    assert_eq!(judged(name, &slow).verdict, Verdict::Fails);
    // A first-order drift that is ten times as fast at the longest prompt alone.
    let fast = rewritten(&table, |row, column| {
        let Value::Real(time) = row(column) else { return None };
        (column == "time"
            && row("quantity") == Value::from("predicted-distance")
            && row("length") == Value::Integer(10_000_000))
        .then_some(Value::Real(0.1 * time))
    });
    assert_eq!(judged(name, &fast).verdict, Verdict::Fails);
    let risky = doctored(&table, |row, _| (row("quantity") == Value::from("final-risk")).then_some(1.0));
    assert_eq!(judged(name, &risky).verdict, Verdict::Fails);
    // Short prompts: the time scale is not yet proportional to L, which refutes nothing.
    let text = text.replace("[1e5, 1e6, 1e7]", "[1e3, 3e3, 1e4]").replace("1e9", "1e7");
    let short = judged(name, &run(&read(&text)));
    assert_eq!(short.verdict, Verdict::NotMeasurable, "{}", short.reason);
    // Flows that were not followed to their end decide nothing.
    let text = text.replace("end_time = 1e7", "end_time = 10");
    assert_eq!(judged(name, &run(&read(&text))).verdict, Verdict::NotMeasurable);
}

#[test]
fn the_authors_experiment_in_units_is_that_of_the_core_and_its_judge_can_fail() {
    let table = run(&read(kind("authors").example));
    let options = AuthorsOptions {
        lengths: vec![10, 40],
        steps: 200,
        rate: 0.1,
        test_prompts: 1000,
        ..Default::default()
    };
    let experiment = AuthorsExperiment::new(options).unwrap();
    let mut progress = AuthorsProgress::default();
    experiment.run(&mut progress, &Unwatched).unwrap();
    for point in experiment.points(&progress).unwrap() {
        for (model, trained) in [("softmax", &point.softmax), ("linear", &point.linear)] {
            let properties = [
                ("length", Value::Integer(point.length as i64)),
                ("model", Value::from(model)),
                ("quantity", Value::from("test-error")),
            ];
            assert_eq!(last(&table, &properties), trained.test_error.mean, "{model}");
        }
    }
    assert!(experiment.train(10, AttentionKind::Softmax, &Stop).unwrap().is_none());

    let name = "authors-experiment";
    let at = |row: Seen<'_>, length: i64, model: &str| {
        row("quantity") == Value::from("test-error")
            && row("length") == Value::Integer(length)
            && row("model") == Value::from(model)
    };
    // Errors that fall, of trainings that have arrived, then one fault at a time.
    let falling = doctored(&table, |row, _| {
        let trained = (row("quantity") == Value::from("trained-error")).then_some(0.0);
        [(10, "softmax", 5.0), (10, "linear", 3.0), (40, "softmax", 1.2), (40, "linear", 1.1)]
            .into_iter()
            .find(|(length, model, _)| at(row, *length, model))
            .map(|(_, _, value)| value)
            .or(trained)
    });
    let with_errors = |error: f64| {
        rewritten(&falling, |row, column| {
            (column == "error" && row("quantity") == Value::from("test-error")).then_some(Value::Real(error))
        })
    };
    let falling = with_errors(0.01);
    let good = judged(name, &falling);
    assert_eq!(good.verdict, Verdict::Holds, "{}", good.reason);
    check_sections(&[claim(name).section(&good, None)]);
    // No fall of one, no fall of the other, a difference that grows, a rise.
    for (model, value) in [("softmax", 5.0), ("linear", 3.0), ("softmax", 3.5), ("linear", 4.0)] {
        let bad = doctored(&falling, |row, _| at(row, 40, model).then_some(value));
        assert_eq!(judged(name, &bad).verdict, Verdict::Fails, "{model} {value}");
    }
    let better_than_bayes = doctored(&falling, |row, _| at(row, 40, "linear").then_some(0.0));
    let not_arrived = doctored(&falling, |row, _| {
        (row("quantity") == Value::from("trained-error") && row("length") == Value::Integer(40))
            .then_some(9.0)
    });
    let diverged = rewritten(&falling, |row, column| {
        (column == "ending" && at(row, 40, "linear")).then(|| Value::from("diverged"))
    });
    let no_optimum = without(&falling, |row| {
        row("model") == Value::from("softmax") && row("quantity") == Value::from("optimum")
    });
    for table in [better_than_bayes, not_arrived, diverged, no_optimum, with_errors(1.0)] {
        assert_eq!(judged(name, &table).verdict, Verdict::NotMeasurable);
    }
}

#[test]
fn layers_agree_with_the_closed_form_and_say_how_they_ended() {
    let text = "kind = \"layers\"\ndimension = 2\nscore = [[0.5, 0.1], [0.0, -0.4]]\nend_time = 5\nrows = 50\n\
                [start]\nmean = [1.0, -1.0]\ncovariance = [[1.0, 0.2], [0.2, 0.7]]";
    let table = run(&read(text));
    let of = |quantity: &str| last(&table, &[("quantity", Value::from(quantity))]);
    assert!((of("blow-up-time") - of("closed-form-blow-up-time")).abs() < 1e-6);
    let largest = |quantity: &'static str| {
        table.rows().filter(move |row| {
            row.text("quantity").unwrap() == quantity && row.integer("index").unwrap() == 1
        })
    };
    let pairs: Vec<(f64, f64)> = largest("eigenvalue")
        .zip(largest("closed-form-eigenvalue"))
        .map(|(flow, exact)| {
            assert_eq!(flow.real("time").unwrap(), exact.real("time").unwrap());
            (flow.real("value").unwrap(), exact.real("value").unwrap())
        })
        .collect();
    // Steps of 1e-10; a blow-up multiplies errors by how much has grown.
    assert!(
        pairs.len() > 5 && pairs.iter().all(|(flow, exact)| (flow / exact - 1.0).abs() < 1e-7),
        "{pairs:?}"
    );
    assert_eq!(table.rows().next().unwrap().text("ending").unwrap(), "blown-up");

    let stack =
        text.replace("end_time = 5\nrows = 50", "layers = 3\nstep_size = 0.1\nattentions = [\"linear\"]");
    let table = run(&read(&stack));
    assert_eq!(table.rows().filter(|row| row.text("quantity").unwrap() == "mean").count(), 8);
    let collapse = "kind = \"layers\"\ndimension = 1\nscore = -1\nend_time = 1e8\nrows = 5";
    let table = run(&read(collapse));
    // S(t) = 1/(1 + 2t) passes 1e-6 at 499999.5.
    let time = last(&table, &[("quantity", Value::from("collapse-time"))]);
    assert!((time / 499_999.5 - 1.0).abs() < 1e-6, "{time}");
}
