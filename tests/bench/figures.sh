# The figures that docs/performance.md holds: what each is, its goal, and how it is measured. Sourced by run and check.
# SPDX-License-Identifier: Apache-2.0

build=${BUILD:-build/release}
program=$build/stagecraft
bench=$build/tests/bench/bench
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Name | what | unit | goal | figure at the last release (none yet: before short runs were looked at) | in the suite | how
figures() {
  sed '/^$/d' <<'END'
version | `stagecraft --version` | million instructions | | 100.9 | yes | millions $program --version
short-run | `stagecraft replay gpt2 --platform mixed-v100-p100 --strategy uniform --schedule 1f1b` | million instructions | | 539.5 | yes | millions $program replay gpt2 --platform mixed-v100-p100 --strategy uniform --schedule 1f1b
version-cpu | `--version` | ms of CPU | 10 | 19 | | milliseconds $program --version
short-run-cpu | the `replay` above | ms of CPU | 40 | 38 | | milliseconds $program replay gpt2 --platform mixed-v100-p100 --strategy uniform --schedule 1f1b
task-analytic | schedule to metrics, analytic, a named schedule | instructions / task | 200 | 202 | yes | library_task analytic
task-list | the same after a list schedule | instructions / task | 600 | 591 | yes | library_task list
task-simgrid | the same on SimGrid | instructions / task | 10000 | 8544 | | library_task simgrid
task-compare | the whole program, `compare`, analytic | instructions / task | 200 | 345 | yes | program_task compared
task-json | the whole program, `replay --format json`, analytic, plan given | instructions / task | 300 | 490 | yes | program_task replayed
task-memory | the whole program, `replay`, analytic, 6.3 million tasks | B / task | 64 | 100 | | memory_task
simgrid-large | `replay` of 6.3 million tasks on SimGrid | s of CPU | 8 | 8.3 | | large_seconds
simgrid-growth | the same, to a quarter of the tasks | times | 4 | 5.2 | | growth
gpt3-analytic | GPT-3 175B on 16 tensor-parallel groups, 192 micro-batches, analytic | s of CPU | | 0.03 | | gpt3 analytic
gpt3-simgrid | the same on SimGrid | s of CPU | | 0.04 | | gpt3 simgrid
gpt3-folded | GPT-3 175B, tensor 8 x pipeline 16 x data 8, 192 micro-batches, 1 024 devices folded, SimGrid, beyond what a tiny run on SimGrid takes to start | s of CPU | 0.1 | 0.6 | | gpt3_beyond_start
llama3-16k | Llama 3 405B, tensor 8 x pipeline 16 x data 128, ZeRO 1, 16 384 devices folded, SimGrid | s of CPU | 1 | 5.6 | | printf '%.2f' "$(llama3_on_devices 1 2048 1)"
llama3-16k-memory | its memory | MB | 200 | 777 | | llama3_megabytes
llama3-16k-fsdp | the same with ZeRO 3 over data | s of CPU | 1 | 7.9 | | printf '%.2f' "$(llama3_on_devices 1 2048 3)"
llama3-2k | the same with ZeRO 1 on 2 048 devices, data 16 | s of CPU | | | | printf '%.2f' "$(llama3_on_devices 1 256 1)"
deepseek-2k | reports/deepseek-v3-h800: five schedules, 64 ranks share experts, 2 048 devices folded, analytic | s of CPU | 2 | 14.2 | | deepseek
deepseek-2k-simgrid | its 1F1B alone on SimGrid, exchanges that meet others tasks | s of CPU | 2 | 12.6 | | deepseek --engine simgrid --set 'compare={strategies: mesh, schedules: 1f1b}'
gpt3-devices | GPT-3 175B, tensor 8 x pipeline 16 x data 8, 192 micro-batches, each of 1 024 devices, SimGrid | s of CPU | 10 | | | printf '%.1f' "$(gpt3_on_devices 1 auto --unfold)"
gpt3-exchanges | the same, every exchange of the tensor-parallel groups a task | s of CPU | 60 | | | printf '%.1f' "$(gpt3_on_devices 1 all --unfold)"
gpt3-memory | the latter's memory | GB | 2 | | | gpt3_gigabytes
compare-8 | tests/bench/gpt2-xl-all.yaml: everything, 8 devices | s of CPU | 8 | 50 | | everything gpt2-xl-all
compare-64 | the same on 64 devices | s of CPU | 30 | over 150 | | everything gpt2-xl-64
compare-128 | the same on 128 devices | s of CPU | 60 | | | everything gpt2-xl-128
END
}

# instructions COMMAND…: of the command and its forked children
instructions() {
  rm -f "$scratch"/out.*
  valgrind --tool=callgrind --callgrind-out-file="$scratch/out.%p" "$@" >/dev/null 2>"$scratch/valgrind"
  awk '/^summary:|^totals:/ {sum[FILENAME] = $2} END {for (f in sum) all += sum[f]; printf "%.0f\n", all}' "$scratch"/out.*
}

millions() { awk -v count="$(instructions "$@")" 'BEGIN {printf "%.1f", count / 1e6}'; }

# Tasks are executed tasks, transfers among them. What a start costs drops out of the difference of two sizes.
per_task() { # SMALL SMALL_TASKS LARGE LARGE_TASKS
  awk -v small="$1" -v tasks="$2" -v large="$3" -v more="$4" 'BEGIN {printf "%.0f", (large - small) / (more - tasks)}'
}

library_task() { # ENGINE
  per_task "$(instructions "$bench" "$1" 32 8)" "$("$bench" "$1" 32 8 | cut -d' ' -f1)" \
    "$(instructions "$bench" "$1" 32 24)" "$("$bench" "$1" 32 24 | cut -d' ' -f1)"
}

# compared COUNTER MICRO_BATCHES …, replayed likewise: the program on 32 uneven stages
compared() {
  "$1" "$program" compare tests/bench/chain32-study.yaml --set training="{global_batch: $2, micro_batches: $2}" "${@:3}"
}
replayed() {
  "$1" "$program" replay tests/bench/chain32.yaml --devices 32 --bandwidth '10 GB/s' --latency '5 us' --engine analytic \
    --plan tests/bench/chain32-plan.yaml --schedule 1f1b --set training="{global_batch: $2, micro_batches: $2}" --format json
}
tasks_of() { grep -o '"tasks": *[0-9]*' | head -n 1 | grep -o '[0-9]*$'; }

program_task() { # compared|replayed
  per_task "$($1 instructions 64)" "$($1 command 64 --format json | tasks_of)" \
    "$($1 instructions 256)" "$($1 command 256 --format json | tasks_of)"
}

# spent FIELD COMMAND…: processor seconds (1) or the most bytes held (2)
spent() { "$build/tests/bench/spent" "${@:2}" | cut -d' ' -f"$1"; }
# Of a short run: twenty together, since one lasts less than the clock of processor time tells; the quickest of five.
milliseconds() {
  for _ in {1..5}; do
    spent 1 bash -c 'for _ in {1..20}; do "$@" >/dev/null; done' -- "$@"
  done | sort -g | awk 'NR == 1 {printf "%.1f", $1 * 1000 / 20}'
}

everything() { printf '%.1f' "$(spent 1 "$program" compare "tests/bench/$1.yaml" --quiet)"; }

# chain OPERATORS OUTPUT: a model whose times differ by up to a thousandth, so that no two events coincide by chance
chain() {
  awk -v count="$1" -v output="$2" 'BEGIN {
    print "name: chain\nprofile: {samples: 1}\nlayers:"
    for (i = 0; i < count; ++i) {
      part = i * 37 % 101 / 101000
      printf "  - {name: a%d, kind: matmul, forward: 0, output: %d, parameters: 1000, forward_time: %.4f ms, backward_time: %.4f ms}\n",
        i, output + i, 1 + part, 2 + 2 * part
    }
  }' >"$scratch/chain.yaml"
}
# pipeline FIELD DEVICES ENGINE MICRO_BATCHES: what a run of the chain on so many devices spends
pipeline() {
  spent "$1" "$program" replay "$scratch/chain.yaml" --devices "$2" --bandwidth '10 GB/s' --latency '5 us' --strategy uniform \
    --schedule 1f1b --engine "$3" --set training="{global_batch: $4, micro_batches: $4}"
}

# Its 96 layers, with the activations of a sequence in 16 bits.
gpt3() {
  chain 96 $((2048 * 12288))
  printf '%.2f' "$(pipeline 1 16 "$1" 192)"
}

# gpt3_on_devices FIELD DETAIL [FLAG]
gpt3_on_devices() {
  spent "$1" "$program" replay gpt3-175b --platform '128 x dgx-a100' --strategy mesh --schedule 1f1b --quiet --detail "$2" "${@:3}" --set \
    training='{global_batch: 1536, micro_batches: 192, precision: bf16, recompute: blocks, parallel: {tensor: 8, pipeline: 16, data: 8}}'
}

# The quickest of five, less the quickest of five of a run of two devices, which loads what SimGrid needs too.
quickest() { for _ in {1..5}; do "$@"; done | sort -g | head -1; }
tiny_on_simgrid() {
  spent 1 "$program" replay tests/study/chain.yaml --devices 2 --bandwidth '1 GB/s' --strategy uniform --engine simgrid-full
}
gpt3_beyond_start() {
  awk -v all="$(quickest gpt3_on_devices 1 auto)" -v start="$(quickest tiny_on_simgrid)" 'BEGIN {printf "%.3f", all - start}'
}

# llama3_on_devices FIELD NODES ZERO: a sequence for each micro-batch of a replica
llama3_on_devices() {
  local data=$(($2 / 16))
  spent "$1" "$program" replay llama3-405b --platform "$2 x dgx-h100" --strategy mesh --schedule 1f1b --set \
    training="{global_batch: 2048, micro_batches: $((2048 / data)), precision: bf16, parallel: {tensor: 8, sequence: true, pipeline: 16, data: $data, zero: $3}}"
}

deepseek() { printf '%.2f' "$(spent 1 "$program" compare reports/deepseek-v3-h800/study.yaml --quiet "$@")"; }

llama3_megabytes() { llama3_on_devices 2 2048 1 | awk '{printf "%.0f", $1 / 1e6}'; }
gpt3_gigabytes() { gpt3_on_devices 2 all --unfold | awk '{printf "%.2f", $1 / 1e9}'; }

# large FIELD ENGINE MICRO_BATCHES: what a run of 3 072 stages spends; tasks_of_large MICRO_BATCHES
large() {
  chain 3072 1000000
  pipeline "$1" 3072 "$2" "$3"
}
tasks_of_large() { echo $((2 * (2 * 3072 - 1) * $1 + 3072)); } # F and B of each stage, both ways over each boundary, a step each

large_seconds() { printf '%.1f' "$(large 1 simgrid 512)"; }
memory_task() {
  per_task "$(large 2 analytic 128)" "$(tasks_of_large 128)" "$(large 2 analytic 512)" "$(tasks_of_large 512)"
}
growth() {
  awk -v large="$(large 1 simgrid 512)" -v small="$(large 1 simgrid 128)" 'BEGIN {printf "%.1f", large / small}'
}

# measured NAME: the figure
measured() { eval "$(figures | awk -F' *[|] *' -v name="$1" '$1 == name {print $NF}')"; }
