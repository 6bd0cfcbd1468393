package transfer

import (
	"fmt"
	"net/url"

	"snap"
)

// mayUse refuses an address to which bytes, and the permission in the URL,
// would travel in clear: plain http, but to this machine or when Plain is set.
func (o Options) mayUse(rawURL string) error {
	u, err := url.Parse(rawURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return &snap.Error{Code: snap.CodeInternal, Detail: "the service names an address of the storage that cannot be used", Hint: "tell who runs the service"}
	}
	if u.Scheme == "https" || o.Plain || snap.IsLoopback(u.Hostname()) {
		return nil
	}
	return snap.Usage(fmt.Sprintf("the service keeps its bytes at http://%s, which is not encrypted: they would travel in clear", u.Host),
		"ask who runs the service to give the storage https; if you trust the network in between, set cloud.plain_storage: true, or SNAPCLI_CLOUD__PLAIN_STORAGE=true")
}
