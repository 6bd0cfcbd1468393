package cli

import (
	"cmp"
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"snap"
	"snap/api"
	"snap/internal/command"
	"snap/internal/local"
	"snap/internal/login"
)

func (a *app) loginCommand() *cobra.Command {
	var o login.Options
	var qr bool
	cmd := &cobra.Command{
		Use:   "login [URL]",
		Short: "Sign in to the cloud service",
		Long: `Login prints a short code and the URL of a sign-in page, and opens the page in
your browser. Sign in there, check that the page shows the same code, and
approve. The command then continues. You never enter a password or key in the
terminal. The argument URL is the address of the cloud service. A successful
login saves this address as cloud.url, so you need to give it only once.

If this machine has no browser, for example over SSH, open the sign-in page on
any other device; --qr shows its URL as a QR code. With --json, login prints one
JSON object per line, each with an event: code, waiting, done or error.

You can be signed in to several accounts of one service, for example in two
organizations, or as two users. A login leaves your other accounts signed in,
and its account becomes the one in use. If you sign in again as the same user,
the new session replaces the old one. An account has the name given with --as,
or the slug of its organization, or if that is taken, your e-mail address. See
` + "`snapcli switch`" + ` and ` + "`snapcli whoami --all`" + `.

For automation, use an API key instead: set ` + apiKeyEnv + `.`,
		Example: examples(
			"sign in for the first time", "snapcli login https://cloud.example",
			"sign in again", "snapcli login",
			"sign in on a machine without a browser", "snapcli login --no-browser",
			"sign in on a phone", "snapcli login --qr --no-browser",
			"sign in as a second account", "snapcli login --as work"),
		Args: command.AtMostOneArg("URL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.CloudURL = cmp.Or(args...)
			return a.login(cmd.Context(), o, &loginPrompt{app: a, qr: qr})
		},
	}
	cmd.Flags().StringVar(&o.AuthURL, "auth-url", "",
		"override the auth service URL (default: discovered from the cloud service)")
	cmd.Flags().StringVar(&o.ClientID, "client-id", "",
		"override the OAuth client_id (default: discovered from the cloud service)")
	cmd.Flags().BoolVar(&o.NoBrowser, "no-browser", false, "do not open the sign-in page in a browser")
	cmd.Flags().BoolVar(&qr, "qr", false, "also show the URL of the sign-in page as a QR code")
	cmd.Flags().StringVar(&o.As, "as", "", "name of the account (default: the slug of its organization)")
	cmd.Flags().StringVar(&o.Scope, "scope", "", "optional OAuth scope to request")
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) login(ctx context.Context, o login.Options, prompt *loginPrompt) error {
	agent, err := a.agent()
	if err != nil {
		return err
	}
	given := o.CloudURL
	if o.CloudURL, err = api.CheckBaseURL(cmp.Or(given, agent.Config().Cloud.URL)); err != nil {
		return err
	}
	if key, first := a.keyFirst(agent); first { // AUTH U12
		a.warn("%s is set and overrides the login session; unset it to use the session", key.Where)
	}
	if o.ConfigDir, err = local.ConfigDir(a.env); err != nil {
		return err
	}
	o.Program, o.Env, o.Now, o.HTTP = "snapcli "+snap.Version(), a.env, a.now, a.http()
	o.Host, _ = os.Hostname() // without a host name the approval page shows none
	o.Terminal = a.canAsk()
	o.Confirm = func(question string) bool {
		yes, err := a.askYesNo(ctx, question, "")
		return err == nil && yes
	}
	o.Prompt = prompt
	s, err := login.Login(ctx, o)
	prompt.end()
	if err != nil {
		prompt.writeFailure(err)
		return err
	}
	if given != "" && s.CloudURL != agent.Config().Cloud.URL {
		if err := a.saveCloudURL(agent, s.CloudURL); err != nil {
			return err
		}
	}
	if a.flags.json {
		return a.printEvent(doneEvent{"done", s.CloudURL, s.Account(), s.Email, s.Organization})
	}
	a.done("", "signed in to %s%s", s.CloudURL, asWhom(s))
	if err := a.noteAccounts(s); err != nil {
		return err
	}
	a.next("list the snapshots that you can see: `snapcli cloud snapshots`")
	return nil
}

// saveCloudURL saves url as the cloud service that later commands use.
func (a *app) saveCloudURL(agent *local.Agent, url string) error {
	overridden, err := agent.Set("cloud.url", url)
	if err != nil {
		return err
	}
	if overridden != "" {
		a.warn("%s is set and overrides the saved cloud.url; unset it to use %s", overridden, url)
	}
	return nil
}

func asWhom(s login.Session) string {
	return withPrefix(" as ", s.Email) + withPrefix(" of ", s.Organization)
}

// doneEvent is the JSON event of a successful login. With --json, login writes each event as one
// object on its own line: first code, then waiting, and at the end done or error (AUTH U16).
type doneEvent struct {
	Event        string `json:"event" doc:"done"`
	CloudURL     string `json:"cloud_url"`
	Account      string `json:"account"`
	Email        string `json:"email,omitempty"`
	Organization string `json:"organization,omitempty"`
}

type codeEvent struct {
	Event    string    `json:"event" doc:"code"`
	UserCode string    `json:"user_code"`
	URL      string    `json:"verification_uri"`
	Complete string    `json:"verification_uri_complete,omitempty"`
	Expires  time.Time `json:"expires_at"`
}

type waitingEvent struct {
	Event     string `json:"event" doc:"waiting"`
	Remaining int    `json:"remaining_seconds" doc:"seconds until the code expires"`
}

type failedEvent struct {
	Event  string    `json:"event" doc:"error"`
	Code   snap.Code `json:"code"`
	Detail string    `json:"detail"`
	Hint   string    `json:"hint,omitempty"`
	Exit   int       `json:"exit"`
}

// waitingEvery is the interval between waiting events with --json.
const waitingEvery = 30 * time.Second

// loginPrompt shows the progress of a login on a terminal, as lines in a pipe, or as events with
// --json.
type loginPrompt struct {
	*app
	qr      bool          // also draw the URL as a QR code (AUTH U5)
	waiting bool          // the terminal shows a countdown line
	shown   time.Duration // the time that remained at the last waiting event
}

// Code prints the URL and the code, with the code on a line of its own (AUTH U1). --quiet does not
// hide them, because nobody can sign in without them.
func (p *loginPrompt) Code(c login.Code) {
	if p.flags.json {
		_ = p.printEvent(codeEvent{"code", c.UserCode, c.URL, c.Complete, c.Expires.UTC()})
		return
	}
	opened := ""
	if c.Opened {
		opened = " (your browser is opening it)"
	}
	then := "enter this code"
	if c.Complete != "" {
		then = "check that it shows this code"
	}
	p.say("To sign in, open this URL%s:\n\n  %s\n", opened, cmp.Or(c.Complete, c.URL))
	p.say("and %s:\n\n  %s\n", then, raw(p.paintErr(bold, snap.CleanText(c.UserCode))))
	if p.qr {
		p.draw(cmp.Or(c.Complete, c.URL))
	}
}

// draw prints a URL as a QR code to standard error, like the rest of the prompt.
func (p *loginPrompt) draw(url string) {
	drawing := login.QR(url)
	if drawing == "" {
		p.note("the URL is too long for a QR code")
		return
	}
	p.write(drawing + "\n")
}

// Waiting shows a countdown on a terminal. With --json, it writes an event every [waitingEvery].
func (p *loginPrompt) Waiting(remaining time.Duration) {
	if p.flags.json && (p.shown == 0 || p.shown-remaining >= waitingEvery) {
		p.shown = remaining
		_ = p.printEvent(waitingEvent{"waiting", int(remaining.Seconds())})
	}
	if !p.io.ErrTerminal || p.flags.quiet || p.flags.debug || p.flags.json {
		return
	}
	p.waiting = true
	p.write("\r\x1b[K" + p.paintErr(faint, "waiting for approval, "+remaining.Round(time.Second).String()+" left"))
}

// Note prints a line of text.
func (p *loginPrompt) Note(text string) {
	p.end()
	p.note("%s", text)
}

// writeFailure writes the last JSON event of a failed login. The error is also reported in the
// usual way.
func (p *loginPrompt) writeFailure(err error) {
	if !p.flags.json {
		return
	}
	e := asError(err)
	_ = p.printEvent(failedEvent{"error", e.Code, p.secrets.redact(e.Error()), e.Hint, e.Code.Info().Exit})
}

// end removes the countdown line.
func (p *loginPrompt) end() {
	if p.waiting {
		p.waiting = false
		p.write("\r\x1b[K")
	}
}
