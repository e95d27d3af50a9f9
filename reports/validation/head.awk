# What the page and the project's README say first: how many figures are scored, how far off they are, those of models
# that constants rest on, and whether intervals hold. Reads rows.csv and what flat.awk makes of the result.
# SPDX-License-Identifier: Apache-2.0
FILENAME ~ /facts/ {
  split($0, fact, "\t")
  if (fact[1] == "skipped" && fact[3] == "case") ++skipped
  if (fact[1] == "calibration" && fact[3] == "metric") metric = fact[4]
  if (fact[1] == "calibration" && fact[3] == "group") group = fact[4]
  if (fact[1] == "calibration" && fact[3] == "error") {
    ++taught
    if (is_speed(metric)) add("taught", fact[4])
    if (is_speed(metric) && group != "zeus_power") add("recipes", fact[4])
  }
  next
}
!read_row() { next }
cell["metric"] == "time_to_train_seconds" { ++beside; next }
{
  ++scored
  if (is_speed(cell["metric"])) add("speed", cell["error"])
  else if (cell["metric"] ~ /bytes/) add("memory", cell["error"])
  if (cell["high"] == "") next
  bound(cell["family"] ~ /^memory/ ? "memory" : "speed")
  if (cell["family"] ~ /dense models/ && cell["family"] !~ /plain PyTorch/) {
    bound("dense")
    add("dense", cell["error"])
  }
}
function is_speed(metric) { return metric !~ /bytes|watts|share|time_to_train|communication/ }
function add(key, error) {
  errors[key, ++rows[key]] = size(error)
  sum[key] += size(error)
}
function bound(key) {
  ++bounded[key]
  inside[key] += cell["measured"] + 0 >= cell["low"] + 0 && cell["measured"] + 0 <= cell["high"] + 0
  width[key] += (cell["high"] - cell["low"]) / cell["predicted"]
}
function off(key) { return percent(median(errors, key, rows[key])) " off in the median and " percent(sum[key] / rows[key]) " in the mean" }
function holds(key) { return share(inside[key] / bounded[key]) " and is " share(width[key] / bounded[key]) " of the prediction wide" }
END {
  paragraph("**" thousands(scored) " published figures are scored.** The " thousands(rows["speed"]) " times and rates among them are " \
    off("speed") ", those of dense models of training frameworks " off("dense") ", and " rows["memory"] " figures of memory " off("memory") ".", "- ", "  ")
  paragraph("**Another " thousands(taught) ", " share(taught / (taught + scored)) " of both together, are not scored,** since they belong to models that constants rest on. Their " \
    thousands(rows["taught"]) " times and rates are " off("taught") ", without Zeus' ShuffleNetV2, to which clocks and hosts of devices alone were fitted, " off("recipes") ".", "- ", "  ")
  paragraph("**The 90 % interval** of a time or rate holds " holds("speed") " in the mean, of those dense models it holds " holds("dense") ", of memory " holds("memory") ".", "- ", "  ")
  paragraph("**Not scored either** are " beside " times of whole trainings, which rest on how many samples a training is assumed to need, and " skipped \
    " figures that are not predicted, each with a reason.", "- ", "  ")
}
