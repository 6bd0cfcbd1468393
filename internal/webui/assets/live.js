// Keeps the page up to date: jobs while they run, and the list or snapshot after a change on this
// machine, and periodically while the page is visible.

import { apply, request } from "./fragments.js";

const pause = 20_000; // milliseconds between two requests for cloud data

export function live() {
  const events = new EventSource("/events");
  events.addEventListener("job", (e) => apply(e.data));
  events.addEventListener("listing", refresh);
  events.addEventListener("account", () => document.getElementById("account") && request("/account"));
  events.addEventListener("rules", () => document.getElementById("review") && request(location.pathname + location.search));
  document.addEventListener("listing", refresh);
  document.addEventListener("visibilitychange", refresh);
  window.addEventListener("focus", refresh);
  setInterval(refresh, pause);
  window.addEventListener("pagehide", () => events.close());
}

// refresh calls look soon, but only once for several calls in a row.
let soon;
function refresh() {
  clearTimeout(soon);
  soon = setTimeout(look, 50);
}

// look requests the list or the page of a snapshot again, unless the page is hidden or the user is
// in the middle of something.
function look() {
  const find = () => document.querySelector("#listing, #snapshot");
  const busy = () => find()?.querySelector("details[open], .waiting, .pick:checked");
  const asked = find()?.dataset.url;
  if (document.hidden || !asked || busy()) return;
  request(asked, { stale: () => find()?.dataset.url !== asked || busy() });
}
