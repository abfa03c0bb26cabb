"""A plan's graph for the eye: levels of nodes, and stretches of nodes that are drawn as one box."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

from miserly.costs import set_bits
from miserly.plan import EXIT, Plan

MOST_BOXES = 16


@dataclass(frozen=True)
class Box:
    """Nodes that follow each other without a choice; the last one's gate decides where rows go."""

    nodes: tuple[int, ...]
    acquisitions: int

    @property
    def last(self) -> int:
        """The node whose gate ends it."""
        return self.nodes[-1]


def levels(plan: Plan) -> list[list[int]]:
    """The nodes by the length of the longest way there; further roots come after all levels of the roots before."""
    found: list[list[int]] = []
    for root in plan.roots:
        depth = {root: 0}
        for k in range(root, len(plan.nodes)):
            for way in plan.nodes[k].ways if k in depth else ():
                if way != EXIT:
                    depth[way] = max(depth.get(way, 0), depth[k] + 1)
        found += [[k for k in sorted(depth) if depth[k] == d] for d in range(max(depth.values()) + 1)]
    return found


def boxes(plan: Plan, most: int = MOST_BOXES) -> list[Box]:
    """The plan's nodes in their order: those that buy nothing join the one before; if there are still more than `most`,
    stretches without a choice are cut into fewer, longer boxes."""
    entries = Counter(way for node in plan.nodes for way in node.ways)
    stretches: list[list[list[int]]] = []  # of boxes, each a list of nodes
    for k in range(len(plan.nodes)):
        before = plan.nodes[k - 1] if k else None
        follows = before is not None and before.gate.kind == "open" and before.passed == k
        if not (follows and entries[k] == 1 and k not in plan.roots):
            stretches.append([[k]])
        elif plan.tables.new_acquisitions(k):
            stretches[-1].append([k])
        else:
            stretches[-1][-1].append(k)
    total = sum(len(stretch) for stretch in stretches)
    if total > most:
        stretches = [_merged(stretch, max(1, most * len(stretch) // total)) for stretch in stretches]
    return [Box(tuple(nodes), _bought(plan, nodes)) for stretch in stretches for nodes in stretch]


def leaves(plan: Plan) -> list[int]:
    """The nodes at which rows may end."""
    return [k for k, node in enumerate(plan.nodes) if EXIT in node.ways]


def everything(plan: Plan) -> int:
    """All acquisitions that the plan may buy, as a bit set."""
    bought = 0
    for k in range(len(plan.nodes)):
        bought |= plan.tables.purchase(k)[0]
    return bought


def names(plan: Plan, acquisitions: int) -> list[str]:
    """A bit set of acquisitions by name."""
    return [plan.costs.acquisitions[a] for a in set_bits(acquisitions)]


def _bought(plan: Plan, nodes: list[int]) -> int:
    bought = 0
    for k in nodes:
        bought |= plan.tables.new_acquisitions(k)
    return bought


def _merged(stretch: list[list[int]], n: int) -> list[list[int]]:
    """A stretch in n boxes of about as many purchases each."""
    edges = [round(i * len(stretch) / n) for i in range(n + 1)]
    return [[k for box in stretch[a:b] for k in box] for a, b in pairwise(edges)]
