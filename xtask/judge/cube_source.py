"""Sources of cubes: definitions with their files of facts and of dimensions, and Palo databases."""

import os
from fractions import Fraction

from cube_model import Cube, Dimension, Measure

SCHEMES = ["bess", "coordinate", "offset-value", "xcrs", "xccs", "bxcrs", "hybrid:2", "auto"]
RULES = [("S", "sum"), ("N", "rows"), ("C", "count"), ("A", "avg"), ("L", "min"), ("G", "max")]


def schemes(dimensions):
    """Storage schemes of a cube of so many dimensions."""
    return SCHEMES if dimensions > 1 else [scheme for scheme in SCHEMES if scheme != "hybrid:2"]


class Form:
    """A dimension of a definition: where its elements come from."""

    def __init__(self, rng, name, at):
        self.name, self.at = name, at
        self.kind = rng.choice(["values", "levels", "parents", "table", "list"])
        self.has_all = rng.random() < 0.5
        # Keys of base elements that rows may have, and the group of each.
        self.keys = [f"{name.lower()}{number}" for number in range(rng.randint(2, 7))]
        # Some of them are two elements, whose keys differ in case alone.
        self.keys += [key.upper() for key in self.keys if rng.random() < 0.2]
        self.groups = {key: self.group(rng) for key in self.keys}
        self.listed = list(self.keys)

    def group(self, rng):
        """The name of a group."""
        return f"{self.name.lower()}g{rng.randrange(3)}"

    def change(self, rng):
        """The source changes: another group of a key, one key more."""
        if rng.random() < 0.5:
            self.groups[rng.choice(self.keys)] = self.group(rng)
        if rng.random() < 0.5:
            twin = rng.choice(self.keys).swapcase()
            key = twin if rng.random() < 0.3 and twin not in self.keys else f"{self.name.lower()}{len(self.keys)}"
            self.keys.append(key)
            self.groups[key] = self.group(rng)

    def written(self, key, number):
        """A key as the facts write it in a row: now and then in another case where it is the only one."""
        known = self.listed if self.kind == "list" else self.keys
        is_sole = self.kind in ("parents", "table", "list") and key.swapcase() not in known
        return key.swapcase() if is_sole and number % 3 == 0 else key

    def definition(self):
        """Its line of a definition."""
        column, name = f"k{self.at}", self.name
        fields = {
            "values": [f"column: {column}"],
            "levels": [f"levels: [g{self.at}, {column}]"],
            "parents": [f"column: {column}", f"table: {name}.csv", "key: id", "parent: up", "unknown: aside"],
            "table": [f"column: {column}", f"table: {name}.csv", "levels: [up, id]", "unknown: aside"],
            "list": [f"column: {column}", f"elements: [{', '.join(self.listed)}]", "unknown: aside"],
        }[self.kind]
        return f"  {name}: {{{', '.join(fields + ([f'all: {name}All'] if self.has_all else []))}}}\n"

    def write(self, folder):
        """Its table, if it has one."""
        if self.kind == "parents":
            groups = sorted(set(self.groups.values()))
            rows = [(group, "") for group in groups] + [(key, self.groups[key]) for key in self.keys]
            text = "id,up\n" + "".join(f"{key},{up}\n" for key, up in rows)
        elif self.kind == "table":
            text = "up,id\n" + "".join(f"{self.groups[key]},{key}\n" for key in self.keys)
        else:
            return
        with open(os.path.join(folder, f"{self.name}.csv"), "w", encoding="utf-8") as file:
            file.write(text)

    def dimension(self, rows):
        """The dimension as the source has it."""
        made = Dimension(self.name)
        made.has_levels = self.kind in ("levels", "table")
        used = {keys[self.at] for keys, _ in rows}
        keys = {"values": used, "levels": used, "list": set(self.listed)}.get(self.kind, set(self.keys))
        for key in sorted(keys):
            made.add(key, True, key)
        bases = list(made.elements)
        if self.kind in ("levels", "parents", "table"):
            used_groups = {self.groups[base.key] for base in bases}
            groups = {group: made.add(group, False, group) for group in sorted(used_groups)}
            for base in bases:
                groups[self.groups[base.key]].children[base] = Fraction(1)
        if self.has_all:
            roots = [element for element in made.elements if not made.parents(element)]
            made.add(f"{self.name}All", False, f"{self.name}All").children = {root: Fraction(1) for root in roots}
        return made


class Source:
    """A definition with its facts."""

    def __init__(self, rng, folder):
        self.folder = folder
        names = ["D", "E", "F"][: rng.randint(1, 3)]
        self.forms = [Form(rng, name, at) for at, name in enumerate(names)]
        self.is_double = rng.random() < 0.3
        rules = [RULES[0]] + rng.sample(RULES[1:], rng.randint(0, 3))
        self.measures = [Measure(name, rule, 2) for name, rule in rules]
        self.storage = rng.choice(schemes(len(names))) if rng.random() < 0.5 else None
        self.rows = [self.row(rng) for _ in range(rng.randint(1, 40))]
        self.rows[0] = (self.rows[0][0], Fraction(rng.randint(-9999, 9999) * 2 + 1, 100))

    def row(self, rng):
        """A row: keys and an amount, which may be missing."""
        amount = None if rng.random() < 0.1 else Fraction(rng.randint(-99999, 99999), 100)
        return tuple(rng.choice(form.keys) for form in self.forms), amount

    def change(self, rng):
        """Another state of the source."""
        for form in self.forms:
            form.change(rng)
        kept = [row for row in self.rows[1:] if rng.random() < 0.8]
        self.rows = self.rows[:1] + kept + [self.row(rng) for _ in range(rng.randint(0, 10))]

    def write(self):
        """All files."""
        for form in self.forms:
            form.write(self.folder)
        with open(os.path.join(self.folder, "facts.csv"), "w", encoding="utf-8") as file:
            keys = [f"k{form.at}" for form in self.forms]
            groups = [f"g{form.at}" for form in self.forms]
            file.write(",".join(keys + groups + ["amount"]) + "\n")
            for number, (row, amount) in enumerate(self.rows):
                cells = [form.written(key, number) for form, key in zip(self.forms, row)] + [form.groups[key] for form, key in zip(self.forms, row)]
                file.write(",".join(cells + ["" if amount is None else f"{float(amount):.2f}"]) + "\n")
        kind = "double" if self.is_double else "decimal(2)"
        text = f"cube: c\nfacts: {{file: facts.csv}}\nvalue: {{type: {kind}}}\nmeasures:\n"
        for measure in self.measures:
            rule = "count" if measure.rule == "rows" else measure.rule
            column = "" if measure.rule == "rows" else "column: amount, "
            text += f"  {measure.name}: {{{column}rule: {rule}}}\n"
        text += "dimensions:\n" + "".join(form.definition() for form in self.forms)
        text += f"storage: {self.storage}\n" if self.storage else ""
        with open(os.path.join(self.folder, "c.yaml"), "w", encoding="utf-8") as file:
            file.write(text)

    def cube(self, old=None, command="load"):
        """The cube of this state, in the place of an old one that of a refresh or a load."""
        dimensions = [form.dimension(self.rows) for form in self.forms]
        rows = {}
        for keys, amount in self.rows:
            elements = [dimension.meant(key) for dimension, key in zip(dimensions, keys)]
            if all(elements):
                rows.setdefault(tuple(element.key for element in elements), []).append(amount)
        if old:
            made = Dimension.refreshed if command == "refresh" else Dimension.loaded
            dimensions = [made(was, now) for was, now in zip(old.dimensions, dimensions)]
        return Cube(dimensions, self.measures, rows)


class Database:
    """A Palo database of two cubes that share a dimension, `D`."""

    def __init__(self, rng, folder):
        self.folder = os.path.join(folder, "palo")
        self.dimensions = {name: self.dimension(rng, name) for name in "DEF"}
        self.cubes = {"Sales": ["D", "E"], "Plan": ["F", "D"]}
        self.cells = {name: self.facts(rng, of) for name, of in self.cubes.items()}

    @staticmethod
    def dimension(rng, name):
        """Base elements below consolidated ones, which may nest."""
        made = Dimension(name)
        for number in range(rng.randint(1, 6)):
            made.add(f"{name.lower()}{number}", True, f"{name.lower()}{number}")
        for number in range(rng.randint(0, 3)):
            children = rng.sample(made.elements, rng.randint(1, len(made.elements)))
            parent = made.add(f"{name.lower()}g{number}", False, f"{name.lower()}g{number}")
            parent.children = {child: Fraction(rng.choice([1, 1, -1, 2])) for child in children}
        return made

    def facts(self, rng, names):
        """Values of some base cells."""
        bases = [[one.key for one in self.dimensions[name].elements if one.is_base] for name in names]
        paths = [()]
        for keys in bases:
            paths = [(*path, key) for path in paths for key in keys]
        return {path: [Fraction(rng.randint(-999, 999), 4)] for path in paths if rng.random() < 0.6}

    def write(self):
        """All files."""
        os.makedirs(self.folder)
        numbers = {name: number for number, name in enumerate(self.dimensions, 1)}
        lines = ["[DATABASE]", f"{len(numbers)};{len(self.cubes)};1;", "[DIMENSIONS]"]
        lines += [f'{number};"{name}";1;1;1;1;' for name, number in numbers.items()]
        for name, number in numbers.items():
            dimension = self.dimensions[name]
            ids = {element: at for at, element in enumerate(dimension.elements)}
            lines += [f"[DIMENSION {number}]", f'{number};"{name}";1;1;1;{len(ids)};', f"[ELEMENTS DIMENSION {number}]"]
            for element, at in ids.items():
                parents = ",".join(str(ids[parent]) for parent in dimension.parents(element))
                children = ",".join(str(ids[child]) for child in element.children)
                weights = ",".join(str(weight) for weight in element.children.values())
                kind, level = (1, 0) if element.is_base else (4, 1)
                lines.append(f'{at};"{element.name}";{at};{kind};0;{level};1;0;{parents};{children};{weights};')
        lines.append("[CUBES]")
        for at, (name, of) in enumerate(self.cubes.items(), 1):
            lines.append(f'{at};"{name}";{",".join(str(numbers[one]) for one in of)};2;1;1;')
            self.write_cells(at, name, of)
        self.put("database.csv", lines)

    def write_cells(self, number, name, names):
        """The cells of a cube."""
        places = [{one.key: at for at, one in enumerate(self.dimensions[of].elements)} for of in names]
        sizes = ",".join(str(len(of)) for of in places)
        lines = ["[CUBE]", f"{number};{sizes};", "[NUMERIC]"]
        for path, (value,) in self.cells[name].items():
            at = ",".join(str(of[key]) for of, key in zip(places, path))
            lines.append(f"{at};{float(value)!r};")
        self.put(f"database_CUBE_{number}.csv", lines)

    def put(self, name, lines):
        """Writes a file."""
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")

    def cube(self, name):
        """A cube of the database, whose dimensions are its own."""
        dimensions = [copied(self.dimensions[of]) for of in self.cubes[name]]
        return Cube(dimensions, [Measure("Value", "sum", None)], dict(self.cells[name]))


def copied(dimension):
    """Another dimension of the same elements."""
    made = Dimension(dimension.name)
    now = {element: made.add(element.name, element.is_base, element.key) for element in dimension.elements}
    for element in dimension.elements:
        now[element].children = {now[child]: weight for child, weight in element.children.items()}
    return made
