# A headless Chromium for tests of the report; skips (exit 77) with the reason where it is not installed.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import shutil
import sys
import tempfile

SKIPPED = 77


def skip(reason):
    print("skipped: " + reason)
    sys.exit(SKIPPED)


try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
except ImportError:
    skip("python3-selenium is not installed")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
if not CHROMIUM or not DRIVER:
    skip("chromium and chromium-driver are not installed")


class Browser:
    """One page in one window of a given size."""

    def __init__(self, width=1280, height=900):
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        self.profile = tempfile.mkdtemp(prefix="stagecraft-browser-")
        for flag in (
            "headless=new", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking",
            "disable-component-update", "disable-sync", "hide-scrollbars", "user-data-dir=" + self.profile,
        ):
            options.add_argument("--" + flag)
        if os.geteuid() == 0:
            options.add_argument("--no-sandbox")
        options.add_argument("--disable-dev-shm-usage")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service(DRIVER), options=options)
        self.driver.set_script_timeout(120)
        self.resize(width, height)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.driver.quit()
        shutil.rmtree(self.profile, ignore_errors=True)

    def resize(self, width, height):
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def open(self, path):
        self.driver.get("file://" + os.path.abspath(path))

    def mouse(self, what, x, y):
        """mouseMoved, mousePressed or mouseReleased at a place of the window."""
        button = {"button": "left", "buttons": 1, "clickCount": 1} if what != "mouseMoved" else {}
        self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": what, "x": x, "y": y, **button})

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def wait(self, what, script, *arguments):
        """Until the script's value is true; frames are drawn meanwhile."""
        found = self.driver.execute_async_script(
            """const done = arguments[arguments.length - 1], given = [...arguments].slice(1, -1);
            const test = new Function(arguments[0]); const end = performance.now() + 60000;
            (function look() { const value = test(...given);
              if (value || performance.now() > end) done(value ?? null); else requestAnimationFrame(look); })();""",
            script, *arguments)
        assert found, "never seen: " + what
        return found

    def complaints(self):
        """What the console says, and requests beyond the file itself."""
        found = [entry["message"] for entry in self.driver.get_log("browser")]
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                if not url.startswith(("file://", "data:", "chrome://", "about:")):
                    found.append("request: " + url)
        return found
