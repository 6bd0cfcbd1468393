package personal

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A column whose name is personal is never kept, regardless of its type.
func TestPersonalNamesAreNeverKept(t *testing.T) {
	t.Parallel()
	names := []string{"ssn", "phone", "api_token", "card_number", "email", "first_name", "home_address",
		"passport_number",
		"iban", "date_of_birth", "password", "latitude", "ip_address", "tax_id", "national_id", "religion", "diagnosis"}
	types := []string{"integer", "bigint", "uuid", "numeric(16,0)", "text", "varchar(20)", "text[]", "integer[]",
		"point",
		"contact_hint", "shop.contact_point", "inet", "jsonb", "hstore", "xml", "bytea", "int4range", "money", "",
		"blob",
		"bit varying(64)", "geography(Point,4326)", "double precision"}
	for column, typ := range map[string]string{"born_year": "smallint", "device_id": "uuid", "session_id": "uuid",
		"net": "cidr", "handset": "macaddr8", "kids": "smallint", "legal_id": "bigint", "is_hiv_positive": "boolean",
		"gender": "enum('f','m')", "customer_ssn_last4": "smallint", "tel_numbers": "bigint[]",
		"religion": "smallint"} {
		if f := Judge(Table{Name: "things", Columns: []Column{{Name: column, Type: ParseType(typ)}}},
			Lists{})[0]; f.Verdict ==
			Keep {
			t.Errorf("%s %s is kept: %s", column, typ, f.Reason)
		}
	}
	values := map[string][]string{"no values": nil, "codes": {"A1", "B2", "C3"}, "one value": {"X"}}
	for _, name := range names {
		for _, typ := range types {
			for what, samples := range values {
				f := Judge(Table{Name: "things",
					Columns: []Column{{Name: name, Type: ParseType(typ), Samples: samples}}},
					Lists{})[0]
				if f.Verdict == Keep {
					t.Errorf("%s %s with %s is kept: %s", name, typ, what, f.Reason)
				}
			}
		}
	}
}

// Codes, numbers and columns of lookup tables whose names indicate personal data are never kept,
// even if a shorter word of the name is technical.
func TestCodesAndNumbersAreNeverKept(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"things reset_code text", "things enrollment_code varchar(10)", "things code text",
		"things invite_code text", "things referral_code citext", "things phoneno bigint", "things birthmonth smallint",
		"things account_num bigint", "things exp_year integer", "things salary_amount numeric", "things editor text",
		"users badge_no integer", "users position text", "users class text", "users country_name text",
		"users gender boolean", "things religion_id integer", "things tanggal_lahir date", "things npi bigint",
		"things eye_color text", "things systolic integer", "categories name text",
		"roles holder text", "countries president text"} {
		p := strings.SplitN(text, " ", 3)
		table := Table{Name: p[0], Columns: []Column{{Name: p[1], Type: ParseType(p[2])}}}
		if f := Judge(table, Lists{})[0]; f.Verdict == Keep {
			t.Errorf("%s is kept: %s", text, f.Reason)
		}
	}
	for _, text := range []string{"roles name text", "countries code char(2)", "things country_code char(2)",
		"things error_code text", "things queue_name text", "users user_style_type text"} {
		p := strings.SplitN(text, " ", 3)
		table := Table{Name: p[0], Columns: []Column{{Name: p[1], Type: ParseType(p[2])}}}
		if f := Judge(table, Lists{})[0]; f.Verdict != Keep {
			t.Errorf("%s: %+v", text, f)
		}
	}
}

// In tables of people, numbers that are too large to count rows and dates that are old enough for
// births need a decision, whatever their names are.
func TestValuesOfPeople(t *testing.T) {
	t.Parallel()
	large := []string{"784198012345678", "784197512345671", "784199912345670", "784198512345672", "784198812345678",
		"784198012345679", "784197512345672", "784199912345673", "784198512345674", "784198812345675"}
	long := []string{"1961-02-03", "1985-07-30", "1999-12-31", "2002-01-01"}
	for _, c := range []Column{{Name: "omang_id", Type: ParseType("bigint"), Samples: large},
		{Name: "omang_id", Type: ParseType("text"), Samples: large},
		{Name: "geborte", Type: ParseType("date"), Samples: long}} {
		found := map[string]Finding{}
		for _, table := range []string{"customers", "things"} {
			found[table] = Judge(Table{Name: table, Columns: []Column{c}}, Lists{})[0]
		}
		if found["customers"].Verdict == Keep || c.Type.Class != Text && found["things"].Verdict != Keep {
			t.Errorf("%s %s: %+v", c.Name, c.Type.Name, found)
		}
	}
}

// An identifier in addition to the key, an account of another service, a place and a status of a
// person need a decision.
func TestDoubtfulNamesAreAsked(t *testing.T) {
	t.Parallel()
	table := Table{Name: "things"}
	for _, c := range [][2]string{{"guid", "uuid"}, {"uuid", "uuid"}, {"chat_id", "bigint"}, {"x", "double precision"},
		{"y", "integer"}, {"citizen", "boolean"}, {"telegram_user_id", "bigint"}} {
		table.Columns = append(table.Columns, Column{Name: c[0], Type: ParseType(c[1])})
	}
	for i, f := range Judge(table, Lists{}) {
		if f.Verdict != Undecided || f.Reason == "" {
			t.Errorf("%s: %+v", table.Columns[i].Name, f)
		}
	}
	for _, c := range []Column{{Name: "uuid", Type: ParseType("uuid"), Key: true},
		{Name: "x", Type: ParseType("real")}} {
		if f := Judge(Table{Name: "things", Columns: []Column{c}}, Lists{})[0]; f.Verdict != Keep {
			t.Errorf("%s alone: %+v", c.Name, f)
		}
	}
}

// Few values, or values that look like codes, are no evidence.
func TestCodesAreNoEvidence(t *testing.T) {
	t.Parallel()
	for _, samples := range [][]string{nil, {"A"}, {"AB-12", "CD-34", "EF-56"}, {"yes", "no"}} {
		f := Judge(Table{Name: "things",
			Columns: []Column{{Name: "mystery", Type: ParseType("text"), Samples: samples}}},
			Lists{})[0]
		if f.Verdict != Undecided || f.Reason == "" {
			t.Errorf("%q: %+v", samples, f)
		}
	}
}

// Names are recognized in more than ten languages.
func TestLanguages(t *testing.T) {
	t.Parallel()
	for names, want := range map[string]Kind{
		"phone telefon rufnummer telefono telefone celular cellulare gsm komorka cep_telefonu 电话": Phone,
		"birth_date geburtsdatum date_naissance fecha_nacimiento data_nasc data_di_nascita geboortedatum " +
			"dogum_tarihi": Birth,
		"first_name vorname prenom primer_nombre primeiro_nome voornaam imie fornamn":     FirstName,
		"last_name nachname nom_famille apellido sobrenome":                               LastName,
		"cognome achternaam nazwisko efternamn soyadi":                                    LastName,
		"street strasse Straße rue calle logradouro indirizzo straat ulica sokak":         Street,
		"city stadt ville ciudad cidade citta woonplaats miasto postort sehir":            City,
		"password passwort mot_de_passe contraseña senha wachtwoord hasło lösenord şifre": Password,
		"zip plz code_postal codigo_postal cep kod_pocztowy postnummer posta_kodu":        Postcode,
		"gender geschlecht sexe genero sesso geslacht plec cinsiyet":                      Gender,
		"salary gehalt salaire sueldo stipendio salaris pensja maas":                      Income,
		"email courriel correo e-post eposta poczta eMailAddress":                         Email,
		"ssn dni cpf codice_fiscale bsn pesel":                                            NationalNumber,
		"personnummer tckn insee ahv":                                                     NationalNumber,
	} {
		for name := range strings.FieldsSeq(names) {
			f := Judge(Table{Name: "things", Columns: []Column{{Name: name, Type: ParseType("text")}}}, Lists{})[0]
			if f.Verdict != Mask || f.Kind != want {
				t.Errorf("%s: %+v, want %s", name, f, want)
			}
		}
	}
}

// Columns about personal data that hold none are kept.
func TestKeepsWithEvidence(t *testing.T) {
	t.Parallel()
	for column, typ := range map[string]string{
		"id": "bigint", "customer_id": "integer", "email_count": "integer", "password_changed_at": "timestamp",
		"price":    "numeric",
		"is_admin": "boolean", "email_verified": "tinyint(1)", "created_at": "timestamp with time zone",
		"currency": "char(3)",
		"status":   "enum('a','b')", "mime": "text", "quantity": "int(11)",
	} {
		f := Judge(Table{Name: "orders", Columns: []Column{{Name: column, Type: ParseType(typ)}}}, Lists{})[0]
		if f.Verdict != Keep || f.Reason == "" {
			t.Errorf("%s %s: %+v", column, typ, f)
		}
	}
}

// Values show personal data that names do not reveal.
func TestValues(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]string{
		"maria@example.org;jan@example.org":                              "Mask " + string(Email),
		"+49 30 1234567;+33 1 23 45 67 89":                               "Mask " + string(Phone),
		"4111111111111111;5500005555555559;4012888888881881":             "Mask " + string(Card),
		"DE89370400440532013000;GB82WEST12345698765432":                  "Mask " + string(Account),
		"sk_live_4eC39HqLyjWDarjtT1zdp7dc;none;none2":                    "Mask " + string(Secret),
		"$2a$10$N9qo8uLOickgx2ZMRZoMye;$2a$10$N9qo8uLOickgx2ZMRZoMyf":    "Mask " + string(Password),
		"10.1.2.3;2001:db8::1":                                           "Mask " + string(IPAddress),
		"00:1b:44:11:3a:b7;00-1B-44-11-3A-B8":                            "Mask " + string(Hardware),
		"123-45-6789;078-05-1120":                                        "Mask " + string(NationalNumber),
		"529.982.247-25;111.444.777-35":                                  "Mask " + string(NationalNumber),
		"52.5200, 13.4050;48.8566, 2.3522":                               "Mask " + string(Coordinates),
		"Maria Meyer;Jan Kowalski;Sofia Rossi":                           "Mask " + string(Name),
		"She asked Maria Meyer to call back;nothing new in this one":     "Mask " + string(FreeText),
		"write to a@b.example about this;and nothing here":               "Mask " + string(FreeText),
		`{"a":{"email":"x"}};{"b":2}`:                                    "Mask " + string(Document),
		"this is a long text of several words;another text of six words": "Undecided ",
	} {
		column := Column{Name: "mystery", Type: ParseType("text"), Samples: strings.Split(values, ";")}
		f := Judge(Table{Name: "things", Columns: []Column{column}}, testLists)[0]
		if got := fmt.Sprint(map[Verdict]string{Mask: "Mask ", Keep: "Keep ", Undecided: "Undecided "}[f.Verdict],
			f.Kind); got != want {
			t.Errorf("%s: %s (%s), want %s", values, got, f.Reason, want)
		}
		for v := range strings.SplitSeq(values, ";") {
			if len(v) > 3 && strings.Contains(f.Reason, v) {
				t.Errorf("the reason has a value: %s", f.Reason)
			}
		}
	}
	numbers := Column{Name: "x", Type: ParseType("bigint"), Samples: []string{"4111111111111111", "5500005555555559",
		"4012888888881881"}}
	if f := Judge(Table{Name: "things", Columns: []Column{numbers}}, Lists{})[0]; f.Verdict == Keep {
		t.Errorf("numbers of cards are kept: %s", f.Reason)
	}
}

// Coordinates are recognized as a pair of numbers, and as points in WKT and EWKT.
func TestCoordinates(t *testing.T) {
	t.Parallel()
	for v, want := range map[string]bool{
		"52.5200, 13.4050": true, "(52.5200;13.4050)": true, "POINT(13.4 52.5)": true, "Point (13.4 52.5)": true,
		"POINT Z (13.4 52.5 34)": true, "POINT ZM(13.4 52.5 34 1)": true, "POINTM(13.4 52.5 1)": true,
		"SRID=4326;POINT(13.4 52.5)": true, "srid = 4326; point z (13.4 52.5 34)": true,
		"MULTIPOINT ((13.4 52.5), (2.35 48.85))": true, "SRID=4326;MULTIPOINT(13.4 52.5)": true,
		"200.5200, 13.4050": false, "1.50, 2.50": false, "POINT EMPTY": false, "pointless (really)": false,
		"SRID=4326": false, "see POINT(13.4 52.5)": false,
	} {
		if got := isCoordinates(v); got != want {
			t.Errorf("isCoordinates(%q) = %v", v, got)
		}
	}
}

// The comment of a column and the keys of its documents count like names. Paths
// of documents are shown, and keys that can be data are not.
func TestCommentsAndDocuments(t *testing.T) {
	t.Parallel()
	judge := func(c Column) Finding { return Judge(Table{Name: "things", Columns: []Column{c}}, testLists)[0] }
	if f := judge(Column{Name: "c1", Type: ParseType("numeric"),
		Comment: "the customer's social security number"}); f.Verdict ==
		Keep {
		t.Errorf("a comment: %+v", f)
	}
	if f := judge(Column{Name: "c2", Type: ParseType("jsonb"),
		Samples: []string{`{"owner":{"phone":"1"}}`}}); f.Verdict !=
		Mask || !strings.Contains(f.Reason, "$.owner.phone") {
		t.Errorf("a path: %+v", f)
	}
	for range 20 {
		if f := judge(Column{Name: "c2", Type: ParseType("jsonb"),
			Samples: []string{`{"phone":"1","email":"x","iban":"2","city":"y"}`}}); !strings.HasSuffix(f.Reason,
			"at $.city") {
			t.Fatalf("the reason depends on the order of a map: %+v", f)
		}
	}
	if f := judge(Column{Name: "c2", Type: ParseType("jsonb"),
		Samples: []string{`{"Maria 7":{"phone":"1"}}`}}); f.Verdict !=
		Mask || strings.Contains(f.Reason, "Maria") {
		t.Errorf("a key that is data: %+v", f)
	}
	var few, many []string
	for i := range 40 {
		many = append(many, fmt.Sprintf(`{"n":%d}`, i))
	}
	few = many[:5]
	if a, b := judge(Column{Name: "c3", Type: ParseType("json"), Samples: few}), judge(Column{Name: "c3",
		Type: ParseType("json"), Samples: many}); a.Verdict != Undecided || b.Verdict != Keep {
		t.Errorf("few documents: %+v, many: %+v", a, b)
	}
	for form, want := range map[string]Verdict{`{"maria%d@real.example":3}`: Mask,
		`{"maria%d@real.example":true}`: Mask, `{"item %d":3}`: Undecided} {
		var all []string
		for i := range 40 {
			all = append(all, fmt.Sprintf(form, i))
		}
		if f := judge(Column{Name: "c4", Type: ParseType("jsonb"), Samples: all}); f.Verdict != want {
			t.Errorf("%s: %+v", form, f)
		}
	}
}

func TestParseType(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"character varying(40)": "text 40", "int(11) unsigned": "integer 11", "numeric(10,2)": "decimal 0",
		"timestamp(6) without time zone": "timestamp 0", "contact_hint": "type of its own 0", "point": "point 0",
		"text[]": "text 0", "tinyint(1)": "boolean 1", "char(3)": "text 3", "enum('a','b')": "enum 0", "": "text 0",
		"DOUBLE PRECISION": "float 0", "varchar": "text 0", "geometry(Point,4326)": "geometry 0",
		"print": "type of its own 0",
	} {
		p := ParseType(text)
		if got := fmt.Sprintf("%s %d", p.Class, p.Length); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// Every judgment has a reason, whatever the name, the type and the values.
func TestEveryJudgementHasAReason(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := Column{
			Name: rapid.StringMatching(`[a-zA-Z_0-9ÄÖé]{0,20}`).Draw(t, "name"),
			Type: ParseType(rapid.SampledFrom([]string{"text", "bigint", "jsonb", "uuid", "a(b", "int[]"}).Draw(t,
				"type")),
			Samples: rapid.SliceOfN(rapid.String(), 0, 30).Draw(t, "samples"),
		}
		f := Judge(Table{Name: rapid.SampledFrom([]string{"", "users", "things"}).Draw(t, "table"),
			Columns: []Column{c}},
			testLists)[0]
		if f.Reason == "" || f.Verdict == Mask && f.Kind == "" {
			t.Fatalf("%+v of %+v", f, c)
		}
	})
}
