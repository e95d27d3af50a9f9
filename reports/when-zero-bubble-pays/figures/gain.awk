# What the best zero-bubble schedule gains over the best without, per cent: even stages, 80 GiB; cells, then their labels.
# Reads study.csv
# SPDX-License-Identifier: Apache-2.0
BEGIN {
  FS = ","
  bandwidths = split("10 Gb/s,25 Gb/s,50 Gb/s,100 Gb/s,200 Gb/s", bandwidth, ",")
  hosts = split("4,8,16", host, ",")
  counts = split("16,32,128", count, ",")
  plain["1f1b"]; plain["eager-1f1b"]; plain["interleaved"]
}
NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
$column["status"] == "feasible" && $column["strategy"] == "optimal" && $column["platform.device_types.0.memory"] == "80 GiB" {
  cell = $column["platform.nodes.0.count"] SUBSEP $column["micro_batches"] SUBSEP $column["platform.network.bandwidth"]
  speed = $column["samples_per_second"] + 0
  if ($column["schedule"] in plain) { if (speed > without[cell]) without[cell] = speed }
  else if (speed > with[cell]) with[cell] = speed
}
END {
  print "# gain, per cent"
  for (h = 1; h <= hosts; h++)
    for (c = 1; c <= counts; c++)
      for (b = 1; b <= bandwidths; b++) {
        cell = host[h] SUBSEP count[c] SUBSEP bandwidth[b]
        row = (h - 1) * counts + c - 1
        printf "%d %d %.1f %.1f %.1f %.1f %.3f\n", b - 1, row, b - 1.5, b - 0.5, row - 0.5, row + 0.5, 100 * (with[cell] / without[cell] - 1)
      }
}
