//! Vocabularies: text -> tokens, as each checkpoint was trained.

use std::cell::Cell;

use tokenizers::{Encoding, ModelWrapper, Token, Tokenizer};

use crate::Error;
use crate::checkpoint::without_byte_order_mark;

mod byte_level;
pub(crate) mod gguf;
mod guarded;
mod llama2c;
mod pieces;
mod scored;
mod soundness;
mod template;

use guarded::guarded;
use pieces::{Cutting, Placed};
use scored::ScoredPieces;
pub use template::Template;

/// A token stands for about four bytes of prose. A text with far fewer tokens (a word of megabytes, pages of blanks) would be read to its
/// end for some of them.
const MOST_BYTES_PER_TOKEN: usize = 16;

/// Words, signs, digits, blanks and letters of several bytes: a file on which the library fails mostly shows it here.
const PROBE: &str = "It's 12 cafés.\n  a\u{4e2d}";

/// The tokens of a model and how text is cut into them.
#[derive(Debug, Clone)]
pub struct Vocabulary {
    kind: Kind,
    /// Number of tokens.
    length: usize,
    /// Rows of the embedding, which may be padded: no token may be beyond.
    rows: usize,
    begin: Option<u32>,
    template: Template,
}

#[derive(Debug, Clone)]
enum Kind {
    /// Byte pairs and word pieces, by the field's library.
    Library(Box<Tokenizer>),
    /// The sentencepiece way: the neighbours of best score merge first.
    Scored(Box<ScoredPieces>),
}

impl Vocabulary {
    /// The vocabulary of a `tokenizer.json`; `rows` is the number of rows of the embedding that it must fit.
    ///
    /// Truncation, padding and what training leaves to chance are turned off; the file's own template puts special tokens around a text, such as \[CLS\] and
    /// \[SEP\].
    ///
    /// # Errors
    /// A file that the `tokenizers` library refuses or would trust too far, more tokens than rows, a template without the text.
    pub fn from_json(file: &str, bytes: &[u8], rows: usize) -> Result<Self, Error> {
        let damaged = |problem: String| Error::Damaged { what: file.to_string(), problem };
        let bytes = without_byte_order_mark(bytes);
        soundness::check(file, bytes)?;
        guarded(|| Self::from_sound_json(file, bytes, rows))
            .unwrap_or_else(|| Err(damaged(guarded::PROBLEM.to_string())))
    }

    fn from_sound_json(file: &str, bytes: &[u8], rows: usize) -> Result<Self, Error> {
        let damaged = |problem: String| Error::Damaged { what: file.to_string(), problem };
        let mut tokenizer = Tokenizer::from_bytes(bytes)
            .map_err(|error| damaged(format!("not a tokenizer.json of the `tokenizers` library: {error}")))?;
        cut_surely(&mut tokenizer);
        tokenizer.with_padding(None);
        tokenizer.with_truncation(None).map_err(|error| damaged(error.to_string()))?;
        // Only a panic matters here.
        let _ = tokenizer.encode(PROBE, false);
        let length = tokenizer.get_vocab_size(true);
        check_length(file, length, rows)?;
        // A text of one token goes through the template; what the template puts around it is marked there.
        let text = Encoding::from_tokens(vec![Token::new(0, "x".to_string(), (0, 1))], 0);
        let around = tokenizer.post_process(text, None, true).map_err(|error| damaged(error.to_string()))?;
        let texts = around.get_special_tokens_mask().iter().enumerate().filter(|(_, special)| **special == 0);
        let places: Vec<usize> = texts.map(|(place, _)| place).collect();
        let [place] = places[..] else {
            let problem = format!("its template holds the text {} times, expected once", places.len());
            return Err(damaged(problem));
        };
        // Encoders add what they learned of a first sentence to every token.
        if around.get_type_ids().iter().any(|kind| *kind != 0) {
            return Err(Error::Unsupported {
                what: format!(
                    "{file}: a template that marks a single text, or what is around it, as a second sentence"
                ),
                problem: "its `type_id` must be 0 everywhere; record queries, keys and values as a dump"
                    .to_string(),
            });
        }
        let (prefix, rest) = around.get_ids().split_at(place);
        let suffix = rest.get(1..).unwrap_or_default();
        let template = Template { prefix: prefix.to_vec(), suffix: suffix.to_vec() };
        let kind = Kind::Library(Box::new(tokenizer));
        let begin = prefix.first().copied();
        let vocabulary = Vocabulary { kind, length, rows, begin, template };
        vocabulary.within(vocabulary.template.around(&[]))?;
        Ok(vocabulary)
    }

    /// The tokens of a text, with the special tokens around it that the model was trained with.
    ///
    /// Byte pairs leave out a byte that has no token, as their library does; word pieces have one for the unknown.
    ///
    /// # Errors
    /// Characters that the vocabulary has no token for.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, Error> {
        Ok(self.template.around(&self.encode_bare(text)?))
    }

    /// The tokens of a text alone.
    ///
    /// # Errors
    /// Characters that the vocabulary has no token for.
    pub fn encode_bare(&self, text: &str) -> Result<Vec<u32>, Error> {
        self.within(pieces::first_tokens(text, usize::MAX, pieces::USUAL, |piece, is_first| {
            self.cut(piece, is_first)
        })?)
    }

    /// The first `most` tokens of a text alone, or all if there are fewer: of a long text no more is cut than they need, and no more
    /// than 16 bytes for each.
    ///
    /// # Errors
    /// Characters among them that the vocabulary has no token for, or has none for most of them.
    pub fn first_tokens(&self, text: &str, most: usize) -> Result<Vec<u32>, Error> {
        self.first_tokens_in(text, most, pieces::USUAL)
    }

    fn first_tokens_in(&self, text: &str, most: usize, cutting: Cutting) -> Result<Vec<u32>, Error> {
        let bytes = most.saturating_mul(MOST_BYTES_PER_TOKEN).max(cutting.piece);
        let text = text.get(..pieces::character_before(text, bytes)).unwrap_or_default();
        let (letters, written) = (Cell::new(0), Cell::new(0));
        let tokens = pieces::first_tokens(text, most, cutting, |piece, is_first| {
            let placed = self.cut(piece, is_first)?;
            let seen = piece.chars().filter(|letter| !letter.is_whitespace());
            letters.set(letters.get() + seen.map(char::len_utf8).sum::<usize>());
            written.set(
                written.get() + placed.iter().map(|one| one.end.saturating_sub(one.start)).sum::<usize>(),
            );
            Ok(placed)
        })?;
        // Byte pairs leave out what they have no token for: with some rare letters that is as the model was trained.
        if written.get() < letters.get() / 2 {
            return Err(Error::NotEncodable {
                what: "most of the text".to_string(),
                problem: "it has no tokens for its letters; use the tokeniser of this checkpoint".to_string(),
            });
        }
        self.within(tokens)
    }

    /// The tokens of a piece of a text, with the bytes of it that they stand for.
    fn cut(&self, piece: &str, is_first: bool) -> Result<Vec<Placed>, Error> {
        match &self.kind {
            Kind::Library(tokenizer) => {
                let refused = |problem: String| Error::NotEncodable { what: "the text".to_string(), problem };
                let encoding = guarded(|| tokenizer.encode(piece, false).map_err(|error| error.to_string()))
                    .unwrap_or_else(|| Err(guarded::PROBLEM.to_string()))
                    .map_err(refused)?;
                let placed = encoding.get_ids().iter().zip(encoding.get_offsets());
                Ok(placed
                    .map(|(token, (start, end))| Placed { token: *token, start: *start, end: *end })
                    .collect())
            }
            Kind::Scored(pieces) => pieces.encode(piece, is_first),
        }
    }

    /// A hostile tokenizer.json may number its tokens with gaps: none may point outside the embedding.
    fn within(&self, tokens: Vec<u32>) -> Result<Vec<u32>, Error> {
        match tokens.iter().find(|token| **token as usize >= self.rows) {
            None => Ok(tokens),
            Some(token) => Err(Error::Damaged {
                what: "the vocabulary".to_string(),
                problem: format!("it gave token {token} but the embedding has {} rows", self.rows),
            }),
        }
    }

    /// The text of tokens; control tokens have none.
    pub fn decode(&self, tokens: &[u32]) -> String {
        match &self.kind {
            Kind::Library(tokenizer) => text_of(tokenizer, tokens, true).unwrap_or_default(),
            Kind::Scored(pieces) => pieces.decode(tokens),
        }
    }

    /// One token in printable form: a blank stays a blank, what cannot be seen is escaped.
    pub fn token(&self, token: u32) -> String {
        let text = match &self.kind {
            Kind::Library(tokenizer) => {
                let raw = tokenizer.id_to_token(token);
                match text_of(tokenizer, &[token], false) {
                    // Part of a character: the library's own letters for bytes.
                    Some(text) if text.contains(char::REPLACEMENT_CHARACTER) => raw.unwrap_or(text),
                    Some(text) if !text.is_empty() => text,
                    _ => raw.unwrap_or_default(),
                }
            }
            Kind::Scored(pieces) => pieces.token(token),
        };
        esscher_core::visible(&text)
    }

    /// Number of tokens; an embedding that is padded has more rows.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there is no token.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The token that begins a text, if the vocabulary has one.
    pub fn begin(&self) -> Option<u32> {
        self.begin
    }

    /// What [`encode`](Self::encode) puts around a text.
    pub fn template(&self) -> &Template {
        &self.template
    }
}

/// The text of tokens, if the library can tell it.
fn text_of(tokenizer: &Tokenizer, tokens: &[u32], skips_special: bool) -> Option<String> {
    guarded(|| tokenizer.decode(tokens, skips_special).ok()).flatten()
}

/// Merges that are left out at random and pieces that are drawn are for training: a model that reads cuts a text in one way.
fn cut_surely(tokenizer: &mut Tokenizer) {
    let sure: ModelWrapper = match tokenizer.get_model() {
        ModelWrapper::BPE(model) if model.dropout.is_some() => {
            let mut model = model.clone();
            model.dropout = None;
            model.into()
        }
        ModelWrapper::Unigram(model) if model.alpha.is_some() || model.nbest_size.is_some() => {
            let mut model = model.clone();
            (model.alpha, model.nbest_size) = (None, None);
            model.into()
        }
        _ => return,
    };
    tokenizer.with_model(sure);
}

/// Embeddings are often padded to a round number of rows, so that only too many tokens are wrong.
fn check_length(file: &str, tokens: usize, rows: usize) -> Result<(), Error> {
    if tokens <= rows { Ok(()) } else { Err(misfit(file, tokens, rows)) }
}

fn misfit(file: &str, tokens: usize, rows: usize) -> Error {
    Error::Damaged {
        what: file.to_string(),
        problem: format!(
            "the vocabulary has {tokens} tokens but the embedding has {rows} rows; use the tokeniser of this checkpoint"
        ),
    }
}

/// A token's number if it is one of `length`.
fn token_below(length: usize, number: usize) -> Option<u32> {
    u32::try_from(number).ok().filter(|_| number < length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::texts::TEXTS;
    use serde_json::json;

    /// Stretches of the shipped texts that occur often, as merges of byte pairs or as pieces.
    fn words() -> Vec<String> {
        let mut counts = std::collections::BTreeMap::new();
        for text in TEXTS {
            let letters: Vec<char> = text.content.chars().take(40_000).collect();
            for length in 2..=6 {
                for window in letters.windows(length) {
                    *counts.entry(window.iter().collect::<String>()).or_insert(0) += 1;
                }
            }
        }
        let mut often: Vec<(String, i32)> = counts.into_iter().filter(|(_, count)| *count >= 40).collect();
        often.sort_by_key(|(word, count)| (-count, word.clone()));
        often.into_iter().map(|(word, _)| word).collect()
    }

    /// Sentencepiece with pieces that may hold blanks and line ends anywhere, so that merges run across words.
    fn scored() -> Vocabulary {
        let mut bytes = 6_i32.to_le_bytes().to_vec();
        let controls = ["<unk>", "<s>", "</s>"].map(String::from).into_iter();
        let singles = (0..=u8::MAX).map(|byte| format!("<0x{byte:02X}>"));
        let letters = (' '..='~').map(String::from).chain(["\n".to_string()]);
        let texts: Vec<String> = controls.chain(singles).chain(letters).chain(words()).collect();
        for (number, text) in texts.iter().enumerate() {
            bytes.extend((-(number as f32)).to_le_bytes());
            bytes.extend((text.len() as i32).to_le_bytes());
            bytes.extend(text.as_bytes());
        }
        Vocabulary::from_llama2c("tokenizer.bin", &bytes, texts.len()).unwrap()
    }

    /// A tokenizer.json of byte pairs with this pre-tokenizer and normaliser, whose merges are those of the words.
    fn byte_pairs(pre_tokenizer: &serde_json::Value, normalizer: &serde_json::Value) -> Vocabulary {
        let written = |text: &str| text.replace(' ', "\u{120}").replace('\n', "\u{10a}");
        // The letters of all bytes, and those of the texts that the normaliser leaves: the library counts places wrongly after a letter
        // that it drops because it has no token.
        let printable = ('!'..='~').chain('\u{a1}'..='\u{ac}').chain('\u{ae}'..='\u{ff}');
        let texts = TEXTS.iter().flat_map(|text| text.content.chars()).filter(|letter| *letter != ' ');
        let letters: std::collections::BTreeSet<char> =
            printable.chain('\u{100}'..='\u{143}').chain(['\u{2581}', '\n']).chain(texts).collect();
        let mut tokens: Vec<String> = letters.into_iter().map(String::from).collect();
        let mut merges = Vec::new();
        for word in words() {
            let word = written(&word);
            let mut letters = word.chars();
            let last = letters.next_back().unwrap().to_string();
            let first = letters.as_str().to_string();
            if tokens.contains(&first) && tokens.contains(&last) && !tokens.contains(&word) {
                merges.push(json!([first, last]));
                tokens.push(word);
            }
        }
        let numbers: serde_json::Map<String, serde_json::Value> =
            tokens.iter().enumerate().map(|(number, token)| (token.clone(), json!(number))).collect();
        let file = json!({
            "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": normalizer,
            "pre_tokenizer": pre_tokenizer, "post_processor": null, "decoder": null,
            "model": { "type": "BPE", "vocab": numbers, "merges": merges },
        });
        Vocabulary::from_json("tokenizer.json", file.to_string().as_bytes(), tokens.len()).unwrap()
    }

    fn word_pieces() -> Vocabulary {
        let mut tokens: Vec<String> = ["[UNK]", "[CLS]", "[SEP]"].map(String::from).to_vec();
        for word in ('!'..='~').map(String::from).chain(words()) {
            let word = word.trim().to_lowercase();
            for token in [word.clone(), format!("##{word}")] {
                if !word.is_empty() && !tokens.contains(&token) {
                    tokens.push(token);
                }
            }
        }
        let numbers: serde_json::Map<String, serde_json::Value> =
            tokens.iter().enumerate().map(|(number, token)| (token.clone(), json!(number))).collect();
        let file = json!({
            "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
            "normalizer": { "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                "strip_accents": null, "lowercase": true },
            "pre_tokenizer": { "type": "BertPreTokenizer" }, "post_processor": null, "decoder": null,
            "model": { "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 100, "vocab": numbers },
        });
        Vocabulary::from_json("tokenizer.json", file.to_string().as_bytes(), tokens.len()).unwrap()
    }

    #[test]
    fn a_text_in_pieces_has_the_tokens_of_the_whole() {
        let byte_level =
            json!({ "type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true });
        let bare = json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false });
        let sentences = json!({ "type": "Sequence", "normalizers": [
            { "type": "Prepend", "prepend": "\u{2581}" },
            { "type": "Replace", "pattern": { "String": " " }, "content": "\u{2581}" },
        ] });
        let vocabularies = [
            ("scored pieces", scored()),
            ("words of GPT-2", byte_pairs(&byte_level, &json!(null))),
            // Merges run over the whole text.
            ("byte pairs without words", byte_pairs(&bare, &json!(null))),
            ("a blank before the text", byte_pairs(&json!(null), &sentences)),
            ("word pieces", word_pieces()),
        ];
        for (name, vocabulary) in vocabularies {
            for text in TEXTS {
                let whole = Cutting { piece: usize::MAX / 2, shared: 0 };
                let whole = vocabulary.first_tokens_in(text.content, usize::MAX, whole).unwrap();
                assert!(whole.len() > text.content.len() / 8, "{name}: {} tokens", whole.len());
                assert_eq!(vocabulary.encode_bare(text.content).unwrap(), whole, "{name}, {}", text.name);
                for cutting in [Cutting { piece: 2000, shared: 700 }, Cutting { piece: 30_011, shared: 4096 }]
                {
                    let pieces = vocabulary.first_tokens_in(text.content, usize::MAX, cutting).unwrap();
                    assert!(pieces == whole, "{name}, {}, {cutting:?}", text.name);
                    for most in [0, 1, 500, 5001] {
                        let first = vocabulary.first_tokens_in(text.content, most, cutting).unwrap();
                        assert_eq!(first, whole[..most], "{name}, {}, {cutting:?}", text.name);
                    }
                }
            }
        }
    }

    #[test]
    fn a_dropout_of_training_leaves_nothing_to_chance() {
        let read = |dropout: serde_json::Value| {
            let file = json!({
                "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
                "pre_tokenizer": null, "post_processor": null, "decoder": null,
                "model": { "type": "BPE", "dropout": dropout, "vocab": { "a": 0, "b": 1, "ab": 2 },
                    "merges": [["a", "b"]] },
            });
            let vocabulary = Vocabulary::from_json("tokenizer.json", file.to_string().as_bytes(), 3).unwrap();
            vocabulary.encode_bare(&"ab".repeat(200)).unwrap()
        };
        assert_eq!(read(json!(0.5)), [2; 200]);
        assert_eq!(read(json!(0.5)), read(json!(null)));
    }

    #[test]
    fn a_text_without_a_place_to_cut_ends_all_the_same() {
        for text in ["ab".repeat(5000), "\u{e9}".repeat(5000), " ".repeat(5000)] {
            for vocabulary in [scored(), word_pieces()] {
                let cutting = Cutting { piece: 1000, shared: 300 };
                let tokens = vocabulary.first_tokens_in(&text, usize::MAX, cutting).unwrap();
                assert!(tokens.len() <= text.len() + 1);
            }
        }
    }
}
