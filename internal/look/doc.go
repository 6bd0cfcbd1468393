// Package look defines the appearance of our pages: one stylesheet, one set of icons, one set of
// template parts and the response headers that keep pages safe. The local web UI, the sign-in pages
// and the service's own pages share it.
//
// A program creates its pages like this:
//
//	assets := look.NewAssets("/assets/", look.Files(), ownFiles)
//	views, err := look.Parse(assets, time.Now, ownTemplates, "pages/*.html")
//	mux.Handle("GET /assets/", assets)
//	...
//	views.Page(w, http.StatusOK, "account.html", accountPage{Page: look.Page{Title: "Account"}})
//
// and wraps everything in [Secure]. A page is a template file that defines "main". Files whose name
// starts with an underscore hold parts for all pages. Page data is a struct that embeds [Page].
// Nothing is inline and nothing is fetched from another origin, so the strict
// Content-Security-Policy always holds.
//
// The stylesheet's classes for pages with forms are: "card", "lead", "field" (a label, its input,
// and a "hint"), "buttons", "button" with "primary", "quiet" or "danger", "notice" with "warn" or
// "danger", "code" for a code to compare, and "facts" for a description list. Set Page.Narrow for
// one centered card.
package look
