//! Sub-Gaussian parameters of every family: the inequality at random tilts, and that optimal ones cannot be lowered.

use crate::common::{skew_gaussian, skew_mixture};
use esscher_core::measure::{
    Affine, Cube, Custom, Empirical, Gaussian, Laplace, Law, Measure, Mixture, Product, Rademacher,
    Sharpness, Sphere, SubGaussian, Tilted,
};
use esscher_core::numerics::{Stream, linalg};
use esscher_core::{Mat, mat};
use std::sync::Arc;

fn cloud(count: usize, dimension: usize) -> Empirical {
    let mut stream = Stream::new(17, 0, 0);
    let tokens: Vec<f64> = (0..count * dimension).map(|_| stream.normal()).collect();
    Empirical::from_tokens(dimension, &tokens).unwrap()
}

fn shared<T: Measure + 'static>(measure: esscher_core::Result<T>) -> Law {
    Arc::new(measure.unwrap())
}

/// Two Gaussians of different covariance with one mean.
fn scale_mixture() -> Mixture {
    let wide = mat![[2.0, 0.5], [0.5, 1.0]];
    let narrow = mat![[0.3, 0.0], [0.0, 0.1]];
    let at = |covariance: &Mat<f64>| shared(Gaussian::new(&[0.4, -1.0], covariance.as_ref()));
    Mixture::new(vec![(0.1, at(&wide)), (0.9, at(&narrow))]).unwrap()
}

/// Every family with the sharpness it must report.
fn families() -> Vec<(&'static str, Law, Sharpness)> {
    use Sharpness::{Optimal, UpperBound};
    let skew = mat![[1.0, 0.5, -0.3], [-0.2, 2.0, 0.4]];
    let signs = || shared(Rademacher::new(3));
    let mut families: Vec<(&'static str, Law, Sharpness)> = vec![
        ("Gaussian", Arc::new(skew_gaussian()), Optimal),
        (
            "singular Gaussian",
            shared(Gaussian::new(&[1.0, 2.0], mat![[1.0, 1.0], [1.0, 1.0]].as_ref())),
            Optimal,
        ),
        ("atom", shared(Empirical::atom(&[3.0, -1.0])), Optimal),
        ("Rademacher", signs(), Optimal),
        ("cube", shared(Cube::new(3)), Optimal),
        ("two points of equal weight", shared(Empirical::from_tokens(2, &[1.0, 0.0, -1.0, 3.0])), Optimal),
        ("cloud of points", Arc::new(cloud(40, 3)), UpperBound),
        ("large cloud of points", Arc::new(cloud(3000, 3)), UpperBound),
        ("mixture of Gaussians and an atom", Arc::new(skew_mixture()), UpperBound),
        ("mixture of one", shared(Mixture::new(vec![(1.0, shared(Cube::new(2)))])), Optimal),
        ("Gaussians with one mean", Arc::new(scale_mixture()), Optimal),
        (
            "mixture of a cube and a sphere",
            shared(Mixture::new(vec![(0.7, shared(Cube::new(2))), (0.3, shared(Sphere::new(2, 2.0)))])),
            UpperBound,
        ),
        ("scaled cube", shared(Affine::scaled(-2.5, shared(Cube::new(3)))), Optimal),
        ("Rademacher by a matrix", shared(Affine::new(skew.as_ref(), &[1.0, -1.0], signs())), Optimal),
        (
            "Gaussian by a matrix",
            shared(Affine::new(skew.as_ref(), &[1.0, -1.0], Arc::new(skew_gaussian()))),
            Optimal,
        ),
        (
            "mixture by a matrix",
            shared(Affine::new(skew.as_ref(), &[0.0, 1.0], Arc::new(skew_mixture()))),
            UpperBound,
        ),
        (
            "optimal product",
            shared(Product::new(vec![shared(Cube::new(1)), Arc::new(skew_gaussian())])),
            Optimal,
        ),
        ("product", shared(Product::new(vec![Arc::new(cloud(9, 2)), shared(Cube::new(1))])), UpperBound),
        ("tilted cube", shared(Cube::new(2)).tilted(&[1.5, -0.3]).unwrap(), UpperBound),
        ("tilted Rademacher", signs().tilted(&[1.5, -0.3, 1.0]).unwrap(), UpperBound),
        ("tilted sphere", shared(Sphere::new(3, 2.0)).tilted(&[1.5, -0.3, 1.0]).unwrap(), UpperBound),
        ("tilted points", cloud(40, 2).tilted(&[1.0, 1.0]).unwrap(), UpperBound),
        ("tilted mixture", skew_mixture().tilted(&[0.5, -0.5, 1.0]).unwrap(), UpperBound),
        ("mixture in a tilt", shared(Tilted::new(Arc::new(skew_mixture()), &[0.5, -0.5, 1.0])), UpperBound),
        ("Gaussian in a tilt", shared(Tilted::new(Arc::new(skew_gaussian()), &[0.5, -0.5, 1.0])), Optimal),
    ];
    for dimension in [1, 2, 3, 10, 64] {
        families.push(("sphere", shared(Sphere::new(dimension, 1.7)), Optimal));
    }
    families
}

/// (Λ(θ) − ⟨θ, m⟩) / (|θ|²/2), which may not exceed σ²; tilts are kept large enough that it keeps nine digits.
fn exponent(measure: &dyn Measure, mean: &[f64], tilt: &[f64]) -> f64 {
    let centred = measure.log_partition(tilt).unwrap() - linalg::dot(tilt, mean);
    2.0 * centred / linalg::squared_norm(tilt)
}

/// Random directions and the top eigenvector of the covariance, at sizes from 0.02 to 50.
fn tilts(measure: &dyn Measure) -> Vec<Vec<f64>> {
    let dimension = measure.dimension();
    let covariance = measure.covariance().unwrap();
    let eigen =
        linalg::SymmetricEigen::new("covariance", linalg::symmetric_part(covariance.as_ref()).as_ref())
            .unwrap();
    let top: Vec<f64> = (0..dimension).map(|i| eigen.vectors[(i, dimension - 1)]).collect();
    let mut stream = Stream::new(3, 0, 0);
    let mut directions = vec![top.clone(), top.iter().map(|entry| -entry).collect()];
    directions.extend((0..200).map(|_| {
        let normal: Vec<f64> = (0..dimension).map(|_| stream.normal()).collect();
        let norm = linalg::squared_norm(&normal).sqrt();
        normal.iter().map(|entry| entry / norm).collect()
    }));
    let sizes = [0.02, 0.1, 0.5, 1.0, 2.0, 5.0, 15.0, 50.0];
    directions
        .iter()
        .flat_map(|direction| sizes.map(|size| direction.iter().map(|entry| size * entry).collect()))
        .collect()
}

#[test]
fn the_inequality_holds_at_random_tilts_for_every_family() {
    for (name, measure, _) in families() {
        let sigma = measure.sub_gaussian().unwrap().parameter;
        let mean = measure.mean().unwrap();
        let mut tightest: f64 = 0.0;
        for tilt in tilts(&*measure) {
            let found = exponent(&*measure, &mean, &tilt);
            // Rounding of Λ, of relative size 10⁻¹⁵, divided by |θ|²/2 ≥ 2·10⁻⁴.
            let allowed = sigma * sigma * (1.0 + 1e-10) + 1e-10;
            assert!(found <= allowed, "{name} at {tilt:?}: {found} exceeds σ² = {}", sigma * sigma);
            tightest = tightest.max(found);
        }
        println!("{name:34} d = {:2}  σ = {sigma:.4}  attained {:.4}", measure.dimension(), tightest.sqrt());
    }
}

#[test]
fn optimal_parameters_cannot_be_lowered_by_one_percent() {
    for (name, measure, sharpness) in families() {
        let sub_gaussian = measure.sub_gaussian().unwrap();
        assert_eq!(sub_gaussian.sharpness, sharpness, "{name}");
        if sharpness == Sharpness::UpperBound || sub_gaussian.parameter == 0.0 {
            continue;
        }
        let mean = measure.mean().unwrap();
        let lowered = (0.99 * sub_gaussian.parameter).powi(2);
        let violated = tilts(&*measure).iter().any(|tilt| exponent(&*measure, &mean, tilt) > lowered);
        assert!(violated, "{name}: 0.99 σ would do");
    }
}

#[test]
fn parameters_have_their_closed_forms() {
    let parameter = |measure: &dyn Measure| measure.sub_gaussian().unwrap().parameter;
    assert_eq!(parameter(&Rademacher::new(7).unwrap()), 1.0);
    assert_eq!(parameter(&Cube::new(7).unwrap()), (1.0f64 / 3.0).sqrt());
    assert_eq!(parameter(&Sphere::new(9, 6.0).unwrap()), 2.0);
    let gaussian = Gaussian::new(&[5.0, 0.0], mat![[2.0, 1.0], [1.0, 2.0]].as_ref()).unwrap();
    assert!((parameter(&gaussian) - 3f64.sqrt()).abs() < 1e-14);
    assert_eq!(parameter(&Empirical::atom(&[1.0]).unwrap()), 0.0);
    // √(1 + (4/2)²) for unit Gaussians four apart.
    let at = |x: f64| shared(Gaussian::new(&[x], mat![[1.0]].as_ref()));
    let pair = Mixture::new(vec![(0.5, at(-1.0)), (0.5, at(3.0))]).unwrap();
    assert!((parameter(&pair) - 5f64.sqrt()).abs() < 1e-14);
    assert_eq!(pair.sub_gaussian().unwrap().sharpness, Sharpness::Optimal, "its variance is 1 + 2²");
    // Hoeffding's bound of points is half their diameter; for many points at most √2 of it.
    let square = Empirical::from_tokens(2, &[0.0, 0.0, 3.0, 0.0, 3.0, 4.0]).unwrap();
    assert_eq!(parameter(&square), 2.5);
    let many = cloud(3000, 3);
    let points: Vec<&[f64]> = many.points().collect();
    let half_diameter = points.iter().enumerate().fold(0.0, |widest: f64, (i, a)| {
        let distance = |b: &&[f64]| 0.5 * linalg::squared_norm(&linalg::difference(a, b)).sqrt();
        points[..i].iter().map(distance).fold(widest, f64::max)
    });
    let ratio = parameter(&many) / half_diameter;
    assert!((1.0..1.2).contains(&ratio), "enclosing ball against half diameter: {ratio}");
}

#[test]
fn laws_with_heavier_tails_have_none() {
    let laplace = || shared(Laplace::new(2, 0.5));
    assert_eq!(laplace().sub_gaussian(), None);
    assert_eq!(laplace().tilted(&[0.5, 0.0]).unwrap().sub_gaussian(), None);
    assert_eq!(Affine::scaled(2.0, laplace()).unwrap().sub_gaussian(), None);
    assert_eq!(Product::new(vec![laplace(), shared(Cube::new(1))]).unwrap().sub_gaussian(), None);
    assert_eq!(
        Mixture::new(vec![(1.0, laplace()), (1.0, shared(Cube::new(2)))]).unwrap().sub_gaussian(),
        None
    );
    let poisson = Custom::new(1, |tilt| 3.0 * tilt[0].exp_m1()).unwrap();
    assert_eq!(poisson.sub_gaussian(), None);
    // A user may state what the user has proved.
    let stated = SubGaussian::new(1.0, Sharpness::Optimal).unwrap();
    let signs = Custom::new(1, |tilt| tilt[0].cosh().ln()).unwrap().with_sub_gaussian(stated);
    assert_eq!(signs.sub_gaussian(), Some(stated));
    assert!(SubGaussian::new(-1.0, Sharpness::Optimal).is_err());
    assert!(SubGaussian::new(f64::NAN, Sharpness::UpperBound).is_err());
}

/// ∇²Λ(θ) ⪯ v²I at random tilts, for each family that states such a v.
#[test]
fn tilted_covariances_stay_below_the_stated_bound() {
    let mut stating = 0;
    for (name, measure, _) in families() {
        let Some(bound) = measure.sub_gaussian_under_tilts() else { continue };
        stating += 1;
        for tilt in tilts(&*measure).iter().step_by(7) {
            let covariance = measure.tilted_covariance(tilt).unwrap();
            let symmetric = linalg::symmetric_part(covariance.as_ref());
            let eigen = linalg::SymmetricEigen::new("covariance", symmetric.as_ref()).unwrap();
            let largest = eigen.values.last().unwrap();
            assert!(*largest <= bound * bound * (1.0 + 1e-12) + 1e-13, "{name} at {tilt:?}: {largest}");
        }
    }
    assert!(stating > 15);
    assert_eq!(scale_mixture().sub_gaussian_under_tilts(), None, "tilted components drift apart");
}

/// It once asked the base for its tilted self, which for such families is the very same measure: no end.
#[test]
fn a_tilted_cube_is_no_gaussian_mixture_and_says_so() {
    assert!(shared(Cube::new(2)).tilted(&[1.0, 0.0]).unwrap().as_gaussian_mixture().is_none());
    let tilt = [0.5, -0.5, 1.0];
    let tilted = Tilted::new(Arc::new(skew_mixture()), &tilt).unwrap();
    let (ours, theirs) = (
        tilted.as_gaussian_mixture().unwrap(),
        skew_mixture().tilted(&tilt).unwrap().as_gaussian_mixture().unwrap(),
    );
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert!((ours.weight() - theirs.weight()).abs() < 1e-14);
        assert_eq!(ours.gaussian.mean_vector(), theirs.gaussian.mean_vector());
    }
}

/// Squares of 10⁻¹⁷⁰ vanish and squares of 10¹⁶⁰ overflow; parameters need neither.
#[test]
fn parameters_of_very_small_and_very_large_laws_are_right() {
    for scale in [1e-170, 1e-300, 1.0, 1e160] {
        let two = Empirical::from_tokens(1, &[-scale, scale, scale]).unwrap();
        let cube: Law = Arc::new(Cube::new(2).unwrap());
        let base = cube.sub_gaussian().unwrap().parameter;
        let scaled = Affine::scaled(scale, cube).unwrap();
        // Where the covariance overflows there is no answer; a wrong one would be 0 or infinity.
        for (found, expected) in [
            (two.sub_gaussian_under_tilts(), scale),
            (two.sub_gaussian().map(|found| found.parameter), scale),
            (scaled.sub_gaussian().map(|found| found.parameter), scale * base),
        ] {
            if let Some(found) = found {
                assert!((found / expected - 1.0).abs() < 1e-12, "{scale:e}: {found:e} {expected:e}");
            } else {
                assert!(scale > 1e150, "{scale:e}");
            }
        }
        if scale < 1.0 {
            // Three points of which two coincide are not optimal; that it cannot be seen is no proof that they are.
            assert_eq!(two.sub_gaussian().unwrap().sharpness, Sharpness::UpperBound);
        }
    }
}
