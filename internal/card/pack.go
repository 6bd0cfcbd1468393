package card

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"fmt"
	"io"

	"snap/api"
)

// Packed is a card as the service stores it: everything but the tables, and the tables page by page,
// so that showing a page of a large card costs no more than showing a small card.
type Packed struct {
	Head  string   // JSON of the card without its tables, and of the totals of all tables
	Pages [][]byte // compressed JSON of the tables of each page
}

// head is the content of [Packed].Head.
type head struct {
	api.Card
	Totals api.CardTotals `json:"totals"`
}

// Pack encodes a card.
func Pack(c api.Card) (p Packed, err error) {
	for _, page := range Pages(c.Tables) {
		var b bytes.Buffer
		w, err := flate.NewWriter(&b, flate.DefaultCompression)
		if err == nil {
			err = json.NewEncoder(w).Encode(page)
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			return p, fmt.Errorf("encode a card: %w", err)
		}
		p.Pages = append(p.Pages, b.Bytes())
	}
	h := head{c, Totals(c.Tables)}
	h.Tables = nil
	text, err := json.Marshal(h)
	p.Head = string(text)
	return p, err
}

// UnpackHead decodes a card without its tables, and the totals of all tables.
func UnpackHead(text string) (c api.Card, n api.CardTotals, err error) {
	var h head
	err = json.Unmarshal([]byte(text), &h)
	return h.Card, h.Totals, err
}

// UnpackPage decodes the tables of a page.
func UnpackPage(body []byte) (tables []api.CardTable, err error) {
	text, err := io.ReadAll(flate.NewReader(bytes.NewReader(body)))
	if err == nil {
		err = json.Unmarshal(text, &tables)
	}
	return tables, err
}
