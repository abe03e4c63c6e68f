"""The page of a job in Chromium: the slice viewer by keys, pointers and touch; without scripts; accessibility by axe."""

import contextlib
import json
import os
import pathlib
import re

import chromium
import numpy as np
import PIL.Image
import pytest
from conftest import SHARED, drop, phantom
from test_slices import CODES, Plane, site_of

PIPELINES = f"""
pipelines = ( {{ name = "head"; results = [ "seg" ]; segments = (
    {{ label = "Bone"; method = "range"; range = [ 300.0, 3000.0 ]; color = [ 1.0, 0.8, 0.1 ]; {CODES}
       expect = {{ volume_ml = [ 1.0, 100000.0 ]; mean = [ 300.0, 400.0 ]; slices = [ 1, 2 ]; }}; }},
    {{ label = "Soft tissue"; method = "range"; range = [ 10.0, 90.0 ]; color = [ 0.2, 0.7, 1.0 ]; {CODES}
       expect = {{ volume_ml = [ 1.0, 2.0 ]; }}; }} ); }} );
rules = ( {{ match = {{ }}; pipeline = "head"; }} );
"""
VIEWER = 'viewer = "https://viewer.example/v?StudyInstanceUIDs={study_uid}&SeriesInstanceUIDs={series_uid}";'
pytestmark = pytest.mark.skipif(not chromium.PROGRAM, reason="chromium is not here")


@contextlib.contextmanager
def browser(folder, width=1440, height=1000, dark=False, touch=False, scripts=True):
    with chromium.Browser(folder, width, height) as page:
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=touch)
        page.call("Emulation.setTouchEmulationEnabled", enabled=touch)
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        page.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        yield page


def site_with_job(daemon, tmp_path, options=VIEWER, pipelines=PIPELINES):
    site = site_of(daemon, tmp_path, options, pipelines=pipelines)
    head = SHARED / "ct-head-5mm"
    files = sorted(head.glob("*.dcm")) if os.environ.get("NOCTULE_PICTURES") and head.is_dir() else None
    drop(files or phantom(tmp_path / "ct", "--kind", "ct-head", "--size", "64x60x20", "--spacing", "3,3,6"), site.daemon.inbox / "a")
    (job,) = site.daemon.wait_jobs(1, states=("REVIEW",), seconds=300)
    return site, job


def errors_of(page):
    return [error for error in page.errors if "favicon" not in error]


def open_job(page, site, job, at=""):
    page.call("Page.navigate", url=f"http://127.0.0.1:{site.port}/job?id={job['job']}{at}")
    page.wait("document.readyState === 'complete'", "the page")


def shown(page, key):
    page.wait(f"document.querySelector('.viewer').dataset.shown === '{key}'", f"the plane {key}")


def canvas(page):
    """Reads the pixels of the viewer."""
    width, height, data = page.evaluate("""(() => { const c = document.querySelector('.v-stage canvas');
        const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let s = '';
        for (let i = 0; i < d.length; i += 8192) s += String.fromCharCode.apply(null, d.subarray(i, i + 8192));
        return [c.width, c.height, btoa(s)]; })()""")
    import base64
    return np.frombuffer(base64.b64decode(data), np.uint8).reshape(height, width, 4)[..., :3].astype(int)


def press(page, key, code=None):
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key=key, code=code or key)


def click(page, text):
    page.evaluate(f"[...document.querySelectorAll('.viewer button')].find(b => b.textContent === {text!r}).click()")


def test_the_viewer_by_mouse_and_keys(daemon, tmp_path):
    site, job = site_with_job(daemon, tmp_path)
    planes = f"api/v1/jobs/{job['job']}/planes"
    with browser(tmp_path / "profile") as page:
        open_job(page, site, job)
        counts = {view: page.evaluate(f"fetch('{planes}').then(a => a.json()).then(a => a.planes.{view}.count)")
                  for view in ("ax", "cor", "sag")}
        middle = (counts["ax"] - 1) // 2
        shown(page, f"ax/{middle}")
        assert page.evaluate("[...document.querySelectorAll('.v-edge')].map(e => e.textContent).join('')") == "RLAP"

        # The grey of a pixel is that of its value in the window, as the API has it.
        page.evaluate("document.querySelectorAll('.v-segment input').forEach(b => b.click())")
        page.evaluate("""(() => { const [c, w] = document.querySelectorAll('.v-number input');
            c.value = 40; w.value = 400; w.dispatchEvent(new Event('change')); })()""")
        plane = Plane(site.get(f"{planes}/ax/{middle}")[1])
        picture = canvas(page)
        scale = min(picture.shape[1] / (plane.columns * 3), picture.shape[0] / (plane.rows * 3)) * 3
        if plane.columns == 64:
            left, top = (picture.shape[1] - plane.columns * scale) / 2, (picture.shape[0] - plane.rows * scale) / 2
            for y, x in ((5, 5), (30, 32), (20, 40), (45, 20)):
                if plane.values[y - 1:y + 2, x - 1:x + 2].std() < 30:
                    wanted = min(max((plane.values[y, x] + 160) / 400, 0), 1) * 255
                    found = picture[int(top + (y + 0.5) * scale), int(left + (x + 0.5) * scale)]
                    assert abs(found - wanted).max() <= 12, (y, x)
        assert (picture.max(axis=2) == picture.min(axis=2)).all()  # no colour without segments
        page.evaluate("document.querySelectorAll('.v-segment input').forEach(b => b.click())")
        assert (canvas(page).max(axis=2) - canvas(page).min(axis=2) > 80).sum() > 50
        click(page, "Fill")
        filled = (canvas(page).max(axis=2) - canvas(page).min(axis=2) > 20).sum()
        assert filled > 500

        # Keys work while the slice has the focus, and only then.
        press(page, "ArrowUp")
        shown(page, f"ax/{middle}")
        page.evaluate("document.querySelector('.v-stage').focus()")
        for key, at in (("ArrowUp", middle + 1), ("ArrowRight", middle + 2), ("ArrowDown", middle + 1), ("Home", 0), ("PageUp", min(10, counts["ax"] - 1)),
                        ("End", counts["ax"] - 1)):
            press(page, key)
            shown(page, f"ax/{at}")
        press(page, "x")
        shown(page, f"sag/{(counts['sag'] - 1) // 2}")
        assert page.evaluate("[...document.querySelectorAll('.v-edge')].map(e => e.textContent).join('')") == "APHF"
        assert page.evaluate("document.querySelector('.v-bar button[aria-pressed=true]').textContent") == "Sagittal"
        press(page, "y")
        shown(page, f"cor/{(counts['cor'] - 1) // 2}")

        # The wheel steps, a drag changes the window, the slider goes anywhere.
        x, y = page.evaluate("(() => { const r = document.querySelector('.v-stage').getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()")
        page.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=-100)
        shown(page, f"cor/{(counts['cor'] - 1) // 2 + 1}")

        # Values are only as exact as the file has them, and the viewer states it.
        error = json.loads(site.text(planes))["error_max"]
        page.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        found = page.evaluate("document.querySelector('.v-value').textContent")
        assert re.fullmatch(rf"-?[\d.]+ ± {error:g} HU" if error else r"-?[\d.]+ HU", found), found
        note = page.evaluate("(document.querySelector('.v-foot .v-rounded') || {}).textContent || ''")
        assert note == (f"Values are rounded to ±{error:g} HU at most" if error else "")
        assert error > 0  # noise in a narrow window

        before = page.evaluate("document.querySelector('.v-told').textContent")
        page.call("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, button="left", buttons=1, clickCount=1)
        page.call("Input.dispatchMouseEvent", type="mouseMoved", x=x + 60, y=y + 30, button="left", buttons=1)
        page.call("Input.dispatchMouseEvent", type="mouseReleased", x=x + 60, y=y + 30, button="left", clickCount=1)
        assert page.evaluate("document.querySelector('.v-told').textContent") != before
        assert "HU" in page.evaluate("document.querySelector('.v-value').textContent")
        page.evaluate("(() => { const s = document.querySelector('.v-foot input'); s.value = 3; s.dispatchEvent(new Event('input')); })()")
        shown(page, "cor/3")
        click(page, "Bone")
        assert page.evaluate("document.querySelector('.v-told').textContent") == "C 500  W 2000 HU"

        # A plane that is not there any more is told, and the page goes on.
        path = site.daemon.root / "outbox" / str(job["job"]) / "slices.nslc"
        whole = path.read_bytes()
        path.write_bytes(whole[:100])
        page.evaluate("(() => { const s = document.querySelector('.v-foot input'); s.value = 12; s.dispatchEvent(new Event('input')); })()")
        page.wait("(document.querySelector('.viewer').dataset.failed || '').includes('damaged')", "the failure")
        path.write_bytes(whole)
        assert [error for error in errors_of(page) if "500" not in error] == []


def test_the_viewer_by_touch(daemon, tmp_path):
    site, job = site_with_job(daemon, tmp_path)
    with browser(tmp_path / "profile", 390, 844, touch=True) as page:
        open_job(page, site, job)
        page.wait("document.querySelector('.viewer').dataset.shown", "the plane")
        first = page.evaluate("document.querySelector('.viewer').dataset.shown")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.evaluate("document.querySelector('.v-stage').scrollIntoView({block: 'center'})")
        x, y = page.evaluate("(() => { const r = document.querySelector('.v-stage').getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()")
        page.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        for step in range(1, 6):
            page.call("Input.dispatchTouchEvent", type="touchMove", touchPoints=[{"x": x, "y": y - 20 * step}])
        page.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        page.wait(f"document.querySelector('.viewer').dataset.shown !== '{first}'", "another plane")
        assert errors_of(page) == []


def test_without_scripts_there_is_a_picture_with_links(daemon, tmp_path):
    site, job = site_with_job(daemon, tmp_path)
    at = f"job?id={job['job']}"
    page = site.page(at)
    (source,) = [value for tag, name, value in page.attributes if (tag, name) == ("img", "src")]
    count = int(re.search(r"/ax/(\d+)\.png", source)[1])
    assert site.get(source)[0]["Content-Type"] == "image/png"
    links = page.links()
    assert {f"{at}&view=ax&at={count - 1}", f"{at}&view=ax&at={count + 1}", f"{at}&view=cor", f"{at}&view=sag"} <= set(links)
    assert f"/ax/{count + 1}.png" in site.text(f"{at}&view=ax&at={count + 1}")
    assert "Previous slice" not in site.text(f"{at}&view=cor&at=0")
    assert "Next slice" not in site.text(f"{at}&view=cor&at=999999")
    site.get(f"{at}&view=nonsense&at=x")

    # Scripts and styles are files at addresses with their hash, and their digest stands in the page.
    headers, text = site.get(at)
    assert "script-src 'self'" in headers["Content-Security-Policy"] and "connect-src 'self'" in headers["Content-Security-Policy"]
    assert b"<style" not in text and b" style=" not in text and not re.search(rb"<script(?![^>]* src=)", text)
    assets = re.findall(rb'(?:src|href)="(assets/[0-9a-f]{16}/viewer\.(?:js|css))" integrity="sha384-[A-Za-z0-9+/]{64}"', text)
    assert len(assets) == 2
    for asset in assets:
        assert "immutable" in site.get(asset.decode())[0]["Cache-Control"]
        site.get(asset.decode().replace("assets/", "assets/0"), 404)
    assert "script-src" not in site.get("")[0]["Content-Security-Policy"]
    with browser(tmp_path / "profile", scripts=False) as chrome:
        open_job(chrome, site, job)
        assert errors_of(chrome) == []


def test_an_empty_segment_is_not_as_expected(daemon, tmp_path):
    """It breaks one expectation, that of voxels. Its volume of 0 ml is outside the expected range, too."""
    empty = PIPELINES.replace("[ 10.0, 90.0 ]", "[ 30000.0, 30001.0 ]")
    site, job = site_with_job(daemon, tmp_path, pipelines=empty)
    (part,) = re.findall(r"<h2>Found and expected</h2>(.*?)</section>", site.text(f"job?id={job['job']}"), re.S)
    rows = [[re.sub(r"<[^>]*>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.S)]
            for row in re.findall(r"<tr>(.*?)</tr>", part.partition("<tbody>")[2], re.S)]
    (volume,) = (row for row in rows if row[:2] == ["Soft tissue", "volume"])
    assert volume[2:4] == ["0 ml", "1 to 2"] and volume[5].strip() == "Not as expected"
    # beside the decision, too
    (part,) = re.findall(r"<h2>Found and expected</h2>(.*?)</section>", site.text(f"review?id={job['job']}"), re.S)
    items = [re.sub(r"<[^>]*>", "", item) for item in re.findall(r"<li>(.*?)</li>", part, re.S)]
    assert "Soft tissue, volume 0 ml expected 1 to 2Not as expected " in items


def test_found_and_expected_results_and_provenance(daemon, tmp_path):
    site, job = site_with_job(daemon, tmp_path)
    text = site.text(f"job?id={job['job']}")
    page = site.page(f"job?id={job['job']}")
    (part,) = re.findall(r"<h2>Found and expected</h2>(.*?)</section>", text, re.S)
    rows = [[re.sub(r"<[^>]*>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.S)]
            for row in re.findall(r"<tr>(.*?)</tr>", part.partition("<tbody>")[2], re.S)]
    segments = {row["label"]: row for row in site.daemon.query("SELECT * FROM v_segments")}
    breaches = site.daemon.query("SELECT * FROM v_breaches")
    by_measure = {(row[0], row[1]): row for row in rows}
    bone = by_measure["Bone", "volume"]
    assert bone[2] == f"{float(format(segments['Bone']['volume_ml'], '.2f')):.6g} ml" and bone[3] == "1 to 100000"
    assert bone[5] == "as expected"
    soft = by_measure["Soft tissue", "volume"]
    assert soft[3] == "1 to 2" and soft[5].startswith("Not as expected Soft tissue: volume ")
    assert by_measure["Bone", "slices"][5].startswith("Not as expected Bone: slices with voxels")
    kinds = {(row["label"], {"volume_ml": "volume"}.get(row["expectation"], row["expectation"])) for row in breaches}
    assert len(kinds) == 3 and kinds <= set(by_measure) and part.count("<circle") == 4
    # The Review page has those with a range as value, range and bar, the broken ones first.
    (part,) = re.findall(r"<h2>Found and expected</h2>(.*?)</section>", site.text(f"review?id={job['job']}"), re.S)
    items = [re.sub(r"<[^>]*>", "", item) for item in re.findall(r"<li>(.*?)</li>", part, re.S)]
    assert len(items) == 4 and part.count("<circle") == 4 and items[-1] == f"Bone, volume {bone[2]} expected 1 to 100000as expected"
    assert all("Not as expected" in item for item in items[:-1]), items

    # Results can be downloaded, byte for byte; the site's viewer opens the images.
    for uid, path in site.daemon.query("SELECT sop_instance_uid, path FROM v_results"):
        link = f"api/v1/results/{uid}?format=dicom"
        assert link in page.links() and ("a", "download", pathlib.Path(path).name) in page.attributes
        headers, data = site.get(link)
        assert data == (site.daemon.root / path).read_bytes() and headers["Content-Type"] == "application/dicom"
    ((study, series),) = site.daemon.query("SELECT study_uid, series_uid FROM v_series")
    assert f"https://viewer.example/v?StudyInstanceUIDs={study}&SeriesInstanceUIDs={series}" in page.links()
    (part,) = re.findall(r"<h2>From the scanner to the archive</h2>(.*?)</section>", text, re.S)
    steps = re.findall(r'data-t="Step"><bdi>(.*?)</bdi>', part)
    assert steps == ["Received", "Completed", "Waited", "Computed", "Reviewed"]
    for word in ("rule", "computed on", "cpu", "Events", series):
        assert word in page.data


def test_accessibility_and_pictures(daemon, tmp_path):
    """axe finds nothing, no content overflows. The folder in NOCTULE_PICTURES receives the pictures."""
    axe = pytest.importorskip("axe_playwright_python")
    script = (pathlib.Path(axe.__file__).parent / "axe.min.js").read_text()
    site, job = site_with_job(daemon, tmp_path)
    for width, height, dark in ((1440, 1000, False), (1440, 1000, True), (390, 844, False), (390, 844, True)):
        with browser(tmp_path / f"profile{width}{dark}", width, height, dark) as page:
            open_job(page, site, job)
            page.wait("document.querySelector('.viewer').dataset.shown", "the plane")
            page.evaluate(script + "; 0")
            found = page.evaluate("axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}).then(r => "
                                  "r.violations.map(v => v.id + ': ' + v.nodes.map(n => n.target.join(' ')).slice(0, 5).join(', ')))")
            if pictures := os.environ.get("NOCTULE_PICTURES"):
                full = page.evaluate("document.documentElement.scrollHeight")
                page.call("Emulation.setDeviceMetricsOverride", width=width, height=min(full, 4000), deviceScaleFactor=1, mobile=False)
                page.wait("document.querySelector('.viewer').dataset.shown", "the plane")
                page.picture(pathlib.Path(pictures) / f"job-{width}{'-dark' if dark else ''}.png")
            assert found == [], found
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert errors_of(page) == []


def test_a_picture_is_drawn_as_the_script_draws_it(daemon, tmp_path):
    """The PNG and the script show the same plane: the same way round, and greys that agree."""
    site, job = site_with_job(daemon, tmp_path)
    import io
    data = site.get(f"api/v1/jobs/{job['job']}/planes/sag/20.png")[1]
    picture = np.asarray(PIL.Image.open(io.BytesIO(data)).convert("L")).astype(float)
    with browser(tmp_path / "profile") as page:
        open_job(page, site, job, "&view=sag&at=20")
        shown(page, "sag/20")
        page.evaluate("document.querySelectorAll('.v-segment input').forEach(b => b.click())")
        drawn = PIL.Image.fromarray(canvas(page).astype(np.uint8)).convert("L")
    scale = min(drawn.width / picture.shape[1], drawn.height / picture.shape[0])
    w, h = round(picture.shape[1] * scale), round(picture.shape[0] * scale)
    left, top = (drawn.width - w) // 2, (drawn.height - h) // 2
    other = np.asarray(drawn.crop((left, top, left + w, top + h)).resize(picture.shape[::-1])).astype(float)
    assert np.corrcoef(other.ravel(), picture.ravel())[0, 1] > 0.9
