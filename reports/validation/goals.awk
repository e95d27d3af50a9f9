# What was aimed at, what is reached today, and whether that is enough. Reads cases.csv, what flat.awk makes of the
# result, what-ifs.csv, sailor.csv and rows.csv. Errors are means of absolute errors unless a row says otherwise.
# SPDX-License-Identifier: Apache-2.0
FILENAME ~ /facts/ {
  split($0, fact, "\t")
  if (fact[1] == "which_runs_fit" && fact[2] == "groups" && fact[3] == "llm_foundry_mpt") fits[fact[4]] = fact[5]
  if (fact[1] == "which_runs_fit" && fact[2] == "predicted_to_fit_though_it_did_not") missed = fact[3]
  if (fact[1] == "rankings" && fact[3] == "spearman") list["ranks", ++rows["ranks"]] = fact[4]
  if (fact[1] == "rankings" && fact[3] == "regret") list["regrets", ++rows["regrets"]] = fact[4]
  if (fact[1] == "calibration" && fact[3] == "group") group = fact[4]
  if (fact[1] == "calibration" && fact[3] == "metric") metric = fact[4]
  if (fact[1] == "calibration" && fact[3] == "error") add("taught " group " " metric, fact[4])
  next
}
!read_row() { next }
FILENAME ~ /cases/ {
  device[cell["case"]] = cell["gpu"]
  if (cell["model"] ~ /hybrid/) hybrid[cell["case"]] = 1 # of attention, state spaces and experts
  if (cell["metric"] ~ /^peak_memory_stage/) of_stage[cell["case"]] = 1
  if (cell["metric"] == "out_of_memory" && cell["value"] == 1) ++ran_out
  next
}
FILENAME ~ /what-ifs/ {
  if (cell["setting"] == "device type") next
  compare("all")
  if (cell["table"] ~ /^(bridge_whatif_ab|torchtitan|simumax_b200|llm_foundry_mpt)$/) {
    compare("asked")
    if (cell["table"] != "llm_foundry_mpt" || cell["setting"] != "sequence length") compare("hard")
  }
  next
}
FILENAME ~ /sailor/ {
  add(cell["group"] " " cell["metric"], cell["error"])
  next
}
{
  key = cell["group"] " " cell["metric"]
  add(key, cell["error"])
  if (cell["metric"] == "iteration_seconds" && cell["group"] == "mlperf_llm") {
    of_plan[cell["predicted"], ++runs[cell["predicted"]]] = cell["measured"]
  }
  if (cell["group"] ~ /^(megatron_bridge|nemo)/) add(cell["group"] (cell["family"] ~ /mixtures/ || cell["case"] in hybrid ? " mixtures" : " dense"), cell["error"])
  if (cell["case"] in of_stage) add("stages", cell["error"])
  if (cell["group"] ~ /^(neusight_e2e|nvidia_dle)$/) add("device " device[cell["case"]], cell["error"])
  if (cell["high"] != "") {
    kind = cell["family"] ~ /^memory/ ? "memory" : "times"
    ++bounded[kind]
    inside[kind] += cell["measured"] + 0 >= cell["low"] + 0 && cell["measured"] + 0 <= cell["high"] + 0
  }
}
function add(key, error) {
  list[key, ++rows[key]] = size(error)
  sum[key] += size(error)
  if (size(error) > largest[key]) largest[key] = size(error)
}
function compare(key) {
  ++pairs[key]
  ratio[key, pairs[key]] = size(cell["error"])
  if (cell["tie"] == 1) return
  ++decided[key]
  right[key] += (cell["measured"] - 1) * (cell["predicted"] - 1) > 0
}
function show(what, n, aim, today, is_reached) {
  print "| " what " | " n " | " aim " | " today " | " (is_reached ? "yes" : "no") " |"
}
# Whether it is reached is judged by the figure as it is printed.
function rounded(x) { return sprintf("%.3f", x) + 0 }
function most(what, key, limit) {
  if (!(key in rows)) return
  show(what, rows[key], "at most " limit " %", percent(sum[key] / rows[key]), rounded(sum[key] / rows[key]) <= limit / 100)
}
function worst(what, key, limit) { show(what, rows[key], "at most " limit " %", percent(largest[key]), rounded(largest[key]) <= limit / 100) }
function changes(what, key) {
  show(what ": direction of the change right", decided[key], "at least 90 %", percent(right[key] / decided[key]), rounded(right[key] / decided[key]) >= 0.9)
  show(what ": ratio, median", pairs[key], "at most 4 %", percent(median(ratio, key, pairs[key])), rounded(median(ratio, key, pairs[key])) <= 0.04)
}
function holds(what, key, part) {
  part = rounded(inside[key] / bounded[key])
  show(what, bounded[key], "85 to 95 %", percent(part), part >= 0.85 && part <= 0.95)
}
# Each plan of MLPerf once, by the median of who measured it.
function once_each_plan(plan, error) {
  for (plan in runs) {
    error = plan / median(of_plan, plan, runs[plan]) - 1
    add("plans", error)
  }
}
function devices(key, good, all, worst_mean, worst_name, mean) {
  for (key in rows) {
    if (key !~ /^device /) continue
    ++all
    mean = rounded(sum[key] / rows[key])
    good += mean <= 0.12
    if (mean > worst_mean) {
      worst_mean = mean
      worst_name = substr(key, 8)
    }
  }
  show("the same two sets, the worst device (" worst_name "); " good " of " all " are within 12 %", rows["device " worst_name], "at most 12 %", percent(worst_mean), worst_mean <= 0.12)
}
END {
  once_each_plan()
  print "| what | rows | goal | today | reached |"
  print "|---|---|---|---|---|"
  most("Korthikanti (`korthikanti`), times", "korthikanti iteration_seconds", 3)
  worst("the same, largest error", "korthikanti iteration_seconds", 8)
  most("Narayanan et al. 2021 (`megatron_sc21`)", "megatron_sc21 iteration_seconds", 6)
  most("vTrain on one node (`vtrain_single_node`)", "vtrain_single_node iteration_seconds", 7)
  most("vTrain on several nodes (`vtrain_multi_node`)", "vtrain_multi_node iteration_seconds", 9)
  most("Zero Bubble (`zero_bubble`), rates", "zero_bubble samples_per_device_second", 4)
  most("Sailor on GH200, times", "clariden iteration_seconds", 7)
  most("the same, peak memory", "clariden peak_memory_bytes", 10)
  most("Sailor on unlike RTX nodes, times", "mit iteration_seconds", 8)
  most("the same, peak memory", "mit peak_memory_bytes", 10)
  most("NeuSight (`neusight_e2e`), iterations", "neusight_e2e iteration_seconds", 12)
  most("the same, forwards alone", "neusight_e2e forward_seconds", 12)
  most("the same, backwards alone", "neusight_e2e backward_seconds", 12)
  most("NVIDIA's examples (`nvidia_dle`), images and BERT", "nvidia_dle samples_per_second", 12)
  most("the same, Transformer-XL", "nvidia_dle tokens_per_second", 12)
  devices()
  most("llm-foundry (`llm_foundry_mpt`)", "llm_foundry_mpt tokens_per_device_second", 6)
  show("the same, runs that fitted and are predicted to", fits["runs"], "100.0 %", percent(fits["right"] / fits["runs"]), fits["right"] == fits["runs"])
  most("TorchTitan (`torchtitan`), rates", "torchtitan tokens_per_device_second", 8)
  most("the same, peak memory", "torchtitan peak_memory_bytes", 6)
  most("SimuMax on B200 (`simumax_b200`), times", "simumax_b200 iteration_seconds", 4)
  most("the same, peak memory", "simumax_b200 peak_memory_bytes", 2)
  most("the same, of each stage", "stages", 3)
  most("MLPerf (`mlperf_llm`), adapters, each plan once", "plans", 15)
  print "| the same, pre-training | 0 | at most 9 % | not scored: constants rest on Llama 3.1 8B, whose " rows["taught mlperf_llm iteration_seconds"] " times are " \
    percent(sum["taught mlperf_llm iteration_seconds"] / rows["taught mlperf_llm iteration_seconds"]) " off | |"
  most("Megatron-Bridge (`megatron_bridge`), dense models", "megatron_bridge dense", 8)
  most("the same, mixtures", "megatron_bridge mixtures", 12)
  most("NeMo of 2024 (`nemo_h100_2024`), dense models", "nemo_h100_2024 dense", 8)
  most("NeMo of 2025 (`nemo_userguide_2025`), dense models", "nemo_userguide_2025 dense", 8)
  most("the same, mixtures", "nemo_userguide_2025 mixtures", 12)
  most("NeMo Automodel (`nemo_automodel_h100`), dense models", "nemo_automodel_h100 dense", 8)
  most("the same, mixtures", "nemo_automodel_h100 mixtures", 12)
  most("Zeus (`zeus_power`), times", "zeus_power iteration_seconds", 8)
  most("the same, mean power", "zeus_power mean_device_watts", 8)
  changes("What-ifs of Megatron-Bridge's pairs, TorchTitan, SimuMax and llm-foundry", "asked")
  changes("the same without sequence lengths of llm-foundry, which are easy", "hard")
  show("Rankings: rank correlation, median", rows["ranks"], "at least 0.95", sprintf("%.2f", median(list, "ranks", rows["ranks"])), median(list, "ranks", rows["ranks"]) >= 0.95)
  show("Rankings: what the run predicted best takes more, median", rows["regrets"], "at most 3 %", percent(median(list, "regrets", rows["regrets"])), rounded(median(list, "regrets", rows["regrets"])) <= 0.03)
  holds("90 % intervals of times and rates: measurements inside", "times")
  holds("90 % intervals of memory: measurements inside", "memory")
  show("Runs that ran out of memory, predicted to", ran_out, "100.0 %", percent((ran_out - missed) / ran_out), missed == 0)
}
