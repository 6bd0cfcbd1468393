package cli

import (
	"context"

	"snap"
	"snap/api"
	"snap/internal/login"
)

// account is the JSON form of an account in whoami --all.
type account struct {
	Name         string    `json:"account"`
	InUse        bool      `json:"in_use" doc:"commands use it by default"`
	Cloud        string    `json:"cloud_url"`
	Email        string    `json:"email,omitempty"`
	Organization string    `json:"organization,omitempty"`
	Role         snap.Role `json:"role,omitempty" doc:"absent if the session is not valid"`
	Valid        bool      `json:"valid" doc:"the service accepts the session"`
	Problem      string    `json:"problem,omitempty" doc:"why the service does not accept the session"`
}

func (a *app) whoamiAll(ctx context.Context) error {
	agent, base, file, err := a.loginSessions()
	if err != nil {
		return err
	}
	sessions, inUse, err := file.Accounts(base)
	if err != nil {
		return err
	}
	all := []account{}
	for _, s := range sessions {
		one, err := a.validate(ctx, file, s)
		if err != nil {
			return err
		}
		one.InUse = s.Account() == inUse
		all = append(all, one)
	}
	if err := a.printAccounts(base, all); err != nil {
		return err
	}
	if key, first := a.keyFirst(agent); first && !a.flags.json {
		a.note("%s is set and overrides these accounts", key.Where)
	}
	return nil
}

// validate checks one account with the service. It fails if the service cannot be reached; a
// session that the service refuses is reported as an invalid account.
func (a *app) validate(ctx context.Context, file *login.File, s login.Session) (account, error) {
	one := account{Name: s.Account(), Cloud: s.CloudURL, Email: s.Email, Organization: s.Organization}
	file.Choose(login.Choice{Account: s.Account()})
	conn, err := a.dial(s.CloudURL, api.MountUser, a.hideTokens(file.Source(s.CloudURL, a.http())),
		credential{Source: fromSession, Where: "login session"})
	if err != nil {
		return one, err
	}
	err = a.refresh(ctx, conn)
	var me api.Me
	if err == nil {
		me, err = conn.Me(ctx)
	}
	switch snap.CodeOf(err) {
	case "":
		one.Valid, one.Email, one.Organization, one.Role = true, me.Email, me.Organization, me.Role
	case snap.CodeNotSignedIn, snap.CodeUnauthenticated, snap.CodeForbidden:
		one.Problem = err.Error()
	default:
		return one, err
	}
	return one, nil
}

func (a *app) printAccounts(base string, all []account) error {
	switch {
	case a.flags.json:
		return a.printJSON(all)
	case len(all) == 0:
		a.note("you are not signed in to %s; run `snapcli login`", base)
		return nil
	case a.flags.quiet:
		for _, one := range all {
			a.result("%s", one.Name)
		}
		return nil
	}
	t := a.newTable(column{title: "Account", least: 8, weight: 3}, column{title: "User", least: 8, weight: 1},
		column{title: "Organization", least: 6, weight: 2}, column{title: "Role"},
		column{title: "In use", paint: paintShared}, column{title: "Session", least: 8})
	for _, one := range all {
		state := "valid"
		if !one.Valid {
			state = one.Problem
		}
		t.row(one.Name, one.Email, one.Organization, string(one.Role), yesNo(one.InUse), state)
	}
	return t.flush()
}
