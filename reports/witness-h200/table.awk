# Steps, measured and by how much the predictions miss, from the rows that `run` prints.
# SPDX-License-Identifier: Apache-2.0
function miss(predicted, measured) { return sprintf("%+.0f %%", 100 * (predicted / measured - 1)) }
BEGIN { FS = "," }
NR > 1 {
  measured[$1, $2] = $3; before[$1, $2] = $4; now[$1, $2] = $5
  if (!($1 in known)) { known[$1] = ++cases; name[cases] = $1 }
}
END {
  print "| step | eager | predicted before | now | captured | predicted before | now | peak, eager | predicted before | now |"
  print "|---|---|---|---|---|---|---|---|---|---|"
  for (i = 1; i <= cases; ++i) {
    c = name[i]
    printf "| %s ", c
    for (way = 1; way <= 2; ++way) {
      m = (way == 1 ? "eager" : "captured") "_step_seconds"
      printf "| %.1f ms | %s | %s ", 1000 * measured[c, m], miss(before[c, m], measured[c, m]), miss(now[c, m], measured[c, m])
    }
    m = "eager_peak_bytes"
    printf "| %.1f GB | %s | %s |\n", measured[c, m] / 1e9, miss(before[c, m], measured[c, m]), miss(now[c, m], measured[c, m])
  }
}
