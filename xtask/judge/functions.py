"""Scalar and aggregate functions that both engines have with one meaning.

A template is SQL with arguments in braces: a kind of `expressions.KINDS`, or a pool of [`POOLS`]. What the engines read
differently is not drawn: case and width of letters beyond ASCII, positions that are 0, logarithms of what has none,
shifts past 63 bits, weeks of years that ISO counts otherwise, JSON's spelling of numbers.
"""

import re

from expressions import KINDS
from queries import Queries
from tree import Literal, Node, Seq

# fmt: off
POOLS = {
    "few": ["0", "1", "2", "3", "5"],
    "place": ["1", "2", "3", "-1", "-2", "9"],
    "bits": ["0", "1", "3", "8"],
    "digits": ["0", "1", "2", "-1"],
    "ascii": ["'red'", "'Ab c'", "''", "'x_y'", "'a,b,,c'", "'banana'", "NULL"],
    "part": ["'a'", "'b'", "'an'", "''", "'é'", "','", "'日'", "' '"],
    "mark": ["'a'", "'an'", "'é'", "','", "' '"],
    "known": ["[1, 2, 3]", "[3, 1, 2, 1]", "[NULL, 5, -7]", "[7]"],
    "few_texts": ["['b', 'a', 'c']", "['', 'é', NULL]"],
    "pad": ["'*'", "'ab'", "'é'"],
    "regex": ["'a+'", "'^b'", "'[a-c]{2}'", "'(a)(n)'", "'n.n'", "'x|e$'", "'日'", "'[0-9]+'"],
    "unit": ["'year'", "'month'", "'day'", "'hour'", "'minute'", "'second'", "'quarter'", "'week'", "'decade'",
             "'century'", "'millennium'", "'months'", "'days'"],
    "span_unit": ["'year'", "'quarter'", "'month'", "'week'", "'day'", "'hour'", "'minute'", "'second'", "'milliseconds'",
                  "'years'", "'decade'"],
    "span": ["INTERVAL '1 day'", "INTERVAL '90 minutes'", "INTERVAL '7 days'", "INTERVAL '1 month'"],
    "nonzero": ["1", "2", "7", "-3"],
    "positive": ["0.125e0", "1e0", "2.5e0", "100e0"],
    "longs": ["[1, 2, 3]", "[3, 1, 2, 1]", "[NULL, 5, -7]", "([]::BIGINT[])", "(NULL::BIGINT[])", "[7]"],
    "texts": ["['b', 'a', 'c']", "['', 'é', NULL]", "([]::VARCHAR[])", "['日本', 'a']", "(NULL::VARCHAR[])"],
    "json": ["'{\"a\": 1, \"b\": [1, 2.5, null], \"c\": {\"d\": \"x y\"}}'", "'[1, [2, 3], \"z\"]'", "'{}'",
             "'{\"a\": null}'", "NULL"],
    "path": ["'$.a'", "'$.b[1]'", "'$.c.d'", "'$[0]'", "'$.missing'"],
    "number": ["'12'", "' -7 '", "'x'", "''", "'9999999999'"],
    "day": ["'2020-01-31'", "'2020-02-30'", "'x'", "'1999-12-31'"],
    "format": ["'%Y-%m-%d'", "'%d.%m.%y'", "'%H:%M:%S'", "'%j'", "'%a %b %d'", "'%I %p'"],
}
# Templates of each kind of value.
TEMPLATES = {
    "text": [
        "reverse({ascii})", "upper({ascii})", "lower({ascii})", "repeat({text}, {few})", "lpad({text}, {few}, {pad})",
        "rpad({text}, {few}, {pad})", "ltrim({text})", "rtrim({text}, 'a')", "right({text}, {few})",
        "left({text}, {place})", "split_part({text}, {mark}, {bits} + 1)",
        "replace({text}, {part}, {pad})", "translate({ascii}, 'abc', 'xy')", "chr({nonzero} + 70)", "md5({text})",
        "sha256({text})", "concat_ws('-', {text}, {text})", "regexp_replace({text}, {regex}, '<>')",
        "regexp_replace({text}, {regex}, '', 'g')", "regexp_extract({text}, {regex})",
        "strftime({timestamp}, {format})", "strftime({date}, {format})", "dayname({date})", "monthname({date})",
        "hex({few})", "bin({few})", "to_base64(encode({text}))",
        "array_to_string({texts}, '|')", "json_extract_string({json}, {path})", "{json} ->> '$.a'", "json_type({json})",
        "concat({text}, {int})", "if({bool}, {text}, {text})", "ifnull({text}, {text})", "format('{{}}-{{}}', {int}, {text})",
        "printf('%d|%s', {int}, {text})", "list_extract({texts}, {place})", "array_extract({texts}, 1)",
        "string_split({text}, {mark})[1]", "decode(encode({text}))", "cast({int} AS VARCHAR)", "cast({date} AS VARCHAR)",
        "trim({text}, 'ab')", "url_encode({text})", "greatest({text}, {text})",
        "json_normalize({json})", "cast(json_structure({json}) AS VARCHAR)", "cast(json_remove({json}, {path}) AS VARCHAR)", "bar({few}, 0, 5, 7)",
        "cast([{int}, {int}] AS VARCHAR)", "cast({{'a': {int}, 'b': {text}}} AS VARCHAR)", "cast({timestamp}::TIMESTAMP AS TIME)::VARCHAR",
        "cast([{text}] AS VARCHAR)", "cast([{timestamp}] AS VARCHAR)",
        "regexp_extract({text}, '([a-z])(.?)', ['one', 'two']).one",
    ],
    "int": [
        "length({text})", "strlen({text})", "bit_length({text})", "strpos({text}, {part})",
        "instr({text}, {part})", "position({part} IN {text})", "ascii({text})",
        "levenshtein({ascii}, {ascii})", "hamming('abc', 'abd')", "gcd({int}, {int})", "lcm({few}, {nonzero})",
        "factorial({few})", "bit_count({few})", "{int} & {int}", "{int} | {int}", "xor({int}, {int})", "{few} << {bits}",
        "{int} >> {bits}", "{int} // {nonzero}", "mod({int}, {nonzero})", "extract({plain} FROM {timestamp})",
        "date_part({unit}, {timestamp})", "date_diff({span_unit}, {timestamp}, {timestamp})", "date_diff('day', {date}, {date})",
        "date_sub({span_unit}, {timestamp}, {timestamp})", "year({date})", "dayofyear({date})", "isodow({date})",
        "week({date})", "weekofyear({date})", "yearweek({date})", "isoyear({date})",
        "len({longs})", "list_max({longs})", "list_min({longs})",
        "list_position({longs}, {nonzero})", "list_count({longs})", "list_extract({longs}, {place})", "{longs}[{place}]",
        "list_unique({longs})", "try_cast({number} AS INTEGER)",
        "try_cast({number} AS BIGINT)", "array_length({longs})",
        "greatest({int}, {int}, {int})", "least({int}, {int})", "century({date})", "decade({date})", "millennium({date})",
        "days_in_month({date})", "round({int}, -1)", "binom({few}, {few})", "date_part(['year', 'day'], {date_near}).year",
        "parse_formatted_bytes('16 KiB')", "octet_length(encode({text}))", "timezone_hour({timestamp})",
    ],
    "float": [
        "sqrt({positive})", "cbrt({float})", "exp({digits})", "ln({positive})", "log10({positive})", "log2({positive})",
        "log({positive})", "pow({float_few}, 2)", "sin({float_few})", "cos({float_few})", "tan({float_few})", "atan({float})",
        "atan2({float_few}, {float_few})", "degrees({float_few})", "radians({float_few})", "round({float}, {digits})",
        "trunc({float})", "floor({float})", "ceil({float})", "try_cast({number} AS DOUBLE)", "even({float})",
        "list_avg({longs})", "epoch({timestamp})", "fdiv({float_few}, 2)", "pi()",
        "sinh({float_few})", "tanh({float_few})", "julian({date})", "julian({timestamp})", "cot({positive})", "gamma({positive})",
        "jaccard({ascii}, 'abc')",
    ],
    "decimal": [
        "round({decimal}, {digits})", "trunc({decimal})", "floor({decimal})", "ceil({decimal})", "try_cast({number} AS DECIMAL(8,2))",
        "cast({int} AS DECIMAL(12,2))", "abs({decimal})", "cast({decimal} AS DECIMAL(14,1))", "sign({decimal})", "greatest({decimal}, {decimal})",
    ],
    "bool": [
        "starts_with({text}, {part})", "ends_with({text}, {part})", "contains({text}, {part})", "prefix({text}, {part})",
        "suffix({text}, {part})", "regexp_matches({text}, {regex})", "regexp_full_match({text}, {regex})", "{text} ILIKE 'A%'",
        "list_contains({known}, {nonzero})", "list_contains({known}, {int})", "{int} IN {known}",
        "{int} NOT IN {known}", "{text} IN {few_texts}", "list_has_any({longs}, [1, 5])", "list_has_all({longs}, [1])",
        "isnan({float})", "isinf({float})", "isfinite({float})", "json_valid({json})", "json_exists({json}, {path})",
        "json_contains({json}, '1')", "try_cast({text} AS BOOLEAN)", "isfinite({date})",
        "{longs} = [1, 2, 3]", "{texts} IS DISTINCT FROM {texts}", "{ascii} GLOB 'a*'", "{text} GLOB '*[a-c]?'",
    ],
    "date": [
        "last_day({date_near})", "try_cast({day} AS DATE)", "make_date(2020, {few} + 1, {few} + 1)", "cast({timestamp} AS DATE)",
        "date_trunc('month', {date_near})", "time_bucket(INTERVAL '7 days', {date_near})", "{date_near} + {few}", "{date_near} - {few}",
        "greatest({date_near}, {date_near})",
    ],
    "timestamp": [
        "date_trunc({span_unit}, {timestamp})", "time_bucket({span}, {timestamp})", "{timestamp} + {span}", "{date_near} + {span}",
        "make_timestamp(2020, {few} + 1, 5, 6, 7, 8.5)", "strptime('2020-03-04 05:06', '%Y-%m-%d %H:%M')",
        "try_strptime({day}, '%Y-%m-%d')", "try_strptime({day}, ['%d.%m.%Y', '%Y-%m-%d'])",
        "{timestamp} + to_hours({few})", "{timestamp} + INTERVAL ({few}) MONTH", "least({timestamp}, {timestamp})",
    ],
    "list": [
        "list_sort({longs})", "list_reverse_sort({longs})", "list_reverse({longs})", "list_concat({longs}, {longs})",
        "list_append({longs}, {int})", "list_prepend({int}, {longs})", "{longs}[1:2]", "list_slice({longs}, 2, 3)",
        "list_transform({longs}, lambda x: x + 1)", "list_filter({longs}, lambda x: x > 1)",
        "[x * 2 FOR x IN {longs} IF x IN [1, 3]]", "string_split({text}, {mark})", "regexp_extract_all({text}, {regex})",
        "range({few})", "generate_series(1, {few})", "list_resize({longs}, 3)", "flatten([{longs}, [9]])",
        "list_sort({texts})", "string_split_regex({text}, '[, ]')",
        "json_keys({json})", "list_grade_up({longs})", "list_where([1, 2, 3], [{few} > 1, true, false])",
    ],
}
# Aggregates; `keys` is what tells rows apart.
AGGREGATES = [
    "arg_max({int}, {keys})", "arg_min({text}, {keys})", "count_if(coalesce({bool}, false))", "list({int} ORDER BY {keys})",
    "first({text} ORDER BY {keys})", "last({int} ORDER BY {keys})", "bit_and({int})", "bit_or({int})", "bit_xor({int})",
    "var_pop({float_few})", "stddev_samp({float_few})",
    "covar_pop({float_few}, {int})", "quantile_cont({float_few}, 0.5)",
    "quantile_disc({int}, 0.25)", "median({float_few})", "string_agg({text}, ',' ORDER BY {keys})",
    "group_concat({ascii}, '-' ORDER BY {keys})", "sum({decimal}) FILTER (WHERE {bool})", "bool_and({bool})",
    "max({text})", "min({date})", "skewness({float_few})",
    "kurtosis_pop({float_few})", "favg({float_few})", "sum(DISTINCT {int})", "geomean({positive})", "any_value({few})",
    "avg({decimal})", "sum(coalesce({bool}, false))", "regr_count({float_few}, {int})",
]
# fmt: on
# Doubles whose functions are finite.
FINITE = ["0e0", "0.125e0", "1e0", "-1e0", "1.5e0", "-2.25e0", "3e0", "10e0"]


class Functions(Queries):
    """Draws statements with functions."""

    def filled(self, template, scope, depth):
        """A template with its arguments."""
        parts = re.split(r"(?<!\{)\{(\w+)\}(?!\})", template)
        texts = [part.replace("{{", "{").replace("}}", "}") for part in parts[::2]]
        found = [texts[0]]
        for name, text in zip(parts[1::2], texts[1:]):
            found += [self.argument(name, scope, depth), text]
        return found

    def argument(self, name, scope, depth):
        """An argument of a kind, or of a pool."""
        if name == "keys":
            return ", ".join(scope.keys)
        if name == "plain":
            return self.rng.choice(["year", "quarter", "hour", "doy", "decade", "century", "isodow"])
        if name == "float_few":
            halves = Node("float", "(", scope.of("int")[0], " * 0.5e0)")
            return Literal("float", FINITE, self.rng) if self.chance(0.4) else halves
        if name == "date_near":
            return Literal("date", ["DATE '2020-02-29'", "DATE '1999-12-31'", "DATE '2021-06-15'"], self.rng)
        if name in KINDS:
            return self.function(scope, name, depth - 1) if depth > 0 and self.chance(0.3) else self.of(scope, name, 1)
        return Literal(name, POOLS[name], self.rng)

    def function(self, scope, kind, depth):
        """A call whose value is of a kind."""
        templates = TEMPLATES.get(kind)
        if not templates:
            return self.of(scope, kind, 1)
        return Node(kind, "(", *self.filled(self.rng.choice(templates), scope, depth), ")")

    def functions(self):
        """Calls of functions, of rows or of groups."""
        source, scope = self.base()
        if self.chance(0.7):
            kinds = list(TEMPLATES)
            count = self.rng.choice([1, 2, 3, 4])
            items = [Node("item", self.function(scope, self.rng.choice(kinds), 2), f" AS c{at}") for at in range(count)]
            where = self.where(scope, 0.3)
            if self.chance(0.2):
                where = Node("where", " WHERE ", self.function(scope, "bool", 1))
            return Node("query", "SELECT ", Seq([scope.keys[0], *items], least=2), " FROM ", source, where)
        items = [
            Node("item", *self.filled(self.rng.choice(AGGREGATES), scope, 1), f" AS c{at}")
            for at in range(self.rng.choice([1, 2, 3]))
        ]
        key = self.rng.choice(["k", "g"])
        prefix = scope.keys[0][:-2]
        return Node(
            "query",
            f"SELECT {prefix}{key} AS k0, ",
            Seq(items, least=1),
            " FROM ",
            source,
            self.where(scope, 0.4),
            f" GROUP BY {prefix}{key}",
        )
