# The scoreboard: by set and metric, rows, our errors, intervals, noise, the simplest baseline, and what others reach.
# Reads best-known.csv, what flat.awk makes of the result, sailor.csv and rows.csv.
# SPDX-License-Identifier: Apache-2.0
FILENAME ~ /facts/ {
  if (split($0, fact, "\t") == 3 && fact[1] == "noise") noise[fact[2]] = fact[3]
  next
}
!read_row() { next }
FILENAME ~ /best-known/ {
  best[cell["set"] " | " cell["metric"]] = cell["error"]
  next
}
{
  set = cell["group"]
  if (FILENAME ~ /sailor/) set = set == "clariden" ? "sailor on GH200" : "sailor on RTX"
  key = set " | " cell["metric"]
  if (!(key in rows)) order[++keys] = key
  set_of[key] = set
  is_speed[key] = cell["metric"] !~ /bytes|watts|share|time_to_train/
  error = cell["error"]
  ++rows[key]
  sum[key] += size(error)
  bias[key] += error
  list[key, rows[key]] = size(error)
  if (FILENAME ~ /sailor/) next
  if (cell["high"] != "") {
    ++bounded[key]
    inside[key] += cell["measured"] + 0 >= cell["low"] + 0 && cell["measured"] + 0 <= cell["high"] + 0
    width[key] += (cell["high"] - cell["low"]) / cell["predicted"]
  }
  if (cell["constant utilisation"] != "") {
    ++compared[key]
    other[key] += size(cell["constant utilisation"] / cell["measured"] - 1)
  }
}
END {
  print "| set | metric | rows | mean error | median | bias | in the 90 % interval | its width | noise | constant utilisation | best known |"
  print "|---|---|---|---|---|---|---|---|---|---|---|"
  for (i = 1; i <= keys; ++i) {
    key = order[i]
    print "| " key " | " rows[key] " | " percent(sum[key] / rows[key]) " | " percent(median(list, key, rows[key])) " | " \
      percent(bias[key] / rows[key]) " | " (bounded[key] ? percent(inside[key] / bounded[key]) : "") " | " \
      (bounded[key] ? percent(width[key] / bounded[key]) : "") " | " \
      (is_speed[key] && set_of[key] in noise ? percent(noise[set_of[key]]) : "") " | " \
      (compared[key] ? percent(other[key] / compared[key]) : "") " | " best[key] " |"
  }
}
