"""One GET by the library named first, printing the body; any failure is an exception."""
import sys

library, url = sys.argv[1:]
if library == "urllib":
    import urllib.request

    print(urllib.request.urlopen(url, timeout=10).read().decode())
else:
    module = __import__(library)
    answer = module.get(url, timeout=10)
    answer.raise_for_status()
    print(answer.text)
