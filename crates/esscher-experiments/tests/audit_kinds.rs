//! The audit's kinds and their conduct, on a checkpoint of random numbers that is made on the spot.

use esscher_core::Unwatched;
use esscher_experiments::conduct::{Audit, AuditRequest, Error, audit};
use esscher_experiments::{Group, Planned, Settings, catalogue, kinds};
use esscher_lab::{Experiment, Origin, Outcome, RunFolder, Share, Table, Unit, Watcher};
use esscher_report::Block;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

const KINDS: [&str; 2] = ["audit-heads", "audit-model"];

fn example(name: &str) -> &'static str {
    kinds().iter().find(|kind| kind.name == name).unwrap().example
}

fn read(text: &str) -> Planned {
    Planned::read("test.toml", text, Settings::default())
        .unwrap_or_else(|mistake| panic!("{mistake}\n{text}"))
}

fn refused(text: &str) -> String {
    let mistake = Planned::read("test.toml", text, Settings::default()).err();
    mistake.unwrap_or_else(|| panic!("accepted:\n{text}")).to_string()
}

fn run(planned: &Planned) -> Table {
    let units =
        (0..planned.units().len()).map(|unit| planned.run_unit(unit, &Unwatched).unwrap().unwrap()).collect();
    planned.merge(units).unwrap()
}

#[test]
fn examples_run_have_a_normal_form_and_describe_themselves() {
    for name in KINDS {
        let planned = read(example(name));
        assert_eq!(read(planned.specification()).specification(), planned.specification());
        assert!(planned.specification().contains("sha256 = "), "the checkpoint is known by its sum");
        let result = run(&planned);
        let sections = planned.sections(&result).unwrap();
        assert!(
            sections
                .iter()
                .any(|section| section.blocks.iter().any(|block| matches!(block, Block::Table(_))))
        );
        let other = read(example(KINDS[usize::from(name == KINDS[0])]));
        assert!(other.sections(&result).is_err(), "a result of another kind is refused");
    }
}

#[test]
fn a_unit_depends_on_nothing_but_its_number() {
    for name in KINDS {
        let (first, second) = (read(example(name)), read(example(name)));
        let last = first.units().len() - 1;
        let late = second.run_unit(last, &Unwatched).unwrap();
        for unit in 0..last {
            first.run_unit(unit, &Unwatched).unwrap();
        }
        assert!(first.run_unit(last, &Unwatched).unwrap() == late, "{name}");
    }
}

#[test]
fn heads_are_shown_as_maps_of_layers_and_heads() {
    let planned = read(example("audit-heads"));
    let sections = planned.sections(&run(&planned)).unwrap();
    let maps: Vec<_> = sections
        .iter()
        .flat_map(|section| &section.blocks)
        .filter_map(|block| if let Block::HeatMap(map) = block { Some(map) } else { None })
        .collect();
    assert_eq!(maps.len(), 4);
    for map in maps {
        assert_eq!((map.cells.len(), map.cells[0].len()), (2, 4), "{}", map.id);
        assert!(map.cells.iter().flatten().all(Option::is_some), "{}", map.id);
    }
}

#[test]
fn several_lengths_give_curves() {
    let text = example("audit-heads").replace("lengths = [96]", "lengths = [192, 96]");
    let planned = read(&text);
    let sections = planned.sections(&run(&planned)).unwrap();
    let figures =
        sections.iter().flat_map(|section| &section.blocks).filter(|block| matches!(block, Block::Figure(_)));
    assert_eq!(figures.count(), 2);
}

#[test]
fn requests_that_do_not_fit_are_refused_with_what_was_found() {
    let heads = example("audit-heads");
    let model = example("audit-model");
    let long = refused(&heads.replace("[96]", "[512]"));
    assert!(long.contains("512") && long.contains("256") && long.contains("`lengths`"), "{long}");
    let long = refused(&model.replace("length = 96", "length = 512"));
    assert!(long.contains("512") && long.contains("256") && long.contains("`length`"), "{long}");
    let unknown = refused(&heads.replace("\"mean\"", "\"meen\""));
    assert!(unknown.contains("`candidates`") && unknown.contains("meen"), "{unknown}");
    assert!(refused(&heads.replace("\"mean\"", "\"dropped\"")).contains("twice"));
    assert!(refused(&heads.replace("\"mean\"", "\"exact\"")).contains("exact"));
    assert!(refused(&heads.replace("tiny-random", "tiny-randon")).contains("tiny-randon"));
    assert!(refused(&heads.replace("texts = 3", "texts = 2")).contains("`texts`"));
    let equal = refused(&model.replace("\"jargon\"", "\"bible\""));
    assert!(equal.contains("`test`") && equal.contains("calibrates"), "{equal}");
    let parts = "test = \"bible\"\ntext_part = \"first-two-thirds\"\ntest_part = \"last-third\"";
    read(&model.replace("test = \"jargon\"", parts));
    let layers = refused(&model.replace(", \"exact exact exact exact\"]", "]"));
    assert!(layers.contains("`assignments[2].rows`") && layers.contains("layers"), "{layers}");
    let heads_of_row = refused(&model.replace("\"exact exact exact exact\"", "\"exact exact\""));
    assert!(heads_of_row.contains("heads"), "{heads_of_row}");
    assert!(refused(&model.replace("first layer", "all dropped")).contains("two assignments"));
}

#[test]
fn texts_that_are_empty_or_short_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    let heads = |text: String| refused(&example("audit-heads").replace("\"bible\"", &format!("{text:?}")));
    assert!(heads(file("empty.txt", " \n")).contains("`text`"));
    let short = heads(file("short.txt", "In the beginning."));
    assert!(short.contains("tokens") && short.contains("longer text"), "{short}");
}

/// tiny-random with a longer context, of whose vocabulary the given tokens are renamed: a file in a folder.
fn long_model(folder: &Path, name: &str, renamed: &dyn Fn(u8) -> bool) -> String {
    let bytes = esscher_experiments::models::tiny::bytes().checkpoint;
    let number =
        |place: usize| i32::from_le_bytes(bytes[4 * place..4 * place + 4].try_into().unwrap()) as usize;
    let (head_dimension, context, longer) = (number(0) / number(3), number(6), 1024);
    // The tokenizer of tiny-random follows the unused tables of angles; it begins with its longest length and the first token.
    let begin =
        [6_i32.to_le_bytes().as_slice(), &0_f32.to_le_bytes(), &5_i32.to_le_bytes(), b"<unk>"].concat();
    let tokenizer = bytes.windows(begin.len()).position(|window| window == begin).unwrap();
    let mut made = bytes[..tokenizer].to_vec();
    made[24..28].copy_from_slice(&(longer as i32).to_le_bytes());
    made.resize(tokenizer + 4 * (longer - context) * head_dimension, 0);
    let mut rest = bytes[tokenizer..].to_vec();
    for byte in (0..=u8::MAX).filter(|byte| renamed(*byte)) {
        let token = format!("<0x{byte:02X}>");
        let place = rest.windows(6).position(|window| window == token.as_bytes()).unwrap();
        rest[place..place + 6].copy_from_slice(b"unused");
    }
    made.extend(rest);
    let path = folder.join(name);
    fs::write(&path, made).unwrap();
    path.display().to_string()
}

fn facts(planned: &Planned) -> String {
    let sections = planned.sections(&run(planned)).unwrap();
    let facts = sections.iter().flat_map(|section| &section.blocks).find_map(|block| match block {
        Block::Facts(facts) => Some(format!("{facts:?}")),
        _ => None,
    });
    facts.unwrap()
}

#[test]
fn needles_that_nobody_asked_for_fail_no_audit() {
    let folder = tempfile::tempdir().unwrap();
    let text = |name: &str, sentence: &str| {
        let path = folder.path().join(name);
        fs::write(&path, sentence.repeat(1300 / sentence.len() + 1)).unwrap();
        path.display().to_string()
    };
    let (one, other) =
        (text("one.txt", "The sea and the sky. "), text("other.txt", "Birds sing in the morning. "));
    let specification = |model: &str, needles: &str| {
        format!(
            "kind = \"audit-model\"\nmodel = {model:?}\ntext = {one:?}\ntest = {other:?}\nlength = 512\ntexts = 2\nwindow = 16\n\
             {needles}[[assignments]]\nname = \"all dropped\"\neverywhere = \"dropped\"\n"
        )
    };
    // Four prompts in a text of 1300 tokens: all begin where a whole one fits.
    let model = long_model(folder.path(), "long.bin", &|_| false);
    let planned = read(&specification(&model, ""));
    assert!(planned.specification().contains("needles = 4"), "{}", planned.specification());
    assert!(facts(&planned).contains("4 prompts with four hidden numbers"));
    // A vocabulary without digits: none by default, and the facts say so; those that are asked for are refused.
    let model = long_model(folder.path(), "wordy.bin", &|byte| byte.is_ascii_digit());
    let planned = read(&specification(&model, ""));
    assert!(planned.specification().contains("needles = 0"), "{}", planned.specification());
    assert_eq!(read(planned.specification()).specification(), planned.specification());
    let told = facts(&planned);
    assert!(told.contains("no needles are hidden, for the vocabulary has no token"), "{told}");
    let message = refused(&specification(&model, "needles = 1\n"));
    assert!(message.contains("`needles`") && message.contains("no token"), "{message}");
    let short = refused(&example("audit-model").replace("window = 16", "window = 16\nneedles = 1"));
    assert!(short.contains("`needles`") && short.contains("longer prompt"), "{short}");
}

/// Stops after so many units.
struct StopsAfter {
    left: AtomicUsize,
}

impl Watcher for StopsAfter {
    fn plan(&self, _units: &[(usize, Unit, bool)]) {}
    fn part(&self, _unit: usize, _fraction: f64) {}
    fn finished(&self, _unit: usize) {
        let _ = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
    }
    fn should_stop(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }
}

fn audited(request: &AuditRequest, units: usize) -> Result<Audit, Error> {
    let watcher = StopsAfter { left: AtomicUsize::new(units) };
    let origin = Origin { program: "test".to_string(), version: "0".to_string(), commit: None };
    let run = |_: &str, planned: &Planned, folder: &RunFolder| -> Result<Outcome, Error> {
        Ok(esscher_lab::run(planned, folder, Share::WHOLE, &origin, &watcher)?)
    };
    audit(request, run, |_| {})
}

fn tiny(out: &Path) -> AuditRequest {
    AuditRequest {
        lengths: vec![160],
        tolerance: 0.3,
        candidates: ["dropped", "mean", "tilted-gaussian"].map(String::from).to_vec(),
        texts: Some(3),
        out: out.to_path_buf(),
        ..AuditRequest::of("tiny-random")
    }
}

#[test]
fn an_audit_leaves_a_report_verdicts_and_the_table_of_duo_attention() {
    let out = tempfile::tempdir().unwrap();
    let audit = audited(&tiny(out.path()), usize::MAX).unwrap();
    let found = audit.found.unwrap();
    assert_eq!((found.sizes, found.heads.all(), found.key_value_heads.all()), ([2, 4, 2], 8, 4));
    assert_eq!(found.assignments[0].name, "exact attention");
    assert_eq!(found.assignments[0].difference.mean, 0.0);
    assert!(found.assignments.len() > 6, "controls and equal budgets");
    let budgets = |name: &str| found.assignments.iter().any(|one| one.name.contains(name));
    assert!(
        ["sink-window/", "observed-attention/", "expected-attention/", "tilted-means/", "reduced-gaussian/"]
            .into_iter()
            .all(budgets)
    );

    let page = fs::read_to_string(&found.report).unwrap();
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(place("What can be saved") < place("Which heads may be replaced"));

    let table = fs::read_to_string(&found.full_attention_heads).unwrap();
    let rows: Vec<Vec<f64>> =
        table.lines().map(|line| line.split('\t').map(|cell| cell.parse().unwrap()).collect()).collect();
    assert_eq!(rows.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2]);
    assert!(rows.iter().flatten().all(|number| (0.0..=1.0).contains(number)));
    let free = rows.iter().flatten().filter(|number| **number < 0.5).count();
    assert_eq!(free, found.key_value_heads.accepted, "the threshold one half gives the verdicts");

    let configuration = fs::read_to_string(audit.folder.join("config.json")).unwrap();
    assert!(configuration.contains("\"sink_size\": 4") && configuration.contains("\"recent_size\": 64"));

    let verdicts: serde_json::Value = serde_json::from_slice(&fs::read(&found.verdicts).unwrap()).unwrap();
    assert_eq!(verdicts["schema"], 1);
    assert_eq!(verdicts["key_value_heads"].as_array().unwrap().len(), 4);
    let heads = verdicts["heads"].as_array().unwrap();
    assert_eq!(heads.len(), 8);
    for head in heads {
        assert!(["accepted", "uncertain", "refused"].contains(&head["verdict"].as_str().unwrap()));
        assert_eq!(head["errors"].as_array().unwrap().len(), 6, "three candidates, offline and streaming");
        for error in head["errors"].as_array().unwrap() {
            assert!(error["low"].as_f64().unwrap() <= error["mean"].as_f64().unwrap());
        }
        assert!(head["portrait"]["score_variance"].as_f64().unwrap() > 0.0);
        assert_eq!(head["portrait"]["sink_positions"].as_array().unwrap().len(), 3);
    }
}

#[test]
fn a_stopped_audit_goes_on_where_it_was() {
    let (out, whole) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let request = tiny(out.path());
    assert!(audited(&request, 1).unwrap().found.is_none(), "stopped among the heads");
    assert!(audited(&request, 6).unwrap().found.is_none(), "stopped in the model");
    let resumed = audited(&request, usize::MAX).unwrap();
    let straight = audited(&tiny(whole.path()), usize::MAX).unwrap();
    for name in ["heads/result.parquet", "model/result.parquet", "verdicts.json", "full_attention_heads.tsv"]
    {
        let bytes = |audit: &Audit| fs::read(audit.folder.join(name)).unwrap();
        assert!(bytes(&resumed) == bytes(&straight), "{name}");
    }
}

#[test]
fn an_audit_of_heads_only_tests_nothing() {
    let out = tempfile::tempdir().unwrap();
    let request = AuditRequest { heads_only: true, ..tiny(out.path()) };
    let audit = audited(&request, usize::MAX).unwrap();
    assert!(audit.found.unwrap().assignments.is_empty());
    assert!(audit.folder.join("heads/report.html").exists() && !audit.folder.join("model").exists());
}

#[test]
fn one_text_is_divided_so_that_what_calibrates_does_not_test() {
    let out = tempfile::tempdir().unwrap();
    let request = AuditRequest { text: Some("bible".to_string()), ..tiny(out.path()) };
    let audit = audited(&request, usize::MAX).unwrap();
    let specification = fs::read_to_string(audit.folder.join("model/spec.toml")).unwrap();
    assert!(specification.contains("text_part = \"first-two-thirds\"\n"), "{specification}");
    assert!(specification.contains("test_part = \"last-third\"\n"), "{specification}");
    let page = fs::read_to_string(audit.found.unwrap().report).unwrap();
    assert!(page.contains("the last third of"));
}

#[test]
fn the_catalogue_names_the_models() {
    let models: Vec<_> = catalogue().into_iter().filter(|entry| entry.group == Group::Model).collect();
    let names: Vec<&str> = models.iter().map(|entry| entry.name).collect();
    assert!(names.contains(&"stories15M") && names.contains(&"tiny-random"), "{names:?}");
    assert!(models.iter().all(|entry| entry.details.iter().any(|(name, _)| *name == "download")));
}

/// Needs stories15M: the folder with `package/src/llama2.data`, as ESSCHER_MODELS names it.
#[test]
fn a_real_model_has_heads_that_may_be_replaced() {
    let Some(folder) = std::env::var_os("ESSCHER_MODELS") else {
        println!("skipped: ESSCHER_MODELS names no folder of checkpoints");
        return;
    };
    let model = Path::new(&folder).join("package/src/llama2.data");
    let out = tempfile::tempdir().unwrap();
    let request = AuditRequest {
        text: Some("stories".to_string()),
        out: out.path().to_path_buf(),
        ..AuditRequest::of(&model.display().to_string())
    };
    let began = std::time::Instant::now();
    let found = audited(&request, usize::MAX).unwrap().found.unwrap();
    println!("{found:#?}\n{:.1} s", began.elapsed().as_secs_f64());
    assert_eq!(found.heads.all(), 36);
    let named = |name: &str| found.assignments.iter().find(|one| one.name == name).unwrap().difference;
    // Whatever the random heads are, keeping the refused ones exactly must beat dropping the middle of all.
    let (accepted, dropped) = (named("accepted key-value heads"), named("all heads dropped"));
    assert!(accepted.mean < dropped.mean, "{accepted:?} {dropped:?}");
}
