package servertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Certificates writes PEM files to a folder: a certificate authority (ca.pem), and the certificates
// and keys of a server on this machine (server.pem, server.key), of a server elsewhere (other.pem,
// other.key) and of a client named client (client.pem, client.key). The keys can be read by
// everybody.
func Certificates(t testing.TB, dir string) {
	t.Helper()
	ca, key := writeCertificate(t, dir, "ca", nil, nil, x509.Certificate{IsCA: true, KeyUsage: x509.KeyUsageCertSign})
	writeCertificate(t, dir, "server", ca, key, x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	writeCertificate(t, dir, "other", ca, key, x509.Certificate{DNSNames: []string{"elsewhere.example"}})
	writeCertificate(t, dir, "client", ca, key, x509.Certificate{})
}

// writeCertificate signs a certificate, and writes it and its key. Without an authority, the
// certificate is self-signed.
func writeCertificate(t testing.TB, dir, name string, ca *x509.Certificate, caKey *ecdsa.PrivateKey,
	c x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	c.NotBefore, c.NotAfter, c.BasicConstraintsValid = time.Now().AddDate(0, 0, -1), time.Now().AddDate(1, 0, 0), true
	if ca == nil {
		ca, caKey = &c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, &c, ca, &key.PublicKey, caKey)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		name + ".pem": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "PRIVATE KEY", Bytes: secret},
	} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return parsed, key
}
