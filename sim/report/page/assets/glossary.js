// Words of the trade, explained where they first stand in a part of the page: by pointer, by key and by touch. What is
// explained is also listed at the end of the page, for print.
// SPDX-License-Identifier: Apache-2.0
"use strict";

const Glossary = (() => {
  const terms = {
    "micro-batch": "A part of the batch that goes through the model at once. A pipeline works on several of them at a time.",
    "bubble": "Time in which a device waits because the work before or after its own is not ready.",
    "pipeline": "The layers of the model are dealt out to devices in a row; each passes its results on to the next.",
    "stage": "The part of the model that one place of a pipeline computes.",
    "schedule": "The order in which each device runs forward and backward passes of its micro-batches.",
    "strategy": "The rule by which the model is split over devices.",
    "MFU": "Model FLOPs utilization: the part of the devices' peak speed that goes into the model itself, without what is computed twice.",
    "HFU": "Hardware FLOPs utilization: the part of the devices' peak speed that is used, recomputed work included.",
    "makespan": "The time of one step alone, from an empty pipeline to an empty pipeline.",
    "in flight": "Micro-batches whose forward pass is done and whose backward pass is not: their results are kept in memory.",
    "ZeRO": "Copies of the model each keep a share of optimiser states (1), gradients (2) and weights (3), and send them to each other when needed.",
    "data-parallel": "Each device or group has a whole copy of the model and a part of the batch; copies add up their gradients after each step.",
    "tensor-parallel": "Single layers are split over devices, which exchange partial results within each layer.",
    "recompute": "Results of the forward pass are thrown away and computed again when backward needs them: less memory, more work.",
    "roofline": "An estimate of a kernel's time from its arithmetic and its memory traffic, at the speeds of the device.",
    "lower bound": "A time that is proven to be out of reach for every plan of the kind that is named.",
    "proven limit": "The lower bound: a time that no plan of the kind named in the findings can beat.",
    "over bound": "How much longer a run takes than the proven lower bound.",
    "critical path": "The chain of work that decides how long a step takes: making anything else faster changes nothing.",
    "exposed": "Communication that no computation hides: the device waits for it.",
    "stale weights": "Gradients are computed with weights that are some steps old. That is faster, but it changes what is learnt.",
    "staleness": "By how many optimiser steps gradients come late.",
    "regret": "By how much a plan is slower than the best known plan for the same case.",
    "rank correlation": "1 where two orders are the same, 0 where they have nothing to do with each other, -1 where they are opposite.",
    "fill and drain": "The time at the start and the end of a step in which not all stages of a pipeline have work.",
    "gradient bucket": "Gradients that are added up between copies of the model in one message.",
    "1f1b": "A schedule: once the pipeline is full, each device does one forward, one backward, and so on.",
    "MoE": "Mixture of experts: each token goes through a few of many expert layers.",
  };
  const pattern = new RegExp(`(?<![\\w-])(${Object.keys(terms).sort((a, b) => b.length - a.length).map((term) => term.replace(/[-/]/g, "[-\\s]?")).join("|")})(e?s)?(?![\\w-])`, "i");
  const key_of = (text) => Object.keys(terms).find((term) => new RegExp(`^${term.replace(/[-/]/g, "[-\\s]?")}(e?s)?$`, "i").test(text));
  const used = new Set();
  let tip = null;

  function hide() {
    if (tip) tip.hidden = true;
  }

  function show(button, term) {
    tip ??= element(document.body, "div", "", { class: "meaning", role: "tooltip", id: "meaning" });
    tip.textContent = terms[term];
    tip.hidden = false;
    const at = button.getBoundingClientRect(), box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(at.left, innerWidth - box.width - 8))}px`;
    tip.style.top = `${at.bottom + 6 + box.height > innerHeight ? at.top - box.height - 6 : at.bottom + 6}px`;
  }

  function button_of(text, term) {
    const button = element(null, "button", text, { type: "button", class: "term", "aria-description": terms[term] });
    button.addEventListener("pointerenter", () => show(button, term));
    button.addEventListener("pointerleave", hide);
    button.addEventListener("focus", () => show(button, term));
    button.addEventListener("blur", hide);
    button.addEventListener("click", () => show(button, term));
    return button;
  }

  // Makes a button of the first mention of each term in an element's own texts.
  function mark(place, seen) {
    for (const node of [...place.childNodes]) {
      if (node.nodeType === Node.ELEMENT_NODE && !["BUTTON", "A", "SUMMARY"].includes(node.tagName)) mark(node, seen);
      if (node.nodeType !== Node.TEXT_NODE) continue;
      for (let rest = node, from = 0; ;) {
        const found = pattern.exec(rest.data.slice(from));
        if (!found) break;
        const term = key_of(found[0]);
        if (!term || seen.has(term)) {
          from += found.index + found[0].length;
          continue;
        }
        seen.add(term);
        used.add(term);
        const word = rest.splitText(from + found.index);
        rest = word.splitText(found[0].length);
        from = 0;
        word.replaceWith(button_of(found[0], term));
      }
    }
  }

  /** Explains terms in these elements, each term once. */
  function explain(places) {
    const seen = new Set();
    places.forEach((place) => mark(place, seen));
  }

  /** Lists what was explained. */
  function list(parent) {
    if (!used.size) return;
    const box = element(parent, "details", "", { class: "glossary" });
    element(box, "summary", `Words of the trade on this page (${used.size})`);
    const all = element(box, "dl");
    for (const term of [...used].sort((a, b) => a.localeCompare(b, "en", { sensitivity: "base" }))) {
      element(all, "dt", term);
      element(all, "dd", terms[term]);
    }
  }

  addEventListener("keydown", (event) => event.key === "Escape" && hide());
  addEventListener("scroll", hide, { capture: true, passive: true });

  return { explain, list };
})();
