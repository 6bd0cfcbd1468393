package console

import (
	"time"

	"snap"
	"snap/api"
)

// channelsPage is the data of channels.html.
type channelsPage struct {
	layout
	Channels []api.Channel
	Groups   []api.Group
	Form     form
	Confirm  bool // the person must confirm that data that is not sanitized is shared
}

// form holds the values of a form that failed, to show them again.
type form map[string]string

// Every formats seconds for people.
func (channelsPage) Every(seconds int64) string {
	return snap.Span(time.Duration(seconds) * time.Second)
}

func (s *Server) channels(v *visit) (err error) {
	data := channelsPage{layout: s.layout(v), Form: v.form("target", "type", "group", "now")}
	data.Confirm = v.problem != nil && v.problem.Code == snap.CodeConfirm
	if data.Channels, err = v.api.Channels(v.r.Context()); err != nil {
		return err
	}
	if data.Groups, err = v.api.Groups(v.r.Context()); err != nil {
		return err
	}
	return s.write(v, "channels.html", data)
}

// changeChannels creates or deletes a channel.
func (s *Server) changeChannels(v *visit) (string, error) {
	if id := v.field("delete"); id != "" {
		return "no-channel", v.api.DeleteChannel(v.r.Context(), id)
	}
	_, err := v.api.AddChannel(v.r.Context(), api.ChannelRequest{Target: v.field("target"),
		Type: snap.Type(v.field("type")), GroupID: v.field("group"), Now: v.field("now") != ""},
		v.field("confirmed") != "")
	return "channel", err
}
