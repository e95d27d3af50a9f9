// Charts of the report, drawn by ECharts from the data of sim/report/chart.hpp.
// SPDX-License-Identifier: Apache-2.0
"use strict";

const Charts = (() => {
  const symbols = ["circle", "rect", "triangle", "diamond"]; // filled, then empty
  const colors = 8;
  const most_listed = 5000; // marks in numbers
  const font = 'system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif'; // as the page's: ECharts measures texts by it
  const ramp = ["#3b528b", "#21918c", "#5ec962", "#fde725"]; // viridis

  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const palette = () => Array.from({ length: colors }, (_, i) => color(`--series-${i + 1}`));

  const { short, quantity, unit_of, scale_of: unit_for, without_unit } = Figures;

  const ruler = document.createElement("canvas").getContext("2d");
  function width_of(text, size) {
    ruler.font = `${size}px ${font}`;
    return ruler.measureText(text).width;
  }

  // The colour of `ramp` at a part of its length, as three numbers.
  function on_ramp(part) {
    const at = Math.min(1, Math.max(0, part)) * (ramp.length - 1);
    const from = Math.min(ramp.length - 2, Math.floor(at));
    const channel = (name, i) => parseInt(name.slice(1 + 2 * i, 3 + 2 * i), 16);
    return [0, 1, 2].map((i) => channel(ramp[from], i) + (at - from) * (channel(ramp[from + 1], i) - channel(ramp[from], i)));
  }

  // Black or white, whichever has more contrast (WCAG 2) with a colour.
  function ink_on(channels) {
    const [red, green, blue] = channels.map((value) => (value <= 10 ? value / 3294.6 : ((value / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000" : "#fff";
  }

  const told = (axis, value) => quantity(value, unit_of(axis.title));
  const place = (axis, value) => (axis.names ? axis.names[value] : told(axis, value));

  // What a mark says, in lines.
  function lines(chart, series, mark) {
    const [x, y, text, low, high, value] = mark;
    const said = [];
    if (text) said.push(text);
    if (series.name) said.push(series.name);
    const named = (axis, at) => `${without_unit(axis.title)}${without_unit(axis.title) ? ": " : ""}${place(axis, at)}`;
    said.push(named(chart.x, x));
    if (chart.y.title || !chart.y.names) said.push(named(chart.y, y));
    else if (!text) said.push(place(chart.y, y));
    if (low !== null && high !== null) said.push(`${chart.interval || "interval"}: ${told(chart.x, low)} to ${told(chart.x, high)}`);
    if (value !== null) said.push(`${without_unit(chart.value)}: ${quantity(value, unit_of(chart.value))}`);
    return said;
  }

  // An element, as texts from inputs are never markup.
  function tip(said) {
    const element = document.createElement("div");
    said.forEach((line, at) => {
      const row = document.createElement(at ? "div" : "strong");
      row.textContent = line;
      element.append(row);
    });
    return element;
  }

  // A name as wide as its room: of a longer one the middle is left out.
  function cut(name, room) {
    const halves = (kept) => `${name.slice(0, Math.ceil(kept / 2))}…${name.slice(-Math.floor(kept / 2))}`;
    let kept = Math.min(name.length, Math.ceil(room / 3));
    while (kept > 4 && width_of(halves(kept), 12) > room) --kept;
    return width_of(name, 12) > room ? halves(kept) : name;
  }

  // An axis as it is drawn: where names have no room, the words that all begin with are left out. Tips have all of a name.
  function drawn_axis(axis, room) {
    if (!axis.names || longest(axis.names) <= room) return axis;
    let shared = 0;
    while (axis.names.length > 1 && axis.names.every((name) => shared < name.length && name[shared] === axis.names[0][shared])) ++shared;
    while (shared > 0 && /[\w.-]/.test(axis.names[0][shared - 1])) --shared;
    return { ...axis, names: axis.names.map((name) => cut((shared ? "…" : "") + name.slice(shared), room)) };
  }
  const axis_below = (chart) => drawn_axis(chart.x, 160);
  // Names of bars are broken into lines, as many as row_height() has room for.
  const axis_beside = (chart, width) => (chart.y.title ? drawn_axis(chart.y, room_beside(width)) : { ...chart.y, names: chart.y.names?.map((name) => cut(name, 1.9 * room_beside(width))) });

  const most_shown = 25; // names below an axis, of more only some
  // Names too close to lie side by side even when slanted stand upright.
  const room_of_name = (axis, width) => (0.6 * width) / axis.names.length;
  const is_slanted = (axis, width) => Boolean(axis.names) && longest(axis.names) + 8 > room_of_name(axis, width);
  const is_upright = (axis, width) => is_slanted(axis, width) && axis.names.length <= most_shown && room_of_name(axis, width) < 18;
  const unshown = (axis, width) => Math.max(0, Math.ceil(30 / room_of_name(axis, width)) - 1); // names between those that are
  const slanted_height = (axis) => 0.5 * longest(axis.names) + 10;
  const name_line = 14;
  const room_beside = (width) => Math.min(260, 0.42 * width); // for names beside the chart
  const lines_beside = (axis, width) => (axis.title ? 1 : Math.min(3, Math.ceil((1.1 * longest(axis.names)) / room_beside(width)))); // of bars' names
  const longest = (names) => Math.max(...names.map((name) => width_of(name, 12)));

  function axis_of(axis, places, vertical, width) {
    const ink = color("--ink-soft");
    const upright = !vertical && is_upright(axis, width);
    const option = {
      name: without_unit(axis.title),
      nameLocation: vertical ? (axis.names ? "start" : "end") : "middle", // at the top: names run downwards
      nameGap: vertical ? 12 : upright ? longest(axis.names) + 16 : is_slanted(axis, width) ? Math.max(64, slanted_height(axis) + 14) : 28,
      nameTextStyle: { color: ink, align: vertical ? "left" : "center" },
      axisLabel: { color: ink, hideOverlap: !axis.names || axis.names.length > most_shown },
      axisLine: { lineStyle: { color: color("--line") } },
      splitLine: { lineStyle: { color: color("--line") } },
    };
    if (axis.names) {
      option.axisLabel.width = vertical ? Math.min(room_beside(width), Math.ceil(1.1 * longest(axis.names))) : undefined;
      option.axisLabel.overflow = vertical ? (axis.title ? "truncate" : "break") : undefined;
      option.axisLabel.lineHeight = vertical ? name_line : undefined;
      option.axisLabel.fontSize = upright ? Math.min(12, Math.max(8, Math.floor(0.85 * room_of_name(axis, width)))) : 12;
      option.axisLabel.interval = vertical || axis.names.length <= most_shown ? 0 : unshown(axis, width);
      option.axisLabel.rotate = upright ? 90 : !vertical && is_slanted(axis, width) ? 30 : 0;
      return { ...option, type: "category", data: axis.names, inverse: vertical, splitLine: { show: false } };
    }
    option.axisLabel.formatter = (value) => (value === 0 ? "0" : told(axis, value));
    return { ...option, type: axis.log ? "log" : "value", scale: !axis.zero, logBase: places.every(Number.isInteger) ? 2 : 10 };
  }

  function intervals(marks) {
    return {
      type: "custom",
      silent: true,
      z: 5,
      data: marks.map((mark) => [mark[3], mark[4], mark[1]]),
      encode: { x: [0, 1], y: 2 }, // the axis reaches to both ends
      renderItem(_, api) {
        const [from, at] = api.coord([api.value(0), api.value(2)]);
        const [to] = api.coord([api.value(1), api.value(2)]);
        const line = (x1, y1, x2, y2) => ({
          type: "line", shape: { x1, y1, x2, y2 }, style: { stroke: color("--ink"), lineWidth: 1.5 },
        });
        return { type: "group", children: [line(from, at, to, at), line(from, at - 4, from, at + 4), line(to, at - 4, to, at + 4)] };
      },
    };
  }

  // "1.905 s", "2253 samples per second".
  function cell_text(chart, value) {
    const unit = unit_of(chart.value);
    return without_unit(chart.value) === chart.value ? `${short(value)} ${chart.value}` : quantity(value, unit);
  }

  // The values of cells and how their colours follow from them.
  function scale_of(chart) {
    const values = chart.series.filter((one) => one.look === "cells").flatMap((one) => one.marks.map((mark) => mark[5])).filter(Number.isFinite);
    if (!values.length) return null;
    const [least, most] = [Math.min(...values), Math.max(...values)];
    const logarithmic = least > 0 && most > 5 * least;
    const colored = logarithmic ? Math.log : (value) => value;
    const [min, max] = [colored(least), colored(most)];
    if (min === max) { // all are the best: one colour, and a key of one
      const best = ramp[ramp.length - 1];
      return { texts: [`all ${cell_text(chart, most)}`, ""], min: min - 1, max, logarithmic, part: () => 1, colors: [best, best], size: 1 };
    }
    const above = (value) => (colored(value) - min) / (max - min);
    const part = chart.least_is_best ? (value) => 1 - above(value) : above; // the brightest colour is that of the best
    const [size] = unit_for(least, unit_of(chart.value));
    return { size, texts: [cell_text(chart, most), Figures.is_scaled(unit_of(chart.value)) ? cell_text(chart, least) : short(least)], min, max, logarithmic, part, colors: chart.least_is_best ? [...ramp].reverse() : ramp };
  }

  // Empty where the filled symbols are used up; the next turn of colours begins with another symbol.
  function symbol_of(number) {
    const turn = number + Math.floor(number / colors);
    const own = color(`--series-${1 + (number % colors)}`);
    const empty = Math.floor(turn / symbols.length) % 2 === 1;
    return {
      symbol: symbols[turn % symbols.length],
      color: own,
      style: empty ? { color: color("--paper"), borderColor: own, borderWidth: 2 } : { color: own },
    };
  }

  // Of lines without symbols: each turn of colours has its own.
  const dash_of = (number) => ["solid", "dashed", "dotted"][Math.floor(number / colors) % 3];

  function series_of(chart, series, number, scale, width) {
    const common = { name: series.name || undefined, itemStyle: {}, emphasis: { focus: "none" }, z: series.name === "others" || series.look === "faint" ? 1 : 2 };
    const data = series.marks.map((mark) => ({ value: [mark[0], mark[1]], mark }));
    const { symbol, color: own, style } = symbol_of(number);
    const points = { ...common, type: "scatter", data, symbol, symbolSize: series.marks.length > 500 ? 5 : 9, itemStyle: { opacity: 0.85, ...style } };
    switch (series.look) {
      case "bars":
        return bars_of(chart, series, common, width);
      case "cells":
        return {
          ...common, type: "heatmap", itemStyle: { color: own },
          data: series.marks.map((mark) => ({
            value: [mark[0], mark[1], mark[5], Math.log(mark[5])], mark,
            label: { color: Number.isFinite(mark[5]) ? ink_on(on_ramp(scale.part(mark[5]))) : color("--ink") },
          })),
        };
      case "points":
        return points;
      case "faint":
        return { ...points, symbol: "circle", symbolSize: 5, itemStyle: { color: color("--faint") } };
      case "line":
        if (chart.x.names) return points; // nothing lies between names
        return { ...common, type: "line", data, symbol, symbolSize: 8, showSymbol: data.length <= 60, lineStyle: { width: 2, color: own }, itemStyle: style };
      case "steps":
        return { ...common, type: "line", step: "end", data, showSymbol: false, lineStyle: { width: 2, color: own, type: dash_of(number) } };
      case "front":
        return {
          ...common, type: "line", step: "end", data, symbol: "circle", symbolSize: 13, lineStyle: { width: 1.5, color: color("--ink") },
          itemStyle: { color: "transparent", borderColor: color("--ink"), borderWidth: 1.5 },
        };
      default:
        return {
          ...common, type: "line", data, silent: true, showSymbol: false,
          lineStyle: { width: 1, type: "dashed", color: color("--ink-soft") }, itemStyle: { color: color("--ink-soft") },
        };
    }
  }

  // A colour as on thin paper, so that the winner's stands out.
  function faded(name) {
    const channel = (text, i) => parseInt(text.slice(1 + 2 * i, 3 + 2 * i), 16);
    const paper = color("--paper");
    return `#${[0, 1, 2].map((i) => Math.round(0.55 * channel(name, i) + 0.45 * channel(paper, i)).toString(16).padStart(2, "0")).join("")}`;
  }

  // On a phone a bar has its first figure alone beside it.
  const short_label = (label, width) => (width < 500 ? label.split(", ")[0] : label);

  // Bars that all have their values beside them need no scale.
  const is_labelled = (chart) => chart.series.length > 0 && chart.series.every((one) => one.look === "bars" && one.marks.every((mark) => mark[7]));

  // Where a bar ends, or its whisker.
  const reach_of = (mark) => (Number.isFinite(mark[4]) ? Math.max(mark[0], mark[4]) : mark[0]);

  // Where a bar of a waterfall begins is an empty bar below it; one that goes back begins where it ends. Texts stand
  // behind the whiskers.
  function bars_of(chart, series, common, width) {
    const label_of = (mark, position) => ({ show: Boolean(mark[7]), position, formatter: short_label(mark[7], width), color: color("--ink"), fontSize: 12, fontWeight: mark === series.marks[0] && chart.lines ? 600 : 400 });
    const has_whisker = (mark) => reach_of(mark) > mark[0];
    const own = (mark) => (mark[8] >= 0 ? color(`--series-${1 + (mark[8] % colors)}`) : color("--series-1"));
    const bar = { ...common, type: "bar", stack: "bars", barMaxWidth: 22, barGap: "-100%", encode: { x: 0, y: 1 } };
    const first = { ...bar, name: undefined, silent: true, itemStyle: { color: "transparent" }, data: series.marks.map((mark) => [mark[6] > 0 ? Math.min(mark[0], mark[6]) : mark[6], mark[1]]) };
    const data = series.marks.map((mark) => ({
      value: [mark[6] > 0 ? Math.abs(mark[0] - mark[6]) : mark[0] - mark[6], mark[1]], mark, itemStyle: { color: chart.lines && mark !== series.marks[0] ? faded(own(mark)) : own(mark) },
      label: has_whisker(mark) ? { show: false } : label_of(mark, mark[0] < mark[6] ? "left" : "right"),
    }));
    const ends = { ...common, name: undefined, type: "scatter", silent: true, symbolSize: 1, itemStyle: { color: "transparent" }, data: series.marks.filter(has_whisker).map((mark) => ({ value: [reach_of(mark), mark[1]], label: label_of(mark, "right") })) };
    const line = (chart.lines ?? []).length ? {
      silent: true, symbol: "none", animation: false,
      lineStyle: { color: color("--ink"), type: "dashed", width: 1.5 },
      label: { color: color("--ink"), position: "start", fontSize: 12 },
      data: chart.lines.map(([x, text]) => ({ xAxis: x, label: { formatter: text } })),
    } : undefined;
    return [first, { ...bar, data, markLine: line }, ...(ends.data.length ? [ends] : [])];
  }

  // The room that the texts at the ends of bars need, beyond the longest bar.
  function room_for_labels(chart, width) {
    const marks = chart.series.filter((one) => one.look === "bars").flatMap((one) => one.marks);
    const most = Math.max(...marks.map((mark) => Math.abs(reach_of(mark))), 1e-300);
    return Math.max(0, ...marks.map((mark) => (mark[7] ? width_of(short_label(mark[7], width), 13) + 12 : 0) * (Math.abs(reach_of(mark)) / most > 0.6 ? 1 : 0.3)));
  }

  // Digits in cells: as many and as large as all of them hold, or none. Known once ECharts has placed the axes.
  function digits_in_cells(chart, drawn) {
    const marks = chart.series.filter((one) => one.look === "cells").flatMap((one) => one.marks);
    if (!marks.length || marks.length > 150) return { show: false };
    const size_of_unit = scale_of(chart).size;
    const pitch = (finder) => Math.abs(drawn.convertToPixel(finder, 1) - drawn.convertToPixel(finder, 0));
    const [across, down] = [pitch({ xAxisIndex: 0 }), pitch({ yAxisIndex: 0 })];
    for (const [digits, size] of [[4, 12], [3, 12], [3, 10]]) {
      const widest = Math.max(...marks.map((mark) => width_of(short(mark[5] / size_of_unit, digits), size)));
      if (widest + 6 <= across && size + 4 <= down) return { show: true, fontSize: size, formatter: ({ value }) => short(value[2] / size_of_unit, digits) };
    }
    return { show: false };
  }

  // What is in the key. What the front is comes first: a reader cannot guess it.
  function named(chart) {
    const all = chart.series.filter((one) => one.name);
    return [...all.filter((one) => one.look === "front"), ...all.filter((one) => one.look !== "front")];
  }

  const svg = "http://www.w3.org/2000/svg";
  const shapes = { // of symbols, in a box of 26 x 14
    circle: ["circle", { cx: 13, cy: 7, r: 5 }],
    rect: ["rect", { x: 8, y: 2, width: 10, height: 10 }],
    triangle: ["path", { d: "M13 2l5.5 10h-11z" }],
    diamond: ["path", { d: "M13 1l6 6-6 6-6-6z" }],
  };

  // What the key shows of a series: a line, a symbol, or both, as the chart draws them.
  function icon_of(chart, series, number) {
    const icon = document.createElementNS(svg, "svg");
    const draw = (name, attributes) => {
      const shape = icon.appendChild(document.createElementNS(svg, name));
      for (const [key, value] of Object.entries(attributes)) shape.setAttribute(key, value);
    };
    const line = (stroke, dash, width) => draw("path", { d: "M0 7h26", stroke, "stroke-width": width, "stroke-dasharray": { solid: "", dashed: "5 3", dotted: "2 3" }[dash] });
    const drawn = symbol_of(number);
    icon.setAttribute("viewBox", "0 0 26 14");
    icon.setAttribute("aria-hidden", "true");
    if (series.look === "guide") line(color("--ink-soft"), "dashed", 1);
    else if (series.look === "steps") line(drawn.color, dash_of(number), 2);
    else if (series.look === "cells" || series.look === "bars") draw("rect", { x: 6, y: 0, width: 14, height: 14, rx: 3, fill: drawn.color });
    else if (series.look === "faint") draw("circle", { cx: 13, cy: 7, r: 4, fill: color("--faint") });
    else if (series.look === "front") {
      line(color("--ink"), "solid", 1.5);
      draw("circle", { cx: 13, cy: 7, r: 6, fill: color("--paper"), stroke: color("--ink"), "stroke-width": 1.5 });
    } else {
      if (series.look === "line" && !chart.x.names) line(drawn.color, "solid", 2);
      const [shape, place] = shapes[drawn.symbol];
      draw(shape, { ...place, fill: drawn.style.color, stroke: drawn.color, "stroke-width": drawn.style.borderWidth ?? 0 });
    }
    return icon;
  }

  // The key: a button for each series that has a name, which hides it. `hidden` are the names of those that are.
  function key_of(chart, hidden, toggle) {
    return named(chart).map((series) => {
      const button = document.createElement("button");
      const number = chart.series.indexOf(series);
      button.type = "button";
      button.append(icon_of(chart, series, series.color ?? number), series.name);
      const tell = () => button.setAttribute("aria-pressed", String(!hidden.has(series.name)));
      button.addEventListener("click", () => {
        hidden.has(series.name) ? hidden.delete(series.name) : hidden.add(series.name);
        tell();
        toggle(series.name);
      });
      tell();
      return button;
    });
  }

  // Maps and bars are shown whole.
  const zooms = (chart) => !scale_of(chart) && !chart.y.names;

  const zoom_words = "arrows move, + and - zoom, 0 shows all";
  const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  const sizes = { "+": 0.8, "=": 0.8, "-": 1.25, 0: Infinity };

  // What a key does to the part of each axis that is shown, in percent; whether it does anything.
  function zoom_by(pressed, drawn) {
    if (!(pressed in moves) && !(pressed in sizes)) return false;
    drawn.getOption().dataZoom.forEach(({ start, end }, axis) => {
      const wide = Math.min(100, (end - start) * (sizes[pressed] ?? 1));
      const middle = (start + end) / 2 + 0.1 * (end - start) * (moves[pressed]?.[axis] ?? 0);
      const from = Math.min(100 - wide, Math.max(0, middle - wide / 2));
      drawn.dispatchAction({ type: "dataZoom", dataZoomIndex: axis, start: from, end: from + wide });
    });
    return true;
  }

  function option_of(chart, width, hidden) {
    const narrow = width < 600;
    const scale = scale_of(chart);
    const x = axis_below(chart);
    const touched = matchMedia("(hover: none)").matches;
    const places = (which) => chart.series.flatMap((one) => one.marks.map((mark) => mark[which])).filter((value) => value > 0);
    const series = chart.series.flatMap((one, number) => series_of(chart, one, one.color ?? number, scale, width));
    for (const one of chart.series) {
      const marks = one.marks.filter((mark) => mark[3] !== null && mark[4] !== null);
      if (marks.length) series.push(intervals(marks));
    }
    const below = scale ? 76 : is_labelled(chart) && !without_unit(chart.x.title) ? 4 : 24;
    return {
      animation: false,
      color: palette(),
      textStyle: { fontFamily: font, color: color("--ink") },
      aria: { enabled: true, label: { description: chart.title + (zooms(chart) ? `: ${zoom_words}` : "") } },
      grid: { left: 16, right: 24 + room_for_labels(chart, width), top: chart.y.title || chart.lines ? 36 : 12, bottom: below + (is_slanted(x, width) && x.title ? 20 : 0), containLabel: true },
      legend: { show: false, selected: Object.fromEntries([...hidden].map((name) => [name, false])) },
      tooltip: {
        trigger: "item", confine: true, backgroundColor: color("--paper"), borderColor: color("--line"), textStyle: { color: color("--ink") },
        formatter: ({ data }) => (data && data.mark ? tip(lines(chart, chart.series.find((one) => one.marks.includes(data.mark)), data.mark)) : ""),
      },
      visualMap: scale
        ? {
            min: scale.min, max: scale.max, dimension: scale.logarithmic ? 3 : 2, seriesIndex: 0,
            orient: "horizontal", left: "center", bottom: 4, itemHeight: narrow ? 120 : 240, itemWidth: 14,
            text: scale.texts,
            textStyle: { color: color("--ink") }, inRange: { color: scale.colors }, hoverLink: false,
          }
        : undefined,
      dataZoom: !zooms(chart) ? [] : [{ xAxisIndex: 0 }, { yAxisIndex: 0 }].map((axis) => ({
        ...axis, type: "inside", zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false, filterMode: "none",
        moveOnMouseMove: !touched, preventDefaultMouseMove: !touched, // a swipe scrolls the page
      })),
      xAxis: is_labelled(chart) ? { ...axis_of(x, places(0), false, width), axisLabel: { show: false }, splitLine: { show: false }, nameGap: 8 } : axis_of(x, places(0), false, width),
      yAxis: axis_of(axis_beside(chart, width), places(1), true, width),
      series,
    };
  }

  // Many rows of a map need no more than their names.
  const row_height = (chart, width) => (chart.x.names && chart.y.names.length > most_shown ? 16 : 10 + name_line * lines_beside(chart.y, width));

  function height_of(chart, width) {
    const x = axis_below(chart);
    const names_below = is_upright(x, width) ? 20 + longest(x.names) : is_slanted(x, width) ? Math.max(70, slanted_height(x) + 20) : 0;
    return chart.y.names ? Math.max(80, (chart.y.title || chart.lines ? 100 : 76) - (is_labelled(chart) ? (chart.x.title && without_unit(chart.x.title) ? 26 : 44) : 0) + (scale_of(chart) ? 44 : 0) + names_below + row_height(chart, width) * chart.y.names.length) : 330 + names_below;
  }

  // The chart's marks as rows, for those who read with keys or a screen reader, and how many are too many.
  function rows_of(chart) {
    const all = chart.series.filter((one) => one.look !== "guide").flatMap((series) => series.marks.map((mark) => [series, mark]));
    const table = document.createElement("table");
    for (const [series, mark] of all.slice(0, most_listed)) {
      const row = table.insertRow();
      for (const text of lines(chart, series, mark)) row.insertCell().textContent = text;
    }
    const rest = document.createElement("p");
    rest.textContent = all.length > most_listed ? `${all.length - most_listed} further ones are left out` : "";
    return [table, rest];
  }

  const is_empty = (chart) => chart.series.every((one) => !one.marks.length);

  /** Puts the chart that `shown` gives into `parent`; returns what draws anew what it gives then, in the colours of the moment. */
  function add(parent, shown) {
    const canvas = document.createElement("div");
    canvas.className = "canvas";
    const hint = document.createElement("p");
    hint.className = "hint";
    hint.textContent = zoom_words;
    const key = document.createElement("div");
    key.className = "key";
    const details = document.createElement("details");
    const summary = document.createElement("summary");
    summary.textContent = "in numbers";
    details.append(summary);
    let listed = null; // whose marks are rows
    const list = () => {
      if (!details.open || listed === shown()) return;
      listed = shown();
      details.replaceChildren(summary, ...rows_of(listed));
    };
    details.addEventListener("toggle", list);
    parent.append(canvas, hint, key, details);
    let drawn = null;
    let width = 0;
    const hidden = new Set(); // names of series
    const toggle = (name) => drawn.dispatchAction({ type: "legendToggleSelect", name });
    canvas.addEventListener("keydown", (event) => {
      const plain = !event.ctrlKey && !event.altKey && !event.metaKey;
      if (plain && zooms(shown()) && zoom_by(event.key, drawn)) event.preventDefault();
    });
    const draw = () => {
      const chart = shown();
      canvas.hidden = key.hidden = details.hidden = is_empty(chart);
      list();
      key.replaceChildren(...key_of(chart, hidden, toggle));
      zooms(chart) ? canvas.setAttribute("tabindex", 0) : canvas.removeAttribute("tabindex");
      if (!canvas.clientWidth) return;
      width = canvas.clientWidth;
      canvas.style.height = `${height_of(chart, width)}px`;
      drawn ??= echarts.init(canvas, null, { renderer: "svg" });
      drawn.resize();
      drawn.setOption(option_of(chart, width, hidden), true);
      if (scale_of(chart)) drawn.setOption({ series: [{ label: digits_in_cells(chart, drawn) }] });
    };
    new ResizeObserver(() => drawn && canvas.clientWidth !== width && draw()).observe(canvas);
    return draw;
  }

  /** About how high a chart is with its key. */
  const height = (chart, width) => height_of(chart, width) + (named(chart).length ? 26 : 0);

  return { add, is_empty, height, color };
})();
