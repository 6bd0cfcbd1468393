// Keeps the page up to date: jobs while they run, and the list or snapshot after a change on this
// machine, and periodically while the page is visible.

import { apply, request } from "./fragments.js";

const pause = 20_000; // milliseconds between two requests for cloud data

let events; // the stream of changes; closed while the page is hidden

export function live() {
  listen();
  document.addEventListener("listing", refresh);
  document.addEventListener("visibilitychange", () => {
    if (listen()) for (const again of [account, home, review]) again(); // they may have changed in the meantime
    refresh();
  });
  window.addEventListener("focus", refresh);
  setInterval(refresh, pause);
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", listen);
}

// listen opens the stream if the page is visible, and closes it otherwise, because a browser opens
// only six connections to this server for all its tabs together. listen returns whether it opened
// the stream.
function listen() {
  if (document.hidden) close();
  if (document.hidden || events) return false;
  events = new EventSource(document.querySelector("ul.jobs") ? "/events?full=yes" : "/events");
  events.addEventListener("job", (e) => apply(e.data));
  events.addEventListener("listing", refresh);
  events.addEventListener("listing", home);
  events.addEventListener("account", account);
  events.addEventListener("rules", review);
  return true;
}

function close() {
  events?.close();
  events = undefined;
}

const reload = (id) => () => document.getElementById(id) && request(location.pathname + location.search);
const account = reload("account"), home = reload("home"), review = reload("review");

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
