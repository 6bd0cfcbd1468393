package cloud

// Routes returns the patterns of every route that needs a caller, for tests
// that walk the route table.
func (s *Service) Routes() []string {
	var out []string
	for _, rt := range s.table {
		out = append(out, rt.pattern)
	}
	return out
}
