//! Vocabularies: text -> tokens, as each checkpoint was trained.

use tokenizers::{Encoding, Token, Tokenizer};

use crate::Error;

mod byte_level;
pub(crate) mod gguf;
mod llama2c;
mod scored;
mod soundness;
mod template;

use scored::ScoredPieces;
pub use template::Template;

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
    /// The vocabulary of a `tokenizer.json` or of a llama2.c `tokenizer.bin`, whichever the bytes are.
    ///
    /// # Errors
    /// As [`from_json`](Self::from_json) and [`from_llama2c`](Self::from_llama2c).
    pub fn from_file(file: &str, bytes: &[u8], rows: usize) -> Result<Self, Error> {
        let json = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
        if json { Self::from_json(file, bytes, rows) } else { Self::from_llama2c(file, bytes, rows) }
    }

    /// The vocabulary of a `tokenizer.json`; `rows` is the number of rows of the embedding that it must fit.
    ///
    /// Truncation and padding are turned off; the file's own template puts special tokens around a text, such as \[CLS\] and
    /// \[SEP\].
    ///
    /// # Errors
    /// A file that the `tokenizers` library refuses or would trust too far, more tokens than rows, a template without the text.
    pub fn from_json(file: &str, bytes: &[u8], rows: usize) -> Result<Self, Error> {
        let damaged = |problem: String| Error::Damaged { what: file.to_string(), problem };
        soundness::check(file, bytes)?;
        let mut tokenizer = Tokenizer::from_bytes(bytes)
            .map_err(|error| damaged(format!("not a tokenizer.json of the `tokenizers` library: {error}")))?;
        tokenizer.with_padding(None);
        tokenizer.with_truncation(None).map_err(|error| damaged(error.to_string()))?;
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
        match &self.kind {
            Kind::Library(tokenizer) => {
                let encoding = tokenizer.encode_fast(text, false).map_err(|error| Error::NotEncodable {
                    what: "the text".to_string(),
                    problem: error.to_string(),
                })?;
                self.within(encoding.get_ids().to_vec())
            }
            Kind::Scored(pieces) => pieces.encode(text),
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
            Kind::Library(tokenizer) => tokenizer.decode(tokens, true).unwrap_or_default(),
            Kind::Scored(pieces) => pieces.decode(tokens),
        }
    }

    /// One token in printable form: a blank stays a blank, what cannot be seen is escaped.
    pub fn token(&self, token: u32) -> String {
        let text = match &self.kind {
            Kind::Library(tokenizer) => {
                let raw = tokenizer.id_to_token(token);
                match tokenizer.decode(&[token], false) {
                    // Part of a character: the library's own letters for bytes.
                    Ok(text) if text.contains(char::REPLACEMENT_CHARACTER) => raw.unwrap_or(text),
                    Ok(text) if text.is_empty() => raw.unwrap_or_default(),
                    Ok(text) => text,
                    Err(_) => raw.unwrap_or_default(),
                }
            }
            Kind::Scored(pieces) => pieces.token(token),
        };
        let mut printable = String::new();
        for character in text.chars() {
            if character.is_control() {
                printable.extend(character.escape_default());
            } else {
                printable.push(character);
            }
        }
        printable
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
