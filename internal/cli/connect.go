package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"snap"
	"snap/api"
	"snap/internal/local"
	"snap/internal/login"
)

// agent opens this machine's configuration and snapshots, for what may speak with
// the cloud service.
func (a *app) agent() (*local.Agent, error) {
	agent, err := a.configuration()
	if err != nil {
		return nil, err
	}
	a.roots, err = agent.Roots()
	return agent, err
}

// configuration opens this machine's configuration, also one with which the cloud
// service cannot be reached: for the commands that correct it.
func (a *app) configuration() (*local.Agent, error) {
	agent, err := local.Open(local.Options{ConfigFile: a.flags.config, Env: a.env, Now: a.now, Log: a.log,
		Passphrase: a.passphrase()})
	if err != nil {
		return nil, err
	}
	a.known.add(agent.Config().Cloud.APIKey)
	a.log.Debug("configuration", "file", agent.ConfigPath())
	if a.flags.config != "" && !agent.ConfigExists() {
		a.note("the configuration file %s does not exist yet", agent.ConfigPath())
	}
	return agent, nil
}

// connection is the cloud service with the credential that is used there.
type connection struct {
	*api.Client
	credential credential
	session    login.Session // when the credential is one
}

// credential names which of the possible credentials is in use (AUTH U12).
type credential struct {
	Source string `json:"source" doc:"environment, config or session"`
	Where  string `json:"where"`
	key    string
}

// The sources of a credential, in their order.
const (
	fromEnvironment = "environment"
	fromConfig      = "config"
	fromSession     = "session"
)

// apiKeyEnv is the variable that holds an API key.
const apiKeyEnv = "SNAPCLI_CLOUD__API_KEY"

// cloud connects to the configured cloud service with the credential that
// comes first: the session of --org, the environment's key, the session of
// SNAPCLI_ACCOUNT, cloud.api_key, the login session in use. Keys go to the agent
// mount, sessions to the other. Nothing is sent yet.
func (a *app) cloud(agent *local.Agent) (*connection, error) {
	base, err := api.CheckBaseURL(agent.Config().Cloud.URL)
	if err != nil {
		return nil, err
	}
	if c, first := a.keyFirst(agent); first {
		return a.dial(base, api.MountAgent, c.token(), c)
	}
	return a.cloudBySession(agent)
}

// accountEnv is the variable that selects an account.
const accountEnv = "SNAPCLI_ACCOUNT"

// account is the account that the command line or the environment selects.
func (a *app) account() login.Choice {
	if a.flags.org != "" {
		return login.Choice{Org: a.flags.org}
	}
	return login.Choice{Account: a.env(accountEnv)}
}

// keyFirst returns the API key that is set, and whether it is used rather than a
// login session.
func (a *app) keyFirst(agent *local.Agent) (c credential, first bool) {
	c, set := keyOf(agent)
	selected := a.account()
	return c, set && selected.Org == "" && (selected.Account == "" || c.Source == fromEnvironment)
}

// keyOf returns the API key that is set, if one is.
func keyOf(agent *local.Agent) (c credential, set bool) {
	c = credential{Source: fromConfig, Where: "cloud.api_key in " + agent.ConfigPath(),
		key: strings.TrimSpace(agent.Config().Cloud.APIKey)}
	if agent.Origin("cloud.api_key") == "environment" {
		c.Source, c.Where = fromEnvironment, apiKeyEnv
	}
	return c, c.key != ""
}

// token is the source of an API key. When the service refuses the key, the error
// says which key that was.
func (c credential) token() api.TokenSource {
	return func(_ context.Context, refused string) (string, error) {
		if refused == "" {
			return c.key, nil
		}
		hint := "check that key, or remove it to use the login session of `snapcli login`"
		if c.Source == fromEnvironment {
			hint = "unset " + apiKeyEnv + " to use the login session of `snapcli login`, or set it to a valid key"
		}
		return "", &snap.Error{Code: snap.CodeUnauthenticated, Detail: "the service refused the API key of " + c.Where,
			Hint: hint}
	}
}

const signInHint = "run `snapcli login`, or set " + apiKeyEnv

// cloudBySession connects with the login session, whatever keys there are: for
// what only a signed-in person may do.
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
		return nil, &snap.Error{
			Code: snap.CodeNotSignedIn, Detail: "you are not signed in to " + base,
			Hint: signInHint,
		}
	}
	a.known.add(session.AccessToken, session.RefreshToken)
	conn, err := a.dial(base, api.MountUser, a.remember(file.Source(base, a.http())),
		credential{Source: fromSession, Where: "login session"})
	if err != nil {
		return nil, err
	}
	conn.session = session
	return conn, nil
}

// remember keeps refreshed tokens out of the log too.
func (a *app) remember(source api.TokenSource) api.TokenSource {
	return func(ctx context.Context, refused string) (string, error) {
		token, err := source(ctx, refused)
		a.known.add(token)
		return token, err
	}
}

func (a *app) dial(base, mount string, token api.TokenSource, c credential) (*connection, error) {
	a.log.Debug("cloud", "url", base, "credential", c.Where)
	client, err := api.New(api.Options{BaseURL: base, Mount: mount, Token: token, UserAgent: userAgent(),
		HTTP:        a.http(),
		TraceParent: a.env("TRACEPARENT")})
	if err != nil {
		return nil, err
	}
	return &connection{Client: client, credential: c}, nil
}

// connect opens the agent and the cloud connection in one go.
func (a *app) connect() (*local.Agent, *connection, error) {
	agent, err := a.agent()
	if err != nil {
		return nil, nil, err
	}
	conn, err := a.cloud(agent)
	return agent, conn, err
}

// credentials is the file of login sessions, which tells when others could read
// it (AUTH U10). The whole command works with one account of it.
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

// signedIn connects with the login session; an API key does not replace it.
func (a *app) signedIn() (*connection, error) {
	agent, err := a.agent()
	if err != nil {
		return nil, err
	}
	conn, err := a.cloudBySession(agent)
	var e *snap.Error
	if errors.As(err, &e) && e.Hint == signInHint {
		return nil, &snap.Error{Code: e.Code, Detail: e.Detail,
			Hint: "run `snapcli login`; an API key is not enough for this"}
	}
	return conn, err
}

// open is the agent and its cloud client, which is nil when no cloud service
// is configured or nobody is signed in: for what also works without.
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
