// The picture of a plan on its cluster: nodes with their devices and stages, and how full the links are. Where the page
// has the run's timeline, it shows the moment under the pointer.
// SPDX-License-Identifier: Apache-2.0
"use strict";

const Cluster = (() => {
  const svg = "http://www.w3.org/2000/svg";
  const tile = { width: 92, height: 80, gap: 10 };

  function shape(parent, name, attributes, text = "") {
    const made = parent.appendChild(document.createElementNS(svg, name));
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.textContent = text;
    return made;
  }

  // Stages go from light to dark, so that neighbours of a pipeline have neighbouring colours.
  function stage_color(stage, stages) {
    const part = stages > 1 ? stage / (stages - 1) : 0;
    return `hsl(${205 + 120 * part} 55% ${document.documentElement.dataset.theme === "dark" ? 62 : 42}%)`;
  }

  const percent = (share) => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;

  function stages_text(stages) {
    if (!stages.length) return "not used";
    return stages.length === 1 ? `stage ${stages[0]}` : stages.length < 4 ? `stages ${stages.join(", ")}` : `${stages.length} stages`;
  }

  function draw_tile(parent, one, x, y, stages) {
    const box = shape(parent, "g", { transform: `translate(${x} ${y})`, class: "tile" });
    const said = [one.device, stages_text(one.stages), one.rank, one.memory !== null && `memory ${percent(one.memory)} full at its peak`, one.busy !== null && `computes ${percent(one.busy)} of the step`];
    shape(box, "title", {}, said.filter(Boolean).join(", "));
    shape(box, "rect", { width: tile.width, height: tile.height, rx: 4, class: "body" });
    one.stages.forEach((stage, at) => shape(box, "rect", { x: (at * tile.width) / one.stages.length, width: tile.width / one.stages.length, height: 6, fill: stage_color(stage, stages), class: "stage" }));
    shape(box, "text", { x: 7, y: 22, class: "strong" }, stages_text(one.stages));
    const ranks = one.rank.split(", ");
    shape(box, "text", { x: 7, y: 36, class: "soft" }, ranks[0]);
    shape(box, "text", { x: 7, y: 49, class: "soft" }, ranks.slice(1).join(", "));
    if (one.memory !== null) {
      shape(box, "rect", { x: 7, y: 55, width: tile.width - 14, height: 5, rx: 2, class: "gauge" });
      shape(box, "rect", { x: 7, y: 55, width: Math.min(1, one.memory) * (tile.width - 14), height: 5, rx: 2, class: "level" });
      shape(box, "text", { x: 7, y: 72, class: "soft" }, `memory ${percent(one.memory)}`);
    }
    return shape(box, "rect", { width: tile.width, height: tile.height, rx: 4, class: "now" });
  }

  // An arrow between neighbours of a row that hold neighbouring stages.
  function draw_arrow(parent, one, next, x, y) {
    const steps = one.stages.flatMap((stage) => next.stages.map((other) => other - stage));
    const there = steps.includes(1), back = steps.includes(-1);
    if (!there && !back) return;
    const from = x + tile.width + 1, to = from + tile.gap - 2, level = y + tile.height / 2;
    shape(parent, "path", { class: "arrow", d: `M${from} ${level}H${to}${there ? `m-3 -3l3 3l-3 3` : ""}${back ? `M${from + 3} ${level - 3}l-3 3l3 3` : ""}` });
  }

  function draw_node(parent, node, stages, places) {
    const across = Math.min(4, node.tiles.length), down = Math.ceil(node.tiles.length / across);
    const width = across * (tile.width + tile.gap) - tile.gap, height = down * (tile.height + tile.gap) - tile.gap;
    const box = element(parent, "div", "", { class: "node" });
    const title = element(box, "p", "", { class: "node-title" });
    element(title, "b", node.name);
    element(title, "span", ` ${node.devices}${node.alike > 1 ? `; ${node.alike} nodes like this` : ""}`);
    const picture = document.createElementNS(svg, "svg");
    picture.setAttribute("viewBox", `-1 -1 ${width + 2} ${height + 2}`);
    picture.setAttribute("role", "img");
    picture.setAttribute("aria-label", `${node.name}: ${node.tiles.map((one) => stages_text(one.stages)).join(", ")}`);
    picture.style.maxWidth = `${Math.round(1.3 * width)}px`;
    node.tiles.forEach((one, at) => {
      const x = (at % across) * (tile.width + tile.gap), y = Math.floor(at / across) * (tile.height + tile.gap);
      places.devices.set(one.device, draw_tile(picture, one, x, y, stages));
      if (at % across < across - 1 && at + 1 < node.tiles.length) draw_arrow(picture, one, node.tiles[at + 1], x, y);
    });
    box.append(picture);
    draw_links(box, node.links, places);
  }

  function draw_links(parent, kinds, places) {
    const used = kinds.filter((kind) => kind.in_use !== 0), idle = kinds.filter((kind) => kind.in_use === 0);
    const list = element(parent, "ul", "", { class: "links" });
    for (const kind of used) {
      const line = element(list, "li");
      const name = element(line, "span", `${kind.name}, ${kind.bandwidth}`, { class: "link-name" });
      if (kind.carries) element(name, "span", `; ${kind.carries}`, { class: "carries" });
      if (kind.in_use !== null) {
        const gauge = element(line, "span", "", { class: "gauge" });
        element(gauge, "i").style.width = `${100 * Math.min(1, kind.in_use)}%`;
        element(line, "span", `${percent(kind.in_use)} of the time`, { class: "share" });
      }
      kind.links.forEach((link) => places.links.set(link, line));
    }
    if (idle.length) element(list, "li", `carry nothing: ${idle.map((kind) => kind.name).join(", ")}`, { class: "idle" });
  }

  /** Puts the picture of a plan into `parent`; returns what draws it anew in the colours of the moment. */
  function add(parent, plan) {
    const figure = element(parent, "figure", "", { class: "cluster" });
    const draw = () => {
      const places = { devices: new Map(), links: new Map() };
      figure.replaceChildren();
      if (plan.title) element(figure, "figcaption", plan.title);
      const moment = element(figure, "p", plan.notes.join(" "), { class: "note" });
      const stages = 1 + Math.max(0, ...plan.nodes.flatMap((node) => node.tiles.flatMap((one) => one.stages)));
      const nodes = element(figure, "div", "", { class: "nodes" });
      plan.nodes.forEach((node) => draw_node(nodes, node, stages, places));
      if (plan.network.length && plan.nodes.reduce((count, node) => count + node.alike, 0) > 1) {
        const network = element(figure, "div", "", { class: "network" });
        element(network, "p", "Between the nodes", { class: "node-title" });
        draw_links(network, plan.network, places);
      }
      figure.show_moment = (said, at) => {
        moment.textContent = said || plan.notes.join(" ");
        for (const [name, mark] of places.devices) mark.style.stroke = at?.get(name) ?? "none";
        for (const line of new Set(places.links.values())) line.classList.remove("carrying");
        for (const [name, line] of places.links) if (at?.has(name)) line.classList.add("carrying");
      };
    };
    draw();
    return draw;
  }

  // What a timeline says of a moment is shown by the pictures of the same run.
  addEventListener("moment", ({ detail }) => {
    document.querySelectorAll(".cluster").forEach((figure) => figure.show_moment?.(detail.said, detail.at));
  });

  return { add };
})();
