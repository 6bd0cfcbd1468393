package card

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"snap/api"
)

// maxSent is the maximum size of a compressed card in base64. The service accepts no larger
// requests.
const maxSent = 1<<20 - 4<<10

// Request returns the request that sends a card. The service rejects a request with an unknown
// member, but ignores unknown members of a compressed card. The card is therefore compressed, so
// that a service of an earlier release accepts it. If the request is too large, Request leaves out
// the numbers of differing rows, and then everything that [WithoutColumns] removes.
func Request(c api.Card) (r api.PutCardRequest, err error) {
	c = Bound(c)
	text, err := json.Marshal(c)
	if err != nil {
		return r, fmt.Errorf("encode a card: %w", err)
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err = w.Write(text)
	if err = errors.Join(err, w.Close()); err != nil {
		return r, fmt.Errorf("compress a card: %w", err)
	}
	if len(text) <= MaxBytes && b.Len()*4/3 <= maxSent {
		return api.PutCardRequest{Gzip: b.Bytes()}, nil
	}
	if c.Since != "" {
		return Request(Uncounted(c))
	}
	if Totals(c.Tables).Columns+parts(c) == 0 && (c.Subset == nil || len(c.Subset.Conditions) == 0) {
		return r, refused("it is too large")
	}
	return Request(WithoutColumns(c))
}

// Received reads the card of an untrusted request; see [Parse].
func Received(r api.PutCardRequest) (api.Card, error) {
	if r.Card != nil && r.Gzip == nil {
		return *r.Card, check(*r.Card)
	}
	if r.Card != nil || r.Gzip == nil {
		return api.Card{}, refused("the request must have either card or gzip")
	}
	in, err := gzip.NewReader(bytes.NewReader(r.Gzip))
	if err != nil {
		return api.Card{}, refused("it is not compressed with gzip")
	}
	text, err := io.ReadAll(io.LimitReader(in, MaxBytes+1))
	if err != nil {
		return api.Card{}, refused("it is not compressed with gzip")
	}
	return Parse(text)
}

// WithoutColumns returns a card without its columns, parts and programs, and without the conditions
// of its subset.
func WithoutColumns(c api.Card) api.Card {
	c.Tables, c.Programs = slices.Clone(c.Tables), nil
	for i := range c.Tables {
		c.Tables[i].Columns, c.Tables[i].Parts = nil, nil
	}
	if c.Subset != nil {
		c.Subset = &api.CardSubset{Percent: c.Subset.Percent, Start: c.Subset.Start}
	}
	return c
}
