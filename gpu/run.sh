#!/usr/bin/env bash
# Runs stages on a machine with an NVIDIA GPU, each under its own time limit, and leaves logs and results in one folder.
#
#   gpu/run.sh STAGE…        stages in order; a stage that fails does not stop the others
#
# WARPCUBE  the program (default: target/release/warpcube)     OUT   folder for results (default: gpu/out)
# BENCH     the program of suites without SQL (default: target/release/warpcube-bench)
# GPU       the name of the GPU in names of results (default: by nvidia-smi)
# DATA      folder for generated data (default: /tmp/warpcube-data)
# ANSWERS   folder of the reference's answers at scale 1, compared in stage answers if given
# TESTS     the program of crates/sql/tests/sql (stages sql, sql-sanitizer and fuzz)
# PRIMS_TESTS   the program of crates/gpu/tests/prims (stage primitives-sanitizer), and
# OPERATORS_TESTS that of crates/bench/tests/operators
# BASE      an older program (stage base-turns)
# CUBE_TESTS    the programs of crates/cube/tests, and of crates/arrays/tests (stages cube-tests and cube-sanitizer)
# COLUMN_TESTS  the programs of crates/column/tests (stage column)
# STREAM_TESTS  the programs of crates/gpu/tests/events.rs and cuda_cancel.rs (stage streams)
# NVCC, CCCL, PYTHON  what rivals are built and run with (stage primitives; bench/rivals/run.sh); a PYTHON with DuckDB's
#           package (default: .venv/bin/python, or python3) has it measured too (ssb, tpch, tpcds, clickbench,
#           h2o, windows)
set -u
cd "$(dirname "$0")/.."
# NVRTC is found in the Python environment that is active, or in the project's.
[ ! -d .venv ] || export VIRTUAL_ENV="${VIRTUAL_ENV:-$PWD/.venv}"
warpcube=${WARPCUBE:-target/release/warpcube}
suites=${BENCH:-target/release/warpcube-bench}
out=${OUT:-gpu/out}
data=${DATA:-/tmp/warpcube-data}
tests=${TESTS:-target/release/deps/sql}
prims_tests=${PRIMS_TESTS:-target/release/deps/prims}
operators_tests=${OPERATORS_TESTS:-target/release/deps/operators}
export FUZZ_FROM=${FUZZ_FROM:-100000} FUZZ_SEEDS=${FUZZ_SEEDS:-2000} FUZZ_ROWS=${FUZZ_ROWS:-1000000}
mkdir -p "$out" "$data"
failed=0
# Results are named by the GPU: h200 for "NVIDIA H200".
gpu=${GPU:-$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | awk 'NR == 1 { print tolower($2) }')}
export gpu=${gpu:-gpu}
fields=name,driver_version,memory.total,clocks.sm,clocks.mem

# DuckDB, where its package is.
duckdb=()
rival_python=${PYTHON:-.venv/bin/python}
[ -x "$rival_python" ] || rival_python=${PYTHON:-python3}
"$rival_python" -c "import duckdb" 2>/dev/null && duckdb=(--rival duckdb --python "$rival_python")

# limit NAME SECONDS COMMAND…: runs a stage, its log in $out/NAME.log
limit() {
    local name=$1 seconds=$2 start=$SECONDS
    shift 2
    echo "== $name"
    timeout "$seconds" "$@" >"$out/$name.log" 2>&1
    local status=$?
    tail -n "${TAIL:-30}" "$out/$name.log"
    echo "== $name: exit $status after $((SECONDS - start)) s"
    [ "$status" -eq 0 ] || failed=1
}

# bench NAME SECONDS ARGUMENT…: runs a benchmark with an empty cache of kernels, and without the one that NVRTC 13 has,
# so that first runs compile.
bench() {
    local name=$1 seconds=$2 cache
    shift 2
    cache=$(mktemp -d)
    limit "$name" "$seconds" env WARPCUBE_CACHE="$cache" CUDA_CACHE_DISABLE=1 "$warpcube" "$@"
    rm -rf "$cache"
}

# primitives_file: the results that stages of primitives add to, those committed where there are none yet.
primitives_file() {
    local file=primitives-$gpu.json
    [ -e "$out/$file" ] || [ ! -e "bench/results/$file" ] || cp "bench/results/$file" "$out/"
}

for stage in "$@"; do
    case $stage in
    probe) limit probe 60 bash -c "nvidia-smi --query-gpu=$fields --format=csv; '$warpcube' doctor" ;;
    answers)
        limit answers 120 "$warpcube" ssb --sf 1 --dir "$data/ssb1" --device cuda --verify \
            ${ANSWERS:+--answers "$ANSWERS"} --json "$out/ssb-sf1.json"
        ;;
    ssb)
        bench ssb 500 ssb --sf 20 --dir "$data/ssb20" --device cuda --verify --runs "${RUNS:-15}" "${duckdb[@]}" \
            --json "$out/ssb-$gpu-sf20.json"
        ;;
    ssb-plain)
        bench ssb-plain 400 ssb --sf 20 --dir "$data/ssb20" --device cuda --encoding plain --verify \
            --runs "${RUNS:-15}" --json "$out/ssb-$gpu-sf20-plain.json"
        ;;
    topk)
        # First rows in SQL.
        bench topk 300 bench topk --sf 20 --dir "$data/ssb20" --device cuda --verify --runs "${RUNS:-15}" \
            --json "$out/topk-$gpu-sf20.json"
        ;;
    encodings)
        limit encodings 300 "$suites" encodings --json "$out/encodings-$gpu.json"
        limit encodings-nulls 200 "$suites" encodings --nulls --json "$out/encodings-$gpu-nulls.json"
        ;;
    deltas)
        # Differences in both layouts, beside what they are made of.
        limit deltas 120 "$suites" encodings --encodings plain,packed,delta,gpu-dfor --bits 4,8,16 --decode \
            --json "$out/encodings-$gpu-delta.json"
        ;;
    distributions)
        # All encodings, decoded to memory too, and the columns that encodings differ in.
        all=plain,packed,nsf,nsv,rle,gpu-for,gpu-dfor,delta,dictionary,alp
        limit distributions 580 "$suites" encodings --encodings "$all" --bits 4,8,12,16,24 --decode --distributions \
            --runs 9 --json "$out/distributions-$gpu.json"
        ;;
    distributions-packed)
        # The encoding whose parameters are chosen, patches among them, by itself.
        limit distributions-packed 200 "$suites" encodings --encodings plain,packed --bits 8 --decode --distributions \
            --runs 9 --json "$out/distributions-$gpu-packed.json"
        ;;
    primitives)
        # Rivals first, on the same device: CUB where nvcc is, torch where PYTHON has it. Then all cases but those of
        # stage ordered-forms, in several processes that add to one file, so that one which is too slow loses its own
        # results alone: ten minutes in all. Results that are not measured again stay as they were committed, with their
        # commit. CASES names other cases.
        limit rivals 200 bench/rivals/run.sh "$out/rivals.jsonl" --runs "${RUNS:-9}"
        primitives_file
        # some SECONDS CASES: measures cases.
        some() {
            local name
            name=primitives-$(printf %s "${2%%,*}" | tr / -)
            limit "$name" "$1" "$suites" primitives --cases "$2" --runs "${RUNS:-9}" --rivals "$out/rivals.jsonl" \
                --json "$out/primitives-$gpu.json" --update
        }
        if [ -n "${CASES:-}" ]; then
            some 380 "$CASES"
        else
            some 50 select,project,scan,ordered/count,ordered/sum,sort,segsort,partition,select-sent
            some 60 random,join,groupby
            some 120 topk/f32
            some 90 topk/i32,topk/u32,topk/f64,topk/i64,topk/u64
            some 60 large
        fi
        ;;
    ordered-forms)
        # Every algorithm of ordered aggregation on every shape of data, at the paper's 2^15 rows and, beside the other
        # primitives, at 2^28: there in a process a shape, which adds to one file. CASES names other cases.
        primitives_file
        # forms NAME CASES ARGUMENT…: measures cases.
        forms() {
            local name=$1 cases=$2
            shift 2
            limit "$name" 300 "$suites" primitives --cases "$cases" --runs "${RUNS:-9}" \
                --findings "$out/findings.json" "$@"
        }
        forms ordered-forms-16 "${CASES:-ordered/forms}" --log-rows 16 --json "$out/ordered-forms-$gpu-15.json"
        for shape in ${CASES:-16 1024 65536 16777216 all skewed}; do
            cases=
            for algorithm in single_pass {five,three,two,one}_kernel/{direct_atomics,chunked_atomics} \
                {five,three,two,one}_kernel/private_{variable,array}; do
                cases+=${cases:+,}ordered/forms/$algorithm/count/$shape,ordered/forms/$algorithm/sum/$shape
            done
            name=ordered-forms-29-$(printf %s "${shape%%,*}" | tr / -)
            forms "$name" "${CASES:-$cases}" --json "$out/primitives-$gpu.json" --update
        done
        ;;
    primitives-sanitizer)
        # The tests of primitives and of operators on the GPU (PRIMS_TESTS and OPERATORS_TESTS: their programs), then
        # each that launches kernels under each tool, in processes side by side: kernels come from the cache then.
        export WARPCUBE_TEST_DEVICE=cuda
        without="--skip small_device --skip refused --skip scratch_memory"
        limit primitives-tests 200 "$prims_tests" --test-threads 8 $without
        limit operators-tests 200 "$operators_tests" --test-threads 8 $without
        limit primitives-sanitizer 400 bash -c '
            logs=$1/primitives-sanitizer without=$2
            shift 2
            mkdir -p "$logs"
            # Racecheck loses track of a kernel now and then, or hangs, and tries again.
            one() {
                local tests=$3 log=$logs/$1-${2//:/_}.log status try
                for try in 1 2 3; do
                    timeout 150 compute-sanitizer --tool "$1" --force-blocking-launches --error-exitcode 9 \
                        "$tests" --test-threads 1 --exact "$2" >"$log" 2>&1
                    status=$?
                    [ $status -eq 124 ] || grep -q "Internal Sanitizer Error" "$log" || break
                done
                [ $status -eq 0 ] || echo "$1 $2: exit $status after $try tries"
            }
            export -f one
            export logs
            for tests in "$@"; do
                for tool in ${TOOLS:-memcheck racecheck synccheck}; do
                    "$tests" --list $without | sed -n "s|^\(.*\): test$|one $tool \1 $tests|p"
                done
            done | xargs -P "${JOBS:-15}" -d "\n" -n 1 bash -c | tee "$logs/failed.txt"
            grep -h "^========= .*SUMMARY" "$logs"/*.log | sort | uniq -c
            grep -h "^test result" "$logs"/*.log | cut -d. -f1 | sort | uniq -c
            [ ! -s "$logs/failed.txt" ]
        ' primitives-sanitizer "$out" "$without" "$prims_tests" "$operators_tests"
        unset WARPCUBE_TEST_DEVICE
        ;;
    cube)
        # The six queries of the benchmark cubes with the algorithm that the cost model chooses.
        limit cube 400 "$suites" cube --json "$out/cube-$gpu.json"
        ;;
    cube-rules)
        # COUNT, AVG, MIN, MAX, doubles, fractional weights and sums of 128 bits over Machines.
        limit cube-rules 500 "$suites" cube --cases M1,M2,M3 --rules --runs 9 --json "$out/cube-rules-$gpu.json"
        ;;
    cube-algorithms)
        # The six queries by every algorithm of the device.
        limit cube-algorithms 580 "$suites" cube --algorithms all --json "$out/cube-algorithms-$gpu.json"
        ;;
    cube-tables)
        # Tables 5.2 to 5.8 of Meinke's thesis: counts of atomic additions, numbers of hash functions, one core.
        TAIL=400 limit cube-tables 400 "$suites" cube --tables --runs 5 --seconds 220 \
            --json "$out/cube-tables-$gpu.json"
        ;;
    cube-tests)
        # The algorithms and schemes of cubes on the GPU (CUBE_TESTS: programs of crates/cube/tests and
        # crates/arrays/tests).
        for test in ${CUBE_TESTS:-target/release/deps/device_source}; do
            WARPCUBE_TEST_DEVICE=cuda limit "cube-$(basename "$test")" 300 "$test" --test-threads 8
        done
        ;;
    cube-sanitizer)
        # Memcheck, racecheck and synccheck over the kernels of cubes, in up to 16 processes side by side: small
        # benchmark cubes by every algorithm, every scheme, and the tests of CUBE_TESTS (programs of the tests `equal`
        # and `device_source`), which draw rules, types, weights and time balances. The tests run without a tool first,
        # so that their kernels are compiled. Racecheck and synccheck do not follow kernels that launch kernels, and
        # count them as errors: of the tests, those of contraction alone are left to them.
        limit cube-sanitizer 580 bash -c '
            suites=$1 out=$2
            export WARPCUBE_TEST_DEVICE=cuda out
            without=gpu-target
            for way in thread balanced host-children host-child-blocks; do
                for sums in none first-shared shuffle strided match; do
                    [ "$way/$sums" = thread/strided ] || without=$without,gpu-source/$sums/$way/h64
                done
            done
            rm -f "$out"/sanitizer-{cube,schemes,tests}-*
            # one NAME TOOL SEED COMMAND…: a line of outcome in a file of its own, the rest in a log.
            one() {
                local log=$out/sanitizer-$1-$2-$3
                WARPCUBE_TEST_SEED=$3 timeout 480 compute-sanitizer --tool "$2" --error-exitcode 9 "${@:4}" \
                    >"$log.log" 2>&1
                local status=$?
                echo "$1 $2 $3: exit $status, $(grep -h SUMMARY "$log.log" || echo no summary)" | tee "$log.txt"
            }
            export -f one
            tests() { "$1" --list --format terse | sed -n "s/: test$//p" | grep "$2" | grep -v emulated_device; }
            test_jobs() {
                for seed in $(seq "${SEEDS:-2}"); do
                    for program in $CUBE_TESTS; do
                        for test in $(tests "$program" "$2"); do echo "$1 $seed $program $test"; done
                    done
                done
            }
            export WARPCUBE_TEST_CASES=${CASES:-3}
            for seed in $(seq "${SEEDS:-2}"); do
                for program in $CUBE_TESTS; do
                    WARPCUBE_TEST_SEED=$seed timeout 120 "$program" >>"$out/sanitizer-tests-plain.log" 2>&1 ||
                        echo "$program, seed $seed, fails without a tool" | tee -a "$out/sanitizer-tests-plain.txt" &
                done
            done
            wait
            {
                for tool in memcheck racecheck synccheck; do
                    algorithms=$without
                    [ $tool != memcheck ] || algorithms=all
                    echo "cube $tool 1 $suites cube --facts 8000 --runs 1 --algorithms $algorithms"
                    echo "schemes $tool 1 $suites schemes --cells 20000 --lookups 5000 --runs 1"
                done
                test_jobs memcheck . | while read -r tool seed program test; do
                    echo "tests-${test//::/-} $tool $seed $program --exact $test"
                done
                for tool in racecheck synccheck; do
                    test_jobs $tool rules_and_types | while read -r tool seed program test; do
                        echo "tests-${test//::/-} $tool $seed $program --exact $test"
                    done
                done
            } >"$out/sanitizer-jobs.txt"
            xargs -P 16 -d "\n" -I LINE bash -c "one LINE" <"$out/sanitizer-jobs.txt"
            right=$(cat "$out"/sanitizer-{cube,schemes,tests}-*.txt | grep -c "exit 0, .*SUMMARY: 0")
            echo "$right of $(wc -l <"$out/sanitizer-jobs.txt") processes without an error"
            ! grep -hv "exit 0, .*SUMMARY: 0" "$out"/sanitizer-{cube,schemes,tests}-*.txt &&
                [ "$right" -eq "$(wc -l <"$out/sanitizer-jobs.txt")" ]
        ' cube-sanitizer "$suites" "$out"
        ;;
    schemes)
        limit schemes 580 "$suites" schemes --cells 2000000 --json "$out/schemes-$gpu.json"
        ;;
    schemes-large)
        # Ten million cells (or MILLION) take one core for minutes: the arrays of few and of many dimensions side by
        # side.
        limit schemes-large 590 bash -c '
            part() { "$1" schemes --cells "$4"000000 --cases "$3" --json "$2" >"${2%.json}.log" 2>&1; }
            part "$1" "$2/schemes-$gpu-$3m-k23.json" "*/*/k2/*,*/*/k3/*" "$3" &
            first=$!
            part "$1" "$2/schemes-$gpu-$3m-k48.json" "*/*/k4/*,*/*/k8/*" "$3"
            second=$?
            wait $first && [ $second -eq 0 ]
        ' schemes-large "$suites" "$out" "${MILLION:-10}"
        ;;
    htree) limit htree 580 "$suites" htree --json "$out/htree-$gpu.json" ;;
    # One core takes minutes for the tree that the device's is compared with.
    htree-100m)
        limit htree-100m 590 "$suites" htree --cases build/100M --runs 5 --json "$out/htree-$gpu-100m.json"
        ;;
    # One core takes minutes for each algorithm.
    cube-operator)
        limit cube-operator 590 "$suites" cube-operator --rows "${CUBE_ROWS:-10000000}" \
            --json "$out/cube-operator-$gpu.json"
        ;;
    encode) limit encode 300 "$suites" encode --json "$out/encode-$gpu.json" ;;
    ssb100)
        bench ssb100 580 ssb --sf 100 --dir "$data/ssb100" --device cuda --verify --runs "${RUNS:-15}" \
            --json "$out/ssb-$gpu-sf100.json"
        ;;
    base-turns)
        # An older program (BASE) and this one in turn, a process each: SSB, TPC-H and the benchmark cubes on the GPU,
        # SSB and TPC-H on the CPU; SUITES names some of them, or tpcds-cuda, clickbench-cuda and h2o-cuda.
        limit base-turns 590 bash -c '
            out=$1 data=$2 base=$3 program=$4 suites=$5
            for turn in $(seq 1 "${TURNS:-3}"); do
                # Either goes first in turn.
                [ $((turn % 2)) = 1 ] && order="base this" || order="this base"
                for which in $order; do
                    [ $which = base ] && one=$base || one=$program
                    run() {
                        [[ " $suites " = *" $1 "* ]] || return 0
                        "$one" "${@:2}" --json "$out/turn-$turn-$which-$1.part" >/dev/null || exit 1
                    }
                    run ssb-cuda ssb --sf 20 --dir "$data/ssb20" --device cuda --runs 15
                    run tpch-cuda tpch --sf 10 --dir "$data/tpch10" --device cuda --runs 15
                    run cubes-cuda bench cube --device cuda
                    run ssb-cpu ssb --sf 10 --dir "$data/ssb10" --device cpu --runs 3
                    run tpch-cpu tpch --sf 3 --dir "$data/tpch3" --device cpu --runs 3
                    run tpcds-cuda bench tpcds --sf 5 --dir "$data/tpcds" --device cuda --runs 3
                    run clickbench-cuda bench clickbench --dir "$data/clickbench" --device cuda --runs 3
                    run h2o-cuda bench h2o --dir "$data/h2o" --device cuda
                done
            done
            python3 gpu/base_turns.py "$out" "${TURNS:-3}"
            rm -f "$out"/turn-*.part
        ' base-turns "$out" "$data" "${BASE:?}" "$warpcube" \
            "${SUITES:-ssb-cuda tpch-cuda cubes-cuda ssb-cpu tpch-cpu}"
        ;;
    start)
        # Processes of one statement: what they take where they use the device, and where they do not.
        limit start 300 bash -c '
            "$3" ssb --sf 20 --dir "$2/ssb20" --device cpu --runs 1 >/dev/null || exit 1
            python3 gpu/start.py "$3" "$2/ssb20" "$1/start-$gpu.json"
        ' start "$out" "$data" "$warpcube"
        ;;
    ssb-turns)
        # Plain columns and encoded ones in turn, a process each: first loads, from files that have just been read, with
        # kernels at hand and without, and device times.
        limit ssb-turns 300 bash -c '
            out=$1 data=$2 program=$3
            run() {
                "$program" ssb --sf 20 --dir "$data/ssb20" --device cuda --encoding "$1" --runs "$2" --json "$3" \
                    >/dev/null || exit 1
            }
            for turn in $(seq 0 "${TURNS:-5}"); do
                for encoding in plain auto; do
                    run $encoding 15 "$out/turn-$turn-$encoding.part"
                    cache=$(mktemp -d)
                    WARPCUBE_CACHE=$cache CUDA_CACHE_DISABLE=1 run $encoding 1 "$out/turn-$turn-$encoding-cold.part"
                    rm -rf "$cache"
                done
            done
            python3 - "$out" "${TURNS:-5}" <<EOF
import json, sys
read = lambda turn, encoding: json.load(open("%s/turn-%d-%s.part" % (sys.argv[1], turn, encoding)))
# The first turn brings files and kernels near.
counted = range(1, int(sys.argv[2]) + 1)
turns = [(read(turn, "plain"), read(turn, "auto")) for turn in counted]
cold = [(read(turn, "plain-cold"), read(turn, "auto-cold")) for turn in counted]
whole = {key: turns[0][0][key] for key in ("device", "driver", "date", "commit")}
whole["suite"], whole["params"] = "turns", {"sf": 20, "device": "cuda"}
def row(case, figure, turns=turns):
    plain, auto = [[figure(turn[which]) for turn in turns] for which in (0, 1)]
    return {"case": case, "plain_ms": plain, "auto_ms": auto}
loading = lambda run: run["loading"]["ms"]
whole["results"] = [row("loading", loading), row("loading, nothing compiled", loading, cold)]
for number, query in enumerate(turns[0][0]["results"]):
    whole["results"].append(row(query["case"], lambda run: run["results"][number]["device_ms"]))
json.dump(whole, open(sys.argv[1] + "/turns-$gpu-sf20.json", "w"), indent=2)
for result in whole["results"]:
    print(result)
EOF
            rm -f "$out"/turn-*.part
        ' ssb-turns "$out" "$data" "$warpcube"
        ;;
    ssb-sorted)
        # The flight that filters by date alone.
        bench ssb-sorted 500 ssb --sf 20 --dir "$data/ssb20" --device cuda --verify --sorted-by lo_orderdate \
            --queries q1.1,q1.2,q1.3 --runs "${RUNS:-15}" --json "$out/ssb-$gpu-sf20-sorted.json"
        ;;
    ssb-threads)
        # Eight threads on the device memory of one query, in the form its columns are loaded in, and a fifth more.
        limit ssb-one 200 "$warpcube" ssb --sf 20 --dir "$data/ssb20" --device cuda --queries q4.3 --runs 1 \
            --json "$out/one.json"
        memory=$(python3 -c "
import json, sys
print(json.load(open(sys.argv[1]))['memory']['reserved_peak_bytes'] * 6 // 5)" "$out/one.json")
        limit ssb-threads 400 "$warpcube" ssb --sf 20 --dir "$data/ssb20" --device cuda --verify --runs 3 --threads 8 \
            --set "warpcube.device_memory=$memory" --json "$out/ssb-$gpu-sf20-threads.json"
        ;;
    ssb-cpu)
        # Without a device: columns in host memory, beside DataFusion.
        limit ssb-cpu 400 "$warpcube" ssb --sf 20 --dir "$data/ssb20" --device cpu --verify --runs "${RUNS:-7}" \
            "${duckdb[@]}" --json "$out/ssb-cpu-sf20.json"
        ;;
    tpch-cpu)
        limit tpch-cpu 500 "$warpcube" tpch --sf "${TPCH_SF:-10}" --dir "$data/tpch" --device cpu --verify \
            --runs "${RUNS:-7}" "${duckdb[@]}" --json "$out/tpch-cpu-sf10.json"
        ;;
    ssb-auto)
        # First runs where the device is not insisted on: what loads and compiles has to pay.
        bench ssb-auto 400 ssb --sf 20 --dir "$data/ssb20" --device auto --verify --runs 3 \
            --json "$out/ssb-$gpu-sf20-auto.json"
        ;;
    first-runs)
        # First runs under auto, in processes with an empty cache of kernels, each statement behind DataFusion's.
        limit first-runs 500 bash -c '
            out=$1 data=$2 program=$3
            for case in ssb:20:ssb20 tpch:10:tpch; do
                IFS=: read -r suite sf folder <<<"$case"
                arguments=("$suite" --sf "$sf" --dir "$data/$folder" --runs 1)
                # Files that were just written still go to the disk.
                "$program" "${arguments[@]}" --device cpu >/dev/null && sync || exit 1
                for turn in $(seq 1 "${TURNS:-3}"); do
                    cache=$(mktemp -d)
                    WARPCUBE_CACHE=$cache CUDA_CACHE_DISABLE=1 "$program" "${arguments[@]}" --device auto --verify \
                        --json "$out/first-$suite-$turn.part" >/dev/null || exit 1
                    rm -rf "$cache"
                done
            done
            python3 - "$out" "${TURNS:-3}" <<EOF
import json, sys
whole = None
for suite in ("ssb", "tpch"):
    parts = ["%s/first-%s-%d.part" % (sys.argv[1], suite, turn + 1) for turn in range(int(sys.argv[2]))]
    turns = [json.load(open(part)) for part in parts]
    if whole is None:
        whole = {key: turns[0][key] for key in ("device", "driver", "date", "commit")}
        whole.update(suite="first-runs", params={"device": "auto", "processes": len(turns)}, results=[])
    for runs in zip(*(turn["results"] for turn in turns)):
        case = "%s sf %g, %s" % (suite.upper(), turns[0]["params"]["sf"], runs[0]["case"])
        rival = [run["rivals"]["datafusion_first_ms"] for run in runs]
        whole["results"].append({"case": case, "datafusion_ms": rival, "auto_ms": [run["first_ms"] for run in runs]})
json.dump(whole, open(sys.argv[1] + "/first-runs-$gpu.json", "w"), indent=2)
median = lambda times: sorted(times)[len(times) // 2]
for result in whole["results"]:
    rival, own = median(result["datafusion_ms"]), median(result["auto_ms"])
    print("%-20s %7.0f %7.0f %5.2f" % (result["case"], rival, own, own / rival))
EOF
            rm -f "$out"/first-*.part
        ' first-runs "$out" "$data" "$warpcube"
        ;;
    interrupts)
        # Ctrl-C in the shell: from the key to the next prompt, wherever a statement is.
        limit interrupts-data 200 "$warpcube" ssb --sf 20 --dir "$data/ssb20" --device cuda --queries q1.1 --runs 1
        limit interrupts 300 python3 gpu/interrupts.py "$warpcube" "$data/ssb20" "$out/interrupts-$gpu.json"
        ;;
    tpch)
        bench tpch 590 tpch --sf "${TPCH_SF:-10}" --dir "$data/tpch" --device auto --verify "${duckdb[@]}" \
            --json "$out/tpch-$gpu-sf10.json"
        ;;
    tpch100)
        # Compressed, the files leave memory for who reads them. DuckDB's answers are compared by their sums.
        over=()
        [ ${#duckdb[@]} -eq 0 ] || over=(--rival duckdb-files --python "$rival_python")
        bench tpch100 590 tpch --sf 100 --dir "$data/tpch100" --compression zstd --device cuda "${over[@]}" \
            --json "$out/tpch-$gpu-sf100.json"
        ;;
    tpcds)
        # First runs compile, some seconds a query.
        bench tpcds 590 bench tpcds --sf "${TPCDS_SF:-5}" --dir "$data/tpcds" --device auto --verify --runs 3 \
            "${duckdb[@]}" --json "$out/tpcds-$gpu-sf${TPCDS_SF:-5}.json"
        ;;
    clickbench)
        bench clickbench 590 bench clickbench --rows "${HITS:-20000000}" --dir "$data/clickbench" --device cuda \
            --verify --runs 3 "${duckdb[@]}" --json "$out/clickbench-$gpu.json"
        ;;
    h2o)
        bench h2o 500 bench h2o --dir "$data/h2o" --device cuda --verify "${duckdb[@]}" --json "$out/h2o-$gpu.json"
        ;;
    windows)
        bench windows 590 bench windows --rows "${WINDOW_ROWS:-268435456}" --dir "$data/windows" --device cuda \
            --runs 3 "${duckdb[@]}" --json "$out/windows-$gpu.json"
        ;;
    tune)
        # Each line of TUNINGS is a value of WARPCUBE_TUNING; the device times of all go into one file, a line each.
        limit tune 550 bash -c '
            data=$1 out=$2 program=$3
            while IFS= read -r tuning; do
                file=$out/tune.json.tmp
                WARPCUBE_TUNING=$tuning "$program" ssb --sf 20 --dir "$data/ssb20" --device cuda --runs "${RUNS:-15}" \
                    --queries "${QUERIES:-q1.1,q1.2,q1.3,q2.1,q2.3,q3.1,q3.3,q4.1}" --json "$file" >/dev/null ||
                    echo failed
                python3 -c "
import json, sys
results = json.load(open(sys.argv[1]))[\"results\"]
times = lambda key: \" \".join(\"%.3f\" % r.get(key, 0) for r in results)
print(times(\"device_ms\"), \" | \", times(\"warm_ms\"), \" | \", sys.argv[2])" "$file" "$tuning"
            done | tee "$out/tune.txt"
        ' tune "$data" "$out" "$warpcube" <"${TUNINGS:-gpu/tunings.txt}"
        ;;
    sanitizer)
        for tool in memcheck racecheck synccheck; do
            limit "sanitizer-$tool" 200 compute-sanitizer --tool "$tool" --target-processes all --error-exitcode 9 \
                "$warpcube" ssb --sf 0.02 --dir "$data/ssb002" --device cuda --runs 1
        done
        ;;
    sql)
        # The SQL tests (TESTS: their program) on the GPU instead of the emulated device.
        CARGO_MANIFEST_DIR=$PWD/crates/sql WARPCUBE_TEST_DEVICE=cuda \
            limit sql 300 "$tests" --test-threads 4 --skip random_queries --skip random_first_rows
        ;;
    sql-encodings)
        # SQL files and fuzzed queries with columns in one encoding after the other, side by side; DataFusion's files
        # too, where they are (WARPCUBE_SQLLOGICTEST). Vectors of small tables are skipped as those of large ones are.
        export files=${WARPCUBE_SQLLOGICTEST:+datafusion_files::} WARPCUBE_SQLLOGICTEST_ALL=1
        CARGO_MANIFEST_DIR=$PWD/crates/sql WARPCUBE_TEST_DEVICE=cuda WARPCUBE_FUZZ_DEVICE=cuda \
            WARPCUBE_TUNING=tiers=0,skip_rows=0 \
            limit sql-encodings 400 bash -c '
            rm -f "$2"/encoding-*.log
            for encoding in ${ENCODINGS:-plain packed nsf nsv rle gpu-for gpu-dfor delta dictionary alp mixed}; do
                WARPCUBE_TEST_ENCODING=$encoding "$1" slt::our_files random_queries ssb:: $files --test-threads 1 \
                    >"$2/encoding-$encoding.log" 2>&1 &
            done
            wait
            grep -H "^test result" "$2"/encoding-*.log
            [ "$(grep -l "^test result: ok" "$2"/encoding-*.log | wc -l)" -eq "$(ls "$2"/encoding-*.log | wc -l)" ]
        ' sql-encodings "$tests" "$out"
        ;;
    streams)
        # Events between streams, and kernels that are ended from another thread while they fill the device.
        for test in ${STREAM_TESTS:-target/release/deps/events target/release/deps/cuda_cancel}; do
            WARPCUBE_TEST_DEVICE=cuda limit "streams-$(basename "$test")" 60 "$test" --include-ignored --test-threads 1
        done
        ;;
    column)
        # Every encoding, encoded and decoded by the GPU, against the CPU.
        for test in ${COLUMN_TESTS:-target/release/deps/encodings target/release/deps/residency}; do
            WARPCUBE_TEST_DEVICE=cuda limit "column-$(basename "$test")" 300 "$test" --test-threads 8 \
                views ladder encoded profiles packed named choice
        done
        ;;
    column-sanitizer)
        # Each of those tests under memcheck, in processes side by side.
        WARPCUBE_TEST_DEVICE=cuda limit column-sanitizer 400 bash -c '
            logs=$1/column-sanitizer
            shift
            mkdir -p "$logs"
            one() {
                local log=$logs/$(basename "$1")-${2//:/_}.log
                timeout 300 compute-sanitizer --tool memcheck --error-exitcode 9 "$1" --exact "$2" >"$log" 2>&1 ||
                    echo "$2: exit $?"
            }
            export -f one
            export logs
            for program in "$@"; do
                "$program" --list views:: ladder:: encoded:: | sed -n "s|^\(.*\): test$|one $program \1|p"
            done | xargs -P "${JOBS:-15}" -d "\n" -n 1 bash -c | tee "$logs/failed.txt"
            grep -h "ERROR SUMMARY" "$logs"/*.log | sort | uniq -c
            [ ! -s "$logs/failed.txt" ]
        ' column-sanitizer "$out" ${COLUMN_TESTS:-target/release/deps/encodings target/release/deps/residency}
        ;;
    sql-sanitizer)
        # Each tool over each SQL file, and over the tests that ask again, in processes side by side: a tool makes a
        # process many times slower. Kernels come from the cache if stage sql ran before.
        CARGO_MANIFEST_DIR=$PWD/crates/sql WARPCUBE_TEST_DEVICE=cuda limit sql-sanitizer 580 bash -c '
            tests=$1 logs=$2/sanitizer
            mkdir -p "$logs"
            # Racecheck loses track of kernels that start before the last one ends, and now and then of one when threads
            # launch side by side ("failure to track a kernel launch", or it hangs): it gets one core, and tries again.
            one() {
                local log=$logs/$1-$2.log pin="" status try
                if [ "$1" = racecheck ]; then
                    export WARPCUBE_TUNING=early_launch=false,tiers=0
                    pin="taskset -c $((SLOT % $(nproc)))"
                fi
                for try in 1 2 3 4; do
                    timeout 150 $pin compute-sanitizer --tool "$1" --target-processes all --force-blocking-launches \
                        --error-exitcode 9 "$tests" --test-threads 1 ${3:-slt::our_files} >"$log" 2>&1
                    status=$?
                    [ $status -eq 124 ] || grep -q "Internal Sanitizer Error" "$log" || break
                done
                [ $status -eq 0 ] || echo "$1 $2: exit $status after $try tries"
            }
            export -f one
            export tests logs
            for tool in ${TOOLS:-memcheck racecheck synccheck}; do
                for file in ${FILES:-slt/*.slt slt/regressions/*.slt}; do
                    echo "WARPCUBE_SLT_FILE=$file one $tool $(basename "$file" .slt)"
                done
                echo "one $tool again \"again:: changes:: ssb::\""
            done | xargs -P "${JOBS:-12}" --process-slot-var=SLOT -d "\n" -n 1 bash -c | tee "$logs/failed.txt"
            grep -h "^========= .*SUMMARY" "$logs"/*.log | sort | uniq -c
            grep -h "^test result" "$logs"/*.log | cut -d. -f1 | sort | uniq -c
            [ ! -s "$logs/failed.txt" ]
        ' sql-sanitizer "$tests" "$out"
        ;;
    fuzz)
        # 2,000 seeds over a million rows, 16 processes side by side; each notes what it did in a log of its own. Half
        # of them take the kernels of first runs, the others those of later ones.
        limit fuzz 580 bash -c '
            tests=$1 out=$2
            mkdir -p "$out/fuzz"
            for part in $(seq 0 15); do
                from=$((FUZZ_FROM + part * FUZZ_SEEDS / 16)) to=$((FUZZ_FROM + (part + 1) * FUZZ_SEEDS / 16))
                WARPCUBE_FUZZ_SEEDS=$from..$to WARPCUBE_FUZZ_DEVICE=cuda WARPCUBE_FUZZ_ROWS=$FUZZ_ROWS \
                    WARPCUBE_TUNING=tiers=$((part % 2)) WARPCUBE_FUZZ_LOG=$out/fuzz/$part.log \
                    "$tests" random_queries random_first_rows >"$out/fuzz/$part.txt" 2>&1 &
            done
            wait
            cat "$out"/fuzz/*.log >"$out/fuzz.txt"
            for word in same raised answered refused DIFFERS; do echo "$word: $(grep -c " $word" "$out/fuzz.txt")"; done
            ! grep " DIFFERS" "$out/fuzz.txt" && ! grep -l "^test result: FAILED" "$out"/fuzz/*.txt
        ' fuzz "$tests" "$out"
        ;;
    *)
        echo "unknown stage '$stage': probe, answers, ssb, topk, ssb-plain, ssb-sorted, ssb-turns, base-turns, start," \
            "ssb-auto, ssb-threads, ssb-cpu, tpch-cpu, ssb100, first-runs, encodings, deltas, distributions," \
            "distributions-packed, encode, primitives, ordered-forms, primitives-sanitizer, cube, cube-rules," \
            "cube-algorithms, cube-tables, cube-tests, cube-sanitizer, schemes, schemes-large, htree, htree-100m," \
            "cube-operator, tpch, tpch100," \
            "tpcds, clickbench, h2o, windows, interrupts, tune, streams, sanitizer, sql, sql-encodings, column," \
            "column-sanitizer, sql-sanitizer, fuzz" >&2
        exit 2
        ;;
    esac
done
exit $failed
