package local

import (
	"fmt"
	"time"

	"snap"
	"snap/api"
	"snap/internal/archive"
	"snap/internal/engine"
	"snap/internal/schema"
)

// Origin classifies who made a local snapshot.
type Origin string

// The origins.
const (
	Mine    Origin = "mine"    // built by this user on this machine
	Ours    Origin = "ours"    // pulled from the user's own organization or from a storage profile
	Theirs  Origin = "theirs"  // pulled from another organization
	Unknown Origin = "unknown" // unknown source
)

// Provenance records where a local snapshot came from. It is part of the record next to the file;
// nothing inside a file can set it. A masked copy has the provenance of its original.
type Provenance struct {
	Origin       Origin `json:"origin"`
	Organization string `json:"organization,omitempty"` // slug of the organization it was pulled from
	Person       string `json:"person,omitempty"`       // e-mail of the owner, unless in another organization
	Service      string `json:"service,omitempty"`      // URL of the cloud service
	Profile      string `json:"profile,omitempty"`      // storage profile it was pulled from
}

// String formats the provenance for people: "ours (acme)", "theirs (globex)".
func (p Provenance) String() string {
	switch {
	case p.Organization != "":
		return fmt.Sprintf("%s (%s)", p.Origin, p.Organization)
	case p.Profile != "":
		return fmt.Sprintf("%s (profile %s)", p.Origin, p.Profile)
	}
	return string(p.Origin)
}

// fromCloud returns the provenance of a snapshot offered by a cloud service.
func fromCloud(s api.Snapshot, service string) Provenance {
	p := Provenance{Origin: Ours, Organization: s.Organization, Person: s.Owner, Service: service}
	if s.Received {
		p.Origin = Theirs
	}
	return p
}

// setProvenance replaces a missing or invalid origin. Records of older versions have none: the
// snapshot then counts as the user's own if it was not pulled and its time has sub-millisecond
// precision, which the service's times never have. Otherwise its origin is Unknown.
func (s *Snapshot) setProvenance() {
	switch s.From.Origin {
	case Mine, Ours, Theirs, Unknown:
	default:
		s.From = Provenance{Origin: Unknown}
		if !s.Pulled && s.Created.Nanosecond()%int(time.Millisecond) != 0 {
			s.From.Origin = Mine
		}
	}
}

// openSnapshot opens a snapshot's file with the limits for its provenance.
func openSnapshot(s Snapshot) (*archive.Reader, error) {
	if s.From.Origin == Mine {
		return archive.OpenOwn(s.Path)
	}
	return archive.Open(s.Path)
}

// trust returns how far the author of a snapshot is trusted.
func (a *Agent) trust(s Snapshot) engine.Trust {
	switch {
	case s.From.Origin == Mine:
		return engine.Mine
	case s.From.Origin == Ours && a.Config().Trust.ownOrganization():
		return engine.Ours
	}
	return engine.Foreign
}

// dumpOf returns the dump of an open snapshot file, with the trust in its author. It fails if a
// snapshot that was not built here has an invalid description, or has none and its author is not
// trusted.
func (a *Agent) dumpOf(s Snapshot, r *archive.Reader) (engine.Dump, error) {
	d := dumpIn(r)
	d.Trust = a.trust(s)
	if described := d.Info.Schema; described != nil && d.Trust != engine.Mine {
		return d, described.Check(schema.Dialect(r.Manifest().Engine))
	}
	if d.Trust == engine.Foreign {
		return d, undescribedError(s)
	}
	return d, nil
}

// undescribedError returns the error for a snapshot that cannot be loaded as data.
func undescribedError(s Snapshot) error {
	return &snap.Error{
		Code: snap.CodePolicy,
		Detail: fmt.Sprintf("the snapshot %s comes from %s and has no description of its tables, so it cannot be "+
			"loaded as data", s.Name, author(s.From)),
		Hint: "ask its owner to update snapcli, build the snapshot again and share the new one",
	}
}

// dropInvalidSchema removes a schema description that is invalid or too large for others to read,
// and adds a warning.
func dropInvalidSchema(kind snap.Engine, info engine.Info) engine.Info {
	if info.Schema == nil {
		return info
	}
	why := ""
	if err := info.Schema.Check(schema.Dialect(kind)); err != nil {
		why = err.Error()
	} else if !archive.Fits(info.Schema) {
		why = "the database has too many objects"
	}
	if why != "" {
		info.Schema = nil
		info.Warnings = append(info.Warnings,
			"the snapshot has no description of its tables, so other organizations cannot load it: "+why)
	}
	return info
}
