package local

import (
	"crypto/x509"
	"fmt"
	"os"

	"snap"
)

// Roots returns the certificate authorities for the cloud service and its object store: the
// system's, which SSL_CERT_FILE replaces on most systems, and those of cloud.ca_file. It returns
// nil if cloud.ca_file is not set.
func (a *Agent) Roots() (*x509.CertPool, error) {
	file := a.Config().Cloud.CAFile
	if file == "" {
		return nil, nil
	}
	file = a.relativeToConfig(file)
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, snap.Usage(fmt.Sprintf("cloud.ca_file %s cannot be read: %s", file, reason(err)),
			"set it to a file of certificates in PEM")
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, snap.Usage(fmt.Sprintf("cloud.ca_file %s contains no certificate", file),
			"set it to a file of certificates in PEM")
	}
	return roots, nil
}
