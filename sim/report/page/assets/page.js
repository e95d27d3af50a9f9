// The report's page: puts charts, timelines and tables into their sections, when they come into view.
// SPDX-License-Identifier: Apache-2.0
"use strict";

(() => {
  // Everything drawn in colours, to be drawn again in others. Each is drawn first when it is near the window.
  const drawings = [];
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const drawing = drawings.find((one) => one.place === entry.target);
      if (entry.isIntersecting && drawing && !drawing.draw) drawing.begin();
    }
  }, { rootMargin: "400px" });

  function when_near(place, make) {
    const begin = () => {
      drawing.draw = make();
      drawing.draw();
      performance.mark("drawn", { detail: place.className });
    };
    const drawing = { place, draw: null, begin };
    drawings.push(drawing);
    near.observe(place);
  }

  let all = false; // charts show everything, also what they leave out at first
  const shown = (chart) => (all && chart.all) || chart;
  const tellers = []; // each writes anew what is said beside charts

  function tell(teller) {
    tellers.push(teller);
    teller();
  }

  function add_chart(parent, chart) {
    const figure = element(parent, "figure", "", { class: "chart" });
    element(figure, "figcaption", chart.title);
    const note = element(figure, "p", "", { class: "note" });
    tell(() => {
      note.textContent = shown(chart).note;
      note.hidden = !note.textContent;
    });
    if (!Charts.is_empty(chart)) figure.style.minHeight = `${Charts.height(chart, figure.clientWidth) + 60}px`; // so that nothing moves when it is drawn
    when_near(figure, () => Charts.add(figure, () => shown(chart)));
    return figure;
  }

  // Switches of all sections are one.
  function add_switch(parent, { label, off, on }) {
    const box = element(parent, "p", "", { class: "switch" });
    const button = element(box, "button", label, { type: "button" });
    const said = element(box, "span", "", { "aria-live": "polite" });
    tell(() => {
      button.setAttribute("aria-pressed", String(all));
      said.textContent = all ? on : off;
    });
    button.addEventListener("click", () => {
      all = !all;
      tellers.forEach((teller) => teller());
      drawings.forEach((one) => one.draw?.());
    });
  }

  // Charts of one choice stand side by side where that many fit; more share a place, under a list to choose from.
  const most_beside = 6;

  function add_charts(parent, charts) {
    const choices = new Map(); // in the order of their first charts; a chart without a choice is one of its own
    for (const chart of charts) {
      const name = chart.choice || chart;
      if (!choices.has(name)) choices.set(name, []);
      choices.get(name).push(chart);
    }
    let grid = null; // of the charts that stand side by side at the moment
    for (const [name, some] of choices) {
      if (some.length > most_beside) {
        grid ??= element(parent, "div", "", { class: "charts" });
        add_choice(element(grid, "div", "", { class: "choice" }), name, some);
        continue;
      }
      if (some.length > 1) { // small multiples, with their name above
        element(parent, "h3", name);
        const multiples = element(parent, "div", "", { class: some.length === 2 || some.length === 4 ? "charts" : "charts three" });
        some.forEach((chart) => add_chart(multiples, chart));
        grid = null;
        continue;
      }
      for (const chart of some) {
        if (chart.wide) {
          add_chart(element(parent, "div", "", { class: "wide" }), chart);
          grid = null; // what follows stands below
        } else {
          grid ??= element(parent, "div", "", { class: "charts" });
          add_chart(grid, chart);
        }
      }
    }
    parent.querySelectorAll(".charts").forEach((one) => one.children.length === 3 && one.classList.add("three"));
  }

  function add_choice(box, name, charts) {
    const label = element(box, "label", `${name} `);
    const list = element(label, "select");
    charts.forEach((chart, index) => element(list, "option", chart.title, { value: index }));
    const place = element(box, "div");
    const figures = new Map();
    const show = () => {
      const index = Number(list.value);
      if (!figures.has(index)) figures.set(index, add_chart(place, charts[index]));
      for (const [at, figure] of figures) figure.hidden = at !== index;
      drawings.filter((one) => figures.get(index) === one.place && one.draw).forEach((one) => one.draw());
    };
    list.addEventListener("change", show);
    show();
  }

  function add_theme_button() {
    const root = document.documentElement;
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const button = element(document.getElementById("tools"), "button", "", { type: "button", id: "theme" });
    const set = (name) => {
      root.dataset.theme = name;
      button.textContent = name === "dark" ? "light" : "dark";
      button.title = `in ${button.textContent} colours`;
      drawings.forEach((one) => one.draw?.());
    };
    set(dark.matches ? "dark" : "light");
    dark.addEventListener("change", () => set(dark.matches ? "dark" : "light"));
    button.addEventListener("click", () => set(root.dataset.theme === "dark" ? "light" : "dark"));
    let before = "light", folded = [];
    const widen = (width) => document.querySelectorAll(".chart .canvas, .timelines").forEach((place) => { place.style.width = width; });
    addEventListener("beforeprint", () => {
      before = root.dataset.theme;
      drawings.forEach((one) => one.draw || one.begin());
      folded = [...document.querySelectorAll("details.fold:not([open]), details.glossary:not([open])")];
      folded.forEach((one) => { one.open = true; });
      widen("660px"); // of a sheet of paper
      set("light");
    });
    addEventListener("afterprint", () => {
      folded.forEach((one) => { one.open = false; });
      widen("");
      set(before);
    });
  }

  add_theme_button();
  const sections = JSON.parse(document.getElementById("data").textContent);
  sections.forEach((section, number) => {
    const place = document.querySelector(`#s${number} > .drawn`);
    if (!place) return; // it has nothing to show
    if (section.timelines.length) {
      const box = element(place, "div", "", { class: "timelines" });
      when_near(box, () => Timelines.add(box, section.timelines));
    }
    for (const plan of section.plans ?? []) {
      const box = element(place, "div");
      when_near(box, () => Cluster.add(box, plan));
    }
    if (section.all) add_switch(place, section.all);
    if (section.charts.length) add_charts(place, section.charts);
    section.tables.forEach((table) => Tables.add(place, table));
  });
  Glossary.explain(document.querySelectorAll(".answer .headline, .answer dt, .answer .detail, .answer .sure"));
  document.querySelectorAll("main > section").forEach((section) => Glossary.explain(section.querySelectorAll(".summary li, figcaption")));
  Glossary.list(document.getElementById("words"));
})();
