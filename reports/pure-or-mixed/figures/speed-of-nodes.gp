# Is a mixed node worth as much as pure ones? Each node's speed over that of the mixed one.
# SPDX-License-Identifier: Apache-2.0
set terminal svg size 720,380 noenhanced font 'sans-serif,13' background 'white'
set output 'speed-of-nodes.svg'
set encoding utf8
set border 3 lc rgb '#444444'
set tics nomirror textcolor rgb '#222222'
set title "Throughput over that of 4 V100 + 4 P100, each by its best split"
set xtics ("8 V100" 0, "8 P100" 1, "6 V100,\nsame price" 2, "12 P100,\nsame price" 3, "4 V100" 4) scale 0
set bmargin 3.5
set xrange [-0.5:4.5]
set ytics ("ResNet-50, fp32" 0, "VGG-16, fp32" 1, "BERT-large, fp32" 2, "ResNet-50, fp16" 3, "VGG-16, fp16" 4, "BERT-large, fp16" 5) scale 0
set yrange [5.5:-0.5]
# Diverging about 1: orange is slower than the mixed node, blue is faster.
set palette defined (0.3 '#D55E00', 1 '#f7f7f7', 1.7 '#0072B2')
set cbrange [0.3:1.7]
set cblabel "of the mixed node's speed"
data = 'speed-of-nodes.dat'
plot data using 1:2:3:4:5:6:7 with boxxyerror lc palette fs solid notitle, \
     data using 1:2:(sprintf('%.2f', $7)) with labels font ',12' textcolor rgb '#000000' notitle
