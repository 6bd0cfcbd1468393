// The script of the local web UI. Every page works without it.

import { enhance } from "./forms.js";
import { live } from "./live.js";

enhance();
live();

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

document.addEventListener("keydown", (event) => {
  const menu = event.target.closest?.("details.menu[open]");
  if (event.key === "Escape" && menu) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
  if (event.key === "/" && !event.target.closest("input, select, textarea, dialog") && !event.ctrlKey && !event.metaKey) {
    const search = document.getElementById("q");
    if (search) {
      event.preventDefault();
      search.focus();
    }
  }
});

// A database's name must be typed before the button works.
document.addEventListener("input", (event) => {
  const must = event.target.dataset.must;
  if (must !== undefined) event.target.setCustomValidity(event.target.value.trim() === must ? "" : `Type ${must} to continue.`);
});
