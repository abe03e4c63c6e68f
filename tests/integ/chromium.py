"""Headless Chromium, driven by its DevTools protocol over two pipes, so that no port and no package is needed."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time

import pytest

PROGRAM = shutil.which("chromium")
HANG = int(os.environ.get("HANG", 600))  # seconds without an answer or without progress
LEFT = ("navigated or closed", "context was destroyed", "Cannot find context")


class PageLeft(Exception):
    """The page was left before the answer."""


class Browser:
    """One page. `errors` has its console errors, uncaught exceptions and failed requests."""

    def __init__(self, folder, width=1500, height=900):
        self.errors, self.buffer, self.count, self.session = [], b"", 0, None
        ends = [*os.pipe(), *os.pipe()]
        theirs, self.writer, self.reader, other = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
        for end in ends:
            os.close(end)
        # WebGL runs on the CPU (SwiftShader). Pages themselves are drawn without it: with Debian's --enable-gpu-rasterization, and with
        # compositing by SwiftShader, OHIF needs 12 s of the CPU to show a segmentation instead of 7 s.
        self.process = subprocess.Popen(
            [PROGRAM, "--headless=new", "--no-sandbox", "--no-proxy-server", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist", "--disable-gpu-rasterization",
             "--disable-gpu-compositing", "--disable-accelerated-2d-canvas", "--remote-debugging-pipe",
             f"--user-data-dir={folder}", f"--window-size={width},{height}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=(3, 4),
            preexec_fn=lambda: (os.dup2(theirs, 3), os.dup2(other, 4)))
        os.close(theirs)
        os.close(other)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(HANG)
        os.close(self.writer)
        os.close(self.reader)

    def receive(self):
        while b"\0" not in self.buffer:
            assert select.select([self.reader], [], [], HANG)[0], "Chromium does not answer"
            part = os.read(self.reader, 1 << 20)
            assert part, "Chromium ended"
            self.buffer += part
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def call(self, method, **parameters):
        """Calls a method of the protocol and returns its result. Notes the errors that arrive before it."""
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.writer, data):]
        while (answer := self.receive()).get("id") != self.count:
            self.note(answer.get("method"), answer.get("params"))
        if any(words in answer.get("error", {}).get("message", "") for words in LEFT):
            raise PageLeft(method)
        assert "error" not in answer, (method, answer["error"])
        return answer["result"]

    def note(self, event, of):
        if event == "Runtime.consoleAPICalled" and of["type"] in ("error", "assert"):
            self.errors.append(" ".join(str(part.get("value", part.get("description", ""))) for part in of["args"]))
        elif event == "Runtime.exceptionThrown":
            details = of["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif event == "Log.entryAdded" and of["entry"]["level"] == "error":
            self.errors.append(f'{of["entry"]["text"]} {of["entry"].get("url", "")}')

    def evaluate(self, expression):
        """Returns the value of a JavaScript expression. Waits if it is a promise."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, (expression, answer["exceptionDetails"])
        return answer["result"].get("value")

    def evaluate_here(self, expression):
        """As evaluate(); None if the page is left meanwhile."""
        try:
            return self.evaluate(expression)
        except PageLeft:
            return None

    def wait(self, expression, what):
        """Waits until an expression is true, and returns its value. It is not true while another page is being loaded."""
        begun = time.monotonic()
        while not (value := self.evaluate_here(expression)):
            if time.monotonic() - begun > HANG:
                pytest.fail(f"{what} did not appear; errors: {self.errors}; page: {self.evaluate('document.body.innerText')[:3000]}")
            time.sleep(0.2)
        return value

    def picture(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
