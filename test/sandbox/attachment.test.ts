/** An attachment: open while the namespace is there, and no longer. */
import assert from "node:assert/strict";
import { createServer, type Server } from "node:net";
import { test } from "node:test";
import { Attachment, parseNameServers } from "../../src/sandbox/attachment.ts";
import { unshared } from "../support/unshared.ts";

function attach(pid: number): { readonly attachment: Attachment; readonly open: Server[] } {
  const open: Server[] = [];
  const attachment = new Attachment({
    target: { path: `/proc/${pid}/ns/net`, pid },
    force: false,
    accept: (handle) => {
      const server = createServer().listen(handle);
      open.push(server);
      return server;
    },
    answer: () => undefined,
  });
  return { attachment, open };
}

test("Attachment: opens, adds and takes away ports, and ends with its process", async (context) => {
  const pid = await unshared(context);
  const { attachment, open } = attach(pid);
  assert.equal(attachment.alive, true);
  assert.deepEqual(await attachment.open([53, 443]), []);
  assert.deepEqual(await attachment.update([53, 443]), []);
  assert.deepEqual(await attachment.update([53, 8443]), []);
  assert.equal(open.length, 3);
  assert.equal(open.filter(({ listening }) => listening).length, 2);
  process.kill(pid, "SIGKILL");
  while (attachment.alive) await new Promise((resolve) => setTimeout(resolve, 10));
  attachment.close();
  assert.equal(open.filter(({ listening }) => listening).length, 0);
});

test("Attachment: closed while it opens, nothing stays open", async (context) => {
  const { attachment, open } = attach(await unshared(context));
  const opening = attachment.open([443]);
  attachment.close();
  await opening;
  assert.equal(open.filter(({ listening }) => listening).length, 0);
});

test("Attachment: a process that is not there is not alive", () => {
  assert.equal(attach(4_194_305).attachment.alive, false);
});

test("parseNameServers: those alone that need an address of their own", () => {
  const text =
    "search a.b\nnameserver 127.0.0.53\n nameserver 10.0.0.1\nnameserver 127.0.0.1\nnameserver ::1\nnameserver 2001:db8::1 \nnameserver x\n";
  assert.deepEqual(parseNameServers(text), ["127.0.0.53", "2001:db8::1"]);
});
