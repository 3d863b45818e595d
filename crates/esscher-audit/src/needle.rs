//! Needles: facts hidden in a long text and asked for at its end, the retrieval that averages over tokens would lose.

use crate::Error;
use crate::vocabulary::Vocabulary;
use esscher_core::numerics::Stream;

/// A prompt with several needles, each a code of four digits; the questions stand at its end, each followed by its answer.
///
/// What chance finds: a blind guess of the digits one code in 10⁴; a model that copies any of the four hidden codes without knowing
/// which was asked for one in four, or, if it also leaves out those already answered, (1/4 + 1/3 + 1/2 + 1)/4 ≈ 0.52.
#[derive(Debug, Clone, PartialEq)]
pub struct Haystack {
    /// The whole prompt with its answers.
    pub tokens: Vec<u32>,
    /// Code after code the positions of the tokens that hold its digits (a blank before them is not asked for): the prediction at
    /// the position before is compared with the token.
    pub answers: Vec<Vec<usize>>,
}

const PLACES: [&str; 8] = ["Paris", "London", "Tokyo", "Cairo", "Madrid", "Berlin", "Rome", "Sydney"];
const NEEDLES: usize = 4;
const DIGITS: usize = 4;

/// How a fact is written: between place and code, and after the code. The first whose parts the vocabulary cuts apart is taken.
const LAYOUTS: [(&str, &str); 3] = [(" is ", "."), (" is: ", "\n"), (":\n", "\n")];

/// What may stand before a fact, so that it is cut as inside a text: some vocabularies put a blank before the first word.
const BEFORE: [&str; 3] = [".", "x", "\n"];

/// Hides four codes at even depths of a stretch of `text` and asks for them in another order; `length` tokens in all. The stretch
/// begins at the share `at`, from 0 to 1, of the places where it can begin.
///
/// # Errors
/// A length that the needles and questions alone fill, too short a text, a vocabulary that cannot write the codes.
pub fn haystack(
    vocabulary: &Vocabulary,
    text: &[u32],
    at: f64,
    length: usize,
    stream: &mut Stream,
) -> Result<Haystack, Error> {
    let first = stream.bits() as usize % PLACES.len();
    let needles: Vec<(&str, String)> = (0..NEEDLES)
        .map(|needle| {
            let code = (0..DIGITS).map(|_| char::from(b'0' + (stream.bits() % 10) as u8)).collect();
            (PLACES[(first + needle) % PLACES.len()], code)
        })
        .collect();
    let facts = facts(vocabulary, &needles)?;
    let template = vocabulary.template();
    // Every fact stands in the text and once more as question and answer.
    let fixed = 2 * facts.iter().map(|fact| fact.tokens.len()).sum::<usize>();
    let body = template.room(length).saturating_sub(fixed);
    let short = |what, found, needed, remedy| {
        let purpose = format!("{NEEDLES} needles, their questions and text around them");
        Error::TooFewTokens { what, found, needed, purpose, remedy }
    };
    if body < 2 * NEEDLES {
        let needed = template.around(&[]).len() + fixed + 2 * NEEDLES;
        return Err(short("the prompt", length, needed, "ask for a longer prompt"));
    }
    if text.len() < body {
        return Err(short("the text", text.len(), body, "give more text"));
    }
    let begin = (at.clamp(0.0, 1.0) * (text.len() - body) as f64) as usize;
    let filler = &text[begin.min(text.len() - body)..][..body];
    let mut tokens = template.prefix.clone();
    let piece = body / (NEEDLES + 1);
    for (needle, fact) in facts.iter().enumerate() {
        tokens.extend(&filler[needle * piece..(needle + 1) * piece]);
        tokens.extend(&fact.tokens);
    }
    tokens.extend(&filler[NEEDLES * piece..]);
    let mut answers = Vec::new();
    for fact in (0..NEEDLES).filter_map(|index| facts.get((index * 3 + 1) % NEEDLES)) {
        answers.push(fact.code.iter().map(|position| tokens.len() + position).collect());
        tokens.extend(&fact.tokens);
    }
    tokens.extend(&template.suffix);
    Ok(Haystack { tokens, answers })
}

/// A fact as it is cut inside a text.
struct Fact {
    tokens: Vec<u32>,
    /// Where the digits of its code are.
    code: Vec<usize>,
}

/// All facts in the same layout.
fn facts(vocabulary: &Vocabulary, needles: &[(&str, String)]) -> Result<Vec<Fact>, Error> {
    for layout in LAYOUTS {
        for before in BEFORE {
            let facts: Result<Option<Vec<Fact>>, Error> = needles
                .iter()
                .map(|(place, code)| Fact::cut(vocabulary, before, layout, place, code))
                .collect();
            if let Some(facts) = facts? {
                return Ok(facts);
            }
        }
    }
    Err(Error::NotEncodable {
        what: "needles".to_string(),
        problem: "it does not cut a number of four digits apart from the words before it; ask for no needles"
            .to_string(),
    })
}

impl Fact {
    /// The fact is encoded whole and after other text; its parts are found by what is common to it and its beginnings. Nothing if
    /// a beginning is cut in another way, or if the digits do not come back from their tokens.
    fn cut(
        vocabulary: &Vocabulary,
        before: &str,
        (between, after): (&str, &str),
        place: &str,
        code: &str,
    ) -> Result<Option<Self>, Error> {
        let asked = format!("{before} The secret code of {place}{}", between.trim_end());
        let answered = format!("{before} The secret code of {place}{between}{code}");
        let whole = vocabulary.encode_bare(&format!("{answered}{after}"))?;
        let beginning = |text: &str| -> Result<Option<usize>, Error> {
            let tokens = vocabulary.encode_bare(text)?;
            Ok(whole.starts_with(&tokens).then_some(tokens.len()))
        };
        let (Some(before), Some(asked), Some(answered)) =
            (beginning(before)?, beginning(&asked)?, beginning(&answered)?)
        else {
            return Ok(None);
        };
        let digits = |tokens: &[u32]| -> String {
            vocabulary.decode(tokens).chars().filter(char::is_ascii_digit).collect()
        };
        let tokens = whole.get(before..).unwrap_or_default().to_vec();
        let places = asked.saturating_sub(before)..answered.saturating_sub(before);
        let places: Vec<usize> = places
            .filter(|place| tokens.get(*place).is_some_and(|token| !digits(&[*token]).is_empty()))
            .collect();
        let held: Vec<u32> = places.iter().filter_map(|place| tokens.get(*place)).copied().collect();
        Ok((digits(&held) == code).then_some(Fact { tokens, code: places }))
    }
}
