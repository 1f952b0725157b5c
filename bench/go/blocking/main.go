// What Go does around a system call for it not to hold up the others: entersyscall and exitsyscall, which
// no program may call. So: the same trivial system call (getppid) by syscall.Syscall, which has them
// around it, less by syscall.RawSyscall, which has not; of each the least of batches that take turns.
package main

import (
	"fmt"
	"gobench/bench"
	"syscall"
	"time"
)

const batches = 50

func main() {
	w := bench.Workers()
	n := bench.Int("N", 5000000) / batches
	announced, raw := time.Duration(1<<62), time.Duration(1<<62)
	for b := 0; b < batches; b++ {
		t0 := time.Now()
		for i := 0; i < n; i++ {
			syscall.RawSyscall(syscall.SYS_GETPPID, 0, 0, 0)
		}
		raw = min(raw, time.Since(t0))
		t0 = time.Now()
		for i := 0; i < n; i++ {
			syscall.Syscall(syscall.SYS_GETPPID, 0, 0, 0)
		}
		announced = min(announced, time.Since(t0))
	}
	fmt.Printf("blocking %d %.2f\n", w, float64(announced-raw)/float64(n))
}

func min(a, b time.Duration) time.Duration {
	if a < b {
		return a
	}
	return b
}
