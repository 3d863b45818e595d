//! Audits of dumps: queries, keys and values that any model's heads saw of texts.

use super::*;

/// The checkpoint of random numbers.
fn tiny_model() -> Model {
    let bytes = esscher_models::tiny::bytes().checkpoint;
    let source = Source { name: "tiny", weights: &bytes, config: None, tokenizer: None };
    Model::new(Checkpoint::read(&source).unwrap().weights).unwrap()
}

/// Name, shape and numbers.
type Tensors = Vec<(String, Vec<usize>, Vec<f32>)>;

/// Attends exactly and keeps what heads see; with scale 1 the queries are the tilts.
struct Dumping {
    model: Model,
    tensors: Tensors,
}

impl LayerAttention for Dumping {
    fn attend(&mut self, input: &LayerInput<'_>, output: &mut [f32]) -> Result<(), esscher_audit::Error> {
        let shape = *self.model.shape();
        let Weights::Llama(weights) = self.model.weights() else { unreachable!() };
        let matrix = &weights.layers[input.layer].output;
        let mut rows = vec![0.0; matrix.rows() * matrix.columns()];
        for (row, to) in rows.chunks_exact_mut(matrix.columns()).enumerate() {
            matrix.write_row(row, to);
        }
        let (count, d) = (input.count, shape.head_dimension);
        for (part, sizes, numbers) in [
            ("queries", vec![count, shape.heads, d], input.tilts),
            ("keys", vec![count, shape.key_value_heads, d], input.keys),
            ("values", vec![count, shape.key_value_heads, d], input.values),
            ("residual", vec![count, shape.width], input.residual),
            ("output", vec![matrix.rows(), matrix.columns()], &rows),
        ] {
            self.tensors.push((format!("layer.{}.{part}", input.layer), sizes, numbers.to_vec()));
        }
        ExactAttention::new(&shape).attend(input, output)
    }
}

fn recorded(text: &[u32]) -> Tensors {
    let model = tiny_model();
    let mut dumping =
        Dumping { model: model.clone(), tensors: vec![("scale".to_string(), vec![1], vec![1.0])] };
    model.forward(text, 0, &mut dumping, &Unwatched).unwrap().unwrap();
    dumping.tensors
}

/// Safetensors by hand: the length of the header, the header, the numbers.
fn written(tensors: &Tensors, order: &str) -> Vec<u8> {
    let mut header = serde_json::json!({ "__metadata__": { "order": order } });
    let mut data: Vec<u8> = Vec::new();
    for (name, shape, numbers) in tensors {
        let begin = data.len();
        data.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        header[name] =
            serde_json::json!({ "dtype": "F32", "shape": shape, "data_offsets": [begin, data.len()] });
    }
    let header = header.to_string();
    [&(header.len() as u64).to_le_bytes() as &[u8], header.as_bytes(), &data].concat()
}

/// Texts of random tokens.
fn random_text(seed: u32, tokens: usize) -> Vec<u32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        3 + (state >> 16) % 256
    };
    (0..tokens).map(|_| next()).collect()
}

const DUMPED: usize = 128;

/// A folder of dumps of the tiny model on so many texts, and their paths.
fn dumped(count: u32) -> (tempfile::TempDir, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let paths = (0..count)
        .map(|text| {
            let path = folder.path().join(format!("text{text}.safetensors"));
            fs::write(&path, written(&recorded(&random_text(text, DUMPED)), "causal")).unwrap();
            path.display().to_string()
        })
        .collect();
    (folder, paths)
}

fn of_dumps(paths: &[String]) -> String {
    format!(
        "kind = \"audit-heads\"\ndumps = {paths:?}\nwindow = 16\ncandidates = [\"mean\", \"tilted-means/4\"]\n"
    )
}

/// Both hand the same numbers to the same code: nothing may differ, not even the last bit.
#[test]
fn each_of_several_dumps_is_measured_as_the_model_would_be_with_the_others_calibrating() {
    let (_folder, paths) = dumped(4);
    let planned = read(&of_dumps(&paths));
    let normal = planned.specification();
    assert!(normal.contains("dumps_sha256 = [") && !normal.contains("\ntext"), "{normal}");
    assert_eq!(read(normal).specification(), normal);
    assert_eq!(planned.units().len(), 4);
    let result = run(&planned);
    assert!(!planned.sections(&result).unwrap().is_empty());

    let model = tiny_model();
    let candidates = ["mean", "tilted-means/4"]
        .iter()
        .flat_map(|name| Running::ALL.map(|running| (name.parse().unwrap(), running)))
        .collect();
    let questions = Questions { frame: Frame { window: 16, ..Frame::default() }, candidates, seed: 0 };
    let mut expected = Vec::new();
    for measured in 0..4 {
        let others: Vec<Vec<u32>> =
            (0..4).filter(|other| *other != measured).map(|other| random_text(other, DUMPED)).collect();
        let calibration = calibrate(&model, &others, &Unwatched).unwrap().unwrap();
        let text = random_text(measured, DUMPED);
        for found in examine(&model, &text, &questions, &calibration, &Unwatched).unwrap().unwrap() {
            let errors =
                found.errors.iter().flat_map(|error| [error.relative, error.residual.unwrap()]).collect();
            expected.push((i64::from(measured), found.layer as i64, found.head as i64, errors));
        }
    }
    let mut told: Vec<(i64, i64, i64, Vec<f64>)> = Vec::new();
    for row in result.rows().filter(|row| row.text("quantity").unwrap().ends_with("-error")) {
        let place = ["text", "layer", "head"].map(|column| row.integer(column).unwrap());
        let value = row.optional_real("value").unwrap().unwrap();
        match told.last_mut() {
            Some((text, layer, head, errors)) if [*text, *layer, *head] == place => errors.push(value),
            _ => told.push((place[0], place[1], place[2], vec![value])),
        }
    }
    assert_eq!(told, expected);
}

fn audit_of(paths: &[String], out: &Path) -> AuditRequest {
    AuditRequest { models: paths.to_vec(), lengths: Vec::new(), texts: None, ..tiny(out) }
}

#[test]
fn an_audit_of_dumps_is_of_heads_and_goes_on_where_it_was() {
    let (_folder, paths) = dumped(4);
    let (out, whole) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let request = audit_of(&paths, out.path());
    assert!(audited(&request, 1).unwrap().found.is_none(), "stopped after a dump");
    let resumed = audited(&request, usize::MAX).unwrap();
    let straight = audited(&audit_of(&paths, whole.path()), usize::MAX).unwrap();
    for name in ["heads/result.parquet", "verdicts.json", "full_attention_heads.tsv"] {
        let bytes = |audit: &Audit| fs::read(audit.folder.join(name)).unwrap();
        assert!(bytes(&resumed) == bytes(&straight), "{name}");
    }
    let found = resumed.found.unwrap();
    assert_eq!((found.sizes, found.length, found.texts), ([2, 4, 2], DUMPED, 4));
    assert!(found.assignments.is_empty());
    let advice = found.advice.unwrap();
    assert!(advice.contains("only 9 to 22 % of what the last query sees is replaced"), "{advice}");
    assert!(found.heads.accepted + found.heads.refused > 0, "four texts decide: {:?}", found.heads);
    assert!(!resumed.folder.join("model").exists());
    let verdicts: serde_json::Value = serde_json::from_slice(&fs::read(&found.verdicts).unwrap()).unwrap();
    assert_eq!(verdicts["dumps"].as_array().unwrap().len(), 4);
    assert_eq!(verdicts["dumps"][3]["path"], paths[3].as_str());

    // Another file under the same name is another audit, and no end of the old one.
    fs::write(&paths[2], written(&recorded(&random_text(9, DUMPED)), "causal")).unwrap();
    assert_ne!(audited(&request, usize::MAX).unwrap().folder, resumed.folder);
}

#[test]
fn one_or_two_dumps_are_one_text_and_decide_nothing() {
    for count in [1, 2] {
        let (_folder, paths) = dumped(count);
        let out = tempfile::tempdir().unwrap();
        let request = AuditRequest { tolerance: 10.0, ..audit_of(&paths, out.path()) };
        let found = audited(&request, usize::MAX).unwrap().found.unwrap();
        assert_eq!((found.texts, found.heads.uncertain), (1, 8));
        let advice = found.advice.unwrap();
        assert!(advice.contains("Several dumps decide"), "{advice}");
        assert!(fs::read_to_string(found.report).unwrap().contains("Several dumps decide"));
    }
    let (_folder, paths) = dumped(1);
    let planned = read(&of_dumps(&paths).replace("dumps = [", "model = ").replace("]\nwindow", "\nwindow"));
    assert!(planned.specification().contains("\nsha256 = "), "{}", planned.specification());
    assert_eq!(run(&planned), run(&read(&of_dumps(&paths))));
}

#[test]
fn dumps_that_do_not_fit_are_refused_with_what_differs() {
    let (folder, mut paths) = dumped(2);
    let mut said = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        paths.truncate(2);
        paths.push(path.display().to_string());
        let message = refused(&of_dumps(&paths));
        assert!(message.contains(name) && message.contains("`dumps`"), "{message}");
        message
    };
    let tensors = recorded(&random_text(5, DUMPED));
    let short = said("short.safetensors", &written(&recorded(&random_text(5, 100)), "causal"));
    assert!(short.contains("expected 128 tokens, found 100"), "{short}");
    let order = said("order.safetensors", &written(&tensors, "whole"));
    assert!(order.contains("expected the order causal, found whole"), "{order}");
    let mut fewer = tensors.clone();
    fewer.retain(|(name, _, _)| !name.starts_with("layer.1."));
    let layers = said("layers.safetensors", &written(&fewer, "causal"));
    assert!(layers.contains("expected 2 layers, found 1"), "{layers}");
    let mut damaged = tensors.clone();
    damaged[2].2[3] = f32::NAN;
    assert!(said("nan.safetensors", &written(&damaged, "causal")).contains("finite"));
    let bytes = written(&tensors, "causal");
    let truncated = said("truncated.safetensors", &bytes[..bytes.len() / 2]);
    assert!(!truncated.contains("is not a dump"), "{truncated}");
    assert!(said("truncated.npz", b"PK\x03\x04 and no more").contains("truncated"));
    assert!(said("model.bin", &[7; 99]).contains("is not a dump"));
    let few = said("few.safetensors", &written(&recorded(&random_text(5, 9)), "causal"));
    assert!(few.contains("9 tokens"), "{few}");
    paths.truncate(2);
    let twice = refused(&of_dumps(&[&paths[..], &paths[..1]].concat()));
    assert!(twice.contains("the same dump"), "{twice}");
    // The same arrays in another order: another file, but no other text.
    let again = folder.path().join("again.safetensors");
    let mut reversed = recorded(&random_text(0, DUMPED));
    reversed.reverse();
    fs::write(&again, written(&reversed, "causal")).unwrap();
    let twice = refused(&of_dumps(&[&paths[..], &[again.display().to_string()]].concat()));
    assert!(twice.contains("the same dump"), "{twice}");
    let named = refused(&of_dumps(&[&paths[..], &["tiny-random".to_string()]].concat()));
    assert!(named.contains("tiny-random"), "{named}");
    let absent = refused(&of_dumps(&["absent.npz".to_string()]));
    assert!(absent.contains("absent.npz"), "{absent}");
    let sums = format!("{}dumps_sha256 = {:?}\n", of_dumps(&paths), ["0".repeat(64), "0".repeat(64)]);
    assert!(refused(&sums).contains("has the SHA-256"));
}

#[test]
fn what_dumps_cannot_tell_is_refused() {
    let (folder, paths) = dumped(1);
    let asked = of_dumps(&paths);
    for key in ["text = \"bible\"", "lengths = [64]", "texts = 3", "calibration = 2"] {
        let message = refused(&format!("{asked}{key}\n"));
        let name = key.split(' ').next().unwrap();
        assert!(message.contains(&format!("leave `{name}` out")), "{message}");
    }
    assert!(refused(&format!("{asked}model = \"tiny-random\"\n")).contains("both given"));
    read(&format!("{asked}criterion = \"residual\"\n"));
    let mut bare = recorded(&random_text(0, DUMPED));
    bare.retain(|(name, _, _)| name != "layer.1.residual" && name != "layer.1.output");
    let path = folder.path().join("bare.safetensors");
    fs::write(&path, written(&bare, "causal")).unwrap();
    let asked = of_dumps(&[path.display().to_string()]);
    let message = refused(&format!("{asked}criterion = \"residual\"\n"));
    assert!(message.contains("`criterion`") && message.contains("layer.1.residual"), "{message}");
    run(&read(&asked));
    // One that lacks the stream among others that have it is no reason for a mean over the others.
    let (_others, mut several) = dumped(3);
    several.push(path.display().to_string());
    let message = refused(&format!("{}criterion = \"residual\"\n", of_dumps(&several)));
    assert!(message.contains("bare.safetensors"), "{message}");

    let many = (1 << 16) + 1;
    let part = |part: &str| (format!("layer.0.{part}"), vec![2, many, 1], vec![1.0; 2 * many]);
    let path = folder.path().join("many.safetensors");
    fs::write(&path, written(&["queries", "keys", "values"].map(part).to_vec(), "causal")).unwrap();
    let message = refused(&of_dumps(&[path.display().to_string()]));
    assert!(message.contains("there are 65537 query heads, at most 65536 are audited"), "{message}");

    let out = tempfile::tempdir().unwrap();
    let path = folder.path().join("short.safetensors").display().to_string();
    fs::write(&path, written(&recorded(&random_text(0, 100)), "causal")).unwrap();
    let short = audited(&audit_of(std::slice::from_ref(&path), out.path()), 1).unwrap_err();
    assert_eq!(
        short.to_string(),
        format!("a dump has 100 tokens, expected at least 128 for an audit of {path}: record a longer text")
    );
    let message = refused(&of_dumps(std::slice::from_ref(&path)).replace("window = 16\n", ""));
    assert!(message.contains(&format!("100 tokens of {path} are too few")), "{message}");
    let request = AuditRequest { lengths: vec![64], ..audit_of(&paths, out.path()) };
    assert!(audited(&request, 1).unwrap_err().to_string().contains("a length is given beside dumps"));
    let request = audit_of(&[paths[0].clone(), "tiny-random".to_string()], out.path());
    assert!(audited(&request, 1).unwrap_err().to_string().contains("tiny-random"));
    let run_it = example("audit-model").replace("\"tiny-random\"", &format!("{:?}", paths[0]));
    assert!(refused(&run_it).contains("cannot be run"));
}
