package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"

	"snap"
	"snap/api"
	"snap/internal/command"
	"snap/internal/local"
)

func (a *app) doctorCommand() *cobra.Command {
	var fix, verbose bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check everything that snapcli needs, and say how to fix problems",
		Long: `Doctor checks versions, the config file and its permissions, the snapshot
folder, the databases of every target and the programs they need, the cloud
service, its clock, and your credential. It prints one line for each target,
followed by its problems. --verbose prints every check. It changes nothing
unless you give --fix, and it exits with an error if any check fails.

It also lists the remains of failed and killed commands: temporary files, and
scratch databases, journals and roles on the destination and scratch servers.
--fix removes them.`,
		Example: examples("check everything", "snapcli doctor", "for a bug report", "snapcli doctor --json"),
		Args:    command.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context(), fix, verbose) },
	}
	cmd.Flags().BoolVar(&fix, "fix", false, "remove the remains of failed and killed commands")
	cmd.Flags().BoolVar(&verbose, "verbose", false, "print every check, not only the problems")
	a.jsonFlag(cmd)
	return cmd
}

// The possible verdicts of a finding.
const (
	healthy = "ok"
	warned  = "warning"
	broken  = "broken"
)

// finding is the result of one of doctor's checks.
type finding struct {
	What    string `json:"what" doc:"subject of the check"`
	Verdict string `json:"verdict" doc:"ok, warning or broken"`
	Text    string `json:"says" doc:"result, as text for people"`
	Hint    string `json:"hint,omitempty"`
	code    snap.Code
	target  string // the target that was checked; "" for other checks
	always  bool   // print it even if it is not a problem
}

// examination collects findings.
type examination struct {
	*app

	findings []finding
	target   string // the target that is being checked
	brief    bool   // print only one line for each target, and the problems
}

func (x *examination) add(what, verdict, says, hint string) {
	x.findings = append(x.findings, finding{What: what, Verdict: verdict, Text: says, Hint: hint, target: x.target})
}

func (x *examination) addError(what, verdict string, err error) {
	e := asError(err)
	x.findings = append(x.findings, finding{What: what, Verdict: verdict, Text: x.secrets.redact(e.Error()),
		Hint: e.Hint, code: e.Code, target: x.target})
}

func (a *app) doctor(ctx context.Context, fix, verbose bool) error {
	x := &examination{app: a, brief: !verbose}
	x.add("snapcli", healthy, fmt.Sprintf("%s, %s, %s/%s", snap.Version(), runtime.Version(), runtime.GOOS,
		runtime.GOARCH), "")
	if agent := x.configuration(); agent != nil {
		x.snapshots(agent)
		for _, t := range agent.Targets() {
			x.checkTarget(ctx, agent, t)
		}
		x.leftovers(ctx, agent, fix)
		x.cloudService(ctx, agent)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return x.report()
}

// configuration checks the config file and the credentials file. It returns nil if the
// configuration cannot be read.
func (x *examination) configuration() *local.Agent {
	agent, err := x.agent()
	if err != nil {
		x.addError("config file", broken, err)
		return nil
	}
	path := agent.ConfigPath()
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		x.add("config file", warned, path+" does not exist", "create one with `snapcli config edit`")
	case err != nil:
		x.addError("config file", broken, err)
	case agent.Origin("cloud.api_key") == "file" && info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows":
		x.add("config file", warned, fmt.Sprintf("%s holds an API key and can be read by others (mode %04o)", path,
			info.Mode().Perm()), "run: chmod 600 "+path)
	default:
		x.add("config file", healthy, path+", "+snap.Plural(len(agent.Targets()), "target", "targets"), "")
	}
	for _, f := range agent.Flaws() {
		switch {
		case f.Tried: // the check that connects with this setting reports it
		case f.Doubt:
			x.addError(f.Key, warned, f.Err)
		default:
			x.addError(f.Key, broken, f.Err)
		}
	}
	x.credentialsFile()
	return agent
}

func (x *examination) credentialsFile() {
	dir, err := local.ConfigDir(x.env)
	if err != nil {
		return
	}
	path := filepath.Join(dir, "credentials.json")
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		x.add("login sessions", warned, fmt.Sprintf("%s can be read by others (mode %04o)", path, info.Mode().Perm()),
			"run: chmod 600 "+path)
	}
}

// snapshots checks that the local snapshot folder can be read and written, and reports damaged
// snapshots.
func (x *examination) snapshots(agent *local.Agent) {
	dir, err := local.DataDir(x.env)
	if err != nil {
		x.addError("snapshots", broken, err)
		return
	}
	list, err := agent.Snapshots("")
	if err != nil {
		x.addError("snapshots", broken, err)
		return
	}
	var bytes int64
	for _, s := range list {
		bytes += s.Size
	}
	if err := checkWritable(dir); err != nil {
		x.addError("snapshots", broken, fmt.Errorf("no file can be written to the folder %s: %w", dir, err))
		return
	}
	for _, path := range agent.Damaged() {
		x.add("snapshots", warned, "the record "+path+" is damaged, so its snapshot is not listed",
			"delete the record and its snapshot file, then pull or build the snapshot again")
	}
	x.add("snapshots", healthy,
		fmt.Sprintf("%s in %s, %s", snap.Plural(len(list), "snapshot", "snapshots"), dir, size(bytes)), "")
}

// checkWritable tries to create a file in a folder, or in its nearest parent that exists.
func checkWritable(dir string) error {
	for {
		_, err := os.Stat(dir)
		if err == nil {
			break
		}
		if !errors.Is(err, os.ErrNotExist) || filepath.Dir(dir) == dir {
			return err
		}
		dir = filepath.Dir(dir)
	}
	f, err := os.CreateTemp(dir, ".snapcli-doctor-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

func (x *examination) checkTarget(ctx context.Context, agent *local.Agent, t local.Target) {
	x.target = t.Name
	defer func() { x.target = "" }()
	what := "target " + t.Name
	if t.Source == "" && t.Destination == "" {
		x.add(what, warned, "it has neither a source nor a destination",
			fmt.Sprintf("run `snapcli targets add %s --source URL`", snap.ShellWord(t.Name)))
	}
	checks, err := agent.CheckTarget(ctx, t.Name)
	if err != nil {
		x.addError(what, broken, err)
		return
	}
	for _, c := range checks {
		x.database(what+" "+c.Role, c)
	}
}

// leftovers reports the remains of interrupted commands. With fix it removes them.
func (x *examination) leftovers(ctx context.Context, agent *local.Agent, fix bool) {
	if fix {
		removed, err := agent.RemoveLeftovers(ctx)
		for _, l := range removed {
			x.findings = append(x.findings, finding{What: "left behind", Verdict: healthy,
				Text: "removed " + l.Name + " from " + l.Where, always: true})
		}
		if err != nil {
			x.addError("left behind", warned, err)
		}
	}
	for _, l := range agent.Leftovers(ctx) {
		x.add("left behind", warned, l.Name+" in "+l.Where, "run `snapcli doctor --fix`")
	}
}

// database adds the findings about one database of a target.
func (x *examination) database(side string, c local.DatabaseCheck) {
	switch {
	case c.Err != nil:
		x.addError(side, broken, c.Err)
	case c.Exists:
		x.add(side, healthy, c.URL+", "+snap.Plural(c.Tables, "table", "tables")+withPrefix(", server ",
			c.ServerVersion)+withPrefix(", tools ", c.ToolVersion), "")
	case len(c.Missing) == 0:
		x.add(side, healthy, c.URL+": the database does not exist yet; load will create it", "")
	}
	for _, n := range c.Missing {
		x.findings = append(x.findings, finding{side, broken, c.URL + ": " + n.What, n.Remedy, n.Code, x.target, false})
	}
	for _, w := range c.Warnings {
		x.add(side, warned, c.URL+": "+w, "")
	}
}

// cloudService checks the service, its dependencies, its clock and the credential.
func (x *examination) cloudService(ctx context.Context, agent *local.Agent) {
	if agent.Config().Cloud.URL == "" {
		x.add("cloud service", warned, "none is configured",
			"run `snapcli login URL`; without a service only local snapshots work")
		return
	}
	base, err := api.CheckBaseURL(agent.Config().Cloud.URL)
	if err != nil {
		x.addError("cloud service", broken, err)
		return
	}
	if !x.reachable(ctx, base) {
		return
	}
	conn, err := x.cloud(agent)
	if err != nil {
		x.addError("credential", warned, err)
		return
	}
	me, err := conn.Me(ctx)
	if err != nil {
		x.addError("credential", broken, fmt.Errorf("%s: %w", conn.credential.Where, err))
		return
	}
	who := cmp.Or(me.Email, "the organization")
	x.add("credential", healthy, fmt.Sprintf("%s: %s of %s%s", conn.credential.Where, who, me.Organization,
		withPrefix(", role ", string(me.Role))), "")
	x.signInAndKeys(me)
	if me.GroupsUnknown {
		why, hint, _ := strings.Cut(whyGroupsUnknown(me), "; ")
		x.add("groups", warned, "you have no access through group shares: "+why, hint)
	}
}

// signInAndKeys reports when the next sign-in is due. It warns about keys that may no longer be
// needed: the caller's own and, for owners and admins, everybody's.
func (x *examination) signInAndKeys(me api.Me) {
	if me.SignInDue != nil && !me.Credential.Kind.IsKey() {
		x.add("sign-in", healthy, "the next one is due by "+x.when(*me.SignInDue), "")
	}
	n, list := me.IdleKeys, "`snapcli cloud keys --idle 90d`"
	if me.OrgIdleKeys > 0 {
		n, list = me.OrgIdleKeys, "`snapcli cloud keys --all --idle 90d`"
	}
	if n > 0 {
		x.add("API keys", warned, snap.Plural(n, "key has", "keys have")+" not been used for 90 days",
			"list them with "+list+", and revoke what nobody needs with `snapcli cloud keys revoke`")
	}
}

// reachable checks that the service, its database and its object store respond, and compares the
// clocks. It returns false if the service itself does not respond.
func (x *examination) reachable(ctx context.Context, base string) bool {
	health, err := x.health(ctx, base)
	if err != nil {
		x.addError("cloud service", broken, err)
		return false
	}
	for _, name := range slices.Sorted(maps.Keys(health.parts)) {
		if state := health.parts[name]; state != "ok" {
			x.addError("cloud "+name, broken, &snap.Error{Code: snap.CodeUnavailable,
				Detail: "the service's " + name + " is " + state, Hint: "tell the operator of " + base})
		}
	}
	x.add("cloud service", healthy, fmt.Sprintf("%s responded in %s", base, health.took.Round(time.Millisecond)), "")
	if skew := health.skew.Abs(); skew > time.Minute {
		x.add("clock", warned, fmt.Sprintf("this machine's clock and the service's differ by %s",
			skew.Round(time.Second)), "set this machine's clock with NTP")
	} else if health.skew != 0 {
		x.add("clock", healthy, "agrees with the service's", "")
	}
	return true
}

// report prints the findings. If any check failed, it returns an error with the code of the first
// failure.
func (x *examination) report() error {
	if x.flags.json {
		if err := x.printJSON(x.findings); err != nil {
			return err
		}
	}
	return x.verdict("fix the problems marked above, and run `snapcli doctor` again")
}

// verdict prints the findings, unless the output is JSON, and returns an error if any check failed.
func (x *examination) verdict(hint string) error {
	if !x.flags.json {
		x.printFindings()
	}
	failures, code := 0, snap.CodeInternal
	for _, f := range x.findings {
		if f.Verdict != broken {
			continue
		}
		if failures++; failures == 1 {
			code = f.code
		}
	}
	if failures > 0 {
		return &snap.Error{Code: code, Detail: snap.Plural(failures, "check", "checks") + " failed", Hint: hint}
	}
	return nil
}

func (x *examination) printFindings() {
	problems := 0
	for i, f := range x.findings {
		if f.Verdict != healthy {
			problems++
		}
		if !x.brief || f.always || f.Verdict != healthy {
			x.printFinding(f)
		} else if x.endsHealthyTarget(i) {
			x.printFinding(finding{What: "target " + f.target, Verdict: healthy, Text: "its databases can be used"})
		}
	}
	if x.brief && problems == 0 {
		x.printFinding(finding{What: "everything else", Verdict: healthy,
			Text: "no problems; --verbose prints all " + snap.Plural(len(x.findings), "check", "checks")})
	}
}

// endsHealthyTarget reports whether the finding at an index is the last one about a target without
// problems.
func (x *examination) endsHealthyTarget(at int) bool {
	target := x.findings[at].target
	about := func(f finding) bool { return f.target == target }
	return target != "" && !slices.ContainsFunc(x.findings[at+1:], about) &&
		!slices.ContainsFunc(x.findings, func(f finding) bool { return about(f) && f.Verdict != healthy })
}

func (x *examination) printFinding(f finding) {
	if f.Verdict == healthy && x.flags.quiet {
		return
	}
	mark := map[string]string{healthy: "✓", warned: "!", broken: "✗"}[f.Verdict]
	if x.color(x.io.OutTerminal) {
		mark = map[string]lipgloss.Style{healthy: green, warned: yellow, broken: red}[f.Verdict].Render(mark)
	}
	x.result("%s %s: %s", raw(mark), f.What, f.Text)
	if f.Hint != "" {
		x.result("    %s", f.Hint)
	}
}
