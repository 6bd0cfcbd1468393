package look

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

//go:embed assets
var files embed.FS

// Files returns the shared assets, such as the stylesheet and the icon.
func Files() fs.FS {
	sub, err := fs.Sub(files, "assets")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	return sub
}

// Assets serves files under names that contain a hash of their content, so that browsers can cache
// them forever and still see every change.
type Assets struct {
	prefix string
	urls   map[string]string // plain name to URL
	files  map[string]asset  // hashed name to content
}

type asset struct {
	name   string
	data   []byte
	zipped func() []byte // the data in gzip, made at the first call
}

// NewAssets reads every file at the top level of the given file systems. A file in a later file
// system replaces a file of the same name in an earlier one. prefix is the path below which the
// assets are served, such as "/assets/". An ES module may import another asset as "./name.js":
// NewAssets inserts the hashed name, so modules must not import each other in a cycle. It panics if
// a file cannot be read, because the files are part of the program.
func NewAssets(prefix string, from ...fs.FS) *Assets {
	a := &Assets{prefix: prefix, urls: map[string]string{}, files: map[string]asset{}}
	content := map[string][]byte{}
	for _, fsys := range from {
		names, err := fs.Glob(fsys, "*")
		if err != nil {
			panic(err)
		}
		for _, name := range names {
			data, err := fs.ReadFile(fsys, name)
			if err != nil {
				panic(err)
			}
			content[name] = data
		}
	}
	for name := range content {
		a.add(name, content)
	}
	return a
}

// add hashes a file, after the modules that it imports.
func (a *Assets) add(name string, content map[string][]byte) string {
	if url, done := a.urls[name]; done {
		return path.Base(url)
	}
	data := content[name]
	if path.Ext(name) == ".js" {
		for other := range content {
			quoted := []byte(`"./` + other + `"`)
			if other != name && bytes.Contains(data, quoted) {
				data = bytes.ReplaceAll(data, quoted, []byte(`"./`+a.add(other, content)+`"`))
			}
		}
	}
	sum := sha256.Sum256(data)
	ext := path.Ext(name)
	hashed := strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:6]) + ext
	a.urls[name] = a.prefix + hashed
	a.files[hashed] = asset{name: name, data: data, zipped: sync.OnceValue(func() []byte { return zip(data) })}
	return hashed
}

// zip compresses a file. The files are the same for everybody, so their compressed sizes reveal
// nothing. The console sends its pages uncompressed over the network, because the size of a
// compressed page would reveal parts of its secrets.
func zip(data []byte) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(err) // the level is valid, and a buffer accepts everything
	}
	return b.Bytes()
}

// URL returns the URL path of a file given its plain name. It panics if the file does not exist,
// which a test of the templates detects.
func (a *Assets) URL(name string) string {
	url, ok := a.urls[name]
	if !ok {
		panic("look: no asset " + name)
	}
	return url
}

// ServeHTTP serves the assets below the prefix.
func (a *Assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, ok := a.files[strings.TrimPrefix(r.URL.Path, a.prefix)]
	if !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	if kind := mime.TypeByExtension(path.Ext(f.name)); kind != "" {
		h.Set("Content-Type", kind)
	}
	h.Set("Vary", "Accept-Encoding")
	data := f.data
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		data = f.zipped()
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}
