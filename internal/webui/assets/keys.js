// Keyboard shortcuts: the search (/), the menus (arrows), and the window that finds snapshots,
// targets and actions (Ctrl-K).

const items = (box) => [...box.querySelectorAll("a[href], button")].filter((e) => e.offsetParent);

// step moves the focus in a list if the key is an arrow key, Home or End, and returns whether it did.
function step(event, list, at) {
  const to = { ArrowDown: at + 1, ArrowUp: at < 0 ? list.length - 1 : at - 1, Home: 0, End: list.length - 1 }[event.key];
  if (to === undefined || !list.length) return false;
  event.preventDefault();
  list[(to + list.length) % list.length].focus();
  return true;
}

function inMenu(event, menu) {
  const summary = menu.querySelector("summary");
  if (event.key === "Escape") {
    menu.open = false;
    summary.focus();
  }
  if (!["ArrowDown", "ArrowUp", "Home", "End"].includes(event.key)) return;
  if (event.target === summary && event.key !== "ArrowDown" && !menu.open) return;
  menu.open = true;
  const list = items(menu.querySelector(".items"));
  step(event, list, list.indexOf(event.target));
}

function inFinder(event) {
  const input = document.getElementById("find");
  const list = items(document.getElementById("found"));
  if (event.target === input) {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") step(event, list, -1);
  } else if (event.key === "ArrowUp" && event.target === list[0]) {
    event.preventDefault();
    input.focus();
  } else if (!step(event, list, list.indexOf(event.target)) && event.key.length === 1 && event.key !== " " && !event.ctrlKey && !event.metaKey && !event.altKey) {
    input.focus(); // the letter is typed there
  }
}

const typing = (target) => target.closest("input, select, textarea, dialog");

document.addEventListener("keydown", (event) => {
  if (!event.target.closest) return;
  const menu = event.target.closest("details.menu");
  if (menu && !typing(event.target)) inMenu(event, menu);
  if (event.target.closest("#dialog, main")?.querySelector("#finder")) inFinder(event);
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k" && !event.shiftKey && !event.altKey) {
    event.preventDefault();
    if (!document.querySelector("dialog[open]")) document.getElementById("open-find")?.click();
  }
  if (event.key === "/" && !typing(event.target) && !event.ctrlKey && !event.metaKey) {
    const field = document.getElementById("q");
    if (!field) return;
    event.preventDefault();
    field.focus();
  }
});
