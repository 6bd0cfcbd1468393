// Copies the text of a command or a link. Without script the buttons stay hidden.

for (const button of document.querySelectorAll("button[data-copy]")) button.hidden = false;
document.addEventListener("placed", (event) => {
  for (const button of event.detail.querySelectorAll("button[data-copy]")) button.hidden = false;
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  const words = button.textContent;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Press Ctrl-C to copy";
    getSelection().selectAllChildren(button.closest(".command").querySelector("code"));
  }
  setTimeout(() => (button.textContent = words), 2000);
});
