"""Random sequences of changes to cubes, held against a brute force: `cargo xtask judge --cubes`.

A sequence defines a cube of random files or imports a random database, then changes it, changes its source, loads,
refreshes, converts, kills the program on the way, or exports; behind every step all cells are read and compared with
those of `cube_model.py`. Sequences come from the seed and their number alone, but for the moment at which a kill
meets the program. A sequence ends at its first difference, which is printed with all commands before it; `--only N
--keep FOLDER` runs it again and leaves its files. Base cells are read too, by `facts at` and by SQL under a condition. The exit code is 1 if something differs.
"""

import argparse
import csv
import io
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from math import prod

from cube_model import rounded
from cube_source import Database, Source, copied, schemes

SECONDS = 120
KILL_SECONDS_MAX = 0.2
STEPS = (3, 9)
CELLS_SHOWN = 8


class Differs(Exception):
    """What was found."""


class Sequence:
    """One cube with its brute force, and the commands so far."""

    def __init__(self, arguments, number, folder):
        self.arguments, self.folder = arguments, folder
        self.rng = random.Random(f"cubes {arguments.seed} {number}")
        self.log, self.counts, self.made = [], {}, 0

    def command(self, *words):
        """The program with its words."""
        return [self.arguments.program, "--device", self.arguments.device, *words]

    def run(self, *words):
        """Runs a command of `warpcube cube`; gives what it printed."""
        return self.ran("cube", *words)

    def ran(self, *words):
        """Runs the program; gives what it printed."""
        self.log.append(" ".join(f"'{word}'" if " " in word else word for word in words))
        done = subprocess.run(
            self.command(*words), cwd=self.folder, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        if done.returncode != 0:
            raise Differs(f"exit code {done.returncode}: {done.stderr.strip()}")
        return list(csv.DictReader(io.StringIO(done.stdout)))

    def killed(self, *words):
        """Starts a command and ends it at a random moment."""
        self.log.append(f"cube {' '.join(words)}, killed")
        child = subprocess.Popen(
            self.command("cube", *words), cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(self.rng.random() * KILL_SECONDS_MAX)
        child.kill()
        child.wait()

    def manifest(self, path):
        """What names the files of a cube."""
        with open(os.path.join(self.folder, path, "cube.json"), "rb") as file:
            return file.read()

    def read(self, path, cube):
        """All filled cells of a cube, as the program has them."""
        rows = " * ".join(dimension.name for dimension in cube.dimensions)
        cells = {}
        for row in self.run("query", path, f"rows {rows} cols Measures", "--format", "csv"):
            names = tuple(row[dimension.name] for dimension in cube.dimensions)
            value = row.get("decimal") or row["value"]
            if value != "":
                cells[(*names, row["measure"])] = Fraction(value)
        return cells

    def difference(self, path, cube, is_double):
        """The first cells that differ, as text; nothing where all agree."""
        ours, theirs = self.read(path, cube), cube.cells()
        rules = {measure.name: measure for measure in cube.measures}

        def agree(names):
            if names not in ours or names not in theirs:
                return False
            measure, one, other = rules[names[-1]], ours[names], theirs[names]
            if measure.rule == "avg" or is_double:
                return abs(one - other) <= Fraction(1, 10**9) * max(abs(other), 1)
            if measure.rule in ("sum", "min", "max") and measure.decimals is not None:
                other = rounded(other, measure.decimals)
            return one == other

        wrong = sorted(names for names in ours.keys() | theirs.keys() if not agree(names))
        if not wrong:
            return None
        shown = [f"    {names}: {value(ours.get(names))}, not {value(theirs.get(names))}" for names in wrong]
        more = [f"    … {len(wrong) - CELLS_SHOWN} more"] if len(wrong) > CELLS_SHOWN else []
        return "\n".join([f"{len(wrong)} cells of {path} differ:"] + shown[:CELLS_SHOWN] + more)

    def check(self, path, cube, is_double):
        """Compares all cells, and base cells below one of them."""
        found = self.difference(path, cube, is_double)
        if found:
            raise Differs(found)
        self.check_facts(path, cube)
        self.check_sql(path, cube)

    def check_facts(self, path, cube):
        """Compares the base cells below a cell with their weights, and their values."""
        at = [self.rng.choice(dimension.elements) for dimension in cube.dimensions]
        point = ", ".join(f"{dimension.name}:{element.name}" for dimension, element in zip(cube.dimensions, at))
        measure = cube.measures[0].name
        weights = [dimension.weights(element) for dimension, element in zip(cube.dimensions, at)]
        expected = {}
        for names, elements, amount in cube.base_sums():
            below = [of[element] for of, element in zip(weights, elements) if element in of]
            if len(below) == len(elements):
                expected[names] = (prod(below), amount)
        found = {}
        for row in self.run("query", path, f"facts at {point}, Measures:{measure}", "--format", "csv"):
            names = tuple(row[dimension.name] for dimension in cube.dimensions)
            found[names] = (Fraction(row["weight"]), Fraction(row[measure]))
        self.agree(f"facts at {point}", found, expected)

    def check_sql(self, path, cube):
        """Compares the rows of the table of base cells that a condition leaves."""
        at = self.rng.randrange(len(cube.dimensions))
        values = cube.values()
        names = [values[at][element.name] for element in cube.dimensions[at].elements if element.is_base]
        wanted = self.rng.sample(names, self.rng.randint(0, min(2, len(names)))) + ["none"]
        columns = [dimension.name.lower() for dimension in cube.dimensions] + [cube.measures[0].name.lower()]
        listed = ", ".join(f"'{name}'" for name in wanted)
        sql = f"SELECT {', '.join(columns)} FROM '{path}' WHERE {columns[at]} IN ({listed}) AND {columns[-1]} IS NOT NULL"
        found = {}
        for row in self.ran("--format", "csv", "-c", sql):
            found[tuple(row[column] for column in columns[:-1])] = (1, Fraction(row[columns[-1]]))
        rows = [(tuple(by[name] for by, name in zip(values, of)), amount) for of, _, amount in cube.base_sums()]
        expected = {of: (1, amount) for of, amount in rows if of[at] in wanted}
        self.agree(sql, found, expected)

    @staticmethod
    def agree(what, found, expected):
        """Compares base cells, whose amounts are sums of a few doubles at most."""
        for names in sorted(found.keys() | expected.keys()):
            (one, amount), (other, wanted) = found.get(names, (None, 0)), expected.get(names, (None, 0))
            if one != other or abs(amount - wanted) > Fraction(1, 10**6):
                raise Differs(f"{what}: {names}: {one} × {float(amount)}, not {other} × {float(wanted)}")

    def step(self, name):
        """Counts a step."""
        self.counts[name] = self.counts.get(name, 0) + 1

    def changed(self, path, cube, more=()):
        """Draws a change, runs it and applies it; `more` are cubes from which a removal takes the element too."""
        text = self.change(cube, more)
        if text:
            self.step(text.split()[0])
            self.run("change", path, text)

    def change(self, cube, more=()):
        """A change as text, made to the cube; nothing where the one drawn has no meaning."""
        rng, dimension = self.rng, self.rng.choice(cube.dimensions)
        name = f"{dimension.name}:{{}}".format
        element = rng.choice(dimension.elements)
        kind = rng.choice(["add", "group", "rename", "link", "unlink", "move", "remove"])
        groups = [one for one in dimension.elements if not one.is_base and one not in dimension.below(element)]
        weight = rng.choice([1, 1, 1, -1, 2])
        weighed = f" weight {weight}" if weight != 1 else ""
        self.made += 1
        if kind == "add":
            new = f"h{self.made}"
            parents = [one for one in dimension.elements if not one.is_base]
            parent = rng.choice(parents) if parents else None
            made = dimension.add(new, True)
            if parent:
                parent.children[made] = Fraction(weight)
            return f"add {name(new)}" + (f" below {name(parent.name)}{weighed}" if parent else "")
        if kind == "group":
            new = f"h{self.made}"
            children = rng.sample(dimension.elements, rng.randint(1, min(3, len(dimension.elements))))
            weights = {child: Fraction(rng.choice([1, 1, -1, 2])) for child in children}
            dimension.add(new, False).children = weights
            listed = [f"{name(child.name)}" + ("" if of == 1 else f" weight {of}") for child, of in weights.items()]
            return f"add {name(new)} of {', '.join(listed)}"
        if kind == "rename":
            old, element.name = element.name, f"n{self.made}"
            return f"rename {name(old)} to {element.name}"
        if kind == "link" and groups:
            parent = rng.choice(groups)
            if element in parent.children:
                return None
            self.place(dimension, parent, element, weight)
            return f"link {name(element.name)} below {name(parent.name)}{weighed}"
        if kind == "move" and groups:
            parent = rng.choice(groups)
            # A move between elements of the source is undone by a refresh.
            for other in dimension.parents(element):
                self.cut(dimension, other, element, parent.key is None)
            self.place(dimension, parent, element, weight)
            return f"move {name(element.name)} below {name(parent.name)}{weighed}"
        parents = dimension.parents(element)
        if kind == "unlink" and parents:
            parent = rng.choice(parents)
            self.cut(dimension, parent, element)
            return f"unlink {name(element.name)} from {name(parent.name)}"
        if kind == "remove" and len(dimension.elements) > 2 and self.may_go(dimension, element):
            for other in (cube, *more):
                of_other = next((one for one in other.dimensions if one.name == dimension.name), None)
                gone = element if other is cube else of_other and element.key and of_other.of_key(element.key)
                if gone:
                    other.forget(of_other, gone)
                    of_other.remove(gone)
            return f"remove {name(element.name)}"
        return None

    @staticmethod
    def place(dimension, parent, child, weight):
        """Adds an edge by hand."""
        parent.children[child] = Fraction(weight)
        dimension.unlinked.discard((parent.key, child.key))

    @staticmethod
    def cut(dimension, parent, child, stays=True):
        """Takes an edge away by hand; where it is one of the source, it may stay away at a refresh."""
        del parent.children[child]
        if stays and parent.key is not None and child.key is not None:
            dimension.unlinked.add((parent.key, child.key))

    @staticmethod
    def may_go(dimension, element):
        """True if base elements are left without an element."""
        return not element.is_base or sum(one.is_base for one in dimension.elements) > 1


class Defined(Sequence):
    """A cube of a definition."""

    def play(self):
        """All steps."""
        source = Source(self.rng, self.folder)
        source.write()
        self.step("define")
        self.run("define", "c.yaml", "c.cube")
        cube = source.cube()
        self.check("c.cube", cube, source.is_double)
        for _ in range(self.rng.randint(*STEPS)):
            kind = self.rng.choice(["change", "change", "change", "refresh", "refresh", "load", "convert", "kill"])
            if kind == "change":
                self.changed("c.cube", cube)
            elif kind == "convert":
                self.step(kind)
                self.run("convert", "c.cube", "--storage", self.rng.choice(schemes(len(cube.dimensions))))
            else:
                cube = self.filled(kind, source, cube)
            self.check("c.cube", cube, source.is_double)

    def filled(self, kind, source, cube):
        """The cube after the source has changed and was read again."""
        self.step(kind)
        source.change(self.rng)
        source.write()
        self.log.append("(the source changes)")
        command = self.rng.choice(["refresh", "load"]) if kind == "kill" else kind
        # A load reads the definition that the cube has.
        new = source.cube(cube, command)
        if kind != "kill":
            self.run(command, "c.cube")
            return new
        before = self.manifest("c.cube")
        self.killed(command, "c.cube")
        # Both states may have the same cells; a manifest of another generation tells which one there is.
        if self.manifest("c.cube") == before:
            return cube
        self.step("kill too late")
        return new


class Imported(Sequence):
    """Two cubes of a database."""

    def play(self):
        """All steps."""
        database = Database(self.rng, self.folder)
        database.write()
        self.step("import")
        if self.rng.random() < 0.3:
            self.step("kill")
            self.killed("import", "palo", "cubes")
        if not os.path.exists(os.path.join(self.folder, "cubes")):
            self.run("import", "palo", "cubes")
        cubes = {name: database.cube(name) for name in database.cubes}
        folder, exports = "cubes", 0
        self.compare(folder, cubes)
        for _ in range(self.rng.randint(*STEPS)):
            if self.rng.random() < 0.75:
                self.changed(f"{folder}/Sales", cubes["Sales"], [cubes["Plan"]])
            else:
                self.step("export")
                exports += 1
                self.run("export", folder, f"palo{exports}")
                folder = f"cubes{exports}"
                self.run("import", f"palo{exports}", folder)
                self.exported(cubes)
            self.compare(folder, cubes)

    @staticmethod
    def exported(cubes):
        """The dimensions of a database are those of the cube that changed them; names are keys again."""
        sales, plan = cubes["Sales"], cubes["Plan"]
        shared = next(one for one in sales.dimensions if one.name == "D")
        for cube in cubes.values():
            rows = {}
            for elements, values in cube.base_rows():
                at = [shared.of_key(one.key) if of.name == "D" else one for of, one in zip(cube.dimensions, elements)]
                rows[tuple(element.name for element in at)] = values
            cube.rows = rows
        for cube in (sales, plan):
            cube.dimensions = [copied(shared) if one.name == "D" else copied(one) for one in cube.dimensions]
            for dimension in cube.dimensions:
                dimension.unlinked = set()
                for element in dimension.elements:
                    element.key = element.name

    def compare(self, folder, cubes):
        """Compares the cells of both cubes."""
        for name, cube in cubes.items():
            self.check(f"{folder}/{name}", cube, True)


def value(number):
    """A number for people."""
    return "empty" if number is None else str(float(number))


def judge(arguments, number, folder):
    """Plays a sequence; gives its steps by kind, and what differs."""
    os.makedirs(folder, exist_ok=True)
    kind = Imported if random.Random(f"kind {arguments.seed} {number}").random() < 0.3 else Defined
    sequence = kind(arguments, number, folder)
    found = None
    try:
        sequence.play()
    except (Differs, subprocess.TimeoutExpired) as error:
        commands = "\n".join(f"  {line}" for line in sequence.log)
        found = f"-- sequence {number}, seed {arguments.seed}\n{commands}\n  {error}"
    if not arguments.keep:
        shutil.rmtree(folder, ignore_errors=True)
    return sequence.counts, found


def main():
    """Plays all sequences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--program", required=True)
    parser.add_argument("--keep")
    parser.add_argument("--only", type=int)
    arguments = parser.parse_args()
    folder = os.path.abspath(arguments.keep) if arguments.keep else tempfile.mkdtemp(prefix="judge-")
    numbers = [arguments.only] if arguments.only is not None else range(arguments.queries)
    print(f"cubes in {folder}, seed {arguments.seed}, {arguments.program} on {arguments.device}", flush=True)
    start, counts, differ = time.monotonic(), {}, 0
    try:
        with ThreadPoolExecutor(os.cpu_count()) as workers:
            played = workers.map(lambda number: judge(arguments, number, os.path.join(folder, str(number))), numbers)
            for steps, found in played:
                for step, count in steps.items():
                    counts[step] = counts.get(step, 0) + count
                if found:
                    differ += 1
                    print(found, flush=True)
    finally:
        if not arguments.keep:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{time.monotonic() - start:.0f} s")
    print(", ".join(f"{count} {step}" for step, count in sorted(counts.items())))
    print(f"{len(numbers)} sequences, {differ} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
