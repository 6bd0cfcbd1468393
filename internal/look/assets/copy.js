// Copies a command or a link. Without JavaScript the buttons stay hidden.

import { toast } from "./fragments.js";

function show(root) {
  for (const button of root.querySelectorAll("button[data-copy]")) button.hidden = false;
}

show(document);
document.addEventListener("placed", (event) => show(event.detail));

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  event.preventDefault();
  const code = button.parentElement.querySelector("code");
  try {
    await navigator.clipboard.writeText(button.dataset.copy || button.href);
    toast("Copied.", true);
  } catch {
    if (code) getSelection().selectAllChildren(code);
    toast("The browser does not let this page copy. " + (code ? "The text is selected: press Ctrl-C." : button.href));
  }
});
