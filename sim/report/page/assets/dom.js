// What all scripts of the page share: elements, and figures as people read them.
// SPDX-License-Identifier: Apache-2.0
"use strict";

/** Adds an element to `parent` and returns it. */
function element(parent, tag, text = "", attributes = {}) {
  const made = document.createElement(tag);
  made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  parent?.append(made);
  return made;
}

const Figures = (() => {
  const times = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
  const sizes = [[1024, "TiB"], [1, "GiB"], [1 / 1024, "MiB"], [1 / 1048576, "KiB"]]; // of a number of GiB

  /** A number with so many significant digits, without zeros at its end. */
  function short(value, digits = 4) {
    if (value === null || !Number.isFinite(value)) return "–";
    const size = Math.abs(value);
    return size !== 0 && (size < 1e-3 || size >= 1e6) ? Number(value.toPrecision(3)).toExponential() : String(Number(value.toPrecision(digits)));
  }

  /** The unit of a title, "s" of "iteration [s]"; "" where it has none. */
  const unit_of = (title) => /\[([^\]]+)\]$/.exec(title)?.[1] ?? "";
  /** The factor and unit in which seconds, GiB and percent of this size are told. */
  function scale_of(size, unit) {
    const scales = { s: times, GiB: sizes }[unit];
    return scales?.find(([least]) => Math.abs(size) >= least) ?? scales?.[size === 0 ? 0 : scales.length - 1] ?? [1, unit];
  }
  const is_scaled = (unit) => unit === "s" || unit === "GiB" || unit === "%";

  /** "45.24 ms": a value with its unit, in the one that fits its size. */
  function quantity(value, unit, digits = 4) {
    if (value === null || !Number.isFinite(value)) return "–";
    if (!is_scaled(unit)) return short(value, digits);
    const [size, name] = scale_of(value, unit);
    return `${short(value / size, digits)} ${name}`;
  }

  /** The same with all its digits, so that figures of a column are as exact as each other. */
  function exact(value, unit, digits = 4) {
    if (value === null || !Number.isFinite(value)) return "–";
    if (value === 0) return `0 ${unit}`;
    const [size, name] = scale_of(value, unit);
    const told = (value / size).toPrecision(digits);
    return `${told.includes("e") ? short(value / size, digits) : told} ${name}`;
  }

  /** A title without the unit that each of its values has. */
  const without_unit = (title) => (is_scaled(unit_of(title)) ? title.replace(/\s*\[[^\]]+\]$/, "") : title);

  return { short, quantity, exact, is_scaled, unit_of, scale_of, without_unit };
})();
