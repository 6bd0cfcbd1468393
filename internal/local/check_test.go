package local

import (
	"strings"
	"testing"

	"snap"
)

func TestCheckTarget(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for _, target := range []Target{
		{Name: "fresh", Source: "sqlite://" + s.dir + "/none.db", Destination: "sqlite://" + s.dir + "/fresh.db"},
		{Name: "far", Source: "postgres://u:s3cret@127.0.0.1:1/x"},
		{Name: "mixed", Source: "sqlite://" + s.source, Destination: "postgres://u@127.0.0.1:1/x"},
		{Name: "marked", Destination: "sqlite://" + s.destination, Production: true},
	} {
		if err := s.AddTarget(target); err != nil {
			t.Fatal(err)
		}
	}
	check := func(name string) []DatabaseCheck {
		all, err := s.CheckTarget(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if all := check(shopTarget); len(all) != 2 || all[0].Err != nil || !all[0].Exists || all[0].Tables != 2 ||
		all[1].Tables != 1 || all[0].ServerVersion == "" {
		t.Errorf("the shop: %+v", all)
	}
	if all := check("fresh"); snap.CodeOf(all[0].Err) != snap.CodeNotFound || all[1].Err != nil ||
		all[1].Exists || len(all[1].Missing)+len(all[1].Warnings) != 0 {
		t.Errorf("fresh: %+v", all)
	}
	if all := check("far"); snap.CodeOf(all[0].Err) != snap.CodeDatabase || strings.Contains(all[0].URL, "s3cret") {
		t.Errorf("far: %+v", all)
	}
	if all := check("marked"); len(all[0].Warnings) != 1 || !strings.Contains(all[0].Warnings[0], "production") {
		t.Errorf("marked: %+v", all)
	}
	if all := check("mixed"); len(all[1].Warnings) != 1 || !strings.Contains(all[1].Warnings[0],
		"a postgres database and the source is a sqlite database") {
		t.Errorf("mixed: %+v", all)
	}
	if _, err := s.CheckTarget(t.Context(), "nope"); snap.CodeOf(err) != snap.CodeNotFound {
		t.Errorf("unknown: %v", err)
	}
}
