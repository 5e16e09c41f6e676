"""torch.topk beside the cases topk/f32/…: a JSON line a case, as warpcube-bench's --rivals reads them.

Usage: torch_topk.py [--log-rows 29] [--runs 21]
"""

import argparse
import json
import statistics

import torch

KS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 1 << 20]


def keys(distribution, n):
    """Keys as crates/bench/src/prims/topk.rs makes them, by torch's own generator."""
    torch.manual_seed(1)
    if distribution == "ascending":
        return torch.arange(n, device="cuda", dtype=torch.float32) / n
    if distribution == "equal":
        return torch.ones(n, device="cuda")
    if distribution == "bucket_killer":
        # Ones, but for a few that differ in one byte each.
        made = torch.ones(n, device="cuda")
        part = n // 5 + 1
        bits = made.view(torch.int32)
        for byte in range(4):
            at = part * byte + part - 1
            if at < n:
                bits[at] ^= 1 << (8 * byte + 3)
        return made
    return torch.rand(n, device="cuda")


def milliseconds(call, runs):
    """The median of the runs behind a first one, by events; slow calls get fewer."""
    times = []
    for run in range(runs + 1):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        result = call()
        end.record()
        end.synchronize()
        del result
        if run:
            times.append(start.elapsed_time(end))
        if run >= 3 and sum(times) > 1000:
            break
    return statistics.median_low(times)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--log-rows", type=int, default=29)
    arguments.add_argument("--runs", type=int, default=21)
    given = arguments.parse_args()
    line = {
        "rival": "torch",
        "version": torch.__version__,
        "device": torch.cuda.get_device_name(),
        "log_rows": given.log_rows,
    }
    n = 1 << given.log_rows
    for distribution in ["uniform", "ascending", "equal", "bucket_killer"]:
        made = keys(distribution, n)
        for k in KS:
            if k <= n:
                ms = milliseconds(lambda: torch.topk(made, k), given.runs)
                print(json.dumps({**line, "case": f"topk/f32/{distribution}/{k}", "ms": ms}), flush=True)


if __name__ == "__main__":
    main()
