package servertest

import (
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// initialData is the data folder of a server that was never started.
type initialData struct {
	data  string
	alive io.Closer // the folder is removed when this is closed, at the latest when the process ends
}

// initialFolders holds the initial data folders of this process, by name.
var initialFolders sync.Map // string to func() (initialData, error)

// copyInitial copies an initial data folder to the path data and makes the account the owner of the
// copy. The first call with a name calls fill, which creates the initial folder as dir/data. Later
// calls in this process only copy that folder, which takes much less processor time.
func copyInitial(name, data string, as *account, fill func(dir string) error) error {
	once, _ := initialFolders.LoadOrStore(name,
		sync.OnceValues(func() (initialData, error) { return newInitial(fill) }))
	from, err := once.(func() (initialData, error))()
	if err != nil {
		return err
	}
	// cp would leave holes, and writing into a hole fails on a full disk.
	if err := os.CopyFS(data, os.DirFS(from.data)); err != nil {
		return err
	}
	if err := os.Chmod(data, 0o700); err != nil { // PostgreSQL requires this mode
		return err
	}
	return changeOwner(as, data)
}

func newInitial(fill func(dir string) error) (initialData, error) {
	dir, err := serverDir("initial")
	if err != nil {
		return initialData{}, err
	}
	remove := exec.Command("/bin/sh", "-c", `cat >/dev/null; rm -rf "$1"`, "sh", dir)
	runApart(remove)
	alive, err := remove.StdinPipe()
	if err != nil {
		return initialData{}, err
	}
	if err := remove.Start(); err != nil {
		return initialData{}, err
	}
	return initialData{data: filepath.Join(dir, "data"), alive: alive}, fill(dir)
}

// changeOwner makes the account the owner of a folder and everything in it. Without an account, it
// changes nothing: the folder already belongs to the test's own account.
func changeOwner(as *account, folder string) error {
	if as == nil {
		return nil
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return root.Lchown(path, int(as.Uid), int(as.Gid))
	})
}

// serverDir creates a temporary folder for the data of a server, in memory if possible. A server
// creates and removes hundreds of files for each database, which takes long on a disk.
func serverDir(name string) (string, error) {
	CollectLess()
	return os.MkdirTemp(inMemory(), "servertest-"+name+"-")
}
