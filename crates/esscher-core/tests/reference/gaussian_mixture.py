#!/usr/bin/env python3
"""Reference values for softmax attention over a finite prompt of Gaussian-mixture tokens.

    python3 gaussian_mixture.py generate    writes gaussian_mixture.json
    python3 gaussian_mixture.py check       steps, closed forms, L = 2 quadrature, simulation

Needs python-flint (ball arithmetic); `check` also needs numpy.

Tokens z_1 ... z_L i.i.d. from sum_k pi_k N(m_k, G_k) in R^2 (G_k = 0 is an atom), p = softmax(<theta, z_l>).
With mu_* = tilted mean, C* = tilted covariance, x = z - mu_*, and power sums
P_{a,(m,n)} = sum_l p_l^a x_1^m x_2^n, the expectation of a product of power sums is

    1/Gamma(A) int_0^inf t^(A-1) sum_pi (L)_|pi| phi^(L-|pi|) prod_B M_{a_B,(m_B,n_B)} dt

over all set partitions pi of the factors, M_{a,(m,n)}(t) = E e^(a s) x_1^m x_2^n exp(-t e^s), s = <theta, z> - Lam,
phi = M_{0,(0,0)}. Per component the expectation is a trapezoid sum over g in s = mu_k - Lam + tau_k g; given g, x is
Gaussian with a known mean and covariance, and its monomials are integrated by Isserlis' recursion.
Nothing is rearranged against cancellation; 320 bits pay for it. V enters only at the very end.
"""
import json
import math
import os
import sys
import time
from flint import arb, arb_mat, ctx, fmpq

ctx.prec = 320
HERE = os.path.dirname(os.path.abspath(__file__))

WEIGHTS = ["0.5", "0.3", "0.2"]
MEANS = [["0.3", "-0.2"], ["1.0", "0.5"], ["-0.7", "1.1"]]
COVARIANCES = [[["1", "0.3"], ["0.3", "0.8"]], [["0.5", "-0.1"], ["-0.1", "0.4"]], [["0", "0"], ["0", "0"]]]
VALUE = [["1", "0.5"], ["-0.3", "2"]]
THETAS = [["0.4", "-0.9"], ["1.5", "1.0"], ["0", "0"]]
LENGTHS = [1, 2, 7, 40, 1000, 10**6, 10**12]


def dec(text):
    """A decimal literal as an exact rational."""
    sign = -1 if text.startswith("-") else 1
    whole, _, frac = text.lstrip("-").partition(".")
    return fmpq(sign * int(whole + frac)) / fmpq(10) ** len(frac)


W = [dec(w) for w in WEIGHTS]
M = [[dec(x) for x in m] for m in MEANS]
G = [[[dec(x) for x in r] for r in g] for g in COVARIANCES]
V = [[dec(x) for x in r] for r in VALUE]
K = len(W)


def power_of(x, n):
    out = arb(1)
    for _ in range(n):
        out = out * x
    return out


def set_partitions(items):
    if not items:
        yield []
        return
    head, rest = items[0], items[1:]
    for part in set_partitions(rest):
        yield [[head]] + part
        for i in range(len(part)):
            yield part[:i] + [[head] + part[i]] + part[i + 1:]


def gaussian_monomials(mean, cov, degree):
    """E y_1^m y_2^n for y ~ N(mean, cov), m + n <= degree, by E y_i f = mean_i E f + sum_j cov_ij E d_j f."""
    table = {(0, 0): arb(1)}

    def get(m, n):
        if m < 0 or n < 0:
            return arb(0)
        if (m, n) not in table:
            if m > 0:
                v = mean[0] * get(m - 1, n) + cov[0][0] * (m - 1) * get(m - 2, n) + cov[0][1] * n * get(m - 1, n - 1)
            else:
                v = mean[1] * get(0, n - 1) + cov[1][1] * (n - 1) * get(0, n - 2)
            table[(m, n)] = v
        return table[(m, n)]

    for m in range(degree + 1):
        for n in range(degree + 1 - m):
            get(m, n)
    return table


class Tilt:
    """The infinite-prompt quantities at a tilt; everything exact rationals until the exponentials."""

    def __init__(self, theta_text):
        th = [dec(x) for x in theta_text]
        self.theta = th
        self.mu = [sum((th[i] * m[i] for i in range(2)), fmpq(0)) for m in M]
        self.gth = [[sum((g[i][j] * th[j] for j in range(2)), fmpq(0)) for i in range(2)] for g in G]
        self.tau2 = [sum((th[i] * v[i] for i in range(2)), fmpq(0)) for v in self.gth]
        mass = [arb(W[k]) * arb(self.mu[k] + self.tau2[k] / 2).exp() for k in range(K)]
        z = mass[0] + mass[1] + mass[2]
        self.lam = z.log()
        self.a = [m / z for m in mass]
        comp = [[M[k][i] + self.gth[k][i] for i in range(2)] for k in range(K)]
        self.mean = [sum((self.a[k] * arb(comp[k][i]) for k in range(K)), arb(0)) for i in range(2)]
        self.cov = [[sum((self.a[k] * (arb(G[k][i][j]) + (arb(comp[k][i]) - self.mean[i]) * (arb(comp[k][j]) - self.mean[j]))
                          for k in range(K)), arb(0)) for j in range(2)] for i in range(2)]


# a factor is (a, m, n)
X = [(1, 1, 0), (1, 0, 1)]
Q = [[(1, 2, 0), (1, 1, 1)], [(1, 1, 1), (1, 0, 2)]]


def product_list():
    need = set()
    need.add(((2, 0, 0),))
    need.add(((1, 0, 0),))
    need.add(((1, 0, 0), (1, 0, 0)))
    for i in range(2):
        need.add((X[i],))
        for j in range(2):
            need.add((Q[i][j],))
            need.add(tuple(sorted((X[i], X[j]))))
            for i2 in range(2):
                need.add(tuple(sorted((Q[i][j], Q[i2][j]))))
                need.add(tuple(sorted((Q[i][j], X[i2], X[j]))))
                need.add(tuple(sorted((X[i], X[j], X[i2], X[j]))))
    return sorted(need)


PRODUCTS = product_list()
PARTITIONS = {}
for _f in PRODUCTS:
    PARTITIONS[_f] = (sum(x[0] for x in _f),
                      [[tuple(sum(_f[j][c] for j in B) for c in range(3)) for B in pi]
                       for pi in set_partitions(list(range(len(_f))))])
BLOCKS = sorted({k for _, terms in PARTITIONS.values() for term in terms for k in term})


def fl(q):
    return float(int(q.p)) / float(int(q.q))


def nodes(tilt, step, s_lo=-180, s_hi=70, g_lo=-18, g_hi=22):
    step_q = dec(step)
    columns = [(0, 0, 0)] + BLOCKS
    s_grid = [arb(step_q * fmpq(j)) for j in range(int(s_lo / float(step)), int(s_hi / float(step)) + 1)]
    s_float = [float(s) for s in s_grid]
    scores, rows = [], []
    for k in range(K):
        tau = arb(tilt.tau2[k]).sqrt()
        if tilt.tau2[k] == 0:
            grid = [(arb(0), arb(1))]               # no score direction: one node of weight 1
            beta, rho = [arb(0)] * 2, [[arb(x) for x in r] for r in G[k]]
        else:
            h = step_q * fmpq(10) / fmpq(8) / fmpq(max(1, math.ceil(fl(tilt.tau2[k]) ** 0.5 * 1.25)))
            grid = []
            for i in range(int(g_lo / fl(h)), int(g_hi / fl(h)) + 1):
                g = arb(h * fmpq(i))
                grid.append((g, (-g * g / 2).exp() * arb(h) / (2 * arb.pi()).sqrt()))
            beta = [arb(v) / tau for v in tilt.gth[k]]
            rho = [[arb(G[k][i][j]) - arb(tilt.gth[k][i] * tilt.gth[k][j] / tilt.tau2[k]) for j in range(2)] for i in range(2)]
        for g, w in grid:
            sc = arb(tilt.mu[k]) - tilt.lam + tau * g
            mono = gaussian_monomials([arb(M[k][i]) - tilt.mean[i] + beta[i] * g for i in range(2)], rho, 4)
            e = sc.exp()
            scores.append(sc)
            rows.append([arb(W[k]) * w * power_of(e, a) * mono[(m, n)] for a, m, n in columns])
    sf = [float(s) for s in scores]
    table = arb_mat(len(rows), len(columns), [v for r in rows for v in r])
    zero = arb(0)
    out = []
    for start in range(0, len(s_grid), 64):
        js = range(start, min(start + 64, len(s_grid)))
        kern = arb_mat(len(js), len(rows), [zero if s_float[j] + sf[n] > 8 else (-(s_grid[j] + scores[n]).exp()).exp()
                                            for j in js for n in range(len(rows))])
        m = kern * table
        for r, j in enumerate(js):
            row = {c: m[r, q + 1] for q, c in enumerate(BLOCKS)}
            out.append((s_grid[j], m[r, 0], row))
    return arb(step_q), out


def expectations(data, length):
    step, rows = data
    total = {f: arb(0) for f in PRODUCTS}
    falling = [arb(1)]
    for k in range(4):
        falling.append(falling[-1] * (length - k))
    for s, phi, m in rows:
        t = s.exp()
        front = [falling[k] * (phi ** (length - k) if length > k else arb(1)) for k in range(5)]
        tp = [power_of(t, a) for a in range(5)]
        for f, (a_total, terms) in PARTITIONS.items():
            acc = arb(0)
            for term in terms:
                if len(term) > length:
                    continue
                v = front[len(term)]
                for key in term:
                    v = v * m[key]
                acc += v
            total[f] += acc * tp[a_total]
    return {f: v * step / arb(PARTITIONS[f][0]).gamma() for f, v in total.items()}


def sandwich(second):
    return [[sum((arb(V[r][i]) * second[i][j] * arb(V[c][j]) for i in range(2) for j in range(2)), arb(0))
             for c in range(2)] for r in range(2)]


def gram():
    return [[arb(V[0][i] * V[0][j] + V[1][i] * V[1][j]) for j in range(2)] for i in range(2)]


def values(tilt, data, length):
    e = expectations(data, length)

    def ev(*factors):
        return e[tuple(sorted(factors))]

    mean = [ev(X[i]) for i in range(2)]
    second = [[ev(X[i], X[j]) for j in range(2)] for i in range(2)]
    c = tilt.cov
    vv = gram()
    grad = arb(0)
    for i in range(2):
        for i2 in range(2):
            for j in range(2):
                # D_ij = Q_ij - C_ij - X_i X_j,  ||V D||^2 = sum (V'V)_{i i2} D_ij D_{i2 j}
                d = (ev(Q[i][j], Q[i2][j]) - ev(Q[i][j]) * c[i2][j] - ev(Q[i][j], X[i2], X[j])
                     - c[i][j] * ev(Q[i2][j]) + c[i][j] * c[i2][j] + c[i][j] * second[i2][j]
                     - ev(Q[i2][j], X[i], X[j]) + c[i2][j] * second[i][j] + ev(X[i], X[j], X[i2], X[j]))
                grad += vv[i][i2] * d
    out = {
        "bias": [arb(V[r][0]) * mean[0] + arb(V[r][1]) * mean[1] for r in range(2)],
        "second_moment": sandwich(second),
        "gradient_error": grad,
        "participation": ev((2, 0, 0)),
    }
    return out, (ev((1, 0, 0)), ev((1, 0, 0), (1, 0, 0)))


def flat(v):
    return {"bias[0]": v["bias"][0], "bias[1]": v["bias"][1], "second_moment[0][0]": v["second_moment"][0][0],
            "second_moment[0][1]": v["second_moment"][0][1], "second_moment[1][0]": v["second_moment"][1][0],
            "second_moment[1][1]": v["second_moment"][1][1], "gradient_error": v["gradient_error"],
            "participation": v["participation"]}


def equal_weights(length):
    """theta = 0: p = 1/L. Classical formulas for the sample mean and the (biased) sample covariance."""
    t = Tilt(["0", "0"])
    n = arb(length)
    c = t.cov
    mono = {}
    for k in range(K):
        g = gaussian_monomials([arb(M[k][i]) - t.mean[i] for i in range(2)], [[arb(x) for x in r] for r in G[k]], 4)
        for key, v in g.items():
            mono[key] = mono.get(key, arb(0)) + arb(W[k]) * v

    def mu(*idx):
        return mono[(idx.count(0), idx.count(1))]

    vv, grad = gram(), arb(0)
    for i in range(2):
        for k in range(2):
            for j in range(2):
                # Cov_L = (L-1)/L S, S unbiased: cov(S_ij, S_kj) = (mu4 - c c)/L + (c_ik c_jj + c_ij c_jk)/(L(L-1))
                if length > 1:
                    cs = (mu(i, j, k, j) - c[i][j] * c[k][j]) / n + (c[i][k] * c[j][j] + c[i][j] * c[j][k]) / (n * (n - 1))
                else:
                    cs = arb(0)
                f = (n - 1) / n
                grad += vv[i][k] * (f * f * cs + c[i][j] * c[k][j] / (n * n))
    return {"bias": [arb(0), arb(0)], "second_moment": sandwich([[x / n for x in r] for r in c]),
            "gradient_error": grad, "participation": 1 / n}


def single(theta_text):
    """L = 1: the output is V z."""
    t = Tilt(theta_text)
    mean = [sum((arb(W[k]) * (arb(M[k][i]) - t.mean[i]) for k in range(K)), arb(0)) for i in range(2)]
    second = [[sum((arb(W[k]) * (arb(G[k][i][j]) + (arb(M[k][i]) - t.mean[i]) * (arb(M[k][j]) - t.mean[j])) for k in range(K)), arb(0))
               for j in range(2)] for i in range(2)]
    vv = gram()
    grad = sum((vv[i][k] * t.cov[i][j] * t.cov[k][j] for i in range(2) for k in range(2) for j in range(2)), arb(0))
    return {"bias": [arb(V[r][0]) * mean[0] + arb(V[r][1]) * mean[1] for r in range(2)],
            "second_moment": sandwich(second), "gradient_error": grad, "participation": arb(1)}


def pair(theta_text, step=fmpq(1, 40)):
    """L = 2 by one integral over y = <theta, z_1 - z_2> per pair of components; no partition formula.

    p = 1/(1+e^-y), Xb = (z_1+z_2)/2 - mean + (p - 1/2) d, Cov_2 = p (1-p) d d', d = z_1 - z_2."""
    t = Tilt(theta_text)
    th = [arb(x) for x in t.theta]
    vv = gram()
    out = {"bias": [arb(0)] * 2, "sec": [[arb(0)] * 2 for _ in range(2)], "gradient_error": arb(0), "participation": arb(0)}
    for k in range(K):
        for l in range(K):
            w0 = arb(W[k] * W[l])
            ed = [arb(M[k][i] - M[l][i]) for i in range(2)]
            eb = [arb((M[k][i] + M[l][i]) / 2) - t.mean[i] for i in range(2)]
            cd = [[arb(G[k][i][j] + G[l][i][j]) for j in range(2)] for i in range(2)]      # Cov d
            cb = [[x / 4 for x in r] for r in cd]                                          # Cov zbar
            cx = [[arb((G[k][i][j] - G[l][i][j]) / 2) for j in range(2)] for i in range(2)]  # Cov(zbar, d)
            sd = [cd[i][0] * th[0] + cd[i][1] * th[1] for i in range(2)]                   # Cov(d, y)
            sb = [cx[i][0] * th[0] + cx[i][1] * th[1] for i in range(2)]                   # Cov(zbar, y)
            vyq = sum((t.theta[i] * (G[k][i][j] + G[l][i][j]) * t.theta[j] for i in range(2) for j in range(2)), fmpq(0))
            ey = arb(t.mu[k] - t.mu[l])
            if vyq == 0:
                grid = [(ey, arb(0), arb(1))]
                inv = arb(0)
            else:
                sdv = arb(vyq).sqrt()
                inv = 1 / arb(vyq)
                h = step
                grid = []
                for i in range(-int(18 / fl(h)), int(18 / fl(h)) + 1):
                    g = arb(h * fmpq(i))
                    grid.append((ey + sdv * g, sdv * g, (-g * g / 2).exp() * arb(h) / (2 * arb.pi()).sqrt()))
            rdd = [[cd[i][j] - sd[i] * sd[j] * inv for j in range(2)] for i in range(2)]
            rbb = [[cb[i][j] - sb[i] * sb[j] * inv for j in range(2)] for i in range(2)]
            rbd = [[cx[i][j] - sb[i] * sd[j] * inv for j in range(2)] for i in range(2)]
            for y, dy, w in grid:
                w = w * w0
                p, q = 1 / (1 + (-y).exp()), 1 / (1 + y.exp())
                u = (p - q) / 2
                md = [ed[i] + sd[i] * inv * dy for i in range(2)]
                mb = [eb[i] + sb[i] * inv * dy for i in range(2)]
                mx = [mb[i] + u * md[i] for i in range(2)]
                mono = gaussian_monomials(md, rdd, 4)
                out["participation"] += w * (p * p + q * q)
                for r in range(2):
                    out["bias"][r] = out["bias"][r] + w * (arb(V[r][0]) * mx[0] + arb(V[r][1]) * mx[1])
                pq = p * q
                for i in range(2):
                    for j in range(2):
                        out["sec"][i][j] += w * (mx[i] * mx[j] + rbb[i][j] + u * (rbd[i][j] + rbd[j][i]) + u * u * rdd[i][j])
                        for i2 in range(2):
                            idx4, ia, ib = (i, j, i2, j), (i, j), (i2, j)
                            out["gradient_error"] += w * vv[i][i2] * (
                                pq * pq * mono[(idx4.count(0), idx4.count(1))] - pq * mono[(ia.count(0), ia.count(1))] * t.cov[i2][j]
                                - pq * mono[(ib.count(0), ib.count(1))] * t.cov[i][j] + t.cov[i][j] * t.cov[i2][j])
    out["second_moment"] = sandwich(out.pop("sec"))
    return out


def text(x, digits=22):
    if x.is_zero():
        return "0"
    assert x.is_finite() and x.rel_accuracy_bits() > 90, x
    return x.str(digits, radius=False)


def deep(v):
    return [deep(x) for x in v] if isinstance(v, list) else text(v)


def rel(a, b):
    if not (a.is_finite() and b.is_finite()):
        return float("inf")
    d = abs(a.mid() - b.mid())
    return float(d if b.is_zero() else d / abs(b.mid()))


def generate(step="0.1"):
    result = {"dimension": 2, "weights": WEIGHTS, "means": MEANS, "covariances": COVARIANCES, "value": VALUE, "cases": []}
    for theta in THETAS:
        t0 = time.time()
        tilt = Tilt(theta)
        data = nodes(tilt, step)
        case = {"theta": theta, "log_partition": text(tilt.lam) if theta != ["0", "0"] else "0", "component_weights": deep(tilt.a),
                "tilted_mean": deep(tilt.mean), "tilted_covariance": deep(tilt.cov),
                "output": deep([arb(V[r][0]) * tilt.mean[0] + arb(V[r][1]) * tilt.mean[1] for r in range(2)]), "lengths": {}}
        for length in LENGTHS:
            v = values(tilt, data, length)[0]
            if theta == ["0", "0"]:
                v["bias"] = [arb(0), arb(0)]       # exactly zero; the sum gives zero up to rounding
            case["lengths"][str(length)] = {k: deep(x) for k, x in v.items()}
        result["cases"].append(case)
        print(f"theta {theta}: {time.time() - t0:.0f} s", flush=True)
    with open(os.path.join(HERE, "gaussian_mixture.json"), "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")


def load():
    with open(os.path.join(HERE, "gaussian_mixture.json")) as f:
        data = json.load(f)

    def back(v):
        return [back(x) for x in v] if isinstance(v, list) else arb(v)

    return [(c["theta"], {int(n): flat({k: back(x) for k, x in v.items()}) for n, v in c["lengths"].items()}) for c in data["cases"]]


def worst_of(v, ref, label):
    f = flat(v)
    return max((rel(f[n], ref[n]), f"{n} {label}") for n in f)


def check():
    ref = load()
    for step in ["0.16", "0.07"]:
        w = (0.0, "")
        for theta, by_length in ref:
            tilt = Tilt(theta)
            data = nodes(tilt, step)
            for length, r in by_length.items():
                v, ones = values(tilt, data, length)
                w = max(w, worst_of(v, r, f"theta {theta}, L {length}"))
                for o in ones:
                    w = max(w, (rel(o, arb(1)), f"identity theta {theta}, L {length}"))
        print(f"step {step}: worst relative difference {w[0]:.1e} ({w[1]})", flush=True)
    w = max(worst_of(single(theta), r[1], f"theta {theta}") for theta, r in ref)
    print(f"L = 1 closed form: worst {w[0]:.1e} ({w[1]})")
    w = max(worst_of(pair(theta), r[2], f"theta {theta}") for theta, r in ref)
    print(f"L = 2 quadrature: worst {w[0]:.1e} ({w[1]})", flush=True)
    w = max(worst_of(equal_weights(n), r, f"L {n}") for n, r in ref[2][1].items())
    print(f"theta = 0, sample mean and covariance: worst {w[0]:.1e} ({w[1]})", flush=True)
    # first order in 1/L at L = 1e12: the delta method, by the tilted measure at 2 theta
    for theta, r in ref[:2]:
        t1, t2 = Tilt(theta), Tilt([str(2 * float(x)) for x in theta])
        d = [t2.mean[i] - t1.mean[i] for i in range(2)]
        e2 = (t2.lam - 2 * t1.lam).exp() / arb(10**12)
        second = sandwich([[e2 * (t2.cov[i][j] + d[i] * d[j]) for j in range(2)] for i in range(2)])
        bias = [-e2 * (arb(V[q][0]) * d[0] + arb(V[q][1]) * d[1]) for q in range(2)]
        got = r[10**12]
        diffs = [rel(got[f"bias[{q}]"], bias[q]) for q in range(2)] + [rel(got[f"second_moment[{a}][{b}]"], second[a][b]) for a in range(2) for b in range(2)]
        diffs.append(rel(got["participation"], e2))
        # gradient: E||V (y y' - C*)||^2 under the law tilted by 2 theta, y = z - mean at theta
        vv, grad = gram(), arb(0)
        for k in range(K):
            mono = gaussian_monomials([arb(M[k][i] + t2.gth[k][i]) - t1.mean[i] for i in range(2)], [[arb(x) for x in q] for q in G[k]], 4)

            def mu(*idx):
                return mono[(idx.count(0), idx.count(1))]

            for i in range(2):
                for h in range(2):
                    for j in range(2):
                        grad += e2 * t2.a[k] * vv[i][h] * (mu(i, j, h, j) - mu(i, j) * t1.cov[h][j] - mu(h, j) * t1.cov[i][j] + t1.cov[i][j] * t1.cov[h][j])
        print(f"L = 1e12, theta {theta}: against first order: bias, second moment, participation {max(diffs):.1e}, "
              f"gradient_error {rel(got['gradient_error'], grad):.1e}", flush=True)
    import numpy as np
    rng = np.random.default_rng(7)
    vm = np.array([[float(x) for x in r] for r in VALUE])
    for length, n_rep in [(7, 2_000_000), (40, 800_000)]:
        for theta, by_length in ref:
            t = Tilt(theta)
            th = np.array([float(x) for x in theta])
            mean = np.array([float(x) for x in t.mean])
            cst = np.array([[float(x) for x in r] for r in t.cov])
            chol = [np.linalg.cholesky(np.array([[float(x) for x in r] for r in g])) if g[0][0] != "0" else np.zeros((2, 2)) for g in COVARIANCES]
            chol, mk = np.array(chol), np.array([[float(x) for x in m] for m in MEANS])
            s1, s2, done = 0.0, 0.0, 0
            while done < n_rep:
                b = min(1_000_000 // length, n_rep - done)
                comp = rng.choice(3, p=[0.5, 0.3, 0.2], size=(b, length))
                xi = rng.standard_normal((b, length, 2))
                x = mk[comp] + np.einsum("blij,blj->bli", chol[comp], xi) - mean
                sc = x @ th
                p = np.exp(sc - sc.max(axis=1, keepdims=True))
                p /= p.sum(axis=1, keepdims=True)
                xb = np.einsum("bl,bli->bi", p, x)
                cov = np.einsum("bl,bli,blj->bij", p, x, x) - xb[:, :, None] * xb[:, None, :]
                dv = np.einsum("ij,bjk->bik", vm, cov - cst)
                o = xb @ vm.T
                vals = np.stack([o[:, 0], o[:, 1], o[:, 0] ** 2, o[:, 0] * o[:, 1], o[:, 1] ** 2, (dv**2).sum(axis=(1, 2)), (p**2).sum(axis=1)])
                s1, s2, done = s1 + vals.sum(axis=1), s2 + (vals**2).sum(axis=1), done + b
            m = s1 / done
            se = np.sqrt((s2 / done - m * m) / done)
            names = ["bias[0]", "bias[1]", "second_moment[0][0]", "second_moment[0][1]", "second_moment[1][1]", "gradient_error", "participation"]
            # at theta = 0 participation is constant: skip the 0/0
            z = [((m[i] - float(by_length[length][n])) / se[i], n) for i, n in enumerate(names) if not (n == "participation" and not th.any())]
            print(f"simulation theta {theta}, L {length}, {done} draws: " + ", ".join(f"{n} {x:+.1f}" for x, n in z) + " standard errors", flush=True)
            i = names.index("gradient_error")
            print(f"    gradient_error {float(by_length[length]['gradient_error']):.6f}, simulated {m[i]:.6f} +- {se[i]:.6f}", flush=True)


if __name__ == "__main__":
    dict(generate=generate, check=check)[sys.argv[1]]()
