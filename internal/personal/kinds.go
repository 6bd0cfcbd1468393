package personal

import "slices"

// Kind is a kind of personal data, worded for use in a sentence: "a password".
type Kind string

// The kinds.
const (
	Password       Kind = "a password or its hash"
	Secret         Kind = "a secret key or token"
	Session        Kind = "a session"
	OneTimeCode    Kind = "a one-time code"
	Email          Kind = "an e-mail address"
	Phone          Kind = "a telephone number"
	IPAddress      Kind = "an IP address"
	Hardware       Kind = "a device or its address"
	UserAgent      Kind = "a browser or visit"
	NationalNumber Kind = "a national number"
	TaxNumber      Kind = "a tax number"
	Passport       Kind = "a passport or identity card"
	License        Kind = "a driver's license"
	Card           Kind = "a payment card"
	Account        Kind = "a bank account"
	Wallet         Kind = "a crypto wallet"
	Vehicle        Kind = "a vehicle's number"
	Birth          Kind = "a date or place of birth"
	Age            Kind = "an age"
	FirstName      Kind = "a first name"
	LastName       Kind = "a last name"
	Name           Kind = "a person's name"
	UserName       Kind = "a user name"
	Person         Kind = "a person"
	Street         Kind = "a postal address"
	Postcode       Kind = "a postal code"
	City           Kind = "a city"
	Region         Kind = "a region"
	Country        Kind = "a country"
	Coordinates    Kind = "coordinates"
	Gender         Kind = "a gender"
	Health         Kind = "health"
	Belief         Kind = "religion, origin or orientation"
	Family         Kind = "a family"
	Biometric      Kind = "a biometric feature"
	Picture        Kind = "a picture of a person"
	Signature      Kind = "a signature"
	Income         Kind = "a person's income"
	Company        Kind = "a company"
	Job            Kind = "a job"
	Profile        Kind = "a profile elsewhere"
	External       Kind = "an account at another service"
	MemberNumber   Kind = "the number of a person"
	FileName       Kind = "a file or its name"
	FreeText       Kind = "free text"
	Document       Kind = "a document"
)

func (k Kind) isFreeText() bool { return k == FreeText || k == Document }

// kindPhrases holds the phrases that name a kind. Weak phrases for parts of an address count only
// in tables with an address, and other weak phrases only in tables of people.
type kindPhrases struct {
	kind   Kind
	strong phrases
	weak   phrases
}

// kinds is in matching order: the more sensitive kinds first, and "ip address" before "address".
//
// The phrases are in English, German, French, Spanish, Portuguese, Italian, Dutch, Polish, Swedish
// and Turkish; some are in Chinese, Japanese or Russian.
var kinds = []kindPhrases{
	{Password, listOf(`password, passwd, pwd, passphrase, pass hash, pass crypt, pass salt, passcode, encrypted pw, pw,
		pass, salt, kennwort, passwort, mot de passe, mdp, motdepasse, contrasena, clave acceso, senha,
		parola chiave, wachtwoord, haslo, losenord, sifre, parola, crypted, 密码, 密碼, パスワード, пароль`), listOf("hash")},
	{OneTimeCode, listOf(`otp, totp, tfa secret, two factor, mfa, backup codes, recovery code, recovery codes,
		verification code, confirmation code, activation code, authorization code, auth code, one time, pin, pin code,
		security answer, secret answer, security question, reset code, sms code, login code, access code, pairing code,
		enrollment code, enrolment code, device code, recovery key`), listOf("")},
	{Card, listOf(`credit card, card number, card no, card num, cardnumber, creditcard, cc number, ccnum, cvv, cvc,
		cvn, card code, card security, card expiry, card holder, cardholder, last four, last four digits, pan,
		kreditkarte, carte bancaire, carte de credit, tarjeta, cartao, carta di credito, creditcardnummer,
		karta kredytowa, kontokort, kredi karti, card last, card fingerprint, ccn, exp month, exp year, expiry month,
		expiry year, expiration month, expiration year`), listOf("card")},
	{Account, listOf(`iban, bic, swift, bank account, account number, account no, account nr, acct no, acct number,
		routing number, routing num, routing, sort code, bank code, bank name, bank, bankleitzahl, blz,
		kontonummer, konto nr, kontoinhaber, rib, compte bancaire, cuenta bancaria, clabe, conta bancaria,
		conta corrente, rekeningnummer, numer konta, rachunek bankowy, bankkonto, hesap no, iban no, depositor,
		dd account, account bidx, clearing number, giro, acc no, acc number, account num, acct num, bsb, ifsc`),
		listOf("account")},
	{Wallet, listOf(`wallet address, wallet, bitcoin address, btc address, eth address, crypto address, mnemonic,
		seed phrase`), listOf("")},
	{Secret, listOf(`token, tokens, secret, secrets, api key, apikey, access key, auth key, private key, secret key,
		license key, consumer key, merchant key, encryption key, signing key, ssh key, pgp key, gpg id, gpgid, gpg key,
		public key, client secret, credential, credentials, auth data, nonce, ciphertext, encrypted, shared secret,
		webhook key, refresh token, access token, bearer, jwt, cookie, signature key, endpoint, cert, certificate,
		bidx, dh key, otp secret, sas url, connection string, dsn, schlussel geheim, jeton, cle api, cle secrete,
		clave api, clave secreta, chave api, chave secreta, chiave segreta, geheim, sleutel, klucz api, hemlig,
		gizli anahtar, 令牌, 密钥, トークン, calendar uid, pw reset, activation, invite code, unlock, private, raw file,
		csv str, payment url, subject uid, auth uid, open id sub, auth subject`),
		listOf("key, uid, auth, challenge, identity url, sequence")},
	{Session, listOf(`session id, session data, sessions, sess id, sessid, session, sess, sid, sitzung, sesion, sessao,
		sessione, sessie, sesja, oturum`), listOf("vars")},
	{Email, listOf(`email, e mail, emails, mail, mail address, mailbox, correo, courriel, adresse mail, courrier, epost,
		e post, eposta, posta elettronica, poczta, mejl, cc, bcc, sent address, reply to, 邮箱, 電子郵件, メール, почта`),
		listOf("")},
	{IPAddress, listOf(`ip, ip address, ip addr, ipaddr, ip4, ipv4, ipv6, remote addr, remote host, client ip, user ip,
		creation address, ip num, adresse ip, direccion ip, endereco ip, indirizzo ip, ip adresse, ip adres, adres ip,
		hostname, remote ip`), listOf("host, anonymous")},
	{Hardware, listOf(`mac, mac address, macaddr, imei, imsi, iccid, udid, device id, device token, device identifier,
		device name, device fingerprint, browser fingerprint, advertising id, idfa, gaid, serial number device,
		hardware id, machine id, fingerprint`), listOf("device, nickname")},
	{UserAgent, listOf(`user agent, useragent, browser agent, referer, referrer, visitor, agent string, visit url`),
		listOf("agent")},
	{Phone, listOf(`phone, telephone, tel, fax, mobile, cell, cellphone, phone number, msisdn, mobil, handy,
		telefon, rufnummer, telefonnummer, telefono, movil, celular, telefone, telemovel, cellulare, portable,
		gsm, telefoon, mobiel, komorka, numer telefonu, mobilnummer, cep telefonu, telefaks, whatsapp, sms,
		satphone, satfax, emergency, extension number, tel no, home no, office no, mobile no, dialed, caller,
		callee, phone no, contact no, mob no, telnr, telefonnr, landline, pager, tlf, puhelin, e164, 电话, 手机,
		手机号, 電話, 電話番号, телефон`),
		listOf("extension, ext, contact number")},
	{NationalNumber, listOf(`ssn, sin, social security, social insurance, national id, nationalid, national number,
		national insurance, nino, ni number, national identity, personal number, personal id, person number, id number,
		identity number, identification number, sozialversicherungsnummer, svnr, sv nummer, versicherungsnummer, ahv,
		personalausweis, insee, nir, numero securite sociale, securite sociale, dni, nie, curp, cpf, rg, cnpj, nis,
		codice fiscale, bsn, burgerservicenummer, pesel, personnummer, tc kimlik, tckn, kimlik no, aadhaar, aadhar,
		pan number, medicare, nhs number, nhs no, numero identite, cedula, rut, identificacion, documento identidad,
		sofi, dowod, 身份证, マイナンバー, снилс, govt id, government id, legal id, ssn4, nric, hkid, mykad, ic number, ic no,
		npwp, nik, ktp, bvn, emirates id, iqama, oib, jmbg, egn, cnp, rodne cislo, birth number, hetu, personnr, fnr,
		fodselsnummer, cpr, kennitala, isikukood, pps number, ppsn, tfn, ird number, voter id, citizen id, citizen no,
		citizen number, civil id, resident id, resident number, national no, ni no, ruc, cccd, cmnd, 身份证号`),
		listOf("identification, document number, nif")},
	{TaxNumber, listOf(`tax id, taxid, tax number, taxnumber, tax no, tin, ein, vat, vat id, vat number, vatin,
		ustid, ust id, steuernummer, steuer id, steuernr, numero fiscal, numero tva, siret, siren, rfc, cuit,
		cuil, nif, partita iva, piva, btw nummer, nip, momsnummer, vergi no, vergi numarasi, gst number, gstin,
		ein number, utr, inn, abn`),
		listOf("")},
	{Passport, listOf(`passport, reisepass, passeport, pasaporte, passaporte, passaporto, paspoort, paszport, pass nr,
		pasaport, identity card, id card, ausweis, ausweisnummer, carte identite, carta identita, residence permit,
		visa number, permit number, 护照, パスポート, паспорт`), listOf("")},
	{License, listOf(`driver license, drivers license, driving license, driver licence, driving licence, license number,
		licence number, licence no, license no, dl number, fuhrerschein, permis de conduire, licencia de conducir,
		carnet de conducir, carteira de motorista, cnh, patente di guida, patente, rijbewijs, prawo jazdy, korkort,
		ehliyet`), listOf("license, licence")},
	{Vehicle,
		listOf(`license plate, licence plate, number plate, plate number, vin, vehicle identification, kennzeichen,
		plaque, immatriculation, matricula, placa, targa, kenteken, tablica rejestracyjna, regnummer, plaka`),
		listOf("")},
	{Birth, listOf(`birth, birthday, birthdate, birth date, date of birth, dob, born, bday, birthplace, geburt,
		geburtsdatum, geburtstag, geb datum, geboren, naissance, ddn, date naissance, nacimiento, nacido, nascimento,
		data nasc, nascita, data di nascita, geboortedatum, geboorte, urodzenia, data urodzenia, fodelse, fodelsedatum,
		fodd, dogum, dogum tarihi, deceased, date of death, death, maiden, yob, tanggal lahir, tgl lahir, ngay
		sinh, data rozhdeniya, datum narozeni, datum rodenja, fodt, syntymaaika, 生日, 出生, 誕生, рождения`), listOf("bd")},
	{Age, listOf("age, alter, edad, idade, leeftijd, wiek, alder, yas, age years"), listOf("")},
	{FirstName,
		listOf(`first name, firstname, fname, given name, givenname, forename, given names, middle name, middlename,
		middle initial, vorname, prenom, nombre pila, primer nombre, primeiro nome, nome proprio, voornaam, imie,
		fornamn, ad soyad, isim, christian name, first nm, 名字, имя`), listOf("first, middle, initials, nombre")},
	{LastName,
		listOf(`last name, lastname, lname, surname, family name, familyname, nachname, familienname, nom famille,
		nom de famille, apellido, apellidos, sobrenome, ultimo nome, cognome, achternaam, nazwisko, efternamn, soyad,
		soyadi, maiden name, birth name, geburtsname, last nm, 姓, фамилия`), listOf("last, nom, nume")},
	{UserName, listOf(`username, user name, login, login name, loginname, logon, userid name, screen name, screenname,
		nickname, nick, handle name, benutzername, benutzer name, anmeldename, identifiant, pseudo, nom utilisateur,
		nombre usuario, nome usuario, nome utente, gebruikersnaam, nazwa uzytkownika, anvandarnamn, kullanici adi,
		ldap, unix user, account name, 用户名, ユーザー名, логин, mb id`), listOf("handle, slug, uid, alias, login id")},
	{Name, listOf(`full name, fullname, contact name, customer name, user name, employee name, person name,
		display name, displayname, member name, client name, patient name, guest name, owner name, holder name,
		account holder, recipient name, sender name, author name, billing name, shipping name, ship name,
		bill name, student name, teacher name, doctor name, driver name, passenger name, legal name, real name,
		realname, name on card, contact person, care of, emergency contact, spouse name, father name,
		mother name, nominee, beneficiary, vollstandiger name, ansprechpartner, name kunde, kundenname,
		nom complet, nom prenom, nombre completo, nome completo, nominativo, volledige naam, imie nazwisko,
		namn, adi soyadi, staff name, agent name, email name, composer, artist name, salutation, anrede,
		greeting, honorific, title of courtesy, courtesy, signatory, voter name, buyer name, seller name, payee,
		payer name, subscriber name, cardholder name, company or personal`),
		listOf("name, names, naam, nome, nazwa, isim, contact, ad, nm")},
	{Job, listOf(`job title, jobtitle, occupation, profession, beruf, metier, ocupacion, profesion, profissao,
		professione, beroep, zawod, yrke, meslek, prof, position title, employer, arbeitgeber, employeur, empleador`),
		listOf("title, titel, titre")},
	{Street, listOf(`address, addr, address line, street, streetaddress, street address, house number, house no,
		building number, building name, apartment, flat number, po box, adresse, anschrift, strasse, str,
		hausnummer, hausnr, rue, numero rue, direccion, calle, domicilio, endereco, logradouro, rua, bairro,
		indirizzo, via, straat, adres, huisnummer, ulica, nr domu, adress, gata, sokak, mahalle,
		location address, address1, address2, residence, wohnort, 地址, 住所, адрес, apt, uprn, lives at,
		home location, billing address`),
		listOf("line, suite, neighborhood, district, building")},
	{Postcode, listOf(`postcode, post code, postal code, postalcode, zip, zipcode, zip code, plz, postleitzahl,
		code postal, cp, codigo postal, cep, cap, postnummer, postcode nr, kod pocztowy, posta kodu, 邮编, 郵便番号,
		индекс почтовый`), listOf("postal")},
	{City, listOf(`city, town, ort, stadt, wohnort, ville, commune, ciudad, localidad, municipio, cidade, citta, comune,
		stad, woonplaats, miasto, miejscowosc, postort, sehir, ilce, suburb, locality, hometown, 城市, 市区町村, город`),
		listOf("place")},
	{Region, listOf(`county, province, provincia, bundesland, departement, estado provincia, wojewodztwo`),
		listOf("region, state, estado, area, location")},
	{Coordinates, listOf(`latitude, longitude, lat, lng, lon, coordinates, coordinate, geo location,
		geolocation, gps, geo point, geopoint, lonlat, latlng, latlon, breitengrad, langengrad, home tile,
		geo lat, geo lng, lati, longi, plus code, geohash, geo hash, what3words, x coord, y coord, coord x,
		coord y, easting, northing`), listOf("location, position, geom, point")},
	{Gender, listOf(`gender, sex, geschlecht, sexe, sexo, genero, sesso, geslacht, plec, kon, cinsiyet,
		pronouns, pronoun, 性别, 性別, пол`), listOf("male, female")},
	{Health, listOf(`diagnosis, diagnoses, medical, medication, disease, illness, allergy, allergies, disability, blood
		type, blood group, hiv, pregnant, pregnancy, patient history, symptom, symptoms, treatment, prescription,
		vaccination, vaccine, mental health, therapy, krankheit, krankenkasse, blutgruppe, behinderung, maladie,
		handicap, enfermedad, alergia, doenca, malattia, ziekte, choroba, sjukdom, hastalik, health, insurance policy,
		bmi, icd, heart rate, blood pressure, blood sugar, systolic, diastolic, glucose, cholesterol, smoker, smoking,
		immunization, immunisation, dietary, special needs, menstrual`),
		listOf("weight, height, mood, pulse, alcohol, drugs, diet, vegan, vegetarian")},
	{Belief, listOf(`religion, religious, konfession, denomination, ethnicity, ethnic, race, nationality, citizenship,
		staatsangehorigkeit, nationalite, nacionalidad, nacionalidade, nazionalita, nationaliteit, narodowosc,
		nationalitet, uyruk, sexual orientation, orientation sexual, political, party membership, union member,
		trade union, religione, criminal, conviction, caste, tribe, citizen, foreigner, refugee, immigrant, asylum,
		veteran, arrest, hispanic, lgbt, transgender`), listOf("")},
	{Family, listOf(`marital status, marital, civil status, familienstand, etat civil, estado civil, stato civile,
		burgerlijke staat, stan cywilny, civilstand, medeni hal, spouse, next of kin, relationship, children, kids,
		number of children, dependents, maiden, married`), listOf("")},
	{Biometric, listOf(`biometric, iris, retina, face encoding, face embedding, voice print, voiceprint,
		fingerprint data, facial, dna, eye color, eye colour, hair color, hair colour, skin color, skin colour,
		skin tone, complexion`), listOf("embedding")},
	{Picture, listOf(`avatar, photo, photo url, picture, profile image, profile picture, portrait, selfie, headshot,
		gravatar, foto, bild, photographie, imagen perfil, zdjecie`), listOf("image, thumbnail, logo url, logo")},
	{Signature, listOf("signature, unterschrift, firma digital, assinatura, handtekening, podpis, imza"), listOf("")},
	{Income, listOf(`salary, salaries, income, wage, wages, pay rate, payrate, gehalt, lohn, einkommen, salaire,
		revenu annuel, salario, sueldo, ingresos, renda, stipendio, reddito, salaris, loon, pensja,
		wynagrodzenie, lon, inkomst, maas, gelir, net pay, gross pay, base pay, hourly rate, net worth,
		credit score, credit limit, creditlimit, debt, bonus, commission amount, compensation, dd amount,
		kredit limit, final rate`), listOf("balance, earnings, payout")},
	{Company, listOf(`company, company name, organisation name, organization name, employer name, firma, firmenname,
		societe, raison sociale, empresa, azienda, ragione sociale, bedrijf, bedrijfsnaam, foretag, sirket, unternehmen,
		other organisation, institution`), listOf("organisation, organization, business name, affiliation, school")},
	{Profile, listOf(`telegram id, telegram user id, discord id, discord user id, slack id, slack user id,
		whatsapp id, twitter id, twitter user id, twitter, facebook, instagram, linkedin, github url,
		github profile, github id, github username, youtube, tiktok, snapchat, telegram, skype, icq, jabber,
		xmpp, aim, msn, mastodon, signal number, discord, wechat, line id, orcid, profile url, social profile,
		xing, homepage, steam id, steamid, twitch id, spotify id, strava id, vk id, kakao id, naver id,
		weixin id, openid, unionid, fb id, fbid, ig id, insta, gamertag, psn id, xbox id, reddit id, bluesky,
		viber, line user id, gitlab id, bitbucket id`), listOf("website, web site, url, urls, blog")},
	{External, listOf(`external id, external identifier, stripe id, customer ref, paypal id, payer id,
		merchant id, facebook id, google id, apple id, oauth uid, provider user, provider session,
		credential id, customer reference, confirmation number, chat id, google user id, microsoft id, azure id,
		okta id, auth0 id, sso id, cognito id, firebase uid, firebase id, patreon id, crm id, venmo, upi id, pix key`),
		listOf("identifier, remote id, stripe customer, increase, column")},
	{MemberNumber,
		listOf(`employee number, employee no, emp no, staff number, student number, student no, member number,
		member no, membership number, matriculation, matrikelnummer, mitgliedsnummer, kundennummer, customer number,
		customer no, customernumber, patient number, patient no, mrn, medical record, policy number, client number,
		personalnummer, numero client, numero adherent, numero cliente, numero empleado, num adh, numer klienta,
		kundnummer, medlemsnummer, musteri no, member id, patient id, student id, library card, loyalty number,
		frequent flyer, badge, payroll number, payroll no, npi`), listOf("")},
	{Person, listOf(`sender, recipient, recipients, author, creator, created by, updated by, modified by,
		changed by, checked by, approved by, owner, assignee, reviewer, buyer, seller, teacher, student,
		patient, customer, client, employee, manager, driver, passenger, ersteller, bearbeiter, besitzer,
		auteur, autor, creador, autore, admin, signer, witness, referrer, other user, member, person, user,
		tenant, gardener, deleted by, sent by, entered by, user id, person id, editor, uploader, moderator,
		approver, requester, requestor, submitter, organizer, organiser, invitee, inviter, voter, contributor,
		maintainer, supervisor, guardian, lawyer, attorney, victim, suspect, defendant, plaintiff, physician,
		nurse, therapist, doctor, coach, mentor, instructor, lecturer, subscriber, attendee, participant`), listOf("")},
	{FileName, listOf(`file name, filename, attachment name, original filename, file content, attachment, dateiname,
		nom fichier, nombre archivo, nome arquivo, nome file, bestandsnaam, nazwa pliku, filnamn, dosya adi, resume, cv,
		lebenslauf`), listOf("file")},
	{FreeText,
		listOf(`comment, comments, note, notes, message, messages, remark, remarks, memo, bio, biography, about,
			about me, bemerkung, bemerkungen, notiz, notizen, kommentar, nachricht, anmerkung, commentaire,
			remarque, observation, observaciones, nota, notas, mensaje, comentario, comentarios, observacoes,
			mensagem, commento, messaggio, opmerking, bericht, uwagi, komentarz, wiadomosc, anteckning,
			meddelande, yorum, mesaj, aciklama, reason, feedback, transcript, chat, testimonial, complaint,
			review text, motivation, search terms, search query, query text, rich text, response, request body,
			response body, text runs, usr text, trans desc, reply, answer, question, inquiry, motif, motivo,
			grund, information about, raw file, private notes, internal notes, strategies tried,
			resolution details, inhalt, letter, statement, speech, utterance`),
		listOf("description, text, body, content, info, details, summary, extra, headline, desc, long, short, " +
			"terms, value, v")},
	{Document, listOf(`personal data, user data, raw data, event data, payload, account info, info data, session data,
		api response, raw response, true layer, provider response, form data, answers, custom fields, custom attributes,
		messages json, op input, op output, user info, userinfo, event content, log`),
		listOf("data, metadata, settings, preferences, attributes, properties, profile, fields, meta, extra, json, " +
			"raw")},
}

// peopleTables are words in the names of tables of people.
var peopleTables = listOf(`user, users, person, persons, people, member, members, customer, customers, client,
	clients, contact, contacts, patient, patients, employee, employees, staff, student, students, teacher,
	teachers, author, authors, owner, owners, agent, agents, guest, guests, visitor, visitors, subscriber,
	subscribers, recipient, recipients, volunteer, volunteers, donor, donors, candidate, candidates, applicant,
	applicants, participant, participants, attendee, attendees, signature, signatures, profile, profiles, admin,
	admins, driver, drivers, vet, vets, doctor, doctors, tenant, tenants, passenger, lead, leads, supporter,
	voter, buyer, seller, vendor contact, address, addresses, spouse, relative, relatives, family member,
	families, beneficiary, personne, personnes, adherent, adherents, utilisateur, utilisateurs, usager, usagers,
	salarie, salaries, eleve, eleves, benutzer, kunde, kunden, mitarbeiter, mitglied, mitglieder,
	ansprechpartner, schuler, patienten, personen, usuario, usuarios, cliente, clientes, persona, personas,
	empleado, empleados, alumno, alumnos, paciente, pessoa, pessoas, aluno, alunos, funcionario, funcionarios,
	utente, utenti, persone, dipendente, dipendenti, clienti, anagrafica, gebruiker, gebruikers, klant, klanten,
	medewerker, persoon, leden, uzytkownik, uzytkownicy, klient, klienci, pracownik, pracownicy, osoba, osoby,
	anvandare, kund, kunder, personer, medlem, medlemmar, kullanici, kullanicilar, musteri, musteriler, kisi,
	kisiler, calisan, twitter users, account holder, account holders, artist, artists, emp, identity,
	identities, social account, social accounts, moods, medical, patient record, dossier, dossiers, session,
	sessions, remember me, login, logins, credential, credentials, visit, signup, signups, contactgroups,
	moments, 用户, 用戶, 客户, ユーザー, пользователи, клиенты`)

// things are words that show that a name refers to a thing rather than a person: "group name",
// "user types".
var things = listOf(`group, groups, country, event, role, roles, type, types, category, categories, product,
	item, items, table, column, tag, tags, status, statuses, setting, template, templates, permission,
	permissions, plan, language, field, kind, kinds, variable, parameter, class, module, option, gruppe,
	gruppen, groupe, groupes, grupo, grupos, rolle, rollen, typ, tipo, tipos, kategorie, categorie, categoria`)

// payTables are words in the names of tables about pay.
var payTables = listOf("salary, salaries, payroll, pay history, wage, wages, gehalt, lohn, salaire, salario, " +
	"compensation")

// strongKind returns the first kind with a strong phrase that occurs in the words, and the position
// at which the phrase ends.
func strongKind(words []string) (Kind, int) {
	for _, k := range kinds {
		if at := k.strong.in(words); at > 0 {
			return k.kind, at
		}
	}
	return "", 0
}

// kindOf returns the first kind with a phrase that occurs in the words, and the position at which
// the phrase ends.
func (j judge) kindOf(words []string) (Kind, int) {
	if kind, at := strongKind(words); kind != "" {
		return kind, at
	}
	if !j.people && !j.hasAddress {
		return "", 0
	}
	for _, k := range kinds {
		ofPlace := slices.Contains([]Kind{Region, City, Postcode, Street}, k.kind)
		if ofPlace && !j.hasAddress || !ofPlace && !j.people {
			continue
		}
		if at := k.weak.in(words); at > 0 && !(k.kind == Name && anyOf(words, things)) {
			return k.kind, at
		}
	}
	return "", 0
}

// holds reports whether a column of this type can hold a value of the kind, so that proposing a
// mask is right. If it cannot, the name may mean something else and a person must decide.
func holds(k Kind, t Type) bool {
	switch t.Class {
	case Text, JSON, Hstore, XML, Binary, Search, Composite, IP, MAC:
		return true
	case Other, Geometry, Point:
		return k == Coordinates || k == Street || k == Region
	case Integer, Decimal, Float, Bits:
		return slices.Contains(numeric, k)
	case Money:
		return k == Income
	case Date, Timestamp, Year:
		return k == Birth
	case UUID:
		return slices.Contains([]Kind{Secret, Session, Hardware, External, Password, MemberNumber, NationalNumber}, k)
	}
	return false
}

// numeric are the kinds whose values can be numbers.
var numeric = []Kind{
	Password, OneTimeCode, Secret, Card, Account, IPAddress, Hardware, Phone, NationalNumber, TaxNumber, Passport,
	License, Birth, Age, Postcode, Coordinates, Income, MemberNumber, External,
}
