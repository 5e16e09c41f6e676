"""Forms of DuckDB's that stand for longer ones: PIVOT, UNPIVOT, ASOF JOIN, SUMMARIZE, lateral lists; and types beside
the usual ones: BLOB, JSON, UUID, lists of structs under lambdas, instants in a session's zone.

What several rows tie for is drawn where they give the same values. Zones are such as both engines know, and hours that
clocks show twice or never stay out.
"""

from expressions import COMPARISONS
from subqueries import Subqueries
from tree import Literal, Node, Seq

# fmt: off
POOLS = {
    "key": ["1", "2", "3", "0", "-1", "7"],
    "colour": ["'red'", "'green'", "'blue'", "''", "'größe'"],
    "blob": [r"'\x00\xFF'::BLOB", "'abc'::BLOB", "''::BLOB", r"'a\x80'::BLOB", "NULL::BLOB"],
    "uuid": ["'00000000-0000-0000-0000-000000000000'::UUID", "'ffffffff-ffff-ffff-ffff-ffffffffffff'::UUID",
             "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::UUID", "NULL::UUID"],
    "path": ["'$.a'", "'$.b'", "'$.l[0]'", "'$.l[1]'", "'$.o.c'", "'$.missing'", "'/l/0'"],
    "few": ["0", "1", "2", "3"],
    "span": ["INTERVAL '1 day'", "INTERVAL '90 minutes'", "INTERVAL '1 month'", "INTERVAL '-36 hours'",
             "INTERVAL '1 year'"],
    "bucket": ["INTERVAL '1 day'", "INTERVAL '15 minutes'", "INTERVAL '7 days'", "INTERVAL '1 month'",
               "INTERVAL '1 year'"],
    "part": ["'year'", "'month'", "'day'", "'hour'", "'minute'", "'dow'", "'doy'", "'week'", "'quarter'", "'epoch'"],
    "format": ["'%Y-%m-%d %H:%M:%S'", "'%d.%m.%y'", "'%j %H'", "'%a %b'"],
}
# fmt: on
TESTS = ["= ", "<> ", "< ", ">= "]
# Zones whose clocks both engines have, and that change at hours that no row has.
CLOCKS = ["UTC", "Asia/Kolkata", "Asia/Tokyo", "America/Phoenix"]


class Forms(Subqueries):
    """Draws these statements."""

    def pick(self, name):
        """A literal of a pool."""
        return Literal(name, POOLS[name], self.rng)

    def some(self, names, least=1):
        """Some of these, in their order."""
        count = self.rng.randint(least, len(names))
        found = set(self.rng.sample(range(len(names)), count))
        return [name for place, name in enumerate(names) if place in found]

    def filtered(self, columns, names=("t", "r", "m", "tiny")):
        """A subquery of some columns of a table's rows that a condition keeps."""
        inner, scope = self.base(list(names))
        alias = scope.keys[0][:-3]
        items = Seq([f"{alias}.{column}" if " " not in column else column.format(alias) for column in columns])
        return Node("source", "(SELECT ", items, " FROM ", inner, self.where(scope, 0.5), ")")

    def pivoted(self):
        """PIVOT with values that are constants."""
        key = self.rng.choice(["g", "c"])
        rows = self.filtered([key, "k", "n", "p", "d", "dt"])
        values = Seq(
            [self.pick("key" if key == "g" else "colour") for _ in range(self.rng.choice([1, 2, 3]))], least=1
        )
        texts = list(dict.fromkeys(part.sql() for part in values.parts))
        calls = ["sum(n)", "count(*)", "max(p)", "min(dt)", "count(d)", "sum(p)"]
        using = ", ".join(f"{call} AS a{at}" for at, call in enumerate(self.some(calls)[:2]))
        group = self.rng.choice([" GROUP BY k", " GROUP BY k", ""])
        if group == "":
            rows = self.filtered([key, "n", "p", "dt", "d"])
        body = f" ON {key} IN ({', '.join(texts)}) USING {using}{group}"
        if self.chance(0.4):
            inside = Node(
                "query", "SELECT * FROM ", rows, f" AS q PIVOT ({using} FOR {key} IN ({', '.join(texts)}){group})"
            )
            return inside
        return Node("query", "SELECT * FROM (PIVOT ", rows, body, ")")

    def unpivoted(self):
        """UNPIVOT into a column of values, or into two."""
        kind, columns = self.rng.choice(
            [("BIGINT", ["k", "n", "g", "i8", "i32"]), ("VARCHAR", ["c", "s"]), ("DOUBLE", ["d", "f", "k"])]
        )
        chosen = self.some(columns, 2)
        rows = self.filtered(["id", *(f"cast({{}}.{name} AS {kind}) AS {name}" for name in chosen)])
        kept = self.rng.choice(["", " WHERE v IS NOT NULL", " WHERE n <> 'k'"])
        if self.chance(0.5):
            inside = Node("source", "(UNPIVOT ", rows, f" ON {', '.join(chosen)} INTO NAME n VALUE v)")
            return Node("query", "SELECT id, n, v FROM ", inside, kept)
        nulls = self.rng.choice(["", " INCLUDE NULLS"])
        return Node(
            "query", "SELECT id, n, v FROM ", rows, f" AS q UNPIVOT{nulls} (v FOR n IN ({', '.join(chosen)})){kept}"
        )

    def nearest(self):
        """ASOF JOIN; what is shown of the nearest row is what rows that tie share."""
        (left, one), (right, other) = self.base(["t", "r", "m", "tiny"]), self.base(["r", "m", "tiny"])
        mine, theirs = (scope.keys[0][:-3] for scope in (one, other))
        name = self.rng.choice(["ts", "n", "dt", "id", "p"])
        sign = self.rng.choice([">=", ">", "<=", "<"])
        links = [f"{mine}.k = {theirs}.k", f"{mine}.c = {theirs}.c", f"{mine}.g = {theirs}.g"]
        links = Seq([*self.some(links, 0)[:1], f"{mine}.{name} {sign} {theirs}.{name}"], " AND ", least=1)
        word = self.rng.choice(["ASOF JOIN", "ASOF LEFT JOIN", "ASOF JOIN"])
        shown = f"{mine}.id, {theirs}.{name}, {theirs}.id IS NULL AS lacks"
        if self.chance(0.3):
            shown = f"count(*) AS c0, count({theirs}.{name}) AS c1, min({theirs}.{name}) AS c2"
        return Node("query", f"SELECT {shown} FROM ", left, f" {word} ", right, " ON ", links, self.where(one, 0.4))

    def summarized(self):
        """SUMMARIZE, but for what is approximate, and DESCRIBE."""
        columns = self.some(["id", "k", "n", "g", "i64", "u64", "p", "c", "s", "b", "ts"])
        rows = self.filtered(columns, ["t", "r", "m", "tiny", "none"])
        if self.chance(0.2):
            return Node("query", "SELECT column_name FROM (DESCRIBE SELECT * FROM ", rows, " AS q)")
        facts = "column_name, min, max, count, null_percentage"
        return Node("query", f"SELECT {facts} FROM (SUMMARIZE SELECT * FROM ", rows, " AS q)")

    def list_of(self, prefix):
        """A list of integers made of columns."""
        return self.rng.choice(
            [
                f"[{prefix}k, {prefix}n, {prefix}g::BIGINT]",
                f"range({prefix}k % 4)",
                f"generate_series(1, {prefix}id % 3)",
                f"[{prefix}n]",
                f"CASE WHEN {prefix}k > 3 THEN [{prefix}k, NULL, 7] END",
                f"list_sort([{prefix}k, {prefix}n])",
            ]
        )

    def spread(self):
        """Lists whose elements become rows, beside the row that they are of."""
        source, scope = self.base(["t", "r", "m", "tiny"])
        prefix = scope.keys[0][:-2]
        key, made = scope.keys[0], self.list_of(prefix)
        kept = Seq(
            [self.bool(scope, 1)] * self.chance(0.4)
            + [Node("bool", f"(u.x {self.rng.choice(TESTS)}", self.pick("few"), ")")] * self.chance(0.4),
            " AND ",
            " WHERE ",
        )
        lateral = self.rng.choice(
            [f", LATERAL unnest({made}) AS u(x)", f", unnest({made}) AS u(x)", f" CROSS JOIN unnest({made}) AS u(x)",
             f" LEFT JOIN LATERAL (SELECT unnest({made}) AS x) AS u ON true"]  # fmt: skip
        )
        pick = self.rng.randrange(4)
        if pick == 0:
            return Node(
                "query",
                "SELECT ",
                key,
                f", (SELECT sum(u.x) FROM unnest({made}) AS u(x)) AS c0 FROM ",
                source,
                self.where(scope, 0.4),
            )
        if pick == 1:
            return Node(
                "query",
                "SELECT u.x, count(*) AS c0, min(",
                key,
                ") AS c1 FROM ",
                source,
                lateral,
                kept,
                " GROUP BY u.x",
            )
        if pick == 2:
            return Node("query", "SELECT ", key, f", unnest({made}) AS x FROM ", source, self.where(scope, 0.4))
        return Node("query", "SELECT ", key, ", u.x FROM ", source, lateral, kept)

    def lambdas(self):
        """Functions of lists that take lambdas, which read columns, places and fields of structs."""
        source, scope = self.base(["t", "r", "m", "tiny"])
        prefix = scope.keys[0][:-2]
        made, few = self.list_of(prefix), self.pick("few")
        structs = f"[{{'a': {prefix}k, 'b': {prefix}c}}, {{'a': {prefix}g, 'b': 'x'}}]"
        calls = [
            Node("item", f"list_transform({made}, lambda x: x + ", few, ")"),
            Node("item", f"list_transform({made}, lambda x: x * {prefix}k)"),
            Node("item", f"list_transform({made}, lambda x, i: x + i)"),
            Node("item", f"list_filter({made}, lambda x: x > ", few, ")"),
            Node("item", f"list_filter({made}, lambda x, i: i <= {prefix}k)"),
            Node("item", f"list_reduce(list_append({made}, 1), lambda x, y: x + y)"),
            Node("item", f"list_reduce({made}, lambda x, y: coalesce(x, 0) + coalesce(y, 1), ", few, ")"),
            Node("item", f"list_reduce({made}, lambda x, y, i: coalesce(y, 0) + i, 5)"),
            Node("item", f"[x + {prefix}id FOR x IN {made} IF x > ", few, "]"),
            Node("item", f"list_transform({structs}, lambda e: e.a)"),
            Node("item", f"list_transform({structs}, lambda e: e.b || '!')"),
            Node("item", f"len(list_filter({structs}, lambda e: e.a > {prefix}n))"),
            Node("item", f"list_position({structs}, {{'a': {prefix}g, 'b': 'x'}})"),
            Node("item", f"list_transform([{made}, [1, 2]], lambda l: list_transform(l, lambda x: x + len(l)))"),
            Node("item", f"list_sum(list_transform({made}, lambda x: x % 3))"),
        ]
        items = [
            Node("item", call, f" AS c{at}")
            for at, call in enumerate(self.rng.sample(calls, self.rng.choice([1, 2, 3])))
        ]
        return Node(
            "query", "SELECT ", Seq([scope.keys[0], *items], least=2), " FROM ", source, self.where(scope, 0.3)
        )

    def bytes_of(self, prefix):
        """A BLOB."""
        return self.rng.choice(
            [f"encode({prefix}c)", f"encode({prefix}s)", f"unhex('00ff')", f"(encode({prefix}c) || '\\x00'::BLOB)",
             f"from_base64('AQID')", f"encode({prefix}k::VARCHAR)"]  # fmt: skip
        )

    def blobs(self):
        """Bytes: compared, sorted, grouped, written."""
        source, scope = self.base(["t", "r", "m", "tiny"])
        prefix = scope.keys[0][:-2]
        one, other = self.bytes_of(prefix), self.bytes_of(prefix)
        test = Node("bool", f"({one} {self.rng.choice(COMPARISONS)} ", self.pick("blob"), ")")
        pick = self.rng.randrange(4)
        if pick == 0:
            items = f"{one} AS k0, count(*) AS c0, min({other}) AS c1, max({other}) AS c2"
            return Node("query", f"SELECT {items} FROM ", source, self.where(scope, 0.4), f" GROUP BY {one}")
        if pick == 1:
            more = Seq([test], " AND ", " WHERE ")
            return Node("query", f"SELECT count(*) AS c0, count(DISTINCT {other}) AS c1 FROM ", source, more)
        calls = [f"octet_length({one})", f"hex({one})", f"to_base64({one})", f"{one} = {other}", f"{one} < {other}",
                 f"coalesce({one}, {other})", f"md5({one})", f"{one} || {other}", one, f"CASE WHEN {prefix}k > 2 THEN {one} ELSE {other} END",
                 f"{one} IN ({other}, 'abc'::BLOB)"]  # fmt: skip
        items = [f"{call} AS c{at}" for at, call in enumerate(self.some(calls)[:3])]
        where = Seq([test] * self.chance(0.4), " AND ", " WHERE ")
        return Node("query", "SELECT ", Seq([scope.keys[0], *items], least=2), " FROM ", source, where)

    def json_of(self, prefix):
        """JSON made of columns."""
        return self.rng.choice(
            [
                f"json_object('a', {prefix}k, 'b', {prefix}c, 'l', [{prefix}n, {prefix}g::BIGINT])",
                f"to_json({{'a': {prefix}k, 'b': {prefix}b, 'o': {{'c': {prefix}c}}}})",
                f"json_array({prefix}k, {prefix}c, NULL, {prefix}b)",
                f"to_json([{prefix}k, {prefix}n])",
                '\'{"a": 1, "b": [1, null], "l": ["x", {"c": 2}], "o": {"c": null}}\'::JSON',
            ]
        )

    def documents(self):
        """JSON: made, taken apart, put together, unnested."""
        source, scope = self.base(["t", "r", "m", "tiny"])
        prefix = scope.keys[0][:-2]
        one, other = self.json_of(prefix), self.json_of(prefix)
        pick = self.rng.randrange(4)
        if pick == 0:
            keys = ", ".join(scope.keys)
            items = f"{prefix}k AS k0, to_json(list({prefix}n ORDER BY {keys}))::VARCHAR AS c0, count({one} ->> '$.b') AS c1"
            return Node("query", f"SELECT {items} FROM ", source, self.where(scope, 0.5), f" GROUP BY {prefix}k")
        if pick == 1:
            lateral = f", LATERAL json_each({one}) AS e"
            return Node(
                "query",
                "SELECT ",
                scope.keys[0],
                ", e.key, e.value::VARCHAR AS c0 FROM ",
                source,
                lateral,
                self.where(scope, 0.4),
            )
        path = self.pick("path")
        calls = [
            Node("item", f"json_extract({one}, ", path, ")::VARCHAR"),
            Node("item", f"json_extract_string({one}, ", path, ")"),
            Node("item", f"{one} -> ", path),
            Node(
                "item",
                f"({one} ->> 'a')::BIGINT" if "json_array" not in one and "to_json([" not in one else f"{one} ->> 0",
            ),
            Node("item", f"json_type({one}, ", path, ")"),
            Node("item", f"json_array_length({one}, '$.l')") if "'l'" in one else Node("item", f"json_valid({one})"),
            Node("item", f"json_keys({one})"),
            Node("item", f"json_merge_patch({one}, {other})::VARCHAR"),
            Node("item", f"json_exists({one}, ", path, ")"),
            Node("item", f"{one}::VARCHAR"),
            Node("item", f"json_structure({one})::VARCHAR"),
            Node("item", f"json_contains({one}, '1')"),
        ]
        items = [
            Node("item", call, f" AS c{at}")
            for at, call in enumerate(self.rng.sample(calls, self.rng.choice([1, 2, 3])))
        ]
        where = self.where(scope, 0.3)
        if self.chance(0.2):
            where = Node("where", f" WHERE json_extract_string({one}, ", path, ") IS NOT NULL")
        return Node("query", "SELECT ", Seq([scope.keys[0], *items], least=2), " FROM ", source, where)

    def identities(self):
        """UUIDs: read, compared, sorted, grouped, joined."""
        source, scope = self.base(["t", "r", "m", "tiny"])
        prefix = scope.keys[0][:-2]
        made = self.rng.choice(
            [f"md5({prefix}c)::UUID", f"md5({prefix}k::VARCHAR)::UUID", f"CAST(md5({prefix}s) AS UUID)"]
        )
        test = Node("bool", f"({made} {self.rng.choice(COMPARISONS)} ", self.pick("uuid"), ")")
        where = Seq([test] * self.chance(0.4), " AND ", " WHERE ")
        pick = self.rng.randrange(4)
        if pick == 0:
            items = f"{made} AS k0, count(*) AS c0"
            return Node("query", f"SELECT {items} FROM ", source, where, f" GROUP BY {made}")
        if pick == 1:
            items = f"min({made}) AS c0, max({made}) AS c1, count(DISTINCT {made}) AS c2"
            return Node("query", f"SELECT {items} FROM ", source, where)
        if pick == 2:
            other, more = self.base(["tiny", "m"])
            theirs = more.keys[0][:-2]
            link = f" ON {made} = md5({theirs}k::VARCHAR)::UUID"
            return Node("query", "SELECT count(*) AS c0 FROM ", source, " JOIN ", other, link, where)
        calls = [made, f"{made}::VARCHAR", f"{made} IN ('A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', {made})",
                 f"coalesce(NULL::UUID, {made})", f"CASE WHEN {prefix}k > 2 THEN {made} END", f"upper({made}::VARCHAR)"]  # fmt: skip
        items = [f"{call} AS c{at}" for at, call in enumerate(self.some(calls)[:3])]
        return Node("query", "SELECT ", Seq([scope.keys[0], *items], least=2), " FROM ", source, where)

    def clocked(self):
        """Functions of instants in a session's zone."""
        source, scope = self.base(["t", "r", "m", "tiny"])
        prefix = scope.keys[0][:-2]
        when, local = f"{prefix}tz", f"{prefix}ts"
        inside = Node(
            "bool", f"({when} BETWEEN TIMESTAMPTZ '1970-01-03 00:00:00+00' AND TIMESTAMPTZ '2037-12-30 00:00:00+00')"
        )
        calls = [
            Node("item", f"({when} + ", self.pick("span"), ")"),
            Node("item", f"time_bucket(", self.pick("bucket"), f", {when})"),
            Node("item", f"date_trunc('{self.rng.choice(['day', 'month', 'year', 'week', 'hour'])}', {when})"),
            Node("item", "date_part(", self.pick("part"), f", {when})"),
            Node(
                "item",
                f"date_diff('{self.rng.choice(['day', 'hour', 'month', 'minute'])}', {when}, {local}::TIMESTAMPTZ)",
            ),
            Node("item", f"strftime({when}, ", self.pick("format"), ")"),
            Node("item", f"cast({when} AS VARCHAR)"),
            Node("item", f"cast({when} AS DATE)"),
            Node("item", f"({when} AT TIME ZONE '{self.rng.choice(CLOCKS)}')"),
            Node("item", f"({local}::TIMESTAMPTZ < {when})"),
            Node("item", f"epoch({when})"),
            Node("item", f"({when} - ", self.pick("span"), f") AT TIME ZONE '{self.rng.choice(CLOCKS)}'"),
            Node("item", f"make_timestamptz(2021, 6, {prefix}id % 28 + 1, 3, 4, 5.5)"),
            Node("item", f"last_day({when})"),
        ]
        items = [
            Node("item", call, f" AS c{at}")
            for at, call in enumerate(self.rng.sample(calls, self.rng.choice([1, 2, 3])))
        ]
        kept = Seq([inside], " AND ", " WHERE ")
        if self.chance(0.3):
            key = f"date_trunc('{self.rng.choice(['day', 'month', 'hour'])}', {when})"
            return Node(
                "query",
                f"SELECT {key} AS k0, count(*) AS c0, max({when}) AS c1 FROM ",
                source,
                kept,
                f" GROUP BY {key}",
            )
        return Node("query", "SELECT ", Seq([scope.keys[0], *items], least=2), " FROM ", source, kept)
