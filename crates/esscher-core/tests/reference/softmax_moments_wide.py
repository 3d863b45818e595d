#!/usr/bin/env python3
"""Reference moments of the softmax weights of L standard normals.

    python3 softmax_moments_wide.py generate    writes softmax_moments_wide.json
    python3 softmax_moments_wide.py check       steps, centre, identities, L = 2, simulation
    python3 softmax_moments_wide.py compare     against softmax_moments.json

Needs python-flint (ball arithmetic); `check` also needs numpy.

For g_1 ... g_L i.i.d. N(0,1), p = softmax(tau g) and P_{a,b} = sum_l p_l^a (g_l - c)^b,

    E prod_j P_{a_j,b_j} = 1/Gamma(A) int_0^inf t^(A-1) sum_pi (L)_|pi| phi^(L-|pi|) prod_B M_{a_B,b_B} dt

over all set partitions pi of the factors, A = sum a_j, a_B and b_B the sums over the block B,
(L)_k = L (L-1) ... (L-k+1), phi(t) = E exp(-t e^(tau g)), M_{a,b}(t) = E e^(a tau g) (g-c)^b exp(-t e^(tau g)).
It is evaluated literally: plain trapezoid sums in s = ln t and in g, every partition enumerated,
no rearrangement against cancellation. The working precision (320 bits) pays for the cancellation.
"""
import json
import os
import sys
import time
from flint import arb, arb_mat, ctx, fmpq

ctx.prec = 320
HERE = os.path.dirname(os.path.abspath(__file__))

TAUS = ["0", "1e-8", "0.02", "0.3", "0.7", "1.5", "2.5", "4", "5", "6.5", "8", "10"]
LENGTHS = [1, 2, 3, 4, 5, 10, 100, 1000, 10**6, 10**9, 10**12]
NAMES = ["bias", "mse", "sum_p2", "sum_p3", "sum_p4", "sum_p2_squared", "sum_p2_sum_p3",
         "sum_p2_cubed", "var_mean", "var_second_moment", "var_mse", "var_times_sum_p2",
         "cross", "frob"]

# Products of power sums that are needed; a factor is (a, b).
PRODUCTS = {
    "P11": [(1, 1)],
    "P11^2": [(1, 1)] * 2,
    "P11^4": [(1, 1)] * 4,
    "P12": [(1, 2)],
    "P12^2": [(1, 2)] * 2,
    "P12 P11^2": [(1, 2), (1, 1), (1, 1)],
    "P20": [(2, 0)],
    "P30": [(3, 0)],
    "P40": [(4, 0)],
    "P20^2": [(2, 0)] * 2,
    "P20^3": [(2, 0)] * 3,
    "P20 P30": [(2, 0), (3, 0)],
    "P12 P20": [(1, 2), (2, 0)],
    "P11^2 P20": [(1, 1), (1, 1), (2, 0)],
    "P22": [(2, 2)],
    "P21 P11": [(2, 1), (1, 1)],
    # identities, for the checks: both are exactly 1
    "P10": [(1, 0)],
    "P10^2": [(1, 0)] * 2,
}


def set_partitions(items):
    """All set partitions of a list, as lists of blocks."""
    if not items:
        yield []
        return
    head, rest = items[0], items[1:]
    for part in set_partitions(rest):
        yield [[head]] + part
        for i in range(len(part)):
            yield part[:i] + [[head] + part[i]] + part[i + 1:]


PARTITIONS = {}     # name -> (A, list of lists of block keys (a_B, b_B))
for _name, _factors in PRODUCTS.items():
    _terms = []
    for _pi in set_partitions(list(range(len(_factors)))):
        _terms.append([(sum(_factors[j][0] for j in B), sum(_factors[j][1] for j in B)) for B in _pi])
    PARTITIONS[_name] = (sum(a for a, _ in _factors), _terms)
BLOCKS = sorted({k for _, terms in PARTITIONS.values() for term in terms for k in term})


def dec(text):
    """A decimal literal as an exact rational."""
    mant, _, expo = text.lower().partition("e")
    whole, _, frac = mant.partition(".")
    return fmpq(int(whole + frac)) * fmpq(10) ** (int(expo or 0) - len(frac))


def power_of(x, n):
    """x^n by multiplication (the library's general power returns NaN for balls that contain zero)."""
    out = arb(1)
    for _ in range(n):
        out = out * x
    return out


def nodes(tau_text, step, centre_text=None, g_lo=-16, g_hi=22):
    """Tables of phi and M_{a,b} on the s-grid. Returns (tau, centre, step, [(s, phi, {(a,b): M})])."""
    tau_q = dec(tau_text)
    tau = arb(tau_q)
    centre = arb(tau_q if centre_text is None else dec(centre_text))
    step_q = dec(step)
    s_lo = -(150 + 10 * float(dec_f(tau_text)))
    s_hi = 6 + 14 * float(dec_f(tau_text))
    j_lo, j_hi = int(s_lo / dec_f(step)) - 1, int(s_hi / dec_f(step)) + 1
    # step in g: 1/8 (times step/0.1), or such that tau * step_g = step exactly, so that s + tau g is a lattice
    g_max_step = step_q * fmpq(10) / fmpq(8)
    lattice = tau_q * g_max_step > step_q
    dg = step_q / tau_q if lattice else g_max_step
    dgf = float(int(dg.p)) / float(int(dg.q))
    idx = range(int(g_lo / dgf) - 1, int(g_hi / dgf) + 2)
    root2pi = (2 * arb.pi()).sqrt()
    gs = [arb(dg * fmpq(i)) for i in idx]
    weight = [(-g * g / 2).exp() * arb(dg) / root2pi for g in gs]
    columns = [(0, 0)] + BLOCKS
    table = []
    for i, g in enumerate(gs):
        e1 = (tau * g).exp()
        table.append([weight[i] * power_of(e1, a) * power_of(g - centre, b) for a, b in columns])
    tgf = [dec_f(tau_text) * dgf * i for i in idx]
    zero = arb(0)
    cache = {}

    def kernel(j, n):
        """exp(-e^(s_j + tau g_n)), zero when the exponent exceeds e^8 (below 1e-1290)."""
        if j * dec_f(step) + tgf[n] > 8:
            return zero
        if lattice:
            key = j + idx[n]
            if key not in cache:
                cache[key] = (-arb(step_q * fmpq(key)).exp()).exp()
            return cache[key]
        return (-(arb(step_q * fmpq(j)) + tau * gs[n]).exp()).exp()

    out = []
    block = 64
    for start in range(j_lo, j_hi + 1, block):
        js = range(start, min(start + block, j_hi + 1))
        n_keep = sum(1 for x in tgf if x + js[0] * dec_f(step) <= 8) or 1
        k = arb_mat(len(js), n_keep, [kernel(j, n) for j in js for n in range(n_keep)])
        m = k * arb_mat(n_keep, len(columns), [v for row in table[:n_keep] for v in row])
        for r, j in enumerate(js):
            row = {c: m[r, q] for q, c in enumerate(columns)}
            out.append((arb(step_q * fmpq(j)), row.pop((0, 0)), row))
    return tau, centre, arb(step_q), out


def dec_f(text):
    return float(text)


def expectations(data, length):
    """E of every product in PRODUCTS, by the partition formula."""
    tau, centre, step, rows = data
    total = {name: arb(0) for name in PRODUCTS}
    falling = [arb(1)]
    for k in range(4):
        falling.append(falling[-1] * (length - k))
    for s, phi, m in rows:
        t = s.exp()
        power = [phi ** (length - k) if length > k else arb(1) for k in range(5)]
        front = [falling[k] * power[k] for k in range(5)]
        tp = [power_of(t, a) for a in range(7)]
        for name, (a_total, terms) in PARTITIONS.items():
            acc = arb(0)
            for term in terms:
                if len(term) > length:
                    continue            # the falling factorial is zero
                v = front[len(term)]
                for key in term:
                    v = v * m[key]
                acc += v
            total[name] += acc * tp[a_total]     # t^(A-1) dt = t^A ds
    return {name: v * step / arb(PARTITIONS[name][0]).gamma() for name, v in total.items()}


def moments(data, length):
    tau, centre, _, _ = data
    e = expectations(data, length)
    shift = centre - tau                 # G - tau = P11 + shift
    v = {
        "bias": e["P11"] + shift,
        "mse": e["P11^2"] + 2 * shift * e["P11"] + shift * shift,
        "sum_p2": e["P20"], "sum_p3": e["P30"], "sum_p4": e["P40"],
        "sum_p2_squared": e["P20^2"], "sum_p2_sum_p3": e["P20 P30"], "sum_p2_cubed": e["P20^3"],
        # A = P12 - P11^2 whatever the centre
        "var_mean": e["P12"] - e["P11^2"],
        "var_second_moment": e["P12^2"] - 2 * e["P12 P11^2"] + e["P11^4"],
        "var_times_sum_p2": e["P12 P20"] - e["P11^2 P20"],
        # sum p^2 (g-G)^2 = P22 - 2 P21 P11 + P20 P11^2
        "cross": e["P22"] - 2 * e["P21 P11"] + e["P11^2 P20"],
        # sum_i (p_i - p_i^2)^2 + sum_{i != j} p_i^2 p_j^2
        "frob": e["P20"] - 2 * e["P30"] + e["P20^2"],
    }
    v["var_mse"] = v["var_second_moment"] - 2 * v["var_mean"] + 1
    one = {"one": e["P10"], "one_squared": e["P10^2"]}
    return {n: v[n] for n in NAMES}, one


def closed_form(tau_text, length):
    """tau = 0 (equal weights), or L = 1 (one weight equal to 1); exact rationals."""
    n = fmpq(length)
    tau = dec(tau_text)
    if length == 1:
        v = dict(bias=-tau, mse=1 + tau * tau, sum_p2=1, sum_p3=1, sum_p4=1, sum_p2_squared=1,
                 sum_p2_sum_p3=1, sum_p2_cubed=1, var_mean=0, var_second_moment=0, var_mse=1,
                 var_times_sum_p2=0, cross=0, frob=0)
    elif tau == 0:
        # L A is chi-squared with L - 1 degrees of freedom
        v = dict(bias=0, mse=1 / n, sum_p2=1 / n, sum_p3=1 / n**2, sum_p4=1 / n**3,
                 sum_p2_squared=1 / n**2, sum_p2_sum_p3=1 / n**3, sum_p2_cubed=1 / n**3,
                 var_mean=(n - 1) / n, var_second_moment=(n * n - 1) / n**2,
                 var_mse=(2 * n - 1) / n**2, var_times_sum_p2=(n - 1) / n**2,
                 cross=(n - 1) / n**2, frob=(n - 1) / n**2)
    else:
        return None
    return {k: arb(fmpq(x) if isinstance(x, int) else x) for k, x in v.items()}


def text(x, digits=25):
    if x.is_zero():
        return "0"
    assert x.is_finite() and x.rel_accuracy_bits() > 100, x
    return x.str(digits, radius=False)


def rel(a, b):
    """Relative difference as a float (absolute when b is exactly 0)."""
    if not (a.is_finite() and b.is_finite()):
        return float("inf")
    d = abs(a.mid() - b.mid())
    if not b.is_zero():
        d = d / abs(b.mid())
    return float(d)


def radius(x):
    return 0.0 if x.is_zero() else float(x.rad() / abs(x.mid()))


def generate(step="0.1"):
    result, worst_rad, worst_closed = {}, 0.0, (0.0, "")
    for tau in TAUS:
        t0 = time.time()
        data = nodes(tau, step)
        result[tau] = {}
        for length in LENGTHS:
            v, one = moments(data, length)
            exact = closed_form(tau, length)
            if exact is not None:
                worst_closed = max(worst_closed, max((rel(v[n], exact[n]), f"{n} at tau {tau}, L {length}") for n in NAMES))
                v = exact
            else:
                worst_rad = max(worst_rad, max(radius(x) for x in v.values()))
            result[tau][str(length)] = {n: text(v[n]) for n in NAMES}
        print(f"tau {tau}: {len(data[3])} nodes in s, {time.time() - t0:.0f} s", flush=True)
    with open(os.path.join(HERE, "softmax_moments_wide.json"), "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")
    print(f"largest relative rounding radius {worst_rad:.1e}; "
          f"partition formula against the closed forms (tau = 0 or L = 1) {worst_closed[0]:.1e} ({worst_closed[1]})")


def pair_moments(tau_text, step="0.02"):
    """L = 2 by one integral over D = g1 - g2 ~ N(0,2), no partition formula."""
    tau = arb(dec(tau_text))
    h = dec(step)
    if dec_f(tau_text) > 1:
        h = h / dec(tau_text)
    hf = float(int(h.p)) / float(int(h.q))
    tot = {n: arb(0) for n in NAMES}
    for i in range(-int(20 / hf), int(20 / hf) + 1):
        d = arb(h * fmpq(i))
        w = (-d * d / 4).exp() * arb(h) / (4 * arb.pi()).sqrt()
        p = 1 / (1 + (-tau * d).exp())
        q = 1 / (1 + (tau * d).exp())
        s2, s3, s4 = p**2 + q**2, p**3 + q**3, p**4 + q**4
        dev = (p - q) / 2 * d - tau              # G - tau = mean + dev, mean ~ N(0, 1/2) independent
        a = p * q * d * d
        vals = dict(bias=dev, mse=dev * dev + arb(1) / 2, sum_p2=s2, sum_p3=s3, sum_p4=s4,
                    sum_p2_squared=s2**2, sum_p2_sum_p3=s2 * s3, sum_p2_cubed=s2**3, var_mean=a,
                    var_second_moment=a * a, var_mse=(a - 1) ** 2, var_times_sum_p2=a * s2,
                    cross=2 * (p * q * d) ** 2, frob=4 * (p * q) ** 2)
        for n in NAMES:
            tot[n] += w * vals[n]
    return tot


def check():
    with open(os.path.join(HERE, "softmax_moments_wide.json")) as f:
        ref = json.load(f)

    def against(label, v, tau, length, tol):
        worst = max((rel(v[n], arb(ref[tau][str(length)][n])), n) for n in NAMES)
        return worst

    # 1. other steps (coarser and finer), and another centre (h = g)
    for label, step, centre in [("step 0.16", "0.16", None), ("step 0.05", "0.05", None), ("centre h = g, step 0.1", "0.1", "0")]:
        overall = (0.0, "")
        for tau in TAUS[1:]:
            t0 = time.time()
            data = nodes(tau, step, centre)
            w = (0.0, "")
            for length in LENGTHS[1:]:
                v, one = moments(data, length)
                r, n = against(label, v, tau, length, 1e-20)
                w = max(w, (r, f"{n} at tau {tau}, L {length}"))
                for key in one:
                    w = max(w, (rel(one[key], arb(1)), f"{key} at tau {tau}, L {length}"))
                stein = abs(float((v["bias"] + arb(dec(tau)) * v["sum_p2"]) / v["bias"]))
                w = max(w, (stein, f"Stein at tau {tau}, L {length}"))
            print(f"  {label}: tau {tau}: worst relative difference {w[0]:.1e} ({w[1]}), {time.time() - t0:.0f} s", flush=True)
            overall = max(overall, w)
        print(f"{label}: worst {overall[0]:.1e} ({overall[1]})", flush=True)
    # 2. the pair integral
    overall = (0.0, "")
    for tau in TAUS:
        r, n = against("pair", pair_moments(tau), tau, 2, 1e-20)
        overall = max(overall, (r, f"{n} at tau {tau}"))
    print(f"L = 2 by the integral over g1 - g2: worst {overall[0]:.1e} ({overall[1]})", flush=True)
    # 3. simulation
    import numpy as np
    rng = np.random.default_rng(1)
    worst = (0.0, "")
    for tau, length, n_rep in [("0.7", 3, 4_000_000), ("1.5", 10, 2_000_000), ("2.5", 5, 4_000_000),
                               ("4", 100, 200_000), ("10", 4, 4_000_000), ("0.3", 1000, 20_000)]:
        sums, squares, done = np.zeros(len(NAMES)), np.zeros(len(NAMES)), 0
        while done < n_rep:
            g = rng.standard_normal((min(n_rep - done, max(1, 2_000_000 // length)), length))
            x = float(tau) * g
            p = np.exp(x - x.max(axis=1, keepdims=True))
            p /= p.sum(axis=1, keepdims=True)
            mean = (p * g).sum(axis=1)
            c2 = (g - mean[:, None]) ** 2
            a, s2, s3, s4 = (p * c2).sum(axis=1), (p**2).sum(axis=1), (p**3).sum(axis=1), (p**4).sum(axis=1)
            dev = mean - float(tau)
            frob = ((p - p * p) ** 2).sum(axis=1) + s2 * s2 - s4
            vals = np.array([dev, dev**2, s2, s3, s4, s2**2, s2 * s3, s2**3, a, a * a, (a - 1) ** 2, a * s2,
                             (p**2 * c2).sum(axis=1), frob])
            sums += vals.sum(axis=1)
            squares += (vals**2).sum(axis=1)
            done += len(g)
        m = sums / done
        se = np.sqrt((squares / done - m * m) / done)
        z = [(abs(m[i] - float(ref[tau][str(length)][n])) / se[i], f"{n} at tau {tau}, L {length}") for i, n in enumerate(NAMES)]
        print(f"  simulation tau {tau}, L {length}, {done} draws: worst {max(z)[0]:.1f} standard errors ({max(z)[1]})", flush=True)
        worst = max(worst, max(z))
    print(f"simulation: worst {worst[0]:.1f} standard errors ({worst[1]}), {6 * len(NAMES)} comparisons")


def compare():
    with open(os.path.join(HERE, "softmax_moments.json")) as f:
        old = json.load(f)
    for tau, by_length in old.items():
        data = nodes(tau, "0.1")
        for length, vals in by_length.items():
            v, _ = moments(data, int(length))
            w = max((rel(v[n], arb(vals[n])), n) for n in NAMES if n in vals)
            print(f"tau {tau}, L {length}: worst relative difference {w[0]:.1e} ({w[1]})", flush=True)


if __name__ == "__main__":
    dict(generate=generate, check=check, compare=compare)[sys.argv[1]]()
