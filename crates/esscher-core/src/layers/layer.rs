//! One attention layer as it acts on a Gaussian: the affine map b + Bx, and what follows from it.

use crate::error::{Error, Result};
use crate::measure::Gaussian;
use crate::numerics::{check, linalg};
use faer::linalg::solvers::Svd;
use faer::{Mat, MatRef};
use std::fmt;

/// The four attentions that keep Gaussians Gaussian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerKind {
    /// Weights proportional to exp⟨y, Ux⟩.
    Softmax,
    /// Weights ⟨y, Ux⟩, not normalised.
    Linear,
    /// Weights proportional to exp(−|Qx − Ky|²).
    L2,
    /// Weights exp⟨Qx, Ky⟩ balanced until both marginals are the token law.
    Sinkhorn,
}

impl fmt::Display for LayerKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            LayerKind::Softmax => "softmax",
            LayerKind::Linear => "linear",
            LayerKind::L2 => "L2",
            LayerKind::Sinkhorn => "Sinkhorn",
        })
    }
}

/// An attention layer on Rᵈ: how queries score tokens, and the d × d value matrix V.
///
/// With y drawn from the token law μ, U = KᵀQ the score matrix and x the query:
///
/// | attention | T\[μ\](x) | at μ = N(m, S) |
/// |---|---|---|
/// | softmax | V E\[y e^{⟨y, Ux⟩}\] / E e^{⟨y, Ux⟩} | V(m + SUx) |
/// | linear | V E\[y ⟨y, Ux⟩\] | V(S + mmᵀ)Ux |
/// | L2 | V E\[y e^{−\|Qx−Ky\|²}\] / E e^{−\|Qx−Ky\|²} | V(m + G(Qx − Km)), G = SKᵀ(KSKᵀ + I/2)⁻¹ |
/// | Sinkhorn | V E\[y \| x\] under the balanced plan | V(m + CᵀS⁻¹(x − m)) |
///
/// For L2 attention G is the Kalman gain of observing Qx = Ky + noise of covariance I/2; it equals
/// P Kᵀ·2 with P = (S⁻¹ + 2KᵀK)⁻¹ and needs no inverse of S. The Sinkhorn plan is the coupling of μ with
/// itself whose density is e^{f(x) + ⟨Qx, Ky⟩ + g(y)}; its cross-covariance C solves
/// S⁻¹C(S − CᵀS⁻¹C)⁻¹ = QᵀK. Weights e^{−|Qx−Ky|²/2} have the same plan, e^{−|Qx−Ky|²} that of √2 Q, √2 K.
///
/// ```
/// use esscher_core::layers::Layer;
/// use esscher_core::mat;
/// use esscher_core::measure::Gaussian;
/// let layer = Layer::softmax(mat![[0.5]].as_ref(), mat![[2.0]].as_ref())?;
/// let tokens = Gaussian::new(&[1.0], mat![[4.0]].as_ref())?;
/// // b = Vm and B = VSU.
/// assert_eq!(layer.affine_form(&tokens)?.at(&[3.0])?, [2.0 + 4.0 * 3.0]);
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Layer {
    scores: Scores,
    value_matrix: Mat<f64>,
}

/// The matrices by which each attention scores.
#[derive(Debug, Clone)]
enum Scores {
    Softmax { score_matrix: Mat<f64> },
    Linear { score_matrix: Mat<f64> },
    L2 { query_matrix: Mat<f64>, key_matrix: Mat<f64> },
    Sinkhorn { score_matrix: Mat<f64> },
}

/// x ↦ b + Bx, a layer at a Gaussian.
#[derive(Debug, Clone)]
pub struct AffineForm {
    /// The offset b.
    pub offset: Vec<f64>,
    /// The matrix B.
    pub matrix: Mat<f64>,
}

impl AffineForm {
    /// b + Bx.
    pub fn at(&self, point: &[f64]) -> Result<Vec<f64>> {
        check::vector("the point", self.offset.len(), point)?;
        let image = linalg::sum(&self.offset, &linalg::apply(self.matrix.as_ref(), point));
        check::finite_result("the image of the point", image)
    }
}

/// How mean and covariance move: (dm/dt, dS/dt).
#[derive(Debug, Clone)]
pub struct Velocity {
    /// dm/dt = b + Bm.
    pub mean: Vec<f64>,
    /// dS/dt = BS + SBᵀ, exactly symmetric.
    pub covariance: Mat<f64>,
}

impl Layer {
    /// Softmax attention with score matrix U = KᵀQ and value matrix V, both d × d.
    pub fn softmax(score_matrix: MatRef<'_, f64>, value_matrix: MatRef<'_, f64>) -> Result<Self> {
        let score_matrix = check_scores(score_matrix, value_matrix)?;
        Layer::new(Scores::Softmax { score_matrix }, value_matrix)
    }

    /// Linear attention with score matrix U = KᵀQ and value matrix V, both d × d.
    pub fn linear(score_matrix: MatRef<'_, f64>, value_matrix: MatRef<'_, f64>) -> Result<Self> {
        let score_matrix = check_scores(score_matrix, value_matrix)?;
        Layer::new(Scores::Linear { score_matrix }, value_matrix)
    }

    /// L2 attention with query and key matrices Q, K, both k × d, and value matrix V, d × d.
    pub fn l2(
        query_matrix: MatRef<'_, f64>,
        key_matrix: MatRef<'_, f64>,
        value_matrix: MatRef<'_, f64>,
    ) -> Result<Self> {
        check_queries_and_keys(query_matrix, key_matrix, value_matrix)?;
        let scores = Scores::L2 { query_matrix: query_matrix.to_owned(), key_matrix: key_matrix.to_owned() };
        Layer::new(scores, value_matrix)
    }

    /// Sinkhorn attention with query and key matrices Q, K, both k × d, and value matrix V, d × d.
    pub fn sinkhorn(
        query_matrix: MatRef<'_, f64>,
        key_matrix: MatRef<'_, f64>,
        value_matrix: MatRef<'_, f64>,
    ) -> Result<Self> {
        check_queries_and_keys(query_matrix, key_matrix, value_matrix)?;
        let score_matrix =
            check::finite_matrix_result("the score matrix KᵀQ", key_matrix.transpose() * query_matrix)?;
        Layer::new(Scores::Sinkhorn { score_matrix }, value_matrix)
    }

    fn new(scores: Scores, value_matrix: MatRef<'_, f64>) -> Result<Self> {
        check::not_empty("value matrix", value_matrix.nrows())?;
        check::size("value matrix (columns)", value_matrix.nrows(), value_matrix.ncols())?;
        check::finite_matrix("value matrix", value_matrix)?;
        Ok(Layer { scores, value_matrix: value_matrix.to_owned() })
    }

    /// d, the dimension of a token.
    pub fn dimension(&self) -> usize {
        self.value_matrix.nrows()
    }

    /// Which attention the layer computes.
    pub fn kind(&self) -> LayerKind {
        match self.scores {
            Scores::Softmax { .. } => LayerKind::Softmax,
            Scores::Linear { .. } => LayerKind::Linear,
            Scores::L2 { .. } => LayerKind::L2,
            Scores::Sinkhorn { .. } => LayerKind::Sinkhorn,
        }
    }

    /// The value matrix V.
    pub fn value_matrix(&self) -> MatRef<'_, f64> {
        self.value_matrix.as_ref()
    }

    /// T\[μ\] at μ = N(m, S), as the affine map b + Bx; the table of [`Layer`] gives both. S may be singular.
    ///
    /// # Errors
    /// [`Error::Size`] if the Gaussian lives in another dimension, [`Error::Overflow`] if an entry of b
    /// or B exceeds double precision.
    pub fn affine_form(&self, tokens: &Gaussian) -> Result<AffineForm> {
        self.affine_form_from_root(tokens.mean_vector(), tokens.root())
    }

    /// (b, B) from the mean and any root R of the covariance, S = RRᵀ.
    ///
    /// A root rather than S: singular values of R resolve directions of S down to the square of what
    /// its eigenvalues would, and the flow carries a root anyway.
    pub(super) fn affine_form_from_root(&self, mean: &[f64], root: MatRef<'_, f64>) -> Result<AffineForm> {
        check::size("the dimension of the tokens", self.dimension(), mean.len())?;
        let value_matrix = self.value_matrix.as_ref();
        let (offset, matrix) = match &self.scores {
            Scores::Softmax { score_matrix } => {
                (linalg::apply(value_matrix, mean), value_matrix * root * (root.transpose() * score_matrix))
            }
            Scores::Linear { score_matrix } => {
                let mut matrix = value_matrix * root * (root.transpose() * score_matrix);
                let value = linalg::apply(value_matrix, mean);
                let score = linalg::apply_transpose(score_matrix.as_ref(), mean);
                linalg::add_outer(&mut matrix, 1.0, &value, &score);
                (vec![0.0; mean.len()], matrix)
            }
            Scores::L2 { query_matrix, key_matrix } => {
                let gain = kalman_gain(root, key_matrix.as_ref())?;
                let expected = linalg::apply(key_matrix.as_ref(), mean);
                let centre = linalg::difference(mean, &linalg::apply(gain.as_ref(), &expected));
                (linalg::apply(value_matrix, &centre), value_matrix * &gain * query_matrix)
            }
            Scores::Sinkhorn { score_matrix } => {
                let response = balanced_response(root, score_matrix.as_ref())?;
                let centre = linalg::difference(mean, &linalg::apply(response.as_ref(), mean));
                (linalg::apply(value_matrix, &centre), value_matrix * &response)
            }
        };
        Ok(AffineForm {
            offset: check::finite_result("the offset of the layer", offset)?,
            matrix: check::finite_matrix_result("the matrix of the layer", matrix)?,
        })
    }

    /// (dm/dt, dS/dt) of the flow dx/dt = T\[μ\](x) at μ = N(m, S).
    ///
    /// # Errors
    /// As [`Layer::affine_form`].
    pub fn velocity(&self, tokens: &Gaussian) -> Result<Velocity> {
        let form = self.affine_form(tokens)?;
        let drift = &form.matrix * tokens.covariance_matrix();
        Ok(Velocity {
            mean: form.at(tokens.mean_vector())?,
            covariance: check::finite_matrix_result("dS/dt", &drift + drift.transpose())?,
        })
    }

    /// One residual layer of step size h: the law of x + h T\[μ\](x), x ~ μ.
    ///
    /// N(m + h(b + Bm), (I + hB) S (I + hB)ᵀ), exact for every h.
    ///
    /// # Errors
    /// As [`Layer::affine_form`], and [`Error::NotFinite`] for the step size.
    pub fn step(&self, tokens: &Gaussian, step_size: f64) -> Result<Gaussian> {
        check::finite_vector("step size", &[step_size])?;
        let form = self.affine_form(tokens)?;
        let mut mean = tokens.mean_vector().to_vec();
        linalg::add_scaled(&mut mean, step_size, &form.at(tokens.mean_vector())?);
        let change = &form.matrix * tokens.root();
        let root = Mat::from_fn(change.nrows(), change.ncols(), |i, j| {
            tokens.root()[(i, j)] + step_size * change[(i, j)]
        });
        gaussian_from_root(&mean, root.as_ref())
    }

    /// One layer without the residual connection: the law of T\[μ\](x), x ~ μ.
    ///
    /// N(b + Bm, BSBᵀ); for softmax attention N(V(I + SU)m, V S U S Uᵀ S Vᵀ).
    ///
    /// # Errors
    /// As [`Layer::affine_form`].
    pub fn push_forward(&self, tokens: &Gaussian) -> Result<Gaussian> {
        let form = self.affine_form(tokens)?;
        gaussian_from_root(&form.at(tokens.mean_vector())?, (&form.matrix * tokens.root()).as_ref())
    }
}

/// N(m, RRᵀ): positive semi-definite by construction.
pub(super) fn gaussian_from_root(mean: &[f64], root: MatRef<'_, f64>) -> Result<Gaussian> {
    check::finite_result("the mean after the layer", mean.to_vec())?;
    let covariance = check::finite_matrix_result("the covariance after the layer", root * root.transpose())?;
    Gaussian::new(mean, linalg::symmetric_part(covariance.as_ref()).as_ref())
}

/// G = SKᵀ(KSKᵀ + I/2)⁻¹ = R W diag(2s/(1 + 2s²)) Lᵀ, where KR = L diag(s) Wᵀ.
fn kalman_gain(root: MatRef<'_, f64>, key_matrix: MatRef<'_, f64>) -> Result<Mat<f64>> {
    if root.ncols() == 0 {
        return Ok(Mat::zeros(root.nrows(), key_matrix.nrows()));
    }
    let svd = singular_values("the keys K S^½", key_matrix * root)?;
    let (keys, directions) = (svd.U(), svd.V());
    let weighted = Mat::from_fn(directions.nrows(), directions.ncols(), |i, j| {
        let s = svd.S()[j];
        // 2s/(1 + 2s²), in the form whose parts do not overflow.
        directions[(i, j)] * if s > 1.0 { 1.0 / (0.5 / s + s) } else { 2.0 * s / (1.0 + 2.0 * s * s) }
    });
    Ok(root * (weighted * keys.transpose()))
}

/// CᵀS⁻¹ = R W diag(c/b) Wᵀ Rᵀ U, where RᵀUR = W diag(b) Pᵀ and c/b = 2/(1 + √(1 + 4b²)).
///
/// With S = RRᵀ the balance S⁻¹C(S − CᵀS⁻¹C)⁻¹ = Uᵀ reads c/(1 − c²) = b along each pair of singular
/// vectors, and Cᵀ = R W diag(c) PᵀRᵀ. Written with c/b the inverse of S has cancelled, and c/b is
/// smooth through b = 0.
fn balanced_response(root: MatRef<'_, f64>, score_matrix: MatRef<'_, f64>) -> Result<Mat<f64>> {
    if root.ncols() == 0 {
        return Ok(Mat::zeros(root.nrows(), root.nrows()));
    }
    let scores = root.transpose() * score_matrix;
    let svd = singular_values("the scores S^½ U S^½", &scores * root)?;
    let directions = svd.U();
    let weighted = Mat::from_fn(directions.nrows(), directions.ncols(), |i, j| {
        directions[(i, j)] * 2.0 / (1.0 + libm::hypot(1.0, 2.0 * svd.S()[j]))
    });
    Ok(root * (weighted * (directions.transpose() * scores)))
}

fn singular_values(what: &'static str, matrix: Mat<f64>) -> Result<Svd<f64>> {
    let matrix = check::finite_matrix_result(what, matrix)?;
    matrix.thin_svd().map_err(|_| Error::Overflow { what })
}

fn check_scores(score_matrix: MatRef<'_, f64>, value_matrix: MatRef<'_, f64>) -> Result<Mat<f64>> {
    check::size("score matrix (rows)", value_matrix.nrows(), score_matrix.nrows())?;
    check::size("score matrix (columns)", value_matrix.nrows(), score_matrix.ncols())?;
    check::finite_matrix("score matrix", score_matrix)?;
    Ok(score_matrix.to_owned())
}

fn check_queries_and_keys(
    query_matrix: MatRef<'_, f64>,
    key_matrix: MatRef<'_, f64>,
    value_matrix: MatRef<'_, f64>,
) -> Result<()> {
    check::not_empty("query matrix (rows)", query_matrix.nrows())?;
    check::size("query matrix (columns)", value_matrix.nrows(), query_matrix.ncols())?;
    check::size("key matrix (rows)", query_matrix.nrows(), key_matrix.nrows())?;
    check::size("key matrix (columns)", value_matrix.nrows(), key_matrix.ncols())?;
    check::finite_matrix("query matrix", query_matrix)?;
    check::finite_matrix("key matrix", key_matrix)
}
