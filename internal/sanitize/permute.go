package sanitize

import (
	"encoding/binary"
	"encoding/hex"
	"math/big"
	"strconv"
	"strings"

	"snap/internal/engine"
)

// keyed replaces a value with one of the same form: numbers keep their number of digits, and
// strings keep their character classes. It is a permutation of all values of a form, so unique
// columns stay unique and joins still work.
func keyed(key []byte, _ ColumnRule, limit int) engine.Mask {
	p := permutation{newSource(key, "key")}
	return neverNull(func(v string) string { return cut(p.text(v), limit) })
}

// permutation permutes the numbers below a bound with a Feistel network of eight rounds over the
// next even number of bits, repeated until the result is below the bound (cycle walking).
type permutation struct{ from *source }

const rounds = 8

// below permutes n within [0, bound).
func (p permutation) below(n, bound *big.Int) *big.Int {
	bits := new(big.Int).Sub(bound, big.NewInt(1)).BitLen()
	half := uint(max(1, (bits+1)/2))
	mask := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), half), big.NewInt(1))
	if half <= 31 {
		return new(big.Int).SetUint64(p.small(n.Uint64(), bound.Uint64(), half))
	}
	n = new(big.Int).Set(n)
	for {
		left, right := new(big.Int).Rsh(n, half), new(big.Int).And(n, mask)
		for round := range rounds {
			left, right = right, left.Xor(left, p.round(round, right, bound, mask))
		}
		n = left.Lsh(left, half).Or(left, right)
		if n.Cmp(bound) < 0 {
			return n
		}
	}
}

// small returns the same results as [permutation.below], for numbers of up to 62 bits.
func (p permutation) small(n, bound uint64, half uint) uint64 {
	mask := uint64(1)<<half - 1
	in := make([]byte, 0, 32)
	for {
		left, right := n>>half, n&mask
		for round := range rounds {
			in = strconv.AppendInt(in[:0], int64(round), 10)
			in = strconv.AppendUint(append(in, ' '), bound, 36)
			in = strconv.AppendUint(append(in, ' '), right, 36)
			d := p.from.digest(string(append(in, " 0"...)))
			left, right = right, left^binary.BigEndian.Uint64(d[24:])&mask
		}
		if n = left<<half | right; n < bound {
			return n
		}
	}
}

// round returns the pseudorandom half block that a round derives from the half block in the
// parameter right. In mask, all bits of a half block are set.
func (p permutation) round(round int, right, bound, mask *big.Int) *big.Int {
	in := strconv.Itoa(round) + " " + bound.Text(36) + " " + right.Text(36)
	out := new(big.Int)
	for block := 0; out.BitLen() < mask.BitLen() && block*256 < mask.BitLen()+256; block++ {
		d := p.from.digest(in + " " + strconv.Itoa(block))
		out.Lsh(out, 256).Or(out, new(big.Int).SetBytes(d[:]))
	}
	return out.And(out, mask)
}

// forms are the sets of characters. Each character is replaced with one from its own set.
var forms = []string{"0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}

// text permutes the digits and letters of a value among all values of its form. A value with
// non-ASCII characters becomes hexadecimal digits, which are practically unique.
func (p permutation) text(v string) string {
	if isUUID(v) {
		return p.uuid(v)
	}
	n, bound := new(big.Int), big.NewInt(1)
	leading := true // the first digit of a number is not zero and must stay so
	places := make([]string, len(v))
	for i := range len(v) {
		if v[i] >= 0x80 {
			d := p.from.digest(v)
			return hex.EncodeToString(d[:16])
		}
		places[i] = formOf(v[i], leading)
		if places[i] == "" {
			continue
		}
		leading = false
		size := big.NewInt(int64(len(places[i])))
		n.Add(n.Mul(n, size), big.NewInt(int64(strings.IndexByte(places[i], v[i]))))
		bound.Mul(bound, size)
	}
	if bound.Cmp(big.NewInt(1)) == 0 {
		return v
	}
	n = p.below(n, bound)
	out, rest := []byte(v), new(big.Int)
	for i := len(v) - 1; i >= 0; i-- {
		if places[i] == "" {
			continue
		}
		n.DivMod(n, big.NewInt(int64(len(places[i]))), rest)
		out[i] = places[i][rest.Int64()]
	}
	return string(out)
}

// formOf returns the characters that may replace c, or "" if c remains.
func formOf(c byte, leading bool) string {
	for _, form := range forms {
		if strings.IndexByte(form, c) < 0 {
			continue
		}
		if leading && c >= '1' && c <= '9' {
			return form[1:] // keeps the number of digits
		}
		if leading && c == '0' {
			return "" // a leading zero remains, so that different forms do not collide
		}
		return form
	}
	return ""
}

func isUUID(v string) bool {
	if len(v) != 36 || v[8] != '-' || v[13] != '-' || v[18] != '-' || v[23] != '-' {
		return false
	}
	digits := strings.ReplaceAll(v, "-", "")
	_, ok := new(big.Int).SetString(digits, 16)
	return ok && len(digits) == 32 && digits[0] != '+'
}

// uuid permutes the bits of a UUID, except the digits of its version and variant, which MariaDB
// checks.
func (p permutation) uuid(v string) string {
	digits := strings.ToLower(strings.ReplaceAll(v, "-", ""))
	version, variant := digits[12:13], digits[16:17]
	n, _ := new(big.Int).SetString(digits[:12]+digits[13:16]+digits[17:], 16)
	var b [15]byte
	p.below(n, new(big.Int).Lsh(big.NewInt(1), 120)).FillBytes(b[:])
	h := hex.EncodeToString(b[:])
	return uuidText(h[:12] + version + h[12:15] + variant + h[15:])
}

// uuidText returns 32 hexadecimal digits in the text form of a UUID.
func uuidText(h string) string {
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// integer permutes an integer among the integers with the same sign and number of digits, as the
// method text does. Zero stays zero. limit is the largest integer of the column's type. Larger
// integers, which only SQLite stores, are permuted among themselves.
func (p permutation) integer(v string, limit *big.Int) (string, bool) {
	n, ok := new(big.Int).SetString(v, 10)
	if !ok {
		return "", false
	}
	if n.Sign() == 0 {
		return "0", true
	}
	size := new(big.Int).Abs(n)
	digits := len(size.String())
	low := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits-1)), nil)
	high := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil)
	top := new(big.Int).Add(limit, big.NewInt(1))
	if n.Sign() < 0 {
		top.Add(top, big.NewInt(1)) // the smallest integer is one farther from zero
	}
	switch {
	case top.Cmp(size) > 0 && top.Cmp(high) < 0:
		high = top
	case top.Cmp(size) <= 0 && top.Cmp(low) > 0:
		low = top
	}
	m := p.below(size.Sub(size, low), high.Sub(high, low))
	m.Add(m, low)
	if n.Sign() < 0 {
		m.Neg(m)
	}
	return m.String(), true
}
