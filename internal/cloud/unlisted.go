package cloud

import (
	"context"
	"slices"
)

// warnOfUnlisted tells the operator of organizations that the configuration no
// longer has. Nobody can sign in to them any more, but what was signed in, and
// their keys, go on: leaving an organization out is no way to lock it out.
func (s *Service) warnOfUnlisted(ctx context.Context) error {
	orgs, err := s.store.Orgs(ctx)
	if err != nil {
		return err
	}
	for _, o := range orgs {
		if !slices.ContainsFunc(s.config.Organizations, func(listed Organization) bool { return listed.Slug == o.Slug }) {
			s.log.WarnContext(ctx, "an organization is not in the configuration: nobody can sign in to it, but its sessions and keys go on; to lock its users out run snapcloud user disable", "organization", o.Slug)
		}
	}
	return nil
}
