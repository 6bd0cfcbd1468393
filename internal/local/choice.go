package local

import (
	"slices"

	"snap/internal/engine"
)

// Choice limits a snapshot to some objects of the database.
type Choice = engine.Choice

// OmitKinds returns the kinds of objects that a choice can leave out.
func OmitKinds() []string { return engine.OmitKinds() }

// Choice returns the choice of the target's configuration.
func (t Target) Choice() Choice {
	return Choice{Tables: t.Include, Schemas: t.Schemas, Exclude: t.Exclude, ExcludeData: t.ExcludeData,
		Extensions: t.ExcludeExtensions, Omit: t.Omit}
}

// choice returns the objects to build. The options replace the target's tables and schemas, and add
// to everything that the target leaves out.
func (o BuildOptions) choice(t Target) (Choice, error) {
	c := t.Choice()
	if len(o.Choice.Tables)+len(o.Choice.Schemas) > 0 {
		c.Tables, c.Schemas = o.Choice.Tables, o.Choice.Schemas
	}
	c.Exclude = slices.Concat(c.Exclude, o.Choice.Exclude)
	c.ExcludeData = slices.Concat(c.ExcludeData, o.Choice.ExcludeData)
	c.Extensions = slices.Concat(c.Extensions, o.Choice.Extensions)
	c.Omit = slices.Concat(c.Omit, o.Choice.Omit)
	return c, c.Check()
}

// choiceFlaws checks each list of the target's choice separately, so that a flaw is reported with
// the key of its list.
func choiceFlaws(at string, t Target, f *flaws) {
	for _, one := range []struct {
		key    string
		choice Choice
	}{
		{"include", Choice{Tables: t.Include}}, {"schemas", Choice{Schemas: t.Schemas}},
		{"exclude", Choice{Exclude: t.Exclude}}, {"exclude_data", Choice{ExcludeData: t.ExcludeData}},
		{"exclude_extensions", Choice{Extensions: t.ExcludeExtensions}}, {"omit", Choice{Omit: t.Omit}},
	} {
		f.add(Flaw{Key: at + "." + one.key, Err: one.choice.Check()})
	}
}
