//! Claim: the gradients in the score and the value matrix concentrate like the output.

use super::bound;
use esscher_core::Quantity;

claim! {
    name: "gradient-concentration",
    title: "Gradients of long prompts concentrate below a bound of the proved form",
    statement: "For sub-Gaussian tokens of parameter at least 1 and centred 1-sub-Gaussian queries, the gradients of \
                attention in the value matrix $V$ and in the score matrix $U$ approach those of the infinite prompt, below bounds with the \
                same power of $L$ as for the output, and for $U$ with higher powers of the parameter and of the logarithm.",
    formula: r"\mathbb E\,\|\partial_V T[\mu_L]-\partial_V T[\mu]\|^2_{L^2(\nu)} \le c_1\sigma^6\frac{\ln L}{L^{c_2/\sigma^2}}, \qquad \mathbb E\,\|\partial_U T[\mu_L]-\partial_U T[\mu]\|^2_{L^2(\nu)} \le c_1\sigma^{12}\frac{(\ln L)^2}{L^{c_2/\sigma^2}}",
    citation: "[Boursier & Boyer 2025](https://arxiv.org/abs/2512.11784), Section 3, the proposition on the concentration of gradients.",
    measurement: "As for the output, in two dimensions, with the squared Frobenius norms of both gradients: normal tokens by exact integrals \
                  up to $10^{12}$ tokens and by simulation at short lengths, bounded tokens by simulation up to $10^4$. The gradient in $V$ is the output with the \
                  identity for $V$, so that its numbers for normal tokens are those of the output. The bounds have \
                  $c_2 = 1/2$ and one $c_1$ for each gradient: the smallest that bounds prompts of up to 100 tokens at the \
                  smallest $\\sigma$.",
    criterion: "As for the output: an error at any length and scale is more than five standard errors above its bound; or a \
                slope at the longest length is more than five standard errors below the bound's, where the bound falls. \
                Nothing is decided if the two engines are more than five standard errors apart where both measure.",
    decided_by: "more trials and longer simulated prompts, the full form of this claim (about an hour of one core)",
    judge: |result, judging| bound::judge(result, judging, &[Quantity::ScoreGradient, Quantity::ValueGradient]),
}
