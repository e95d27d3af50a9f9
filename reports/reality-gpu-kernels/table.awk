# Predictions from parts and from kernels beside what was measured, and how each ranks the contests.
# SPDX-License-Identifier: Apache-2.0
BEGIN {
  FS = ","
  print "| run | measured | from parts | error | from kernels | error |"
  print "|---|---|---|---|---|---|"
}
NR > 1 {
  printf "| %s | %.1f ms | %.1f ms | %.1f %% | %.1f ms | %.1f %% |\n", $1, 1000 * $2, 1000 * $3, 100 * ($3 / $2 - 1), 1000 * $4, 100 * ($4 / $2 - 1)
  contest = $1 ~ /^mlp/ ? "mlp" : "transformer"
  for (column = 3; column <= 4; ++column) {
    key = contest SUBSEP column
    if (!(key in least) || $column < least[key]) { least[key] = $column; chosen[key] = $2 }
  }
  if (!(contest in best)) order[++contests] = contest
  if (!(contest in best) || $2 < best[contest]) best[contest] = $2
}
END {
  for (i = 1; i <= contests; ++i) {
    contest = order[i]
    printf "\n%s: the plan predicted to be the fastest takes %.2f %% (from parts) and %.2f %% (from kernels) longer than the fastest\n",
      contest, 100 * (chosen[contest, 3] / best[contest] - 1), 100 * (chosen[contest, 4] / best[contest] - 1)
  }
}
