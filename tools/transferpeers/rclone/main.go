// Rclone is rclone with only the two backends that BenchmarkPeers in internal/transfer needs.
package main

import (
	_ "github.com/rclone/rclone/backend/local"
	_ "github.com/rclone/rclone/backend/s3"
	"github.com/rclone/rclone/cmd"
	_ "github.com/rclone/rclone/cmd/copyto"
)

func main() { cmd.Main() }
