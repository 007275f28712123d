// One GET by net/http, printing the body; any failure ends it with 1.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	answer, err := http.Get(os.Args[1])
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	body, _ := io.ReadAll(answer.Body)
	fmt.Println(answer.StatusCode, answer.Proto, string(body))
	if answer.StatusCode != 200 {
		os.Exit(1)
	}
}
