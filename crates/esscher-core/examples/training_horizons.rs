//! L(ε) of the in-context theorem: how long prompts must be for training to end within ε of the noise floor.
//!
//! `cargo run --release --example training_horizons`: Σ = I, noise 0.1, α = 1/2, about a minute.

use esscher_core::regression::{SpectralTask, training_horizon};
use esscher_core::{Result, Unwatched};

fn main() -> Result<()> {
    let excesses = [0.3, 0.1, 0.03, 0.01];
    println!(
        "smallest L at which gradient flow ends with risk at most the noise floor + ε (exact risks, to 1e-9)"
    );
    println!("{:>6}{}", "d", excesses.map(|excess| format!("{:>12}", format!("ε = {excess}"))).concat());
    for dimension in [2, 5, 10, 20] {
        let task = SpectralTask::isotropic(dimension, 0.1, 1.0)?;
        print!("{dimension:>6}");
        for excess in excesses {
            let length = training_horizon(&task, 0.5, excess, &Unwatched)?.length();
            print!("{:>12}", length.map_or("beyond 1e12".to_string(), |length| length.get().to_string()));
        }
        println!();
    }
    Ok(())
}
