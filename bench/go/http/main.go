// The twin of examples/httpd.c: net/http, /plaintext.
package main

import (
	"fmt"
	"gobench/bench"
	"net"
	"net/http"
)

func main() {
	bench.Workers()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	text := []byte("Hello, World!")
	http.HandleFunc("/plaintext", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Server", "go-httpd")
		w.Write(text)
	})
	fmt.Printf("http: listening on %s\n", l.Addr())
	http.Serve(l, nil)
}
