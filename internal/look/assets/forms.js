// Sends the forms and follows the links with these attributes without loading a new page.
//   data-fragment  send the form or follow the link in this way
//   data-live      send the form while the user types
//   data-first     click the first match of this selector in the response when the form was sent with Enter
//   data-toggle    show the other state immediately, and revert it on failure
//   data-switch    the same, for switches; these forms are sent one after the other
//   data-removes   remove the element of this id once done; in a toast, remove the toast
//   data-closes    close the dialog once done
//   data-unpicks   unselect the selected rows once done
//   data-dialog    open the page of the link as a dialog

import { request } from "./fragments.js";

export function enhance() {
  document.addEventListener("submit", onSubmit);
  document.addEventListener("click", onDoubleClick, true);
  document.addEventListener("click", onClick);
  document.addEventListener("input", onInput);
  document.addEventListener("change", onChange);
  document.addEventListener("placed", (e) => {
    if (e.detail.id === "dialog-body" && e.detail.querySelector("#confirm")) show(document.activeElement?.id);
  });
  window.addEventListener("popstate", () => {
    list(location.href);
    syncSearch(location.href);
  });
}

let switching = Promise.resolve();

async function onSubmit(event) {
  const form = event.target;
  if (!form.matches("[data-fragment]")) return;
  event.preventDefault();
  const data = new FormData(form, event.submitter);
  if (form.method === "get") {
    clearTimeout(timer);
    if ((await get(form, data)) && form.dataset.first) document.querySelector(form.dataset.first)?.click();
    return;
  }
  const undo = optimistic(form, event.submitter);
  const send = () => request(form.action, { method: "post", body: new URLSearchParams(data) });
  const ok = await ("switch" in form.dataset ? (switching = switching.then(send)) : send());
  if (!ok) return undo();
  if (form.dataset.removes) remove(form.closest(".toast") ?? document.getElementById(form.dataset.removes));
  if ("closes" in form.dataset) document.getElementById("dialog")?.close();
  if ("unpicks" in form.dataset && !document.getElementById("dialog")?.open) pickAll(false);
  form.closest("details.menu")?.removeAttribute("open");
}

// onDoubleClick drops the second click of a double click on a button that changes something. That
// click would repeat the change or, when the response has replaced the button, revert it.
function onDoubleClick(event) {
  const form = event.target.closest("button")?.form;
  if (event.detail > 1 && form?.method === "post" && !("removes" in form.dataset)) event.preventDefault();
}

// remove removes an element from the page. If the element had the focus, the heading of the share
// box or of the page gets the focus.
function remove(element) {
  const focused = element?.contains(document.activeElement);
  element?.remove();
  const headings = ["dialog[open] h1", "#sharing > h2", "h1"].map((at) => document.querySelector(at));
  if (focused) headings.find((heading) => heading)?.focus();
}

// pickAll selects all rows of the list, or none.
export function pickAll(on) {
  for (const box of document.querySelectorAll(".pick")) box.checked = on;
}

function get(form, data) {
  for (const [name, value] of [...data]) if (value === "") data.delete(name);
  const query = new URLSearchParams(data).toString();
  const url = form.getAttribute("action") + (query && "?" + query);
  if (form.closest("dialog, .box, #page-body")) return latest(url, "dialog");
  history.replaceState(null, "", url);
  return list(url);
}

// list shows another listing in place of this one.
export async function list(url) {
  const region = document.querySelector("#listing, #activity");
  if (!region) return location.assign(url);
  region.setAttribute("aria-busy", "true");
  if (!(await latest(url, "list"))) document.getElementById(region.id)?.removeAttribute("aria-busy");
}

// latest drops the response if a later request was sent in the meantime.
const asked = {};
function latest(url, kind) {
  const mine = (asked[kind] = (asked[kind] ?? 0) + 1);
  return request(url, { stale: () => asked[kind] !== mine, opens: kind === "open" });
}

function onClick(event) {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  const link = event.target.closest("a[data-fragment], a[data-dialog]");
  if (link && "dialog" in link.dataset) {
    event.preventDefault();
    link.closest("details.menu")?.removeAttribute("open");
    open(link.href);
  } else if (link) {
    event.preventDefault();
    history.pushState(null, "", link.href);
    list(link.href);
    syncSearch(link.href);
  }
}

async function open(url) {
  const opener = document.activeElement?.id;
  if (await latest(url, "open")) show(opener);
}

// show opens the dialog. When it closes, the browser returns the focus to the element that opened
// it. If that element was replaced in the meantime, its successor gets the focus.
function show(opener) {
  const dialog = document.getElementById("dialog");
  if (dialog.open) return;
  dialog.showModal();
  const restore = () => {
    const now = document.activeElement; // the event may come late, when the user has moved the focus elsewhere
    if (opener && (now === document.body || dialog.contains(now))) document.getElementById(opener)?.focus();
  };
  dialog.addEventListener("close", restore, { once: true });
}

// syncSearch sets the search form's fields to the values in the page's address.
function syncSearch(url) {
  const form = document.querySelector("form.search");
  const query = new URL(url, location.href).searchParams;
  if (!form) return;
  for (const name of ["q", "target", "type", "sort", "only", "owner", "from", "to", "actor", "snapshot", "action"]) if (form.elements[name]) form.elements[name].value = query.get(name) ?? "";
  form.querySelector("[name=show]")?.remove();
  if (query.get("show")) {
    const show = Object.assign(document.createElement("input"), { type: "hidden", name: "show", value: query.get("show") });
    form.prepend(show);
  }
}

let timer;
function onInput(event) {
  const input = event.target;
  const form = input.closest("form[data-live]");
  if (!form || input.tagName === "SELECT" || input.type === "date") return;
  clearTimeout(timer);
  timer = setTimeout(() => {
    // The response to an earlier request may have replaced the form.
    const now = form.isConnected ? form : document.getElementById(input.id)?.closest("form[data-live]");
    if (now) get(now, new FormData(now));
  }, 180);
}

function onChange(event) {
  const form = event.target.closest("form[data-live]");
  if (form && (event.target.tagName === "SELECT" || event.target.type === "date")) form.requestSubmit();
}

// optimistic shows the effect of a click before the server has responded, and
// returns a function that reverts it.
function optimistic(form, button) {
  if (!button) return () => {};
  if ("switch" in form.dataset) {
    const before = button.getAttribute("aria-checked");
    button.setAttribute("aria-checked", before === "true" ? "false" : "true");
    return () => button.setAttribute("aria-checked", before);
  }
  if (!("toggle" in form.dataset)) return () => {};
  const word = button.querySelector("span");
  const before = { text: word.textContent, pressed: button.getAttribute("aria-pressed") };
  const on = before.pressed !== "true";
  const show = (pressed, text) => {
    button.setAttribute("aria-pressed", pressed);
    button.classList.toggle("shared", pressed === "true");
    word.textContent = text;
  };
  show(String(on), on ? "Shared" : "Private");
  button.classList.add("waiting");
  return () => {
    button.classList.remove("waiting");
    show(before.pressed, before.text);
  };
}
