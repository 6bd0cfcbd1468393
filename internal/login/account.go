package login

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"snap"
)

// An account is a login session at a cloud service. This machine can have several accounts at one
// service, for different organizations or users. Each account has a name, and at most one is in
// use. Commands work with the account in use unless [File.Choose] selected another.

// defaultAccount is the name of an account whose user is unknown, because the cloud service did not
// respond at login.
const defaultAccount = "default"

// Account returns the session's account name. Sessions saved by versions without account names are
// named after their organization.
func (s Session) Account() string { return cmp.Or(s.Name, s.Organization, s.Email, defaultAccount) }

// sameUser reports whether both sessions belong to the same user of the same organization.
func (s Session) sameUser(other Session) bool {
	return s.Email == other.Email && s.Organization == other.Organization
}

// Choice selects one of several accounts. The zero value selects the account in use.
type Choice struct {
	Account string // its name, or its e-mail address or organization if unambiguous
	Org     string // the organization's slug
}

func (c Choice) matches(s Session) bool {
	return (c.Account == "" || c.Account == s.Account() || c.Account == s.Email || c.Account == s.Organization) &&
		(c.Org == "" || c.Org == s.Organization)
}

// String quotes the choice for a message.
func (c Choice) String() string { return strconv.Quote(cmp.Or(c.Account, c.Org)) }

// Choose makes [File.Session], [File.Source] and [File.Refresh] work with the selected account
// instead of the one in use.
func (f *File) Choose(c Choice) {
	f.mu.Lock()
	f.choice = c
	f.mu.Unlock()
	f.Reselect()
}

// Reselect forgets which accounts f selected, so that the next call selects one again, for example
// after a login.
func (f *File) Reselect() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.pinned)
}

// Accounts returns all sessions of a cloud URL, sorted by name, and the name of the account in use.
// inUse is empty if no account is in use.
func (f *File) Accounts(cloudURL string) (all []Session, inUse string, err error) {
	c, err := f.read()
	if err != nil {
		return nil, "", err
	}
	if s, ok := c.Sessions[key(cloudURL)]; ok {
		inUse = s.Account()
	}
	return c.accounts(cloudURL), inUse, nil
}

// Switch puts the selected account in use. With the zero Choice and two accounts, it switches to
// the other account. It fails with code not_signed_in if no account matches, and with code usage if
// several match or there is no other account.
func (f *File) Switch(ctx context.Context, cloudURL string, to Choice) (s Session, err error) {
	changeErr := f.change(ctx, func(c *contents) {
		if s, err = c.switchTo(cloudURL, to); err == nil {
			c.use(cloudURL, s)
		}
	})
	return s, cmp.Or(err, changeErr)
}

func (c *contents) switchTo(cloudURL string, to Choice) (Session, error) {
	if to != (Choice{}) {
		return c.match(cloudURL, to)
	}
	switch others := c.Others[key(cloudURL)]; {
	case len(c.accounts(cloudURL)) == 0:
		return Session{}, notSignedIn(cloudURL)
	case len(others) == 0:
		return Session{}, snap.Usage(names(c.accounts(cloudURL))[0]+" is your only account at "+cloudURL,
			"sign in to another one with `snapcli login`")
	case len(others) > 1:
		return Session{}, snap.Usage("there are several accounts to switch to",
			"choose one with `snapcli switch NAME`: "+strings.Join(names(c.accounts(cloudURL)), ", "))
	default:
		return others[0], nil
	}
}

// session returns the account that matches choice. With the zero Choice it returns the account in
// use. found is false if nobody is signed in. session fails with code not_signed_in if no account
// matches, or if choice is zero and none of the accounts is in use.
func (c *contents) session(cloudURL string, choice Choice) (s Session, found bool, err error) {
	inUse, used := c.Sessions[key(cloudURL)]
	switch {
	case used && choice.matches(inUse) && (choice.Account == "" || choice.Account == inUse.Account()):
		return inUse, true, nil
	case choice != (Choice{}):
		s, err = c.match(cloudURL, choice)
		return s, err == nil, err
	case len(c.Others[key(cloudURL)]) == 0:
		return Session{}, false, nil
	}
	return Session{}, false, &snap.Error{Code: snap.CodeNotSignedIn, Detail: "no account of " + cloudURL + " is in use",
		Hint: "run `snapcli login`, or choose one with `snapcli switch NAME`: " +
			strings.Join(names(c.accounts(cloudURL)), ", ")}
}

// match returns the one account that matches the choice. A name takes precedence over an e-mail
// address or an organization.
func (c *contents) match(cloudURL string, choice Choice) (Session, error) {
	var found []Session
	all := c.accounts(cloudURL)
	for _, s := range all {
		switch {
		case !choice.matches(s):
		case choice.Account == s.Account():
			return s, nil
		default:
			found = append(found, s)
		}
	}
	switch len(found) {
	case 0:
		hint := "run `snapcli login`"
		if len(all) > 0 {
			hint = "sign in with `snapcli login`, or choose one of these accounts: " + strings.Join(names(all), ", ")
		}
		return Session{}, &snap.Error{Code: snap.CodeNotSignedIn,
			Detail: fmt.Sprintf("you are not signed in to %s as %s", cloudURL, choice), Hint: hint}
	case 1:
		return found[0], nil
	}
	return Session{}, snap.Usage(fmt.Sprintf("several accounts match %s", choice),
		"choose one by its name, in SNAPCLI_ACCOUNT or with `snapcli switch`: "+strings.Join(names(found), ", "))
}

func (c *contents) accounts(cloudURL string) (all []Session) {
	if s, ok := c.Sessions[key(cloudURL)]; ok {
		all = append(all, s)
	}
	all = append(all, c.Others[key(cloudURL)]...)
	slices.SortFunc(all, func(a, b Session) int { return cmp.Compare(a.Account(), b.Account()) })
	return all
}

func names(accounts []Session) (all []string) {
	for _, s := range accounts {
		all = append(all, s.Account())
	}
	return all
}

// byName returns the account with this name.
func (c *contents) byName(cloudURL, name string) (Session, bool) {
	all := c.accounts(cloudURL)
	i := slices.IndexFunc(all, func(s Session) bool { return s.Account() == name })
	if i < 0 {
		return Session{}, false
	}
	return all[i], true
}

// use puts an account in use. It replaces a stored account of the same name.
func (c *contents) use(cloudURL string, s Session) {
	at := key(cloudURL)
	c.drop(cloudURL, s.Account())
	if before, ok := c.Sessions[at]; ok {
		before.Name = before.Account()
		c.Others[at] = append(c.Others[at], before)
	}
	c.Sessions[at] = s
}

// put stores s in the place of the account of the same name.
func (c *contents) put(cloudURL string, s Session) {
	at := key(cloudURL)
	if inUse, ok := c.Sessions[at]; ok && inUse.Account() == s.Account() {
		c.Sessions[at] = s
		return
	}
	for i, other := range c.Others[at] {
		if other.Account() == s.Account() {
			c.Others[at][i] = s
		}
	}
}

// drop removes an account.
func (c *contents) drop(cloudURL, name string) {
	at := key(cloudURL)
	if s, ok := c.Sessions[at]; ok && s.Account() == name {
		delete(c.Sessions, at)
	}
	c.Others[at] = slices.DeleteFunc(c.Others[at], func(s Session) bool { return s.Account() == name })
	if len(c.Others[at]) == 0 {
		delete(c.Others, at)
	}
}

// keep stores a new session and puts it in use. A session without a name replaces the session of
// the same user, or gets a free name derived from its organization or e-mail address. keep returns
// the stored session, which has a name, and the session that it replaced.
func (c *contents) keep(s Session) (kept, old Session) {
	if s.Name == "" {
		s.Name = c.nameFor(s)
	}
	old, _ = c.byName(s.CloudURL, s.Name)
	c.use(s.CloudURL, s)
	return s, old
}

func (c *contents) nameFor(s Session) string {
	if inUse, ok := c.Sessions[key(s.CloudURL)]; ok && inUse.sameUser(s) {
		return inUse.Account()
	}
	for _, other := range c.accounts(s.CloudURL) {
		if other.sameUser(s) {
			return other.Account()
		}
	}
	base := cmp.Or(s.Organization, s.Email, defaultAccount)
	candidates := []string{base, s.Email, s.Email + "/" + s.Organization}
	for _, name := range candidates {
		if _, taken := c.byName(s.CloudURL, name); !taken && name != "" {
			return name
		}
	}
	for n := 2; ; n++ {
		name := base + "-" + strconv.Itoa(n)
		if _, taken := c.byName(s.CloudURL, name); !taken {
			return name
		}
	}
}

// maxNameLength is the maximum number of bytes of an account name.
const maxNameLength = 64

// CheckName returns an error of code usage if name is not a valid account name.
func CheckName(name string) error {
	odd := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }
	if name == "" || len(name) > maxNameLength || strings.ContainsFunc(name, odd) || strings.HasPrefix(name, "-") {
		return snap.Usage(fmt.Sprintf("%q cannot be the name of an account", name),
			fmt.Sprintf("use up to %d letters, digits and punctuation marks, without spaces", maxNameLength))
	}
	return nil
}
