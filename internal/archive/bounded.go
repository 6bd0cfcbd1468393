package archive

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"

	"snap/internal/schema"
)

// bounds limit the cost of reading a manifest. A short text can describe millions of objects, so
// limiting the text's size is not enough.
type bounds struct {
	memory  int64 // approximate bytes that the decoded manifest may take
	element int64 // bytes of text per element, such as a table or sequence
	marks   int64 // opening braces, opening brackets and commas per element
	name    int   // bytes of the name of a table or column
}

// ownBounds are the bounds for files that this user built. Any database fits.
func ownBounds() bounds {
	return bounds{memory: 4 << 30, element: maxManifest, marks: maxManifest, name: maxManifest}
}

// foreignBounds are the bounds for all other files. About 10,000 tables of ten columns fit.
func foreignBounds() bounds {
	return bounds{memory: 32 << 20, element: 4 << 20, marks: 1 << 17, name: maxName}
}

// names reports whether all names are within the bounds.
func (b bounds) names(tables []Table) bool {
	return !slices.ContainsFunc(tables, func(t Table) bool {
		return len(t.Schema) > b.name || len(t.Name) > b.name ||
			slices.ContainsFunc(t.Columns, func(c Column) bool { return len(c.Name) > b.name })
	})
}

// maxDescription is the part of foreignBounds that the description of the schema may use. It leaves
// space for the rest of the manifest.
const maxDescription = 20 << 20

// Fits reports whether the description of a schema is small enough to be read from a file that
// somebody else built. [Writer.Close] does not check this.
func Fits(s *schema.Schema) bool { return weight(reflect.ValueOf(s)) <= maxDescription }

// errBounds is the cause of an error about a manifest that exceeds the bounds.
var errBounds = errors.New("it is larger than the limit for a file from elsewhere")

// decodeManifest reads a manifest as a stream and checks that it has the given checksum.
func decodeManifest(text io.Reader, sum [sha256.Size]byte, b bounds) (Manifest, error) {
	hash := sha256.New()
	whole := bufio.NewReaderSize(io.TeeReader(text, hash), 64<<10)
	d := newDecoder(whole, b)
	m, err := d.manifest()
	if errors.Is(err, errBounds) {
		return Manifest{}, corrupt("its manifest is out of bounds: "+errBounds.Error(), err)
	}
	if _, err := io.Copy(io.Discard, whole); err != nil {
		return Manifest{}, err
	}
	if [sha256.Size]byte(hash.Sum(nil)) != sum {
		return Manifest{}, corrupt("its manifest is damaged", nil)
	}
	if err != nil {
		return Manifest{}, corrupt("its manifest cannot be read", err)
	}
	return m, nil
}

// decoder decodes a manifest element by element within bounds.
type decoder struct {
	json   *json.Decoder
	text   *elementReader
	bounds bounds
	used   int64
}

func newDecoder(r io.Reader, b bounds) *decoder {
	d := &decoder{text: &elementReader{r: r}, bounds: b}
	d.json = json.NewDecoder(d.text)
	return d
}

// manifest decodes the whole text. If a list can be long, it is decoded one element at a time. The
// rest is decoded together.
func (d *decoder) manifest() (m Manifest, err error) {
	rest := map[string]json.RawMessage{}
	err = d.object(func(key string) error {
		switch key {
		case "tables":
			return decodeList(d, &m.Tables)
		case "schema":
			m.Schema = &schema.Schema{}
			return d.schema(m.Schema)
		}
		var value json.RawMessage
		err := d.decode(&value)
		rest[key] = value
		return err
	})
	if err != nil {
		return m, err
	}
	if _, err := d.token(); !errors.Is(err, io.EOF) {
		return m, fmt.Errorf("there is more data after its end: %w", err)
	}
	text, err := json.Marshal(rest)
	if err != nil {
		return m, err
	}
	err = d.shortFields(text, &m)
	return m, err
}

// shortFields decodes all fields but the long lists. The package encoding/json ignores the case of
// field names, so a field such as "Tables" could replace a long list. shortFields therefore
// restores the lists afterwards.
func (d *decoder) shortFields(text []byte, m *Manifest) error {
	tables, described := m.Tables, m.Schema
	if err := json.Unmarshal(text, m); err != nil {
		return err
	}
	m.Tables, m.Schema = nil, nil
	err := d.charge(reflect.ValueOf(*m))
	m.Tables, m.Schema = tables, described
	return err
}

func (d *decoder) schema(s *schema.Schema) error {
	return d.object(func(key string) error {
		switch key {
		case "namespaces":
			return decodeList(d, &s.Namespaces)
		case "extensions":
			return decodeList(d, &s.Extensions)
		case "enums":
			return decodeList(d, &s.Enums)
		case "domains":
			return decodeList(d, &s.Domains)
		case "sequences":
			return decodeList(d, &s.Sequences)
		case "tables":
			return decodeList(d, &s.Tables)
		case "programs":
			return decodeList(d, &s.Programs)
		case "omitted":
			return decodeList(d, &s.Omitted)
		case "comment":
			return d.decode(&s.Comment)
		case "grants":
			return decodeList(d, &s.Grants)
		}
		var unknown json.RawMessage
		return d.decode(&unknown)
	})
}

// object calls field for every key of an object; field must read the key's value. It treats null as
// an object without keys.
func (d *decoder) object(field func(key string) error) error {
	start, err := d.token()
	if err != nil || start == nil {
		return err
	}
	if start != json.Delim('{') {
		return fmt.Errorf("expected an object, found %v", start)
	}
	for d.json.More() {
		key, err := d.token()
		if err != nil {
			return err
		}
		if err := field(fmt.Sprint(key)); err != nil {
			return err
		}
	}
	_, err = d.token()
	return err
}

// decodeList decodes an array one element at a time. If a list occurs twice, the second replaces
// the first.
func decodeList[T any](d *decoder, list *[]T) error {
	*list = nil
	start, err := d.token()
	if err != nil || start == nil {
		return err
	}
	if start != json.Delim('[') {
		return fmt.Errorf("expected a list, found %v", start)
	}
	for d.json.More() {
		var one T
		if err := d.decode(&one); err != nil {
			return err
		}
		*list = append(*list, one)
	}
	_, err = d.token()
	return err
}

func (d *decoder) token() (json.Token, error) {
	d.text.left, d.text.marks = d.bounds.element, d.bounds.marks
	return d.json.Token()
}

// decode reads one value and charges its memory to the bounds.
func (d *decoder) decode(v any) error {
	d.text.left, d.text.marks = d.bounds.element, d.bounds.marks
	if err := d.json.Decode(v); err != nil {
		return err
	}
	value := reflect.ValueOf(v).Elem()
	// Twice the element's size, because a growing list is copied.
	d.used += 2 * int64(value.Type().Size())
	return d.charge(value)
}

func (d *decoder) charge(v reflect.Value) error {
	d.used += weight(v)
	if d.used > d.bounds.memory {
		return errBounds
	}
	return nil
}

// weight estimates how many bytes a value refers to, excluding its own size.
func weight(v reflect.Value) (n int64) {
	switch v.Kind() {
	case reflect.String:
		return (int64(v.Len()) + 15) &^ 15
	case reflect.Pointer:
		if !v.IsNil() {
			n = int64(v.Type().Elem().Size()) + weight(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			n += weight(v.Field(i))
		}
	case reflect.Slice:
		n = int64(v.Cap()) * int64(v.Type().Elem().Size())
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return n
		}
		for i := range v.Len() {
			n += weight(v.Index(i))
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			n += 96 + weight(entries.Key()) + weight(entries.Value())
		}
	}
	return n
}

// elementReader limits the amount of text that one element may consume. It reads ahead very little,
// so that the limit applies to that element alone.
type elementReader struct {
	r           io.Reader
	left, marks int64 // bytes and marks that the element may still consume
	quoted, esc bool
}

// readAhead is the maximum number of bytes that one read returns.
const readAhead = 4 << 10

// Read implements io.Reader.
func (r *elementReader) Read(p []byte) (int, error) {
	if r.left <= 0 || r.marks <= 0 {
		return 0, errBounds
	}
	n, err := r.r.Read(p[:min(len(p), readAhead)])
	r.left -= int64(n)
	for _, c := range p[:n] {
		switch {
		case r.esc:
			r.esc = false
		case r.quoted && c == '\\':
			r.esc = true
		case c == '"':
			r.quoted = !r.quoted
		case !r.quoted && (c == '{' || c == '[' || c == ','):
			r.marks--
		}
	}
	return n, err
}
