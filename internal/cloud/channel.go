package cloud

import (
	"context"
	"strconv"
	"time"

	"snap"
	"snap/api"
	"snap/internal/store"
)

type channelInput struct {
	Confirmation
	Body api.ChannelRequest
}

func (s *Service) listChannels(ctx context.Context, _ *noInput) (*body[api.ChannelList], error) {
	channels, err := s.store.Channels(ctx, callOf(ctx).caller)
	if err != nil {
		return nil, err
	}
	return &body[api.ChannelList]{api.ChannelList{Items: each(channels, wireChannel)}}, nil
}

func (s *Service) createChannel(ctx context.Context, in *channelInput) (*body[api.Channel], error) {
	target, err := snap.CleanTarget(in.Body.Target)
	if err != nil {
		return nil, err
	}
	policy, err := s.policy(ctx)
	if err != nil {
		return nil, err
	}
	if err := policy.CheckShares(in.Body.Type, snap.Shares{OrgWide: in.Body.GroupID == ""}, in.Confirmed,
		s.now()); err != nil {
		return nil, err
	}
	n := store.NewChannel{Target: target, Type: in.Body.Type, GroupID: in.Body.GroupID, Now: in.Body.Now}
	if seconds := in.Body.ExpectEvery; seconds != nil {
		every := time.Duration(*seconds) * time.Second
		if every != 0 && every < time.Hour {
			return nil, snap.Invalid("a snapshot can be expected at most once an hour",
				"use a longer interval, or 0 to expect none")
		}
		n.ExpectEvery = &every
	}
	channel, err := s.store.AddChannel(ctx, callOf(ctx).caller, n)
	if err != nil {
		return nil, err
	}
	return &body[api.Channel]{wireChannel(channel)}, nil
}

func (s *Service) deleteChannel(ctx context.Context, in *ByNumber) (*empty, error) {
	return in.apply(ctx, s.store.DeleteChannel)
}

func (s *Service) decline(ctx context.Context, _ *ByID) (*empty, error) {
	c := callOf(ctx)
	return &empty{}, s.store.Decline(ctx, c.caller, c.snapshot)
}

func wireChannel(h store.Channel) api.Channel {
	out := api.Channel{ID: strconv.FormatInt(h.ID, 10), Target: h.Target, Type: h.Type, CreatedAt: h.Created,
		CreatedBy: h.By, ExpectEvery: int64(h.ExpectEvery / time.Second)}
	if h.Group != nil {
		out.GroupID, out.GroupName = h.Group.GroupID, h.Group.Name
	}
	return out
}
