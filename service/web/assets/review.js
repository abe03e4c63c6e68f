/* review.js - keys of the Review page: j next, k previous, a accept, r reason. Keys do not act in a text field. The page works without scripts. */
"use strict";
(() => {
    const box = document.createElement("label");
    const on = document.createElement("input");
    const store = "noctule-review-keys";
    const form = document.querySelector(".decision section:last-of-type");
    if (!form)
        return;
    on.type = "checkbox";
    on.checked = (() => { try { return localStorage.getItem(store) !== "off"; } catch { return true; } })();
    on.addEventListener("change", () => { try { localStorage.setItem(store, on.checked ? "on" : "off"); } catch { /* private mode */ } });
    box.className = "keys small";
    box.append(on, " Keys: ");
    for (const [key, word] of [["j", "next"], ["k", "previous"], ["a", "accept"], ["r", "reason"]]) {
        const mark = document.createElement("kbd");
        mark.textContent = key;
        box.append(mark, ` ${word} `);
    }
    form.append(box);

    const acts = {
        j: () => document.querySelector("a[rel=next]")?.click(),
        k: () => document.querySelector("a[rel=prev]")?.click(),
        a: () => document.querySelector("button[data-key=a]")?.click(),
        r: () => document.querySelector("input[data-key=r]")?.focus(),
    };
    document.addEventListener("keydown", (event) => {
        const at = event.target;
        const types = at instanceof HTMLElement && (at.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName) && at !== on);
        if (!on.checked || types || event.ctrlKey || event.altKey || event.metaKey || event.repeat || !acts[event.key])
            return;
        event.preventDefault();
        acts[event.key]();
    });
})();
