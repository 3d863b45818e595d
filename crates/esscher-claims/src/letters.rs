//! The words and letters of the claims, explained once on the page that uses them.

use esscher_report::Block;

/// Folded: what a reader looks up.
pub(crate) fn letters() -> Block {
    let facts = [
        (
            "Attention",
            "A token is a vector in $d$ dimensions, a prompt is $L$ of them, drawn independently from a law $\\mu$. At a query $z$ a \
             head with score matrix $U$ and value matrix $V$ returns $T[\\mu_L](z)$, the mean of $Vz'$ over the tokens $z'$ of the \
             prompt with weights proportional to $e^{\\langle Uz, z'\\rangle}$.",
        ),
        (
            "The infinite prompt",
            "The same mean over the law itself, $T[\\mu](z) = V\\nabla\\Lambda_\\mu(Uz)$ with $\\Lambda_\\mu(\\theta) = \\log\\mathbb \
             E\\,e^{\\langle\\theta, z'\\rangle}$: what longer and longer prompts tend to. The error of a prompt is its mean squared distance \
             from that.",
        ),
        (
            "Laws of tokens",
            "Normal: Gaussian with mean $m$ and covariance $\\Gamma$ (uneven: coordinates of different variances). Random signs: every \
             coordinate is plus or minus one. Cube and sphere: uniform on them. Two normals: a mixture. $\\sigma$ is the scale by which \
             a law is multiplied; where a table says so, its sub-Gaussian parameter.",
        ),
        (
            "Spread of the scores",
            "$H = \\|\\Gamma^{1/2} U S^{1/2}\\|$ for queries with covariance $S$: the largest standard deviation that the scores of normal \
             tokens have for a query of typical size.",
        ),
        (
            "Training",
            "A prompt holds $L$ examples $(x, y)$ of a random linear task, $y = \\langle w, x\\rangle$ plus noise of variance $s^2$, with \
             covariates $x$ of covariance $\\Sigma$. One layer learns to predict the label of a new $x$ by gradient flow, for a time $t$, \
             from a start of size $\\alpha$. $\\theta = (U, V)$ are its parameters: in block form a matrix $A$ in the scores and a factor $b$ \
             of the values. $\\theta_L$ is trained on prompts of $L$ tokens, $\\theta_\\infty$ on infinite ones. The risk is half the mean \
             squared error over all tasks (the authors' experiment shows the whole); the noise floor is the least possible on infinite \
             prompts, $s^2/2$, and what lies above it is the excess.",
        ),
        (
            "Quick and full form",
            "Every claim has two experiments. The quick ones together take minutes and are what `esscher reproduce` runs; the full ones, with \
             more laws, dimensions and trials, take hours (`esscher reproduce --full`). Provenance, at the end, says which seed was used.",
        ),
        (
            "Exact and sampled",
            "Exact numbers come from integrals over the tokens or from integrating in time: no token is drawn, and errors are bounds on what \
             that computation may be off. Where an exact number is averaged over queries by quasi-Monte-Carlo points, its table says so and it \
             has a standard error, from several randomisations of the points. Sampled numbers come from random draws and have standard errors. A number shows all its digits when the \
             mouse rests on it; the files behind each figure and table have them too.",
        ),
    ];
    let facts = facts.map(|(word, meaning)| (word.to_string(), meaning.to_string())).to_vec();
    Block::Folded {
        id: "letters".to_string(),
        title: "The words and letters of this page".to_string(),
        blocks: vec![Block::Facts(facts)],
    }
}
