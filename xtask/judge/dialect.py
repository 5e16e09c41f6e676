"""Differences of dialect: where both engines are right by their own books.

Each has a reason and a test of what was seen. The list is short: queries that both engines read alike are better than
excuses.
"""

MOST = (1 << 63) - 1


def numbers(outcome):
    """All integers of a result."""
    return [value for row in outcome.rows or [] for value in row if isinstance(value, int)]


# Reason, and a test of the SQL and of the outcomes of both engines.
DIFFERENCES = [
    (
        "SUM of integers is BIGINT here, with an error beyond it; DuckDB's is HUGEINT",
        lambda sql, ours, theirs: "overflow" in (ours.error or "").lower()
        and "sum(" in sql
        and any(abs(value) > MOST for value in numbers(theirs)),
    ),
]


def reason(sql, ours, theirs):
    """Why a difference is none, or nothing."""
    return next((text for text, holds in DIFFERENCES if holds(sql, ours, theirs)), None)
