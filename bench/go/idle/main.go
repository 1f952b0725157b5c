// $N idle connections (10,000): memory of the server for each, page tables included, and CPU of an idle second.
// The clients are $IDLE_LOAD, the same as for pirn.
package main

import (
	"fmt"
	"gobench/bench"
	"net"
	"sync/atomic"
	"time"
)

var heard atomic.Int64

func serve(c net.Conn) {
	defer c.Close()
	b := make([]byte, 64)
	for {
		if _, err := c.Read(b); err != nil {
			return
		}
		heard.Add(1)
	}
}

func memory() float64 {
	return float64(bench.RSS("VmRSS") + bench.RSS("VmPTE"))
}

func main() {
	w := bench.Workers()
	n := bench.Int("N", 10000)
	before := memory()
	load := bench.StartLoad("IDLE_LOAD", bench.Listen(serve), n)
	for heard.Load() < int64(n) {
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Printf("idle_bytes %d %.1f\n", w, (memory()-before)/float64(n))
	time.Sleep(100 * time.Millisecond)
	used := bench.CPU()
	load.Run()
	fmt.Printf("idle_cpu %d %.1f\n", w, bench.CPU()-used)
}
