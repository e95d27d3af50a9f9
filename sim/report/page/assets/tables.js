// Tables of the report: sorted by a title, filtered by a field, the columns that matter first and the others on demand;
// on a phone each row is a card.
// SPDX-License-Identifier: Apache-2.0
"use strict";

const Tables = (() => {
  const narrow = matchMedia("(max-width: 600px)");
  const most_rows = () => (narrow.matches ? 8 : 200); // of a table at once

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

  const units = { s: { ns: 1e-9, us: 1e-6, µs: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600 }, GiB: { KiB: 2 ** -20, MiB: 2 ** -10, GiB: 1, TiB: 1024 }, "%": { "%": 1 } };
  const number = "([+-]?(?:\\d+\\.?\\d*|\\.\\d+)(?:[eE][+-]?\\d+)?)(?:\\s*([a-zA-Zµ%]+))?";
  const bound = new RegExp(`^(<=|>=|<|>|=)\\s*${number}$`);
  const range = new RegExp(`^${number}\\s*\\.\\.\\s*${number}$`);
  const allowed = "< 0.5, >= 2, 0.7..0.8, = 3, and with a unit where the column has one: < 50 ms";
  const has = (cell, text) => text_of(cell).toLowerCase().includes(text.toLowerCase());

  // A number as it is written, in the unit of the column; NaN where the unit is none of that kind.
  function amount(digits, name, unit) {
    return name === undefined ? Number(digits) : Number(digits) * (units[unit]?.[name] ?? NaN);
  }

  // What a filter asks of a column's cells; null where it cannot be read as one of numbers.
  function test_of(text, cells, unit) {
    const wanted = text.trim();
    if (!cells.some(is_number)) return (cell) => has(cell, wanted);
    const of_numbers = (holds) => (cell) => is_number(cell) && cell[1] !== null && holds(cell[1], cell);
    const between = range.exec(wanted);
    if (between) {
      const [low, high] = [amount(between[1], between[2], unit), amount(between[3], between[4], unit)].sort((a, b) => a - b);
      return Number.isNaN(low + high) ? null : of_numbers((value) => value >= low && value <= high);
    }
    const [, how, limit, name] = bound.exec(wanted) ?? [];
    const edge = amount(limit, name, unit);
    if (how && Number.isNaN(edge)) return null;
    switch (how) {
      case "<": return of_numbers((value) => value < edge);
      case ">": return of_numbers((value) => value > edge);
      case "<=": return of_numbers((value) => value <= edge);
      case ">=": return of_numbers((value) => value >= edge);
      case "=": return of_numbers((value, cell) => value === edge || Number(text_of(cell)) === edge || Figures.quantity(value, unit) === Figures.quantity(edge, unit)); // as it is or as it is written
    }
    const part = Number.isFinite(Number(wanted)) || cells.some((cell) => !is_number(cell) && has(cell, wanted));
    return part ? (cell) => has(cell, wanted) : null;
  }

  // A table with its figures as people read them: those of a title with a unit have one that fits.
  function read(table) {
    const unit = table.columns.map(Figures.unit_of);
    const rows = table.rows.map((row) => row.map((cell, column) => {
      const plain = is_number(cell) && cell[1] !== null && Figures.is_scaled(unit[column]) && Number.isFinite(Number(cell[0]));
      return plain ? [Figures.exact(cell[1], unit[column], unit[column] === "%" ? 3 : 4), cell[1]] : cell;
    }));
    return { ...table, unit, rows, titles: table.columns.map(Figures.without_unit) };
  }

  let tables = 0; // on the page

  class Grid {
    constructor(parent, data) {
      this.data = read(data);
      this.main = data.main.length ? data.main : data.columns.map((_, column) => column);
      this.rest = data.columns.map((_, column) => column).filter((column) => !this.main.includes(column));
      this.state = { column: -1, down: false, shown: most_rows(), whole: false };
      this.filters = data.columns.map(() => "");
      const few = 8; // rows that a reader sees at once
      this.box = element(parent, "div", "", { class: data.rows.length > few ? "table" : "table few" });
      if (data.title) element(this.box, "h3", data.title);
      this.add_tools();
      this.scroll = element(this.box, "div", "", { class: "scroll", tabindex: 0, role: "region", "aria-label": `table ${++tables}${data.title ? `: ${data.title}` : ""}` });
      const grid = element(this.scroll, "table");
      this.head = element(grid, "thead");
      this.body = element(grid, "tbody");
      this.is_long = data.columns.map((_, column) => this.data.rows.some((row) => text_of(row[column]).length > 40));
      this.more = element(this.box, "button", "show more rows", { type: "button", class: "more" });
      this.more.addEventListener("click", () => { this.state.shown += 5 * most_rows(); this.show(); });
      this.show_head();
      this.show();
    }

    add_tools() {
      const tools = element(this.box, "div", "", { class: "table-tools" });
      this.search = element(element(tools, "label", "find "), "input", "", { type: "search" });
      this.search.addEventListener("input", () => this.show());
      const sorting = element(element(tools, "label", "sort by ", { class: "sorting" }), "select");
      element(sorting, "option", "rank", { value: -1 });
      this.data.titles.forEach((title, column) => element(sorting, "option", title, { value: column }));
      sorting.addEventListener("change", () => { Object.assign(this.state, { column: Number(sorting.value), down: false }); this.show(); });
      if (this.rest.length) {
        const whole = element(tools, "button", `all ${this.main.length + this.rest.length} columns`, { type: "button", class: "whole", "aria-pressed": "false" });
        whole.addEventListener("click", () => {
          this.state.whole = !this.state.whole;
          whole.setAttribute("aria-pressed", String(this.state.whole));
          this.show_head();
          this.show();
        });
      }
      this.count = element(tools, "span", "", { class: "count", "aria-live": "polite" });
    }

    columns() {
      return this.state.whole ? [...this.main, ...this.rest] : this.main;
    }

    show_head() {
      this.head.replaceChildren();
      const titles = element(this.head, "tr"), filters = element(this.head, "tr", "", { class: "filters" });
      this.inputs = this.columns().map((column) => {
        const title = this.data.titles[column], of_numbers = this.data.rows.some((row) => is_number(row[column]));
        const cell = element(titles, "th", "", { scope: "col", class: of_numbers ? "number" : "" });
        element(cell, "button", title, { type: "button" }).addEventListener("click", () => {
          this.state.down = this.state.column === column && !this.state.down;
          this.state.column = column;
          this.show();
        });
        const input = element(element(filters, "td"), "input", "", { type: "search", "aria-label": `filter ${title}`, placeholder: of_numbers ? "< …" : "…" });
        input.value = this.filters[column];
        input.addEventListener("input", () => { this.filters[column] = input.value; this.show(); });
        return [column, input];
      });
    }

    // The filters that are asked for, by column.
    tests() {
      const tests = this.data.columns.map((_, column) => (this.filters[column].trim() ? test_of(this.filters[column], this.data.rows.map((row) => row[column]), this.data.unit[column]) : undefined));
      for (const [column, input] of this.inputs) {
        input.setAttribute("aria-invalid", String(tests[column] === null));
        input.title = tests[column] === null ? `not understood; allowed: ${allowed}` : "";
      }
      return tests;
    }

    rows() {
      const tests = this.tests(), wanted = this.search.value;
      const kept = this.data.rows.filter((row) => (!wanted || row.some((cell) => has(cell, wanted))) && tests.every((test, column) => !test || test(row[column])));
      if (this.state.column >= 0) sort(kept, this.state.column, this.state.down);
      return kept;
    }

    show() {
      const kept = this.rows(), columns = this.columns(), { state, data } = this;
      this.body.replaceChildren();
      for (const row of kept.slice(0, state.shown)) {
        const line = element(this.body, "tr");
        columns.forEach((column, place) => {
          const cell = row[column], name = is_number(cell) ? "number" : this.is_long[column] ? "long" : "";
          const made = element(line, place ? "td" : "th", text_of(cell), { class: name, "data-title": data.titles[column], ...(place ? {} : { scope: "row" }) });
          if (!text_of(cell)) made.classList.add("empty");
        });
      }
      [...this.head.rows[0].cells].forEach((cell, place) => cell.setAttribute("aria-sort", state.column !== columns[place] ? "none" : state.down ? "descending" : "ascending"));
      this.more.hidden = kept.length <= state.shown;
      const wrong = this.inputs.map(([, input]) => input).find((input) => input.title);
      const some = kept.length > state.shown ? `${state.shown} of ${kept.length} rows` : kept.length === data.rows.length ? `${kept.length} ${kept.length === 1 ? "row" : "rows"}` : `${kept.length} of ${data.rows.length} rows`;
      this.count.textContent = [some, data.note, wrong && `filter “${wrong.value}” ${wrong.title}`].filter(Boolean).join("; ");
    }
  }

  /** Puts a table into `parent`. */
  const add = (parent, table) => new Grid(parent, table);

  return { add };
})();
