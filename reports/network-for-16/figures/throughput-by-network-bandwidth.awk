# Samples per second of two servers with one card each by network bandwidth: a block for each split, all else at its best.
# Reads study.csv
# SPDX-License-Identifier: Apache-2.0
BEGIN {
  FS = ","
  splits = split("data-parallel,block-partition,pipedream", kind, ",")
  bandwidths = split("10,25,50,100,200,400", bandwidth, ",")
}
NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
$column["status"] == "feasible" && $column["platform.nodes.0.count"] == 2 && $column["platform.network.nic"] == "node" {
  cell = $column["strategy"] SUBSEP $column["platform.network.bandwidth"]
  speed = $column["samples_per_second"] + 0
  if (speed > best[cell]) best[cell] = speed
}
END {
  for (s = 1; s <= splits; s++) {
    printf "%s# %s\n", (s > 1 ? "\n\n" : ""), kind[s]
    for (b = 1; b <= bandwidths; b++) printf "%d %.6g\n", bandwidth[b], best[kind[s], bandwidth[b] " Gb/s"]
  }
}
