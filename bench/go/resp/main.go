// The twin of examples/redisd.c for what redis-benchmark asks of it: GET, SET, PING and CONFIG GET, a goroutine
// a connection, one table under a lock.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"gobench/bench"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
)

var (
	lock  sync.RWMutex
	table = map[string][]byte{}
)

var errProtocol = errors.New("protocol error")

// number reads a line such as *3 or $5.
func number(r *bufio.Reader, kind byte) (int, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if len(line) < 4 || line[0] != kind {
		return 0, errProtocol
	}
	return strconv.Atoi(string(line[1 : len(line)-2]))
}

func command(r *bufio.Reader) ([][]byte, error) {
	n, err := number(r, '*')
	if err != nil || n < 1 || n > 1024 {
		return nil, errors.Join(err, errProtocol)
	}
	args := make([][]byte, n)
	for i := range args {
		size, err := number(r, '$')
		if err != nil || size < 0 || size > 512<<20 {
			return nil, errors.Join(err, errProtocol)
		}
		text := make([]byte, size+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return nil, err
		}
		args[i] = text[:size]
	}
	return args, nil
}

func answer(w *bufio.Writer, args [][]byte) {
	name := strings.ToUpper(string(args[0]))
	switch {
	case name == "GET" && len(args) == 2:
		lock.RLock()
		value, found := table[string(args[1])]
		lock.RUnlock()
		if !found {
			w.WriteString("$-1\r\n")
			return
		}
		w.WriteByte('$')
		w.WriteString(strconv.Itoa(len(value)))
		w.WriteString("\r\n")
		w.Write(value)
		w.WriteString("\r\n")
	case name == "SET" && len(args) == 3:
		lock.Lock()
		table[string(args[1])] = args[2]
		lock.Unlock()
		w.WriteString("+OK\r\n")
	case name == "PING":
		w.WriteString("+PONG\r\n")
	case name == "CONFIG" && len(args) == 3:
		fmt.Fprintf(w, "*2\r\n$%d\r\n%s\r\n$0\r\n\r\n", len(args[2]), args[2])
	default:
		fmt.Fprintf(w, "-ERR unknown command '%s'\r\n", name)
	}
}

func serve(c net.Conn) {
	defer c.Close()
	r, w := bufio.NewReaderSize(c, 16<<10), bufio.NewWriterSize(c, 16<<10)
	for {
		args, err := command(r)
		if err != nil {
			return
		}
		answer(w, args)
		if r.Buffered() == 0 && w.Flush() != nil {
			return
		}
	}
}

func main() {
	bench.Workers()
	fmt.Printf("resp: listening on 127.0.0.1:%d\n", bench.Listen(serve))
	select {}
}
