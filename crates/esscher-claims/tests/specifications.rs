//! Every shipped specification and example is in order, and no disfigured one makes the reader panic, hang or forget.

use esscher_claims::{Scale, claims};
use esscher_core::{Monitor, Unwatched};
use esscher_lab::Experiment;
use esscher_lab::specification::Mistake;
use esscher_questions::{Asked, Planned, Settings, Sources, questions};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
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
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments");
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
    Value(usize, String),
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
        (any::<usize>(), values).prop_map(|(line, value)| Accident::Value(line, value.to_string())),
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

/// The smallest requests of every question without a checkpoint. Lines that end in `#` take extreme numbers, as many as
/// there are.
const SMALLEST: &[&str] = &[
    r#"kind = "attend"
query = [0.5, -1.0] #
length = [1, 2, 1e12]
[tokens]
family = "gaussian"
dimension = 2
mean = [0.3, 0.1] #
covariance = [[1.0, 0.0], [0.0, 0.5]] #
[head]
score = [[0.5, 0.1], [0.0, 0.7]] #
value = [[2.0, 0.0]] #
"#,
    r#"kind = "attend"
query = [0.5] #
length = [1, 2, 1e12]
[tokens]
family = "points"
points = [[0.5], [1.0], [-0.5]] #
weights = [1.0, 2.0, 1.0] #
[head]
score = 0.5 #
value = 2.0 #
"#,
    r#"kind = "attend"
query = [0.5] #
length = [1, 10]
[tokens]
family = "rademacher"
dimension = 1
mean = [0.5] #
scale = 0.5 #
[head]
score = 0.5 #
value = 2.0 #
"#,
    r#"kind = "horizon"
tolerance = 0.1 #
quantity = "score-gradient"
query = [0.5] #
[tokens]
family = "mixture"
dimension = 1
[[tokens.component]]
weight = 1.0 #
mean = [0.5] #
scale = 0.5 #
[[tokens.component]]
weight = 2.0 #
mean = [-0.5] #
covariance = [[0.25]] #
[head]
score = 0.5 #
value = 2.0 #
"#,
    r#"kind = "horizon"
tolerance = 0.1 #
directions = 2
randomisations = 2
[tokens]
family = "gaussian"
dimension = 2
mean = [0.5, 1.0] #
scale = 0.3 #
[head]
score = 0.5 #
value = 2.0 #
"#,
    r#"kind = "linearity"
radii = [1.0, 2.0] #
directions = 3
[head]
score = 0.5 #
value = 2.0 #
[[law]]
name = "normal"
family = "gaussian"
dimension = 1
mean = [0.5] #
covariance = [[0.25]] #
[[law]]
name = "uniform"
family = "cube"
dimension = 1
mean = [0.5] #
"#,
    r#"kind = "path"
prompts = 1
sigmas = [1.0, 2.0] #
lengths = [1, 2, 100]
queries = [[0.5]] #
[head]
score = 0.5 #
value = 2.0 #
[[law]]
name = "normal"
family = "gaussian"
dimension = 1
mean = [0.5] #
covariance = [[0.25]] #
[[law]]
name = "points"
family = "points"
points = [[0.5], [1.0], [-0.5]] #
"#,
    r#"kind = "concentration"
engine = "both"
quantities = ["output", "score-gradient", "value-gradient"]
sigmas = [1.0, 2.0] #
lengths = [1, 2, 100, 1e12]
[exact]
directions = 2
randomisations = 2
[sampled]
trials = 4
queries = 2
longest = 100
[head]
score = 0.5 #
value = 2.0 #
[[law]]
name = "normal"
family = "gaussian"
dimension = 1
mean = [0.5] #
covariance = [[0.25]] #
[queries]
family = "gaussian"
dimension = 1
mean = [0.5] #
covariance = [[0.25]] #
"#,
    r#"kind = "training"
models = ["softmax", "infinite", "linear"]
lengths = [1, 1e12]
end_time = 1.0 #
rows = 2
tolerance = 1e-4 #
initial_scale = 0.5 #
[task]
covariance = "eigenvalues"
eigenvalues = [1.0, 2.0] #
noise = 0.1 #
prior = 1.0 #
"#,
    r#"kind = "layers"
attentions = ["softmax", "linear", "l2", "sinkhorn"]
dimension = 2
score = [[0.3, 0.0], [0.0, -0.5]] #
value = 1.0 #
end_time = 1.5 #
rows = 2
[start]
mean = [0.5, 0.0] #
covariance = [[1.0, 0.0], [0.0, 0.5]] #
"#,
    r#"kind = "layers"
dimension = 1
score = 0.3 #
value = 1.0 #
layers = 3
step_size = 0.5 #
[start]
mean = [0.5] #
covariance = 0.5 #
"#,
    r#"kind = "authors"
lengths = [1, 2]
steps = 2
rate = 0.1 #
test_prompts = 2
bayes_trials = 2
"#,
    r#"kind = "training-horizon"
excesses = [5.0] #
initial_fraction = 0.5 #
[task]
covariance = "eigenvalues"
eigenvalues = [1.0, 2.0] #
noise = 0.1 #
prior = 1.0 #
"#,
    #[cfg(feature = "zoo")]
    r#"kind = "large-prompts"
mechanisms = ["softmax", "linear-elu", "gla"]
query = [0.5] #
lengths = [1, 4]
prompts = 4
[tokens]
family = "gaussian"
dimension = 1
mean = [0.5] #
covariance = [[0.25]] #
"#,
    #[cfg(feature = "training")]
    r#"kind = "recall"
mechanisms = ["gla"]
vocabulary = 10
length = 8
pairs = 1
width = 2
heads = 1
layers = 1
steps = 2
batch = 2
test_examples = 2
learning_rate = 0.01 #
weight_decay = 0.1 #
until_accuracy = 0.9 #
"#,
];

/// Both ends of the doubles and what lies between them.
const EXTREME: [&str; 17] = [
    "0", "1", "-1", "1e-320", "-1e-320", "1e-200", "1e-160", "-1e-100", "1e-16", "1e16", "1e77", "-1e100",
    "1e154", "-1e160", "1e200", "1.7e308", "-1.7e308",
];

/// One of the smallest requests with some numbers of some lines made extreme.
fn extreme() -> impl Strategy<Value = String> {
    let number = || prop::sample::select(EXTREME.to_vec());
    let changes = prop::collection::vec((any::<usize>(), any::<usize>(), number()), 1..4);
    (prop::sample::select(SMALLEST.to_vec()), changes).prop_map(|(text, changes)| {
        let marked: Vec<usize> = text
            .lines()
            .enumerate()
            .filter(|(_, line)| line.ends_with('#'))
            .map(|(index, _)| index)
            .collect();
        let mut text = text.to_string();
        for (line, place, number) in changes {
            let line = marked[line % marked.len()];
            let old = text.lines().nth(line).unwrap_or_default();
            let value = old.split_once('=').map_or("", |(_, value)| value.trim_end_matches('#').trim());
            let value = with_number(value, place, number);
            text = suffer(&text, &[Accident::Value(line, value)]);
        }
        text
    })
}

/// A value with one of its numbers replaced.
fn with_number(value: &str, place: usize, number: &str) -> String {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || ".-+".contains(letter);
    let count = value.split(|letter| !is_part(letter)).filter(|part| !part.is_empty()).count().max(1);
    let (mut seen, mut written, mut rest) = (0, String::new(), value);
    while let Some(start) = rest.find(is_part) {
        let end = rest[start..].find(|letter| !is_part(letter)).map_or(rest.len(), |length| start + length);
        written.push_str(&rest[..start]);
        written.push_str(if seen == place % count { number } else { &rest[start..end] });
        (seen, rest) = (seen + 1, &rest[end..]);
    }
    written + rest
}

/// Stops what takes too long to be waited for here.
struct Patience(std::time::Instant);

impl Monitor for Patience {
    fn progress(&self, _completed: usize, _total: usize) {}

    fn should_stop(&self) -> bool {
        self.0.elapsed().as_millis() > 500
    }
}

/// Words that are ours alone: of tables, of Rust, of numbers that are none.
const INTERNAL: [&str; 7] = ["column", "Real(", "unwrap", "panicked", "NaN", "is inf", "unit of"];

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 600, failure_persistence: None, rng_seed: RngSeed::Fixed(7), ..ProptestConfig::default()
    })]

    /// What leaves the doubles is refused in words for people, and everything else is answered, in time.
    #[test]
    fn extreme_numbers_are_answered_or_refused_in_plain_words(text in extreme()) {
        let start = std::time::Instant::now();
        let answer = match Planned::read("extreme.toml", &text, Settings::default()) {
            Err(mistake) => Err(mistake.to_string()),
            Ok(planned) => match planned.answer(&Patience(start)) {
                Ok(Some(table)) => planned.sections(&table).map(|_| ()).map_err(|failure| failure.to_string()),
                Ok(None) => Ok(()),
                Err(failure) => Err(failure.to_string()),
            },
        };
        if let Err(message) = answer {
            prop_assert!(!INTERNAL.iter().any(|word| message.contains(word)), "{message}\n{text}");
        }
        prop_assert!(start.elapsed().as_secs() < 60, "{:?}\n{text}", start.elapsed());
    }
}

/// The answer to a specification as JSON, or why there is none.
fn answer(text: &str) -> Result<serde_json::Value, String> {
    let planned =
        Planned::read("scaled.toml", text, Settings::default()).map_err(|mistake| mistake.to_string())?;
    let table = planned.answer(&Unwatched).map_err(|failure| failure.to_string())?;
    Ok(table.ok_or("stopped")?.to_json())
}

/// Tokens 2ᵉz read by U/2ᵉ have the same scores: every distance is 2ᵉ times as long, to the last bit, and the mean of normal
/// tokens moves none of them. Where that is no double the answer is an error, never 0.
#[test]
fn answers_scale_with_the_tokens_and_do_not_move_with_their_mean() {
    let requests: [(&str, &[&str], i32); 4] = [
        ("kind = \"attend\"\nquery = [0.5, -1.0]\nlength = [1, 2, 1e12]\n", &["root-mean-square-error"], 1),
        ("kind = \"horizon\"\nquery = [0.5, -1.0]\ntolerance = TOLERANCE\n", &["output"], 1),
        ("kind = \"path\"\nprompts = 1\nlengths = [1, 2, 100]\nqueries = [[0.5, -1.0]]\n", &["expected"], 1),
        (
            "kind = \"concentration\"\nlengths = [1, 2, 1e12]\nqueries = \"gaussian:2\"\n\
          exact = { directions = 2, randomisations = 2 }\n",
            &["error"],
            2,
        ),
    ];
    for (request, kept, power) in requests {
        let numbers = |exponent: i32, mean: f64| -> Result<Vec<(f64, f64)>, String> {
            let scale = 2f64.powi(exponent);
            let (variance, covariance, score) = (scale * scale, 0.25 * scale * scale, 0.5 / scale);
            let request = request.replace("TOLERANCE", &format!("{:e}", 0.1 * scale));
            let text = format!(
                "{request}[head]\nscore = {score:e}\n[tokens]\nfamily = \"gaussian\"\ndimension = 2\n\
                 mean = [{mean:e}, 0]\ncovariance = [[{variance:e}, {covariance:e}], [{covariance:e}, {variance:e}]]\n"
            );
            let rows = answer(&text)?;
            let is_kept = |row: &&serde_json::Value| {
                [&row["quantity"], &row["statistic"]].iter().any(|word| kept.iter().any(|kept| *word == kept))
            };
            let number = |row: &serde_json::Value| {
                let unit = scale.powi(power);
                (row["value"].as_f64().unwrap() / unit, row["length"].as_f64().unwrap_or_default())
            };
            let found: Vec<(f64, f64)> =
                rows.as_array().unwrap().iter().filter(is_kept).map(number).collect();
            assert!(!found.is_empty(), "{text}\n{rows}");
            Ok(found)
        };
        let plain = numbers(0, 0.0).unwrap();
        assert!(plain.iter().all(|(value, _)| *value > 0.0), "{plain:?}");
        for (exponent, mean) in
            [(0, 1e12), (0, -7.0), (40, 0.0), (-40, 3.0), (110, 0.0), (-110, 0.0), (-200, 0.0)]
        {
            let found = numbers(exponent, mean);
            assert_eq!(found, Ok(plain.clone()), "{request} 2^{exponent}, mean {mean}");
        }
        for exponent in [-505, 505] {
            match numbers(exponent, 0.0) {
                Ok(found) => assert_eq!(found, plain, "{request} 2^{exponent}"),
                Err(message) => {
                    assert!(message.contains("flows double precision: scale the tokens"), "{message}")
                }
            }
        }
    }
}

/// A tolerance is a size, not its square: any positive number has an answer.
#[test]
fn any_tolerance_has_its_horizon() {
    let horizon = |tolerance: &str| {
        let text =
            format!("kind = \"horizon\"\nquery = [0.5]\ntokens = \"gaussian:1\"\ntolerance = {tolerance}\n");
        let rows = answer(&text).unwrap();
        (rows[0]["outcome"].as_str().unwrap().to_string(), rows[0]["length"].as_u64())
    };
    for tiny in ["1e-320", "1e-300", "1e-162", "1e-152"] {
        assert_eq!(horizon(tiny), ("beyond".to_string(), None), "{tiny}");
    }
    for huge in ["10", "1e154", "1e160", "1.7e308"] {
        assert_eq!(horizon(huge), ("found".to_string(), Some(1)), "{huge}");
    }
}

/// Processor time of these runs, report included, on the machine that they were measured on; told is half to twice that.
#[test]
fn the_plan_tells_how_long_large_initial_layers_take() {
    for (scale, seconds) in [("20", 5.5), ("100", 26.0)] {
        let text = format!(
            "kind = \"training\"\nmodels = [\"softmax\"]\nlengths = [100]\ninitial_scale = {scale}\n\
             [task]\ncovariance = \"toeplitz\"\ndimensions = [3]\n"
        );
        let planned = Planned::read("training.toml", &text, Settings::default()).unwrap();
        let told: f64 = planned.units().iter().map(|unit| unit.cost).sum();
        assert!((0.5..=2.0).contains(&(told / seconds)), "α = {scale}: {told} s told, {seconds} s taken");
    }
}

/// Infinity is refused in words for people, by every question.
#[test]
fn a_number_beyond_the_doubles_is_refused_by_the_name_of_its_quantity() {
    let law = "[[law]]\nname = \"far away\"\nfamily = \"gaussian\"\ndimension = 2\nmean = [1e308, 1e308]\n";
    let short =
        "kind = \"attend\"\nquery = [1, 1]\nlength = [10]\n[tokens]\nfamily = \"gaussian\"\ndimension = 2\n";
    let path = "kind = \"path\"\nprompts = 1\nlengths = [10]\nqueries = [[1, 1]]\n";
    let sampled =
        "kind = \"concentration\"\nengine = \"sampled\"\nlengths = [10]\nqueries = \"gaussian:2\"\n";
    let underflows = "underflows double precision: scale the tokens, the query or the matrices up";
    for (text, said) in [
        (format!("kind = \"linearity\"\n{law}"), "overflows double precision: scale the tokens"),
        (
            "kind = \"layers\"\ndimension = 2\nstart.mean = [1e308, 1e308]".to_string(),
            "overflows double precision",
        ),
        (format!("{path}{law}"), "is 1e308: expected at most 4.5e12 of its standard deviations"),
        (format!("{sampled}{law}"), "is 1e308: expected at most 4.5e12 of its standard deviations"),
        (format!("{short}scale = 1e-200\n"), underflows),
        (format!("{short}[head]\nvalue = 1e-200\n"), underflows),
        (format!("{short}[head]\nvalue = 1e200\n"), "the mean squared error of the output overflows"),
        (format!("{short}[head]\nscore = 1e308\n"), "the score deviation τ of the query overflows"),
    ] {
        let message = answer(&text).expect_err(&text);
        assert!(message.contains(said), "{message}\n{text}");
    }
    // The mean of normal tokens is no matter for their exact errors.
    answer(&format!("{short}mean = [1e308, 1e308]\n")).unwrap();
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
