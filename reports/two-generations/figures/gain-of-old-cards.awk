# Speed with 0 to 8 A100 beside 4 H100 over that of the H100 alone, by the number of A100: a block for each job and network.
# Reads pure.csv study.csv
# SPDX-License-Identifier: Apache-2.0
BEGIN {
  FS = ","
  curves = split("gpt2-xl 192 100,bert-large 1536 100,bert-large 192 100,resnet50 1536 100,resnet50 192 100,gpt2-xl 192 10", curve, ",")
}
FNR == 1 { split("", column); for (i = 1; i <= NF; i++) column[$i] = i; next }
$column["status"] == "feasible" && $column["platform.nodes.0.devices.0.type"] == "h100-sxm-80gb" {
  job = $column["model"] " " $column["training.global_batch"]
  speed = $column["samples_per_second"] + 0
  if ("platform.nodes.1.devices.0.count" in column) {
    cell = job " " ($column["platform.network.bandwidth"] + 0) SUBSEP $column["platform.nodes.1.devices.0.count"]
    if (speed > both[cell]) both[cell] = speed
  } else if ($column["platform.nodes.0.devices.0.count"] == 4 && speed > alone[job]) alone[job] = speed
}
END {
  for (i = 1; i <= curves; i++) {
    job = curve[i]
    sub(/ [0-9]+$/, "", job)
    printf "%s# %s Gb/s\n0 1\n", (i > 1 ? "\n\n" : ""), curve[i]
    for (old = 1; old <= 8; old *= 2) printf "%d %.4f\n", old, both[curve[i], old] / alone[job]
  }
}
