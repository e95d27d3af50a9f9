# The table of README.md from the rows that `run` prints: the first row of a case as it is, then what each saves of the
# row before it, time / energy, and all of them together. Behind it, replicas against stages on slower links.
# SPDX-License-Identifier: Apache-2.0
function saved(before, after,    part) {
  part = 100 * (1 - after / before)
  return part < 0.05 && part > -0.05 ? "0" : sprintf(part < 9.95 ? "%.1f %%" : "%.0f %%", part)
}
function both(time, energy, end_time, end_energy,    t, e) {
  t = saved(time, end_time)
  e = saved(energy, end_energy)
  return t == "0" && e == "0" ? "0" : t " / " e
}
function finish() { if (line != "") print line " | " both(first_time, first_energy, time, energy) " |" }

BEGIN { FS = "," }
NR == 1 {
  for (i = 1; i <= NF; ++i) column[$i] = i
  print "| model, devices | framework | loader | streams | inside | between | blocking | in all |"
  print "|---|---|---|---|---|---|---|---|"
  next
}
{
  now_time = $column["iteration_seconds"]
  now_energy = $column["energy_joules"]
  if ($3 == "replicas") {
    finish()
    if (!links++) print "\n| model, links of four devices | replicas | stages | stages save, time / energy |\n|---|---|---|---|"
    line = sprintf("| %s | %.0f ms, %.0f J", $1, 1000 * now_time, now_energy)
    first_time = now_time
    first_energy = now_energy
    next
  }
  if ($3 == "stages") {
    line = line sprintf(" | %.0f ms, %.0f J", 1000 * now_time, now_energy)
    time = now_time
    energy = now_energy
    next
  }
  if ($3 == "framework") {
    finish()
    line = sprintf("| %s, %s | %.0f ms, %.0f J", $1, $2, 1000 * now_time, now_energy)
    first_time = now_time
    first_energy = now_energy
  } else {
    line = line " | " both(time, energy, now_time, now_energy)
  }
  time = now_time
  energy = now_energy
}
END { finish() }
