# Where data parallelism overtakes the pipeline: two servers with one card each, each split at its best.
# SPDX-License-Identifier: Apache-2.0
set terminal svg size 720,440 noenhanced font 'sans-serif,13' background 'white'
set output 'throughput-by-network-bandwidth.svg'
set encoding utf8
set border 3 lc rgb '#444444'
set tics nomirror textcolor rgb '#222222'
set grid lc rgb '#dddddd' lw 0.7
set key noenhanced
set linetype 1 lc rgb '#0072B2' lw 1.5 pt 4
set linetype 2 lc rgb '#D55E00' lw 1.5 pt 5
set linetype 3 lc rgb '#009E73' lw 1.5 pt 6
set title "BERT-large on sixteen A100: one card a server, all else at its best"
set xlabel "network bandwidth [Gb/s]"
set ylabel "samples per second"
set logscale x
set xrange [9:440]
set xtics (10, 25, 50, 100, 200, 400)
set yrange [0:*]
set key tmargin center horizontal reverse Left samplen 2 font ',10'
data = 'throughput-by-network-bandwidth.dat'
plot data index 0 using 1:2 with linespoints ps 0.6 title "data-parallel", \
     data index 1 using 1:2 with linespoints ps 0.6 title "block-partition", \
     data index 2 using 1:2 with linespoints ps 0.6 title "pipedream"
