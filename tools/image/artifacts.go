package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"os"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

var errKey = errors.New("the key is not an Ed25519 private key in PEM")

// readKey reads an Ed25519 private key.
func readKey(file string) (ed25519.PrivateKey, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errKey
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, is := parsed.(ed25519.PrivateKey)
	if err != nil || !is {
		return nil, errKey
	}
	return key, nil
}

// bom returns the bill of materials of a program as an artifact that refers to its image.
func (r release) bom(p program, image v1.Image) (v1.Image, error) {
	text, err := r.modules(p.file)
	if err != nil {
		return nil, err
	}
	subject, err := partial.Descriptor(image)
	if err != nil {
		return nil, err
	}
	bom, err := artifact(text, sbomType, nil)
	if err != nil {
		return nil, err
	}
	refers, is := mutate.Subject(bom, *subject).(v1.Image)
	if !is {
		return nil, errors.New("the bill of materials cannot be linked to its image")
	}
	return refers, nil
}

// modules returns the modules that a program was built from, in CycloneDX format. Go records them
// in the program.
func (r release) modules(file string) ([]byte, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, err
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: r.created.Format(time.RFC3339),
		Component: &cdx.Component{Type: cdx.ComponentTypeApplication, Name: "snapcloud", Version: r.version}}
	components := []cdx.Component{{Type: cdx.ComponentTypeLibrary, Name: "std", Version: info.GoVersion,
		PackageURL: "pkg:golang/std@" + info.GoVersion}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		components = append(components, cdx.Component{Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version,
			PackageURL: "pkg:golang/" + m.Path + "@" + m.Version})
	}
	bom.Components = &components
	var out bytes.Buffer
	err = cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	return out.Bytes(), err
}

// signature returns an artifact with the signature of a digest, in cosign's format.
func (r release) signature(digest v1.Hash) (v1.Image, error) {
	var payload struct {
		Critical struct {
			Identity struct {
				Reference string `json:"docker-reference"`
			} `json:"identity"`
			Image struct {
				Digest string `json:"docker-manifest-digest"`
			} `json:"image"`
			Type string `json:"type"`
		} `json:"critical"`
		Optional map[string]string `json:"optional"`
	}
	payload.Critical.Image.Digest = digest.String()
	payload.Critical.Type = "cosign container image signature"
	payload.Optional = map[string]string{"version": r.version}
	text, err := json.Marshal(payload)
	if err != nil {
		return nil, err
	}
	signed := base64.StdEncoding.EncodeToString(ed25519.Sign(r.key, text))
	return artifact(text, signedType, map[string]string{"dev.cosignproject.cosign/signature": signed})
}

// artifact returns an image whose only layer is this content.
func artifact(content []byte, kind types.MediaType, annotations map[string]string) (v1.Image, error) {
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	return mutate.Append(base, mutate.Addendum{Layer: static.NewLayer(content, kind), Annotations: annotations})
}
