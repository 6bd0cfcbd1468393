package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// users lists the other processes that have the file open, as far as this user may see them. It
// also finds idle connections, which hold no lock.
func users(path string) []string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil
	}
	syscall.ForkLock.RLock() // a program that this process is just starting has all of its files for a moment
	defer syscall.ForkLock.RUnlock()
	processes, _ := os.ReadDir("/proc")
	var all []string
	for _, p := range processes {
		pid, err := strconv.Atoi(p.Name())
		if err != nil || pid == os.Getpid() || !hasOpen(pid, real) {
			continue
		}
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		all = append(all, fmt.Sprintf("%s (process %d)", strings.TrimSpace(string(name)), pid))
	}
	return all
}

// hasOpen reports whether a process has a file open. A machine has tens of thousands of open files,
// so each costs one system call and no memory.
func hasOpen(pid int, file string) bool {
	dir, err := os.Open(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return false
	}
	defer dir.Close()
	open, _ := dir.Readdirnames(-1)
	to := make([]byte, len(file)+1)
	for _, number := range open {
		n, err := unix.Readlinkat(int(dir.Fd()), number, to)
		if err == nil && string(to[:n]) == file {
			return true
		}
	}
	return false
}
