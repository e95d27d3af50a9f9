# Pairs of runs that differ in one setting as a Markdown table: by set and setting, pairs, ties, right signs, and the
# median error of the ratio.
# SPDX-License-Identifier: Apache-2.0
function size(x) { return x < 0 ? -x : x }
function percent(x) { return sprintf("%.1f %%", 100 * x) }
BEGIN { FS = "," }
NR == 1 { next }
{
  # Settings' values hold commas in quotes; what is counted stands in front of and behind them.
  line = $0
  while (match(line, /"[^"]*"/)) {
    quoted = substr(line, RSTART + 1, RLENGTH - 2)
    gsub(/,/, ";", quoted)
    line = substr(line, 1, RSTART - 1) quoted substr(line, RSTART + RLENGTH)
  }
  split(line, cell, ",")
  add(cell[1] " | " cell[2])
  add("all | ")
}
function add(key) {
  if (!(key in pairs)) order[++keys] = key
  error[key, ++pairs[key]] = size(cell[9])
  if (cell[10] == 1) ++ties[key]
  else if ((cell[7] - 1) * (cell[8] - 1) > 0) ++right[key]
}
function median(key, n, i, j, t) {
  n = pairs[key]
  for (i = 1; i <= n; ++i) sorted[i] = error[key, i]
  for (i = 2; i <= n; ++i) {
    t = sorted[i]
    for (j = i - 1; j > 0 && sorted[j] > t; --j) sorted[j + 1] = sorted[j]
    sorted[j + 1] = t
  }
  return n % 2 ? sorted[(n + 1) / 2] : (sorted[n / 2] + sorted[n / 2 + 1]) / 2
}
function show(key, decided) {
  decided = pairs[key] - ties[key]
  print "| " key " | " pairs[key] " | " ties[key] + 0 " | " (decided ? percent(right[key] / decided) : "") " | " percent(median(key)) " |"
}
END {
  print "| set | setting | pairs | ties | sign right | median error of the ratio |"
  print "|---|---|---|---|---|---|"
  for (i = 1; i <= keys; ++i) if (order[i] != "all | ") show(order[i])
  show("all | ")
}
