//! Dumps are examined and calibrated as the model is that they were recorded from.

use crate::{tiny, worlds};
use esscher_audit::Error;
use esscher_audit::assignment::Running;
use esscher_audit::calibration::{Observations, calibrate};
use esscher_audit::candidate::Frame;
use esscher_audit::checkpoint;
use esscher_audit::checkpoint::dump::begins_like_dump;
use esscher_audit::checkpoint::{Dump, Weights};
use esscher_audit::examination::{Findings, Questions, examine, examine_dump};
use esscher_audit::head::Order;
use esscher_audit::model::{ExactAttention, LayerAttention, LayerInput, Model, Recorder};
use esscher_audit::weights::Matrix;
use esscher_core::{Monitor, Unwatched};
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use std::sync::atomic::{AtomicUsize, Ordering};

const TOKENS: usize = 120;

/// Name, shape and numbers.
type Tensors = Vec<(String, Vec<usize>, Vec<f32>)>;

/// Attends exactly and keeps the residual stream, of which the recorder keeps only norms.
struct KeepsStream(ExactAttention<'static>, Vec<Vec<f32>>);

impl LayerAttention for KeepsStream {
    fn attend(&mut self, input: &LayerInput<'_>, output: &mut [f32]) -> Result<(), Error> {
        self.1.push(input.residual.to_vec());
        self.0.attend(input, output)
    }
}

/// From a table per head to a row of all heads per token.
fn by_token(table: &[f32], heads: usize, dimension: usize) -> Vec<f32> {
    let tokens = table.len() / (heads * dimension);
    (0..tokens)
        .flat_map(|token| (0..heads).map(move |head| head * tokens + token))
        .flat_map(|row| table[row * dimension..(row + 1) * dimension].to_vec())
        .collect()
}

fn output_matrix(model: &Model, layer: usize) -> &Matrix {
    match model.weights() {
        Weights::Llama(weights) => &weights.layers[layer].output,
        Weights::Bert(weights) => &weights.layers[layer].output.matrix,
    }
}

/// What the heads of a model see of a text, with scale 1: the queries are the tilts.
fn recorded(model: &Model, text: &[u32], with_stream: bool) -> Tensors {
    let shape = *model.shape();
    let mut recorder = Recorder::new(KeepsStream(ExactAttention::new(&shape), Vec::new()), &shape);
    model.forward(text, 0, &mut recorder, &Unwatched).unwrap().unwrap();
    let (recording, KeepsStream(_, streams)) = recorder.finish();
    let mut tensors: Tensors = vec![("scale".to_string(), vec![1], vec![1.0])];
    for (layer, (seen, stream)) in recording.layers.iter().zip(streams).enumerate() {
        for (part, table, heads) in [
            ("queries", &seen.tilts, shape.heads),
            ("keys", &seen.keys, shape.key_value_heads),
            ("values", &seen.values, shape.key_value_heads),
        ] {
            let numbers = by_token(table, heads, shape.head_dimension);
            tensors.push((
                format!("layer.{layer}.{part}"),
                vec![text.len(), heads, shape.head_dimension],
                numbers,
            ));
        }
        if with_stream {
            tensors.push((format!("layer.{layer}.residual"), vec![text.len(), shape.width], stream));
            let output = output_matrix(model, layer);
            let numbers = worlds::decoded(output).concat();
            tensors.push((format!("layer.{layer}.output"), vec![output.rows(), output.columns()], numbers));
        }
    }
    tensors
}

fn as_safetensors(tensors: &Tensors, order: &str) -> Vec<u8> {
    let data: Vec<Vec<u8>> = tensors.iter().map(|(_, _, numbers)| tiny::bytes(numbers)).collect();
    let views = tensors.iter().zip(&data).map(|((name, shape, _), data)| {
        (name.clone(), TensorView::new(Dtype::F32, shape.clone(), data).unwrap())
    });
    safetensors::serialize(views, Some([("order".to_string(), order.to_string())].into())).unwrap()
}

fn as_npz(tensors: &Tensors, order: &str) -> Vec<u8> {
    let mut arrays: Vec<(&str, &str, String, Vec<u8>)> = tensors
        .iter()
        .map(|(name, shape, numbers)| {
            let sizes: String = shape.iter().map(|size| format!("{size}, ")).collect();
            (name.as_str(), "<f4", format!("({sizes})"), tiny::bytes(numbers))
        })
        .collect();
    let kind = format!("<U{}", order.len());
    arrays.push(("order", &kind, "()".to_string(), tiny::npz_text(order)));
    tiny::npz(&arrays)
}

fn questions(order: Order) -> Questions {
    let window = if order == Order::Causal { 16 } else { 0 };
    let runnings: &[Running] = match order {
        Order::Causal => &Running::ALL,
        Order::Whole => &[Running::Offline],
    };
    let candidates = ["mean", "tilted-gaussian", "tilted-means/3", "expected-attention/8"]
        .iter()
        .flat_map(|name| runnings.iter().map(|running| (name.parse().unwrap(), *running)))
        .collect();
    Questions { frame: Frame { window, ..Frame::default() }, candidates, seed: 7 }
}

fn models() -> impl Iterator<Item = Model> {
    worlds::weights().into_iter().map(|weights| Model::new(weights).unwrap())
}

fn texts(model: &Model) -> Vec<Vec<u32>> {
    (0..3).map(|seed| worlds::tokens(40 + seed, TOKENS, model.shape().vocabulary as u32)).collect()
}

/// Both hand the same numbers to the same code: nothing may differ, not even the last bit.
#[test]
fn findings_from_dumps_are_those_from_the_model() {
    for model in models() {
        let order = model.shape().order;
        let (texts, questions) = (texts(&model), questions(order));
        let (calibrating, measured) = texts.split_at(2);
        let calibration = calibrate(&model, calibrating, &Unwatched).unwrap().unwrap();
        let expected = examine(&model, &measured[0], &questions, &calibration, &Unwatched).unwrap().unwrap();
        assert!(expected.iter().flat_map(|found| &found.errors).all(|error| error.residual.is_some()));
        for write in [as_safetensors, as_npz] {
            let dump = |text: &Vec<u32>| {
                Dump::read("dump", &write(&recorded(&model, text, true), order.name())).unwrap()
            };
            let observed: Vec<Observations> = calibrating
                .iter()
                .map(|text| Observations::of_dump(&dump(text), &Unwatched).unwrap().unwrap())
                .collect();
            let from_dumps = Observations::calibration(&observed).unwrap();
            assert_eq!(from_dumps, calibration);
            let dump = dump(&measured[0]);
            assert_eq!(dump.first_layer_without_stream(), None);
            let found = examine_dump(&dump, &questions, &from_dumps, &Unwatched).unwrap().unwrap();
            assert_eq!(found, expected);
        }
    }
}

#[test]
fn without_the_stream_the_residual_error_is_not_told() {
    for model in models() {
        let order = model.shape().order;
        let (text, questions) = (texts(&model).remove(0), questions(order));
        let examined = |tensors: &Tensors| -> Vec<Findings> {
            let dump = Dump::read("dump", &as_safetensors(tensors, order.name())).unwrap();
            let observed = Observations::of_dump(&dump, &Unwatched).unwrap().unwrap();
            let calibration = Observations::calibration([&observed]).unwrap();
            examine_dump(&dump, &questions, &calibration, &Unwatched).unwrap().unwrap()
        };
        let (with, without) =
            (examined(&recorded(&model, &text, true)), examined(&recorded(&model, &text, false)));
        for (with, without) in with.iter().zip(&without) {
            assert_eq!(with.portrait, without.portrait);
            for (with, without) in with.errors.iter().zip(&without.errors) {
                assert_eq!(with.relative, without.relative);
                assert!(with.residual.is_some() && without.residual.is_none());
            }
        }
        // A stream alone does not say where outputs go: a layer has both or none.
        let mut half = recorded(&model, &text, true);
        half.retain(|(name, _, _)| name != "layer.1.output");
        assert!(Dump::read("dump", &as_safetensors(&half, order.name())).is_err());
        half.retain(|(name, _, _)| name != "layer.1.residual");
        let dump = Dump::read("dump", &as_safetensors(&half, order.name())).unwrap();
        assert_eq!(dump.first_layer_without_stream(), Some(1));
        let half = examined(&half);
        assert!(half.iter().all(|found| found.errors[0].residual.is_some() == (found.layer != 1)));
    }
}

#[test]
fn dumps_with_numbers_that_are_not_finite_and_truncated_ones_are_refused() {
    let model = models().next().unwrap();
    let tensors = recorded(&model, &texts(&model)[0][..20], true);
    for (number, bad) in [(1, f32::NAN), (3, f32::INFINITY), (4, f32::NAN), (5, f32::NEG_INFINITY)] {
        let mut damaged = tensors.clone();
        damaged[number].2[7] = bad;
        let name = &damaged[number].0;
        for bytes in [as_safetensors(&damaged, "causal"), as_npz(&damaged, "causal")] {
            let message = Dump::read("a.dump", &bytes).unwrap_err().to_string();
            assert!(message.contains(&format!("a.dump: tensor `{name}`")), "{message}");
            assert!(message.contains("not finite"), "{message}");
        }
    }
    let mut large = tensors.clone();
    (large[0].2[0], large[1].2[0]) = (1e30, 1e30);
    let message = Dump::read("a.dump", &as_npz(&large, "causal")).unwrap_err().to_string();
    assert!(message.contains("check the scale"), "{message}");
    for bytes in [as_safetensors(&tensors, "causal"), as_npz(&tensors, "causal")] {
        assert!(begins_like_dump(&bytes));
        for length in [4, 9, 200, bytes.len() / 2, bytes.len() - 1] {
            let message = Dump::read("a.dump", &bytes[..length]).unwrap_err().to_string();
            assert!(message.contains("a.dump"), "{message}");
        }
        assert!(begins_like_dump(&bytes[..bytes.len() - 1]), "a truncated dump is still meant as one");
    }
    let (model_tensors, _) = tiny::llama_tensors();
    for other in [&[] as &[u8], b"GGUF", &[0xff; 9], &tiny::safetensors(&model_tensors, None)] {
        assert!(!begins_like_dump(other));
    }
    let lying = [&u64::MAX.to_le_bytes() as &[u8], b"{\"layer.0.queries\""].concat();
    assert!(begins_like_dump(&lying) && Dump::read("a.dump", &lying).is_err());
}

/// Wants to stop from the start.
struct Stopped;

impl Monitor for Stopped {
    fn progress(&self, _: usize, _: usize) {}
    fn should_stop(&self) -> bool {
        true
    }
}

#[test]
fn a_calibration_of_another_model_is_refused_and_a_monitor_stops() {
    let [llama, bert]: [Dump; 2] = models()
        .map(|model| {
            let bytes = as_npz(&recorded(&model, &texts(&model)[0], false), model.shape().order.name());
            Dump::read("dump", &bytes).unwrap()
        })
        .collect::<Vec<_>>()
        .try_into()
        .unwrap();
    let [of_llama, of_bert] =
        [&llama, &bert].map(|dump| Observations::of_dump(dump, &Unwatched).unwrap().unwrap());
    let mixed = Observations::calibration([&of_llama, &of_bert]);
    assert!(matches!(mixed, Err(Error::OtherModel { .. })), "{mixed:?}");
    let nothing = Observations::calibration([]);
    assert!(matches!(nothing, Err(Error::TooFewTokens { found: 0, needed: 1, .. })), "{nothing:?}");
    let questions = questions(Order::Causal);
    let other = Observations::calibration([&of_bert]).unwrap();
    let refused = examine_dump(&llama, &questions, &other, &Unwatched);
    assert!(matches!(refused, Err(Error::OtherModel { .. })), "{refused:?}");
    let own = Observations::calibration([&of_llama]).unwrap();
    assert_eq!(examine_dump(&llama, &questions, &own, &Stopped).unwrap(), None);
    let mut cut = llama;
    cut.layers[1].residual = Some(vec![1.0; 3]);
    cut.layers[1].output = Some(vec![1.0; 64]);
    let refused = examine_dump(&cut, &questions, &own, &Unwatched);
    assert!(
        matches!(&refused, Err(Error::WrongSizes { found, .. }) if *found == [3]),
        "a stream of another text"
    );
}

/// Asks to stop when it has been asked so often.
struct StopsLater(AtomicUsize);

impl Monitor for StopsLater {
    fn progress(&self, _completed: usize, _total: usize) {}
    fn should_stop(&self) -> bool {
        self.0.fetch_sub(1, Ordering::Relaxed) == 1
    }
}

/// Exact attention asks at every block of queries, candidates at every block of tokens: nobody waits for a layer.
#[test]
fn an_examination_stops_inside_a_layer() {
    let model = models().next().unwrap();
    let texts = texts(&model);
    let calibration = calibrate(&model, &texts[..1], &Unwatched).unwrap().unwrap();
    let questions = questions(Order::Causal);
    let mut dump =
        Dump::read("dump", &as_npz(&recorded(&model, &texts[0], false), "causal")).expect("a sound dump");
    let observed = Observations::of_dump(&dump, &Unwatched).unwrap().unwrap();
    let own = Observations::calibration([&observed]).unwrap();
    // One layer, whatever the calibration knows of more.
    dump.layers.truncate(1);
    for asked in [2, 5, 20] {
        let monitor = || StopsLater(AtomicUsize::new(asked));
        assert_eq!(examine_dump(&dump, &questions, &own, &monitor()).unwrap(), None, "{asked}");
        assert_eq!(examine(&model, &texts[0], &questions, &calibration, &monitor()).unwrap(), None);
    }
    assert_eq!(calibrate(&model, &texts, &StopsLater(AtomicUsize::new(4))).unwrap(), None);
}

#[test]
fn a_dump_cannot_be_run() {
    let model = models().next().unwrap();
    let bytes = as_npz(&recorded(&model, &texts(&model)[0], false), "causal");
    let source = checkpoint::Source { name: "heads.npz", weights: &bytes, config: None, tokenizer: None };
    let refused = checkpoint::Checkpoint::read(&source).unwrap_err();
    assert_eq!(refused, Error::NotAModel { file: "heads.npz".to_string() });
}
