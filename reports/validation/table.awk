# The scoreboard as a Markdown table: by set and metric, rows, our errors, intervals, and the baseline's error on the
# same rows.
# SPDX-License-Identifier: Apache-2.0
function size(x) { return x < 0 ? -x : x }
function percent(x) { return sprintf("%.1f %%", 100 * x) }
BEGIN { FS = "," }
NR == 1 {
  for (i = 1; i <= NF; ++i) column[$i] = i
  next
}
{
  # Text in quotes holds commas: families do, and stand behind the figures.
  line = $0
  while (match(line, /"[^"]*"/)) {
    quoted = substr(line, RSTART + 1, RLENGTH - 2)
    gsub(/,/, ";", quoted)
    line = substr(line, 1, RSTART - 1) quoted substr(line, RSTART + RLENGTH)
  }
  split(line, cell, ",")
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
function median(key, n, i, j, t) {
  n = rows[key]
  for (i = 1; i <= n; ++i) sorted[i] = list[key, i]
  for (i = 2; i <= n; ++i) {
    t = sorted[i]
    for (j = i - 1; j > 0 && sorted[j] > t; --j) sorted[j + 1] = sorted[j]
    sorted[j + 1] = t
  }
  return n % 2 ? sorted[(n + 1) / 2] : (sorted[n / 2] + sorted[n / 2 + 1]) / 2
}
END {
  print "| set | metric | rows | mean error | median | bias | in the 90 % interval | its width | constant utilisation |"
  print "|---|---|---|---|---|---|---|---|---|"
  for (i = 1; i <= keys; ++i) {
    key = order[i]
    print "| " key " | " rows[key] " | " percent(sum[key] / rows[key]) " | " percent(median(key)) " | " \
      percent(bias[key] / rows[key]) " | " (bounded[key] ? percent(inside[key] / bounded[key]) : "") " | " \
      (bounded[key] ? percent(width[key] / bounded[key]) : "") " | " \
      (compared[key] ? percent(other[key] / compared[key]) : "") " |"
  }
}
