package sample

import "strings"

var givenNames = []string{
	"Zoë", "Jürgen", "Łukasz", "Søren", "Åsa", "Núria", "François", "Ðorđe", "İpek", "Θάλεια", "Ольга", "Тарас",
	"محمد", "נועה", "अनन्या", "தமிழ்", "สมชาย", "小明", "さくら", "민준", "Nguyễn", "Ọlá", "D'Arcy", "Mary-Jane",
}

var familyNames = []string{
	"Müller", "Wałęsa", "Ångström", "García", "Öztürk", "Παπαδοπούλου", "Шевченко", "الخطيب", "כהן", "शर्मा",
	"ใจดี", "王", "佐藤", "김", "Trần", "Adébáyò", "O'Neill", "von der Heide", "Smith 🎉",
}

var mailDomains = []string{"mail.example", "post.example", "inbox.example", "büro.example"}

var notes = []string{
	"Please leave it with the neighbour.",
	"Geschenk – bitte ohne Rechnung",
	"door code 4711; don't ring",
	"配達は午前中にお願いします",
	"a \"quoted\" note, with a comma; a tab\tand\ntwo lines",
	"100 % cotton? \\o/",
	"",
}

// handle returns the local part of an e-mail address, made of a name's plain letters.
func handle(name string) string {
	h := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r == ' ':
			return '.'
		}
		return -1
	}, name)
	if h = strings.Trim(h, "."); h == "" {
		return "customer"
	}
	return h
}
