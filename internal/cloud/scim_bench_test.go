package cloud_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
	"snap/internal/store"
)

// BenchmarkSCIMGroupPatch adds 10,000 people with accounts to a group in one PATCH request on
// PostgreSQL, and removes them in another. The bound of each is 2 seconds.
func BenchmarkSCIMGroupPatch(b *testing.B) {
	const people = 10_000
	c := cloudtest.Start(b, cloudtest.Options{DatabaseURL: servertest.Postgres(b)})
	p := &provisioner{b, c.URL + "/scim/v2", scimKey(b, c, "acme")}
	org, err := c.Store.OrgBySlug(b.Context(), "acme")
	must(b, err)
	r := store.Reporter{Caller: snap.Caller{Org: org.OrgRef}, Issuer: "local"}
	members := make([]string, 0, people)
	for i := range people {
		name := fmt.Sprintf("person-%d@acme.test", i)
		_, err := c.Store.ApplySignIn(b.Context(), store.SignIn{OrgID: org.ID, Issuer: "local", Subject: name,
			Email: name, Role: snap.RoleMember,
			Groups: []snap.Group{{GroupID: "eng"}, {GroupID: fmt.Sprint("team-", i%50)}}})
		must(b, err)
		u, err := c.Store.AddSCIMUser(b.Context(), r, store.SCIMUserChange{UserName: &name, ExternalID: &name})
		must(b, err)
		members = append(members, `{"value":"`+u.ID+`"}`)
	}
	group := p.group("everybody")
	value := strings.Join(members, ",")
	var slowest time.Duration
	for b.Loop() {
		for _, op := range []string{"add", "remove"} {
			began := time.Now()
			p.do("PATCH", "/Groups/"+group, patched(`{"op":"`+op+`","path":"members","value":[`+value+`]}`), 204)
			slowest = max(slowest, time.Since(began))
		}
	}
	b.ReportMetric(slowest.Seconds(), "slowest-s")
	if slowest > 2*time.Second {
		b.Errorf("a PATCH of %d members took %v", people, slowest)
	}
}
