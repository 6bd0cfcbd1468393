package given

import (
	"testing"

	"github.com/spf13/pflag"

	"snap"
)

// TestAFlagIsGivenSomething: a flag may be left out, but not be empty.
func TestAFlagIsGivenSomething(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args    []string
		refused string
	}{
		{nil, ""},
		{[]string{"--group", "eng", "--scopes", "pull", "--where", "a=b", "--dry-run", "--width", "0"}, ""},
		{[]string{"--scope", ""}, ""},
		{[]string{"--group", ""}, "--group is empty"},
		{[]string{"--group="}, "--group is empty"},
		{[]string{"--scopes", ""}, "--scopes is empty"},
		{[]string{"--where", ""}, "--where is empty"},
	} {
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		flags.String("group", "", "")
		flags.String("scope", "", "")
		flags.StringSlice("scopes", nil, "")
		flags.StringArray("where", nil, "")
		flags.Bool("dry-run", false, "")
		flags.Int("width", 0, "")
		if err := flags.Parse(test.args); err != nil {
			t.Fatal(err)
		}
		err := Something(flags, "scope")
		if test.refused == "" && err != nil {
			t.Errorf("%q: %v", test.args, err)
		}
		if test.refused != "" && (snap.CodeOf(err) != snap.CodeUsage || err.Error() != test.refused) {
			t.Errorf("%q: %v, want %s", test.args, err, test.refused)
		}
	}
}
