//! Times the chunked gated linear attention, forward and backward, in f32 on one thread: `BATCH LENGTH HEADS KEYS VALUES`.

use esscher_core::numerics::Stream;
use esscher_zoo::batch::{Layout, backward, forward};
use esscher_zoo::gated_linear_attention::GatedLinearAttention;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global()?;
    let sizes: Vec<usize> = std::env::args().skip(1).map(|word| word.parse()).collect::<Result<_, _>>()?;
    let [batch, length, heads, keys, values] = sizes[..] else {
        return Err("give batch, length, heads, key width, value width".into());
    };
    let mechanism = GatedLinearAttention { key_width: keys, value_width: values };
    let layout = Layout::packed(&vec![length; batch], heads)?;
    let mut stream = Stream::new(0, 0, 0);
    let mut draw = |width: usize| -> Vec<f32> {
        (0..layout.rows() * heads * width).map(|_| stream.normal() as f32).collect()
    };
    let (query, key, value, slopes) = (draw(keys), draw(keys), draw(values), draw(values));
    let log_decay: Vec<f32> = draw(keys).iter().map(|z| -(1.0 + (-z).exp()).ln() / 16.0).collect();
    let tokens = [&query[..], &key, &value, &log_decay];
    let mut best = f64::INFINITY;
    let mut checksum = 0.0;
    for _ in 0..7 {
        let start = Instant::now();
        let passed = forward(&mechanism, &layout, &tokens, &[], None)?;
        let gradient = backward(&mechanism, &layout, &tokens, &[], &passed, &slopes, None)?;
        best = best.min(start.elapsed().as_secs_f64());
        checksum = gradient.tokens.iter().flatten().map(|x| f64::from(*x).abs()).sum();
    }
    println!("{best} {checksum}");
    Ok(())
}
