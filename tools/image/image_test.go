package main

import (
	"archive/tar"
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// TestImage builds the real program for this machine and a small one for another platform, writes
// the layout twice, and uses its content: the program runs, the certificates parse, the bill of
// materials lists the program's modules, and the signatures are those of the index and of the
// bills.
func TestImage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	here := v1.Platform{OS: "linux", Architecture: runtime.GOARCH}
	others := map[string]string{"amd64": "arm64", "arm64": "amd64"}
	there := v1.Platform{OS: "linux", Architecture: others[runtime.GOARCH]}
	real, other := filepath.Join(dir, "real"), filepath.Join(dir, "other")
	if err := build(t.Context(), "../..", here, real); err != nil {
		t.Fatal(err)
	}
	compileSmall(t, dir, there.Architecture, other)
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	r := release{version: "v1.2.3", created: time.Unix(1_780_000_000, 0).UTC(), key: private,
		programs: []program{{here, real}, {there, other}}}
	out := filepath.Join(dir, "layout")
	digest, err := r.write(out)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := r.write(filepath.Join(dir, "again")); err != nil || again != digest {
		t.Errorf("built again, the digest is %s and was %s, %v", again, digest, err)
	}
	if _, err := r.write(out); err == nil {
		t.Error("a layout was written over another one")
	}
	all, err := layout.ImageIndexFromPath(out)
	if err != nil {
		t.Fatal(err)
	}
	index, err := all.ImageIndex(digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 2 || manifest.Manifests[0].Platform.Architecture != here.Architecture ||
		manifest.Manifests[1].Platform.Architecture != there.Architecture {
		t.Fatalf("the index is %+v, %v", manifest, err)
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	checkFiles(t, image)
	checkAttached(t, all, manifest.Manifests[0].Digest, digest, public)
}

func compileSmall(t *testing.T, dir, arch, file string) {
	t.Helper()
	source := filepath.Join(dir, "small.go")
	if err := os.WriteFile(source, []byte("package main\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "go", "build", "-o", file, source)
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	if said, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
}

// checkFiles extracts an image and runs its program.
func checkFiles(t *testing.T, image v1.Image) {
	t.Helper()
	files := map[string][]byte{}
	r := mutate.Extract(image)
	defer r.Close()
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = content
		if h.Name == "data/" && (h.Uid != user || h.Gid != 0 || h.Mode != 0o770) {
			t.Errorf("/data is %+v", h)
		}
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(files["etc/ssl/certs/ca-certificates.crt"]) {
		t.Error("there are no certificates")
	}
	block, rest := pem.Decode(files["etc/ssl/certs/ca-certificates.crt"])
	if block == nil || len(rest) < 50_000 {
		t.Errorf("only %d bytes of certificates", len(rest))
	}
	c, err := image.ConfigFile()
	if err != nil || c.Config.User != "65532:65532" || c.Config.Entrypoint[0] != "/snapcloud" ||
		!slices.Contains(c.Config.Env, "TMPDIR=/data") {
		t.Fatalf("%+v, %v", c, err)
	}
	extracted := filepath.Join(t.TempDir(), "snapcloud")
	if err := os.WriteFile(extracted, files["snapcloud"], 0o700); err != nil {
		t.Fatal(err)
	}
	said, err := exec.CommandContext(t.Context(), extracted, "version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(said), "snapcloud ") {
		t.Errorf("the program says %s, %v", said, err)
	}
}

// checkAttached finds the bill of materials of an image, and the signatures of the index and of
// both bills.
func checkAttached(t *testing.T, all v1.ImageIndex, image, index v1.Hash, public ed25519.PublicKey) {
	t.Helper()
	manifest, err := all.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	boms, signatures, verify := map[v1.Hash]bool{}, map[string][]byte{}, verifier(t, public)
	for _, d := range manifest.Manifests {
		if d.MediaType.IsIndex() {
			continue
		}
		attached, err := all.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		m, err := attached.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		content := layerOf(t, attached)
		if m.Subject == nil {
			text := m.Layers[0].Annotations["dev.cosignproject.cosign/signature"]
			signed, err := base64.StdEncoding.DecodeString(text)
			if err != nil || !verify(content, signed) {
				t.Errorf("the signature %s of %s is wrong, %v", signed, content, err)
			}
			if verify(bytes.Replace(content, []byte("sha256:"), []byte("sha256:0"), 1), signed) {
				t.Error("the signature is right for another digest")
			}
			signatures[d.Annotations[refName]] = content
			continue
		}
		boms[d.Digest] = true
		var bom cdx.BOM
		err = cdx.NewBOMDecoder(bytes.NewReader(content), cdx.BOMFileFormatJSON).Decode(&bom)
		if m.Subject.Digest == image && (err != nil || len(*bom.Components) < 30 ||
			!bytes.Contains(content, []byte("pkg:golang/github.com/jackc/pgx/v5@v5."))) {
			t.Errorf("the bill of materials is %s, %v", content, err)
		}
	}
	if len(boms) != 2 || len(signatures) != 3 {
		t.Errorf("%d bills of materials and %d signatures", len(boms), len(signatures))
	}
	boms[index] = true
	for digest := range boms {
		name := digest.Algorithm + "-" + digest.Hex + ".sig"
		var payload struct {
			Critical struct {
				Image struct {
					Digest string `json:"docker-manifest-digest"`
				} `json:"image"`
				Type string `json:"type"`
			} `json:"critical"`
		}
		if err := json.Unmarshal(signatures[name], &payload); err != nil ||
			payload.Critical.Image.Digest != digest.String() ||
			payload.Critical.Type != "cosign container image signature" {
			t.Errorf("%s is %s, %v", name, signatures[name], err)
		}
	}
}

// verifier returns a function that checks signatures with OpenSSL, which shares no code with the
// program that made them. Without OpenSSL 3, the function uses Go's library.
func verifier(t *testing.T, public ed25519.PublicKey) func(content, signature []byte) bool {
	t.Helper()
	said, err := exec.CommandContext(t.Context(), "openssl", "version").CombinedOutput()
	if err != nil || !bytes.HasPrefix(said, []byte("OpenSSL 3")) {
		t.Logf("the signatures are checked by Go alone: there is no OpenSSL 3: %s %v", said, err)
		return func(content, signature []byte) bool { return ed25519.Verify(public, content, signature) }
	}
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	key := write("key.pem", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	return func(content, signature []byte) bool {
		said, err := exec.CommandContext(t.Context(), "openssl", "pkeyutl", "-verify", "-pubin", "-inkey", key,
			"-rawin", "-in", write("payload", content), "-sigfile", write("signature", signature)).CombinedOutput()
		return err == nil && bytes.Contains(said, []byte("Signature Verified Successfully"))
	}
}

func layerOf(t *testing.T, image v1.Image) []byte {
	t.Helper()
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	r, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	content, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
