"""What the extractors know from training mails: how often a sender wrote spam, what each word and sequence tells.

These figures contain the labels. So training rows get theirs from the other folds (`out_of_fold`): otherwise a model
would trust them more than they deserve on mails that nobody has seen. Weights are whole numbers (64ths of a nat), so a
sum does not depend on its order.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from examples.spam import parsing

SCALE = 64.0
MIN_MAILS = 3
N_STRONGEST = 10
N_FIRST_GRAMS = 400
LEARNT = (
    "address_rate",
    "address_seen",
    "domain_rate",
    "domain_seen",
    "subject_evidence",
    "subject_for",
    "subject_against",
    "words_evidence",
    "words_mean",
    "words_for",
    "words_against",
    "grams_mean",
    "grams_first",
)


class Evidence(NamedTuple):
    """The parts of a mail about which something can be learnt."""

    sender: parsing.Sender
    subject: frozenset[str]
    words: frozenset[str]
    grams: NDArray[np.uint16]
    different_grams: NDArray[np.uint16]

    @classmethod
    def of(cls, mail: bytes) -> Evidence:
        """Read them from a mail."""
        letter = parsing.split_mail(mail)
        text = parsing.read_text(parsing.parse_mime(mail))
        grams = parsing.grams_of(text).astype(np.uint16)
        subject = parsing.subject_words(parsing.subject_of(letter))
        words = frozenset(parsing.words_of(text))
        return cls(parsing.sender_of(letter), frozenset(subject), words, grams, np.unique(grams))


@dataclass(frozen=True)
class Knowledge:
    """Counts of senders (spam, all) and weights of words and of hashed sequences; empty before anything is learnt."""

    prior: float = 0.5
    addresses: Mapping[bytes, tuple[int, int]] = field(default_factory=dict)
    domains: Mapping[bytes, tuple[int, int]] = field(default_factory=dict)
    subject: Mapping[str, int] = field(default_factory=dict)
    words: Mapping[str, int] = field(default_factory=dict)
    grams: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1 << parsing.GRAM_BITS, np.int64))

    def of_sender(self, sender: parsing.Sender) -> list[float]:
        """Smoothed rate of spam and number of mails of the address, then of its domain."""
        figures = []
        for known, key in ((self.addresses, sender.address), (self.domains, sender.domain)):
            spam, n = known.get(key, (0, 0))
            figures += [(spam + self.prior) / (n + 1.0), float(n)]
        return figures

    def of_subject(self, words: Iterable[str]) -> list[float]:
        """The sum of the weights, the largest and the smallest."""
        weights = [self.subject[w] for w in words if w in self.subject]
        return [float(sum(weights)), float(max(weights, default=0)), float(min(weights, default=0))]

    def of_words(self, words: Iterable[str]) -> list[float]:
        """Sum and mean of the weights, the sum of the ten strongest for spam and against it."""
        known = self.words
        weights = sorted([known[w] for w in words if w in known])
        total = float(sum(weights))
        strongest = float(sum(weights[-N_STRONGEST:])), float(sum(weights[:N_STRONGEST]))
        return [total, total / max(len(weights), 1), *strongest]

    def of_grams(self, grams: NDArray[Any]) -> list[float]:
        """The mean weight of all, and of the first few hundred."""
        weights = self.grams[grams]
        first = weights[:N_FIRST_GRAMS]
        return [int(weights.sum()) / max(len(weights), 1), int(first.sum()) / max(len(first), 1)]

    def figures(self, evidence: Evidence) -> list[float]:
        """All that was learnt about a mail, in the order of `LEARNT`."""
        return [
            *self.of_sender(evidence.sender),
            *self.of_subject(evidence.subject),
            *self.of_words(evidence.words),
            *self.of_grams(evidence.grams),
        ]


def learn(evidence: Sequence[Evidence], is_spam: Sequence[bool] | NDArray[Any]) -> Knowledge:
    """Count in how many mails of each kind a sender, a word, a sequence occurs."""
    n = [0, 0]
    senders = [Counter[bytes](), Counter[bytes]()]
    domains = [Counter[bytes](), Counter[bytes]()]
    subject = [Counter[str](), Counter[str]()]
    words = [Counter[str](), Counter[str]()]
    grams = np.zeros((2, 1 << parsing.GRAM_BITS))
    for mail, spam in zip(evidence, is_spam):
        kind = int(spam)
        n[kind] += 1
        senders[kind][mail.sender.address] += 1
        domains[kind][mail.sender.domain] += 1
        subject[kind].update(mail.subject)
        words[kind].update(mail.words)
        grams[kind, mail.different_grams] += 1
    weights = np.log((grams[1] + 0.5) / (n[1] + 1)) - np.log((grams[0] + 0.5) / (n[0] + 1))
    weights[grams.sum(axis=0) < MIN_MAILS] = 0.0
    return Knowledge(
        prior=n[1] / max(sum(n), 1),
        addresses=_pairs(*senders),
        domains=_pairs(*domains),
        subject=_weights(*subject, n),
        words=_weights(*words, n),
        grams=np.rint(weights * SCALE).astype(np.int64),
    )


def out_of_fold(evidence: Sequence[Evidence], is_spam: NDArray[Any], n_folds: int = 5, seed: int = 0) -> NDArray[Any]:
    """The figures of each training mail, learnt from the mails of the other folds."""
    fold = np.random.default_rng(seed).permutation(len(evidence)) % n_folds
    figures = np.empty((len(evidence), len(LEARNT)))
    for k in range(n_folds):
        known = learn([e for e, f in zip(evidence, fold) if f != k], is_spam[fold != k])
        for i in np.flatnonzero(fold == k).tolist():
            figures[i] = known.figures(evidence[i])
    return figures


def _pairs(ham: Counter[bytes], spam: Counter[bytes]) -> dict[bytes, tuple[int, int]]:
    return {key: (spam[key], ham[key] + spam[key]) for key in ham.keys() | spam.keys() if key}


def _weights(ham: Counter[str], spam: Counter[str], n: Sequence[int]) -> dict[str, int]:
    """Naive Bayes: the logarithm of how much likelier a word is in spam, for words that are not too rare."""
    rates = math.log((n[1] + 1) / (n[0] + 1))
    return {
        word: round(SCALE * (math.log((spam[word] + 0.5) / (ham[word] + 0.5)) - rates))
        for word in ham.keys() | spam.keys()
        if ham[word] + spam[word] >= MIN_MAILS
    }
