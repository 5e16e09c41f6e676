"""The two engines: Warpcube's program as a child process, DuckDB in this one.

The program reads statements from its standard input and writes each result as an Arrow stream, which keeps types and
NaN. A statement that fails while it runs leaves a stream without an end; the statement behind each, whose one column
is named `judge_mark`, tells where it ended. Messages go to a file.
"""

import os
import re
import subprocess
import tempfile
import threading

import duckdb
import pyarrow as pa

import compare

MARK = "judge_mark"
SCHEMA_MESSAGE = 1


class Failed(Exception):
    """A statement failed; the text is the engine's."""


class Gone(Failed):
    """The program ended, or was ended because it did not answer."""


def number(data, at, size):
    """A little-endian number."""
    return int.from_bytes(data[at : at + size], "little")


def message_of(head):
    """Kind and length of the body of a message, from its FlatBuffer."""
    root = number(head, 0, 4)
    table = root - int.from_bytes(head[root : root + 4], "little", signed=True)
    fields = number(head, table, 2)
    offsets = [number(head, table + 4 + 2 * field, 2) if 4 + 2 * field < fields else 0 for field in range(4)]
    return number(head, root + offsets[1], 1), number(head, root + offsets[3], 8) if offsets[3] else 0


class Warpcube:
    """A running program."""

    def __init__(self, program, device, places, seconds):
        self.seconds = seconds
        self.messages = tempfile.TemporaryFile()
        arguments = [
            program,
            "--device",
            "cpu" if device == "columns" else device,
            "--format",
            "arrow",
            "--continue-on-error",
            "--set",
            f"warpcube.timeout={seconds}s",
            "--set",
            "warpcube.target_partitions=3",
        ]
        if device != "cpu":
            # Columns are loaded whatever that costs, and the footer tells what ran on the device.
            arguments += ["--timing", "--set", "warpcube.load_factor=1000000"]
        if device == "columns":
            arguments += ["--set", "warpcube.placement=columns"]
        self.on_device = 0
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self.messages}
        environment = dict(os.environ, RUST_BACKTRACE="0")
        self.child = subprocess.Popen(arguments + ["-f", "-"], env=environment, **pipes)
        self.read = 0
        for name, place in places:
            self.run(f"CREATE EXTERNAL TABLE {name} STORED AS PARQUET LOCATION '{place}'")

    def close(self):
        """Ends the program."""
        self.child.kill()
        self.child.wait()
        self.child.stdin.close()
        self.child.stdout.close()
        self.messages.close()

    def said(self):
        """What it wrote to its standard error since."""
        self.messages.seek(self.read)
        text = self.messages.read()
        self.read += len(text)
        return text.decode(errors="replace").strip()

    def run(self, sql):
        """Rows of a statement."""
        guard = threading.Timer(self.seconds + 20, self.child.kill)
        guard.start()
        try:
            self.child.stdin.write(f"{sql};\nSELECT 1 AS {MARK};\n".encode())
            self.child.stdin.flush()
            results = self.results()
        except (OSError, EOFError):
            code = self.child.wait()
            raise Gone(f"the program ended ({code}): {self.said()[-600:]}") from None
        finally:
            guard.cancel()
        said = self.said()
        self.on_device += bool(re.search(r"\b[1-9]\d* % on the GPU|CPU, columns", said))
        error = re.search(r"^error: stdin:\d+: (.*)", said, re.MULTILINE | re.DOTALL)
        if error:
            raise Failed(re.sub(r"\n\(.*\)$", "", error[1]))
        return results

    def frame(self):
        """One message, or none at the end of a stream."""
        head = self.exactly(8)
        length = number(head, 4, 4)
        if length == 0:
            return None, head
        metadata = self.exactly(length)
        kind, body = message_of(metadata)
        return kind, head + metadata + self.exactly(body)

    def exactly(self, count):
        """So many bytes of the output."""
        data = self.child.stdout.read(count)
        if len(data) < count:
            raise EOFError
        return data

    def results(self):
        """Rows of the last result before the mark."""
        stream, rows = b"", None
        while True:
            kind, data = self.frame()
            stream = data if kind == SCHEMA_MESSAGE else stream + data
            if kind is not None:
                continue
            table = pa.ipc.open_stream(stream).read_all()
            if table.schema.names == [MARK]:
                return rows
            columns = [compare.of_arrow(column) for column in table.columns]
            rows = list(zip(*columns)) if columns else []


class DuckDB:
    """A connection with the tables in memory, so that its own pruning of files does not judge."""

    def __init__(self, places):
        self.connection = duckdb.connect()
        self.connection.execute(
            "SET TimeZone = 'UTC'; SET threads = 1; SET preserve_insertion_order = true; "
            "SET order_by_non_integer_literal = true; PRAGMA disable_optimizer"
        )
        for name, place in places:
            files = os.path.join(place, "*.parquet") if os.path.isdir(place) else place
            self.connection.execute(f"CREATE TABLE {name} AS SELECT * FROM read_parquet('{files}')")

    def run(self, sql):
        """Rows of a statement."""
        try:
            self.connection.execute(sql)
            if self.connection.description is None:
                return None
            return [tuple(map(compare.of_duckdb, row)) for row in self.connection.fetchall()]
        except duckdb.Error as error:
            raise Failed(str(error)) from None
