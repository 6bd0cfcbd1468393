// Keyboard shortcuts for the review of rules. They press the buttons of the column or group that
// has the focus, and then move the focus to the next column or group that is not decided yet.

let from = ""; // the column or group that was decided with a key

const rows = () => [...document.querySelectorAll("#review [data-review]")];
const focusOn = (row) => row?.querySelector("[id$='-main']")?.focus();

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("dialog")) return;
  if (!event.target.closest?.("#review")) return;
  const select = event.target.closest("select");
  const key = event.key.toLowerCase();
  if (key === "s" && !select) return press(event, null, document.getElementById("save-rules"));
  const row = event.target.closest("[data-review]");
  if (!row) return;
  if (select) {
    if (event.key === "Enter") press(event, row, select.parentElement.querySelector("button"));
    if (event.key === "Escape") leave(event, row);
    return;
  }
  const all = rows();
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    focusOn(all[all.indexOf(row) + (event.key === "ArrowDown" ? 1 : -1)]);
    return;
  }
  const target = /^[a-z]$/.test(key) && row.querySelector(`[data-key~="${key}"]`);
  if (!target) return;
  if (target.tagName === "SELECT") {
    event.preventDefault();
    target.closest("details").open = true;
    target.focus();
    return;
  }
  press(event, key === "u" ? null : row, target);
});

function leave(event, row) {
  event.preventDefault();
  event.stopPropagation();
  row.querySelector("details")?.removeAttribute("open");
  focusOn(row);
}

// press sends the form with a button and remembers the button's column or group.
function press(event, row, button) {
  event.preventDefault();
  if (!button) return;
  from = row?.dataset.review ?? "";
  button.form.requestSubmit(button);
}

// After a decision on a column, the focus moves to the next undecided column or group, and after a
// decision on a group to the next undecided group.
document.addEventListener("placed", (event) => {
  if (event.detail.id !== "review" || !from) return;
  const all = rows();
  const at = all.findIndex((r) => r.dataset.review === from);
  const group = from.startsWith("g");
  from = "";
  if (at < 0 || "open" in all[at].dataset) return;
  const to = all.slice(at + 1).find((r) => "open" in r.dataset && (!group || r.dataset.review.startsWith("g")));
  if (to) focusOn(to);
  else (document.getElementById("page-next") ?? document.getElementById("save-rules"))?.focus();
});
