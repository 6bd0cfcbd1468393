// Requests parts of pages and inserts them. The server sends one or more
// elements with an id; each replaces the page's element of that id, unless the
// page's element is newer.

// about is the address of what the dialog shows or is about to show.
let about = "";

// request sends the request of a form or link, and applies the response. It returns
// whether the server accepted it. If init.opens is set, the response is for the dialog.
export async function request(url, init = {}) {
  if (init.opens) about = url;
  const mine = about;
  let response, html;
  try {
    response = await fetch(url, { ...init, headers: { ...init.headers, Fragment: "1" } });
    html = await response.text();
  } catch {
    toast(document.getElementById("toasts")?.dataset.unreachable);
    return false;
  }
  if (init.stale?.()) return false;
  if (response.redirected && html.startsWith("<!doctype")) { // such as to the sign-in page
    location.assign(response.url);
    return false;
  }
  if (response.ok && init.method === "post") for (const old of document.querySelectorAll(".toast.bad")) old.remove();
  if (!apply(html, mine === about) && !response.ok) toast(document.getElementById("toasts")?.dataset.unreachable); // such as when overloaded
  return response.ok;
}

// apply puts the elements of a response in place, and returns whether there are any. Table rows
// come inside a template element, because browsers drop rows that are outside a table. If the dialog
// shows something else by now, such as another snapshot, it stays; only questions replace it.
export function apply(html, current = true) {
  const parsed = document.createElement("template");
  parsed.innerHTML = html;
  const any = parsed.content.childElementCount > 0;
  const late = current ? null : parsed.content.querySelector("#dialog-body:not(:has(#confirm))");
  if (late) {
    late.remove();
    const problem = late.querySelector("[role=alert]");
    if (problem) toast(problem.textContent);
  }
  placeAll(parsed.content);
  return any;
}

function placeAll(content) {
  for (const fresh of [...content.children]) {
    if (fresh.tagName === "TEMPLATE") {
      placeAll(fresh.content);
    } else if (fresh.classList.contains("toast")) {
      showToast(fresh);
    } else {
      place(fresh);
    }
  }
}

// shown holds the newest revision of every fragment that was ever shown, by id. It
// includes fragments that were removed.
const shown = new Map();

// newest returns the revision of what an element shows: its own, that of the
// fragment around it, or that of a newer fragment inside it.
function newest(element) {
  const all = [element.closest("[data-revision]"), ...element.querySelectorAll("[data-revision]")];
  return all.reduce((best, e) => (e && older(best, e.dataset.revision) ? e.dataset.revision : best), undefined);
}

// older reports whether revision a is older than b. Revisions of different runs of the
// server cannot be compared.
function older(a, b) {
  if (!a || !b) return !a && Boolean(b);
  const [runA, a1] = a.split("."), [runB, b1] = b.split(".");
  return runA === runB && Number(a1) < Number(b1);
}

// outdated reports whether something newer than this fragment was shown.
function outdated(fresh, old) {
  const revision = fresh.dataset.revision;
  if (!revision) return false;
  return older(revision, shown.get(fresh.id)) || (old ? older(revision, newest(old)) : revision === shown.get(fresh.id));
}

function place(fresh) {
  const page = document.getElementById("page-body"); // exists if the content of a dialog is shown as a page of its own
  if (page && fresh.id === "dialog-body" && !document.querySelector("dialog[open]") && !fresh.querySelector("#confirm")) {
    fresh.id = page.id;
    fresh.className = page.className;
  }
  const old = document.getElementById(fresh.id);
  if (outdated(fresh, old)) {
    if (fresh.id === "listing") document.dispatchEvent(new CustomEvent("listing")); // request it again
    return;
  }
  if (fresh.dataset.revision) shown.set(fresh.id, fresh.dataset.revision);
  if (old) {
    if (old.dataset.revision && old.dataset.revision === fresh.dataset.revision) return;
    if (old.dataset.revision) old.dataset.revision = fresh.dataset.revision;
    if (old.isEqualNode(fresh)) return;
    const inside = old.contains(document.activeElement);
    const focused = inside ? document.activeElement.id : "";
    const heading = inside && document.activeElement.closest("section[aria-labelledby]")?.getAttribute("aria-labelledby");
    const caret = focused && document.activeElement.selectionEnd;
    const typed = focused && document.activeElement.value;
    const scrolled = [...old.querySelectorAll("[id]")].filter((e) => e.scrollTop > 0).map((e) => [e.id, e.scrollTop]);
    for (const e of old.querySelectorAll("details[id][open]")) fresh.querySelector("#" + CSS.escape(e.id))?.setAttribute("open", "");
    old.replaceWith(fresh);
    for (const [id, top] of scrolled) {
      const e = document.getElementById(id);
      if (e) e.scrollTop = top;
    }
    // The focused element may be gone, such as the button of a share that has just ended.
    const again = (focused && document.getElementById(focused)) || (heading && document.getElementById(heading));
    if (again) {
      again.focus({ preventScroll: true });
      if (typeof caret === "number" && again.type === "search") {
        again.value = typed; // more may have been typed since the request
        again.setSelectionRange(caret, caret);
      }
    }
  } else if (fresh.dataset.into) {
    document.getElementById(fresh.dataset.into)?.prepend(fresh);
    document.getElementById("no-jobs")?.remove();
    for (const old of [...document.querySelectorAll("#dock .job.done, #dock .job.canceled")].slice(1)) old.remove();
  } else if (fresh.tagName === "TR") {
    document.dispatchEvent(new CustomEvent("listing")); // the page shows the snapshot in another form
  }
  document.dispatchEvent(new CustomEvent("placed", { detail: fresh }));
}

// toast shows a short message of our own.
export function toast(text, good) {
  const box = document.createElement("div");
  box.className = good ? "toast" : "toast bad";
  if (!good) box.setAttribute("role", "alert");
  box.textContent = text;
  showToast(box);
}

function showToast(box) {
  const list = document.getElementById("toasts");
  if (!list) return;
  const around = document.querySelector("dialog[open]") ?? document.body; // above an open dialog
  if (list.parentElement !== around) around.append(list);
  if ("refresh" in box.dataset) document.dispatchEvent(new CustomEvent("listing"));
  const focused = (e) => e.contains(document.activeElement);
  for (const old of [...list.children].filter((e) => !focused(e)).slice(0, -2)) old.remove();
  list.append(box);
  const end = () => (focused(box) ? setTimeout(end, 1000) : box.remove());
  setTimeout(end, 10000); // as long as Undo is offered, and longer while the toast has the focus
}
