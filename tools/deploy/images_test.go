package deploy_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// TestDockerfile checks with Docker's own parser and linter that the image is built without cgo and
// from scratch, does not run as root, and has no shell.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	file, err := parser.Parse(strings.NewReader(read(t, "deploy/Dockerfile")))
	if err != nil {
		t.Fatal(err)
	}
	for _, warning := range file.Warnings {
		t.Errorf("%s", warning.Short)
	}
	lint := linter.New(&linter.Config{Warn: func(name, _, _, message string,
		_ []parser.Range) {
		t.Errorf("%s: %s", name, message)
	}})
	stages, _, err := instructions.Parse(file.AST, lint)
	if err != nil {
		t.Fatal(err)
	}
	for _, stage := range stages {
		if image, tag, _ := strings.Cut(stage.BaseName, ":"); image != "scratch" && (tag == "" || tag == "latest") {
			t.Errorf("the base image %s is not of a fixed version", stage.BaseName)
		}
	}
	last := stages[len(stages)-1]
	if last.BaseName != "scratch" {
		t.Errorf("the image is made from %s and not from scratch", last.BaseName)
	}
	var user, entry string
	copied, env := map[string]bool{}, map[string]string{}
	for _, command := range last.Commands {
		switch c := command.(type) {
		case *instructions.UserCommand:
			user = c.User
		case *instructions.EntrypointCommand:
			if c.PrependShell {
				t.Error("the entry point is run by a shell, and there is none")
			}
			entry = strings.Join(c.CmdLine, " ")
		case *instructions.CmdCommand:
			if c.PrependShell {
				t.Error("the command is run by a shell, and there is none")
			}
		case *instructions.CopyCommand:
			copied[c.DestPath] = true
			if c.DestPath == "/data" && (c.Chown != "65532:0" || c.Chmod != "770") {
				t.Errorf("/data belongs to %s with mode %s, so users in group 0 cannot write to it", c.Chown,
					c.Chmod)
			}
			if c.From == "" {
				t.Errorf("%v comes from the build's folder, and not from a stage", c.SourcePaths)
			}
		case *instructions.EnvCommand:
			for _, e := range c.Env {
				env[e.Key] = e.Value
			}
		case *instructions.RunCommand:
			t.Error("something is run in a stage from scratch")
		}
	}
	if uid, _, _ := strings.Cut(user, ":"); uid == "" || uid == "0" || uid == "root" ||
		strings.Trim(uid, "0123456789") != "" {
		t.Errorf("the program runs as %q; Kubernetes can only tell from a number that it is not root", user)
	}
	if entry != "/snapcloud" || !copied[entry] || !copied["/data"] {
		t.Errorf("the entry point is %q, and the copied paths are %v", entry, copied)
	}
	if env["TMPDIR"] != "/data" {
		t.Errorf("the folder for temporary files is %q, and the program can write only to /data", env["TMPDIR"])
	}
	if build := read(t, "deploy/Dockerfile"); !strings.Contains(build, "CGO_ENABLED=0") ||
		!strings.Contains(build, "-trimpath") {
		t.Error("the program is not static, or knows where it was built")
	}
}

// TestCompose loads the compose file as Compose does, strictly.
func TestCompose(t *testing.T) {
	t.Parallel()
	options, err := cli.NewProjectOptions([]string{filepath.Join(root, "deploy/compose/compose.yaml")},
		cli.WithResolvedPaths(true))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"postgres", "storage", "idp", "snapcloud"} {
		if _, err := project.GetService(name); err != nil {
			t.Error(err)
		}
	}
	for _, service := range project.Services {
		if service.Build == nil && (!strings.Contains(service.Image, ":") ||
			strings.HasSuffix(service.Image, ":latest")) {
			t.Errorf("the image of %s has no fixed version: %s", service.Name, service.Image)
		}
		for _, port := range service.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s publishes %d beyond this machine", service.Name, port.Target)
			}
		}
		for _, volume := range service.Volumes {
			if volume.Type == types.VolumeTypeBind {
				exists(t, volume.Source)
			}
		}
	}
	service := project.Services["snapcloud"]
	exists(t, filepath.Join(service.Build.Context, service.Build.Dockerfile))
	environment := []string{}
	for name, value := range service.Environment {
		environment = append(environment, name+"="+*value)
	}
	checkConfig(t, read(t, "deploy/compose/snapcloud.yaml"), environment)
}
