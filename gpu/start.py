"""Times processes of one statement, from their start to their end, with the device and without, in turns.

Arguments: the program, the folder of SSB's tables, and the file for the results.
"""

import ctypes
import datetime
import json
import re
import statistics
import subprocess
import sys
import time

program, folder, file = sys.argv[1:]
RUNS = 21
# Opens the driver's first device, and ends.
BARE = """
import ctypes
driver, context, device = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_int()
assert driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(device), 0) == 0
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
"""
# Loads the compiler of kernels too.
COMPILER = BARE + """
compiler, major, minor = ctypes.CDLL({!r}), ctypes.c_int(), ctypes.c_int()
assert compiler.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)) == 0
"""
SUM = (
    f"SELECT lo_discount, sum(lo_extendedprice) s FROM '{folder}/lineorder/' WHERE lo_quantity < 25 "
    "GROUP BY 1 ORDER BY 1"
)


def milliseconds(command):
    """The time of one process."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return (time.perf_counter() - start) * 1e3


doctor = subprocess.run([program, "doctor"], check=True, capture_output=True, text=True).stdout
compiler = re.search(r"NVRTC .* in (/\S+)", doctor)
cases = {
    "one on auto": [program, "-c", "SELECT 1"],
    "one on cpu": [program, "--device", "cpu", "-c", "SELECT 1"],
    "one on cuda": [program, "--device", "cuda", "-c", "SELECT 1"],
    "first statement on auto": [program, "-c", SUM],
    "first statement on cpu": [program, "--device", "cpu", "-c", SUM],
    "first statement on cuda": [program, "--device", "cuda", "-c", SUM],
    "python": [sys.executable, "-c", "import ctypes"],
    "python with the driver": [sys.executable, "-c", BARE],
    "python with driver and compiler": [sys.executable, "-c", COMPILER.format(compiler and compiler[1])],
}
# In turns, so that all cases see the same machine; the first turn brings files near and is left out.
turns = [{case: milliseconds(command) for case, command in cases.items()} for _ in range(RUNS + 1)][1:]
results = []
for case in cases:
    times = [turn[case] for turn in turns]
    results.append({"case": case, "process_ms": statistics.median(times), "times_ms": times})
    print(f"{case}: {statistics.median(times):.1f} ms")
name = ctypes.create_string_buffer(100)
driver = ctypes.CDLL("libcuda.so.1")
driver.cuInit(0)
driver.cuDeviceGetName(name, 100, 0)
commit = re.search(r"\((\w+)\)", doctor)
report = {
    "suite": "start",
    "device": name.value.decode(),
    "date": datetime.date.today().isoformat(),
    "commit": commit and commit[1],
    "params": {"runs": RUNS},
    "results": results,
}
with open(file, "w", encoding="utf-8") as output:
    json.dump(report, output, indent=1)
    output.write("\n")
