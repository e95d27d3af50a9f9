# Which runs fitted into their devices and which are predicted to, by set, from what flat.awk makes of the result. Sets
# without a mistake are one row.
# SPDX-License-Identifier: Apache-2.0
BEGIN { FS = "\t" }
$1 == "which_runs_fit" && $2 == "groups" {
  if (!($3 in seen)) order[++sets] = $3
  seen[$3] = 1
  value[$3, $4] = $5
}
$1 == "which_runs_fit" && NF == 3 { value["all", $2] = $3 }
function show(set, named) {
  print "| " named " | " value[set, "runs"] " | " value[set, "right"] " | " value[set, "fitted_though_predicted_not_to"] + 0 " | " \
    value[set, "predicted_to_fit_though_it_did_not"] + 0 " |"
}
END {
  print "| set | runs | right | fitted, predicted not to | did not fit, predicted to |"
  print "|---|---|---|---|---|"
  for (i = 1; i <= sets; ++i) {
    set = order[i]
    if (value[set, "runs"] != value[set, "right"]) show(set, set)
    else {
      ++right_sets
      value["right", "runs"] += value[set, "runs"]
      value["right", "right"] += value[set, "right"]
    }
  }
  show("right", right_sets " others")
  show("all", "all")
}
