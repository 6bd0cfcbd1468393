package postgres

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"snap"
)

// refusedConnection describes why a connection was refused before the password was checked. It
// returns false for other errors. With sslmode=prefer there are two attempts, one with TLS and one
// without, and err has the errors of both. If the server responded to the one without TLS, its
// response is why the connection was refused.
func (d database) refusedConnection(err error, e *snap.Error) bool {
	var untrusted *tls.CertificateVerificationError
	text := strings.ToLower(err.Error())
	switch {
	case errors.As(err, &untrusted):
		e.Detail = fmt.Sprintf("the certificate of the PostgreSQL server %s cannot be verified: %s", d.where(),
			untrusted.Err)
		e.Hint = "give the certificate authority with sslrootcert=FILE in the URL, and use a host that the " +
			"certificate names"
	case state(err) == "" && strings.Contains(text, "server refused tls connection"):
		e.Detail = fmt.Sprintf("the PostgreSQL server %s does not offer TLS", d.where())
		e.Hint = "turn TLS on there, or use sslmode=prefer in the URL"
	case requiresTLS(text):
		e.Detail = fmt.Sprintf("the PostgreSQL server %s requires TLS", d.where())
		e.Hint = "add sslmode=verify-full to the URL, and sslrootcert=FILE if it has a private certificate authority"
	case state(err) == stateBadLogin && strings.Contains(text, "no pg_hba.conf entry"):
		e.Detail = fmt.Sprintf("the PostgreSQL server %s does not allow this connection: %s", d.where(), message(err))
		e.Hint = "allow this user, database and address in the server's pg_hba.conf or firewall"
	default:
		return false
	}
	return true
}

// requiresTLS reports whether a server, or the proxy of a provider, refused a connection because it
// is not encrypted. PostgreSQL says "no encryption" at the end of its message, and "SSL off" before
// version 14.
func requiresTLS(text string) bool {
	hba := strings.Contains(text, "pg_hba.conf") &&
		(strings.Contains(text, ", no encryption") || strings.Contains(text, ", ssl off"))
	return hba || strings.Contains(text, "ssl connection is required") ||
		strings.Contains(text, "connection is insecure") || strings.Contains(text, "ssl/tls required")
}
