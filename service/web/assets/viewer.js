/*
 * viewer.js - the slice viewer of a job. Requests planes of the volume and its masks (service/web/viewer/web_planes.h), and draws
 * them with window and outlines in the browser. Without this script the page shows one plane as a PNG.
 */
"use strict";
(function () {
  var VIEWS = [["ax", "Axial"], ["cor", "Coronal"], ["sag", "Sagittal"]];
  /* Center and width; those of CT are in Hounsfield units. */
  var CT = [["Brain", 40, 80], ["Subdural", 75, 215], ["Soft tissue", 40, 400], ["Lung", -600, 1500], ["Bone", 500, 2000]];
  var CACHED = 48; /* planes */

  function make(parent, tag, attributes, text) {
    var element = document.createElement(tag);
    Object.keys(attributes || {}).forEach(function (name) { element.setAttribute(name, attributes[name]); });
    if (text) element.textContent = text;
    if (parent) parent.appendChild(element);
    return element;
  }

  /* ------------------------------------------------------------------------------------ planes ---- */

  /* Finds the columns and rows outside of which a layer has no voxel. */
  function bound(plane, layer) {
    layer.left = plane.columns; layer.right = 0; layer.top = plane.rows; layer.bottom = 0;
    for (var i = 0; i < layer.bits.length; i++)
      if (layer.bits[i]) {
        var y = Math.floor(i / plane.pitch), x = i % plane.pitch * 8;
        layer.left = Math.min(layer.left, x);
        layer.right = Math.max(layer.right, Math.min(x + 8, plane.columns));
        layer.top = Math.min(layer.top, y);
        layer.bottom = Math.max(layer.bottom, y + 1);
      }
    return layer;
  }

  function parse(buffer) {
    var view = new DataView(buffer), columns = view.getUint32(16, true), rows = view.getUint32(20, true);
    var head = view.getUint32(8, true), count = view.getUint32(28, true), layers = view.getUint32(36, true);
    var pixels = columns * rows, pitch = (columns + 7) >> 3, plane = {
      file: view.getUint32(12, true), columns: columns, rows: rows, pitch: pitch, along: view.getUint32(32, true),
      place: new TextDecoder().decode(new Uint8Array(buffer, 40, 32)).replace(/\0+$/, ""),
      stored: new (view.getUint32(24, true) ? Int16Array : Uint16Array)(buffer, head, pixels), rescales: [], layers: []
    };
    for (var i = 0; i < count; i++)
      plane.rescales.push([view.getFloat64(72 + 16 * i, true), view.getFloat64(80 + 16 * i, true)]);
    for (i = 0; i < layers; i++)
      plane.layers.push(bound(plane, {
        segment: view.getUint32(72 + 16 * count + 4 * i, true),
        bits: new Uint8Array(buffer, head + 2 * pixels + i * rows * pitch, rows * pitch)
      }));
    return plane;
  }

  function valueAt(plane, x, y) {
    var rescale = plane.rescales[plane.along === 1 ? y : plane.along === 2 ? x : 0];
    return rescale[0] * plane.stored[y * plane.columns + x] + rescale[1];
  }

  /* Loads planes: the one that is wanted, then its neighbours. One request at a time and one ahead, as the server allows. */
  function Loader(base, onPlane, onFailure) {
    var kept = new Map(), wanted = null, ahead = [], running = 0;
    function take(key) {
      var plane = kept.get(key);
      if (plane) { kept.delete(key); kept.set(key, plane); }
      return plane;
    }
    function load(key, tries) {
      running++;
      fetch(base + "/" + key, { credentials: "same-origin" }).then(function (answer) {
        if (answer.status === 429) throw 429;
        if (!answer.ok) return answer.text().then(function (text) { throw new Error(text.trim() || "status " + answer.status); });
        return answer.arrayBuffer();
      }).then(function (buffer) {
        running--;
        kept.set(key, parse(buffer));
        if (kept.size > CACHED) kept.delete(kept.keys().next().value);
        if (key === wanted) { wanted = null; onPlane(key, kept.get(key)); }
        next();
      }).catch(function (why) {
        running--;
        if (why === 429 && key === wanted) setTimeout(function () { if (key === wanted) load(key, tries + 1); else next(); }, Math.min(100 * (tries + 1), 1000));
        else if (key === wanted) { wanted = null; onFailure(why.message || "it is not known why"); }
      });
    }
    function next() {
      if (wanted && running === 0) load(wanted, 0);
      else if (!wanted && running === 0)
        while (ahead.length) {
          var key = ahead.shift();
          if (!kept.has(key)) { load(key, 0); break; }
        }
    }
    return {
      want: function (key, neighbours) {
        var plane = take(key);
        ahead = neighbours;
        wanted = plane ? null : key;
        if (plane) onPlane(key, plane);
        next();
      }
    };
  }

  /* ----------------------------------------------------------------------------------- drawing ---- */

  function drawGrey(plane, low, high, inverted) {
    var canvas = make(null, "canvas", { width: plane.columns, height: plane.rows }), context = canvas.getContext("2d");
    var image = context.createImageData(plane.columns, plane.rows), to = new Uint32Array(image.data.buffer);
    var scale = 255 / Math.max(high - low, 1e-9), n = 0;
    for (var y = 0; y < plane.rows; y++)
      for (var x = 0; x < plane.columns; x++, n++) {
        var level = (valueAt(plane, x, y) - low) * scale;
        level = level < 0 ? 0 : level > 255 ? 255 : level | 0;
        if (inverted) level = 255 - level;
        to[n] = 0xff000000 | level * 0x010101;
      }
    context.putImageData(image, 0, 0);
    return canvas;
  }

  function drawFill(plane, layer, rgb) {
    var canvas = make(null, "canvas", { width: plane.columns, height: plane.rows }), context = canvas.getContext("2d");
    var image = context.createImageData(plane.columns, plane.rows), to = new Uint32Array(image.data.buffer);
    var color = 0xff000000 | rgb[2] << 16 | rgb[1] << 8 | rgb[0];
    for (var y = layer.top; y < layer.bottom; y++)
      for (var x = layer.left; x < layer.right; x++)
        if (layer.bits[y * plane.pitch + (x >> 3)] >> (x & 7) & 1) to[y * plane.columns + x] = color;
    context.putImageData(image, 0, 0);
    return canvas;
  }

  /* Adds the border of a layer to the path: one line per run of edges between a voxel inside and one outside. */
  function tracePath(plane, layer, context, box) {
    var sx = box.width / plane.columns, sy = box.height / plane.rows;
    function has(x, y) {
      return x >= 0 && y >= 0 && x < plane.columns && y < plane.rows && layer.bits[y * plane.pitch + (x >> 3)] >> (x & 7) & 1;
    }
    for (var y = layer.top; y <= layer.bottom; y++)
      for (var x = layer.left, from = -1; x <= layer.right; x++) {
        var edge = x < layer.right && has(x, y) !== has(x, y - 1);
        if (edge && from < 0) from = x;
        if (!edge && from >= 0) {
          context.moveTo(box.left + from * sx, box.top + y * sy);
          context.lineTo(box.left + x * sx, box.top + y * sy);
          from = -1;
        }
      }
    for (x = layer.left; x <= layer.right; x++)
      for (y = layer.top, from = -1; y <= layer.bottom; y++) {
        edge = y < layer.bottom && has(x, y) !== has(x - 1, y);
        if (edge && from < 0) from = y;
        if (!edge && from >= 0) {
          context.moveTo(box.left + x * sx, box.top + from * sy);
          context.lineTo(box.left + x * sx, box.top + y * sy);
          from = -1;
        }
      }
  }

  /* ------------------------------------------------------------------------------------ viewer ---- */

  function Viewer(root, about) {
    var base = root.dataset.planes, unit = root.dataset.unit || "", state = {
      view: about.planes[root.dataset.view] ? root.dataset.view : "ax", at: {}, low: about.window.low, high: about.window.high,
      fill: false, opacity: 0.35, overlay: true, shown: about.segments.map(function () { return true; })
    };
    var plane = null, box = null, parts = {}, single = about.planes.ax.count === 1; /* of one slice, other views are a line */
    if (single) state.view = "ax";
    VIEWS.forEach(function (view) { state.at[view[0]] = Math.floor((about.planes[view[0]].count - 1) / 2); });
    if (root.dataset.at) state.at[state.view] = Math.min(+root.dataset.at, about.planes[state.view].count - 1);

    function withUnit(text) { return text + (unit ? " " + unit : ""); }
    /* Rounds to two digits of the largest error of a value. */
    function round(value) {
      var digits = Math.max(0, 1 - Math.floor(Math.log10(about.error_max)));
      return (+value.toFixed(Math.min(digits, 20))).toString();
    }
    function group(parent, name) {
      var set = make(parent, "fieldset");
      make(set, "legend", {}, name);
      return set;
    }
    function button(parent, text, pressed, onClick) {
      var made = make(parent, "button", { type: "button", "aria-pressed": String(pressed) }, text);
      made.addEventListener("click", onClick);
      return made;
    }
    function press(buttons, pressed) {
      buttons.forEach(function (each) { each.setAttribute("aria-pressed", String(each === pressed)); });
    }

    function build() {
      var bar = make(null, "div", { class: "v-bar" }), set;
      set = group(single ? null : bar, "Plane");
      parts.views = VIEWS.map(function (view) {
        return button(set, view[1], view[0] === state.view, function () { state.view = view[0]; press(parts.views, this); show(); });
      });
      set = group(bar, "Window");
      var presets = [["As previewed", (about.window.low + about.window.high) / 2, about.window.high - about.window.low]];
      if (about.unit === "[hnsf'U]") presets = presets.concat(CT);
      parts.presets = presets.map(function (preset, i) {
        return button(set, preset[0], i === 0, function () { setWindow(preset[1], preset[2]); press(parts.presets, this); });
      });
      [["center", "Center"], ["width", "Width"]].forEach(function (each) {
        var label = make(set, "label", { class: "v-number" }, each[1] + " ");
        parts[each[0]] = make(label, "input", { type: "number", step: "any" });
        parts[each[0]].addEventListener("change", function () {
          if (isFinite(parts.center.valueAsNumber) && parts.width.valueAsNumber > 0)
            setWindow(parts.center.valueAsNumber, parts.width.valueAsNumber);
          press(parts.presets, null);
        });
      });
      if (about.segments.length) {
        set = group(bar, "Overlay");
        parts.styles = ["Outline", "Fill"].map(function (text, i) {
          return button(set, text, i === 0, function () { state.fill = i === 1; press(parts.styles, this); draw(); });
        });
        var opacity = make(set, "input", { type: "range", min: "5", max: "100", value: "35", "aria-label": "Opacity of the fill in percent" });
        opacity.addEventListener("input", function () { state.opacity = opacity.value / 100; draw(); });
        set = group(bar, "Segments");
        parts.segments = about.segments.map(function (segment, i) {
          var label = make(set, "label", { class: "v-segment" }), box = make(label, "input", { type: "checkbox" });
          box.checked = true;
          box.addEventListener("change", function () { state.shown[i] = box.checked; draw(); });
          make(label, "span", { class: "v-swatch" }).style.background = "rgb(" + segment.rgb.join(",") + ")";
          make(label, "bdi", {}, segment.label);
          return box;
        });
      }
      parts.stage = make(null, "div", {
        class: "v-stage", tabindex: "0", role: "application", "aria-label":
          single ? "Image. f fill, o overlay. Drag with the mouse to change the window" :
          "Slice. Arrow keys change the slice, Page Up and Page Down by ten; x, y, z the plane; f fill, o overlay. " +
          "Drag with the mouse to change the window, with a finger to change the slice"
      });
      parts.canvas = make(parts.stage, "canvas", { "aria-hidden": "true" });
      parts.edges = ["left", "right", "top", "bottom"].map(function (edge) {
        return make(parts.stage, "span", { class: "v-edge v-" + edge, "aria-hidden": "true" });
      });
      parts.told = make(parts.stage, "span", { class: "v-told" });
      parts.value = make(parts.stage, "span", { class: "v-value", "aria-hidden": "true" });
      var foot = make(null, "div", { class: "v-foot" });
      parts.where = make(foot, "output", { "aria-live": "polite" });
      parts.slider = make(single ? null : foot, "input", { type: "range", min: "0", step: "1", "aria-label": "Slice" });
      parts.slider.addEventListener("input", function () { go(+parts.slider.value); });
      if (about.error_max > 0)
        make(foot, "span", { class: "v-rounded" }, "Values are rounded to \u00b1" + withUnit(round(about.error_max)) + " at most");
      root.replaceChildren(bar, parts.stage, foot);
      root.classList.add("v-live");
      setNumbers();
    }

    function setNumbers() {
      var width = state.high - state.low, digits = width >= 20 ? 0 : width >= 2 ? 1 : 3;
      parts.center.value = ((state.low + state.high) / 2).toFixed(digits);
      parts.width.value = width.toFixed(digits);
    }
    function setWindow(center, width) {
      width = Math.max(width, 1e-6);
      state.low = center - width / 2;
      state.high = center + width / 2;
      setNumbers();
      draw();
    }
    function go(at) {
      var count = about.planes[state.view].count;
      at = Math.max(0, Math.min(count - 1, at));
      if (at === state.at[state.view]) return;
      state.at[state.view] = at;
      show();
    }

    var loader = Loader(base, function (key, got) {
      if (got.file !== about.file) { fail("The results were made again. Reload the page."); return; }
      plane = got;
      draw();
    }, function (why) { fail("This slice could not be read: " + why); });

    function fail(text) {
      plane = null;
      parts.where.textContent = text;
      root.dataset.failed = text;
      draw();
    }

    function show() {
      var at = state.at[state.view], count = about.planes[state.view].count;
      var near = [at + 1, at - 1, at + 2].filter(function (i) { return i >= 0 && i < count; });
      parts.slider.max = count - 1;
      parts.slider.value = at;
      loader.want(state.view + "/" + at, near.map(function (i) { return state.view + "/" + i; }));
    }

    /* Fits the plane into the stage, with true proportions. */
    function fit(width, height) {
      var of = about.planes[state.view], w = plane.columns * (of.pixel_mm[0] || 1), h = plane.rows * (of.pixel_mm[1] || 1);
      var scale = Math.min(width / w, height / h);
      return { width: w * scale, height: h * scale, left: (width - w * scale) / 2, top: (height - h * scale) / 2 };
    }

    function draw() {
      var ratio = window.devicePixelRatio || 1, of = about.planes[state.view], context = parts.canvas.getContext("2d");
      parts.canvas.width = Math.round(parts.stage.clientWidth * ratio);
      parts.canvas.height = Math.round(parts.stage.clientHeight * ratio);
      context.fillStyle = "#000";
      context.fillRect(0, 0, parts.canvas.width, parts.canvas.height);
      parts.edges.forEach(function (edge, i) { edge.textContent = plane ? of.edges[i] : ""; });
      if (!plane) return;
      box = fit(parts.canvas.width, parts.canvas.height);
      context.imageSmoothingQuality = "high";
      context.drawImage(drawGrey(plane, state.low, state.high, about.monochrome1), box.left, box.top, box.width, box.height);
      plane.layers.forEach(function (layer) {
        if (!state.overlay || !state.shown[layer.segment]) return;
        var rgb = about.segments[layer.segment].rgb;
        if (state.fill) {
          context.imageSmoothingEnabled = false;
          context.globalAlpha = state.opacity;
          context.drawImage(drawFill(plane, layer, rgb), box.left, box.top, box.width, box.height);
          context.globalAlpha = 1;
          context.imageSmoothingEnabled = true;
        } else {
          context.beginPath();
          tracePath(plane, layer, context, box);
          context.strokeStyle = "rgb(" + rgb.join(",") + ")";
          context.lineWidth = 1.5 * ratio;
          context.lineCap = "square";
          context.stroke();
        }
      });
      var name = VIEWS.filter(function (view) { return view[0] === state.view; })[0][1];
      parts.where.textContent = (single ? "The only slice" : name + " " + (state.at[state.view] + 1) + " of " + of.count) +
        (plane.place ? ", " + plane.place : "");
      parts.told.textContent = withUnit("C " + parts.center.value + "  W " + parts.width.value);
      delete root.dataset.failed;
      root.dataset.shown = state.view + "/" + state.at[state.view];
    }

    /* ------------------------------------------------------------------------ keys and pointers ---- */

    function look(view) { if (!single) parts.views[view].click(); }
    function toggleOverlay() { state.overlay = !state.overlay; draw(); }
    /* Keys work while the stage has the focus, so that they take none from the rest of the page. */
    function onKey(event) {
      var at = state.at[state.view], keys = {
        ArrowUp: function () { go(at + 1); }, ArrowRight: function () { go(at + 1); }, ArrowDown: function () { go(at - 1); },
        ArrowLeft: function () { go(at - 1); }, PageUp: function () { go(at + 10); }, PageDown: function () { go(at - 10); },
        Home: function () { go(0); }, End: function () { go(about.planes[state.view].count - 1); },
        z: function () { look(0); }, y: function () { look(1); }, x: function () { look(2); },
        f: function () { if (parts.styles) parts.styles[state.fill ? 0 : 1].click(); }, o: toggleOverlay
      };
      if (event.ctrlKey || event.altKey || event.metaKey || !keys[event.key]) return;
      keys[event.key]();
      event.preventDefault();
    }

    function onWheel(event) {
      if (event.ctrlKey || single) return; /* zooms or scrolls the page */
      event.preventDefault();
      go(state.at[state.view] + (event.deltaY > 0 ? -1 : 1));
    }

    var pressed = new Map(), start = null;
    function begin() {
      var points = Array.from(pressed.values());
      start = points.length && {
        x: points[0].x, y: points[0].y, at: state.at[state.view], center: (state.low + state.high) / 2, width: state.high - state.low,
        windows: points.length > 1 || points[0].mouse
      };
    }
    function onDown(event) {
      if (event.button !== 0) return;
      pressed.set(event.pointerId, { x: event.clientX, y: event.clientY, mouse: event.pointerType === "mouse" });
      parts.stage.setPointerCapture(event.pointerId);
      parts.stage.focus({ preventScroll: true });
      begin();
    }
    function onMove(event) {
      tell(event);
      if (!start || !pressed.has(event.pointerId)) return;
      pressed.set(event.pointerId, { x: event.clientX, y: event.clientY, mouse: event.pointerType === "mouse" });
      var first = pressed.values().next().value, size = Math.max(parts.stage.clientHeight, 1);
      if (start.windows) {
        setWindow(start.center + (first.y - start.y) / size * 2 * (about.window.high - about.window.low),
          Math.max(start.width * Math.exp((first.x - start.x) / size * 2), 1e-3));
        press(parts.presets, null);
      } else {
        go(start.at + Math.round((start.y - first.y) / size * Math.min(about.planes[state.view].count, 120)));
      }
    }
    function onUp(event) { pressed.delete(event.pointerId); begin(); }

    /* Shows the value below the pointer. */
    function tell(event) {
      var ratio = window.devicePixelRatio || 1, rect = parts.canvas.getBoundingClientRect();
      parts.value.textContent = "";
      if (!plane || !box || event.pointerType !== "mouse") return;
      var x = Math.floor(((event.clientX - rect.left) * ratio - box.left) / box.width * plane.columns);
      var y = Math.floor(((event.clientY - rect.top) * ratio - box.top) / box.height * plane.rows);
      if (x >= 0 && y >= 0 && x < plane.columns && y < plane.rows)
        parts.value.textContent = withUnit(about.error_max > 0
          ? round(valueAt(plane, x, y)) + " \u00b1 " + round(about.error_max) : +valueAt(plane, x, y).toPrecision(5));
    }

    build();
    parts.stage.addEventListener("keydown", onKey);
    parts.stage.addEventListener("wheel", onWheel, { passive: false });
    parts.stage.addEventListener("pointerdown", onDown);
    parts.stage.addEventListener("pointermove", onMove);
    parts.stage.addEventListener("pointerup", onUp);
    parts.stage.addEventListener("pointercancel", onUp);
    window.addEventListener("resize", draw);
    show();
  }

  function begin(root) {
    fetch(root.dataset.planes, { credentials: "same-origin" }).then(function (answer) {
      if (answer.status === 429) { setTimeout(begin, 500, root); return; }
      if (!answer.ok) throw new Error("status " + answer.status);
      return answer.json().then(function (about) { Viewer(root, about); });
    }).catch(function (why) { root.dataset.failed = why.message; });
  }
  document.querySelectorAll("[data-planes]").forEach(begin);
})();
