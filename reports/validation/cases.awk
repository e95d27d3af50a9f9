# What goals ask of the rows of tables beside the scoreboard's columns: case, metric, device, value and model as the tables have them.
# SPDX-License-Identifier: Apache-2.0
BEGIN { print "case,metric,gpu,value,model" }
FNR == 1 { is_table = $0 ~ /^case,source,/ }
!read_row() || !is_table { next }
{ print cell["case"] "," cell["metric"] "," cell["gpu"] "," cell["value"] "," cell["model"] }
