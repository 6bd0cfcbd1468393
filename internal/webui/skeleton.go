package webui

import "net/http"

func (s *Server) routes() http.Handler { return http.NotFoundHandler() }
func (s *Server) gateProblem(w http.ResponseWriter, r *http.Request, status int, err error) {
	http.Error(w, err.Error(), status)
}
