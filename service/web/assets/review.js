/* review.js - keys of the Review page: j next, k previous, a accept, r reason, arrows step slices. Keys do not act in a text field. The page
   works without scripts. */
"use strict";
(() => {
    const box = document.createElement("label");
    const on = document.createElement("input");
    const store = "noctule-review-keys";
    const form = document.querySelector(".decision .forms");
    if (!form)
        return;
    on.type = "checkbox";
    on.checked = (() => { try { return localStorage.getItem(store) !== "off"; } catch { return true; } })();
    on.addEventListener("change", () => { try { localStorage.setItem(store, on.checked ? "on" : "off"); } catch { /* private mode */ } });
    box.className = "keys small";
    box.append(on, " Keys: ");
    for (const [key, word] of [["j", "next"], ["k", "previous"], ["a", "accept"], ["r", "reason"], ["\u2191 \u2193", "slices"]]) {
        const mark = document.createElement("kbd");
        mark.textContent = key;
        box.append(mark, ` ${word} `);
    }
    form.append(box);

    /* Leaves the page once: another key before the next page is there must not send the form again. */
    let leaves = false;
    const leave = (by) => {
        const link = document.querySelector(by);
        leaves = link !== null;
        link?.click();
    };
    addEventListener("pageshow", () => { leaves = false; });
    const acts = {
        j: () => leave("a[rel=next]"),
        k: () => leave("a[rel=prev]"),
        a: () => leave("button[data-key=a]"),
        r: () => document.querySelector("input[data-key=r]")?.focus(),
    };
    const stage = () => document.querySelector(".v-stage"); /* which the script of the viewer adds */
    for (const key of ["ArrowUp", "ArrowDown"])
        acts[key] = () => stage().dispatchEvent(new KeyboardEvent("keydown", { key }));
    document.addEventListener("keydown", (event) => {
        const at = event.target;
        const types = at instanceof HTMLElement && (at.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName) && at !== on);
        if (leaves || !on.checked || types || event.ctrlKey || event.altKey || event.metaKey || !acts[event.key])
            return;
        const steps = event.key.startsWith("Arrow");
        if (steps ? !stage() || stage().contains(at) : event.repeat) /* the viewer has its own keys */
            return;
        event.preventDefault();
        acts[event.key]();
    });
})();
