package operator

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"snap"
	"snap/internal/cloud"
	"snap/internal/command"
	"snap/internal/store"
)

func (p *program) org() *cobra.Command {
	c := command.Parent("org", "Show organizations", "")
	c.AddCommand(&cobra.Command{
		Use:   "list",
		Short: "List the organizations",
		Args:  command.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withStore(c.Context(), func(s *database) error {
				orgs, err := s.Orgs(c.Context())
				if err != nil {
					return err
				}
				type row struct {
					Slug   string `json:"slug"`
					Name   string `json:"name"`
					Closed bool   `json:"closed"`
				}
				rows, table := []row{}, [][]string{}
				for _, o := range orgs {
					rows = append(rows, row{o.Slug, o.Name, o.Closed})
					table = append(table, []string{o.Slug, o.Name,
						map[bool]string{true: "closed", false: "open"}[o.Closed]})
				}
				if p.asJSON {
					return p.json(rows)
				}
				return p.table([]string{"SLUG", "NAME", "STATE"}, table)
			})
		},
	})
	return c
}

func (p *program) user() *cobra.Command {
	var org string
	c := command.Parent("user", "List and disable users, and set their roles", "")
	c.PersistentFlags().StringVar(&org, "org", "", "slug of the organization (required)")
	c.MarkPersistentFlagRequired("org")
	c.AddCommand(&cobra.Command{
		Use: "list --org SLUG", Short: "List an organization's users", Args: command.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return p.listUsers(c, org) },
	}, &cobra.Command{
		Use: "disable --org SLUG EMAIL", Short: "Disable a user immediately, and keep the account",
		Args: command.ExactArgs("e-mail address"),
		RunE: func(c *cobra.Command, args []string) error { return p.disableUser(c, org, args[0]) },
	}, &cobra.Command{
		Use: "enable --org SLUG EMAIL", Short: "Enable a disabled user",
		Args: command.ExactArgs("e-mail address"),
		RunE: func(c *cobra.Command, args []string) error {
			return p.withUser(c, org, args[0], "enabled", func(s *database, m snap.Member) error {
				return s.SetDisabled(c.Context(), m.ID, false)
			})
		},
	}, &cobra.Command{
		Use:   "role --org SLUG EMAIL owner|admin|member|viewer",
		Short: "Set a user's role until the identity provider sets it again",
		Long: `Role sets a user's role. It takes effect at the user's next request. The
identity provider sets the role again at the user's next sign-in or check (every
sign_in.recheck while they are active), or when SCIM changes their groups. To
change a role permanently, change the user's groups or the setting
sign_in.roles. To end access, use "snapcloud user disable". The role of a local
user is set in the configuration.`,
		Args: command.ExactArgs("e-mail address", "role"),
		RunE: func(c *cobra.Command, args []string) error {
			role := snap.Role(args[1])
			if !role.Valid() {
				return snap.Usage(fmt.Sprintf("%q is not a role", args[1]),
					"the roles are owner, admin, member and viewer")
			}
			return p.withUser(c, org, args[0], "now "+args[1], func(s *database, m snap.Member) error {
				if err := p.checkNotConfigured(s.config, org, m.Email, role); err != nil {
					return err
				}
				return s.SetRole(c.Context(), m.ID, role)
			})
		},
	})
	return c
}

// checkNotConfigured returns an error for a local user. The configuration sets the role of such a
// user, and every start of the service applies it again.
func (p *program) checkNotConfigured(config cloud.Config, org, email string, role snap.Role) error {
	for _, o := range config.Organizations {
		if o.Slug != org || o.SignIn.Type != "local" {
			continue
		}
		for i, u := range o.Users {
			if strings.EqualFold(u.Email, email) {
				return snap.Usage(email+" is a local user, whose role is set in the configuration",
					fmt.Sprintf("change it there to `role: %s`, %s, and start the service again", role,
						p.placeOf(u.Email, org, i)))
			}
		}
	}
	return nil
}

// placeOf returns where the configuration file lists a local user.
func (p *program) placeOf(email, org string, index int) string {
	text, err := os.ReadFile(p.configFile)
	if err == nil {
		for i, line := range strings.Split(string(text), "\n") {
			words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\r'\",:{}[]", r) })
			if slices.Contains(words, email) {
				return fmt.Sprintf("in line %d of %s", i+1, p.configFile)
			}
		}
	}
	return fmt.Sprintf("in users[%d] of the organization %s", index, org)
}

// disableUser disables all accounts with an e-mail.
func (p *program) disableUser(c *cobra.Command, org, email string) error {
	return p.withOrg(c.Context(), org, func(s *database, o store.Org) error {
		accounts, err := s.UsersByEmail(c.Context(), o.ID, email)
		if err != nil {
			return noUser(org, email, err)
		}
		for _, m := range accounts {
			if err := s.SetDisabled(store.AllowReserve(c.Context()), m.ID, true); err != nil {
				return err
			}
		}
		fmt.Fprintf(p.stderr, "disabled %s of %s\n", snap.Plural(len(accounts), "account", "accounts"), email)
		return nil
	})
}

func (p *program) withUser(c *cobra.Command, org, email, state string, do func(*database, snap.Member) error) error {
	return p.withOrg(c.Context(), org, func(s *database, o store.Org) error {
		m, err := s.UserByEmail(c.Context(), o.ID, email)
		if err != nil {
			return noUser(org, email, err)
		}
		if err := do(s, m); err != nil {
			return err
		}
		fmt.Fprintf(p.stderr, "%s is %s\n", email, state)
		return nil
	})
}

// userRow is a user in the output of --json.
type userRow struct {
	Email    string    `json:"email"`
	Name     string    `json:"name"`
	Role     snap.Role `json:"role"`
	Disabled bool      `json:"disabled"`
	Groups   []string  `json:"groups"`
}

func (p *program) listUsers(c *cobra.Command, org string) error {
	return p.withStore(c.Context(), func(s *database) error {
		if err := cloud.ApplyDirectory(store.AllowReserve(c.Context()), s.Store, s.config); err != nil {
			return err
		}
		o, err := s.org(c.Context(), org)
		if err != nil {
			return err
		}
		caller, err := s.CallerOfOrg(c.Context(), o.ID)
		if err != nil {
			return err
		}
		members, err := s.Members(c.Context(), caller)
		if err != nil {
			return err
		}
		rows, table := []userRow{}, [][]string{}
		for _, m := range members {
			row := userRow{Email: m.Email, Name: m.Name, Role: m.Role, Disabled: m.Disabled, Groups: []string{}}
			for _, g := range m.Groups {
				row.Groups = append(row.Groups, g.Name)
			}
			rows = append(rows, row)
			table = append(table, []string{m.Email, m.Name, string(m.Role), strconv.FormatBool(m.Disabled),
				cmp.Or(strings.Join(row.Groups, ", "), "-")})
		}
		if p.asJSON {
			return p.json(rows)
		}
		return p.table([]string{"EMAIL", "NAME", "ROLE", "DISABLED", "GROUPS"}, table)
	})
}
