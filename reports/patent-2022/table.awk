# The table of README.md from the rows that `run` prints: time of all rounds with the moves between them, and the last
# round's mean iteration, per study, reading and policy. `never` does not depend on the update, `oracle` on neither.
# SPDX-License-Identifier: Apache-2.0
function seconds(value) { return value < 1 ? sprintf("%.1f ms", 1000 * value) : sprintf("%.3f s", value) }
function whole(key) { return key in total ? sprintf("%.1f s, %s", total[key], seconds(last[key])) : "-" }
function cell(study, placement, update, policy,    key) {
  key = study FS placement FS update FS policy
  return key in done && done[key] < most[study] ? "stops" : whole(key)
}

BEGIN { FS = "," }
NR == 1 {
  for (i = 1; i <= NF; ++i) column[$i] = i
  next
}
{
  key = $1 FS $2 FS $3 FS $4
  total[key] += $column["iterations"] * $column["iteration_seconds"] + $column["migration_seconds"]
  last[key] = $column["iteration_seconds"]
  done[key] = $column["first_iteration"] + $column["iterations"]
  if (done[key] > most[$1]) most[$1] = done[key]
  if (!($1 in seen)) studies[++count] = $1
  seen[$1] = 1
}
END {
  print "| study | placement | never | dynamic, share | dynamic, mean | oracle |"
  print "|---|---|---|---|---|---|"
  split("earliest-finish earliest-finish-links contiguous", placements, " ")
  for (i = 1; i <= count; ++i) {
    for (p = 1; p <= 3; ++p) {
      print "| " studies[i] " | " placements[p] " | " cell(studies[i], placements[p], "mean", "never") " | " \
        cell(studies[i], placements[p], "share", "dynamic") " | " cell(studies[i], placements[p], "mean", "dynamic") \
        " | " cell(studies[i], placements[p], "mean", "oracle") " |"
    }
  }
}
