package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"snap"
	"snap/internal/schema"
	"snap/internal/servertest"
)

// filled sets every field of a value to something that is not its zero value.
func filled(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Pointer:
		if depth < 8 {
			v.Set(reflect.New(v.Type().Elem()))
			filled(v.Elem(), depth+1)
		}
	case reflect.Slice:
		if depth < 8 {
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			filled(v.Index(0), depth+1)
			filled(v.Index(1), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("k"), reflect.ValueOf("v"))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Type != reflect.TypeFor[snap.Engine]() {
				filled(v.Field(i), depth+1)
			}
		}
	}
}

// The stream decoder reads every field that encoding/json writes.
func TestManifestIsDecodedWhole(t *testing.T) {
	t.Parallel()
	want := sampleManifest()
	want.Tables, want.Schema = nil, &schema.Schema{}
	filled(reflect.ValueOf(&want.Tables).Elem(), 0)
	filled(reflect.ValueOf(want.Schema).Elem(), 4)
	want.Properties = map[string]string{"encoding": "UTF8"}
	want.Subset = &Subset{Percent: 3, Start: []string{"t"}}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeManifest(bytes.NewReader(text), sha256.Sum256(text), foreignBounds())
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v: decoded %+v\nwant %+v", err, got, want)
	}
}

// A manifest that is too large is refused in a file from elsewhere, and accepted in
// the user's own file.
func TestOwnManifestsHaveRoom(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	many := foreignBounds().marks + 1
	for name, tables := range map[string][]Table{
		"many tables":       make([]Table, many*7/4),
		"a long table name": {{Name: strings.Repeat("n", maxName+1)}},
		"a long column":     {{Name: "t", Columns: []Column{{Name: strings.Repeat("n", maxName+1)}}}},
		"many columns":      {{Name: "t", Columns: make([]Column, many)}},
	} {
		m := sampleManifest()
		m.Tables, m.Format = tables, Format
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		file := header(Format)
		foot := footer{offset: headerSize, length: uint64(len(text)), sum: sum256(text)}
		file = append(append(file, text...), foot.bytes()...)
		if _, err := NewReader(bytes.NewReader(file), int64(len(file))); snap.CodeOf(err) != snap.CodeCorrupt {
			t.Errorf("%s: from elsewhere: %v", name, err)
		}
		if _, err := newReader(bytes.NewReader(file), int64(len(file)), ownBounds()); err != nil {
			t.Errorf("%s: one's own: %v", name, err)
		}
	}
}

// A description for which Fits returns true is accepted when read from a foreign file.
func TestFittingDescriptionsAreRead(t *testing.T) {
	t.Parallel()
	s := &schema.Schema{Tables: make([]schema.Table, 20_000)}
	for len(s.Tables) > 0 && !Fits(s) {
		s.Tables = s.Tables[:len(s.Tables)-100]
	}
	file, _ := pack(t, map[string][]byte{"dump": nil})
	file = reseal(t, file, func(old *Manifest) { old.Schema = s })
	r, err := NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil || len(r.Manifest().Schema.Tables) != len(s.Tables) || len(s.Tables) < 5000 {
		t.Errorf("%d tables: %v", len(s.Tables), err)
	}
}
