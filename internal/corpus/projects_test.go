package corpus

import (
	"path/filepath"
	"regexp"
	"strings"
)

// A schema from another project. Nothing of the schema is in this repository: the files are in the
// Debian packages that `make corpus` unpacks and in the modules that it downloads.
type project struct {
	name    string
	servers string   // kinds of servers: postgres, mysql, sqlite
	files   []string // patterns below the folder of the packages or modules, in the order to run
	replace []string // pairs of texts: the placeholders of an installer, and their values
	only    string   // how the names of the servers begin that accept the schema; empty: all
}

const (
	share   = "usr/share/"
	common  = share + "dbconfig-common/data/"
	radius  = "etc/freeradius/3.0/mods-config/sql/main/"
	kamaili = share + "kamailio/"
)

// projects returns the schemas of packages and modules.
func projects() []project {
	all := []project{
		{name: "zabbix", servers: "mysql", files: []string{share + "zabbix-server-mysql/schema.sql.gz"}},
		{name: "zabbix", servers: "postgres", files: []string{share + "zabbix-server-pgsql/schema.sql.gz"}},
		{name: "zabbix-proxy", servers: "sqlite", files: []string{share + "zabbix-proxy-sqlite3/schema.sql.gz"}},
		{name: "cacti", servers: "mysql", files: []string{share + "doc/cacti/cacti.sql"},
			replace: []string{"IF majv >= majn", // its check considers 9.7.4 an old version
				"IF majv > 8 AND NOT ismaria OR majv >= majn"}},
		{name: "phpmyadmin", servers: "mysql", files: []string{common + "phpmyadmin/install/mysql"}},
		{name: "zoneminder", servers: "mysql", files: []string{share + "zoneminder/db/zm_create.sql",
			share + "zoneminder/db/triggers.sql"},
			replace: []string{"source /usr/share/zoneminder/db/triggers.sql", "", "CREATE DATABASE /*!32312 IF " +
				"NOT EXISTS*/ `zm`;", "", "USE `zm`;", ""}},
		{name: "davical", servers: "postgres",
			files: []string{share + "awl/dba/awl-tables.sql", share + "awl/dba/schema-management.sql",
				share + "davical/dba/davical.sql", share + "davical/dba/base-data.sql",
				share + "davical/dba/caldav_functions.sql", share + "davical/dba/rrule_functions.sql"}},
		{name: "opendmarc", servers: "mysql", files: []string{common + "opendmarc/install/mysql"},
			replace: []string{"CREATE DATABASE IF NOT EXISTS opendmarc;", "", "USE opendmarc;", ""}},
		{name: "jabberd2", servers: "mysql", only: "mariadb", // its keys are too long for MySQL
			files: []string{share + "doc/jabberd2/db-setup.mysql.gz"}},
		{name: "coder", servers: "postgres", files: []string{"github.com/coder/coder/v2@*/coderd/database/dump.sql"}},
		{name: "temporal", servers: "postgres", files: []string{
			"go.temporal.io/server@*/schema/postgresql/v12/temporal/schema.sql",
			"go.temporal.io/server@*/schema/postgresql/v12/visibility/schema.sql"}},
		{name: "temporal", servers: "mysql",
			files: []string{"go.temporal.io/server@*/schema/mysql/v8/temporal/schema.sql"}},
		{name: "temporal-visibility", servers: "mysql", only: "mysql",
			files: []string{"go.temporal.io/server@*/schema/mysql/v8/visibility/schema.sql"}},
		{name: "temporal", servers: "sqlite", files: []string{
			"go.temporal.io/server@*/schema/sqlite/v3/temporal/schema.sql",
			"go.temporal.io/server@*/schema/sqlite/v3/visibility/schema.sql"}},
	}
	for _, p := range []struct {
		name    string
		files   map[string]string
		replace []string
		only    string // of the servers of MySQL
	}{
		{name: "roundcube", files: map[string]string{"mysql": common + "roundcube/install/mysql",
			"postgres": common + "roundcube/install/pgsql", "sqlite": common + "roundcube/install/sqlite3"}},
		{name: "bacula", files: map[string]string{"mysql": common + "bacula-director-mysql/install/mysql",
			"postgres": common + "bacula-director-pgsql/install/pgsql",
			"sqlite":   common + "bacula-director-sqlite3/install/sqlite3"}},
		{name: "tt-rss", files: map[string]string{"mysql": common + "tt-rss/install/mysql",
			"postgres": common + "tt-rss/install/pgsql"}},
		{name: "icinga2", files: map[string]string{"mysql": share + "icinga2-ido-mysql/schema/mysql.sql",
			"postgres": share + "icinga2-ido-pgsql/schema/pgsql.sql"}},
		{name: "icingadb", files: map[string]string{"mysql": share + "icingadb/schema/mysql/schema.sql",
			"postgres": share + "icingadb/schema/pgsql/schema.sql"}},
		{name: "icingaweb2", files: map[string]string{"mysql": share + "icingaweb2/schema/mysql.schema.sql",
			"postgres": share + "icingaweb2/schema/pgsql.schema.sql"}},
		{name: "mediawiki", files: map[string]string{"mysql": share + "mediawiki/maintenance/tables-generated.sql",
			"postgres": share + "mediawiki/maintenance/postgres/tables-generated.sql",
			"sqlite":   share + "mediawiki/maintenance/sqlite/tables-generated.sql"}},
		{name: "powerdns", files: map[string]string{"mysql": share + "doc/pdns-backend-mysql/schema.mysql.sql",
			"postgres": share + "pdns-backend-pgsql/schema/schema.pgsql.sql",
			"sqlite":   share + "pdns-backend-sqlite3/schema/schema.sqlite3.sql"}},
		{name: "kea", files: map[string]string{"mysql": share + "kea/scripts/mysql/dhcpdb_create.mysql",
			"postgres": share + "kea/scripts/pgsql/dhcpdb_create.pgsql"}},
		{name: "freeradius", files: map[string]string{"mysql": radius + "mysql/schema.sql",
			"postgres": radius + "postgresql/schema.sql", "sqlite": radius + "sqlite/schema.sql"}},
		{name: "ejabberd", files: map[string]string{"mysql": share + "ejabberd/sql/mysql.new.sql",
			"postgres": share + "ejabberd/sql/pg.new.sql", "sqlite": share + "ejabberd/sql/lite.new.sql"}},
		{name: "request-tracker", only: "mariadb", files: map[string]string{ // MySQL reserves the word Groups
			"mysql":    share + "request-tracker5/etc/schema.mysql",
			"postgres": share + "request-tracker5/etc/schema.Pg",
			"sqlite":   share + "request-tracker5/etc/schema.SQLite"}},
		{name: "gammu", replace: []string{"CREATE LANGUAGE plpgsql;", ""}, files: map[string]string{
			"mysql":    share + "doc/gammu-smsd/examples/mysql.sql",
			"postgres": share + "doc/gammu-smsd/examples/pgsql.sql",
			"sqlite":   share + "doc/gammu-smsd/examples/sqlite.sql"}},
		{name: "jabberd2", files: map[string]string{"postgres": share + "doc/jabberd2/db-setup.pgsql.gz",
			"sqlite": share + "doc/jabberd2/db-setup.sqlite.gz"}},
	} {
		for _, kind := range []string{"postgres", "mysql", "sqlite"} {
			if file := p.files[kind]; file != "" {
				one := project{name: p.name, servers: kind, files: []string{file}, replace: p.replace}
				if kind == "mysql" {
					one.only = p.only
				}
				all = append(all, one)
			}
		}
	}
	for kind, dir := range map[string]string{"mysql": "mysql", "postgres": "postgres", "sqlite": "db_sqlite"} {
		all = append(all, project{name: "kamailio", servers: kind,
			files: []string{kamaili + dir + "/standard-create.sql", kamaili + dir + "/[a-hj-rt-z]*-create.sql",
				kamaili + dir + "/imc-create.sql",
				kamaili + dir + "/s[a-su-z]*-create.sql"}})
	}
	return all
}

// paths returns the files of a project below one of the folders, in their order.
func (p project) paths(folders []string) (all []string) {
	for _, pattern := range p.files {
		if filepath.IsAbs(pattern) {
			all = append(all, pattern)
			continue
		}
		for _, folder := range folders {
			found, _ := filepath.Glob(filepath.Join(folder, pattern))
			all = append(all, found...)
		}
	}
	return all
}

// hashed are comments that the installer of Request Tracker removes, because SQLite does not know
// them.
var hashed = regexp.MustCompile(`(?m)[ \t]#.*$`)

// text applies the replacements.
func (p project) text(script string) string {
	if p.name == "request-tracker" && p.servers == "sqlite" {
		script = hashed.ReplaceAllString(script, "")
	}
	return strings.NewReplacer(p.replace...).Replace(script)
}
