# From which link speed on does a row of cards beat a server that costs the same?
# SPDX-License-Identifier: Apache-2.0
set terminal svg size 720,440 noenhanced font 'sans-serif,13' background 'white'
set output 'row-over-server.svg'
set encoding utf8
set border 3 lc rgb '#444444'
set tics nomirror textcolor rgb '#222222'
set grid lc rgb '#dddddd' lw 0.7
set key noenhanced
set linetype 1 lc rgb '#0072B2' lw 1.5 pt 4
set linetype 2 lc rgb '#D55E00' lw 1.5 pt 5
set linetype 3 lc rgb '#009E73' lw 1.5 pt 6
set linetype 4 lc rgb '#CC79A7' lw 1.5 pt 8
set title "8 RTX 4090 on Ethernet over 2 A100 on NVSwitch, for the same money"
set xlabel "link speed [Gb/s]"
set ylabel "speed of the row over the server's"
set logscale x
set xrange [0.93:54]
set xtics (1, 2.5, 5, 10, 25, 50)
set format y '%g'
set yrange [0:2]
set key tmargin center horizontal reverse Left samplen 2 font ',10'
set arrow 1 from graph 0, first 1 to graph 1, first 1 nohead lc rgb '#444444' lw 1.5
data = 'row-over-server.dat'
plot data index 0 using 1:2 with linespoints lt 1 ps 0.6 title "ResNet-50, 256", \
     data index 1 using 1:2 with linespoints lt 1 dt 2 ps 0.6 title "ResNet-50, 1024", \
     data index 2 using 1:2 with linespoints lt 2 ps 0.6 title "VGG-16, 256", \
     data index 3 using 1:2 with linespoints lt 3 ps 0.6 title "BERT-large, 256", \
     data index 4 using 1:2 with linespoints lt 4 ps 0.6 title "GPT-2 XL, 256"
