package personal

import (
	"slices"
	"strings"
)

// rowEnds are last words of row identifiers.
var rowEnds = strings.Fields(`id ids uuid guid rowguid fk pk oid gid rowid kennung`)

// byEnds are last words of references to the person who performed an action.
var byEnds = strings.Fields(`by to parent author creator owner create change update`)

// numberEnds are last words of numbers that can identify a person.
var numberEnds = strings.Fields(`number no num nr numero nummer numer code key ref reference`)

// measureEnds are last words of numbers and texts that are measurements.
var measureEnds = strings.Fields(`count counts cnt total totals sum qty quantity limit size length attempts failures
	failure min max avg average percent percentage rate ratio position order sort level tier version rank score
	duration seconds minutes hours days weeks months years width depth offset interval bytes amount price cost cents
	fee tax index idx step timestep quota threshold frequency priority weight mode status state type kind category
	flags bits enabled disabled required requests spent balance points sequence len on off at for failed invalid login
	timestamp visibility strategy subscription source attempt year`)

// numberEndsOfPrograms are further last words of numbers that programs write: times, switches and settings.
var numberEndsOfPrograms = strings.Fields(`ts time date created updated modified deleted expires expired expiration
	ms milliseconds micros hour minute second day month lifetime ttl age zoom cost costs freight revenue
	discount quota capacity stock budget score karma ordering seq seqno counter pages page port role plan active
	deleted hidden locked public private default used usage weighting volume area speed temperature latency delay
	timeout depth step stage batch part chunk block line row column ratio factor multiplier exponent radius
	margin padding opacity bitrate fps hz kb mb gb tb bits byte store encoding access window lft rgt lower upper
	gap lag run runs build generation epoch iid rating votes vote rounds round turn shift slot target
	in bytesize piority num usage context class klass reason week read`)

// limiting are words of such numbers wherever they are: "max_artifact_size_archive".
var limiting = strings.Fields("limit max min maximum minimum size count timeout restriction per version ids")

// counted are first words of numbers that count or limit something.
var counted = strings.Fields("nb num count total sum min minimum max maximum avg average is has can use allow n")

// measures reports whether a number's name says that it counts, measures or numbers something other than a person. A
// plural is a count, as in "daily_invites", unless it is the plural of a word for a number.
func measures(words []string) bool {
	if len(words) == 0 {
		return false
	}
	last, first := words[len(words)-1], words[0]
	plural := len(last) > 3 && strings.HasSuffix(last, "s") && !strings.HasSuffix(last, "ss") &&
		!slices.Contains(numberEnds, strings.TrimSuffix(last, "s")) && last != "values" && last != "identifiers"
	of := len(words) > 2 && slices.Equal(words[:2], []string{"number", "of"})
	technical := slices.Contains(technicalEnds, last) && last != "code" && last != "codes"
	return plural || of || technical || slices.Contains(measureEnds, last) ||
		slices.Contains(numberEndsOfPrograms, last) ||
		len(words) > 1 && slices.Contains(counted, first) ||
		slices.ContainsFunc(words, func(w string) bool { return slices.Contains(limiting, w) })
}

// payEnds are last words of numbers that are not pay although their table is about pay.
var payEnds = strings.Fields(`frequency count year month level order number no nr days hours version`)

// aboutEnds are last words of texts that describe personal data but contain none.
var aboutEnds = strings.Fields(`type types status state kind format mode level scope scopes algorithm params encoding
	locale lang language visibility role label count enabled disabled required verified provider size width height
	model action frequency priority setting sort order strategy version method template at on length medium source
	campaign sequence driver code name`)

// technicalEnds are last words of texts that programs write.
var technicalEnds = strings.Fields(`type types status state kind locale locales lang language languages currency
	timezone tz mime encoding charset collation format checksum md5 sha sha1 sha256 etag version color colour icon unit
	units priority level category class model engine driver theme environment direction position sort order method
	scope scopes permission permissions action role roles visibility frequency algorithm params variant severity mode
	cron layout template flags column table module medium source campaign separator sep convention strategy
	backend plugin component protocol platform os browser app provider grp lock revision node shard queue instance
	size label stage phase result outcome editor availability membership involvement display code codes
	kategorie typ statut categorie etat rodzaj tipo estado stato durum tur`)

// special are the kinds that even a boolean can reveal.
var special = []Kind{Health, Belief, Family, Biometric, NationalNumber}

// technicalEnd reports whether a name that contains a kind's words only describes such data, as in
// "email_count integer". The kind's words end at word number at, counted from one.
func technicalEnd(words []string, t Type, k Kind, at int) bool {
	last := words[len(words)-1]
	switch {
	case slices.Contains(special, k):
		return t.Class.isTime() && t.Class != Date
	case t.Class == Bool:
		return k != Gender
	case t.Class == Interval:
		return true
	case t.Class.isTime():
		return k != Birth
	case t.Class == Enum:
		return k != Gender && k != Age
	case t.Class.isInteger() && t.Length == 1:
		return true
	case k == Person && (t.Class.isInteger() || t.Class == UUID):
		return true
	case t.Class.isNumber():
		return at < len(words) && slices.Contains(measureEnds, last) && k != Birth && !inUnits(k, last)
	case t.Class == Text && t.Dims == 0:
		// A name or a code can be the personal value itself: "email_name", "pin_code".
		return at < len(words) && slices.Contains(aboutEnds, last) && last != "name" && last != "code"
	}
	return false
}

// inUnits reports whether the last word of a name is only the unit of what the name says before: "salary_cents",
// "age_years".
func inUnits(k Kind, last string) bool {
	switch k {
	case Income:
		return slices.Contains(strings.Fields("cents amount total sum min max avg average price year"), last)
	case Age:
		return slices.Contains(strings.Fields("years months days year"), last)
	}
	return false
}

// technical reports whether a column's name says that its texts are written by a program. In tables
// of people, some of these words refer to people.
func technical(words []string, j judge) bool {
	if len(words) == 0 {
		return false
	}
	last := words[len(words)-1]
	if last == "country" && j.people || (last == "code" || last == "display") && len(words) == 1 {
		return false
	}
	return slices.Contains(technicalEnds, last)
}
