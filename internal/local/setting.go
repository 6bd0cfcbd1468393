package local

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"snap"
)

// Setting is one value of the configuration.
type Setting struct {
	Key string // such as cloud.url or targets.shop.source
	// Value is the effective value. The entries of a list are separated by commas, and grants by
	// semicolons; checks are JSON.
	Value  string
	Origin string // "file", "environment" or "default"
}

// SettingKeys returns all keys that a configuration can have, with NAME in place of the name of a
// target, a storage profile or a table.
func SettingKeys() []string { return settingKeys(reflect.TypeFor[Config](), nil) }

func settingKeys(t reflect.Type, at []string) (all []string) {
	for _, path := range settingPaths(t, at, func([]string) []string { return []string{"NAME"} }) {
		all = append(all, strings.Join(path, "."))
	}
	slices.Sort(all)
	return all
}

// settingPaths returns the paths of all settings in a part of [Config], in the order of its fields.
// at is the path of the part. names returns the names in the map at a path.
func settingPaths(t reflect.Type, at []string, names func(at []string) []string) (all [][]string) {
	add := func(name string, t reflect.Type) {
		all = append(all, settingPaths(t, append(slices.Clone(at), name), names)...)
	}
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if name := nameInFile(t.Field(i)); name != "-" {
				add(name, t.Field(i).Type)
			}
		}
	case reflect.Map:
		for _, name := range names(at) {
			add(name, t.Elem())
		}
	default:
		all = append(all, at)
	}
	return all
}

// fieldsByName returns the fields of a part of [Config] by their names in the file.
func fieldsByName(t reflect.Type) map[string]reflect.StructField {
	all := map[string]reflect.StructField{}
	for i := range t.NumField() {
		if name := nameInFile(t.Field(i)); name != "-" {
			all[name] = t.Field(i)
		}
	}
	return all
}

// nameInFile returns the name of a field in the file, or "-" if the file does not contain it.
func nameInFile(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
	return name
}

// Settings returns every setting with its effective value, in the order of [Config].
func (a *Agent) Settings() (all []Setting) {
	a.file.mu.Lock()
	defer a.file.mu.Unlock()
	for _, path := range settingPaths(reflect.TypeFor[Config](), nil, func(at []string) (names []string) {
		for _, name := range valueAt(reflect.ValueOf(a.file.config), at).MapKeys() {
			names = append(names, name.String())
		}
		slices.Sort(names)
		return names
	}) {
		all = append(all, a.file.setting(path))
	}
	return all
}

// Setting returns the effective value of a key. It fails with code usage if the key does not exist.
func (a *Agent) Setting(key string) (Setting, error) {
	a.file.mu.Lock()
	defer a.file.mu.Unlock()
	path, _, err := settingPath(reflect.ValueOf(a.file.config), key)
	if err != nil {
		return Setting{}, err
	}
	return a.file.setting(path), nil
}

func (f *configFile) setting(path []string) Setting {
	s := Setting{Key: strings.Join(path, "."), Origin: f.origin(strings.Join(path, keyDelim))}
	if v := valueAt(reflect.ValueOf(f.config), path); v.IsValid() {
		s.Value = textOf(s.Key, v)
	}
	return s
}

// Set writes a setting to the configuration file and preserves everything else in it, including
// comments. An empty text removes the setting: its value becomes null. For an invalid key or value,
// Set fails with code usage and changes nothing. overridden names the environment variable that
// overrides the file, if there is one.
func (a *Agent) Set(key, text string) (overridden string, err error) {
	f := a.file
	f.mu.Lock()
	defer f.mu.Unlock()
	unlock, err := f.lock()
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := f.read(); err != nil { // another program may have changed the file
		return "", err
	}
	path, kind, err := settingPath(reflect.ValueOf(f.config), key)
	if err != nil {
		return "", err
	}
	value, err := parseSetting(key, text, kind)
	if err != nil {
		return "", err
	}
	edited, err := setValue(f.text, path, value)
	if err != nil || !isOnlyChange(edited, f.text, func(c *Config) { put(reflect.ValueOf(c).Elem(), path, value) }) {
		return "", snap.Usage(fmt.Sprintf("the file %s uses YAML syntax that snapcli cannot edit", f.path),
			"change it with `snapcli config edit`")
	}
	if err := a.checkSetting(path, edited); err != nil {
		return "", err
	}
	if f.inEnv.Exists(strings.Join(path, keyDelim)) {
		overridden = envName(strings.Join(path, keyDelim))
	}
	return overridden, f.write(edited)
}

// checkSetting returns the error that a setting in this text of the file would cause. It ignores
// the environment variable that overrides the setting.
func (a *Agent) checkSetting(path []string, text []byte) error {
	inFile, err := parseConfig(a.file.path, text)
	if err != nil {
		return err
	}
	inEnv := a.file.inEnv.Copy()
	inEnv.Delete(strings.Join(path, keyDelim))
	config, err := merge(inFile, inEnv)
	if err != nil {
		return err
	}
	key := strings.Join(path, ".")
	before := a.flawsOf(key, a.file.config)
	for _, flaw := range a.flawsOf(key, config) {
		if !slices.Contains(before, flaw) {
			return snap.Usage(flaw, "nothing was changed")
		}
	}
	return nil
}

// flawsOf returns the flaws of a setting, or of its group, in a configuration.
func (a *Agent) flawsOf(key string, c Config) (all []string) {
	other := *a
	other.file = &configFile{path: a.file.path, env: a.file.env, config: c}
	for _, flaw := range other.Flaws() {
		if !flaw.Doubt && (flaw.Key == key || strings.HasPrefix(key, flaw.Key+".")) {
			all = append(all, flaw.Key+": "+flaw.Err.Error())
		}
	}
	return all
}

// settingPath splits a key into the names in the file and returns the type of its value. A name may
// itself contain dots: existing names take precedence.
func settingPath(config reflect.Value, key string) ([]string, reflect.Type, error) {
	path, kind := resolve(config.Type(), config, strings.Split(key, "."))
	switch {
	case path == nil:
		hint := "`snapcli config schema` lists all settings"
		if c := snap.Closest(key, SettingKeys()); c != "" {
			hint = "did you mean " + c + "?"
		}
		return nil, nil, snap.Usage(fmt.Sprintf("there is no setting %q", key), hint)
	case kind.Kind() == reflect.Slice && kind.Elem().Kind() == reflect.Struct:
		return nil, nil, snap.Usage(fmt.Sprintf("%q is a list that this command neither reads nor writes", key),
			"use `snapcli config edit`")
	case kind.Kind() == reflect.Struct || kind.Kind() == reflect.Map:
		return nil, nil, snap.Usage(fmt.Sprintf("%q is a group of settings", key),
			"name one of them: "+strings.Join(settingKeys(kind, path), ", "))
	}
	return path, kind, nil
}

// resolve follows the parts of a key through a type of [Config], and returns the path and the type
// of the setting, or nil if there is none. v is the configuration's value of that type, if any.
func resolve(t reflect.Type, v reflect.Value, parts []string) ([]string, reflect.Type) {
	if len(parts) == 0 {
		return []string{}, t
	}
	switch t.Kind() {
	case reflect.Struct:
		field, ok := fieldsByName(t)[parts[0]]
		if !ok {
			return nil, nil
		}
		var inner reflect.Value
		if v.IsValid() {
			inner = v.FieldByIndex(field.Index)
		}
		return resolveNamed(parts[0], field.Type, inner, parts[1:])
	case reflect.Map:
		var path []string
		var kind reflect.Type
		for n := 1; n <= len(parts); n++ {
			name := strings.Join(parts[:n], ".")
			var inner reflect.Value
			if v.IsValid() {
				inner = v.MapIndex(reflect.ValueOf(name))
			}
			p, k := resolveNamed(name, t.Elem(), inner, parts[n:])
			if n == len(parts) && t.Elem().Kind() == reflect.Struct && !inner.IsValid() {
				continue // there is no group with that name
			}
			if p != nil && (path == nil || inner.IsValid()) {
				path, kind = p, k
			}
		}
		return path, kind
	}
	return nil, nil
}

func resolveNamed(name string, t reflect.Type, v reflect.Value, parts []string) ([]string, reflect.Type) {
	rest, kind := resolve(t, v, parts)
	if rest == nil {
		return nil, nil
	}
	return append([]string{name}, rest...), kind
}

// parseSetting parses a value as typed on the command line. The value of an empty text is nil.
func parseSetting(key, text string, kind reflect.Type) (any, error) {
	if text == "" {
		return nil, nil
	}
	if kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	wrong := func(needed string) error {
		return snap.Usage(fmt.Sprintf("%s needs %s, not %q", key, needed, text),
			"run it again with another value")
	}
	switch kind.Kind() {
	case reflect.Bool:
		v, err := strconv.ParseBool(text)
		if err != nil {
			return nil, wrong("true or false")
		}
		return v, nil
	case reflect.Int, reflect.Int64:
		v := reflect.New(kind).Elem()
		n, err := strconv.ParseInt(text, 10, kind.Bits())
		if err != nil {
			return nil, wrong("a whole number")
		}
		v.SetInt(n)
		return v.Interface(), nil
	case reflect.Float64:
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, wrong("a number")
		}
		return v, nil
	case reflect.Slice:
		list := []string{}
		for _, entry := range strings.Split(text, separator(key)) {
			if entry = strings.TrimSpace(entry); entry != "" {
				list = append(list, entry)
			}
		}
		return list, nil
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' }) {
		return nil, snap.Usage("the value for "+key+" has a line break or another control character", "remove it")
	}
	return text, nil
}

// separator returns the text between two entries of a list. Statements contain commas.
func separator(key string) string {
	if strings.HasSuffix(key, ".grants") {
		return ";"
	}
	return ","
}

// textOf formats the value of a key as typed on the command line.
func textOf(key string, v reflect.Value) string {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return ""
		}
		return textOf(key, v.Elem())
	case reflect.Slice:
		if list, ok := v.Interface().([]string); ok {
			return strings.Join(list, separator(key))
		}
		text, _ := yaml.MarshalWithOptions(v.Interface(), yaml.JSON()) // every Check can be written
		return strings.TrimSpace(string(text))
	}
	return fmt.Sprint(v.Interface())
}

// valueAt returns the configuration's value at a path. The result is not valid if there is no entry
// with that name.
func valueAt(v reflect.Value, path []string) reflect.Value {
	for _, name := range path {
		if v.Kind() == reflect.Map {
			v = v.MapIndex(reflect.ValueOf(name))
		} else {
			v = v.FieldByIndex(fieldsByName(v.Type())[name].Index)
		}
		if !v.IsValid() {
			return v
		}
	}
	return v
}

// put sets the configuration's value at a path. The value nil is the zero value.
func put(v reflect.Value, path []string, value any) {
	switch {
	case len(path) == 0 && value == nil:
		v.SetZero()
	case len(path) == 0 && v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		v.Elem().Set(reflect.ValueOf(value))
	case len(path) == 0:
		v.Set(reflect.ValueOf(value))
	case v.Kind() == reflect.Map:
		name, entry := reflect.ValueOf(path[0]), reflect.New(v.Type().Elem()).Elem()
		if before := v.MapIndex(name); before.IsValid() {
			entry.Set(before)
		}
		put(entry, path[1:], value)
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		v.SetMapIndex(name, entry)
	default:
		put(v.FieldByIndex(fieldsByName(v.Type())[path[0]].Index), path[1:], value)
	}
}
