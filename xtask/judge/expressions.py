"""Expressions of each kind, over the columns in scope, that both engines read alike.

Kinds: `int` (small integers, arithmetic is safe), `wide` (integers of every width, no arithmetic), `float` (eighths,
NaN, infinities: sums are exact), `extreme` (any double, no arithmetic), `decimal`, `huge` (38 digits, no arithmetic),
`text`, `bool`, `date`, `timestamp`, `instant` (with a zone), `time`, `interval` (of no column: differences of
timestamps, which are days and time; values are compared by their length).

What the engines read differently is not generated: `/` of integers, casts of fractions to integers, numbers and
timestamps as text, case mapping beyond ASCII, ORDER BY without NULLS FIRST or LAST.
"""

import tables
from tree import Literal, Node, Seq, is_column, walk

KINDS = ["int", "wide", "float", "extreme", "decimal", "huge", "text", "bool", "date", "timestamp", "instant", "time"]
KINDS += ["interval"]
# Kinds that columns of results are drawn from, the common ones more often.
DRAWN = KINDS + ["int", "int", "float", "decimal", "text", "text", "bool", "date", "timestamp", "instant"]

# fmt: off
POOLS = {
    "int": ["0", "1", "2", "3", "5", "7", "9", "-1", "-3", "100", "-500", "1000"],
    "wide": ["0", "1", "-1", "100", "127", "-128", "255", "32767", "-32768", "65535", "2147483647", "-2147483648",
             "4294967295", "9223372036854775807", "-9223372036854775807"],
    "float": ["0e0", "-0e0", "0.125e0", "1e0", "-1e0", "1.5e0", "-2.25e0", "3e0", "1e1", "9.9875e1", "'NaN'::double",
              "'inf'::double", "'-inf'::double"],
    "extreme": ["0e0", "1e300", "-1e-300", "5e-324", "1e-1", "1.7976931348623157e308", "'NaN'::double", "'inf'::double",
                "'-inf'::double"],
    "decimal": ["0.00", "0.01", "-0.01", "4.07", "4.70", "1.10", "19.99", "100.0", "-19.99", "0.5", "500", "2.505",
                "'4.07'::decimal(12,2)"],
    "huge": ["0", "1", "-1", "0.0000000001", "9999999999999999999999999999.9999999999", "12345678901234567890.123456789"],
    "text": [f"'{word}'" for word in tables.WORDS if "\t" not in word] + [f"'{word}'" for word in tables.COLOURS],
    "bool": ["true", "false"],
    "date": [f"DATE '{date}'" for date in tables.DATES + tables.EDGE_DATES[1:]],
    "timestamp": [f"TIMESTAMP '{when}'" for when in tables.MOMENTS],
    "instant": [f"TIMESTAMPTZ '{when}+00:00'" for when in tables.MOMENTS]
    + ["TIMESTAMPTZ '2021-03-28 03:30:00+02:00'", "TIMESTAMPTZ '2019-12-31 19:00:00-05:00'"],
    "time": [f"TIME '{time}'" for time in tables.TIMES],
    "interval": [f"INTERVAL '{apart}'" for apart in ["0 days", "1 day", "24 hours", "1 month", "30 days", "12 months",
                 "1 year", "90 minutes", "-1 day", "452 days 90 minutes", "669 days", "1 second", "-18262 days"]],
}
PATTERNS = ["'a%'", "'%b'", "'%an%'", "'_b%'", "''", "'%'", "'%é%'", "'_'", "'日%'", "'A%'", "'%x_y%'", "'__'", "'🦀%'",
            "'%e%e%'", "'red'", "'%bytes'"]
# fmt: on
COMPARISONS = ["=", "<>", "<", "<=", ">", ">="]
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"]


class Scope:
    """Columns that a query sees: text and kind of each, and the texts that together tell rows apart."""

    def __init__(self, columns, keys):
        self.columns, self.keys = columns, keys

    def of(self, kind):
        """Columns of a kind."""
        return [text for text, other in self.columns if other == kind]


class Expressions:
    """Draws expressions with a source of random numbers."""

    def __init__(self, rng):
        self.rng = rng

    def chance(self, share):
        """Whether something of this probability happens."""
        return self.rng.random() < share

    def literal(self, kind):
        """A literal."""
        return Literal(kind, POOLS[kind], self.rng)

    def bound(self, kind, subject):
        """A literal that is compared; with columns it may be a parameter of a prepared statement."""
        literal = self.literal(kind)
        literal.is_bound = any(is_column(part) for part in walk(subject))
        return literal

    def leaf(self, scope, kind):
        """A column, or a literal where there is none."""
        columns = scope.of(kind)
        if kind == "interval" and not columns and self.chance(0.9):
            return self.apart(scope)
        return Node(kind, self.rng.choice(columns)) if columns and self.chance(0.9) else self.literal(kind)

    def apart(self, scope):
        """The difference of two timestamps."""
        kind = self.rng.choice(["timestamp", "timestamp", "instant"])
        one, other = self.leaf(scope, kind), self.literal(kind) if self.chance(0.6) else self.leaf(scope, kind)
        return Node("interval", "(", one, " - ", other, ")")

    def any(self, scope, depth=2):
        """An expression of any kind, with its kind."""
        kind = self.rng.choice(DRAWN)
        return self.of(scope, kind, depth), kind

    def of(self, scope, kind, depth=2):
        """An expression of a kind."""
        if depth <= 0 or self.chance(0.35):
            return self.leaf(scope, kind)
        if self.chance(0.3):
            return self.choice(scope, kind, depth - 1)
        own = getattr(self, kind, None)
        return own(scope, depth - 1) if own else self.leaf(scope, kind)

    def choice(self, scope, kind, depth):
        """CASE, COALESCE and NULLIF, of any kind."""
        one, other = self.of(scope, kind, depth), self.of(scope, kind, depth)
        pick = self.rng.randrange(5)
        if pick == 0:
            return Node(kind, "coalesce(", one, ", ", other, ")")
        if pick == 1:
            return Node(kind, "nullif(", one, ", ", other, ")")
        if pick == 2:
            subject, when = self.leaf(scope, "int"), self.literal("int")
            return Node(kind, "CASE ", subject, " WHEN ", when, " THEN ", one, " ELSE ", other, " END")
        condition = self.bool(scope, depth)
        end = " END" if pick == 3 else Node("else", " ELSE ", other, " END")
        return Node(kind, "CASE WHEN ", condition, " THEN ", one, end)

    def int(self, scope, depth):
        """Small integers."""
        one, other = self.of(scope, "int", depth), self.of(scope, "int", depth)
        text, when = self.of(scope, "text", depth), self.of(scope, self.rng.choice(["timestamp", "date"]), 0)
        return self.rng.choice(
            [
                lambda: Node("int", "(", one, self.rng.choice([" + ", " - "]), other, ")"),
                lambda: Node("int", "(", one, " * ", Literal("int", ["2", "3", "-1", "7"], self.rng), ")"),
                lambda: Node("int", "(", one, " % ", Literal("int", ["2", "3", "7", "-5"], self.rng), ")"),
                lambda: Node("int", "abs(", one, ")"),
                lambda: Node("int", "(- ", one, ")"),
                lambda: Node("int", "length(", text, ")"),
                lambda: Node("int", "cast(", self.leaf(scope, "decimal"), " AS BIGINT)"),
                lambda: Node(
                    "int",
                    "extract(",
                    self.rng.choice(["year", "month", "day", "quarter", "dow", "doy"]),
                    " FROM ",
                    when,
                    ")",
                ),
                lambda: Node("int", "cast(", one, " AS ", self.rng.choice(["BIGINT", "INTEGER"]), ")"),
                lambda: Node("int", "greatest(", one, ", ", other, ")"),
                lambda: Node("int", "least(", one, ", ", other, ")"),
                lambda: Node("int", "(", self.leaf(scope, "date"), " - ", self.literal("date"), ")"),
                lambda: Node(
                    "int", f"extract({self.rng.choice(['day', 'hour', 'minute'])} FROM ", self.apart(scope), ")"
                ),
            ]
        )()

    def float(self, scope, depth):
        """Doubles."""
        one, other = self.of(scope, "float", depth), self.of(scope, "float", depth)
        return self.rng.choice(
            [
                lambda: Node("float", "(", one, self.rng.choice([" + ", " - "]), other, ")"),
                lambda: Node("float", "(", one, " * ", Literal("float", ["2e0", "-1e0", "0.5e0"], self.rng), ")"),
                lambda: Node("float", "(", one, " / ", Literal("float", ["2e0", "-4e0", "0.5e0"], self.rng), ")"),
                lambda: Node("float", "abs(", one, ")"),
                lambda: Node("float", "(- ", one, ")"),
                lambda: Node("float", "floor(", one, ")"),
                lambda: Node("float", "ceil(", one, ")"),
                lambda: Node("float", "cast(", self.of(scope, "int", depth), " AS DOUBLE)"),
            ]
        )()

    def decimal(self, scope, depth):
        """Decimals of few digits."""
        one, other = self.leaf(scope, "decimal"), self.leaf(scope, "decimal")
        return self.rng.choice(
            [
                lambda: Node("decimal", "(", one, self.rng.choice([" + ", " - "]), other, ")"),
                lambda: Node(
                    "decimal", "(", one, " * ", Literal("decimal", ["2", "1.5", "-0.01", "1.19"], self.rng), ")"
                ),
                lambda: Node("decimal", "abs(", one, ")"),
                lambda: Node("decimal", "(- ", one, ")"),
                lambda: Node("decimal", "cast(", self.leaf(scope, "int"), " AS DECIMAL(12,2))"),
                lambda: Node("decimal", "cast(", one, " AS DECIMAL(18,1))"),
            ]
        )()

    def text(self, scope, depth):
        """Text; case is mapped where it is ASCII."""
        one, other = self.of(scope, "text", depth), self.of(scope, "text", depth)
        few = Literal("int", ["1", "2", "3"], self.rng)
        return self.rng.choice(
            [
                lambda: Node("text", "(", one, " || ", other, ")"),
                lambda: Node("text", "substr(", one, ", ", few, ", 2)"),
                lambda: Node("text", "left(", one, ", ", few, ")"),
                lambda: Node("text", "replace(", one, ", 'a', 'é')"),
                lambda: Node("text", "trim(", one, ")"),
                lambda: Node("text", "upper(", self.literal_of("text", ["'red'", "'ab'", "''"]), ")"),
                lambda: Node("text", "concat(", one, ", '-', ", other, ")"),
                lambda: Node(
                    "text",
                    "cast(",
                    self.leaf(scope, self.rng.choice(["int", "wide", "date", "bool"])),
                    " AS VARCHAR)",
                ),
            ]
        )()

    def literal_of(self, kind, pool):
        """A literal of few."""
        return Literal(kind, pool, self.rng)

    def date(self, scope, depth):
        """Dates, none beyond the year 9999, which clients do not read."""
        known = self.literal_of("date", [f"DATE '{date}'" for date in tables.DATES])
        apart = self.rng.choice(["3 days", "-1 month", "1 year"])
        when = (
            self.of(scope, "timestamp", depth) if self.chance(0.5) else Node("sum", known, f" + INTERVAL '{apart}'")
        )
        return Node("date", "cast((", when, ") AS DATE)")

    def timestamp(self, scope, depth):
        """Timestamps without a zone."""
        one = self.of(scope, "timestamp", depth)
        return self.rng.choice(
            [
                lambda: Node(
                    "timestamp",
                    "date_trunc('",
                    self.rng.choice(["day", "hour", "month", "year", "week"]),
                    "', ",
                    one,
                    ")",
                ),
                lambda: Node(
                    "timestamp",
                    "(",
                    one,
                    self.rng.choice([" + ", " - "]),
                    "INTERVAL '",
                    self.rng.choice(["1 day", "90 minutes", "1 month", "2 years"]),
                    "')",
                ),
            ]
        )()

    def interval(self, scope, depth):
        """Intervals."""
        one, other = self.of(scope, "interval", depth), self.of(scope, "interval", depth)
        return self.rng.choice(
            [
                lambda: self.apart(scope),
                lambda: self.apart(scope),
                lambda: Node("interval", "(", one, self.rng.choice([" + ", " - "]), other, ")"),
                lambda: Node("interval", "(- ", one, ")"),
            ]
        )()

    def bool(self, scope, depth):
        """A condition."""
        if depth > 0 and self.chance(0.35):
            items = [self.predicate(scope, depth - 1) for _ in range(self.rng.choice([2, 2, 3]))]
            return Node("bool", "(", Seq(items, self.rng.choice([" AND ", " OR "]), least=1), ")")
        if depth > 0 and self.chance(0.15):
            return Node("bool", "(NOT ", self.predicate(scope, depth - 1), ")")
        return self.predicate(scope, depth - 1)

    def values(self, kind, subject, null):
        """The right side of IN."""
        items = [self.bound(kind, subject) for _ in range(self.rng.choice([1, 2, 3, 4, 6]))]
        if self.chance(null):
            items.insert(self.rng.randrange(len(items) + 1), Node("null", "NULL"))
        return Node("bool", "(", subject, self.rng.choice([" IN (", " IN (", " NOT IN ("]), Seq(items, least=1), "))")

    def predicate(self, scope, depth, kind=None):
        """One predicate, in parentheses."""
        kind = kind or self.rng.choice(DRAWN)
        one = self.of(scope, kind, depth)
        pick = self.rng.random()
        if kind == "bool" and pick < 0.4:
            test = self.rng.choice(["", " IS TRUE", " IS NOT TRUE", " IS FALSE", " IS NOT FALSE", " IS UNKNOWN"])
            return Node("bool", "(", one, test, ")")
        if kind == "text" and pick < 0.3:
            pattern = Literal("pattern", PATTERNS, self.rng)
            return Node("bool", "(", one, self.rng.choice([" LIKE ", " NOT LIKE "]), pattern, ")")
        if kind in ("decimal", "float") and pick < 0.1:
            other = self.leaf(scope, "float" if kind == "decimal" else "decimal")
            return Node("bool", "(", one, f" {self.rng.choice(COMPARISONS)} ", other, ")")
        if pick < 0.45:
            other = self.bound(kind, one) if self.chance(0.7) else self.of(scope, kind, depth)
            return Node("bool", "(", one, f" {self.rng.choice(COMPARISONS)} ", other, ")")
        if pick < 0.65 and kind != "bool":
            return self.values(kind, one, 0.2)
        if pick < 0.75 and kind != "bool":
            least, most = self.bound(kind, one), self.bound(kind, one)
            return Node("bool", "(", one, self.rng.choice([" BETWEEN ", " NOT BETWEEN "]), least, " AND ", most, ")")
        if pick < 0.87:
            return Node("bool", "(", one, self.rng.choice([" IS NULL", " IS NOT NULL"]), ")")
        other = self.bound(kind, one) if self.chance(0.5) else self.leaf(scope, kind)
        return Node("bool", "(", one, self.rng.choice([" IS DISTINCT FROM ", " IS NOT DISTINCT FROM "]), other, ")")
