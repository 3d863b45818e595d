//! Models whose heads are replaced: the same numbers by every way of running them.

use crate::worlds::{bert, difference, llama, tokens};
use esscher_audit::Error;
use esscher_audit::assignment::{Assignment, Running};
use esscher_audit::calibration::{Calibration, calibrate};
use esscher_audit::candidate::{Candidate, Frame};
use esscher_audit::checkpoint::{Pairs, Weights};
use esscher_audit::decoding::MixedCache;
use esscher_audit::dossier::{Criterion, Dossier};
use esscher_audit::examination::{Questions, examine};
use esscher_audit::likelihood::{cosine_distance, embedding, log_loss};
use esscher_audit::model::{ExactAttention, LayerAttention, LayerInput, Model, Recorder, Shape};
use esscher_audit::readers::Readers;
use esscher_audit::replaced::ReplacedAttention;
use esscher_audit::replacement::Atoms;
use esscher_audit::weights::Storage;
use esscher_core::Unwatched;

/// A small frame, so that short texts have a middle.
const FRAME: Frame = Frame { atoms: Atoms { first: 2, light: 0.4, most_light: 3 }, window: 16 };

/// Single precision through three layers, whose norms divide by what they are given.
const ROUNDING: f32 = 2e-4;

fn decoder() -> Model {
    Model::new(Weights::Llama(llama(Pairs::Halves, Storage::F32))).unwrap()
}

fn calibrated(model: &Model) -> Calibration {
    calibrate(model, &[tokens(1, 120, 301), tokens(2, 90, 301)], &Unwatched).unwrap().unwrap()
}

fn candidate(name: &str) -> Candidate {
    name.parse().unwrap()
}

/// Every kind of candidate somewhere, in groups that share keys and in groups that differ.
fn mixed(model: &Model) -> Assignment {
    let row = |names: [&str; 4]| names.map(candidate).to_vec();
    let rows = vec![
        row(["tilted-gaussian", "tilted-gaussian", "exact", "mean"]),
        row(["reduced-gaussian/4", "top-3+tilted-means/4", "dropped", "dropped"]),
        row(["exact", "exact", "gaussian", "tilted-gaussians/2"]),
    ];
    Assignment::new(model.shape(), rows).unwrap()
}

#[test]
fn an_exact_assignment_is_exact_attention_bit_for_bit() {
    let model = decoder();
    let text = tokens(3, 100, 301);
    let calibration = calibrated(&model);
    let assignment = Assignment::everywhere(model.shape(), Candidate::Exact);
    for running in Running::ALL {
        let mut replaced =
            ReplacedAttention::new(model.shape(), &assignment, &FRAME, running, &calibration, &Unwatched)
                .unwrap();
        let found = model.forward(&text, 0, &mut replaced, &Unwatched).unwrap();
        assert_eq!(
            found,
            model.forward(&text, 0, &mut ExactAttention::new(model.shape()), &Unwatched).unwrap()
        );
    }
}

#[test]
fn a_cache_decodes_what_a_whole_text_gives_in_any_pieces() {
    let model = decoder();
    let text = tokens(4, 131, 301);
    let calibration = calibrated(&model);
    // A group with one exact reader is read exactly by all when decoding.
    let mut rows = mixed(&model).rows().to_vec();
    rows[0][3] = Candidate::Exact;
    let assignment = Assignment::new(model.shape(), rows).unwrap();
    let mut replaced = ReplacedAttention::new(
        model.shape(),
        &assignment,
        &FRAME,
        Running::Streaming,
        &calibration,
        &Unwatched,
    )
    .unwrap();
    let expected = model.forward(&text, 0, &mut replaced, &Unwatched).unwrap().unwrap();
    for piece in [1, 7, 32, 131] {
        let mut cache = MixedCache::new(model.shape(), &assignment, &FRAME, &calibration).unwrap();
        let mut found = Vec::new();
        for (number, tokens) in text.chunks(piece).enumerate() {
            found.extend(model.forward(tokens, number * piece, &mut cache, &Unwatched).unwrap().unwrap());
        }
        let difference = difference(&found, &expected);
        assert!(difference < ROUNDING, "pieces of {piece}: {difference}");
    }
}

#[test]
fn a_cache_of_measures_stops_growing() {
    let model = decoder();
    let calibration = calibrated(&model);
    let assignment = Assignment::everywhere(model.shape(), candidate("reduced-gaussian/4"));
    let mut cache = MixedCache::new(model.shape(), &assignment, &FRAME, &calibration).unwrap();
    let mut sizes = Vec::new();
    for (number, piece) in tokens(5, 480, 301).chunks(160).enumerate() {
        model.forward(piece, number * 160, &mut cache, &Unwatched).unwrap();
        sizes.push(cache.bytes());
    }
    assert_eq!(sizes[1], sizes[2]);
}

#[test]
fn a_cache_refuses_what_it_cannot_do() {
    let model = decoder();
    let calibration = calibrated(&model);
    let new = |name: &str| {
        let assignment = Assignment::everywhere(model.shape(), candidate(name));
        MixedCache::new(model.shape(), &assignment, &FRAME, &calibration)
    };
    let evicted = candidate("expected-attention/8");
    assert_eq!(new("expected-attention/8").err(), Some(Error::WholeTextsOnly { candidate: evicted }));
    let mut cache = new("mean").unwrap();
    let late = model.forward(&[1, 2], 5, &mut cache, &Unwatched);
    assert!(matches!(late, Err(Error::WrongStart { expected: 0, found: 5, .. })), "{late:?}");
    let encoder = Model::new(Weights::Bert(bert())).unwrap();
    let calibration = calibrate(&encoder, &[tokens(1, 60, 100)], &Unwatched).unwrap().unwrap();
    let assignment = Assignment::everywhere(encoder.shape(), candidate("mean"));
    let refused = MixedCache::new(encoder.shape(), &assignment, &FRAME, &calibration).err().unwrap();
    assert!(matches!(refused, Error::NeedsCausal { .. }), "{refused}");
}

/// Two ways through the same texts: sums on the way, and recorded heads.
#[test]
fn what_is_of_another_model_is_refused() {
    let model = decoder();
    let shape = *model.shape();
    let calibration = calibrated(&model);
    let assignment = mixed(&model);
    let deeper = Shape { layers: shape.layers + 1, ..shape };
    let other_model = |refused: Result<(), Error>| matches!(refused, Err(Error::OtherModel { .. }));
    assert!(other_model(calibration.check(&deeper)));
    let wider = Shape { head_dimension: 2 * shape.head_dimension, ..shape };
    assert!(other_model(calibration.check(&wider)));
    let other = Assignment::everywhere(&deeper, Candidate::Exact);
    assert!(other_model(MixedCache::new(&shape, &other, &FRAME, &calibration).map(|_| ())));
    let replaced = ReplacedAttention::new(&shape, &other, &FRAME, Running::Offline, &calibration, &Unwatched);
    assert!(other_model(replaced.map(|_| ())));
    // A layer that is not there, and tables of another size.
    let (tilts, keys) = (
        vec![0.0; shape.heads * shape.head_dimension],
        vec![0.0; shape.key_value_heads * shape.head_dimension],
    );
    let input =
        LayerInput { layer: 0, start: 0, count: 1, tilts: &tilts, keys: &keys, values: &keys, residual: &[] };
    let mut cache = MixedCache::new(&shape, &assignment, &FRAME, &calibration).unwrap();
    let mut output = tilts.clone();
    let beyond = LayerInput { layer: shape.layers, ..input };
    let no_layer = Err(Error::NoLayer { layer: 3, layers: 3 });
    assert_eq!(cache.attend(&beyond, &mut output), no_layer);
    let cut = cache.attend(&LayerInput { keys: &keys[1..], ..input }, &mut output);
    assert!(matches!(cut, Err(Error::WrongSizes { .. })), "{cut:?}");
    let mut replaced =
        ReplacedAttention::new(&shape, &assignment, &FRAME, Running::Offline, &calibration, &Unwatched)
            .unwrap();
    assert_eq!(replaced.attend(&beyond, &mut output), no_layer);
    // Nothing was taken in.
    cache.attend(&input, &mut output).unwrap();
}

#[test]
fn an_encoder_predicts_nothing() {
    let model = Model::new(Weights::Bert(bert())).unwrap();
    let mut attention = ExactAttention::new(model.shape());
    let refused = log_loss(&model, &[1, 2, 3], &mut attention, &Unwatched);
    assert!(matches!(refused, Err(Error::NeedsCausal { .. })), "{refused:?}");
}

#[test]
fn calibration_is_what_recorded_heads_give() {
    let model = decoder();
    let texts = [tokens(1, 120, 301), tokens(2, 90, 301)];
    let calibration = calibrate(&model, &texts, &Unwatched).unwrap().unwrap();
    let recordings = texts.map(|text| {
        let mut recorder = Recorder::new(ExactAttention::new(model.shape()), model.shape());
        model.forward(&text, 0, &mut recorder, &Unwatched).unwrap();
        recorder.finish().0
    });
    for layer in 0..3 {
        for group in 0..2 {
            let heads: Vec<Vec<_>> = recordings
                .iter()
                .map(|recording| {
                    (2 * group..2 * group + 2).filter_map(|head| recording.head(layer, head)).collect()
                })
                .collect();
            let expected = Readers::from_heads(&heads).unwrap();
            let found = &calibration.layer(layer)[group];
            assert!(difference(&found.pooled.mean, &expected.pooled.mean) < 1e-5);
            assert!(difference(&found.pooled.covariance, &expected.pooled.covariance) < 1e-5);
            // The norm of one value, summed in another order.
            assert!((found.median_value_norm / expected.median_value_norm - 1.0).abs() < 1e-6);
        }
    }
}

#[test]
fn log_loss_is_the_mean_of_the_negative_log_likelihoods() {
    let model = decoder();
    let text = tokens(6, 40, 301);
    let hidden =
        model.forward(&text, 0, &mut ExactAttention::new(model.shape()), &Unwatched).unwrap().unwrap();
    let logits = model.logits(&hidden).unwrap();
    let expected: f64 = logits
        .chunks_exact(301)
        .zip(&text[1..])
        .map(|(row, next)| {
            let total: f64 = row.iter().map(|score| f64::from(*score).exp()).sum();
            total.ln() - f64::from(row[*next as usize])
        })
        .sum::<f64>()
        / 39.0;
    let found =
        log_loss(&model, &text, &mut ExactAttention::new(model.shape()), &Unwatched).unwrap().unwrap();
    assert!((found - expected).abs() < 1e-5, "{found} {expected}");
    let short = log_loss(&model, &[1], &mut ExactAttention::new(model.shape()), &Unwatched);
    assert!(matches!(short, Err(Error::TooFewTokens { found: 1, needed: 2, .. })), "{short:?}");
}

/// The error of a head with a candidate, measured inside an examination, is that of the candidate on the recorded head.
#[test]
fn an_examination_sees_every_head_and_orders_candidates() {
    let model = decoder();
    let calibration = calibrated(&model);
    let names = ["dropped", "tilted-gaussian", "tilted-means/64"];
    let candidates: Vec<(Candidate, Running)> =
        names.iter().flat_map(|name| Running::ALL.map(|running| (candidate(name), running))).collect();
    let questions = Questions { frame: FRAME, candidates: candidates.clone(), seed: 1 };
    let texts: Vec<_> = (7..10)
        .map(|seed| {
            let text = tokens(seed, 200, 301);
            examine(&model, &text, &questions, &calibration, &Unwatched).unwrap().unwrap()
        })
        .collect();
    let dossier = Dossier::new(model.shape(), candidates, texts).unwrap();
    let mean = |candidate: usize| {
        let heads = (0..12)
            .map(|place| dossier.spread(place / 4, place % 4, candidate, Criterion::Output).unwrap().mean);
        heads.sum::<f64>() / 12.0
    };
    assert!(mean(2) < mean(0) && mean(3) < mean(1), "a tilted Gaussian is nearer than nothing");
    assert!((0..6).all(|candidate| dossier.errors(2, 3, candidate, Criterion::Residual).len() == 3));
    // Too short for anything to leave the window.
    let examined = |length| examine(&model, &tokens(1, length, 301), &questions, &calibration, &Unwatched);
    let Err(Error::TooFewTokens { found: 20, needed, .. }) = examined(20) else {
        panic!("20 tokens are too few")
    };
    assert!(examined(needed).is_ok() && examined(needed - 1).is_err());
}

#[test]
fn an_encoder_with_replaced_heads_has_a_near_embedding() {
    let model = Model::new(Weights::Bert(bert())).unwrap();
    let text = tokens(3, 90, 100);
    let calibration = calibrate(&model, std::slice::from_ref(&text), &Unwatched).unwrap().unwrap();
    let exact =
        embedding(&model, &text, &mut ExactAttention::new(model.shape()), &Unwatched).unwrap().unwrap();
    let frame = Frame { window: 0, ..FRAME };
    let distance = |name: &str| {
        let assignment = Assignment::everywhere(model.shape(), candidate(name));
        let mut replaced = ReplacedAttention::new(
            model.shape(),
            &assignment,
            &frame,
            Running::Offline,
            &calibration,
            &Unwatched,
        )
        .unwrap();
        let found = embedding(&model, &text, &mut replaced, &Unwatched).unwrap().unwrap();
        cosine_distance(&found, &exact)
    };
    assert!(distance("exact").abs() < 1e-12);
    assert!(distance("tilted-gaussian") < distance("dropped"));
}
