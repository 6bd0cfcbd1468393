package webui

import (
	"net/http"
	"strings"
)

// handler responds to a request. [Server.fail] reports the error that it returns.
type handler func(http.ResponseWriter, *http.Request) error

// routes registers every page and action. GET changes nothing. All changes use POST, because forms
// cannot send PUT or DELETE without JavaScript.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, h handler) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			err := s.reload(r)
			if err == nil {
				err = h(w, r)
			}
			if err != nil {
				s.fail(w, r, err)
			}
		})
	}
	mux.Handle("GET /assets/", s.assets)

	handle("GET /{$}", s.home)
	handle("GET /snapshots", s.snapshots)
	handle("GET /find", s.find)
	handle("POST /bulk", s.changeSeveral)
	handle("GET /cloud/{id}", s.cloudSnapshot)
	handle("GET /cloud/{id}/share", s.confirmShare)
	handle("POST /cloud/{id}/share", s.share)
	handle("GET /cloud/{id}/sharing", s.sharing)
	handle("POST /cloud/{id}/groups", s.needCloud(s.shareGroup))
	handle("POST /cloud/{id}/organizations", s.needCloud(s.shareOrg))
	handle("POST /cloud/{id}/organizations/revoke", s.needCloud(s.revokeOrg))
	handle("POST /cloud/{id}/pull", s.pull)
	handle("GET /cloud/{id}/decline", s.confirmDecline)
	handle("POST /cloud/{id}/decline", s.needCloud(s.decline))
	handle("GET /cloud/{id}/delete", s.confirmDeleteCloud)
	handle("POST /cloud/{id}/delete", s.needCloud(s.deleteCloud))

	handle("GET /local/{name}", s.localSnapshot)
	handle("POST /local/{name}/push", s.needCloud(s.push))
	handle("POST /local/{name}/sanitize", s.sanitize)
	handle("GET /local/{name}/load", s.confirmLoad)
	handle("POST /local/{name}/load", s.load)
	handle("GET /local/{name}/delete", s.confirmDeleteLocal)
	handle("POST /local/{name}/delete", s.deleteLocal)

	s.targetRoutes(handle)
	s.cloneRoutes(handle)

	handle("GET /jobs", s.jobsPage)
	handle("POST /jobs/{id}/cancel", s.cancelJob)
	handle("POST /jobs/{id}/dismiss", s.dismissJob)
	handle("GET /events", s.events)

	handle("GET /activity", s.activity)

	handle("GET /account", s.account)
	handle("POST /account/sign-in", s.needCloud(s.signIn))
	handle("POST /account/sign-in/stop", s.needCloud(s.stopSignIn))
	handle("POST /account/sign-out", s.needCloud(s.signOut))
	handle("POST /account/sessions/{id}/end", s.needCloud(s.endSession))
	handle("POST /account/keys/{id}/revoke", s.needCloud(s.revokeKey))
	handle("GET /", s.noPage)
	return mux
}

// needCloud returns a handler that fails if no cloud service is configured, and otherwise calls h.
func (s *Server) needCloud(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := s.requireCloud(); err != nil {
			return err
		}
		return h(w, r)
	}
}

// reload reads the configuration file again if another program changed it. An invalid file is an
// error for requests that change something, except those below /jobs/ and /account/, which use no
// setting. Pages show the last valid configuration, and the Targets page also shows the error.
func (s *Server) reload(r *http.Request) error {
	err := s.o.Agent.Reload()
	if r.Method == http.MethodGet || strings.HasPrefix(r.URL.Path, "/jobs/") ||
		strings.HasPrefix(r.URL.Path, "/account/") {
		return nil
	}
	return err
}

// cloneRoutes registers the Clones page and its actions.
func (s *Server) cloneRoutes(handle func(pattern string, h handler)) {
	handle("GET /clones", s.clones)
	handle("POST /clones", s.makeClone)
	handle("POST /clones/warm", s.warmClones)
	handle("GET /clones/{name}/branch", s.confirmBranch)
	handle("POST /clones/{name}/branch", s.branchClone)
	handle("GET /clones/{name}/reset", s.confirmReset)
	handle("POST /clones/{name}/reset", s.resetClone)
	handle("GET /clones/{name}/drop", s.confirmDrop)
	handle("POST /clones/{name}/drop", s.dropClone)
}

// targetRoutes registers the pages of targets and of their rules, and their actions.
func (s *Server) targetRoutes(handle func(pattern string, h handler)) {
	handle("GET /targets", s.targets)
	handle("GET /targets/new", s.newTarget)
	handle("POST /targets/new", s.saveNewTarget)
	handle("GET /targets/{name}/edit", s.editTarget)
	handle("POST /targets/{name}/edit", s.saveExistingTarget)
	handle("GET /targets/{name}/remove", s.confirmRemoveTarget)
	handle("POST /targets/{name}/remove", s.removeTarget)
	handle("POST /targets/{name}/build", s.build)
	handle("GET /targets/{name}/rules", s.reviewRules)
	handle("POST /targets/{name}/rules", s.decideRules)
	handle("POST /targets/{name}/rules/propose", s.proposeRules)
}
