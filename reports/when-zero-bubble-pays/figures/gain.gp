# Where zero-bubble schedules pay: what they gain, over hosts, micro-batches and network.
# SPDX-License-Identifier: Apache-2.0
set terminal svg size 720,440 noenhanced font 'sans-serif,13' background 'white'
set output 'gain.svg'
set encoding utf8
set border 3 lc rgb '#444444'
set tics nomirror textcolor rgb '#222222'
set title "Gain of the best zero-bubble schedule over the best other, even stages, 80 GiB"
set xlabel "network bandwidth"
set xtics ("10 Gb/s" 0, "25 Gb/s" 1, "50 Gb/s" 2, "100 Gb/s" 3, "200 Gb/s" 4) scale 0
set xrange [-0.5:4.5]
set ylabel "micro-batches"
set ytics ("4 hosts, 16" 0, "32" 1, "128" 2, "8 hosts, 16" 3, "32" 4, "128" 5, "16 hosts, 16" 6, "32" 7, "128" 8) scale 0
set yrange [8.5:-0.5]
set palette defined (0 '#3b528b', 0.33 '#21918c', 0.66 '#5ec962', 1 '#fde725')
set cbrange [0:30]
set cblabel "gain [%]"
set arrow 1 from graph 0, first 2.5 to graph 1, first 2.5 nohead front lc rgb '#ffffff' lw 3
set arrow 2 from graph 0, first 5.5 to graph 1, first 5.5 nohead front lc rgb '#ffffff' lw 3
data = 'gain.dat'
plot data using 1:2:3:4:5:6:7 with boxxyerror lc palette fs solid notitle, \
     data using 1:2:($7 < 8 ? sprintf('%.0f %%', $7) : '') with labels font ',12' textcolor rgb '#ffffff' notitle, \
     data using 1:2:($7 < 8 ? '' : sprintf('%.0f %%', $7)) with labels font ',12' textcolor rgb '#000000' notitle
