// The script of the local web UI. Every page works without it.

import "./copy.js";
import { enhance, pickAll } from "./forms.js";
import { live } from "./live.js";
import "./keys.js";

enhance();
live();
showPickAll(document);

const dialog = document.getElementById("dialog");

document.addEventListener("click", (event) => {
  if (event.target.closest("dialog [data-close]")) {
    event.preventDefault();
    dialog.close();
  }
  if (event.target === dialog) dialog.close(); // a click outside it
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

// showPickAll shows the box that selects all rows, which only works with JavaScript.
function showPickAll(root) {
  for (const box of root.querySelectorAll("#pick-all")) box.hidden = false;
}

document.addEventListener("placed", (event) => showPickAll(event.detail));

document.addEventListener("change", (event) => {
  if (event.target.id === "pick-all") pickAll(event.target.checked);
});
