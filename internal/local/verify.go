package local

import (
	"context"
	"fmt"

	"snap"
	"snap/internal/archive"
)

// Verified is the result of a successful verification.
type Verified struct {
	archive.Manifest
	Encrypted int  // number of recipients
	Inside    bool // the content was checked too; false if no identity decrypts it

	Certificate *Certified // nil if it has none
}

// Verify reads the whole file and checks every checksum: those inside it, and the one recorded when
// it was built or pulled. Then it reads the definitions and all rows as a load does. The content of
// an encrypted file is checked if one of the given or configured identities decrypts it. If the
// snapshot has a certificate, Verify checks that too.
func (a *Agent) Verify(ctx context.Context, name string, p Progress, identity ...string) (Verified, error) {
	s, err := a.Snapshot(name)
	if err != nil {
		return Verified{}, err
	}
	r, err := openSnapshot(s)
	if err != nil {
		return Verified{}, err
	}
	defer r.Close()
	err = a.unlock(r, identity)
	if snap.CodeOf(err) == snap.CodeNoIdentity && len(identity) == 0 {
		err = nil
	}
	if err == nil {
		err = verifyFile(ctx, r, s, p)
	}
	v := Verified{Manifest: r.Manifest(), Encrypted: r.Encrypted(), Inside: !r.Locked()}
	if err == nil && v.Inside {
		err = a.reread(ctx, r, s, true)
	}
	if err == nil {
		v.Certificate, err = a.checkCertificate(s, v)
	}
	return v, err
}

// Describe reads from a snapshot's file what its record omits: the card, the programs, the
// sentences about missing parts, and the tables if the snapshot is encrypted or comes from
// elsewhere and has very many. It adds nothing if no configured identity decrypts the snapshot, or
// if the file cannot be opened but the record has tables. It is an error if none of the given
// identities decrypts the snapshot.
func (a *Agent) Describe(s *Snapshot, identity []string) error {
	r, err := openSnapshot(*s)
	if err != nil && len(s.Tables) > 0 {
		return nil
	}
	if err != nil {
		return err
	}
	defer r.Close()
	err = a.unlock(r, identity)
	if snap.CodeOf(err) == snap.CodeNoIdentity && len(identity) == 0 {
		return nil
	}
	if err == nil {
		m := r.Manifest()
		s.describe(m)
		s.Tables = m.Tables
		described := s.Counted.addTo(cardOf(m))
		s.Card = &described
		if m.Schema != nil {
			s.Programs, s.Omitted = m.Schema.Programs, m.Schema.Omissions()
		}
	}
	return err
}

// openVerified opens a snapshot's file, decrypts it and checks every byte.
func (a *Agent) openVerified(ctx context.Context, s Snapshot, p Progress, identity ...string) (*archive.Reader, error) {
	r, err := openSnapshot(s)
	if err != nil {
		return nil, err
	}
	if err = a.unlock(r, identity); err == nil {
		err = verifyFile(ctx, r, s, p)
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// verifyFile checks every byte of a snapshot's file.
func verifyFile(ctx context.Context, r *archive.Reader, s Snapshot, p Progress) error {
	sum, err := r.Verify(ctx, p.bytes("check"))
	if err == nil && (sum.SHA256 != s.SHA256 || sum.Size != s.Size) {
		err = &snap.Error{
			Code: snap.CodeCorrupt,
			Detail: fmt.Sprintf("the file of the snapshot %s has changed since it was built or pulled: its checksum "+
				"differs", s.Name),
			Hint: "pull it again, or build a new one",
		}
	}
	if err == nil {
		err = checkRecord(s, r.Manifest())
	}
	return err
}

// checkRecord returns an error unless the record and the manifest have the same type and engine. A
// snapshot that is listed as sanitized must be sanitized according to its manifest.
func checkRecord(s Snapshot, m archive.Manifest) error {
	if m.Type == s.Type && m.Engine == s.Engine {
		return nil
	}
	return &snap.Error{
		Code: snap.CodeCorrupt,
		Detail: fmt.Sprintf("the file of the snapshot %s is of type %s and engine %s, but its record says %s and %s",
			s.Name, m.Type, m.Engine, s.Type, s.Engine),
		Hint: "do not use the file; ask the person who pushed the snapshot",
	}
}
