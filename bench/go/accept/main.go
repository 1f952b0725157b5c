// Connections that come and go, a goroutine each: server CPU of one, and their rate, with $N clients at a time.
// The clients are $ACCEPT_LOAD, the same as for pirn.
package main

import (
	"fmt"
	"gobench/bench"
	"net"
)

func serve(c net.Conn) {
	defer c.Close()
	b := []byte{'x'}
	c.Write(b)
	for {
		if _, err := c.Read(b); err != nil {
			return
		}
	}
}

func main() {
	w := bench.Workers()
	load := bench.StartLoad("ACCEPT_LOAD", bench.Listen(serve), bench.Int("N", 50))
	before := bench.CPU()
	done := load.Run()
	fmt.Printf("accept %d %.1f\n", w, (bench.CPU()-before)/done)
	fmt.Printf("accept_rate %d %.1f\n", w, bench.EachNs(done))
}
