// Keeps the page as things are: jobs as they go on, and the listing when
// something changed here, or from time to time while somebody looks at it.

import { apply, request } from "./fragments.js";

const pause = 20_000; // milliseconds between two looks at the cloud

export function live() {
  const events = new EventSource("/events");
  events.addEventListener("job", (e) => apply(e.data));
  events.addEventListener("listing", refresh);
  events.addEventListener("account", () => document.getElementById("account") && request("/account"));
  document.addEventListener("listing", refresh);
  document.addEventListener("visibilitychange", () => document.hidden || refresh());
  setInterval(() => document.hidden || refresh(), pause);
  window.addEventListener("pagehide", () => events.close());
}

// refresh asks for the listing again, unless that would disturb.
function refresh() {
  const listing = document.getElementById("listing");
  if (!listing || listing.querySelector("details[open], .waiting")) return;
  const asked = listing.dataset.url;
  const stale = () => document.getElementById("listing")?.dataset.url !== asked || document.querySelector("#listing details[open], #listing .waiting");
  request(asked, { stale });
}
