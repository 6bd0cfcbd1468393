//go:build !unix

package transfer_test

import "time"

// processor returns 0, because the processor time is measured on Unix only.
func processor() time.Duration { return 0 }
