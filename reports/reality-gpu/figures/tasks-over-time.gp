# How much longer tasks take than alone and beside others, by when they begin; the points are analysis.py's.
# SPDX-License-Identifier: Apache-2.0
set terminal svg size 720,440 noenhanced font 'sans-serif,13' background 'white'
set output 'tasks-over-time.svg'
set encoding utf8
set border 3 lc rgb '#444444'
set tics nomirror textcolor rgb '#222222'
set grid lc rgb '#dddddd' lw 0.7
set key noenhanced
set linetype 1 lc rgb '#0072B2' lw 1.5 pt 4
set linetype 2 lc rgb '#D55E00' lw 1.5 pt 5
set linetype 3 lc rgb '#009E73' lw 1.5 pt 6
set linetype 4 lc rgb '#777777' lw 1.5 pt 7
set title "How much longer tasks take than predicted, along a run"
set xlabel "time since the run began [ms]"
set ylabel "longer than by the factors of pairs [%]"
set xrange [0:*]
set yrange [-2:12]
set key tmargin center horizontal reverse Left samplen 2 font ',10'
data = 'tasks-over-time.dat'
plot for [i = 0:3] data index i using 1:2 with linespoints ps 0.6 title columnheader(1)
