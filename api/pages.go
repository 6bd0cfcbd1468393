package api

import (
	"fmt"
	"iter"
	"slices"

	"snap"
)

// maxPages is the maximum number of pages that are read of one listing. With pages of [MaxLimit]
// rows, that is 200 million rows.
const maxPages = 1_000_000

// cursorsKept is how many of the latest cursors are compared with the next one.
const cursorsKept = 100

// Pages yields the pages of a listing, beginning with the page at cursor. fetch returns the page at
// a cursor and the cursor of the next page, which is "" on the last page. Pages stops after the
// first error. It fails with code unavailable if the service sends a cursor again or does not end
// the listing, so that a faulty service cannot keep a program busy forever.
func Pages[P any](cursor string, fetch func(cursor string) (page P, next string, err error)) iter.Seq2[P, error] {
	return func(yield func(P, error) bool) {
		latest := []string{cursor}
		for range maxPages {
			page, next, err := fetch(cursor)
			if !yield(page, err) || err != nil || next == "" {
				return
			}
			if slices.Contains(latest, next) {
				var none P
				yield(none, errEndless("sent the same page of a list again"))
				return
			}
			latest = append(latest[max(0, len(latest)+1-cursorsKept):], next)
			cursor = next
		}
		var none P
		yield(none, errEndless(fmt.Sprintf("sent %d pages of a list without an end", maxPages)))
	}
}

func errEndless(problem string) error {
	return &snap.Error{Code: snap.CodeUnavailable, Detail: "the service " + problem,
		Hint: "report this to the service's operator"}
}

// rows yields the rows of pages.
func rows[P, R any](pages iter.Seq2[P, error], of func(P) []R) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		for page, err := range pages {
			if err != nil {
				var none R
				yield(none, err)
				return
			}
			for _, row := range of(page) {
				if !yield(row, nil) {
					return
				}
			}
		}
	}
}
