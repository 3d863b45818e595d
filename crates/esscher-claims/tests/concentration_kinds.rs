//! The kinds `linearity`, `path` and `concentration` and their claims: plans, merges, known values, judges that can fail.

use esscher_claims::{Claim, Judgement, Scale, claims};
use esscher_core::concentration::{Concentration, Engine, Quantity};
use esscher_core::measure::{Gaussian, Law, Rademacher};
use esscher_core::prompt::{PromptLength, QueryAverage, SampleOptions, SampledUnits};
use esscher_core::{Mat, Unwatched, attention::Softmax};
use esscher_lab::{Experiment, Row, Table, Value};
use esscher_questions::{Planned, Settings, questions};
use esscher_report::{Block, Series, Verdict};
use std::sync::Arc;

const KINDS: [&str; 3] = ["linearity", "path", "concentration"];
const CLAIMS: [&str; 5] =
    ["gaussian-lemma", "almost-sure", "output-concentration", "gradient-concentration", "rate-exponent"];

fn read(text: &str) -> Planned {
    Planned::read("test.toml", text, Settings::default()).unwrap_or_else(|mistake| panic!("{mistake}"))
}

fn unit(planned: &Planned, number: usize) -> Table {
    planned.run_unit(number, &Unwatched).unwrap().unwrap()
}

fn run(text: &str) -> Table {
    let planned = read(text);
    let units = (0..planned.units().len()).map(|number| unit(&planned, number)).collect();
    planned.merge(units).unwrap()
}

fn example(kind: &str) -> &'static str {
    questions().iter().find(|known| known.name == kind).unwrap().example
}

fn claim(name: &str) -> &'static Claim {
    claims().iter().find(|claim| claim.name == name).unwrap()
}

/// A row on the operating table.
struct Patient(Vec<(String, Value)>);

impl Patient {
    fn text(&self, column: &str) -> &str {
        match self.0.iter().find(|(name, _)| name == column) {
            Some((_, Value::Text(text))) => text,
            _ => "",
        }
    }

    fn real(&self, column: &str) -> f64 {
        match self.0.iter().find(|(name, _)| name == column) {
            Some((_, Value::Real(value))) => *value,
            Some((_, Value::Integer(value))) => *value as f64,
            other => panic!("{other:?}"),
        }
    }

    fn set(&mut self, column: &str, value: f64) {
        self.0.iter_mut().find(|(name, _)| name == column).unwrap().1 = value.into();
    }

    fn scale(&mut self, factor: f64) {
        let value = self.real("value");
        self.set("value", factor * value);
    }
}

/// The table with some rows changed, or left out where the change answers false.
fn doctored(table: &Table, change: impl Fn(&mut Patient) -> bool) -> Table {
    let columns: Vec<(&str, _)> = table.columns().iter().map(|(name, kind)| (name.as_str(), *kind)).collect();
    let mut changed = Table::new(&columns);
    for row in table.rows() {
        let value = |name: &str| (name.to_string(), row.value(name).unwrap().clone());
        let mut patient = Patient(columns.iter().map(|(name, _)| value(name)).collect());
        if change(&mut patient) {
            changed.push(patient.0.into_iter().map(|(_, value)| value)).unwrap();
        }
    }
    changed
}

#[test]
fn specifications_normalise_to_themselves() {
    let mut texts: Vec<&str> = KINDS.iter().map(|kind| example(kind)).collect();
    texts.extend(CLAIMS.iter().flat_map(|name| [claim(name).quick, claim(name).full]));
    for text in texts {
        let planned = read(text);
        let again = read(planned.specification());
        assert_eq!(planned.specification(), again.specification());
        assert_eq!(planned.units(), again.units());
        let units = planned.units();
        assert!(units.iter().all(|unit| unit.cost > 0.0 && unit.cost.is_finite() && !unit.label.is_empty()));
    }
    // A seed from the door replaces the one of the file.
    let settings = Settings { seed: Some(77), ..Settings::default() };
    let planned = Planned::read("test.toml", example("path"), settings).unwrap();
    assert!(planned.specification().contains("seed = 77"));
    // A law in short is the law in long.
    let short = read("kind = \"linearity\"\ntokens = \"cube:2:0.5\"");
    let long = read("kind = \"linearity\"\n[tokens]\nfamily = \"cube\"\ndimension = 2\nscale = 0.5");
    assert_eq!(short.specification(), long.specification());
}

#[test]
fn examples_run_and_every_number_has_its_class() {
    for (number, kind) in KINDS.into_iter().enumerate() {
        let planned = read(example(kind));
        let result = run(example(kind));
        assert!(!result.is_empty());
        for row in result.rows() {
            let class = row.text("accuracy").unwrap();
            assert!(["exact", "quasi-monte-carlo", "sampled"].contains(&class), "{kind}: {class}");
        }
        let sections = planned.sections(&result).unwrap();
        let open = sections.iter().flat_map(|section| &section.blocks);
        // What is folded counts, too.
        let blocks: Vec<&Block> =
            open.flat_map(|block| std::iter::once(block).chain(block.folded())).collect();
        assert!(matches!(blocks[0], Block::Lead(_) | Block::Prose(_)));
        let mut ids: Vec<&str> = Vec::new();
        for block in blocks {
            match block {
                Block::Figure(figure) => {
                    ids.push(&figure.id);
                    assert!(figure.series.iter().all(|series| !series.points.is_empty()), "{}", figure.id);
                }
                Block::Panels(panels) => {
                    ids.push(&panels.id);
                    let mut series = panels.panels.iter().flat_map(|panel| &panel.series);
                    assert!(series.all(|series| !series.points.is_empty()), "{}", panels.id);
                }
                Block::Table(table) => {
                    ids.push(&table.id);
                    assert!(table.rows.iter().all(|row| row.len() == table.columns.len()));
                }
                _ => {}
            }
        }
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert!(count >= 2 && ids.len() == count, "{ids:?}");
        // A result of another kind is refused, not drawn.
        assert!(planned.sections(&run(example(KINDS[(number + 1) % KINDS.len()]))).is_err());
    }
}

/// Units run backwards, through Parquet bytes and by two readers of one specification give the same bytes.
#[test]
fn results_do_not_depend_on_who_runs_units_when() {
    for kind in KINDS {
        let (first, second) = (read(example(kind)), read(example(kind)));
        let forward = run(example(kind));
        let mut units: Vec<Table> = (0..first.units().len())
            .rev()
            .map(|number| {
                let table = unit(if number % 2 == 0 { &first } else { &second }, number);
                Table::from_parquet(&table.to_parquet(&[]).unwrap()).unwrap().0
            })
            .collect();
        units.reverse();
        let merged = first.merge(units).unwrap();
        assert_eq!(forward.to_parquet(&[]).unwrap(), merged.to_parquet(&[]).unwrap(), "{kind}");
    }
}

const SIMULATED: &str = r#"
kind = "concentration"
engine = "sampled"
seed = 9
level = 0.9
quantities = ["output", "score-gradient", "value-gradient"]
lengths = [10, 40, 150, 700]

[tokens]
family = "rademacher"
dimension = 2

[queries]
family = "gaussian"
dimension = 2

[sampled]
trials = 300
queries = 16
"#;

fn setting(tokens: Law) -> Concentration {
    let identity = Mat::<f64>::identity(2, 2);
    let head = Softmax::new(identity.as_ref(), identity.as_ref()).unwrap();
    let lengths = [10, 40, 150, 700].map(|length| PromptLength::new(length).unwrap());
    Concentration::new(head, tokens, Arc::new(Gaussian::standard(2).unwrap()), &lengths).unwrap()
}

/// The numbers of a statistic as (length, value, error).
fn numbers(result: &Table, quantity: &str, statistic: &str) -> Vec<(u64, f64, f64)> {
    let mut found = Vec::new();
    for row in result.rows() {
        if row.text("quantity").unwrap() == quantity && row.text("statistic").unwrap() == statistic {
            let length = row.integer("length").unwrap() as u64;
            found.push((length, row.real("value").unwrap(), row.real("error").unwrap()));
        }
    }
    found
}

fn rate_row<'a>(result: &'a Table, quantity: &str) -> Row<'a> {
    let same =
        |row: &Row| row.text("quantity").unwrap() == quantity && row.text("statistic").unwrap() == "rate";
    result.rows().find(same).unwrap()
}

#[test]
fn simulations_in_units_equal_the_core_bit_for_bit() {
    let result = run(SIMULATED);
    let setting = setting(Arc::new(Rademacher::new(2).unwrap()));
    let options = SampleOptions { trials: 300, queries: 16, seed: 9, ..SampleOptions::default() };
    let study = setting.resume(options, SampledUnits::default(), &Unwatched).unwrap();
    for (name, quantity) in [
        ("output", Quantity::Output),
        ("score-gradient", Quantity::ScoreGradient),
        ("value-gradient", Quantity::ValueGradient),
    ] {
        let points = study.points(quantity);
        let points: Vec<_> =
            points.iter().map(|point| (point.length.get(), point.value, point.absolute_error)).collect();
        assert_eq!(numbers(&result, name, "error"), points);
        let slopes = study.local_slopes(quantity).unwrap();
        let slopes: Vec<_> =
            slopes.iter().map(|slope| (slope.to.get(), slope.slope, slope.standard_error)).collect();
        assert_eq!(numbers(&result, name, "slope"), slopes);
        let rate = study.rate(quantity, 0.9).unwrap();
        assert_eq!(numbers(&result, name, "rate"), [(700, rate.exponent, rate.standard_error)]);
        let row = rate_row(&result, name);
        let interval = (row.real("lower").unwrap(), row.real("upper").unwrap());
        assert_eq!(interval, (rate.interval.lower, rate.interval.upper));
    }
}

/// Several units of the run for one simulation: the result is that of the core, and a lost part is noticed.
#[test]
fn simulations_are_cut_into_units_of_the_run() {
    let text = SIMULATED.replace("trials = 300", "trials = 6000").replace("\"score-gradient\", ", "");
    let planned = read(&text);
    let mut units: Vec<Table> = (0..planned.units().len()).map(|number| unit(&planned, number)).collect();
    assert!(units.len() > 1);
    let result = planned.merge(units.clone()).unwrap();
    let setting = setting(Arc::new(Rademacher::new(2).unwrap()));
    let options = SampleOptions {
        trials: 6000,
        queries: 16,
        seed: 9,
        score_gradient: false,
        ..SampleOptions::default()
    };
    let study = setting.resume(options, SampledUnits::default(), &Unwatched).unwrap();
    let rate = study.rate(Quantity::Output, 0.9).unwrap();
    assert_eq!(numbers(&result, "output", "rate"), [(700, rate.exponent, rate.standard_error)]);
    units[0] = doctored(&units[0], |row| row.real("unit") > 0.0);
    let refused = planned.merge(units).unwrap_err().to_string();
    assert!(refused.contains("unit 0 is missing"), "{refused}");
}

#[test]
fn exact_errors_are_those_of_the_core() {
    let text = SIMULATED
        .replace("rademacher", "gaussian")
        .replace("\"sampled\"", "\"exact\"")
        .replace("seed = 9", "seed = 9\nfit_from = 40\nsigmas = [1.5]");
    let result = run(&format!("{text}\n[exact]\ndirections = 4\nrandomisations = 3\n"));
    let covariance = Mat::from_fn(2, 2, |i, j| if i == j { 2.25 } else { 0.0 });
    let setting = setting(Arc::new(Gaussian::centred(covariance.as_ref()).unwrap()));
    let average = QueryAverage { directions: 4, randomisations: 3, seed: 9 };
    let study = setting.run(Engine::Exact(average), &Unwatched).unwrap();
    let found = numbers(&result, "output", "error");
    assert_eq!(found.len(), 4);
    for ((_, value, _), point) in found.iter().zip(study.points(Quantity::Output)) {
        assert!((value / point.value - 1.0).abs() < 1e-12);
    }
    // From 40 on there are three lengths for a rate, and κ(1.5) = 1/3 stands beside it.
    let rate = rate_row(&result, "output");
    assert_eq!(rate.integer("from_length").unwrap(), 40);
    assert!((rate.real("theory").unwrap() - 1.0 / 3.0).abs() < 1e-12);
    assert!((rate.real("operator_norm").unwrap() - 1.5).abs() < 1e-12);
    // The gradient in U has no exponent in theory.
    assert_eq!(rate_row(&result, "score-gradient").optional_real("theory").unwrap(), None);
}

/// κ(H) from its closed form: 1 below 1/√2, the conjugate of the golden ratio at 1, (√2 − 1)/2 at 2.
#[test]
fn exponents_of_theory_are_the_known_ones() {
    let text = "kind = \"concentration\"\nsigmas = [0.5, 0.7, 1, 2]\nlengths = [10, 100, 1000]\n[tokens]\nfamily = \
                \"gaussian\"\ndimension = 1\n[queries]\nfamily = \"gaussian\"\ndimension = 1";
    let result = run(text);
    let rates = result.rows().filter(|row| row.text("statistic").unwrap() == "rate");
    let rates: Vec<f64> = rates.map(|row| row.real("theory").unwrap()).collect();
    let known = [1.0, 1.0, 0.618_033_988_749_895, 0.207_106_781_186_548];
    assert_eq!(rates.len(), known.len());
    assert!(rates.iter().zip(known).all(|(rate, known)| (rate - known).abs() < 1e-14), "{rates:?}");
    // One direction and its opposite: nothing is random.
    assert!(result.rows().all(|row| row.text("accuracy").unwrap() == "exact"));
}

/// At one query of size 1 in three dimensions L times the error tends to e^{τ²}(tr G + |Gθ|²) = 4e.
#[test]
fn a_single_query_has_the_constant_of_the_delta_method() {
    let text = "kind = \"concentration\"\nlengths = [10, 1e12]\n[tokens]\nfamily = \"gaussian\"\ndimension = \
                3\n[queries]\nfamily = \"points\"\npoints = [[0.6, 0.0, 0.8]]";
    let (_, value, _) = numbers(&run(text), "output", "error")[1];
    assert!((value * 1e12 / (4.0 * 1f64.exp()) - 1.0).abs() < 1e-9, "{value}");
}

/// Signs saturate as tanh: tanh(2) = 0.9640275800758169, not 2.
#[test]
fn signs_deviate_from_linear_as_tanh() {
    let text = "kind = \"linearity\"\nradii = [2, 0.5]\n[[law]]\nfamily = \"rademacher\"\ndimension = 1\n[[law]]\nfamily = \
                \"gaussian\"\ndimension = 1\nmean = [3.0]\nscale = 2.0";
    let result = run(text);
    let value = |law: &str, statistic: &str, radius: f64| {
        let same = |row: &Row| {
            row.text("law").unwrap() == law
                && row.text("statistic").unwrap() == statistic
                && row.real("radius").unwrap() == radius
        };
        result.rows().find(same).unwrap().real("value").unwrap()
    };
    for (radius, output) in [(2.0, 0.964_027_580_075_816_9), (0.5, 0.462_117_157_260_009_8)] {
        assert!((value("rademacher", "gain", radius) - output / radius).abs() < 1e-14);
        assert!((value("rademacher", "deviation", radius) - (1.0 - output / radius)).abs() < 1e-14);
        // The mean of 3 is taken away from outputs of this size.
        assert!(value("gaussian", "deviation", radius) < 1e-14);
        assert!(value("gaussian", "residual", radius) < 1e-14);
    }
    assert!(value("rademacher", "residual", 2.0) > 0.05);
}

/// Where the log-partition is infinite there is no output: the row is there, the number is not.
#[test]
fn laws_without_a_tilt_have_no_number() {
    let text = "kind = \"linearity\"\nradii = [0.5, 5]\n[[law]]\nfamily = \"laplace\"\ndimension = 1";
    let result = run(text);
    for row in result.rows() {
        let missing = row.optional_real("value").unwrap().is_none();
        assert_eq!(missing, row.real("radius").unwrap() == 5.0);
    }
    read(text).sections(&result).unwrap();
}

/// A length is a prefix of the same prompt, whatever other lengths are asked for; prompts differ from each other.
#[test]
fn lengths_are_prefixes_of_one_prompt() {
    let text = |lengths: &str| example("path").replace("{ from = 10, to = 1e4, per_decade = 2 }", lengths);
    let distance = |result: &Table, prompt: i64| {
        let same = |row: &Row| {
            row.value("prompt").unwrap() == &Value::Integer(prompt)
                && row.value("length").unwrap() == &Value::Integer(100)
        };
        result.rows().find(same).unwrap().real("value").unwrap()
    };
    let (long, short) = (run(&text("[10, 100, 1000]")), run(&text("[100]")));
    // Sums are taken block by block, and a length that is asked for ends a block: the last digit may differ.
    assert!((distance(&long, 1) / distance(&short, 1) - 1.0).abs() < 1e-12);
    assert_ne!(distance(&long, 1), distance(&long, 2));
    // σ = 1, queries of size 1 in the plane: the expected square tends to e^{τ²}(tr G + |Gθ|²)/L = 3e/L.
    let result = run(&text("[10, 100, 1e6]").replace("prompts = 3", "prompts = 1"));
    let expected = result.rows().filter(|row| row.text("statistic").unwrap() == "expected").nth(2).unwrap();
    let constant = expected.real("value").unwrap().powi(2) * 1e6;
    assert!((constant / (3.0 * 1f64.exp()) - 1.0).abs() < 1e-4, "{constant}");
}

#[test]
fn mistakes_name_their_place() {
    let refused = |text: &str| Planned::read("mine.toml", text, Settings::default()).err().unwrap();
    let mistake = refused("kind = \"concentration\"\n[tokens]\nfamily = \"gausian\"\ndimension = 2");
    assert_eq!((mistake.line(), mistake.hint.as_deref()), (3, Some("did you mean \"gaussian\"?")));
    let text = example("concentration");
    for (from, to, place, says) in [
        ("engine = \"both\"", "engine = \"exact\"", "engine", "\"random signs\" has no exact theory"),
        ("\"random signs\"", "\"normal tokens\"", "[[law]]", "two laws are called \"normal tokens\""),
        ("longest = 10000", "longest = 5", "lengths", "above `sampled.longest` = 5"),
        ("[sampled]", "[tokens]\nfamily = \"cube\"\n[sampled]", "[tokens]", "give one of the two"),
        ("trials = 200", "trials = 1", "trials", "from 2 to"),
        ("sigmas = [1]", "sigmas = [1, 1]", "sigmas", "given twice"),
    ] {
        assert!(text.contains(from), "{from}");
        let changed = text.replace(from, to);
        let mistake = refused(&changed);
        assert!(mistake.message().contains(says), "{mistake}");
        let line = changed.lines().position(|line| line.starts_with(place)).unwrap() + 1;
        assert_eq!(mistake.line(), line, "{mistake}");
    }
    let mistake = refused(&example("path").replace("[[1, 0], [0, 1]]", "[[1, 0, 0]]"));
    assert!(
        mistake.message().contains("expected at most 64 queries of 2 numbers, found 1 of 3"),
        "{mistake}"
    );
}

fn verdict(name: &str, result: &Table) -> Verdict {
    let judgement = claim(name).judge(result).unwrap();
    println!("{name}: {:?}. {}", judgement.verdict, judgement.reason);
    // One document holds the evidence of all claims, and a reader tells eight colours apart.
    let mut ids: Vec<&str> = Vec::new();
    let can_be_told_apart = |series: &[Series]| {
        let mut entries: Vec<(&str, usize)> =
            series.iter().map(|series| (series.name.as_str(), series.colour)).collect();
        entries.retain(|(name, _)| !name.is_empty());
        entries.sort_unstable();
        entries.dedup();
        assert!(entries.len() <= 8 && series.iter().all(|series| series.colour < 8));
    };
    for block in judgement.evidence() {
        match block {
            Block::Figure(figure) => {
                ids.push(&figure.id);
                can_be_told_apart(&figure.series);
            }
            Block::Panels(panels) => {
                ids.push(&panels.id);
                panels.panels.iter().for_each(|panel| can_be_told_apart(&panel.series));
            }
            Block::Table(table) => {
                ids.push(&table.id);
                assert!(table.columns.len() <= 7, "{}", table.id);
            }
            _ => {}
        }
    }
    assert!(ids.iter().all(|id| id.starts_with(name)), "{ids:?}");
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "{ids:?}");
    speaks_as_it_judges(&judgement);
    judgement.verdict
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

#[test]
fn claims_are_complete() {
    let names = claims().iter().map(|claim| claim.name).filter(|name| CLAIMS.contains(name));
    assert_eq!(names.collect::<Vec<_>>(), CLAIMS);
    for name in CLAIMS {
        let claim = claim(name);
        for text in [
            claim.title,
            claim.statement,
            claim.formula,
            claim.citation,
            claim.measurement,
            claim.criterion,
            claim.decided_by,
        ] {
            assert!(!text.is_empty() && !text.contains("  "), "{name}: {text}");
        }
        for scale in [Scale::Quick, Scale::Full] {
            assert!(!claim.experiment(scale, Settings::default()).unwrap().units().is_empty());
        }
    }
}

#[test]
fn the_judge_of_the_lemma_can_fail() {
    let name = "gaussian-lemma";
    let result = run(claim(name).quick);
    assert_eq!(verdict(name, &result), Verdict::Holds);
    let section = claim(name).section(&claim(name).judge(&result).unwrap(), None);
    let is_named = |block: &Block| matches!(block, Block::Figure(figure) if figure.id.starts_with(name));
    assert!(section.blocks.iter().any(is_named));
    assert!(
        matches!(&section.blocks[0], Block::Lead(lead) if lead.contains(" digits: ") && lead.contains(" On 4 other laws")),
        "{:?}",
        section.blocks[0]
    );
    // A normal law that deviates, a control that looks linear, no control at all.
    let changed = |law: &'static str, statistic: &'static str| {
        doctored(&result, move |row| {
            if row.text("law").starts_with(law) && row.text("statistic") == statistic {
                row.set("value", 1e-9);
            }
            true
        })
    };
    assert_eq!(verdict(name, &changed("normal", "deviation")), Verdict::Fails);
    assert_eq!(verdict(name, &changed("random signs", "residual")), Verdict::NotMeasurable);
    let without = doctored(&result, |row| !row.text("law").contains("control"));
    assert_eq!(verdict(name, &without), Verdict::NotMeasurable);
}

#[test]
fn the_judge_of_single_prompts_can_fail() {
    let name = "almost-sure";
    let result =
        run(&claim(name).quick.replace("to = 1e6", "to = 1e5").replace("prompts = 4", "prompts = 2"));
    assert_eq!(verdict(name, &result), Verdict::Holds);
    let changed = |law: &'static str, factor: f64, lengths: std::ops::RangeInclusive<f64>| {
        doctored(&result, move |row| {
            if row.text("law") == law
                && row.text("statistic") == "distance"
                && lengths.contains(&row.real("length"))
            {
                row.scale(factor);
            }
            true
        })
    };
    // A prompt that does not come close, one that comes back far, a control that converges.
    assert_eq!(verdict(name, &changed("normal, scale 1", 20.0, 1e5..=1e5)), Verdict::Fails);
    assert_eq!(verdict(name, &changed("cube, scale 2", 500.0, 2e4..=9e4)), Verdict::Fails);
    let thawed = changed("normal, scale 8 (control)", 1e-3, 0.0..=1e5);
    assert_eq!(verdict(name, &thawed), Verdict::NotMeasurable);
    let without = doctored(&result, |row| !row.text("law").contains("control"));
    assert_eq!(verdict(name, &without), Verdict::NotMeasurable);
}

/// The quick specification of a claim with fewer scales, lengths and trials.
fn smaller(name: &str, changes: &[(&str, &str)]) -> Table {
    let mut text = claim(name).quick.to_string();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    run(&text)
}

#[test]
fn the_judges_of_concentration_can_fail() {
    let output = smaller(
        "output-concentration",
        &[
            ("sigmas = [1, 1.5, 2, 3]", "sigmas = [1, 2]"),
            ("trials = 400", "trials = 100"),
            ("longest = 1e4", "longest = 1e3"),
        ],
    );
    let gradient = smaller(
        "gradient-concentration",
        &[
            ("sigmas = [1, 1.5, 2]", "sigmas = [1, 2]"),
            ("trials = 300", "trials = 100"),
            ("longest = 1e4", "longest = 1e3"),
        ],
    );
    for (name, quantity, result) in [
        ("output-concentration", "output", &output),
        ("gradient-concentration", "score-gradient", &gradient),
        ("gradient-concentration", "value-gradient", &gradient),
    ] {
        assert_eq!(verdict(name, result), Verdict::Holds);
        let changed = |engine: &'static str, statistic: &'static str, from: f64, factor: f64| {
            doctored(result, move |row| {
                if row.text("engine") == engine
                    && row.text("statistic") == statistic
                    && row.text("quantity") == quantity
                    && row.real("length") >= from
                {
                    row.scale(factor);
                }
                true
            })
        };
        // Engines apart, an error above the bound at the longest length, a slope that is too flat.
        assert_eq!(verdict(name, &changed("sampled", "error", 0.0, 3.0)), Verdict::NotMeasurable);
        // Errors that grow with the scale faster than the bound, also those of laws that are simulated only.
        let grown = doctored(result, |row| {
            if row.text("statistic") == "error"
                && row.text("law") == "random signs"
                && row.real("sigma") > 1.2
            {
                let factor = row.real("sigma").powi(40);
                row.scale(factor);
            }
            true
        });
        assert_eq!(verdict(name, &grown), Verdict::Fails);
        assert_eq!(verdict(name, &changed("exact", "error", 5e11, 1e9)), Verdict::Fails);
        assert_eq!(verdict(name, &changed("exact", "slope", 5e11, 0.1)), Verdict::Fails);
        let alone = doctored(result, |row| row.text("engine") == "exact");
        assert_eq!(verdict(name, &alone), Verdict::NotMeasurable);
    }
}

#[test]
fn the_judge_of_rates_can_fail() {
    let name = "rate-exponent";
    let result = smaller(
        name,
        &[
            ("trials = 200", "trials = 150"),
            ("longest = 31623", "longest = 1e4"),
            ("directions = 256", "directions = 4"),
        ],
    );
    assert_eq!(verdict(name, &result), Verdict::Holds);
    let changed = |law: &'static str, statistic: &'static str, sigma: f64, factor: f64| {
        doctored(&result, move |row| {
            let is_last = statistic == "rate" || row.real("length") > 5e11;
            if row.text("law") == law
                && row.text("statistic") == statistic
                && row.real("sigma") == sigma
                && is_last
            {
                row.scale(factor);
            }
            true
        })
    };
    // The slope of a normal law, one where it is 1, and the rate of a bounded law.
    assert_eq!(verdict(name, &changed("normal", "slope", 2.0, 1.5)), Verdict::Fails);
    assert_eq!(verdict(name, &changed("normal", "slope", 0.5, 0.98)), Verdict::Fails);
    assert_eq!(verdict(name, &changed("cube", "rate", 3.0, 0.5)), Verdict::Fails);
    let alone = doctored(&result, |row| row.text("engine") == "exact");
    assert_eq!(verdict(name, &alone), Verdict::NotMeasurable);
}
