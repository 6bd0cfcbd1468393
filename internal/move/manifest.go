package move

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"time"

	"snap"
	"snap/internal/store"
)

// Names within the folder of backups.
//
//	lock                             held by the process that writes here
//	blobs/                           the objects of all backups, each stored once, as in the service's folder
//	20261121T041500.000Z/            one complete backup, renamed into place when it was finished
//	20261121T041500.000Z/snapcloud.db
//	20261121T041500.000Z/manifest    a list of its files and objects, with checksums
const (
	databaseFile = "snapcloud.db"
	manifestFile = "manifest"
	blobsDir     = "blobs"
	lockFile     = "lock"
	newPrefix    = ".new-"
	oldPrefix    = ".old-"
	nameFormat   = "20060102T150405.000Z"
)

// format is the version of a backup's layout, as the manifest's first line states it.
const format = 1

// Backup is one backup.
type Backup struct {
	Name       string    `json:"name"`
	Created    time.Time `json:"created_at"`
	Version    string    `json:"version"` // of the program that made it
	Objects    int64     `json:"objects"`
	Bytes      int64     `json:"bytes"`     // of the objects
	Database   int64     `json:"database"`  // bytes of the database
	Added      int64     `json:"new"`       // objects that the last round of the run copied
	AddedBytes int64     `json:"new_bytes"` // bytes of these objects
}

// head is a manifest's first line and tail its last. Each line between them describes one object.
type head struct {
	Format   int       `json:"format"`
	Created  time.Time `json:"created_at"`
	Version  string    `json:"version"`
	Database fileSum   `json:"database"`
}

type fileSum struct {
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

type objectLine struct {
	Key    string `json:"key"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

type tail struct {
	Objects    int64  `json:"objects"`
	Bytes      int64  `json:"bytes"`
	Added      int64  `json:"new"`
	AddedBytes int64  `json:"new_bytes"`
	SHA256     string `json:"sha256"` // of all previous lines
}

// manifestWriter writes a manifest, line by line.
type manifestWriter struct {
	file *os.File
	sum  hash.Hash
	buf  *bufio.Writer
	tail tail
}

func newManifest(dir string, h head) (*manifestWriter, error) {
	file, err := os.OpenFile(filepath.Join(dir, manifestFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	m := &manifestWriter{file: file, sum: sha256.New(), buf: bufio.NewWriter(file)}
	return m, m.line(h)
}

func (m *manifestWriter) line(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	m.sum.Write(text)
	_, err = m.buf.Write(text)
	return err
}

func (m *manifestWriter) object(o store.Object) error {
	m.tail.Objects++
	m.tail.Bytes += o.Size
	return m.line(objectLine(o))
}

func (m *manifestWriter) close() error {
	m.tail.SHA256 = hex.EncodeToString(m.sum.Sum(nil))
	err := m.line(m.tail)
	return errors.Join(err, m.buf.Flush(), m.file.Sync(), m.file.Close())
}

// readManifest reads a backup's manifest and calls object, unless it is nil, for each object. It
// fails with code corrupt_snapshot if the manifest is incomplete or damaged.
func readManifest(dir, name string, object func(store.Object) error) (b Backup, h head, err error) {
	file, err := os.Open(filepath.Join(dir, name, manifestFile))
	if err != nil {
		return b, h, err
	}
	defer file.Close()
	lines := bufio.NewReader(file)
	broken := func(why string) error {
		return &snap.Error{Code: snap.CodeCorrupt,
			Detail: fmt.Sprintf("the manifest of the backup %s is damaged: %s", name, why),
			Hint:   useAnother(dir)}
	}
	first, err := lines.ReadBytes('\n')
	if err != nil || json.Unmarshal(first, &h) != nil || h.Format != format {
		return b, h, broken("its format is unknown to this version")
	}
	sum := sha256.New()
	sum.Write(first)
	var last []byte
	var objects, bytes int64
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			break
		}
		if err != nil {
			return b, h, broken("it is truncated")
		}
		if last != nil {
			sum.Write(last)
			var o objectLine
			if err := decodeStrict(last, &o); err != nil {
				return b, h, broken("a line does not name an object")
			}
			objects, bytes = objects+1, bytes+o.Size
			if object != nil {
				if err := object(store.Object(o)); err != nil {
					return b, h, err
				}
			}
		}
		last = line
	}
	var t tail
	if err := decodeStrict(last, &t); err != nil || t.SHA256 != hex.EncodeToString(sum.Sum(nil)) ||
		t.Objects != objects || t.Bytes != bytes {
		return b, h, broken("its checksum is wrong")
	}
	return Backup{
		Name: name, Created: h.Created, Version: h.Version, Objects: t.Objects, Bytes: t.Bytes,
		Database: h.Database.Size, Added: t.Added, AddedBytes: t.AddedBytes,
	}, h, nil
}

func decodeStrict(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

// sumFile returns a file's size and SHA-256.
func sumFile(path string) (s fileSum, err error) {
	file, err := os.Open(path)
	if err != nil {
		return s, err
	}
	defer file.Close()
	h := sha256.New()
	s.Size, err = io.Copy(h, file)
	s.SHA256 = hex.EncodeToString(h.Sum(nil))
	return s, err
}
