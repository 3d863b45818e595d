//! Claim: outputs of finite prompts concentrate at a polynomial rate with exponent of order 1/σ².

use super::bound;
use esscher_core::Quantity;

claim! {
    name: "output-concentration",
    title: "Outputs of long prompts concentrate below a bound of the proved form",
    statement: "For sub-Gaussian tokens of parameter at least 1 and centred 1-sub-Gaussian queries, the mean squared \
                distance between attention on a prompt of L tokens and on the infinite prompt falls at least like a \
                power of L, up to a logarithm. The exponent is of order one over the squared parameter.",
    formula: r"\mathbb E\,\|T[\mu_L]-T[\mu]\|^2_{L^2(\nu)} \le c_1\,\sigma^6\,\frac{\ln L}{L^{c_2/\sigma^2}}",
    citation: "[Boursier & Boyer 2025](https://arxiv.org/abs/2512.11784), Section 3, the proposition on the concentration of outputs.",
    measurement: "Normal tokens by exact integrals up to $10^{12}$ tokens and by simulation at short lengths; random \
                  signs, cube and sphere by simulation, up to $10^4$; two dimensions; queries $\\mathcal N(0, I)$. The bound has $c_2 = 1/2$ and one \
                  $c_1$ for all laws and scales: the smallest that bounds prompts of up to 100 tokens at the smallest $\\sigma$.",
    criterion: "An error, at any length and scale, is more than five standard errors above that bound. Or a slope at the \
                longest length is more than five standard errors below the bound's, where the bound falls. Nothing is \
                decided if the two engines are more than five standard errors apart where both measure. Five standard \
                errors are a false alarm in $6 \\cdot 10^{-7}$ of all comparisons if means over trials are normal \
                (means that rest on few trials are left out), in $2 \\cdot 10^{-3}$ for errors from eight randomisations.",
    decided_by: "more trials and longer simulated prompts, the full form of this claim (about an hour of one core)",
    judge: |result, judging| bound::judge(result, judging, &[Quantity::Output]),
}
