//! Counter-based random numbers: Philox4x32-10, addressed by (seed, trial, block).
//!
//! A stream is a pure function of its address: whoever asks for block 7 of trial 3 gets the same
//! numbers, on any thread, in any order, after any restart (Salmon et al. 2011, key `salmon2011`).

use super::vector::{self, InstructionSet, NORMALS_PER_CALL};

/// A random stream with a fixed address.
///
/// ```
/// use esscher_core::numerics::Stream;
/// let mut here = Stream::new(1, 3, 7);
/// let mut there = Stream::new(1, 3, 7);
/// assert_eq!(here.normal(), there.normal());
/// ```
#[derive(Debug, Clone)]
pub struct Stream {
    key: [u32; 2],
    trial: u32,
    block: u32,
    position: u64,
    instruction_set: InstructionSet,
    words: [u32; 4],
    words_left: usize,
    normals: [f64; NORMALS_PER_CALL],
    normals_left: usize,
}

impl Stream {
    /// The stream of this seed at this trial and block.
    pub fn new(seed: u64, trial: u32, block: u32) -> Self {
        Stream {
            key: [seed as u32, (seed >> 32) as u32],
            trial,
            block,
            position: 0,
            instruction_set: InstructionSet::PORTABLE,
            words: [0; 4],
            words_left: 0,
            normals: [0.0; NORMALS_PER_CALL],
            normals_left: 0,
        }
    }

    /// The same stream with its normals computed by these instructions: faster, and equal to the portable
    /// ones to a few units in the last place. Bits and uniforms do not change.
    pub fn with_instruction_set(mut self, instruction_set: InstructionSet) -> Self {
        self.instruction_set = instruction_set;
        self
    }

    /// The next 32 random bits.
    pub fn bits(&mut self) -> u32 {
        if self.words_left == 0 {
            let counter = [self.position as u32, (self.position >> 32) as u32, self.block, self.trial];
            self.words = philox4x32_10(counter, self.key);
            self.position = self.position.wrapping_add(1);
            self.words_left = 4;
        }
        self.words_left -= 1;
        self.words[3 - self.words_left]
    }

    /// Uniform on the open interval (0, 1), with 52 random bits: never 0 and never 1.
    pub fn uniform(&mut self) -> f64 {
        let high = u64::from(self.bits()) << 21;
        let low = u64::from(self.bits()) >> 11;
        // The middle of each of 2⁵² cells: the last cell's middle is still below 1 in f64.
        (((high | low) >> 1) as f64 + 0.5) / 2f64.powi(52)
    }

    /// A standard normal, by Box and Muller's transform.
    ///
    /// Normals are made [32 at a time](Self::fill_normals) from the next sixteen counters; bits and uniforms
    /// go on after those.
    pub fn normal(&mut self) -> f64 {
        if self.normals_left == 0 {
            let mut made = [[0.0; NORMALS_PER_CALL]];
            self.make_normals(&mut made);
            [self.normals] = made;
            self.normals_left = NORMALS_PER_CALL;
        }
        self.normals_left -= 1;
        self.normals[NORMALS_PER_CALL - 1 - self.normals_left]
    }

    /// Fills a slice with standard normals, the same numbers as repeated calls of [`Self::normal`].
    pub fn fill_normals(&mut self, output: &mut [f64]) {
        let (first, rest) = output.split_at_mut(self.normals_left.min(output.len()));
        first.fill_with(|| self.normal());
        let (whole, last) = rest.as_chunks_mut::<NORMALS_PER_CALL>();
        self.make_normals(whole);
        last.fill_with(|| self.normal());
    }

    fn make_normals(&mut self, output: &mut [[f64; NORMALS_PER_CALL]]) {
        vector::normals(self.instruction_set, self.key, self.position, self.block, self.trial, output);
        self.position = self.position.wrapping_add((output.len() * NORMALS_PER_CALL / 2) as u64);
    }

    /// An exponential of rate one.
    pub fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }

    /// An index k with probability `probabilities[k]` (which sum to one); 0 if there is none to choose from.
    pub fn index(&mut self, probabilities: &[f64]) -> usize {
        let mut left = self.uniform();
        for (index, probability) in probabilities.iter().enumerate() {
            left -= probability;
            if left < 0.0 {
                return index;
            }
        }
        // Rounding can leave a crumb of mass beyond the end: it belongs to the last possible index.
        probabilities.iter().rposition(|&probability| probability > 0.0).unwrap_or(0)
    }
}

/// The Philox4x32 bijection with ten rounds.
fn philox4x32_10(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let even = u64::from(counter[0]) * 0xD251_1F53;
        let odd = u64::from(counter[2]) * 0xCD9E_8D57;
        counter = [
            (odd >> 32) as u32 ^ counter[1] ^ key[0],
            odd as u32,
            (even >> 32) as u32 ^ counter[3] ^ key[1],
            even as u32,
        ];
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    counter
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known-answer vectors published with Random123 (kat_vectors, philox4x32 10).
    #[test]
    fn philox_gives_the_published_answers() {
        assert_eq!(philox4x32_10([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            philox4x32_10([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            philox4x32_10([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    /// Five standard errors on 10⁶ draws: false alarm below 1e-5 over the four moments.
    #[test]
    fn normals_have_the_moments_of_a_normal() {
        let mut stream = Stream::new(42, 0, 0);
        let draws = 1_000_000;
        let mut powers = [0.0; 4];
        for _ in 0..draws {
            let normal = stream.normal();
            for (power, sum) in powers.iter_mut().enumerate() {
                *sum += normal.powi(power as i32 + 1) / f64::from(draws);
            }
        }
        // Variances of x, x², x³, x⁴ for a standard normal: 1, 2, 15, 96.
        for ((mean, expected), variance) in
            powers.iter().zip([0.0, 1.0, 0.0, 3.0]).zip([1.0f64, 2.0, 15.0, 96.0])
        {
            assert!((mean - expected).abs() < 5.0 * (variance / f64::from(draws)).sqrt());
        }
    }

    /// Every set against libm's logarithm and sines on the same uniforms: three units of the last place of
    /// a number of size one.
    #[test]
    fn normals_of_every_instruction_set_are_those_of_box_and_muller() {
        for set in InstructionSet::available() {
            let mut found = vec![0.0; 100_003];
            Stream::new(9, 8, 7).with_instruction_set(set).fill_normals(&mut found);
            let mut one_by_one = Stream::new(9, 8, 7).with_instruction_set(set);
            let mut uniforms = Stream::new(9, 8, 7);
            for pair in found.chunks(2) {
                let radius = (-2.0 * uniforms.uniform().ln()).sqrt();
                let (sine, cosine) = (std::f64::consts::TAU * uniforms.uniform()).sin_cos();
                for (found, expected) in pair.iter().zip([radius * cosine, radius * sine]) {
                    assert_eq!(*found, one_by_one.normal(), "{set}");
                    // libm is fed 2πv, which is rounded before its sine is taken: 2π · ε of the angle.
                    assert!((found - expected).abs() < 8.0 * f64::EPSILON * radius.max(1.0), "{set}");
                }
            }
        }
    }

    #[test]
    fn avx512_and_avx2_give_the_same_bits() {
        let bits = |set: InstructionSet| {
            let mut normals = vec![0.0; 1000];
            Stream::new(1, 2, 3).with_instruction_set(set).fill_normals(&mut normals);
            normals.into_iter().map(f64::to_bits).collect::<Vec<_>>()
        };
        let sets = InstructionSet::fused();
        for set in &sets[1..] {
            assert_eq!(bits(sets[0]), bits(*set), "{} and {set}", sets[0]);
        }
    }

    #[test]
    fn streams_of_different_addresses_differ() {
        let first = |seed, trial, block| Stream::new(seed, trial, block).bits();
        let base = first(1, 2, 3);
        assert!(
            [first(2, 2, 3), first(1, 3, 3), first(1, 2, 4), first(1 << 40, 2, 3)].iter().all(|&b| b != base)
        );
    }
}
