// The script of the local web UI. Every page works without it.

import { enhance, pickAll } from "./forms.js";
import { toast } from "./fragments.js";
import { live } from "./live.js";
import "./keys.js";

enhance();
live();
equip(document);

const dialog = document.getElementById("dialog");

document.addEventListener("click", (event) => {
  if (event.target.closest("dialog [data-close]")) {
    event.preventDefault();
    dialog.close();
  }
  if (event.target === dialog) dialog.close(); // beside it
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

dialog?.addEventListener("close", () => {
  const toasts = document.getElementById("toasts");
  document.body.append(toasts);
});

// A database's name must be typed before the button works.
document.addEventListener("input", (event) => {
  const must = event.target.dataset.must;
  if (must !== undefined) event.target.setCustomValidity(event.target.value.trim() === must ? "" : `Type ${must} to continue.`);
});

// equip adds elements that only work with script: buttons that copy commands, and the box that selects all rows.
function equip(root) {
  for (const box of root.querySelectorAll(".command:not(:has(button))")) {
    const button = Object.assign(document.createElement("button"), { className: "small quiet", textContent: "Copy", type: "button" });
    button.setAttribute("aria-label", "Copy " + box.querySelector("code").textContent);
    box.append(button);
  }
  for (const box of root.querySelectorAll("#pick-all")) box.hidden = false;
}

document.addEventListener("placed", (event) => equip(event.detail));

document.addEventListener("click", async (event) => {
  const button = event.target.closest(".command button, [data-copy]");
  if (!button) return;
  event.preventDefault();
  const code = button.parentElement.querySelector("code");
  try {
    await navigator.clipboard.writeText(button.href ?? code.textContent);
    toast("Copied.", true);
  } catch {
    if (code) getSelection().selectAllChildren(code);
    toast("The browser does not let this page copy. " + (code ? "It is selected: press Ctrl-C." : button.href));
  }
});

document.addEventListener("change", (event) => {
  if (event.target.id === "pick-all") pickAll(event.target.checked);
});
