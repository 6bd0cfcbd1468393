package cli

import (
	"context"

	"github.com/spf13/cobra"

	"snap/api"
)

// serviceList describes a command that prints one of the service's lists.
type serviceList[T any] struct {
	connect func() (*connection, error) // app.connect, or app.signedIn for lists that API keys cannot read
	list    func(*api.Client, context.Context) ([]T, error)
	empty   string // the note for an empty list
	columns []column
	row     func(T) []string
}

// printList returns the RunE function of a command that prints a list, as JSON with --json.
func printList[T any](a *app, l serviceList[T]) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		conn, err := l.connect()
		if err != nil {
			return err
		}
		entries, err := l.list(conn.Client, cmd.Context())
		if err != nil {
			return err
		}
		if a.flags.json {
			return a.printJSON(emptyNotNull(entries))
		}
		if len(entries) == 0 {
			a.note("%s", l.empty)
			return nil
		}
		t := a.newTable(l.columns...)
		for _, e := range entries {
			t.row(l.row(e)...)
		}
		return t.flush()
	}
}

// removal describes a command that removes an entry from one of the service's lists by its name.
type removal struct {
	connect func() (*connection, error)
	remove  func(*api.Client, context.Context, string) error
	kind    string // the kind of entry, in the error for a name that does not exist
	list    string // the command that lists the entries
	done    string // the success message, with %s for the name
}

// remove returns the RunE function of a command that removes the entry named by its argument.
func (a *app) remove(r removal) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		conn, err := r.connect()
		if err != nil {
			return err
		}
		if err := r.remove(conn.Client, cmd.Context(), args[0]); err != nil {
			return noSuch(err, r.kind, args[0], "list them with `"+r.list+"`")
		}
		a.done("", r.done, args[0])
		return nil
	}
}

// viewAll returns the JSON form of each entry of a list.
func viewAll[T, V any](list []T, view func(T) V) []V {
	views := make([]V, len(list)) // not nil, so that an empty list is encoded as [] and not null
	for i, one := range list {
		views[i] = view(one)
	}
	return views
}

// emptyNotNull returns a non-nil list, so that an empty one is encoded as [] and not null.
func emptyNotNull[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
