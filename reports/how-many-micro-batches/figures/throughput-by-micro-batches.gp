# Where each schedule is the fastest, and where a cost model that thinks small kernels free would put zb-h1.
# SPDX-License-Identifier: Apache-2.0
set terminal svg size 720,440 noenhanced font 'sans-serif,13' background 'white'
set output 'throughput-by-micro-batches.svg'
set encoding utf8
set border 3 lc rgb '#444444'
set tics nomirror textcolor rgb '#222222'
set grid lc rgb '#dddddd' lw 0.7
set key noenhanced
set linetype 1 lc rgb '#0072B2' lw 1.5 pt 4
set linetype 2 lc rgb '#D55E00' lw 1.5 pt 5
set linetype 3 lc rgb '#009E73' lw 1.5 pt 6
set linetype 4 lc rgb '#E69F00' lw 1.5 pt 7
set linetype 5 lc rgb '#CC79A7' lw 1.5 pt 8
set title "GPT-2 XL on 8 A100: throughput by micro-batches"
set xlabel "micro-batches"
set ylabel "samples per second"
set logscale x 2
set xrange [0.9:145]
set xtics (1, 2, 4, 8, 16, 32, 64, 128)
set format y '%g'
set yrange [0:*]
set key tmargin center horizontal reverse Left samplen 2 font ',10'
data = 'throughput-by-micro-batches.dat'
plot data index 0 using 1:2 with linespoints ps 0.6 title "1f1b", \
     data index 1 using 1:2 with linespoints ps 0.6 title "interleaved", \
     data index 2 using 1:2 with linespoints ps 0.6 title "zb-h1", \
     data index 3 using 1:2 with linespoints ps 0.6 title "zb-v", \
     data index 4 using 1:2 with linespoints ps 0.6 title "zb-auto", \
     data index 5 using 1:2 with linespoints lt 3 dt 2 ps 0.6 title "zb-h1 by the roofline"
