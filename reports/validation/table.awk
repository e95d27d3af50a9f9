# The scoreboard as a Markdown table: by set and metric, rows, our errors, intervals, and the baseline's error on the
# same rows.
# SPDX-License-Identifier: Apache-2.0
BEGIN { FS = "," }
NR == 1 {
  for (i = 1; i <= NF; ++i) column[$i] = i
  next
}
{
  # Text in quotes holds commas: families do, and stand behind the figures.
  split(unquoted($0), cell, ",")
  key = cell[column["group"]] " | " cell[column["metric"]]
  if (!(key in rows)) order[++keys] = key
  ++rows[key]
  error = cell[column["error"]]
  sum[key] += size(error)
  bias[key] += error
  list[key, rows[key]] = size(error)
  if (cell[column["high"]] != "") {
    ++bounded[key]
    measured = cell[column["measured"]]
    inside[key] += measured + 0 >= cell[column["low"]] + 0 && measured + 0 <= cell[column["high"]] + 0
    width[key] += (cell[column["high"]] - cell[column["low"]]) / cell[column["predicted"]]
  }
  trivial = cell[column["constant utilisation"]]
  if (trivial != "") {
    ++compared[key]
    other[key] += size(trivial / cell[column["measured"]] - 1)
  }
}
END {
  print "| set | metric | rows | mean error | median | bias | in the 90 % interval | its width | constant utilisation |"
  print "|---|---|---|---|---|---|---|---|---|"
  for (i = 1; i <= keys; ++i) {
    key = order[i]
    print "| " key " | " rows[key] " | " percent(sum[key] / rows[key]) " | " percent(median(list, key, rows[key])) " | " \
      percent(bias[key] / rows[key]) " | " (bounded[key] ? percent(inside[key] / bounded[key]) : "") " | " \
      (bounded[key] ? percent(width[key] / bounded[key]) : "") " | " \
      (compared[key] ? percent(other[key] / compared[key]) : "") " |"
  }
}
