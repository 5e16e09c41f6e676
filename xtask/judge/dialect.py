"""Differences of dialect: where both engines are right by their own books.

Each has a reason and a test of what was seen. The list is short: queries that both engines read alike are better than
excuses.
"""

import math
import re

from compare import NAN, difference

MOST = (1 << 63) - 1


def numbers(outcome):
    """All integers of a result."""
    return [value for row in outcome.rows or [] for value in row if isinstance(value, int)]


def without_infinities(outcome):
    """The rows of a result with NaN in place of infinities."""
    rows = outcome.rows or []
    return [tuple(NAN if value in (math.inf, -math.inf) else value for value in row) for row in rows]


# Reason, and a test of the SQL and of the outcomes of both engines.
DIFFERENCES = [
    (
        "MEDIAN of REAL between two equal infinities is that infinity, as of DOUBLE; DuckDB's of REAL is NaN",
        lambda sql, ours, theirs: "median(" in sql
        and not (ours.error or theirs.error)
        and not difference(without_infinities(ours), without_infinities(theirs), False),
    ),
    (
        "SUM of integers is BIGINT here, with an error beyond it; DuckDB's is HUGEINT",
        lambda sql, ours, theirs: "overflow" in (ours.error or "").lower()
        and "sum(" in sql
        and any(abs(value) > MOST for value in numbers(theirs)),
    ),
    (
        "the hour that clocks show twice: date_trunc keeps the offset here, as in PostgreSQL; DuckDB takes the later one",
        lambda sql, ours, theirs: "date_trunc('hour'" in sql and not ours.error and not theirs.error,
    ),
    (
        "GROUP BY x, x::date is refused, an error that docs/sql.md names",
        lambda sql, ours, theirs: "Projections require unique expression names" in (ours.error or "")
        and "GROUP BY" in sql
        and "CAST(" in ours.error,
    ),
    (
        "times of two units need a cast in NULLIF, COALESCE and IS DISTINCT FROM, an error that docs/sql.md names",
        lambda sql, ours, theirs: "SQL-004" in (ours.error or "")
        and ("Cannot infer common argument type" in ours.error and "TIME IS" in ours.error)
        or re.search(r"(nullif|coalesce)\(TIME, TIME\) does not exist", ours.error or "") is not None,
    ),
    (
        "a row that several rows of FROM, USING or MERGE match is an error here; DuckDB takes one of them",
        lambda sql, ours, theirs: "would change twice" in (ours.error or "")
        and sql.startswith(("UPDATE", "DELETE", "MERGE", "EXECUTE")),
    ),
]


def reason(sql, ours, theirs):
    """Why a difference is none, or nothing."""
    return next((text for text, holds in DIFFERENCES if holds(sql, ours, theirs)), None)


def refused(ours, theirs):
    """What Warpcube refuses by name and DuckDB answers, without the names and numbers of the statement; or nothing."""
    found = REFUSAL.search(ours.error or "")
    if not found or theirs.error:
        return None
    words = re.sub(r"'[^']*'|\"[^\"]*\"|\b[a-z]\w*\.\w+", "…", found[0].splitlines()[0])
    return re.sub(r"\d+", "#", words)[:90]


REFUSAL = re.compile(r"SQL-005.*|.*supported.*|.*Correlated scalar subquery must be aggregated.*")
