#!/usr/bin/env python3
"""Writes values.txt beside it: what an independent implementation (scipy, numpy) says of the same numbers.

    python3 -m venv /tmp/scipy && /tmp/scipy/bin/pip install scipy==1.17.1
    /tmp/scipy/bin/python crates/statistics/tests/all/make.py

A line is a name, its arguments (lists of numbers, `;` between them) and what is expected.
"""
import itertools
import pathlib

import numpy as np
from scipy import optimize, stats

out = []


def say(name, arguments, expected):
    words = lambda it: " ".join(repr(float(x)) for x in np.atleast_1d(np.asarray(it, dtype=float)))
    out.append(f"{name} | {'; '.join(words(it) for it in arguments)} | {words(expected)}")


def trend(x):
    """p of no trend: Spearman's for ten values and more, else Kendall's, exact; ties count as neither order."""
    if len(x) >= 10:
        return stats.spearmanr(np.arange(len(x)), x).pvalue
    if len(set(x)) == len(x) > 1:
        return stats.kendalltau(np.arange(len(x)), x, method="exact").pvalue
    concordance = lambda y: abs(sum(np.sign(y[j] - y[i]) for i in range(len(y)) for j in range(i + 1, len(y))))
    return np.mean([concordance(y) >= concordance(x) for y in itertools.permutations(range(len(x)))])


random = np.random.default_rng(20261128)

# Distributions.
for x in [-9, -3.2, -0.5, 0, 1e-8, 0.7, 1.7, 1.75, 5, 12, 30]:
    say("normal_tail", [x], stats.norm.sf(x))
for tail in [0.5, 0.4999, 0.3, 0.1, 1e-3, 1e-12, 1e-100]:
    say("normal_upper", [tail], stats.norm.isf(tail))
for t, degrees in itertools.product([-40, -1.1, 0, 1e-3, 0.4, 1, 1.9, 7, 200], [1, 1.5, 2, 5.25, 30, 400, 1e4]):
    say("t_two_sided", [t, degrees], 2 * stats.t.sf(abs(t), degrees))
for tail, degrees in itertools.product([0.5, 0.45, 0.2, 0.05, 1e-3, 1e-7], [1, 1.37, 3, 12, 80, 999, 1000, 1500, 1e5]):
    say("t_upper", [tail, degrees], stats.t.isf(tail, degrees))
for tail, degrees in itertools.product([0.999, 0.975, 0.5, 0.1, 0.025, 1e-9], [1, 2, 3.5, 7, 20, 150, 1000]):
    say("chi_squared_upper", [tail, degrees], stats.chi2.isf(tail, degrees))
for probability, trials, chance in itertools.product([0.001, 0.1, 0.499, 0.95], [0, 1, 2, 13, 64, 5000], [0.01, 0.37, 0.5, 0.93]):
    expected = 0 if trials == 0 else stats.binom.ppf(probability, trials, chance)
    say("binomial_quantile", [probability, trials, chance], expected)

# Ranks.
values = np.round(random.normal(0.3, 1.0, 40), 3)
for n in [1, 2, 3, 4, 5, 7, 8, 9, 16, 40]:
    say("midmean", [values[:n]], stats.trim_mean(values[:n], 0.25))
    for share in [0, 0.1, 0.5, 0.77, 1]:
        say("quantile7", [values[:n], share], np.quantile(values[:n], share))


def ranks(n, share, alpha):
    low, high = stats.binom.ppf(alpha / 2, n, share), stats.binom.ppf(1 - alpha / 2, n, share) + 1
    return (low, high) if low >= 1 and high <= n else (0, 0)


for n, share, alpha in itertools.product([1, 5, 6, 7, 60, 1000], [0.1, 0.5, 0.9, 0.99], [0.5, 0.05, 0.01]):
    say("order_statistic_ranks", [n, share, alpha], ranks(n, share, alpha))
for n, alpha in itertools.product([1, 5, 6, 7, 40], [0.5, 0.05, 0.01]):
    low, high = ranks(n, 0.5, alpha)
    ends = [np.sort(values[:n])[int(low) - 1], np.sort(values[:n])[int(high) - 1]] if low else [-np.inf, np.inf]
    say("median_interval", [values[:n], alpha], [np.median(values[:n]), *ends])


def signed_rank(n):
    """How many of 2^n sets of ranks have each sum, as whole numbers."""
    ways = [1]
    for rank in range(1, n + 1):
        ways = [(ways[k] if k < len(ways) else 0) + (ways[k - rank] if k >= rank else 0) for k in range(len(ways) + rank)]
    return ways


def cut(n, alpha):
    if n > 200:
        return np.floor(max(0, n * (n + 1) / 4 - stats.norm.isf(alpha / 2) * np.sqrt(n * (n + 1) * (2 * n + 1) / 24)))
    below, count = 0, 0
    for ways in signed_rank(n):
        below += ways
        if below / 2**n > alpha / 2:
            return count
        count += 1
    return count


for n, alpha in itertools.product([0, 1, 2, 5, 6, 7, 10, 25, 60, 199, 200, 201, 202, 1000], [1.0, 0.2, 0.05, 0.003, 1e-5]):
    say("signed_rank_cut", [n, alpha], cut(n, alpha))
many = np.round(random.standard_t(3, 260) + 0.15, 9)
for n in [1, 2, 5, 9, 20, 49, 200, 201, 202, 260]:
    test = stats.wilcoxon(many[:n], method="exact" if n <= 200 else "approx", correction=n > 200)
    say("signed_rank_p", [many[:n]], test.pvalue)
# Ties share their rank, and a sum between two whole numbers counts as the lower one.
for tied in [[1, 1, -1], [0, 0], [0, 2, 2, 2, -3, 1, 1], [-1, -1, 2, 2, -2, 3, 3, 3, 0], list(np.round(many[:30]))]:
    kept = np.array([x for x in tied if x != 0])
    p = 1.0
    if len(kept):
        rank = stats.rankdata(abs(kept))
        smaller = int(min(rank[kept > 0].sum(), rank[kept < 0].sum()))
        p = min(1.0, 2 * sum(signed_rank(len(kept))[: smaller + 1]) / 2 ** len(kept))
    say("signed_rank_p", [tied], p)
for n, alpha in itertools.product([1, 2, 5, 6, 12, 40], [0.3, 0.05, 0.001]):
    walsh = np.sort([(values[i] + values[j]) / 2 for i in range(n) for j in range(i, n)])
    k = cut(n, alpha)
    ends = [walsh[k - 1], walsh[len(walsh) - k]] if k else [-np.inf, np.inf]
    say("hodges_lehmann", [values[:n], alpha], [np.median(walsh), *ends])
wide = random.normal(0, 1, 230).round(3)
walsh = np.sort([(wide[i] + wide[j]) / 2 for i in range(230) for j in range(i, 230)])
k = int(cut(230, 0.05))
say("hodges_lehmann", [wide, 0.05], [np.median(walsh), walsh[k - 1], walsh[len(walsh) - k]])

# Inference.
for n in [1, 2, 3, 9, 40]:
    interval = stats.t.interval(0.9, n - 1, values[:n].mean(), stats.sem(values[:n])) if n > 1 else [-np.inf, np.inf]
    say("t_interval", [values[:n], 0.1], [values[:n].mean(), *interval])


def lag1(x):
    d = x - x.mean()
    return 0.0 if len(x) < 3 or (d**2).sum() == 0 else (d[1:] * d[:-1]).sum() / (d**2).sum()


for series in [values[:2], values[:3], values, np.arange(12.0), np.ones(5)]:
    say("lag1", [series], lag1(series))


def merged(x):
    batch = 1
    while len(x) >= 16 and lag1(x) > 1.645 / np.sqrt(len(x)):
        x = (x[: len(x) // 2 * 2 : 2] + x[1::2]) / 2
        batch *= 2
    return batch, x


walk = np.cumsum(random.normal(0, 1, 70)).round(3)
for series in [walk[:15], walk[:16], walk[:17], walk[:31], walk[:33], walk, values]:
    batch, rest = merged(series)
    say("merged", [series], [batch, *rest])
for series in [values[:1], values[:5], np.round(values[:8], 0), -np.arange(8.0), values[:9], values[:10], values[:11], np.round(values, 0), walk, -walk, np.arange(10.0), -np.arange(11.0)]:
    p = trend(series)
    say("trend_p", [series], 0.0 if p < 1e-60 else p)
for alpha, comparisons in itertools.product([0.2, 0.05, 1e-3], [0, 1, 2, 7, 100]):
    say("sidak", [alpha, comparisons], -np.expm1(np.log1p(-alpha) / max(comparisons, 1)))
p = np.array([0.004, 0.03, 0.011, 0.6, 0.011, 1.0, 0.2, 0.012, 0.04])
order = np.argsort(p, kind="stable")
adjusted = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))[np.argsort(order)]
say("holm_adjusted", [p], adjusted)
for alpha in [0.01, 0.037, 0.05, 0.077, 0.1, 0.3, 0.99]:
    say("holm", [p, alpha], adjusted <= alpha)
    say("discoveries", [p, alpha], stats.false_discovery_control(p) <= alpha)

# When to stop.
def sequence(x, alpha):
    """Waudby-Smith et al., arXiv 2103.06476, with rho tuned to be tightest at 30."""
    n = len(x)
    rho2 = (-2 * np.log(alpha) + np.log(1 - 2 * np.log(alpha))) / 30
    half = np.std(x, ddof=1) * np.sqrt(2 * (n * rho2 + 1) / (n**2 * rho2) * np.log(np.sqrt(n * rho2 + 1) / alpha))
    half *= stats.t.isf(alpha / 2, n - 1) / stats.norm.isf(alpha / 2)
    return [np.mean(x), np.mean(x) - half, np.mean(x) + half]


for n, alpha in itertools.product([2, 5, 40], [0.2, 0.05]):
    say("confidence_sequence", [values[:n], alpha], sequence(values[:n], alpha))


def more(x, target, each, alpha):
    n = len(x)
    scatter = np.var(x, ddof=1) * (n - 1) / stats.chi2.isf(0.8, n - 1)
    needed = n
    while stats.t.isf(alpha / 2, needed - 1) * np.sqrt(scatter / needed) > target:
        needed = max(needed + 1, int(needed * 1.02))
    return (needed - n) * each


for n, target, each, alpha in [(2, 9.0, 1, 0.1), (5, 0.5, 2, 0.05), (40, 0.5, 1, 0.05), (40, 0.1, 0.25, 0.01), (40, 0.02, 3, 0.05)]:
    say("predict_more", [values[:n], target, each, alpha], more(values[:n], target, each, alpha))

# Sums of frames, and interchangeable starts.
for n, alpha in itertools.product([2, 3, 12], [0.05, 0.2]):
    costs, counts = np.exp(values).round(3), np.round(50 + 10 * values)
    sums = [costs[:n], counts[:n], costs[12 : 12 + n], counts[20 : 20 + n]]
    for name, of in [
        ("ratio_effect", lambda a, b, c, d: np.log((c.sum() / d.sum()) / (a.sum() / b.sum()))),
        ("total_difference", lambda a, b, c, d: c.sum() / d.sum() - a.sum() / b.sum()),
    ]:
        estimate = of(*sums)
        without = np.array([of(*(np.delete(it, i) for it in sums)) for i in range(n)])
        error = np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum())
        # The estimate minus the mean of the pseudo-values is the bias; the interval is centred on the estimate.
        half = stats.t.isf(alpha / 2, n - 1) * error
        say(name, [*sums, alpha], [estimate, estimate - half, estimate + half])
for n in [4, 5, 30]:
    test = stats.ttest_1samp(values[:n], 0)
    say("persistence", [values[:n]], [values[:n].mean(), test.statistic, n, test.pvalue])
for scale in [0.01, 0.03, 0.05, 0.1, 0.2]:
    steps = [scale * values[8 * i : 8 * i + 8] + np.log([1, 1.9, 2.5, 2.4, 2.45][i]) for i in range(5)]
    gains = [
        np.mean(b) - np.mean(a) + stats.norm.isf(0.05) * np.hypot(stats.sem(a), stats.sem(b)) for a, b in zip(steps, steps[1:])
    ]
    say("saturation", steps, next((i + 1 for i, gain in enumerate(gains) if gain < np.log(1.05)), 0))

# Over starts.
def paule_mandel(effects, variances, expected):
    def q(between):
        w = 1 / (variances + between)
        return (w * (effects - (w * effects).sum() / w.sum()) ** 2).sum() - expected
    return 0.0 if q(0) <= 0 else optimize.brentq(q, 0, 1e3, xtol=1e-16, rtol=1e-14)


def pooled(effects, variances, own, alpha):
    k = len(effects)
    between = paule_mandel(effects, variances, k - 1)
    w = 1 / (variances + between)
    mean = (w * effects).sum() / w.sum()
    scale = (w * (effects - mean) ** 2).sum() / (k - 1)
    half = stats.t.isf(alpha / 2, k - 1) * np.sqrt((max(1.0, scale) if own else scale) / w.sum())
    ends = [paule_mandel(effects, variances, stats.chi2.isf(tail, k - 1)) for tail in [alpha / 2, 1 - alpha / 2]]
    return [mean, mean - half, mean + half, *np.sqrt([between, *ends])]


for k, own, alpha in itertools.product([2, 3, 9], [0, 1], [0.05, 0.2]):
    effects, variances = values[:k], values[20 : 20 + k] ** 2 + 0.01
    say("pooled", [effects, variances, own, alpha], pooled(effects, variances, own, alpha))

hl = lambda x: np.median([(x[i] + x[j]) / 2 for i in range(len(x)) for j in range(i, len(x))])
t_two = lambda t, degrees: 2 * stats.t.sf(abs(t), degrees)
# Effects with their start: centre, ends, p, trend, number of values, variance within (-1 if unknown).
for lengths, alpha in itertools.product([[4, 4, 4, 4], [3, 5, 2, 4, 4, 6], [1, 1, 2, 1, 1]], [0.05, 0.2]):
    starts = np.split(values[: sum(lengths)], np.cumsum(lengths)[:-1])
    effects = np.array([hl(x) for x in starts])
    within = sum(((x - x.mean()) ** 2).sum() for x in starts) / (sum(lengths) - len(lengths))
    mean, low, high, spread, *_ = pooled(effects, within / np.array(lengths), False, alpha)
    error = (high - low) / 2 / stats.t.isf(alpha / 2, len(lengths) - 1)
    placed = [(place, x[place] - x.mean()) for x in starts for place in range(len(x))]
    placed = [x for _, x in sorted(placed, key=lambda it: it[0])]
    names = np.repeat(np.arange(len(lengths)), lengths)
    expected = [mean, low, high, t_two(mean / error, len(lengths) - 1), trend(placed), len(placed), within]
    say("infer_over_starts", [names, values[: sum(lengths)], alpha], expected)
# One to three starts: the frames' interval about the mean of the starts, widened by a known spread.
for lengths, alpha, known, degrees in [([9], 0.05, 0.4, 7), ([4, 5], 0.05, 0.1, 11), ([2, 3, 3], 0.1, 1.5, 4), ([6, 2], 0.05, 0, 3)]:
    starts = np.split(values[: sum(lengths)], np.cumsum(lengths)[:-1])
    shares = np.array(lengths) / sum(lengths)
    centre = sum(share * hl(x) for share, x in zip(shares, starts))
    frames = np.concatenate([x - hl(x) + centre for x in starts])
    mean, half = frames.mean(), stats.t.isf(alpha / 2, len(frames) - 1) * stats.sem(frames)
    p = stats.wilcoxon(frames, method="exact").pvalue
    if known:
        quantile = stats.t.isf(alpha / 2, degrees)
        half = np.hypot(half, quantile * known * np.sqrt((shares**2).sum()))
        p = max(p, t_two(mean * quantile / half, degrees))
    names = np.repeat(np.arange(len(lengths)), lengths)
    say("widened", [names, values[: sum(lengths)], alpha, known, degrees], [mean, mean - half, mean + half, p])

target = pathlib.Path(__file__).with_name("values.txt")
target.write_text("# Made by make.py, scipy 1.17.1 and numpy.\n" + "\n".join(out) + "\n")
print(len(out), "values")
