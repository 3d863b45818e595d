//! Seeds of the parts of one experiment.

/// The seed of a part: a bijection of 64 bits (the finaliser of SplitMix64), so that parts differ in all bits and
/// neighbouring seeds share none of them.
pub(crate) fn part_seed(seed: u64, part: u64) -> u64 {
    let mut word = seed ^ part.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::part_seed;

    #[test]
    fn parts_of_neighbouring_seeds_differ() {
        let mut seeds: Vec<u64> =
            (0..100).flat_map(|seed| (0..=100).map(move |part| part_seed(seed, part))).collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 10_100);
    }
}
