package cloud

import (
	"errors"
	"io"
	"log/slog"

	"snap"
)

// newLogHandler returns a handler for the configured format and level. Unknown values mean text and
// info.
func newLogHandler(c Log, w io.Writer) slog.Handler {
	var level slog.Level
	if level.UnmarshalText([]byte(c.Level)) != nil {
		level = slog.LevelInfo
	}
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: withCause}
	if c.Format == "json" {
		return slog.NewJSONHandler(w, o)
	}
	return slog.NewTextHandler(w, o)
}

// withCause adds the cause to an error in the log.
func withCause(_ []string, a slog.Attr) slog.Attr {
	if err, is := a.Value.Any().(error); is {
		a.Value = slog.StringValue(explained(err))
	}
	return a
}

// explained returns the text of an error with its cause. Clients never see the cause, because it
// may name hosts and buckets.
func explained(err error) string {
	if known, ok := errors.AsType[*snap.Error](err); ok && known.Cause != nil {
		return err.Error() + ": " + known.Cause.Error()
	}
	return err.Error()
}
