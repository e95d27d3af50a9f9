# When do old cards beside new ones make a job faster?
# SPDX-License-Identifier: Apache-2.0
set terminal svg size 720,440 noenhanced font 'sans-serif,13' background 'white'
set output 'gain-of-old-cards.svg'
set encoding utf8
set border 3 lc rgb '#444444'
set tics nomirror textcolor rgb '#222222'
set grid lc rgb '#dddddd' lw 0.7
set key noenhanced
set linetype 1 lc rgb '#CC79A7' lw 1.5 pt 8
set linetype 2 lc rgb '#009E73' lw 1.5 pt 6
set linetype 3 lc rgb '#0072B2' lw 1.5 pt 4
set title "4 H100 with A100 beside them, over the 4 H100 alone"
set xlabel "A100"
set ylabel "speed over that of the H100 alone"
set xrange [-0.1:8.2]
set xtics (0, 1, 2, 4, 8)
set format y '%g'
set yrange [0.9:1.9]
set key tmargin center horizontal reverse Left samplen 2 font ',10'
data = 'gain-of-old-cards.dat'
plot data index 3 using 1:2 with linespoints lt 3 ps 0.6 title "ResNet-50, 1536", \
     data index 1 using 1:2 with linespoints lt 2 ps 0.6 title "BERT-large, 1536", \
     data index 0 using 1:2 with linespoints lt 1 ps 0.6 title "GPT-2 XL, 192", \
     data index 5 using 1:2 with linespoints lt 1 dt 3 ps 0.6 title "GPT-2 XL, 192, over 10 Gb/s", \
     data index 2 using 1:2 with linespoints lt 2 dt 2 ps 0.6 title "BERT-large, 192", \
     data index 4 using 1:2 with linespoints lt 3 dt 2 ps 0.6 title "ResNet-50, 192"
