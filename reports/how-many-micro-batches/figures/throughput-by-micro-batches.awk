# Samples per second by micro-batches, GPT-2 XL on 8 A100: a block for each schedule and cost model that is drawn.
# Reads study.csv
# SPDX-License-Identifier: Apache-2.0
BEGIN {
  FS = ","
  curves = split("1f1b calibrated,interleaved calibrated,zb-h1 calibrated,zb-v calibrated,zb-auto calibrated,zb-h1 roofline", curve, ",")
}
NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
$column["status"] == "feasible" && $column["model"] == "gpt2-xl" && $column["platform.nodes.0.count"] == 1 {
  speed[$column["schedule"] " " $column["cost_model"], $column["micro_batches"]] = $column["samples_per_second"]
}
END {
  for (i = 1; i <= curves; i++) {
    printf "%s# %s\n", (i > 1 ? "\n\n" : ""), curve[i]
    for (m = 1; m <= 128; m *= 2)
      if ((curve[i], m) in speed) printf "%d %.6g\n", m, speed[curve[i], m]
  }
}
