"""Draws one query by its shape, and how it is run."""

from changes import Changing
from expressions import ZONES
from forms import CLOCKS
from query import Query
from tree import Node, literals

SHAPES = [
    ("plain", 18),
    ("star", 8),
    ("counted", 8),
    ("aggregate", 22),
    ("grouping", 10),
    ("nested", 10),
    ("semi", 9),
    ("scalar", 6),
    ("united", 7),
    ("window", 14),
    ("qualified", 6),
    ("zoned", 5),
    ("overflowing", 4),
    ("correlated", 16),
    ("firsts", 5),
    ("constants", 5),
    ("rowless", 4),
    ("shared", 8),
    ("guarded", 6),
    ("sampled", 4),
    ("sorted", 8),
    ("missing", 4),
    ("sequence", 8),
    ("functions", 18),
    ("pivoted", 4),
    ("unpivoted", 3),
    ("nearest", 5),
    ("summarized", 3),
    ("spread", 5),
    ("lambdas", 5),
    ("blobs", 4),
    ("documents", 5),
    ("identities", 3),
    ("clocked", 6),
]


def draw(rng, device, only=None):
    """One query, of one shape if that is asked for; half of those for a device are of what it takes."""
    queries = Changing(rng)
    shape = only or rng.choices([name for name, _ in SHAPES], [weight for _, weight in SHAPES])[0]
    if not only and device != "cpu" and rng.random() < 0.5:
        shape = rng.choice(["aggregate", "counted", "grouping", "window", "qualified", "correlated"])
    statement = getattr(queries, shape)()
    if isinstance(statement, Query):
        return statement
    query = Query(shape, Node("whole", statement), queries.views)
    if shape == "zoned" and rng.random() < 0.4:
        query.zone = rng.choice(ZONES)
    if shape == "clocked":
        query.zone = rng.choice(CLOCKS)
    found = literals(query.statement)
    way = rng.random() * (0.5 if shape == "nested" else 1.0)
    if found and way < 0.4:
        query.is_prepared = way < 0.12 and any(literal.is_bound for literal in found)
        query.runs = [
            {literal: rng.choice(literal.pool) for literal in found if literal.is_bound or not query.is_prepared}
            for _ in range(rng.choice([2, 2, 3]))
        ]
    return query
