package schema

import "fmt"

// Omission is a kind of object or property that the source database has and the snapshot omits.
// [Omission.Sentence] writes the sentence that users see, so that no sentence from somebody else's
// snapshot is shown as advice.
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

	// Objects that the user excluded, and objects that depend on them.
	OmittedTables            = "excluded_tables"
	OmittedRows              = "excluded_rows"
	OmittedSchemas           = "excluded_schemas"
	OmittedExtensions        = "excluded_extensions"
	OmittedForeignKeys       = "excluded_foreign_keys"
	OmittedPrograms          = "excluded_programs"
	OmittedPublications      = "excluded_publications"
	OmittedEventTriggers     = "excluded_event_triggers"
	OmittedExtensionComments = "excluded_extension_comments"

	// OmittedOtherSchemas is in every snapshot of chosen schemas, even if the source has no others.
	// It has no sentence.
	OmittedOtherSchemas = "other_schemas"
)

// maxOmissions is larger than the number of kinds, because snapshots from newer versions can have
// more kinds.
const maxOmissions = 100

// Sentence describes the omission. It returns "" for [OmittedOtherSchemas] and for a kind that only a
// newer version knows.
func (o Omission) Sentence() string {
	first := o.First
	if o.Count > 1 {
		first = fmt.Sprintf("%s and %d more", o.First, o.Count-1)
	}
	switch o.Kind {
	case OmittedGrants:
		return "the snapshot omits the privileges of other users on " + first
	case OmittedDefaultGrants:
		return "the snapshot omits the default privileges for new objects of " + first
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
	case OmittedForeignKeys:
		return "the snapshot omits the foreign key " + first + ", because the referenced rows are left out"
	case OmittedPrograms:
		return "the snapshot omits the " + first + ", because a dependency is left out"
	}
	if chosen := chosenKinds()[o.Kind]; chosen != "" {
		return "the snapshot omits " + chosen + " " + first + ", as chosen"
	}
	return ""
}

// chosenKinds returns the names of the kinds that users choose to leave out.
func chosenKinds() map[string]string {
	return map[string]string{
		OmittedTables: "the table", OmittedRows: "the rows of the table", OmittedSchemas: "the schema",
		OmittedExtensions: "the extension", OmittedPublications: "the publication",
		OmittedEventTriggers: "the event trigger", OmittedExtensionComments: "the comment on the extension",
	}
}

// AddOmission adds objects of a kind that the snapshot omits. Without names it does nothing.
func (s *Schema) AddOmission(kind string, names []string) {
	if len(names) > 0 {
		s.Omitted = append(s.Omitted, Omission{Kind: kind, First: names[0], Count: len(names)})
	}
}

// Omissions returns a sentence for each omission of a kind that this version knows. The receiver
// may be nil.
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
