package card_test

import (
	"testing"
	"time"

	"snap/api"
	"snap/internal/card"
)

func TestPartialSharingInWords(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	soon := now.Add(3 * 24 * time.Hour)
	for want, s := range map[string]api.Snapshot{
		"":                       {Shared: true},
		"eng":                    {Groups: 1, FirstGroup: "eng"},
		"eng +1 group":           {Groups: 2, FirstGroup: "eng"},
		"eng +2 groups":          {Groups: 3, FirstGroup: "eng"},
		"2 groups":               {Groups: 2}, // from an older service
		"1 organization":         {Orgs: 1, Outside: true},
		"shared outside":         {Outside: true},
		"through eng":            {Through: "eng"},
		"eng, expires in 3 days": {Groups: 1, FirstGroup: "eng", NextExpiry: &soon},
		"eng, 1 organization":    {Groups: 1, FirstGroup: "eng", Orgs: 1},
		"2 organizations, next expires in 3 days": {Orgs: 2, NextExpiry: &soon},
	} {
		if got := card.Partial(s, now); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
}
