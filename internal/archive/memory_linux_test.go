package archive

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"snap"
	"snap/internal/servertest"
)

// Reading a manifest from elsewhere never takes 100 MiB more than reading an ordinary one. Each of
// these manifests has a correct checksum.
func TestHostileManifestsTakeLittleMemory(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	reader := unwatched(t)
	base, _ := readElsewhere(t, reader, `"tables":[]`, "", "")
	columns := strings.Repeat("{},", 20_000) + "{}"
	const most = 100 // MiB
	for name, m := range map[string]struct{ before, repeated, after string }{
		"tables":              {`"tables":[`, `{},`, `{}]`},
		"columns of a table":  {`"tables":[{"columns":[`, `{},`, `{}]}]`},
		"columns of many":     {`"tables":[`, `{"columns":[` + columns + `]},`, `{}]`},
		"described tables":    {`"schema":{"tables":[`, `{},`, `{}]}`},
		"described columns":   {`"schema":{"tables":[`, `{"columns":[` + columns + `]},`, `{}]}`},
		"programs":            {`"schema":{"programs":[`, `{},`, `{}]}`},
		"nested expressions":  {`"schema":{"domains":[{"default":`, `{"args":[`, ``},
		"labels":              {`"schema":{"enums":[{"labels":[`, `"",`, `""]}]}`},
		"one long name":       {`"tables":[{"name":"`, `aaaaaaaaaaaaaaaa`, `"}]`},
		"properties":          {`"properties":{"a":""`, `,"aaaaaaaaaaaaaaaa":"a"`, `}`},
		"unknown":             {`"unknown":[`, `{},`, `{}]`},
		"the same list twice": {`"tables":[`, `{"name":"t"}],"tables":[`, `]`},
		"another case":        {`"Tables":[`, `{},`, `{}]`},
		"keys":                {`"a":0`, `,"a":0`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			peak, said := readElsewhere(t, reader, m.before, m.repeated, m.after)
			t.Logf("%d MiB, an empty one takes %d: %s", peak, base, said)
			if peak > base+most {
				t.Errorf("reading took %d MiB, an empty one takes %d", peak, base)
			}
		})
	}
}

// unwatched returns this package's test program without the race detector, which would multiply the
// memory and the time of a reader.
func unwatched(t *testing.T) string {
	t.Helper()
	if !servertest.Raced() {
		return os.Args[0]
	}
	program := filepath.Join(t.TempDir(), "reader")
	// With the flags of `make build`, most of it is compiled already.
	build := exec.Command("go", "test", "-c", "-trimpath", "-vet=off", "-ldflags", "-s -w", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// readElsewhere writes a file whose manifest repeats a piece up to 12 MiB. It reads the file in
// another process, which runs the program at the path reader, and returns the MiB that this process
// used at its peak, and what Open returned there.
func readElsewhere(t *testing.T, reader, before, repeated, after string) (peak int, said string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hostile.snap")
	writeManifest(t, path, before, repeated, after)
	cmd := exec.Command(reader, "-test.run=^TestReadOne$")
	cmd.Env = append(os.Environ(), "SNAP_TEST_READ="+path)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	first, rest, _ := strings.Cut(string(out), "\n")
	if _, err := fmt.Sscanf(first, "%d", &peak); err != nil {
		t.Fatalf("%q", out)
	}
	said, _, _ = strings.Cut(rest, "\n")
	return peak, said
}

// TestReadOne is the part that readElsewhere runs in another process.
func TestReadOne(t *testing.T) {
	path := os.Getenv("SNAP_TEST_READ")
	if path == "" {
		t.Skip("it is started by TestHostileManifestsTakeLittleMemory")
	}
	_, err := Open(path)
	status, _ := os.ReadFile("/proc/self/status")
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	var kib int
	if _, scanned := fmt.Sscanf(after, "%d", &kib); scanned != nil {
		t.Fatal(scanned)
	}
	fmt.Printf("%d\n%v\n", kib>>10, err)
	if err != nil && snap.CodeOf(err) != snap.CodeCorrupt {
		t.Error(err)
	}
}

func writeManifest(t *testing.T, path, before, repeated, after string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	buffered, sum := bufio.NewWriter(file), sha256.New()
	if _, err := buffered.Write(header(Format)); err != nil {
		t.Fatal(err)
	}
	length := 0
	write := func(s string) {
		length += len(s)
		if _, err := io.WriteString(io.MultiWriter(buffered, sum), s); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"format":3,"engine":"sqlite","type":"snapshot","name":"n",` +
		`"created":"2026-01-01T00:00:00Z","sections":[],` + before)
	if repeated != "" {
		piece := strings.Repeat(repeated, 1+64<<10/len(repeated))
		for length+len(piece) < 12<<20 {
			write(piece)
		}
	}
	write(after + "}")
	foot := footer{offset: headerSize, length: uint64(length), sum: [sha256.Size]byte(sum.Sum(nil))}
	if _, err := buffered.Write(foot.bytes()); err != nil {
		t.Fatal(err)
	}
	if err := buffered.Flush(); err != nil {
		t.Fatal(err)
	}
}
