#!/usr/bin/python3
# How the report looks: looks_test.py PROGRAM [FOLDER]. Pages with long names, one row and ten thousand rows, at the width of a
# desk and of a phone, light, dark and printed: nothing is wider than the window, no two labels of a chart lie over each other, and
# axe-core finds nothing that keeps people out (text that is too faint, controls without names, wrong roles). With FOLDER the
# pictures are kept there, to be looked at.
# SPDX-License-Identifier: Apache-2.0
import base64
import copy
import json
import os
import subprocess
import sys
import tempfile

from browser import Browser

PROGRAM = sys.argv[1]
PICTURES = sys.argv[2] if len(sys.argv) > 2 else None
AXE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "axe", "axe.min.js")
STUDY = """model: vgg16
platform: two-generations
training: {global_batch: 32, micro_batches: [2, 4]}
compare: {strategies: [uniform, optimal, single], schedules: [gpipe, 1f1b]}
"""
SWEEP = """name: sweep
sweep:
  platform.network.bandwidth: {values: [1 Gb/s, 10 Gb/s, 100 Gb/s], label: speed of the network between the two servers}
  training.precision: [fp16, fp32]
"""


def stagecraft(*arguments):
    subprocess.run([PROGRAM, *arguments], check=True, stdout=subprocess.DEVNULL)


def variants(result):
    """The result of a comparison with long names, with one row, and with ten thousand rows."""
    long = copy.deepcopy(result)
    long["model"] = "a-model-whose-name-nobody-would-type-twice-" * 3
    long["platform"] = "a cluster of many words " * 6
    for number, run in enumerate(long["runs"]):
        run["strategy"] = "a-strategy-with-a-name-as-long-as-a-sentence-number-%d" % (number % 6)
        run["schedule"] = "an-interleaved-schedule-with-many-words-%d" % (number % 4)
        run["note"] = "a note that explains the plan in many words, so that it takes several lines. " * 3
    one = copy.deepcopy(result)
    one["runs"] = one["runs"][:1]
    many = copy.deepcopy(result)
    run = {key: value for key, value in many["runs"][1].items() if key not in ("timeline", "explanation", "stages")}
    many["runs"] = many["runs"][:1] + [
        dict(run, strategy="s%d" % (number % 40), micro_batches=1 + number % 64, iteration_seconds=0.09 + number * 1e-5)
        for number in range(10000)]
    return {"long": long, "one": one, "many": many}


def make_pages(folder):
    def path(name):
        return os.path.join(folder, name)

    for name, text in (("study.yaml", STUDY), ("sweep.yaml", STUDY + SWEEP)):
        with open(path(name), "w", encoding="utf-8") as file:
            file.write(text)
    stagecraft("compare", path("study.yaml"), "--timeline", "2", "--quiet", "-o", path("compare.json"))
    stagecraft("compare", path("study.yaml"), "--set", "training.precision=fp16", "--quiet", "-o", path("other.json"))
    stagecraft("sweep", path("sweep.yaml"), "--quiet", "-o", path("sweep.sqlite"))
    with open(path("compare.json"), encoding="utf-8") as file:
        result = json.load(file)
    for name, document in variants(result).items():
        with open(path(name + ".json"), "w", encoding="utf-8") as file:
            json.dump(document, file)
    pages = {}
    for name, results in {"compare": ["compare.json"], "long": ["long.json"], "one": ["one.json"], "many": ["many.json"],
                          "sweep": ["sweep.sqlite"], "difference": ["compare.json", "other.json"]}.items():
        pages[name] = path(name + ".html")
        stagecraft("report", *[path(one) for one in results], "-o", pages[name])
    return pages


def draw_all(browser):
    browser.wait("all drawings", """
      const left = [...document.querySelectorAll('figure.chart:not([hidden]), .timelines')].find(
        place => place.getBoundingClientRect().height && !place.querySelector('svg') && !place.querySelector('canvas') && !place.classList.contains('empty'));
      if (left) left.scrollIntoView();
      return !left;""")
    browser.run("scrollTo(0, 0)")


# Elements that reach beyond the window, except in what scrolls by itself.
WIDE = """
  const scrolls = (one) => one.closest('.scroll, .key, pre, .chart details') || one.closest('svg');
  return [...document.querySelectorAll('body *')].filter((one) => {
    const box = one.getBoundingClientRect();
    return box.width && (box.right > innerWidth + 1 || box.left < -1) && !scrolls(one);
  }).map((one) => `${one.tagName} ${one.className} ${one.textContent.slice(0, 40)}`);"""

# Pairs of texts of one chart that lie over each other; slanted ones are left out, whose boxes say nothing.
OVERLAPS = """
  const found = [];
  for (const svg of document.querySelectorAll('figure:not([hidden]) svg')) {
    const frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll('text')].filter((one) => {
      const matrix = one.getCTM();
      return one.textContent.trim() && matrix && Math.abs(matrix.b) < 1e-6 && !/rotate/.test(one.getAttribute('transform') ?? '');
    }).map((one) => [one.textContent, one.getBoundingClientRect()]);
    texts.forEach(([name, a], at) => {
      if (a.left < frame.left - 2 || a.right > frame.right + 2) found.push(`cut off: ${name}`);
      for (const [other, b] of texts.slice(at + 1)) {
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left), down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (across > 2 && down > 0.35 * Math.min(a.height, b.height)) found.push(`${name} over ${other}`);
      }
    });
  }
  return found;"""


# Texts of charts whose colour has less than 4.5 times the light of the page (WCAG 2 AA); axe-core looks at HTML alone. Digits in
# cells are black or white, whichever has more contrast with its cell.
FAINT = """
  const channels = (text) => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const light = (text) => channels(text).map((value) => value / 255).map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
    .reduce((sum, value, at) => sum + value * [0.2126, 0.7152, 0.0722][at], 0);
  const paper = light(getComputedStyle(document.body).backgroundColor);
  const contrast = (one) => { const [a, b] = [light(getComputedStyle(one).fill), paper].sort(); return (b + 0.05) / (a + 0.05); };
  return [...document.querySelectorAll('figure.chart:not([hidden]) svg text')].filter((one) => one.textContent.trim() && !['#000', '#fff'].includes(one.getAttribute('fill')) && contrast(one) < 4.5)
    .map((one) => `${one.textContent} ${getComputedStyle(one).fill}`);"""


def violations(browser):
    """What axe-core finds, the rules of WCAG 2 A and AA and its best practices."""
    with open(AXE, encoding="utf-8") as file:
        browser.run(file.read())
    found = browser.driver.execute_async_script("""
      const done = arguments[0];
      axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => done(
        violations.flatMap(({ id, nodes }) => nodes.slice(0, 3).map((node) => `${id}: ${node.html.slice(0, 160)} (${(node.any[0] ?? node.all[0] ?? node.none[0])?.message ?? ''})`))));""")
    return found


def keep_picture(browser, name):
    if not PICTURES:
        return
    os.makedirs(PICTURES, exist_ok=True)
    width, height = browser.run("return [innerWidth, Math.min(6000, document.documentElement.scrollHeight)]")
    data = browser.driver.execute_cdp_cmd("Page.captureScreenshot", {
        "format": "png", "captureBeyondViewport": True,
        "clip": {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}})["data"]
    with open(os.path.join(PICTURES, name + ".png"), "wb") as file:
        file.write(base64.b64decode(data))


def check(browser, name):
    keep_picture(browser, name)
    for what, found in (("wider than the window", browser.run(WIDE)), ("labels over each other", browser.run(OVERLAPS)),
                        ("faint labels", browser.run(FAINT)),
                        ("axe", violations(browser))):
        assert not found, (name, what, len(found), found[:6])


def test_page(browser, name, page):
    sizes = [(1280, "light"), (400, "dark")]
    for width, theme in sizes + ([(400, "light"), (1280, "dark")] if name == "compare" else []):
        browser.resize(width, 900)
        browser.open(page)
        if theme == "dark":
            browser.run("document.getElementById('theme').click()")
        draw_all(browser)
        check(browser, "%s-%d-%s" % (name, width, theme))
    browser.resize(794, 1123)  # A4 at 96 per inch
    browser.open(page)
    draw_all(browser)
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    browser.run("dispatchEvent(new Event('beforeprint'))")
    found = browser.run("return [...document.querySelectorAll('.answer, .chart, .nodes')].filter(one => one.getBoundingClientRect().right > innerWidth + 1).length")
    assert found == 0, (name, "wider than the paper")
    keep_picture(browser, name + "-print")
    browser.run("dispatchEvent(new Event('afterprint'))")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_keys(browser, page):
    """Terms explain themselves when a key reaches them, and a phone shows rows as cards."""
    browser.resize(1280, 900)
    browser.open(page)
    term = browser.driver.find_element("css selector", ".answer .term")
    browser.run("arguments[0].focus()", term)
    meaning = browser.run("const tip = document.getElementById('meaning'); return tip && !tip.hidden && tip.textContent")
    assert meaning and len(meaning) > 30, meaning
    assert term.get_attribute("aria-description") == meaning
    from selenium.webdriver import Keys
    term.send_keys(Keys.ESCAPE)
    assert browser.run("return document.getElementById('meaning').hidden")
    heads = "return [...document.querySelectorAll('.table')].pop().querySelectorAll('thead th').length"
    few = browser.run(heads)
    browser.run("[...document.querySelectorAll('.table .whole')].pop().click()")
    assert browser.run(heads) > few  # the other columns, on demand
    browser.resize(400, 900)
    browser.open(page)
    row = browser.run("const row = [...document.querySelectorAll('.table tbody tr')].pop(); return [getComputedStyle(row).display, row.cells[1].dataset.title]")
    assert row[0] == "block" and row[1], row


def test_moment(browser, page):
    """A key on the timeline shows on the picture of the plan what each device does at that moment."""
    browser.resize(1280, 900)
    browser.open(page)
    framed = "return [...document.querySelectorAll('.cluster .now')].filter(one => one.style.stroke && one.style.stroke !== 'none').length"
    browser.run("document.querySelector('.cluster, .nodes, [id^=s] .drawn').scrollIntoView()")
    draw_all(browser)
    browser.wait("the plan", "const left = document.querySelector('.cluster .now'); document.querySelector('.timelines').scrollIntoView(); return left && document.querySelector('canvas')")
    assert browser.run(framed) == 0
    browser.driver.find_element("css selector", "canvas").send_keys("n")
    assert browser.run(framed) > 0
    assert "framed in the colour" in browser.run("return document.querySelector('.cluster .note').textContent")


def main():
    with tempfile.TemporaryDirectory(prefix="stagecraft-looks-") as folder, Browser() as browser:
        pages = make_pages(folder)
        failures = []
        for name, page in pages.items():
            try:
                test_page(browser, name, page)
            except AssertionError as failure:
                failures.append(str(failure))
        test_keys(browser, pages["compare"])
        test_moment(browser, pages["compare"])
        assert not failures, "\n".join(failures)
        print("every page is whole at every size, and axe-core finds nothing")


main()
