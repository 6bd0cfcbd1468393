package reach

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/crypto/ssh/knownhosts"

	"snap"
)

// keyring is a connection to the user's SSH agent.
type keyring struct {
	agent.ExtendedAgent

	conn net.Conn
}

// Close ends the connection to the agent.
func (k keyring) Close() { k.conn.Close() }

// keys connects to the user's SSH agent.
func (t *Tunnel) keys(ctx context.Context) (keyring, error) {
	const how = "start one and add a key: eval $(ssh-agent) && ssh-add"
	path := t.env("SSH_AUTH_SOCK")
	if path == "" {
		return keyring{}, t.failed("needs a key, and no SSH agent is running (SSH_AUTH_SOCK is not set)", how, nil)
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return keyring{}, t.failed("needs a key, and the SSH agent at SSH_AUTH_SOCK does not respond", how, err)
	}
	k := keyring{agent.NewClient(c), c}
	if all, err := k.List(); err != nil || len(all) == 0 {
		c.Close()
		return keyring{}, t.failed("needs a key, and the SSH agent has none", "add one: ssh-add", err)
	}
	return k, nil
}

// requireKnownHost makes the configuration accept only those keys of the server that are in the
// user's or the machine's known_hosts.
func (t *Tunnel) requireKnownHost(config *ssh.ClientConfig) error {
	var files []string
	home := t.env("HOME")
	if home == "" {
		home, _ = os.UserHomeDir()
	}
	for _, path := range []string{filepath.Join(home, ".ssh", "known_hosts"), "/etc/ssh/ssh_known_hosts"} {
		if _, err := os.Stat(path); err == nil {
			files = append(files, path)
		}
	}
	callback, err := knownhosts.New(files...)
	if err != nil {
		return &snap.Error{Code: snap.CodeDatabase, Detail: "the keys of SSH servers cannot be read: " + err.Error(),
			Hint: "correct or remove that line of the file", Cause: err}
	}
	config.HostKeyCallback = func(host string, remote net.Addr, key ssh.PublicKey) error {
		if err := callback(host, remote, key); err != nil {
			return &unverifiedKeyError{ssh.FingerprintSHA256(key), err}
		}
		return nil
	}
	config.HostKeyAlgorithms, err = algorithms(callback, t.address)
	return err
}

// unverifiedKeyError is the error for a server's key that is not accepted.
type unverifiedKeyError struct {
	fingerprint string
	cause       error
}

// Error implements error.
func (u *unverifiedKeyError) Error() string { return u.fingerprint + ": " + u.cause.Error() }

// Unwrap returns the reason.
func (u *unverifiedKeyError) Unwrap() error { return u.cause }

// algorithms returns the kinds of keys to ask an SSH server for: those that known_hosts has for it.
// Otherwise the server could choose a key that is not listed. It returns nil for a server that is
// not in known_hosts.
func algorithms(callback ssh.HostKeyCallback, address string) ([]string, error) {
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	unknown, err := ssh.NewPublicKey(public)
	if err != nil {
		return nil, err
	}
	var all []string
	var known *knownhosts.KeyError
	if !errors.As(callback(address, &net.TCPAddr{}, unknown), &known) {
		return nil, nil
	}
	for _, k := range known.Want {
		switch {
		case isAuthority(k):
			all = append(all, ssh.CertAlgoED25519v01, ssh.CertAlgoECDSA256v01, ssh.CertAlgoECDSA384v01,
				ssh.CertAlgoECDSA521v01, ssh.CertAlgoRSASHA256v01, ssh.CertAlgoRSASHA512v01)
		case k.Key.Type() == ssh.KeyAlgoRSA:
			all = append(all, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSASHA512)
		default:
			all = append(all, k.Key.Type())
		}
	}
	return all, nil
}

// isAuthority reports whether a line of known_hosts has the key of a certificate authority.
func isAuthority(k knownhosts.KnownKey) bool {
	file, err := os.Open(k.Filename)
	if err != nil {
		return false
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		if n == k.Line {
			return strings.HasPrefix(strings.TrimSpace(lines.Text()), "@cert-authority")
		}
	}
	return false
}

// sessionError describes why no session with the SSH server could be started.
func (t *Tunnel) sessionError(err error) error {
	var key *knownhosts.KeyError
	var revoked *knownhosts.RevokedError
	var kinds *ssh.AlgorithmNegotiationError
	shown := &unverifiedKeyError{}
	errors.As(err, &shown)
	host, port, _ := net.SplitHostPort(t.address)
	connect := fmt.Sprintf("ssh -p %s %s@%s", port, t.user, host)
	changed := fmt.Sprintf("somebody may be intercepting the connection; if the server's administrator confirms the "+
		"new key, remove the old one with ssh-keygen -R '%s' and add the new one: %s", knownhosts.Normalize(t.address),
		connect)
	switch {
	case errors.As(err, &revoked):
		return t.failed(fmt.Sprintf("has the key %s, which known_hosts marks as revoked", shown.fingerprint),
			"do not connect to it; ask its administrator", err)
	case errors.As(err, &key) && len(key.Want) == 0:
		return t.failed(fmt.Sprintf("has the key %s, which is not in known_hosts", shown.fingerprint),
			"if its administrator confirms this key, add it by connecting once: "+connect, err)
	case errors.As(err, &key):
		return t.failed(fmt.Sprintf("has the key %s, but line %d of %s has another one", shown.fingerprint,
			key.Want[0].Line, key.Want[0].Filename), changed, err)
	case errors.As(err, &kinds) && strings.Contains(err.Error(), "host key"):
		return t.failed("does not have the key that known_hosts has for it", changed, err)
	case strings.Contains(err.Error(), "unable to authenticate"):
		return t.failed(fmt.Sprintf("refused the user %q and every key of the SSH agent", t.user),
			"check the user in the SSH server's URL, and list the keys with `ssh-add -l`; try: "+connect, err)
	case errors.Is(err, context.DeadlineExceeded):
		return t.failed("did not complete the sign-in in time",
			"if a key must be touched or unlocked, do that at once; try: "+connect, err)
	}
	return t.failed("ended the connection before it could be used",
		"look for the reason in its log; try: "+connect, err)
}
