from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_scheduler_operator.scheduling.policies import beta

# Known in closed form, or from tables (P(U <= x) of Beta(a, b)).
KNOWN = [
    (0.3, 1.0, 1.0, 0.3),
    (0.3, 2.0, 1.0, 0.09),
    (0.3, 1.0, 3.0, 1.0 - 0.7**3),
    (0.5, 7.0, 7.0, 0.5),
    (0.25, 0.5, 0.5, 2.0 / math.pi * math.asin(0.5)),
    (0.0, 2.0, 3.0, 0.0),
    (1.0, 2.0, 3.0, 1.0),
    (0.6, 2.0, 3.0, 6 * 0.6**2 - 8 * 0.6**3 + 3 * 0.6**4),
]


@pytest.mark.parametrize(("x", "a", "b", "expected"), KNOWN)
def test_known_values(x: float, a: float, b: float, expected: float) -> None:
    found = beta.distribution(np.array([x]), np.array([a]), np.array([b]))
    assert found[0] == pytest.approx(expected, abs=1e-12)


def numerically(x: float, a: float, b: float) -> float:
    """The integral by the midpoint rule, after the substitution t = u² for the singularity at 0."""
    constant = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b))
    steps = 20000
    u = (np.arange(steps) + 0.5) * math.sqrt(x) / steps
    inside = 2.0 * u ** (2 * a - 1) * (1 - u**2) ** (b - 1)
    return float(constant * inside.sum() * math.sqrt(x) / steps)


@given(st.floats(0.01, 0.95), st.floats(0.6, 60), st.floats(0.6, 60))
def test_the_distribution_is_the_integral_of_the_density(x: float, a: float, b: float) -> None:
    found = beta.distribution(np.array([x]), np.array([a]), np.array([b]))
    assert found[0] == pytest.approx(numerically(x, a, b), abs=2e-5)


@given(st.floats(0.05, 0.95), st.floats(-3, 3))
def test_the_approximation_of_narrow_distributions_is_continuous(mean: float, z: float) -> None:
    for total in (beta.NARROW * 0.999, beta.NARROW * 1.001):
        deviation = math.sqrt(mean * (1 - mean) / (total + 1))
        x = np.array([mean + z * deviation])
        a, b = np.array([mean * total]), np.array([(1 - mean) * total])
        exact = beta._incomplete(x, a, b)[0]
        nearly = beta._nearly_normal(float(x[0]), float(a[0]), float(b[0]))
        assert nearly == pytest.approx(exact, abs=1e-4)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(1e-3, 1e6), st.floats(1e-3, 1e6))))
def test_values_are_probabilities_and_equal_in_arrays(
    given: list[tuple[float, float, float]],
) -> None:
    x, a, b = np.array(given).reshape(-1, 3).T
    together = beta.distribution(x, a, b)
    assert ((together >= 0) & (together <= 1)).all()
    for at in range(len(given)):
        alone = beta.distribution(x[at : at + 1], a[at : at + 1], b[at : at + 1])
        assert alone[0] == pytest.approx(together[at], abs=1e-9)


@given(st.floats(0.01, 0.99), st.floats(1e-4, 0.5))
def test_the_shape_has_the_given_mean_and_standard_deviation(mean: float, deviation: float) -> None:
    a, b = (float(each[0]) for each in beta.shape(np.array([mean]), np.array([deviation])))
    if deviation**2 < 0.999 * mean * (1 - mean):
        assert a / (a + b) == pytest.approx(mean)
        assert math.sqrt(a * b / (a + b + 1)) / (a + b) == pytest.approx(deviation)
    elif deviation**2 > 1.001 * mean * (1 - mean):
        assert a <= 0
        assert b <= 0
