"""Puts the runs of stage base-turns together: times of an older program and of this one, a pair a turn.

Arguments: the folder of the runs, and how many turns there were.
"""

import json
import math
import os
import statistics
import sys

folder, turns = sys.argv[1], range(1, int(sys.argv[2]) + 1)


def read(turn, which, suite):
    """The report of a run."""
    with open(f"{folder}/turn-{turn}-{which}-{suite}.part", encoding="utf-8") as file:
        return json.load(file)


results = []
on_gpu, on_cpu = ("device_ms", "warm_ms"), ("warm_ms",)
suites = {"ssb-cuda": on_gpu, "tpch-cuda": on_gpu, "cubes-cuda": on_gpu, "ssb-cpu": on_cpu, "tpch-cpu": on_cpu}
suites |= {"tpcds-cuda": on_gpu, "clickbench-cuda": on_gpu, "h2o-cuda": on_gpu}
suites = {suite: figures for suite, figures in suites.items() if os.path.exists(f"{folder}/turn-1-this-{suite}.part")}
for suite, figures in suites.items():
    runs = {which: [read(turn, which, suite)["results"] for turn in turns] for which in ("base", "this")}
    for figure in figures:
        ratios, fastest = [], []
        for number, query in enumerate(runs["this"][0]):
            times = {which: [run[number].get(figure) for run in runs[which]] for which in runs}
            if None in times["base"] + times["this"]:
                continue
            ratios.append(statistics.median(times["this"]) / statistics.median(times["base"]))
            fastest.append(min(times["this"]) / min(times["base"]))
            case = f"{suite}/{query['case']}"
            results.append({"case": case, "figure": figure, "base_ms": times["base"], "this_ms": times["this"]})
        ratio, of_fastest = (math.exp(statistics.mean(map(math.log, found))) for found in (ratios, fastest))
        print(f"{suite} {figure}: {ratio:.3f} of the base, {of_fastest:.3f} of its fastest turns, {len(ratios)} cases")
        results.append({"case": suite, "figure": figure, "ratio": ratio, "ratio_of_fastest": of_fastest})
first = {which: read(1, which, next(iter(suites))) for which in ("base", "this")}
whole = {key: first["this"].get(key) for key in ("device", "driver", "date", "commit")}
whole |= {"suite": "base-turns", "params": {"base": first["base"]["commit"], "turns": len(turns)}, "results": results}
with open(f"{folder}/base-turns-h200.json", "w", encoding="utf-8") as file:
    json.dump(whole, file, indent=1)
    file.write("\n")
