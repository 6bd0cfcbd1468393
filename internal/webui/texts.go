package webui

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"snap"
	"snap/api"
	"snap/internal/clone"
	"snap/internal/local"
	"snap/internal/look"
)

// This file contains the English texts of this package's Go code, page by page, except single
// words. The package's other texts are in the templates in the folder pages. TestTextsAreInOnePlace
// keeps sentences out of the other Go files. Log messages and the context of wrapped errors stay
// where they are used.

// Titles of pages, as in the navigation and the browser's tab.
const (
	titleSnapshots = "Snapshots"
	titleSnapshot  = "Snapshot"
	titleTargets   = "Targets"
	titleClones    = "Clones"
	titleJobs      = "Jobs"
	titleActivity  = "Activity"
	titleAccount   = "Account"
	titleShare     = "Share"
	titleSharing   = "Sharing"
	titleDelete    = "Delete"
	titleRemove    = "Remove"
	titleDecline   = "Decline"
	titleNewTarget = "Add a target"
	titleRules     = "Review rules"
	titleFind      = "Find"
	titleHome      = "Home"
	titleProblem   = "Problem"
	titleGate      = "No access from this browser"
)

// textWorks describes a tested database that can be used.
func textWorks(c local.DatabaseCheck) string {
	if !c.Exists {
		return "The server can be reached. The first load creates the database."
	}
	text := "The database can be reached: " + look.Plural(c.Tables, "table", "tables")
	if c.ServerVersion != "" {
		text += ", server version " + c.ServerVersion
	}
	return text + "."
}

func titleChange(target string) string { return "Change " + target }

// Problems: the title precedes the error's own text.

const textInside = "an unexpected error occurred"

func problemInside() *problem {
	return &problem{Title: titleOf(snap.CodeInternal), Detail: "the web UI could not complete the request",
		Hint: "run `snapcli serve --debug` to see why"}
}

func titleOf(c snap.Code) string {
	switch c {
	case snap.CodeUnreachable, snap.CodeUnavailable:
		return "The cloud service does not answer"
	case snap.CodeUnauthenticated, snap.CodeNotSignedIn:
		return "Not signed in to the cloud service"
	case snap.CodeForbidden, snap.CodeUserAttributionRequired, snap.CodePolicy:
		return "Not allowed"
	case snap.CodeNotFound, snap.CodeGroupNotFound, snap.CodeOrganizationNotFound:
		return "Not found"
	case snap.CodeInternal:
		return "Something went wrong"
	}
	return "The request failed"
}

func errNoPage() error {
	return &snap.Error{Code: snap.CodeNotFound, Detail: "this page does not exist", Hint: "go back to the snapshots"}
}

func errNoCloud() error {
	return snap.Usage("no cloud service is configured",
		"set cloud.url in the configuration file, then start `snapcli serve` again")
}

// The gate: who may use the web UI at all.

func errOtherAddress() error {
	return snap.Forbidden("the web UI is not served at this address", "open the link that `snapcli serve` printed")
}

func errNoStartLink() error {
	return &snap.Error{Code: snap.CodeUnauthenticated, Detail: "this browser has not opened the start link",
		Hint: "open the link that `snapcli serve` printed in the terminal"}
}

func errStartLinkUsed() error {
	return &snap.Error{Code: snap.CodeUnauthenticated,
		Detail: "this start link was already used, or is from an earlier start of `snapcli serve`",
		Hint:   "open the newest link that `snapcli serve` printed"}
}

func errOtherSite() error {
	return snap.Forbidden("the request came from another site", "use the web UI's own pages")
}

// The terminal that `snapcli serve` was started in.

func textServing(address, link string) string {
	return fmt.Sprintf("The web UI is at %s\nOpen it with this link, which works once:\n\n  %s\n\n"+
		"Press Ctrl-C to stop it.\n",
		address, link)
}

func textOpened(link string) string {
	return fmt.Sprintf("A browser opened the link. For another browser, use this link: %s\n", link)
}

func textNoBrowser(err error) string { return fmt.Sprintf("No browser could be opened: %v\n", err) }

func errNoAddress(address string) error {
	return snap.Usage(fmt.Sprintf("%q is not an address to listen on", address),
		"use host:port, such as 127.0.0.1:8484")
}

func errRemote(address string) error {
	return snap.Usage(fmt.Sprintf("%s can be reached from other machines", address),
		"anyone who opens the web UI acts as you; if you want that, add --allow-remote, and put TLS in front")
}

func errCannotListen(address string, why error) error {
	return snap.Usage(fmt.Sprintf("cannot listen on %s: %v", address, why),
		"choose another address with --listen, or omit --listen to use the next free port")
}

func errPortsTaken(first, last int) error {
	return snap.Usage(fmt.Sprintf("the ports %d to %d are all taken", first, last),
		"choose one with --listen 127.0.0.1:PORT")
}

// Snapshots: the filter row, the orders, and the owners.

const (
	hintAll    = "on this machine, and every cloud snapshot you may see"
	hintLocal  = "on this machine, including synced"
	hintCloud  = "in the cloud, including synced"
	hintShared = "in the cloud, and shared"

	ownerKey = "an organization key"
)

func sortChoices() []sortChoice {
	return []sortChoice{{newestFirst, "Newest first"}, {oldestFirst, "Oldest first"}, {byTarget, "By target"},
		{byName, "By name"}, {bySize, "Largest first"}}
}

func onlyChoices() []onlyChoice {
	return []onlyChoice{{onlyAny, "All"}, {onlyMine, "Mine"}, {onlyReceived, "From other organizations"},
		{onlyEnding, "Sharing ends soon (3 days)"}}
}

// Questions before a deletion, and the messages afterwards.

const (
	buttonDeleteCloud = "Delete from the cloud"
	buttonDeleteLocal = "Delete from this machine"
	buttonDecline     = "Decline it"
	buttonRemove      = "Remove the target"

	textDeletedCloud = "Deleted from the cloud."
	textDeletedLocal = "Deleted from this machine."
	textDeclined     = "Declined."
	textRemoved      = "Removed. Its snapshots are still on this machine."

	removeDetails = "It is removed from the configuration file. Its databases and its snapshots stay as they are."
)

func removeQuestion(target string) string { return "Remove the target " + target + "?" }

func deleteCloudQuestion(name string) string { return "Delete " + name + " from the cloud?" }

func deleteLocalQuestion(name string) string { return "Delete " + name + " from this machine?" }

func declineQuestion(name string) string { return "Decline " + name + "?" }

func deleteCloudDetails(localStays bool) string {
	const gone = "It is gone at once for everyone who can see it. This cannot be undone."
	if localStays {
		return gone + " Your local copy stays."
	}
	return gone
}

func deleteLocalDetails(cloudStays bool) string {
	if cloudStays {
		return "The copy in the cloud stays."
	}
	return "It is the only known copy. This cannot be undone."
}

func declineDetails(recipient, owner string) string {
	return "Nobody in " + recipient + " can see it until " + owner + " shares it again. Local copies stay."
}

// Find: the actions that it offers, besides jobs.

const (
	textMine   = "Show my snapshots"
	textEnding = "Show shares that end soon"
)

func goTo(page string) string { return "Go to " + page }

// Actions on several snapshots.

// bulkText announces an action on n snapshots. people is how many can see them now, or 0 if that is
// not known.
func bulkText(do string, n, people int) string {
	these := look.Plural(n, "snapshot", "snapshots")
	switch do {
	case "share":
		text := "Shared " + these + " with everyone in the organization"
		if people > 0 {
			text += ", " + look.People(people)
		}
		return text + "."
	case "unshare":
		return "Made " + these + " private. Shares with groups and other organizations stay."
	case "delete":
		return "Deleted " + these + " from the cloud."
	}
	return "Deleted " + these + " from this machine."
}

func bulkButton(do string) string {
	return map[string]string{"share": buttonShare, "delete": buttonDeleteCloud, "delete-local": buttonDeleteLocal}[do]
}

func bulkIcon(do string) string {
	if do == "share" {
		return "people"
	}
	return "trash"
}

func bulkQuestion(do string, n int) string {
	these := look.Plural(n, "snapshot", "snapshots")
	switch do {
	case "share":
		return "Share " + these + " with everyone in the organization?"
	case "delete":
		return "Delete " + these + " from the cloud?"
	}
	return "Delete " + these + " from this machine?"
}

func bulkDetails(do string) string {
	switch do {
	case "share":
		return "They are not sanitized. Everyone could see and pull the original, unmasked data."
	case "delete":
		return deleteCloudDetails(false) + " Local copies stay."
	}
	return "Copies in the cloud stay. Snapshots without another copy are lost."
}

// bulkRefused says for how many snapshots an action failed, and why it failed for the first of
// them.
func bulkRefused(do string, done int, refused []error) *snap.Error {
	var first *snap.Error
	detail := refused[0].Error()
	code := snap.CodeInternal
	if errors.As(refused[0], &first) {
		detail, code = first.Detail, first.Code
	}
	text := look.Plural(len(refused), "snapshot was", "snapshots were") + " left unchanged"
	if len(refused) > 1 {
		text += ". The first error"
	}
	text += ": " + detail
	if done > 0 {
		text = strings.TrimSuffix(bulkText(do, done, 0), ".") + "; " + text
	}
	return &snap.Error{Code: code, Detail: text}
}

func errAsksFirst() error {
	return snap.Invalid("the snapshot is not sanitized, and your organization asks you to confirm each such share; "+
		"share it from its own row", "")
}

func errNoSuchAction() error { return snap.Invalid("there is no such action", "reload the page") }

func errTooManyPicks() error {
	return snap.Invalid(fmt.Sprintf("at most %d snapshots can be chosen at once", picksLimit), "choose fewer")
}

func errNothingPicked(local bool) error {
	if local {
		return snap.Invalid("none of the chosen snapshots is on this machine", "choose one that is")
	}
	return snap.Invalid("none of the chosen snapshots is in the cloud", "choose one that is")
}

// Sharing: the message after a change, the question about original data, and the dialog.

func everyoneIn(organization string) string { return "everyone in " + organization }

func groupNamed(group string) string { return "the group " + group }

const buttonShare = "Share anyway"

func shareQuestion(name, audience string) string {
	return "Share " + name + " with everyone in " + audience + "?"
}

// encryptedTo describes to how many recipients a snapshot is encrypted.
func encryptedTo(recipients int) string {
	if recipients == 0 {
		return ""
	}
	return "encrypted to " + snap.Plural(recipients, "recipient", "recipients")
}

// whenMade is the heading of the times in a plot of local and cloud snapshots.
const whenMade = "Built or pushed"

func sizesOf(target string) string { return "Size of " + target + " over time" }

// whenBuilt is the heading of the times in a plot of local snapshots.
const whenBuilt = "Built"

// changedText describes how much of a local snapshot is new.
func changedText(n local.New) string {
	if n.Same {
		return "nothing since " + n.Since
	}
	return fmt.Sprintf("about %.1f%% of the data since %s", 100*n.Share, n.Since)
}

// subsetOf returns the label of a subset, or "".
func subsetOf(subset bool) string {
	if subset {
		return "a subset of the rows"
	}
	return ""
}

// shareDetails describes who would gain access through the share. newcomers is -1 if that is not
// known.
func shareDetails(audience string, newcomers int) string {
	who := "Everyone in " + audience
	if newcomers > 0 {
		who = "Sharing it adds " + look.People(newcomers) + ", who"
	}
	return "It is not sanitized. " + who + " could see and pull the original, unmasked data."
}

func errNoSlug() error {
	return snap.Invalid("enter the slug of the organization to share with",
		"ask someone there: `snapcli whoami` shows it")
}

// Targets: the form.

const (
	hintSource      = "the database that snapshots are taken from"
	hintDestination = "the database that snapshots are loaded into; a load replaces it"
)

func errTargetKnown() error {
	return snap.Invalid("a target with this name already exists",
		"change it on the Targets page, or choose another name")
}

func errNoDatabase() error {
	return snap.Usage("a target needs a source, a destination or both", "enter the URL of at least one database")
}

func errLostURL() error {
	return snap.Invalid("the URL that you entered has a password or key, so this page did not keep it",
		"enter it again")
}

func errChangedMeanwhile(url string) error {
	detail := "another program has changed this URL; it is now " + url
	if url == "" {
		detail = "another program has removed this URL"
	}
	return &snap.Error{Code: snap.CodeConflict, Detail: detail, Hint: "to replace it, enter the URL and save again"}
}

// Rules: the review.

func jobRules(target string) string { return "Propose rules for " + target }

func endRules(columns int) string {
	if columns == 0 {
		return "the rules decide on every column"
	}
	return look.Plural(columns, "column", "columns") + " to decide"
}

// rulesSaved says what was saved and how many columns are still undecided.
func rulesSaved(path string, left int) string {
	text := "Saved to `" + path + "`."
	if left > 0 {
		return text + " " + look.Plural(left, "column still says", "columns still say") + " `decide`."
	}
	return text + " Every column is decided."
}

// titleOfSubject returns the kind of a group of columns as a heading.
func titleOfSubject(subject string) string {
	const maxRunes = 120
	if subject == "" {
		return "No reason given"
	}
	r := []rune(snap.CleanText(subject))
	if len(r) > maxRunes {
		r = append(r[:maxRunes], '…')
	}
	return strings.ToUpper(string(r[:min(1, len(r))])) + string(r[min(1, len(r)):])
}

func errNoSuchDecision() error {
	return snap.Invalid("there is no such decision", "reload the page")
}

func errOtherReview() error {
	return &snap.Error{Code: snap.CodeConflict,
		Detail: "this review is over: it was saved, discarded or replaced by a newer one", Hint: "reload the page"}
}

// Jobs: their titles, outcomes and possible obstacles.

func jobBuild(target string) string { return "Build a snapshot of " + target }

func jobSanitize(name string) string { return "Sanitize " + name }

// jobLoad returns the title of a job that loads a snapshot. The page that asks for confirmation has
// the same title.
func jobLoad(name string) string { return "Load " + name }

func jobPull(name string) string { return "Pull " + name }

func jobPush(name string) string { return "Push " + name }

func endBuild(name string, size int64) string { return "built " + name + ", " + look.Bytes(size) }

func endSanitize(name string, size int64) string { return "created " + name + ", " + look.Bytes(size) }

func endLoad(database string, tables int, leftOut string, notices []string) string {
	text := fmt.Sprintf("loaded %d tables into %s", tables, database) + endLeftOut(leftOut)
	return strings.Join(append([]string{text}, notices...), "; ")
}

// endLeftOut reports the programs of somebody else's snapshot that were not loaded, such as "3
// triggers".
func endLeftOut(programs string) string {
	if programs == "" {
		return ""
	}
	return "; left out: " + programs
}

func endPull(size int64) string { return "pulled, " + look.Bytes(size) }

func endPush(size int64) string {
	return "pushed, " + look.Bytes(size) + "; private, unless a channel shares it"
}

const (
	endAlreadyHere  = "it was already here, with the same checksum"
	endAlreadyCloud = "it was already in the cloud"
	endCanceled     = "canceled; nothing was changed"

	textUnderSecond = "under a second"
)

func alsoTarget(name string) string { return "; the target " + name + " was created" }

// unsavedTarget reports that a target could not be written to the configuration.
func unsavedTarget(name string, why error) string {
	return fmt.Sprintf(". The target %s could not be saved (%s): add it to the configuration by hand", name, why)
}

func endFailed(err error) string { return "failed: " + err.Error() }

func errAlreadyRunning(title string) error {
	return &snap.Error{Code: snap.CodeConflict, Detail: "this is already running: " + title,
		Hint: "wait for it, or cancel it on the Jobs page"}
}

func errNoJob(id string) error {
	return &snap.Error{Code: snap.CodeNotFound, Detail: "there is no job " + id,
		Hint: "see the latest jobs on the Jobs page"}
}

func errOtherDatabase(name string) error {
	return snap.Invalid(fmt.Sprintf("the typed name is not that of the database, %q", name),
		"type the name exactly to confirm that this database may be replaced")
}

func errDestinationChanged() error {
	return snap.Invalid("the destination has changed", "check it again")
}

// Activity: who did what, as text around the name of the object.

// actionText is the text of an action of the audit log.
type actionText struct {
	action     snap.AuditAction
	icon, verb string
}

// actionTexts returns the texts of the actions.
func actionTexts() []actionText {
	return []actionText{
		{snap.AuditPushed, "up", "pushed"},
		{snap.AuditPullStarted, "down", "started to pull"},
		{snap.AuditPulled, "down", "pulled"},
		{snap.AuditShared, "people", "shared"},
		{snap.AuditUnshared, "lock", "stopped sharing"},
		{snap.AuditReceipt, "people", "recorded a receipt for sharing"},
		{snap.AuditShareRefused, "warn", "was not allowed to share"},
		{snap.AuditShareExpires, "clock", "reported the upcoming end of a share of"},
		{snap.AuditAccessRequested, "person", "requested access to"},
		{snap.AuditAccessRefused, "lock", "refused access to"},
		{snap.AuditDescribed, "activity", "described"},
		{snap.AuditCardChanged, "activity", "changed the card of"},
		{snap.AuditCertified, "key", "added the certificate of"},
		{snap.AuditDeclined, "lock", "declined"},
		{snap.AuditDeclineRefused, "warn", "was not allowed to decline"},
		{snap.AuditDeleted, "trash", "deleted"},
		{snap.AuditDeleteRefused, "warn", "was not allowed to delete"},
		{snap.AuditOrgClosed, "lock", "closed the organization"},
		{snap.AuditOrgOpened, "activity", "opened the organization"},
		{snap.AuditPolicy, "activity", "changed the policy of the organization"},
		{snap.AuditConfigured, "activity", "changed the configuration"},
		{snap.AuditChannelCreated, "activity", "created a channel for"},
		{snap.AuditChannelDeleted, "activity", "ended a channel for"},
		{snap.AuditOverdue, "warn", "found no recent snapshot of"},
		{snap.AuditRetention, "activity", "changed the retention rule of"},
		{snap.AuditWebhookCreated, "activity", "created the webhook"},
		{snap.AuditWebhookDeleted, "activity", "removed the webhook"},
		{snap.AuditWebhookDisabled, "activity", "disabled the webhook"},
		{snap.AuditWebhookEnabled, "activity", "enabled the webhook"},
		{snap.AuditWebhookRotated, "activity", "replaced the secret of the webhook"},
		{snap.AuditUserChanged, "person", "changed the user"},
		{snap.AuditUserLeft, "person", "ended all access of the removed user"},
		{snap.AuditUserPruned, "person", "deleted the account of"},
		{snap.AuditKeyCreated, "key", "created the key"},
		{snap.AuditKeyRevoked, "key", "revoked the key"},
		{snap.AuditCertificateKeyAdded, "key", "registered the certificate key"},
		{snap.AuditCertificateKeyRevoked, "key", "revoked the certificate key"},
		{snap.AuditSessionStarted, "person", "signed in with"},
		{snap.AuditSessionEnded, "person", "signed out of"},
		{snap.AuditTokenReused, "warn", "was signed out, because a copy of their login was used:"},
	}
}

// actionTextOf returns the text of an action. For an unknown action it is the action's name.
func actionTextOf(a snap.AuditAction) actionText {
	for _, d := range actionTexts() {
		if d.action == a {
			return d
		}
	}
	return actionText{a, "activity", string(a)}
}

// actionDetails describes the details of an action: with whom, until when, why not.
func actionDetails(e snap.AuditEntry) string {
	d := e.Detail
	switch e.Action {
	case snap.AuditShared, snap.AuditUnshared, snap.AuditChannelCreated:
		return "with " + audience(d) + until(d.Expires)
	case snap.AuditShareRefused:
		return "(" + string(d.Code) + ")"
	case snap.AuditUserChanged:
		switch {
		case d.Disabled:
			return "(disabled)"
		case d.Role != "":
			return "(" + string(d.Role) + ")"
		}
	}
	return ""
}

func audience(d snap.AuditDetail) string {
	switch {
	case d.Group != "":
		return "the group " + d.Group
	case d.Organization != "":
		return d.Organization
	}
	return "everyone"
}

func until(expires *time.Time) string {
	if expires == nil {
		return ""
	}
	return " until " + look.Exact(expires.Local())
}

// Account: the caller's usage of the service.
func usageText(u *api.Usage) string {
	if u == nil {
		return ""
	}
	text := look.Bytes(u.Bytes)
	if u.BytesMax > 0 {
		text += " of " + look.Bytes(u.BytesMax)
	}
	text += " in " + look.Plural(u.Snapshots, "snapshot", "snapshots")
	if u.Uploads > 0 {
		text += ", and " + look.Plural(u.Uploads, "unfinished upload", "unfinished uploads")
	}
	return text
}

// Account: the credential by which the service recognizes the caller.

func credentialText(k snap.CredentialKind) string {
	switch k {
	case snap.LoginToken:
		return "login session"
	case snap.Browser:
		return "browser session"
	case snap.UserKey:
		return "user-scoped API key"
	case snap.PipelineKey:
		return "organization-level key for pipelines"
	case snap.AgentKey:
		return "organization-level key of a service agent"
	}
	return ""
}

func errNoSignIn() error {
	return snap.Usage("an API key is configured, so this page cannot sign you in or out",
		"remove cloud.api_key from the configuration to use a login session")
}

// Clones.

func jobClone(target, name string) string {
	if name == "" {
		return "Clone " + target
	}
	return "Clone " + target + " as " + name
}

func endClone(name string, n int, leftOut string) string {
	if n > 1 {
		return fmt.Sprintf("%d clones are ready, starting with %s", n, name) + endLeftOut(leftOut)
	}
	return "the clone " + name + " is ready" + endLeftOut(leftOut)
}

func jobWarm(target string) string { return "Prepare copies of " + target + " for snapcli run" }

func endWarm(copies int) string {
	return look.Plural(copies, "copy was", "copies were") + " prepared for snapcli run"
}

func errNoType(text string) error {
	return snap.Usage(fmt.Sprintf("%q is not a type of snapshot", text), "choose sanitized or original")
}

func errNoCount(text string) error {
	return snap.Usage(fmt.Sprintf("%q is not a number of clones", text), "give a number of 1 or more")
}

// ttlOfTarget is the default lifetime of clones if it differs between targets.
const ttlOfTarget = "as configured"

func questionBranchClone(c clone.Clone) (question, detail, button string) {
	return "Branch " + c.Name + "?", "A new clone is created with the current content of " + c.Name +
		". PostgreSQL can copy a database only while nothing is connected to it.", "Branch"
}

func questionResetClone(c clone.Clone) (question, detail, button string) {
	return "Reset " + c.Name + "?", "It goes back to " + c.Source.Snapshot + ". All changes in it are lost, and " +
		"connections to it end.", "Reset"
}

func questionDropClone(c clone.Clone) (question, detail, button string) {
	return "Drop " + c.Label() + "?", "Its database is deleted, and connections to it end. The snapshot stays.", "Drop"
}
