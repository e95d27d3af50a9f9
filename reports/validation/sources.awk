# What the project's README says of single sources and of goals. Reads goals.md.
# SPDX-License-Identifier: Apache-2.0
BEGIN { FS = " [|] " }
NR < 3 { next }
{
  sub(/^[|] /, "", $1)
  is_reached = $5 ~ /^yes/
  is_missed = $5 ~ /^no/
  goals += is_reached || is_missed
  reached += is_reached
  named = $1 ~ /`/
  if (named) {
    source = $1
    sub(/ \(`.*/, "", source)
    what = $1
    sub(/ \(`[a-z0-9_]*`\)/, "", what)
  } else if ($1 == "the same, mixtures") what = source ", mixtures"
  else next
  text = text (text == "" ? "" : "; ") what " " $4
}
END {
  paragraph("**By source**, in the mean: " text ".", "- ", "  ")
  paragraph("**Goals.** Of " goals " that the project set itself, " reached " are reached.", "- ", "  ")
}
