//! Many queries at a time: their softmax sums over tokens that stream past.
//!
//! Queries are laid out in strips of lanes. A block of tokens meets a strip in four steps: scores, their
//! maximum (older sums are rescaled to it), exponentials, and the weighted sums of the *features* of a token:
//! its coordinates and, for gradients, their products. Lanes never mix and every sum has a fixed order, so the
//! width of a strip does not show in the result.
//!
//! Tokens are measured from a *centre*, the mean of their law: scores gain a constant that the softmax does not
//! see, and covariances are not the difference of two large numbers.

use super::QuerySums;
use crate::error::{Error, Result};
use crate::numerics::{Arithmetic, InstructionSet, Kernel, Real, Register, exp};

/// Tokens that meet a strip together: their scores stay in the first-level cache.
pub(crate) const BLOCK: usize = 128;

/// A register tile has this many rows (tokens or features) of this many registers (queries).
const ROWS: usize = 4;
const REGISTERS: usize = 2;

/// Which sums a prompt is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Σ w and Σ w z: outputs.
    First,
    /// Also Σ w z zᵀ: gradients in U.
    Second,
}

impl Order {
    /// Number of features of a token, rounded up to whole register tiles.
    fn features(self, dimension: usize) -> usize {
        let features = match self {
            Order::First => dimension,
            Order::Second => dimension + dimension * (dimension + 1) / 2,
        };
        features.next_multiple_of(ROWS)
    }
}

/// Softmax sums of all queries over the tokens seen so far, relative to each query's largest score.
#[derive(Debug, Clone)]
pub(crate) struct StripSums<T> {
    dimension: usize,
    order: Order,
    set: InstructionSet,
    /// Queries of a strip: one register tile of this instruction set.
    width: usize,
    centre: Vec<f64>,
    /// The largest Σ |tilt entry| of a query.
    steepness: f64,
    strips: Vec<Strip<T>>,
    /// The tokens of a block minus the centre, and by coordinate the largest such distance.
    centred: Vec<f64>,
    reach: Vec<f64>,
    /// Features of a block: four features of all tokens, then the next four.
    features: Vec<[T; ROWS]>,
    /// Scores, then weights, of a block: token by token the lanes of a strip.
    scores: Vec<T>,
}

#[derive(Debug, Clone)]
struct Strip<T> {
    /// Tilts of the strip's queries, coordinate by coordinate.
    tilts: Vec<T>,
    largest: Vec<T>,
    /// Σ e^{score − largest}, and feature by feature the same times the feature, in double precision whatever T is.
    mass: Vec<f64>,
    sums: Vec<f64>,
}

impl<T: Real> StripSums<T> {
    /// No tokens yet, measured from this centre, for these tilts (one query after the other).
    pub(crate) fn new(centre: &[f64], tilts: &[f64], order: Order, set: InstructionSet) -> Self {
        let dimension = centre.len();
        let width = set.run(StripWidth(std::marker::PhantomData::<T>));
        let strips = tilts
            .chunks(width * dimension)
            .map(|chunk| {
                // Lanes beyond the last query carry a zero tilt, whose sums nobody reads.
                let mut strip = vec![T::default(); width * dimension];
                for (query, tilt) in chunk.chunks_exact(dimension).enumerate() {
                    for (axis, &entry) in tilt.iter().enumerate() {
                        strip[axis * width + query] = T::from_f64(entry);
                    }
                }
                Strip {
                    tilts: strip,
                    largest: vec![T::from_f64(f64::NEG_INFINITY); width],
                    mass: vec![0.0; width],
                    sums: vec![0.0; width * order.features(dimension)],
                }
            })
            .collect();
        let steepness = tilts
            .chunks_exact(dimension)
            .map(|tilt| tilt.iter().map(|entry| entry.abs()).sum())
            .fold(0.0, f64::max);
        StripSums {
            dimension,
            order,
            set,
            width,
            centre: centre.to_vec(),
            steepness,
            strips,
            centred: Vec::new(),
            reach: vec![0.0; dimension],
            features: Vec::new(),
            scores: Vec::new(),
        }
    }

    /// Adds tokens, one after the other in `tokens`.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a score might exceed T: an infinite score would silently become equal weights.
    pub(crate) fn add(&mut self, tokens: &[f64]) -> Result<()> {
        tokens
            .chunks(BLOCK * self.dimension)
            .try_for_each(|block| self.set.run(AddBlock { sums: self, tokens: block }))
    }

    /// The sums of the first queries without those of second order, coordinates measured from the centre.
    pub(super) fn first_order(&self, queries: usize) -> Vec<QuerySums> {
        let of_query = |query: usize| {
            let (strip, lane) = (&self.strips[query / self.width], query % self.width);
            let coordinates = strip.sums.chunks_exact(self.width).take(self.dimension);
            QuerySums {
                largest: strip.largest[lane].to_f64(),
                mass: strip.mass[lane],
                sums: coordinates.map(|sums| sums[lane]).collect(),
            }
        };
        (0..queries).map(of_query).collect()
    }

    /// Σ p z − centre of one query, into `mean`.
    pub(crate) fn mean(&self, query: usize, mean: &mut [f64]) {
        let (strip, lane) = (&self.strips[query / self.width], query % self.width);
        for (entry, sums) in mean.iter_mut().zip(strip.sums.chunks_exact(self.width)) {
            *entry = sums[lane] / strip.mass[lane];
        }
    }

    /// Σ p zᵢzⱼ − mᵢmⱼ of one query for j ≤ i, row by row of the lower triangle; `mean` as from [`Self::mean`].
    pub(crate) fn covariance(&self, query: usize, mean: &[f64], covariance: &mut [f64]) {
        let (strip, lane) = (&self.strips[query / self.width], query % self.width);
        let products = strip.sums.chunks_exact(self.width).skip(self.dimension);
        let pairs = (0..self.dimension).flat_map(|i| (0..=i).map(move |j| (i, j)));
        for ((entry, sums), (i, j)) in covariance.iter_mut().zip(products).zip(pairs) {
            *entry = sums[lane] / strip.mass[lane] - mean[i] * mean[j];
        }
    }

    /// Writes the features of a block; rows beyond the last token are zero tokens. Returns the number of rows.
    #[inline(always)]
    fn fill_features(&mut self, tokens: &[f64]) -> Result<usize> {
        let rows = (tokens.len() / self.dimension).next_multiple_of(ROWS);
        self.features.clear();
        self.features.resize(rows * self.order.features(self.dimension) / ROWS, [T::default(); ROWS]);
        self.centred.resize(tokens.len(), 0.0);
        self.reach.fill(0.0);
        for (token, centred) in
            tokens.chunks_exact(self.dimension).zip(self.centred.chunks_exact_mut(self.dimension))
        {
            let places = centred.iter_mut().zip(&mut self.reach);
            for ((centred, reach), (entry, centre)) in places.zip(token.iter().zip(&self.centre)) {
                *centred = entry - centre;
                *reach = centred.abs().max(*reach);
            }
        }
        for (group, features) in self.features.chunks_exact_mut(rows).enumerate() {
            let start = group * ROWS;
            if start >= self.dimension {
                break;
            }
            let width = ROWS.min(self.dimension - start);
            for (token, features) in self.centred.chunks_exact(self.dimension).zip(features) {
                for (feature, &entry) in features.iter_mut().zip(&token[start..start + width]) {
                    *feature = T::from_f64(entry);
                }
            }
        }
        if self.order == Order::Second {
            for (row, token) in self.centred.chunks_exact(self.dimension).enumerate() {
                let mut feature = self.dimension;
                for (i, first) in token.iter().enumerate() {
                    for second in &token[..=i] {
                        self.features[feature / ROWS * rows + row][feature % ROWS] =
                            T::from_f64(first * second);
                        feature += 1;
                    }
                }
            }
        }
        // Each factor and their product, so that neither the conversion to T nor a score or a difference of two
        // scores becomes infinite.
        let reach = self.reach.iter().copied().fold(1.0, f64::max);
        if reach * self.steepness.max(1.0) > 0.25 * T::LARGEST.to_f64() {
            return Err(Error::Overflow { what: "a score of the prompt" });
        }
        Ok(rows)
    }
}

/// The number of queries of a register tile.
struct StripWidth<T>(std::marker::PhantomData<T>);

impl<T: Real> Kernel for StripWidth<T> {
    type Output = usize;

    #[inline(always)]
    fn run<A: Arithmetic>(self) -> usize {
        REGISTERS * A::Register::<T>::WIDTH
    }
}

struct AddBlock<'a, T> {
    sums: &'a mut StripSums<T>,
    tokens: &'a [f64],
}

impl<T: Real> Kernel for AddBlock<'_, T> {
    type Output = Result<()>;

    #[inline(always)]
    fn run<A: Arithmetic>(self) -> Result<()> {
        let tokens = self.tokens.len() / self.sums.dimension;
        let rows = self.sums.fill_features(self.tokens)?;
        let StripSums { strips, features, scores, .. } = self.sums;
        scores.clear();
        scores.resize(rows * REGISTERS * A::Register::<T>::WIDTH, T::default());
        for strip in strips {
            let largest = fill_scores::<T, A::Register<T>>(features, rows, strip, tokens, scores);
            rescale_to_largest::<T, A::Register<T>>(strip, largest);
            exponentiate::<T, A::Register<T>>(strip, tokens, scores);
            add_features::<T, A::Register<T>>(features, rows, scores, &mut strip.sums);
        }
        Ok(())
    }
}

/// Two registers side by side: the lanes of a strip.
type Pair<R> = [R; REGISTERS];

#[inline(always)]
fn load<T, R: Register<T>>(from: &[T]) -> Pair<R> {
    let (first, second) = from.split_at(R::WIDTH);
    [R::load(first), R::load(second)]
}

#[inline(always)]
fn store<T, R: Register<T>>(pair: Pair<R>, to: &mut [T]) {
    let (first, second) = to.split_at_mut(R::WIDTH);
    pair[0].store(first);
    pair[1].store(second);
}

/// scores = tokens · tilts, four tokens at a time; returns the largest score, old or new.
#[inline(always)]
fn fill_scores<T: Real, R: Register<T>>(
    features: &[[T; ROWS]],
    rows: usize,
    strip: &Strip<T>,
    tokens: usize,
    scores: &mut [T],
) -> Pair<R> {
    let width = REGISTERS * R::WIDTH;
    let mut largest = load::<T, R>(&strip.largest);
    for (four, scores) in scores.chunks_exact_mut(ROWS * width).enumerate() {
        let mut sums = [[R::splat(T::default()); REGISTERS]; ROWS];
        // Four coordinates at a time, as the features lie.
        for (group, tilts) in strip.tilts.chunks(ROWS * width).enumerate() {
            let start = group * rows + four * ROWS;
            let tokens = &features[start..start + ROWS];
            for (axis, tilt) in tilts.chunks_exact(width).enumerate() {
                let tilt = load::<T, R>(tilt);
                for row in 0..ROWS {
                    let entry = R::splat(tokens[row][axis]);
                    for register in 0..REGISTERS {
                        sums[row][register] = entry.multiply_add(tilt[register], sums[row][register]);
                    }
                }
            }
        }
        for (row, (sums, scores)) in sums.into_iter().zip(scores.chunks_exact_mut(width)).enumerate() {
            store(sums, scores);
            if four * ROWS + row < tokens {
                for register in 0..REGISTERS {
                    largest[register] = sums[register].larger(largest[register]);
                }
            }
        }
    }
    largest
}

/// Raises `largest` to the scores of the block and rescales what was summed before.
#[inline(always)]
fn rescale_to_largest<T: Real, R: Register<T>>(strip: &mut Strip<T>, largest: Pair<R>) {
    let width = REGISTERS * R::WIDTH;
    // In the first block the old maximum is −∞, its sums are zero, and any finite factor will do.
    let old = load::<T, R>(&strip.largest);
    store(largest, &mut strip.largest);
    let mut factor = [T::default(); MOST_LANES];
    store(exp([old[0].subtract(largest[0]), old[1].subtract(largest[1])]), &mut factor);
    if factor[..width].iter().all(|&factor| factor == T::ONE) {
        return;
    }
    let factor = factor.map(T::to_f64);
    for sums in std::iter::once(&mut strip.mass[..]).chain(strip.sums.chunks_exact_mut(width)) {
        for (sum, factor) in sums.iter_mut().zip(factor) {
            *sum *= factor;
        }
    }
}

/// scores ← e^{score − largest}, two tokens at a time; adds them to the mass.
#[inline(always)]
fn exponentiate<T: Real, R: Register<T>>(strip: &mut Strip<T>, tokens: usize, scores: &mut [T]) {
    let width = REGISTERS * R::WIDTH;
    // Rows beyond the last token get a score below all others, whatever `largest` is, and so the smallest weight
    // there is: nothing beside a mass of at least one, and their features are zero.
    scores[tokens * width..].fill(T::from_f64(f64::NEG_INFINITY));
    let largest = load::<T, R>(&strip.largest);
    let mut mass = [R::splat(T::default()); REGISTERS];
    for two in scores.chunks_exact_mut(2 * width) {
        let (first, second) = two.split_at_mut(width);
        let (a, b) = (load::<T, R>(first), load::<T, R>(second));
        let [a0, a1, b0, b1] = exp([
            a[0].subtract(largest[0]),
            a[1].subtract(largest[1]),
            b[0].subtract(largest[0]),
            b[1].subtract(largest[1]),
        ]);
        mass = [mass[0].add(a0).add(b0), mass[1].add(a1).add(b1)];
        store([a0, a1], first);
        store([b0, b1], second);
    }
    add_to_totals(mass, &mut strip.mass);
}

/// sums += Σ weight · features, four features at a time.
#[inline(always)]
fn add_features<T: Real, R: Register<T>>(
    features: &[[T; ROWS]],
    rows: usize,
    weights: &[T],
    totals: &mut [f64],
) {
    let width = REGISTERS * R::WIDTH;
    for (features, totals) in features.chunks_exact(rows).zip(totals.chunks_exact_mut(ROWS * width)) {
        let mut sums = [[R::splat(T::default()); REGISTERS]; ROWS];
        for (token, weight) in features.iter().zip(weights.chunks_exact(width)) {
            let weight = load::<T, R>(weight);
            for row in 0..ROWS {
                let entry = R::splat(token[row]);
                for register in 0..REGISTERS {
                    sums[row][register] = entry.multiply_add(weight[register], sums[row][register]);
                }
            }
        }
        for (sums, totals) in sums.into_iter().zip(totals.chunks_exact_mut(width)) {
            add_to_totals(sums, totals);
        }
    }
}

/// The widest strip: two registers of sixteen f32.
const MOST_LANES: usize = 32;

#[inline(always)]
fn add_to_totals<T: Real, R: Register<T>>(sums: Pair<R>, totals: &mut [f64]) {
    let mut lanes = [T::default(); MOST_LANES];
    store(sums, &mut lanes);
    for (total, lane) in totals.iter_mut().zip(lanes) {
        *total += lane.to_f64();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// Nanoseconds of each step for a block.
    #[derive(Default)]
    struct Steps([f64; 4]);

    struct TimeSteps<'a, T>(&'a mut StripSums<T>, &'a [f64]);

    impl<T: Real> Kernel for TimeSteps<'_, T> {
        type Output = Steps;

        #[inline(always)]
        fn run<A: Arithmetic>(self) -> Steps {
            let mut steps = Steps::default();
            let tokens = self.1.len() / self.0.dimension;
            let mut watch = Watch(Instant::now());
            let rows = self.0.fill_features(self.1).expect("scores of ordinary size");
            steps.0[0] += watch.lap();
            let StripSums { strips, features, scores, .. } = self.0;
            scores.clear();
            scores.resize(rows * REGISTERS * A::Register::<T>::WIDTH, T::default());
            for strip in strips {
                watch.lap();
                let largest = fill_scores::<T, A::Register<T>>(features, rows, strip, tokens, scores);
                steps.0[1] += watch.lap();
                rescale_to_largest::<T, A::Register<T>>(strip, largest);
                exponentiate::<T, A::Register<T>>(strip, tokens, scores);
                steps.0[2] += watch.lap();
                add_features::<T, A::Register<T>>(features, rows, scores, &mut strip.sums);
                steps.0[3] += watch.lap();
            }
            steps
        }
    }

    struct Watch(Instant);

    impl Watch {
        fn lap(&mut self) -> f64 {
            let now = Instant::now();
            now.duration_since(std::mem::replace(&mut self.0, now)).as_secs_f64() * 1e9
        }
    }

    fn time_steps<T: Real>(name: &str, order: Order) {
        let (dimension, queries) = (16, 256);
        let mut stream = crate::numerics::Stream::new(1, 0, 0).with_instruction_set(InstructionSet::best());
        let mut tilts = vec![0.0; queries * dimension];
        stream.fill_normals(&mut tilts);
        tilts.iter_mut().for_each(|tilt| *tilt *= 0.25);
        let mut sums = StripSums::<T>::new(&vec![0.0; dimension], &tilts, order, InstructionSet::best());
        let mut tokens = vec![0.0; BLOCK * dimension];
        let mut least = [f64::INFINITY; 5];
        let end = Instant::now() + Duration::from_millis(500);
        // The least of many: other work on the machine can only add.
        while Instant::now() < end {
            let mut watch = Watch(Instant::now());
            stream.fill_normals(&mut tokens);
            let sampling = watch.lap();
            let steps = InstructionSet::best().run(TimeSteps(&mut sums, &tokens));
            for (least, step) in least.iter_mut().zip([sampling].into_iter().chain(steps.0)) {
                *least = least.min(step / BLOCK as f64);
            }
        }
        let total: f64 = least.iter().sum();
        print!("{name:20}{total:6.0} ns per token:");
        for (part, time) in ["sampling", "features", "scores", "exponentials", "sums"].iter().zip(least) {
            print!(" {part} {:.0} %", 100.0 * time / total);
        }
        println!();
    }

    /// Weights of a few tokens whose scores are all near the same very negative number, measured from the origin.
    fn few_tokens<T: Real>(tolerance: f64) {
        for set in InstructionSet::available() {
            for score in [-100.0, -1000.0, -5000.0] {
                for count in [1, 2, 3, 5] {
                    let tokens: Vec<f64> =
                        (0..count).map(|k| 1.0 + f64::from(k * k % 3) / f64::abs(score)).collect();
                    let mut sums = StripSums::<T>::new(&[0.0], &[score], Order::Second, set);
                    sums.add(&tokens).expect("scores of ordinary size");
                    let scores: Vec<f64> = tokens.iter().map(|token| score * token).collect();
                    let (weights, _) = crate::numerics::softmax(&scores);
                    let expected: f64 =
                        weights.iter().zip(&tokens).map(|(weight, token)| weight * token).sum();
                    let mut found = [0.0];
                    sums.mean(0, &mut found);
                    let [found] = found;
                    assert!(
                        (found - expected).abs() < tolerance,
                        "{set} {score} {count}: {found} {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn rows_beyond_the_last_token_have_no_weight_at_any_score() {
        few_tokens::<f64>(1e-13);
        few_tokens::<f32>(1e-5);
    }

    #[test]
    fn infinite_scores_are_refused() {
        for set in InstructionSet::available() {
            let single = |tilt: [f64; 2], token: [f64; 2]| {
                StripSums::<f32>::new(&[0.0; 2], &tilt, Order::First, set).add(&token)
            };
            assert!(single([1e10, 0.0], [1e20, 1.0]).is_ok());
            for (tilt, token) in [
                ([1e20, 0.0], [1e20, 1.0]),
                ([1e20, -1e20], [1e20, 1e20]),
                ([1e39, 0.0], [1e-30, 1.0]),
                ([0.0, 0.0], [1e39, 1.0]),
            ] {
                assert!(
                    matches!(single(tilt, token), Err(Error::Overflow { .. })),
                    "{set} {tilt:?} {token:?}"
                );
            }
            let mut double = StripSums::<f64>::new(&[0.0], &[1e200], Order::First, set);
            assert!(double.add(&[1e100]).is_ok() && double.add(&[1e200]).is_err());
        }
    }

    /// Where the time of the kernel goes, for `bench/against_pytorch`; prints, asserts nothing.
    #[test]
    #[ignore = "a measurement, not a test"]
    fn parts_of_the_time() {
        time_steps::<f64>("float64", Order::First);
        time_steps::<f32>("float32", Order::First);
        time_steps::<f64>("float64-gradients", Order::Second);
    }
}
