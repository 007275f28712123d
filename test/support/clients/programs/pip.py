"""What an installer of Python packages does: the index page, the file that it names, its hash."""
import hashlib
import re
import sys
import urllib.parse

import requests

index = sys.argv[1] + "/simple/thing/"
with requests.Session() as session:
    page = session.get(index, timeout=10)
    page.raise_for_status()
    target, digest = re.search(r'href="([^"#]+)#sha256=([0-9a-f]{64})"', page.text).groups()
    file = session.get(urllib.parse.urljoin(index, target), timeout=10)
    file.raise_for_status()
    assert hashlib.sha256(file.content).hexdigest() == digest
    print(file.text)
