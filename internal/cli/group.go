package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"snap"
	"snap/api"
)

// findGroups resolves groups given by ID or name. It returns each group once.
func findGroups(ctx context.Context, c *api.Client, typed []string) (found []api.Group, err error) {
	if len(typed) == 0 {
		return nil, nil
	}
	groups, err := c.Groups(ctx)
	if err != nil {
		return nil, err
	}
	for _, one := range typed {
		g, err := chooseGroup(groups, one)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(found, func(f api.Group) bool { return f.GroupID == g.GroupID }) {
			found = append(found, g)
		}
	}
	return found, nil
}

// chooseGroup finds a group by ID or name. An ID takes precedence over a name, and an exact name
// over a name that differs only in case. If several groups match, the error lists their IDs.
func chooseGroup(groups []api.Group, typed string) (api.Group, error) {
	var exact, loose []api.Group
	var known []string
	for _, g := range groups {
		switch {
		case g.GroupID == typed:
			return g, nil
		case g.Name == typed:
			exact = append(exact, g)
		case strings.EqualFold(g.Name, typed):
			loose = append(loose, g)
		}
		known = append(known, g.Name, g.GroupID)
	}
	if len(exact) == 0 {
		exact = loose
	}
	switch len(exact) {
	case 1:
		return exact[0], nil
	case 0:
		return api.Group{}, &snap.Error{
			Code: snap.CodeGroupNotFound, Detail: fmt.Sprintf("there is no group %q", typed),
			Hint: didYouMean(typed, known, "list the groups with `snapcli cloud groups`"),
		}
	}
	var ids []string
	for _, g := range exact {
		ids = append(ids, g.GroupID)
	}
	return api.Group{}, snap.Usage(fmt.Sprintf("%d groups are called %q: %s", len(ids), typed, strings.Join(ids, ", ")),
		"use the ID of the one you mean")
}
