# Pairs of runs that differ in one setting as a Markdown table: by set and setting, pairs, ties, right signs, and the
# median error of the ratio.
# SPDX-License-Identifier: Apache-2.0
BEGIN { FS = "," }
NR == 1 { next }
{
  # Settings' values hold commas in quotes; what is counted stands in front of and behind them.
  split(unquoted($0), cell, ",")
  add(cell[1] " | " cell[2])
  add(cell[2] == "device type" ? "all | device type" : "all | ")
}
function add(key) {
  if (!(key in pairs)) order[++keys] = key
  error[key, ++pairs[key]] = size(cell[9])
  if (cell[10] == 1) ++ties[key]
  else if ((cell[7] - 1) * (cell[8] - 1) > 0) ++right[key]
}
function show(key, decided) {
  decided = pairs[key] - ties[key]
  print "| " key " | " pairs[key] " | " ties[key] + 0 " | " (decided ? percent(right[key] / decided) : "") " | " percent(median(error, key, pairs[key])) " |"
}
END {
  print "| set | setting | pairs | ties | sign right | median error of the ratio |"
  print "|---|---|---|---|---|---|"
  for (i = 1; i <= keys; ++i) if (order[i] !~ /^all/) show(order[i])
  show("all | ")
  show("all | device type")
}
