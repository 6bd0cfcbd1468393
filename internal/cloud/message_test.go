package cloud

import (
	"bytes"
	"encoding/json"
	"io"
	"mime/quotedprintable"
	"net/mail"
	"strings"
	"testing"
	"unicode/utf16"

	"snap"
	"snap/api"
)

// A chat or mail program shows the fields of an event as plain text. They never become markup, a
// link, a mention or a header, and no message is longer than a chat accepts.
func TestMessagesAreNotMarkup(t *testing.T) {
	t.Parallel()
	for _, hostile := range []string{"<!channel>", "<https://evil.test|sign in>", "@everyone", "<@U1>",
		"**b** __u__ ~~s~~", "[x](https://evil.test)", "`c`", "> q", "# h", "- l", "||spoiler||",
		"&lt;!channel&gt;", "a\nb\u202e\u200b",
		"a\r\nBcc: x@evil.test\r\n\r\nbody", "Www.evil.test", "sign in at evil.test", `\*`, strings.Repeat("*", 5000),
		strings.Repeat("<", 5000), strings.Repeat("😀", 5000)} {
		for _, action := range append(snap.AuditActions(), "webhook.test") {
			e := api.WebhookEvent{Type: action, Data: api.WebhookData{Snapshot: hostile, Organization: hostile,
				Actor: hostile, Detail: snap.AuditDetail{Target: hostile, Name: hostile, Group: hostile,
					Organization: hostile, User: hostile, Reason: hostile, Kind: hostile}}}
			checkSlack(t, e)
			checkDiscord(t, e)
			checkMail(t, e)
		}
	}
}

func checkSlack(t *testing.T, e api.WebhookEvent) {
	t.Helper()
	var m slackMessage
	body, err := message("slack", e)
	if err != nil || json.Unmarshal(body, &m) != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(m.Text, "<>\n") || m.Blocks[0].Text.Type != "plain_text" ||
		len(utf16.Encode([]rune(m.Blocks[0].Text.Text))) > 3000 {
		t.Errorf("%.200s", body)
	}
}

func checkDiscord(t *testing.T, e api.WebhookEvent) {
	t.Helper()
	var m discordMessage
	body, err := message("discord", e)
	if err != nil || json.Unmarshal(body, &m) != nil {
		t.Fatal(err)
	}
	bare := strings.NewReplacer(`\\`, "", `\*`, "", `\_`, "", `\~`, "", "\\`", "", `\|`, "", `\>`, "", `\<`, "", `\#`,
		"",
		`\[`, "", `\]`, "", `\(`, "", `\)`, "", `\-`, "", "@\u200b", "").Replace(m.Content)
	if strings.ContainsAny(bare, "*_~`|><#[]()@\\\n") || strings.Contains(bare, "://") ||
		len([]rune(m.Content)) > 2000 || m.Mentions.Parse == nil || len(m.Mentions.Parse) > 0 {
		t.Errorf("%.200s", body)
	}
}

func checkMail(t *testing.T, e api.WebhookEvent) {
	t.Helper()
	s := &Service{config: Config{PublicURL: "https://snap.example", Mail: Mail{From: "snapcloud@mail.example"}}}
	m, err := s.mailOf("acme", "ops@acme.test", "msg_1_2_3", e)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := m.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	parsed, err := mail.ReadMessage(&b)
	if err != nil {
		t.Fatal(err)
	}
	h := parsed.Header
	if len(h) != 10 || h.Get("To") != "<ops@acme.test>" || h.Get("From") != `"snapcloud" <snapcloud@mail.example>` ||
		h.Get("Subject") != mailSubject(e.Type) || h.Get("Message-Id") != "<msg_1_2_3@mail.example>" {
		t.Errorf("%q", h)
	}
	body, err := io.ReadAll(quotedprintable.NewReader(parsed.Body))
	if err != nil || strings.Contains(string(body), "evil.test") || strings.Contains(string(body), "://evil") {
		t.Errorf("%s, %v", body, err)
	}
}
