package cloud

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"snap"
	"snap/api"
)

// standardFormat is the API's own format of messages. The other formats are mail, and those of chat
// services.
const standardFormat = "standard"

// message returns the body of a webhook's message. A message to a chat service contains one
// sentence. It is written so that the chat service never interprets the names in it as markup,
// links or mentions, because anybody who pushes a snapshot chooses those names.
func message(format string, e api.WebhookEvent) ([]byte, error) {
	text := sentence(e)
	switch format {
	case "slack":
		return json.Marshal(slackMessage{Text: slackEscaper.Replace(text),
			Blocks: []slackBlock{{Type: "section", Text: slackText{Type: "plain_text", Text: text}}}})
	case "teams":
		card := teamsCard{Type: "AdaptiveCard", Version: "1.4", Body: []teamsBlock{{Type: "RichTextBlock",
			Inlines: []teamsRun{{Type: "TextRun", Text: text}}}}}
		return json.Marshal(teamsMessage{Type: "message", Attachments: []teamsAttachment{{
			ContentType: "application/vnd.microsoft.card.adaptive", Content: card}}})
	case "discord":
		const withoutPreviews = 1 << 2
		return json.Marshal(discordMessage{Content: discordEscaper.Replace(text), Flags: withoutPreviews,
			Mentions: discordMentions{Parse: []string{}}})
	}
	return json.Marshal(e)
}

// slackEscaper escapes the characters that begin links, mentions and entities in Slack's text.
var slackEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// discordEscaper escapes Markdown, and breaks up links and mentions.
var discordEscaper = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "~", `\~`, "`", "\\`", "|", `\|`, ">", `\>`,
	"<", `\<`, "#", `\#`, "[", `\[`, "]", `\]`, "(", `\(`, ")", `\)`, "-", `\-`, "@", "@\u200b", "://", ":\u200b//")

type slackMessage struct {
	Text   string       `json:"text"` // for notifications
	Blocks []slackBlock `json:"blocks"`
}

type slackBlock struct {
	Type string    `json:"type"`
	Text slackText `json:"text"`
}

type slackText struct {
	Type string `json:"type"` // plain_text has no markup
	Text string `json:"text"`
}

type teamsMessage struct {
	Type        string            `json:"type"`
	Attachments []teamsAttachment `json:"attachments"`
}

type teamsAttachment struct {
	ContentType string    `json:"contentType"`
	Content     teamsCard `json:"content"`
}

type teamsCard struct {
	Type    string       `json:"type"`
	Version string       `json:"version"`
	Body    []teamsBlock `json:"body"`
}

// teamsBlock is a RichTextBlock. Unlike a TextBlock it has no markup.
type teamsBlock struct {
	Type    string     `json:"type"`
	Inlines []teamsRun `json:"inlines"`
}

type teamsRun struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type discordMessage struct {
	Content  string          `json:"content"`
	Flags    int             `json:"flags"`
	Mentions discordMentions `json:"allowed_mentions"`
}

type discordMentions struct {
	Parse []string `json:"parse"`
}

// maxSentence is the maximum length of a sentence in characters. Even with escaping, a sentence
// stays within the limits of all chat services.
const maxSentence = 900

// sentence describes an event in one line of plain text.
func sentence(e api.WebhookEvent) string {
	d := e.Data.Detail
	actor := cmp.Or(e.Data.Actor, e.Data.Organization)
	what := cmp.Or(d.Name, e.Data.Snapshot) + " of " + d.Target
	var text string
	switch e.Type {
	case snap.AuditPushed:
		text = fmt.Sprintf("%s pushed %s (%s)", actor, what, e.Data.Snapshot)
	case snap.AuditShared:
		text = fmt.Sprintf("%s shared %s with %s", actor, what, sharedWith(d))
	case snap.AuditUnshared:
		text = fmt.Sprintf("%s no longer shares %s with %s", actor, what, sharedWith(d))
	case snap.AuditPulled:
		text = fmt.Sprintf("%s pulled %s", actor, what)
	case snap.AuditDeleted:
		text = fmt.Sprintf("%s deleted %s", actor, what)
	case snap.AuditShareExpires:
		text = fmt.Sprintf("The share of %s with %s expires soon", what, sharedWith(d))
		if d.Expires != nil {
			text += ", at " + snap.UTC(*d.Expires)
		}
	case snap.AuditAccessRequested:
		text = fmt.Sprintf("%s requests access to %s", actor, what)
	case snap.AuditOverdue:
		text = fmt.Sprintf("The %s snapshot of %s is overdue: %s", d.Kind, d.Target, d.Reason)
	case snap.AuditUserLeft:
		text = fmt.Sprintf("%s left the organization %s", d.User, e.Data.Organization)
	case snap.AuditWebhookDisabled:
		text = fmt.Sprintf("The webhook %d was disabled: %s", d.Webhook, d.Reason)
	default:
		text = fmt.Sprintf("%s by %s", e.Type, actor)
	}
	text = strings.Join(strings.Fields(snap.CleanText(text)), " ")
	if r := []rune(text); len(r) > maxSentence {
		return string(r[:maxSentence]) + "…"
	}
	return text
}

func sharedWith(d snap.AuditDetail) string {
	switch {
	case d.OrgWide:
		return "the organization"
	case d.Group != "":
		return "the group " + d.Group
	}
	return "the organization " + d.Organization
}
