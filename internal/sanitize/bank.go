package sanitize

import (
	"fmt"
	"math/big"
	"strings"

	"snap/internal/engine"
)

// card replaces payment card numbers with numbers of the same format and a valid check digit
// (ISO/IEC 7812). The first digit remains.
func card(key []byte, _ ColumnRule, limit int) engine.Mask {
	digits := formatted("card", false)(key, ColumnRule{}, limit)
	return func(v string) (string, bool) {
		out, null := digits(v)
		b := []byte(out)
		places := digitPlaces(b)
		if null || len(places) < 2 || len(out) != len(v) {
			return out, null
		}
		b[places[0]] = v[places[0]]
		sum := 0
		for i, at := range places[:len(places)-1] {
			d := int(b[at] - '0')
			if (len(places)-1-i)%2 == 1 {
				if d *= 2; d > 9 {
					d -= 9
				}
			}
			sum += d
		}
		b[places[len(places)-1]] = byte('0' + (10-sum%10)%10)
		return string(b), false
	}
}

// digitPlaces returns the positions of the digits in b.
func digitPlaces(b []byte) []int {
	var places []int
	for i, c := range b {
		if '0' <= c && c <= '9' {
			places = append(places, i)
		}
	}
	return places
}

// iban replaces account numbers with numbers of the same country and format and valid check digits
// (ISO 13616). In any other value, digits become digits and letters become letters.
func iban(key []byte, _ ColumnRule, limit int) engine.Mask {
	form := formatted("iban", true)(key, ColumnRule{}, 0)
	return neverNull(func(v string) string {
		bare := strings.ToUpper(strings.ReplaceAll(v, " ", ""))
		if len(bare) < 15 || len(bare) > 34 || strings.Trim(bare, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
			out, _ := form(v)
			return cut(out, limit)
		}
		rest, _ := form(bare[4:])
		out := bare[:2] + fmt.Sprintf("%02d", 98-remainder(rest+bare[:2]+"00")) + rest
		if !strings.Contains(v, " ") {
			return cut(out, limit)
		}
		var grouped []string
		for i := 0; i < len(out); i += 4 {
			grouped = append(grouped, out[i:min(len(out), i+4)])
		}
		return cut(strings.Join(grouped, " "), limit)
	})
}

// remainder returns the remainder of v divided by 97, with letters read as numbers from 10.
func remainder(v string) int64 {
	var digits strings.Builder
	for _, r := range v {
		if r >= 'A' {
			fmt.Fprintf(&digits, "%d", r-'A'+10)
			continue
		}
		digits.WriteRune(r)
	}
	n, _ := new(big.Int).SetString(digits.String(), 10) // v has only digits and letters
	return n.Mod(n, big.NewInt(97)).Int64()
}
