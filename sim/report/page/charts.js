// Charts of the report, drawn by ECharts from the data of sim/report/chart.hpp.
// SPDX-License-Identifier: Apache-2.0
"use strict";

const Charts = (() => {
  const symbols = ["circle", "rect", "triangle", "diamond", "pin", "arrow", "roundRect", "emptyCircle"];
  const font = 'system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif'; // as the page's: ECharts measures texts by it
  const ramp = ["#3b528b", "#21918c", "#5ec962", "#fde725"]; // viridis

  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const palette = () => Array.from({ length: 8 }, (_, i) => color(`--series-${i + 1}`));

  function short(value) {
    if (value === null || !Number.isFinite(value)) return "–";
    const size = Math.abs(value);
    return size !== 0 && (size < 1e-3 || size >= 1e6) ? value.toExponential(2) : String(Number(value.toPrecision(4)));
  }

  const place = (axis, value) => (axis.names ? axis.names[value] : short(value));

  // What a mark says, in lines.
  function lines(chart, series, mark) {
    const [x, y, text, low, high, value] = mark;
    const said = [];
    if (text) said.push(text);
    if (series.name) said.push(series.name);
    said.push(`${chart.x.title || "x"}: ${place(chart.x, x)}`);
    if (chart.y.title || !chart.y.names) said.push(`${chart.y.title || "y"}: ${place(chart.y, y)}`);
    else if (!text) said.push(place(chart.y, y));
    if (low !== null && high !== null) said.push(`from ${short(low)} to ${short(high)}`);
    if (value !== null) said.push(`${chart.value}: ${short(value)}`);
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

  const is_slanted = (axis) => Boolean(axis.names) && (axis.names.length > 6 || axis.names.join("").length > 45);

  function axis_of(axis, places, vertical, width) {
    const ink = color("--ink-soft");
    const option = {
      name: vertical && axis.names ? "" : axis.title,
      nameLocation: vertical ? "end" : "middle",
      nameGap: vertical ? 12 : is_slanted(axis) ? 64 : 28,
      nameTextStyle: { color: ink, align: vertical ? "left" : "center" },
      axisLabel: { color: ink, hideOverlap: !axis.names || axis.names.length > 25 },
      axisLine: { lineStyle: { color: color("--line") } },
      splitLine: { lineStyle: { color: color("--line") } },
    };
    if (axis.names) {
      option.axisLabel.width = vertical ? Math.min(260, 0.42 * width) : undefined;
      option.axisLabel.overflow = vertical ? "truncate" : undefined;
      option.axisLabel.interval = vertical || axis.names.length <= 25 ? 0 : undefined;
      option.axisLabel.rotate = !vertical && is_slanted(axis) ? 30 : 0;
      return { ...option, type: "category", data: axis.names, inverse: vertical, splitLine: { show: false } };
    }
    option.axisLabel.formatter = short;
    return { ...option, type: axis.log ? "log" : "value", scale: !axis.zero, logBase: places.every(Number.isInteger) ? 2 : 10 };
  }

  function intervals(marks) {
    return {
      type: "custom",
      silent: true,
      z: 5,
      data: marks.map((mark) => [mark[3], mark[4], mark[1]]),
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

  function series_of(chart, series, number) {
    const common = { name: series.name || undefined, itemStyle: {}, emphasis: { focus: "none" }, z: series.name === "others" ? 1 : 2 };
    const data = series.marks.map((mark) => ({ value: [mark[0], mark[1]], mark }));
    const symbol = symbols[number % symbols.length];
    switch (series.look) {
      case "bars":
        return { ...common, type: "bar", data, barMaxWidth: 18, barGap: "-100%", encode: { x: 0, y: 1 } };
      case "cells":
        return {
          ...common, type: "heatmap",
          data: series.marks.map((mark) => ({ value: [mark[0], mark[1], mark[5], Math.log(mark[5])], mark })),
          label: { show: series.marks.length <= 150, formatter: ({ value }) => short(value[2]), color: "#000", textBorderColor: "#fff", textBorderWidth: 2 },
        };
      case "points":
        return { ...common, type: "scatter", data, symbol, symbolSize: series.marks.length > 500 ? 5 : 9, itemStyle: { opacity: 0.85 } };
      case "line":
        return { ...common, type: "line", data, symbol, symbolSize: 7, showSymbol: data.length <= 60, lineStyle: { width: 2 } };
      case "steps":
        return { ...common, type: "line", step: "end", data, showSymbol: false };
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

  function option_of(chart, width) {
    const narrow = width < 600;
    const cells = chart.series.some((one) => one.look === "cells");
    const values = chart.series.filter((one) => one.look === "cells").flatMap((one) => one.marks.map((mark) => mark[5])).filter(Number.isFinite);
    const places = (which) => chart.series.flatMap((one) => one.marks.map((mark) => mark[which])).filter((value) => value > 0);
    const series = chart.series.map((one, number) => series_of(chart, one, number));
    for (const one of chart.series) {
      const marks = one.marks.filter((mark) => mark[3] !== null && mark[4] !== null);
      if (marks.length) series.push(intervals(marks));
    }
    const wide = values.length > 0 && Math.min(...values) > 0 && Math.max(...values) > 5 * Math.min(...values); // colours by the logarithm
    const colored = wide ? Math.log : (value) => value;
    const named = chart.series.filter((one) => one.name).map((one) => one.name);
    return {
      animation: false,
      color: palette(),
      textStyle: { fontFamily: font, color: color("--ink") },
      aria: { enabled: true, label: { description: chart.title } },
      grid: { left: 16, right: 24, top: chart.y.title && !chart.y.names ? 36 : 12, bottom: (cells ? 76 : named.length ? 56 : 24) + (is_slanted(chart.x) && chart.x.title ? 20 : 0), containLabel: true },
      legend: { show: named.length > 0, type: "scroll", bottom: 0, data: named, textStyle: { color: color("--ink") }, pageTextStyle: { color: color("--ink") }, pageIconColor: color("--ink") },
      tooltip: {
        trigger: "item", confine: true, backgroundColor: color("--paper"), borderColor: color("--line"), textStyle: { color: color("--ink") },
        formatter: ({ seriesIndex, data }) => (data && data.mark ? tip(lines(chart, chart.series[seriesIndex], data.mark)) : ""),
      },
      visualMap: cells
        ? {
            min: colored(Math.min(...values)), max: colored(Math.max(...values)), dimension: wide ? 3 : 2, seriesIndex: 0,
            orient: "horizontal", left: "center", bottom: 4, itemHeight: narrow ? 120 : 240, itemWidth: 14,
            text: [`${short(Math.max(...values))} ${chart.value}`, short(Math.min(...values))],
            textStyle: { color: color("--ink") }, inRange: { color: ramp }, hoverLink: false,
          }
        : undefined,
      dataZoom: cells || chart.y.names ? [] : [
        { type: "inside", xAxisIndex: 0, zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false, filterMode: "none" },
        { type: "inside", yAxisIndex: 0, zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false, filterMode: "none" },
      ],
      xAxis: axis_of(chart.x, places(0), false, width),
      yAxis: axis_of(chart.y, places(1), true, width),
      series,
    };
  }

  function height_of(chart) {
    return chart.y.names ? Math.max(180, 120 + (is_slanted(chart.x) ? 70 : 0) + 24 * chart.y.names.length) : 360;
  }

  // The chart's marks as rows, for those who read with keys or a screen reader.
  function rows_of(chart) {
    const table = document.createElement("table");
    for (const series of chart.series.filter((one) => one.look !== "guide")) {
      for (const mark of series.marks.slice(0, 500)) {
        const row = table.insertRow();
        for (const text of lines(chart, series, mark)) row.insertCell().textContent = text;
      }
    }
    return table;
  }

  /** Puts a chart into `parent`; returns what draws it anew, in the colours of the moment. */
  function add(parent, chart) {
    const canvas = document.createElement("div");
    canvas.className = "canvas";
    canvas.style.height = `${height_of(chart)}px`;
    const details = document.createElement("details");
    const summary = document.createElement("summary");
    summary.textContent = "in numbers";
    details.append(summary);
    details.addEventListener("toggle", () => details.open && details.childElementCount === 1 && details.append(rows_of(chart)));
    parent.append(canvas, details);
    let drawn = null;
    const draw = () => {
      if (!canvas.clientWidth) return;
      drawn ??= echarts.init(canvas, null, { renderer: "svg" });
      drawn.resize();
      drawn.setOption(option_of(chart, canvas.clientWidth), true);
    };
    new ResizeObserver(() => drawn && draw()).observe(canvas);
    return draw;
  }

  return { add, height: height_of, color };
})();
