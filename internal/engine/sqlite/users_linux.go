package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// users lists the other processes that have the file open, as far as this user may see them. It
// also finds idle connections, which hold no lock.
func users(path string) []string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil
	}
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	own, seen := strconv.Itoa(os.Getpid()), map[string]bool{}
	var all []string
	for _, fd := range fds {
		pid := strings.Split(fd, "/")[2]
		if pid == own || seen[pid] {
			continue
		}
		if to, err := os.Readlink(fd); err == nil && to == real {
			seen[pid] = true
			name, _ := os.ReadFile("/proc/" + pid + "/comm")
			all = append(all, fmt.Sprintf("%s (process %s)", strings.TrimSpace(string(name)), pid))
		}
	}
	return all
}
