// The report's page: puts charts, timelines and tables into their sections, when they come into view.
// SPDX-License-Identifier: Apache-2.0
"use strict";

(() => {
  const most_rows = 200; // of a table at once

  function element(parent, tag, text = "", attributes = {}) {
    const made = document.createElement(tag);
    made.textContent = text;
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    parent.append(made);
    return made;
  }

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

  // Charts of one choice share a place, under a list to choose from.
  function add_charts(parent, charts) {
    const grid = element(parent, "div", "", { class: "charts" });
    const choices = new Map();
    for (const chart of charts) {
      if (!chart.choice) {
        add_chart(grid, chart);
        continue;
      }
      if (!choices.has(chart.choice)) choices.set(chart.choice, { box: element(grid, "div", "", { class: "choice" }), charts: [] });
      choices.get(chart.choice).charts.push(chart);
    }
    for (const [name, { box, charts: some }] of choices) add_choice(box, name, some);
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

  const text_of = (cell) => (Array.isArray(cell) ? cell[0] : cell);
  const is_number = (cell) => Array.isArray(cell);

  // Rows by a column, numbers by size and texts by their letters. Without a number among numbers, or without a text, they
  // come last either way.
  function sort(rows, column, down) {
    const of_numbers = rows.some((row) => is_number(row[column]));
    const is_without = (cell) => (of_numbers ? !is_number(cell) || cell[1] === null : cell === "");
    const compare = (a, b) => (is_number(a) && is_number(b) ? a[1] - b[1] : text_of(a).localeCompare(text_of(b), "en", { numeric: true }));
    rows.sort(({ [column]: a }, { [column]: b }) => is_without(a) - is_without(b) || (down ? compare(b, a) : compare(a, b)));
  }

  const number = "([+-]?(?:\\d+\\.?\\d*|\\.\\d+)(?:[eE][+-]?\\d+)?)";
  const bound = new RegExp(`^(<=|>=|<|>|=)\\s*${number}$`);
  const range = new RegExp(`^${number}\\s*\\.\\.\\s*${number}$`);
  const allowed = "< 0.5, >= 2, 0.7..0.8, = 3";
  const has = (cell, text) => text_of(cell).toLowerCase().includes(text.toLowerCase());

  // What a filter asks of a column's cells; null where it cannot be read as one of numbers.
  function test_of(text, cells) {
    const wanted = text.trim();
    if (!cells.some(is_number)) return (cell) => has(cell, wanted);
    const of_numbers = (holds) => (cell) => is_number(cell) && cell[1] !== null && holds(cell[1], cell);
    const between = range.exec(wanted);
    if (between) {
      const [low, high] = between.slice(1).map(Number).sort((a, b) => a - b);
      return of_numbers((value) => value >= low && value <= high);
    }
    const [, how, limit] = bound.exec(wanted) ?? [];
    const edge = Number(limit);
    switch (how) {
      case "<": return of_numbers((value) => value < edge);
      case ">": return of_numbers((value) => value > edge);
      case "<=": return of_numbers((value) => value <= edge);
      case ">=": return of_numbers((value) => value >= edge);
      case "=": return of_numbers((value, cell) => value === edge || Number(text_of(cell)) === edge); // as it is or as it is written
    }
    const part = Number.isFinite(Number(wanted)) || cells.some((cell) => !is_number(cell) && has(cell, wanted));
    return part ? (cell) => has(cell, wanted) : null;
  }

  function add_table(parent, table) {
    const box = element(parent, "div", "", { class: "table" });
    if (table.title) element(box, "h3", table.title);
    const search = element(element(box, "label", "find in all columns "), "input", "", { type: "search" });
    const count = element(box, "p", "", { class: "count", "aria-live": "polite" });
    const scroll = element(box, "div", "", { class: "scroll", tabindex: 0, role: "region", "aria-label": table.title || "table" });
    const grid = element(scroll, "table");
    const head = element(grid, "thead");
    const titles = element(head, "tr");
    const filters = element(head, "tr", "", { class: "filters" });
    const body = element(grid, "tbody");
    const is_long = table.columns.map((_, column) => table.rows.some((row) => text_of(row[column]).length > 40));
    const more = element(box, "button", "show more", { type: "button" });
    const state = { column: -1, down: false, shown: most_rows };
    const inputs = table.columns.map((title, column) => {
      const cell = element(titles, "th", "", { scope: "col" });
      const button = element(cell, "button", title, { type: "button" });
      button.addEventListener("click", () => {
        state.down = state.column === column && !state.down;
        state.column = column;
        show();
      });
      return element(element(filters, "td"), "input", "", { type: "search", "aria-label": `filter ${title}`, placeholder: table.rows.some((row) => is_number(row[column])) ? "< 1e3" : "" });
    });
    function test_at(input, column) {
      const test = input.value.trim() ? test_of(input.value, table.rows.map((row) => row[column])) : undefined;
      input.setAttribute("aria-invalid", String(test === null));
      input.title = test === null ? `not understood; allowed: ${allowed}` : "";
      return test;
    }
    function rows() {
      const tests = inputs.map(test_at);
      const kept = table.rows.filter((row) => (!search.value || row.some((cell) => has(cell, search.value))) && tests.every((test, column) => !test || test(row[column])));
      if (state.column >= 0) sort(kept, state.column, state.down);
      return kept;
    }
    function show() {
      const kept = rows();
      body.replaceChildren();
      for (const row of kept.slice(0, state.shown)) {
        const line = element(body, "tr");
        row.forEach((cell, column) => element(line, "td", text_of(cell), is_number(cell) ? { class: "number" } : is_long[column] ? { class: "long" } : {}));
      }
      [...titles.children].forEach((cell, column) => cell.setAttribute("aria-sort", state.column !== column ? "none" : state.down ? "descending" : "ascending"));
      more.hidden = kept.length <= state.shown;
      const wrong = inputs.find((input) => input.title);
      const said = [`${kept.length} of ${table.rows.length} rows`, table.note, wrong && `filter “${wrong.value}” ${wrong.title}`];
      count.textContent = said.filter(Boolean).join("; ");
    }
    more.addEventListener("click", () => { state.shown += 5 * most_rows; show(); });
    [search, ...inputs].forEach((input) => input.addEventListener("input", show));
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
    let before = "light";
    const widen = (width) => document.querySelectorAll(".chart .canvas, .timelines").forEach((place) => { place.style.width = width; });
    addEventListener("beforeprint", () => {
      before = root.dataset.theme;
      drawings.forEach((one) => one.draw || one.begin());
      widen("660px"); // of a sheet of paper
      set("light");
    });
    addEventListener("afterprint", () => {
      widen("");
      set(before);
    });
  }

  add_theme_button();
  const sections = JSON.parse(document.getElementById("data").textContent);
  sections.forEach((section, number) => {
    const place = document.querySelector(`#s${number} > .drawn`);
    if (section.timelines.length) {
      const box = element(place, "div", "", { class: "timelines" });
      when_near(box, () => Timelines.add(box, section.timelines));
    }
    if (section.all) add_switch(place, section.all);
    if (section.charts.length) add_charts(place, section.charts);
    section.tables.forEach((table) => add_table(place, table));
  });
})();
