package main

import (
	"archive/tar"
	"bytes"
	"crypto/ed25519"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// program is snapcloud for one platform.
type program struct {
	platform v1.Platform
	file     string
}

// release describes the contents of the image layout.
type release struct {
	version  string
	created  time.Time
	programs []program
	key      ed25519.PrivateKey // nil means that nothing is signed
}

const (
	user       = 65532
	refName    = "org.opencontainers.image.ref.name"
	sbomType   = "application/vnd.cyclonedx+json"
	signedType = "application/vnd.dev.cosign.simplesigning.v1+json"
)

// write writes the layout and returns the digest of the index, which a deployment pins.
func (r release) write(dir string) (v1.Hash, error) {
	if _, err := os.Stat(dir); err == nil {
		return v1.Hash{}, fmt.Errorf("%s exists", dir)
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var boms []v1.Image
	for _, p := range r.programs {
		image, err := r.image(p)
		if err != nil {
			return v1.Hash{}, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image,
			Descriptor: v1.Descriptor{Platform: &p.platform}})
		bom, err := r.bom(p, image)
		if err != nil {
			return v1.Hash{}, err
		}
		boms = append(boms, bom)
	}
	digest, err := index.Digest()
	if err != nil {
		return v1.Hash{}, err
	}
	to, err := layout.Write(dir, empty.Index)
	if err != nil {
		return v1.Hash{}, err
	}
	if err := to.AppendIndex(index, layout.WithAnnotations(map[string]string{refName: r.version})); err != nil {
		return v1.Hash{}, err
	}
	digests := []v1.Hash{digest}
	for _, bom := range boms {
		if err := to.AppendImage(bom); err != nil {
			return v1.Hash{}, err
		}
		bomDigest, err := bom.Digest()
		if err != nil {
			return v1.Hash{}, err
		}
		digests = append(digests, bomDigest)
	}
	return digest, r.sign(to, digests)
}

// sign adds the signatures of digests to the layout, if there is a key.
func (r release) sign(to layout.Path, digests []v1.Hash) error {
	if r.key == nil {
		return nil
	}
	for _, digest := range digests {
		signature, err := r.signature(digest)
		if err != nil {
			return err
		}
		// The name by which cosign finds the signature of an image.
		name := digest.Algorithm + "-" + digest.Hex + ".sig"
		if err := to.AppendImage(signature, layout.WithAnnotations(map[string]string{refName: name})); err != nil {
			return err
		}
	}
	return nil
}

// image returns the image of a program, which has one layer.
func (r release) image(p program) (v1.Image, error) {
	content, err := r.layer(p)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(base, mutate.Addendum{Layer: layer, History: v1.History{
		Created: v1.Time{Time: r.created}, CreatedBy: "tools/image"}})
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(image, r.config(p, image))
}

func (r release) config(p program, image v1.Image) *v1.ConfigFile {
	c, err := image.ConfigFile()
	if err != nil {
		panic(err) // cannot happen: the image is in memory
	}
	c = c.DeepCopy()
	c.OS, c.Architecture, c.Variant, c.Created = p.platform.OS, p.platform.Architecture, p.platform.Variant,
		v1.Time{Time: r.created}
	c.Config = v1.Config{
		User:         fmt.Sprintf("%d:%d", user, user),
		Env:          []string{"SNAPCLOUD_LISTEN=0.0.0.0:8080", "SNAPCLOUD_DATA_DIR=/data", "TMPDIR=/data"},
		Entrypoint:   []string{"/snapcloud"},
		Cmd:          []string{"serve", "--config", "/etc/snapcloud/snapcloud.yaml"},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		Volumes:      map[string]struct{}{"/data": {}},
		WorkingDir:   "/",
		Labels:       map[string]string{"org.opencontainers.image.version": r.version},
	}
	return c
}

// layer returns the files of an image as a tar archive. Group 0 may write to /data, because
// OpenShift runs containers as any user in group 0.
func (r release) layer(p program) ([]byte, error) {
	binary, err := os.ReadFile(p.file)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range []struct {
		tar.Header
		content []byte
	}{
		{tar.Header{Name: "data/", Typeflag: tar.TypeDir, Mode: 0o770, Uid: user}, nil},
		{tar.Header{Name: "etc/", Typeflag: tar.TypeDir, Mode: 0o755}, nil},
		{tar.Header{Name: "etc/ssl/", Typeflag: tar.TypeDir, Mode: 0o755}, nil},
		{tar.Header{Name: "etc/ssl/certs/", Typeflag: tar.TypeDir, Mode: 0o755}, nil},
		{tar.Header{Name: "etc/ssl/certs/ca-certificates.crt", Typeflag: tar.TypeReg, Mode: 0o444}, certificates()},
		{tar.Header{Name: "snapcloud", Typeflag: tar.TypeReg, Mode: 0o555}, binary},
	} {
		f.Size, f.ModTime, f.Format = int64(len(f.content)), r.created, tar.FormatPAX
		if err := w.WriteHeader(&f.Header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	err = w.Close()
	return out.Bytes(), err
}

// certificates returns the authorities that Mozilla trusts without further constraints, as PEM.
func certificates() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return out.Bytes()
}
