"""Reference values for a pair of opposite heads, by the definitions of its scalars: no integration by parts.

Short prompts: p, r, G and H themselves, integrated over the centred scores of 2, 3 or 4 tokens by the trapezoid rule.
Longer ones: E GH and E K as double integrals over (ln t1, ln t2) on a product grid, with grid steps other than the
library's. Double precision; the closure E (sum p)(sum r) = 1 holds to 2e-13. Writes opposite_heads.json.
"""

import json
import pathlib

import numpy as np


def deficits(tau, mean, mean_square, product, squares, overlap):
    return {
        "first_deficit": 1 - mean / tau,
        "second_deficit": 1 - (mean_square - product - squares + overlap) / (2 * tau**2),
        "spread": (squares - overlap) / 2,
    }


def by_definition(tau, tokens, step, reach=9.0):
    """The mean score drops out of p and r; it adds the same 1/L to E G^2 and to E GH."""
    basis = np.linalg.qr(np.column_stack([np.ones(tokens), np.eye(tokens)[:, : tokens - 1]]))[0][:, 1:]
    axis = np.arange(-reach, reach + step / 2, step)
    points = np.stack([grid.ravel() for grid in np.meshgrid(*[axis] * (tokens - 1), indexing="ij")])
    totals = np.zeros(5)
    for x in np.array_split(points, max(1, points.shape[1] // 1_000_000), axis=1):
        weight = np.exp(-0.5 * (x**2).sum(0)) * (step / np.sqrt(2 * np.pi)) ** (tokens - 1)
        g = basis @ x
        p = np.exp(tau * (g - g.max(0)))
        r = np.exp(-tau * (g - g.min(0)))
        p, r = p / p.sum(0), r / r.sum(0)
        up, down = (p * g).sum(0), (r * g).sum(0)
        values = [up, up * up, up * down, (p * p).sum(0), (p * r).sum(0)]
        totals += [(weight * value).sum() for value in values]
    return deficits(tau, *totals)


def by_double_integral(tau, length, step=0.2):
    node_step = 0.83 * min(0.2, 0.2 / tau)
    reach = min(np.sqrt(2 * (3 * np.log(length) + 50)), 4 * tau + 10)
    g = np.arange(-reach, reach + node_step / 2, node_step)
    g -= g.mean()
    w = np.exp(-g * g / 2) / np.sqrt(2 * np.pi) * node_step
    s = np.arange(-np.log(length) - tau * reach - 30, 6 + tau * reach, step)

    def log_survival(extinct, survive):
        near = np.log1p(-np.minimum(extinct, 0.6))
        return np.where(extinct < 0.5, near, np.log(np.maximum(survive, 1e-300)))

    x = s[:, None] + tau * g[None, :]
    u = np.exp(np.minimum(x, 7.0))
    k, dies = np.exp(-u), -np.expm1(-u)
    u = np.where(x > 6.9, 0.0, u)
    extinct = (dies * w).sum(1)
    log_phi = log_survival(extinct, (k * w).sum(1))
    keep = (length - 3) * log_phi > -700
    u, k, dies, extinct, log_phi = u[keep], k[keep], dies[keep], extinct[keep], log_phi[keep]
    one, two = length * np.exp((length - 1) * log_phi), length * (length - 1) * np.exp((length - 2) * log_phi)
    mean = (one * (u * k * w * g).sum(1)).sum() * step
    squares = (one * (u * u * k * w).sum(1)).sum() * step
    mean_square = one * (u * u * k * w * g * g).sum(1) + two * (u * k * w * g).sum(1) ** 2
    mean_square = mean_square.sum() * step
    # The second head sees -g.
    v, l, dies_too = u[:, ::-1], k[:, ::-1], dies[:, ::-1]
    log_phi = log_survival(extinct[:, None] + (k * w) @ dies_too.T, (k * w) @ l.T)
    one, two = length * np.exp((length - 1) * log_phi), length * (length - 1) * np.exp((length - 2) * log_phi)
    overlap = (one * ((u * k * w) @ (v * l).T)).sum() * step**2
    product = one * ((u * k * w * g * g) @ (v * l).T)
    product += two * ((u * k * w * g) @ l.T) * ((k * w * g) @ (v * l).T)
    closure = one * ((u * k * w) @ (v * l).T) + two * ((u * k * w) @ l.T) * ((k * w) @ (v * l).T)
    assert abs(closure.sum() * step**2 - 1) < 2e-13
    return deficits(tau, mean, mean_square, product.sum() * step**2, squares, overlap)


if __name__ == "__main__":
    rows = []
    for tokens, step, deviations in [(2, 0.01, [0.5, 1, 2, 4, 6]), (3, 0.02, [0.5, 1, 2, 4, 6]), (4, 0.08, [0.5, 1, 2])]:
        rows += [{"tau": tau, "length": tokens, **by_definition(tau, tokens, step)} for tau in deviations]
    for tau, length in [(1, 4), (1, 1e3), (2, 50), (2, 1e6), (4, 1e3), (4, 1e9), (6, 1e6), (6, 1e12)]:
        rows.append({"tau": tau, "length": length, **by_double_integral(tau, length)})
    rows = [{name: float(value) for name, value in row.items()} for row in rows]
    text = "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n"
    (pathlib.Path(__file__).parent / "opposite_heads.json").write_text(text)
