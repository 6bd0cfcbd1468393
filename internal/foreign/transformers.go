package foreign

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// sameMask returns the mask that is equivalent to a transformer, whatever its parameters are.
func sameMask(name string) (mask string, ok bool) {
	mask, ok = map[string]string{
		"Hash": "hash", "SetNull": `"null"`, "RandomEmail": "email", "RandomName": "name", "RandomCompany": "company",
		"RandomFirstName": "first_name", "RandomFirstNameMale": "first_name", "RandomFirstNameFemale": "first_name",
		"RandomLastName": "last_name", "RandomPhoneNumber": "phone", "RandomE164PhoneNumber": "phone",
		"RandomTollFreePhoneNumber": "phone", "RandomUsername": "user_name", "RandomPassword": "password",
		"HashedPassword": "password_hash", "RandomWord": "word", "RandomSentence": "sentence",
		"RandomParagraph": "paragraph", "RandomCCNumber": "card", "RandomCreditCardNumber": "card",
		"RandomUuid": "uuid", "RandomBool": "boolean", "RandomTimezone": "time_zone", "RandomCurrency": "currency",
		"RandomDomainName": "domain", "RandomURL": "url", "RandomUrl": "url", "RandomMac": "mac",
		"RandomMacAddress": "mac", "RandomIp": "ip", "RandomIP": "ip", "RandomIPv4": "ip", "RandomIpv4": "ip",
		"RandomIPv6": "ip", "RandomIpv6": "ip",
		"RandomLatitude":    "{mask: number, min: -90, max: 90, decimals: 6}",
		"RandomLongitude":   "{mask: number, min: -180, max: 180, decimals: 6}",
		"RandomDayOfMonth":  "{mask: integer, min: 1, max: 31}",
		"RandomYearString":  "{mask: integer, min: 1970, max: 2025}",
		"RandomUnixTime":    "{mask: integer, min: 0, max: 1767225600}",
		"RandomDayOfWeek":   choiceOf("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
		"RandomMonthName":   choiceOf(months()...),
		"RandomCentury":     choiceOf("XVII", "XVIII", "XIX", "XX", "XXI"),
		"RandomCCType":      choiceOf("VISA", "MasterCard", "American Express", "Discover", "JCB", "Diners Club"),
		"RandomTitleMale":   choiceOf("Mr.", "Dr.", "Prof.", "Lord", "King", "Prince"),
		"RandomTitleFemale": choiceOf("Mrs.", "Ms.", "Miss", "Dr.", "Prof.", "Lady", "Queen", "Princess"),
	}[name]
	return mask, ok
}

func months() []string {
	var all []string
	for m := time.January; m <= time.December; m++ {
		all = append(all, m.String())
	}
	return all
}

// choiceOf returns a mask of the kind choice with these values.
func choiceOf(values ...string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = strconv.Quote(v)
	}
	return "{mask: choice, values: [" + strings.Join(quoted, ", ") + "]}"
}

// rangeMask returns the mask for a transformer with bounds. A computed bound has no equivalent: the
// mask then uses its default, and exact is false.
func rangeMask(name string, params *tree) (mask string, exact, ok bool) {
	kind := map[string]string{"RandomInt": "integer", "RandomFloat": "number", "RandomNumeric": "number",
		"RandomDate": "date", "RandomUnixTimestamp": "integer"}[name]
	if kind == "" {
		return "", false, false
	}
	settings, exact := "mask: "+kind, true
	for _, key := range []string{"min", "max"} {
		v := params.value(key)
		if name == "RandomUnixTimestamp" {
			v = unixTime(v)
		}
		if !plainBound(kind, v) {
			exact = false
			continue
		}
		settings += fmt.Sprintf(", %s: %q", key, v)
	}
	if n, err := strconv.Atoi(params.value("decimal")); err == nil && kind == "number" && n >= 0 && n <= 15 {
		settings += fmt.Sprintf(", decimals: %d", n)
	}
	return "{" + settings + "}", exact, true
}

var dateForm = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}( [0-9]{2}:[0-9]{2}:[0-9]{2})?$`)

func plainBound(kind, v string) bool {
	switch kind {
	case "integer":
		_, err := strconv.ParseInt(v, 10, 64)
		return err == nil
	case "number":
		n, err := strconv.ParseFloat(v, 64)
		return err == nil && n > -1e15 && n < 1e15
	}
	return dateForm.MatchString(v)
}

// unixTime returns a date as seconds since 1970, or the text unchanged if it is not a date.
func unixTime(v string) string {
	for _, form := range []string{time.DateTime, time.DateOnly, time.RFC3339Nano} {
		if t, err := time.Parse(form, v); err == nil {
			return strconv.FormatInt(t.Unix(), 10)
		}
	}
	return v
}

// listedMask returns the mask for a transformer with a list of values, a pattern or operations.
func listedMask(name string, params *tree) (mask string, exact, ok bool) {
	switch name {
	case "RandomChoice":
		var values []string
		for _, v := range params.get("values").list() {
			if v.scalar && v.text != `\N` {
				values = append(values, v.text)
			}
		}
		return choiceOf(values...), true, len(values) > 0
	case "Dict":
		pairs := map[string]string{}
		for _, v := range params.get("values").allFields() {
			if v.scalar {
				pairs[v.name] = v.text
			}
		}
		text, err := json.Marshal(pairs)
		return "{mask: dictionary, map: " + string(text) + "}", params.get("default") == nil, err == nil &&
			len(pairs) > 0
	case "RegexpReplace":
		pattern := params.value("regexp")
		if _, err := regexp.Compile(pattern); err != nil || pattern == "" {
			return "", false, false
		}
		// Greenmask does not change values that the pattern does not match. The mask redacts them.
		return fmt.Sprintf("{mask: replace, pattern: %s, with: %s}", strconv.Quote(pattern),
			strconv.Quote(params.value("replace"))), false, true
	case "Json":
		return documentMask(params.get("operations").list())
	}
	return "", false, false
}

// documentMask returns the mask for operations on a JSON document, if each operation sets a
// constant or deletes a value.
func documentMask(operations []*tree) (mask string, exact, ok bool) {
	paths := map[string]any{}
	exact = true
	for _, o := range operations {
		path, value := o.value("path"), o.get("value")
		switch {
		case path == "" || strings.ContainsAny(path, `:#|@?\`):
			return "", false, false
		case o.value("operation") == "delete":
			paths[path], exact = "null", false // the key stays
		case value != nil && value.scalar && !value.null:
			paths[path] = map[string]string{"mask": "constant", "value": value.text}
		default:
			return "", false, false
		}
	}
	text, err := json.Marshal(paths)
	return "{mask: json, otherwise: keep, paths: " + string(text) + "}", exact, err == nil && len(paths) > 0
}
