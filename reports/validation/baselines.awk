# What simple formulas reach on the rows that they predict, beside our error on the same rows.
# SPDX-License-Identifier: Apache-2.0
BEGIN {
  formulas = split("constant utilisation,constant utilisation and ideal bubble,roofline", formula, ",")
}
!read_row() { next }
{
  key = cell["group"] " | " cell["metric"]
  for (i = 1; i <= formulas; ++i) {
    if (cell[formula[i]] == "") continue
    if (!(key in rows)) order[++keys] = key
    ++rows[key]
    ++count[key, i]
    sum[key, i] += size(cell[formula[i]] / cell["measured"] - 1)
    ours[key, i] += size(cell["error"])
  }
}
function shown(key, i) { return count[key, i] ? percent(sum[key, i] / count[key, i]) : "" }
END {
  print "| set | metric | rows | Stagecraft | roofline | rows with a rate of other models | Stagecraft | constant utilisation | and the ideal bubble |"
  print "|---|---|---|---|---|---|---|---|---|"
  for (i = 1; i <= keys; ++i) {
    key = order[i]
    print "| " key " | " count[key, 3] + 0 " | " (count[key, 3] ? percent(ours[key, 3] / count[key, 3]) : "") " | " shown(key, 3) " | " \
      (count[key, 1] ? count[key, 1] : "") " | " (count[key, 1] ? percent(ours[key, 1] / count[key, 1]) : "") " | " shown(key, 1) " | " shown(key, 2) " |"
  }
}
