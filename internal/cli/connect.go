package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"snap"
	"snap/api"
	"snap/internal/local"
	"snap/internal/login"
)

// agent opens this machine's configuration and snapshots, for commands that may contact the cloud
// service.
func (a *app) agent() (*local.Agent, error) {
	agent, err := a.configuration()
	if err != nil {
		return nil, err
	}
	a.roots, err = agent.Roots()
	return agent, err
}

// withAgent returns the RunE function of a command that uses this machine's configuration and
// snapshots.
func (a *app) withAgent(run func(context.Context, *local.Agent, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		agent, err := a.agent()
		if err != nil {
			return err
		}
		return run(cmd.Context(), agent, args)
	}
}

// withService returns the RunE function of a command that sends requests to the cloud service.
func (a *app) withService(run func(context.Context, *connection, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		conn, err := a.connect()
		if err != nil {
			return err
		}
		return run(cmd.Context(), conn, args)
	}
}

// configuration opens this machine's configuration even if its cloud settings are invalid. It is
// for the commands that correct them.
func (a *app) configuration() (*local.Agent, error) {
	agent, err := local.Open(local.Options{ConfigFile: a.flags.config, Env: a.env, Now: a.now, Log: a.log,
		Passphrase: a.passphrase()})
	if err != nil {
		return nil, err
	}
	a.secrets.add(agent.Config().Cloud.APIKey)
	a.log.Debug("configuration", "file", agent.ConfigPath())
	if a.flags.config != "" && !agent.ConfigExists() {
		a.note("the configuration file %s does not exist yet", agent.ConfigPath())
	}
	return agent, nil
}

// connection is a connection to the cloud service and the credential it uses.
type connection struct {
	*api.Client
	credential credential
	session    login.Session // set if the credential is a login session
}

// credential identifies which of the possible credentials is in use (AUTH U12).
type credential struct {
	Source string `json:"source" doc:"environment, config, job or session"`
	Where  string `json:"where"`
	key    string
}

// The sources of a credential, in order of precedence.
const (
	fromEnvironment = "environment"
	fromConfig      = "config"
	fromJob         = "job"
	fromSession     = "session"
)

// apiKeyEnv is the variable that holds an API key.
const apiKeyEnv = "SNAPCLI_CLOUD__API_KEY"

// cloud connects to the configured cloud service with the first available credential: the session
// of --org, the key in the environment, the session of SNAPCLI_ACCOUNT, cloud.api_key, the token of
// the CI job, the login session in use. Sessions use the user mount; keys and job tokens use the
// agent mount. cloud sends no request.
func (a *app) cloud(agent *local.Agent) (*connection, error) {
	base, err := api.CheckBaseURL(agent.Config().Cloud.URL)
	if err != nil {
		return nil, err
	}
	if c, first := a.keyFirst(agent); first {
		return a.dial(base, api.MountAgent, c.token(), c)
	}
	if job, found := login.FindJob(a.env, a.secrets.add); found && a.account() == (login.Choice{}) {
		return a.cloudByJob(base, job)
	}
	return a.cloudBySession(agent)
}

// cloudByJob connects with the credential that the service issues in exchange for the token of a CI
// job.
func (a *app) cloudByJob(base string, job login.Job) (*connection, error) {
	file, err := a.credentials()
	if err != nil {
		return nil, err
	}
	client, err := api.New(api.Options{BaseURL: base, UserAgent: userAgent(), HTTP: a.http()})
	if err != nil {
		return nil, err
	}
	return a.dial(base, api.MountAgent, a.hideTokens(file.JobSource(job, client, a.http())),
		credential{Source: fromJob, Where: "the token of " + job.Where})
}

// accountEnv is the variable that selects an account.
const accountEnv = "SNAPCLI_ACCOUNT"

// account returns the account selected by the command line or the environment.
func (a *app) account() login.Choice {
	if a.flags.org != "" {
		return login.Choice{Org: a.flags.org}
	}
	return login.Choice{Account: a.env(accountEnv)}
}

// keyFirst returns the configured API key, and whether it takes precedence over a login session.
func (a *app) keyFirst(agent *local.Agent) (c credential, first bool) {
	c, set := configuredKey(agent)
	selected := a.account()
	return c, set && selected.Org == "" && (selected.Account == "" || c.Source == fromEnvironment)
}

// configuredKey returns the configured API key, if there is one.
func configuredKey(agent *local.Agent) (c credential, set bool) {
	c = credential{Source: fromConfig, Where: "cloud.api_key in " + agent.ConfigPath(),
		key: strings.TrimSpace(agent.Config().Cloud.APIKey)}
	if agent.Origin("cloud.api_key") == "environment" {
		c.Source, c.Where = fromEnvironment, apiKeyEnv
	}
	return c, c.key != ""
}

// token returns the key as a token source. If the service refuses the key, the error says where the
// key came from.
func (c credential) token() api.TokenSource {
	return func(_ context.Context, refused string) (string, error) {
		if refused == "" {
			return c.key, nil
		}
		hint := "check that key, or remove it to use the login session of `snapcli login`"
		if c.Source == fromEnvironment {
			hint = "unset " + apiKeyEnv + " to use the login session of `snapcli login`, or set it to a valid key"
		}
		return "", &snap.Error{Code: snap.CodeUnauthenticated,
			Detail: "the service refused the API key from " + c.Where, Hint: hint}
	}
}

const signInHint = "run `snapcli login`, or set " + apiKeyEnv

// loginSessions returns the agent, the URL of the configured service and the file that holds the
// login sessions.
func (a *app) loginSessions() (agent *local.Agent, base string, file *login.File, err error) {
	if agent, err = a.agent(); err != nil {
		return nil, "", nil, err
	}
	if base, err = api.CheckBaseURL(agent.Config().Cloud.URL); err != nil {
		return nil, "", nil, err
	}
	file, err = a.credentials()
	return agent, base, file, err
}

// resolve connects to the service and finds a snapshot by its ID or the start of it.
func (a *app) resolve(ctx context.Context, typed string) (*connection, api.Snapshot, error) {
	conn, err := a.connect()
	if err != nil {
		return nil, api.Snapshot{}, err
	}
	s, err := conn.Resolve(ctx, typed)
	return conn, s, err
}

// cloudBySession connects with the login session even if an API key is set. It is for requests that
// only a signed-in user may make.
func (a *app) cloudBySession(agent *local.Agent) (*connection, error) {
	base, err := api.CheckBaseURL(agent.Config().Cloud.URL)
	if err != nil {
		return nil, err
	}
	file, err := a.credentials()
	if err != nil {
		return nil, err
	}
	session, found, err := file.Session(base)
	switch {
	case snap.CodeOf(err) == snap.CodeNotSignedIn || snap.CodeOf(err) == snap.CodeUsage:
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("read the login session: %w", err)
	case !found:
		return nil, &snap.Error{Code: snap.CodeNotSignedIn, Detail: "you are not signed in to " + base,
			Hint: signInHint}
	}
	a.secrets.add(session.AccessToken, session.RefreshToken)
	conn, err := a.dial(base, api.MountUser, a.hideTokens(file.Source(base, a.http())),
		credential{Source: fromSession, Where: "login session"})
	if err != nil {
		return nil, err
	}
	conn.session = session
	return conn, nil
}

// hideTokens wraps a token source so that its tokens are registered as secrets and stay out of the
// log.
func (a *app) hideTokens(source api.TokenSource) api.TokenSource {
	return func(ctx context.Context, refused string) (string, error) {
		token, err := source(ctx, refused)
		a.secrets.add(token)
		return token, err
	}
}

func (a *app) dial(base, mount string, token api.TokenSource, c credential) (*connection, error) {
	a.log.Debug("cloud", "url", base, "credential", c.Where)
	client, err := api.New(api.Options{BaseURL: base, Mount: mount, Token: token, UserAgent: userAgent(),
		HTTP: a.http(), ReadTimeout: a.timeouts.read, TraceParent: a.env("TRACEPARENT")})
	if err != nil {
		return nil, err
	}
	a.contacted = client
	return &connection{Client: client, credential: c}, nil
}

func (a *app) connect() (*connection, error) {
	_, conn, err := a.connectAgent()
	return conn, err
}

// connectAgent opens the agent and the connection to the cloud service.
func (a *app) connectAgent() (*local.Agent, *connection, error) {
	agent, err := a.agent()
	if err != nil {
		return nil, nil, err
	}
	conn, err := a.cloud(agent)
	return agent, conn, err
}

// credentials returns the file of login sessions. The user is warned if others could read it (AUTH
// U10). Every call returns the same File, so that all parts of a command use the same account.
func (a *app) credentials() (*login.File, error) {
	if a.sessions != nil {
		return a.sessions, nil
	}
	dir, err := local.ConfigDir(a.env)
	if err != nil {
		return nil, err
	}
	f := login.OpenFile(dir)
	f.Warn = func(text string) { a.warn("%s", text) }
	f.Choose(a.account())
	a.sessions = f
	return f, nil
}

// signedIn connects with the login session. It does not accept an API key instead.
func (a *app) signedIn() (*connection, error) {
	agent, err := a.agent()
	if err != nil {
		return nil, err
	}
	conn, err := a.cloudBySession(agent)
	if e, ok := errors.AsType[*snap.Error](err); ok && e.Hint == signInHint {
		return nil, &snap.Error{Code: e.Code, Detail: e.Detail,
			Hint: "run `snapcli login`; an API key is not enough for this"}
	}
	return conn, err
}

// open returns the agent and its cloud client. The client is nil if no cloud service is configured
// or nobody is signed in. open is for commands that also work without the cloud.
func (a *app) open() (*local.Agent, *api.Client, error) {
	agent, err := a.agent()
	if err != nil {
		return nil, nil, err
	}
	if agent.Config().Cloud.URL == "" {
		return agent, nil, nil
	}
	conn, err := a.cloud(agent)
	if snap.CodeOf(err) == snap.CodeNotSignedIn {
		a.warn("%s; only snapshots on this machine are shown", err)
		return agent, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return agent, conn.Client, nil
}
