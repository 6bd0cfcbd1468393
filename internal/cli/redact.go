package cli

import (
	"io"
	"log/slog"
	"regexp"
	"strings"
	"sync"

	"snap"
)

// secretShapes match secrets that must not be logged (AUTH T9): API keys, JSON web tokens, queries
// and one-time paths of presigned URLs, passwords in URLs, and bearer headers.
var secretShapes = []struct {
	pattern     *regexp.Regexp
	replacement string
}{
	{regexp.MustCompile(`\b(` + snap.KeyPrefixPattern + `)[0-9A-Za-z]+`), "${1}[hidden]"},
	{regexp.MustCompile(`\beyJ[0-9A-Za-z_-]{8,}(\.[0-9A-Za-z_-]*)*`), "[hidden]"},
	{regexp.MustCompile(`(?i)\bbearer\s+\S+`), "Bearer [hidden]"},
	{regexp.MustCompile(`(://[^\s"/?#@]*?):[^\s"/?#]*@`), "$1:[hidden]@"},
	{regexp.MustCompile(`(/blobs/(?:parts/)?)[^\s"?/]+`), "$1[hidden]"},
	{regexp.MustCompile(`(https?://[^\s"?]+)\?[^\s"]*`), "$1?[hidden]"},
}

// secrets holds known secret values, such as the access token in use.
type secrets struct {
	mu     sync.Mutex
	values []string
}

// add registers values as secrets. It ignores values that are too short to be secrets, so that
// ordinary words stay readable.
func (s *secrets) add(values ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range values {
		if len(v) >= 8 {
			s.values = append(s.values, v)
		}
	}
}

// redact hides every secret in a line.
func (s *secrets) redact(line string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.values {
		line = strings.ReplaceAll(line, v, "[hidden]")
	}
	for _, shape := range secretShapes {
		line = shape.pattern.ReplaceAllString(line, shape.replacement)
	}
	return line
}

// redactingWriter is a writer that hides secrets. Each write must be a whole line.
type redactingWriter struct {
	to      io.Writer
	secrets *secrets
}

func (r redactingWriter) Write(line []byte) (int, error) {
	if _, err := io.WriteString(r.to, r.secrets.redact(string(line))); err != nil {
		return 0, err
	}
	return len(line), nil
}

// debugLog returns the logger that --debug enables.
func (a *app) debugLog() *slog.Logger {
	return slog.New(slog.NewTextHandler(redactingWriter{a.io.Err, &a.secrets}, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, attr slog.Attr) slog.Attr {
			if attr.Key == slog.TimeKey {
				attr.Value = slog.StringValue(attr.Value.Time().Format("15:04:05.000"))
			}
			return attr
		},
	}))
}
