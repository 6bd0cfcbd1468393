package cli

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"snap"
	"snap/api"
	"snap/internal/command"
)

func (a *app) whoamiCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "whoami",
		Short: "Show the current login and validate the session",
		Long: `Whoami asks the cloud service for your user, organization, role and groups, and
shows which credential was used. Commands use the first of these credentials
that exists:

  1. the login session of the organization in --org
  2. the API key in ` + apiKeyEnv + `
  3. the login session of the account in ` + accountEnv + `
  4. the API key in cloud.api_key of the config file
  5. in a CI job: the job's token, unless --org or ` + accountEnv + ` is given
  6. the login session of the account in use

A login session is refreshed first, so that the result also holds for the next
request. With --all, every account of the service on this machine is checked and
listed.`,
		Example: examples("see who you are", "snapcli whoami",
			"your e-mail address, for a script", "snapcli whoami --quiet",
			"list your accounts", "snapcli whoami --all"),
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if all {
				return a.whoamiAll(cmd.Context())
			}
			return a.whoami(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "list all accounts of the service on this machine")
	a.jsonFlag(cmd)
	return cmd
}

// identity is the JSON output of whoami.
type identity struct {
	api.Me
	Cloud     string     `json:"cloud_url"`
	Source    string     `json:"source" doc:"environment, config, job or session"`
	Account   string     `json:"account,omitempty" doc:"name of the account, for a login session"`
	ExpiresAt *time.Time `json:"access_token_expires_at,omitempty" doc:"end of the access token, which is refreshed"`
}

func (a *app) whoami(ctx context.Context) error {
	conn, err := a.connect()
	if err != nil {
		return err
	}
	if err := a.refresh(ctx, conn); err != nil {
		return err
	}
	me, err := conn.Me(ctx)
	if err != nil {
		return err
	}
	id := identity{Me: me, Cloud: conn.BaseURL(), Source: conn.credential.Source, ExpiresAt: a.sessionExpiry(conn)}
	if id.Source == fromSession {
		id.Account = conn.session.Account()
	}
	switch {
	case a.flags.json:
		return a.printJSON(id)
	case a.flags.quiet:
		a.result("%s", cmp.Or(me.Email, me.Organization))
		return nil
	}
	a.fields(
		"User", userOf(me),
		"Organization", nameWithID(me.OrganizationName, me.Organization),
		"Role", string(me.Role),
		"Groups", a.groupsOf(me),
		"Stored", a.usage(me.Usage),
		"Stored by all", a.usage(me.OrgUsage),
		"Credential", credentialOf(me, conn.credential),
		"Account", unlessEqual(me.Organization, id.Account),
		"Cloud", conn.BaseURL(),
		"Session", a.sessionLife(id),
		"Sign in again", a.signInDue(me),
	)
	for _, n := range me.Notices {
		a.warn("%s: %s", a.moment(n.At), n.Text)
	}
	if me.GroupsUnknown {
		a.warn("you have no access through group shares: %s", whyGroupsUnknown(me))
	}
	return nil
}

// refresh refreshes a login session, so that whoami reports whether the session still works, not
// only whether its last access token does (AUTH U13). It does nothing for other credentials.
func (a *app) refresh(ctx context.Context, conn *connection) error {
	if conn.credential.Source != fromSession {
		return nil
	}
	file, err := a.credentials()
	if err != nil {
		return err
	}
	s, err := file.Refresh(ctx, conn.BaseURL(), a.http())
	a.secrets.add(s.AccessToken, s.RefreshToken)
	return err
}

// sessionExpiry returns the expiry of a login session's access token, or nil. Call it after the
// request, which may have refreshed the token.
func (a *app) sessionExpiry(conn *connection) *time.Time {
	if conn.credential.Source != fromSession {
		return nil
	}
	file, err := a.credentials()
	if err != nil {
		return nil
	}
	s, found, err := file.Session(conn.BaseURL())
	if err != nil || !found || s.Expiry.IsZero() {
		return nil
	}
	expiry := s.Expiry.UTC()
	return &expiry
}

// unlessEqual returns name, or an empty string if name and other are equal.
func unlessEqual(other, name string) string {
	if name == other {
		return ""
	}
	return name
}

func (a *app) sessionLife(id identity) string {
	if id.ExpiresAt == nil {
		return ""
	}
	return "valid; its access token expires " + a.when(*id.ExpiresAt) + " and is renewed automatically"
}

// signInDue describes when the user must sign in again even if the session is refreshed.
func (a *app) signInDue(me api.Me) string {
	if me.SignInDue == nil || me.Credential.Kind.IsKey() {
		return "" // keys do not sign in, and older services do not report the time
	}
	return "by " + a.when(*me.SignInDue)
}

func userOf(me api.Me) string {
	if me.Email == "" {
		return "none: this key acts as the organization"
	}
	return nameWithID(me.Name, me.Email)
}

// nameWithID formats a name followed by its identifier.
func nameWithID(name, id string) string {
	if name == "" || name == id {
		return id
	}
	return name + " (" + id + ")"
}

func (a *app) groupsOf(me api.Me) string {
	if me.Email == "" || me.GroupsUnknown {
		return ""
	}
	var names []string
	for _, g := range me.Groups {
		names = append(names, g.Name)
	}
	text := "none"
	if len(names) > 0 {
		text = strings.Join(names, ", ")
	}
	if me.GroupsAsOf != nil {
		text += ", as of " + a.when(*me.GroupsAsOf)
	}
	return text
}

// usage describes how much a user or an organization stores at the service, and the limit.
func (a *app) usage(u *api.Usage) string {
	if u == nil {
		return "" // older services do not report it
	}
	text := snap.Plural(u.Snapshots, "snapshot", "snapshots") + ", " + size(u.Bytes)
	if u.BytesMax > 0 {
		text += " of " + size(u.BytesMax)
	}
	if u.Uploads == 0 {
		return text
	}
	text += "; " + snap.Plural(u.Uploads, "unfinished upload", "unfinished uploads")
	if u.UploadsMax > 0 {
		text += " of " + strconv.Itoa(u.UploadsMax)
	}
	return text
}

// whyGroupsUnknown returns the service's reason, or a general one because older services give none.
func whyGroupsUnknown(me api.Me) string {
	return cmp.Or(me.GroupsWhy, "the identity provider sent no usable groups; ask your admin about the groups claim")
}

func credentialOf(me api.Me, c credential) string {
	text := map[snap.CredentialKind]string{
		snap.UserKey: "user-scoped API key", snap.PipelineKey: "organization-level API key for pipelines",
		snap.AgentKey: "organization-level API key of a service agent", snap.LoginToken: "login session",
		snap.Browser: "browser session",
	}[me.Credential.Kind]
	if me.Credential.Name != "" {
		text += ` "` + me.Credential.Name + `"`
	}
	if c.Source != fromSession {
		text += ", from " + c.Where
	}
	if len(me.Credential.Scopes) > 0 {
		var scopes []string
		for _, s := range me.Credential.Scopes {
			scopes = append(scopes, string(s))
		}
		text += ", scopes " + strings.Join(scopes, ", ")
	}
	return text
}
