package btree

import (
	"encoding/binary"
	"math"
	"unicode/utf16"
)

// Values decodes the values of a row and appends them to dst: nil, int64, float64, string or
// []byte. A []byte is valid as long as the payload is. Values returns an error if the row has more
// values than the argument limit.
func (f *File) Values(dst []any, payload []byte, limit int) ([]any, error) {
	size, n := uvarint(payload)
	if n == 0 || size < uint64(n) || size > uint64(len(payload)) {
		return nil, damaged("a row is truncated")
	}
	types, body := payload[n:size], payload[size:]
	for count := 0; len(types) > 0; count++ {
		kind, n := uvarint(types)
		if n == 0 || count >= limit {
			return nil, damaged("a row has more values than its table has columns")
		}
		types = types[n:]
		value, size, ok := f.value(kind, body)
		if !ok {
			return nil, damaged("a value is truncated")
		}
		dst, body = append(dst, value), body[size:]
	}
	return dst, nil
}

// value reads a value of a serial type (section 2.1) and returns its length.
func (f *File) value(kind uint64, b []byte) (v any, size int, ok bool) {
	switch {
	case kind == 0:
		return nil, 0, true
	case kind <= 6:
		return integer(int(kind), b)
	case kind == 7 && len(b) >= 8:
		return real(b), 8, true
	case kind == 8:
		return int64(0), 0, true
	case kind == 9:
		return int64(1), 0, true
	case kind < 12 || (kind-12)/2 > uint64(len(b)):
		return nil, 0, false
	}
	size = int(kind-12) / 2
	if kind%2 == 0 {
		return b[:size], size, true
	}
	return f.text(b[:size]), size, true
}

func integer(kind int, b []byte) (any, int, bool) {
	size := [...]int{0, 1, 2, 3, 4, 6, 8}[kind]
	if len(b) < size {
		return nil, 0, false
	}
	v := int64(int8(b[0]))
	for _, c := range b[1:size] {
		v = v<<8 | int64(c)
	}
	return v, size, true
}

// real reads a floating-point number. It returns nil for a NaN, because SQLite reads a NaN as NULL
// and never stores one.
func real(b []byte) any {
	v := math.Float64frombits(binary.BigEndian.Uint64(b))
	if math.IsNaN(v) {
		return nil
	}
	return v
}

// text decodes a string. It converts UTF-16 to UTF-8.
func (f *File) text(b []byte) string {
	if f.Encoding == UTF8 {
		return string(b)
	}
	units := make([]uint16, len(b)/2)
	for i := range units {
		if f.Encoding == UTF16LE {
			units[i] = binary.LittleEndian.Uint16(b[2*i:])
		} else {
			units[i] = binary.BigEndian.Uint16(b[2*i:])
		}
	}
	return string(utf16.Decode(units))
}

// Entry is a row of the schema (section 2.6).
type Entry struct {
	Type, Name, Table string
	Root              uint32 // 0 if the object has no pages
	SQL               string
}

// The limits of a schema.
const (
	maxEntries = 100_000
	maxSchema  = 4 << 20 // bytes of text
)

// Schema reads the schema. Call it only once, because every page can be read only once.
func (f *File) Schema() ([]Entry, error) {
	var all []Entry
	size := 0
	err := f.Rows(1, func(_ int64, payload []byte) error {
		if size += len(payload); len(all) >= maxEntries || size > maxSchema {
			return damaged("its schema is too large")
		}
		e, err := f.entry(payload)
		all = append(all, e)
		return err
	})
	return all, err
}

func (f *File) entry(payload []byte) (Entry, error) {
	values, err := f.Values(nil, payload, 5)
	if err != nil {
		return Entry{}, err
	}
	if len(values) < 5 {
		return Entry{}, damaged("an entry of its schema is truncated")
	}
	var e Entry
	for i, to := range []*string{&e.Type, &e.Name, &e.Table, nil, &e.SQL} {
		text, ok := values[i].(string)
		switch {
		case to == nil:
		case ok:
			*to = text
		case i < 4:
			return Entry{}, damaged("an entry of its schema has no name")
		}
	}
	root, _ := values[3].(int64)
	if root < 0 || root > int64(f.pages) {
		return Entry{}, damaged("the %s %q has no first page", e.Type, e.Name)
	}
	e.Root = uint32(root)
	return e, nil
}
