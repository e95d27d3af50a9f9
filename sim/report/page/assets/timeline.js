// Timelines of the report on a canvas: bars in rows, memory below, a million of them at once. The data is that of
// sim/report/page/tracks.hpp; moments are whole numbers, 2^32 - 1 of them in the run.
// SPDX-License-Identifier: Apache-2.0
"use strict";

const Timelines = (() => {
  const ticks = 4294967295;
  const head = 22; // of the time axis, pixels
  const categories = ["forward", "backward", "weight", "recompute", "optimizer", "transfer", "all-reduce", "reduce-scatter", "all-gather", "exchange", "load"];
  const slack = { mouse: 4, touch: 10 }; // pixels that a press may wander and not be a drag
  const { color } = Charts;

  function decoded(text, Type) {
    const raw = atob(text);
    const bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; ++i) bytes[i] = raw.charCodeAt(i);
    return new Type(bytes.buffer);
  }

  // In the largest unit that there is one of, with five digits or those that tell apart what differs by `step`.
  function in_units(value, units, step) {
    const [size, unit] = units.find(([size]) => Math.abs(value) >= size) ?? units[units.length - 1];
    const places = Math.ceil(step ? Math.log10(size / step) - 1e-9 : 4 - Math.floor(Math.log10(Math.abs(value) / size)));
    return `${Number((value / size).toFixed(Math.min(20, Math.max(0, places))))} ${unit}`;
  }
  const seconds = (value, step) => (value === 0 ? "0 s" : in_units(value, [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]], step));
  const bytes_text = (value) => in_units(value, [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [1024, "KiB"], [1, "B"]]);
  // The place to which a duration and its start are told: five digits of the duration, as far as `tick` tells them.
  const told_to = (duration, tick) => 10 ** Math.max(Math.ceil(Math.log10(tick)), Math.floor(Math.log10(duration)) - 4);

  // The first place from `low` to `high` whose value is greater.
  function above(values, low, high, value) {
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (values[middle] > value) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  // A name cut in the middle until it fits, each end of a link by itself: names differ at their ends.
  function fitted(context, name, room) {
    const parts = name.split(">");
    const cut = (text, length) => {
      const head = (length - 1) >> 1;
      return text.length <= length ? text : `${text.slice(0, head)}…${text.slice(head + 1 - length)}`;
    };
    for (let length = name.length; length > 2; --length) {
      const text = parts.map((part) => cut(part, length)).join(">");
      if (context.measureText(text).width <= room) return text;
    }
    return parts.map((part) => cut(part, 2)).join(">");
  }

  // Rows of an axis are named after the device above them, "d tensor" below "d": `of_axis` is the rest of the name.
  function tracks_of(list) {
    let above = null;
    return list.map(([group, name]) => {
      const below = above?.group === group && / (tensor|data|pipeline)( #\d+)?$/.test(name) && [" ", ","].includes(name[above.name.length]) && name.startsWith(above.name);
      if (!below) above = { group, name };
      return { group, name, of_axis: below ? name.slice(above.name.length).replace(/^[ ,]+/, "") : "" };
    });
  }

  // The critical path as a row of its own: what of it is seen on devices and links, one piece after another.
  function critical_path(data) {
    const path = [];
    let until = -1;
    const bars = [];
    data.tracks.forEach((_, track) => {
      for (let bar = data.begin[track]; bar < data.begin[track + 1]; ++bar) if (data.critical[bar]) bars.push(bar);
    });
    bars.sort((a, b) => data.start[a] - data.start[b] || data.finish[b] - data.finish[a]);
    for (const bar of bars) {
      if (data.finish[bar] <= until || data.start[bar] < until - 1) continue; // seen already, on another link
      path.push(bar);
      until = data.finish[bar];
    }
    return path;
  }

  // The data with that row at its end; as it is where nothing is critical.
  function with_path(data) {
    const path = critical_path(data);
    if (path.length < 2) return { ...data, path: -1 };
    const longer = (values) => {
      const all = new values.constructor(values.length + path.length);
      all.set(values);
      path.forEach((bar, at) => { all[values.length + at] = values[bar]; });
      return all;
    };
    const columns = Object.fromEntries(["start", "finish", "kind", "micro_batch", "iteration", "critical"].map((name) => [name, longer(data[name])]));
    return {
      ...data, ...columns, path: data.tracks.length,
      tracks: [...data.tracks, { group: "", name: "critical path", of_axis: "" }],
      begin: [...data.begin, data.start.length + path.length],
    };
  }

  function unpacked(data) {
    const kinds = data.kinds.map(([category, label, bytes]) => ({ category, label, bytes }));
    const names = [...new Set(kinds.map((kind) => kind.category))];
    const order = (name) => (categories.includes(name) ? categories.indexOf(name) : categories.length);
    names.sort((a, b) => order(a) - order(b) || (a < b ? -1 : 1));
    return {
      title: data.title,
      end: data.end,
      tracks: tracks_of(data.tracks),
      kinds,
      names,
      name_of_kind: Uint16Array.from(kinds, (kind) => names.indexOf(kind.category)),
      begin: data.begin,
      start: decoded(data.start, Uint32Array),
      finish: decoded(data.finish, Uint32Array),
      kind: decoded(data.kind, Uint32Array),
      micro_batch: decoded(data.micro_batch, Int32Array),
      iteration: decoded(data.iteration, Int32Array),
      critical: decoded(data.critical, Uint8Array),
      levels: data.levels.map((level) => {
        const seconds = decoded(level.seconds, Uint32Array), until = new Uint32Array(seconds.length).fill(ticks);
        until.set(seconds.subarray(1));
        return { group: level.group, name: level.name, seconds, until, bytes: decoded(level.bytes, Float64Array) };
      }),
    };
  }

  const color_of = (name) => color(`--task-${name.replaceAll(" ", "-")}`) || color("--task-other");

  class Picture {
    constructor(parent, data, view) {
      this.data = with_path(unpacked(data));
      this.links = this.data.tracks.filter((track) => track.group.endsWith("links")).length;
      this.view = view;
      this.most = this.data.levels.reduce((value, one) => one.bytes.reduce((a, b) => Math.max(a, b), value), 1);
      this.chosen = -1;
      this.track = 0;
      this.fingers = new Map(); // where they are
      this.pinched = null; // the moments under two of them
      this.short_names = new Map();
      const figure = document.createElement("figure");
      const caption = document.createElement("figcaption");
      caption.textContent = data.title;
      this.canvas = document.createElement("canvas");
      this.canvas.tabIndex = 0;
      this.canvas.setAttribute("role", "application");
      this.canvas.setAttribute("aria-label", `Timeline of ${data.title}. Arrows move, plus and minus zoom, N and P step from bar to bar, up and down change the row, 0 shows all, C shows the critical path.`);
      this.said = document.createElement("p");
      this.said.className = "said";
      this.said.setAttribute("aria-live", "polite");
      figure.append(caption, this.legend(), this.canvas, this.said);
      parent.append(figure);
      this.listen();
      new ResizeObserver(() => this.draw()).observe(this.canvas.parentElement);
    }

    legend() {
      const list = document.createElement("div");
      list.className = "legend";
      for (const name of this.data.names) {
        const entry = document.createElement("span");
        const swatch = document.createElement("i");
        swatch.style.background = categories.includes(name) ? `var(--task-${name.replaceAll(" ", "-")})` : "var(--task-other)";
        entry.append(swatch, name);
        list.append(entry);
      }
      return list;
    }

    // Rows from top to bottom: tracks, then memory.
    layout(width) {
      const { tracks, levels } = this.data;
      const sort = (track) => (track.group.endsWith("links") ? 2 : track.of_axis ? 1 : 0);
      const fit = (high, room, of) => Math.max(3, Math.min(high, Math.floor(room / Math.max(1, tracks.filter((track) => sort(track) === of).length))));
      const heights = [fit(24, 640, 0), fit(13, 640, 1), fit(15, 360, 2)];
      this.rows = [];
      let y = head;
      const add = (kind, index, height, group, name, of_axis) => {
        const first = !this.rows.length || this.rows[this.rows.length - 1].group !== group;
        y += first && group ? 18 : 0;
        this.rows.push({ kind, index, y, height, group, name, of_axis, first });
        y += height + (height > 8 ? 2 : 0);
      };
      if (this.data.path >= 0) add("bars", this.data.path, 24, "", "critical path", "");
      tracks.forEach((track, index) => {
        const folded = track.group.endsWith("links") && !this.view.links;
        if (index !== this.data.path && !folded) add("bars", index, heights[sort(track)], track.group, track.name, track.of_axis);
      });
      const low = levels.length > 16 ? Math.max(6, Math.floor(320 / levels.length)) : 26;
      levels.forEach((level, index) => add("level", index, low, level.group.replace("devices", "memory"), level.name.replace(/^memory /, "")));
      this.height = y + 4;
      this.left = width < 600 ? 112 : 190;
    }

    x_of(moment) {
      const { from, to } = this.view;
      return this.left + ((moment - from) / (to - from)) * (this.width - this.left);
    }
    time_at(x) {
      const { from, to } = this.view;
      return from + ((x - this.left) / (this.width - this.left)) * (to - from);
    }

    draw() {
      const width = this.canvas.parentElement.clientWidth;
      if (!width) return;
      const ratio = window.devicePixelRatio || 1;
      this.width = width;
      this.layout(width);
      if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(this.height * ratio)) {
        this.canvas.width = Math.round(width * ratio);
        this.canvas.height = Math.round(this.height * ratio);
        this.canvas.style.height = `${this.height}px`;
      }
      const context = this.canvas.getContext("2d");
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.clearRect(0, 0, width, this.height);
      context.font = "12px system-ui, sans-serif";
      context.textBaseline = "middle";
      this.ink = { text: color("--ink"), soft: color("--ink-soft"), line: color("--line"), row: color("--row"), paper: color("--paper") };
      this.paints = this.data.names.map((name) => color_of(name));
      this.draw_axis(context);
      this.named = -Infinity;
      for (const row of this.rows) {
        context.globalAlpha = 1;
        context.fillStyle = this.ink.row;
        context.fillRect(this.left, row.y, width - this.left, row.height);
        row.kind === "bars" ? this.draw_bars(context, row) : this.draw_level(context, row);
        this.draw_name(context, row);
      }
      this.draw_chosen(context);
      this.draw_selection(context);
    }

    draw_axis(context) {
      const { from, to } = this.view;
      const room = (this.width - this.left) / 100;
      const raw = (to - from) / Math.max(1, room);
      const power = 10 ** Math.floor(Math.log10(raw));
      const step = [1, 2, 5, 10].map((n) => n * power).find((size) => size >= raw);
      context.globalAlpha = 1;
      for (let moment = Math.ceil(from / step) * step; moment <= to; moment += step) {
        const x = this.x_of(moment);
        context.fillStyle = this.ink.line;
        context.fillRect(x, head - 4, 1, this.height - head);
        context.fillStyle = this.ink.soft;
        context.textAlign = x > this.width - 50 ? "right" : "left";
        context.fillText(seconds(Math.abs(moment) < step / 1e6 ? 0 : moment, step), x + (x > this.width - 50 ? -2 : 2), 9);
      }
      context.textAlign = "left";
    }

    draw_name(context, row) {
      context.globalAlpha = 1;
      if (row.first && row.group) {
        context.fillStyle = this.ink.soft;
        context.fillText(row.group, 0, row.y - 8);
      }
      const middle = row.y + row.height / 2;
      if (middle < this.named + 13) return; // of thin rows those that have room
      this.named = middle;
      context.fillStyle = row.of_axis ? this.ink.soft : this.ink.text;
      const name = row.of_axis || row.name, indent = row.of_axis ? 12 : 0;
      const key = `${this.left} ${name}`;
      if (!this.short_names.has(key)) this.short_names.set(key, fitted(context, name, this.left - 6 - indent));
      context.fillText(this.short_names.get(key), indent, middle);
    }

    // Bars too thin to see are put together: each pixel is filled by how much of it each kind takes.
    draw_bars(context, row) {
      const { data, view } = this;
      const per = ticks / data.end;
      const low = view.from * per, high = view.to * per;
      const scale = (this.width - this.left) / (high - low);
      const first = data.begin[row.index], last = data.begin[row.index + 1];
      const paints = data.names.length * 2; // plain and dimmed
      const pixels = Math.ceil(this.width - this.left);
      const cover = new Float32Array(paints * pixels);
      const wide = [];
      for (let bar = above(data.finish, first, last, low); bar < last && data.start[bar] <= high; ++bar) {
        const x0 = Math.max(0, (data.start[bar] - low) * scale), x1 = Math.min(pixels, (data.finish[bar] - low) * scale);
        const paint = data.name_of_kind[data.kind[bar]] * 2 + (view.critical && !data.critical[bar] ? 1 : 0);
        if (x1 - x0 >= 2) wide.push(bar, x0, x1, paint);
        else {
          const pixel = Math.min(pixels - 1, x0 | 0);
          const inside = Math.min(x1, pixel + 1) - x0;
          cover[pixel * paints + paint] += inside;
          if (pixel + 1 < pixels) cover[(pixel + 1) * paints + paint] += x1 - x0 - inside;
        }
      }
      for (let pixel = 0; pixel < pixels; ++pixel) {
        let y = row.y + row.height;
        for (let paint = 0; paint < paints; ++paint) {
          const share = cover[pixel * paints + paint];
          if (share > 0) {
            const height = Math.min(1, share) * row.height;
            this.paint(context, paint);
            context.fillRect(this.left + pixel, Math.max(row.y, y - height), 1, Math.min(height, y - row.y));
            y -= height;
          }
        }
      }
      for (let i = 0; i < wide.length; i += 4) this.draw_bar(context, row, wide[i], wide[i + 1], wide[i + 2], wide[i + 3]);
    }

    paint(context, paint) {
      context.globalAlpha = paint % 2 ? 0.25 : 1;
      context.fillStyle = this.paints[paint >> 1];
    }

    draw_bar(context, row, bar, x0, x1, paint) {
      this.paint(context, paint);
      context.fillRect(this.left + x0, row.y, Math.max(1, x1 - x0 - 0.5), row.height);
      if (x1 - x0 > 26 && row.height >= 12) {
        const label = this.label(bar);
        if (context.measureText(label).width < x1 - x0 - 4) {
          context.fillStyle = color("--on-bar");
          context.fillText(label, this.left + x0 + 3, row.y + row.height / 2 + 0.5);
        }
      }
    }

    draw_level(context, row) {
      const { data, view } = this;
      const level = data.levels[row.index];
      const per = ticks / data.end;
      const pixels = Math.ceil(this.width - this.left);
      const tick = (x) => (view.from + (x / pixels) * (view.to - view.from)) * per;
      context.fillStyle = color("--series-6");
      let step = above(level.seconds, 0, level.seconds.length, tick(0)) - 1;
      for (let x = 0; x < pixels && tick(x) <= ticks; ++x) {
        let value = step >= 0 ? level.bytes[step] : 0;
        while (step + 1 < level.seconds.length && level.seconds[step + 1] <= tick(x + 1)) value = Math.max(value, level.bytes[++step]);
        const height = (value / this.most) * row.height;
        context.fillRect(this.left + x, row.y + row.height - height, 1, height);
      }
    }

    // What steps in a row go through: its bars, or the changes of its memory, each of which holds until the next.
    steps_of(row) {
      const { data } = this;
      if (row.kind === "bars") return { start: data.start, finish: data.finish, first: data.begin[row.index], last: data.begin[row.index + 1] };
      const { seconds, until } = data.levels[row.index];
      return { start: seconds, finish: until, first: 0, last: seconds.length };
    }

    draw_chosen(context) {
      if (this.chosen < 0) return;
      const row = this.rows[this.track];
      const { start, finish } = this.steps_of(row);
      const per = this.data.end / ticks;
      const x0 = Math.max(this.left, this.x_of(start[this.chosen] * per));
      const x1 = Math.max(x0 + 2, this.x_of(finish[this.chosen] * per));
      context.globalAlpha = 1;
      context.strokeStyle = this.ink.text;
      context.lineWidth = 2;
      if (x1 > this.left) context.strokeRect(x0, row.y, x1 - x0, row.height);
    }

    draw_selection(context) {
      if (!this.drag || this.drag.pan) return;
      context.globalAlpha = 0.2;
      context.fillStyle = this.ink.text;
      context.fillRect(Math.min(this.drag.from, this.drag.to), head, Math.abs(this.drag.to - this.drag.from), this.height);
    }

    label(bar) {
      return this.data.kinds[this.data.kind[bar]].label.replace("{}", String(this.data.micro_batch[bar]));
    }

    describe(bar, row) {
      const { data } = this;
      const kind = data.kinds[data.kind[bar]];
      const per = data.end / ticks;
      const start = data.start[bar] * per, duration = data.finish[bar] * per - start;
      const known = told_to(duration, per);
      const parts = [this.label(bar), kind.category, `on ${row.name}`, `${seconds(duration, known)} from ${seconds(start, known)}`, `iteration ${data.iteration[bar]}`];
      if (kind.bytes) parts.push(bytes_text(kind.bytes));
      if (data.critical[bar]) parts.push("on the critical path");
      return parts.join(" · ");
    }

    describe_level(change, row, moment) {
      return `${row.name}: ${bytes_text(change < 0 ? 0 : this.data.levels[row.index].bytes[change])} at ${moment}`;
    }

    // What is at a place of the canvas, in words.
    at(x, y) {
      const index = this.rows.findIndex((row) => y >= row.y && y < row.y + row.height);
      if (index < 0) return null;
      const row = this.rows[index];
      if (x < this.left) return { index, bar: -1, text: row.name };
      const tick = (this.time_at(x) * ticks) / this.data.end;
      const moment = seconds(this.time_at(x), (this.view.to - this.view.from) / this.width);
      const { start, first, last } = this.steps_of(row);
      if (row.kind === "level") return { index, bar: -1, text: this.describe_level(above(start, first, last, tick) - 1, row, moment) };
      const near = (2 * (this.view.to - this.view.from) * ticks) / this.data.end / this.width; // two pixels
      const bar = above(this.data.finish, first, last, tick - near);
      const hit = bar < last && this.data.start[bar] <= tick + near;
      return { index, bar: hit ? bar : -1, text: hit ? this.describe(bar, row) : `${row.name}: idle at ${moment}` };
    }

    listen() {
      const { canvas } = this;
      const x_of = (event) => event.clientX - canvas.getBoundingClientRect().left;
      canvas.addEventListener("pointermove", (event) => {
        const x = x_of(event);
        if (this.fingers.has(event.pointerId)) this.fingers.set(event.pointerId, x);
        if (this.pinched) this.pinch();
        else if (this.drag) this.move(x);
        else if (event.pointerType !== "touch") this.show(event);
      });
      canvas.addEventListener("pointerleave", (event) => {
        if (event.pointerType === "touch") return; // a tap's tip stays
        Tip.hide();
        dispatchEvent(new CustomEvent("moment", { detail: { said: "", at: null } }));
      });
      canvas.addEventListener("pointerdown", (event) => {
        if (event.button !== 0) return;
        const x = x_of(event);
        canvas.setPointerCapture(event.pointerId);
        if (event.pointerType === "touch") this.fingers.set(event.pointerId, x);
        if (this.fingers.size < 2) this.drag = { from: Math.max(this.left, x), to: Math.max(this.left, x), pan: event.shiftKey, view: { ...this.view } };
        else this.begin_pinch();
      });
      canvas.addEventListener("pointerup", (event) => {
        this.lift(event);
        const tapped = this.drag && Math.abs(this.drag.to - this.drag.from) <= slack.touch && event.pointerType === "touch";
        this.drop(slack[event.pointerType] ?? slack.mouse);
        if (tapped) this.show(event);
      });
      canvas.addEventListener("pointercancel", (event) => { // the browser scrolls instead
        this.lift(event);
        this.drag = null;
        this.draw();
      });
      canvas.addEventListener("dblclick", () => this.view.all());
      canvas.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        this.view.zoom(this.time_at(x_of(event)), 1.2 ** (event.deltaY / 40));
      }, { passive: false });
      canvas.addEventListener("keydown", (event) => this.key(event));
    }

    // Two fingers keep the moments under them: apart they zoom, together they move.
    begin_pinch() {
      this.drag = null;
      this.pinched = [...this.fingers.values()].slice(0, 2).map((x) => this.time_at(x));
    }

    pinch() {
      const [x0, x1] = this.fingers.values();
      const [t0, t1] = this.pinched;
      const per_pixel = (t1 - t0) / (x1 - x0);
      if (!(per_pixel > 0) || !Number.isFinite(per_pixel)) return; // one finger passed the other
      const from = t0 - (x0 - this.left) * per_pixel;
      this.view.set(from, from + (this.width - this.left) * per_pixel);
    }

    lift(event) {
      this.fingers.delete(event.pointerId);
      this.pinched = null;
    }

    // Tells pictures of the plan what each device and link does at a moment.
    tell_moment(moment) {
      const tick = (moment * ticks) / this.data.end, at = new Map();
      this.data.tracks.forEach((track, index) => {
        if (index === this.data.path) return;
        const last = this.data.begin[index + 1], bar = above(this.data.finish, this.data.begin[index], last, tick);
        if (bar < last && this.data.start[bar] <= tick) at.set(track.name.replace(/ #\d+$/, ""), color_of(this.data.kinds[this.data.kind[bar]].category));
      });
      dispatchEvent(new CustomEvent("moment", { detail: { at, said: `At ${seconds(moment, (this.view.to - this.view.from) / this.width)}: devices are framed in the colour of what they compute, links that carry data are marked.` } }));
    }

    show(event) {
      const box = this.canvas.getBoundingClientRect();
      const found = this.at(event.clientX - box.left, event.clientY - box.top);
      if (document.querySelector(".cluster") && event.clientX - box.left > this.left) this.tell_moment(this.time_at(event.clientX - box.left));
      found ? Tip.show(found.text, event.clientX, event.clientY) : Tip.hide();
    }

    move(x) {
      this.drag.to = Math.max(this.left, x);
      if (!this.drag.pan) return this.draw();
      const moved = ((this.drag.from - x) / (this.width - this.left)) * (this.drag.view.to - this.drag.view.from);
      this.view.set(this.drag.view.from + moved, this.drag.view.to + moved);
    }

    drop(least) {
      const drag = this.drag;
      this.drag = null;
      if (!drag || drag.pan) return;
      const [from, to] = [Math.min(drag.from, drag.to), Math.max(drag.from, drag.to)];
      if (to - from > least) this.view.set(this.time_at(from), this.time_at(to));
      else this.draw();
    }

    key(event) {
      const { view } = this;
      const size = view.to - view.from;
      const middle = (view.from + view.to) / 2;
      const keys = {
        ArrowLeft: () => view.set(view.from - size / 5, view.to - size / 5),
        ArrowRight: () => view.set(view.from + size / 5, view.to + size / 5),
        ArrowUp: () => this.change_row(-1),
        ArrowDown: () => this.change_row(1),
        "+": () => view.zoom(middle, 1 / 1.5),
        "=": () => view.zoom(middle, 1 / 1.5),
        "-": () => view.zoom(middle, 1.5),
        0: () => view.all(),
        n: () => this.step(1),
        p: () => this.step(-1),
        c: () => view.toggle(),
      };
      const action = event.ctrlKey || event.metaKey || event.altKey ? null : keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
      if (action) {
        event.preventDefault();
        action();
      }
    }

    change_row(by) {
      this.track = Math.min(this.rows.length - 1, Math.max(0, this.track + by));
      this.chosen = -1;
      this.step(1);
    }

    step(by) {
      const row = this.rows[this.track];
      const { start, finish, first, last } = this.steps_of(row);
      if (first === last) return;
      const per = this.data.end / ticks;
      this.chosen = this.chosen < 0 ? Math.min(last - 1, above(finish, first, last, this.view.from / per)) : Math.min(last - 1, Math.max(first, this.chosen + by));
      const at = start[this.chosen] * per;
      const moment = seconds(at, told_to((finish[this.chosen] - start[this.chosen]) * per, per));
      this.said.textContent = row.kind === "bars" ? this.describe(this.chosen, row) : this.describe_level(this.chosen, row, moment);
      if (document.querySelector(".cluster")) this.tell_moment(at + ((finish[this.chosen] - start[this.chosen]) * per) / 2);
      const size = this.view.to - this.view.from;
      if (at < this.view.from || at > this.view.to) this.view.set(at - size / 2, at + size / 2);
      else this.draw();
    }
  }

  /** One line that follows the pointer, or stays where a finger tapped until the next touch. */
  const Tip = (() => {
    let element = null;
    const hide = () => {
      if (element) element.hidden = true;
    };
    for (const name of ["pointerdown", "scroll"]) addEventListener(name, hide, { capture: true, passive: true });
    return {
      show(text, x, y) {
        if (!element) {
          element = document.createElement("div");
          element.className = "tip";
          document.body.append(element);
        }
        element.textContent = text;
        element.hidden = false;
        const box = element.getBoundingClientRect();
        element.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.width - 8))}px`;
        element.style.top = `${y + 18 + box.height > innerHeight ? y - box.height - 10 : y + 18}px`;
      },
      hide,
    };
  })();

  // What part of the runs is seen, by all pictures of a section.
  function make_view(end, pictures) {
    let asked = false;
    const redraw = () => {
      if (asked) return;
      asked = true;
      requestAnimationFrame(() => {
        asked = false;
        pictures.forEach((picture) => picture.draw());
      });
    };
    const view = {
      from: 0,
      to: end,
      critical: false,
      links: true, // are shown
      set(from, to) {
        const size = Math.min(end, Math.max(to - from, end * 1e-7));
        view.from = Math.min(Math.max(0, from), end - size);
        view.to = view.from + size;
        redraw();
      },
      zoom: (at, factor) => view.set(at - (at - view.from) * factor, at + (view.to - at) * factor),
      all: () => view.set(0, end),
      fold() {
        view.links = !view.links;
        view.fold_button?.setAttribute("aria-pressed", String(view.links));
        redraw();
      },
      toggle() {
        view.critical = !view.critical;
        view.button?.setAttribute("aria-pressed", String(view.critical));
        redraw();
      },
    };
    return view;
  }

  function buttons(view) {
    const bar = document.createElement("div");
    bar.className = "buttons";
    const middle = () => (view.from + view.to) / 2;
    const add = (text, help, action) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = text;
      button.title = help;
      button.addEventListener("click", action);
      bar.append(button);
      return button;
    };
    add("+", "closer (key +, or Ctrl and wheel)", () => view.zoom(middle(), 0.5)).setAttribute("aria-label", "zoom in");
    add("−", "farther (key -)", () => view.zoom(middle(), 2)).setAttribute("aria-label", "zoom out");
    add("◀", "earlier (left arrow)", () => view.set(view.from - (view.to - view.from) / 3, view.to - (view.to - view.from) / 3)).setAttribute("aria-label", "earlier");
    add("▶", "later (right arrow)", () => view.set(view.from + (view.to - view.from) / 3, view.to + (view.to - view.from) / 3)).setAttribute("aria-label", "later");
    add("whole run", "all of it (key 0, or double click)", () => view.all());
    view.button = add("critical path", "dim what the iteration does not wait for (key C)", () => view.toggle());
    view.button.setAttribute("aria-pressed", "false");
    const help = document.createElement("span");
    help.textContent = matchMedia("(hover: none)").matches
      ? "drag a finger across to zoom, two fingers to pinch or move, tap to read"
      : "drag to zoom, Shift and drag to move";
    bar.append(help);
    return bar;
  }

  // Rows of links are many: beyond some they are shown on demand.
  function add_fold_button(bar, view, links) {
    const most = 16;
    if (!links) return;
    view.links = links <= most;
    view.fold_button = document.createElement("button");
    view.fold_button.type = "button";
    view.fold_button.textContent = `show ${links} rows of links`;
    view.fold_button.setAttribute("aria-pressed", String(view.links));
    view.fold_button.addEventListener("click", () => view.fold());
    bar.insertBefore(view.fold_button, bar.lastChild);
  }

  // Of runs of which one takes many times another, the shortest would be a stroke on the axis of all.
  function first_view(view, list) {
    const [shortest, longest] = [Math.min(...list.map((one) => one.end)), Math.max(...list.map((one) => one.end))];
    if (!(shortest > 0 && longest > 4 * shortest)) return "";
    view.set(0, shortest);
    return ` · shown at first: the first ${seconds(shortest)} of ${seconds(longest)}, as long as the shortest run; whole run (0) shows all`;
  }

  /** Puts timelines into `parent`, one below the other on one axis; returns what draws them anew. */
  function add(parent, list) {
    const pictures = [];
    const view = make_view(Math.max(...list.map((one) => one.end)) || 1, pictures);
    const bar = buttons(view);
    bar.lastChild.append(first_view(view, list));
    parent.append(bar);
    for (const one of list) pictures.push(new Picture(parent, one, view));
    add_fold_button(bar, view, Math.max(...pictures.map((one) => one.links)));
    return () => pictures.forEach((picture) => picture.draw());
  }

  return { add };
})();
