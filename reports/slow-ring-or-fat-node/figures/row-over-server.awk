# Speed of 8 RTX 4090 in a row over that of a server of 2 A100, which costs the same, by link speed: a block for each model and batch.
# Reads study.csv
# SPDX-License-Identifier: Apache-2.0
BEGIN {
  FS = ","
  bandwidths = split("1 2.5 5 10 25 50", bandwidth, " ")
  jobs = split("resnet50 256,resnet50 1024,vgg16 256,bert-large 256,gpt2-xl 256", job, ",")
}
NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
$column["status"] == "feasible" {
  type = $column["platform.nodes.0.devices.0.type"]
  if (type == "rtx-4090-24gb" && $column["platform.nodes.0.count"] == 8) cell = $column["platform.network.bandwidth"]
  else if ($column["platform"] == "platforms/node.yaml" && $column["platform.nodes.0.devices.0.count"] == 2) cell = "server"
  else next
  cell = $column["model"] " " $column["training.global_batch"] SUBSEP cell
  if ($column["samples_per_second"] + 0 > best[cell]) best[cell] = $column["samples_per_second"]
}
END {
  for (j = 1; j <= jobs; j++) {
    printf "%s# %s\n", (j > 1 ? "\n\n" : ""), job[j]
    for (b = 1; b <= bandwidths; b++)
      printf "%s %.4f\n", bandwidth[b], best[job[j], bandwidth[b] " Gb/s"] / best[job[j], "server"]
  }
}
