package sanitize

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// plainWord draws a word for an invented sentence.
func plainWord(r *rand.Rand) string { return strings.ToLower(pick(r, streetNames[:])) }

func sentence(r *rand.Rand) string {
	words := make([]string, 4+r.IntN(7))
	for i := range words {
		words[i] = plainWord(r)
	}
	text := strings.Join(words, " ")
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

func paragraph(r *rand.Rand) string {
	all := make([]string, 2+r.IntN(4))
	for i := range all {
		all[i] = sentence(r)
	}
	return strings.Join(all, " ")
}

// domain invents a name in a reserved domain (RFC 2606).
func domain(r *rand.Rand) string {
	return fmt.Sprintf("%s-%08x.example.com", plainWord(r), r.Uint64N(1<<32))
}

func webAddress(r *rand.Rand) string {
	return "https://" + domain(r) + "/" + plainWord(r)
}

// passwordLetters omits letters that are easily confused.
const passwordLetters = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789"

func password(r *rand.Rand) string { return lettersOf(r, passwordLetters, 20) }

// passwordHash invents a string in the form of a bcrypt hash. No known password has this hash.
func passwordHash(r *rand.Rand) string {
	const letters = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	return "$2a$10$" + lettersOf(r, letters, 53)
}

func lettersOf(r *rand.Rand, letters string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[r.IntN(len(letters))]
	}
	return string(b)
}

// timeZones are names of the IANA time zone database.
var timeZones = [...]string{
	"Africa/Cairo", "Africa/Lagos", "Africa/Nairobi", "America/Bogota", "America/Chicago", "America/Denver",
	"America/Lima", "America/Los_Angeles", "America/New_York", "America/Sao_Paulo", "America/Toronto", "Asia/Bangkok",
	"Asia/Dubai", "Asia/Jakarta", "Asia/Kolkata", "Asia/Seoul", "Asia/Shanghai", "Asia/Singapore", "Asia/Tokyo",
	"Australia/Perth", "Australia/Sydney", "Europe/Athens", "Europe/Berlin", "Europe/Istanbul", "Europe/Lisbon",
	"Europe/London", "Europe/Madrid", "Europe/Paris", "Europe/Rome", "Europe/Warsaw", "Pacific/Auckland", "UTC",
}

// currencies are codes of ISO 4217.
var currencies = [...]string{
	"AED", "ARS", "AUD", "BRL", "CAD", "CHF", "CLP", "CNY", "COP", "CZK", "DKK", "EGP", "EUR", "GBP", "HUF", "IDR",
	"ILS", "INR", "JPY", "KES", "KRW", "MXN", "MYR", "NGN", "NOK", "NZD", "PEN", "PHP", "PLN", "RON", "SEK", "SGD",
	"THB", "TRY", "TWD", "USD", "VND", "ZAR",
}
