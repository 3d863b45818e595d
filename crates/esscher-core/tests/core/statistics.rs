//! Mergeable summaries and Student's law: against two-pass sums, closed forms, tables and 50-digit values.

use esscher_core::numerics::statistics::{LARGEST_KEPT, STATE_LENGTH, Summary};
use esscher_core::numerics::{JointSummary, Stream, normal, student};

/// Log-normal values of both signs, skewed and with a tail.
fn heavy_tailed(count: usize, deviation: f64, seed: u64) -> Vec<f64> {
    let mut stream = Stream::new(seed, 0, 0);
    (0..count).map(|_| (deviation * stream.normal()).exp() - 0.5).collect()
}

/// (mean, variance, skewness, kurtosis) by two passes over the definition.
fn two_passes(values: &[f64]) -> [f64; 4] {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let moment = |power: i32| values.iter().map(|value| (value - mean).powi(power)).sum::<f64>();
    let second = moment(2);
    [
        mean,
        second / (count - 1.0),
        count.sqrt() * moment(3) / second.powf(1.5),
        count * moment(4) / second.powi(2),
    ]
}

fn moments(summary: &Summary) -> [f64; 4] {
    [summary.mean(), summary.variance(), summary.skewness(), summary.kurtosis()].map(Option::unwrap)
}

#[track_caller]
fn close(found: &[f64], expected: &[f64], relative: f64) {
    for (found, expected) in found.iter().zip(expected) {
        let allowed = relative * expected.abs().max(1e-300);
        assert!((found - expected).abs() <= allowed, "{found} instead of {expected}");
    }
}

#[test]
fn moments_equal_the_two_pass_definition() {
    for count in [2, 3, 17, 1000, 100_000] {
        let values = heavy_tailed(count, 1.0, 1);
        let mut summary = Summary::of(&values);
        close(&moments(&summary), &two_passes(&values), 1e-10);
        // A large common shift costs the digits of its own size, no more: stable where naive sums fail.
        let shifted: Vec<f64> = values.iter().map(|value| value + 1e6).collect();
        close(&moments(&Summary::of(&shifted))[1..], &two_passes(&values)[1..], 1e-7);
        summary.merge(&Summary::new());
        assert_eq!(summary, Summary::of(&values));
    }
}

#[test]
fn any_split_merges_to_the_same_numbers_and_the_same_split_to_the_same_bits() {
    let values = heavy_tailed(5003, 1.5, 2);
    let whole = Summary::of(&values);
    for part in [1, 2, 7, 100, 1024, 5000] {
        let fold = || {
            values.chunks(part).map(Summary::of).fold(Summary::new(), |mut sum, part| {
                sum.merge(&part);
                sum
            })
        };
        let merged = fold();
        assert_eq!(merged.state().map(f64::to_bits), fold().state().map(f64::to_bits));
        close(&moments(&merged), &moments(&whole), 1e-11);
        assert_eq!((merged.count(), merged.min(), merged.max()), (5003, whole.min(), whole.max()));
        // The largest values are exact in any grouping.
        assert_eq!(merged.state()[8..], whole.state()[8..]);
    }
    // Adding is merging a single value, bit for bit.
    let singles = values.iter().fold(Summary::new(), |mut sum, &value| {
        sum.merge(&Summary::of(&[value]));
        sum
    });
    assert_eq!(singles.state().map(f64::to_bits), whole.state().map(f64::to_bits));
}

#[test]
fn the_largest_values_are_kept_in_order() {
    let values = heavy_tailed(400, 2.0, 3);
    let mut sizes: Vec<f64> = values.iter().map(|value| value.abs()).collect();
    sizes.sort_by(|a, b| b.total_cmp(a));
    let summary = Summary::of(&values);
    assert_eq!(summary.state()[8..], sizes[..LARGEST_KEPT]);
    let total: f64 = sizes.iter().sum();
    close(&[summary.absolute_sum().unwrap()], &[total], 1e-13);
    let top_three = sizes[..3].iter().sum::<f64>() / total;
    close(&[summary.share_of_largest(3).unwrap()], &[top_three], 1e-13);
    let squares: f64 = sizes.iter().map(|size| size * size).sum();
    close(&[summary.effective_sample_size().unwrap()], &[total * total / squares], 1e-12);
}

#[test]
fn a_mean_that_rests_on_few_values_is_reported() {
    assert!(Summary::new().rests_on_few());
    assert!(!Summary::of(&[2.0; 30]).rests_on_few(), "thirty equal values are the fewest allowed");
    assert!(Summary::of(&[2.0; 29]).rests_on_few());
    assert_eq!(Summary::of(&[2.0; 29]).effective_sample_size(), Some(29.0));
    assert!(!Summary::of(&heavy_tailed(10_000, 1.0, 4)).rests_on_few());
    // Log-normal weights beyond freezing, τ = 5 > (2 ln n)^{1/2} = 4.3: a handful carries the mean.
    assert!(Summary::of(&heavy_tailed(10_000, 5.0, 4)).rests_on_few());
    let mut spike = vec![1.0; 1000];
    spike[500] = 1e6;
    let spiked = Summary::of(&spike);
    assert!(spiked.rests_on_few() && spiked.effective_sample_size().unwrap() < 1.01);
    // Nothing to carry: zeros are all alike.
    assert_eq!(Summary::of(&[0.0; 50]).effective_sample_size(), Some(50.0));
    assert!(!Summary::of(&[0.0; 50]).rests_on_few());
}

#[test]
fn the_state_of_a_summary_gives_it_back_bit_for_bit() {
    for values in [vec![], vec![3.0], heavy_tailed(777, 1.0, 5)] {
        let summary = Summary::of(&values);
        let back = Summary::from_state(&summary.state()).unwrap();
        assert_eq!(back.state().map(f64::to_bits), summary.state().map(f64::to_bits));
        assert_eq!(back.count(), values.len() as u64);
    }
    let good = Summary::of(&[1.0, -2.0]).state();
    assert!(Summary::from_state(&good[1..]).is_err());
    for (index, wrong) in [(0, 1.5), (0, -1.0), (1, f64::NAN), (2, -1.0), (6, -3.0), (9, 5.0)] {
        let mut state = good;
        state[index] = wrong;
        assert!(Summary::from_state(&state).is_err(), "entry {index} = {wrong}");
    }
    assert_eq!(good.len(), STATE_LENGTH);
    // States that no values have: an empty summary with numbers, a negative Σ|x|, a mean outside the values.
    for (count, index, wrong) in [(0.0, 1, 0.5), (0.0, 8, 2.0), (2.0, 7, -3.0), (2.0, 1, 1.5), (2.0, 1, -2.5)]
    {
        let mut state = if count == 0.0 { [0.0; STATE_LENGTH] } else { good };
        state[index] = wrong;
        assert!(Summary::from_state(&state).is_err(), "count {count}, entry {index} = {wrong}");
    }
}

/// Correlated vectors of three, of very different sizes.
fn vectors(count: usize) -> Vec<[f64; 3]> {
    let mut stream = Stream::new(6, 0, 0);
    (0..count)
        .map(|_| {
            let (a, b, c) = (stream.normal(), stream.normal(), stream.normal());
            [1e6 + a, 1e-3 * (a + 0.5 * b), (c - b).exp()]
        })
        .collect()
}

fn joint_of(vectors: &[[f64; 3]]) -> JointSummary {
    let mut joint = JointSummary::new(3);
    vectors.iter().for_each(|vector| joint.add(vector).unwrap());
    joint
}

#[test]
fn joint_summaries_equal_the_two_pass_definition_in_any_split() {
    let all = vectors(3001);
    let count = all.len() as f64;
    let mean: Vec<f64> = (0..3).map(|i| all.iter().map(|vector| vector[i]).sum::<f64>() / count).collect();
    let expected = |i: usize, j: usize| {
        let products = all.iter().map(|vector| (vector[i] - mean[i]) * (vector[j] - mean[j]));
        products.sum::<f64>() / (count * (count - 1.0))
    };
    for part in [1, 2, 64, 1000, 3001] {
        let mut merged = JointSummary::new(3);
        all.chunks(part).for_each(|part| merged.merge(&joint_of(part)).unwrap());
        assert_eq!(merged.count(), 3001);
        close(merged.mean(), &mean, 1e-14);
        let covariance = merged.mean_covariance().unwrap();
        for i in 0..3 {
            for j in 0..3 {
                let allowed = 1e-8 * (expected(i, i) * expected(j, j)).sqrt();
                assert!((covariance[(i, j)] - expected(i, j)).abs() < allowed, "parts of {part}: {i} {j}");
            }
        }
    }
    // Adding is merging one vector, and an empty part changes no bit.
    let mut joint = joint_of(&all[..10]);
    let before = joint.clone();
    joint.merge(&JointSummary::new(3)).unwrap();
    assert_eq!(joint, before);
    assert!(joint.merge(&JointSummary::new(2)).is_err() && joint.add(&[1.0]).is_err());
    assert!(
        JointSummary::new(3).mean_covariance().is_none() && joint_of(&all[..1]).mean_covariance().is_none()
    );
    // Means whose square overflows start a summary without NaN.
    let mut huge = JointSummary::new(1);
    huge.add(&[1e200]).unwrap();
    huge.add(&[1e200]).unwrap();
    assert_eq!(huge.mean_covariance().unwrap()[(0, 0)], 0.0);
}

#[test]
fn the_state_of_a_joint_summary_gives_it_back_bit_for_bit() {
    let bits = |joint: &JointSummary| joint.state().into_iter().map(f64::to_bits).collect::<Vec<_>>();
    for count in [0, 1, 2, 500] {
        let joint = joint_of(&vectors(count));
        let back = JointSummary::from_state(&joint.state()).unwrap();
        assert_eq!(bits(&back), bits(&joint));
        assert_eq!((back.count(), back.mean().len()), (count as u64, 3));
    }
    assert_eq!(JointSummary::from_state(&JointSummary::new(0).state()).unwrap(), JointSummary::new(0));
    let good = joint_of(&vectors(5)).state();
    assert!(JointSummary::from_state(&[]).is_err());
    for length in 1..good.len() {
        // Ten numbers are a vector of three; 1, 3 and 6 are smaller vectors, but the means are no co-moments.
        assert!(
            JointSummary::from_state(&good[..length]).is_err() || [1, 3, 6].contains(&length),
            "{length}"
        );
    }
    for (index, wrong) in [(0, 0.0), (0, 1.0), (0, 1.5), (0, -1.0), (2, f64::NAN), (4, -1.0), (5, 1e9)] {
        let mut state = good.clone();
        state[index] = wrong;
        assert!(JointSummary::from_state(&state).is_err(), "entry {index} = {wrong}");
    }
}

#[test]
fn the_effective_size_is_none_where_squares_are_lost() {
    for scale in [1e-170, 1e160] {
        let values: Vec<f64> = (1..=50).map(|k| scale * f64::from(k)).collect();
        let summary = Summary::of(&values);
        assert_eq!(summary.effective_sample_size(), None, "{scale:e}: M₂ is lost");
        assert!(summary.rests_on_few());
        // Equal values have no M₂ to lose.
        close(&[Summary::of(&[scale; 40]).effective_sample_size().unwrap()], &[40.0], 1e-13);
    }
}

#[test]
fn what_is_not_defined_is_none_and_nan_is_never_handed_on() {
    let none = Summary::new();
    assert_eq!((none.mean(), none.min(), none.variance(), none.absolute_sum()), (None, None, None, None));
    let one = Summary::of(&[4.0]);
    assert_eq!((one.mean(), one.variance(), one.standard_error()), (Some(4.0), None, None));
    let equal = Summary::of(&[4.0; 9]);
    assert_eq!((equal.variance(), equal.skewness(), equal.kurtosis()), (Some(0.0), None, None));
    for bad in [f64::NAN, f64::INFINITY] {
        let spoilt = Summary::of(&[1.0, bad, 2.0]);
        assert_eq!((spoilt.mean(), spoilt.max(), spoilt.standard_error()), (None, None, None));
        assert!(spoilt.rests_on_few());
    }
}

/// (ν, upper tail, quantile), computed with 50 digits and rounded (mpmath: bisection of the regularised incomplete
/// beta function).
const QUANTILES: [(f64, f64, f64); 25] = [
    (1.0, 0.25, 1.0),
    (1.0, 0.025, 12.706204736174705),
    (1.0, 0.005, 63.65674116287158),
    (1.0, 1e-12, 318309886183.79065),
    (2.0, 0.25, 0.816496580927726),
    (2.0, 0.025, 4.302652729749464),
    (2.0, 1e-12, 707106.7811854868),
    (3.0, 0.025, 3.1824463052837095),
    (3.0, 1e-6, 103.29946778041935),
    (5.0, 0.25, 0.7266868438004227),
    (5.0, 0.025, 2.5705818356363155),
    (5.0, 1e-12, 393.95695957760375),
    (8.0, 0.005, 3.3553873313333953),
    (8.0, 1e-6, 12.109834665556214),
    (13.0, 0.25, 0.6938293042354409),
    (13.0, 0.025, 2.1603686564627926),
    (13.0, 1e-12, 25.22104208912899),
    (30.0, 0.025, 2.042272456301238),
    (30.0, 1e-6, 5.871117120418883),
    (100.0, 0.25, 0.6769510430114715),
    (100.0, 0.025, 1.9839715185235522),
    (100.0, 1e-12, 8.025825594493254),
    (1000.5, 0.025, 1.9623378924593484),
    (1000.5, 0.005, 2.5807522321743117),
    (1000.5, 1e-12, 7.124183590396503),
];

#[test]
fn student_quantiles_equal_the_fifty_digit_values() {
    let mut worst: f64 = 0.0;
    for (degrees, tail, expected) in QUANTILES {
        let found = -student::quantile(tail, degrees).unwrap();
        let error = (found / expected - 1.0).abs();
        assert!(error < 5e-14, "ν = {degrees}, tail {tail}: {found} instead of {expected}");
        worst = worst.max(error);
        let back = student::distribution(-expected, degrees).unwrap();
        assert!((back / tail - 1.0).abs() < 1e-12, "ν = {degrees}: tail {back} instead of {tail}");
        if tail > 1e-3 {
            assert!((student::quantile(1.0 - tail, degrees).unwrap() / expected - 1.0).abs() < 1e-12);
        }
    }
    println!("worst relative error of a Student quantile: {worst:.1e}");
}

/// Student's table of two-sided 95 % points as printed in textbooks, three decimals.
#[test]
fn student_quantiles_round_to_the_printed_table() {
    let printed = [
        (1.0, 12.706),
        (2.0, 4.303),
        (3.0, 3.182),
        (4.0, 2.776),
        (5.0, 2.571),
        (6.0, 2.447),
        (7.0, 2.365),
        (8.0, 2.306),
        (9.0, 2.262),
        (10.0, 2.228),
        (12.0, 2.179),
        (15.0, 2.131),
        (20.0, 2.086),
        (25.0, 2.060),
        (30.0, 2.042),
        (40.0, 2.021),
        (60.0, 2.000),
        (120.0, 1.980),
        (1e12, 1.960),
    ];
    for (degrees, expected) in printed {
        assert!((student::quantile(0.975, degrees).unwrap() - expected).abs() <= 5.0001e-4, "{degrees}");
    }
}

#[test]
fn student_tends_to_the_normal_law_without_a_seam() {
    assert_eq!(student::quantile(0.5, 7.0).unwrap(), 0.0);
    for tail in [0.4, 0.025, 1e-6, 1e-12] {
        // The seam between the two methods is at a million degrees.
        let (before, after) =
            (student::quantile(tail, 999_999.0).unwrap(), student::quantile(tail, 1e6).unwrap());
        // dq/dν is about q³/4ν²: the step over the seam itself is below 10⁻¹⁰.
        assert!((before / after - 1.0).abs() < 1e-10, "{tail}: {before} and {after}");
        for degrees in [1.5, 999_999.0, 1e6, 1e9] {
            let quantile = student::quantile(tail, degrees).unwrap();
            let back = student::distribution(quantile, degrees).unwrap();
            assert!((back / tail - 1.0).abs() < 1e-9, "ν = {degrees}, {tail}: {back}");
        }
        assert!((student::quantile(tail, 1e15).unwrap() / normal::quantile(tail) - 1.0).abs() < 1e-13);
    }
    for (probability, degrees) in [(0.0, 3.0), (1.0, 3.0), (f64::NAN, 3.0), (0.5, 0.5), (0.5, f64::NAN)] {
        assert!(student::quantile(probability, degrees).is_err());
    }
}

#[test]
fn student_tails_survive_the_overflow_of_a_square() {
    for degrees in [1.0, 3.0, 30.0] {
        for t in [1e150, 1e155, 1e200, f64::MAX] {
            assert_eq!(student::distribution(t, degrees).unwrap(), 1.0, "ν = {degrees}, t = {t:e}");
            let tail = student::distribution(-t, degrees).unwrap();
            assert!((0.0..1e-100).contains(&tail), "ν = {degrees}, t = {t:e}: {tail}");
        }
    }
}
