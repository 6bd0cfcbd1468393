package cloud

import "context"

// closeUnlisted closes the organizations that the configuration does not list, opens those that it
// lists again, and logs the closed ones, because a slug may be mistyped. It is the last step of a
// start, so a start that fails locks nobody out.
func (s *Service) closeUnlisted(ctx context.Context) error {
	listed := []string{}
	for _, o := range s.config.Organizations {
		listed = append(listed, o.Slug)
	}
	if err := s.store.CloseAllBut(ctx, listed); err != nil {
		return err
	}
	orgs, err := s.store.Orgs(ctx)
	for _, o := range orgs {
		if o.Closed {
			s.log.WarnContext(ctx,
				"an organization is not in the configuration and is closed: its sessions and keys are refused; "+
					"nothing is deleted, and a start that lists it opens it again", "organization", o.Slug)
		}
	}
	return err
}
