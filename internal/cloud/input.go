package cloud

// This file holds the inputs and outputs that many routes share.

// ByID is the input of a route on one snapshot.
type ByID struct {
	ID string `path:"id" maxLength:"64" doc:"public ID of the snapshot" example:"snap_7h2k9m4qw8xvbn3t"`
}

// body is an output with a body.
type body[T any] struct {
	Body T
}

// empty is an output without a body: status 204.
type empty struct{}
