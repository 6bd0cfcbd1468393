// Command dex is Dex with one connector, for the tests. The accounts and their groups are in the
// environment variable CLAIMS, and any password is accepted. It prints its issuer and knows the
// client snapcloud.
package main

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/dexidp/dex/connector"
	"github.com/dexidp/dex/server"
	"github.com/dexidp/dex/storage"
	"github.com/dexidp/dex/storage/memory"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
)

// web is the folder of Dex's pages; the Makefile sets it.
var web string

// people is a connector: accounts by name.
type people map[string]struct {
	Groups []string `json:"groups"`
}

func (people) Prompt() string { return "Username" }

func (p people) Login(_ context.Context, s connector.Scopes, name, _ string) (connector.Identity, bool, error) {
	account, known := p[name]
	id := connector.Identity{UserID: name, Username: name, Email: name + "@acme.test", EmailVerified: true}
	if s.Groups {
		id.Groups = account.Groups
	}
	return id, known, nil
}

func (p people) Open(string, logrus.FieldLogger) (connector.Connector, error) { return p, nil }

func main() {
	var all people
	if err := json.Unmarshal([]byte(os.Getenv("CLAIMS")), &all); err != nil {
		log.Fatal(err)
	}
	server.ConnectorsConfig["people"] = func() server.ConnectorConfig { return all }
	logger := logrus.New()
	store := memory.New(logger)
	if err := store.CreateConnector(storage.Connector{ID: "people", Type: "people", Name: "People"}); err != nil {
		log.Fatal(err)
	}
	client := storage.Client{ID: "snapcloud", Secret: os.Getenv("SECRET"), Name: "snapcloud",
		RedirectURIs: []string{os.Getenv("REDIRECT")}}
	if err := store.CreateClient(client); err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	issuer := "http://" + listener.Addr().String()
	s, err := server.NewServer(context.Background(), server.Config{
		Issuer: issuer, Storage: store, Logger: logger, SkipApprovalScreen: true,
		IDTokensValidFor: time.Hour, PrometheusRegistry: prometheus.NewRegistry(), Web: server.WebConfig{Dir: web},
	})
	if err != nil {
		log.Fatal(err)
	}
	io.WriteString(os.Stdout, issuer+"\n")
	log.Fatal(http.Serve(listener, s))
}
