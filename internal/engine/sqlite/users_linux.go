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

// users lists the other processes that have the file open, as far as this user is allowed to see
// them. Unlike a test for locks, it also finds idle connections.
func users(path string) []string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil
	}
	syscall.ForkLock.RLock() // for a moment, a program that this process starts has all of this process's files open
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

// hasOpen reports whether a process has a file open. A machine can have tens of thousands of open
// files, so hasOpen reads all links into one buffer.
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
