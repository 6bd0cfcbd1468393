package personal

import (
	"slices"
	"strings"
)

// rowEnds are last words of row identifiers.
var rowEnds = strings.Fields(`id ids uuid guid rowguid fk pk oid gid rowid kennung`)

// publicIDs are names of identifiers that a table has in addition to its key. Other people may know
// them.
var publicIDs = strings.Fields(`uuid guid uid`)

// byEnds are last words of references to people and other rows, as in "created_by".
var byEnds = strings.Fields(`by to parent author creator owner create change update`)

// numberEnds are last words of numbers that can identify a person.
var numberEnds = strings.Fields(`number no num nr numero nummer numer code key ref reference`)

// measureEnds are last words of columns that hold measurements.
var measureEnds = strings.Fields(`count counts cnt total totals sum qty quantity limit size length attempts failures
	failure min max avg average percent percentage rate ratio position order sort level tier version rank score
	duration seconds minutes hours days weeks months years width depth offset interval bytes amount price cost cents
	fee tax index idx step timestep quota threshold frequency priority weight mode status state type kind category
	flags bits enabled disabled required requests spent balance points sequence len on off at for failed invalid login
	timestamp visibility strategy subscription source attempt year reason preference in`)

// payEnds are last words of numbers that are not pay although their table is about pay.
var payEnds = strings.Fields(`frequency count year month level order number no nr days hours version`)

// aboutEnds are last words of text columns that describe personal data but contain none.
var aboutEnds = strings.Fields(`type types status state kind format mode level scope scopes algorithm params encoding
	locale lang language visibility role label count enabled disabled required verified provider size width height
	model action frequency priority setting sort order strategy version method template at on length medium source
	campaign sequence driver code name`)

// technicalEnds are last words of text columns that programs write.
var technicalEnds = strings.Fields(`type types status state kind locale locales lang language languages currency
	timezone tz mime encoding charset collation format checksum md5 sha sha1 sha256 etag version color colour icon unit
	units priority level category class model engine driver theme environment direction position sort order method
	scope scopes permission permissions action role roles visibility frequency algorithm params variant severity mode
	cron layout template flags column table module medium source campaign separator sep convention strategy
	backend plugin component protocol platform os browser app provider grp lock revision node shard queue instance
	size label stage phase result outcome availability membership involvement display
	kategorie typ statut categorie etat rodzaj tipo estado stato durum tur`)

// special are the kinds that even a boolean can reveal.
var special = []Kind{Health, Belief, Family, Biometric, NationalNumber, Gender}

// onlyDescribes reports whether a column whose name contains a kind's words only describes such
// data, by its type and its last word, as in "email_count integer". The parameter at is the number
// of the word, counted from one, at which the kind's words end.
func onlyDescribes(words []string, t Type, k Kind, at int) bool {
	last := words[len(words)-1]
	switch {
	case slices.Contains(special, k):
		return t.Class.isTime() && t.Class != Date
	case slices.Contains([]Class{Bool, Interval}, t.Class):
		return true
	case t.Class.isTime():
		return k != Birth
	case t.Class == Enum:
		return k != Age
	case t.Class == Integer && t.Length == 1:
		return true
	case k == Person && slices.Contains([]Class{Integer, UUID}, t.Class):
		return true
	case t.Class.isNumber():
		return at < len(words) && measures(k, last)
	case t.Class == Text && t.Dims == 0:
		// A name or a code can be the personal value itself, as in "email_name" and "pin_code".
		return at < len(words) && slices.Contains(aboutEnds, last) && last != "name" && last != "code"
	}
	return false
}

// measures reports whether a number only measures data of kind k, as in "email_count". last is the
// last word of its name, after the words of the kind.
func measures(k Kind, last string) bool {
	never := k == Birth || k == Income || k == Card && last == "year"
	return !never && slices.Contains(measureEnds, last)
}

// technical reports whether a column's name says that a program writes its values. In tables of
// people, some technical words, such as "position", refer to people.
func technical(words []string, j judge) bool {
	if len(words) == 0 {
		return false
	}
	last, before := words[len(words)-1], ""
	if len(words) > 1 {
		before = words[len(words)-2]
	}
	switch last {
	case "country", "position", "class":
		return !j.people
	case "code":
		return slices.Contains(codes, before) // other codes can grant access, such as "reset_code"
	case "name":
		return slices.Contains(technicalEnds, before) && !(j.people && before == "country")
	}
	return slices.Contains(technicalEnds, last)
}

// codes are words that, before "code", show that the code is from a public list.
var codes = strings.Fields(`country currency language lang locale error status type state category class response exit
	return color colour unit region tax http`)

// lookups are last words in the names of tables that list a program's own values or public values.
var lookups = listOf(`country, countries, currency, currencies, language, languages, locale, locales, role, roles,
	permission, permissions, status, statuses, type, types, unit, units, timezone, timezones`)

// lookup reports whether a column only names or describes an entry of a table in [lookups], as in
// "roles.name".
func (j judge) lookup(words []string) bool {
	return !j.people && len(j.table) > 0 && anyOf(j.table[len(j.table)-1:], lookups) && len(words) == 1 &&
		slices.Contains([]string{"name", "title", "label", "slug", "code", "description", "abbreviation"}, words[0])
}
