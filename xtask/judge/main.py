"""Random queries in Warpcube and DuckDB, compared: `cargo xtask judge`.

Tables and queries come from the seed alone. What differs is shrunk and printed with both results; the last line
counts. What Warpcube refuses by name and DuckDB answers is no difference; it is counted apart, by what was refused.
The exit code is 1 if a difference has no reason in `dialect.py`.
"""

import argparse
import os
import random
import shutil
import sys
import tempfile
import time

import dialect
import tables
from compare import difference
from draw import SHAPES, draw
from engines import DuckDB, Failed, Gone, Warpcube
from query import CLEANING, FAILURE, NOTHING, ROWS
from tree import shrink

SHRINK_TRIES = {"cpu": 250, "columns": 250, "emulated": 40}
ROWS_SHOWN, ROW_SHOWN = 6, 240


class Outcome:
    """Rows of a statement, or its error."""

    def __init__(self, rows=None, error=None, gone=False):
        self.rows, self.error, self.gone = rows, error, gone

    def show(self):
        """For people."""
        return f"error: {self.error}" if self.error else f"{len(self.rows or [])} rows"


class Difference:
    """One statement of a query whose outcomes differ."""

    def __init__(self, sql, ours, theirs, rows):
        self.sql, self.ours, self.theirs, self.rows = sql, ours, theirs, rows
        self.reason = dialect.reason(sql, ours, theirs)
        self.refused = dialect.refused(ours, theirs)
        # Statements before it that it depends on.
        self.after = []

    def kind(self):
        """What has to stay when a query is shrunk."""
        if self.ours.error:
            return "ours", self.ours.error[:24], self.ours.gone
        return ("theirs", self.theirs.error[:16]) if self.theirs.error else ("rows", bool(self.reason))

    def show(self):
        """For people."""
        lines = [f"  {sql};" for sql in self.after] + [
            f"  {self.sql};",
            f"  Warpcube: {self.ours.show()}",
            f"  DuckDB:   {self.theirs.show()}",
        ]
        for name, rows in zip(("Warpcube", "DuckDB"), self.rows or ((), ())):
            lines += [f"    only {name}: {str(row)[:ROW_SHOWN]}" for row in rows[:ROWS_SHOWN]]
            lines += [f"    … {len(rows) - ROWS_SHOWN} more"] if len(rows) > ROWS_SHOWN else []
        return "\n".join(lines)


class Judge:
    """Both engines over one set of tables."""

    def __init__(self, arguments, folder):
        self.arguments = arguments
        self.places = tables.write(random.Random(f"tables {arguments.seed}"), folder)
        self.duckdb = DuckDB(self.places)
        self.warpcube, self.on_device = None, 0
        self.counts = {"queries": 0, "agreed": 0, "explained": 0, "refused": 0, "differ": 0, "failed in both": 0}
        self.reasons, self.refusals = {}, {}

    def program(self):
        """The running program, started where there is none."""
        if self.warpcube is None:
            seconds = 30 if self.arguments.device != "emulated" else 180
            self.warpcube = Warpcube(self.arguments.program, self.arguments.device, self.places, seconds)
        return self.warpcube

    def restart(self):
        """Lets go of the program; the next statement starts another."""
        if self.warpcube:
            self.on_device += self.warpcube.on_device
            self.warpcube.close()
        self.warpcube = None

    def ask(self, engine, sql):
        """The outcome of a statement."""
        try:
            return Outcome(rows=engine.run(sql))
        except Gone as error:
            self.restart()
            return Outcome(error=str(error), gone=True)
        except Failed as error:
            return Outcome(error=str(error))

    def outcomes(self, query):
        """Each compared statement with its difference, if it has one."""
        is_broken, before = False, []
        for ours_sql, theirs_sql, what in query.steps():
            # What undoes settings runs even if a statement before failed.
            if is_broken and what != CLEANING:
                continue
            ours, theirs = self.ask(self.program(), ours_sql), self.ask(self.duckdb, theirs_sql)
            shown = ours_sql if ours_sql == theirs_sql else f"{ours_sql} -- {theirs_sql}"
            if what in (FAILURE, ROWS):
                if what == FAILURE:
                    ours.rows = theirs.rows = None
                found = self.compared(shown, ours, theirs, query.ordered())
                # Two tables that were changed differently say nothing more.
                is_broken = query.is_sequence and isinstance(found, Difference)
                if is_broken:
                    found.after = before
                yield found
            elif ours.error and what == NOTHING:
                is_broken = True
                if theirs.error is None:
                    yield Difference(ours_sql, ours, theirs, None)
            is_broken = is_broken or ours.gone
            if query.is_sequence:
                before = [*before, shown]

    def compared(self, sql, ours, theirs, ordered):
        """The difference between two outcomes, nothing if there is none, or `both` if both failed."""
        if ours.error and theirs.error:
            return Difference(sql, ours, theirs, None) if ours.gone else "both"
        if ours.error or theirs.error:
            return Difference(sql, ours, theirs, None)
        rows = difference(ours.rows or [], theirs.rows or [], ordered)
        return Difference(sql, ours, theirs, rows) if rows else None

    def first(self, query):
        """The first difference of a query."""
        found = [one for one in self.outcomes(query) if isinstance(one, Difference)]
        return next((one for one in found if not one.refused and not one.reason), None)

    def judge(self, number):
        """Draws a query by its number and compares it."""
        rng = random.Random(f"{self.arguments.seed} {number}")
        query = draw(rng, self.arguments.device, self.arguments.shape)
        worst = None
        for found in self.outcomes(query):
            self.counts["queries"] += 1
            if isinstance(found, Difference) and found.refused:
                self.counts["refused"] += 1
                self.refusals[found.refused] = self.refusals.get(found.refused, 0) + 1
            elif isinstance(found, Difference) and found.reason:
                self.counts["explained"] += 1
                self.reasons[found.reason] = self.reasons.get(found.reason, 0) + 1
            elif isinstance(found, Difference):
                self.counts["differ"] += 1
                worst = worst or found
            else:
                self.counts["agreed"] += 1
                self.counts["failed in both"] += found == "both"
        if worst:
            self.report(number, query, worst)

    def report(self, number, query, worst):
        """Prints a difference, shrunk."""
        print(
            f"-- query {number}, seed {self.arguments.seed}, {query.shape}"
            + (f", time zone {query.zone}" if query.zone else "")
            + (", prepared" if query.is_prepared else "")
        )
        print(worst.show())
        self.restart()
        counted = self.on_device
        again = self.first(query)
        if again is None:
            print("  -- agrees in a new process: it depends on what ran before", flush=True)
            return

        def still():
            found = self.first(query)
            return found is not None and found.kind() == again.kind()

        tries = SHRINK_TRIES[self.arguments.device]
        shrink(query.statement, still, tries)
        for _, view in query.views:
            shrink(view, still, tries // 4)
        while len(query.runs) > 1:
            dropped = query.runs.pop(0)
            if not still():
                query.runs.insert(0, dropped)
                break
        self.restart()
        smaller = self.first(query)
        print("  shrunk:")
        used = query.statement.sql()
        for name, view in query.views:
            if f"{name} " in used and not query.is_sequence:
                print(f"  CREATE VIEW {name} AS {view.sql()};")
        if len(query.runs) > 1:
            print("  after other literals:")
        print((smaller or again).show(), flush=True)
        # What ran for shrinking does not count.
        self.restart()
        self.on_device = counted

    def summary(self):
        """The last lines."""
        if self.arguments.device != "cpu":
            print(f"{self.on_device} statements ran on the device at least in part")
        for text, count in sorted(self.reasons.items()):
            print(f"explained {count}: {text}")
        for text, count in sorted(self.refusals.items(), key=lambda item: -item[1]):
            print(f"refused {count}: {text}")
        count = self.counts
        print(f"{count['failed in both']} failed in both engines")
        matched = f"{count['agreed']} agreed, {count['explained']} explained, {count['refused']} refused"
        print(f"{count['queries']} queries, {matched}, {count['differ']} differ")


def main():
    """Runs the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--program", required=True)
    parser.add_argument("--keep")
    parser.add_argument("--only", type=int)
    parser.add_argument("--shape", choices=[name for name, _ in SHAPES])
    arguments = parser.parse_args()
    folder = os.path.abspath(arguments.keep) if arguments.keep else tempfile.mkdtemp(prefix="judge-")
    os.makedirs(folder, exist_ok=True)
    judge = Judge(arguments, folder)
    print(f"tables in {folder}, seed {arguments.seed}, {arguments.program} on {arguments.device}", flush=True)
    start, number = time.monotonic(), 0
    try:
        if arguments.only is not None:
            judge.judge(arguments.only)
        while arguments.only is None and judge.counts["queries"] < arguments.queries:
            judge.judge(number)
            number += 1
    finally:
        judge.restart()
        if not arguments.keep:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{time.monotonic() - start:.0f} s")
    judge.summary()
    return 1 if judge.counts["differ"] else 0


if __name__ == "__main__":
    sys.exit(main())
