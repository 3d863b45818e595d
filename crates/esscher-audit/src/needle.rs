//! Needles: facts hidden in a long text and asked for at its end, the retrieval that averages over tokens would lose.

use crate::Error;
use crate::vocabulary::Vocabulary;
use esscher_core::numerics::Stream;

/// A prompt with several needles; the answers stand at its end, where the model is asked for them token by token.
#[derive(Debug, Clone, PartialEq)]
pub struct Haystack {
    /// The whole prompt with its answers.
    pub tokens: Vec<u32>,
    /// The positions of the answers' tokens: the prediction at the position before is compared with the token.
    pub answers: Vec<usize>,
}

const PLACES: [&str; 8] = ["Paris", "London", "Tokyo", "Cairo", "Madrid", "Berlin", "Rome", "Sydney"];
const NEEDLES: usize = 4;
const DIGITS: usize = 4;

/// Hides four numbers at even depths of `filler` and asks for them in another order; `length` tokens in all.
///
/// # Errors
/// A length that the needles and questions alone fill, or too short a filler.
pub fn haystack(
    vocabulary: &Vocabulary,
    filler: &[u32],
    begin: Option<u32>,
    length: usize,
    stream: &mut Stream,
) -> Result<Haystack, Error> {
    let first = stream.bits() as usize % PLACES.len();
    let places: Vec<&str> = (0..NEEDLES).map(|needle| PLACES[(first + needle) % PLACES.len()]).collect();
    let codes: Vec<String> = (0..NEEDLES)
        .map(|_| (0..DIGITS).map(|_| char::from(b'0' + (stream.bits() % 10) as u8)).collect())
        .collect();
    let fact = |needle: usize| format!(" The secret code of {} is", places[needle]);
    let hidden = codes
        .iter()
        .enumerate()
        .map(|(needle, code)| vocabulary.encode_bare(&format!("{} {code}.", fact(needle))))
        .collect::<Result<Vec<_>, _>>()?;
    let (mut questions, mut asked) = (Vec::new(), Vec::new());
    for needle in (0..NEEDLES).map(|index| (index * 3 + 1) % NEEDLES) {
        questions.extend(vocabulary.encode_bare(&fact(needle))?);
        let answer = vocabulary.encode_bare(&format!(" {}", codes[needle]))?;
        asked.extend((0..answer.len()).map(|token| questions.len() + token));
        questions.extend(answer);
        questions.extend(vocabulary.encode_bare(".")?);
    }
    let fixed = usize::from(begin.is_some()) + questions.len() + hidden.iter().map(Vec::len).sum::<usize>();
    let body = length.saturating_sub(fixed);
    if body < 2 * NEEDLES || filler.len() < body {
        return Err(Error::Request(format!(
            "{length} tokens leave {body} for the text around the needles, of which there are {}: ask for a longer prompt or give \
             more text",
            filler.len()
        )));
    }
    let mut tokens: Vec<u32> = begin.into_iter().collect();
    let piece = body / (NEEDLES + 1);
    for (needle, hidden) in hidden.iter().enumerate() {
        tokens.extend(&filler[needle * piece..(needle + 1) * piece]);
        tokens.extend(hidden);
    }
    tokens.extend(&filler[NEEDLES * piece..body]);
    let answers = asked.iter().map(|position| tokens.len() + position).collect();
    tokens.extend(questions);
    Ok(Haystack { tokens, answers })
}
