package console

import (
	"cmp"
	"slices"

	"snap/api"
)

// storagePage is the data of storage.html.
type storagePage struct {
	layout
	Storage     api.Storage
	MoreTargets int          // number of targets that are not shown
	People      []api.Person // owners of snapshots, those with the most bytes first
	MorePeople  int
}

// Percent returns how much of the organization's quota is used, from 0 to 100.
func (p storagePage) Percent() int64 {
	if p.Storage.Usage.BytesMax == 0 {
		return 0
	}
	return min(p.Storage.Usage.Bytes*100/p.Storage.Usage.BytesMax, 100)
}

func (s *Server) storage(v *visit) (err error) {
	data := storagePage{layout: s.layout(v)}
	if data.Storage, err = v.api.Storage(v.r.Context()); err != nil {
		return err
	}
	if all := data.Storage.Targets; len(all) > rowsPerPage {
		data.Storage.Targets, data.MoreTargets = all[:rowsPerPage], len(all)-rowsPerPage
	}
	people, err := v.api.People(v.r.Context())
	if err != nil {
		return err
	}
	people = slices.DeleteFunc(people, func(p api.Person) bool { return p.Snapshots == 0 })
	slices.SortStableFunc(people, func(a, b api.Person) int { return cmp.Compare(b.Bytes, a.Bytes) })
	data.People = people[:min(len(people), rowsPerPage)]
	data.MorePeople = len(people) - len(data.People)
	return s.write(v, "storage.html", data)
}
