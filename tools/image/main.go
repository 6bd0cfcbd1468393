// Command image builds the image of snapcloud without a container engine, as an OCI image layout
// that holds one image for each platform, the bill of materials of each, and signatures:
//
//	cd tools/image && go run . -out ../../dist/image -version v1.2.3 -key release.pem
//
// An image has the statically linked program, the certificates of golang.org/x/crypto/x509roots and
// an empty /data, and runs as user 65532. The same revision gives the same digest. The signatures
// have the form that `cosign verify --key` reads. Push the layout with `skopeo copy --all` or
// `crane push`.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	root := flags.String("root", "../..", "the repository")
	out := flags.String("out", "../../dist/image", "folder of the image layout, which must not exist")
	version := flags.String("version", "dev", "version, which becomes the image's tag")
	platforms := flags.String("platforms", "linux/amd64,linux/arm64", "platforms")
	key := flags.String("key", "",
		"Ed25519 private key in PEM (openssl genpkey -algorithm ed25519); empty does not sign")
	if err := flags.Parse(args); err != nil {
		return err
	}
	r := release{version: *version, created: commitTime(ctx, *root)}
	if *key != "" {
		private, err := readKey(*key)
		if err != nil {
			return err
		}
		r.key = private
	}
	dir, err := os.MkdirTemp("", "snapcloud-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for name := range strings.SplitSeq(*platforms, ",") {
		platform, err := v1.ParsePlatform(name)
		if err != nil {
			return err
		}
		file := filepath.Join(dir, strings.ReplaceAll(name, "/", "-"))
		if err := build(ctx, *root, *platform, file); err != nil {
			return err
		}
		r.programs = append(r.programs, program{*platform, file})
	}
	digest, err := r.write(*out)
	if err != nil {
		return err
	}
	fmt.Println(digest)
	return nil
}

// build compiles snapcloud for a platform with the toolchain that go.mod names.
func build(ctx context.Context, root string, p v1.Platform, file string) error {
	c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", file, "./cmd/snapcloud")
	c.Dir, c.Stderr = root, os.Stderr
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.OS, "GOARCH="+p.Architecture)
	if err := c.Run(); err != nil {
		return fmt.Errorf("build snapcloud for %s: %w", p, err)
	}
	return nil
}

// commitTime returns the time of the revision, so that building it again gives the same bytes. It
// returns the beginning of 1970 if git does not know the revision.
func commitTime(ctx context.Context, root string) time.Time {
	out, _ := exec.CommandContext(ctx, "git", "-C", root, "log", "-1", "--format=%ct").Output()
	seconds, _ := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	return time.Unix(seconds, 0).UTC()
}
