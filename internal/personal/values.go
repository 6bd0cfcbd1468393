package personal

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// detector recognizes the values of a kind.
type detector struct {
	kind       Kind
	matches    func(string) bool
	oneIsProof bool // one value is enough, because it cannot match by chance
}

// detectors are tried in order.
var detectors = []detector{
	{Secret, isKey, true},
	{Password, isPasswordHash, true},
	{Email, isEmail, false},
	{IPAddress, isIP, false},
	{Hardware, isMAC, false},
	{Account, isIBAN, false},
	{Card, isCard, false},
	{NationalNumber, isNational, false},
	{Phone, isPhone, false},
	{Coordinates, isCoordinates, false},
}

// byValues judges a column by sampled values. For most kinds of text, the verdict is certain if
// half of the values match. If at least one in twenty matches, a person must decide. For numbers
// and dates, values alone never make the verdict certain. The second result is false if the values
// show nothing.
func (j judge) byValues(c Column) (Finding, bool) {
	if c.Reference != "" || len(c.Samples) == 0 {
		return Finding{}, false
	}
	switch {
	case c.Type.Class == Text:
		return j.byTexts(c)
	case c.Type.Class == Date || c.Type.Class == Timestamp:
		if j.people && len(c.Samples) >= 3 && share(c.Samples, isLongAgo) >= 0.5 {
			return Finding{Reason: "many of its dates are before 2000, as dates of birth are"}, true
		}
	case c.Type.Class == Integer && !c.Key, c.Type.Class == Decimal:
		for _, d := range []detector{{kind: Card, matches: isCard}, {kind: NationalNumber, matches: isNational}} {
			if len(c.Samples) >= 3 && share(c.Samples, d.matches) >= 0.9 && !isRow(c, split(c.Name)) {
				return Finding{Reason: fmt.Sprintf("its values look like %s", d.kind)}, true
			}
		}
	}
	return Finding{}, false
}

func (j judge) byTexts(c Column) (Finding, bool) {
	for _, d := range detectors {
		part := share(c.Samples, d.matches)
		switch {
		case part >= 0.5, part > 0 && d.oneIsProof:
			return Finding{Mask, d.kind, fmt.Sprintf("its values look like %s", d.kind)}, true
		case part >= 0.05:
			return Finding{Reason: fmt.Sprintf("some values look like %s", d.kind)}, true
		}
	}
	switch {
	case share(c.Samples, isDocument) >= 0.5:
		return j.document(c), true
	case share(c.Samples, j.isName) >= 0.3:
		return Finding{Mask, Name, "its values look like people's names"}, true
	case share(c.Samples, j.isCity) >= 0.3:
		return Finding{Mask, City, "its values look like city names"}, true
	case share(c.Samples, containsEmail) > 0, share(c.Samples, j.mentions) >= 0.05:
		return Finding{Mask, FreeText, "text that mentions people"}, true
	case share(c.Samples, isProse) >= 0.3:
		return Finding{Reason: "free text"}, true
	}
	return Finding{}, false
}

// share returns the fraction of the values that satisfy a condition.
func share(values []string, is func(string) bool) float64 {
	n := 0
	for _, v := range values {
		if is(strings.TrimSpace(v)) {
			n++
		}
	}
	return float64(n) / float64(max(1, len(values)))
}

// emailForm is compiled when it is first needed, because Unicode classes make it slow to compile.
var emailForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[\pL\pN._%+-]+@[\pL\pN-]+(\.[\pL\pN-]+)+`)
})

var (
	phoneForm = regexp.MustCompile(`^(\+|00)?[0-9(][0-9 ()./-]{6,}[0-9]$`)
	ibanForm  = regexp.MustCompile(`^[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}$`)
	pairForm  = regexp.MustCompile(`^\(?\s*(-?[0-9]{1,3}\.[0-9]{3,})\s*[,; ]\s*(-?[0-9]{1,3}\.[0-9]{3,})\s*\)?$`)
	// pointForm matches points in WKT and, with a reference system at the start, in EWKT.
	pointForm = regexp.MustCompile(`(?i)^(srid *= *[0-9]+ *; *)?(multi)?point *(z|m|zm)? *\(`)
	// keyForm matches keys of well-known services by their prefixes, PEM keys and certificates, SSH
	// public keys, JSON Web Tokens (RFC 7519), and URLs that contain a password.
	keyForm = regexp.MustCompile(`^(sk|pk|rk)_(live|test)_[0-9A-Za-z]{10,}|^gh[pousr]_[0-9A-Za-z]{20,}|` +
		`^github_pat_|^glpat-|^AKIA[0-9A-Z]{16}|^ASIA[0-9A-Z]{16}|^xox[abprs]-|^AIza[0-9A-Za-z_-]{30,}` +
		`|^SG\.[0-9A-Za-z_-]{16,}|` +
		`^ya29\.|^EAA[0-9A-Za-z]{20,}|^shp(at|ss|ca)_|^npm_[0-9A-Za-z]{30,}` +
		`|^pypi-|^dop_v1_|^whsec_|^sk-[0-9A-Za-z_-]{20,}|` +
		`^AGE-SECRET-KEY-|^hvs\.|^-----BEGIN [A-Z ]*(PRIVATE KEY|CERTIFICATE)|^ssh-(rsa|ed25519) |` +
		`^eyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]{8,}\.|^[a-z][a-z0-9+]*://[^/\s:@]+:[^/\s@]+@`)
	hashForm     = regexp.MustCompile(`^(\$2[abxy]\$|\$argon2|\$[156]\$|\$pbkdf2|pbkdf2_|scrypt:|\{S?SHA|\$P\$|\$S\$)`)
	nationalForm = regexp.MustCompile(`^([0-9]{3}-[0-9]{2}-[0-9]{4}|[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}|` +
		`756\.[0-9]{4}\.[0-9]{4}\.[0-9]{2}|[A-Z]{6}[0-9]{2}[A-Z][0-9]{2}[A-Z][0-9]{3}[A-Z]|` +
		`[A-CEGHJ-PR-TW-Z]{2} ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-D]|[XYZ]?[0-9]{7,8}[A-HJ-NP-TV-Z]|` +
		`[0-9]{6}[-+][0-9]{4}|[12][0-9]{2}(0[1-9]|1[0-2])[0-9AB]{2}[0-9]{8})$`)
	opaqueForm = regexp.MustCompile(`^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$|^[0-9]+$|` +
		`^c[a-z0-9]{24}$|^[0-9A-HJKMNP-TV-Z]{26}$`)
)

func isEmail(v string) bool        { return emailForm().FindString(v) == v && v != "" }
func containsEmail(v string) bool  { return strings.Contains(v, "@") && emailForm().MatchString(v) }
func isKey(v string) bool          { return keyForm.MatchString(v) }
func isPasswordHash(v string) bool { return hashForm.MatchString(v) }
func isOpaque(v string) bool       { return opaqueForm.MatchString(v) }
func isNumber(v string) bool       { return v != "" && digits(v) == v }

// isLarge reports whether a value is a number of at least nine digits. The IDs of most tables have
// fewer.
func isLarge(v string) bool { return isNumber(v) && len(v) >= 9 }

func isIP(v string) bool {
	if _, err := netip.ParsePrefix(v); err == nil {
		return true
	}
	_, err := netip.ParseAddr(v)
	return err == nil
}

func isMAC(v string) bool {
	_, err := net.ParseMAC(v)
	return err == nil && strings.ContainsAny(v, ":-.")
}

// isPhone reports whether a value has the form and length of a telephone number. A value that looks
// like one only because it has two hyphens must not have the form of a date.
func isPhone(v string) bool {
	n := digits(v)
	if len(n) < 7 || len(n) > 15 || !phoneForm.MatchString(v) {
		return false
	}
	if len(n) == len(v) {
		return len(n) >= 10 && v[0] != '0'
	}
	return v[0] == '+' || v[0] == '0' || strings.ContainsAny(v, " ()") || strings.Count(v, "-") == 2 && !isDate(v)
}

// isLongAgo reports whether a date is from 1900 to 1999, as many dates of birth are.
func isLongAgo(v string) bool {
	return len(v) >= 10 && v[4] == '-' && v[:4] >= "1900" && v[:4] < "2000"
}

func isDate(v string) bool {
	return len(v) >= 10 && v[4] == '-' && v[7] == '-' || len(v) == 10 && (v[2] == '-' || v[2] == '.' || v[2] == '/')
}

// isIBAN checks the format and the check digits (ISO 13616).
func isIBAN(v string) bool {
	v = strings.ToUpper(strings.ReplaceAll(v, " ", ""))
	if !ibanForm.MatchString(v) {
		return false
	}
	var all strings.Builder
	for _, r := range v[4:] + v[:4] {
		if r >= 'A' {
			all.WriteString(strconv.Itoa(int(r-'A') + 10))
			continue
		}
		all.WriteRune(r)
	}
	n, ok := new(big.Int).SetString(all.String(), 10)
	return ok && n.Mod(n, big.NewInt(97)).Int64() == 1
}

// isCard reports whether a number has the length, first digit and check digit (ISO/IEC 7812) of a
// payment card.
func isCard(v string) bool {
	n := digits(v)
	if len(n) < 13 || len(n) > 19 || strings.Trim(v, "0123456789 -") != "" ||
		!strings.ContainsRune("23456", rune(n[0])) {
		return false
	}
	return luhn(n)
}

func luhn(n string) bool {
	sum := 0
	for i := range len(n) {
		d := int(n[len(n)-1-i] - '0')
		if i%2 == 1 {
			d *= 2
			if d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

// isNational recognizes national identification numbers of Brazil, France, Italy, the Netherlands,
// Poland, Spain, Sweden, Switzerland, the United Kingdom, the United States and other countries by
// their format or check digits.
func isNational(v string) bool {
	if nationalForm.MatchString(v) {
		return true
	}
	if digits(v) != v {
		return false
	}
	switch len(v) {
	case 9: // BSN
		return weighted(v, []int{9, 8, 7, 6, 5, 4, 3, 2, -1})%11 == 0
	case 11: // CPF, PESEL
		first := weighted(v[:9], []int{10, 9, 8, 7, 6, 5, 4, 3, 2}) * 10 % 11 % 10
		second := weighted(v[:10], []int{11, 10, 9, 8, 7, 6, 5, 4, 3, 2}) * 10 % 11 % 10
		cpf := first == int(v[9]-'0') && second == int(v[10]-'0')
		return cpf || weighted(v, []int{1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1})%10 == 0
	case 15: // NIR
		n, _ := strconv.ParseInt(v[:13], 10, 64)
		key, _ := strconv.ParseInt(v[13:], 10, 64)
		return (v[0] == '1' || v[0] == '2') && 97-n%97 == key
	}
	return false
}

func weighted(v string, weights []int) int {
	sum := 0
	for i, w := range weights {
		sum += int(v[i]-'0') * w
	}
	return sum
}

func digits(v string) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return r
		}
		return -1
	}, v)
}

func isCoordinates(v string) bool {
	m := pairForm.FindStringSubmatch(v)
	if m == nil {
		return pointForm.MatchString(v)
	}
	a, _ := strconv.ParseFloat(m[1], 64)
	b, _ := strconv.ParseFloat(m[2], 64)
	return math.Abs(a) <= 180 && math.Abs(b) <= 180
}

func isDocument(v string) bool {
	return len(v) > 1 && (v[0] == '{' || v[0] == '[') && json.Valid([]byte(v))
}

// isName reports whether a value consists of one to four capitalized words, at least one of which
// is a common given or family name.
func (j judge) isName(v string) bool {
	words := strings.FieldsFunc(v, func(r rune) bool { return r == ' ' || r == ',' || r == '-' })
	if len(words) == 0 || len(words) > 4 {
		return false
	}
	return slices.ContainsFunc(words, func(w string) bool {
		w = strings.ToLower(w)
		return j.lists.Given[w] || j.lists.Family[w]
	}) && !slices.ContainsFunc(words, func(w string) bool { return !unicode.IsUpper([]rune(w)[0]) })
}

func (j judge) isCity(v string) bool { return j.lists.Cities[strings.ToLower(v)] }

// isProse reports whether a value has at least five words.
func isProse(v string) bool { return len(strings.Fields(v)) >= 5 }

// mentions reports whether a longer text contains a given name followed by a capitalized word.
func (j judge) mentions(v string) bool {
	words := strings.FieldsFunc(v, func(r rune) bool { return !unicode.IsLetter(r) })
	for i := 0; i+1 < len(words); i++ {
		if j.lists.Given[strings.ToLower(words[i])] && unicode.IsUpper([]rune(words[i])[0]) &&
			unicode.IsUpper([]rune(words[i+1])[0]) {
			return len(words) >= 4
		}
	}
	return false
}
