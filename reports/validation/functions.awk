# What the tables of the scoreboard have in common: reports/run and reports/validation/run read it in front of each.
# SPDX-License-Identifier: Apache-2.0
function size(x) { return x < 0 ? -x : x }
function percent(x) { return sprintf("%.1f %%", 100 * x) }
# A line of CSV whose quoted texts have no commas and no quotes any more.
function unquoted(line, text) {
  while (match(line, /"[^"]*"/)) {
    text = substr(line, RSTART + 1, RLENGTH - 2)
    gsub(/,/, ";", text)
    line = substr(line, 1, RSTART - 1) text substr(line, RSTART + RLENGTH)
  }
  return line
}
# The median of values[key, 1 ... n].
function median(values, key, n, i, j, t, sorted) {
  for (i = 1; i <= n; ++i) {
    t = values[key, i]
    for (j = i - 1; j > 0 && sorted[j] > t; --j) sorted[j + 1] = sorted[j]
    sorted[j + 1] = t
  }
  return n % 2 ? sorted[(n + 1) / 2] : (sorted[n / 2] + sorted[n / 2 + 1]) / 2
}
