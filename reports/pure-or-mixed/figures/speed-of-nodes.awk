# The best samples per second of each node, as a multiple of the mixed node's: cells, then their labels.
# Reads study.csv
# SPDX-License-Identifier: Apache-2.0
BEGIN {
  FS = ","
  nodes = split("platforms/8-v100.yaml,platforms/8-p100.yaml,platforms/6-v100.yaml,platforms/12-p100.yaml,platforms/4-v100.yaml", node, ",")
  jobs = split("resnet50 fp32,vgg16 fp32,bert-large fp32,resnet50 fp16,vgg16 fp16,bert-large fp16", job, ",")
}
NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
$column["status"] == "feasible" {
  cell = $column["model"] " " $column["training.precision"] SUBSEP $column["platform"]
  if ($column["samples_per_second"] + 0 > best[cell]) best[cell] = $column["samples_per_second"]
}
END {
  print "# each node's speed over the mixed node's"
  for (j = 1; j <= jobs; j++)
    for (n = 1; n <= nodes; n++) {
      speed = best[job[j], node[n]] / best[job[j], "v100-p100-node"]
      printf "%d %d %.1f %.1f %.1f %.1f %.4f\n", n - 1, j - 1, n - 1.5, n - 0.5, j - 1.5, j - 0.5, speed
    }
}
