# How well runs of one model and device type are ranked, from what flat.awk makes of the result.
# SPDX-License-Identifier: Apache-2.0
BEGIN { FS = "\t" }
$1 == "rankings" && $3 == "name" { group = $4 }
$1 == "rankings" && $3 == "spearman" { rank["all", ++groups] = $4 }
$1 == "rankings" && $3 == "regret" {
  best += $4 == 0
  if ($4 > worst) {
    worst = $4
    worst_name = group
  }
}
END {
  paragraph("Of " groups " groups of five and more runs of one model and device type the median rank correlation is " \
    sprintf("%.2f", median(rank, "all", groups)) ". The run predicted fastest is the fastest in " best " of them, and " share(worst) \
    " slower in the worst (" worst_name ").")
}
