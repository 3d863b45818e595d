//! Packed and padded batches with several heads give what each sequence and head gives alone, on any number of threads.

use esscher_core::numerics::Stream;
use esscher_zoo::batch::{Form, Layout, backward, check, evaluate, forward};
use esscher_zoo::catalogue::{Entry, Sizes, catalogue};
use esscher_zoo::mechanism::{Definition, Given, Gradient, Meaning, Mechanism, Order, Pass, State};

const HEADS: usize = 3;
const LENGTHS: [usize; 4] = [5, 1, 70, 12];

/// Rows for a layout, in f64: allowed numbers for every meaning, heads side by side.
fn draw(mechanism: &dyn Mechanism, rows: usize, seed: u64) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
    let mut stream = Stream::new(seed, 0, 0);
    let signature = mechanism.signature();
    let tokens = signature
        .tokens
        .iter()
        .map(|port| {
            (0..rows * HEADS * port.width)
                .map(|_| {
                    let normal = stream.normal();
                    match port.meaning {
                        Meaning::LogDecay => -0.1 * normal.exp(),
                        Meaning::Rate => 0.1 * normal.exp(),
                        Meaning::Fraction => 1.0 / (1.0 + normal.exp()),
                        Meaning::Content | Meaning::Logit | Meaning::Angle => normal,
                    }
                })
                .collect()
        })
        .collect();
    let parameters = signature
        .parameters
        .iter()
        .map(|parameter| {
            let copies = if parameter.shared { 1 } else { HEADS };
            (0..copies * parameter.size).map(|_| 0.3 * stream.normal()).collect()
        })
        .collect();
    (tokens, parameters)
}

fn slices(parts: &[Vec<f64>]) -> Vec<&[f64]> {
    parts.iter().map(Vec::as_slice).collect()
}

/// Outputs and gradient of one sequence and head by itself, with slopes that are the outputs' own rows of `slopes`.
fn alone(
    mechanism: &dyn Mechanism,
    tokens: &[Vec<f64>],
    parameters: &[Vec<f64>],
    slopes: &[f64],
    rows: std::ops::Range<usize>,
    head: usize,
) -> (Vec<f64>, Gradient<f64>, State<f64>) {
    let signature = mechanism.signature();
    let pick = |numbers: &[f64], width: usize| -> Vec<f64> {
        rows.clone().flat_map(|row| numbers[(row * HEADS + head) * width..][..width].to_vec()).collect()
    };
    let tokens: Vec<Vec<f64>> =
        signature.tokens.iter().zip(tokens).map(|(port, numbers)| pick(numbers, port.width)).collect();
    let parameters: Vec<Vec<f64>> = signature
        .parameters
        .iter()
        .zip(parameters)
        .map(|(parameter, numbers)| {
            let from = if parameter.shared { 0 } else { head * parameter.size };
            numbers[from..from + parameter.size].to_vec()
        })
        .collect();
    let (tokens, parameters) = (slices(&tokens), slices(&parameters));
    let given = Given::new(&signature, rows.len(), &tokens, &parameters).unwrap();
    let initial = Definition::<f64>::init(mechanism);
    let mut state = initial.clone();
    let mut outputs = vec![0.0; rows.len() * signature.output];
    let saved = mechanism.forward(&given, &mut state, &mut outputs);
    let mut gradient = Gradient::zeros(&given);
    let zeros = State { seen: state.seen, numbers: vec![0.0; state.numbers.len()] };
    let slopes = pick(slopes, signature.output);
    let pass = Pass {
        given: &given,
        initial: &initial,
        outputs: &outputs,
        saved: &saved.0,
        output_slopes: &slopes,
        state_slopes: &zeros,
    };
    mechanism.backward(&pass, &mut gradient);
    (outputs, gradient, state)
}

fn check_layout(entry: &Entry, layout: &Layout, starts: &[usize]) {
    let mechanism = &*(entry.build)(Sizes::new(4, 3).unwrap());
    let signature = mechanism.signature();
    let (tokens, parameters) = draw(mechanism, layout.rows(), 1);
    let mut stream = Stream::new(2, 0, 0);
    let slopes: Vec<f64> = (0..layout.rows() * HEADS * signature.output).map(|_| stream.normal()).collect();
    let (given, constants) = (slices(&tokens), slices(&parameters));
    check(&signature, layout, &given, &constants).unwrap();
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let passed = forward::<f64>(mechanism, layout, &given, &constants, None).unwrap();
            let gradient = backward(mechanism, layout, &given, &constants, &passed, &slopes, None).unwrap();
            (passed.outputs, passed.states, gradient)
        })
    };
    let one_thread = run(1);
    assert_eq!(one_thread, run(2), "{}", entry.name);
    let (outputs, states, gradient) = one_thread;

    let mut covered = vec![false; layout.rows()];
    let mut summed: Vec<Vec<f64>> = parameters.iter().map(|numbers| vec![0.0; numbers.len()]).collect();
    for (sequence, (&start, &length)) in starts.iter().zip(&LENGTHS).enumerate() {
        covered[start..start + length].fill(true);
        for head in 0..HEADS {
            let (own, own_gradient, state) =
                alone(mechanism, &tokens, &parameters, &slopes, start..start + length, head);
            for (row, expected) in (start..).zip(own.chunks(signature.output)) {
                let from = (row * HEADS + head) * signature.output;
                assert_eq!(&outputs[from..from + signature.output], expected, "{}", entry.name);
            }
            assert_eq!(states[sequence * HEADS + head], state, "{}", entry.name);
            for ((port, all), part) in signature.tokens.iter().zip(&gradient.tokens).zip(&own_gradient.tokens)
            {
                for (row, expected) in (start..).zip(part.chunks(port.width)) {
                    let from = (row * HEADS + head) * port.width;
                    assert_eq!(&all[from..from + port.width], expected, "{}: {}", entry.name, port.name);
                }
            }
            for ((parameter, sum), part) in
                signature.parameters.iter().zip(&mut summed).zip(&own_gradient.parameters)
            {
                let from = if parameter.shared { 0 } else { head * parameter.size };
                sum[from..from + parameter.size].iter_mut().zip(part).for_each(|(s, x)| *s += x);
            }
        }
    }
    assert_eq!(gradient.parameters, summed, "{}", entry.name);
    for row in (0..layout.rows()).filter(|row| !covered[*row]) {
        let width = HEADS * signature.output;
        assert!(outputs[row * width..(row + 1) * width].iter().all(|x| *x == 0.0), "padding has no output");
        for (port, all) in signature.tokens.iter().zip(&gradient.tokens) {
            let width = HEADS * port.width;
            assert!(all[row * width..(row + 1) * width].iter().all(|x| *x == 0.0), "padding has no slope");
        }
    }
}

#[test]
fn packed_sequences_are_each_alone() {
    let layout = Layout::packed(&LENGTHS, HEADS).unwrap();
    catalogue().iter().for_each(|entry| check_layout(entry, &layout, &[0, 5, 6, 76]));
}

#[test]
fn padded_sequences_are_each_alone_and_padding_is_zero() {
    let layout = Layout::padded(&LENGTHS, 71, HEADS).unwrap();
    catalogue().iter().for_each(|entry| check_layout(entry, &layout, &[0, 71, 142, 213]));
}

#[test]
fn states_are_handed_over_between_batches() {
    for entry in catalogue().iter().filter(|entry| entry.claims.order == Order::Causal) {
        let mechanism = &*(entry.build)(Sizes::new(4, 3).unwrap());
        let signature = mechanism.signature();
        let (tokens, parameters) = draw(mechanism, 30, 3);
        let constants = slices(&parameters);
        let whole = Layout::packed(&[30], HEADS).unwrap();
        let all = forward::<f64>(mechanism, &whole, &slices(&tokens), &constants, None).unwrap();
        let cut: Vec<(&[f64], &[f64])> = tokens
            .iter()
            .zip(&signature.tokens)
            .map(|(numbers, port)| numbers.split_at(11 * HEADS * port.width))
            .collect();
        let (first, second): (Vec<&[f64]>, Vec<&[f64]>) = cut.into_iter().unzip();
        let early = Layout::packed(&[11], HEADS).unwrap();
        let late = Layout::packed(&[19], HEADS).unwrap();
        let before = forward::<f64>(mechanism, &early, &first, &constants, None).unwrap();
        let after = forward(mechanism, &late, &second, &constants, Some(&before.states)).unwrap();
        let joined: Vec<f64> = before.outputs.iter().chain(&after.outputs).copied().collect();
        let worst = joined.iter().zip(&all.outputs).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        let size = all.outputs.iter().map(|x| x.abs()).fold(0.0, f64::max);
        assert!(worst <= 1e-12 * size, "{}: {worst:e}", entry.name);
    }
}

#[test]
fn all_forms_of_a_batch_agree_and_padding_is_not_looked_at() {
    for entry in catalogue() {
        let mechanism = &*(entry.build)(Sizes::new(4, 3).unwrap());
        let signature = mechanism.signature();
        let layout = Layout::padded(&[2, 5], 6, HEADS).unwrap();
        let (mut tokens, parameters) = draw(mechanism, layout.rows(), 4);
        for (port, numbers) in signature.tokens.iter().zip(&mut tokens) {
            let row = HEADS * port.width;
            numbers[2 * row..6 * row].fill(f64::NAN);
            numbers[11 * row..].fill(f64::NAN);
        }
        let (given, constants) = (slices(&tokens), slices(&parameters));
        check(&signature, &layout, &given, &constants).unwrap();
        let by = |form| evaluate::<f64>(mechanism, form, &layout, &given, &constants, None).unwrap();
        let (expected, _) = by(Form::Reference);
        let size = expected.iter().map(|x| x.abs()).fold(0.0, f64::max);
        for form in [Form::Recurrent, Form::Chunked] {
            let (found, states) = by(form);
            let worst = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(worst <= 1e-10 * size, "{}, {form:?}: {worst:e}", entry.name);
            assert_eq!(states.iter().map(|state| state.seen).collect::<Vec<_>>(), [2, 2, 2, 5, 5, 5]);
        }
        let passed = forward::<f64>(mechanism, &layout, &given, &constants, None).unwrap();
        assert_eq!(passed.outputs, by(Form::Chunked).0, "{}", entry.name);
        let states = Some(&passed.states[..]);
        let refused = evaluate(mechanism, Form::Reference, &layout, &given, &constants, states).unwrap_err();
        assert!(refused.to_string().contains("starts from the empty state"));
    }
}

#[test]
fn nonsense_is_refused_in_one_sentence() {
    let mechanism = &*(catalogue()[0].build)(Sizes::new(4, 3).unwrap());
    let signature = mechanism.signature();
    let layout = Layout::packed(&[2], 1).unwrap();
    let sized = |rows: usize| -> Vec<Vec<f64>> {
        signature
            .tokens
            .iter()
            .map(|port| vec![if port.meaning == Meaning::LogDecay { -0.1 } else { 0.1 }; rows * port.width])
            .collect()
    };
    let said = |tokens: &[Vec<f64>]| {
        check(&signature, &layout, &slices(tokens), &[]).map_err(|error| error.to_string())
    };
    assert_eq!(said(&sized(2)), Ok(()));
    let first = signature.tokens[0];
    let (two, three) = (2 * first.width, 3 * first.width);
    assert_eq!(said(&sized(3)), Err(format!("{}: expected {two} numbers, found {three}", first.name)));
    assert_eq!(
        said(&sized(2)[1..]),
        Err(format!(
            "token ports: expected {}, found {}",
            signature.tokens.len(),
            signature.tokens.len() - 1
        ))
    );
    let mut bad = sized(2);
    bad[0][1] = f64::NAN;
    assert_eq!(said(&bad), Err(format!("{}: entry 1 is NaN, expected a finite number", first.name)));
    assert_eq!(Layout::packed(&[2], 0).unwrap_err().to_string(), "heads: expected at least 1, found 0");
    assert_eq!(
        Layout::padded(&[4], 3, 1).unwrap_err().to_string(),
        "lengths: expected at most the padded length, 3, found 4"
    );
    assert_eq!(Sizes::new(0, 3).unwrap_err().to_string(), "key_width: expected 1 to 4096, found 0");
}

#[test]
fn lengths_that_no_memory_holds_are_refused() {
    assert!(Layout::packed(&[usize::MAX, 2], 1).is_err());
    assert!(Layout::padded(&[1, 1, 1], usize::MAX, 1).is_err());
}
