#!/usr/bin/python3
# The report in a browser: report_test.py PROGRAM. Every kind of result opens without a request or a
# complaint, and can be hovered, zoomed, sorted, filtered, darkened, printed and driven by keys.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import subprocess
import sys
import tempfile

from browser import Browser
from selenium.webdriver import Keys

PROGRAM = sys.argv[1]
EVIL = "</script><script>window.evil = 1</script><img src=x onerror='window.evil = 2'>"
RUN = ["vgg16", "--platform", "two-generations", "--strategy", "optimal", "--schedule", "1f1b",
       "--set", "training.global_batch=32", "--set", "training.micro_batches=4"]
STUDY = """model: vgg16
platform: two-generations
training: {global_batch: 32, micro_batches: [2, 4]}
compare: {strategies: [uniform, optimal, single], schedules: [gpipe, 1f1b]}
"""
SWEEP = STUDY + """name: sweep
sweep: {platform.network.bandwidth: [1 Gb/s, 10 Gb/s, 100 Gb/s], training.precision: [fp16, fp32]}
"""
# More cells than a map has; points on more than one device break the constraint.
LIMITS = """model: vgg16
platform: two-generations
training: {global_batch: 32, micro_batches: 2}
compare: {strategies: [uniform, single], schedules: 1f1b}
engine: analytic
sweep:
  platform.network.bandwidth: {from: 1 Gb/s, to: 100 Gb/s, count: 60, scale: log}
  platform.network.latency: {from: 1 us, to: 100 us, count: 50, scale: log}
  where: micro_batches == 2
  constraints: {devices: 1}
"""
# An axis whose values are long texts; on one device the network changes nothing, and a map of it has one value.
NAMES = """model: vgg16
platform: two-generations
training: {global_batch: 32, micro_batches: 2}
compare: {strategies: [single], schedules: 1f1b}
engine: analytic
sweep:
  where: micro_batches == 2
  platform.network.bandwidth: [1 Gb/s, 10 Gb/s]
  platform.network.latency: [1 us, 10 us]
  loader:
    - {workers: 2, bytes_per_sample: 100 kB, decode: 1 ms, host: spin}
    - {workers: 4, bytes_per_sample: 100 kB, decode: 1 ms, host: block}
"""

# A long run with a short bar far from its start, and memory that changes twice.
MOMENTS = [
    {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "devices"}},
    {"ph": "X", "cat": "forward", "name": "F", "pid": 1, "tid": 1, "ts": 0, "dur": 1e7},
    {"ph": "X", "cat": "backward", "name": "B", "pid": 1, "tid": 1, "ts": 99493123, "dur": 8.5},
    {"ph": "X", "cat": "backward", "name": "W", "pid": 1, "tid": 1, "ts": 99493133, "dur": 6867},
    {"ph": "C", "name": "memory d", "pid": 1, "ts": 0, "args": {"bytes": 1024}},
    {"ph": "C", "name": "memory d", "pid": 1, "ts": 99493123, "args": {"bytes": 3072}},
]


def stagecraft(*arguments):
    subprocess.run([PROGRAM, *arguments], check=True, stdout=subprocess.DEVNULL)


def make_pages(folder):
    """A page of each kind of result, by name."""
    def path(name):
        return os.path.join(folder, name)

    for name, text in (("study.yaml", STUDY), ("sweep.yaml", SWEEP), ("limits.yaml", LIMITS), ("names.yaml", NAMES)):
        with open(path(name), "w", encoding="utf-8") as file:
            file.write(text)
    stagecraft("compare", path("study.yaml"), "--timeline", "2", "--quiet", "-o", path("compare.json"))
    stagecraft("replay", *RUN, "--timeline", "--format", "json", "--quiet", "-o", path("replay.json"))
    stagecraft("explain", *RUN, "--format", "json", "--quiet", "-o", path("explain.json"))
    stagecraft("sweep", path("sweep.yaml"), "--quiet", "-o", path("sweep.sqlite"))
    stagecraft("sweep", path("limits.yaml"), "--quiet", "-o", path("limits.sqlite"))
    stagecraft("sweep", path("names.yaml"), "--quiet", "-o", path("names.sqlite"))
    rows = [{"case": EVIL, "metric": "iteration_seconds", "group": "g", "measured": m, "predicted": p, "contest": "c"}
            for m, p in ((1, 1.1), (2, 1.9), (30, 31))]
    with open(path("validate.json"), "w", encoding="utf-8") as file:
        json.dump({"schema": "stagecraft/1", "source": EVIL, "rows": rows, "skipped": [], "notes": [EVIL]}, file)
    predicted = [{"kernel": "k%d" % i, "source": "fit", "measured": i * 1e-3, "predicted": i * 1.1e-3} for i in (1, 2, 3)]
    with open(path("calibrate.json"), "w", encoding="utf-8") as file:
        json.dump({"schema": "stagecraft/1", "device": "d", "rows": predicted, "mape": 0.1}, file)
    with open(path("compare.json"), encoding="utf-8") as file:
        result = json.load(file)
    result["model"], result["runs"][0]["note"] = EVIL, EVIL
    unfit = dict(result["runs"][-1], feasible=False, why_not="memory", iteration_seconds=None)
    result["runs"].append(unfit)
    with open(path("compare.json"), "w", encoding="utf-8") as file:
        json.dump(result, file)
    with open(path("moments.json"), "w", encoding="utf-8") as file:
        json.dump({"traceEvents": MOMENTS}, file)
    with open(path("second.json"), "w", encoding="utf-8") as file:
        json.dump({"traceEvents": [{"ph": "X", "name": "F", "ts": 0, "dur": 1e6}]}, file)
    pages = {}
    for result in ("compare.json", "replay.json", "explain.json", "sweep.sqlite", "limits.sqlite", "names.sqlite", "validate.json",
                   "calibrate.json", "moments.json"):
        name = result.split(".")[0]
        pages[name] = path(name + ".html")
        stagecraft("report", path(result), "-o", pages[name])
    pages["lengths"] = path("lengths.html")
    stagecraft("report", path("moments.json"), path("second.json"), "-o", pages["lengths"])
    return pages


def draw_all(browser):
    """Brings every drawing into view, every choice of charts included."""
    browser.run("""document.querySelectorAll('select').forEach(list => [...list.options].forEach(option => {
      list.value = option.value; list.dispatchEvent(new Event('change')); }));""")
    browser.wait("all drawings", """
      const left = [...document.querySelectorAll('figure.chart:not([hidden]), .timelines')].find(
        place => !place.querySelector('svg') && !place.querySelector('canvas'));
      if (left) left.scrollIntoView();
      return !left;""")


def test_opens(browser, name, page):
    browser.open(page)
    draw_all(browser)
    assert browser.run("return window.evil") is None, name
    assert browser.run("return document.querySelectorAll('h2').length") > 0, name
    assert browser.run("return document.documentElement.scrollWidth") <= browser.run("return innerWidth"), name
    complaints = browser.complaints()
    assert not complaints, (name, complaints)


def test_escaped(browser, page):
    browser.open(page)
    assert EVIL in browser.run("return document.querySelector('h1').textContent")
    assert EVIL in browser.run("return document.querySelector('main').textContent")


def pixels(browser):
    return browser.run("return document.querySelector('canvas').toDataURL()")


def test_timeline(browser, page):
    browser.open(page)
    browser.run("document.querySelector('.timelines').scrollIntoView()")
    browser.wait("a timeline", "return document.querySelector('canvas')")
    canvas = browser.driver.find_element("css selector", "canvas")
    box = browser.run("const box = document.querySelector('canvas').getBoundingClientRect(); return [box.left, box.top]")
    x, y = box[0] + 195, box[1] + 76  # right of the names the first device's first bar begins, below the axis, the critical path and the title
    browser.mouse("mouseMoved", x, y)
    text = browser.wait("a tip", "const tip = document.querySelector('.tip'); return tip && !tip.hidden && tip.textContent")
    assert text.startswith("F0@0 · forward · on "), text
    whole = pixels(browser)
    for what, at in (("mousePressed", x + 100), ("mouseMoved", x + 300), ("mouseReleased", x + 300)):
        browser.mouse(what, at, y)
    browser.wait("the zoomed picture", "return document.querySelector('canvas').toDataURL() !== arguments[0]", whole)
    zoomed = pixels(browser)
    canvas.send_keys("0")
    browser.wait("the whole run", "return document.querySelector('canvas').toDataURL() !== arguments[0]", zoomed)
    canvas.send_keys("+")
    browser.wait("closer by a key", "return document.querySelector('canvas').toDataURL() !== arguments[0]", whole)
    canvas.send_keys("n")
    said = browser.wait("a bar in words", "return document.querySelector('.said').textContent")
    canvas.send_keys(Keys.ARROW_DOWN)
    browser.wait("another row", "return document.querySelector('.said').textContent !== arguments[0]", said)
    canvas.send_keys("c")
    browser.wait("the critical path", "return document.querySelector('.buttons [aria-pressed=true]')")


def open_timelines(browser, page):
    """Returns the canvas of the first; the times on the axis that was drawn last are in window.times from its next drawing."""
    browser.open(page)
    browser.run("document.querySelector('.timelines').scrollIntoView()")
    browser.wait("a timeline", "return document.querySelector('canvas')")
    browser.run("""window.times = [];
      const context = CanvasRenderingContext2D.prototype, { fillText, clearRect } = context;
      context.clearRect = function (...place) {
        window.times = [];
        window.texts = [];
        clearRect.apply(this, place);
      };
      context.fillText = function (text, x, y) {
        if (y === 9) window.times.push(text);
        window.texts.push(text);
        fillText.call(this, text, x, y);
      };""")
    return browser.driver.find_element("css selector", "canvas")


def test_moments(browser, page):
    def said():
        return browser.run("return document.querySelector('.said').textContent")
    canvas = open_timelines(browser, page)
    # 99.5 s are 2^32 parts of 23 ns, so that microseconds have one place.
    canvas.send_keys("+" * 38, "n")
    assert said() == "B · backward · on 1 · 8.5 µs from 99.493123 s · iteration 0", said()
    near = browser.wait("times near the bar", "return window.times.length > 2 && window.times[0].startsWith('99.4931') && window.times")
    assert len(set(near)) == len(near), near
    canvas.send_keys(Keys.ARROW_DOWN)
    assert said() == "d: 1 KiB at 0 s", said()
    canvas.send_keys("n")
    assert said() == "d: 3 KiB at 99.493123 s", said()


def test_lengths(browser, page):
    # One run of 1 s beside one of 99.5 s: the first view is as long as the shorter.
    canvas = open_timelines(browser, page)
    assert "the first 1 s" in browser.run("return document.querySelector('.buttons').textContent")
    canvas.send_keys("c")
    browser.wait("the shorter run", "return window.times.includes('800 ms') && !window.times.includes('2 s')")
    canvas.send_keys("0")
    browser.wait("all of the longer", "return window.times.includes('80 s')")


def test_axes(browser, page):
    """What a device sends stands below it, by the name of the axis alone."""
    canvas = open_timelines(browser, page)
    canvas.send_keys("+")
    texts = browser.wait("rows of axes", "return (window.texts ?? []).includes('pipeline') && window.texts")
    assert not any(" pipeline" in text for text in texts), texts


def test_chart_keys(browser, page):
    """A chart's key is of buttons that hide series, and its axes are moved and zoomed by keys."""
    browser.open(page)
    draw_all(browser)
    drawing = "const svg = document.querySelector('.canvas[tabindex] svg'); return svg.textContent + svg.querySelectorAll('path').length"
    browser.wait("a chart to zoom", "const svg = document.querySelector('.canvas[tabindex] svg'); return svg && svg.textContent")
    canvas = browser.driver.find_element("css selector", ".canvas[tabindex]")
    changed = drawing + " !== arguments[0]"
    whole = browser.run(drawing)
    canvas.send_keys("+")
    browser.wait("the chart closer", changed, whole)
    closer = browser.run(drawing)
    canvas.send_keys(Keys.ARROW_RIGHT)
    browser.wait("the chart moved", changed, closer)
    canvas.send_keys("0")
    browser.wait("the whole chart", drawing + " === arguments[0]", whole)
    button = browser.driver.find_element("css selector", ".canvas[tabindex] ~ .key button")
    assert button.get_attribute("aria-pressed") == "true"
    button.send_keys(Keys.SPACE)
    assert button.get_attribute("aria-pressed") == "false"
    browser.wait("the chart without the series", changed, whole)
    button.send_keys(Keys.ENTER)
    browser.wait("the chart with it", drawing + " === arguments[0]", whole)
    assert button.get_attribute("aria-pressed") == "true"
    assert not browser.complaints()


def touch(browser, what, *places):
    """touchStart, touchMove or touchEnd with fingers at places of the window."""
    points = [{"x": x, "y": y, "id": finger} for finger, (x, y) in enumerate(places)]
    browser.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": what, "touchPoints": points})


def test_fingers(browser, page):
    browser.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True, "maxTouchPoints": 2})
    browser.open(page)
    browser.run("document.querySelector('.timelines').scrollIntoView()")
    browser.wait("a timeline", "return document.querySelector('canvas')")
    assert "finger" in browser.run("return document.querySelector('.buttons span').textContent")
    x, y = browser.run("""const canvas = document.querySelector('canvas'); canvas.scrollIntoView();
      const box = canvas.getBoundingClientRect(); return [box.left, box.top];""")
    y += 76
    whole = pixels(browser)
    touch(browser, "touchStart", (x + 20, y))
    touch(browser, "touchEnd")
    browser.wait("a row's name", "const tip = document.querySelector('.tip'); return tip && !tip.hidden && tip.textContent")
    assert pixels(browser) == whole
    changed = "return document.querySelector('canvas').toDataURL() !== arguments[0]"
    touch(browser, "touchStart", (x + 150, y))
    for step in range(1, 6):
        touch(browser, "touchMove", (x + 150 + 15 * step, y))
    touch(browser, "touchEnd")
    browser.wait("what one finger chose", changed, whole)
    zoomed = pixels(browser)
    touch(browser, "touchStart", (x + 180, y))
    touch(browser, "touchStart", (x + 180, y), (x + 240, y))
    for step in range(1, 6):
        touch(browser, "touchMove", (x + 180 - 8 * step, y), (x + 240 + 8 * step, y))
    touch(browser, "touchEnd")
    browser.wait("what two fingers drew apart", changed, zoomed)
    touch(browser, "touchStart", (x + 200, y + 200))
    for step in range(1, 16):
        touch(browser, "touchMove", (x + 200, y + 200 - 10 * step))
    touch(browser, "touchEnd")
    browser.wait("the page scrolled by a swipe", "return document.querySelector('canvas').getBoundingClientRect().top < -20")
    browser.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})


def column(browser, title):
    """The times in a column, in seconds."""
    return browser.run("""const table = [...document.querySelectorAll('.table table')].pop();
      const at = [...table.querySelectorAll('thead th button')].findIndex(button => button.textContent === arguments[0]);
      const units = { s: 1, ms: 1e-3, 'µs': 1e-6, ns: 1e-9 };
      const seconds = (text) => { const [value, unit] = text.split(' '); return Number((Number(value) * (units[unit] ?? NaN)).toPrecision(6)); };
      return [...table.tBodies[0].rows].map(row => seconds(row.cells[at].textContent)).filter(Number.isFinite);""", title)


def filter_column(browser, title, text):
    """Whether the filter is taken for a wrong one."""
    return browser.run("""const table = [...document.querySelectorAll('.table table')].pop();
      const at = [...table.querySelectorAll('thead th button')].findIndex(button => button.textContent === arguments[0]);
      const input = table.querySelectorAll('.filters input')[at];
      input.value = arguments[1]; input.dispatchEvent(new Event('input'));
      return input.getAttribute('aria-invalid') === 'true' && input.title !== '';""", title, text)


def test_table(browser, page):
    browser.open(page)
    press = """const table = [...document.querySelectorAll('.table table')].pop();
      [...table.querySelectorAll('thead th button')].find(button => button.textContent === arguments[0]).click();"""
    title = "iteration"
    browser.run(press, title)
    times = column(browser, title)
    assert times == sorted(times) and len(times) > 3, times
    browser.run(press, title)
    assert column(browser, title) == sorted(times, reverse=True), (column(browser, title), times)
    first, second = sorted(set(times))[:2]
    limit = (first + second) / 2
    assert not filter_column(browser, title, "< %r" % limit)
    assert len(column(browser, title)) == sum(time < limit for time in times)
    assert not filter_column(browser, title, "%r..%r" % (limit, max(times) + 1))
    assert len(column(browser, title)) == sum(time >= limit for time in times)
    assert not filter_column(browser, title, "= %r" % first)  # as it is written, however it is rounded
    assert len(column(browser, title)) == times.count(first)
    assert not filter_column(browser, title, "< %r ms" % (1000 * limit))
    assert len(column(browser, title)) == sum(time < limit for time in times)
    for wrong in ("< 800 GB", "<", "0.7..", "no such text"):
        assert filter_column(browser, title, wrong), wrong
        assert len(column(browser, title)) == len(times), wrong
    assert not filter_column(browser, title, "")
    browser.run("""const box = [...document.querySelectorAll('.table')].pop(), input = box.querySelector('input');
      input.value = 'no such text'; input.dispatchEvent(new Event('input'));""")
    assert column(browser, title) == []


def test_sorting(browser, page):
    """What has no figure comes last, sorted upwards and downwards."""
    browser.open(page)
    cells = """const table = [...document.querySelectorAll('.table table')].pop();
      const at = [...table.querySelectorAll('thead th button')].findIndex(button => button.textContent === arguments[0]);
      table.querySelectorAll('thead th button')[at].click();
      return [...table.tBodies[0].rows].map(row => row.cells[at].textContent);"""
    for times in browser.run(cells, "iteration"), browser.run(cells, "iteration"):
        assert times[-1] == "–" and "–" not in times[:-1], times


def test_constraints(browser, page):
    """A switch by key: points outside the constraints are left out, or drawn faint, until it is pressed."""
    browser.open(page)
    draw_all(browser)
    numbers = "document.querySelectorAll('details').forEach(one => { one.open = true; })"
    rows = "return [...document.querySelectorAll('figure:not([hidden]) details')].map(one => [...one.querySelectorAll('tr')].map(row => row.textContent))"
    notes = "return [...document.querySelectorAll('.switch span')].map(one => one.textContent)"
    pressed = "return [...document.querySelectorAll('.switch button')].map(one => one.getAttribute('aria-pressed'))"
    browser.run(numbers)
    kept = browser.wait("marks in numbers", rows.replace("return ", "const all = ") + "; return all.every(one => one.length) && all")
    assert browser.run(pressed) == ["false"] * 3
    assert all("3000 of 6000 points do not keep to the constraints (devices at most 1)" in note for note in browser.run(notes))
    assert not any("uniform" in row for row in kept[0]), kept[0]
    assert sum("outside the constraints" in row for row in kept[-1]) == 2000  # a cloud of 3000, listed as it is drawn
    note = "return [...document.querySelectorAll('main > section')].find(one => one.querySelector('h2')?.textContent === arguments[0]).querySelector('.note:not([hidden])').textContent"
    assert "4000 of 6000 points are drawn" in browser.run(note, "What no point beats")
    assert "neighbouring values" in browser.run(note, "Over two axes")
    button = browser.driver.find_element("css selector", ".switch button")
    button.send_keys(Keys.SPACE)
    assert browser.run(pressed) == ["true"] * 3
    assert all(note.startswith("All 6000 points count") for note in browser.run(notes))
    everything = browser.run(rows)
    assert any("uniform" in row and "outside the constraints" in row for row in everything[0]), everything[0]
    button.send_keys(Keys.ENTER)
    assert browser.run(rows) == kept
    assert not browser.complaints()


def test_names(browser, page):
    """Long names leave a chart its height, and a map of one value says so in one colour."""
    browser.open(page)
    draw_all(browser)
    labels = browser.run("""const figure = [...document.querySelectorAll('figure')].find(one => /^Throughput by loader/.test(one.textContent));
      return [...figure.querySelectorAll('svg text')].map(text => text.textContent);""")
    assert sum(label.replace(".", "").isdigit() for label in labels) > 3, labels  # of an axis that has room
    names = [label for label in labels if "…" in label]
    assert len(names) == 2 and names[0].startswith("…2,") and names[1].startswith("…4,"), labels
    texts = browser.run("return [...document.querySelectorAll('figure svg')].map(svg => svg.textContent)")
    assert any("all " in text and "samples per second" in text for text in texts), texts


def test_dark_and_print(browser, page):
    browser.open(page)
    draw_all(browser)
    ground = "return getComputedStyle(document.body).backgroundColor"
    light, drawn = browser.run(ground), browser.run("return document.querySelector('figure:not([hidden]) svg').outerHTML")
    browser.driver.find_element("id", "theme").send_keys(Keys.ENTER)
    assert browser.run(ground) != light
    browser.wait("charts in dark colours", "return document.querySelector('figure:not([hidden]) svg').outerHTML !== arguments[0]", drawn)
    width = "return document.querySelector('.timelines canvas').getBoundingClientRect().width"
    wide = browser.run(width)
    browser.run("dispatchEvent(new Event('beforeprint'))")
    assert browser.run(width) == 660 and browser.run("return document.querySelector('.timelines canvas').width") == 660
    browser.run("dispatchEvent(new Event('afterprint'))")
    assert browser.run(width) == wide
    printed = browser.driver.execute_cdp_cmd("Page.printToPDF", {})["data"]
    assert len(printed) > 20000
    assert browser.run(ground) != light  # as before it was printed
    assert not browser.complaints()


def main():
    with tempfile.TemporaryDirectory(prefix="stagecraft-report-") as folder, Browser() as browser:
        pages = make_pages(folder)
        for width in (1280, 390):
            browser.resize(width, 900)
            for name, page in pages.items():
                test_opens(browser, name, page)
        test_fingers(browser, pages["replay"])
        browser.resize(1280, 900)
        test_escaped(browser, pages["compare"])
        test_escaped(browser, pages["validate"])
        test_timeline(browser, pages["replay"])
        test_moments(browser, pages["moments"])
        test_lengths(browser, pages["lengths"])
        test_axes(browser, pages["replay"])
        test_chart_keys(browser, pages["compare"])
        test_table(browser, pages["compare"])
        test_table(browser, pages["sweep"])
        test_sorting(browser, pages["compare"])
        test_constraints(browser, pages["limits"])
        test_names(browser, pages["names"])
        test_dark_and_print(browser, pages["compare"])
        print("every page opens without a request or a complaint")


main()
