package api

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"snap"
)

// CertificateState is the state of a snapshot's certificate.
type CertificateState struct {
	State   snap.CertificateState `json:"state" enum:"valid,unknown_key,revoked_key,invalid" doc:"valid: signed by a registered key"`
	Key     string                `json:"key,omitempty" doc:"ID of the signing key; absent if invalid"`
	KeyName string                `json:"key_name,omitempty" doc:"only sent within the organization"`
}

// String describes the state in a few words.
func (s CertificateState) String() string { return snap.Certificate(s).String() }

// CertificateKey is a public key whose certificates an organization accepts, unless it is revoked.
type CertificateKey struct {
	ID        string     `json:"id" doc:"first 16 hexadecimal digits of the key's SHA-256" example:"21fe31dfa154a261"`
	Name      string     `json:"name" example:"ci"`
	Public    string     `json:"public" doc:"public key as text"`
	CreatedAt time.Time  `json:"created_at"`
	RevokedAt *time.Time `json:"revoked_at,omitempty" doc:"time since which its certificates are refused"`
}

// CertificateKeyList is the body of GET /org/certificate-keys.
type CertificateKeyList struct {
	Items []CertificateKey `json:"items"`
}

// CertificateKeyRequest registers a public key.
type CertificateKeyRequest struct {
	Public string `json:"public" maxLength:"100" doc:"public key as snapcli keys export prints it" example:"snapkey-11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"`
	Name   string `json:"name,omitempty" maxLength:"100" doc:"name of the key, for people" example:"ci"`
}

// CertificateKeys lists the keys whose certificates the organization accepts, and the revoked keys.
func (c *Client) CertificateKeys(ctx context.Context) ([]CertificateKey, error) {
	list, err := call[CertificateKeyList](ctx, c, http.MethodGet, "/org/certificate-keys", nil)
	return list.Items, err
}

// AddCertificateKey registers a public key. Only owners and admins may call it.
func (c *Client) AddCertificateKey(ctx context.Context, r CertificateKeyRequest) (CertificateKey, error) {
	return call[CertificateKey](ctx, c, http.MethodPost, "/org/certificate-keys", r)
}

// RevokeCertificateKey revokes a key: its certificates are refused from then on. Only owners and
// admins may call it.
func (c *Client) RevokeCertificateKey(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, "/org/certificate-keys/"+url.PathEscape(id), nil, nil)
}
