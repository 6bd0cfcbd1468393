package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"snap"
	"snap/internal/auth"
	"snap/internal/cloud"
	"snap/internal/command"
	"snap/internal/store"
)

// database is the open database of the service and its configuration, for one command.
type database struct {
	*store.Store
	config cloud.Config
}

// withStore opens the database of the configuration and calls f, unless the service was moved
// elsewhere. It prints a message if the database did not exist, because the service itself may run
// in another environment and use another database.
func (p *program) withStore(ctx context.Context, f func(*database) error) error {
	config, err := p.config()
	if err != nil {
		return err
	}
	o := config.StoreOptions()
	o.Reserve = config.Limits.DatabaseReserve()
	if err := store.CheckRestored(o); err != nil {
		return err
	}
	if found, err := store.Inspect(ctx, o); err == nil && !found.Exists {
		fmt.Fprintf(p.stderr, "there was no database in %s; a new one was created\n", o.DataDir)
	}
	s, err := store.Open(ctx, o)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := errors.Join(s.CheckTransferred(ctx), s.CheckMoved(ctx)); err != nil {
		return err
	}
	return f(&database{s, config})
}

// org returns an organization by its slug. The hint of its error is for the operator, who can list
// organizations.
func (s *database) org(ctx context.Context, slug string) (store.Org, error) {
	o, err := s.OrgBySlug(ctx, slug)
	if snap.CodeOf(err) == snap.CodeOrganizationNotFound {
		err = &snap.Error{Code: snap.CodeOrganizationNotFound, Detail: err.Error(),
			Hint: "list the organizations with `snapcloud org list`"}
	}
	return o, err
}

// withOrg is like [program.withStore], for a command about one organization.
func (p *program) withOrg(ctx context.Context, slug string, f func(*database, store.Org) error) error {
	return p.withStore(ctx, func(s *database) error {
		o, err := s.org(ctx, slug)
		if err != nil {
			return err
		}
		return f(s, o)
	})
}

func (p *program) key() *cobra.Command {
	c := command.Parent("key", "Create, list and revoke API keys", "")
	c.AddCommand(p.keyCreate(), p.keyList(), p.keyRevoke())
	return c
}

// keyKind returns the kind of key for the name that the operator uses.
func keyKind(name string) (snap.CredentialKind, error) {
	switch name {
	case "user":
		return snap.UserKey, nil
	case "pipeline":
		return snap.PipelineKey, nil
	case "agent":
		return snap.AgentKey, nil
	case "scim":
		return snap.SCIMKey, nil
	}
	return "", snap.Usage(fmt.Sprintf("%q is not a kind of key", name), "the kinds are user, pipeline, agent and scim")
}

// keyFlags are the flags of `key create`.
type keyFlags struct {
	org, kind, user, name, expiresIn string
	scopes, from                     []string
}

func (p *program) keyCreate() *cobra.Command {
	var f keyFlags
	c := &cobra.Command{
		Use:   "create --org SLUG --kind user|pipeline|agent|scim",
		Short: "Create an API key and print it once",
		Long: "Create makes an API key and prints it once. Only its hash is stored.\n\n" +
			"A user key (cak_) acts as its user. A pipeline key (clt_) and an agent key (sak_)\n" +
			"act as the organization, within their scopes, and never change a share. A SCIM key\n" +
			"(scim_) lets the organization's identity provider report people and groups. An\n" +
			"organization has only one SCIM key: when you create another, the previous one\n" +
			"works for 24 more hours.",
		Example: "  snapcloud key create --org acme --kind user --user alice@acme.test --name laptop\n" +
			"  snapcloud key create --org acme --kind pipeline --name nightly --scopes pull,push --expires-in 90d",
		Args: command.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withStore(c.Context(), func(s *database) error { return p.createKey(c.Context(), s, f) })
		},
	}
	c.Flags().StringVar(&f.org, "org", "", "slug of the organization (required)")
	c.Flags().StringVar(&f.kind, "kind", "", "user, pipeline, agent or scim (required)")
	c.Flags().StringVar(&f.user, "user", "", "e-mail of the user, for --kind user")
	c.Flags().StringVar(&f.name, "name", "", "name of the key (default: its kind)")
	c.Flags().StringSliceVar(&f.scopes, "scopes", nil,
		"what a pipeline or agent key may do: pull, push, private (see every snapshot) (default pull,push)")
	c.Flags().StringVar(&f.expiresIn, "expires-in", "",
		"how long the key is valid, such as 90d (default: it never expires)")
	c.Flags().StringSliceVar(&f.from, "from", nil,
		"networks from which the key may be used, such as 10.0.0.0/8; at most 100 (default: anywhere)")
	c.MarkFlagRequired("org")
	c.MarkFlagRequired("kind")
	return c
}

func (p *program) createKey(ctx context.Context, s *database, f keyFlags) error {
	spec, err := s.keySpec(ctx, f)
	if err != nil {
		return err
	}
	secret, key, err := auth.New(s.Store, auth.Options{PublicURL: s.config.PublicURL}).NewKey(ctx, spec)
	if err != nil {
		return err
	}
	if p.asJSON {
		return p.json(map[string]any{"id": strconv.FormatInt(key.ID, 10), "kind": key.Kind, "name": key.Name,
			"secret": secret})
	}
	fmt.Fprintln(p.stdout, secret)
	fmt.Fprintf(p.stderr, "created key %d (%s) of %s; this is the only time it is shown\n", key.ID, key.Name, f.org)
	return nil
}

// keySpec converts the flags to the key to create. It first applies the organizations of the
// configuration, so that a key can be created before the first start.
func (s *database) keySpec(ctx context.Context, f keyFlags) (spec auth.KeySpec, err error) {
	if err := cloud.ApplyDirectory(ctx, s.Store, s.config); err != nil {
		return spec, err
	}
	org, err := s.org(ctx, f.org)
	if err != nil {
		return spec, err
	}
	spec = auth.KeySpec{OrgID: org.ID, Name: cmp.Or(f.name, f.kind)}
	if spec.Kind, err = keyKind(f.kind); err != nil {
		return spec, err
	}
	if f.expiresIn != "" {
		d, err := snap.ParseDuration(f.expiresIn)
		if err != nil {
			return spec, err
		}
		spec.Expires = s.Now().Add(d).UTC()
	}
	if spec.Networks, err = snap.ParseNetworks(f.from); err != nil {
		return spec, err
	}
	if spec.Kind == snap.UserKey {
		err = s.setKeyUser(ctx, &spec, f)
		return spec, err
	}
	if spec.Kind == snap.SCIMKey {
		return spec, checkSCIM(s.config, f)
	}
	if f.user != "" {
		return spec, snap.Usage("--user is only for --kind user", "an organization-level key does not act as a user")
	}
	for _, name := range f.scopes {
		spec.Scopes = append(spec.Scopes, snap.Scope(strings.TrimSpace(name)))
	}
	return spec, nil
}

// checkSCIM returns an error for a SCIM key that no identity provider could use.
func checkSCIM(config cloud.Config, f keyFlags) error {
	if f.user != "" || len(f.scopes) > 0 {
		return snap.Usage("--user and --scopes are not for --kind scim", "a SCIM key only reports people and groups")
	}
	for _, o := range config.Organizations {
		if o.Slug == f.org && o.SignIn.Type == "oidc" {
			return nil
		}
	}
	return snap.Usage(f.org+" has no identity provider that could use a SCIM key",
		"set the sign_in type to oidc in the configuration first")
}

func (s *database) setKeyUser(ctx context.Context, spec *auth.KeySpec, f keyFlags) error {
	if f.user == "" || len(f.scopes) > 0 {
		return snap.Usage("a user key needs --user EMAIL and takes no --scopes",
			"it may do everything that its user's role allows")
	}
	m, err := s.UserByEmail(ctx, spec.OrgID, f.user)
	if err != nil {
		return noUser(f.org, f.user, err)
	}
	spec.UserID = m.ID
	return nil
}

func noUser(org, email string, err error) error {
	if snap.CodeOf(err) != snap.CodeNotFound {
		return err
	}
	return &snap.Error{
		Code: snap.CodeNotFound, Detail: fmt.Sprintf("%s has no user %s", org, email),
		Hint: "accounts appear at the first sign-in; list them with `snapcloud user list --org " + org + "`",
	}
}

func (p *program) keyList() *cobra.Command {
	var org, idle string
	c := &cobra.Command{
		Use:   "list --org SLUG",
		Short: "List an organization's API keys, except revoked ones",
		Args:  command.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var unused time.Duration
			if idle != "" {
				var err error
				if unused, err = snap.ParseDuration(idle); err != nil {
					return snap.Usage("--idle: "+err.Error(), "give a duration such as 90d")
				}
			}
			return p.withOrg(c.Context(), org, func(s *database, o store.Org) error {
				keys, err := s.OrgKeys(c.Context(), o.ID, unused)
				if err != nil {
					return err
				}
				return p.printKeys(keys)
			})
		},
	}
	c.Flags().StringVar(&idle, "idle", "", "only keys that have not been used for this long, such as 90d")
	c.Flags().StringVar(&org, "org", "", "slug of the organization (required)")
	c.MarkFlagRequired("org")
	return c
}

// keyRow is a key in the output of --json.
type keyRow struct {
	ID      string       `json:"id"`
	Kind    string       `json:"kind"`
	Name    string       `json:"name"`
	Hint    string       `json:"hint"`
	User    string       `json:"user,omitempty"`
	Scopes  []snap.Scope `json:"scopes,omitempty"`
	From    []string     `json:"from,omitempty"`
	Created string       `json:"created_at"`
	Expires string       `json:"expires_at,omitempty"`
	Used    string       `json:"last_used_at,omitempty"`
}

func (p *program) printKeys(keys []store.Key) error {
	rows, table := []keyRow{}, [][]string{}
	for _, k := range keys {
		row := keyRow{
			ID: strconv.FormatInt(k.ID, 10), Kind: string(k.Kind), Name: k.Name, Hint: k.Hint, User: k.User,
			Scopes: k.Scopes, From: networkStrings(k.Networks), Created: stamp(k.Created), Expires: stamp(k.Expires),
			Used: stamp(k.LastUsed),
		}
		rows = append(rows, row)
		table = append(table, []string{row.ID, row.Kind, row.Name, row.Hint, cmp.Or(row.User, "-"),
			cmp.Or(strings.Join(row.From, " "), "-"), cmp.Or(row.Expires, "-"), cmp.Or(row.Used, "-")})
	}
	if p.asJSON {
		return p.json(rows)
	}
	return p.table([]string{"ID", "KIND", "NAME", "KEY", "USER", "FROM", "EXPIRES", "LAST USED"}, table)
}

func networkStrings(networks []netip.Prefix) (all []string) {
	for _, n := range networks {
		all = append(all, n.String())
	}
	return all
}

func (p *program) keyRevoke() *cobra.Command {
	var org string
	c := &cobra.Command{
		Use:   "revoke --org SLUG ID",
		Short: "Revoke an API key immediately",
		Args:  command.ExactArgs("key ID"),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil {
				return snap.Usage(fmt.Sprintf("%q is not the ID of a key", args[0]),
					"list the keys with `snapcloud key list --org "+org+"`")
			}
			return p.withOrg(c.Context(), org, func(s *database, o store.Org) error {
				err := s.RevokeOrgKey(store.AllowReserve(c.Context()), o.ID, id)
				if snap.CodeOf(err) == snap.CodeNotFound {
					return &snap.Error{Code: snap.CodeNotFound,
						Detail: fmt.Sprintf("%s has no valid key %d", org, id),
						Hint:   "list the keys with `snapcloud key list --org " + org + "`"}
				}
				if err != nil {
					return err
				}
				fmt.Fprintf(p.stderr, "revoked key %d\n", id)
				return nil
			})
		},
	}
	c.Flags().StringVar(&org, "org", "", "slug of the organization (required)")
	c.MarkFlagRequired("org")
	return c
}

// stamp formats a time for people and scripts alike; the zero time is "".
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
