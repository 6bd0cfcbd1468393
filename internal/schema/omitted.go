package schema

import "fmt"

// Omission is a kind of object or property that the source database has and the snapshot omits. It
// is data for [Omission.Sentence], so that no text of somebody else's snapshot is shown as advice.
type Omission struct {
	Kind  string `json:"kind"`
	First string `json:"first,omitempty"` // the name of one of the objects
	Count int    `json:"count"`           // number of objects
}

// The kinds of omissions.
const (
	OmittedGrants        = "grants"
	OmittedDefaultGrants = "default_grants"
	OmittedOwners        = "owners"
	OmittedSubscriptions = "subscriptions"
	OmittedForeignRows   = "foreign_rows"
	OmittedSettings      = "settings"
	OmittedTablespaces   = "tablespaces"
)

// maxOmissions is more than the number of kinds, for snapshots of newer versions.
const maxOmissions = 100

// Sentence describes the omission. It returns "" for a kind of a newer version.
func (o Omission) Sentence() string {
	first := o.First
	if o.Count > 1 {
		first = fmt.Sprintf("%s and %d more", o.First, o.Count-1)
	}
	switch o.Kind {
	case OmittedGrants:
		return "the snapshot omits the rights of other users on " + first
	case OmittedDefaultGrants:
		return "the snapshot omits the default rights for new objects of " + first
	case OmittedOwners:
		return "the snapshot omits the owners of objects (" + first + "): the user who loads it owns them"
	case OmittedSubscriptions:
		return "the snapshot omits the subscription " + first + ": a copy must not receive changes from the publisher"
	case OmittedForeignRows:
		return "the snapshot omits the rows of the foreign table " + first + ": they are on another server"
	case OmittedSettings:
		return "the snapshot omits the settings of the database itself (" + first +
			"): a load keeps those of the destination"
	case OmittedTablespaces:
		return "the snapshot omits tablespaces: objects in " + first + " are loaded into the default tablespace"
	}
	return ""
}

// Omissions returns the sentences of what the snapshot omits. The receiver may be nil.
func (s *Schema) Omissions() (all []string) {
	if s == nil {
		return nil
	}
	for _, o := range s.Omitted {
		if sentence := o.Sentence(); sentence != "" {
			all = append(all, sentence)
		}
	}
	return all
}

// omitted checks the omissions.
func (c *checker) omitted(all []Omission) {
	if len(all) > maxOmissions {
		c.fail("it has too many omissions")
	}
	for _, o := range all {
		if !validName(o.Kind) || o.First != "" && !validName(o.First) || o.Count < 1 {
			c.fail("an omission is invalid")
		}
	}
}
