package cloud

import (
	"context"
	"encoding/json"

	"snap"
	"snap/api"
	"snap/internal/certificate"
	"snap/internal/store"
)

type certificateKeyInput struct {
	Body api.CertificateKeyRequest
}

type certificateKeyID struct {
	ID string `path:"id" maxLength:"64" doc:"ID of the certificate key" example:"21fe31dfa154a261"`
}

func (s *Service) listCertificateKeys(ctx context.Context, _ *noInput) (*body[api.CertificateKeyList], error) {
	keys, err := s.store.CertificateKeys(ctx, callOf(ctx).caller)
	if err != nil {
		return nil, err
	}
	return &body[api.CertificateKeyList]{api.CertificateKeyList{Items: each(keys, wireCertificateKey)}}, nil
}

func (s *Service) addCertificateKey(ctx context.Context, in *certificateKeyInput) (*body[api.CertificateKey], error) {
	public, err := certificate.ParsePublic(in.Body.Public)
	if err != nil {
		return nil, err
	}
	key, err := s.store.AddCertificateKey(ctx, callOf(ctx).caller, public, snap.CleanText(in.Body.Name))
	if err != nil {
		return nil, err
	}
	return &body[api.CertificateKey]{wireCertificateKey(key)}, nil
}

func (s *Service) revokeCertificateKey(ctx context.Context, in *certificateKeyID) (*empty, error) {
	return &empty{}, s.store.RevokeCertificateKey(ctx, callOf(ctx).caller, in.ID)
}

func wireCertificateKey(k store.CertificateKey) api.CertificateKey {
	return api.CertificateKey{ID: k.Public.ID(), Name: k.Name, Public: k.Public.String(), CreatedAt: k.Created,
		RevokedAt: optional(k.Revoked)}
}

// certificateOf checks the certificate of a push and returns it as a string, or "" if there is
// none.
func (s *Service) certificateOf(ctx context.Context, r api.PushRequest) (string, error) {
	text := string(r.Certificate)
	if text == "" || text == "null" {
		return "", nil
	}
	if r.Type != snap.TypeSanitized {
		return "", snap.Invalid("a snapshot that is not sanitized cannot have a certificate", "push the sanitized copy")
	}
	return text, s.store.CheckCertificate(ctx, callOf(ctx).caller, r.Certificate, r.SHA256)
}

// envelope returns a snapshot's certificate as its pusher sent it, or nil if there is none.
func (s *Service) envelope(ctx context.Context, c *call) (json.RawMessage, error) {
	text, err := s.store.Envelope(ctx, c.caller, c.snapshot)
	if err != nil || text == "" {
		return nil, err
	}
	return json.RawMessage(text), nil
}
