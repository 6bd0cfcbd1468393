// Package given knows whether what was typed says anything. The flag of
// `--group "$TEAM"` is there and empty when a script forgot to set TEAM. Taken
// for a flag that was left out it would do more than was meant: share with
// everybody, make a key that never ends.
package given

import (
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"snap"
)

// Something refuses a flag that was given with an empty value. Those of except
// may be empty.
func Something(flags *pflag.FlagSet, except ...string) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		if empty(f.Value) && !slices.Contains(except, f.Name) {
			err = snap.Usage(fmt.Sprintf("--%s is empty", f.Name), "give it a value, or leave it out")
		}
	})
	return err
}

func empty(v pflag.Value) bool {
	if several, is := v.(pflag.SliceValue); is {
		return !slices.ContainsFunc(several.GetSlice(), func(s string) bool { return s != "" })
	}
	return v.String() == ""
}
