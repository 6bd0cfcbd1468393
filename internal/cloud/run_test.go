package cloud_test

import (
	"context"
	"net"
	"testing"
	"time"

	"snap/internal/cloud"
)

// A stop while the service starts, for example during its first migrations, is no failure.
func TestStopWhileStarting(t *testing.T) {
	t.Parallel()
	config, err := cloud.LoadConfig("", []string{"SNAPCLOUD_LISTEN=127.0.0.1:0", "SNAPCLOUD_DATA_DIR=" + t.TempDir()})
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	o := cloud.Options{Now: func() time.Time { stop(); return time.Now() }}
	if err := cloud.Run(ctx, config, o, func(net.Addr) { t.Error("the service is ready") }); err != nil {
		t.Error(err)
	}
}
