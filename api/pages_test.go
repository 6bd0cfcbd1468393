package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/api"
)

// A service that repeats a cursor, also after other cursors, cannot keep a program busy forever.
func TestRepeatedPagesEndAListing(t *testing.T) {
	t.Parallel()
	for name, list := range map[string]func(*api.Client) error{
		"snapshots": func(c *api.Client) error {
			for _, err := range c.AllSnapshots(t.Context(), api.ListOptions{}) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"audit": func(c *api.Client) error {
			for _, err := range c.AllAudit(t.Context(), api.AuditOptions{}) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"audience": func(c *api.Client) error {
			_, err := c.AudienceAt(t.Context(), "snap_x", time.Unix(0, 0))
			return err
		},
	} {
		requests := 0
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			requests++
			next, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
			if requests > 20 { // the client does not stop
				w.WriteHeader(http.StatusForbidden)
				return
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"next_cursor": strconv.Itoa(next%3 + 1)})
		})
		err := list(client(t, url, api.StaticToken("t")))
		if snap.CodeOf(err) != snap.CodeUnavailable || requests != 4 ||
			!strings.Contains(fmt.Sprint(err), "same page") {
			t.Errorf("%s: %d requests, %v", name, requests, err)
		}
	}
}

// A listing also ends if the service sends a new cursor with every page.
func TestEndlessPagesEndAListing(t *testing.T) {
	t.Parallel()
	fetched := 0
	var last error
	for _, err := range api.Pages("", func(string) (page struct{}, next string, err error) {
		if fetched++; fetched > 2_000_000 {
			t.Fatal("the listing is followed without end")
		}
		return page, strconv.Itoa(fetched), nil
	}) {
		last = err
	}
	if fetched != 1_000_000 || snap.CodeOf(last) != snap.CodeUnavailable {
		t.Errorf("%d pages, %v", fetched, last)
	}
}
