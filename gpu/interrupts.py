#!/usr/bin/env python3
"""Times Ctrl-C in the shell: from the key to the next prompt, while a statement plans, reads, loads, compiles or runs.

    gpu/interrupts.py PROGRAM FOLDER FILE

FOLDER holds the tables of `warpcube ssb` (any scale; 20 makes statements long enough), FILE takes the result as JSON.
Each statement is interrupted at many moments, each time in a program of its own; one that ended before the key came
is not counted. The device is named, so that nothing is answered by the CPU but what is asked of it.
"""

import json
import os
import pty
import select
import subprocess
import sys
import tempfile
import time

# What the line editor says when it begins to read a line, and when it has one.
PROMPT, SENT = b"\x1b[?2004h", b"\x1b[?2004l\r\n"
TABLES = ["lineorder", "customer", "supplier", "part", "date"]
REVENUE = """SELECT d_year, c_nation, sum(lo_revenue - lo_supplycost) FROM date, customer, supplier, part, lineorder
 WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_partkey = p_partkey AND lo_orderdate = d_datekey
 GROUP BY d_year, c_nation"""
# On the device: a hash table of a group for each order, made anew until it is large enough, and millions of rows back.
ORDERS = "SELECT lo_orderkey, sum(lo_revenue), max(lo_discount) FROM lineorder GROUP BY lo_orderkey"
# By name: the device, what comes first, the statement, whether kernels are at hand, moments of the key in seconds.
CASES = {
    "CPU, join": ("cpu", [], REVENUE.replace("lo_revenue - lo_supplycost", "lo_revenue % 7"), True, (0.02, 0.3, 8)),
    "CPU, groups": ("cpu", [], ORDERS, True, (0.02, 1.0, 8)),
    "GPU, loading and compiling": ("cuda", [], REVENUE, False, (0.02, 0.9, 16)),
    "GPU, loading": ("cuda", [], REVENUE, True, (0.02, 0.3, 8)),
    "GPU, running": ("cuda", ["LOAD TABLE lineorder (lo_orderkey, lo_revenue, lo_discount)"], ORDERS, True,
                     (0.005, 0.3, 12)),
}


class Shell:
    """The program on a terminal."""

    def __init__(self, program, device, cache):
        environment = dict(os.environ, TERM="xterm", WARPCUBE_CACHE=cache, WARPCUBE_HISTORY="", CUDA_CACHE_DISABLE="1")
        environment.pop("WARPCUBE_RC", None)
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execve(program, [program, "--device", device], environment)
        self.read = b""
        self.expect(PROMPT)

    def press(self, keys):
        os.write(self.terminal, keys)

    def seen(self, seconds):
        """What came within some time, or none if nothing did."""
        if not select.select([self.terminal], [], [], seconds)[0]:
            return None
        return os.read(self.terminal, 65536)

    def expect(self, text, patience=120):
        """Waits for a text; what came before it."""
        end = time.monotonic() + patience
        while text not in self.read:
            more = self.seen(max(end - time.monotonic(), 0))
            if more is None:
                sys.exit(f"no {text} in {self.read[-2000:]}")
            self.read += more
        before, self.read = self.read.split(text, 1)
        return before

    def run(self, statement):
        """Runs a statement to its end; what it shows."""
        self.begin(statement)
        return self.expect(PROMPT)

    def begin(self, statement):
        self.press(" ".join(statement.split()).encode() + b";\r")
        self.expect(SENT)

    def close(self):
        self.press(b"\\q\r")
        os.waitpid(self.pid, 0)
        os.close(self.terminal)


def opened(program, folder, case, cache):
    """A shell with the tables of a case, and what comes before its statement done."""
    device, before = case[:2]
    shell = Shell(program, device, cache)
    for table in TABLES:
        path = os.path.join(folder, table)
        location = path + "/" if os.path.isdir(path) else path + ".parquet"
        before = [f"CREATE EXTERNAL TABLE {table} STORED AS PARQUET LOCATION '{location}'"] + before
    for statement in before:
        shown = shell.run(statement)
        assert b"rror" not in shown, shown
    return shell


def once(program, folder, case, moment, cache):
    """Milliseconds from the key to the prompt; none if the statement had ended."""
    shell = opened(program, folder, case, cache)
    shell.begin(case[2])
    time.sleep(moment)
    clock = time.monotonic()
    shell.press(b"\x03")
    shown = shell.expect(PROMPT)
    taken = (time.monotonic() - clock) * 1e3
    # A key that came too late gives another prompt.
    while shell.seen(0.2):
        pass
    shell.read = b""
    # The session goes on.
    assert b"42" in shell.run("SELECT 6 * 7")
    shell.close()
    return taken if b"cancelled" in shown else None


def main():
    program, folder, file = sys.argv[1:]
    program = os.path.abspath(program)
    results = []
    with tempfile.TemporaryDirectory() as warm:
        for name, case in CASES.items():
            first, last, count = case[4]
            if case[3]:
                # Kernels are compiled and files are near.
                shell = opened(program, folder, case, warm)
                shell.run(case[2])
                shell.close()
            times = []
            for number in range(count):
                moment = first + (last - first) * number / (count - 1)
                with tempfile.TemporaryDirectory() as cold:
                    times.append(once(program, folder, case, moment, warm if case[3] else cold))
            counted = [time for time in times if time is not None]
            if not counted:
                sys.exit(f"{name}: all statements had ended")
            results.append({"case": name, "interrupts": len(counted), "ended_before": len(times) - len(counted),
                            "median_ms": sorted(counted)[len(counted) // 2], "most_ms": max(counted)})
            print(results[-1], flush=True)
    doctor = json.loads(subprocess.run([program, "doctor", "--json"], capture_output=True, text=True).stdout)
    gpu = (doctor["gpus"] or [{"name": "CPU", "cuda_version": None}])[0]
    whole = {"suite": "interrupts", "device": gpu["name"], "driver": gpu["cuda_version"],
             "date": time.strftime("%Y-%m-%d"), "commit": doctor["commit"],
             "params": {"folder": os.path.basename(folder.rstrip("/"))}, "results": results}
    with open(file, "w") as out:
        json.dump(whole, out, indent=2)
    worst = max(result["most_ms"] for result in results)
    sys.exit(f"{worst:.0f} ms are more than 200" if worst > 200 else 0)


main()
