// Command versitygw is the S3 server for the tests. It uses the library of the versitygw project,
// stores objects in a folder, and has the same defaults as that project's own program. That program
// also contains clients for other object stores and a test suite. These take as long to compile as
// everything that the tests need. The tests start either program with:
//
//	ROOT_ACCESS_KEY=key ROOT_SECRET_KEY=secret versitygw --port ADDRESS --quiet posix FOLDER
//
// Only this program has --versions FOLDER, which lets buckets keep the versions of their objects
// there.
package main

import (
	"context"
	"flag"
	"log"
	"os"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

func main() {
	address := flag.String("port", "", "address to listen on")
	quiet := flag.Bool("quiet", false, "do not log requests")
	versions := flag.String("versions", "", "folder for the versions of objects")
	flag.Parse()
	if flag.Arg(0) != "posix" || flag.NArg() != 2 {
		log.Fatal("usage: versitygw --port ADDRESS [--quiet] [--versions FOLDER] posix FOLDER")
	}
	log.Fatal(serve(flag.Arg(1), *versions, embedgw.Config{
		RootUserAccess: os.Getenv("ROOT_ACCESS_KEY"), RootUserSecret: os.Getenv("ROOT_SECRET_KEY"),
		Ports: []string{*address}, Quiet: *quiet,
		MaxConnections: 250_000, MaxRequests: 100_000, MultipartMaxParts: 10_000,
	}))
}

func serve(folder, versions string, c embedgw.Config) error {
	if err := (meta.XattrMeta{}).Test(folder); err != nil {
		return err
	}
	storage, err := posix.New(folder, meta.XattrMeta{}, posix.PosixOpts{Concurrency: 5000, IOBufferSize: 1 << 20,
		CopyObjectThreshold: 5 << 30, VersioningDir: versions})
	if err != nil {
		return err
	}
	return embedgw.RunVersityGW(context.Background(), storage, &c)
}
