"""A table as hospitals have it, drawn at random: words, dates, identifiers, decimal commas, marks, a leaking column."""

from __future__ import annotations

import io

import numpy as np

WARDS = ("cardiology", "surgery", "oncology", "trauma")
SMOKING = ("never", "former", "current")
_DAY_ONE = np.datetime64("2023-01-01")


def hospital_csv(n: int, seed: int) -> str:
    """The text of a CSV file with a byte-order mark, semicolons and decimal commas: one line per patient.

    Lactate and ward decide most; `discharge` is written after the outcome `died` and gives it away.

    Parameters
    ----------
    n : int
        Patients, 1 or more.
    seed : int
        Seed of the generator.

    Returns
    -------
    str
        The text of the file.

    Examples
    --------
    >>> hospital_csv(3, seed=0).splitlines()[1][:8]
    'P100000;'
    """
    rng = np.random.default_rng(seed)
    age, crp = rng.integers(19, 96, n), rng.gamma(1.5, 30.0, n)
    lactate, ward = rng.gamma(2.0, 1.2, n), rng.integers(0, len(WARDS), n)
    smoking, oxygen = rng.integers(0, len(SMOKING), n), rng.random(n) < 0.3
    risk = 0.05 * (age - 60) + 0.9 * (lactate - 2.4) + 1.2 * (ward == 2) + 0.01 * crp + 0.8 * oxygen
    died = risk + rng.logistic(size=n) > 1.0
    admitted = _DAY_ONE + rng.integers(0, 700, n)
    file = io.StringIO()
    file.write("\ufeffpatient;admitted;country;age;ward;smoking;oxygen;crp [mg/l];lactate [mmol/l];discharge;died\n")
    gone = rng.random((n, 3)) < (0.05, 0.2, 0.15)
    for i in range(n):
        day = str(admitted[i]).split("-")[::-1]
        cells = (
            f"P{100000 + 7 * i}",
            ".".join(day),
            "CH",
            str(age[i]),
            WARDS[ward[i]],
            "n/a" if gone[i, 0] else SMOKING[smoking[i]],
            "ja" if oxygen[i] else "nein",
            "" if gone[i, 1] else ">120" if crp[i] > 120 else _comma(crp[i], 1),
            "-" if gone[i, 2] else _comma(lactate[i], 2),
            "mortuary" if died[i] else "home",
            "yes" if died[i] else "no",
        )
        file.write(";".join(cells) + "\n")
    return file.getvalue()


def _comma(value: float, digits: int) -> str:
    return f"{value:.{digits}f}".replace(".", ",")
