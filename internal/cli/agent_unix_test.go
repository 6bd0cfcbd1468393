//go:build unix

package cli

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// The agent keeps running when the program that reads its output has ended.
func TestAgentOutlivesItsReader(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := "targets:\n  broken: {schedule: never}\n  shop: {schedule: '17 3 * * *'}\n"
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	reader.Close()
	cmd := exec.Command("snapcli", "agent", "--json")
	cmd.Env = append(os.Environ(), "SNAPCLI_CONFIG_DIR="+dir, "SNAPCLI_DATA_DIR="+dir)
	cmd.Stdout = writer
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for { // the agent reports the bad schedule before it writes the record of the other target
		_, err := os.Stat(filepath.Join(dir, "agent", "shop.json"))
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		select {
		case <-again.C:
		case err := <-ended:
			t.Fatalf("the agent ended: %v", err)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	<-ended
}
