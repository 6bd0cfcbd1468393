package mysql

import (
	"errors"
	"fmt"
	"strings"

	"snap"
)

// explainOtherServer adds the likely reason to an error if a snapshot from MySQL is loaded into
// MariaDB, or vice versa.
func explainOtherServer(err error, built, server string) error {
	var failed *snap.Error
	if server == "" || isMariaDB(built) == isMariaDB(server) || !errors.As(err, &failed) ||
		failed.Code != snap.CodeDatabase || number(err) == 0 {
		return err
	}
	e := *failed
	e.Detail = fmt.Sprintf("the snapshot is from %s, and the destination's server is %s, which does not support "+
		"all of it: %s", product(built), product(server), failed.Detail)
	e.Hint = fmt.Sprintf("load it into %s, or leave an unsupported table or view out of the build with "+
		"--exclude-table; nothing was replaced", product(built))
	return &e
}

func isMariaDB(version string) bool { return strings.Contains(version, "MariaDB") }

// product returns the product and version number of a server, such as MariaDB 10.11.14.
func product(version string) string {
	number, _, _ := strings.Cut(version, "-")
	if isMariaDB(version) {
		return "MariaDB " + number
	}
	return "MySQL " + number
}
