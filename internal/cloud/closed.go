package cloud

import (
	"context"
	"slices"
)

// closeUnlisted closes the organizations that the configuration does not list, and reopens the
// organizations that it lists again. It logs the closed organizations, because a slug may be
// mistyped. It is the last step of a start, so a start that fails locks nobody out.
func (s *Service) closeUnlisted(ctx context.Context) error {
	listed := each(s.config.Organizations, func(o Organization) string { return o.Slug })
	if err := s.store.CloseAllBut(ctx, listed); err != nil {
		return err
	}
	orgs, err := s.store.Orgs(ctx)
	for _, o := range orgs {
		switch {
		case o.Closed && slices.Contains(listed, o.Slug):
			s.log.WarnContext(ctx, "a newer release of the service has closed an organization; "+
				"to reopen it, start that release with a configuration that lists it", "organization", o.Slug)
		case o.Closed:
			s.log.WarnContext(ctx,
				"an organization is not in the configuration and is closed: its sessions and keys are refused; "+
					"nothing is deleted; to reopen it, list it again and restart the service", "organization", o.Slug)
		}
	}
	return err
}
