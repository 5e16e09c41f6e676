#!/usr/bin/env bash
# Measures other programs for the cases of the suite `primitives` and writes a JSON line a case to FILE, as
# `warpcube-bench primitives --rivals FILE` reads them. A rival that is not at hand has no line.
#
#   bench/rivals/run.sh FILE [--log-rows LOG2] [--runs RUNS]
#
# NVCC    CUDA's compiler (default: nvcc; without one CUB is left out)
# CCCL    folder of another CUB's headers (default: that of nvcc)
# PYTHON  a Python with PyTorch (default: python3; without one torch is left out)
# BUILD   folder for the programs (default: a temporary one)
set -u
file=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
nvcc=${NVCC:-nvcc}
python=${PYTHON:-python3}
build=${BUILD:-$(mktemp -d)}
mkdir -p "$build"
: >"$file"
if command -v "$nvcc" >/dev/null; then
    # Side by side: templates of CUB take a compiler half a minute each.
    for source in "$here"/cub/*.cu; do
        "$nvcc" -O3 -std=c++17 -arch=native --extended-lambda ${CCCL:+-I "$CCCL"} \
            -o "$build/$(basename "$source" .cu)" "$source" &
    done
    wait
    for source in "$here"/cub/*.cu; do
        program=$build/$(basename "$source" .cu)
        [ ! -x "$program" ] || "$program" "$@" >>"$file" || echo "$program failed" >&2
    done
else
    echo "no nvcc: CUB is not measured" >&2
fi
if "$python" -c "import torch, sys; sys.exit(not torch.cuda.is_available())" 2>/dev/null; then
    "$python" "$here/torch_topk.py" "$@" >>"$file" || echo "torch failed" >&2
else
    echo "no PyTorch with a GPU: torch is not measured" >&2
fi
wc -l <"$file"
