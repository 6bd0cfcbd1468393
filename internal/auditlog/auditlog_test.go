package auditlog_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"snap/internal/auditlog"
)

// grewFrom reports whether a proof of [auditlog.Tree.Growth] shows that the log only grew since an
// older checkpoint.
func grewFrom(now, old auditlog.Checkpoint, proof []tlog.Hash) bool {
	return tlog.CheckTree(proof, now.Size, now.Root, old.Size, old.Root) == nil
}

func key(seed string) auditlog.Key {
	sum := sha256.Sum256([]byte(seed))
	return auditlog.NewKey(ed25519.NewKeyFromSeed(sum[:]))
}

// log is a tree in memory, with the lines it was built from.
type log struct {
	auditlog.Tree
	lines []string
	nodes map[int64][]byte
	reads int
}

func build(t require, lines ...string) *log {
	l := &log{lines: lines, nodes: map[int64][]byte{}}
	l.Nodes = func(want []int64) (map[int64][]byte, error) {
		l.reads++
		out := map[int64][]byte{}
		for _, n := range want {
			out[n] = l.nodes[n]
		}
		return out, nil
	}
	for i, line := range lines {
		node, err := l.Append(int64(i), line)
		if err != nil {
			t.Fatal(err)
		}
		l.nodes[int64(i+1)] = node
	}
	l.Tree = auditlog.Tree{Nodes: l.Nodes} // from the stored nodes alone
	return l
}

type require interface{ Fatal(...any) }

func (l *log) checkpoint(t require, size int64) auditlog.Checkpoint {
	root, err := l.Root(size)
	if err != nil {
		t.Fatal(err)
	}
	return auditlog.Checkpoint{Organization: "acme", Size: size, Root: root}
}

// The stored tree and the sum of the lines agree at every size. Every line and every earlier size
// can be proved, and nothing else can.
func TestTreeProvesWhatItHolds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.StringN(0, 8, -1), 1, 70).Draw(t, "lines")
		l := build(t, lines...)
		var sum auditlog.Sum
		for _, line := range lines {
			sum.Add(line)
			if c := l.checkpoint(t, sum.Size()); c.Root != sum.Root() {
				t.Fatalf("at size %d the tree and the sum differ", sum.Size())
			}
		}
		size := int64(len(lines))
		now := l.checkpoint(t, size)
		n := rapid.Int64Range(1, size).Draw(t, "line")
		proof, err := l.Inclusion(size, n)
		if err != nil || !now.Includes(n, lines[n-1], proof) {
			t.Fatalf("line %d of %d: %v", n, size, err)
		}
		if now.Includes(n, lines[n-1]+"x", proof) || now.Includes(n+size, lines[n-1], proof) {
			t.Fatal("the proof of a line proves another one")
		}
		growth, err := l.Growth(size, n)
		old := l.checkpoint(t, n)
		if err != nil || !grewFrom(now, old, growth) {
			t.Fatalf("from %d to %d: %v", n, size, err)
		}
		old.Root[rapid.IntRange(0, 31).Draw(t, "byte")] ^= 1
		if grewFrom(now, old, growth) {
			t.Fatal("a proof shows growth from a log with another root")
		}
	})
}

// A stored tree without some of its nodes returns an error.
func TestDamagedTree(t *testing.T) {
	t.Parallel()
	l := build(t, "a", "b", "c")
	l.nodes[2] = l.nodes[2][:tlog.HashSize]
	if _, err := l.Root(3); !errors.Is(err, auditlog.ErrDamaged) {
		t.Errorf("a node that is cut off: %v", err)
	}
}

// A checkpoint opens only for its organization and with its key. If any byte is changed, it does
// not open as another checkpoint.
func TestCheckpointIsSigned(t *testing.T) {
	t.Parallel()
	service := key("service")
	want := build(t, "a", "b", "c").checkpoint(t, 3)
	signed, err := service.Sign(want)
	if err != nil {
		t.Fatal(err)
	}
	verifier := service.Verifier("acme")
	if got, err := auditlog.Open(signed, "acme", verifier); err != nil || got != want {
		t.Fatalf("%+v, %v", got, err)
	}
	if got, err := auditlog.Read(signed); err != nil || got != want {
		t.Errorf("read without a key: %+v, %v", got, err)
	}
	for name, open := range map[string]func() (auditlog.Checkpoint, error){
		"another key": func() (auditlog.Checkpoint, error) {
			return auditlog.Open(signed, "acme", key("another").Verifier("acme"))
		},
		"another organization": func() (auditlog.Checkpoint, error) {
			return auditlog.Open(signed, "globex", service.Verifier("globex"))
		},
		"another organization's key": func() (auditlog.Checkpoint, error) {
			return auditlog.Open(signed, "globex", verifier)
		},
		"no key": func() (auditlog.Checkpoint, error) { return auditlog.Open(signed, "acme", "") },
	} {
		if c, err := open(); err == nil {
			t.Errorf("%s opened %+v", name, c)
		}
	}
	for i := range signed {
		bent := signed[:i] + string(signed[i]^1) + signed[i+1:]
		if c, err := auditlog.Open(bent, "acme", verifier); err == nil && c != want {
			t.Fatalf("byte %d changed: %+v", i, c)
		}
	}
	for _, text := range []string{"", "snapcloud/acme\n3\n", "x", strings.Replace(signed, "\n3\n", "\n03\n", 1),
		strings.Replace(signed, "\n3\n", "\n-3\n", 1), strings.Replace(signed, "snapcloud/", "other/", 1)} {
		if c, err := auditlog.Read(text); err == nil {
			t.Errorf("%q is read as %+v", text, c)
		}
	}
}

// Appending to a large tree reads one frontier, not the tree.
func TestAppendReadsTheFrontierOnce(t *testing.T) {
	t.Parallel()
	var lines []string
	for i := range 1000 {
		lines = append(lines, fmt.Sprint(i))
	}
	l := build(t, lines...)
	l.reads = 0
	if _, err := l.Root(1000); err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		if _, err := l.Append(int64(1000+i), "more"); err != nil {
			t.Fatal(err)
		}
	}
	if l.reads != 1 {
		t.Errorf("%d reads", l.reads)
	}
}
