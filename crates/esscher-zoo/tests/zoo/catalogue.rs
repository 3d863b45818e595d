//! Every claim of the catalogue, tested for every entry.

use crate::common::check_all;
use esscher_zoo::Number;
use esscher_zoo::agreement::{Drawn, Gates, relative_difference};
use esscher_zoo::catalogue::{Cost, Entry, Sizes, catalogue, hybrids};
use esscher_zoo::mechanism::{Definition, Given, Mechanism, Order, stream};
use esscher_zoo::traced::{self, Traced};
use std::collections::HashSet;

/// Odd on purpose, and different.
const SIZES: [(usize, usize); 2] = [(3, 5), (6, 2)];

fn each(visit: impl Fn(&Entry, Sizes, &dyn Mechanism)) {
    for entry in catalogue() {
        for (key, value) in SIZES {
            let sizes = Sizes::new(key, value).unwrap();
            visit(entry, sizes, &*(entry.build)(sizes));
        }
    }
}

#[test]
fn all_forms_of_all_mechanisms_agree() {
    each(|_, _, mechanism| check_all(mechanism));
}

#[test]
fn names_are_unique_and_papers_are_cited() {
    let names: HashSet<&str> = catalogue().iter().map(|entry| entry.name).collect();
    assert_eq!(names.len(), catalogue().len());
    let references = include_str!("../../../../docs/references.bib");
    let blocks: Vec<&str> = references.split("\n@").collect();
    for block in &blocks {
        let count = |sign: char| block.matches(sign).count();
        assert!(count('{') == count('}') && block.trim_end().ends_with('}'), "{block}");
        for field in ["title", "author", "year"] {
            let found = block.lines().filter(|line| line.trim_start().starts_with(field)).count();
            assert_eq!(found, 1, "{field} of {block}");
        }
    }
    let papers = catalogue().iter().map(|entry| (entry.key, entry.paper));
    for (key, paper) in papers.chain(hybrids().iter().map(|hybrid| (hybrid.key, hybrid.paper))) {
        let block = blocks.iter().find(|block| block.contains(&format!("{{{key},")));
        let number = paper.split("arXiv ").nth(1).unwrap();
        assert!(block.is_some_and(|block| block.contains(number)), "{key}: {paper}");
    }
}

#[test]
fn the_documents_list_the_catalogue() {
    let page = include_str!("../../../../docs/mechanisms.md");
    for entry in catalogue() {
        let said = |truth: bool| if truth { "yes" } else { "no" };
        let claims = &entry.claims;
        let row = format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            entry.name,
            entry.year,
            said(claims.order == Order::Causal),
            said(claims.normalised),
            claims.state.formula,
            claims.cost.name(),
            claims.fate.name(),
            said(claims.dynamical_system),
            said(claims.recalls)
        );
        assert!(page.contains(&row), "docs/mechanisms.md lacks {row}");
    }
}

fn outputs(mechanism: &dyn Mechanism, drawn: &Drawn) -> Vec<f64> {
    drawn.with::<f64, _>(0, drawn.length, |given| {
        let mut state = Definition::<f64>::init(mechanism);
        stream(mechanism, given, &mut state)
    })
}

#[test]
fn causal_mechanisms_do_not_see_the_future_and_others_do() {
    each(|entry, _, mechanism| {
        let drawn = Drawn::new(mechanism, 20, Gates::Moderate, 1);
        let width = mechanism.signature().output;
        let before = outputs(mechanism, &drawn);
        let mut changed = drawn.clone();
        for (rows, other) in
            changed.tokens.iter_mut().zip(Drawn::new(mechanism, 20, Gates::Moderate, 2).tokens)
        {
            let from = rows.len() / 20 * 15;
            rows[from..].copy_from_slice(&other[from..]);
        }
        let after = outputs(mechanism, &changed);
        let past = 15 * width;
        match entry.claims.order {
            Order::Causal => assert_eq!(before[..past], after[..past], "{}", entry.name),
            Order::Whole => assert_ne!(before[..past], after[..past], "{}", entry.name),
        }
        assert_ne!(before[past..], after[past..], "{}", entry.name);
        assert_eq!(entry.claims.order, mechanism.order(), "{}", entry.name);
    });
}

#[test]
fn normalised_mechanisms_return_equal_values_unchanged_and_others_do_not() {
    each(|entry, _, mechanism| {
        let signature = mechanism.signature();
        let Some(value) = signature.port("value") else {
            assert!(!entry.claims.normalised, "{} has no values", entry.name);
            return;
        };
        let mut drawn = Drawn::new(mechanism, 20, Gates::Moderate, 3);
        drawn.tokens[value].fill(1.0);
        // Where all weights of a row are zero, the guarded quotient is zero.
        let all = outputs(mechanism, &drawn);
        let found: Vec<f64> = all.iter().copied().filter(|x| *x != 0.0).collect();
        assert!(2 * found.len() > all.len(), "{}: most rows have weights", entry.name);
        let difference = relative_difference(&found, &vec![1.0; found.len()], 0.0);
        assert_eq!(difference < 1e-5, entry.claims.normalised, "{}: {difference:e}", entry.name);
    });
}

#[test]
fn states_have_the_size_that_is_claimed() {
    each(|entry, sizes, mechanism| {
        for length in [1, 4, 150] {
            let drawn = Drawn::new(mechanism, length, Gates::Moderate, 4);
            let mut state = Definition::<f64>::init(mechanism);
            drawn.with::<f64, _>(0, length, |given| stream(mechanism, given, &mut state));
            let expected = (entry.claims.state.numbers)(sizes, length);
            assert_eq!(state.numbers.len(), expected, "{} after {length} tokens", entry.name);
            assert_eq!(state.bytes(), 8 * expected);
        }
    });
}

/// Operations of one more step (absorb and read) after `seen` tokens, counted by traced numbers.
fn operations_of_a_step(mechanism: &dyn Mechanism, seen: usize) -> usize {
    let drawn = Drawn::new(mechanism, seen + 1, Gates::Moderate, 5);
    let mut state = Definition::<Traced>::init(mechanism);
    drawn.with::<Traced, _>(0, seen, |given| {
        let rows =
            |token: usize| (0..given.tokens.len()).map(|port| given.row(port, token)).collect::<Vec<_>>();
        for token in 0..seen {
            let rows = rows(token);
            mechanism.absorb(&Given { length: 1, tokens: &rows, parameters: given.parameters }, &mut state);
        }
    });
    let last: Vec<f64> =
        drawn.tokens.iter().flat_map(|rows| rows[rows.len() / (seen + 1) * seen..].to_vec()).collect();
    traced::operations(&last, |numbers| {
        let mut rest = numbers;
        let rows: Vec<&[Traced]> = drawn
            .tokens
            .iter()
            .map(|rows| {
                let (row, after) = rest.split_at(rows.len() / (seen + 1));
                rest = after;
                row
            })
            .collect();
        drawn.with::<Traced, _>(0, 0, |given| {
            let token = Given { length: 1, tokens: &rows, parameters: given.parameters };
            mechanism.absorb(&token, &mut state);
            let mut output = vec![Traced::constant(0.0); mechanism.signature().output];
            mechanism.read(&token, state.view(), &mut output);
            output[0]
        })
    })
}

#[test]
fn a_step_costs_the_same_after_any_length_where_the_cost_is_linear() {
    each(|entry, _, mechanism| {
        // Beyond any window of the catalogue.
        let (early, late) = (operations_of_a_step(mechanism, 200), operations_of_a_step(mechanism, 400));
        match entry.claims.cost {
            // Features that are zero spare operations.
            Cost::Linear => assert!((late as f64) < 1.2 * early as f64, "{}: {early}, {late}", entry.name),
            Cost::Quadratic => assert!(late as f64 > 1.8 * early as f64, "{}: {early}, {late}", entry.name),
        }
    });
}

#[test]
fn fates_are_those_that_large_prompts_show() {
    // That a mechanism's fate is what happens is tested by simulation in `large_prompts`.
    for entry in catalogue() {
        let mechanism = (entry.build)(Sizes::new(3, 3).unwrap());
        assert_eq!(mechanism.fate(), entry.claims.fate, "{}", entry.name);
    }
}

#[test]
fn dynamical_systems_are_where_they_are_claimed() {
    // That their outputs are the mechanism's is part of `all_forms_of_all_mechanisms_agree`.
    each(|entry, _, mechanism| {
        assert_eq!(mechanism.dynamical_system().is_some(), entry.claims.dynamical_system, "{}", entry.name);
    });
}
