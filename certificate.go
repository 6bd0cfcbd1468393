package snap

// Certificate is what the service knows about the certificate of a snapshot: a signed statement of
// how the snapshot was sanitized.
type Certificate struct {
	State   CertificateState
	Key     string // ID of the key that the certificate names, unless the certificate is missing or invalid
	KeyName string // name of the key, if it is registered
}

// CertificateState says whether a certificate is valid and, if not, why.
type CertificateState string

// The states of a certificate.
const (
	CertificateValid   CertificateState = "valid"       // a registered key signed it
	CertificateMissing CertificateState = "missing"     // the snapshot has none
	CertificateUnknown CertificateState = "unknown_key" // the key that it names is not registered
	CertificateRevoked CertificateState = "revoked_key" // the key that it names is revoked
	CertificateInvalid CertificateState = "invalid"     // it was altered, or belongs to another file
)

// String describes the certificate in a few words.
func (c Certificate) String() string {
	key := c.Key
	if c.KeyName != "" {
		key += " (" + c.KeyName + ")"
	}
	switch c.State {
	case CertificateValid:
		return "valid, signed by the key " + key
	case CertificateMissing:
		return "none"
	case CertificateUnknown:
		return "not valid: the key " + key + " is not registered"
	case CertificateRevoked:
		return "not valid: the key " + key + " is revoked"
	}
	return "not valid: it was altered, or belongs to another file"
}

// CheckCertificate returns an error of code policy_refused if the policy forbids sharing a snapshot
// with this certificate.
func (p Policy) CheckCertificate(c Certificate) error {
	if p.Requires != RequireCertificate || c.State == CertificateValid {
		return nil
	}
	hint := "sanitize it again on a machine with a signing key, and push and share the new copy"
	switch c.State {
	case CertificateMissing:
		hint = "create a signing key with `snapcli keys new`, sanitize, and push and share the masked copy"
	case CertificateUnknown:
		hint = "ask an owner or admin to register the key: `snapcli cloud certificate-keys add PUBLIC-KEY`"
	}
	return &Error{
		Code: CodePolicy,
		Detail: "the policy share_requires of your organization allows sharing only snapshots with a valid " +
			"certificate; this snapshot's certificate: " + c.String(),
		Hint: hint,
	}
}
