package cloud

import (
	"io"
	"log/slog"
)

// newLogHandler returns a handler for the configured format and level. Unknown values mean text and
// info.
func newLogHandler(c Log, w io.Writer) slog.Handler {
	var level slog.Level
	if level.UnmarshalText([]byte(c.Level)) != nil {
		level = slog.LevelInfo
	}
	o := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.NewJSONHandler(w, o)
	}
	return slog.NewTextHandler(w, o)
}
