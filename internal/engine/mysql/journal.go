package mysql

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"snap"
)

// journal contains the information to complete a swap, or to revert it, if the load is killed.
// It is stored in a table in its own database. The swap's RENAME TABLE statement also renames this
// table from "before" to "after", so the table's name shows whether the swap has happened.
//
// A journal holds statements, and other accounts of the server may be able to write to its
// database. The journal is therefore sealed with a view that contains its digest, because the
// server guarantees who owns a view. A load uses only journals that its own account sealed. The
// seal is created last, so it also shows that the journal is complete.
type journal struct {
	Place    string       `json:"place"`
	Triggers []definition `json:"triggers"`       // of the old tables, with their owners
	New      structure    `json:"new"`            // without tables and sequences
	Account  account      `json:"account"`        // the owner of the new programs, or none
	Keep     bool         `json:"keep,omitempty"` // keep old programs, except those with the name of a new one
}

// The names of a journal's seal. The seal of a journal that was set aside has the name asideName.
const (
	sealName  = "whole"
	asideName = "aside"
)

// digest returns the digest that seals the journal of the load with this id. text is the journal's
// JSON.
func digest(id string, text []byte) string {
	return fmt.Sprintf("%x", sha256.Sum256(append([]byte(id+"\n"), text...)))
}

// digestText matches the digest in the definition of a seal.
var digestText = regexp.MustCompile(`'([0-9a-f]{64})'`)

// write creates the journal's database, and in it the sealed journal.
func (j journal) write(ctx context.Context, c *sql.Conn, id string) error {
	text, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	at := quote(journalPrefix + id)
	for _, statement := range []string{"CREATE DATABASE " + at,
		"CREATE TABLE " + at + ".`before` (part INT PRIMARY KEY, text MEDIUMBLOB NOT NULL) ENGINE=InnoDB"} {
		if _, err := c.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	part := 0
	for piece := range slices.Chunk(text, 1<<19) { // every server accepts that size
		if _, err := c.ExecContext(ctx, "INSERT INTO "+at+".`before` VALUES (?, ?)", part, piece); err != nil {
			return err
		}
		part++
	}
	if err := j.checkOwners(ctx, c, at+".`before`"); err != nil {
		return err
	}
	_, err = c.ExecContext(ctx, "CREATE VIEW "+at+"."+sealName+" AS SELECT '"+digest(id, text)+"' AS digest")
	return err
}

// readJournal returns the journal of the load with this id, and whether the tables were exchanged.
// If another account wrote or changed the journal, isSkipped reports true for the error.
func readJournal(ctx context.Context, server querier, id string) (j journal, swapped bool, err error) {
	seal, err := readSeal(ctx, server, id)
	if err != nil {
		return j, false, err
	}
	text, swapped, err := journalText(ctx, server, id)
	if err != nil {
		return j, false, err
	}
	if seal != digest(id, text) {
		return j, false, errNotOwnJournal(id)
	}
	j, err = parseJournal(text)
	return j, swapped, err
}

// readSeal returns the digest in the seal of a load's journal, if this account created the seal.
func readSeal(ctx context.Context, server querier, id string) (string, error) {
	var owner, account, text string
	err := server.QueryRowContext(ctx, "SELECT definer, current_user(), view_definition FROM information_schema.views "+
		"WHERE table_schema = ? AND table_name IN (?, ?)", journalPrefix+id, sealName, asideName).Scan(&owner, &account,
		&text)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", err
	}
	m := digestText.FindStringSubmatch(text)
	if m == nil || owner != account {
		return "", errNotOwnJournal(id)
	}
	return m[1], nil
}

func parseJournal(text []byte) (j journal, err error) {
	if err := json.Unmarshal(text, &j); err != nil {
		return j, fmt.Errorf("read the journal of a load: %w", err)
	}
	return j, nil
}

// journalText returns the JSON of a load's journal, regardless of its author, and whether the
// tables were exchanged.
func journalText(ctx context.Context, server querier, id string) (text []byte, swapped bool, err error) {
	sides, err := queryStrings(ctx, server, "SELECT table_name FROM information_schema.tables WHERE table_schema = ? "+
		"AND table_name IN ('before', 'after')", journalPrefix+id)
	if err == nil && len(sides) != 1 {
		err = errors.New("the journal of an interrupted load is missing its table")
	}
	if err != nil {
		return nil, false, err
	}
	parts, err := queryStrings(ctx, server, "SELECT text FROM "+quote(journalPrefix+id)+"."+quote(sides[0])+
		" ORDER BY part")
	return []byte(strings.Join(parts, "")), sides[0] == "after", err
}

func errNotOwnJournal(id string) error {
	return skippedError{cause: &snap.Error{
		Code: snap.CodeForbidden,
		Detail: fmt.Sprintf("the journal %s of an interrupted load was not used, because another user of the server "+
			"wrote or changed it", journalPrefix+id),
		Hint: "that user's next load finishes it; to remove it instead, run `snapcli doctor --fix`",
	}}
}

// dropJournal removes the replaced database and the journal of a swap. sealed means that the journal
// has a seal.
func dropJournal(ctx context.Context, server *sql.DB, id string, sealed bool) error {
	// The seal is dropped first, because a server may drop a database table by table, and a sealed
	// journal without one of its tables would be misread. The journal's database is dropped last,
	// because the cleanup can be repeated as long as it exists.
	statements := []string{"DROP DATABASE IF EXISTS " + quote(replacedPrefix+id), "DROP DATABASE IF EXISTS " +
		quote(journalPrefix+id)}
	if sealed {
		statements = append([]string{"DROP VIEW " + quote(journalPrefix+id) + "." + sealName}, statements...)
	}
	for _, statement := range statements {
		if _, err := server.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// ownedTriggers returns the trigger definitions of a database with their owners.
func ownedTriggers(ctx context.Context, c *sql.Conn, database string, all []definition) ([]definition, error) {
	owners := map[string]string{}
	rows, err := c.QueryContext(ctx,
		"SELECT trigger_name, definer FROM information_schema.triggers WHERE trigger_schema = ?", database)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name, owner string
		if err := rows.Scan(&name, &owner); err != nil {
			return nil, err
		}
		owners[name] = owner
	}
	for i := range all {
		all[i].Owner = owners[all[i].Name]
	}
	return all, rows.Err()
}

// withOwner returns the definition with SQL that creates the object for its owner. It returns the
// definition unchanged if no owner is known.
func (d definition) withOwner() definition {
	if d.Owner != "" {
		d.SQL = "CREATE DEFINER=" + accountOf(d.Owner).definer() + d.SQL[len("CREATE"):]
	}
	return d
}

// accountOf splits the name of an account, as the server shows it, into user and host. A role has
// no host.
func accountOf(owner string) account {
	at := strings.LastIndexByte(owner, '@')
	if at < 0 {
		return account{User: owner}
	}
	return account{User: owner[:at], Host: owner[at+1:]}
}

// checkOwners returns an error if this user has no permission to create triggers for the owners of
// the old triggers. In that case, no trigger may be dropped, because it could not be restored. To
// find out, checkOwners tries to create a trigger on the given table, which belongs to the journal.
func (j journal) checkOwners(ctx context.Context, c *sql.Conn, table string) error {
	tried := map[string]bool{}
	for _, t := range j.Triggers {
		owner := accountOf(t.Owner)
		if tried[t.Owner] || t.Owner == "" || accountPattern.MatchString(owner.User) {
			continue
		}
		tried[t.Owner] = true
		name := strings.TrimSuffix(table, "`before`") + "tried"
		_, err := c.ExecContext(ctx, "CREATE DEFINER="+owner.definer()+" TRIGGER "+name+" BEFORE INSERT ON "+table+
			" FOR EACH ROW SET @unused = 0")
		if isDenied(err) || number(err) == erNeedsSuper {
			return &snap.Error{
				Code: snap.CodeForbidden, Cause: err,
				Detail: fmt.Sprintf("the trigger %s of the database %q belongs to %s, and this MySQL user could not "+
					"restore it if the load failed", t.Name, j.Place, t.Owner),
				Hint: "drop the trigger first, or load as its owner or a user with the privilege SET_USER_ID (MySQL " +
					"8.0), SET_ANY_DEFINER (MySQL 8.4) or SET USER (MariaDB); nothing was changed",
			}
		}
		if err == nil {
			_, err = c.ExecContext(ctx, "DROP TRIGGER "+name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// restoreTrigger creates an old trigger again for its owner. If the owner is the account of an
// earlier load and this user has no permission to create triggers for others, the account of the
// earlier load creates the trigger.
func restoreTrigger(ctx context.Context, server *sql.DB, dest database, c *sql.Conn, d definition) error {
	err := createObject(ctx, c, "TRIGGER", d.withOwner())
	owner := accountOf(d.Owner)
	if number(err) != erNoRight || !accountPattern.MatchString(owner.User) {
		return err
	}
	m, done, err := owner.creator(ctx, server, dest, c)
	if err != nil {
		return err
	}
	defer done()
	err = m.create(ctx, "TRIGGER", d)
	return errors.Join(err, owner.dropUnused(ctx, server))
}
