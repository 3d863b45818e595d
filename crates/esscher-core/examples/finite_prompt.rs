//! How far is a finite prompt from its infinite limit? A small table, exact from 10 tokens to a trillion.

use esscher_core::attention::{Attention, Softmax};
use esscher_core::measure::{Gaussian, Rademacher};
use esscher_core::prompt::{FinitePrompt, PromptLength, critical_score_deviation, delta_method};
use esscher_core::{Mat, Result};

fn main() -> Result<()> {
    let dimension = 4;
    let identity = Mat::<f64>::identity(dimension, dimension);
    let head = Softmax::new(identity.as_ref(), identity.as_ref())?;
    let tokens = Gaussian::standard(dimension)?;

    println!("Softmax attention over L tokens drawn from N(0, I) in R^{dimension}, with U = V = I.");
    println!(
        "As L grows, the output at a query z approaches the tilted mean of the token law, here z itself:"
    );
    let query = [0.6, -0.8, 0.0, 0.0];
    println!("  attention of z = {query:?} on the law    = {:?}", head.attend(&tokens, &query)?);
    let signs = head.attend(&Rademacher::new(dimension)?, &query)?;
    println!("  the same on random signs (not linear)        = [{:.3}, {:.3}, 0, 0]", signs[0], signs[1]);
    println!();
    println!("Mean squared distance of L tokens from the limit, exactly, for queries of growing size.");
    println!("The scores have standard deviation tau = |z|; the prompt freezes on its largest score when");
    println!("tau exceeds sqrt(2 ln L).");
    println!();

    let sizes = [0.5, 1.0, 2.0, 4.0];
    print!("{:>16}", "L");
    for size in sizes {
        print!("{:>14}", format!("tau = {size}"));
    }
    println!("{:>16}", "sqrt(2 ln L)");
    let lengths: Vec<PromptLength> = [10, 100, 1_000, 10_000, 1_000_000, 1_000_000_000, 1_000_000_000_000]
        .map(PromptLength::new)
        .into_iter()
        .collect::<Result<_>>()?;
    let prompt = FinitePrompt::exact(&head, &tokens)?;
    let columns: Vec<_> = sizes
        .iter()
        .map(|size| prompt.at_query(&query.map(|entry| size * entry), &lengths))
        .collect::<Result<_>>()?;
    for (row, length) in lengths.iter().enumerate() {
        print!("{:>16}", length.to_string());
        for column in &columns {
            print!("{:>14}", short(column[row].errors.output));
        }
        println!("{:>16.2}", critical_score_deviation(*length));
    }
    print!("{:>16}", "limit of L x mse");
    for size in sizes {
        let constants = delta_method(&head, &tokens, &query.map(|entry| size * entry))?;
        print!("{:>14}", short(constants.output_error));
    }
    println!();
    println!();
    println!(
        "Computed exactly (relative error below 1e-12, five digits shown), at a cost that does not depend on L."
    );
    Ok(())
}

/// Five digits, without an exponent where none is needed.
fn short(value: f64) -> String {
    if (0.01..1e4).contains(&value) { format!("{value:.4}") } else { format!("{value:.4e}") }
}
