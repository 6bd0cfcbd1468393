package cloud

import (
	"context"
	"strconv"

	"snap"
)

// This file holds the inputs and outputs that many routes share.

// ByID is the input of a route on one snapshot.
type ByID struct {
	ID string `path:"id" maxLength:"64" doc:"public ID of the snapshot" example:"snap_7h2k9m4qw8xvbn3t"`
}

// ByNumber is the input of a route on something with a numeric ID, such as a key or a session.
type ByNumber struct {
	ID string `path:"id" maxLength:"64" doc:"ID as listed" example:"17"`
}

// number returns the ID. It fails with code not_found for text that is not a number.
func (b ByNumber) number() (int64, error) {
	n, err := strconv.ParseInt(b.ID, 10, 64)
	if err != nil {
		return 0, &snap.Error{Code: snap.CodeNotFound, Detail: "there is nothing with this ID",
			Hint: "list the existing ones"}
	}
	return n, nil
}

// apply calls change with the caller and the ID. Its response is empty.
func (b ByNumber) apply(ctx context.Context, change func(context.Context, snap.Caller, int64) error) (*empty, error) {
	id, err := b.number()
	if err != nil {
		return nil, err
	}
	return &empty{}, change(ctx, callOf(ctx).caller, id)
}

// noInput is the input of a route that has neither parameters nor a body.
type noInput struct{}

// body is an output with a body.
type body[T any] struct {
	Body T
}

// empty is an output without a body: status 204.
type empty struct{}
